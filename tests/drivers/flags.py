"""Flags of XLA, which differ between its versions. XLA ends a process at once if it does not know a flag."""

import os
import subprocess
import sys


def known_flags(flags: list[str]) -> list[str]:
    """Returns the flags that the installed XLA knows, by trying each in a process of about a second."""
    if _starts(flags):
        return list(flags)
    return [flag for flag in flags if _starts([flag])]


def _starts(flags: list[str]) -> bool:
    environment = os.environ | {"XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
