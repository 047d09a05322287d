"""Files that are written as a whole or not at all."""

import contextlib
import errno
import importlib.util
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

# Prefix of the names of half-written files; the folder may also hold other files.
TEMPORARY = ".jaxbandits-"


def make_folder(folder: Path) -> None:
    """Creates the store's folder. Raises at once, not after the first hour, if it cannot be written."""
    if importlib.util.find_spec("pyarrow") is None:
        raise ModuleNotFoundError("store= keeps runs in Parquet files with pyarrow: pip install pyarrow")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = temporary_path(folder)
        probe.write_bytes(b"")
        probe.unlink()


def write_file(path: Path, data: bytes) -> None:
    """Writes the whole file or nothing, even if the power fails."""
    temporary = temporary_path(path.parent)
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    except OSError as error:
        # Some network file systems sync folders on their own.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(directory)


def temporary_path(folder: Path) -> Path:
    """Returns a new name for a half-written file."""
    return folder / f"{TEMPORARY}{uuid.uuid4().hex}"


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Explains in an OSError what follows for the store."""
    try:
        yield
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror}: the store cannot be written; runs that were stored before are safe, and the same call "
            "goes on from there once there is room and permission",
            str(folder),
        ) from error
