"""Runs scenarios in this process."""

import math
import os
import sys

from . import _shoal
from ._results import Result
from ._scenarios import _Source, _raise, _settings, _warn


def _duration(value):
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"until is a {type(value).__name__}, expected seconds or a text like '90s'")
    if not (math.isfinite(value) and 0 <= value < 9e9):
        raise ValueError(f"until is {value}, expected seconds from 0 to 9e9")
    return f"{round(value * 1e9)}ns"


def print_progress(status):
    """A function for `progress`: rewrites one line on standard error."""
    if "epoch" not in status:
        line = status["doing"]
    else:
        loss = status["loss_train"]
        of = f"/{status['epochs']}" if status["epochs"] else ""
        line = (f"{status['time']:.0f} s  epoch {status['epoch']}{of}" + (f"  loss {loss:.4f}" if loss is not None else "")
                + f"  peers {status['peers_alive']}  rounds {status['rounds_ok']} ok")
    print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def run(scenario, *, out=None, force=False, until=None, seed=None, set=None, baseline=True, report=True, transfers=False,
        workers=0, progress=None):
    """Runs a scenario and returns a Result.

    scenario   a dictionary, or the path of a scenario file
    out        a folder for the run directory; None: nothing is kept
    force      replaces the files of an earlier run in `out`
    until      ends the run at this virtual time: seconds, or a text like '90s'
    seed       in place of the scenario's
    set        other changes by path: {'peers.home.count': 12}
    baseline   trains the same on one machine, to compare with
    report     writes report.html into `out`
    transfers  fills the table `transfers` without `out`, too; recording them takes time
    workers    threads that compute; 0: one for each core
    progress   a function of a dictionary, called about five times a second; False as its result ends the run

    Other threads of Python go on meanwhile. Ctrl-C ends the run in good order: its directory is complete, and
    KeyboardInterrupt is raised. Raises ScenarioError for a scenario or directory that cannot be used, and RunError for
    a run that could not go on. A missed expectation raises nothing: `result.missed`.
    """
    source = _Source(scenario)
    settings = _settings(set)
    if seed is not None:
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            raise TypeError(f"seed is a {type(seed).__name__}, expected a whole number")
        settings.append(f"seed={seed.__index__()}")
    if progress is not None and not callable(progress):
        raise TypeError("progress is no function")
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 1024:
        raise ValueError(f"workers is {workers!r}, expected a whole number from 0 to 1024")
    place = "" if out is None else os.fspath(out)
    if not isinstance(place, str) or "\0" in place:
        raise TypeError("out is not the path of a folder")
    place.encode()
    if out is not None and not place:
        raise ValueError("out is empty: name a folder, or leave it out")
    try:
        made = _shoal.run(source.text, source.file, settings, place, bool(force), _duration(until), bool(baseline),
                          bool(report), bool(transfers), workers, progress)
    finally:
        if progress is print_progress:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
    _raise(made.get("errors"), source)
    _warn(made.get("warnings", ()), source)
    return Result(made, directory=place or None, scenario=scenario)
