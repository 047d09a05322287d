"""Names of JAX that the library relies on, in all versions that it supports."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import jaxbandits

PACKAGE = Path(jaxbandits.__file__).parent
# Modules of JAX without stability promises, and the names that any file may take from them.
PRIVATE = re.compile(r"jax(lib)?\.(_src|core|interpreters|extend|lib)\b")
ELSEWHERE = {"jax.core.Tracer", "jax.extend.random.threefry_2x32"}


def names_of_jax(path):
    """Yields all dotted names that a file imports or spells out."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def test_unstable_names_of_jax_are_in_one_file():
    unstable = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        for name in names_of_jax(path)
        if PRIVATE.match(name) and not any(allowed.startswith(name) for allowed in ELSEWHERE)
    }
    assert {path for path, _ in unstable} == {"engine/jaxprs.py"}, sorted(unstable)


def test_importing_all_modules_raises_no_deprecation_warning():
    code = """
import importlib, pkgutil, warnings
warnings.filterwarnings("error", category=DeprecationWarning, module="jaxbandits")
warnings.filterwarnings("error", message=".*jax.*", category=DeprecationWarning)
import jaxbandits
for module in pkgutil.walk_packages(jaxbandits.__path__, "jaxbandits."):
    importlib.import_module(module.name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
