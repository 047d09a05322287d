"""Thresholds for log likelihood ratios: seventeen kinds, with the proved guarantee of each.

A threshold is made before the run, and is then a pure function of the confidence and of the run's evidence;
`threshold.__name__` is its kind. Statistics are log likelihood ratios without units (Gaussian: squares over
noise_scale^2). A test stops once its statistic exceeds the threshold; intervals use kl(mean, q) <= threshold / pulls.

    >>> from jaxbandits.numerics import thresholds
    >>> threshold = thresholds.gk16(arms=4)
    >>> print(threshold.__name__, threshold(0.1, thresholds.Evidence(pulls=1000)).round(3))
    gk16 4.37

| kind | status |
| --- | --- |
| `gk16` | heuristic; the default of the families |
| `log_t` | heuristic |
| `gk_union` | proved for Bernoulli arms, likelihood ratios, any sampling |
| `kt` | proved for Bernoulli arms, and with their likelihood ratios for rewards in [0, 1], any sampling |
| `kl_lucb` | proved for the intervals of KL-LUCB, LUCB and UGapE |
| `box`, `box_sharp` | proved for one Gaussian arm at a time, compared with a level, any sampling |
| `kk_pair` | proved for Gaussian arms without structure, any sampling |
| `poisson_mixture`, `exponential_mixture` | proved for arms of these laws without structure, any sampling |
| `student`, `uv_box` | proved for Gaussian arms of unknown variances without structure, any sampling |
| `kk_all` | proved for Gaussian arms, any structure, least squares without ridge |
| `ellipsoid` | proved for linear means, any sampling, least squares of the same ridge |
| `ellipsoid_trace` | proved as for `ellipsoid`, from the number of pulls alone |
| `jp` | proved for linear means without ridge |
| `jp_heuristic` | heuristic |

Every kind takes `arms`, so that a loop can make them all; kinds whose formula has no number of arms ignore it.
If `comparisons` is given, delta is divided by it: a union bound.
"""

from jaxbandits.numerics.thresholds.arms import gk16, gk_union, kk_all, kk_pair, kl_lucb, kt, log_t, mixture_constant
from jaxbandits.numerics.thresholds.boxes import box, box_sharp
from jaxbandits.numerics.thresholds.evidence import Evidence, Threshold
from jaxbandits.numerics.thresholds.linear import ellipsoid, ellipsoid_trace, jp, jp_heuristic
from jaxbandits.numerics.thresholds.mixtures import exponential_mixture, poisson_mixture
from jaxbandits.numerics.thresholds.variances import student, uv_box

__all__ = [
    "Evidence",
    "Threshold",
    "box",
    "box_sharp",
    "ellipsoid",
    "ellipsoid_trace",
    "exponential_mixture",
    "gk16",
    "gk_union",
    "jp",
    "jp_heuristic",
    "kk_all",
    "kk_pair",
    "kl_lucb",
    "kt",
    "log_t",
    "mixture_constant",
    "poisson_mixture",
    "student",
    "uv_box",
]
