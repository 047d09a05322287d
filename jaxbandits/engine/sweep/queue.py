"""The queue of remaining tasks and finished runs, shared by the threads that drive batches."""

import threading
import time

import numpy as np

from jaxbandits.engine.results.runs import Stats
from jaxbandits.engine.results.statistics import CENSORED, FAILED
from jaxbandits.engine.sweep.program import Program

# Share of the tasks that are handed out seed by seed; the others follow, longest rows first.
SORTED_FROM = 0.75


class Queue:
    """Distributor of tasks and collector of finished runs; any thread may call every method."""

    def __init__(self, todo: np.ndarray, rows: int):
        self.todo, self.next, self.rows = todo, 0, rows
        self.lengths, self.runs = np.zeros(rows), np.zeros(rows)  # rounds and number of the finished runs of a row
        self.is_sorted = False
        self.closed = False
        self.parts: list[dict[str, np.ndarray]] = []  # finished runs that have not been collected
        self.finished = self.censored = self.failed = self.pulls = self.rounds = self.capacity = self.visits = 0
        self.host_seconds = 0.0
        self.started = time.perf_counter()
        self.lock = threading.Lock()

    def take(self, count: int) -> np.ndarray:
        """Returns the next task ids, at most `count`."""
        with self.lock:
            if not self.is_sorted and self.next >= SORTED_FROM * len(self.todo):
                self.todo = np.concatenate([self.todo[: self.next], self._longest_first(self.todo[self.next :])])
                self.is_sorted = True
            ids = self.todo[self.next : self.next + count]
            self.next += len(ids)
            return ids

    def _longest_first(self, ids: np.ndarray) -> np.ndarray:
        """Sorts task ids by the mean run length of their row, longest first, so that short runs fill the last lanes."""
        # A row without a finished run counts as long.
        means = np.where(self.runs > 0, self.lengths / np.maximum(self.runs, 1), np.inf)
        return ids[np.argsort(-means[ids % self.rows], kind="stable")]

    @property
    def waiting(self) -> int:
        """Counts the finished runs that have not been collected."""
        return sum(len(part["row"]) for part in self.parts)

    def add(self, part: dict[str, np.ndarray], *, pulls: int, rounds: int, capacity: int, host_seconds: float) -> None:
        """Stores the runs that finished in a call, if any, and updates the statistics.

        Args:
            part: columns of the finished runs; empty if there are none.
            pulls: oracle queries of all lanes.
            rounds: rounds of all lanes.
            capacity: rounds that the lanes could have carried out.
            host_seconds: time that the batch waited for the host between two calls.
        """
        with self.lock:
            if part:
                self.parts.append(part)
                self.finished += len(part["row"])
                # If both arrays have one type, `np.add.at` is thirty times as fast.
                np.add.at(self.lengths, part["row"], part["rounds"].astype(float))
                np.add.at(self.runs, part["row"], 1.0)
                self.censored += int(np.isin(part["status"], CENSORED).sum())
                self.failed += int(np.isin(part["status"], FAILED).sum())
            self.pulls, self.rounds = self.pulls + pulls, self.rounds + rounds
            self.capacity += capacity
            self.host_seconds, self.visits = self.host_seconds + host_seconds, self.visits + 1

    def collect(self) -> dict[str, np.ndarray] | None:
        """Returns the columns of the runs that have finished since the last call; None if there are none."""
        with self.lock:
            parts, self.parts = self.parts, []
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else None

    def close(self) -> None:
        """Ends every thread after its current call, because one of them failed or the sweep is interrupted."""
        self.closed = True

    def stats(self, program: Program) -> Stats:
        """Returns the statistics of the sweep so far."""
        with self.lock:
            return Stats(
                seconds=time.perf_counter() - self.started,
                compile_seconds=program.seconds,
                xla_seconds=program.xla_seconds,
                pulls=self.pulls,
                rounds=self.rounds,
                occupancy=self.rounds / self.capacity if self.capacity else 0.0,
                lanes=program.layout.lanes,
                devices=program.layout.mesh.size,
                batches=program.batches,
                chunk=program.layout.chunk,
                bytes=program.bytes,
                finished=self.finished,
                visits=self.visits,
                host_seconds=self.host_seconds,
            )
