"""Locks of a store, the mark of the current call of `sweep`, and the stop sign."""

import contextlib
import errno
import logging
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxbandits.engine.logs import say
from jaxbandits.engine.store.files import explained, write_file

CALL = ".call"  # file with the name of the current or last call of `sweep`

log = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(folder: Path, name: str, *, shared: bool = False, wait: bool = False) -> Iterator[Callable[[], None]]:
    """Holds a lock. The system releases it when the process ends, even if it is killed.

    Args:
        folder: the store.
        name: name of the lock.
        shared: if True, other processes may share it.
        wait: if True, blocks until the lock is free.

    Yields:
        A function that makes an exclusive lock a shared one.

    Raises:
        BlockingIOError: another process, or another thread of this one, holds it.
        OSError: the lock's file cannot be written.
    """
    import fcntl

    with contextlib.ExitStack() as stack:
        # Over NFS, a shared lock needs a file that can be read.
        with explained(folder):
            file = stack.enter_context(open(folder / f".{name}.lock", "a+b"))

        def take(kind: int) -> None:
            try:
                fcntl.flock(file, kind)
            except BlockingIOError as error:
                raise BlockingIOError(
                    error.errno,
                    "another sweep, of this process or another one, is writing to this store. Let it end, or stop it",
                    str(folder),
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    raise
                text = "%s is on a file system without locks. Make sure that no two sweeps write to it."
                say(log, logging.WARNING, text, folder)

        take((fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield lambda: take(fcntl.LOCK_SH | fcntl.LOCK_NB)


def begin_call(folder: Path) -> str:
    """Marks the beginning of a new call of `sweep`. Shards of earlier calls that an executor still holds will end.

    Returns:
        The name of the call, for `is_called_off`.
    """
    name = uuid.uuid4().hex
    with explained(folder):
        write_file(folder / CALL, name.encode())
    return name


def is_called_off(folder: Path, call: str) -> bool:
    """Checks whether the shards of a call must end: there is a stop sign, or another call has begun.

    A missing file `.call` does not count as another call.
    """
    if stop_sign(folder).exists():
        return True
    try:
        return (folder / CALL).read_bytes() != call.encode()
    except (FileNotFoundError, IsADirectoryError):
        return False


def is_reached(folder: Path) -> bool:
    """Checks whether this process can see the store of the current call. A worker may run on a machine that cannot."""
    return (folder / CALL).exists()


def stop_sign(folder: Path) -> Path:
    """Returns the path of the file whose presence ends all writers after their chunk."""
    return folder / ".stop"
