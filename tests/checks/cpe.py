"""A valid call of every public function of the combinatorial family."""

import jax
import jax.numpy as jnp
import numpy as np
from checks.calls import Call

from jaxbandits import cpe

PROBLEM = cpe.sites([0.5, 0.25, 0.0], 1)
INSTANCE = cpe.best5()
PLAYED = cpe.instance(cpe.best_arm(3), cpe.gaussian([0.5, 1.5, -1.0]))
ARMS = cpe.bernoulli([0.25, 0.5, 0.75])
THETA, LO, HI = np.array([0.25, 0.5, 0.75]), np.array([0.0, 0.25, 0.5]), np.array([0.5, 0.75, 1.0])
LEVELS = np.array([0, 0, 1])
CYCLE = np.array([[0, 1], [1, 2], [0, 2]])
SQUARE = np.array([[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]])
KEY = jax.random.key(0)
DTYPE = {"dtype": ("none",)}
RADII, H = np.array([0.125, 0.25, 0.5]), 100.0
SETTINGS = {
    "problem": PROBLEM,
    "delta": 0.1,
    "estimator": "mean",
    "observations": "unit",
    "leap": 8,
    "clip": True,
    "radius_scale": 1.0,
}
GRAPH = cpe.graphic(3, CYCLE)
PLAYS = {
    "problem": GRAPH,
    "delta": 0.1,
    "noise_scale": 0.5,
    "threshold": cpe.proved_threshold(GRAPH),
    "cover": np.array([[1, 1, 0], [1, 0, 1]]),
}
GIVEN = {"threshold": ("none",), "cover": ("none",)}
REGRET = {name: PLAYS[name] for name in ("problem", "noise_scale", "cover")}
STATE = jax.tree.map(np.asarray, cpe.coci(PROBLEM, delta=0.1).init(KEY))


def best(theta):
    return jnp.where(jnp.arange(3) == jnp.argmax(theta), 1, 0)


CALLS = {
    # Algorithms
    "coci": Call(cpe.coci, SETTINGS),
    "uniform": Call(cpe.uniform, SETTINGS),
    "clucb": Call(
        cpe.clucb,
        {"problem": PROBLEM, "delta": 0.1, "radius": cpe.Chen(0.5), "observations": "unit"},
    ),
    "semi_clucb": Call(cpe.semi_clucb, PLAYS, fine=GIVEN),
    "round_robin": Call(cpe.round_robin, PLAYS | {"rows": PLAYS["cover"]}, fine=GIVEN),
    "cucb": Call(cpe.cucb, REGRET, fine=GIVEN),
    "cts": Call(cpe.cts, REGRET, fine=GIVEN),
    "greedy_osa": Call(cpe.greedy_osa, {"theta": THETA, "sizes": np.array([1, 2, 3]), "budget": 8}),
    "osa_threshold": Call(cpe.osa_threshold, {"theta": THETA, "sizes": np.array([1, 2, 3]), "budget": 8}),
    # Reading a run
    "confidence": Call(
        cpe.confidence,
        {"state": STATE, "delta": 0.1, "estimator": "mean", "clip": True, "radius_scale": 1.0},
        fine={"state": ("nan_inside",)},  # state of a run that has failed
    ),
    "reward": Call(cpe.reward, {"problem": PROBLEM, "theta": THETA, "levels": LEVELS}),
    # Instances and who answers them
    "environment": Call(
        cpe.environment,
        {"instance": INSTANCE, "algorithm": cpe.coci(INSTANCE.problem, delta=0.1, leap=4), "stream": KEY},
        fine={"algorithm": ("none",), "stream": ("none",)},
    ),
    "environment, plays": Call(
        cpe.environment,
        {"instance": PLAYED, "algorithm": cpe.cts(PLAYED.problem), "stream": KEY},
        fine={"stream": ("none",)},
    ),
    "instance": Call(cpe.instance, {"problem": PROBLEM, "arms": ARMS, "estimator": "mean"}),
    "is_right": Call(cpe.is_right, {"instance": INSTANCE, "answer": np.array([1, 0, 0, 0, 0])}),
    **{
        name: Call(getattr(cpe, name), {"dtype": "float32"}, fine=DTYPE)
        for name in ("best5", "matching3", "osa4", "paths5", "sites5", "top2of6", "trees5", "water3")
    },
    "bernoulli": Call(cpe.bernoulli, {"p": THETA, "dtype": "float32"}, fine=DTYPE),
    "uniform_arms": Call(cpe.uniform_arms, {"low": LO, "high": HI, "dtype": "float32"}, fine=DTYPE),
    "discrete": Call(
        cpe.discrete, {"values": np.eye(2), "weights": np.full((2, 2), 0.5), "dtype": "float32"}, fine=DTYPE
    ),
    "constant": Call(cpe.constant, {"values": THETA, "dtype": "float32"}, fine=DTYPE),
    "gaussian": Call(
        cpe.gaussian,
        {"means": THETA, "noise_scale": 1.0, "dtype": "float32"},
        fine=DTYPE,
    ),
    **{
        name: Call(getattr(cpe, name), {"dtype": "float32"}, fine=DTYPE)
        for name in ("spanning_trees_e20", "spanning_trees_e25")
    },
    "complete_graph": Call(cpe.complete_graph, {"nodes": 4, "key": KEY, "bonus": 1.5, "dtype": "float32"}, fine=DTYPE),
    "stack_arms": Call(cpe.stack_arms, {"parts": [ARMS, ARMS]}),
    "means": Call(cpe.means, {"arms": ARMS}),
    "variances": Call(cpe.variances, {"arms": ARMS}),
    # Problems
    "table": Call(
        cpe.table,
        {
            "coef": np.ones((2, 2)),
            "cost": np.array([[0.0, 0.5], [0.25, 1.0]]),
            "quota": 2,
            "kind": "exactly",
            "base": 0.0,
            "step": 1.0,
            "dtype": "float32",
        },
        # The rows of a table may end: cost +inf, where coef is 0.
        fine=DTYPE | {"base": ("negative",)},
    ),
    "best_arm": Call(cpe.best_arm, {"m": 3, "dtype": "float32"}, fine=DTYPE),
    "top_k": Call(cpe.top_k, {"m": 3, "k": 1, "dtype": "float32"}, fine=DTYPE),
    "sites": Call(cpe.sites, {"costs": np.array([0.5, 0.25, 0.0]), "k": 1, "dtype": "float32"}, fine=DTYPE),
    "water": Call(
        cpe.water,
        {
            "costs": np.array([[0.0, 1.25, 3.0], [0.0, 1.5, 3.5]]),
            "demand": 2,
            "step": 1.0,
            "tight": True,
            "dtype": "float32",
        },
        fine=DTYPE | {"costs": ("ragged",)},  # sources differ in size
    ),
    "opinion_sampling": Call(
        cpe.opinion_sampling, {"sizes": np.array([1, 2, 3]), "budget": 8, "dtype": "float32"}, fine=DTYPE
    ),
    "enumerated": Call(
        cpe.enumerated,
        {"rows": np.eye(3, dtype=int), "offset": np.array([0.5, 0.25, 0.0]), "dtype": "float32"},
        fine=DTYPE | {"offset": ("none",)},
    ),
    "st_paths": Call(cpe.st_paths, {"edges": CYCLE, "s": 0, "t": 2, "dtype": "float32"}, fine=DTYPE),
    "perfect_matchings": Call(cpe.perfect_matchings, {"n": 3, "dtype": "float32"}, fine=DTYPE),
    "spanning_trees": Call(cpe.spanning_trees, {"nodes": 4, "edges": SQUARE, "dtype": "float32"}, fine=DTYPE),
    "graphic": Call(cpe.graphic, {"nodes": 4, "edges": SQUARE}),
    "oracle": Call(cpe.oracle, {"solve": best, "arms": 3, "bi_monotone": True}),
    "find_bi_monotone_violation": Call(
        cpe.find_bi_monotone_violation, {"solve": best, "key": KEY, "arms": 3, "samples": 10}
    ),
    # Actions that are played
    "pfws": Call(cpe.pfws, PLAYS | {"draws": 4, "independent": False}, fine=GIVEN),
    "combgame": Call(cpe.combgame, PLAYS | {"capacity": 8}, fine=GIVEN),
    "direction": Call(
        cpe.direction,
        {
            "problem": GRAPH,
            "means": np.array([0.5, 0.25, 0.75]),
            "omega": np.full(3, 0.5),
            "z": np.zeros((2, 3)),
            "live": np.ones(2, bool),
        },
    ),
    "maximum": Call(cpe.maximum, {"problem": GRAPH, "weights": THETA}),
    "small_cover": Call(cpe.small_cover, {"problem": GRAPH}),
    "unit_cover": Call(cpe.unit_cover, {"problem": GRAPH}),
    "most_confusing": Call(
        cpe.most_confusing, {"problem": GRAPH, "means": THETA, "weight": np.full(3, 4.0), "noise_scale": 0.5}
    ),
    "characteristic_time": Call(
        cpe.characteristic_time, {"problem": GRAPH, "means": np.array([0.5, 0.25, 0.75]), "noise_scale": 0.5}
    ),
    "proved_threshold": Call(cpe.proved_threshold, {"problem": GRAPH}),
    # Decisions and candidates
    "solve": Call(cpe.solve, {"problem": PROBLEM, "theta": THETA}),
    "decision": Call(cpe.decision, {"problem": PROBLEM, "levels": LEVELS}),
    "candidates": Call(cpe.candidates, {"problem": PROBLEM, "lo": LO, "hi": HI, "levels": LEVELS}),
    "stops": Call(cpe.stops, {"problem": PROBLEM, "lo": LO, "hi": HI, "levels": LEVELS}),
    "two_call": Call(cpe.two_call, {"solve": best, "lo": LO, "hi": HI}),
    **{
        f"solve, {name}": Call(cpe.solve, {"problem": problem, "theta": np.full(m, 0.5)})
        for name, problem, m in (
            ("opinions", cpe.opinion_sampling([1, 2], 40), 2),
            ("rows", cpe.enumerated(np.eye(3, dtype=int)), 3),
            ("trees", cpe.graphic(4, SQUARE), 5),
            ("oracle", cpe.oracle(best, 3, bi_monotone=True), 3),
        )
    },
    # Hardness and bounds
    "consistent_radius": Call(cpe.consistent_radius, {"problem": PROBLEM, "theta": THETA}),
    "radius_top_k": Call(cpe.radius_top_k, {"theta": THETA, "k": 1}),
    "reward_gaps": Call(cpe.reward_gaps, {"problem": PROBLEM, "theta": THETA}),
    "exchange_width": Call(cpe.exchange_width, {"rows": np.eye(3, dtype=int)}),
    "hardness": Call(cpe.hardness, {"radii": RADII}, fine={"radii": ("inf_inside",)}),
    "uniform_hardness": Call(cpe.uniform_hardness, {"radii": RADII}, fine={"radii": ("inf_inside",)}),
    "theorem1_bound": Call(cpe.theorem1_bound, {"H": H, "m": 3, "tau": 1, "delta": 0.1}),
    "arm_bound": Call(
        cpe.arm_bound, {"radii": RADII, "pulls": 1000.0, "tau": 1, "delta": 0.1}, fine={"radii": ("inf_inside",)}
    ),
    "implicit_time": Call(cpe.implicit_time, {"H": H, "m": 3, "tau": 1, "delta": 0.1, "c": 0.75}),
    "clucb_bound": Call(cpe.clucb_bound, {"H_gap": H, "exchange_width": 2, "m": 3, "delta": 0.1}),
    "lower_bound_rate": Call(cpe.lower_bound_rate, {"H": H, "m": 3, "delta": 0.1}),
}
