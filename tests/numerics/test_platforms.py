"""Code by platform: programs that know theirs have the code of no other."""

import jax
import jax.numpy as jnp
import pytest

from jaxbandits.numerics.platforms import by_platform, compiled_for, known_platform


@jax.jit
def two(x):
    return by_platform(x, cpu=jnp.sin, default=jnp.cos)


def code_of(platform):
    with compiled_for(platform):
        text = str(jax.make_jaxpr(lambda x: 1 + two(x))(1.0))
    return [name for name in ("sin", "cos", "platform_index") if f"= {name}" in text]


@pytest.mark.parametrize("in_turn", [["cpu", "gpu", None], [None, "tpu", "cpu"]])
def test_program_for_a_platform_has_the_code_of_no_other(in_turn):
    has = {"cpu": ["sin"], None: ["sin", "cos", "platform_index"]}
    for platform in in_turn:  # one function, which JAX traces anew for each
        assert code_of(platform) == has.get(platform, ["cos"])
    assert known_platform() is None


def test_platform_that_is_not_known_is_the_one_that_runs():
    assert two(1.0) == jnp.sin(1.0)
