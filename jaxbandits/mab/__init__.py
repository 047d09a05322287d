"""Arms without structure: which is the best, or how much is lost until it is found?

A pull of arm a pays a normal reward of mean mu_a and known variance, or 0 or 1. Wanted is the arm with the largest
mean: with error probability at most delta after as few pulls as possible.

    >>> import jax, jaxbandits
    >>> from jaxbandits import mab
    >>> key = jax.random.key(0)

    >>> instance = mab.gk1()  # the truth: an Instance
    >>> algorithm = mab.ttucb(instance.problem, delta=0.1)  # from what a learner may know
    >>> environment = mab.environment(instance)  # answers it
    >>> outcome = jaxbandits.run(key, algorithm, environment, max_rounds=10**6)
    >>> print(mab.is_right(instance, outcome.answer))
    True

Fixed confidence: the run stops by itself. Its threshold (`numerics.thresholds`) says what is proved; the default is a
heuristic that experiments use.

| algorithm | what it does |
| --- | --- |
| `uniform` | pulls all arms in turn |
| `tas` | Track-and-Stop: follows the proportions that are optimal at the estimates |
| `ttts` | the best arms of two posterior draws |
| `t3c` | the best arm of a posterior draw and its challenger of least transport cost |
| `ttucb` | the arm of the best upper bound and its challenger |
| `eb_tc`, `eb_tci` | the empirical best arm and its challenger; the second starves no arm |
| `lucb`, `kl_lucb` | the empirical best arm and its most optimistic rival, both at once (`slots=2`) |
| `ugape` | of the arm that is beaten by least and its rival the one with fewer pulls |
| `successive_elimination` | all arms in turn, dropping those that cannot be the best |
| `lil_ucb` | the arm of the best upper bound, until it has most of the pulls |

Fixed budget: the run stops at its horizon or before. Regret: the run goes on to the `horizon` of `run` or `sweep`, and
`jaxbandits.record` keeps curves: `value=lambda state, decision: {"regret": gaps @ state.counts.astype(gaps.dtype)}`.

| algorithm | what it does |
| --- | --- |
| `successive_rejects` | phases of equal pulls, each of which drops the worst arm |
| `sequential_halving` | phases of equal pulls, each of which drops the worse half |
| `continuous_rejects` | drops the worst arm as soon as it clearly trails |
| `ucb_e` | upper bounds for a hardness that is known: an oracle |
| `ucb1`, `kl_ucb` | the arm of the best upper bound |
| `imed` | the arm of the least empirical divergence |
| `bayes_ucb`, `thompson` | the arm of the best posterior quantile, or draw |
| `moss`, `moss_anytime` | upper bounds that are minimax optimal, with and without a known horizon |

Ties: two Bernoulli arms often have equal counts and means. All rules break such ties by lots (`numerics.ties`), at
random and anew at every pull. The law of a run is then the same for arms in any other order. A run stays a function of
its key: the random words of its lots are in its state. Papers leave these ties open, except that `t3c` has a uniform
challenger of its own. Normal rewards do not tie, and most of their runs draw no lots. Two rules do: `ttucb`, because
all challengers with a mean above the leader's cost 0, and `continuous_rejects`, which may end in mid-turn. In `tas` and
`ugape` the first of equal counts comes first. The arms of a turn, of `uniform` and `successive_elimination` and of
every rule's first K pulls, go by their numbers.

An instance of your own is `mab.gaussian(means, noise_scale=1.0)` or `mab.bernoulli(means)`.

Sources: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence; Jourdan, Degenne, Baudry,
de Heide and Kaufmann (2022), Top two algorithms revisited; and those of each algorithm.
"""

from jaxbandits.mab._algorithms.bayes_ucb import bayes_ucb
from jaxbandits.mab._algorithms.continuous_rejects import continuous_rejects
from jaxbandits.mab._algorithms.eb_tc import eb_tc
from jaxbandits.mab._algorithms.eb_tci import eb_tci
from jaxbandits.mab._algorithms.imed import imed
from jaxbandits.mab._algorithms.kl_lucb import kl_lucb
from jaxbandits.mab._algorithms.kl_ucb import kl_ucb
from jaxbandits.mab._algorithms.lil_ucb import LilConstants, lil_ucb, lil_ucb_constants
from jaxbandits.mab._algorithms.lucb import lucb
from jaxbandits.mab._algorithms.moss import moss
from jaxbandits.mab._algorithms.moss_anytime import moss_anytime
from jaxbandits.mab._algorithms.sequential_halving import sequential_halving
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
from jaxbandits.mab._problem.environment import Pull, Rewards, environment
from jaxbandits.mab._problem.instances import Instance, audibert1, bernoulli, gauss4, gaussian, gk1, gk2, is_right
from jaxbandits.mab._problem.problems import Bernoulli, Gaussian
from jaxbandits.mab._theory.complexity import (
    CharacteristicTime,
    Hardness,
    characteristic_time,
    hardness,
    lai_robbins,
    successive_rejects_bound,
)
from jaxbandits.mab._theory.diagnostics import Estimate, estimates

__all__ = [
    "Bernoulli",
    "CharacteristicTime",
    "Estimate",
    "Gaussian",
    "Hardness",
    "Instance",
    "LilConstants",
    "Pull",
    "Rewards",
    "audibert1",
    "bayes_ucb",
    "bernoulli",
    "characteristic_time",
    "continuous_rejects",
    "eb_tc",
    "eb_tci",
    "environment",
    "estimates",
    "gauss4",
    "gaussian",
    "gk1",
    "gk2",
    "hardness",
    "imed",
    "is_right",
    "kl_lucb",
    "kl_ucb",
    "lai_robbins",
    "lil_ucb",
    "lil_ucb_constants",
    "lucb",
    "moss",
    "moss_anytime",
    "sequential_halving",
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
