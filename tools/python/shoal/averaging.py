"""Means, robust aggregators, and the shares of reducers, on NumPy arrays.

Arrays of values are contiguous and of the type float32. They are used where they lie, and never copied.
"""

from . import _shoal


def weighted_mean(values, weights=None, out=None):
    """The mean of arrays, weighted by samples, as one large batch would give it.

    values     k arrays [n] of float32, or an array [k, n]
    weights    k numbers of samples, from 1e-30 to 1e30; None: all 1
    out        the array [n] of float32 for the result; None: a new one

    The sums are doubles, so the error is about that of one rounding to float32. Raises ValueError if a value is not
    finite.
    """
    return _shoal.weighted_mean(values, weights, out)


def aggregate(name, values, weights=None, *, seed=0, out=None, **options):
    """The result of an aggregator for one unit: 'mean', 'median', 'krum' and so on, or one that is written in Python.

    values     k arrays [n] of float32, or an array [k, n]
    weights    k numbers of samples; None: all 1
    seed       of the permutation, if the option bucket_size asks for one
    options    those of the aggregator, see aggregators()
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise ValueError(f"seed is {seed!r}, expected a whole number from 0 to 2^64 - 1")
    return _shoal.aggregate(name, values, weights, options, seed, out)


def aggregators():
    """All aggregators by name: meaning, unit ('chunk' or 'part'), and options with meaning, form and default."""
    return _shoal.aggregators()


def part_boundaries(length, shares, align=1):
    """The n + 1 offsets at which a vector of `length` values is cut into n parts with these shares.

    Offsets below `length` are multiples of `align`.
    """
    return _shoal.part_boundaries(length, shares, align)


def balanced_shares(rates):
    """The shares of a vector that members with these rates reduce in a butterfly all-reduce; their sum is 1."""
    return _shoal.balanced_shares(rates)


def random_groups_factor(peers, groups):
    """The factor of the expected distortion by one round of random groups: (groups - 1) / (peers - 1)."""
    return _shoal.random_groups_factor(peers, groups)


def full_grid_distortion(grid, rounds):
    """The expected distortion of a full grid, such as '8x8', after some rounds, relative to the first one."""
    return _shoal.full_grid_distortion(grid, rounds)


def all_reduce_rounds(peers, failure, limit):
    """The expected rounds, at most `limit`, until an all-reduce that needs all peers succeeds.

    Each peer fails in a round with the probability `failure`.
    """
    return _shoal.all_reduce_rounds(peers, failure, limit)


def pair_factor(peers):
    """The factor of the expected distortion by one exchange of a random pair: 1 - 1 / (peers - 1)."""
    return _shoal.pair_factor(peers)
