"""Docstrings of the fields of structs, as `help` shows them."""

import inspect
import pydoc
import sys
import types

import pytest

import jaxbandits
from jaxbandits import fields

FAMILIES = ("cpe", "feedback", "fullbandit", "kcenter", "kernel", "linear", "mab")
MODULES = (jaxbandits, *(getattr(jaxbandits, name) for name in (*FAMILIES, "base", "engine")))
STRUCTS = {
    value
    for module in MODULES
    for value in (getattr(module, name) for name in module.__all__)
    if inspect.isclass(value) and hasattr(value, "_fields")
}


@pytest.mark.parametrize("struct", sorted(STRUCTS, key=lambda each: (each.__module__, each.__name__)))
def test_public_field_has_a_docstring(struct):
    assert not [name for name in struct._fields if (getattr(struct, name).__doc__ or "Alias").startswith("Alias")]


def test_help_of_environment_says_what_a_field_is():
    text = pydoc.render_doc(jaxbandits.Environment, renderer=pydoc.plaintext)
    assert "(key) -> memory before the first round" in text
    # Comments above a field.
    assert "(memory, action, noise) -> (observation, memory)" in jaxbandits.Environment.respond.__doc__
    assert "Alias for field" not in text


def test_comments_of_joins_lines_above_and_skips_what_is_no_field():
    class Two:
        _fields = ("first", "second", "third")

    body = (
        '    """A struct.\n\n    word: no field\n    """\n\n'
        "    # part one,\n    # part two\n    first: int\n    second: float  # float ()   seconds\n    third: int\n"
        "    other = 1  # no field\n\n\nfirst: int  # outside\n"
    )
    assert fields.comments_of(Two, body) == {"first": "part one, part two", "second": "float (): seconds", "third": ""}


def test_module_without_source_is_left_out(monkeypatch):
    module = types.ModuleType("nosource.module")
    module.Struct = jaxbandits.base.NamedTuple("Struct", [("entry", int)])
    module.Struct.__module__ = module.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert list(fields.structs("nosource")) == []
