"""Measures the speed of an algorithm and what it is compared with, for the tables of speed."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.figures import COLORS
from experiments.report import Report, number
from experiments.settings import Settings
from jaxbandits import Algorithm, Decision, Environment, ask
from jaxbandits.base import PyTree
from jaxbandits.engine import Stats
from jaxbandits.engine.sweep.layout import local_mesh, side_by_side

LEAST_ROUNDS = 512  # rounds per lane that take a measurable time
WIDER = 64  # factor of the number of lanes on an accelerator
KNOWN = {"bar": "that two CPU cores should make", "published": "in print"}  # figures that only some cases have


class Case(NamedTuple):
    """One algorithm on one instance."""

    family: str
    rule: str
    instance: str
    build: Callable[[Any, jax.Array], tuple[Algorithm, Environment]]
    plain: Callable[[], float]  # queries per second of the plain NumPy loop, on one core
    max_rounds: int
    lanes: int | None  # lanes per batch. If None, the sweep chooses.
    runs: int = 1  # runs per lane, one after another
    chunk: int | None = None
    tasks: Any = None
    floor: Callable[[], tuple[float, str]] | None = None  # queries per second that a resource allows, and its name
    bar: float | None = None  # rounds per second that two CPU cores should make
    published: float | None = None  # rounds per second in print


def always(make: Callable[[], Algorithm], environment: Environment) -> Callable[..., tuple[Algorithm, Environment]]:
    """Returns a build function whose runs are all alike."""
    return lambda task, key: (make(), environment)


class Repeat(NamedTuple):
    """State of an algorithm that repeats one query."""

    pulls: jax.Array
    action: PyTree
    total: jax.Array  # float (), sum of all observations: XLA would remove an observation that nothing uses


def repeating(algorithm: Algorithm) -> Algorithm:
    """Returns an algorithm that repeats the first query of `algorithm`, and estimates and decides nothing."""

    def init(key: jax.Array) -> Repeat:
        start, later = jax.random.split(key)
        first = ask(algorithm, later, algorithm.init(start))[1].action
        return Repeat(jnp.zeros((), int), first, jnp.zeros(()))

    def decide(key: jax.Array, state: Repeat) -> Decision:
        return Decision(state.action, jnp.zeros((), bool), jnp.zeros((), int))

    def observe(state: Repeat, action: PyTree, observation: PyTree) -> Repeat:
        # Some environments answer an idle query with noise, which must not count.
        leaves = zip(jax.tree.leaves(action), jax.tree.leaves(algorithm.idle), strict=True)
        is_idle = jnp.all(jnp.stack([jnp.all(part == idle) for part, idle in leaves]))
        total = sum(jnp.sum(leaf).astype(state.total.dtype) for leaf in jax.tree.leaves(observation))
        return state._replace(total=state.total + jnp.where(is_idle, 0, total))

    return Algorithm(init, decide, observe, algorithm.idle)


def report(title: str, cases: Sequence[Case], options: Settings) -> Report:
    """Measures the cases, a row each, beside the speed of the same sweep if it repeats one query."""
    plain: dict[Any, float] = {}
    parts, has = [], {name: any(getattr(case, name) for case in cases) for name in KNOWN}
    refusals: list[str] = []
    for case in cases:
        key = case.family, case.rule.partition(", leap")[0], case.instance
        with refusing(case, refusals):
            if key not in plain:
                with jax.enable_x64(True):  # the precision of NumPy
                    plain[key] = case.plain()
            parts.append(measured(case, plain[key], options))
            print(case.rule, case.instance, f"{parts[-1]['queries']:.2e} queries/s", file=sys.stderr, sep=", ")
    return Report(
        title,
        lines=[],
        claims=[],
        columns={name: np.array([part[name] for part in parts]) for name in parts[0]},
        draw=partial(draw, parts=parts),
        notes=[
            "x NumPy: against a plain loop over one run on one core, measured in the same call.",
            "limited by: answers, the same sweep without estimates and decisions; memory and products, see --help.",
            "busy: share of lanes at work. Every lane makes few runs here, so lanes are empty at the end.",
            *(f"{name}: rounds/s {what}." for name, what in KNOWN.items() if has[name]),
            *refusals,
        ],
        grid=[{name: cell for name, cell in row(part).items() if name not in KNOWN or has[name]} for part in parts],
    )


@contextlib.contextmanager
def refusing(case: Case, refusals: list[str]) -> Iterator[None]:
    """Collects the message of a case that refuses 32 bit, and continues."""
    try:
        yield
    except ValueError as error:
        if jax.config.read("jax_enable_x64"):
            raise
        refusals.append(f"{case.rule}, {case.instance}, refuses 32 bit: {error}")


def measured(case: Case, plain: float, options: Settings) -> dict[str, Any]:
    """Returns one row as numbers."""
    wider = 1 if jax.default_backend() == "cpu" else WIDER
    lanes = options.lanes or (case.lanes and case.lanes * wider)
    stats = sweep(case, case.build, lanes=lanes, runs=1 if options.quick else case.runs, max_rounds=case.max_rounds)
    answers = case.floor or (lambda: (answers_a_second(case, stats) * stats.pulls / stats.rounds, "answers"))
    limit, limited_by = answers()
    named = {"family": case.family, "rule": case.rule, "instance": case.instance, "plain": plain}
    named |= {"bar": case.bar or np.nan, "published": case.published or np.nan}
    return named | {"queries": stats.pulls / stats.seconds, "limit": limit, "by": limited_by} | stats._asdict()


def row(part: dict[str, Any]) -> dict[str, str]:
    """Returns one row as text."""
    return {
        "family": part["family"],
        "algorithm": part["rule"],
        "instance": part["instance"],
        "lanes": str(part["lanes"]),
        "queries/s": f"{part['queries']:.2e}",
        "rounds/s": f"{part['rounds'] / part['seconds']:.2e}",
        "bar": f"{part['bar']:.0e}" if np.isfinite(part["bar"]) else "",
        "published": f"{part['published']:.1e}" if np.isfinite(part["published"]) else "",
        "queries a round": f"{part['pulls'] / part['rounds']:.3g}",
        "x NumPy": number(float(f"{part['queries'] / part['plain']:.2g}")),
        "share of limit": f"{part['queries'] / part['limit']:.0%}",
        "limited by": part["by"],
        "busy": f"{part['occupancy']:.0%}",
        "compile s": f"{part['compile_seconds']:.1f}",
        "MB": f"{part['bytes'] / 1e6:.1f}",
    }


def draw(figure: Any, *, parts: list[dict[str, Any]]) -> None:
    figure.set_size_inches(7, 1 + 0.22 * len(parts))
    axes, y = figure.subplots(), np.arange(len(parts))[::-1]
    styles = (("plain", "NumPy loop, one core", "s"), ("queries", "measured", "o"), ("limit", "limit", "|"))
    for name, label, marker in styles:
        axes.plot([part[name] for part in parts], y, marker, label=label, ms=8, mfc="w", color=COLORS[0])
    axes.set(xscale="log", xlabel="queries a second", ylim=(-1, len(parts)))
    axes.set_yticks(y, ["{rule}, {instance}, {lanes} lanes".format(**part) for part in parts], fontsize=8)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)


def answers_a_second(case: Case, stats: Stats) -> float:
    """Measures the rounds per second of the same sweep if its algorithm repeats one query."""

    def build(task: Any, key: jax.Array) -> tuple[Algorithm, Environment]:
        algorithm, environment = case.build(task, key)
        return repeating(algorithm), environment

    rounds = max(LEAST_ROUNDS, round(stats.rounds / (stats.batches * stats.lanes * stats.devices)))
    only = sweep(case, build, lanes=stats.lanes, runs=1, max_rounds=rounds)
    return only.rounds / only.seconds


def sweep(case: Case, build: Callable, *, lanes: int | None, runs: int, max_rounds: int) -> Stats:
    rows = 1 if case.tasks is None else len(jax.tree.leaves(case.tasks)[0])
    mesh = local_mesh()
    seeds = -(-runs * side_by_side(mesh) * mesh.size * (lanes or 1) // rows)
    return jaxbandits.sweep(
        build,
        case.tasks,
        seeds=seeds,
        key=jax.random.key(0),
        max_rounds=max_rounds,
        lanes=lanes,
        chunk=case.chunk,
        progress=False,
    ).stats
