"""The codecs of averaged values on NumPy arrays: none, float16, bfloat16, uniform8, blockwise8, size_adaptive, top_k."""

from . import _shoal


def names():
    """The names of all codecs."""
    return _shoal.codecs()


def encode(codec, values, fraction=0.01):
    """The bytes of an array [n] of float32, as an array of uint8. `fraction`: the share of the values that top_k keeps.

    Raises ValueError if a value is not finite.
    """
    return _shoal.encode(codec, values, fraction)


def decode(codec, code, count=None, out=None):
    """The values behind the bytes. `count`: how many; or `out`: the array of float32 that takes them.

    Raises ValueError if these bytes cannot be that many values.
    """
    return _shoal.decode(codec, code, count, out)


def facts(codec, count):
    """The bytes that `count` values take, the largest loss of a value, and the largest value that can be written.

    The loss is a fraction of the largest magnitude among the values that are encoded together.
    """
    return _shoal.codec_facts(codec, count)
