"""Arms without structure: identification of the best arm, and regret.

A pull of arm a pays a normal reward of mean mu_a and known variance, 0 or 1, a Poisson number of events, or an
exponential waiting time. The goal is to identify the arm with the largest mean, with error probability at most delta,
in as few pulls as possible.

    >>> import jax, jaxbandits
    >>> from jaxbandits import mab
    >>> key = jax.random.key(0)

    >>> instance = mab.gk1()  # the truth: an Instance
    >>> algorithm = mab.ttucb(instance.problem, delta=0.1)  # from what a learner may know
    >>> environment = mab.environment(instance, algorithm)  # answers it
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(mab.is_right(instance, outcome.answer))
    True

Fixed confidence: the run stops by itself. Its threshold (`numerics.thresholds`) decides what is proved. The default
threshold is a heuristic that experiments use.

| algorithm | pulls |
| --- | --- |
| `uniform` | all arms in turn |
| `tas` | Track-and-Stop: the arm furthest behind its optimal proportion at the estimates |
| `ttts` | one of the best arms of two posterior draws |
| `t3c` | the best arm of a posterior draw, or its challenger with the smallest transport cost |
| `ttucb` | the arm with the best upper bound, or its challenger |
| `eb_tc`, `eb_tci` | the empirical best arm, or its challenger; the second starves no arm |
| `lucb`, `kl_lucb` | the empirical best arm and its most optimistic rival, both at once |
| `ugape` | of the leader and its strongest rival, the one with fewer pulls |
| `successive_elimination` | all arms that can still be the best, in turn |
| `batched_elimination` | as above in batches that grow: the arms to drop are looked for at their ends alone |
| `lil_ucb` | the arm with the best upper bound, until one arm has most of the pulls |
| `hdoc`, `lucb_g` | for one arm or all arms above a level: the unlabelled arm with the best upper bound |
| `apgai` | for one arm above a level: the arm that is clearest above it; with none, the one least clearly below |
| `apt_g` | for the same: the unlabelled arm whose mean is nearest to the level, for its number of pulls |
| `st2` | for all arms within epsilon of the best: up to three arms at once, whose labels are least sure |

With `question=` these rules also answer other questions than which arm is the best. `hdoc`, `lucb_g`, `apt_g`, `apgai`,
`st2`, `sar`, `sh_top_m`, `apt` and `lsa` are for one question each.

| question | answer | rules |
| --- | --- | --- |
| `BestArm(epsilon)` | an arm within epsilon of the best | all of fixed confidence |
| `TopM(m)` | the m best arms | `uniform`, `tas`, `eb_tc`, `eb_tci`, `t3c`, `lucb`, `kl_lucb`, `ugape` |
| `Above(level)` | all arms above a level | `uniform`, `tas`, `eb_tc` |
| `GoodArm(level)` | one arm above a level, or K: there is none | `uniform`, `tas`, `eb_tc` |
| `AllGood(epsilon)` | all arms within epsilon of the best | `uniform`, `tas`, `eb_tc` |

    >>> algorithm = mab.eb_tc(instance.problem, question=mab.TopM(2), leader_share="ids", delta=0.1)
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(mab.is_right(instance, outcome.answer, question=mab.TopM(2)))
    True

With `every=n` the rules that take `question=`, and `hdoc`, `lucb_g`, `apt_g`, `apgai` and `st2`, decide for n pulls at
once, as a laboratory or a website does. A round is then a batch, whose pulls are allotted without a look at its
rewards. The guarantee stays.

    >>> algorithm = mab.eb_tci(instance.problem, delta=0.1, every=100)
    >>> outcome = jaxbandits.run(key, algorithm, mab.environment(instance, algorithm), max_rounds=10**4)
    >>> print((outcome.pulls - instance.problem.arms) % 100)
    0

Fixed budget: the run stops at its horizon or before. Regret: the run lasts until the `horizon` of `run` or `sweep`, and
`jaxbandits.record` keeps curves: `value=lambda state, decision: {"regret": gaps @ state.counts.astype(gaps.dtype)}`.

| algorithm | pulls |
| --- | --- |
| `successive_rejects` | all remaining arms equally in phases, each of which drops the worst arm |
| `sequential_halving` | all remaining arms equally in phases, each of which drops the worse half |
| `continuous_rejects` | the remaining arm with the fewest pulls; the worst is dropped once it clearly trails |
| `ucb_e` | the arm with the best upper bound for a known hardness: an oracle |
| `sar` | for the m best arms: all remaining arms in phases, each of which accepts or rejects the clearest arm |
| `sh_top_m` | for the m best arms: as `sequential_halving`, until m arms remain |
| `apt`, `lsa` | for all arms above a level: the arm whose mean is nearest to it, for its number of pulls |
| `ucb1`, `kl_ucb` | the arm with the best upper bound |
| `imed` | the arm with the smallest empirical divergence |
| `discounted_ucb`, `sliding_window_ucb` | as `ucb1` from discounted or recent rewards, for means that change |
| `m_ucb` | as `ucb1`, since the last change of an arm that a test detected |
| `exp3`, `exp3_ix` | an arm drawn by exponential weights, for any rewards in [0, 1] |
| `bayes_ucb`, `thompson` | the arm with the best posterior quantile, or draw |
| `moss`, `moss_anytime` | the arm with the best minimax optimal bound, with and without a known horizon |

Ties: two Bernoulli or Poisson arms often have equal counts and means. All rules break such ties by lots
(`numerics.ties`), drawn anew at every pull, so the distribution of a run does not depend on the order of the arms. A
run stays a function of its key: its state holds the random bits of its lots. Papers do not specify these ties, except
the uniform challenger in `t3c`. Normal and exponential rewards do not tie, and most of their runs draw no lots. Two
rules do: `ttucb`, because all challengers with a mean above the leader's cost 0, and `continuous_rejects`, which may
end in mid-turn. In `tas` and `ugape` the first of equal counts comes first. `uniform`, `successive_elimination`,
`batched_elimination`, the uniform pulls of `m_ucb` and the first K pulls of every rule except `exp3` and `exp3_ix` take
arms in the order of their numbers. `discounted_ucb` and `sliding_window_ucb` also discard these pulls in that order.

`mab.gaussian(means, noise_scale=1.0)`, `mab.bernoulli(means)`, `mab.poisson(means)` and `mab.exponential(means)` make
instances from any means. With `mab.gaussian(means, sd=(1.0, 0.5))` every arm has a standard deviation of its own, which
`uniform`, `tas`, `eb_tc`, `eb_tci`, `t3c` and `apgai` estimate (`mab.Gaussian(arms, noise_scale=None)`); other rules
refuse it. `mab.bounded(means)` is for rewards in [0, 1] of a law that is not known: rules take the divergence of
Bernoulli rewards, whose bounds hold for them (`numerics.thresholds.kt`), and `lucb` and `ugape` also intervals by
empirical variances (`intervals="bernstein"`), which are shorter where variances are small. Rules whose bounds need a
sub-Gaussian constant refuse Poisson and exponential arms. Those that a likelihood ratio or the relative entropy drives
take all: of the rules above, `uniform` to `eb_tci`, `kl_lucb`, `ugape`, `apgai`, `successive_rejects`,
`sequential_halving`, `sar`, `sh_top_m`, `ucb_e`, `apt`, `kl_ucb`, `imed` and `thompson`.

Sources: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence; Jourdan, Degenne, Baudry,
de Heide and Kaufmann (2022), Top two algorithms revisited. Each algorithm names its own sources.
"""

from jaxbandits.mab._algorithms.apgai import apgai
from jaxbandits.mab._algorithms.apt import apt
from jaxbandits.mab._algorithms.apt_g import apt_g
from jaxbandits.mab._algorithms.batched_elimination import batched_elimination
from jaxbandits.mab._algorithms.bayes_ucb import LogFactor, bayes_ucb
from jaxbandits.mab._algorithms.continuous_rejects import continuous_rejects
from jaxbandits.mab._algorithms.discounted_ucb import discounted_ucb
from jaxbandits.mab._algorithms.eb_tc import eb_tc
from jaxbandits.mab._algorithms.eb_tci import eb_tci
from jaxbandits.mab._algorithms.exp3 import exp3, exp3_gamma
from jaxbandits.mab._algorithms.exp3_ix import IxConstants, exp3_ix, exp3_ix_constants
from jaxbandits.mab._algorithms.hdoc import hdoc
from jaxbandits.mab._algorithms.imed import imed
from jaxbandits.mab._algorithms.kl_lucb import kl_lucb
from jaxbandits.mab._algorithms.kl_ucb import kl_ucb
from jaxbandits.mab._algorithms.lil_ucb import LilConstants, lil_ucb, lil_ucb_constants
from jaxbandits.mab._algorithms.lsa import lsa
from jaxbandits.mab._algorithms.lucb import lucb
from jaxbandits.mab._algorithms.lucb_g import lucb_g
from jaxbandits.mab._algorithms.m_ucb import MUcbConstants, m_ucb, m_ucb_constants
from jaxbandits.mab._algorithms.moss import moss
from jaxbandits.mab._algorithms.moss_anytime import moss_anytime
from jaxbandits.mab._algorithms.sar import sar
from jaxbandits.mab._algorithms.sequential_halving import sequential_halving
from jaxbandits.mab._algorithms.sh_top_m import sh_top_m
from jaxbandits.mab._algorithms.sliding_window_ucb import sliding_window_ucb
from jaxbandits.mab._algorithms.st2 import st2
from jaxbandits.mab._algorithms.successive_elimination import successive_elimination
from jaxbandits.mab._algorithms.successive_rejects import successive_rejects
from jaxbandits.mab._algorithms.t3c import t3c
from jaxbandits.mab._algorithms.tas import tas
from jaxbandits.mab._algorithms.thompson import thompson
from jaxbandits.mab._algorithms.ttts import ttts
from jaxbandits.mab._algorithms.ttucb import ttucb
from jaxbandits.mab._algorithms.ucb1 import ucb1
from jaxbandits.mab._algorithms.ucb_e import ucb_e
from jaxbandits.mab._algorithms.ugape import ugape
from jaxbandits.mab._algorithms.uniform import uniform
from jaxbandits.mab._problem.environment import Pull, Rewards, SquaredRewards, environment
from jaxbandits.mab._problem.instances import (
    Instance,
    audibert1,
    bernoulli,
    bounded,
    exponential,
    gauss4,
    gaussian,
    gk1,
    gk2,
    is_right,
    poisson,
)
from jaxbandits.mab._problem.problems import Bernoulli, Bounded, Exponential, Gaussian, Poisson
from jaxbandits.mab._problem.questions.all_good import AllGood
from jaxbandits.mab._problem.questions.good_arm import GoodArm
from jaxbandits.mab._problem.recorded import recorded
from jaxbandits.mab._theory.complexity import (
    CharacteristicTime,
    Hardness,
    characteristic_time,
    hardness,
    lai_robbins,
    successive_rejects_bound,
)
from jaxbandits.mab._theory.diagnostics import Estimate, estimates
from jaxbandits.questions import Above, BestArm, TopM

__all__ = [
    "Above",
    "AllGood",
    "Bernoulli",
    "BestArm",
    "Bounded",
    "CharacteristicTime",
    "Estimate",
    "Exponential",
    "Gaussian",
    "GoodArm",
    "Hardness",
    "Instance",
    "IxConstants",
    "LilConstants",
    "LogFactor",
    "MUcbConstants",
    "Poisson",
    "Pull",
    "Rewards",
    "SquaredRewards",
    "TopM",
    "apgai",
    "apt",
    "apt_g",
    "audibert1",
    "batched_elimination",
    "bayes_ucb",
    "bernoulli",
    "bounded",
    "characteristic_time",
    "continuous_rejects",
    "discounted_ucb",
    "eb_tc",
    "eb_tci",
    "environment",
    "estimates",
    "exp3",
    "exp3_gamma",
    "exp3_ix",
    "exp3_ix_constants",
    "exponential",
    "gauss4",
    "gaussian",
    "gk1",
    "gk2",
    "hardness",
    "hdoc",
    "imed",
    "is_right",
    "kl_lucb",
    "kl_ucb",
    "lai_robbins",
    "lil_ucb",
    "lil_ucb_constants",
    "lsa",
    "lucb",
    "lucb_g",
    "m_ucb",
    "m_ucb_constants",
    "moss",
    "moss_anytime",
    "poisson",
    "recorded",
    "sar",
    "sequential_halving",
    "sh_top_m",
    "sliding_window_ucb",
    "st2",
    "successive_elimination",
    "successive_rejects",
    "successive_rejects_bound",
    "t3c",
    "tas",
    "thompson",
    "ttts",
    "ttucb",
    "ucb1",
    "ucb_e",
    "ugape",
    "uniform",
]
