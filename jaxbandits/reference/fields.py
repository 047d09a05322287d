"""Docstrings of the fields of all structs, also of modules that `import jaxbandits` leaves out."""

import importlib
import pkgutil
from collections.abc import Iterator

import jaxbandits
from jaxbandits import fields


def structs() -> Iterator[type]:
    """Yields all named tuples of the package, each once."""
    for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits."):
        importlib.import_module(module.name)
    yield from (kind for kind, _ in fields.structs())


def document_fields() -> None:
    """Gives every field of every struct a docstring instead of "Alias for field number 0"."""
    list(structs())  # imports every module
    fields.document_fields()
