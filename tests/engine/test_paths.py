"""Every path that a docstring of the library names can be imported."""

import ast
import functools
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


ROOT = Path(jaxbandits.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [module.name for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits.")]


def named(file):
    """Returns the paths that the docstrings of a file name."""
    return sorted({path for text in docstrings(ast.parse(file.read_text())) for path in PATH.findall(text)})


def leads_somewhere(path):
    module, names = "jaxbandits", path.split(".")[1:]
    while names and f"{module}.{names[0]}" in MODULES:
        module = f"{module}.{names.pop(0)}"
    try:
        functools.reduce(getattr, names, importlib.import_module(module))
    except AttributeError:
        return False
    return True


def test_docstrings_name_paths():
    assert any("jaxbandits.engine.sweep.layout.default_lanes" in named(file) for file in FILES)
    assert not leads_somewhere("jaxbandits.engine.sweep.layout.no_such_name")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_path_in_a_docstring_can_be_imported(file):
    assert [path for path in named(file) if not leads_somewhere(path)] == []


@pytest.mark.parametrize("module", [name for name in MODULES if name.startswith("jaxbandits.engine")])
def test_no_module_of_the_engine_is_hidden_by_a_function(module):
    package, _, name = module.rpartition(".")
    importlib.import_module(module)
    assert getattr(importlib.import_module(package), name) is importlib.import_module(module)
