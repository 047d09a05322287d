"""Flags of XLA, which differ between its versions: a process that is given one that XLA does not know ends at once."""

import os
import subprocess
import sys


def known_flags(flags: list[str]) -> list[str]:
    """Returns the flags that the installed XLA knows, by trying them in processes of their own: a second each."""
    if _starts(flags):
        return list(flags)
    return [flag for flag in flags if _starts([flag])]


def _starts(flags: list[str]) -> bool:
    environment = os.environ | {"XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
