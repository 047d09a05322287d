"""Shared parts of the experiments on top-k identification: tables of designs, and runs on crowdsourced quizzes."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import all_of, column
from experiments.report import Claim
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import fullbandit
from jaxbandits.base import Algorithm, Environment
from jaxbandits.fullbandit import Design
from jaxbandits.fullbandit._problem.crowdsourcing import FOLDERS

DELTA = 0.05
EPSILON = 0.5
SIZE = 10  # workers of a super-arm
QUIZZES = tuple(FOLDERS)
QUICK_QUIZZES = ("it", "pokemon")  # a quiz with ties and one without


def random_designs(count: int, n: int, k: int, *, ratio: float = 2.0) -> Design:
    """Draws a table of `count` uniform designs, each on its own random super-arms, `ratio` per arm."""
    supports = (fullbandit.random_support(seed, n, k, size=round(ratio * n)) for seed in range(count))
    return jaxbandits.rows(design=[fullbandit.make_design(support, k) for support in supports])["design"]


def quiz_runs(
    heading: str,
    correct: np.ndarray,
    rule: Callable[[Design], Algorithm],
    environment: Callable[[Algorithm], Environment],
    designs: Design,
    *,
    options: Settings,
    seeds: int,
    chunk: int = 8,
) -> jaxbandits.Results:
    """Runs one rule on the workers of a quiz, with a row for each design.

    `correct`, int (n,), counts the right answers of every worker. Workers tie, so the column `optimal` judges a run's
    answer by its value, in whole questions. Runs take some 30 rounds, hence the short chunk.
    """
    counts = fullbandit.Instance(jnp.asarray(correct), SIZE)

    def judged(design: Design, outcome: jaxbandits.Outcome) -> dict[str, jax.Array]:
        return {"optimal": fullbandit.is_right(counts, outcome.answer)}

    settings = {"options": options, "seeds": seeds, "max_rounds": 100_000, "metrics": judged, "chunk": chunk}

    def build(design: Design, key: jax.Array) -> tuple[Algorithm, Environment]:
        algorithm = rule(design)
        return algorithm, environment(algorithm)

    return simulate(heading, build, designs, **settings)


def all_optimal(sweeps: Sequence[jaxbandits.Results]) -> Claim:
    """Claims that every run stopped with an answer of the largest value."""
    right = column(sweeps, "optimal") & (column(sweeps, "status") == jaxbandits.Status.STOPPED)
    return all_of("every run ends with an answer of the largest value", right)


def add_data_argument(parser: ArgumentParser, **settings: Any) -> None:
    """Adds `--data`, the folder with the published answers of the quizzes."""
    parser.add_argument(
        "--data",
        type=_folder_of_quizzes,
        metavar="DIR",
        help="folder Datasets of https://github.com/garfieldpigljy/CrowdLabelwithTextContent",
        **settings,
    )


def _folder_of_quizzes(text: str) -> Path:
    missing = [name for name in FOLDERS.values() if not (Path(text) / name / "answer.csv").is_file()]
    if missing:
        raise ArgumentTypeError(f"must hold NAME/answer.csv for NAME = {', '.join(missing)}, got {text}")
    return Path(text)
