"""Linear bandits by designs and for regret: RAGE and fixed budgets, runs of few rounds and many pulls, and the indices.

The plain loops call the library's own designs one after another, since few users would write them anew.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import jax
import numpy as np

from experiments.bench.case import Case, always
from experiments.bench.loops import per_second
from experiments.bench.reference import linear_budget, linear_rage
from jaxbandits import linear
from jaxbandits.base import Algorithm
from jaxbandits.numerics.design import design

DELTA, HORIZON = 0.05, 1000
PHASES, LANES, RUNS = 64, 256, 4  # largest number of rounds of a run, lanes, and runs per lane
ROUNDS = 4096  # rounds of a run for regret
REGRET: dict[str, Any] = {"delta": DELTA, "norm_bound": 2.0, "ridge": 1.0, "noise_scale": 1.0}


def cases() -> list[Case]:
    """Returns cases on soare(6), in float64.

    The rules that draw their pulls have no plain loop: it would spend all its time on designs.
    """
    instance = linear.soare(6)

    def case(rule: str, factory: Callable[..., Algorithm], loop: Any, rounds: int, **known: Any) -> Case:
        plain = partial(rate, partial(loop, rule), instance) if loop else lambda: np.nan
        make = partial(factory, instance.arms, **known)
        build = always(make, linear.environment(instance, make()))
        return Case("linear", rule, "soare(6)", build=build, plain=plain, max_rounds=rounds, lanes=LANES, runs=RUNS)

    designed = partial(case, rounds=PHASES)
    pulled = partial(case, rounds=ROUNDS)
    return [
        designed("RAGE", linear.rage, loop=phased, delta=DELTA),
        designed("OD-LinBAI", linear.od_linbai, loop=phased, horizon=HORIZON),
        designed("Peace", linear.peace, loop=phased, horizon=HORIZON),
        designed("G-BAI", linear.g_bai, loop=None, horizon=HORIZON),
        designed("P1-RAGE", linear.p1_rage, loop=None, horizon=HORIZON),
        pulled("LinUCB", linear.lin_ucb, loop=regret, **REGRET),
        pulled("LinTS", linear.lin_ts, loop=regret, width=linear.Proved(DELTA, REGRET["norm_bound"], ROUNDS)),
    ]


# The plain loops: one run each; they return its pulls


def rate(loop: Callable[..., int], instance: linear.Instance) -> float:
    """Measures the pulls per second of a loop, over one run at a time on one core."""
    arms, theta, rng = np.asarray(instance.arms), np.asarray(instance.theta), np.random.default_rng(0)
    play = partial(loop, arms, theta, designs(arms), rng)
    play()  # compiles; not timed
    return per_second(play)


def designs(arms: np.ndarray) -> Callable[[list[np.ndarray]], tuple[np.ndarray, float]]:
    """Returns a function (differences of arms) -> (their XY design, its value), one program for all."""
    pairs = np.asarray(linear.pair_directions(arms))
    solve = jax.jit(lambda weights: design(arms, pairs, weights=weights))

    def of(differences: list[np.ndarray]) -> tuple[np.ndarray, float]:
        chosen = {y.tobytes() for y in differences}
        solution = solve(np.array([pair.tobytes() in chosen for pair in pairs], float))
        return np.asarray(solution.allocation), float(solution.value)

    return of


def phased(rule: str, arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    def separate(remaining: list[int]) -> tuple[np.ndarray, float]:
        return solve([arms[i] - arms[j] for i, j in combinations(sorted(remaining), 2)])

    def answers(phase: int, counts: np.ndarray) -> np.ndarray:
        """Draws the sums of the arms' rewards."""
        return counts * (arms @ theta) + np.sqrt(counts) * rng.normal(size=len(arms))

    loops = {
        "RAGE": lambda: linear_rage.rage(arms, arms, solve, answers, delta=DELTA),
        "OD-LinBAI": lambda: linear_budget.od_linbai(arms, HORIZON, answers, steps=1000),
        "Peace": lambda: linear_budget.peace(arms, HORIZON, answers, separate),
    }
    return sum(int(np.sum(phase.counts)) for phase in loops[rule]())


def regret(rule: str, arms: np.ndarray, theta: np.ndarray, solve: Any, rng: np.random.Generator) -> int:
    if rule == "LinUCB":
        index = linear_budget.lin_ucb(arms, **REGRET)
    else:
        normals = rng.normal(size=(HORIZON, arms.shape[1]))
        index = linear_budget.lin_ts(arms, normals, horizon=ROUNDS, scale=None, **REGRET)
    tape = (arms @ theta)[:, None] + rng.normal(size=(len(arms), HORIZON))
    return len(linear_budget.regret(arms, tape, ridge=REGRET["ridge"], index=index, rounds=HORIZON))
