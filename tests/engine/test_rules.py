"""Sweeps of several rules: one table of results, one bar, one store with a folder for each rule."""

import json
import logging
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from engine.toys import KEY, LIMITS, NOISE, counter, counting, same_bits, total

import jaxbandits
from jaxbandits import checks
from jaxbandits.base import Status, memoryless
from jaxbandits.engine.store import folders_of
from jaxbandits.engine.sweep import driving

SETTINGS = {"seeds": 3, "key": KEY, "max_rounds": 1000, "metrics": total, "lanes": 4, "chunk": 16, "progress": False}


def later(limit, key):
    return counter(limit + 2), NOISE


def answering_pairs(limit, key):
    algorithm = counter(limit)

    def decide(key, state):
        decision = algorithm.decide(key, state)
        return decision._replace(answer={"a": decision.answer})

    return algorithm._replace(decide=decide), NOISE


RULES = {"one": counting, "two later": later}


@pytest.fixture(scope="module")
def both():
    return jaxbandits.sweep(RULES, LIMITS, **SETTINGS).columns


def of_rule(columns, rule):
    """Returns the columns of one rule, as a sweep of it alone has them."""
    is_its = columns["rule"] == rule
    return {name: values[is_its] for name, values in columns.items() if name != "rule"}


def test_rules_have_the_runs_of_sweeps_of_their_own(both):
    assert list(both)[:4] == ["row", "seed", "rule", "task"]
    np.testing.assert_array_equal(both["rule"], np.repeat(list(RULES), 12))
    np.testing.assert_array_equal(both["pulls"], np.concatenate([np.repeat(LIMITS, 3), np.repeat(LIMITS + 2, 3)]))
    for rule, build in RULES.items():
        same_bits(of_rule(both, rule), jaxbandits.sweep(build, LIMITS, **SETTINGS).columns)


def test_rules_stand_in_the_order_of_the_dict_and_keep_common_columns():
    results = jaxbandits.sweep({"pairs": answering_pairs, "one": counting}, LIMITS, **SETTINGS)
    assert list(dict.fromkeys(results.columns["rule"].tolist())) == ["pairs", "one"]
    assert "answer" not in results.columns
    assert "answer.a" not in results.columns
    assert results.stats.finished == 24


def test_next_rule_is_compiled_while_the_last_one_runs(monkeypatch):
    """The runs of the first rule wait for the program of the second; one after the other, they would wait forever."""
    is_compiled, threads = threading.Event(), []
    prepare, run = driving.prepare, driving.run_in_memory

    def preparing(job, *others, **more):
        prepared = prepare(job, *others, **more)
        if job.build is later:
            is_compiled.set()
        return prepared

    def running(prepared, *others):
        threads.append(threading.current_thread())
        assert is_compiled.wait(60)
        return run(prepared, *others)

    monkeypatch.setattr(jaxbandits.engine.sweeping, "prepare", preparing)
    monkeypatch.setattr(jaxbandits.engine.sweeping, "run_in_memory", running)
    jaxbandits.sweep(RULES, LIMITS, **SETTINGS)
    assert len(set(threads)) == 1
    assert threads[0] is not threading.current_thread()


def test_store_of_rules_resumes_extends_and_loads(tmp_path, both, caplog):
    caplog.set_level(logging.INFO, "jaxbandits")
    first = jaxbandits.sweep({"one": counting}, LIMITS, **SETTINGS, store=tmp_path)
    same_bits(of_rule(first.columns, "one"), of_rule(both, "one"))
    caplog.clear()
    same_bits(jaxbandits.sweep(RULES, LIMITS, **SETTINGS, store=tmp_path).columns, both)
    assert caplog.text.count("compiled in") == 1
    same_bits(jaxbandits.load(tmp_path).columns, both)
    assert sorted(path.name for path in tmp_path.glob("[!.]*")) == ["_rules.json", "rule=one", "rule=two later"]
    # A reader of Parquet folders finds the rule in the names of folders.
    assert pq.read_table(tmp_path)["rule"].unique().to_pylist() == ["one", "two later"]
    caplog.clear()
    alone = jaxbandits.sweep({"two later": later}, LIMITS, **SETTINGS | {"seeds": 2}, store=tmp_path)
    assert len(alone.columns["row"]) == 8
    assert "compiled in" not in caplog.text
    more = jaxbandits.sweep(dict(reversed(RULES.items())), LIMITS, **SETTINGS | {"seeds": 4}, store=tmp_path)
    assert more.columns["rule"][0] == "two later"
    assert len(more.columns["row"]) == 32
    with pytest.raises(ValueError, match=r"(?s)rule=one' holds another sweep:.*max_rounds: 1000 in the store, 7 now"):
        jaxbandits.sweep(RULES, LIMITS, **SETTINGS | {"max_rounds": 7}, store=tmp_path)
    with pytest.raises(ValueError, match=r"rule 'one': store .* holds another sweep"):
        jaxbandits.sweep({"one": later}, LIMITS, **SETTINGS, store=tmp_path)
    with pytest.raises(ValueError, match=r"holds the rules 'one', 'two later'\. Give build as a dict"):
        jaxbandits.sweep(counting, LIMITS, **SETTINGS, store=tmp_path)
    with pytest.raises(ValueError, match="holds a sweep of one"):
        jaxbandits.sweep(RULES, LIMITS, **SETTINGS, store=tmp_path / "rule=one")


def test_interrupted_sweep_of_rules_keeps_what_is_stored(tmp_path, both, monkeypatch):
    """An error while the second rule is compiled ends the runs of the first, and stores what has ended."""
    has_begun = threading.Event()
    prepare, run = driving.prepare_for_store, driving.run_into_store

    def preparing(job, *others, **more):
        if job.build is later:
            assert has_begun.wait(60)
            raise KeyboardInterrupt
        return prepare(job, *others, **more)

    def running(prepared, folder, report, called_off, is_over):
        has_begun.set()
        while not is_over():
            threading.Event().wait(0.01)
        run(prepared, folder, report, called_off, is_over)

    with monkeypatch.context() as patched:
        patched.setattr(jaxbandits.engine.sweeping, "prepare_for_store", preparing)
        patched.setattr(jaxbandits.engine.sweeping, "run_into_store", running)
        with pytest.raises(KeyboardInterrupt, match=r"\d+ of 24 runs are finished and stored in"):
            jaxbandits.sweep(RULES, LIMITS, **SETTINGS, store=tmp_path)
    assert len(jaxbandits.load(tmp_path).columns["row"]) < 12
    same_bits(jaxbandits.sweep(RULES, LIMITS, **SETTINGS, store=tmp_path).columns, both)


@pytest.mark.parametrize("is_stored", [False, True])
def test_executor_runs_every_rule(tmp_path, both, is_stored):
    with ThreadPoolExecutor(2) as pool:
        where = {"store": tmp_path} if is_stored else {}
        results = jaxbandits.sweep(RULES, LIMITS, **SETTINGS, **where, executor=pool, shards=2)
    same_bits(results.columns, both)


def test_names_of_folders_are_safe_unique_and_stable(tmp_path):
    rules = ["UCB", "ucb", "a/b", "a\\b", "..", "δ = 0.1", "x" * 300, "x" * 301, "con.", "tab\t*?", "\udcff"]
    names = folders_of(tmp_path, rules)
    assert list(names) == rules
    assert len({name.lower() for name in names.values()}) == len(rules)
    for name in names.values():
        assert re.fullmatch(r"rule=[\w.%\- ]*[\w%\-]", name, re.ASCII), name
        assert len(name) < 120
    (tmp_path / "_rules.json").write_text(json.dumps({"rules": {"ucb": "rule=ucb"}}))
    assert folders_of(tmp_path, ["UCB"])["UCB"].startswith("rule=UCB-")


@pytest.mark.parametrize("text", ["", "[]", '{"rules": []}', '{"rules": {"a": "../b"}}', '{"rules": {"a": ".."}}'])
def test_damaged_list_of_rules_is_refused(tmp_path, text):
    (tmp_path / "_rules.json").write_text(text)
    with pytest.raises(ValueError, match="store has a list of rules that cannot be read"):
        jaxbandits.load(tmp_path)


def refusing(limit, key):
    checks.require(limit < 300, "limit", "lie below 300", limit)
    return counting(limit, key)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        ({}, "build must have at least one rule, got an empty dict"),
        ({"": counting}, "build must have names that are not empty for its rules, got ''"),
        ({3: counting}, "build must have names that are not empty for its rules, got 3"),
        ({"one": 3}, r"build\['one'\] must be a function of \(task, key\), got 3"),
        ({"one": counting, "bad": refusing}, "rule 'bad': row 1 of tasks: limit must lie below 300, got 400"),
    ],
)
def test_bad_rules_are_refused_before_anything_runs(build, message, monkeypatch):
    monkeypatch.setattr(jaxbandits.engine.sweeping, "run_in_memory", None)
    with pytest.raises(ValueError, match=message):
        jaxbandits.sweep(build, LIMITS, **SETTINGS)


def test_table_with_a_column_rule_is_refused():
    with pytest.raises(ValueError, match="tasks must not have the name of the column of rules, got 'rule'"):
        jaxbandits.sweep({"one": counting}, {"rule": LIMITS}, **SETTINGS)


def test_error_of_another_kind_names_its_rule():
    def failing(limit, key):
        raise TypeError("unexpected")

    with pytest.raises(TypeError, match="unexpected") as raised:
        jaxbandits.sweep({"one": counting, "bad": failing}, LIMITS, **SETTINGS)
    assert "The error is in rule 'bad'." in raised.value.__notes__


def broken(limit, key):
    """Fails in all runs of more than 50 pulls."""
    environment = memoryless(
        NOISE.noise, lambda action, noise: jnp.where((limit > 50) & (action > 0), jnp.nan, action.astype(float) * noise)
    )
    return counter(limit), environment


def test_failed_runs_are_counted_and_told(capfd, caplog):
    settings = SETTINGS | {"progress": True}
    results = jaxbandits.sweep({"fine": counting, "broken": broken}, LIMITS, **settings)
    assert (results.columns["status"] == Status.NONFINITE).sum() == 6
    bar = capfd.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "broken: 100%" in bar
    assert "24/24" in bar
    assert "0 censored, 6 failed" in bar
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("6 of 24 runs failed, the first in rule broken, row 1, seed 0. 6 NONFINITE: a NaN")


def test_no_failed_run_no_warning(caplog):
    jaxbandits.sweep(counting, LIMITS, **SETTINGS)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
