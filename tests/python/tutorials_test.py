"""The figures of the tutorials, from Python."""

import re
import statistics
import subprocess
import sys
import unittest

import numpy
import shoal
from support import ROOT, Case, nightly

EVENING = ROOT / "docs/tutorials/evening.yaml"


def page(name):
    return (ROOT / "docs" / name).read_text()


class Researcher(Case):
    def test_the_evening_is_that_of_the_page_and_its_trace_repeats_it(self):
        shown = page("tutorial-researcher.md")
        result = shoal.run(EVENING, out=self.folder / "evening", report=False)
        self.assertIn(f"event hash   {result.event_hash}", shown)
        said = [line for line in str(result).splitlines() if line.split()[:1] in (["peers"], ["training"], ["rounds"])]
        self.assertEqual(len(said), 3)
        for line in said:
            self.assertIn(line.strip(), shown)
        peers = result.peers
        ended = ~numpy.isnan(peers["ended_s"])
        self.assertEqual((peers.rows, int(ended.sum())), (49, 37))
        trace = str(self.folder / "evening/peers.csv")
        again = shoal.load(EVENING)
        for group in again["peers"].values():
            group["churn"] = {"trace": trace}
        self.assertEqual(shoal.run(again).event_hash, result.event_hash)

    @nightly
    def test_equal_parts_are_slower_as_the_page_says(self):
        equal = shoal.run(EVENING, set={"averaging.split": "equal"})
        adaptive = shoal.run(EVENING)

        def mean_seconds(result):
            done = result.rounds["outcome"] != "failed"
            return float((result.rounds["ended_s"] - result.rounds["started_s"])[done].mean())

        self.assertAlmostEqual(mean_seconds(adaptive), 7.12, delta=0.3)
        self.assertGreater(mean_seconds(equal), 1.5 * mean_seconds(adaptive))

    @nightly
    def test_the_sweep_has_the_rates_of_the_page(self):
        for split, up in (("adaptive", "5Mbit"), ("equal", "5Mbit"), ("adaptive", "20Mbit"), ("equal", "20Mbit")):
            rates = []
            for seed in (1, 2, 3):
                result = shoal.run(EVENING, seed=seed, set={"stop_time": "10min", "averaging.split": split,
                                                            "peers.home.up": up})
                rates.append(result.summary["samples"] / result.summary["virtual_seconds"])
            line = [each for each in page("tutorial-researcher.md").splitlines()
                    if re.match(rf"\s*{split}\s+{up} ", each)][0]
            samples_per_second = float(line.split(" ± ")[2].split()[-1])
            self.assertAlmostEqual(statistics.mean(rates), samples_per_second, delta=0.02 * samples_per_second)


class Engineer(Case):
    def test_the_study_meets_its_expectations(self):
        result = shoal.run(ROOT / "docs/tutorials/study.yaml", out=self.folder / "study")
        self.assertTrue(result.ok, result.missed)
        (panels,) = result.curves.values()
        of_moshpit = [values for _, curves in panels for name, values in curves.items() if name.startswith("moshpit")]
        self.assertTrue(of_moshpit)
        self.assertEqual(sorted(each.name for each in (self.folder / "study").iterdir()),
                         ["curves.svg", "report.html", "run.yaml", "summary.json"])

    @nightly
    def test_the_codecs_cost_what_the_page_says(self):
        for codec, loss in (("none", 0.5690), ("float16", 0.5675), ("blockwise8", 0.5683), ("top_k", 0.5913)):
            losses = [shoal.run(ROOT / "docs/tutorials/codecs.yaml", seed=seed, baseline=False,
                                set={"averaging.compression": codec}).summary["loss"]["final"] for seed in (1, 2, 3)]
            self.assertAlmostEqual(statistics.mean(losses), loss, delta=0.001)


class Plots(Case):
    def test_the_example_draws_the_plots_of_the_tutorials(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("matplotlib is missing (Debian package python3-matplotlib)")
        done = subprocess.run([sys.executable, ROOT / "docs/tutorials/plots.py", self.folder, "--quick"], cwd=ROOT,
                              capture_output=True, text=True, timeout=500)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("evening", "split", "averaging", "codecs"):
            self.assertGreater((self.folder / f"{name}.png").stat().st_size, 10_000)


if __name__ == "__main__":
    unittest.main()
