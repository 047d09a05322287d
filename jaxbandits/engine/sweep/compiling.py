"""Compiled programs of this process, found again by their text.

`jax.jit` finds a program again by the Python function that it was traced from. A sweep makes its functions anew, so its
programs are known by what they say: the same study under another key, or with other values in its table, is traced to
the same text, and compiles nothing.
"""

import hashlib
import threading
from collections.abc import Hashable, Sequence
from typing import Any

import jax

KEPT = 16  # programs; the one that has not been used for longest is dropped

_known: dict[Hashable, Any] = {}  # the last used at the end
_lock = threading.Lock()


def compiled(lowered: Any, devices: Sequence[Hashable], options: dict[str, Any] | None = None) -> Any:
    """Compiles a program, unless this process has compiled the same one before.

    Args:
        lowered: what `jax.jit(..).lower(..)` returns.
        devices: that it runs on, which its text does not name.
        options: of the compiler.

    Returns:
        The compiled program, to be called with arguments as those that it was lowered for.
    """
    text = hashlib.sha256(lowered.as_text().encode()).digest()
    # What the text lacks: arguments that are not used, and the classes of what is put in and given back.
    arguments = lowered.in_tree, *map(str, jax.tree.leaves(lowered.args_info))
    results = jax.tree.structure(lowered.out_info)
    name = text, arguments, results, tuple(devices), tuple((options or {}).items())
    with _lock:  # a thread that wants the same program waits for it
        program = _known.pop(name, None)
        if program is None:
            program = lowered.compile(options)
            if len(_known) == KEPT:
                del _known[next(iter(_known))]
        _known[name] = program
    return program
