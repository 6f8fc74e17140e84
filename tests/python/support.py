"""Shared by the tests of the Python module: a small swarm, and the program to compare with."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SHOAL_PROGRAM", str(ROOT / "build/release/bin/shoal"))
NIGHTLY = bool(os.environ.get("SHOAL_NIGHTLY"))
nightly = unittest.skipUnless(NIGHTLY, "nightly; ./shoal test --nightly runs it")


def small_swarm(**training):
    """Six hosts that learn a convex model in a few virtual minutes, which takes a second of computing."""
    return {
        "seed": 3,
        "stop_time": "10min",
        "network": {"default_delay": "40ms", "default_jitter": "5ms"},
        "devices": {"laptop": {"samples_per_second": 20, "jitter": "10%"}},
        "peers": {"home": {"count": 6, "down": "50Mbit", "up": "10Mbit", "device": "laptop"}},
        "workload": {"kind": "logistic", "parameters": 200},
        "training": {"target_batch": 64, "micro_batch": 8, "epochs": 12,
                     "optimizer": {"kind": "sgd", "learning_rate": 0.5}, **training},
        "averaging": {"matchmaking_time": "2s"},
    }


def program(*arguments):
    """Runs the program `shoal`. Returns its status, output and errors."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT, timeout=300)
    return done.returncode, done.stdout, done.stderr


def summary_of_program(*arguments):
    """summary.json of `shoal run`."""
    status, out, errors = program("run", *arguments, "--json", "-q")
    if status not in (0, 3):
        raise AssertionError(f"status {status}: {errors}")
    return json.loads(out)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        place = self.folder / name
        place.write_text(text)
        return place
