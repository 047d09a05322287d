"""Docstrings of the fields of structs, from the comments beside them."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

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
