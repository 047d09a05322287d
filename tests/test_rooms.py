"""The rooms of the package: imports go down only, and no family imports another."""

import ast
from pathlib import Path

import jaxbandits

PACKAGE = Path(jaxbandits.__file__).parent
FAMILIES = {"linear", "mab", "cpe", "kcenter", "kernel", "fullbandit"}
# Each may import those before it, and itself. Theory may run algorithms; no algorithm needs theory.
ROOMS = ("_problem", "_shared", "_algorithms", "_theory")
ENGINE = ("jaxprs", "logs", "programs", "run", "scalars", "results", "store", "sweep", "cluster", "sweeping")


def imports():
    """Yields (file, import) of the package, both as parts of a dotted name below `jaxbandits`."""
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jaxbandits":
                for alias in node.names:
                    yield module, tuple([*node.module.split("."), alias.name][1:])


def names_in(folder):
    """Modules and packages in a folder."""
    return {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}


def test_every_file_has_a_room():
    for family in FAMILIES:
        assert names_in(PACKAGE / family) == {"__init__", *ROOMS}, family
    assert names_in(PACKAGE / "engine") == {"__init__", *ENGINE}


def test_imports_go_down_within_a_family_and_within_the_engine():
    for module, target in imports():
        if len(module) > 2 and len(target) > 2 and module[0] == target[0]:
            order = ROOMS if module[0] in FAMILIES else ENGINE if module[0] == "engine" else None
            if order is not None:
                assert order.index(target[1]) <= order.index(module[1]), (module, target)


def test_no_family_imports_another_and_the_engine_knows_none():
    for module, target in imports():
        if target[0] in FAMILIES and module[0] not in ("__init__", "rare"):
            assert module[0] == target[0], (module, target)
        # Estimates stand on the engine and on the families' public names; nothing stands on them.
        if module[0] == "rare" and target[0] in FAMILIES:
            assert len(target) == 1, (module, target)
        if target[0] == "rare":
            assert module[0] in ("rare", "__init__"), (module, target)
        if module[0] in ("base", "checks", "numerics"):
            assert target[0] in ("base", "checks", "numerics"), (module, target)
