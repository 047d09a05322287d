"""Top-k identification from sums of rewards.

n arms have unknown means. A learner pulls super-arms, sets of k arms, and observes only the sum of their rewards, one
number per pull. The goal is the super-arm with the largest mean, up to epsilon, with an error rate of at most delta.
All algorithms track a `Design`, the super-arms to pull and their shares, which is fixed before the run. They differ in
their stopping rules.

    >>> import jax, jaxbandits
    >>> from jaxbandits import fullbandit
    >>> design = fullbandit.make_design(fullbandit.all_superarms(6, 3), 3)
    >>> key = jax.random.key(0)

    >>> instance = fullbandit.synthetic(0, 6, 3, 0.5)
    >>> algorithm = fullbandit.icb(design, delta=0.05, epsilon=0.2, noise_scale=instance.noise_scale)
    >>> environment = fullbandit.environment(instance, algorithm)
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(fullbandit.is_right(instance, outcome.answer))
    True

| algorithm | stops when | guarantee |
| --- | --- | --- |
| `saqm` | the gap exceeds twice the widest super-arm, by greedy peeling | if peeling reaches its ratio `alpha` |
| `icb` | no super-arm can lead within independent widths of the arms | yes |
| `exhaustive` | no super-arm can lead within the ellipsoid, by trying all | yes |
| `spectral` | the same holds for an upper bound with one eigenvalue | yes |
| `sa_foa` | no rival found by sampling and linearising leads | none |

Each rule is also a function of its own (`saqm_rule`, ..., and the `surrogates` of SA-FOA). `Pace` sets the pulls
between two tests of a rule. They are all made in one round, and the distribution of a run is unchanged.

Reading a run: in all algorithms, `state.counts` (s,) are the pulls of each super-arm of the design, and `state.sums`
(s,) the sums of their rewards. `estimator(design)(state.counts, state.sums)` is their least-squares estimate,
`lemma1_radius` and `ellipsoid_radius` bound its error, and a rule, such as `icb_rule`, gives the result of its test.

Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), Polynomial-time algorithms for multiple-arm identification with
full-bandit feedback.
"""

from jaxbandits.fullbandit._algorithms.exhaustive import exhaustive, exhaustive_rule
from jaxbandits.fullbandit._algorithms.icb import icb, icb_rule
from jaxbandits.fullbandit._algorithms.sa_foa import Sampling, sa_foa
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
from jaxbandits.fullbandit._shared.leap import Growth
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
    "Growth",
    "Instance",
    "Pace",
    "Pulls",
    "Sampling",
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
