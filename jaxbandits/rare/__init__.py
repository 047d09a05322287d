"""Errors and tails too rare to be observed: probabilities of 1e-3 to 1e-15, from some ten thousand runs.

A paper of fixed confidence reports "0 errors in 1,000 runs". An error of 1e-9 cannot be checked by waiting, but it can
be computed: runs on other instances, on which a wrong answer is likely, are weighted by their likelihood ratios.

    >>> import jax
    >>> from jaxbandits import mab, rare
    >>> from jaxbandits.numerics import thresholds

    >>> def build(instance, key):
    ...     threshold = thresholds.gk16(arms=4)
    ...     algorithm = mab.ttucb(instance.problem, delta=0.1, threshold=threshold)
    ...     return algorithm, mab.environment(instance, algorithm)
    >>> settings = {"max_rounds": 2000, "rounds": (512, 512, 512), "progress": False}
    >>> result = rare.error_probability(build, mab.gauss4(), key=jax.random.key(0), relative_error=0.2, **settings)
    >>> print(1e-3 < result.estimate < 3e-3)
    True

| function | estimates |
| --- | --- |
| `error_probability` | the probability of a wrong answer |
| `tail_probability` | the probability that a run has not stopped after a number of pulls |
| `splitting` | either, for any rewards; it does not find what a few early rewards decide |

The estimate has no bias for any mixture of instances that is fixed before its runs. Its standard error can be too small
if the mixture lacks a way of being wrong: `RareResult.trust` says what speaks against a result.
"""

from jaxbandits.rare._methods.diagnostics import Weighed
from jaxbandits.rare._methods.estimation import error_probability, tail_probability
from jaxbandits.rare._methods.mixture import Mixture
from jaxbandits.rare._methods.results import Events, Parts, RareResult
from jaxbandits.rare._methods.splitting import Splitting, splitting

__all__ = [
    "Events",
    "Mixture",
    "Parts",
    "RareResult",
    "Splitting",
    "Weighed",
    "error_probability",
    "splitting",
    "tail_probability",
]
