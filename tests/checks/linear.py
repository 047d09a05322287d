"""Valid calls of the linear family."""

import jax
import jax.numpy as jnp
import numpy as np
from checks.calls import Call

from jaxbandits import linear
from jaxbandits.numerics import thresholds

ARMS = jnp.asarray(np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]))
THETA = jnp.asarray(np.array([1.0, 0.0]))
KEY = jax.random.key(0)
INSTANCE = linear.Instance(ARMS, THETA, jnp.asarray(np.array(0.5)))
RATIOS = linear.RatioTables(*map(jnp.asarray, linear.ratio_tables(ARMS)))
FIXED = {"delta": 0.1, "noise_scale": 0.5, "union_power": 2, "radius": "azuma"}
STATIC = {
    "arms": ARMS,
    "allocation": jnp.asarray(np.array([0.4, 0.4, 0.2])),
    "ridge": 0.5,
    "growth": 0.1,
    "max_pulls": 10**6,
}
HARDNESS = {"arms": ARMS, "theta": THETA, "ratios": RATIOS}
BOUND = {"K": 6, "delta": 0.05, "noise_scale": 1.0, "norm_bound": 2.0}
THEOREM2 = BOUND | {"hardness": 3.0, "d": 5, "ridge": 1.0, "arm_norm": 1.0}
MADE = {"noise_scale": 1.0, "dtype": "float64"}
DEFAULT = {"dtype": ("none",)}

REGRET = {"arms": ARMS, "delta": 0.1, "norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0}

STOP = {
    "threshold": thresholds.gk16(arms=3),
    "delta": 0.1,
    "items": jnp.asarray(np.array([[1.0, 0.5], [0.5, 1.0]])),
    "epsilon": 0.0,
    "glr_ridge": 0.0,
    "eliminate": "both",
}
NO_START = {
    "arms": ARMS,
    "stop": linear.likelihood_ratio(**(STOP | {"eliminate": None})),
    "ridge": 1.0,
    "noise_scale": 1.0,
}
BY_RATIOS = NO_START | {"start": "arms"}
APART = BY_RATIOS | {"stop": linear.likelihood_ratio(**(STOP | {"items": None, "eliminate": None}))}
TOP_TWO = APART | {"leader_share": 0.5}
OPEN_SHARE = {"leader_share": ("none",)}
ASKED = {"question": linear.TopM(1)}
UNASKED = {"question": None}
OPEN = {"question": ("none",)}
LINGAPE = {
    "arms": ARMS,
    "delta": 0.1,
    "epsilon": 0.1,
    "ridge": 1.0,
    "noise_scale": 1.0,
    "norm_bound": 2.0,
    "union_bound": 9.0,
    "ratios": RATIOS.p,
}

CALLS = {
    "characteristic_time": Call(
        linear.characteristic_time,
        {"arms": ARMS, "theta": THETA, "items": ARMS, "noise_scale": 1.0, "steps": 10} | UNASKED,
        fine={"items": ("none",)} | OPEN,
    ),
    "characteristic_time, top": Call(
        linear.characteristic_time,
        {"arms": ARMS, "theta": THETA, "items": ARMS, "noise_scale": 1.0, "steps": 50, "question": linear.TopM(2)},
        fine={"items": ("none",)} | OPEN,
    ),
    "fixed_weights": Call(
        linear.fixed_weights, BY_RATIOS | UNASKED | {"allocation": jnp.asarray(np.array([0.4, 0.4, 0.2]))}, fine=OPEN
    ),
    "fws": Call(linear.fws, NO_START | UNASKED | {"steps": 4}, fine=OPEN),
    "fws, question": Call(linear.fws, NO_START | ASKED | {"steps": 4}, fine=OPEN),
    "l_t3c": Call(linear.l_t3c, TOP_TWO | {"joint": True}, fine=OPEN_SHARE),
    "lazy_tas": Call(
        linear.lazy_tas,
        BY_RATIOS | UNASKED | {"laziness": 2, "design_steps": 10, "support": False, "spanner": np.array([0, 1])},
        fine={"spanner": ("none",)} | OPEN,
    ),
    "lin_ttts": Call(linear.lin_ttts, TOP_TWO | {"draws": 4}, fine=OPEN_SHARE),
    "lingame": Call(
        linear.lingame, BY_RATIOS | UNASKED | {"shared_learner": False, "optimism": True, "clip": True}, fine=OPEN
    ),
    "lingame_c": Call(linear.lingame_c, BY_RATIOS | {"optimism": True, "clip": True, "max_pairs": 10}),
    "peps": Call(linear.peps, BY_RATIOS | {"draws": 4, "mix": 0.0}),
    "uniform": Call(linear.uniform, BY_RATIOS | UNASKED, fine=OPEN),
    "uniform, epsilon": Call(linear.uniform, BY_RATIOS | {"question": linear.BestArm(0.1)}, fine=OPEN),
    "uniform, question": Call(
        linear.uniform,
        BY_RATIOS | {"question": linear.Above(0.3)},
        fine={"question": ("none", "level, negative", "level, zero")},
    ),
    "likelihood_ratio": Call(
        linear.likelihood_ratio, STOP, fine=dict.fromkeys(("items", "glr_ridge", "eliminate"), ("none",))
    ),
    "no_stop": Call(linear.no_stop, {"items": ARMS}, fine={"items": ("none",)}),
    **{
        name: Call(getattr(linear, name), {"arms": ARMS, "horizon": 40, "design_steps": 10})
        for name in ("g_bai", "od_linbai", "peace", "p1_rage")
    },
    "lin_ucb": Call(linear.lin_ucb, REGRET),
    **{
        f"lin_ts, {type(width).__name__}": Call(
            linear.lin_ts, {"arms": ARMS, "width": width, "ridge": 1.0, "noise_scale": 1.0}
        )
        for width in (linear.Proved(0.1, 2.0, 40), linear.Posterior(1.0))
    },
    "canonical": Call(linear.canonical, {"gap": 0.5, "d": 5} | MADE, fine=DEFAULT),
    "confidence_radius": Call(linear.confidence_radius, {"n": 100.0, "K": 5} | FIXED, fine={"n": ("list", "array")}),
    "environment": Call(
        linear.environment,
        {"instance": INSTANCE, "algorithm": linear.lingape(ARMS, delta=0.1), "noise": "gaussian", "stream": KEY},
        fine={"algorithm": ("none",), "stream": ("none",)},
    ),
    "environment, sign": Call(
        linear.environment,
        {"instance": INSTANCE, "algorithm": linear.Allocation(np.zeros(3, int)), "noise": "sign", "stream": None},
        fine={"algorithm": ("none",), "stream": ("none",)},
    ),
    "estimate": Call(
        linear.estimate,
        {"arms": ARMS, "counts": np.array([3, 2, 1]), "sums": np.array([3.0, 0.5, 1.0]), "ridge": 1.0},
    ),
    "g_allocation": Call(linear.g_allocation, {"arms": ARMS, "steps": 10}),
    "gaps": Call(linear.gaps, {"arms": ARMS, "theta": THETA}),
    "hardness_lingape": Call(linear.hardness_lingape, HARDNESS | {"epsilon": 0.1}),
    "hardness_oracle": Call(linear.hardness_oracle, HARDNESS),
    "hardness_oracle_sum": Call(linear.hardness_oracle_sum, HARDNESS),
    "hardness_ugape": Call(linear.hardness_ugape, {"arms": ARMS, "theta": THETA, "epsilon": 0.1}),
    "is_right": Call(linear.is_right, {"instance": INSTANCE, "answer": 1, "epsilon": 0.1, "question": None}, fine=OPEN),
    "is_right, question": Call(
        linear.is_right,
        {
            "instance": INSTANCE,
            "answer": np.array([True, False, True]),
            "epsilon": 0.1,
            "question": linear.Above(0.3),
        },
        fine={"question": ("none", "level, negative", "level, zero")},
    ),
    "lingape": Call(
        linear.lingape,
        LINGAPE | {"leap": 64},
        fine={"union_bound": ("none",), "ratios": ("none",)},
    ),
    "lingape, leap": Call(
        linear.lingape,
        LINGAPE | {"leap": linear.Leap(64, 8.0, jnp.asarray(1.0))},
        fine={"union_bound": ("none",), "ratios": ("none",)},
    ),
    "lingape_glr": Call(
        linear.lingape_glr,
        APART | UNASKED | {"width": "log", "ratios": RATIOS.p},
        fine={"ratios": ("none",)} | OPEN,
    ),
    "lingape_glr, question": Call(
        linear.lingape_glr,
        APART | {"width": "log", "ratios": RATIOS.p, "question": linear.TopM(2)},
        fine={"ratios": ("none",)} | OPEN,
    ),
    "lingape_radius": Call(
        linear.lingape_radius,
        BOUND | {"logdet": 3.0, "ridge": 1.0, "union_bound": 9.0},
        fine={"logdet": ("list", "array", "negative"), "union_bound": ("none",)},
    ),
    "lower_bound": Call(
        linear.lower_bound,
        {"arms": ARMS, "theta": THETA, "delta": 0.1, "items": ARMS, "noise_scale": 1.0, "steps": 10} | ASKED,
        fine={"items": ("none",)} | OPEN,
    ),
    "oracle_allocation": Call(linear.oracle_allocation, {"arms": ARMS, "theta": THETA, "steps": 10}),
    "pair_directions": Call(linear.pair_directions, {"arms": ARMS}),
    **{
        name: Call(
            getattr(linear, name),
            {"arms": ARMS, "delta": 0.1, "items": STOP["items"], "epsilon": 0.1, "noise_scale": 0.5}
            | {"rounding": 0.2, "reuse": False, "max_pulls": 10**6, "design_steps": 10},
            fine={"items": ("none",)},
        )
        for name in ("rage", "rage_leader")
    },
    "ratio_tables": Call(linear.ratio_tables, {"arms": ARMS}),
    "reduce_instance": Call(linear.reduce_instance, {"instance": INSTANCE}),
    "recorded": Call(
        linear.recorded,
        {"rewards": np.arange(6.0).reshape(2, 3), "arms": ARMS, "algorithm": linear.lingape(ARMS, delta=0.1)}
        | {"order": "in turn"},
        # Features are only compared with the algorithm's.
        fine={"rewards": ("nan_inside",), "arms": ("equal rows", "rank"), "algorithm": ("none",)},
    ),
    "reduce_rank": Call(linear.reduce_rank, {"arms": ARMS}),
    "separated_arms": Call(
        linear.separated_arms,
        {
            "rng": np.random.default_rng(0),
            "features": jnp.asarray(np.random.default_rng(1).uniform(-0.5, 0.5, (50, 2))),
            "theta": THETA,
            "K": 3,
            "min_gap": 0.01,
        },
    ),
    "soare": Call(linear.soare, {"d": 3, "omega": 0.1, "scale": 2.0} | MADE, fine=DEFAULT),
    "many_arms": Call(linear.many_arms, {"seed": 0, "n": 5} | MADE, fine=DEFAULT),
    "random_tirinzoni": Call(linear.random_tirinzoni, {"seed": 0, "K": 6, "d": 6} | MADE, fine=DEFAULT),
    "random_tirinzoni_published": Call(linear.random_tirinzoni_published, MADE, fine=DEFAULT),
    "sphere_pair": Call(linear.sphere_pair, {"seed": 0, "K": 5, "d": 3, "alpha": 0.1} | MADE, fine=DEFAULT),
    "transductive": Call(linear.transductive, {"d": 3, "omega": 0.1} | MADE, fine=DEFAULT),
    "sphere": Call(linear.sphere, {"seed": 0, "K": 5, "d": 3, "min_gap": 0.1} | MADE, fine=DEFAULT),
    "theorem2_bound": Call(linear.theorem2_bound, THEOREM2 | {"printed": False}),
    "theorem2_implicit": Call(linear.theorem2_implicit, THEOREM2),
    "theorem2_large_ridge_bound": Call(
        linear.theorem2_large_ridge_bound, BOUND | {"hardness": 3.0, "ridge": 100.0, "arm_norm": 1.0}
    ),
    "theorem2_ridge_limit": Call(linear.theorem2_ridge_limit, BOUND),
    "theorem3_counterexample": Call(
        linear.theorem3_counterexample, {"n": 2, "s": 0.01, "gap": 0.1} | MADE, fine=DEFAULT
    ),
    "xy_adaptive": Call(
        linear.xy_adaptive,
        FIXED
        | {"arms": ARMS, "alpha": 0.1, "first_width": 1.0, "keep_eliminated": True}
        | {"max_pulls": 10**6, "design_steps": 10},
        fine={"first_width": ("none",)},
    ),
    "xy_value": Call(
        linear.xy_value,
        {
            "arms": ARMS,
            "allocation": jnp.asarray(np.array([0.4, 0.4, 0.2])),
            "directions": jnp.asarray(np.array([[1.0, -1.0]])),
        },
        fine={"directions": ("none",)},
    ),
    "xy_allocation": Call(linear.xy_allocation, {"arms": ARMS, "steps": 10}),
    "xy_oracle": Call(linear.xy_oracle, FIXED | {"arms": ARMS, "theta": THETA, "steps": 10}),
    "xy_static": Call(linear.xy_static, FIXED | STATIC),
    "xy_static_exact": Call(
        linear.xy_static_exact,
        FIXED | STATIC | {"margin": 4.0, "bridge_noise_scale": 1.0},
        fine={"bridge_noise_scale": ("none",)},
    ),
    "yahoo_like": Call(
        linear.yahoo_like,
        {"seed": 0, "K": 3, "articles": 4, "users": 5, "log": 100, "ridge": 0.01, "min_gap": 0.01}
        | {"dtype": "float64"},
        fine=DEFAULT,
    ),
}
