"""Signatures as the source spells them: `jax.Array`, public names, and aliases instead of what they stand for."""

import ast
import copy
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

import jax

ARRAY = re.compile(r"\b(?:jax\.)?(?:jaxlib\.|_src\.)[\w.]*?Array(?:Impl)?\b")  # paths under which JAX keeps its type


class Spelled:
    """Annotation or default with a text of its own, where `inspect` shows its representation."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


@cache
def source_tree(module: ModuleType) -> ast.Module:
    """Returns the parsed source of a module; an empty one for an empty file."""
    try:
        return ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        return ast.Module([], [])


@cache
def definitions(module: ModuleType) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """Returns the functions and classes of a module by qualified name, from its source."""
    result: dict[str, ast.FunctionDef | ast.ClassDef] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                result[prefix + node.name] = node
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")

    visit(source_tree(module).body, "")
    return result


def private_aliases() -> dict[str, list[tuple[Any, ast.expr, Mapping[str, Any]]]]:
    """Returns the aliases of types in all modules of the package by name: (value, source, names of the module)."""
    result: dict[str, list[tuple[Any, ast.expr, Mapping[str, Any]]]] = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] != "jaxbandits":
            continue
        for node in source_tree(module).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                alias = node.targets[0].id
                value = vars(module).get(alias)
                if typing.get_origin(value) is not None:
                    result.setdefault(alias, []).append((value, node.value, vars(module)))
    return result


class _PublicNames(ast.NodeTransformer):
    """Replaces each name of an annotation by the one under which a user imports it."""

    def __init__(self, speller: "Speller", scope: Mapping[str, Any]):
        self.speller, self.scope = speller, scope

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self.scope.get(node.id)
        if value is jax.Array:
            return ast.Name("jax.Array")
        path = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
        if path in self.speller.names:
            return ast.Name(self.speller.names[path])
        for full, alias in self.speller.aliases.items():
            if full.rpartition(".")[2] == node.id and alias == value:
                return ast.Name(full)
        # The name of a private alias says nothing to a reader of the page.
        for alias, source, scope in self.speller.private.get(node.id, []):
            if alias == value:
                return ast.Name(self.speller.text(source, scope))
        return node


def definition_of(value: Any) -> tuple[ast.AST | None, Mapping[str, Any]]:
    """Returns the source of a function or a class, and the names of its module."""
    value = inspect.unwrap(value) if callable(value) else value
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None:
        return None, {}
    return definitions(module).get(getattr(value, "__qualname__", "")), vars(module)


class Speller:
    """Spells annotations by public names."""

    def __init__(self, names: Mapping[str, str], aliases: Mapping[str, Any]):
        self.names, self.aliases, self.private = names, aliases, private_aliases()

    def text(self, annotation: ast.expr, scope: Mapping[str, Any]) -> str:
        """Returns an annotation of the source by public names."""
        return ast.unparse(_PublicNames(self, scope).visit(copy.deepcopy(annotation)))

    def fields(self, kind: type) -> dict[str, str]:
        """Returns the annotation of each field of a class."""
        node, scope = definition_of(kind)
        if not isinstance(node, ast.ClassDef):
            return {}
        body = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
        return {each.target.id: self.text(each.annotation, scope) for each in body}  # type: ignore[union-attr]

    def signature(self, value: Any, signature: inspect.Signature) -> inspect.Signature:
        """Returns a signature with the annotations of the source, and calls as defaults as they are written.

        Args:
            value: the function, or the class whose constructor it is.
            signature: as `inspect` returns it.

        Returns:
            The signature. What the source does not say stays.
        """
        node, scope = definition_of(value)
        annotations: dict[str, str] = {}
        defaults: dict[str, ast.expr] = {}
        if isinstance(node, ast.ClassDef):
            annotations = self.fields(value)
            defaults = {
                each.target.id: each.value
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value
            }
        elif isinstance(node, ast.FunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            annotations = {each.arg: self.text(each.annotation, scope) for each in every if each.annotation}
            if node.returns:
                annotations["return"] = self.text(node.returns, scope)
            positional = [*given.posonlyargs, *given.args]
            pairs = [*zip(reversed(positional), reversed(given.defaults), strict=False)]
            pairs += [pair for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True) if pair[1] is not None]
            defaults = {argument.arg: default for argument, default in pairs if default is not None}

        def annotation(name: str, shown: Any) -> Any:
            if name in annotations:
                return Spelled(annotations[name])
            if shown is inspect.Parameter.empty:
                return shown
            return Spelled(ARRAY.sub("jax.Array", inspect.formatannotation(shown)))

        def default(name: str, shown: Any) -> Any:
            written = defaults.get(name)
            if isinstance(written, ast.Call) or (isinstance(written, ast.Name) and inspect.isfunction(shown)):
                return Spelled(ast.unparse(written))
            return shown

        parameters = [
            each.replace(annotation=annotation(each.name, each.annotation), default=default(each.name, each.default))
            for each in signature.parameters.values()
        ]
        # pdoc's own class of signatures decides how one is shown.
        return type(signature)(parameters, return_annotation=annotation("return", signature.return_annotation))


def owner(module: str, qualname: str) -> Any:
    """Returns the class to which a qualified name such as `Results.plot` belongs, by a module that hands it on."""
    value = importlib.import_module(module)
    for part in qualname.split(".")[:-1]:
        value = getattr(value, part)
    return value
