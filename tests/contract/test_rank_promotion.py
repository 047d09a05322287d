"""The library runs under `jax_numpy_rank_promotion="raise"`, which many set in their tests: axes are always explicit.

Tracing checks ranks: `test_contract.py` traces a round of every algorithm, and here a run and a sweep are compiled.
"""

import jax

import jaxbandits
from jaxbandits import Status, mab

KEY = jax.random.key(3)


def test_a_run_and_a_sweep_promote_no_ranks():
    instance = mab.gk1()

    def build(task, key):
        return mab.ttucb(instance.problem, delta=0.1), mab.environment(instance)

    with jax.numpy_rank_promotion("raise"):
        assert jaxbandits.run(KEY, *build(None, KEY), max_rounds=20_000).status == Status.STOPPED
        swept = jaxbandits.sweep(build, seeds=3, key=KEY, max_rounds=20_000, progress=False)
    assert (swept.columns["status"] == Status.STOPPED).all()
