"""The kernel bandits against NumPy: what is known is compared too, after every round."""

import functools
from functools import partial

import jax.numpy as jnp
import numpy as np
from transcriptions.laid import Laid, after, replayed, unless, until_the_end

from experiments.bench.reference import kernel_approx, kernel_bpe, kernel_duets, kernel_ucb
from experiments.bench.reference.kernel_ucb import AGENTS, KERNEL, NOISE_VARIANCE, instance
from jaxbandits import Tape, kernel
from jaxbandits.numerics.gp import cross

HORIZON = 20
SCHEDULE = np.linspace(0.5, 2.0, HORIZON)


@functools.cache
def maker(factory, kernel_of, **static):
    """Returns `build` as a function of all numbers, one for each choice of the static arguments."""

    def build(candidates, numbers):
        numbers = dict(numbers)
        scale = numbers.pop("lengthscale", None)
        of = kernel_of if scale is None else kernel_of(scale)
        return factory(candidates, kernel=of, **static, **numbers)

    return build


def observed(rewards, actions):
    """Returns the observations of every round and agent, (T, N)."""
    return np.take_along_axis(np.asarray(rewards), np.asarray(actions)[..., None], axis=2)[..., 0]


def written(actions, rewards, answers, watched):
    """Rounds, and the state and the answer after each, as a tape; the last state stops."""
    rounds = len(actions) + 1
    return Tape(
        actions=unless(np.arange(rounds) == rounds - 1, until_the_end(actions)),
        observations=until_the_end(observed(rewards, actions)),
        stops=np.arange(rounds) == rounds - 1,
        answers=after(answers),
        watched=(*map(after, watched), np.arange(rounds), np.arange(rounds) * np.shape(actions)[1]),
    )


def field(rounds, names):
    """Returns the fields of these names, as lists over rounds."""
    return [[getattr(each, name) for each in rounds] for name in names.split(", ")]


# Upper confidence bounds


def alone(state):
    posterior = state.posterior
    return posterior.mean, posterior.variance, posterior.log_det, *state.traffic, state.t, state.pulls


def n_kernel_ucb(size, beta, with_gram):
    candidates, gram, rewards, coins = instance(1, size, horizon=HORIZON)
    rounds = kernel_ucb.n_kernel_ucb(gram, rewards, coins.queries, beta=beta, noise_variance=NOISE_VARIANCE)
    watched = field(rounds, "mean, variance, log_det, uplink, downlink")
    theirs = written([each.action for each in rounds], rewards, [each.answer for each in rounds], watched)
    numbers = {"coins": coins, "beta": np.broadcast_to(beta, HORIZON), "noise_variance": NOISE_VARIANCE}
    numbers |= {"gram": gram} if with_gram else {}
    build = maker(kernel.n_kernel_ucb, KERNEL, n_agents=AGENTS, horizon=HORIZON)
    memory = build(candidates, numbers).init(None).memory
    assert memory.shape == (AGENTS, min(HORIZON, size), size)
    return Laid(theirs, replayed(build, theirs, candidates, numbers, watch=alone), absolute_tolerance=1e-9)


CONFIDENT = partial(kernel.gp_ucb, beta=lambda t, log_det: 0.3 + 0.05 * t.astype(float) + 0.02 * log_det)


def gp_ucb(size, is_confident):
    candidates, gram, rewards, coins = instance(1, size, horizon=30, agents=1)
    beta = (lambda t, log_det: 0.3 + 0.05 * t + 0.02 * log_det) if is_confident else np.linspace(2.0, 0.5, 30)
    rounds = kernel_ucb.n_kernel_ucb(gram, rewards, coins.queries, beta=beta, noise_variance=NOISE_VARIANCE)
    assert len({int(each.action[0]) for each in rounds}) > 5
    watched = field(rounds, "mean, variance, log_det, uplink, downlink")
    theirs = written([each.action for each in rounds], rewards, [each.answer[0] for each in rounds], watched)
    numbers = {"coins": coins, "noise_variance": NOISE_VARIANCE} | ({} if is_confident else {"beta": beta})
    build = maker(CONFIDENT if is_confident else kernel.gp_ucb, KERNEL, horizon=30)
    return Laid(theirs, replayed(build, theirs, candidates, numbers, watch=alone), absolute_tolerance=1e-9)


def with_server(state):
    return state.posterior.mean, state.posterior.variance, state.synced, *state.traffic, state.t, state.pulls


def dis_kernel_ucb(size, beta, threshold, with_gram):
    candidates, gram, rewards, coins = instance(1, size, horizon=HORIZON)
    settings = {"noise_variance": NOISE_VARIANCE, "threshold": threshold}
    rounds = kernel_ucb.dis_kernel_ucb(gram, 2, rewards, coins.queries, beta=beta, **settings)
    synced = np.maximum.accumulate([t + 1 if each.synced else 0 for t, each in enumerate(rounds)])
    assert 2 <= len(set(synced)) - 1 < HORIZON - 1
    for each, last in zip(rounds, synced, strict=True):  # the agents' mean number sent, and the broadcasts
        assert each.uplink / AGENTS + each.downlink == (2 + 1) * (AGENTS + 1) * last
    mean, variance, *traffic = field(rounds, "mean, variance, uplink, downlink")
    watched = [mean, variance, synced, *traffic]
    theirs = written([each.action for each in rounds], rewards, [each.answer for each in rounds], watched)
    numbers = (
        settings | {"coins": coins, "beta": np.broadcast_to(beta, HORIZON)} | ({"gram": gram} if with_gram else {})
    )
    build = maker(kernel.dis_kernel_ucb, KERNEL, n_agents=AGENTS, horizon=HORIZON)
    return Laid(theirs, replayed(build, theirs, candidates, numbers, watch=with_server), absolute_tolerance=1e-10)


# Batches


def height(x):
    return 1 + x[0] / 4 + x[1] / 9


def uneven(x, y):
    return KERNEL(x, y) * height(x) * height(y)


def in_batches(state):
    return state.active, *state.traffic, state.t, state.pulls


def bpe(size, with_gram, keep_data):
    # Rounding would pick between candidates with equal prior variance and equally many queries.
    candidates, gram, rewards, _ = instance(1, size, horizon=30, agents=1)
    scale = np.asarray(height(candidates.T))
    gram *= scale[:, None] * scale
    settings = {"beta": 1.0, "noise_variance": NOISE_VARIANCE}
    queries = kernel_bpe.bpe(gram, rewards[:, 0], keep_data=keep_data, **settings)
    assert len(queries[-1].active) < len(queries[0].active) == size
    assert all(each.answer in each.active or each.answer == 0 for each in queries)
    active = [np.isin(np.arange(size), each.active) for each in queries]
    none = np.zeros(30)
    theirs = written(
        [[each.action] for each in queries], rewards, [each.answer for each in queries], [active, none, none]
    )
    build = maker(kernel.bpe, uneven, horizon=30, keep_data=keep_data)
    numbers = settings | ({"gram": gram} if with_gram else {})
    most = 30 if keep_data else max(kernel.batch_lengths(30))
    assert build(candidates, numbers).init(None).memory.shape == (min(most, size), size)
    return Laid(theirs, replayed(build, theirs, candidates, numbers, watch=in_batches))


# Inducing points

SIZE, T, DIMENSION = 60, 24, 2
POINTS = np.random.default_rng(0).random((SIZE, DIMENSION))
VALUES = np.sin(5 * POINTS[:, 0]) + POINTS[:, 1] ** 2


def approximate(state):
    return state.mean, state.variance, *state.traffic, state.inducing, state.t, state.pulls


def approx(seed=1, agents=4, gram=None, least=2, sizes=None, **numbers):
    rng = np.random.default_rng(seed)
    shapes = (agents, T), (agents, T), (T, agents, T)
    noise = 0.2 * rng.standard_normal((T, agents, 1))
    coins, rewards = kernel.Coins(*(rng.random(shape) for shape in shapes)), VALUES + noise
    defaults = {"beta": 0.7, "noise_variance": 0.04, "threshold": 40.0, "oversampling": 1.0, "jitter": 1e-10}
    numbers = defaults | numbers
    of = kernel.SquaredExponential(0.3)
    square = np.asarray(cross(of, jnp.asarray(POINTS), jnp.asarray(POINTS)) if gram is None else gram)
    rounds = kernel_approx.approx_dis_kernel_ucb(square, DIMENSION, rewards, coins, **numbers)
    chosen = [len(each.inducing) for each in rounds if each.inducing is not None]
    assert len(chosen) >= least
    assert sizes is None or chosen == sizes
    mean, variance, *traffic = field(rounds, "mean, variance, uplink, downlink")
    now, inducing = 0, []
    for each in rounds:
        now = len(each.inducing) if each.inducing else now
        inducing.append(now)
    watched = [mean, variance, *traffic, inducing]
    theirs = written([each.action for each in rounds], rewards, [each.answer for each in rounds], watched)
    numbers |= {"coins": coins, "beta": np.broadcast_to(numbers["beta"], T).astype(float), "lengthscale": 0.3}
    numbers |= {} if gram is None else {"gram": gram}
    build = maker(kernel.approx_dis_kernel_ucb, kernel.SquaredExponential, n_agents=agents, horizon=T)
    ours = replayed(build, theirs, POINTS, numbers, watch=approximate)
    return Laid(theirs, ours, absolute_tolerance=1e-6)


def other_gram():
    points = jnp.asarray(POINTS)
    return np.asarray(cross(kernel.Matern(0.5, nu=2.5), points, points))


# DUETS

BRANIN = 300  # candidates: a whole block of the table and a part of one
CLOSE = kernel.SquaredExponential(0.2)
RATE = kernel.log_rate(4.0)


def synchronised(state):
    sent = (*state.traffic, *state.traffic_draws)
    return state.active, state.sigma_max**2, jnp.stack([jnp.asarray(x, int) for x in sent]), state.t, state.pulls


@functools.cache
def branin():
    import jax

    return kernel.branin(jax.random.key(1), size=BRANIN)


@functools.cache
def duets_of(is_other):
    candidates = branin().candidates
    other = {"elimination": "point", "inducing_rate": RATE, "gram": cross(CLOSE, candidates, candidates)}

    def build(coins, numbers):
        settings = {"kernel": CLOSE, "n_agents": 3, "horizon": HORIZON, "noise_variance": NOISE_VARIANCE}
        return kernel.duets(candidates, coins=coins, **settings, **numbers, **(other if is_other else {}))

    return build


def duets(is_other, beta, p0, most_left, seed):
    rng = np.random.default_rng(seed)
    queries, thinning = rng.random((2, 3, HORIZON))
    coins, noise = kernel.Coins(queries, thinning, np.zeros((HORIZON, 3, HORIZON))), rng.standard_normal((HORIZON, 3))
    rewards = np.asarray(branin().values) + 0.2 * noise[..., None]
    settings = {"p0": p0} if p0 else {"probability": lambda sigma_sq, n: 4 * np.log(n) / n, "elimination": "point"}
    lengths = kernel_duets.epochs(HORIZON, 2)
    asked, records, answer = kernel_duets.duets(
        np.asarray(branin().candidates),
        lambda agent, t, candidate: rewards[t, agent, candidate],
        queries,
        thinning,
        kernel=kernel_duets.squared_exponential(0.2),
        beta=beta,
        noise_variance=NOISE_VARIANCE,
        lengths=lengths,
        **settings,
    )
    assert len(records) == 3
    before = set(range(BRANIN))
    for each in records:
        assert set(each["active"]) <= before
        assert each["answer"] in each["active"]
        before = set(each["active"])
    assert 0 < len(before) <= most_left
    # Records after the synchronisation that precedes each round; before the first, nothing is compared.
    since = np.repeat(np.arange(-1, 3), [*lengths[:3], lengths[3] + 1])
    records = [records[max(n, 0)] for n in since]
    active = [np.pad(each["active"], (0, BRANIN - len(each["active"])), constant_values=BRANIN) for each in records]
    theirs = written(asked, rewards, [answer] * HORIZON, [])._replace(
        answers=unless(since < 0, [each["answer"] for each in records]),
        watched=(
            unless(since < 0, active),
            unless(since < 0, [each["sigma_sq"] for each in records]),
            unless(since < 0, [each["sent"] for each in records]),
            np.arange(HORIZON + 1),
            3 * np.arange(HORIZON + 1),
        ),
    )
    assert records[-1]["answer"] == answer
    numbers = {"beta": beta} | ({"inducing_rate": p0} if p0 else {})
    return Laid(theirs, replayed(duets_of(is_other), theirs, coins, numbers, watch=synchronised), tolerance=1e-9)


CASES = {
    "n_kernel_ucb, 60": lambda: n_kernel_ucb(60, 1.0, False),
    "n_kernel_ucb, 60, table": lambda: n_kernel_ucb(60, SCHEDULE, True),
    "n_kernel_ucb, 12": lambda: n_kernel_ucb(12, 1.0, False),
    "n_kernel_ucb, 12, table": lambda: n_kernel_ucb(12, SCHEDULE, True),
    **{
        f"gp_ucb, {size}, {name}": partial(gp_ucb, size, name == "confidence")
        for size in (60, 20)
        for name in ("schedule", "confidence")
    },
    "dis_kernel_ucb, 70": lambda: dis_kernel_ucb(70, 1.0, 10.0, False),
    "dis_kernel_ucb, 70, often": lambda: dis_kernel_ucb(70, SCHEDULE, 3.0, False),
    "dis_kernel_ucb, 15": lambda: dis_kernel_ucb(15, 1.0, 10.0, True),
    "dis_kernel_ucb, 15, often": lambda: dis_kernel_ucb(15, SCHEDULE, 3.0, True),
    **{
        f"bpe, {size}, keep_data {keep}": partial(bpe, size, size == 25, keep)
        for size in (60, 25, 9)
        for keep in (False, True)
    },
    "approx, plain": approx,
    "approx, paper": lambda: approx(threshold=20.0),
    "approx, often": lambda: approx(threshold=3.0, oversampling=4.0),
    "approx, few": lambda: approx(oversampling=0.03),
    "approx, schedule": lambda: approx(beta=np.linspace(2, 0.1, T)),
    "approx, noise_variance": lambda: approx(noise_variance=0.01, threshold=90.0),
    # Then the posteriors stay, the agents' own data with them, and nothing is sent: before the first points, and after.
    "approx, no point is chosen": lambda: approx(
        3, threshold=10.0, oversampling=0.003, sizes=[0, 1, 2, 0, 1, 1, 3, 0, 2]
    ),
    "approx, another kernel's table": lambda: approx(gram=other_gram(), least=1),
    # The data are then taken one by one, above by counts.
    "approx, fewer queries than candidates": lambda: approx(2, agents=2, least=1),
    "duets, wide": lambda: duets(False, 0.2, 10.0, 40, 0),
    "duets, middle": lambda: duets(False, 1.0, 0.8, 299, 1),
    "duets, narrow": lambda: duets(False, 0.5, 0.3, 299, 2),
    "duets, point": lambda: duets(True, 0.5, None, 299, 3),
    "duets, point, other": lambda: duets(True, 0.2, None, 150, 4),
}
