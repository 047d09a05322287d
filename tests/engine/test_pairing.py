"""Paired comparisons: pairs, the gain of pairing, and refusals."""

import jax
import numpy as np
import pytest
from scipy import stats

import jaxbandits
from jaxbandits import Results, Status, linear
from jaxbandits.engine.results.runs import added

RNG = np.random.default_rng(0)
SEEDS = 50


def results(pulls, streams, row=None, status=None):
    runs = len(pulls)
    columns = {
        "row": np.zeros(runs, np.int32) if row is None else row,
        "seed": np.arange(runs, dtype=np.int32),
        "status": np.full(runs, Status.STOPPED, np.int32) if status is None else status,
        "pulls": np.asarray(pulls),
    }
    words = {} if streams is None else {"stream": np.stack([np.zeros_like(streams), streams], axis=1)}
    return Results(columns | words, added([]))


STREAMS = RNG.permutation(2**20)[:SEEDS].astype(np.uint32)
COMMON = RNG.normal(100, 20, SEEDS)
A, B = COMMON + RNG.normal(3, 5, SEEDS), COMMON + RNG.normal(0, 5, SEEDS)


def test_pairs_are_runs_of_one_stream():
    order = RNG.permutation(SEEDS)
    said = jaxbandits.compare(results(A, STREAMS), results(B[order], STREAMS[order]), paired=True)
    test = stats.ttest_rel(A, B)
    np.testing.assert_allclose(said["pulls_difference"], [np.mean(A - B)])
    np.testing.assert_allclose(said["pulls_se"], [np.std(A - B, ddof=1) / np.sqrt(SEEDS)])
    np.testing.assert_allclose(said["pulls_correlation"], [np.corrcoef(A, B)[0, 1]])
    np.testing.assert_allclose(said["pulls_p"], [test.pvalue])
    with pytest.warns(UserWarning, match=r"a and b share random numbers .* write compare\(a, b, paired=True\)$"):
        apart = jaxbandits.compare(results(A, STREAMS), results(B, STREAMS))
    np.testing.assert_allclose(said["pulls_gain"], apart["pulls_se"] / said["pulls_se"])
    assert said["pulls_gain"][0] > 2
    assert said["pairs"] == [SEEDS]
    assert not any(name.endswith("_ks") or name.startswith("stream_") for name in said)


def test_pairing_is_by_group_and_of_runs_that_both_stopped():
    row = np.repeat([0, 1], SEEDS // 2).astype(np.int32)
    status = np.where(np.arange(SEEDS) % 10 == 0, Status.MAX_ROUNDS, Status.STOPPED).astype(np.int32)
    more = np.array([2], np.int32)
    extended = results(
        np.append(B, 7.0), np.append(STREAMS, STREAMS[:1]), np.append(row, more), np.append(status, Status.STOPPED)
    )
    said = jaxbandits.compare(results(A, STREAMS, row), extended, paired=True)
    stopped = status == Status.STOPPED
    for g in (0, 1):
        chosen = stopped & (row == g)
        assert said["pairs"][g] == chosen.sum()
        np.testing.assert_allclose(said["pulls_difference"][g], np.mean((A - B)[chosen]))
    np.testing.assert_array_equal(said["row"], [0, 1])
    np.testing.assert_array_equal(said["censored_b"], [(~stopped & (row == g)).sum() for g in (0, 1)])


def test_a_group_may_be_named_by_a_value_of_the_tasks():
    def of(pulls):
        made = results(pulls, STREAMS)
        return Results(made.columns | {"task.delta": np.repeat([0.1, 0.2], SEEDS // 2)}, made.stats)

    said = jaxbandits.compare(of(A), of(B), by="delta", paired=True)
    np.testing.assert_array_equal(said["delta"], [0.1, 0.2])
    np.testing.assert_allclose(said["pulls_difference"], (A - B).reshape(2, -1).mean(axis=1))


def test_pairing_with_fewer_seeds():
    assert jaxbandits.compare(results(A[:10], STREAMS[:10]), results(B, STREAMS), paired=True)["pairs"] == [10]


def test_pairing_of_one_pair_and_of_none():
    ended = np.full(2, Status.MAX_ROUNDS, np.int32)
    one = jaxbandits.compare(results(A[:1], STREAMS[:1]), results(B[:1], STREAMS[:1]), paired=True)
    none = jaxbandits.compare(results(A[:2], STREAMS[:2], status=ended), results(B[:2], STREAMS[:2]), paired=True)
    assert one["pulls_difference"] == A[0] - B[0]
    assert np.isnan(one["pulls_se"]).all()
    assert none["pairs"] == [0]
    assert np.isnan(none["pulls_difference"]).all()


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (results(A, None), results(B, STREAMS), "a must be a sweep whose environments have stream="),
        (results(A, STREAMS), results(B, None), "b must be a sweep whose environments have stream="),
        (
            results(A, STREAMS),
            results(B, STREAMS + np.uint32(2**20)),
            "paired must be False unless the streams .* of 50 and 50 runs of a group, 0 have a partner",
        ),
        (
            results(A, np.append(STREAMS[:-1], np.uint32(2**21))),
            results(B, STREAMS),
            "of 50 and 50 runs of a group, 49 have a partner",
        ),
        (
            results(A, np.append(STREAMS[:-1], STREAMS[:1])),
            results(B, STREAMS),
            "by must tell apart the runs of a sweep that share a stream",
        ),
    ],
)
def test_pairing_refuses_streams_that_are_not_shared(a, b, message):
    with pytest.raises(ValueError, match=message):
        jaxbandits.compare(a, b, paired=True)


def test_sweeps_under_one_root_key_share_their_streams(tmp_path):
    """The algorithm does not matter, and a store keeps the streams."""
    instance = linear.soare(2, 0.5)  # without ties, which rounding would break

    def sweep(key, leap, store=None):
        def build(task, key):
            algorithm = linear.lingape(instance.arms, delta=0.1, leap=leap)
            return algorithm, linear.environment(instance, stream=key)

        settings = {"key": jax.random.key(key), "max_rounds": 10_000, "progress": False, "store": store}
        return jaxbandits.sweep(build, np.zeros(2), seeds=5, **settings)

    single, leaping, other = sweep(0, 1), sweep(0, 64, tmp_path), sweep(1, 1)
    assert len(np.unique(np.append(single.columns["stream"], other.columns["stream"], axis=0), axis=0)) == 20
    said = jaxbandits.compare(single, jaxbandits.load(tmp_path), paired=True)
    # Leaps make the same run of the same rewards.
    np.testing.assert_array_equal(single.columns["pulls"], leaping.columns["pulls"])
    np.testing.assert_array_equal(said["pulls_difference"], 0)
    assert "stream_mean" not in single.summary()
    with pytest.raises(ValueError, match="paired must be False unless the streams"):
        jaxbandits.compare(single, other, paired=True)
