"""Fingerprints of the contract cases' programs, printed as JSON: {"case, dtype[, sweep]": hash}.

A process of its own runs this file on one checkout, whose root and tests are on its path. It uses public names and
`tests/contract` alone, so that it reads revisions whose files are elsewhere. Arguments: parts of the names of cases.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

LANES, CHUNK = 2, 16  # small: a fingerprint is of the operations, whose number they do not change
ROUNDS = 1000
FAILS = "fails: "  # begins what stands in the place of a fingerprint that could not be computed


class Lowered(BaseException):
    """The end of a sweep whose program has been lowered: no `except Exception` on the way may stop it."""


def fingerprint(text: str) -> str:
    """Hashes a program in StableHLO: all its operations, types and constants, but no name of a function or a field."""
    names: dict[str, str] = {}
    text = re.sub(r'\s*jax\.(result_info|arg_info) = "(\\.|[^"\\])*",?', "", text)
    text = re.sub(r'@("(\\.|[^"\\])*"|[\w.$-]+)', lambda match: names.setdefault(match[0], f"@f{len(names)}"), text)
    return hashlib.sha256(text.encode()).hexdigest()


def program_of_run(case: Any, dtype: str) -> str:
    """Lowers whole runs of a case, two lanes side by side, to StableHLO."""
    import jaxbandits

    algorithm, environment = case.make(dtype)

    def run(key: jax.Array) -> Any:
        return jaxbandits.run(key, algorithm, environment, max_rounds=ROUNDS, chunk=CHUNK, axis_name="lanes")

    keys = jax.random.split(jax.random.key(0), LANES)
    return jax.jit(jax.vmap(run, axis_name="lanes")).lower(keys).as_text()


def program_of_sweep(case: Any, dtype: str) -> str:
    """Lowers the advance of the lanes in a sweep of a case.

    A sweep lowers and compiles in one call, so its compiler is replaced. Its first program checks the table before the
    first round, and sorts outputs by the names of state fields; zeros instead of it say that it found nothing.
    """
    import jaxbandits

    pair = case.make(dtype)
    texts = []

    def zeros(lowered: Any) -> Callable[..., Any]:
        return lambda *_: jax.tree.map(lambda out: np.zeros(out.shape, out.dtype), lowered.out_info)

    def compile_none(lowered: Any, *_: Any, **__: Any) -> Callable[..., Any]:
        texts.append(lowered.as_text())
        if len(texts) == 2:
            raise Lowered
        return zeros(lowered)

    compiler, jax.stages.Lowered.compile = jax.stages.Lowered.compile, compile_none
    try:
        jaxbandits.sweep(
            lambda task, key: pair,
            None,
            seeds=LANES,
            key=jax.random.key(0),
            max_rounds=ROUNDS,
            lanes=LANES,
            chunk=CHUNK,
            progress=False,
        )
    except Lowered:
        return texts[-1]
    finally:
        jax.stages.Lowered.compile = compiler
    raise RuntimeError("the sweep compiled fewer than two programs")


def main(parts: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    from contract.cases import CASES

    prints = {}
    for name, case in CASES.items():
        if not parts or any(part.lower() in name for part in parts):
            for dtype in case.dtypes:
                for suffix, program in (("", program_of_run), (", sweep", program_of_sweep)):
                    try:
                        prints[f"{name}, {dtype}{suffix}"] = fingerprint(program(case, dtype))
                    except Exception as error:  # one case must not hide the others
                        prints[f"{name}, {dtype}{suffix}"] = f"{FAILS}{type(error).__name__}: {error}"
                print(name, dtype, file=sys.stderr, flush=True)
    print(json.dumps(prints))


if __name__ == "__main__":
    main(sys.argv[1:])
