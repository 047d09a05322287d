"""The loop over the rounds, which all rules share. Lanes leave the arrays when they stop."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Arrays = Any  # an array with the lanes last, a NamedTuple of such arrays, or a dict of arrays that all lanes share


class Rule(NamedTuple):
    init: Callable[[int], Arrays]  # (lanes) -> state
    decide: Callable[[int, Arrays], tuple[Arrays, np.ndarray | None]]  # (round, state) -> actions, stops (None: never)
    observe: Callable[[Arrays, Arrays, Arrays], None]  # (state, actions, observations), changes the state in place
    answer: Callable[[int, Arrays], np.ndarray]  # (round, state) -> answers


class Runs(NamedTuple):
    rounds: np.ndarray  # int (lanes,)
    answers: np.ndarray  # (..., lanes)


def run(
    rule: Rule,
    respond: Callable[[np.ndarray, Arrays], Arrays],  # (numbers of the lanes, actions) -> observations
    *,
    lanes: int,
    rounds: int,
    watch: Callable[..., None] = lambda *step: None,  # (round, numbers of the lanes, actions, stops, state)
) -> Runs:
    running, state, ended = np.arange(lanes), rule.init(lanes), []
    for t in range(rounds):
        actions, stops = rule.decide(t, state)
        watch(t, running, actions, stops, state)
        if stops is not None and stops.any():
            ended.append((running[stops], np.full(stops.sum(), t), rule.answer(t, chosen(state, stops))))
            running, state, actions = (chosen(each, ~stops) for each in (running, state, actions))
            if not len(running):
                break
        rule.observe(state, actions, respond(running, actions))
    ended.append((running, np.full(len(running), rounds), rule.answer(rounds, state)))
    numbers, made, answers = (np.concatenate(each, axis=-1) for each in zip(*ended, strict=True))
    order = np.argsort(numbers)
    return Runs(made[order], answers[..., order])


def chosen(arrays: Arrays, lanes: np.ndarray) -> Arrays:
    """Selects lanes by a mask."""
    if isinstance(arrays, dict):
        return arrays
    if isinstance(arrays, tuple):
        return type(arrays)(*(chosen(each, lanes) for each in arrays))
    # The order in memory stays: NumPy finds the largest entry fastest along contiguous ones.
    return np.compress(lanes, arrays.T, axis=0).T if arrays.flags.fnc else np.compress(lanes, arrays, axis=-1)


def entries(values: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Returns values[arm, lane] of every lane."""
    return values.ravel()[places(values, arms)]


def put(values: np.ndarray, arms: np.ndarray, more: np.ndarray | float) -> None:
    """Sets values[arm, lane] of every lane."""
    values.reshape(-1)[places(values, arms)] = more


def add(values: np.ndarray, arms: np.ndarray, more: np.ndarray | float) -> None:
    """Adds to values[arm, lane] of every lane."""
    values.reshape(-1)[places(values, arms)] += more


def places(values: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Returns the positions of [arm, lane] in the flat array: one index array is faster than two."""
    lanes = values.shape[-1]
    return arms * lanes + np.arange(lanes)
