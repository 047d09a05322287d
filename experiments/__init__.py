"""Figures and tables of the papers: `python -m experiments NAME`.

A folder is a family or a part of one. A module in it that has a function `run` is an experiment: `linear/table1.py` is
`linear_table1`.
"""

import ast
import importlib
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
FAMILIES = ("mab", "linear", "likelihood", "fullbandit", "kcenter", "cpe", "semibandit", "kernel")


def experiments() -> dict[str, str]:
    """Returns the name and the first docstring line of every experiment, without importing any."""
    summaries = {}
    for family in FAMILIES:
        for path in sorted((HERE / family).glob("*.py")):
            tree = ast.parse(path.read_text())
            if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
                summaries[f"{family}_{path.stem}"] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return summaries


def load(name: str) -> ModuleType:
    """Imports the module of an experiment."""
    return importlib.import_module("experiments." + name.replace("_", ".", 1))
