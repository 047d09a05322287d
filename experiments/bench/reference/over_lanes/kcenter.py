"""DS-UCB with kept bounds: a query changes one of them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.bench.reference.over_lanes.loop import Rule

Interval = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # (means, counts) -> (lower, upper)


class Query(NamedTuple):
    node: np.ndarray  # int (lanes,)
    slot: np.ndarray  # int (lanes,), number of the center
    center: np.ndarray  # int (lanes,), its node
    cost: np.ndarray  # int (lanes,): 0 nothing, 1 a coordinate, m the exact distance


class State(NamedTuple):
    counts: np.ndarray  # int (k - 1, n, lanes)
    totals: np.ndarray  # (k - 1, n, lanes)
    lower: np.ndarray  # (k - 1, n, lanes)
    upper: np.ndarray  # (k - 1, n, lanes)
    best: np.ndarray  # (n, lanes) with the lanes first in memory, smallest upper bound of a node; centers: -inf
    centers: np.ndarray  # int (k, lanes)
    stage: np.ndarray  # int (lanes,), number of centers
    fresh: np.ndarray  # int (lanes,), next node of the queries that open a stage; n: none


def ds_ucb(n: int, m: int, k: int, *, interval: Interval) -> Rule:
    """Builds the rule from node 0. It leaves out the rule for two equal distances, which would never be decided."""

    def init(lanes):
        shape = (k - 1, n, lanes)
        best = np.full((lanes, n), np.inf).T
        best[0] = -np.inf
        bounds = np.zeros(shape), np.full(shape, np.inf)
        stages = np.zeros((k, lanes), int), np.ones(lanes, int), np.zeros(lanes, int)
        return State(np.zeros(shape, int), np.zeros(shape), *bounds, best, *stages)

    def decide(t, state):
        counts, _, lower, _, best, centers, stage, fresh = state
        lanes = np.arange(len(stage))
        leader = np.argmax(best, axis=0)
        of_leader = np.where(np.arange(k - 1)[:, None] < stage, lower[:, leader, lanes], np.inf)
        slot = np.argmin(of_leader, axis=0)
        highest = best[leader, lanes]
        best[leader, lanes] = -np.inf
        ends = (fresh == n) & (of_leader[slot, lanes] > best.max(axis=0))
        best[leader[~ends], lanes[~ends]] = highest[~ends]
        centers[stage[ends], lanes[ends]] = leader[ends]
        stage[ends] += 1
        fresh[ends & (stage < k)] = 0
        opens = fresh < n
        node, slot = np.where(opens, fresh, leader), np.where(opens, stage - 1, slot)
        fresh[opens] += 1
        slot = np.minimum(slot, k - 2)  # the last center has none
        is_center = (centers == node) & (np.arange(k)[:, None] < stage)
        cost = np.where(counts[slot, node, lanes] < m, 1, m) * ~is_center.any(axis=0)
        return Query(node, slot, centers[slot, lanes], cost), stage == k

    def observe(state, query, rewards):
        counts, totals, lower, upper, best, *_ = state
        lanes = np.flatnonzero(query.cost)
        node, slot, rewards = query.node[lanes], query.slot[lanes], rewards[lanes]
        at = slot, node, lanes
        totals[at] += rewards
        counts[at] += 1
        is_exact = query.cost[lanes] > 1
        lower[at], upper[at] = interval(totals[at] / counts[at], counts[at])
        exact = tuple(each[is_exact] for each in at)
        lower[exact] = upper[exact] = rewards[is_exact]
        best[node, lanes] = upper[:, node, lanes].min(axis=0)

    return Rule(init, decide, observe, lambda t, state: state.centers)
