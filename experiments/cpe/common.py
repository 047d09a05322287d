"""Shared parts of the experiments on combinatorial pure exploration: rules side by side on the same samples."""

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments import study
from experiments.claims import all_of, column
from experiments.figures import points
from experiments.report import Claim, Columns, number, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Record, Results, cpe
from jaxbandits.base import Algorithm, Array, Key, Outcome, Status
from jaxbandits.cpe import Instance
from jaxbandits.cpe._problem.problems import kind_of

DELTA = 0.1
LEAP = 32  # largest number of pulls per round; it changes only the time
RULES = {"COCI": cpe.coci, "uniform": cpe.uniform, "CLUCB": cpe.clucb}
ESTIMATORS = {1: "mean", 2: "variance"}  # tau -> estimator

Task = dict[str, Any]  # `arms`, `theta`, `settings`, and the numbers `instance` and `replicate`


def refuses(rule: str, instance: Instance) -> bool:
    """True if the rule is CLUCB and the instance has no 0/1 decisions linear in means."""
    kind = kind_of(instance.problem)
    is_linear = kind.lead is not None and not kind.misfit(instance.problem)
    return rule == "CLUCB" and not (is_linear and instance.tau == 1)


def best_arm_instance(theta: Sequence[float]) -> Instance:
    return cpe.instance(cpe.best_arm(len(theta)), cpe.bernoulli(theta))


def without_noise(instance: Instance) -> Instance:
    """Replaces every sample by theta, so means are exact from the first sample on."""
    values = jnp.broadcast_to(instance.theta[:, None], instance.arms.low.shape)
    return instance._replace(arms=instance.arms._replace(low=values, high=values))


# Runs


def compared(
    heading: str,
    cases: Mapping[Any, Instance | list[Instance]],
    *,
    label: str = "{}",
    extra: Callable[[Any, str], dict[str, Any]] = lambda case, rule: {},
    **shared: Any,
) -> dict[tuple[Any, str], Results]:
    """Runs every rule on every case that it accepts; returns sweeps by (case, rule). `extra` (case, rule) gives
    settings in addition to `shared`. `heading` has a placeholder for the name of the case, `label` for the rule.
    """
    return {
        (name, rule): runs(heading.format(name), case, rule, label=label.format(rule), **shared, **extra(name, rule))
        for name, case in cases.items()
        for rule in RULES
        if not refuses(rule, case[0] if isinstance(case, list) else case)
    }


def runs(
    heading: str,  # name of the samples; with the label, unique to these runs
    instances: Instance | Sequence[Instance],  # one instance, or several of one problem with different arms
    rule: str,
    *,
    options: Settings,
    replicates: int | Sequence[int],  # runs of each instance and setting: a number, or one per instance
    settings: Mapping[str, Sequence[float]] = {},  # arguments of the rule, of equal lengths
    label: str | None = None,  # name of these runs under the heading; if None, the rule
    leap: int = LEAP,  # largest number of pulls per round; 1 for CLUCB
    max_rounds: int = 2**30,
    adapt: Callable[[Algorithm, Task], Algorithm] | None = None,  # True to keep the field `statistics` of the state
    curves: Callable[[Task, Instance], Record] | None = None,  # curves to record
    metrics: Callable[[Task, Outcome], dict[str, Array]] = lambda task, outcome: {},
) -> Results:
    """Runs a rule on the same samples as all others under the same heading.

    Sample s of arm i is a function of the heading, the replicate, i and s: neither the rule, nor the setting, nor the
    leap, nor the dtype changes it. There is a row for each setting, instance and replicate, in this order.

    Returns:
        Results. A run's columns say if it stopped with the best decision (`right`), the pulls of every arm
        (`counts`), its `replicate`, `instance` and settings, and the number of the `setting`. T is `pulls`.
    """
    instances = [instances] if isinstance(instances, Instance) else list(instances)
    first = instances[0]
    replicates = np.broadcast_to(np.asarray(replicates), len(instances))
    settings = jaxbandits.rows(**{"delta": DELTA, **settings})
    sizes = {"setting": len(settings["delta"]), "instance": len(instances), "replicate": replicates.max()}
    table = jaxbandits.grid(**{name: range(size) for name, size in sizes.items()})
    exists = table["replicate"] < replicates[table["instance"]]
    table = {name: numbers[exists] for name, numbers in table.items()}
    setting, instance = table["setting"], table["instance"]

    is_binary = [np.equal(case.arms.low, case.arms.high) & np.isin(case.arms.low, (0, 1)) for case in instances]
    common: dict[str, Any] = {"observations": "binary" if np.all(is_binary) else "unit"}
    if rule == "CLUCB":
        leap = 1
    else:
        common |= {"estimator": ESTIMATORS[first.tau], "leap": leap}
    samples = zlib.crc32(heading.encode())

    def build(task: Task, key: Key) -> tuple[Any, ...]:
        del key  # the run's own key; the rules must share their samples
        algorithm = RULES[rule](first.problem, **common, **task["settings"])
        stream = jax.random.fold_in(jax.random.key(samples), task["replicate"])
        environment = cpe.environment(first._replace(arms=task["arms"]), algorithm, stream=stream)
        algorithm = adapt(algorithm, task) if adapt else algorithm
        return (algorithm, environment, curves(task, first)) if curves else (algorithm, environment)

    def judged(task: Task, outcome: Outcome) -> dict[str, Array]:
        best = cpe.is_right(first._replace(theta=task["theta"]), outcome.answer)
        stopped, counts = outcome.status == Status.STOPPED, outcome.state.statistics.counts
        return {"right": best & stopped, "counts": counts} | metrics(task, outcome)

    tasks = {
        "arms": jax.tree.map(lambda *parts: jnp.stack(parts)[instance], *(case.arms for case in instances)),
        "theta": jnp.stack([case.theta for case in instances])[instance],
        "settings": {name: jnp.asarray(values, first.theta.dtype)[setting] for name, values in settings.items()},
        **{name: jnp.asarray(table[name], jnp.int32) for name in ("instance", "replicate")},
    }
    name = f"{heading}: {label or rule}"
    results = simulate(name, build, tasks, options=options, seeds=1, max_rounds=max_rounds, metrics=judged)
    table |= {name: values[setting] for name, values in settings.items()}
    return dataclasses.replace(results, columns=results.columns | table)


# The event xi


def xi(task: Task, instance: Instance) -> Record:
    """Tracks whether theta stays in the box, before the box is cut to [0, 1]."""

    def is_out(state: Any) -> Array:
        confidence = cpe.confidence(state, estimator=ESTIMATORS[instance.tau], clip=False, **task["settings"])
        is_far = jnp.any(jnp.abs(confidence.theta - task["theta"]) > confidence.radius)
        return jnp.all(state.statistics.counts >= instance.tau) & is_far

    return jaxbandits.record(
        at=[2**30],  # the end
        value=lambda state, decision: {"out": is_out(state)},
        total=lambda state, decision, observation: {"out_before": is_out(state)},
    )


def was_inside(task: Task, outcome: Outcome) -> dict[str, Array]:
    """Returns the column of `xi`: True if it held in every round."""
    del task
    return {"inside": ~outcome.curves["out"][0] & (outcome.curves["out_before"][0] == 0)}


# Settings of `runs` that record after every pull.
WATCHED: dict[str, Any] = {"curves": xi, "metrics": was_inside, "leap": 1}


# The laws


class Law(NamedTuple):
    """Theory of COCI, or with another hardness of uniform sampling, as numbers or arrays."""

    H: Any  # hardness: sum_i 1 / Lambda_i^2; for uniform sampling H_U = m / min_i Lambda_i^2
    root: Any  # pulls: root of T = m + H/2 ln(4 T^3 / (tau delta))
    bound: Any  # bound of Theorem 1; for uniform sampling Theorem 4


def law(H: Any, m: int, tau: int = 1, delta: Any = DELTA) -> Law:
    """Computes the law for a hardness and a delta, or for arrays of them."""
    root = jnp.vectorize(lambda H, delta: cpe.implicit_time(H, m, tau, delta, 0.5))
    bound = jnp.vectorize(lambda H, delta: cpe.theorem1_bound(H, m, tau, delta))
    return Law(H, *(np.asarray(theory(H, delta))[()] for theory in (root, bound)))


def laws(cases: Iterable[Instance]) -> dict[str, Law]:
    """Computes the laws of COCI and of uniform sampling, with an entry per case."""
    laws: dict[str, list[Law]] = {"COCI": [], "uniform": []}
    for case in cases:
        radii = cpe.consistent_radius(case.problem, case.theta)
        for rule, hardness in (("COCI", cpe.hardness), ("uniform", cpe.uniform_hardness)):
            laws[rule].append(law(float(hardness(radii)), len(radii), case.tau))
    return {rule: Law(*np.transpose(each)) for rule, each in laws.items()}


# Claims


def all_right(sweeps: Iterable[Results | Columns]) -> Claim:
    """Claims that every run stopped with the best decision."""
    return all_of("every run stops with the best decision", column(sweeps, "right"))


def twins_agree(ours: Results, theirs: Results, names: Sequence[str]) -> np.ndarray:
    """Returns a mask (runs,) of the runs that stopped in both sweeps with equal values in these columns."""
    a, b = ours.columns, theirs.columns
    agree = (a["status"] == Status.STOPPED) & (b["status"] == Status.STOPPED)
    for name in names:
        agree &= (a[name] == b[name]).reshape(len(agree), -1).all(axis=1)
    return agree


# Tables and figures


def grid(
    cells: study.Study, axis: str, laws: Mapping[str, Law], more: Callable[[int], dict[str, str]]
) -> list[dict[str, str]]:
    """Returns a table with a row per value of an axis: `more` of its number, the laws, and the pulls of every rule."""
    rows = []
    for n, value in enumerate(cells.axes[axis]):
        lines = study.along(cells, "rule", **{axis: value})
        took = {rule: plus_minus(lines[rule]) if rule in lines else "-" for rule in RULES}
        law = {rule: number(round(each.root[n])) for rule, each in laws.items()}
        row = more(n) | {"Theorem 1": number(round(laws["COCI"].bound[n])), "law": law["COCI"], "COCI": took["COCI"]}
        rows.append(row | {"law, uniform": law["uniform"]} | took | {"runs": str(lines["COCI"].runs)})
    return rows


def draw_laws(axes: Any, x: Any, laws: Mapping[str, Law], at: Any, cells: study.Study) -> None:
    """Draws the roots of both laws over x, and the means of every rule at the positions `at`."""
    axes.plot(x, laws["uniform"].root, color="#888888", lw=1.2, label="law of uniform: with $H_U$")
    axes.plot(x, laws["COCI"].root, "k-", lw=1.2, label=r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$")
    for style, (rule, row) in enumerate(study.by(cells, "rule").items()):
        points(axes, at, row, rule, style)
