"""Gaussian arms and the environment of plays; the graphs that come with the package."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drivers.cpe import best as solved
from scipy.stats import norm

from jaxbandits import cpe, run
from jaxbandits.cpe import Play

KEY, STREAM = jax.random.key(1), jax.random.key(7)
ARMS = cpe.gaussian([5.0, -2.0, 0.5, 1.0], 0.5)
ROUNDS = 20_000


def environment(arms=ARMS, **settings):
    instance = cpe.instance(cpe.top_k(len(cpe.means(arms)), 2, dtype=cpe.means(arms).dtype), arms)
    return cpe.environment(instance, play([0] * len(cpe.means(arms))), **settings)


def play(decision):
    return Play(np.asarray(decision, np.int32))


def responder(**settings):
    """Returns the compiled samples of a play, given the number of earlier samples of each arm, () without a stream."""
    respond = environment(**settings).respond
    return jax.jit(lambda action, noise, counts=(): respond(counts, action, noise)[0])


@pytest.fixture(scope="module")
def drawn():
    """Samples 0, 1, .. of the arms 0 and 1, from fresh noise and from a stream, in both precisions."""

    names = [(name, dtype) for dtype in ("float32", "float64") for name in ("fresh", "stream")]

    @jax.jit
    def draw(rounds):
        def one(n, name, dtype):
            each = environment(cpe.gaussian(ARMS.means, 0.5, dtype=dtype), stream=STREAM if name == "stream" else None)
            played = jnp.asarray([1, 1, 0, 0], jnp.int32)
            counts = jnp.full(4, n, jnp.int32) if name == "stream" else ()
            return each.respond(counts, Play(played), each.noise(jax.random.fold_in(KEY, n)))[0]

        return [jax.vmap(lambda n, setting=setting: one(n, *setting))(rounds) for setting in names]

    return dict(zip(names, jax.device_get(draw(jnp.arange(ROUNDS))), strict=True))


def test_moments_of_gaussian_arms():
    np.testing.assert_array_equal(cpe.means(ARMS), [5.0, -2.0, 0.5, 1.0])
    np.testing.assert_array_equal(cpe.variances(ARMS), [0.25] * 4)


def test_a_play_returns_samples_of_its_arms_and_0_elsewhere():
    respond = responder()
    np.testing.assert_array_equal(respond(play([1, 0, 1, 0]), np.array([1.0, 1.0, -2.0, 1.0])), [5.5, 0, -0.5, 0])
    np.testing.assert_array_equal(respond(play([0, 0, 0, 0]), np.full(4, np.inf)), 0)


@pytest.mark.parametrize("source", ["fresh", "stream"])
def test_samples_are_normal(drawn, source):
    samples = drawn[source, "float64"]
    z = (samples[:, :2] - [5.0, -2.0]) / 0.5
    assert (samples[:, 2:] == 0).all()
    for below in (-2.0, -1.0, 0.0, 1.5):  # 5 standard errors
        p = norm.cdf(below)
        np.testing.assert_allclose((z < below).mean(axis=0), p, atol=5 * np.sqrt(p * (1 - p) / ROUNDS))
    assert abs(np.corrcoef(z.T)[0, 1]) < 5 / np.sqrt(ROUNDS)
    assert abs(np.corrcoef(z[1:, 0], z[:-1, 0])[0, 1]) < 5 / np.sqrt(ROUNDS)


def test_a_stream_is_the_same_in_both_precisions(drawn):
    assert drawn["stream", "float32"].dtype == np.float32
    np.testing.assert_allclose(drawn["stream", "float32"], drawn["stream", "float64"], atol=2e-5)


def test_a_stream_depends_on_arm_and_number_only(drawn):
    assert jax.tree.leaves(environment(stream=STREAM).noise(KEY)) == []
    respond = responder(stream=STREAM)
    samples = respond(play([1, 1, 1, 0]), (), jnp.int32([3, 8, 0, 2]))
    np.testing.assert_allclose(samples[:2], [drawn["stream", "float64"][3, 0], drawn["stream", "float64"][8, 1]])
    alone = respond(play([0, 1, 0, 0]), (), jnp.int32([9, 8, 9, 9]))
    np.testing.assert_array_equal(alone, [0, samples[1], 0, 0])


def test_arms_on_the_unit_interval_may_be_played():
    coins = cpe.bernoulli([0.25, 0.5, 0.75, 1.0])
    respond = responder(arms=coins)
    np.testing.assert_array_equal(respond(play([1, 0, 1, 1]), np.array([0.2, 0.2, 0.8, 0.8])), [1, 0, 0, 1])
    assert jax.eval_shape(environment(coins).noise, KEY).shape == (4,)


def test_pulls_refuse_gaussian_arms_and_plays_refuse_pulls():
    instance = cpe.instance(cpe.best_arm(4), ARMS)
    bounded = r"instance\.arms must be Arms, whose samples lie in \[0, 1\], unless the algorithm plays whole decisions"
    with pytest.raises(ValueError, match=bounded + ", got 'GaussianArms'. Write cpe.environment"):
        cpe.environment(instance)
    for rule in (cpe.coci, cpe.clucb):
        algorithm = rule(instance.problem, delta=0.1)
        with pytest.raises(ValueError, match=bounded + ", got 'GaussianArms'"):
            cpe.environment(instance, algorithm, stream=STREAM)
        with pytest.raises(ValueError, match=r"action must be a Play of a whole decision, .* Write cpe\.environment"):
            run(KEY, algorithm, cpe.environment(instance, cpe.cts(instance.problem)), max_rounds=10)
    with pytest.raises(ValueError, match=r"action must be Pulls of single arms, .* Write cpe\.environment"):
        cpe.environment(cpe.best5()).respond((), play([1, 0, 0, 0, 0]), np.zeros(1))
    with pytest.raises(
        ValueError, match=r"action must have arms of shape \(1,\), .* got \(4,\)\. Write cpe\.environment"
    ):
        run(KEY, cpe.coci(cpe.best_arm(5), delta=0.1, leap=4), cpe.environment(cpe.best5()), max_rounds=10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cpe.stack_arms([cpe.bernoulli([0.5]), ARMS]), "parts[1] must be Arms: samples must lie in [0, 1]"),
        (lambda: cpe.environment(cpe.best5(), Play), "algorithm must be of type cpe.Pulls or cpe.Play, got"),
        (
            lambda: cpe.environment(cpe.best5(), play([0, 0])),
            "algorithm.decision must be an array of integers of shape",
        ),
        (lambda: cpe.environment(cpe.best5(), cpe.Pulls(jnp.zeros((1, 2), int))), "algorithm.arms must be an array of"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match="must") as error:
        call()
    assert message in str(error.value)


# Graphs


@pytest.mark.parametrize(
    ("make", "nodes", "trees", "gap"),
    [(cpe.spanning_trees_e20, 8, 20_736, 0.098872), (cpe.spanning_trees_e25, 10, 332_787, 0.099918)],
)
def test_the_published_graphs(make, nodes, trees, gap):
    instance = make()
    ends, means = np.asarray(instance.problem.ends), np.asarray(instance.theta)
    laplacian = np.zeros((nodes, nodes))
    for u, v in ends:
        laplacian[[u, v], [u, v]] += 1
        laplacian[[u, v], [v, u]] -= 1
    assert (np.diag(laplacian) == 5).all()
    assert round(np.linalg.det(laplacian[1:, 1:])) == trees  # Kirchhoff's theorem
    best = np.asarray(solved(instance.problem, instance.theta)) > 0
    assert abs(_smallest_gap(nodes, ends, means, best) - gap) < 1e-6
    assert jax.jit(partial(cpe.is_right, instance))(best.astype(int))


def _smallest_gap(nodes, ends, means, tree):
    """Computes the smallest gap of all swaps, in which an edge of the tree goes and another joins its two parts."""
    gaps = []
    for out in np.flatnonzero(tree):
        part = np.arange(nodes)
        for u, v in ends[tree & (np.arange(len(ends)) != out)]:
            part[part == part[v]] = part[u]
        joins = part[ends[:, 0]] != part[ends[:, 1]]
        gaps += [means[out] - means[f] for f in np.flatnonzero(joins & ~tree)]
    return min(gaps)


def test_a_complete_graph_has_a_tree_that_stands_out():
    truth = jax.jit(lambda key: cpe.complete_graph(6, key).theta)
    instance = cpe.complete_graph(6, KEY)
    means = np.asarray(instance.theta)
    assert instance.problem.ends.shape == (15, 2)
    tree = means > 2
    assert tree.sum() == 5
    assert ((means[~tree] >= 1) & (means[~tree] <= 1.1)).all()
    np.testing.assert_array_equal(solved(instance.problem, instance.theta), tree)
    np.testing.assert_array_equal(truth(KEY), means)  # under a trace too
    assert (truth(STREAM) != means).any()
