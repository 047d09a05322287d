"""Linear bandits by designs and for regret: RAGE and fixed budgets, runs of few rounds and many pulls, and the indices.

The designs of the plain loops are the library's own, one after another: hardly anybody would write them anew.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import jax
import numpy as np

from experiments.bench.case import Case
from experiments.bench.reference import linear_budget, linear_rage
from jaxbandits import linear
from jaxbandits.base import Algorithm, Environment
from jaxbandits.numerics.design import design

DELTA, HORIZON = 0.05, 1000
PHASES, LANES, RUNS = 64, 256, 4  # rounds of a run at most, runs side by side, and runs of each lane
ROUNDS = 4096  # of a regret
REGRET = {"delta": DELTA, "norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0}


def cases() -> list[Case]:
    """On soare(6), float64. The rules that draw their pulls have no plain loop: its designs would be all of it."""
    instance = linear.soare(6)

    def case(rule: str, factory: Callable[..., Algorithm], action: Any, loop: Any, rounds: int, **known: Any) -> Case:
        def build(task: None, key: jax.Array) -> tuple[Algorithm, Environment]:
            return factory(instance.arms, **known), linear.environment(instance, action)

        plain = partial(rate, loop, instance) if loop else lambda: np.nan
        return Case("linear", rule, "soare(6)", build, plain, rounds, LANES, runs=RUNS)

    phased = partial(case, action=linear.Allocation, rounds=PHASES)
    pulled = partial(case, action=linear.Pull, rounds=ROUNDS)
    return [
        phased("RAGE", linear.rage, loop=rage, delta=DELTA),
        phased("OD-LinBAI", linear.od_linbai, loop=od_linbai, horizon=HORIZON),
        phased("Peace", linear.peace, loop=peace, horizon=HORIZON),
        phased("G-BAI", linear.g_bai, loop=None, horizon=HORIZON),
        phased("P1-RAGE", linear.p1_rage, loop=None, horizon=HORIZON),
        pulled("LinUCB", linear.lin_ucb, loop=lin_ucb, **REGRET),
        pulled("LinTS", linear.lin_ts, loop=lin_ts, horizon=ROUNDS, **REGRET),
    ]


# The plain loops: one run each, and its pulls


def rate(loop: Callable[..., int], instance: linear.Instance, seconds: float = 1.0) -> float:
    """Pulls a second of a loop, over one run at a time on one core."""
    arms, theta, rng = np.asarray(instance.arms), np.asarray(instance.theta), np.random.default_rng(0)
    solve = designs(arms)
    loop(arms, theta, solve, rng)  # what is compiled is not timed
    pulls, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        pulls += loop(arms, theta, solve, rng)
    return pulls / (time.perf_counter() - started)


def designs(arms: np.ndarray) -> Callable[[list[np.ndarray]], tuple[np.ndarray, float]]:
    """(differences of arms) -> their XY design and its value, in one program for all."""
    pairs = np.asarray(linear.pair_directions(arms))
    solve = jax.jit(lambda weights: design(arms, pairs, weights=weights))

    def of(differences: list[np.ndarray]) -> tuple[np.ndarray, float]:
        chosen = {y.tobytes() for y in differences}
        found = solve(np.array([pair.tobytes() in chosen for pair in pairs], float))
        return np.asarray(found.allocation), float(found.value)

    return of


def answers(arms: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> Callable[[int, np.ndarray], np.ndarray]:
    """(phase, counts) -> the sums of the arms' rewards."""
    return lambda phase, counts: counts * (arms @ theta) + np.sqrt(counts) * rng.normal(size=len(arms))


def rage(arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    phases = linear_rage.rage(arms, arms, solve, answers(arms, theta, rng), delta=DELTA)
    return sum(int(np.sum(phase.counts)) for phase in phases)


def od_linbai(arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    course = linear_budget.od_linbai(arms, HORIZON, answers(arms, theta, rng), steps=1000)
    return sum(int(phase.counts.sum()) for phase in course)


def peace(arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    def apart(left: list[int]) -> tuple[np.ndarray, float]:
        return solve([arms[i] - arms[j] for i, j in combinations(sorted(left), 2)])

    course = linear_budget.peace(arms, HORIZON, answers(arms, theta, rng), apart)
    return sum(int(phase.counts.sum()) for phase in course)


def lin_ucb(arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    return regret(arms, theta, linear_budget.lin_ucb(arms, **REGRET), rng)


def lin_ts(arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    normals = rng.normal(size=(HORIZON, arms.shape[1]))
    return regret(arms, theta, linear_budget.lin_ts(arms, normals, horizon=ROUNDS, scale=None, **REGRET), rng)


def regret(arms: np.ndarray, theta: np.ndarray, index: Callable, rng: np.random.Generator) -> int:
    tape = (arms @ theta)[:, None] + rng.normal(size=(len(arms), HORIZON))
    return len(linear_budget.regret(arms, tape, ridge=REGRET["ridge"], index=index, rounds=HORIZON))
