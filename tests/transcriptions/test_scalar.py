"""Scalar code, as it is before numba compiles it, beside the transcription: every pull and the answer."""

from functools import partial

import numpy as np
import pytest
from transcriptions.tapes import COCI, DELTA, LAWS, LENGTH, K, coci_tapes, tapes_of

from experiments.bench.reference import cpe as plain_cpe
from experiments.bench.reference import kcenter_ds, scalar
from experiments.bench.reference import lingape as plain_lingape
from experiments.bench.reference import mab as plain
from experiments.bench.reference.over_lanes import cpe


def from_tape(samples, arm):
    return next(samples[arm])


def samples_of(tape):
    return [iter(rewards) for rewards in tape]


def test_ucb1():
    law, tape = LAWS["gaussian"], tapes_of("gaussian")[0]
    literal = plain.indices(law, T=LENGTH)["ucb1"]
    factor = 2 * (2 * law.noise_scale) ** 2
    pulled, _ = scalar.ucb1(from_tape, samples_of(tape), 200, K, factor)
    assert pulled.tolist() == plain.by_index(tape, literal, 200)


def test_lingape():
    rng = np.random.default_rng(3)
    arms, theta = rng.normal(size=(6, 3)), np.array([1.0, 0.5, 0.0])
    tape = (arms @ theta)[:, None] + 0.8 * rng.normal(size=(6, LENGTH))
    settings = {"delta": DELTA, "ridge": 0.5, "noise_scale": 0.8, "norm_bound": 1.5}
    samples = samples_of(tape)
    theirs = plain_lingape.lingape(arms, lambda arm, t: next(samples[arm]), **settings)[:2]
    pulled, answer = scalar.lingape(from_tape, samples_of(tape), LENGTH, gram=arms @ arms.T, **settings)
    assert (pulled.tolist(), answer) == theirs
    assert 10 < len(pulled) < LENGTH


@pytest.mark.parametrize(("problem", "means", "settings"), COCI.values(), ids=COCI)
def test_coci(problem, means, settings):
    tape = coci_tapes(means, settings)[0]
    theirs = plain_cpe.coci(problem, tape, delta=DELTA, **settings)
    slopes, constants = cpe.affine(problem)
    shape = {"decisions": problem.decisions, "slopes": slopes, "constants": constants}
    shape |= {"is_monotone": problem.bi_monotone, "tau": settings.get("tau", 1), "scale": settings["scale"]}
    pulled, answer = scalar.coci(from_tape, samples_of(tape), 5000, delta=DELTA, **shape)
    assert pulled.tolist() == [step.arm for step in theirs[:-1]]
    assert tuple(problem.decisions[answer]) == theirs[-1].answer


def test_ds_ucb():
    rng = np.random.default_rng(0)
    points, tape = rng.integers(0, 17, (8, 30)).astype(float), rng.integers(0, 30, 20_000)
    theirs = kcenter_ds.sample(points, 4, tape, interval=partial(kcenter_ds.lil, delta=DELTA / 8), levels=16)
    settings = {"points": points, "k": 4, "levels": 16, "delta": DELTA / 8, "radius_scale": 0.1}
    made, centers = scalar.ds_ucb(lambda tape, spent: tape[spent], tape, 5000, **settings)
    assert list(map(tuple, made.tolist())) == theirs.queried
    assert centers.tolist() == theirs.centers
