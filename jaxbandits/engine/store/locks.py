"""Who may write to a store: locks, the call of `sweep` that is under way, the stop sign."""

import contextlib
import errno
import logging
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxbandits.engine.logs import say
from jaxbandits.engine.store.files import explained, write_file

CALL = ".call"  # holds the name of the call of `sweep` that is under way, or was the last

log = logging.getLogger(__name__)


@contextlib.contextmanager
def locked(folder: Path, name: str, *, shared: bool = False, wait: bool = False) -> Iterator[Callable[[], None]]:
    """Holds a lock that is released when the process ends, even if it is killed. Yields a function that shares it.

    Raises:
        BlockingIOError: another process holds it, or another thread of this one.
        OSError: the lock's file cannot be written.
    """
    import fcntl

    with contextlib.ExitStack() as stack:
        with explained(folder):  # over NFS, a shared lock needs a file that can be read
            file = stack.enter_context(open(folder / f".{name}.lock", "a+b"))

        def take(kind: int) -> None:
            try:
                fcntl.flock(file, kind)
            except BlockingIOError as error:
                raise BlockingIOError(
                    error.errno,
                    "another sweep, of this process or another one, is writing to this store: let it end, or stop it",
                    str(folder),
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                    raise
                say(
                    log,
                    logging.WARNING,
                    "%s is on a file system without locks: make sure that no two sweeps write to it",
                    folder,
                )

        take((fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
        yield lambda: take(fcntl.LOCK_SH | fcntl.LOCK_NB)


def begin_call(folder: Path) -> str:
    """Marks the beginning of a new call of `sweep`. Shards of earlier calls, which an executor may hold, end.

    Returns:
        The name of the call, for `is_called_off`.
    """
    name = uuid.uuid4().hex
    with explained(folder):
        write_file(folder / CALL, name.encode())
    return name


def is_called_off(folder: Path, call: str) -> bool:
    """Whether the shards of a call are to end: there is a stop sign, or another call has begun.

    If the name of the call was taken away, no other call has begun.
    """
    if stop_sign(folder).exists():
        return True
    try:
        return (folder / CALL).read_bytes() != call.encode()
    except (FileNotFoundError, IsADirectoryError):
        return False


def is_reached(folder: Path) -> bool:
    """Whether this process sees the store of a call that has begun: a worker may be on a machine that does not."""
    return (folder / CALL).exists()


def stop_sign(folder: Path) -> Path:
    """The file whose presence tells all writers to end after their chunk."""
    return folder / ".stop"
