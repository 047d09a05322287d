"""Keys of other generators draw from one lane's key under `vmap`, so every start of a run refuses them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract.cases import CASES
from engine.toys import NOISE, counter, counting

import jaxbandits
from jaxbandits import fullbandit, testing

COUNTER = counter(5)
TAPE = jaxbandits.Tape(np.ones(4, int), np.ones(4), np.zeros(4, bool), np.arange(4))
SWEEP = {"seeds": 2, "max_rounds": 100, "progress": False}
REFUSED = r'^key must be a key of threefry2x32, got .*rbg\..* Use jax.random.key\(seed, impl="threefry2x32"\)'


def run(key, algorithm=COUNTER, environment=NOISE):
    return jaxbandits.run(key, algorithm, environment, max_rounds=100)


def run_under_vmap(key):
    return jax.vmap(run)(jax.random.split(key, 3))


CALLS = {
    "run": run,
    "run under jit": jax.jit(run),
    "run under vmap": run_under_vmap,
    "ask": lambda key: jaxbandits.ask(COUNTER, key, COUNTER.init(jax.random.key(0))),
    "sweep": lambda key: jaxbandits.sweep(counting, jnp.array([5]), key=key, **SWEEP),
    "task_key": lambda key: jaxbandits.task_key(key, 0, 1),
    "trace": lambda key: jaxbandits.trace(key, COUNTER, NOISE, rounds=5),
    "replay": lambda key: testing.replay(COUNTER, TAPE, key=key),
    "round_keys": lambda key: testing.round_keys(key, 5),
    "check": lambda key: testing.check(COUNTER, NOISE, key=key),
}


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", CALLS)
def test_keys_of_other_generators_are_refused_by_name(name, impl):
    with pytest.raises(ValueError, match=REFUSED.replace("rbg", impl)):
        CALLS[name](jax.random.key(0, impl=impl))


@pytest.mark.parametrize("name", CALLS)
def test_raw_keys_are_refused_where_the_default_generator_is_another(name):
    with jax.default_prng_impl("rbg"):
        key = jax.random.PRNGKey(0)
        call = CALLS[name] if name != "run under vmap" else lambda key: jax.vmap(run)(jnp.stack([key, key]))
        with pytest.raises(ValueError, match="a raw key under jax_default_prng_impl=rbg"):
            call(key)


def test_a_store_is_not_begun_with_a_key_of_another_generator(tmp_path):
    with pytest.raises(ValueError, match=REFUSED):
        jaxbandits.sweep(counting, jnp.array([5]), key=jax.random.key(0, impl="rbg"), store=tmp_path / "store", **SWEEP)
    assert not (tmp_path / "store").exists()


def test_raw_keys_of_the_default_generator_give_the_runs_of_typed_ones():
    assert jax.device_get(run(jax.random.PRNGKey(3)).state) == jax.device_get(run(jax.random.key(3)).state)
    with pytest.raises(ValueError, match="key must be a JAX key"):
        run(jnp.zeros(3, jnp.uint32))


@pytest.mark.parametrize("name", ["duets", "approx-dis-kernel-ucb", "sa-foa", "ns-ts"])
def test_no_algorithm_draws_from_the_default_generator(name):
    """This includes seeds in a state."""
    drawn = {"sampling": fullbandit.Sampling(lottery="draw"), "growth": None}
    algorithm, environment = CASES[name].make("float64", **(drawn if name == "sa-foa" else {}))
    with jax.default_prng_impl("rbg"):
        program = jax.make_jaxpr(lambda key: run(key, algorithm, environment))(jax.random.key(0, impl="threefry2x32"))
    assert "key<fry>" in str(program)
    assert "rbg" not in str(program)
