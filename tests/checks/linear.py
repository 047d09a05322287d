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

RATIOS_STOP = {
    "arms": ARMS,
    "delta": 0.1,
    "threshold": thresholds.gk16(arms=3),
    "items": jnp.asarray(np.array([[1.0, 0.5], [0.5, 1.0]])),
    "epsilon": 0.0,
    "ridge": 1.0,
    "glr_ridge": 0.0,
    "noise_scale": 1.0,
    "eliminate": "both",
    "start": "arms",
}
NO_START = {name: value for name, value in RATIOS_STOP.items() if name != "start"}
TOP_TWO = RATIOS_STOP | {"items": None, "leader_share": 0.5}
LINGAPE = {
    "arms": ARMS,
    "delta": 0.1,
    "epsilon": 0.1,
    "ridge": 1.0,
    "noise_scale": 1.0,
    "norm_bound": 2.0,
    "ratios": RATIOS.p,
    "leap_margin": 8.0,
}
WITH_THRESHOLD = ("threshold", "items", "glr_ridge", "eliminate")
OPEN = {"items": ("none",), "glr_ridge": ("none",), "eliminate": ("none",)}
APART = {"items": ("none", "list", "array"), "glr_ridge": ("none",), "eliminate": ("none",), "leader_share": ("none",)}

CALLS = {
    "characteristic_time": Call(
        linear.characteristic_time,
        {"arms": ARMS, "theta": THETA, "items": ARMS, "noise_scale": 1.0, "steps": 10},
        fine={"items": ("none",)},
    ),
    "fixed_weights": Call(
        linear.fixed_weights, RATIOS_STOP | {"allocation": jnp.asarray(np.array([0.4, 0.4, 0.2]))}, fine=OPEN
    ),
    "fws": Call(linear.fws, NO_START | {"steps": 4}, fine=OPEN),
    "l_t3c": Call(linear.l_t3c, TOP_TWO | {"joint": True}, fine=APART),
    "lazy_tas": Call(
        linear.lazy_tas,
        RATIOS_STOP | {"laziness": 2, "design_steps": 10, "support": False, "spanner": np.array([0, 1])},
        fine=OPEN | {"spanner": ("none",)},
    ),
    "lin_ttts": Call(linear.lin_ttts, TOP_TWO | {"draws": 4}, fine=APART),
    "lingame": Call(linear.lingame, RATIOS_STOP | {"shared_learner": False, "optimism": True, "clip": True}, fine=OPEN),
    "lingame_c": Call(linear.lingame_c, RATIOS_STOP | {"optimism": True, "clip": True, "max_pairs": 10}, fine=OPEN),
    "peps": Call(
        linear.peps,
        RATIOS_STOP | {"draws": 4, "mix": 0.0},
        fine=OPEN,
    ),
    "peps, no threshold": Call(
        linear.peps,
        RATIOS_STOP | {"delta": None, "threshold": None, "eliminate": None, "draws": 4, "mix": 0.0},
        fine=OPEN | dict.fromkeys(("delta", "threshold"), ("none",)),
    ),
    "uniform": Call(linear.uniform, RATIOS_STOP, fine=OPEN),
    **{
        name: Call(getattr(linear, name), {"arms": ARMS, "horizon": 40, "design_steps": 10})
        for name in ("g_bai", "od_linbai", "peace", "p1_rage")
    },
    "lin_ucb": Call(linear.lin_ucb, REGRET),
    "lin_ts": Call(linear.lin_ts, REGRET | {"horizon": 40, "scale": None}, fine={"scale": ("none",)}),
    "lin_ts, scale": Call(
        linear.lin_ts,
        REGRET | {"delta": None, "norm_bound": None, "horizon": None, "scale": 1.0},
        fine=dict.fromkeys(("delta", "norm_bound", "horizon"), ("none",)),
    ),
    "canonical": Call(linear.canonical, {"gap": 0.5, "d": 5} | MADE, fine=DEFAULT),
    "confidence_radius": Call(linear.confidence_radius, {"n": 100.0, "K": 5} | FIXED, fine={"n": ("list", "array")}),
    "environment": Call(
        linear.environment,
        {"instance": INSTANCE, "action": linear.Pull, "noise": "gaussian", "leap": 1, "stream": KEY},
        fine={"stream": ("none",)},
    ),
    "environment, sign": Call(
        linear.environment,
        {"instance": INSTANCE, "action": linear.Allocation, "noise": "sign", "leap": 1, "stream": None},
        fine={"stream": ("none",)},
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
    "is_right": Call(linear.is_right, {"instance": INSTANCE, "answer": 1, "epsilon": 0.1}),
    "lingape": Call(
        linear.lingape,
        LINGAPE
        | {"union_bound": 9.0, "rule": "ratio", "leap": 64, "leap_noise_scale": 1.0}
        | {"threshold": None, "width": "threshold", "items": None, "glr_ridge": None, "eliminate": None}
        | {"start": "arms"},
        fine=dict.fromkeys(
            ("norm_bound", "union_bound", "leap_margin", "leap_noise_scale", *WITH_THRESHOLD), ("none",)
        ),
    ),
    "lingape, threshold": Call(
        linear.lingape,
        LINGAPE
        | {"norm_bound": None, "union_bound": None, "rule": "greedy", "ratios": None, "leap": 1}
        | {"leap_margin": None, "leap_noise_scale": None}
        | RATIOS_STOP
        | {"width": "log"},
        fine=OPEN
        | dict.fromkeys(("ratios", "norm_bound", "union_bound", "leap_margin", "leap_noise_scale"), ("none",)),
    ),
    "lingape_radius": Call(
        linear.lingape_radius,
        BOUND | {"logdet": 3.0, "ridge": 1.0, "union_bound": 9.0},
        fine={"logdet": ("list", "array", "negative"), "union_bound": ("none",)},
    ),
    "lower_bound": Call(
        linear.lower_bound,
        {"arms": ARMS, "theta": THETA, "delta": 0.1, "items": ARMS, "noise_scale": 1.0, "steps": 10},
        fine={"items": ("none",)},
    ),
    "oracle_allocation": Call(linear.oracle_allocation, {"arms": ARMS, "theta": THETA, "steps": 10}),
    "pair_directions": Call(linear.pair_directions, {"arms": ARMS}),
    "rage": Call(
        linear.rage,
        {"arms": ARMS, "delta": 0.1, "items": RATIOS_STOP["items"], "epsilon": 0.1, "noise_scale": 0.5}
        | {"rounding": 0.2, "reuse": False, "against": "all"}
        | {"max_pulls": 10**6, "design_steps": 10},
        fine={"items": ("none",)},
    ),
    "ratio_tables": Call(linear.ratio_tables, {"arms": ARMS}),
    "reduce_instance": Call(linear.reduce_instance, {"instance": INSTANCE}),
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
