"""The arguments of a rule of `linear` and of its stop, in one call."""

import functools

from jaxbandits import linear

STOP = ("threshold", "delta", "items", "epsilon", "glr_ridge", "eliminate")


def by_ratios(factory, **bound):
    """Returns the factory as a function of its own arguments and the arguments of `likelihood_ratio`."""

    @functools.wraps(factory)
    def make(*arms, **settings):
        settings = bound | settings
        stop = linear.likelihood_ratio(**{name: settings.pop(name) for name in STOP if name in settings})
        return factory(*arms, stop=stop, **settings)

    return make
