"""Fixed budgets and regret on linear bandits against NumPy, which receives the pulls of rules that draw theirs."""

import functools

import jax
import numpy as np
from transcriptions.draws import normals
from transcriptions.laid import KEY, Laid, after, replayed, traced, unless, until_the_end

from experiments.bench.reference import linear_budget as reference
from jaxbandits import Tape, linear
from jaxbandits.linear import Allocation, Pull
from jaxbandits.numerics.design import design
from jaxbandits.testing import round_keys

STEPS, K, ROUNDS = 60, 6, 12


def instance_of(seed, d=3):
    return linear.sphere(seed, K, d, 0.3)


@functools.cache
def apart_of(seed):
    """Builds a function from a set of arms to its design, with one program for all sets."""
    arms = np.asarray(instance_of(seed).arms)
    first, second = np.triu_indices(K, 1)
    pairs = np.asarray(linear.pair_directions(arms))
    solve = jax.jit(lambda weights: design(arms, pairs, weights=weights, steps=STEPS))

    @functools.cache
    def of(remaining):
        solved = solve((np.isin(first, remaining) & np.isin(second, remaining)).astype(float))
        return np.asarray(solved.allocation), float(solved.value)

    return lambda remaining: of(tuple(sorted(remaining)))


def rewards_of(instance, seed):
    arms, theta = np.asarray(instance.arms), np.asarray(instance.theta)

    def rewards(phase, counts):
        return counts * (arms @ theta) + np.sqrt(counts) * np.random.default_rng([seed, phase]).normal(size=K)

    return rewards


def theta_of(state):
    return state.theta, state.members


def phases(factory, seed, horizon, *, d=3):
    instance = instance_of(seed, d)
    arms, rewards = np.asarray(instance.arms), rewards_of(instance, seed)
    if factory is linear.peace:
        course = reference.peace(arms, horizon, rewards, apart_of(seed))
    else:
        course = reference.od_linbai(arms, horizon, rewards, steps=STEPS)
    rounds = len(course) + 1
    members = np.array([np.isin(np.arange(K), phase.active) for phase in course])
    answers = [max(phase.active, key=lambda k, theta=phase.theta: arms[k] @ theta) for phase in course]
    if factory is linear.peace and members[-1].sum() > 1 and len(members) > 1:
        # The last phase drops no arm, and the reference does not return the arms after it.
        members[-1] = members[-2]
    theirs = Tape(
        actions=Allocation(until_the_end([phase.counts for phase in course])),
        observations=until_the_end([rewards(n, phase.counts) for n, phase in enumerate(course)]),
        stops=np.arange(rounds) == rounds - 1,
        answers=after(answers),
        watched=(after([phase.theta for phase in course]), after(members)),
    )
    build = functools.partial(factory, arms, horizon=horizon, design_steps=STEPS)
    return Laid(theirs, replayed(build, theirs, watch=theta_of), tolerance=1e-8, absolute_tolerance=1e-10)


def shares_of(state):
    return state.shares, state.estimates


def one_draw(seed=0, horizon=90):
    instance = instance_of(seed)
    arms = np.asarray(instance.arms)
    algorithm = linear.g_bai(arms, horizon=horizon, design_steps=STEPS)
    ours = traced(
        lambda: (algorithm, linear.environment(instance, algorithm)),
        2,
    )
    counts, sums = ours.actions.counts[0], ours.observations[0]
    assert counts.sum() == horizon
    w = np.asarray(design(arms, arms, steps=STEPS).allocation)
    theta = np.linalg.inv(arms.T @ np.diag(w) @ arms) @ (arms.T @ sums) / horizon
    theirs = Tape(
        actions=Allocation(np.array([counts, 0 * counts])),
        observations=np.array([sums, 0 * sums]),
        stops=np.array([False, True]),
        answers=after([np.argmax(arms @ theta)]),
        watched=(),
    )
    return Laid(theirs, ours)


def batches(seed, horizon=90):
    instance = instance_of(seed)
    arms, apart = np.asarray(instance.arms), apart_of(seed)
    algorithm = linear.p1_rage(arms, horizon=horizon, design_steps=STEPS)
    ours = traced(
        lambda: (algorithm, linear.environment(instance, algorithm)),
        ROUNDS,
        watch=shares_of,
    )
    batches_of_pulls = [(c, s) for c, s in zip(ours.actions.counts, ours.observations, strict=True) if c.sum()]
    first = np.asarray(design(arms, arms, steps=STEPS).allocation)
    course = reference.p1_rage(arms, horizon, batches_of_pulls, apart, first)
    rounds = len(course)
    assert rounds > 3
    assert sum(batch.n for batch in course) == horizon
    # The last design is not computed, because nothing is pulled by it.
    shares = np.array([batch.shares for batch in course])
    theirs = Tape(
        actions=Allocation(until_the_end([counts for counts, _ in batches_of_pulls])),
        observations=until_the_end([sums for _, sums in batches_of_pulls]),
        stops=np.arange(rounds) == rounds - 1,
        answers=unless(np.arange(rounds) == 0, [np.argmax(arms @ batch.estimates) for batch in course]),
        watched=(unless(np.arange(rounds) == rounds - 1, shares), np.array([batch.estimates for batch in course])),
    )
    cut = jax.tree.map(lambda x: x[:rounds], ours)
    # The design's many steps amplify the rounding in which batched and single matrices differ.
    return Laid(theirs, cut, tolerance=1e-6, absolute_tolerance=1e-10)


LENGTH = 300
SETTINGS = {"delta": 0.1, "norm_bound": 1.2, "ridge": 0.7, "noise_scale": 0.5}


@functools.cache
def drawn_normals():
    return normals(round_keys(KEY, LENGTH), 3)


def regret(factory, seed, **settings):
    instance = instance_of(seed)
    arms = np.asarray(instance.arms)
    tape = (arms @ np.asarray(instance.theta))[:, None] + 0.5 * np.random.default_rng(seed).normal(size=(K, LENGTH))
    if factory is linear.lin_ts:
        index = reference.lin_ts(arms, drawn_normals(), **SETTINGS, **settings)
    else:
        index = reference.lin_ucb(arms, **SETTINGS)
    course = reference.regret(arms, tape, ridge=SETTINGS["ridge"], index=index, rounds=LENGTH)
    pulled, answers = np.array(course).T
    assert len(set(pulled)) > 2
    counts, observed = np.zeros(K, int), np.zeros(LENGTH)
    for t, arm in enumerate(pulled):
        observed[t] = tape[arm, counts[arm]]
        counts[arm] += 1
    theirs = Tape(Pull(pulled, np.ones(LENGTH, int)), observed, np.zeros(LENGTH, bool), answers)
    given = SETTINGS
    if factory is linear.lin_ts:
        proved = linear.Proved(given["delta"], given["norm_bound"], settings.get("horizon"))
        width = proved if settings["scale"] is None else linear.Posterior(settings["scale"])
        given = {"width": width, "ridge": given["ridge"], "noise_scale": given["noise_scale"]}
    return Laid(theirs, replayed(functools.partial(factory, arms, **given), theirs))


CASES = {
    "g_bai": one_draw,
    "od_linbai, 3": lambda: phases(linear.od_linbai, 0, 97),
    "od_linbai, 5": lambda: phases(linear.od_linbai, 2, 131, d=5),
    "peace": lambda: phases(linear.peace, 0, 97),
    "peace, short": lambda: phases(linear.peace, 1, 16),
    "p1_rage": lambda: batches(0),
    "p1_rage, short": lambda: batches(1, 23),
    "lin_ucb": lambda: regret(linear.lin_ucb, 0),
    "lin_ts": lambda: regret(linear.lin_ts, 1, horizon=LENGTH, scale=None),
    "lin_ts, scale": lambda: regret(linear.lin_ts, 2, horizon=LENGTH, scale=1.0),
}
