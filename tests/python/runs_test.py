"""Runs from Python beside those of the program: results, files, progress, interruptions."""

import os
import signal
import threading
import time
import unittest

import shoal  # before NumPy, which would choose other loops of OpenBLAS
import numpy
from support import ROOT, Case, small_swarm, summary_of_program

QUICKSTART = ROOT / "scenarios/quickstart.yaml"


class Results(Case):
    def test_quickstart_has_the_history_and_the_losses_of_the_program(self):
        result = shoal.run(QUICKSTART, until="40s", baseline=False)
        expected = summary_of_program(QUICKSTART, "--until", "40s", "--no-baseline")
        self.assertEqual(result.event_hash, expected["event_hash"])
        self.assertEqual(result.state_hash, expected["state_hash"])
        self.assertEqual(result.summary["loss"], expected["loss"])
        self.assertEqual(result.summary["rounds"], expected["rounds"])

    def test_a_changed_dictionary_runs_like_a_changed_file(self):
        scenario = shoal.load(QUICKSTART)
        scenario["workload"] = {"kind": "timing", "parameters": 250000}
        scenario["training"]["epochs"] = 5
        result = shoal.run(scenario, seed=11)
        expected = summary_of_program(QUICKSTART, "--set", "workload={kind: timing, parameters: 250000}", "--set",
                                      "training.epochs=5", "--set", "seed=11")
        self.assertEqual(result.event_hash, expected["event_hash"])

    def test_columns_are_arrays_that_agree_with_the_summary(self):
        result = shoal.run(small_swarm(), transfers=True)
        self.assertTrue(result.ok, result)
        self.assertEqual(result.rounds["samples"].dtype, numpy.uint64)
        ends = result.summary["rounds"]
        for outcome in ("ok", "partial", "split", "failed"):
            self.assertEqual(numpy.count_nonzero(result.rounds["outcome"] == outcome), ends[outcome])
        self.assertEqual(result.rounds["samples"].sum(), result.summary["samples"])
        self.assertEqual(result.contributions["samples"].sum(), result.summary["samples"])
        self.assertEqual(result.peers.rows, result.summary["peers"]["joined"])
        self.assertTrue(numpy.all(numpy.diff(result.metrics["time"]) > 0))
        self.assertEqual(result.metrics["epoch"][-1], result.summary["epochs"])
        held_out = result.losses["held_out"]
        self.assertAlmostEqual(held_out[~numpy.isnan(held_out)][0], result.summary["loss"]["first"], places=12)
        averaging = result.transfers["bytes"].sum()
        self.assertGreater(averaging, 0)
        self.assertEqual(result.traffic["averaging"].sum(), result.summary["bytes_sent"]["averaging"])

    def test_a_directory_has_the_files_of_the_program_and_reads_back_the_same(self):
        result = shoal.run(small_swarm(), out=self.folder / "run")
        again = shoal.open(self.folder / "run")
        self.assertEqual(again.summary, result.summary)
        for name, table in result.tables.items():
            self.assertEqual(list(again.tables[name]), list(table))
            for column, values in table.items():
                with self.subTest(table=name, column=column):
                    numpy.testing.assert_array_equal(again.tables[name][column], values)
        summary_of_program(self.write("s.yaml", "from: here\n").parent / "run" / "run.yaml", "--out",
                           self.folder / "program")
        expected = {each.name for each in (self.folder / "program").iterdir()}
        self.assertEqual({each.name for each in (self.folder / "run").iterdir()}, expected)
        self.assertEqual(shoal.run(again.scenario).event_hash, result.event_hash)

    def test_a_directory_in_use_is_refused_and_force_replaces_it(self):
        shoal.run(small_swarm(epochs=1), out=self.folder / "run", report=False)
        with self.assertRaisesRegex(shoal.ScenarioError, "run"):
            shoal.run(small_swarm(epochs=1), out=self.folder / "run")
        shoal.run(small_swarm(epochs=2), out=self.folder / "run", force=True, report=False)
        self.assertEqual(shoal.open(self.folder / "run").summary["epochs"], 2)
        with self.assertRaisesRegex(shoal.ScenarioError, "no run"):
            shoal.open(self.folder / "nowhere")

    def test_frames_are_those_of_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is missing (Debian package python3-pandas)")
        result = shoal.run(small_swarm())
        frame = result.frame("rounds")
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(int(frame["samples"].sum()), result.summary["samples"])
        self.assertEqual(result.rounds.frame().shape, frame.shape)
        with self.assertRaisesRegex(KeyError, "there is no table 'round'"):
            result.frame("round")

    def test_a_missed_expectation_is_a_sentence(self):
        scenario = small_swarm()
        scenario["expect"] = {"loss.final": {"max": 0.01}}
        result = shoal.run(scenario)
        self.assertFalse(result.ok)
        self.assertIn("loss.final", result.missed[0])

    def test_a_study_of_averaging_has_its_curves(self):
        study = shoal.load(ROOT / "docs/tutorials/study.yaml")
        study["averaging_study"]["restarts"] = 2
        del study["averaging_study"]["expect"]
        result = shoal.run(study)
        self.assertIn("moshpit", str(result))
        (panels,) = result.curves.values()
        title, curves = panels[0]
        self.assertTrue(all(values[0] == 1 for values in curves.values()), curves)
        with self.assertRaises(AttributeError):
            result.rounds


class Progress(Case):
    def test_progress_is_told_and_false_ends_the_run(self):
        seen = []

        def tell(status):
            seen.append(status)
            return False if status["epoch"] >= 2 else None

        scenario = small_swarm(epochs=0)
        scenario["stop_time"] = "10h"
        result = shoal.run(scenario, progress=tell, out=self.folder / "run")
        self.assertTrue(result.interrupted)
        self.assertFalse(result.ok)
        self.assertEqual(seen[0]["peers_alive"] >= 0, True)
        self.assertLess(result.summary["virtual_seconds"], 36000)
        self.assertIn("interrupted: true", (self.folder / "run/run.yaml").read_text())

    def test_an_exception_of_progress_ends_the_run_and_comes_out(self):
        def tell(status):
            raise KeyError("mine")

        scenario = small_swarm(epochs=0)
        scenario["stop_time"] = "10h"
        with self.assertRaisesRegex(KeyError, "mine"):
            shoal.run(scenario, progress=tell)
        self.assertTrue(shoal.run(small_swarm()).ok)

    def test_control_c_ends_the_run_and_its_directory_is_complete(self):
        scenario = small_swarm(epochs=0)
        scenario["stop_time"] = "100h"
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            shoal.run(scenario, out=self.folder / "run")
        self.assertLess(time.monotonic() - begun, 30)
        run = shoal.open(self.folder / "run")
        self.assertGreater(run.summary["epochs"], 0)
        self.assertTrue((self.folder / "run/report.html").exists() or run.notes is not None)

    def test_other_threads_go_on_and_a_second_run_is_refused(self):
        counted, refused, done = [0], [], threading.Event()

        def count():
            while not done.is_set():
                counted[0] += 1
                time.sleep(0.001)

        def second(status):
            if not refused:
                try:
                    shoal.run(small_swarm())
                except RuntimeError as error:
                    refused.append(str(error))

        other = threading.Thread(target=count)
        other.start()
        results = []
        runs = threading.Thread(target=lambda: results.append(shoal.run(small_swarm(epochs=40), progress=second)))
        runs.start()
        runs.join()
        done.set()
        other.join()
        self.assertTrue(results[0].ok)
        self.assertIn("a run is in progress", refused[0])
        self.assertGreater(counted[0], 20)


if __name__ == "__main__":
    unittest.main()
