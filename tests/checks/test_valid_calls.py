"""Every public function of the families and of the numerics, called once outside of any trace, in both precisions.

Elsewhere most of them are called in programs. Outside, shapes and trip counts are known, and dtypes are others.
"""

import functools
import importlib.util
from pathlib import Path

import jax
import pytest

TABLES = ("linear", "fullbandit", "kcenter", "cpe", "kernel", "mab", "numerics")
NEEDS_64_BIT = {"environment, sign", "environment, replay", "lingape", "xy_oracle", "xy_static_exact"}
NEEDS_64_BIT_TOO = {"fullbandit": {"environment"}}


@functools.cache  # files that calls read are those of the module
def table(name, bits):
    """The calls of a table, made in the precision that holds now."""
    del bits
    path = Path(__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"calls_of_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(module):
    """The errors of all calls of a table, by their names."""
    errors = {}
    for name, call in module.CALLS.items():
        try:
            call.function(**call.arguments)
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return errors


@pytest.mark.wide
@pytest.mark.parametrize("name", TABLES)
def test_a_valid_call_succeeds_eagerly_in_64_bit(name):
    assert called(table(name, 64)) == {}


@pytest.mark.wide
@pytest.mark.parametrize("name", TABLES)
def test_a_valid_call_succeeds_eagerly_in_32_bit_or_says_what_it_needs(name):
    with jax.enable_x64(False):
        errors = called(table(name, 32))
    assert set(errors) <= NEEDS_64_BIT | NEEDS_64_BIT_TOO.get(name, set())
    for error in errors.values():
        assert error.startswith("ValueError: ")
        assert "must be float64" in error or "jax_enable_x64 must be on" in error
