"""Ctrl-C that is not lost."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

PAUSE = 0.05  # seconds until a lost interrupt is raised again


@contextlib.contextmanager
def raised_again() -> Iterator[None]:
    """Has an interrupt that was lost raised again, until it arrives.

    Python raises KeyboardInterrupt wherever the main thread is. In a callback of the garbage collector, and JAX has
    one, it is printed as ignored, and the program goes on.
    """
    others = sys.unraisablehook

    def hook(lost: Any) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            others(lost)
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.default_int_handler:
                # A signal of the system's, which wakes the main thread where it waits; `interrupt_main` would not.
                again = threading.Timer(PAUSE, signal.pthread_kill, (threading.main_thread().ident, number))
                again.daemon = True
                again.start()
                return

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = others
