"""Decentralized training over the Internet, simulated and real.

>>> import shoal
>>> scenario = shoal.load("scenarios/quickstart.yaml")
>>> scenario["training"]["epochs"] = 20
>>> result = shoal.run(scenario, baseline=False)
>>> result.event_hash, result.losses["held_out"][-1]

docs/python.md has the whole of it.
"""

import pathlib as _pathlib

from . import _shoal
from . import averaging, codecs
from ._extensions import aggregator, workload
from ._results import Result, Table, open
from ._scenarios import Check, Diagnostic, RunError, Scenario, ScenarioError, ScenarioWarning, check, load
from ._running import print_progress, run

__version__ = _shoal.version

__all__ = [
    "Check", "Diagnostic", "Result", "RunError", "Scenario", "ScenarioError", "ScenarioWarning", "Table",
    "aggregator", "averaging", "check", "codecs", "load", "open", "print_progress", "run", "workload",
]


def _find_program():
    """Tells the module where the program's other files are: in bin/ of a build, or in lib/shoal of an installation."""
    for folder in _pathlib.Path(_shoal.__file__).resolve().parents:
        if any((folder / place).exists() for place in ("bin/libshoal_sentencepiece.so", "lib/shoal")):
            _shoal.set_program_file(str(folder / "bin" / "shoal"))
            return


_find_program()
