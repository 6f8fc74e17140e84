"""The kernels on NumPy arrays, beside NumPy."""

import threading
import unittest

import numpy
import shoal
from shoal import averaging, codecs


def some(rows, columns, seed=1):
    return numpy.random.default_rng(seed).standard_normal((rows, columns)).astype(numpy.float32)


class Means(unittest.TestCase):
    def test_the_weighted_mean_is_that_of_doubles_rounded_once(self):
        for rows, columns in ((1, 1), (2, 7), (5, 64), (16, 1000)):
            values, weights = some(rows, columns), numpy.arange(1, rows + 1)
            expected = numpy.average(values.astype(numpy.float64), axis=0, weights=weights)
            numpy.testing.assert_allclose(averaging.weighted_mean(values, weights), expected, rtol=2**-23, atol=1e-12)
            numpy.testing.assert_array_equal(averaging.weighted_mean(list(values), weights),
                                             averaging.weighted_mean(values, weights))

    def test_values_are_used_where_they_lie(self):
        values = [some(1, 100, seed)[0] for seed in range(3)]
        for each in values:
            each.flags.writeable = False
        out = numpy.empty(100, numpy.float32)
        result = averaging.weighted_mean(values, out=out)
        self.assertIs(result, out)
        view = numpy.empty(200, numpy.float32)[50:150]
        self.assertIs(averaging.weighted_mean(values, out=view), view)
        numpy.testing.assert_array_equal(view, out)

    def test_a_large_mean_needs_no_memory_but_the_result(self):
        import resource

        values = [numpy.full(4_000_000, i, numpy.float32) for i in range(4)]
        out = numpy.ones(4_000_000, numpy.float32)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        averaging.weighted_mean(values, out=out)
        averaging.aggregate("mean", values, out=out)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(grown, 8_000)  # kilobytes; a copy of one input has 16,000
        self.assertEqual(out[0], 1.5)

    def test_arrays_that_would_have_to_be_copied_are_refused_with_what_to_do(self):
        good = some(1, 8)[0]
        wrong = {
            "float64": (TypeError, good.astype(numpy.float64)),
            "int32": (TypeError, good.astype(numpy.int32)),
            ">f4|float32": (TypeError, good.astype(">f4")),
            "contiguous": (ValueError, some(1, 16)[0][::2]),
            "dimensions": (ValueError, some(2, 4)),
            "a list": (TypeError, [1.0] * 8),
            "8 values|7 values": (ValueError, some(1, 7)[0]),
        }
        for text, (kind, other) in wrong.items():
            with self.subTest(text=text), self.assertRaisesRegex(kind, r"values\[1\]"):
                averaging.weighted_mean([good, other])
        with self.assertRaisesRegex(TypeError, "ascontiguousarray"):
            averaging.weighted_mean([good.astype(numpy.float64)])
        with self.assertRaisesRegex(ValueError, "out shares memory"):
            averaging.weighted_mean([good], out=good)
        read_only = good.copy()
        read_only.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "read-only"):
            averaging.weighted_mean([good], out=read_only)
        with self.assertRaisesRegex(ValueError, "not finite"):
            averaging.weighted_mean([good, numpy.full(8, numpy.nan, numpy.float32)])
        with self.assertRaisesRegex(ValueError, r"weights\[0\]"):
            averaging.weighted_mean([good], [0])

    def test_other_threads_may_compute_meanwhile(self):
        values = some(8, 100_000)
        expected = averaging.weighted_mean(values)
        wrong = []

        def repeat():
            for _ in range(50):
                if not numpy.array_equal(averaging.weighted_mean(values), expected):
                    wrong.append(1)

        threads = [threading.Thread(target=repeat) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertFalse(wrong)


class Aggregators(unittest.TestCase):
    def test_each_of_them_is_known_with_its_options(self):
        known = averaging.aggregators()
        for name in ("mean", "median", "trimmed_mean", "geometric_median", "krum", "multi_krum", "centered_clip"):
            self.assertIn(name, known)
        self.assertEqual(known["trimmed_mean"]["options"]["faulty"]["form"], "count")

    def test_they_agree_with_numpy(self):
        values = some(7, 500)
        numpy.testing.assert_array_equal(averaging.aggregate("median", values), numpy.median(values, axis=0))
        ordered = numpy.sort(values.astype(numpy.float64), axis=0)
        numpy.testing.assert_allclose(averaging.aggregate("trimmed_mean", values, faulty=2), ordered[2:5].mean(axis=0),
                                      rtol=1e-6, atol=1e-7)
        chosen = averaging.aggregate("krum", values, faulty=1)
        self.assertTrue(any(numpy.array_equal(chosen, each) for each in values))
        numpy.testing.assert_array_equal(averaging.aggregate("mean", values, range(1, 8)),
                                         averaging.weighted_mean(values, range(1, 8)))

    def test_wrong_options_are_refused(self):
        values = some(3, 4)
        for kind, text, options in ((TypeError, "no option 'fualty'", {"fualty": 1}),
                                    (ValueError, "whole number", {"faulty": 0.5}),
                                    (ValueError, "finite", {"faulty": float("nan")}),
                                    (ValueError, "True or False", {"nearest_mixing": 3})):
            with self.subTest(text=text), self.assertRaisesRegex(kind, text):
                averaging.aggregate("trimmed_mean", values, **options)
        with self.assertRaisesRegex(ValueError, "there is no aggregator 'middle-of-all'"):
            averaging.aggregate("middle-of-all", values)


class Codecs(unittest.TestCase):
    def test_each_codec_keeps_its_bound_and_its_size(self):
        values = some(1, 5000)[0]
        largest = numpy.abs(values).max()
        for name in codecs.names():
            with self.subTest(codec=name):
                code = codecs.encode(name, values)
                back = codecs.decode(name, code, len(values))
                self.assertEqual(back.dtype, numpy.float32)
                if name == "top_k":
                    kept = numpy.nonzero(back)[0]
                    self.assertEqual(len(kept), 50)
                    numpy.testing.assert_array_equal(back[kept], values[kept])
                    continue
                facts = codecs.facts(name, len(values))
                self.assertEqual(code.nbytes, facts["bytes"])
                self.assertLessEqual(numpy.abs(back - values).max(), facts["largest_loss"] * largest + 1e-7)
                out = numpy.empty_like(values)
                self.assertIs(codecs.decode(name, code, out=out), out)
                numpy.testing.assert_array_equal(out, back)

    def test_float16_is_that_of_numpy(self):
        values = some(1, 1000)[0]
        numpy.testing.assert_array_equal(codecs.encode("float16", values).view(numpy.float16),
                                         values.astype(numpy.float16))

    def test_wrong_bytes_are_refused(self):
        code = codecs.encode("float16", some(1, 10)[0])
        for text, arguments in (("20 bytes, but 11 values", (code, 11)), ("not contiguous", (code[::2], 5)),
                                ("above 2\\^31", (code, 2**40))):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                codecs.decode("float16", *arguments)
        with self.assertRaisesRegex(TypeError, "uint8"):
            codecs.decode("float16", code.view(numpy.int8), 10)
        with self.assertRaises(ValueError):
            codecs.encode("float16", numpy.array([numpy.inf], numpy.float32))
        with self.assertRaisesRegex(ValueError, "float17"):
            codecs.encode("float17", some(1, 3)[0])


class Shares(unittest.TestCase):
    def test_parts_are_cut_as_the_shares_say(self):
        numpy.testing.assert_array_equal(averaging.part_boundaries(100, [1, 3, 0, 1], align=5), [0, 20, 80, 80, 100])
        shares = averaging.balanced_shares([10, 10, 40])
        self.assertAlmostEqual(shares.sum(), 1)
        self.assertGreater(shares[2], shares[0])
        for wrong in ([], [0, 0], [-1, 2], [float("nan")], "abc", [[1]]):
            with self.subTest(shares=wrong), self.assertRaises((TypeError, ValueError)):
                averaging.part_boundaries(10, wrong)

    def test_theory_is_that_of_the_pages(self):
        self.assertAlmostEqual(averaging.random_groups_factor(1024, 32), 31 / 1023)
        self.assertEqual(averaging.full_grid_distortion("8x8", 2), 0)
        self.assertAlmostEqual(averaging.pair_factor(16), 1 - 1 / 15)
        self.assertAlmostEqual(averaging.all_reduce_rounds(100, 0, 30), 1)


if __name__ == "__main__":
    unittest.main()
