"""Writes the reference from the docstrings: `python -m jaxbandits.reference FOLDER`. It needs pdoc.

`pdoc jaxbandits` shows the same pages without the fields of structs. Comments beside the fields describe them; this
module adds them as docstrings.
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

BEGIN = re.compile(r"    (?P<name>\w+): ")  # start of a line that declares a field


def structs() -> Iterator[type]:
    """Yields all named tuples of the package, each once."""
    for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and hasattr(kind, "_fields"):
                yield kind


def meanings(kind: type) -> dict[str, str]:
    """Returns the comment of each field of a named tuple: behind the field, or above it."""
    comments, above = {}, []
    for line in inspect.getsource(kind).splitlines():
        _, _, comment = line.partition("  # pyright")[0].partition("  # ")
        if line.strip().startswith("#"):
            above.append(line.strip("# "))
        elif (match := BEGIN.match(line)) and match["name"] in kind._fields:  # type: ignore[attr-defined]
            comments[match["name"]] = re.sub(r" {2,}", ": ", comment.strip()) or " ".join(above)
            above = []
        else:
            above = []
    return comments


def document_fields() -> None:
    """Gives every field of every struct a docstring instead of "Alias for field number 0"."""
    for kind in structs():
        for name, meaning in meanings(kind).items():
            getattr(kind, name).__doc__ = meaning


def main(arguments: list[str]) -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(prog="python -m jaxbandits.reference", description=__doc__)
    parser.add_argument("folder", type=Path, help="output folder")
    folder = parser.parse_args(arguments).folder
    try:
        import pdoc
        import pdoc.render
    except ModuleNotFoundError:
        print("The reference needs pdoc: pip install pdoc", file=sys.stderr)
        return 1
    document_fields()
    pdoc.render.configure(docformat="google", math=True)
    # The bare name is ambiguous if the package is installed beside a checkout, and pdoc warns.
    pdoc.pdoc(Path(__file__).parent, output_directory=folder)
    print(f"written: {folder / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
