"""Valid calls of the kernel family."""

import jax
import jax.numpy as jnp
import numpy as np
from checks.calls import Call

from jaxbandits import kernel

KEY = jax.random.key(0)
SE = kernel.SquaredExponential(0.5)
POINTS = np.random.default_rng(0).random((5, 2))
CANDIDATES = jnp.asarray(POINTS)
GRAM = jnp.asarray(np.exp(-2 * np.sum((POINTS[:, None] - POINTS) ** 2, axis=-1)))
INSTANCE = kernel.Instance(CANDIDATES, jnp.asarray(np.arange(5.0)), jnp.asarray(np.array(0.2)))
AGENTS, HORIZON = 2, 6
COINS = kernel.Coins(
    *(jnp.full(shape, 0.5) for shape in ((AGENTS, HORIZON), (AGENTS, HORIZON), (HORIZON, AGENTS, HORIZON)))
)
ALONE = kernel.Coins(*(jnp.full(shape, 0.5) for shape in ((1, HORIZON), (1, HORIZON), (HORIZON, 1, HORIZON))))
SHARED = {"kernel": SE, "horizon": HORIZON, "beta": 1.0, "noise_variance": 0.04, "gram": GRAM}
LEARNER = {"candidates": CANDIDATES} | SHARED
TEAM = LEARNER | {"n_agents": AGENTS, "coins": COINS}
DUETS = {"epochs": 2, "inducing_rate": 5.0, "elimination": "point", "jitter": 1e-9}
EPOCHS = {"epochs": (2, 4), "inducing_rate": kernel.log_rate(2.0)}
DRAWN = {"key": KEY, "size": 5, "noise_scale": 0.2, "dtype": "float64"}
RIDGE = DRAWN | {"dimension": 2, "domain": "sphere"}
WIDTH = {"norm_bound": 1.0, "noise_scale": 0.2, "noise_variance": 0.04, "delta": 0.1}
MANY = {"n_agents": 3, "horizon": 7}
FEATURES = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
PAIR = {"x": CANDIDATES[0], "y": CANDIDATES[1], "lengthscale": 0.5}
STATE = jax.tree.map(np.asarray, kernel.gp_ucb(**LEARNER).init(KEY))

NO_TABLE = {"gram": ("none",)}
NO_COINS = NO_TABLE | {"coins": ("none",)}
DEFAULT = {"dtype": ("none",)}
SEVERAL = ("list", "array")  # numbers where one or more may stand
DEFAULTS = {"first_epoch": ("none",), "epochs": ("none",), "jitter": ("none",)}

CALLS = {
    "belief": Call(kernel.belief, {"state": STATE}, fine={"state": ("nan_inside",)}),
    "agent_message": Call(
        kernel.agent_message,
        {"features": FEATURES, "rewards": np.array([2.0, 1.0, -1.0])},
        # A run that meets a NaN ends as NONFINITE.
        fine={"features": ("nan_inside", "inf_inside"), "rewards": ("nan_inside", "inf_inside")},
    ),
    "anytime_width": Call(kernel.anytime_width, WIDTH | {"log_det": 2.0}, fine={"log_det": SEVERAL}),
    "approx_dis_kernel_ucb": Call(
        kernel.approx_dis_kernel_ucb,
        TEAM | {"threshold": 20.0, "oversampling": 1.0, "max_inducing": 4, "jitter": 1e-9},
        fine=NO_COINS | {"threshold": ("inf",), "jitter": ("none",)},
    ),
    "batch_lengths": Call(kernel.batch_lengths, {"horizon": HORIZON}),
    "bpe": Call(kernel.bpe, LEARNER | {"keep_data": True}, fine=NO_TABLE),
    "branin": Call(kernel.branin, DRAWN, fine=DEFAULT),
    "confidence_width": Call(kernel.confidence_width, WIDTH),
    "dis_kernel_ucb": Call(kernel.dis_kernel_ucb, TEAM | {"threshold": 10.0}, fine=NO_COINS | {"threshold": ("inf",)}),
    "duets": Call(kernel.duets, TEAM | DUETS, fine=NO_COINS | DEFAULTS),
    "duets, epochs": Call(
        kernel.duets, TEAM | DUETS | EPOCHS, fine=NO_COINS | DEFAULTS | {"inducing_rate": ("number",)}
    ),
    "duets_delta": Call(kernel.duets_delta, MANY | {"delta": 0.1, "discretisation": 10.0}),
    "duets_p0": Call(kernel.duets_p0, MANY | {"delta_prime": 0.1, "constant": 72.0}),
    "duets_regret_bound": Call(
        kernel.duets_regret_bound,
        MANY
        | {"norm_bound": 1.0, "components": 2, "spread": 3.0, "beta": 1.0, "gamma": 2.0}
        | {"first_epoch": 2, "epochs": 4.0},
    ),
    "duets_run": Call(
        kernel.duets_run,
        SHARED | DUETS | {"key": KEY, "instance": INSTANCE, "n_agents": AGENTS, "coins": COINS},
        fine=NO_COINS | DEFAULTS,
    ),
    "effective_dimension": Call(kernel.effective_dimension, {"gram": GRAM, "noise_variance": 0.04}),
    "environment": Call(
        kernel.environment,
        {"instance": INSTANCE, "algorithm": kernel.n_kernel_ucb(**TEAM), "stream": KEY},
        fine={"algorithm": ("none",), "stream": ("none",)},
    ),
    "environment, an action": Call(
        kernel.environment,
        {"instance": INSTANCE, "algorithm": np.full(2, 5), "stream": KEY},
        fine={"algorithm": ("none",), "stream": ("none",)},
    ),
    "epoch_bound": Call(kernel.epoch_bound, MANY),
    "epoch_lengths": Call(kernel.epoch_lengths, {"horizon": HORIZON, "first_epoch": 2}, fine=DEFAULTS),
    "every_tenth": Call(kernel.every_tenth, {"horizon": HORIZON}),
    "gp_ucb": Call(kernel.gp_ucb, LEARNER | {"coins": ALONE}, fine=NO_COINS),
    "gp_ucb, a function": Call(
        kernel.gp_ucb,
        LEARNER | {"beta": lambda t, log_det: log_det, "coins": ALONE},
        fine=NO_COINS | {"beta": ("number",)},
    ),
    "greedy_information_gain": Call(
        kernel.greedy_information_gain, {"candidates": CANDIDATES, "kernel": SE, "noise_variance": 0.04, "n": 3}
    ),
    "h1": Call(kernel.h1, RIDGE, fine=DEFAULT),
    "h2": Call(kernel.h2, RIDGE, fine=DEFAULT),
    "hartmann4": Call(kernel.hartmann4, DRAWN, fine=DEFAULT),
    "inducing_set_bound": Call(
        kernel.inducing_set_bound, {"p0": 10.0, "gamma": 2.0, "delta_prime": 0.1, "spread": 3.0}
    ),
    "information_gain": Call(kernel.information_gain, {"gram": GRAM, "noise_variance": 0.04}),
    "information_gain_order": Call(
        kernel.information_gain_order, {"n": 10.0, "dimension": 2, "nu": 2.5}, fine={"n": SEVERAL, "nu": ("none",)}
    ),
    "log_rate": Call(kernel.log_rate, {"c": 4.0}),
    "Matern": Call(
        lambda *, x, y, **parameters: kernel.Matern(**parameters)(x, y), PAIR | {"nu": 2.5, "variance": 2.0}
    ),
    "messages": Call(
        kernel.messages,
        {"state": kernel.n_kernel_ucb(**TEAM).init(jax.random.key(0)), "decision": None},
        # It looks at what was sent alone.
        fine={"state": ("nan_inside",), "decision": ("none", "string", "number", "list")},
    ),
    "n_kernel_ucb": Call(kernel.n_kernel_ucb, TEAM, fine=NO_COINS),
    "n_kernel_ucb, a beta a round": Call(
        kernel.n_kernel_ucb,
        TEAM | {"beta": jnp.asarray(np.linspace(1, 2, HORIZON))},
        fine=NO_COINS | {"beta": ("scalar",)},
    ),
    "orders": Call(kernel.orders, MANY | {"gamma": 2.0}, fine={"gamma": SEVERAL}),
    "paper_kernel": Call(kernel.paper_kernel, {"name": "branin"}),
    "regret": Call(kernel.regret, {"instance": INSTANCE, "answer": 3}, fine={"answer": SEVERAL}),
    "round_regret": Call(kernel.round_regret, {"instance": INSTANCE}),
    "rkhs": Call(kernel.rkhs, DRAWN | {"kernel": SE, "dimension": 2, "norm": 2.0}, fine=DEFAULT),
    "server_message": Call(
        kernel.server_message,
        {"features": FEATURES, "total": np.array([2.5, -0.5]), "noise_variance": 0.04, "counts": np.array([1, 2, 1])},
        fine={
            "features": ("nan_inside", "inf_inside"),
            "total": ("nan_inside", "inf_inside"),
            "counts": ("none",),
        },
    ),
    "SquaredExponential": Call(
        lambda *, x, y, **parameters: kernel.SquaredExponential(**parameters)(x, y), PAIR | {"variance": 2.0}
    ),
    "tabular": Call(
        kernel.tabular, {"candidates": CANDIDATES, "values": jnp.asarray(np.arange(5.0)), "noise_scale": 0.2}
    ),
}
