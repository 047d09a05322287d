"""Experiments that share runs: one simulates them, the other waits."""

import threading

import jax.numpy as jnp
import numpy as np

from experiments import simulate
from experiments.settings import Settings
from jaxbandits import linear
from jaxbandits.engine.store import locked


def build(delta, key):
    instance = linear.canonical(1.0)
    return linear.lingape(instance.arms, delta=delta), linear.environment(instance)


def runs(folder):
    options = Settings(store=folder, lanes=2)
    return simulate.simulate("two runs", build, jnp.array([0.1]), options=options, seeds=2, max_rounds=10_000)


def test_simulate_waits_for_a_store_that_another_process_writes_to(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(simulate, "PAUSE", 0.1)
    folder = tmp_path / simulate.folder_name("two runs")
    folder.mkdir()
    held, released = threading.Event(), threading.Event()

    def other():
        with locked(folder, "store"):
            held.set()
            released.wait(60)

    holder, timer = threading.Thread(target=other), threading.Timer(0.5, released.set)
    holder.start()
    held.wait(60)
    timer.start()
    results = runs(tmp_path)
    assert released.is_set()
    holder.join()
    assert "waiting: [Errno 11] another sweep, of this process or another one, is writing" in capsys.readouterr().err
    np.testing.assert_array_equal(results.columns["pulls"], runs(None).columns["pulls"])
