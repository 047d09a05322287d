"""The library runs under `jax_numpy_rank_promotion="raise"`, which many set in their tests: axes are always explicit.

Tracing checks ranks, so only one run and one sweep are compiled.
"""

import jax
import pytest
from contract.cases import CASES

import jaxbandits
from jaxbandits import Status, mab
from jaxbandits.engine.run.loop import run

KEY = jax.random.key(3)


@pytest.fixture(autouse=True)
def forbidden():
    with jax.numpy_rank_promotion("raise"):
        yield


@pytest.mark.parametrize("name", CASES)
def test_no_algorithm_promotes_ranks(name):
    case = CASES[name]
    algorithm, environment = case.make(case.dtypes[0])
    jax.eval_shape(lambda key: run(key, algorithm, environment, max_rounds=case.max_rounds), KEY)


def test_a_run_and_a_sweep_promote_no_ranks():
    instance = mab.gk1()

    def build(task, key):
        return mab.ttucb(instance.problem, delta=0.1), mab.environment(instance)

    assert jaxbandits.run(KEY, *build(None, KEY), max_rounds=20_000).status == Status.STOPPED
    swept = jaxbandits.sweep(build, seeds=3, key=KEY, max_rounds=20_000, progress=False)
    assert (swept.columns["status"] == Status.STOPPED).all()
