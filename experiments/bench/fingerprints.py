"""Prints the fingerprints of the contract cases' programs, as JSON: {"case, dtype": hash}.

A process of its own runs this file on one checkout, whose root and tests are on its path. It uses public names and
`tests/contract` alone, so that it reads revisions whose files are elsewhere. Arguments: parts of the names wanted.
"""

import hashlib
import json
import re
import sys
from typing import Any

import jax

LANES, CHUNK = 2, 16  # small: a fingerprint is of the operations, whose number they do not change


def fingerprint(text: str) -> str:
    """Hashes a program in StableHLO: all its operations, types and constants, but no name of a function or a field."""
    names: dict[str, str] = {}
    text = re.sub(r'\s*jax\.(result_info|arg_info) = "(\\.|[^"\\])*",?', "", text)
    text = re.sub(r'@("(\\.|[^"\\])*"|[\w.$-]+)', lambda match: names.setdefault(match[0], f"@f{len(names)}"), text)
    return hashlib.sha256(text.encode()).hexdigest()


def program_of(case: Any, dtype: str) -> str:
    """Lowers whole runs of a case, two lanes side by side, to StableHLO."""
    import jaxbandits

    algorithm, environment = case.make(dtype)

    def run(key: jax.Array) -> Any:
        return jaxbandits.run(key, algorithm, environment, max_rounds=1000, chunk=CHUNK, axis_name="lanes")

    keys = jax.random.split(jax.random.key(0), LANES)
    return jax.jit(jax.vmap(run, axis_name="lanes")).lower(keys).as_text()


def main(wanted: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    from contract.cases import CASES

    prints = {}
    for name, case in CASES.items():
        if not wanted or any(part.lower() in name for part in wanted):
            for dtype in case.dtypes:
                prints[f"{name}, {dtype}"] = fingerprint(program_of(case, dtype))
                print(name, dtype, file=sys.stderr, flush=True)
    print(json.dumps(prints))


if __name__ == "__main__":
    main(sys.argv[1:])
