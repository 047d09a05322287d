"""Best-arm identification in linear bandits: find the arm with the largest mean, in as few pulls as possible.

K arms have known features x_0..x_{K-1} in R^d, and a pull of arm a pays x_a.theta plus noise, with an unknown theta. A
pull of one arm informs about all others, so an algorithm pulls arms that separate those that may be the best.

>>> import jax, jaxbandits
>>> from jaxbandits import linear
>>> from jaxbandits.numerics import thresholds
>>> key = jax.random.key(0)
>>> instance = linear.soare(5)  # the truth: an Instance
>>> algorithm = linear.lingape(instance.arms, delta=0.05, noise_scale=instance.noise_scale)  # what a learner may know
>>> environment = linear.environment(instance, algorithm)  # answers the algorithm
>>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
>>> print(linear.is_right(instance, outcome.answer))  # traceable
True

| algorithm | what it does | action |
| --- | --- | --- |
| `lingape` | fully adaptive: separates the leader from its strongest challenger | `Pull` |
| `lingape_glr` | LinGapE's rule with a stop by likelihood ratios | `Pull`, or `Step` if items are eliminated |
| `fws` | Frank-Wolfe steps on the lower bound at the estimates | `Step` |
| `lingame`, `lingame_c` | a learner of shares against the closest alternative; `lingame_c` learns pairs | `Step` |
| `lazy_tas` | tracks the shares that are optimal at the estimates, renewed at powers of two | `Step` |
| `l_t3c`, `lin_ttts` | leader from the posterior, against a challenger | as `lingape_glr` |
| `peps` | draws arms by a learner's shares, which gain from posterior draws with another best item | `Step` |
| `fixed_weights`, `uniform` | track a fixed allocation; pull all arms in turn | as `lingape_glr` |
| `xy_static` | tracks a fixed allocation: `xy_allocation`, `g_allocation` or another | `Allocation` |
| `xy_static_exact` | as `xy_static`, with a test at every pull; simulation only | `Bridge` |
| `xy_adaptive` | phases of a fixed design, each for the arms that the last one has left | `Allocation` |
| `rage`, `rage_leader` | phases of a design for the items left, each twice as precise; for thousands | `Allocation` |
| `g_bai`, `p1_rage` | fixed budget: pulls drawn from one design; from designs for close arms | `Allocation` |
| `od_linbai`, `peace` | fixed budget: phases of designs that halve the arms; the design's value | `Allocation` |
| `lin_ucb`, `lin_ts` | small regret: the largest upper bound; the best arm of a posterior draw | `Pull` |
| `xy_oracle` | no algorithm: the pulls of the best fixed design when theta is known | |

The algorithms from `lingape_glr` to `uniform` take their stop as a value, `stop=likelihood_ratio(threshold, delta=..)`
with a threshold of `numerics.thresholds`, or `no_stop()`. They, `rage` and `rage_leader` may compare items other than
the arms that they pull (`Instance.items`). The answer is then an item.

With `question=` the rules `lingape_glr`, `fws`, `lingame`, `lazy_tas`, `fixed_weights` and `uniform` also find the m
best arms or items, `TopM(m)`, or all above a level, `Above(level)`. The answer is then a set, bool (M,).

>>> stop = linear.likelihood_ratio(thresholds.gk16(arms=6), delta=0.05)
>>> algorithm = linear.lingape_glr(instance.arms, stop=stop, question=linear.TopM(2))
>>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
>>> print(linear.is_right(instance, outcome.answer, question=linear.TopM(2)))
True

`environment(instance, algorithm)` answers the algorithm's actions. Instances: `soare`, `canonical`, `sphere`,
`yahoo_like`, `theorem3_counterexample`, `random_tirinzoni`, `sphere_pair`, `many_arms`, `transductive`, or an
`Instance` of your own. Their gaps, angles and noise scales may be traced, so a generator may be called inside `build`.
Difficulty of an instance: `characteristic_time`, `lower_bound`, `hardness_lingape` and the like, `theorem2_bound`.

Diagnostics: `outcome.state`, or the state of your own loop, holds exact statistics. `estimate` computes least squares
from them; `lingape_radius` and `confidence_radius` bound its error. A cache is rebuilt at every chunk's start.

| state of | pulls of each arm | sums of rewards | other fields |
| --- | --- | --- | --- |
| `lingape`, `lin_ucb`, `lin_ts` | `counts` (K,) | `sums` (K,) | cache: `theta`, `leverage`, `logdet` |
| rules with a `stop` | `counts` (K,) | `sums` (K,) | `cache`; `memory`: the rule's memory |
| `xy_static`, `xy_static_exact` | `counts` (K,) | `sums` (K,) | |
| `g_bai` | `counts` (K,) | `sums` (K,) | |
| `od_linbai`, `peace`, `p1_rage` | `counts` (K,) | none | the current phase |
| `xy_adaptive` | `counts` (K,) | none | `theta`: the last phase's estimate; `members`: the remaining arms |
| `rage`, `rage_leader` | `counts` (K,) | `sums` (K,) | `theta`: the last phase's estimate; `items_left`, `phase` |

Source: Xu, Honda, Sugiyama (2018), A fully adaptive algorithm for pure exploration in linear bandits, arXiv 1710.05552;
Soare, Lazaric, Munos (2014), Best-arm identification in linear bandits.
"""

from jaxbandits.linear._algorithms.fixed_weights import fixed_weights
from jaxbandits.linear._algorithms.fws import fws
from jaxbandits.linear._algorithms.g_bai import g_bai
from jaxbandits.linear._algorithms.l_t3c import l_t3c
from jaxbandits.linear._algorithms.lazy_tas import lazy_tas
from jaxbandits.linear._algorithms.lin_ts import Posterior, Proved, lin_ts
from jaxbandits.linear._algorithms.lin_ttts import lin_ttts
from jaxbandits.linear._algorithms.lin_ucb import lin_ucb
from jaxbandits.linear._algorithms.lingame import lingame
from jaxbandits.linear._algorithms.lingame_c import lingame_c
from jaxbandits.linear._algorithms.lingape import lingape
from jaxbandits.linear._algorithms.lingape_glr import lingape_glr
from jaxbandits.linear._algorithms.od_linbai import od_linbai
from jaxbandits.linear._algorithms.p1_rage import p1_rage
from jaxbandits.linear._algorithms.peace import peace
from jaxbandits.linear._algorithms.peps import peps
from jaxbandits.linear._algorithms.rage import rage
from jaxbandits.linear._algorithms.rage_leader import rage_leader
from jaxbandits.linear._algorithms.uniform import uniform
from jaxbandits.linear._algorithms.xy_adaptive import xy_adaptive
from jaxbandits.linear._algorithms.xy_static import xy_static
from jaxbandits.linear._algorithms.xy_static_exact import xy_static_exact
from jaxbandits.linear._problem.arms import reduce_rank
from jaxbandits.linear._problem.environment import Allocation, Bridge, Pull, Step, environment
from jaxbandits.linear._problem.generators import (
    canonical,
    separated_arms,
    soare,
    sphere,
    theorem3_counterexample,
    yahoo_like,
)
from jaxbandits.linear._problem.instances import Instance, is_right, reduce_instance
from jaxbandits.linear._problem.literature import (
    many_arms,
    random_tirinzoni,
    random_tirinzoni_published,
    sphere_pair,
    transductive,
)
from jaxbandits.linear._problem.recorded import recorded
from jaxbandits.linear._shared.allocations import (
    g_allocation,
    oracle_allocation,
    pair_directions,
    xy_allocation,
    xy_value,
)
from jaxbandits.linear._shared.lingape_leap import Leap
from jaxbandits.linear._shared.radius import confidence_radius, lingape_radius
from jaxbandits.linear._shared.ratios import RatioTables, ratio_tables
from jaxbandits.linear._shared.stop import LikelihoodRatio, likelihood_ratio, no_stop
from jaxbandits.linear._theory.characteristic_time import CharacteristicTime, characteristic_time
from jaxbandits.linear._theory.complexity import (
    LowerBound,
    gaps,
    hardness_lingape,
    hardness_oracle,
    hardness_oracle_sum,
    hardness_ugape,
    lower_bound,
)
from jaxbandits.linear._theory.diagnostics import Estimate, estimate
from jaxbandits.linear._theory.theorem2 import (
    theorem2_bound,
    theorem2_implicit,
    theorem2_large_ridge_bound,
    theorem2_ridge_limit,
)
from jaxbandits.linear._theory.xy_oracle import XYOracle, xy_oracle
from jaxbandits.numerics.design import Design
from jaxbandits.questions import Above, BestArm, TopM

__all__ = [
    "Above",
    "Allocation",
    "BestArm",
    "Bridge",
    "CharacteristicTime",
    "Design",
    "Estimate",
    "Instance",
    "Leap",
    "LikelihoodRatio",
    "LowerBound",
    "Posterior",
    "Proved",
    "Pull",
    "RatioTables",
    "Step",
    "TopM",
    "XYOracle",
    "canonical",
    "characteristic_time",
    "confidence_radius",
    "environment",
    "estimate",
    "fixed_weights",
    "fws",
    "g_allocation",
    "g_bai",
    "gaps",
    "hardness_lingape",
    "hardness_oracle",
    "hardness_oracle_sum",
    "hardness_ugape",
    "is_right",
    "l_t3c",
    "lazy_tas",
    "likelihood_ratio",
    "lin_ts",
    "lin_ttts",
    "lin_ucb",
    "lingame",
    "lingame_c",
    "lingape",
    "lingape_glr",
    "lingape_radius",
    "lower_bound",
    "many_arms",
    "no_stop",
    "od_linbai",
    "oracle_allocation",
    "p1_rage",
    "pair_directions",
    "peace",
    "peps",
    "rage",
    "rage_leader",
    "random_tirinzoni",
    "random_tirinzoni_published",
    "ratio_tables",
    "recorded",
    "reduce_instance",
    "reduce_rank",
    "separated_arms",
    "soare",
    "sphere",
    "sphere_pair",
    "theorem2_bound",
    "theorem2_implicit",
    "theorem2_large_ridge_bound",
    "theorem2_ridge_limit",
    "theorem3_counterexample",
    "transductive",
    "uniform",
    "xy_adaptive",
    "xy_allocation",
    "xy_oracle",
    "xy_static",
    "xy_static_exact",
    "xy_value",
    "yahoo_like",
]
