"""The public names: exported, typed, and documented with what a user needs to call them."""

import importlib
import inspect
import pkgutil
import re
from functools import reduce
from typing import get_args

import pytest

import jaxbandits
from jaxbandits import reference

FAMILIES = ("linear", "fullbandit", "kcenter", "cpe", "kernel", "mab", "feedback", "rare")
MODULES = ("jaxbandits", *(f"jaxbandits.{family}" for family in FAMILIES))
PUBLIC = [
    pytest.param(getattr(importlib.import_module(module), name), id=f"{module}.{name}")
    for module in MODULES
    for name in importlib.import_module(module).__all__
    if not inspect.ismodule(getattr(importlib.import_module(module), name))
]
FUNCTIONS = [public for public in PUBLIC if inspect.isfunction(public.values[0])]
STRUCTS = [public for public in PUBLIC if hasattr(public.values[0], "_fields")]
# Docstrings that give shapes themselves, in Args, or by naming the function with the same arguments.
ARGUMENTS = re.compile(r"Args:|[Aa]rguments|[Aa]s (?:in |for )?`|\((?:[A-Za-z0-9+-]+(?:, ?[A-Za-z0-9+-]+)*,?)?\)")
SOURCE = re.compile(r"Source:|\(\d{4}\)|Theorem|Lemma|Proposition|[Ee]quation|Algorithm \d|Section|\bours\b|[Aa]s `")


def test_all_lists_importable_names_once():
    for module in map(importlib.import_module, MODULES):
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)
    assert set(FAMILIES) <= set(jaxbandits.__all__)


def test_no_module_is_hidden_by_a_function_of_its_own_name():
    """`jaxbandits.engine.sweep.layout` is the module that `import jaxbandits.engine.sweep.layout` imports."""
    for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits."):
        imported = importlib.import_module(module.name)
        assert reduce(getattr, module.name.split(".")[1:], jaxbandits) is imported, module.name


@pytest.mark.parametrize("public", PUBLIC)
def test_public_name_has_a_docstring(public):
    text = inspect.getdoc(public) or ""
    assert len(text.splitlines()[0]) > 10, "no docstring"
    assert not (inspect.isclass(public) and text.startswith(f"{public.__name__}(")), "a docstring that was generated"


@pytest.mark.parametrize("public", FUNCTIONS)
def test_arguments_are_typed_and_have_shapes(public):
    signature = inspect.signature(public)
    untyped = [name for name, each in signature.parameters.items() if each.annotation is inspect.Parameter.empty]
    assert not untyped
    assert signature.return_annotation is not inspect.Signature.empty
    if signature.parameters:
        assert ARGUMENTS.search(inspect.getdoc(public)), "neither Args nor shapes"


@pytest.mark.parametrize(
    "public",
    [
        each
        for each in FUNCTIONS
        if reference.is_factory(each.values[0]) or each.values[0].__module__.endswith("complexity")
    ],
)
def test_algorithms_and_bounds_name_their_source(public):
    assert SOURCE.search(inspect.getdoc(public))


def test_returned_structs_are_public():
    modules = [importlib.import_module(name) for name in (*MODULES, "jaxbandits.engine", "jaxbandits.testing")]
    shown = [getattr(module, name) for module in modules for name in module.__all__]
    for function in filter(inspect.isfunction, shown):
        returned = function.__annotations__.get("return")
        for kind in (returned, *get_args(returned)):
            assert not hasattr(kind, "_fields") or kind in shown, (function.__name__, kind)


@pytest.mark.parametrize("public", STRUCTS)
def test_fields_have_comments(public):
    """A comment stands behind the field or above it."""
    lines = inspect.getsource(public).splitlines()
    for field in public._fields:
        line = next(i for i, text in enumerate(lines) if re.match(rf"\s+{field}: ", text))
        assert "#" in lines[line] or lines[line - 1].strip().startswith("#"), field
