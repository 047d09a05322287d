"""Forms of one rule that must agree: weights in `plan` or in `decide`, 32 bit or 64; and forms that do not exist."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits
from jaxbandits import Status, mab, memoryless
from jaxbandits.numerics import thresholds

KEY = jax.random.key(2)


@pytest.mark.parametrize("tracking", ["D", pytest.param("C", marks=pytest.mark.wide)])
def test_tas_that_plans_every_round_equals_tas_that_decides(tracking):
    instance = mab.bernoulli((0.7, 0.4, 0.3))
    make = functools.partial(mab.tas, instance.problem, delta=0.1, tracking=tracking)
    planning = make(replan_every=5)

    def stale(state):
        """Returns True at every pull, unless the run stops there."""
        never = state._replace(memory=state.memory._replace(planned=jnp.full_like(state.memory.planned, -1)))
        return planning.stale(never) & (state.memory.planned != state.pulls)

    ends = []
    for algorithm in (make(), planning._replace(stale=stale)):
        run = functools.partial(
            jaxbandits.run, algorithm=algorithm, environment=mab.environment(instance), max_rounds=10**4, chunk=32
        )
        end = jax.jit(run)(KEY)
        assert end.status == Status.STOPPED
        ends.append((int(end.pulls), int(end.answer), np.asarray(end.state.counts).tolist()))
    assert ends[0] == ends[1]


def pulls_of(factory, instance, dtype, *, seeds):
    """Returns the pulls until a run stops, and its answers, from the same random numbers in either precision."""
    problem = instance.problem._replace(dtype=dtype)
    environment = mab.environment(mab.Instance(problem, instance.means.astype(dtype)))

    def respond(action, noise):
        return environment.respond((), action, noise.astype(dtype))[0]

    def noise(key):
        made = environment.noise
        drawn = jax.random.normal(key, (1,), jnp.float32)
        is_normal = isinstance(problem, mab.Gaussian)
        # Uniform numbers of 23 bits are the same in both.
        return drawn if is_normal else jax.random.uniform(key, jax.eval_shape(made, key).shape, jnp.float32)

    results = jaxbandits.sweep(
        lambda task, key: (factory(problem, delta=0.1), memoryless(noise, respond)),
        seeds=seeds,
        key=KEY,
        max_rounds=10**5,
        progress=False,
    )
    assert (results.columns["status"] == Status.STOPPED).all()
    return np.asarray(results.columns["pulls"]), np.asarray(results.columns["answer"])


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("law", ["gauss4", "gk2"])
@pytest.mark.parametrize("factory", [mab.uniform, mab.ttucb, mab.tas], ids=lambda f: f.__name__)
def test_stopping_times_are_nearly_those_of_64_bit(factory, law):
    """Less than 2 % differ if rounding does not choose the arm; otherwise their mean does not shift."""
    instance, seeds = getattr(mab, law)(), 400
    (single, of_single), (double, of_double) = (
        pulls_of(factory, instance, dtype, seeds=seeds) for dtype in (jnp.float32, jnp.float64)
    )
    differ, answers = single != double, of_single != of_double
    print(f"{factory.__name__}, {law}: {differ.mean():.4f} stop elsewhere, {answers.sum()} answers")
    assert answers.mean() < 0.02
    # In `tas` every other arm is equally far behind, so rounding chooses the arm.
    if factory is mab.tas:
        shift = single - double.astype(float)
        assert abs(shift.mean()) < 4 * shift.std() / seeds**0.5
    else:
        assert differ.mean() < 0.02


NORMAL, ONES = mab.Gaussian(4), mab.Bernoulli(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mab.bernoulli([0.5]), "means must have at least 2 entries"),
        (lambda: mab.tas(ONES, delta=0.1, epsilon=0.1), "epsilon must be 0 for optimal weights of Bernoulli arms"),
        (lambda: mab.lucb(ONES, delta=0.1, epsilon=1.0), "epsilon must .* 1"),
        (lambda: mab.characteristic_time(ONES, np.array([0.5, 0.4, 0.3, -0.1])), "means must"),
        (
            lambda: mab.exp3(NORMAL, gamma=0.1),
            r"problem must be Bernoulli or Bounded: rewards must lie in \[0, 1\], got Gaussian",
        ),
        (lambda: mab.exp3_ix(NORMAL, eta=0.1, gamma=0.1), "problem must be Bernoulli"),
        (lambda: mab.m_ucb(NORMAL, window=5, threshold=1.0, gamma=0.1), "window must be even, got 5"),
        (lambda: mab.sliding_window_ucb(NORMAL, window=3), r"window must be an integer in \[4,"),
        (lambda: mab.successive_rejects(NORMAL, horizon=4), r"horizon must be an integer in \[5,"),
        (lambda: mab.sequential_halving(NORMAL, horizon=7), r"horizon must be an integer in \[8,"),
        (lambda: mab.continuous_rejects(NORMAL, horizon=3), r"horizon must be an integer in \[4,"),
        (lambda: mab.ucb_e(NORMAL, horizon=3, hardness=1.0), r"horizon must be an integer in \[4,"),
        (
            lambda: mab.environment(mab.gk1(), mab.successive_rejects(ONES, horizon=90, leap=9), stream=KEY),
            "stream must be None for leaps, unless",
        ),
        (
            lambda: mab.lucb(NORMAL, delta=0.1, threshold=thresholds.kk_pair(arms=4)),
            "threshold must accept this rule's evidence",
        ),
    ],
)
def test_form_that_does_not_exist_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
