"""A valid call of every public function of `jaxbandits.fullbandit`."""

import csv
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from checks.calls import Call

from jaxbandits import fullbandit

N, K = 5, 3
SUPPORT = np.asarray(fullbandit.cyclic_support(N, K), float)
DESIGN = fullbandit.make_design(SUPPORT, K)
THETA = jnp.array([0.9, 0.2, 0.7, 0.5, 0.1])
INSTANCE = fullbandit.Instance(THETA, K, jnp.asarray(1.0))
REPLAYED = fullbandit.from_answers(jnp.asarray([[1, 0, 1, 1, 0], [1, 0, 0, 1, 0], [0, 1, 1, 0, 0]]), k=K)
ANSWER = jnp.array([True, False, True, True, False])
ESTIMATE = fullbandit.Estimate(THETA, DESIGN.inverse / 100, jnp.asarray(100.0))


def _quiz() -> Path:
    """Writes a folder in the form of the published answers."""
    folder = Path(tempfile.mkdtemp())
    files = {
        "answer.csv": [["question_id", "x", "y"], ["1", "A", "B"], ["2", "C", "C"]],
        "truth.csv": [["question_id", "truth"], ["1", "A"], ["2", "C"]],
    }
    for name, lines in files.items():
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows(lines)
    return folder


LEARNER = {"delta": 0.1, "epsilon": 0.2, "noise_scale": 1.0}
RULE = {"design": DESIGN, "estimate": ESTIMATE, "t": 100.0} | LEARNER
FACTORY = {"design": DESIGN} | LEARNER
RADIUS = {"t": 100.0, "n": N, "k": K, "delta": 0.1, "noise_scale": 1.0, "log_sets": 2.0}
PACE = fullbandit.Pace(first_test=10, growth=fullbandit.Growth(0.01, 7.0, 2.0))
PACED = {"pace": ("growth, number",)}  # a number is a growth, too

CALLS = {
    "all_superarms": Call(fullbandit.all_superarms, {"n": N, "k": K}),
    "crowd_like": Call(
        fullbandit.crowd_like,
        {"seed": 0, "workers": 12, "tasks": 20, "average": 0.4, "best": 0.9, "k": K, "dtype": "float64"},
        {"dtype": ("none",)},
    ),
    "crowdsourcing": Call(fullbandit.crowdsourcing, {"name": "it", "k": 10, "dtype": "float64"}, {"dtype": ("none",)}),
    "crowdsourcing_counts": Call(fullbandit.crowdsourcing_counts, {"name": "it"}),
    "cyclic_support": Call(fullbandit.cyclic_support, {"n": N, "k": K}),
    "ellipsoid_radius": Call(
        fullbandit.ellipsoid_radius, RADIUS, {"t": ("list", "array", "shape"), "log_sets": ("none",)}
    ),
    "environment": Call(
        fullbandit.environment,
        {"instance": INSTANCE, "algorithm": DESIGN, "noise": "bernoulli"} | {"stream": None},
        fine={"stream": ("none",)},
    ),
    "environment, shared": Call(
        fullbandit.environment,
        {"instance": INSTANCE, "algorithm": fullbandit.icb(DESIGN, delta=0.1, epsilon=0.1), "noise": "gaussian"}
        | {"stream": jax.random.key(0)},
        fine={"stream": ("none",)},
    ),
    "environment, replay": Call(
        fullbandit.environment,
        {"instance": REPLAYED, "algorithm": DESIGN, "noise": "replay"} | {"stream": None},
        fine={"stream": ("none",)},
    ),
    "estimator": Call(fullbandit.estimator, {"design": DESIGN, "design_matrix": "limit"}),
    "exhaustive": Call(
        fullbandit.exhaustive, FACTORY | {"superarms": SUPPORT, "pace": PACE}, PACED | {"superarms": ("none",)}
    ),
    "exhaustive_rule": Call(fullbandit.exhaustive_rule, RULE | {"superarms": SUPPORT}, {"superarms": ("none",)}),
    "from_answers": Call(
        fullbandit.from_answers,
        {"correct": np.asarray(REPLAYED.correct, float), "k": K, "dtype": "float64"},
        {"dtype": ("none",)},
    ),
    "g_allocation": Call(
        fullbandit.g_allocation,
        {"support": SUPPORT, "method": "frank_wolfe", "tolerance": 1e-6, "max_steps": 100},
    ),
    "gap": Call(fullbandit.gap, {"instance": INSTANCE}),
    "hardness": Call(fullbandit.hardness, {"rho": 9.0, "gap": 0.2, "epsilon": 0.1}),
    "icb": Call(
        fullbandit.icb,
        FACTORY | {"radius": "ellipsoid", "feasible": lambda weights: ANSWER, "pace": PACE},
        PACED | {"feasible": ("none",)},
    ),
    "icb_bound": Call(
        fullbandit.icb_bound,
        {"hardness": 9.0, "n": N, "k": K, "delta": 0.1, "noise_scale": 1.0, "radius": "lemma1"},
        {"hardness": ("inf",)},
    ),
    "icb_rule": Call(
        fullbandit.icb_rule,
        RULE | {"radius": "ellipsoid", "feasible": lambda weights: ANSWER},
        {"feasible": ("none",)},
    ),
    "is_right": Call(fullbandit.is_right, {"instance": INSTANCE, "answer": ANSWER, "epsilon": 0.1}),
    "lemma1_radius": Call(fullbandit.lemma1_radius, RADIUS, {"t": ("list", "array", "shape"), "log_sets": ("none",)}),
    "load_correct": Call(fullbandit.load_correct, {"folder": _quiz()}),
    "loss": Call(fullbandit.loss, {"instance": INSTANCE, "answer": ANSWER}),
    "make_design": Call(
        fullbandit.make_design,
        {"support": SUPPORT, "k": K, "weights": np.full(N, 1 / N), "dtype": "float64"},
        {"weights": ("none",), "dtype": ("none",)},
    ),
    "mean_field_time": Call(
        fullbandit.mean_field_time, {"rule": "icb", "design": DESIGN, "instance": INSTANCE} | LEARNER
    ),
    "mean_field_time, saqm": Call(
        fullbandit.mean_field_time, {"rule": "saqm", "design": DESIGN, "instance": INSTANCE} | LEARNER
    ),
    "mean_field_time, sa_foa": Call(
        fullbandit.mean_field_time, {"rule": "sa_foa", "design": DESIGN, "instance": INSTANCE} | LEARNER
    ),
    "oracle_time": Call(
        fullbandit.oracle_time, {"instance": INSTANCE, "support": SUPPORT, "steps": 10}, {"support": ("none",)}
    ),
    "random_support": Call(fullbandit.random_support, {"seed": 0, "n": N, "k": K, "size": 8}, {"size": ("none",)}),
    "rho": Call(fullbandit.rho, {"design": DESIGN, "method": "greedy"}),
    "rho_independent": Call(fullbandit.rho_independent, {"design": DESIGN}),
    "sa_foa": Call(
        fullbandit.sa_foa,
        FACTORY | {"threshold": 0.5, "sampling": fullbandit.Sampling(2), "reduction": "paper", "pace": PACE},
        PACED | {"sampling": ("none",)},
    ),
    "saqm": Call(fullbandit.saqm, FACTORY | {"alpha": 0.9, "reduction": "exact", "pace": PACE}, PACED),
    "saqm_bound": Call(
        fullbandit.saqm_bound,
        {"hardness": 9.0, "n": N, "k": K, "delta": 0.1, "noise_scale": 1.0, "alpha": 0.9},
        {"hardness": ("inf",)},
    ),
    "saqm_rule": Call(fullbandit.saqm_rule, RULE | {"alpha": 0.9, "reduction": "exact"}),
    "spectral": Call(fullbandit.spectral, FACTORY | {"pace": PACE}, PACED),
    "spectral_rule": Call(fullbandit.spectral_rule, RULE),
    "surrogates": Call(
        fullbandit.surrogates,
        {key: value for key, value in RULE.items() if key != "epsilon"} | {"reduction": "paper"},
    ),
    "synthetic": Call(
        fullbandit.synthetic,
        {"seed": 0, "n": N, "k": K, "gap": 0.1, "shuffle": True, "dtype": "float64"},
        {"dtype": ("none",)},
    ),
    "top_set": Call(fullbandit.top_set, {"theta": THETA, "k": K}, {"k": ("one",)}),
    "tracking_counts": Call(fullbandit.tracking_counts, {"design": DESIGN, "t": 20}),
    "xy_allocation": Call(
        fullbandit.xy_allocation,
        {"support": SUPPORT, "directions": np.eye(N)[:2], "steps": 10},
        {"directions": ("none",)},
    ),
}
