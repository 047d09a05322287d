"""The tutorials run as scripts, as a reader would run them."""

import os
import subprocess
import sys

import pytest
from drivers.flags import known_flags

from experiments import HERE

TUTORIALS = sorted((HERE / "tutorials").glob("[0-9]*.py"))
COMPUTE = ("11_rare_errors",)  # the others mostly compile, which takes two thirds of the time without optimisation
PLAIN = known_flags(["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"])


@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_is_short_and_in_cells(script):
    lines = script.read_text().splitlines()
    assert len(lines) < 80
    assert lines[0] == "# %% [markdown]"
    assert lines[1].startswith("# # ")
    assert "# %%" in lines


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("script", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(script, tmp_path):
    flags = [flag for flag in os.environ["XLA_FLAGS"].split() if "device_count" not in flag]
    if script.stem not in COMPUTE:
        flags += PLAIN  # the last of two values holds
    environment = os.environ | {"XLA_FLAGS": " ".join(flags), "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "error::UserWarning", str(script)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout
