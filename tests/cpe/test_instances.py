"""The eight instances: their optima are unique, and optima and radii are as stated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import cpe
from jaxbandits.cpe import decision, solve
from jaxbandits.cpe._problem.kinds.table import entry_values

KEY = jax.random.key(3)

# name: decision at theta, radii, H, H_U / H, root with c = 1/2, Theorem 1; delta = 0.1
EIGHT = {
    "best5": ([1, 0, 0, 0, 0], [0.125, 0.125, 0.15, 0.25, 0.375], 195.56, 1.64, 2681, 22734),
    "top2of6": ([1, 1, 0, 0, 0, 0], [0.2, 0.13, 0.13, 0.165, 0.265, 0.315], 204.39, 1.74, 2819, 23871),
    "water3": ([3, 2, 1], [0.1, 0.1, 0.325], 209.47, 1.43, 2894, 24519),
    "sites5": ([1, 1, 0, 0, 0], [0.2, 0.225, 0.225, 0.2, 0.2], 114.51, 1.09, 1469, 12580),
    "osa4": ([1, 2, 3, 1], [0.177368, 0.07, 0.07, 0.209342], 462.77, 1.76, 6825, 57283),
    "paths5": (
        [1, 0, 1, 0, 1, 0, 1],
        [0.316667, 0.316667, 0.216667, 0.216667, 0.2, 0.2, 0.2],
        *(137.55, 1.27, 1808, 15417),
    ),
    "trees5": ([1, 1, 0, 1, 0], [0.275, 0.125, 0.125, 0.25, 0.175], 189.88, 1.69, 2594, 22007),
    "matching3": (
        [1, 0, 0, 0, 1, 0, 0, 0, 1],
        [0.225, 0.233333, 0.225, 0.225, 0.15, 0.15, 0.233333, 0.15, 0.15],
        *(273.77, 1.46, 3911, 32936),
    ),
}


@pytest.mark.parametrize("name", EIGHT)
def test_optima_radii_and_bounds_are_as_stated(name):
    best, radii, H, ratio, root, bound = EIGHT[name]
    instance = getattr(cpe, name)()
    truth = cpe.means if instance.tau == 1 else cpe.variances
    np.testing.assert_array_equal(truth(instance.arms), instance.theta)

    def measures(theta):
        radii = cpe.consistent_radius(instance.problem, theta)
        H = cpe.hardness(radii)
        settings = {"m": len(best), "tau": instance.tau, "delta": 0.1}
        root = cpe.implicit_time(H, c=0.5, **settings)
        bound = cpe.theorem1_bound(H, **settings)
        return (
            decision(instance.problem, solve(instance.problem, theta)),
            radii,
            H,
            cpe.uniform_hardness(radii) / H,
            root,
            bound,
        )

    solved, *measured = jax.jit(measures)(instance.theta)
    np.testing.assert_array_equal(solved, best)
    np.testing.assert_allclose(measured[0], radii, rtol=0, atol=1e-6)  # all positive: the optimum is unique
    np.testing.assert_allclose(measured[1:3], (H, ratio), atol=0.006)
    np.testing.assert_allclose(measured[3:], (root, bound), atol=0.6)


def test_theta_of_osa4_are_variances():
    np.testing.assert_allclose(cpe.osa4().theta, [0.21, 0.25, 0.25, 0.0075], rtol=1e-14)


def test_the_entries_of_water3():
    instance = cpe.water3()
    expected = [[-0.7, -1.1, -1.5, -1.9], [-0.7, -1.2, -1.7, -2.2], [-1.35, -2.15, -2.95, -3.75]]
    np.testing.assert_allclose(entry_values(instance.problem, instance.theta), expected, rtol=1e-12)


def test_instance_checks_sizes_and_estimator():
    arms = cpe.stack_arms([cpe.bernoulli([0.25]), cpe.uniform_arms([0.0], [1.0])])
    mean, variance = (cpe.instance(cpe.best_arm(2), arms, estimator=name) for name in ("mean", "variance"))
    assert (mean.tau, mean.theta.tolist()) == (1, [0.25, 0.5])
    assert variance.tau == 2
    np.testing.assert_allclose(variance.theta, [0.1875, 1 / 12], rtol=1e-15)
    with pytest.raises(ValueError, match="problem and arms must be of one size, got: problem has 3, arms has 2"):
        cpe.instance(cpe.best_arm(3), arms)
    with pytest.raises(ValueError, match="estimator must be 'variance' for opinion sampling, got 'mean'"):
        cpe.instance(cpe.opinion_sampling([1, 2], 40), arms)


def test_is_right_on_ties_accepts_the_leading_decision_only():
    instance = cpe.instance(cpe.sites([1.3, 1.1, 0.0], 1), cpe.bernoulli([0.8, 0.6, 0.0]))
    assert not jax.jit(cpe.is_right)(instance, np.array([1, 0, 0]))  # worth -0.5, as much as the second site
    unpaid = cpe.instance(cpe.sites([1.3, 1.1, 0.5], 1), cpe.bernoulli([0.8, 0.6, 0.0]))  # a tie of all three
    rights = jax.jit(jax.vmap(lambda answer: cpe.is_right(unpaid, answer)))(np.eye(3, dtype=int))
    assert rights.tolist() == [False, False, True]


EDGES = [(0, 1), (0, 2), (1, 2)]


def first(theta):
    return (jnp.arange(3) == jnp.argmax(theta)).astype(int)


@pytest.mark.parametrize(
    "problem",
    [
        cpe.sites([0.5, 0.25, 0.0], 1),
        pytest.param(cpe.opinion_sampling([1, 2, 3], 50), marks=pytest.mark.wide),
        pytest.param(cpe.enumerated(np.eye(3, dtype=int)), marks=pytest.mark.wide),
        cpe.graphic(3, EDGES),
        pytest.param(cpe.oracle(first, 3, bi_monotone=True), marks=pytest.mark.wide),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_problems_and_instances_go_through_jit_vmap_and_stacking(problem):
    estimator = "variance" if isinstance(problem, cpe.OpinionSampling) else "mean"
    thetas = ([0.25, 0.5, 0.75], [0.5, 0.25, 0.375])
    pair = [cpe.instance(problem, cpe.bernoulli(p), estimator=estimator) for p in thetas]
    stacked = jax.tree.map(lambda *parts: jnp.asarray(np.stack(parts)), *pair)
    assert type(stacked.problem) is type(problem)
    assert stacked.tau == pair[0].tau
    assert jax.tree.all(jax.tree.map(lambda leaf: isinstance(leaf, jax.Array), stacked))

    def judge(instance):
        algorithm = cpe.coci(instance.problem, delta=0.1, estimator=estimator)
        outcome = jaxbandits.run(KEY, algorithm, cpe.environment(instance, algorithm, stream=KEY), max_rounds=20)
        return outcome.answer, cpe.is_right(instance, solve(instance.problem, instance.theta))

    one_by_one = [jax.jit(judge)(instance) for instance in pair]
    answers, are_right = jax.jit(jax.vmap(judge))(stacked)
    np.testing.assert_array_equal(answers, [answer for answer, _ in one_by_one])
    assert are_right.all()
    assert all(is_right for _, is_right in one_by_one)


def test_all_floats_follow_the_dtype():
    dtypes = {}

    @jax.jit
    def best_of_all():
        decisions = {}
        for name in EIGHT:
            instance = getattr(cpe, name)(dtype=jnp.float32)
            dtypes[name] = [
                leaf.dtype
                for leaf in jax.tree.leaves((instance.problem, instance.arms, instance.theta))
                if isinstance(leaf, jax.Array)
            ]
            decisions[name] = decision(instance.problem, solve(instance.problem, instance.theta))
        return decisions

    decisions = best_of_all()
    for name, (best, *_) in EIGHT.items():
        floats = [dtype for dtype in dtypes[name] if jnp.issubdtype(dtype, jnp.floating)]
        assert len(floats) >= 4, name
        assert all(dtype == jnp.float32 for dtype in floats), name
        np.testing.assert_array_equal(decisions[name], best)
