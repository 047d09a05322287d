"""Draws the figure of the README's study: `python -m experiments.showcase` writes experiments/gallery/study.png."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxbandits
from experiments import HERE
from jaxbandits import mab

RULES = {"TTUCB": mab.ttucb, "Track-and-Stop": mab.tas, "LUCB": mab.lucb}


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    instance = mab.gaussian([0.6, 0.3, 0.2, 0.0])

    def building(rule: Callable) -> Callable:
        def build(task: Any, key: Any) -> tuple:
            algorithm = rule(instance.problem, delta=task["delta"])
            return algorithm, mab.environment(instance, algorithm)

        return build

    results = jaxbandits.sweep(
        {name: building(rule) for name, rule in RULES.items()},
        jaxbandits.grid(delta=[0.1, 0.01, 0.001]),
        seeds=200,
        key=jax.random.key(0),
        max_rounds=100_000,
    )
    time = float(mab.characteristic_time(instance.problem, instance.means).value)
    bound = lambda delta: time * (1 - 2 * delta) * np.log((1 - delta) / delta)  # noqa: E731
    axes = results.plot(x="delta", y="pulls", by="rule", bound=bound)
    axes.set_title("Four Gaussian arms, 200 runs each")
    axes.figure.savefig(HERE / "gallery" / "study.png", dpi=130)


if __name__ == "__main__":
    main()
