"""The tasks that are left and the runs that have finished: what the threads that drive batches share."""

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxbandits.base import Status
from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.sweep.program import Program

SORTED_FROM = 0.75  # share of the tasks that are handed out seed by seed; the rest, longest rows first


class Begun(NamedTuple):
    """Runs that are under way, as another process may carry them on."""

    tasks: np.ndarray  # int (n,)    ids
    pulls: np.ndarray  # int (n,)    so far
    rounds: np.ndarray  # int (n,)
    leaves: list[np.ndarray]  # (n, ...)    of the batch, of the lanes that the runs were in


class Queue:
    """Hands out tasks and collects finished runs; every method may be called by any thread.

    With `begun`, runs that are under way when the queue is closed are kept there, to be carried on later.
    """

    def __init__(self, todo: np.ndarray, rows: int, begun: Sequence[Begun] | None = None):
        self.keeps, self.begun = begun is not None, list(begun or ())
        self.todo, self.next, self.rows = todo, 0, rows
        self.lengths, self.runs = np.zeros(rows), np.zeros(rows)  # rounds and number of the finished runs of a row
        self.is_sorted = False
        self.closed = False
        self.parts: list[dict[str, np.ndarray]] = []  # finished, and not collected yet
        self.finished = self.censored = self.pulls = self.rounds = self.capacity = self.visits = 0
        self.host_seconds = 0.0
        self.started = time.perf_counter()
        self.lock = threading.Lock()

    def take(self, count: int) -> np.ndarray:
        """The next task ids, at most `count`."""
        with self.lock:
            if not self.is_sorted and self.next >= SORTED_FROM * len(self.todo):
                self.todo = np.concatenate([self.todo[: self.next], self._longest_first(self.todo[self.next :])])
                self.is_sorted = True
            ids = self.todo[self.next : self.next + count]
            self.next += len(ids)
            return ids

    def resume(self, most: int) -> Begun | None:
        """Runs under way for at most so many lanes; None if there are none."""
        with self.lock:
            if not self.begun:
                return None
            first = self.begun.pop(0)
            if len(first.tasks) > most:  # of a machine with larger batches
                self.begun.insert(0, part_of(first, slice(most, None)))
            return part_of(first, slice(most))

    def keep(self, begun: Begun) -> None:
        """Takes in the runs that a batch leaves behind."""
        with self.lock:
            self.begun.append(begun)

    def _longest_first(self, ids: np.ndarray) -> np.ndarray:
        """By the mean length of a row's runs so far, so that short ones fill the lanes at the end."""
        # A row of which no run has ended yet has long ones.
        means = np.where(self.runs > 0, self.lengths / np.maximum(self.runs, 1), np.inf)
        return ids[np.argsort(-means[ids % self.rows], kind="stable")]

    @property
    def waiting(self) -> int:
        """Finished runs that have not been collected."""
        return sum(len(part["row"]) for part in self.parts)

    def add(self, part: dict[str, np.ndarray], *, pulls: int, rounds: int, capacity: int, host_seconds: float) -> None:
        """Takes in the runs that finished in a call, if any, and counts what the call did.

        Args:
            part: columns of the finished runs; empty if there are none.
            pulls: oracle queries of all lanes.
            rounds: rounds of all lanes.
            capacity: rounds that the lanes could have carried out.
            host_seconds: that the batch waited for the host between two calls.
        """
        with self.lock:
            if part:
                self.parts.append(part)
                self.finished += len(part["row"])
                np.add.at(self.lengths, part["row"], part["rounds"].astype(float))  # of one type: thirty times as fast
                np.add.at(self.runs, part["row"], 1.0)
                self.censored += int(np.sum(part["status"] == Status.MAX_ROUNDS))
            self.pulls, self.rounds = self.pulls + pulls, self.rounds + rounds
            self.capacity += capacity
            self.host_seconds, self.visits = self.host_seconds + host_seconds, self.visits + 1

    def collect(self) -> dict[str, np.ndarray] | None:
        """The columns of the runs that have finished since the last call; None if there are none."""
        with self.lock:
            parts, self.parts = self.parts, []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else None

    def close(self) -> None:
        """Ends every thread after its current chunk: one of them has failed, or the sweep is interrupted."""
        self.closed = True

    def stats(self, program: Program) -> Stats:
        """How the sweep has gone so far."""
        with self.lock:
            return Stats(
                seconds=time.perf_counter() - self.started,
                compile_seconds=program.seconds,
                pulls=self.pulls,
                rounds=self.rounds,
                occupancy=self.rounds / self.capacity if self.capacity else 0.0,
                lanes=program.lanes,
                devices=program.devices,
                batches=program.batches,
                chunk=program.chunk,
                bytes=program.bytes,
                finished=self.finished,
                visits=self.visits,
                host_seconds=self.host_seconds,
            )


def part_of(begun: Begun, chosen: slice | np.ndarray) -> Begun:
    """Some of the runs."""
    tasks, pulls, rounds, leaves = begun
    return Begun(tasks[chosen], pulls[chosen], rounds[chosen], [leaf[chosen] for leaf in leaves])
