"""Every path that a docstring of the library names can be imported."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import jaxbandits

PATH = re.compile(r"\bjaxbandits(?:\.[A-Za-z_]\w*)+")


def docstrings(tree):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]


FILES = sorted(Path(jaxbandits.__file__).parent.rglob("*.py"))
NAMED = sorted(
    {path for file in FILES for text in docstrings(ast.parse(file.read_text())) for path in PATH.findall(text)}
)
MODULES = [module.name for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits.")]


def test_there_are_some():
    assert "jaxbandits.engine.sizing.default_lanes" in NAMED


@pytest.mark.parametrize("path", NAMED)
def test_a_path_leads_where_it_says(path):
    module, names = "jaxbandits", path.split(".")[1:]
    while names and f"{module}.{names[0]}" in MODULES:
        module = f"{module}.{names.pop(0)}"
    found = importlib.import_module(module)
    for name in names:
        found = getattr(found, name)


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("jaxbandits.engine")])
def test_no_module_of_the_engine_is_hidden_by_a_function(module):
    package, _, name = module.rpartition(".")
    importlib.import_module(module)
    assert getattr(importlib.import_module(package), name) is importlib.import_module(module)
