"""Logging that never raises: a handler may fail because its terminal is gone or its disk is full."""

import contextlib
import logging


def say(log: logging.Logger, level: int, text: str, *values: object) -> None:
    """Logs a line, as `log.log(level, text, *values)` does, and drops it if a handler raises.

    The standard handlers report their own errors on stderr, and raise if that is closed.
    """
    with contextlib.suppress(Exception):
        log.log(level, text, *values, stacklevel=2)
