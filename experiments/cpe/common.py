"""What the experiments on combinatorial pure exploration share: rules side by side on the same samples."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import all_of, column
from experiments.figures import points
from experiments.report import Claim, Columns, Line, number, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Record, Results, cpe
from jaxbandits.base import Algorithm, Array, Key, Outcome, Status
from jaxbandits.cpe import Instance

DELTA = 0.1
LEAP = 32  # pulls of a round at most; it changes nothing but the time
RULES = {"COCI": cpe.coci, "uniform": cpe.uniform, "CLUCB": cpe.clucb}
ESTIMATORS = {1: "mean", 2: "variance"}  # of tau

Task = dict[str, Any]  # `arms`, `theta`, `settings`, and the numbers `instance` and `replicate`


def refuses(rule: str, instance: Instance) -> bool:
    """CLUCB is for 0/1 decisions that are linear in means."""
    problem = instance.problem
    is_binary = isinstance(problem, (cpe.Enumerated, cpe.Graphic))
    is_binary |= isinstance(problem, cpe.Table) and problem.coef.shape[1] == 1
    return rule == "CLUCB" and not (is_binary and instance.tau == 1)


def best_arm_instance(theta: Sequence[float]) -> Instance:
    return cpe.instance(cpe.best_arm(len(theta)), cpe.bernoulli(theta))


def without_noise(instance: Instance) -> Instance:
    """Every sample is theta: the estimates of means are exact from the first one on."""
    values = jnp.broadcast_to(instance.theta[:, None], instance.arms.low.shape)
    return instance._replace(arms=instance.arms._replace(low=values, high=values))


# Runs


def compared(
    heading: str,
    cases: Mapping[Any, Instance | list[Instance]],
    *,
    label: str = "{}",
    own: Callable[[Any, str], dict[str, Any]] = lambda case, rule: {},
    **shared: Any,
) -> dict[tuple[Any, str], Results]:
    """Runs of every rule on every case that it takes, by (case, rule), with `own` settings beside the `shared` ones.

    `heading` has a place for the case's name, `label` for the rule's.
    """
    return {
        (name, rule): runs(heading.format(name), case, rule, label=label.format(rule), **shared, **own(name, rule))
        for name, case in cases.items()
        for rule in RULES
        if not refuses(rule, case[0] if isinstance(case, list) else case)
    }


def runs(
    heading: str,  # names the samples; with the label it is unique to these runs
    instances: Instance | Sequence[Instance],  # one, or several of one problem, whose arms differ
    rule: str,
    *,
    options: Settings,
    replicates: int | Sequence[int],  # of each instance and setting: one number, or one for each instance
    settings: Mapping[str, Sequence[float]] = {},  # numbers that the rule takes, all of one length, delta if need be
    label: str | None = None,  # of these runs under the heading; by default the rule
    leap: int = LEAP,  # pulls of a round at most; CLUCB has one
    max_rounds: int = 2**30,
    adapt: Callable[[Algorithm, Task], Algorithm] | None = None,  # keeps the field `statistics` of the state
    curves: Callable[[Task, Instance], Record] | None = None,  # what to record, of an instance of the problem
    metrics: Callable[[Task, Outcome], dict[str, Array]] = lambda task, outcome: {},
) -> Results:
    """Runs of a rule that see the same samples as all others under the same heading.

    Sample s of arm i is a function of the heading, the replicate, i and s: neither the rule, nor the setting, nor the
    leap, nor the dtype changes it. There is a row for each setting, instance and replicate, in this order.

    Returns:
        Results with, a run, whether it stopped with the best decision (`right`), the pulls of every arm (`counts`), its
        `replicate`, `instance` and settings, and the number of the `setting`. T is `pulls`.
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
        del key  # it is the run's own, and the rules must share their samples
        algorithm = jaxbandits.numbered(RULES[rule](first.problem, **common, **task["settings"]))
        stream = jax.random.fold_in(jax.random.key(samples), task["replicate"])
        environment = cpe.environment(first._replace(arms=task["arms"]), leap=leap, stream=stream)
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
    return results._replace(columns=results.columns | table)


# Whether xi holds


def xi(task: Task, instance: Instance) -> Record:
    """Watches whether theta stays in the box, before it is cut to [0, 1]."""

    def is_out(state: Any) -> Array:
        seen = cpe.confidence(state, estimator=ESTIMATORS[instance.tau], clip=False, **task["settings"])
        is_far = jnp.any(jnp.abs(seen.theta - task["theta"]) > seen.radius)
        return jnp.all(state.statistics.counts >= instance.tau) & is_far

    return jaxbandits.record(
        at=[2**30],  # the end
        value=lambda state, decision: {"out": is_out(state)},
        total=lambda state, decision, observation: {"out_before": is_out(state)},
    )


def was_inside(task: Task, outcome: Outcome) -> dict[str, Array]:
    """The column of `xi`: whether it held in every round."""
    del task
    return {"inside": ~outcome.curves["out"][0] & (outcome.curves["out_before"][0] == 0)}


WATCHED: dict[str, Any] = {"curves": xi, "metrics": was_inside, "leap": 1}  # settings of `runs`, after every pull


# The laws


class Law(NamedTuple):
    """What theory says of COCI, or with another hardness of uniform sampling: a number, or many."""

    H: Any  # hardness: sum_i 1 / Lambda_i^2; of uniform sampling H_U = m / min_i Lambda_i^2
    root: Any  # of T = m + H/2 ln(4 T^3 / (tau delta)), the pulls
    bound: Any  # of Theorem 1, of uniform sampling Theorem 4


def law(H: Any, m: int, tau: int = 1, delta: Any = DELTA) -> Law:
    """Of a hardness and a delta, or of many at once."""
    root = jnp.vectorize(lambda H, delta: cpe.implicit_time(H, m, tau, delta, 0.5))
    bound = jnp.vectorize(lambda H, delta: cpe.theorem1_bound(H, m, tau, delta))
    return Law(H, *(np.asarray(theory(H, delta))[()] for theory in (root, bound)))


def laws(cases: Iterable[Instance]) -> dict[str, Law]:
    """Of COCI and of uniform sampling, an entry for each case."""
    found: dict[str, list[Law]] = {"COCI": [], "uniform": []}
    for case in cases:
        radii = cpe.consistent_radius(case.problem, case.theta)
        for rule, hardness in (("COCI", cpe.hardness), ("uniform", cpe.uniform_hardness)):
            found[rule].append(law(float(hardness(radii)), len(radii), case.tau))
    return {rule: Law(*np.transpose(each)) for rule, each in found.items()}


# Claims


def all_right(sweeps: Iterable[Results | Columns]) -> Claim:
    """Whether every run stopped with the best decision."""
    return all_of("every run stops with the best decision", column(sweeps, "right"))


def twins_agree(ours: Results, theirs: Results, names: Sequence[str]) -> np.ndarray:
    """Which runs stopped in both sweeps with the same values in these columns, bool (runs,)."""
    a, b = ours.columns, theirs.columns
    agree = (a["status"] == Status.STOPPED) & (b["status"] == Status.STOPPED)
    for name in names:
        agree &= (a[name] == b[name]).reshape(len(agree), -1).all(axis=1)
    return agree


# How it is shown


def cells(laws: Mapping[str, Law], n: int, lines: Mapping[str, Line]) -> dict[str, str]:
    """Of a table: what theory says of the n-th case, and what every rule took."""
    took = {rule: plus_minus(lines[rule]) if rule in lines else "-" for rule in RULES}
    return {
        "Theorem 1": number(round(laws["COCI"].bound[n])),
        "law": number(round(laws["COCI"].root[n])),
        "COCI": took.pop("COCI"),
        "law, uniform": number(round(laws["uniform"].root[n])),
        **took,
        "runs": str(lines["COCI"].runs),
    }


def draw_laws(axes: Any, x: Any, laws: Mapping[str, Law], at: Any, lines: Mapping[str, Sequence[Line]]) -> None:
    """The roots of both laws over x, and the means of every rule `at` its places."""
    axes.plot(x, laws["uniform"].root, color="#888888", lw=1.2, label="law of uniform: with $H_U$")
    axes.plot(x, laws["COCI"].root, "k-", lw=1.2, label=r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$")
    for style, (rule, row) in enumerate(lines.items()):
        points(axes, at, row, rule, style)
