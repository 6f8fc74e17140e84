"""Aggregators and workloads in Python, beside the built-in ones."""

import unittest
import warnings

import numpy
import shoal
from support import ROOT, Case, small_swarm


@shoal.aggregator("middle")
def middle(values, weights):
    """the median of each coordinate, by NumPy."""
    return numpy.median(values, axis=0)


@shoal.aggregator("trimmed", faulty=1)
def trimmed(values, weights, faulty):
    ordered = numpy.sort(values.astype(numpy.float64), axis=0)
    faulty = min(faulty, (len(values) - 1) // 2)
    return ordered[faulty:len(values) - faulty].mean(axis=0)


@shoal.aggregator("nearest", unit="part", faulty=1)
def nearest(values, weights, faulty):
    """Krum, as its paper says it."""
    squares = ((values[:, None, :].astype(numpy.float64) - values[None, :, :]) ** 2).sum(axis=2)
    others = numpy.sort(squares, axis=1)[:, 1:]
    scores = others[:, :max(1, len(values) - faulty - 2)].sum(axis=1)
    return values[numpy.argmin(scores)]


def logistic(aggregator, **network):
    scenario = small_swarm()
    scenario["averaging"]["aggregator"] = aggregator
    return scenario


class Aggregators(Case):
    def test_ten_lines_give_the_numbers_of_the_built_in_median_to_the_bit(self):
        own, built_in = shoal.run(logistic("middle")), shoal.run(logistic("median"))
        self.assertTrue(own.ok, own.violations)
        self.assertEqual(own.event_hash, built_in.event_hash)
        self.assertEqual(own.state_hash, built_in.state_hash)
        self.assertEqual(own.summary["loss"], built_in.summary["loss"])
        checked = own.summary["invariants"]["mass_conserved"]["checked"]
        self.assertGreater(checked, 0)

    def test_options_come_from_the_scenario(self):
        for faulty in (1, 2):
            own = shoal.run(logistic({"kind": "trimmed", "faulty": faulty}))
            built_in = shoal.run(logistic({"kind": "trimmed_mean", "faulty": faulty}))
            self.assertEqual(own.event_hash, built_in.event_hash)
            self.assertAlmostEqual(own.summary["loss"]["final"], built_in.summary["loss"]["final"], places=6)
        with self.assertRaisesRegex(shoal.ScenarioError, "did you mean 'faulty'"):
            shoal.check(logistic({"kind": "trimmed", "fualty": 2}))

    def test_a_method_of_whole_parts_gives_the_numbers_of_krum(self):
        own = shoal.run(logistic({"kind": "nearest", "faulty": 1}))
        built_in = shoal.run(logistic({"kind": "krum", "faulty": 1}))
        self.assertEqual((own.event_hash, own.state_hash), (built_in.event_hash, built_in.state_hash))

    def test_buckets_come_before_the_function(self):
        own = shoal.run(logistic({"kind": "middle", "bucket_size": 2}))
        built_in = shoal.run(logistic({"kind": "median", "bucket_size": 2}))
        self.assertEqual((own.event_hash, own.state_hash), (built_in.event_hash, built_in.state_hash))

    def test_the_function_can_be_called_on_arrays_like_every_aggregator(self):
        values = numpy.random.default_rng(5).standard_normal((5, 30)).astype(numpy.float32)
        numpy.testing.assert_array_equal(shoal.averaging.aggregate("middle", values),
                                         shoal.averaging.aggregate("median", values))
        self.assertEqual(shoal.averaging.aggregators()["middle"]["meaning"],
                         "the median of each coordinate, by NumPy")

    def test_an_exception_ends_the_run_and_comes_out(self):
        @shoal.aggregator("broken")
        def broken(values, weights):
            raise ZeroDivisionError("mine")

        @shoal.aggregator("short")
        def short(values, weights):
            return values[0][:-1]

        @shoal.aggregator("words")
        def words(values, weights):
            return "words"

        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            shoal.run(logistic("broken"))
        with self.assertRaisesRegex(ValueError, "the aggregator 'short' returned the shape"):
            shoal.run(logistic("short"))
        with self.assertRaises((TypeError, ValueError)):
            shoal.run(logistic("words"))
        with self.assertRaisesRegex(ZeroDivisionError, "mine"):
            shoal.averaging.aggregate("broken", numpy.ones((2, 3), numpy.float32))
        self.assertTrue(shoal.run(logistic("median")).ok)

    def test_a_method_that_gives_another_result_each_time_violates_an_invariant(self):
        random = numpy.random.default_rng(1)

        @shoal.aggregator("dice")
        def dice(values, weights):
            return random.standard_normal(values.shape[1])

        result = shoal.run(logistic("dice"), until=60)
        self.assertIn("mass_conserved", result.violations)

    def test_arguments_may_be_kept_and_changed(self):
        kept = []

        @shoal.aggregator("keeping")
        def keeping(values, weights):
            kept.append(values)
            out = numpy.median(values, axis=0)
            values[:] = 0
            return out

        result = shoal.run(logistic("keeping"))
        self.assertEqual(result.event_hash, shoal.run(logistic("median")).event_hash)
        self.assertTrue(all(not each.any() for each in kept))

    def test_names_and_options_that_cannot_be_are_refused(self):
        def function(values, weights):
            return values[0]

        for kind, text, name, options in (
                (ValueError, "of its own", "median", {}), (ValueError, "cannot name", "a b", {}),
                (ValueError, "unit is", "x", {"unit": "all"}), (TypeError, "is a text", "x", {"word": "w"}),
                (ValueError, "has the option 'bucket_size' already", "x", {"bucket_size": 2}),
                (ValueError, "cannot name an option", "x", {"kind": 2}),
                (TypeError, "the default of 'y'", "x", {"y": None}),
                (ValueError, "other options", "middle", {"more": 2})):
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                shoal.aggregator(name, **options)(function)
        with self.assertRaisesRegex(TypeError, "is a function"):
            shoal.aggregator("x")(42)


@shoal.workload("bowl", size=50, noise=0.1)
class Bowl:
    """a bowl whose best point is known."""

    def __init__(self, seed, size, noise):
        self.seed, self.size, self.noise = seed, size, noise
        self.best = numpy.random.default_rng([seed, 1]).standard_normal(size)

    def initial(self):
        return numpy.zeros(self.size, numpy.float32)

    def sample(self, index):
        return self.best + self.noise * numpy.random.default_rng([self.seed, 2, index]).standard_normal(self.size)

    def gradient(self, parameters, samples):
        errors = parameters - samples.astype(numpy.float64)
        return (errors**2).sum() / 2, errors.sum(axis=0)

    def held_out_loss(self, parameters):
        return float(((parameters - self.best) ** 2).sum() / 2)


def bowl(**options):
    scenario = small_swarm()
    scenario["workload"] = {"kind": "bowl", **options}
    scenario["training"]["optimizer"] = {"kind": "sgd", "learning_rate": 0.4}
    return scenario


class Workloads(Case):
    def test_a_class_learns_and_repeats_to_the_bit(self):
        one, other = shoal.run(bowl()), shoal.run(bowl())
        self.assertTrue(one.ok, one.violations)
        self.assertEqual((one.event_hash, one.state_hash), (other.event_hash, other.state_hash))
        losses = one.summary["loss"]
        self.assertLess(losses["final"], losses["first"] / 100)
        self.assertNotEqual(shoal.run(bowl(), seed=4).state_hash, one.state_hash)

    def test_a_swarm_takes_the_steps_of_one_machine(self):
        result = shoal.run(bowl(), out=self.folder / "run", report=False)
        work = Bowl(3, 50, 0.1)
        parameters = work.initial()
        ledger = numpy.genfromtxt(self.folder / "run/ledger.csv", delimiter=",", names=True, dtype=None,
                                  encoding="utf-8")
        for epoch in range(result.summary["epochs"]):
            rows = ledger[(ledger["state"] == "committed") & (ledger["epoch"] == epoch)]
            indices = [i for row in rows for i in range(row["index_first"], row["index_first"] + row["count"])]
            samples = numpy.array([work.sample(i) for i in indices], numpy.float32)
            _, gradient = work.gradient(parameters, samples)
            parameters = parameters - numpy.float32(0.4) * (gradient / len(indices)).astype(numpy.float32)
        self.assertAlmostEqual(work.held_out_loss(parameters) / result.summary["loss"]["final"], 1, places=3)

    def test_options_and_aggregators_go_together(self):
        scenario = bowl(size=20, noise=0.0)
        scenario["averaging"]["aggregator"] = "middle"
        result = shoal.run(scenario)
        self.assertTrue(result.ok)
        self.assertLess(result.summary["loss"]["final"], 1e-3)
        self.assertEqual(shoal.check(bowl(size=20)).resolved["workload"], {"kind": "bowl", "size": 20, "noise": 0.1})
        with self.assertRaisesRegex(shoal.ScenarioError, "workload.size"):
            shoal.check(bowl(size=-3))

    def test_a_faulty_class_ends_the_run_with_its_exception(self):
        def variant(name, **methods):
            shoal.workload(name)(type(name, (), {"__init__": lambda self, seed: None,
                                                 "initial": lambda self: numpy.zeros(3),
                                                 "sample": lambda self, index: numpy.ones(3),
                                                 "gradient": lambda self, parameters, samples: (0.0, numpy.zeros(3)),
                                                 **methods}))
            scenario = bowl()
            scenario["workload"] = {"kind": name}
            return scenario

        def fail(*_):
            raise ZeroDivisionError("mine")

        for name, kind, text, methods in (
                ("fails-at-gradient", ZeroDivisionError, "mine", {"gradient": fail}),
                ("fails-at-loss", ZeroDivisionError, "mine", {"held_out_loss": fail}),
                ("fails-at-first", ZeroDivisionError, "mine", {"initial": fail}),
                ("fails-later", ZeroDivisionError, "mine",
                 {"sample": lambda self, index: fail() if index > 20 else numpy.ones(3)}),
                ("grows", ValueError, "unlike sample", {"sample": lambda self, index: numpy.ones(3 + index)}),
                ("wrong-gradient", ValueError, "expected \\(3,\\)",
                 {"gradient": lambda self, parameters, samples: (0.0, numpy.zeros(4))}),
                ("no-pair", TypeError, "no pair", {"gradient": lambda self, parameters, samples: 3.0}),
                ("no-sample", TypeError, "has no sample", {"sample": property(lambda self: self.nothing)})):
            with self.subTest(name=name), self.assertRaisesRegex(kind, text):
                shoal.run(variant(name, **methods))
        self.assertTrue(shoal.run(variant("does-nothing")).ok)


if __name__ == "__main__":
    unittest.main()
