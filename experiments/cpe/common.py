"""What the experiments on combinatorial pure exploration share: rules side by side on the same samples."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import all_of, column
from experiments.figures import points
from experiments.report import Claim, Line, number, plus_minus
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Record, cpe
from jaxbandits.base import Algorithm, Array, Key, Outcome, Status
from jaxbandits.cpe import Instance
from jaxbandits.cpe._estimate import estimate, squared_radius

DELTA = 0.1
LEAP = 32  # pulls of a round at most; it changes nothing but the time
RULES = {"COCI": cpe.coci, "uniform": cpe.uniform, "CLUCB": cpe.clucb}
ESTIMATORS = {1: "mean", 2: "variance"}  # of tau
# The law and the bound of many hardnesses or deltas at once.
laws_at = jnp.vectorize(cpe.implicit_time, excluded=(1, 2, 4))
bounds_at = jnp.vectorize(cpe.theorem1_bound, excluded=(1, 2))

Task = dict[str, Any]
Adapt = Callable[[Algorithm, Task], Algorithm]


def refuses(rule: str, instance: Instance) -> bool:
    """CLUCB is for 0/1 decisions that are linear in means."""
    problem = instance.problem
    if isinstance(problem, cpe.Table):
        is_binary = problem.coef.shape[1] == 1
    else:
        is_binary = isinstance(problem, (cpe.Enumerated, cpe.Graphic))
    return rule == "CLUCB" and not (is_binary and instance.tau == 1)


def best_arm_instance(theta: Sequence[float]) -> Instance:
    return cpe.instance(cpe.best_arm(len(theta)), cpe.bernoulli(theta))


def without_noise(instance: Instance) -> Instance:
    """Every sample is theta: the estimates of means are exact from the first one on."""
    values = jnp.broadcast_to(instance.theta[:, None], instance.arms.low.shape)
    return instance._replace(arms=instance.arms._replace(low=values, high=values))


def runs(
    heading: str,
    instances: Instance | Sequence[Instance],
    rule: str,
    *,
    options: Settings,
    replicates: int | Sequence[int],
    settings: Mapping[str, Sequence[float]] | None = None,
    label: str | None = None,
    leap: int = LEAP,
    max_rounds: int = 2**30,
    adapt: Adapt | None = None,
    curves: Callable[[Task], Record] | None = None,
    metrics: Callable[[Task, Outcome], dict[str, Array]] | None = None,
    fixed: Mapping[str, Any] | None = None,
    **simulated: Any,
) -> jaxbandits.Results:
    """Runs of a rule that see the same samples as all others under the same heading.

    Sample s of arm i is a function of the heading, the replicate, i and s: neither the rule, nor the setting, nor the
    leap, nor the dtype changes it.

    Args:
        heading: names the samples; with the label it is unique to these runs.
        instances: one, or several of one problem, whose arms differ.
        rule: one of `RULES`.
        options: of the command line.
        replicates: runs of each instance and setting, one number or one for each instance.
        settings: numbers that the rule takes, all of one length, delta if need be. The table of tasks has a row for
            each setting, instance and replicate, in this order.
        label: of these runs under the heading; by default the rule.
        leap: pulls of a round at most; CLUCB has one.
        max_rounds: the budget of a run, in rounds.
        adapt: puts something around the algorithm, whose state keeps the field `statistics`. A task has `arms`,
            `theta`, `settings`, `instance` (a number) and `replicate`.
        curves: what to record of a run on its way, of a task.
        metrics: further columns, as for a sweep.
        fixed: what the rule takes besides, the same in all runs.
        simulated: for `simulate`.

    Returns:
        Results with, a run, whether it stopped with the best decision (`right`), the pulls of every arm (`counts`), its
        `replicate`, `instance` and settings. T is `pulls`.
    """
    instances = [instances] if isinstance(instances, Instance) else list(instances)
    problem, tau = instances[0].problem, instances[0].tau
    replicates = np.broadcast_to(np.asarray(replicates), len(instances))
    settings = {"delta": [DELTA]} | dict(settings or {})
    count = max(map(len, settings.values()))
    settings = {name: np.broadcast_to(np.asarray(values, float), count) for name, values in settings.items()}
    setting, instance, replicate = np.indices((count, len(instances), replicates.max())).reshape(3, -1)
    setting, instance, replicate = np.stack([setting, instance, replicate])[:, replicate < replicates[instance]]

    factory, slots = RULES[rule], 1 if rule == "CLUCB" else leap
    common = {"observations": "binary" if all(is_binary(case.arms) for case in instances) else "unit"}
    if rule != "CLUCB":
        common |= {"estimator": ESTIMATORS[tau], "leap": leap}
    common |= dict(fixed or {})
    samples = zlib.crc32(heading.encode())

    def build(task: Task, key: Key) -> tuple[Any, ...]:
        del key  # it is the run's own, and the rules must share their samples
        algorithm = jaxbandits.numbered(factory(problem, **common, **task["settings"]))
        stream = jax.random.fold_in(jax.random.key(samples), task["replicate"])
        environment = cpe.environment(instances[0]._replace(arms=task["arms"]), leap=slots, stream=stream)
        algorithm = adapt(algorithm, task) if adapt else algorithm
        return (algorithm, environment, curves(task)) if curves else (algorithm, environment)

    def judged(task: Task, outcome: Outcome) -> dict[str, Array]:
        best = cpe.is_right(instances[0]._replace(theta=task["theta"]), outcome.answer)
        further = metrics(task, outcome) if metrics else {}
        return {"right": best & (outcome.status == Status.STOPPED), "counts": outcome.state.statistics.counts} | further

    dtype = instances[0].theta.dtype
    tasks = {
        "arms": jax.tree.map(lambda *parts: jnp.stack(parts)[instance], *(case.arms for case in instances)),
        "theta": jnp.stack([case.theta for case in instances])[instance],
        "settings": {name: jnp.asarray(values, dtype)[setting] for name, values in settings.items()},
        "instance": jnp.asarray(instance, jnp.int32),
        "replicate": jnp.asarray(replicate, jnp.int32),
    }
    results = simulate(
        f"{heading}: {label or rule}",
        build,
        tasks,
        options=options,
        seeds=1,
        max_rounds=max_rounds,
        metrics=judged,
        **simulated,
    )
    known = {"replicate": replicate, "instance": instance} | {name: v[setting] for name, v in settings.items()}
    return results._replace(columns=results.columns | known)


def is_binary(arms: cpe.Arms) -> bool:
    return bool(np.all(np.equal(arms.low, arms.high) & np.isin(arms.low, (0, 1))))


# Whether xi holds


def xi(task: Task, *, tau: int) -> Record:
    """Watches whether theta stays in the box, before it is cut to [0, 1]: `runs(curves=partial(xi, tau=1), leap=1)`."""

    def is_out(state: Any) -> Array:
        counts, theta = state.statistics.counts, task["theta"]
        n = jnp.maximum(state.pulls, 1).astype(theta.dtype)
        squared = squared_radius(n, tau=tau, **task["settings"])
        off = jnp.abs(estimate(state.statistics, ESTIMATORS[tau]) - theta)
        is_far = jnp.any(off > jnp.sqrt(squared / jnp.maximum(counts, tau).astype(theta.dtype)))
        return jnp.all(counts >= tau) & is_far

    return jaxbandits.record(
        at=[2**30],  # the end
        value=lambda state, decision: {"out": is_out(state)},
        total=lambda state, decision, observation: {"out_before": is_out(state)},
    )


def was_inside(task: Task, outcome: Outcome) -> dict[str, Array]:
    """The column of `xi`: whether it held in every round."""
    del task
    return {"inside": ~outcome.curves["out"][0] & (outcome.curves["out_before"][0] == 0)}


# The laws


class Law(NamedTuple):
    """What theory says of an instance."""

    radii: np.ndarray  # (m,)   Lambda
    H: float
    H_U: float
    coci: float  # root of T = m + H/2 ln(4 T^3 / (tau delta)), the pulls of COCI
    uniform: float  # with H_U, those of uniform sampling
    bound: float  # Theorem 1
    bound_uniform: float  # Theorem 4

    def of(self, rule: str) -> float:
        """The pulls that COCI's or uniform sampling's law says."""
        return self.coci if rule == "COCI" else self.uniform

    def bound_of(self, rule: str) -> float:
        """The bound of COCI or of uniform sampling."""
        return self.bound if rule == "COCI" else self.bound_uniform


def laws(instances: Instance | Sequence[Instance], *, delta: float = DELTA) -> list[Law]:
    """Hardness, the implicit law, and the bounds of the paper, for instances of one problem."""
    instances = [instances] if isinstance(instances, Instance) else instances
    problem, tau, m = instances[0].problem, instances[0].tau, len(instances[0].theta)

    def compute(theta: Array) -> Law:
        radii = cpe.consistent_radius(problem, theta)
        H, H_U = cpe.hardness(radii), cpe.uniform_hardness(radii)
        roots = (cpe.implicit_time(h, m, tau, delta, 0.5) for h in (H, H_U))
        return Law(radii, H, H_U, *roots, *(cpe.theorem1_bound(h, m, tau, delta) for h in (H, H_U)))

    found = jax.tree.map(np.asarray, jax.jit(jax.vmap(compute))(jnp.stack([case.theta for case in instances])))
    return [Law(radii, *map(float, numbers)) for radii, *numbers in zip(*found, strict=True)]


# Claims


def all_right(sweeps: Sequence[jaxbandits.Results]) -> Claim:
    """Whether every run stopped with the best decision."""
    return all_of("every run stops with the best decision", column(sweeps, "right"))


def twins_agree(ours: jaxbandits.Results, theirs: jaxbandits.Results, names: Sequence[str]) -> np.ndarray:
    """Which runs stopped in both sweeps with the same values in these columns, bool (runs,)."""
    a, b = ours.columns, theirs.columns
    agree = (a["status"] == Status.STOPPED) & (b["status"] == Status.STOPPED)
    for name in names:
        agree &= (a[name] == b[name]).reshape(len(agree), -1).all(axis=1)
    return agree


# How it is shown


def cells(law: Law, lines: Mapping[str, Line]) -> dict[str, str]:
    """Of a table: what theory says, and what every rule took."""
    return {
        "Theorem 1": number(round(law.bound)),
        "law": number(round(law.coci)),
        "COCI": plus_minus(lines["COCI"]),
        "law, uniform": number(round(law.uniform)),
        **{rule: plus_minus(line) for rule, line in lines.items() if rule != "COCI"},
        "runs": str(lines["COCI"].runs),
    }


def draw_laws(axes: Any, x: Any, coci: Any, uniform: Any, at: Any, lines: Mapping[str, Sequence[Line]]) -> None:
    """Both laws over x, and the means of every rule `at` its places."""
    axes.plot(x, uniform, color="#888888", lw=1.2, label="law of uniform: with $H_U$")
    axes.plot(x, coci, "k-", lw=1.2, label=r"law of COCI: $T = m + \frac{H}{2}\,\ln(4 T^3/\delta)$")
    for style, (rule, row) in enumerate(lines.items()):
        points(axes, at, row, rule, style)
