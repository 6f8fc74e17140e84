"""Aggregators and workloads that are written in Python."""

from . import _shoal


def _meaning(of, given, otherwise):
    text = given or (of.__doc__ or "").strip().split("\n")[0] or otherwise
    return text.rstrip(".")


def aggregator(name, *, unit="chunk", meaning=None, **options):
    """Decorates a function that becomes the aggregator `name` of scenarios: averaging.aggregator.

    The function gets values [k, n] as float32, weights [k] as float64, and the options by name. It returns [n]. Equal
    arguments have to give equal results, because the invariant `mass_conserved` calls the function again.

    unit       'chunk': it is called with pieces of a part as they arrive; 'part': with whole parts
    options    names with their defaults: True or False, a whole number from 0, or a float

    >>> @shoal.aggregator("middle")
    ... def middle(values, weights):
    ...     return numpy.median(values, axis=0)
    """

    def register(function):
        _shoal.register_aggregator(name, function, unit, _meaning(function, meaning, "a function in Python"), options)
        return function

    return register


def workload(name, *, meaning=None, **options):
    """Decorates a class that becomes the workload `name` of scenarios: workload.kind.

    The class is called with seed= and the options, and its objects have:

    initial()                        the first parameters [n] as float32
    sample(index)                    a sample: an array of one shape for all indices; equal indices give equal samples
    gradient(parameters, samples)    the sum of the samples' losses, and the sum of their gradients [n].
                                     `samples` is [k, ...] as float32
    held_out_loss(parameters)        optional: the mean loss on held-out data

    options    names with their defaults: True or False, a whole number from 0, a float or a text
    """

    def register(made):
        _shoal.register_workload(name, made, _meaning(made, meaning, "a class in Python"), options)
        return made

    return register
