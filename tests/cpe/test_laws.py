"""Laws that hold for every class of decisions, every rule and any instance: property-based tests."""

import functools
from itertools import combinations, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.programs import wide_except
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.bench.reference import cpe as reference
from jaxbandits import Status, cpe, run
from jaxbandits.cpe._shared.candidates import lasting_arms

ARMS, LEVELS, ROWS, NODES, BUDGET, BOXES = 5, 2, 8, 4, 10, 8
KINDS = {"exactly": (1, -1), "at most": (1, 0), "at least": (0, -1)}
BI_MONOTONE = ["table", "sites", "opinions", "trees"]
every_class = pytest.mark.parametrize("name", wide_except([*BI_MONOTONE, "listed"], "table", "opinions", "trees"))
quickly = settings(max_examples=6, deadline=None, derandomize=True)
thoroughly = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
orders = st.permutations(range(ARMS)).map(np.array)


# Random instances


def drawn(rng, shape, *, ties):
    """Draws numbers in [0, 1]: any, or eighths, which often tie and whose sums of products are exact."""
    return rng.integers(0, 9, shape) / 8 if ties else rng.random(shape)


def random_problem(name, rng, *, ties=False):
    if name == "table":
        lowest, highest = (-np.sort(drawn(rng, (ARMS, LEVELS), ties=ties), axis=1) for _ in range(2))
        coef, cost = 1 + highest - lowest, -lowest  # worth `lowest` at theta = 0, and 1 + highest at theta = 1
        coef[0, -1], cost[0, -1] = 0, np.inf
        kind = str(rng.choice(list(KINDS)))
        low, high = KINDS[kind]
        return cpe.table(coef, cost, rng.integers(low, ARMS * LEVELS + high), kind=kind)
    if name == "sites":
        return cpe.sites(drawn(rng, ARMS, ties=ties), rng.integers(1, ARMS))
    if name == "opinions":
        return cpe.OpinionSampling(jnp.asarray(rng.integers(1, 6, ARMS), float), BUDGET)
    if name == "trees":
        edges = [(0, 1), (1, 2), (2, 0)]  # a cycle; the others may be anywhere
        return cpe.graphic(NODES, np.vstack([edges, rng.integers(0, NODES, (ARMS - len(edges), 2))]))
    rows = rng.permutation(list(product((0, 1), repeat=ARMS)))[:ROWS]
    return cpe.enumerated(rows, drawn(rng, ROWS, ties=ties) / 4)


def enumerated(name, problem):
    """Lists all decisions of a problem."""
    if name in ("table", "sites"):
        kind = "at most" if problem.floor == 0 else "at least" if problem.ceiling == 0 else "exactly"
        return reference.table(problem.coef, problem.cost, int(problem.quota), kind)
    if name == "opinions":
        levels = np.arange(BUDGET - ARMS + 1)
        decisions = np.array([y for y in product(levels, repeat=ARMS) if sum(y) <= levels[-1]])
        weights = np.asarray(problem.sizes)[:, None] ** 2
        return reference.Class(
            decisions, lambda x: -weights * x[:, None] / (1 + levels), np.zeros(len(decisions)), True
        )
    if name == "trees":
        incidence = np.eye(NODES)[problem.ends[:, 0]] - np.eye(NODES)[problem.ends[:, 1]]
        rank = np.linalg.matrix_rank(incidence)
        trees = [list(tree) for tree in combinations(range(ARMS), rank)]
        forests = [tree for tree in trees if np.linalg.matrix_rank(incidence[tree]) == rank]
        return reference.linear([np.isin(np.arange(ARMS), forest).astype(int) for forest in forests], bi_monotone=True)
    return reference.linear(problem.rows, problem.offset)


def permuted(problem, order):
    match problem:
        case cpe.Table():
            return problem._replace(coef=problem.coef[order], cost=problem.cost[order])
        case cpe.OpinionSampling():
            return problem._replace(sizes=problem.sizes[order])
        case cpe.Graphic():
            return problem._replace(ends=problem.ends[order])
    return cpe.enumerated(problem.rows[:, order], problem.offset)


def boxes(rng, *, ties):
    """Draws boxes with a point in each, float (3, BOXES, ARMS)."""
    sides = np.sort(drawn(rng, (3, BOXES, ARMS), ties=ties), axis=0)
    return jnp.asarray(sides[1] + rng.choice([0.25, 0.5, 1], (BOXES, 1)) * (sides - sides[1]))


# One round


@functools.cache
def judging(name):
    """Returns the compiled function from boxes to levels, candidates and stops."""

    @jax.jit
    def judged(problem, sides):
        def judge(lo, point, hi):
            levels = cpe.solve(problem, point)
            return levels, cpe.candidates(problem, lo, hi, levels), cpe.stops(problem, lo, hi, levels)

        return jax.vmap(judge)(*sides)

    return judged


@every_class
@thoroughly
@given(seed=seeds, ties=st.booleans())
def test_levels_and_candidates_equal_an_enumeration(name, seed, ties):
    rng = np.random.default_rng(seed)
    ties = ties and name != "opinions"  # entries of opinion sampling are not exact
    problem, sides = random_problem(name, rng, ties=ties), boxes(rng, ties=ties)
    plain = enumerated(name, problem)
    levels, masks, stopped = judging(name)(problem, sides)
    np.testing.assert_array_equal(levels, [reference.phi(plain, np.asarray(point)) for point in sides[1]])
    expected = np.array([reference.candidates(plain, lo, hi) for lo, _, hi in np.asarray(sides).swapaxes(0, 1)])
    np.testing.assert_array_equal(masks, expected)
    np.testing.assert_array_equal(stopped, ~expected.any(axis=1))
    np.testing.assert_array_equal(lasting(name)(problem, sides[0], sides[2], levels), expected)


@every_class
@thoroughly
@given(seed=seeds, order=orders)
def test_permuting_the_arms_permutes_levels_and_candidates(name, seed, order):
    rng = np.random.default_rng(seed)
    problem, sides = random_problem(name, rng), boxes(rng, ties=False)
    levels, masks, stopped = judging(name)(problem, sides)
    other_levels, other_masks, other_stopped = judging(name)(permuted(problem, order), sides[..., order])
    np.testing.assert_array_equal(other_levels, levels[:, order])
    np.testing.assert_array_equal(other_masks, masks[:, order])
    np.testing.assert_array_equal(other_stopped, stopped)


@functools.cache
def lasting(name):
    @jax.jit
    def judge(problem, lo, hi, levels):
        return jax.vmap(lambda *box: lasting_arms(problem, *box))(lo, hi, levels)

    return judge


@every_class
@thoroughly
@given(seed=seeds, ties=st.booleans())
def test_candidates_grow_with_the_box(name, seed, ties):
    rng = np.random.default_rng(seed)
    problem, (lo, point, hi) = random_problem(name, rng, ties=ties), boxes(rng, ties=ties)
    wide = np.stack([lo * rng.choice([0, 0.5, 1], lo.shape), point, 1 - (1 - hi) * rng.choice([0, 0.5, 1], hi.shape)])
    levels, fewer, stops_sooner = judging(name)(problem, np.stack([lo, point, hi]))
    _, more, stops_later = judging(name)(problem, wide)
    assert not np.any(fewer & ~more)
    assert not np.any(stops_later & ~stops_sooner)

    # An arm that is open in every box around another is open in this one, even if the other is empty.
    up, down = drawn(rng, (2, BOXES, ARMS), ties=ties)
    assert not np.any(lasting(name)(problem, lo + up / 2, hi - down / 2, levels) & ~fewer)


@every_class
@thoroughly
@given(seed=seeds, ties=st.booleans())
def test_levels_in_the_box_differ_only_on_candidates(name, seed, ties):
    rng = np.random.default_rng(seed)
    problem, sides = random_problem(name, rng, ties=ties), boxes(rng, ties=ties)
    levels, masks, _ = judging(name)(problem, sides)
    lo, _, hi = sides
    for _ in range(5):
        point = jnp.clip(lo + rng.choice([0.25, 0.5, 1], lo.shape) * (hi - lo), lo, hi)
        other, _, _ = judging(name)(problem, np.stack([lo, point, hi]))
        assert not np.any((other != levels) & ~masks)


@pytest.mark.parametrize("name", BI_MONOTONE)
@thoroughly
@given(seed=seeds, ties=st.booleans(), arm=st.integers(0, ARMS - 1))
def test_raising_an_arm_never_lowers_its_level_nor_raises_another(name, seed, ties, arm):
    rng = np.random.default_rng(seed)
    problem, (lo, point, hi) = random_problem(name, rng, ties=ties), boxes(rng, ties=ties)
    before, _, _ = judging(name)(problem, np.stack([lo, point, hi]))
    after, _, _ = judging(name)(problem, np.stack([lo, point.at[:, arm].set(hi[:, arm]), hi]))
    rise = np.asarray(after - before)
    assert np.all(np.where(np.arange(ARMS) == arm, rise >= 0, rise <= 0))


# Whole runs


@functools.cache
def compiled(rule, name):
    """Returns the end of a run, as a function of the problem, the arms and the stream of their samples."""

    @jax.jit
    def end(key, problem, p, max_rounds):
        common = {"delta": 0.1, "observations": "binary"}
        if rule == "clucb":
            algorithm = cpe.clucb(problem, **common)
        else:
            factory = {"coci": cpe.coci, "uniform": cpe.uniform}[rule]
            estimator = "variance" if name == "opinions" else "mean"
            algorithm = factory(problem, estimator=estimator, radius_scale=0.2, **common)
        instance = cpe.instance(problem, cpe.bernoulli(p), estimator="variance" if name == "opinions" else "mean")
        environment = cpe.environment(instance, algorithm, stream=key)
        outcome = run(key, algorithm, environment, max_rounds=max_rounds)
        return outcome.status, outcome.pulls, outcome.state.statistics.counts, outcome.answer

    return lambda *instance: jax.device_get(end(*instance))


def random_run(name, seed):
    rng = np.random.default_rng(seed)
    return jax.random.key(seed), random_problem(name, rng), jnp.asarray(rng.random(ARMS))


LEAST_PULLED = [("coci", "table"), ("coci", "opinions"), ("coci", "trees"), ("coci", "listed"), ("uniform", "table")]
DISPUTED = [("clucb", "sites"), ("clucb", "trees"), ("clucb", "listed")]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        pytest.param(*each, marks=[] if each[1] in ("table", "sites") else [pytest.mark.wide])
        for each in LEAST_PULLED + DISPUTED
    ],
)
@quickly
@given(seed=seeds, budget=st.integers(1, 400))
def test_every_answer_is_feasible_whenever_the_run_ends(rule, name, seed, budget):
    key, problem, p = random_run(name, seed)
    status, pulls, counts, answer = compiled(rule, name)(key, problem, p, budget)
    assert pulls == counts.sum()
    assert (status == Status.STOPPED and pulls <= budget) or (status == Status.MAX_ROUNDS and pulls == budget)
    assert np.all(enumerated(name, problem).decisions == answer, axis=1).any()
    assert rule != "uniform" or np.ptp(counts) <= 1


@jax.jit
def samples(stream, p, pulls, counts):
    instance = cpe.instance(cpe.best_arm(ARMS), cpe.bernoulli(p))
    environment = cpe.environment(instance, pulls, stream=stream)
    return environment.respond(counts, pulls, environment.noise(stream))[0]


@thoroughly
@given(seed=seeds)
def test_a_sample_depends_on_its_arm_and_number_alone(seed):
    rng, stream = np.random.default_rng(seed), jax.random.key(seed)
    p, counts = rng.random(ARMS), rng.integers(0, 1000, ARMS, np.int32)
    arms = rng.permutation(ARMS + 1).astype(np.int32)  # ARMS: an empty slot
    observed = np.asarray(samples(stream, p, cpe.Pulls(arms), counts))
    assert np.all(observed[arms == ARMS] == 0)
    order, is_first = rng.permutation(ARMS + 1), rng.random(ARMS + 1) < 0.5
    others = cpe.Pulls(np.where(is_first, arms, ARMS)[order].astype(np.int32))
    is_pulled = np.isin(np.arange(ARMS), arms[is_first])
    p_others, counts_others = np.where(is_pulled, p, rng.random(ARMS)), np.where(is_pulled, counts, 7)
    shown = samples(stream, p_others, others, counts_others.astype(np.int32))
    np.testing.assert_array_equal(shown, np.where(is_first, observed, 0)[order])


# Radii, hardness and bounds


EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
GRAPH = cpe.graphic(NODES, EDGES)
CLASSES = {
    "trees": cpe.spanning_trees(NODES, EDGES),
    "paths": cpe.paths5().problem,
    "matchings": cpe.matching3().problem,
}


@jax.jit
def radii_of_top_k(theta, k):
    return cpe.consistent_radius(cpe.top_k(ARMS, k), theta)


@functools.cache
def radii_and_gaps(name):
    problem = CLASSES[name]
    return jax.jit(lambda theta: (cpe.consistent_radius(problem, theta), cpe.reward_gaps(problem, theta)))


radii_of_trees = jax.jit(lambda theta: cpe.consistent_radius(GRAPH, theta))


@thoroughly
@given(seed=seeds, k=st.integers(1, ARMS - 1), shift=st.floats(0.0, 0.3))
def test_radii_of_decisions_of_one_size_ignore_a_constant(seed, k, shift):
    theta = 0.7 * np.random.default_rng(seed).random(ARMS)
    for radii in (functools.partial(radii_of_top_k, k=k), radii_of_trees):
        np.testing.assert_allclose(radii(theta + shift), radii(theta), atol=1e-12)
    np.testing.assert_allclose(radii_of_top_k(theta, k), cpe.radius_top_k(theta, k), atol=1e-12)


@pytest.mark.parametrize("name", CLASSES)
@thoroughly
@given(seed=seeds)
def test_radii_are_at_least_gaps_over_width_and_equal_for_trees(name, seed):
    rows = CLASSES[name].rows
    theta = np.random.default_rng(seed).random(rows.shape[1])
    radii, gaps = radii_and_gaps(name)(theta)
    assert np.all(radii >= gaps / cpe.exchange_width(rows) - 1e-12)
    if name == "trees":
        np.testing.assert_allclose(radii, gaps / 2, atol=1e-12)
        np.testing.assert_allclose(radii, radii_of_trees(theta), atol=1e-12)


@jax.jit
def times(radii, delta):
    """Computes the hardness of COCI and of uniform sampling, and their roots and bounds for both estimators."""
    both = jnp.stack([cpe.hardness(radii), cpe.uniform_hardness(radii)])

    def laws(H, tau):
        return *(cpe.implicit_time(H, ARMS, tau, delta, c) for c in (0.5, 2)), cpe.theorem1_bound(H, ARMS, tau, delta)

    return both, jnp.asarray([jax.vmap(functools.partial(laws, tau=tau))(both) for tau in (1, 2)])


@thoroughly
@given(radii=st.lists(st.floats(1e-4, 1.0), min_size=ARMS, max_size=ARMS).map(np.array), delta=st.floats(1e-12, 0.99))
def test_uniform_sampling_is_harder_and_no_root_exceeds_the_bound(radii, delta):
    (H, H_uniform), laws = times(radii, delta)
    assert H_uniform >= H * (1 - 1e-12)
    assert np.all(np.diff(laws, axis=1) > 0)  # root(c = 1/2) < root(c = 2) < Theorem 1
    assert np.all(np.diff(laws, axis=2) >= -1e-9 * laws[:, :, 1:])  # and each grows with the hardness
