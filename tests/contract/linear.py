"""Linear bandits of the conformance suite."""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from contract.case import Case
from drivers.stops import by_ratios

from jaxbandits import linear
from jaxbandits.base import Algorithm, Environment
from jaxbandits.checks import constant
from jaxbandits.numerics import thresholds

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]])


@functools.cache
def _ratios():
    return linear.ratio_tables(ARMS).p


def _linear(factory: Callable[..., Algorithm]) -> Callable[..., tuple[Algorithm, Environment]]:
    """Makes a case of an algorithm with three arms in the plane; the second best trails by 0.2."""

    def make(dtype, shown=None, **hyperparameters):
        arms = constant(ARMS, dtype)  # concrete even in a trace, because a spanner is computed on the host
        instance = linear.Instance(arms, jnp.asarray([1.0, 0.0], dtype), jnp.asarray(0.5, dtype))
        algorithm = factory(arms if shown is None else shown(arms), **({"delta": 0.1} | hyperparameters))
        return algorithm, linear.environment(instance, algorithm)

    return make


def _ratio(arms, **hyperparameters):
    return linear.lingape(arms, ratios=_ratios(), **hyperparameters)


def _leap(arms, *, leap=65536, margin=7.6, leap_noise_scale=None, **hyperparameters):
    return linear.lingape(arms, leap=linear.Leap(leap, margin, leap_noise_scale), **hyperparameters)


def _static(factory):
    def make(arms, **hyperparameters):
        # No two arms are ever equally far behind under these shares.
        allocation = hyperparameters.pop("allocation", (0.413, 0.376, 0.211))
        return factory(arms, jnp.asarray(allocation, arms.dtype), **({"growth": 0.05} | hyperparameters))

    return make


def _adaptive(arms, **hyperparameters):
    return linear.xy_adaptive(arms, **({"design_steps": 50} | hyperparameters))


def _phases(factory):
    def make(arms, **hyperparameters):
        return factory(arms, **({"design_steps": 50} | hyperparameters))

    return make


_ratios_stop = functools.partial(by_ratios, threshold=thresholds.gk16(arms=3))


def _weighed(arms, **hyperparameters):
    # No two arms are ever equally far behind under these shares.
    allocation = hyperparameters.pop("allocation", (0.413, 0.376, 0.211))
    return linear.fixed_weights(arms, jnp.asarray(allocation, arms.dtype), **hyperparameters)


def _lazy(arms, **hyperparameters):
    return linear.lazy_tas(arms, **({"design_steps": 20} | hyperparameters))


def _budget(factory, horizon=60):
    """Gives a rule a fixed budget, and removes delta."""

    def make(arms, **hyperparameters):
        del hyperparameters["delta"]
        return factory(arms, **({"horizon": horizon, "design_steps": 50} | hyperparameters))

    return make


def _ts(arms, *, delta, norm_bound, horizon, scale=None, **hyperparameters):
    width = linear.Proved(delta, norm_bound, horizon) if scale is None else linear.Posterior(scale)
    return linear.lin_ts(arms, width=width, **hyperparameters)


def _ended(factory, pulls=60, **settings):
    """Ends a rule that never stops by itself after some pulls."""

    def make(arms, **hyperparameters):
        algorithm = factory(arms, **({"norm_bound": 1.0} | settings | hyperparameters))

        def decide(key, state):
            decision = algorithm.decide(key, state)
            return decision._replace(stop=decision.stop | (state.pulls >= pulls))

        return algorithm._replace(decide=decide)

    return make


def _coin(arms, **hyperparameters):
    return linear.l_t3c(arms, **({"leader_share": 0.5} | hyperparameters))


def _above(factory, **more):
    """Asks for the arms above a level, which is a hyperparameter; only the stop of the best arm has an epsilon."""

    def make(arms, *, level=0.5, **hyperparameters):
        return factory(arms, question=linear.Above(level), **(more | hyperparameters))

    return make


RATIO_STOP = {
    "delta": (0.1, 1e-4),
    "epsilon": (0.0, 0.15),
    "ridge": (1.0, 30.0),
    "noise_scale": (1.0, 0.5),
}
ASKED_STOP = {name: RATIO_STOP[name] for name in ("delta", "ridge", "noise_scale")}
ASKED = {"glr_ridge": 0, "threshold": thresholds.log_t(arms=3)}
TOP, SHARED = {"question": linear.TopM(2)}, {"shared_learner": True}
STOPS = {"glr_ridge": 0, "threshold": thresholds.log_t(arms=3), "eliminate": "stop"}

LINGAPE = {
    "delta": (0.1, 0.01),
    "epsilon": (0.0, 0.1),
    "ridge": (1.0, 3.0),
    "noise_scale": (1.0, 0.7),
    "norm_bound": (2.0, 3.0),
    "union_bound": (9.0, 1.0),
}
FIXED = {"delta": (0.1, 0.01), "noise_scale": (1.0, 0.7)}
STATIC = FIXED | {"allocation": ((0.4, 0.4, 0.2), (0.6, 0.3, 0.1)), "growth": (0.05, 0.2)}
BUDGET = {"horizon": (60, 41)}, {"design_steps": 2}
REGRET = {"delta": (0.1, 1e-6), "norm_bound": (1.0, 6.0), "ridge": (1.0, 9.0), "noise_scale": (1.0, 0.3)}
CHOICES = {"union_power": 1, "radius": "subgaussian", "max_pulls": 40}

CASES = {
    "lingape": Case(_linear(linear.lingape), LINGAPE),
    "lingape-ratio": Case(_linear(_ratio), LINGAPE, is_variant=True),
    "lingape-leap": Case(
        _linear(_leap),
        LINGAPE | {"leap_noise_scale": (1.0, 5.0)},
        {"leap": 2, "margin": 40.0},
        dtypes=("float64",),
    ),
    "lingape-threshold": Case(
        _linear(_ratios_stop(linear.lingape_glr)), RATIO_STOP, STOPS | {"width": "log"}, is_variant=True
    ),
    "xy-static": Case(
        _linear(_static(linear.xy_static)),
        STATIC | {"ridge": (0.0, 200.0)},
        CHOICES,
        max_rounds=2000,
    ),
    "xy-static-exact": Case(
        _linear(_static(linear.xy_static_exact)),
        STATIC | {"ridge": (0.0, 5.0), "bridge_noise_scale": (1.0, 3.0)},
        CHOICES | {"margin": 20.0},
        dtypes=("float64",),
        max_rounds=5000,
    ),
    "xy-adaptive": Case(
        _linear(_adaptive),
        FIXED | {"delta": (0.1, 1e-40), "alpha": (0.1, 0.3), "first_width": (1 / 7, 0.5)},
        CHOICES,
        dtypes=("float64",),
        max_rounds=100,
    ),
    "rage": Case(
        _linear(_phases(linear.rage)),
        FIXED | {"epsilon": (0.0, 1.0), "rounding": (0.1, 0.5)},
        {"reuse": True, "max_pulls": 40},
        dtypes=("float64",),
        max_rounds=100,
    ),
    "rage-leader": Case(
        _linear(_phases(linear.rage_leader)),
        FIXED | {"epsilon": (0.0, 1.0), "rounding": (0.1, 0.5)},
        {"reuse": True, "max_pulls": 40},
        dtypes=("float64",),
        max_rounds=100,
    ),
    "linear-uniform": Case(_linear(_ratios_stop(linear.uniform)), RATIO_STOP, STOPS),
    "fixed-weights": Case(
        _linear(_ratios_stop(_weighed)),
        RATIO_STOP | {"allocation": ((0.413, 0.376, 0.211), (0.6, 0.3, 0.1))},
        STOPS,
        is_variant=True,
    ),
    "fws": Case(_linear(_ratios_stop(linear.fws)), RATIO_STOP, STOPS | {"steps": 16}),
    "lingame": Case(
        _linear(_ratios_stop(linear.lingame)),
        RATIO_STOP,
        STOPS | {"shared_learner": True, "optimism": False, "clip": False},
        dtypes=("float64",),
    ),
    "lingame-c": Case(
        _linear(_ratios_stop(linear.lingame_c)),
        RATIO_STOP,
        STOPS | {"optimism": False, "clip": False},
        dtypes=("float64",),
    ),
    "lazy-tas": Case(
        _linear(_ratios_stop(_lazy)),
        RATIO_STOP,
        STOPS | {"laziness": 4, "design_steps": 3, "support": True, "spanner": (1, 2)},
    ),
    "lingape-top": Case(
        _linear(functools.partial(_ratios_stop(linear.lingape_glr), **TOP)),
        ASKED_STOP,
        ASKED | {"question": linear.TopM(1)},
    ),
    "lingape-above": Case(
        _linear(_above(_ratios_stop(linear.lingape_glr))), ASKED_STOP | {"level": (0.5, 0.3)}, ASKED, is_variant=True
    ),
    "linear-uniform-top": Case(
        _linear(functools.partial(_ratios_stop(linear.uniform), **TOP)), ASKED_STOP, ASKED, is_variant=True
    ),
    "fixed-weights-above": Case(
        _linear(_above(_ratios_stop(_weighed))), ASKED_STOP | {"level": (0.5, 0.3)}, ASKED, is_variant=True
    ),
    "fws-top": Case(_linear(functools.partial(_ratios_stop(linear.fws), **TOP)), ASKED_STOP, ASKED, is_variant=True),
    "fws-above": Case(
        _linear(_above(_ratios_stop(linear.fws))), ASKED_STOP | {"level": (0.5, 0.3)}, ASKED, is_variant=True
    ),
    "lingame-top": Case(
        _linear(functools.partial(_ratios_stop(linear.lingame), **TOP, **SHARED)),
        ASKED_STOP,
        ASKED | {"optimism": False},
        dtypes=("float64",),
        is_variant=True,
    ),
    "lazy-tas-top": Case(
        _linear(functools.partial(_ratios_stop(_lazy), **TOP)), ASKED_STOP, ASKED | {"laziness": 4}, is_variant=True
    ),
    "lazy-tas-above": Case(
        _linear(_above(_ratios_stop(_lazy))), ASKED_STOP | {"level": (0.5, 0.3)}, ASKED, is_variant=True
    ),
    "l-t3c": Case(_linear(_ratios_stop(linear.l_t3c)), RATIO_STOP, STOPS | {"joint": False, "leader_share": 0.5}),
    "l-t3c-coin": Case(_linear(_ratios_stop(_coin)), RATIO_STOP | {"leader_share": (0.5, 0.2)}, is_variant=True),
    "peps": Case(
        _linear(_ratios_stop(linear.peps)),
        RATIO_STOP | {"mix": (0.0, 0.7)},
        STOPS | {"draws": 2},
        dtypes=("float64",),
    ),
    "lin-ttts": Case(_linear(_ratios_stop(linear.lin_ttts)), RATIO_STOP, STOPS | {"draws": 2, "leader_share": 0.5}),
    "g-bai": Case(_linear(_budget(linear.g_bai)), *BUDGET),
    "od-linbai": Case(_linear(_budget(linear.od_linbai)), *BUDGET),
    "peace": Case(_linear(_budget(linear.peace)), *BUDGET),
    "p1-rage": Case(_linear(_budget(linear.p1_rage)), *BUDGET),
    "lin-ucb": Case(_linear(_ended(linear.lin_ucb)), REGRET),
    "lin-ts": Case(_linear(_ended(_ts, horizon=60)), REGRET | {"horizon": (60, 6000)}, {"scale": 0.5}),
}
