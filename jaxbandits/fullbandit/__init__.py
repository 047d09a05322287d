"""Top-k identification when only sums of rewards are seen.

n arms have unknown means. A learner pulls sets of k arms, super-arms, and sees the sum of their rewards, one number a
pull; it wants the super-arm of the largest mean, up to epsilon, with an error rate of at most delta. All algorithms
track a `Design`, which says beforehand what is pulled and in which shares, and differ in when they stop.

    >>> import jax, jaxbandits
    >>> from jaxbandits import fullbandit
    >>> design = fullbandit.make_design(fullbandit.all_superarms(6, 3), 3)
    >>> key = jax.random.key(0)

    >>> instance = fullbandit.synthetic(0, 6, 3, 0.5)
    >>> algorithm = fullbandit.icb(design, delta=0.05, epsilon=0.2, noise_scale=instance.noise_scale)
    >>> environment = fullbandit.environment(instance, design)
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(fullbandit.is_right(instance, outcome.answer))
    True

| algorithm | stops when | guarantee |
| --- | --- | --- |
| `saqm` | the gap exceeds twice the widest super-arm, by greedy peeling | if peeling reaches its ratio `alpha` |
| `icb` | no super-arm can lead within independent widths of the arms | yes |
| `exhaustive` | no super-arm can lead within the ellipsoid, all tried | yes |
| `spectral` | a bound of the same, of one eigenvalue, has it | yes |
| `sa_foa` | no rival found by sampling and linearising leads | none |

Each rule is a function of its own as well (`saqm_rule`, ..., and the `surrogates` of SA-FOA). `Pace` says when a rule
is tested: all pulls between two tests are one round, with the law of one by one.

Reading a run: in all algorithms, `state.counts` (s,) are the pulls of each super-arm of the design, and `state.sums`
(s,) their rewards. `estimator(design)(state.counts, state.sums)` makes least squares of them; `lemma1_radius` and
`ellipsoid_radius` say how far it may be off, and a rule, such as `icb_rule`, what its test finds.

Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), Polynomial-time algorithms for multiple-arm identification with
full-bandit feedback.
"""

from jaxbandits.fullbandit._algorithms.exhaustive import exhaustive, exhaustive_rule
from jaxbandits.fullbandit._algorithms.icb import icb, icb_rule
from jaxbandits.fullbandit._algorithms.sa_foa import sa_foa
from jaxbandits.fullbandit._algorithms.saqm import saqm, saqm_rule
from jaxbandits.fullbandit._algorithms.spectral import spectral, spectral_rule
from jaxbandits.fullbandit._problem.crowdsourcing import (
    Crowd,
    crowd_like,
    crowdsourcing,
    crowdsourcing_counts,
    from_answers,
    load_correct,
)
from jaxbandits.fullbandit._problem.design import (
    Design,
    all_superarms,
    cyclic_support,
    make_design,
    random_support,
    tracking_counts,
)
from jaxbandits.fullbandit._problem.environment import Pulls, environment
from jaxbandits.fullbandit._problem.instances import Instance, is_right, loss, synthetic
from jaxbandits.fullbandit._shared.confidence import ellipsoid_radius, lemma1_radius
from jaxbandits.fullbandit._shared.surrogates import Surrogates, surrogates
from jaxbandits.fullbandit._shared.tracking import Estimate, Pace, State, Verdict, estimator, top_set
from jaxbandits.fullbandit._theory.allocations import Allocation, g_allocation, xy_allocation
from jaxbandits.fullbandit._theory.complexity import (
    gap,
    hardness,
    icb_bound,
    oracle_time,
    rho,
    rho_independent,
    saqm_bound,
)
from jaxbandits.fullbandit._theory.mean_field import mean_field_time

__all__ = [
    "Allocation",
    "Crowd",
    "Design",
    "Estimate",
    "Instance",
    "Pace",
    "Pulls",
    "State",
    "Surrogates",
    "Verdict",
    "all_superarms",
    "crowd_like",
    "crowdsourcing",
    "crowdsourcing_counts",
    "cyclic_support",
    "ellipsoid_radius",
    "environment",
    "estimator",
    "exhaustive",
    "exhaustive_rule",
    "from_answers",
    "g_allocation",
    "gap",
    "hardness",
    "icb",
    "icb_bound",
    "icb_rule",
    "is_right",
    "lemma1_radius",
    "load_correct",
    "loss",
    "make_design",
    "mean_field_time",
    "oracle_time",
    "random_support",
    "rho",
    "rho_independent",
    "sa_foa",
    "saqm",
    "saqm_bound",
    "saqm_rule",
    "spectral",
    "spectral_rule",
    "surrogates",
    "synthetic",
    "top_set",
    "tracking_counts",
    "xy_allocation",
]
