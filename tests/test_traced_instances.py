"""Generators are functions of tracers: a gap, an angle or a scale may come from a row of the tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import cpe, fullbandit, kcenter, kernel, linear, mab

KEY = jax.random.key(0)
EDGES = [(0, 1), (0, 2), (1, 2)]
GENERATORS = {
    "linear.canonical": lambda x: linear.canonical(x, 3, noise_scale=x),
    "linear.soare": lambda x: linear.soare(3, x),
    "linear.sphere": lambda x: linear.sphere(0, 4, 3, x),
    "linear.reduce_instance": lambda x: linear.reduce_instance(
        linear.Instance(np.eye(3)[:2], np.arange(3.0), noise_scale=x)
    ),
    "linear.theorem3_counterexample": lambda x: linear.theorem3_counterexample(2, s=x, gap=2 * x),
    "fullbandit.synthetic": lambda x: fullbandit.synthetic(0, 6, 2, x, shuffle=True),
    "kcenter.clusters": lambda x: kcenter.dimension_instance(kcenter.clusters(5, 3, 2, x, seed=0), k=2),
    "kcenter.distance_instance": lambda x: kcenter.distance_instance(x * (1 - np.eye(3)), k=2, noise_scale=x),
    "cpe.sites": lambda x: cpe.instance(cpe.sites([0.1, x, x], 1), cpe.bernoulli([x, 0.2, 0.9])),
    "cpe.water": lambda x: cpe.water([[0, 1, 2.5], [0, 1, 2.25]], 2, step=x),
    "cpe.opinion_sampling": lambda x: cpe.instance(
        cpe.opinion_sampling([1, 3], 5), cpe.uniform_arms([0, 0], [x, 1]), estimator="variance"
    ),
    "cpe.enumerated": lambda x: cpe.instance(cpe.enumerated(np.eye(2), [x, 0]), cpe.constant([x, 0.5])),
    "mab.bernoulli": lambda x: mab.bernoulli([x, 0.2]),
    "mab.gaussian": lambda x: mab.gaussian([x, 0.2, -x]),
    "kernel.h1": lambda x: kernel.h1(KEY, size=3, dimension=2, noise_scale=x),
    "kernel.rkhs": lambda x: kernel.rkhs(KEY, kernel=kernel.paper_kernel("h1"), dimension=2, norm=x, size=3),
    "kernel.tabular": lambda x: kernel.tabular([[x], [1.0]], [x, 0], noise_scale=x),
}


@pytest.fixture(scope="module")
def made_of_tracers():
    """Builds all instances in one program."""
    made = jax.jit(lambda x: {name: generator(x) for name, generator in GENERATORS.items()})
    return made(jnp.asarray(0.3))


@pytest.mark.parametrize("name", GENERATORS)
def test_a_traced_number_gives_the_same_instance(made_of_tracers, name):
    traced, concrete = made_of_tracers[name], GENERATORS[name](0.3)
    assert jax.tree.structure(traced) == jax.tree.structure(concrete)
    for a, b in zip(jax.tree.leaves(traced), jax.tree.leaves(concrete), strict=True):
        assert a.dtype == jnp.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def test_sphere_with_a_traced_gap_takes_the_same_draw():
    """The second draw is also the same. If no draw has the gap, there is none."""
    gaps = np.array([0.0, 0.5, 1.0, 1.99])
    thetas = jax.jit(jax.vmap(lambda gap: linear.sphere(3, 4, 3, gap).theta))(gaps)
    for gap, theta in zip(gaps[:3], thetas[:3], strict=True):
        np.testing.assert_allclose(theta, linear.sphere(3, 4, 3, gap).theta, rtol=1e-15)
    assert np.isnan(thetas[3]).all()


def test_arrays_independent_of_a_tracer_stay_known():
    """Functions that need known values can be called on them in the same program: here the tables of ratios."""

    def build(gap):
        instance = linear.canonical(gap, 3)
        return linear.lingape(instance.arms, delta=0.1, ratios=linear.ratio_tables(instance.arms).p)

    assert jax.eval_shape(lambda gap: build(gap).init(KEY), 0.1).pulls.shape == ()


def test_a_sweep_names_the_row_of_a_bad_number():
    def build(task, key):
        instance = linear.soare(2, task["omega"], noise_scale=task["noise_scale"])
        return linear.lingape(instance.arms, delta=0.1), linear.environment(instance)

    tasks = {"omega": np.array([0.1, 0.2]), "noise_scale": np.array([1.0, -1.0])}
    with pytest.raises(ValueError, match=r"row 1 of tasks: noise_scale must be positive, got -1"):
        jaxbandits.sweep(build, tasks, seeds=1, key=KEY, max_rounds=10, progress=False)


@pytest.mark.parametrize(
    ("name", "generator"),
    {
        "min_gap": lambda x: linear.yahoo_like(0, 3, min_gap=x),
        "ridge": lambda x: linear.yahoo_like(0, 3, ridge=x),
        "average": lambda x: fullbandit.crowd_like(0, 20, 30, x, 0.9, k=3),
        "best": lambda x: fullbandit.crowd_like(0, 20, 30, 0.1, x, k=3),
        "sharpness": lambda x: kcenter.triplet_like(4, 0, sharpness=x),
        "noise_scale": lambda x: mab.gaussian([0.1, 0.2], noise_scale=x),
        "seed": lambda x: linear.sphere(x, 3, 2, 0.1),
    }.items(),
)
def test_traced_argument_that_the_host_needs_is_refused_by_name(name, generator):
    with pytest.raises(ValueError, match=f"^{name} must"):
        jax.eval_shape(generator, jnp.asarray(0.3))
