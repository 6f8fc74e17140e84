"""Scenarios as dictionaries."""

import dataclasses
import json
import os
import re
import warnings

from . import _shoal
from ._shoal import RunError, ScenarioError


class ScenarioWarning(UserWarning):
    """A scenario that can be run, but is probably not what its author means."""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One mistake of a scenario.

    `line` and `column` begin at 1, and are None where the scenario is no file. `path` is the place in a dictionary,
    like 'peers.home.count', and is None where it is not known.
    """

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None
    notes: tuple = ()
    text: str = ""

    def __str__(self):
        return self.text


@dataclasses.dataclass(frozen=True)
class Check:
    """A scenario without mistakes: a line about it, its warnings, and the scenario with every default filled in."""

    outline: str
    warnings: tuple
    resolved: "Scenario"


class Scenario(dict):
    """A scenario as nested dictionaries and lists. `file` says where relative paths begin; None: the working folder."""

    def __init__(self, *content, file=None, **more):
        super().__init__(*content, **more)
        self.file = file

    def copy(self):
        """A copy whose parts can be changed without changing the original."""
        return Scenario(_copy(self), file=self.file)


def _copy(value):
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(each) for each in value]
    return value


# -- dictionaries to YAML and back ---------------------------------------------------------------

_MOST_NESTED = 32
_MOST_BYTES = 1 << 20  # of a file; the checker refuses longer ones


def _scalar(value, path):
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()  # a number of NumPy
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return format(int(value), "d")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    raise TypeError(
        f"{path or 'the scenario'} is a {type(value).__name__}: expected a dictionary, list, text, number or None")


def _write(value, path, indent, lines, places):
    """Appends the lines of a dictionary or list. `places` has the path of each line."""
    if len(path) > _MOST_NESTED:
        raise ValueError(f"{'.'.join(path[:3])}... is nested too deeply")
    if isinstance(value, dict):
        items = []
        for key, each in value.items():
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise TypeError(f"{'.'.join(path) or 'the scenario'} has the key {key!r}: keys are texts")
            items.append((json.dumps(str(key), ensure_ascii=False) + ":", str(key), each))
    else:
        items = [("-", str(i), each) for i, each in enumerate(value)]
    for mark, key, each in items:
        here = path + (key,)
        if hasattr(each, "tolist") and getattr(each, "shape", ()) != ():
            each = each.tolist()  # an array of NumPy
        nested = isinstance(each, (dict, list, tuple))
        if nested and each:
            tail = ""
        elif nested:
            tail = " {}" if isinstance(each, dict) else " []"
        else:
            tail = " " + _scalar(each, ".".join(here))
        lines.append("  " * indent + mark + tail)
        places.append(".".join(here))
        if nested and each:
            _write(each, here, indent + 1, lines, places)


def _to_yaml(scenario):
    """The text of a scenario, and the path of each of its lines."""
    lines, places = [], []
    if scenario:
        _write(scenario, (), 0, lines, places)
    else:
        lines, places = ["{}"], [""]
    return "\n".join(lines) + "\n", places


def _typed(value):
    """The tree with numbers and truth values in place of their texts, where nothing is lost."""
    if isinstance(value, dict):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_typed(each) for each in value]
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and re.fullmatch(r"-?[0-9][0-9.e+-]*", value, re.ASCII):
        for number in (int, float):
            try:
                if str(number(value)) == value:
                    return number(value)
            except ValueError:
                pass
    return value


def _settings(changes):
    """The arguments of --set."""
    if not changes:
        return []
    if not isinstance(changes, dict):
        raise TypeError(f"set is a {type(changes).__name__}, expected a dictionary of paths and values")
    out = []
    for path, value in changes.items():
        if not isinstance(path, str):
            raise TypeError(f"set has the key {path!r}: keys are paths, like 'peers.home.count'")
        if isinstance(value, (dict, list, tuple)):
            text = _flow(value, path, 0)
        else:
            text = _scalar(value, path)
        out.append(f"{path}={text}")
    return out


def _flow(value, path, depth):
    if depth > _MOST_NESTED:
        raise ValueError(f"{path} is nested too deeply")
    if isinstance(value, dict):
        items = (f"{json.dumps(str(key), ensure_ascii=False)}: {_flow(each, path, depth + 1)}" for key, each in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(each, path, depth + 1) for each in value) + "]"
    return _scalar(value, path)


# -- errors --------------------------------------------------------------------------------------


def _diagnostic(of, source):
    """A diagnostic of the checker. The text of a dictionary has no lines for users, but paths."""
    path, places = None, source.places
    if of["file"].startswith("--set "):
        path = of["file"][len("--set "):].partition("=")[0]
    elif places is not None and of["file"] == source.file and 1 <= of["line"] <= len(places):
        path = places[of["line"] - 1]
    if path is None:
        return Diagnostic(of["message"], of["file"], of["line"] or None, of["column"] or None, None, tuple(of["notes"]),
                          of["text"].rstrip("\n"))
    text = f"{path}: {'warning' if of['warning'] else 'error'}: {of['message']}"
    text += "".join(f"\nnote: {note}" for note in of["notes"])
    return Diagnostic(of["message"], path=path, notes=tuple(of["notes"]), text=text)


def _raise(errors, source):
    """Raises what is wrong: the exception has a list `errors`, and line, column and path of the first one."""
    if not errors:
        return
    all_of_them = [_diagnostic(each, source) for each in errors]
    error = ScenarioError("\n".join(each.text for each in all_of_them))
    error.errors = all_of_them
    for name in ("file", "line", "column", "path"):
        setattr(error, name, getattr(all_of_them[0], name))
    raise error


def _warn(found, source):
    out = tuple(_diagnostic(each, source) for each in found)
    for each in out:
        warnings.warn(each.text, ScenarioWarning, stacklevel=4)
    return out


class _Source:
    """The text of a scenario for the module: `text` is None for a file that the module reads itself."""

    def __init__(self, scenario):
        self.places = None
        self.text = None
        if isinstance(scenario, dict):
            self.text, self.places = _to_yaml(scenario)
            self.text.encode()  # raises for a text that is no Unicode
            self.file = getattr(scenario, "file", None) or "scenario"
        elif isinstance(scenario, (str, os.PathLike)):
            self.file = os.fspath(scenario)
            if not isinstance(self.file, str):
                raise TypeError("the path of a scenario is a text")
            if "\0" in self.file:
                raise ValueError("the path of a scenario has a NUL")
            self.file.encode()
        else:
            raise TypeError(f"a scenario is a path or a dictionary, not a {type(scenario).__name__}")

    def read(self):
        if self.text is None:
            self.text = _read(self.file)
        return self.text


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as problem:
        error = ScenarioError(f"{path}: {problem.strerror or problem}")
        error.errors = [Diagnostic(str(problem.strerror or problem), file=path, text=str(error))]
        error.file, error.line, error.column, error.path = path, None, None, None
        raise error from problem


def load(path):
    """Reads a scenario file and checks it.

    Returns a Scenario: what the file says, without defaults. Quantities with a unit are texts, like '10Mbit'.
    Raises ScenarioError with file, line and column.
    """
    source = _Source(path)
    if source.places is not None:
        raise TypeError("load() takes the path of a scenario file")
    text = source.read()
    checked = _shoal.check(text, source.file, [])
    _raise(checked["errors"], source)
    _warn(checked["warnings"], source)
    return Scenario(_typed(_shoal.parse(text)), file=os.path.abspath(source.file))


def check(scenario, *, set=None):
    """Checks a scenario, a dictionary or the path of a file. `set`: changes by path, {'peers.home.count': 12}.

    Returns a Check. Raises ScenarioError with a list `errors` of all mistakes.
    """
    source = _Source(scenario)
    checked = _shoal.check(source.read(), source.file, _settings(set))
    _raise(checked["errors"], source)
    found = _warn(checked["warnings"], source)
    return Check(checked["outline"] or "", found,
                 Scenario(_typed(_shoal.parse(checked["resolved"])), file=source.file))
