"""Greedy k-center from samples against plain Python, query by query, with the same observations in both."""

import functools
from functools import partial
from math import log

import jax
import jax.numpy as jnp
import numpy as np
from drivers.kcenter_ns import distances
from transcriptions.laid import KEY, Laid, only_last, traced, unless

from experiments.bench.reference import kcenter_ds, kcenter_ns
from experiments.kcenter.single_node import leader_alone
from jaxbandits import Tape, kcenter
from jaxbandits.engine.run.round import streams
from jaxbandits.kcenter import KL, Lemma1, Lil
from jaxbandits.kcenter._shared.stages import draw_arms
from jaxbandits.numerics.beta import UNIFORMS, beta, beta_or_nan
from jaxbandits.numerics.normal import normals_and_uniforms
from jaxbandits.testing import round_keys


def by_queries(queries, facts, *, ends=True):
    """Returns queries, one per row, as a tape whose last row holds the final facts: centers, counts, ..."""
    rows = len(queries)
    nothing = unless(np.ones(rows, bool), np.zeros(rows, bool))
    watched = tuple(only_last(np.asarray(fact), rows) for fact in facts) if ends else ()
    return Tape(np.array(queries), np.zeros(rows), nothing, np.zeros(rows), watched)


def stage_of(state):
    return state.pulls, state.stage, getattr(state, "counts", ())


# Dimensions


def in_dimensions(make, points, *, k, rounds, levels=None):
    """Runs an algorithm; returns its rounds, the queries of each, and the dimension of every query by number."""
    m = points.shape[1]

    def build():
        instance = kcenter.dimension_instance(points, k=k, levels=levels)
        algorithm = make(instance.problem)
        return algorithm, kcenter.environment(instance, algorithm)

    course = traced(build, rounds, watch=stage_of)
    assert course.stops[-1]
    noise = jax.jit(jax.vmap(lambda r: build()[1].noise(jax.random.fold_in(streams(KEY).noise, r))))
    drawn, pulls = np.asarray(noise(np.arange(rounds))), course.watched[0]
    spent = np.append(np.diff(pulls), 0)
    dimensions = np.zeros(pulls[-1] + 1, int)
    for r in np.flatnonzero((spent > 0) & (spent < m)):
        dimensions[pulls[r] : pulls[r + 1]] = drawn[r, : spent[r]]
    return course, spent, dimensions


def one_by_one(course, spent, m):
    """Splits leaps into single queries: (node, slot, cost) each."""
    singles = []
    for node, slot, cost in zip(
        course.actions.node.tolist(), course.actions.slot.tolist(), spent.tolist(), strict=True
    ):
        singles += [(node, slot, cost)] if cost == m else [(node, slot, 1)] * cost
    return singles


def known(course, counts):
    _, stage, _ = course.watched
    return stage.centers[-1], stage.queries[-1], counts


def laid_in_dimensions(course, spent, expected, m, cap):
    """Lays a run beside its transcription."""
    # A count also encodes the stage in which the arm was read, with `redraw`, so counts are cut above the cap.
    ours = by_queries(one_by_one(course, spent, m), known(course, np.minimum(course.watched[2][-1], cap + 1)))
    return Laid(by_queries(expected.queried, (expected.centers, expected.queries, expected.counts)), ours)


PIXELS, LEVELS = np.random.default_rng(0).integers(0, 17, (8, 30)).astype(np.uint8), 16
LIL = Lil()
BOUNDS = {
    LIL: partial(kcenter_ds.lil, delta=0.1 / 8),
    KL(): partial(kcenter_ds.kl_bounds, delta=0.1 / 64),
    Lemma1(): partial(kcenter_ds.lemma1, delta=0.1 / 64),
}


def ds_ucb(leap, interval=LIL, **options):
    make = partial(kcenter.ds_ucb, delta=0.1, interval=interval, leap=leap, **options)
    course, spent, dimensions = in_dimensions(make, PIXELS, k=4, rounds=700, levels=LEVELS)
    expected = kcenter_ds.sample(PIXELS, 4, dimensions, interval=BOUNDS[interval], levels=LEVELS, **options)
    assert any(cost == 30 for _, _, cost in expected.queried)
    return laid_in_dimensions(course, spent, expected, 30, options.get("cap", 30))


# Binary rows of different densities; the third is about as far from the first as from the last.
DENSITIES = np.array([0.05, 0.3, 0.45, 0.6, 0.75, 0.95])[:, None]
BINARY = (LEVELS * (np.random.default_rng(0).random((6, 150)) < DENSITIES)).astype(np.uint8)


@jax.jit
def posterior_draws(seed, step, successes, failures):
    """Returns the draws of one query: of its slots, of the choice between the rules, and of its rounding."""
    uniform = jax.random.uniform(jax.random.fold_in(jax.random.wrap_key_data(seed), step), (2 + UNIFORMS * 2,))
    theta = beta_or_nan(uniform[1:-1].reshape(UNIFORMS, 2), 1.0 + successes, 1.0 + failures)
    return theta, uniform[0], uniform[-1]


def ds_ts(leap, mix=0.7, **options):
    make = partial(kcenter.ds_ts, delta=0.1, mix=mix, leap=leap, **options)
    course, spent, dimensions = in_dimensions(make, BINARY, k=3, rounds=2000, levels=LEVELS)
    problem = kcenter.dimension_instance(BINARY, k=3, levels=LEVELS).problem
    seed = make(problem).init(streams(KEY).init).draws.seed

    def pick(lower, step, successes, counts, open):
        failures = np.minimum(counts, 150) - successes
        drawn = posterior_draws(seed, step, successes.astype(float), failures.astype(float))
        theta, z, _ = (np.asarray(x) for x in drawn)
        if z >= mix:
            return kcenter_ds.lowest(lower)
        return min(open, key=lambda i: (theta[i], i)) if np.isfinite(theta[open]).all() else None

    def coin(step):
        return float(posterior_draws(seed, step, np.zeros(2), np.zeros(2))[2])

    interval = partial(kcenter_ds.kl_bounds, delta=0.1 / 36)
    settings = {"interval": interval, "levels": LEVELS, "pick": pick, "coin": coin}
    expected = kcenter_ds.sample(BINARY, 3, dimensions, **settings, **options)
    return laid_in_dimensions(course, spent, expected, 150, options.get("cap", 150))


FIVE = 0.5 + np.random.default_rng(1).uniform(0.05, 1, (5, 1)) * (np.random.default_rng(2).random((5, 12)) - 0.5)


def ds_random():
    course, spent, dimensions = in_dimensions(partial(kcenter.ds_random, delta=0.1), FIVE, k=3, rounds=400)
    draw = jax.jit(jax.vmap(lambda key, stage: draw_arms(key, stage, 5, (1,))))
    arms = np.stack(draw(round_keys(KEY, 400), course.watched[1]), axis=1)[..., 0].tolist()
    interval = partial(kcenter_ds.lil, delta=0.1 / 5)
    expected = kcenter_ds.random_sampling(FIVE, 3, dimensions, lambda step, _: arms[step], interval=interval)
    assert np.any(expected.counts == 13)
    del spent
    facts = known(course, course.watched[2][-1])
    return Laid(by_queries([0], (expected.centers, expected.queries, expected.counts)), by_queries([0], facts))


# Noisy distances

N, K, DELTA = 7, 4, 0.1
TABLE = distances(126, N, dim=2)  # gaps .18, .11 and .10


@functools.cache
def noisy(factory, noise, **settings):
    """Returns `build(table, variance)`, with every size and setting fixed."""

    def build(table, variance):
        noise_scale = jnp.sqrt(variance) if noise == "gaussian" else None
        instance = kcenter.distance_instance(table, k=K, noise_scale=noise_scale, noise=noise)
        algorithm = factory(instance.problem, noise_scale=noise_scale, delta=DELTA, **settings)
        return algorithm, kcenter.environment(instance, algorithm)

    return build


class Recording:
    """Queries of a run, one per row, with their rewards and rounds."""

    def __init__(self, build, rounds, table=TABLE, variance=0.01):
        self.course = traced(build, rounds, table, variance, watch=stage_of)
        node, slot, rewards = (
            np.reshape(x, (rounds, -1))
            for x in (self.course.actions.node, self.course.actions.slot, self.course.observations)
        )
        is_query = (node < N) & (slot < K - 1)
        self.queries = np.stack([node[is_query], slot[is_query]], axis=1).tolist()
        self.rounds, self.rewards = np.nonzero(is_query)[0], rewards[is_query]

    def reward(self, v, s, q):
        return float(self.rewards[q]) if q < len(self.rewards) else 0.0

    def beside(self, expected, most, ends):
        """Lays the first `most` queries beside the transcription, or all queries of a run that ends."""
        assert (len(expected.centers) == K) is ends
        assert bool(self.course.stops[-1]) is ends
        pulls, stage, _ = self.course.watched
        if not ends:
            return Laid(
                by_queries(expected.log[:most], (), ends=False), by_queries(self.queries[:most], (), ends=False)
            )
        theirs = by_queries(expected.log, (expected.centers, expected.queries(), len(expected.log)))
        return Laid(theirs, by_queries(self.queries, (stage.centers[-1], stage.queries[-1], pulls[-1])))


QUERIES = 3000


def ns_ts(noise="gaussian", table=TABLE, variance=0.01, ends=True, sample=None, pair=True, triangle=None, **settings):
    """Lays a run of NS-TS beside its transcription, whose `sample` is `sample(recording)`."""
    build = noisy(kcenter.ns_ts if pair else leader_alone, noise, triangle=triangle, **settings)
    recording = Recording(build, QUERIES + 2 * N, table, variance)
    interval = {"gaussian": partial(kcenter_ns.gaussian, variance), "bernoulli": kcenter_ns.bernoulli}[noise]
    options = {"pair": pair, "triangle": triangle} | ({} if sample is None else {"sample": sample(recording)})
    bounds = interval(n=N, delta=DELTA)
    expected = kcenter_ns.ns_ts(recording.reward, bounds, n=N, k=K, max_queries=QUERIES, **options)
    return recording.beside(expected, QUERIES, ends), expected


@functools.cache
def chance():
    """Returns the uniform and the normal draws of every round."""
    draws = jax.jit(jax.vmap(lambda key: normals_and_uniforms(key, 2 * (K - 1), 2, jnp.float64)))
    normals, coins = map(np.asarray, draws(round_keys(KEY, QUERIES + 2 * N)))
    return coins, normals.reshape(-1, 2, K - 1)


def conjugate(recording):
    coins, normals = chance()

    def sample(q, half, v, arms):
        r = recording.rounds[min(q, len(recording.rounds) - 1)]
        if coins[r, half] >= 0.9:
            return None
        precision = [2 + t / 0.01 for t, _ in arms]
        return [s / 0.01 / w + z / w**0.5 for (_, s), w, z in zip(arms, precision, normals[r, half], strict=False)]

    return sample


def printed(recording):
    coins, normals = chance()
    laws = {}

    def sample(q, half, v, arms):
        r = recording.rounds[min(q, len(recording.rounds) - 1)]
        for i, (t, s) in enumerate(arms):
            # (17) is applied once for each query since; only one arm of a node gains a query in a round.
            mean, precision, used = laws.get((v, i), (0.0, 2.0, 1))
            if t > used:
                new = t / 0.01
                mean, precision = (precision * mean + new * s / t) / (precision + new), precision + new
                laws[v, i] = mean, precision, t
        if coins[r, half] >= 0.9:
            return None
        return [
            laws.get((v, i), (0.0, 2.0))[0] + normals[r, half, i] / laws.get((v, i), (0.0, 2.0))[1] ** 0.5
            for i in range(len(arms))
        ]

    return sample


def beta_draws(recording):
    keys = jax.jit(jax.vmap(jax.random.split))(round_keys(KEY, QUERIES + 2 * N))
    coins = np.asarray(jax.jit(jax.vmap(lambda key: jax.random.uniform(key, (2,))))(keys[:, 0]))
    draw = jax.jit(beta)

    def sample(q, half, v, arms):
        r = recording.rounds[min(q, len(recording.rounds) - 1)]
        if coins[r, half] >= 0.9:
            return None
        s, t = np.zeros((2, K - 1)), np.zeros((2, K - 1))
        t[half, : len(arms)], s[half, : len(arms)] = zip(*arms, strict=True)
        return np.asarray(draw(keys[r, 1], 1 + s, 1 + t - s))[half, : len(arms)].tolist()

    return sample


def smallest_lower_bound():
    laid, expected = ns_ts(mix=0.0, interval=KL(k1=11.11))
    assert len(expected.log) > 300
    return laid


def one_node_alone():
    laid, expected = ns_ts(mix=0.0, pair=False, ends=False)
    queries = np.sort([max(run.count((v, i)) for i in range(K)) for run in [expected.log] for v in range(N)])
    assert queries[-1] > 10 * queries[-2]  # the best node is queried again and again, the others wait
    return laid


def bernoulli():
    laid, expected = ns_ts("bernoulli", ends=False, sample=beta_draws)
    assert len(expected.centers) == 2
    return laid


def triangle(seed, dim, variance):
    return ns_ts(table=distances(seed, N, dim), variance=variance, mix=0.0, triangle="squared")[0]


def ns_random():
    recording = Recording(noisy(kcenter.ns_random, "gaussian"), 6000)
    keys = round_keys(KEY, 6000)

    @functools.cache
    def numbers(arms):
        return np.asarray(jax.jit(jax.vmap(lambda key: jax.random.randint(key, (), 0, arms, jnp.int32)))(keys))

    def draw(q, candidates, p):
        r = recording.rounds[min(q, len(recording.rounds) - 1)]
        rank, slot = divmod(int(numbers(len(candidates) * p)[r]), p)
        return candidates[rank], slot

    bounds = kcenter_ns.gaussian(0.01, n=N, delta=DELTA)
    expected = kcenter_ns.ns_random(recording.reward, bounds, draw, n=N, k=K)
    return recording.beside(expected, None, True)


EVERY, OFFSET = 20, 0.5  # small, so that rounds of every kind occur
PAIRS = log(N**2 / DELTA)
CONSTANT = 2 * kcenter_ns.mixture_constant(PAIRS / 2)
RATES = {
    "loglog": lambda q, p, a, b: log(1 + log(q)) + PAIRS,
    "gaussian": lambda q, p, a, b: 2 * log(4 + log(a)) + 2 * log(4 + log(b)) + CONSTANT,
}


@jax.jit
def solve(means, slots, candidates):
    return kcenter.omega_newton(means, slots, candidates, noise_scale=1.0).omega


def weights(means, nodes):
    padded, slots, candidates = np.zeros((N, K - 1)), np.arange(K - 1) < means.shape[1], np.zeros(N, bool)
    padded[:, : means.shape[1]] = means
    candidates[nodes] = True
    return np.asarray(solve(padded, slots, candidates))


def ns_tands(z, rate="loglog", noise="gaussian", size=4000, ends=True, **settings):
    named = {"rate": rate} if noise == "gaussian" else {}
    build = noisy(kcenter.ns_tands, noise, weights_every=EVERY, forced_offset=OFFSET, **named, **settings)
    recording = Recording(build, size + 2 * N)
    settings |= {"every": EVERY, "forced_offset": OFFSET}
    expected = kcenter_ns.ns_tands(recording.reward, z, RATES[rate], weights, n=N, k=K, max_queries=size, **settings)
    assert len(expected.centers) >= 2
    return recording.beside(expected, size, ends)


GAUSSIAN = partial(kcenter_ns.z_gaussian, variance=0.01)
CASES = {
    "ds_ucb": lambda: ds_ucb(1),
    "ds_ucb, leap": lambda: ds_ucb(16),
    "ds_ucb, root, kl": lambda: ds_ucb(4, scale="root", interval=KL(), first_center=5),
    "ds_ucb, lemma1, cap": lambda: ds_ucb(3, interval=Lemma1(), cap=7),
    "ds_ts, redraw": lambda: ds_ts(1, redraw=True),
    "ds_ts, leap": lambda: ds_ts(4),
    "ds_ts, cap": lambda: ds_ts(8, cap=80),
    "ds_random": ds_random,
    "ns_ts, smallest lower bound": smallest_lower_bound,
    "ns_ts, one node alone": one_node_alone,
    "ns_ts, conjugate": lambda: ns_ts(sample=conjugate)[0],
    "ns_ts, printed": lambda: ns_ts(sample=printed, posterior="printed")[0],
    "ns_ts, bernoulli": bernoulli,
    "ns_ts, triangle": lambda: triangle(147, 3, 0.01),
    "ns_ts, triangle, little noise": lambda: triangle(126, 2, 0.0001),
    "ns_random": ns_random,
    "ns_tands": lambda: ns_tands(GAUSSIAN, tracking="difference", reset="stage"),
    "ns_tands, ratio": lambda: ns_tands(GAUSSIAN, "gaussian", tracking="ratio", reset="printed"),
    "ns_tands, bernoulli": lambda: ns_tands(kcenter_ns.z_bernoulli, noise="bernoulli", size=2500, tracking="ratio"),
}
