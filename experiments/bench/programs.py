"""Compares the programs of two revisions: whether a restructuring has changed any operation or constant.

Two checkouts with equal fingerprints compute the same, bit for bit. Unequal ones may still: then transcriptions and
columns of sweeps decide. Host code (stores, queues, results) is in no program, and stays with its tests.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from experiments.report import Claim, Report
from experiments.settings import Settings

SHOWN = 12  # digits of a fingerprint in the table
CASES = Path("tests", "contract", "cases.py")
SCRIPT = Path(__file__).parent / "fingerprints.py"


def run(options: Settings) -> Report:
    """A row for every contract case in each of its precisions."""
    revision, wanted = options.own.get("against"), options.own.get("only") or ()
    root = checkout()
    with contextlib.ExitStack() as stack:
        started = {"here": _start(root, wanted)}
        if revision is not None:
            started[revision] = _start(stack.enter_context(worktree(root, revision)), wanted)
        prints = {name: _fingerprints(name, process) for name, process in started.items()}
    cases = list(dict.fromkeys(case for part in prints.values() for case in part))
    if not cases:
        raise SystemExit(f"--only must name contract cases, got {' '.join(wanted)}")
    differ = [case for case in cases if len({part.get(case) for part in prints.values()}) > 1]
    grid = [{"case": case} | {name: part.get(case, "none")[:SHOWN] for name, part in prints.items()} for case in cases]
    claims = []
    if revision is not None:
        grid = [row | {"": "DIFFERS" if row["case"] in differ else "same"} for row in grid]
        same = f"{len(cases) - len(differ)} of {len(cases)} are" + "".join(f"; not {case}" for case in differ)
        claims = [Claim("every program is the same", same, not differ)]
    return Report(
        "Programs of the contract cases",
        [],
        claims,
        {"case": np.array(cases)}
        | {name: np.array([part.get(case, "") for case in cases]) for name, part in prints.items()},
        None,
        grid=grid,
    )


def checkout() -> Path:
    """Returns the root of the git checkout around the working directory; exits unless it has contract cases."""
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False)
    root = Path(top.stdout.strip() or ".")
    if top.returncode or not (root / CASES).is_file():
        raise SystemExit(f"bench programs must be called in a checkout with {CASES}, got {Path.cwd()}")
    return root


@contextlib.contextmanager
def worktree(root: Path, revision: str) -> Iterator[Path]:
    """Checks a revision out into a temporary folder, which is removed in the end."""
    known = subprocess.run(
        ["git", "-C", root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode:
        raise SystemExit(f"--against must be a revision of this repository, got {revision}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        subprocess.run(
            ["git", "-C", root, "worktree", "add", "--quiet", "--detach", tree, known.stdout.strip()], check=True
        )
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", root, "worktree", "remove", "--force", tree], check=True)


def _start(root: Path, wanted: Sequence[str]) -> subprocess.Popen[str]:
    """Starts a process that computes the fingerprints of one checkout."""
    path = os.pathsep.join(map(str, (root, root / "tests")))
    return subprocess.Popen(
        [sys.executable, SCRIPT, *wanted],
        cwd=root,
        env=os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
    )


def _fingerprints(name: str, process: subprocess.Popen[str]) -> dict[str, str]:
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the fingerprints of {name} could not be computed: see the error above")
    return json.loads(output)
