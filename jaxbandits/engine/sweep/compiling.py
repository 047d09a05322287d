"""A cache of the compiled programs of this process, by their text.

`jax.jit` caches a program by the Python function that it was traced from. A sweep makes new functions in every call, so
its programs are cached by their text. The same study under another key, or with other values in its table, is traced to
the same text, and compiles nothing.
"""

import hashlib
import threading
from collections.abc import Hashable, Sequence
from typing import Any

import jax

KEPT = 64  # number of cached programs, two per rule of a sweep; the one unused for longest is dropped

_known: dict[Hashable, Any] = {}  # cached programs, in the order of their last use
_lock = threading.Lock()


def compiled(lowered: Any, devices: Sequence[Hashable], options: dict[str, Any] | None = None) -> Any:
    """Compiles a program, unless this process has compiled the same one before.

    Args:
        lowered: result of `jax.jit(..).lower(..)`.
        devices: devices of the program, which its text does not name.
        options: options of the compiler.

    Returns:
        The compiled program, for arguments of the shapes and types that it was lowered for.
    """
    text = hashlib.sha256(lowered.as_text().encode()).digest()
    # The text lacks unused arguments and the classes of inputs and outputs.
    arguments = lowered.in_tree, *map(str, jax.tree.leaves(lowered.args_info))
    results = jax.tree.structure(lowered.out_info)
    name = text, arguments, results, tuple(devices), tuple((options or {}).items())
    with _lock:  # a thread that needs the same program waits for it
        program = _known.pop(name, None)
        if program is None:
            program = lowered.compile(options)
            if len(_known) == KEPT:
                del _known[next(iter(_known))]
        _known[name] = program
    return program
