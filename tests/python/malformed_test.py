"""Ten thousand calls with wrong arguments: each raises an exception of Python, and none ends the process."""

import math
import random
import subprocess
import sys
import tempfile
import unittest

import numpy
import shoal
from shoal import averaging, codecs

CALLS = 10_000


class Strange:
    """An object whose every use fails."""

    def __getattr__(self, name):
        raise RuntimeError("strange")

    def __len__(self):
        raise RuntimeError("strange")

    def __iter__(self):
        raise RuntimeError("strange")


def values(draw, folder):
    """Arguments of every sort, most of them wrong."""
    array = lambda kind, shape: numpy.random.default_rng(draw.randrange(9)).standard_normal(shape).astype(kind)
    choices = [
        lambda: None, lambda: draw.choice([True, False]), lambda: draw.choice([0, 1, -1, 7, 2**31, 2**63, 2**64, -2**70]),
        lambda: draw.choice([0.0, -1.5, math.nan, math.inf, 1e308, 5e-324]),
        lambda: draw.choice(["", "mean", "median", "krum", "float16", "top_k", "blockwise8", "8x8", "0x0", "a\0b", "\ud800",
                             "ü" * 50, "x" * 10_000, "{", "- -", "90s", "\n", folder, folder + "/none.yaml"]),
        lambda: b"bytes", lambda: [], lambda: {}, lambda: (), lambda: {1, 2}, lambda: Strange(), lambda: object, lambda: len,
        lambda: [draw.choice([1, -1, 0.5, None, "x", math.nan, [1]]) for _ in range(draw.randrange(5))],
        lambda: array(draw.choice([numpy.float32, numpy.float64, numpy.int64, numpy.uint8, numpy.bool_, numpy.complex64]),
                      draw.choice([(), (0,), (1,), (8,), (3, 8), (2, 2, 2), (0, 4)])),
        lambda: [array(numpy.float32, draw.choice([0, 1, 8])) for _ in range(draw.randrange(4))],
        lambda: [array(draw.choice([numpy.float32, numpy.float64]), (8,))[::draw.choice([1, 2, -1])] for _ in range(3)],
        lambda: numpy.full(8, draw.choice([math.nan, math.inf, 3.5e38, 1e-45]), numpy.float32),
        lambda: numpy.array([None, "x"], dtype=object), lambda: numpy.array("text"), lambda: memoryview(b"abc"),
        lambda: {"peers": draw.choice([None, 3, [], {"home": {"count": draw.choice([-1, 2**70, "x", None])}}]), "stop_time": "1s"},
        lambda: {draw.choice(["seed", 3, "averaging", "\0"]): draw.choice([None, [], {}, "x", math.nan, 10**400])},
        lambda: {"averaging_study": {"peers": draw.choice([0, -4, "x", 10**30]), "strategies": draw.choice([[], ["x"], 3])}},
        lambda: folder + "/bad.yaml",
    ]
    return draw.choice(choices)()


def right(name, draw, folder):
    """An argument of this name that is right, or nearly."""
    array = numpy.random.default_rng(draw.randrange(9)).standard_normal((3, 8)).astype(numpy.float32)
    out = numpy.empty(8, numpy.float32)
    code = codecs.encode("float16", array[0])
    return {
        "values": draw.choice([array, list(array), array[0], array[:, :0], array[:0]]), "out": draw.choice([None, out, out[:7], array[0]]),
        "weights": draw.choice([None, [1, 2, 3], [1, 2], [0, 1, 2], [1e300, 1, 1]]), "seed": draw.choice([0, 5, -1]),
        "name": draw.choice(list(averaging.aggregators())), "codec": draw.choice(codecs.names()),
        "code": draw.choice([code, code[:9], numpy.zeros(16, numpy.uint8), numpy.full(24, 255, numpy.uint8)]),
        "count": draw.choice([8, 7, 0, 2**33]), "fraction": draw.choice([0.5, 0.0, 2.0]), "length": draw.choice([100, 0, 2**64 - 1]),
        "shares": draw.choice([[1, 2], [0], []]), "rates": draw.choice([[1, 2], [-1]]), "align": draw.choice([1, 0, 2**63]),
        "peers": draw.choice([16, 1, 0]), "groups": draw.choice([4, 0]), "grid": draw.choice(["8x8", "8x9", "99999999x99999999"]),
        "rounds": draw.choice([1, 2**40]), "failure": draw.choice([0.1, 2.0]), "limit": draw.choice([10, 1e300]),
        "faulty": draw.choice([0, 1, 99, 1e300]), "bucket_size": draw.choice([1, 2, 0, 4e6]), "radius": draw.choice([1.0, 0.0]),
        "path": draw.choice([folder + "/bad.yaml", folder]), "directory": folder, "scenario": {"stop_time": "1s", "peers": {"a": {}}},
        "set": {"stop_time": draw.choice(["1s", 3, []])}, "until": draw.choice(["1s", 1, -1]), "workers": draw.choice([1, -1]),
        "force": True, "report": False, "baseline": False, "progress": draw.choice([None, len]),
    }[name]


CALLS_AND_NAMES = [
    (averaging.weighted_mean, ["values", "weights", "out"]),
    (averaging.aggregate, ["name", "values", "weights", "seed", "out", "faulty", "bucket_size", "radius"]),
    (averaging.aggregate, ["name", "values", "faulty"]), (averaging.aggregate, ["name", "values"]),
    (averaging.part_boundaries, ["length", "shares", "align"]), (averaging.balanced_shares, ["rates"]),
    (averaging.random_groups_factor, ["peers", "groups"]), (averaging.full_grid_distortion, ["grid", "rounds"]),
    (averaging.all_reduce_rounds, ["peers", "failure", "limit"]), (averaging.pair_factor, ["peers"]),
    (codecs.encode, ["codec", "values", "fraction"]), (codecs.encode, ["codec", "values"]), (codecs.decode, ["codec", "code", "count", "out"]),
    (codecs.decode, ["codec", "code", "count"]), (codecs.facts, ["codec", "count"]),
    (shoal.load, ["path"]), (shoal.open, ["directory"]), (shoal.check, ["scenario", "set"]), (shoal.check, ["scenario"]),
    (shoal.run, ["scenario", "set", "until", "seed", "workers", "force", "report", "baseline", "progress"]), (shoal.run, ["scenario", "out"]),
]


def call_wrongly(draw, folder):
    """One call in which most arguments are nearly right, and one or more are not."""
    kind = draw.randrange(20)
    if kind == 0:  # anything at all
        function, names = draw.choice(CALLS_AND_NAMES)
        return function(*[values(draw, folder) for _ in range(draw.randrange(4))],
                        **{draw.choice(names + ["wrong"]): values(draw, folder)})
    if kind == 1:
        sort = draw.choice([shoal.aggregator, shoal.workload])
        options = {draw.choice(["unit", "meaning", "x", "kind", "\ud800"]): values(draw, folder)}
        return sort(draw.choice(["median", "logistic", "a b", "", 3, None, "\0"]), **options)(values(draw, folder))
    if kind == 2:
        path = draw.choice(["", "a", "peers.x.y", "faults.9.at", 3, "..", "\ud800", "peers", "seed"])
        return shoal.check({"stop_time": "1s"}, set={path: values(draw, folder)})
    function, names = draw.choice(CALLS_AND_NAMES)
    arguments = {name: right(name, draw, folder) for name in names}
    for name in draw.sample(names, draw.choice([0, 1, 1, 1, 2]) if len(names) > 1 else 1):
        arguments[name] = values(draw, folder)
    return function(**arguments)


def main(seed, count):
    draw = random.Random(seed)
    raised = {}
    fine = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/bad.yaml", "wb") as file:
            file.write(b"peers: {home: [1, {x: \xff\x00 \n\t- ]")
        for number in range(count):
            try:
                call_wrongly(draw, folder)
                fine += 1
            except Exception as error:  # KeyboardInterrupt and the like would be mistakes
                raised[type(error).__name__] = raised.get(type(error).__name__, 0) + 1
                if isinstance(error, SystemError):
                    raise
    print(f"{count} calls: {fine} fine, raised {dict(sorted(raised.items()))}")
    return 0 if fine < count * 0.4 and sum(raised.values()) + fine == count else 1


class Malformed(unittest.TestCase):
    def test_no_call_ends_the_process(self):
        done = subprocess.run([sys.executable, "-X", "faulthandler", __file__, "calls", "7", str(CALLS)],
                              capture_output=True, text=True, timeout=500)
        print(done.stdout.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["calls"]:
        sys.exit(main(int(sys.argv[2]), int(sys.argv[3])))
    unittest.main()
