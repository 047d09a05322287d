"""Programs of two revisions compared: the proof that a restructuring has changed no operation and no constant.

Two checkouts with equal fingerprints compute the same, bit for bit. Unequal ones may still: then transcriptions and
columns of sweeps decide. Host code (stores, queues, results) is in no program; its tests cover it.

Every contract case has two fingerprints per precision: of the program of `jaxbandits.run`, and of a sweep's rounds.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench.fingerprints import FAILS
from experiments.report import Claim, Report
from experiments.settings import Settings

SHOWN = 12  # digits of a fingerprint in the table
CASES = Path("tests", "contract", "cases.py")
SCRIPT = Path(__file__).parent / "fingerprints.py"


def run(options: Settings) -> Report:
    """Returns a row for every program of every contract case."""
    revision, parts = options.extra.get("against"), options.extra.get("only") or ()
    root = checkout()
    with contextlib.ExitStack() as stack:
        stack.enter_context(termination_as_exit())
        started = {"here": stack.enter_context(_started(root, parts))}
        if revision is not None:
            tree = stack.enter_context(worktree(root, revision))
            started[revision] = stack.enter_context(_started(tree, parts))
        prints = {name: _fingerprints(name, process) for name, process in started.items()}
    cases = list(dict.fromkeys(case for each in prints.values() for case in each))
    if not cases:
        raise SystemExit(f"--only must name contract cases, got {' '.join(parts)}")
    failed = {
        f"{case} in {name}: {value.removeprefix(FAILS)}"
        for name, each in prints.items()
        for case, value in each.items()
        if value.startswith(FAILS)
    }
    differ = [case for case in cases if len({each.get(case) for each in prints.values()}) > 1]
    grid = [{"case": case} | {name: each.get(case, "none")[:SHOWN] for name, each in prints.items()} for case in cases]
    claims = [Claim("every program can be traced", "; ".join(sorted(failed)) or f"{len(cases)} were", not failed)]
    if revision is not None:
        grid = [row | {"": "DIFFERS" if row["case"] in differ else "same"} for row in grid]
        same = f"{len(cases) - len(differ)} of {len(cases)} are" + "".join(f"; not {case}" for case in differ)
        claims.append(Claim("every program is the same", same, not differ))
    return Report(
        "Programs of the contract cases",
        [],
        claims,
        {"case": np.array(cases)}
        | {name: np.array([each.get(case, "") for case in cases]) for name, each in prints.items()},
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


@contextlib.contextmanager
def termination_as_exit() -> Iterator[None]:
    """Lets SIGTERM unwind the stack within the block, so that worktree and processes go; in the main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _started(root: Path, parts: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Starts a process that computes the fingerprints of one checkout, and kills it if it still runs in the end."""
    path = os.pathsep.join(map(str, (root, root / "tests")))
    with subprocess.Popen(
        [sys.executable, SCRIPT, *parts],
        cwd=root,
        env=os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _fingerprints(name: str, process: subprocess.Popen[str]) -> dict[str, str]:
    """Returns what a process has printed; exits if it failed."""
    output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the fingerprints of {name} could not be computed: see the error above")
    return json.loads(output)
