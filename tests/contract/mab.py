"""Cases of the conformance suite: bandits without structure."""

from collections.abc import Callable
from functools import partial
from typing import Any

from contract.case import Case

from jaxbandits import mab
from jaxbandits.base import Algorithm
from jaxbandits.numerics import thresholds

MEANS = (0.2, 0.7, 0.4)
HALF = partial(mab.gaussian, noise_scale=0.5)
SPREAD = partial(mab.gaussian, sd=(0.5, 0.3, 0.6))


def _mab(
    factory: Callable[..., Algorithm],
    *,
    ones: bool = False,
    law: Callable[..., mab.Instance] | None = None,
    **defaults: Any,
):
    """Makes a case of three arms, the second best trailing by 0.3."""

    def make(dtype, shown=None, **hyperparameters):
        instance = (law or (mab.bernoulli if ones else HALF))(MEANS, dtype=dtype)
        settings = defaults | hyperparameters
        algorithm = factory(instance.problem if shown is None else shown(instance.problem), **settings)
        return algorithm, mab.environment(instance, algorithm)

    return make


def _tested(factory: Callable[..., Algorithm], **defaults: Any):
    """Adds an error probability if none is given."""

    def tested(problem, **hyperparameters):
        return factory(problem, **({"delta": 0.1} | hyperparameters))

    return _mab(tested, **defaults)


def _ended(factory: Callable[..., Algorithm], pulls: int = 60):
    """Stops a rule that never stops by itself."""

    def ended(problem, **hyperparameters):
        algorithm = factory(problem, **hyperparameters)

        def decide(key, state):
            decision = algorithm.decide(key, state)
            return decision._replace(stop=decision.stop | (state.pulls >= pulls))

        return algorithm._replace(decide=decide)

    return ended


def _bayes_ucb(problem, *, horizon=60, c=5.0):
    return mab.bayes_ucb(problem, factor=mab.LogFactor(horizon, c))


def _above(problem, *, level=0.3, **settings):
    return mab.eb_tc(problem, question=mab.Above(level), **settings)


def _tas_above(problem, *, level=0.3, **settings):
    return mab.tas(problem, question=mab.Above(level), **settings)


def _tas_good(problem, *, level=0.3, **settings):
    return mab.tas(problem, question=mab.GoodArm(level), **settings)


def _good(problem, *, level=0.3, **settings):
    return mab.eb_tc(problem, question=mab.GoodArm(level), **settings)


def _all_good(problem, *, slack=0.35, **settings):
    return mab.eb_tc(problem, question=mab.AllGood(slack), leader_share="ids", **settings)


TEST = {"delta": (0.1, 0.001), "epsilon": (0.0, 0.15)}
TOP_TWO = TEST | {"leader_share": (0.5, 0.2)}
STRICT = {"threshold": thresholds.gk_union(arms=3)}
INTERVALS = {"threshold": thresholds.kl_lucb(arms=3)}
GOOD = {"level": (0.3, 0.5), "delta": (0.1, 0.001)}
IDS = {"leader_share": "ids"}

CASES = {
    "mab-uniform": Case(_tested(mab.uniform), TEST, STRICT),
    "eb-tc": Case(_tested(mab.eb_tc), TOP_TWO, STRICT | IDS),
    "eb-tc-top": Case(
        _tested(mab.eb_tc, question=mab.TopM(2)),
        {"delta": (0.1, 0.001), "leader_share": (0.5, 0.2)},
        IDS | {"question": mab.TopM(1)},
    ),
    "lucb-top": Case(_tested(mab.lucb, question=mab.TopM(2)), {"delta": (0.1, 0.001)}, is_variant=True),
    "ugape-top": Case(_tested(mab.ugape, question=mab.TopM(2)), {"delta": (0.1, 0.001)}, is_variant=True),
    "lucb-bernstein": Case(
        _tested(mab.lucb, law=mab.bounded, intervals="bernstein"),
        TEST,
        INTERVALS | {"intervals": None},
        is_variant=True,
    ),
    "ugape-bernstein": Case(
        _tested(mab.ugape, law=mab.bounded, question=mab.TopM(2), intervals="bernstein"),
        {"delta": (0.1, 0.001)},
        {"intervals": None},
        is_variant=True,
    ),
    "eb-tc-above": Case(_tested(_above, ones=True), {"delta": (0.1, 0.001), "level": (0.3, 0.5)}, is_variant=True),
    "eb-tc-good": Case(_tested(_good), {"delta": (0.1, 0.001), "level": (0.3, 0.8)}, is_variant=True),
    "eb-tc-all-good": Case(_tested(_all_good), {"delta": (0.1, 0.001), "slack": (0.35, 0.2)}, is_variant=True),
    "eb-tci-top": Case(
        _tested(mab.eb_tci, question=mab.TopM(2), ones=True), {"delta": (0.1, 0.001)}, IDS, is_variant=True
    ),
    "eb-tci-batches": Case(
        _tested(mab.eb_tci, question=mab.TopM(2), ones=True, every=20),
        {"delta": (0.1, 0.001)},
        {"every": 7},
        is_variant=True,
    ),
    "tas-batches": Case(_tested(mab.tas, tracking="C", every=20), {"delta": (0.1, 0.001)}, is_variant=True),
    "hdoc-batches": Case(
        _tested(mab.hdoc, level=0.3, ones=True, every=20), {"delta": (0.1, 0.001), "level": (0.3, 0.5)}, is_variant=True
    ),
    "t3c-top": Case(_tested(mab.t3c, question=mab.TopM(2)), {"delta": (0.1, 0.001)}, IDS, is_variant=True),
    "tas-above": Case(
        _tested(_tas_above), {"delta": (0.1, 0.001), "level": (0.3, 0.5)}, {"tracking": "C"}, is_variant=True
    ),
    "tas-good": Case(_tested(_tas_good), GOOD, {"sticky": True, "every": 7}, is_variant=True),
    "tas-sticky": Case(_tested(_tas_good, sticky=True), GOOD, {"replan_every": 3}, is_variant=True),
    "tas-top": Case(
        _tested(mab.tas, question=mab.TopM(2), replan_every=5),
        {"delta": (0.1, 0.001)},
        {"replan_every": 2},
        is_variant=True,
    ),
    "eb-tci": Case(_tested(mab.eb_tci, ones=True), TOP_TWO, STRICT | IDS),
    "eb-tci-poisson": Case(
        _tested(mab.eb_tci, law=mab.poisson),
        TEST,
        {"threshold": thresholds.poisson_mixture(arms=3)},
        is_variant=True,
    ),
    "eb-tci-variances": Case(
        _tested(mab.eb_tci, law=SPREAD),
        {"delta": (0.1, 0.001), "leader_share": (0.5, 0.2)},
        {"threshold": thresholds.student(arms=3), "start": 5, "every": 7},
        is_variant=True,
    ),
    "tas-variances": Case(
        _tested(mab.tas, law=partial(SPREAD, cost="plug-in"), replan_every=5),
        {"delta": (0.1, 0.001)},
        {"replan_every": 2},
        is_variant=True,
    ),
    "t3c": Case(_tested(mab.t3c), TOP_TWO, STRICT | IDS),
    "ttts": Case(_tested(mab.ttts), TOP_TWO, STRICT | IDS),
    "ttts-ones": Case(_tested(mab.ttts, ones=True), {"delta": (0.1, 0.001)}, dtypes=("float64",), is_variant=True),
    "ttucb": Case(_tested(mab.ttucb), TOP_TWO | {"exponent": (1.2, 0.1), "slack": (1.2, 9.0)}, STRICT | IDS),
    "tas": Case(_tested(mab.tas), TEST, STRICT | {"tracking": "C", "replan_every": 7}),
    "tas-plan": Case(
        _tested(mab.tas, ones=True, tracking="C", replan_every=5), {"delta": (0.1, 0.001)}, {"replan_every": 2}
    ),
    "lucb": Case(_tested(mab.lucb), TEST, INTERVALS),
    "kl-lucb": Case(_tested(mab.kl_lucb, ones=True), TEST, INTERVALS),
    "kl-lucb-exponential": Case(_tested(mab.kl_lucb, law=mab.exponential), TEST, is_variant=True),
    "ugape": Case(_tested(mab.ugape), TEST, INTERVALS),
    "successive-elimination": Case(_tested(mab.successive_elimination), {"delta": (0.1, 0.001)}),
    "batched-elimination": Case(
        _tested(mab.batched_elimination), {"delta": (0.1, 1e-6)}, {"first": 7, "growth": 3, "leap": 9}
    ),
    "batched-elimination-leap": Case(
        _tested(mab.batched_elimination, ones=True, leap=10**6), {"delta": (0.1, 1e-6)}, is_variant=True
    ),
    "lil-ucb": Case(
        _tested(mab.lil_ucb),
        {
            "lil_epsilon": (0.0, 0.5),
            "lil_beta": (0.5, 2.0),
            "lil_lambda": (4.0, 9.0),
            "delta": (0.1, 1e-5),
        },
    ),
    "successive-rejects": Case(_mab(mab.successive_rejects, horizon=60), {}, {"horizon": 40, "leap": 9}),
    "successive-rejects-leap": Case(
        _mab(mab.successive_rejects, ones=True, horizon=200, leap=200), {}, {"horizon": 100, "leap": 20}
    ),
    "sequential-halving": Case(
        _mab(mab.sequential_halving, ones=True, horizon=60), {}, {"horizon": 40, "leap": 9, "reuse": True}
    ),
    "continuous-rejects": Case(_mab(mab.continuous_rejects, horizon=60), {}, {"horizon": 40, "conservative": False}),
    "hdoc": Case(_tested(mab.hdoc, level=0.3), GOOD, {"all_arms": True}),
    "lucb-g": Case(_tested(mab.lucb_g, level=0.3), GOOD, {"all_arms": True}),
    "apt-g": Case(_tested(mab.apt_g, level=0.3), GOOD, {"all_arms": True}),
    "apgai": Case(_tested(mab.apgai, level=0.3), GOOD, {"threshold": thresholds.box(arms=3), "start": 4, "every": 7}),
    "st2": Case(_tested(mab.st2, epsilon=0.35), {"delta": (0.1, 0.001), "epsilon": (0.35, 0.2)}, {"every": 7}),
    "sar": Case(_mab(mab.sar, m=2, horizon=60), {}, {"m": 1, "horizon": 40, "leap": 9}),
    # Three arms have two phases for m = 1 and one, without samples to reuse, for m = 2.
    "sh-top-m": Case(_mab(mab.sh_top_m, m=1, horizon=60), {}, {"m": 2, "horizon": 20, "leap": 9, "reuse": True}),
    "lsa": Case(_mab(mab.lsa, level=0.3, horizon=60), {"level": (0.3, 0.5), "alpha": (1.35, 20.0)}, {"horizon": 40}),
    "apt": Case(
        _mab(mab.apt, level=0.3, horizon=60),
        {"level": (0.3, 0.5), "epsilon": (0.0, 0.3)},
        {"horizon": 40},
    ),
    "ucb-e": Case(
        _mab(mab.ucb_e, horizon=60, hardness=20.0),
        {"hardness": (20.0, 900.0), "exploration": (2.0, 0.2)},
        {"horizon": 40},
    ),
    "ucb1": Case(_mab(_ended(mab.ucb1)), {"exploration": (2.0, 0.1)}),
    "kl-ucb": Case(_mab(_ended(mab.kl_ucb), ones=True), {"c": (0.0, 3.0)}),
    "imed": Case(_mab(_ended(mab.imed), ones=True), {}),
    "bayes-ucb": Case(_mab(_ended(_bayes_ucb)), {"c": (1.0, 5.0), "horizon": (60, 2)}),
    "discounted-ucb": Case(
        _mab(_ended(mab.discounted_ucb), discount=0.95), {"discount": (0.95, 0.8), "exploration": (0.6, 0.05)}
    ),
    "sliding-window-ucb": Case(
        _mab(_ended(mab.sliding_window_ucb), window=20), {"exploration": (0.6, 0.05)}, {"window": 5}
    ),
    "sliding-window-ucb-ones": Case(_mab(_ended(mab.sliding_window_ucb), ones=True, window=20), {}, is_variant=True),
    "m-ucb": Case(
        _mab(_ended(mab.m_ucb), window=8, threshold=3.0, gamma=0.3),
        {"threshold": (3.0, 0.3), "gamma": (0.3, 1.0)},
        {"window": 4},
    ),
    "m-ucb-ones": Case(_mab(_ended(mab.m_ucb), ones=True, window=8, threshold=1.5, gamma=0.3), {}, is_variant=True),
    "exp3": Case(_mab(_ended(mab.exp3), ones=True, gamma=0.1), {"gamma": (0.1, 0.9)}),
    "exp3-ix": Case(
        _mab(_ended(mab.exp3_ix), ones=True, eta=0.1, gamma=0.05), {"eta": (0.1, 0.9), "gamma": (0.05, 0.9)}
    ),
    "thompson": Case(_mab(_ended(mab.thompson)), {}),
    "moss": Case(_mab(_ended(mab.moss), horizon=60), {"horizon": (60, 9)}),
    "moss-anytime": Case(_mab(_ended(mab.moss_anytime)), {"alpha": (1.35, 9.0)}),
}
