"""Docstrings of the fields of structs, from the comments beside them, for `help()` and the reference.

A named tuple documents its fields as "Alias for field number 0". The comment behind a field, or above it, says more.
`import jaxbandits` reads each source file once and makes these comments the docstrings of the fields.
"""

import re
import sys
from collections.abc import Iterator

CLASS = re.compile(r"^class (?P<name>\w+)\(NamedTuple\):", re.MULTILINE)
FIELD = re.compile(r"    (?P<name>\w+): ")  # start of a line that declares a field
INDENTED = ("    ", "\n", "\r")  # starts of the lines of a class


def document_fields(package: str = "jaxbandits") -> None:
    """Gives every field of every struct a docstring instead of "Alias for field number 0".

    Args:
        package: name of the package, of which all modules that have been imported are documented.
    """
    for kind, comments in structs(package):
        for name, comment in comments.items():
            getattr(kind, name).__doc__ = comment


def structs(package: str = "jaxbandits") -> Iterator[tuple[type, dict[str, str]]]:
    """Yields all named tuples of the imported modules of a package, with the comment of each field."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] != package:
            continue
        kinds = {
            name: value
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module_name and hasattr(value, "_fields")
        }
        source = source_of(module) if kinds else ""
        for header in CLASS.finditer(source):
            if header["name"] in kinds:
                yield kinds[header["name"]], comments_of(kinds[header["name"]], source[header.end() + 1 :])


def source_of(module: object) -> str:
    """Returns the source of a module, "" if there is none, as in a package without source files."""
    spec = getattr(module, "__spec__", None)
    try:
        return spec.loader.get_source(spec.name) or ""  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        return ""


def comments_of(kind: type, body: str) -> dict[str, str]:
    """Returns the comment of each field of a named tuple: behind the field, or above it, or "".

    Args:
        kind: the named tuple.
        body: source that begins behind the first line of the class.
    """
    comments, above = {}, []
    position = 0
    while position < len(body) and body.startswith(INDENTED, position):
        end = body.find("\n", position) + 1 or len(body)
        line, position = body[position:end].rstrip(), end
        if line.strip().startswith("#"):
            above.append(line.strip("# "))
            continue
        if (match := FIELD.match(line)) and match["name"] in kind._fields:  # type: ignore[attr-defined]
            _, _, comment = line.partition("  # pyright")[0].partition("  # ")
            comments[match["name"]] = re.sub(r" {2,}", ": ", comment.strip()) or " ".join(above)
        above = []
    return comments
