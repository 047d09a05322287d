"""Rounds per second against the number of arms, 4 to 1024: is the cost of a round proportional to its arms?

Gaussian arms, one of which leads by a gap, for a fixed number of rounds of UCB1, EB-TCI and TTUCB through `sweep`. A
round costs O(K), so K times the rounds per second should not fall.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments import study
from experiments.report import Claim, Line, Report, means
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import mab
from jaxbandits.engine.sweep.layout import local_mesh, side_by_side

ARMS = (4, 16, 64, 256, 1024)
ROUNDS = 2**15  # rounds of a lane with four arms; fewer with more arms
LANES = 256
GAP = 0.01  # too small for a stop within these rounds
RULES = {
    "UCB1": mab.ucb1,
    "EB-TCI": partial(mab.eb_tci, delta=1e-3),
    "TTUCB": partial(mab.ttucb, delta=1e-3),
}


def run(options: Settings, *, gap: float = GAP) -> Report:
    arms = ARMS[:3:2] if options.quick else ARMS
    # Streams and stores would hide the speed of the sweep itself.
    options = options._replace(store=None, executor=None)
    cells = study.crossed({"rule": RULES, "K": arms}, lambda rule, K: Line("", rate(rule, K, gap, options)))
    rates = {rule: means(lines) for rule, lines in study.by(cells, "rule").items()}
    work = {rule: values * np.array(arms) for rule, values in rates.items()}
    spread = {rule: float(values[-1] / np.max(values)) for rule, values in work.items()}
    most = max(values[0] for values in work.values())
    return Report(
        "Rounds per second against the number of arms",
        [],
        [
            Claim(
                f"{rule}: K times the rounds per second is at {arms[-1]} arms within 2 of its largest",
                f"{spread[rule]:.2f} of it",
                spread[rule] >= 0.5,
            )
            for rule in RULES
        ],
        {"arms": np.array(arms)} | rates,
        study.figure(
            cells,
            "K",
            references={"1 / K": most / np.array(arms)},
            x_ticks=True,
            xscale="log",
            yscale="log",
            xlabel="arms K",
            ylabel="rounds per second",
            title="Speed against arms",
        ),
        notes=(
            f"On {jax.devices()[0].device_kind}, float64, {LANES} lanes per batch, without compilation. Measured once, "
            "on one machine.",
        ),
        grid=study.across(cells, "rule", cell=lambda line: f"{line.ours:.2e}"),
    )


def rate(rule: str, K: int, gap: float, options: Settings) -> float:
    """Measures the rounds per second of one rule."""
    instance = mab.gaussian(jnp.zeros(K).at[0].set(gap))

    def build(task: Any, key: jax.Array) -> tuple:
        return RULES[rule](instance.problem), mab.environment(instance)

    rounds = max((ROUNDS // 8 if options.quick else ROUNDS) * 4 // K, 256) + K
    name = f"mab scaling, {K} arms: {rule}"
    batches = side_by_side(local_mesh()) * local_mesh().size  # so that every core has one
    stats = simulate(name, build, options=options, seeds=batches * LANES, max_rounds=rounds, lanes=LANES).stats
    return stats.rounds / stats.seconds
