"""Scenarios as dictionaries: read, changed, checked, and their mistakes."""

import pathlib
import re
import subprocess
import sys
import time
import unittest
import warnings

import numpy
import shoal
from support import ROOT, Case, program, small_swarm


def valid_files():
    for folder in ("scenarios", "docs/tutorials", "tests/scenarios/valid", "tests/e2e/found"):
        yield from sorted((ROOT / folder).rglob("*.yaml"))


class Reading(Case):
    def test_a_file_becomes_nested_dictionaries_with_numbers_and_texts(self):
        scenario = shoal.load(ROOT / "scenarios/quickstart.yaml")
        self.assertEqual(scenario["seed"], 3)
        self.assertIsInstance(scenario["peers"], dict)
        group = next(iter(scenario["peers"].values()))
        self.assertIsInstance(group["count"], int)
        self.assertRegex(group["up"], r"^\d+Mbit$")

    def test_every_scenario_says_the_same_as_a_dictionary_and_as_a_file(self):
        files = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", shoal.ScenarioWarning)
            for file in valid_files():
                with self.subTest(file=str(file)):
                    try:
                        of_file = shoal.check(file)
                    except shoal.ScenarioError as error:
                        if "cannot be read" in str(error) or "there is no" in str(error):
                            continue  # data that this machine lacks
                        raise
                    self.assertEqual(shoal.check(shoal.load(file)).resolved, of_file.resolved)
                    files += 1
        self.assertGreater(files, 40)

    def test_a_resolved_scenario_has_every_default_and_resolves_to_itself(self):
        checked = shoal.check(small_swarm())
        self.assertEqual(checked.resolved["averaging"]["group_size"], 256)
        self.assertIn("6 peers", checked.outline)
        self.assertEqual(shoal.check(checked.resolved).resolved, checked.resolved)

    def test_a_copy_can_be_changed_alone(self):
        one = shoal.load(ROOT / "scenarios/quickstart.yaml")
        other = one.copy()
        other["training"]["epochs"] = 7
        self.assertNotEqual(one["training"]["epochs"], 7)
        self.assertEqual(other.file, one.file)

    def test_numbers_of_numpy_and_paths_are_values(self):
        scenario = small_swarm()
        scenario["seed"] = numpy.int64(5)
        scenario["training"]["optimizer"]["learning_rate"] = numpy.float64(0.25)
        scenario["data"] = {"files": [pathlib.Path("a.txt")]}
        resolved = shoal.check(scenario).resolved
        self.assertEqual(resolved["seed"], 5)
        self.assertEqual(resolved["training"]["optimizer"]["learning_rate"], 0.25)


class Mistakes(Case):
    def test_a_mistake_in_a_file_has_line_and_column_as_the_program_prints_it(self):
        files = 0
        for file in sorted((ROOT / "tests/scenarios/invalid").glob("*.yaml")):
            expected, text = file.with_suffix(".expected").read_text(), file.read_bytes()
            if b"# --set" in text or b"tests/" in text or "warning:" in expected:
                continue  # a change, paths from the root, or more than errors
            with self.subTest(file=file.name):
                with self.assertRaises(shoal.ScenarioError) as raised:
                    shoal.load(file)
                places = re.findall(r"^[^\s:]+:(\d+):(\d+): error: ", expected, re.MULTILINE)
                self.assertEqual([(e.line, e.column) for e in raised.exception.errors],
                                 [(int(line), int(column)) for line, column in places])
                said = str(raised.exception).replace(str(file), file.name) + "\n"
                said = said.replace("'tests/scenarios/invalid', where", "the working directory, where")
                self.assertEqual(said, expected)
                files += 1
        self.assertGreater(files, 60)

    def test_the_text_is_that_of_a_compiler(self):
        place = self.write("s.yaml", "stop_time: 10min\npeers:\n  home: {count: 2, devise: laptop, up: 1Mbit, down: 1Mbit}\n")
        with self.assertRaises(shoal.ScenarioError) as raised:
            shoal.run(place)
        error = raised.exception
        self.assertEqual((error.errors[-1].line, error.errors[-1].column), (3, 20))
        self.assertEqual(error.file, str(place))
        self.assertIn("s.yaml:3:20: error: ", str(error))
        self.assertIn("devise", error.errors[-1].message)
        self.assertIn("did you mean 'device'?", str(error))

    def test_a_mistake_in_a_dictionary_has_its_path(self):
        scenario = small_swarm()
        scenario["peers"]["home"]["cuont"] = 3
        scenario["faults"] = [{"kill": "machine", "select": "home-0", "at": "20s"}, {"kill": "machin", "at": "1s"}]
        with self.assertRaises(shoal.ScenarioError) as raised:
            shoal.check(scenario)
        self.assertEqual({e.path for e in raised.exception.errors}, {"peers.home.cuont", "faults.1.kill"})
        self.assertIn("did you mean 'count'?", str(raised.exception))
        self.assertIsNone(raised.exception.line)

    def test_a_mistake_in_a_change_names_the_change(self):
        with self.assertRaises(shoal.ScenarioError) as raised:
            shoal.check(small_swarm(), set={"training.epochs": "many"})
        self.assertEqual(raised.exception.path, "training.epochs")

    def test_a_warning_is_a_warning_of_python(self):
        scenario = small_swarm(optimizer={"kind": "sgd", "learning_rate": 50})
        scenario["workload"] = {"kind": "quadratic", "parameters": 10}
        with self.assertWarnsRegex(shoal.ScenarioWarning, "sgd diverges"):
            shoal.check(scenario)

    def test_a_missing_file_is_named(self):
        for call in (shoal.load, shoal.check, shoal.run):
            with self.assertRaisesRegex(shoal.ScenarioError, "nowhere.yaml"):
                call(self.folder / "nowhere.yaml")

    def test_wrong_types_say_where_they_are(self):
        scenario = small_swarm()
        scenario["peers"]["home"]["count"] = {1, 2}
        with self.assertRaisesRegex(TypeError, "peers.home.count is a set"):
            shoal.check(scenario)
        with self.assertRaisesRegex(TypeError, "a scenario is a path or a dictionary"):
            shoal.run(42)
        circle = {}
        circle["circle"] = circle
        with self.assertRaisesRegex(ValueError, "nested too deeply"):
            shoal.check(circle)


class Importing(Case):
    def test_the_import_takes_less_than_a_second(self):
        def seconds():
            begun = time.monotonic()
            subprocess.run([sys.executable, "-c", "import shoal"], check=True)
            return time.monotonic() - begun

        seconds()
        best = min(seconds() for _ in range(3))
        print(f"import shoal: {best:.2f} s with the start of the interpreter")
        self.assertLess(best, 1)

    def test_the_version_is_that_of_the_program(self):
        self.assertIn(f"shoal {shoal.__version__}", program("--version")[1])


if __name__ == "__main__":
    unittest.main()
