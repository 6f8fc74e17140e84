"""The results of runs, as dictionaries and NumPy arrays."""

import json
import os

import numpy

from . import _shoal
from ._scenarios import Scenario, ScenarioError, _typed

_TABLES = ("metrics", "epochs", "rounds", "member_rounds", "contributions", "peers", "phases", "faults", "transfers",
           "traffic")


class Table(dict):
    """Columns by name; each is a NumPy array. len() is the number of columns, and `rows` that of the rows."""

    @property
    def rows(self):
        return len(next(iter(self.values()))) if self else 0

    def frame(self):
        """The table as a pandas DataFrame. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(dict(self))


def _column(of):
    if isinstance(of, tuple):
        codes, names = of
        return numpy.array(names, dtype=str)[codes] if names else numpy.empty(0, dtype=str)
    return of


class Result:
    """A run.

    summary          summary.json as a dictionary (docs/run-directory.md)
    tables           a Table for each of: metrics, epochs, rounds, member_rounds, contributions, peers, phases, faults,
                     transfers, traffic; each is an attribute, too
    losses           arrays 'epoch', 'train' and 'held_out', in nats; NaN where a loss was not measured
    samples          samples by epoch
    missed           a sentence for each expectation that the run missed
    curves           of an averaging study: a list of panels, each a title and arrays by name
    directory        the run directory, or None
    """

    def __init__(self, made, directory=None, scenario=None):
        summary = made.get("summary")
        self.summary = json.loads(summary) if summary else None
        self.tables = {name: Table({key: _column(each) for key, each in columns.items()})
                       for name, columns in made.get("tables", {}).items()}
        self.curves = made.get("curves", {})
        self.missed = list(made.get("missed", ()))
        self.interrupted = bool(made.get("interrupted", False))
        self.text_prompt = made.get("text_prompt", "")
        self.text_before = made.get("text_before", "")
        self.text_after = made.get("text_after", "")
        self.notes = list(made.get("notes", ()))
        self.directory = directory
        self.scenario = scenario
        self._printed = made.get("printed", "")
        if made.get("no_report"):
            self.notes.append("report.html could not be written: " + made["no_report"])

    def __getattr__(self, name):
        if name in _TABLES:
            if name in self.tables:
                return self.tables[name]
            raise AttributeError(f"this run has no table '{name}': it has no history")
        raise AttributeError(f"a Result has no '{name}'")

    def __dir__(self):
        return [*super().__dir__(), *self.tables]

    def _hash(self, name):
        return (self.summary or {}).get(name)

    @property
    def event_hash(self):
        """The hash of the history in hexadecimal, as the program prints it; None outside of the world 'sim'."""
        return self._hash("event_hash")

    @property
    def state_hash(self):
        """The hash of the final parameters in hexadecimal; None without parameters."""
        return self._hash("state_hash")

    @property
    def losses(self):
        table = self.epochs
        return {"epoch": table["epoch"], "train": table["loss_train"], "held_out": table["loss_held_out"]}

    @property
    def samples(self):
        return self.epochs["samples"]

    @property
    def violations(self):
        """The invariants that the run violated: how often, by name."""
        all_of_them = (self.summary or {}).get("invariants", {})
        return {name: each["violated"] for name, each in all_of_them.items() if each["violated"] > 0}

    @property
    def ok(self):
        """True if the run ended by itself, met its expectations and violated no invariant."""
        return not (self.missed or self.violations or self.interrupted)

    def frame(self, name="epochs"):
        """A table as a pandas DataFrame. Raises ImportError without pandas."""
        if name not in self.tables:
            raise KeyError(f"there is no table '{name}'; there are {', '.join(self.tables) or 'none'}")
        return self.tables[name].frame()

    def __str__(self):
        return self._printed.rstrip("\n") or repr(self)

    def __repr__(self):
        summary = self.summary or {}
        name = summary.get("scenario", "a run without a summary")
        if not self.tables:
            return f"<shoal.Result: {name}>"
        return (f"<shoal.Result: {name}, seed {summary.get('seed')}, {summary.get('epochs')} epochs, "
                f"event hash {(self.event_hash or 'none')[:8]}>")


def open(directory):
    """Reads the run in a run directory. A run that was killed is read as far as it goes; its summary is None.

    Raises ScenarioError if there is no run.
    """
    place = os.fspath(directory)
    if not isinstance(place, str) or "\0" in place:
        raise TypeError("a run directory is a path")
    place.encode()
    made = _shoal.open_run(place)
    tree = _shoal.parse(made["run_yaml"])
    if not isinstance(tree, dict):
        raise ScenarioError(f"{place}/run.yaml is no scenario")
    tree.pop("x-run", None)
    return Result(made, directory=place, scenario=Scenario(_typed(tree), file=os.path.join(place, "run.yaml")))
