"""Writes the reference, from the docstrings: `python -m jaxbandits.reference FOLDER`; it needs pdoc.

`pdoc jaxbandits` shows the same pages, except that it knows nothing of the fields of structs: what they hold is said in
the comments beside them, which are read here.
"""

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import jaxbandits

BEGIN = re.compile(r"    (?P<name>\w+): ")  # of a line that declares a field


def structs() -> Iterator[type]:
    """All named tuples of the package, each once."""
    for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and hasattr(kind, "_fields"):
                yield kind


def meanings(kind: type) -> dict[str, str]:
    """What the comments say of the fields of a named tuple: behind the field, or above it."""
    found, above = {}, []
    for line in inspect.getsource(kind).splitlines():
        _, _, comment = line.partition("  # pyright")[0].partition("  # ")
        if line.strip().startswith("#"):
            above.append(line.strip("# "))
        elif (match := BEGIN.match(line)) and match["name"] in kind._fields:  # type: ignore[attr-defined]
            found[match["name"]] = re.sub(r" {2,}", ": ", comment.strip()) or " ".join(above)
            above = []
        else:
            above = []
    return found


def document_fields() -> None:
    """Gives every field of every struct a docstring, in place of "Alias for field number 0"."""
    for kind in structs():
        for name, meaning in meanings(kind).items():
            getattr(kind, name).__doc__ = meaning


def main(arguments: list[str]) -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(prog="python -m jaxbandits.reference", description=__doc__)
    parser.add_argument("folder", type=Path, help="to write to")
    folder = parser.parse_args(arguments).folder
    try:
        import pdoc
        import pdoc.render
    except ModuleNotFoundError:
        print("the reference is written by pdoc: pip install pdoc", file=sys.stderr)
        return 1
    document_fields()
    pdoc.render.configure(docformat="google", math=True)
    # By its folder: the bare name is ambiguous, and pdoc warns, where the package is installed beside a checkout.
    pdoc.pdoc(Path(__file__).parent, output_directory=folder)
    print(f"written: {folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
