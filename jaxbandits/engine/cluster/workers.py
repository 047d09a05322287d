"""Worker processes that divide the cores, or the GPUs, of this machine among them."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import jax

from jaxbandits import checks
from jaxbandits.engine.sweep.layout import cores

MEMORY = 0.9  # share of a GPU's memory that its workers reserve together


class Share(NamedTuple):
    """Resources of one worker."""

    cores: Sequence[int] | None  # numbers of the cores; None if the system sets no affinity
    environment: dict[str, str]
    platforms: str | None  # JAX platforms; None if JAX chooses


def process_pool(workers: int, *, gpus: Sequence[int | str] = ()) -> ProcessPoolExecutor:
    """Creates an executor for `sweep(..., executor=)` whose processes divide this machine's cores or GPUs.

    By default, every worker would start a thread on every core, and the first would reserve most of every GPU.
    Here each worker gets its own cores, by affinity if the system has it, and by `NPROC`, which XLA and this library
    read. With `gpus` it also gets one of them (`CUDA_VISIBLE_DEVICES`); workers on the same GPU divide its memory
    (`XLA_PYTHON_CLIENT_MEM_FRACTION`). Without `gpus` all workers share the devices of this process. Workers end when
    this process does, however it ends.

    The process that calls `sweep` also opens JAX's devices. Start it with `JAX_PLATFORMS=cpu` to leave the GPUs' memory
    to its workers.

    Args:
        workers: number of processes. They start afresh ("spawn") and import the script that uses them, so it needs the
            usual `if __name__ == "__main__":`. Code outside of it must not open JAX's devices, for instance by creating
            an array, because a worker does not know its GPU yet.
        gpus: names of the GPUs, as in `CUDA_VISIBLE_DEVICES`.

    Returns:
        ProcessPoolExecutor, to be used in a `with` statement. Its workers leave Ctrl-C to the process that called
        `sweep`, which waits until they have finished their chunk and written their runs. Without a store, leaving the
        `with` statement waits until they have finished their shards.

    Raises:
        ValueError: `workers` is no integer of at least 1, or `gpus` is no sequence of names.
        RuntimeError: a worker that imports the script reaches this call: the script lacks the line above.
    """
    require_main()
    workers = checks.whole("workers", workers, least=1)
    if not isinstance(gpus, (list, tuple, range)) or not all(_is_gpu(gpu) for gpu in gpus):
        raise ValueError(f"gpus must be a list of numbers or names of GPUs, got {checks.show(gpus)}")
    context = multiprocessing.get_context("spawn")
    errors = context.SimpleQueue()
    initargs = share_out(workers, gpus), context.Value("i", 0), errors
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_settle, initargs=initargs)
    # A broken pool alone gives no reason.
    pool.start_errors = errors  # type: ignore[attr-defined]
    return pool


def share_out(workers: int, gpus: Sequence[int | str]) -> list[Share]:
    """Divides cores and GPUs among the workers. They are dealt in turn, so the first workers get the surplus."""
    numbers = sorted(os.sched_getaffinity(0))[: cores()] if hasattr(os, "sched_getaffinity") else None
    shares = []
    for n in range(workers):
        dealt = [core for core in range(cores()) if core % workers == n % cores()]
        environment = {"NPROC": str(len(dealt)), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{MEMORY / workers:.3f}"}
        if gpus:
            sharing = len(range(n % len(gpus), workers, len(gpus)))
            environment |= {
                "CUDA_VISIBLE_DEVICES": str(gpus[n % len(gpus)]),
                "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{MEMORY / sharing:.3f}",
            }
        shares.append(Share(numbers and [numbers[core] for core in dealt], environment, "cuda,cpu" if gpus else None))
    return shares


def occupy(share: Share) -> None:
    """Restricts this process to its share. Must be called before JAX opens its devices."""
    os.environ.update(share.environment)
    if share.cores is not None:
        # A library that the script imports may already have started threads, each with an affinity of its own.
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):  # the thread may have ended
                os.sched_setaffinity(int(thread), share.cores)
    if share.platforms is not None:
        try:
            # A test, too: JAX refuses this setting once its devices are open.
            jax.config.update("jax_num_cpu_devices", 1)
        except RuntimeError as error:
            raise RuntimeError(
                "a worker's script opens JAX's devices while it is imported, before the worker knows its GPU. Move "
                'code that makes arrays into a function, or under `if __name__ == "__main__":`'
            ) from error
        # An environment variable would be too late: JAX read it at import.
        jax.config.update("jax_platforms", share.platforms)


def end_with_parent() -> None:
    """Ends a worker with its parent. If only the parent were killed, it would run the queue and then wait forever."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def require_main() -> None:
    """Raises `RuntimeError` in a worker that is still importing the script which started it.

    Without this check it would run the script from its beginning, and fail because the store is locked.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a worker reached this line while it imported the script: workers start afresh and import it. Put the "
            'script\'s actions under `if __name__ == "__main__":`'
        )


def start_error(pool: Any) -> str | None:
    """Returns the error of a worker of this `process_pool` that could not start, or None."""
    errors = getattr(pool, "start_errors", None)
    return None if errors is None or errors.empty() else errors.get()


def forks(executor: Any) -> bool:
    """Checks whether an executor forks its workers. Such copies would wait for locks of JAX's threads."""
    context = getattr(executor, "_mp_context", None)
    if not isinstance(executor, ProcessPoolExecutor) or context is None:
        return False
    return (context.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]) == "fork"


def _is_gpu(name: object) -> bool:
    """True if the name is valid in `CUDA_VISIBLE_DEVICES`."""
    is_number = isinstance(name, int) and not isinstance(name, bool) and name >= 0
    return is_number or (isinstance(name, str) and name != "")


def _settle(shares: Sequence[Share], taken: Any, errors: Any) -> None:
    """Initialises a new worker. `taken` counts the shares that have an owner, `errors` collects error messages."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    with taken.get_lock():
        share = shares[taken.value]
        taken.value += 1
    try:
        occupy(share)
    except Exception as error:
        errors.put(str(error))
        raise
