"""The rooms of the package: imports go down only, and no family imports another."""

import ast
from pathlib import Path

import jaxbandits

PACKAGE = Path(jaxbandits.__file__).parent
FAMILIES = {"linear", "mab", "cpe", "kcenter", "kernel", "fullbandit"}
# Each may import those before it, and itself. Theory may run algorithms; no algorithm needs theory.
ROOMS = ("_problem", "_shared", "_algorithms", "_theory")
ENGINE = ("jaxprs", "logs", "run", "scalars", "results", "store", "sweep", "cluster", "sweeping")


def imports():
    """(file, what it imports) of the package, both as parts of a dotted name below `jaxbandits`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jaxbandits":
                for alias in node.names:
                    yield place, tuple([*node.module.split("."), alias.name][1:])


def names_in(folder):
    """Modules and packages in a folder."""
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}


def test_every_file_has_a_room():
    for family in FAMILIES:
        assert names_in(PACKAGE / family) == {"__init__", *ROOMS}, family
    assert names_in(PACKAGE / "engine") == {"__init__", *ENGINE}


def test_imports_go_down_within_a_family_and_within_the_engine():
    for place, target in imports():
        if len(place) > 2 and len(target) > 2 and place[0] == target[0]:
            order = ROOMS if place[0] in FAMILIES else ENGINE if place[0] == "engine" else None
            if order is not None:
                assert order.index(target[1]) <= order.index(place[1]), (place, target)


def test_no_family_imports_another_and_the_engine_knows_none():
    for place, target in imports():
        if target[0] in FAMILIES and place[0] != "__init__":
            assert place[0] == target[0], (place, target)
        if place[0] in ("base", "checks", "numerics"):
            assert target[0] in ("base", "checks", "numerics"), (place, target)
