"""Shared parts of the experiments on independent arms: rules, their sweeps, and claims on confidence."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import jaxbandits
from experiments.claims import allowed, interval
from experiments.report import Claim, Columns
from experiments.settings import Settings
from experiments.simulate import simulate
from jaxbandits import Results, Status, mab
from jaxbandits.base import Algorithm, Array, Decision, Environment, Key, Outcome, PyTree

DELTA = 0.1
LONGEST = 300_000  # rounds after which a run is censored: greedy rules may never stop
FALSE_ALARM = 1e-6  # all tables together test some hundred cells


RULES: dict[str, Callable[..., Algorithm]] = {  # (problem, *, delta) -> Algorithm
    "uniform": mab.uniform,
    "TaS, D": mab.tas,
    "TaS, C": partial(mab.tas, tracking="C"),
    "TTTS": mab.ttts,
    "T3C": mab.t3c,
    "TTUCB": mab.ttucb,
    "EB-TC": mab.eb_tc,
    "EB-TCI": mab.eb_tci,
    "LUCB": mab.lucb,
    "KL-LUCB": mab.kl_lucb,
    "UGapE": mab.ugape,
    "elimination": mab.successive_elimination,
    "lil'UCB": mab.lil_ucb,
}
TOP_TWO = ("T3C", "TTUCB", "EB-TCI")  # rules with a share of the leader that are known to stop


def runs(
    name: str,
    instance: mab.Instance,
    rules: str | Iterable[str],
    *,
    options: Settings,
    seeds: int,
    delta: float | Sequence[float] = DELTA,
    marks: Sequence[int] = (),
    epsilon: float = 0.0,
    longest: int = LONGEST,
    paired: bool = True,
    **settings: Any,
) -> Results:
    """Runs one rule on one instance, with a row for every delta; or several, whose results have a column `rule`.

    With `paired`, all rules under one name receive the same rewards, by streams that make a round of Gaussian arms some
    twenty times slower. Otherwise every sweep has its own noise. Columns: `wrong` (the answer is not epsilon-best),
    `counts` (K,), and with marks `curve.wrong`.
    """
    is_one = isinstance(rules, str)
    heading = f"{name}{f': {rules}' * is_one}{''.join(f', {key} {show(value)}' for key, value in settings.items())}"

    def is_wrong(answer: Any) -> Any:
        return ~mab.is_right(instance, answer, epsilon=epsilon)

    def build(task: Any, key: Any, rule: Any = rules) -> tuple:
        arguments = settings | ({"epsilon": epsilon} if epsilon else {})
        algorithm = RULES[rule](instance.problem, delta=task["delta"], **arguments)
        made = algorithm, mab.environment(instance, algorithm, stream=key if paired else None)
        return (*made, jaxbandits.record(at=marks, value=watch)) if marks else made

    def watch(state: Any, decision: Decision) -> dict[str, Any]:
        return {"wrong": is_wrong(decision.answer)}

    def metrics(task: Any, outcome: Outcome) -> dict[str, Any]:
        return {"wrong": is_wrong(outcome.answer), "counts": outcome.state.counts}

    return simulate(
        heading,
        build if is_one else {rule: partial(build, rule=rule) for rule in rules},
        jaxbandits.grid(delta=np.atleast_1d(np.asarray(delta, float))),
        options=options,
        seeds=seeds,
        max_rounds=longest,
        noise=name if paired else None,
        metrics=metrics,
    )


def show(value: Any) -> str:
    """Formats a setting for the name of its sweep."""
    return getattr(value, "__name__", str(value))


class Counted(NamedTuple):
    """Memory of an environment that counts what is asked of it."""

    counts: Array  # int32 (K,)   pulls of every arm
    arms: Array  # int32 (slots,)   arms of the last round
    switches: Array  # int32 ()   rounds with other arms than the round before
    inner: PyTree  # memory of the environment that answers


def counted(environment: Environment, algorithm: Algorithm, arms: int) -> Environment:
    """Returns the environment with two more columns in its results.

    `counts` are all pulls of each arm, observed or not; `switches` the rounds with other arms than the round before.
    """
    available = environment.available

    def init(key: Key) -> Counted:
        zero = jnp.zeros((), jnp.int32)
        return Counted(jnp.zeros(arms, jnp.int32), jnp.full_like(algorithm.idle.arms, -1), zero, environment.init(key))

    def respond(memory: Counted, action: mab.Pull, noise: PyTree) -> tuple[PyTree, Counted]:
        observation, inner = environment.respond(memory.inner, action, noise)
        moves = jnp.any(action.times > 0)
        changes = moves & jnp.any(action.arms != memory.arms) & jnp.any(memory.counts > 0)
        return observation, Counted(
            memory.counts.at[action.arms].add(action.times),
            jnp.where(moves, action.arms, memory.arms),
            memory.switches + changes.astype(jnp.int32),
            inner,
        )

    return environment._replace(
        init=init,
        respond=respond,
        available=None if available is None else lambda memory, action: available(memory.inner, action),
        columns=lambda memory: {"counts": memory.counts, "switches": memory.switches},
    )


def bound(instance: mab.Instance, delta: float = DELTA) -> float:
    """Computes T* kl(delta, 1 - delta), a lower bound for every rule of error probability delta."""
    return float(time_of(instance)) * (1 - 2 * delta) * float(np.log((1 - delta) / delta))


def time_of(instance: mab.Instance, **settings: Any) -> np.ndarray:
    """Computes T* of an instance; refuses one without a unique best arm."""
    time = np.asarray(mab.characteristic_time(instance.problem, instance.means, **settings).value)
    if not np.isfinite(time):
        raise ValueError(f"instance must have a unique best arm, got means {np.asarray(instance.means).tolist()}")
    return time


def gk16(pulls: Any, delta: Any = DELTA) -> np.ndarray:
    """Computes gk16, the threshold of most runs here, after `pulls` pulls."""
    return np.log((1 + np.log(pulls)) / delta)


def stopped(columns: Columns) -> np.ndarray:
    """Returns a mask of the runs that stopped by themselves."""
    return columns["status"] == Status.STOPPED


def confident(counts: Mapping[str, tuple[int, int]], delta: float = DELTA) -> Claim:
    """Claims that error counts of several sweeps, each (wrong, stopped), are all compatible with delta."""
    worst = max(counts, key=lambda name: counts[name][0] / max(counts[name][1], 1))
    wrong, ended = counts[worst]
    return Claim(
        f"a share of at most delta = {delta:g} of the answers is wrong, in each of {len(counts)} sweeps",
        f"at most {wrong} of {ended} ({worst}), 95 % interval {interval(wrong, ended)}",
        all(ended > 0 and wrong <= allowed(ended, delta, false_alarm=FALSE_ALARM) for wrong, ended in counts.values()),
    )


def geometric(first: float, last: float, n: int) -> tuple[int, ...]:
    """Returns marks that are evenly spaced on a logarithmic axis."""
    return tuple(int(x) for x in np.unique(np.round(np.geomspace(first, last, n))))


def gaps(instance: mab.Instance) -> jnp.ndarray:
    """Returns the gap of every arm, the regret of one pull."""
    return jnp.max(instance.means) - instance.means
