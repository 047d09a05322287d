"""Worker processes on this machine that do not get in each other's way."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import jax

from jaxbandits.engine.lanes import cores

MEMORY = 0.9  # share of a GPU's memory that its workers reserve together


class Share(NamedTuple):
    """What one worker may use."""

    cores: Sequence[int] | None  # by number, where the system lets a process choose; else None
    environment: dict[str, str]
    platforms: str | None  # what JAX is to use, where it is not to choose itself


def process_pool(workers: int, *, gpus: Sequence[int | str] = ()) -> ProcessPoolExecutor:
    """An executor for `sweep(..., executor=)`: processes that share out the cores, or the GPUs, of this machine.

    Left to themselves, all workers would start a thread on every core, and the first would reserve most of every GPU.
    Each worker is given its own cores (by affinity where the system has it, and by `NPROC`, which XLA and this library
    heed) and, with `gpus`, one of them (`CUDA_VISIBLE_DEVICES`); workers on the same GPU share out its memory
    (`XLA_PYTHON_CLIENT_MEM_FRACTION`). Without `gpus` all workers see, and share, what this process sees. Workers end
    when this process does, however it ends.

    The process that calls `sweep` opens JAX's devices, too: start it with `JAX_PLATFORMS=cpu` where its workers are to
    have the GPUs' memory for themselves.

    Args:
        workers: number of processes. They start afresh ("spawn") and import the script that uses them, so it needs the
            usual `if __name__ == "__main__":`. What stands outside of it must not open JAX's devices, with an array for
            instance, before a worker knows its GPU.
        gpus: names of the GPUs, as in `CUDA_VISIBLE_DEVICES`.

    Returns:
        ProcessPoolExecutor, to be used in a `with` statement. Its workers leave Ctrl-C to the process that called
        `sweep`, which has them finish their chunk and write.

    Raises:
        ValueError: `workers` is below 1.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    context = multiprocessing.get_context("spawn")
    initargs = share_out(workers, gpus), context.Value("i", 0)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_settle, initargs=initargs)


def share_out(workers: int, gpus: Sequence[int | str]) -> list[Share]:
    """The shares of all workers; cores and GPUs go round, those left over go to the first."""
    numbers = sorted(os.sched_getaffinity(0))[: cores()] if hasattr(os, "sched_getaffinity") else None
    shares = []
    for n in range(workers):
        mine = [core for core in range(cores()) if core % workers == n % cores()]
        environment = {"NPROC": str(len(mine)), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{MEMORY / workers:.3f}"}
        if gpus:
            sharing = len(range(n % len(gpus), workers, len(gpus)))
            environment |= {
                "CUDA_VISIBLE_DEVICES": str(gpus[n % len(gpus)]),
                "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{MEMORY / sharing:.3f}",
            }
        shares.append(Share(numbers and [numbers[core] for core in mine], environment, "cuda,cpu" if gpus else None))
    return shares


def occupy(share: Share) -> None:
    """Keeps this process to its share; to be called before JAX opens its devices."""
    os.environ.update(share.environment)
    if share.cores is not None:
        # A library that the script imports may have started threads by now, each with an affinity of its own.
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):  # or ended them
                os.sched_setaffinity(int(thread), share.cores)
    if share.platforms is not None:
        try:
            jax.config.update("jax_num_cpu_devices", 1)  # the setting through which JAX tells that it is too late
        except RuntimeError as error:
            raise RuntimeError(
                "a worker's script opens JAX's devices as it is imported, before the worker knows its GPU: move what "
                'makes arrays there into a function, or under `if __name__ == "__main__":`'
            ) from error
        jax.config.update("jax_platforms", share.platforms)  # it read the environment when it was imported


def end_with_parent() -> None:
    """A worker whose parent was killed would run what is queued, and then wait for more for ever."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _settle(shares: Sequence[Share], taken: Any) -> None:
    """Runs in a new worker; `taken` counts the shares that have an owner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with taken.get_lock():
        share = shares[taken.value]
        taken.value += 1
    occupy(share)
