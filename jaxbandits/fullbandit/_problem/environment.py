"""Action of all algorithms of this family, and the environment that answers it."""

import math
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits import checks
from jaxbandits.base import Algorithm, Array, Environment, Key, memoryless
from jaxbandits.checks import is_concrete, known, require
from jaxbandits.fullbandit._problem.design import Design, check_design
from jaxbandits.fullbandit._problem.instances import Instance, check_instance
from jaxbandits.numerics.brownian import increment
from jaxbandits.numerics.normal import normal_noise
from jaxbandits.streams import key_of

Noise = Literal["gaussian", "bernoulli", "bernoulli_normal", "replay"]


class Pulls(NamedTuple):
    """Action: pulls super-arm i of the design `counts[i]` times. The observation is the sums of rewards, float (s,)."""

    counts: Array  # int (s,)


def environment(
    instance: Instance,
    algorithm: Algorithm | Design,
    *,
    noise: Noise = "gaussian",
    stream: Key | None = None,
) -> Environment:
    """Pays the sum of the rewards of all pulls of a super-arm in one number, exact in law for any number of pulls.

    Args:
        instance: the truth.
        algorithm: the algorithm that will pull, or a design for an algorithm of your own. The super-arms of its design
            can be pulled, and observations have the design's dtype.
        noise: "gaussian": every arm of every pull has normal noise of its own, of the instance's noise_scale.
            "bernoulli": the reward of an arm is 1 with probability theta, otherwise 0; each arm of each super-arm draws
            one binomial variable. "bernoulli_normal" draws the normal variable of the same mean and variance. On
            crowdsourced quizzes it made no difference to stopping times (60 runs each: 50.60 +- 0.03 and 50.59 +- 0.03
            million pulls of ICB). "replay": a pull draws one of the questions of the instance, as `from_answers` makes
            it, and pays the number of right answers of its workers. Its means are as for "bernoulli", but the noise of
            the arms is correlated, because a question that is hard for one worker is hard for another. Only "gaussian"
            uses noise_scale.
        stream: a key. If None, noise is fresh in every round. With a key, the n-th pull of super-arm i of the design
            pays the same to any algorithm, alone or with other pulls. Normal sums are differences of one Brownian path
            (`numerics.brownian`), for up to 2^31 pulls of each super-arm. Binomial sums and replays are refused.

    Returns:
        Environment for any action with `counts` int (s,), such as `Pulls`. Its observation is float (s,), exactly 0 for
        super-arms that are not pulled. Its noise is standard normal (s,), or the round's key for "bernoulli" and
        "replay"; with a stream nothing. Its memory is (), with a stream the number of pulls of each super-arm, int
        (s,). Cost per round: O(s); with "bernoulli" s k binomial variables, with "replay" s Q, of O(1) each; with a
        stream 64 s normal variables.

    Raises:
        ValueError: the algorithm has no design in its problem, the instance does not fit the design, its means leave
            [0, 1] (both "bernoulli" laws), it holds no answers ("replay"), `stream` is no key or is given for binomial
            sums or replays, or sums are binomial while `jax_enable_x64` is off: in 32 bit JAX's binomial sampler is
            wrong for large counts (10^7 trials at 0.51 gave a variance 6 per cent too low).

    Source: Kuroki, Xu, Miyauchi, Honda and Sugiyama (2020), section 5; "replay" is ours.
    """
    support, k = _superarms(algorithm)
    theta = check_instance(instance)
    s, n = support.shape
    checks.one_size(**{"instance.theta": (theta.size, theta), "design": (n, support)})
    checks.one_size(**{"instance.k": (instance.k, instance.k), "design.k": (k, k)})
    checks.one_of("noise", noise, Noise)
    if noise in ("bernoulli", "bernoulli_normal"):
        checks.array("instance.theta", instance.theta, (n,), least=0, most=1)
    if noise == "replay":
        _check_answers(instance, n)
    is_normal = noise in ("gaussian", "bernoulli_normal")
    if stream is not None:
        checks.key("stream", stream)
        require(is_normal, "stream", "be None for binomial sums and replays, which cannot be shared", stream)
    if not is_normal:
        has_64_bit = jnp.result_type(float) == jnp.float64
        require(has_64_bit, "jax_enable_x64", "be on for binomial sums", has_64_bit)
        return _replay(instance, support) if noise == "replay" else _bernoulli(instance, support)

    dtype = support.dtype
    theta = theta.astype(dtype)
    if noise == "gaussian":
        deviations = jnp.asarray(instance.noise_scale, dtype) * math.sqrt(instance.k)
    else:
        # A traced theta could not be checked above: a number without a distribution must not pass for a reward.
        lawful = (theta >= 0) & (theta <= 1)
        deviations = jnp.sqrt(_sums(support, jnp.where(lawful, theta * (1 - theta), jnp.nan)))
    means = _sums(support, theta)

    def respond(action: Pulls, noise: Array) -> Array:
        counts = action.counts.astype(dtype)
        return counts * means + jnp.sqrt(counts) * deviations * noise

    if stream is not None:

        def respond_stream(before: Array, action: Pulls, noise: tuple[()]) -> tuple[Array, Array]:
            del noise
            walk = partial(increment, dtype=dtype)
            noise_sums = jax.vmap(walk)(jax.vmap(partial(key_of, stream))(jnp.arange(s)), before, action.counts)
            sums = action.counts.astype(dtype) * means + deviations * noise_sums
            return sums, before + action.counts.astype(before.dtype)

        return _answering(
            support, k, Environment(lambda key: jnp.zeros(s, int), lambda key: (), respond_stream, stream)
        )

    return _answering(support, k, memoryless(lambda key: normal_noise(key, (s,), dtype), respond))


def design_fields(design: Design) -> dict[str, Any]:
    """Returns the fields `problem` and `receive` of an algorithm that pulls the super-arms of a design."""
    return {"problem": lambda: _problem(design.support, design.k), "receive": partial(_receive, design)}


def _problem(support: Array, k: int) -> dict[str, Any]:
    return {"design.support": support, "design.k": k}


def _superarms(algorithm: Algorithm | Design) -> tuple[Array, int]:
    """Returns the super-arms that an algorithm pulls, and the number of arms in each; raises `ValueError` without."""
    if isinstance(algorithm, Design):
        check_design(algorithm)
        return algorithm.support, algorithm.k
    checks.instance("algorithm", algorithm, (Algorithm, Design))
    declared = {} if algorithm.problem is None else algorithm.problem()
    if not {"design.support", "design.k"} <= declared.keys():
        names = ", ".join(declared) or "nothing"
        raise ValueError(f"algorithm must have a design in its problem, got {names}. Give the environment a design")
    return declared["design.support"], declared["design.k"]


def _receive(design: Design, action: Any, sums: Any) -> Array:
    """Returns the sums as an array; raises `ValueError` unless the action can have this observation."""
    sums = checks.numbers("observation", sums, (design.support.shape[0],), design.support.dtype)
    require((known(action.counts) > 0) | (known(sums) == 0), "observation", "be 0 where nothing was pulled", sums)
    return sums


def _answering(support: Array, k: int, environment: Environment) -> Environment:
    """Returns the environment of a design, which refuses counts that are known to be below 0."""

    def accepts(action: Any) -> Array:
        return jnp.all(action.counts >= 0)

    def admits(answer: Any) -> Array:
        return jnp.sum(answer, dtype=jnp.int32) == k

    def respond_checked(memory: Any, action: Any, noise: Any) -> tuple[Array, Any]:
        checks.domain(action, accepts, "pull every super-arm at least 0 times")
        return environment.respond(memory, action, noise)

    problem = partial(_problem, support, k)
    return environment._replace(
        respond=respond_checked,
        problem=problem,
        accepts=accepts,
        admits=admits,
        pulls=lambda action: jnp.sum(action.counts),
    )


def _bernoulli(instance: Instance, support: Array) -> Environment:
    # On the host if the support is known: XLA would sort a constant at compile time, which is slow.
    rows, xp = (np.asarray(support), np) if is_concrete(support) else (support, jnp)
    members = xp.argsort(-rows, axis=1, stable=True)[:, : instance.k]
    probability = jnp.asarray(instance.theta, jnp.float64)[members]

    def respond(action: Pulls, noise: Key) -> Array:
        trials = action.counts.astype(jnp.float64)[:, None]
        return jax.random.binomial(noise, trials, probability).sum(axis=1).astype(support.dtype)

    return _answering(support, instance.k, memoryless(lambda key: key, respond))


def _replay(instance: Instance, support: Array) -> Environment:
    answers = jnp.asarray(instance.correct, jnp.float64)
    scores = jnp.matmul(support.astype(jnp.float64), answers.T, precision="highest")
    probability = jnp.full(scores.shape, 1 / answers.shape[0])

    def respond(action: Pulls, noise: Key) -> Array:
        drawn = jax.random.multinomial(noise, action.counts.astype(jnp.float64), probability)
        return (drawn * scores).sum(axis=1).astype(support.dtype)

    return _answering(support, instance.k, memoryless(lambda key: key, respond))


def _check_answers(instance: Instance, n: int) -> None:
    if instance.correct is None:
        raise ValueError("instance.correct must hold the answers to be replayed, see from_answers, got None")
    checks.array("instance.correct", instance.correct, ("Q", n), kind="bool")


def _sums(support: Array, values: Array) -> Array:
    return jnp.matmul(support, values, precision="highest")
