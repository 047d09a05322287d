"""Valid calls of the family mab."""

import jax
import jax.numpy as jnp
import numpy as np
from checks.calls import Call

from jaxbandits import mab
from jaxbandits.numerics import thresholds

PROBLEM = mab.Gaussian(3, 1.0, jnp.float64)
SPREAD = mab.Gaussian(3, None, jnp.float64)
ONES = mab.Bernoulli(3, jnp.float64)
MEANS = jnp.asarray(np.array([0.2, 0.7, 0.4]))
INSTANCE = mab.Instance(PROBLEM, MEANS)
DEFAULT = {"dtype": ("none",)}
TEST = {"problem": PROBLEM, "delta": 0.1, "threshold": thresholds.gk16(arms=3), "epsilon": 0.1, "every": 2}
TOP_TWO = TEST | {"leader_share": 0.5}
ASKED = TEST | {"question": mab.TopM(2), "epsilon": 0.0, "start": 4}
TIMED = {"means": MEANS, "question": mab.TopM(2), "leader_share": None, "epsilon": 0.0}
UNASKED = {"question": None}
WIDTHS = {"problem": mab.Bounded(3, jnp.float64), "intervals": "bernstein"}
BUDGET = {"problem": PROBLEM, "horizon": 100}
GOOD = {"problem": PROBLEM, "level": 0.3, "delta": 0.1, "all_arms": True, "every": 2}
LEVEL = {"level": ("negative", "zero")}  # normal rewards may have any mean
STARTED = {"start": 4}
LEARNT = {"problem": ("noise_scale, number",)}  # a number is the noise_scale of another problem
KNOWN = {"means": MEANS, "noise_scale": 1.0, "sd": None, "cost": "adaptive", "least_variance": 0.0, "dtype": "float64"}
OPTIONAL = {"intervals": ("none",), "threshold": ("none",), "question": ("none",), "start": ("none",)}


def _tested(factory, **more):
    return Call(factory, TEST | more, fine=OPTIONAL)


CALLS = {
    "apt_g": Call(mab.apt_g, GOOD, fine=LEVEL),
    "apgai": Call(
        mab.apgai,
        {"problem": PROBLEM, "level": 0.3, "delta": 0.1, "threshold": thresholds.box(arms=3), "every": 2, "start": 4},
        fine=LEVEL | OPTIONAL,
    ),
    "hdoc": Call(mab.hdoc, GOOD, fine=LEVEL),
    "lsa": Call(mab.lsa, BUDGET | {"level": 0.3, "alpha": 1.0}, fine=LEVEL),
    "lucb_g": Call(mab.lucb_g, GOOD, fine=LEVEL),
    "apt": Call(mab.apt, BUDGET | {"level": 0.3, "epsilon": 0.1}, fine=LEVEL),
    "batched_elimination": Call(
        mab.batched_elimination, {"problem": PROBLEM, "delta": 0.1, "first": 3, "growth": 2, "leap": 2}
    ),
    "bernoulli": Call(mab.bernoulli, {"means": MEANS, "dtype": "float64"}, fine=DEFAULT),
    "characteristic_time": Call(
        mab.characteristic_time,
        {"problem": PROBLEM, "means": MEANS, "question": None, "leader_share": 0.5, "epsilon": 0.1, "sd": None},
        fine={"leader_share": ("none",), "question": ("none",), "sd": ("none",)},
    ),
    "characteristic_time, question": Call(
        mab.characteristic_time,
        TIMED | {"problem": PROBLEM, "sd": None},
        fine={"leader_share": ("none",), "question": ("none",), "sd": ("none",)},
    ),
    "characteristic_time, sd": Call(
        mab.characteristic_time,
        TIMED | {"problem": SPREAD, "sd": MEANS},
        fine=LEARNT | {"leader_share": ("none",), "question": ("none",)},
    ),
    "eb_tci, variances": Call(mab.eb_tci, TOP_TWO | UNASKED | STARTED | {"problem": SPREAD}, fine=OPTIONAL | LEARNT),
    "eb_tc": Call(mab.eb_tc, TOP_TWO | UNASKED | STARTED, fine=OPTIONAL),
    "eb_tc, question": Call(mab.eb_tc, ASKED | {"leader_share": 0.5}, fine=OPTIONAL),
    "eb_tci": Call(mab.eb_tci, TOP_TWO | UNASKED | STARTED, fine=OPTIONAL),
    "eb_tci, question": Call(mab.eb_tci, ASKED | {"leader_share": 0.5}, fine=OPTIONAL),
    "environment": Call(
        mab.environment,
        {
            "instance": INSTANCE,
            "algorithm": mab.ucb1(INSTANCE.problem),
            "noise": "uniform",
            "stream": jax.random.key(0),
        },
        fine={"algorithm": ("none",), "noise": ("none",), "stream": ("none",)},
    ),
    "recorded": Call(
        mab.recorded,
        {
            "rewards": np.arange(6.0).reshape(3, 2),
            "algorithm": mab.ucb1(PROBLEM),
            "order": "in turn",
            "dtype": "float64",
        },
        # A list, too, is a table: the rewards of each arm, as many as there are.
        fine={"rewards": ("nan_inside", "ragged"), "algorithm": ("none",), "dtype": ("none",)},
    ),
    "gaussian": Call(mab.gaussian, KNOWN, fine=DEFAULT | {"sd": ("none",)}),
    "gaussian, sd": Call(
        mab.gaussian,
        KNOWN | {"sd": MEANS, "cost": "plug-in", "least_variance": 0.1},
        fine=DEFAULT | {"sd": ("none",)},
    ),
    "bounded": Call(mab.bounded, {"means": MEANS, "dtype": "float64"}, fine=DEFAULT),
    "exponential": Call(mab.exponential, {"means": MEANS, "dtype": "float64"}, fine=DEFAULT),
    "poisson": Call(mab.poisson, {"means": MEANS, "dtype": "float64"}, fine=DEFAULT),
    "gk1": Call(mab.gk1, {"dtype": "float64"}, fine=DEFAULT),
    "gk2": Call(mab.gk2, {"dtype": "float64"}, fine=DEFAULT),
    "gauss4": Call(mab.gauss4, {"dtype": "float64"}, fine=DEFAULT),
    "audibert1": Call(mab.audibert1, {"dtype": "float64"}, fine=DEFAULT),
    "hardness": Call(mab.hardness, {"instance": INSTANCE}),
    "estimates": Call(
        mab.estimates,
        {"problem": PROBLEM, "state": mab.ucb1(PROBLEM).init(jax.random.key(0))},
        fine={"state": ("nan_inside",)},  # state of a run that ended as NONFINITE
    ),
    "is_right": Call(
        mab.is_right,
        {"instance": INSTANCE, "answer": 1, "question": None, "epsilon": 0.1},
        fine={"question": ("none",)},
    ),
    "is_right, question": Call(
        mab.is_right,
        {
            "instance": INSTANCE,
            "answer": np.array([False, True, True]),
            "question": mab.Above(0.3),
            "epsilon": 0.1,
        },
        fine={"question": ("none", "level, negative", "level, zero")},
    ),
    "kl_lucb": _tested(mab.kl_lucb, **UNASKED),
    "lai_robbins": Call(mab.lai_robbins, {"instance": INSTANCE}),
    "lil_ucb": Call(
        mab.lil_ucb,
        {"problem": PROBLEM, "delta": 0.1, "lil_epsilon": 0.1, "lil_beta": 1.0, "lil_lambda": 9.0},
        fine={"lil_lambda": ("none",)},
    ),
    "lil_ucb_constants": Call(mab.lil_ucb_constants, {"delta": 0.1}),
    "lucb": _tested(mab.lucb, **UNASKED, **WIDTHS),
    "successive_elimination": Call(mab.successive_elimination, {"problem": PROBLEM, "delta": 0.1}),
    "successive_rejects_bound": Call(mab.successive_rejects_bound, {"instance": INSTANCE, "horizon": 100}),
    "t3c": Call(mab.t3c, TOP_TWO | UNASKED | STARTED, fine=OPTIONAL),
    "t3c, question": Call(mab.t3c, ASKED | {"leader_share": 0.5}, fine=OPTIONAL),
    "st2": Call(mab.st2, {"problem": PROBLEM, "delta": 0.1, "epsilon": 0.1, "every": 2}),
    "tas": Call(
        mab.tas,
        TEST | UNASKED | STARTED | {"tracking": "D", "sticky": False, "replan_every": 1},
        fine=OPTIONAL | {"tracking": ("none",), "replan_every": ("none",)},
    ),
    "tas, question": Call(
        mab.tas,
        ASKED | {"question": mab.GoodArm(0.3), "tracking": "C", "sticky": True, "replan_every": 1},
        fine=OPTIONAL
        | {"tracking": ("none",), "replan_every": ("none",), "question": ("none", "level, negative", "level, zero")},
    ),
    "ttts": Call(mab.ttts, TOP_TWO | UNASKED, fine=OPTIONAL),
    "ttucb": Call(mab.ttucb, TOP_TWO | UNASKED | {"exponent": 1.2, "slack": 1.2}, fine=OPTIONAL),
    "ugape": _tested(mab.ugape, **UNASKED, **WIDTHS),
    "uniform": _tested(mab.uniform, **UNASKED, **STARTED),
    "bayes_ucb": Call(
        mab.bayes_ucb, {"problem": PROBLEM, "factor": mab.LogFactor(100, 5.0)}, fine={"factor": ("none",)}
    ),
    "continuous_rejects": Call(mab.continuous_rejects, BUDGET | {"conservative": True}),
    "imed": Call(mab.imed, {"problem": PROBLEM}),
    "kl_ucb": Call(mab.kl_ucb, {"problem": PROBLEM, "c": 3.0}),
    "moss": Call(mab.moss, BUDGET),
    "moss_anytime": Call(mab.moss_anytime, {"problem": PROBLEM, "alpha": 1.0}),
    "sar": Call(mab.sar, BUDGET | {"m": 2, "leap": 2}),
    "sh_top_m": Call(mab.sh_top_m, BUDGET | {"m": 2, "reuse": True, "leap": 2}),
    "sequential_halving": Call(mab.sequential_halving, BUDGET | {"reuse": True, "leap": 2}),
    "successive_rejects": Call(mab.successive_rejects, BUDGET | {"leap": 2}),
    "discounted_ucb": Call(mab.discounted_ucb, {"problem": PROBLEM, "discount": 0.9, "exploration": 0.6}),
    "sliding_window_ucb": Call(mab.sliding_window_ucb, {"problem": PROBLEM, "window": 20, "exploration": 0.6}),
    "m_ucb": Call(mab.m_ucb, {"problem": PROBLEM, "window": 10, "threshold": 3.0, "gamma": 0.1}),
    "m_ucb_constants": Call(
        mab.m_ucb_constants, {"problem": PROBLEM, "horizon": 1000, "changes": 3, "smallest_change": 0.5}
    ),
    "exp3": Call(mab.exp3, {"problem": ONES, "gamma": 0.1}),
    "exp3_gamma": Call(mab.exp3_gamma, {"problem": ONES, "horizon": 100}),
    "exp3_ix": Call(mab.exp3_ix, {"problem": ONES, "eta": 0.1, "gamma": 0.05}),
    "exp3_ix_constants": Call(mab.exp3_ix_constants, {"problem": ONES, "horizon": 100}),
    "thompson": Call(mab.thompson, {"problem": PROBLEM}),
    "ucb1": Call(mab.ucb1, {"problem": PROBLEM, "exploration": 2.0}),
    "ucb_e": Call(mab.ucb_e, BUDGET | {"hardness": 20.0, "exploration": 2.0}),
}
