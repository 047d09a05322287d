"""Pages of the modules: their members by role, their public names, the search index."""

import importlib
import inspect
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jaxbandits.base import Algorithm, Environment
from jaxbandits.reference.facts import FAMILIES, documented_order

ROLES = (
    "Modules",
    "Algorithms",
    "Problems and instances",
    "Environments",
    "Bounds and diagnostics",
    "Building blocks",
    "Functions",
    "Structs",
    "Constants",
)
ROOMS = {
    "_problem": "Problems and instances",
    "_theory": "Bounds and diagnostics",
    "_algorithms": "Building blocks",
    "_shared": "Building blocks",
}


def public_modules() -> list[Any]:
    """Returns pdoc's description of the package and of all its public modules, parents first."""
    from pdoc import doc

    queue, result = [doc.Module(importlib.import_module("jaxbandits"))], []
    while queue:
        module = queue.pop(0)
        result.append(module)
        queue += [each for each in module.submodules if not each.name.startswith("_")]
    return sorted(result, key=lambda module: module.modulename)


def role_of(member: Any) -> str:
    """Returns the role of a member of a module: one of `ROLES`."""
    if member.kind == "module":
        return "Modules"
    if member.kind == "class":
        return "Structs"
    if member.kind != "function":
        return "Constants"
    returned = inspect.signature(member.obj).return_annotation
    if returned is Algorithm:
        return "Algorithms"
    if returned is Environment:
        return "Environments"
    rooms = [part for part in member.obj.__module__.split(".") if part in ROOMS]
    return ROOMS[rooms[0]] if rooms else "Functions"


def by_role(module: Any) -> dict[str, list[Any]]:
    """Returns the members of a module by role, in the order of `ROLES`, and within a role in the order of its page."""
    short = module.modulename.removeprefix("jaxbandits.")
    order = documented_order(short) if short in FAMILIES else sorted(module.members, key=str.lower)
    places = {name: place for place, name in enumerate(order)}
    members = sorted(module.members.values(), key=lambda member: places.get(member.name, len(places)))
    roles = {role: [member for member in members if role_of(member) == role] for role in ROLES}
    return {role: each for role, each in roles.items() if each}


def identity(member: Any) -> object:
    """Returns a key that is equal for the same object in two modules."""
    if member.kind in ("module", "class", "function"):
        return id(member.obj)
    return member.name, str(member.obj)[:200]


def preferred(modules: list[Any]) -> list[Any]:
    """Returns the modules in the order in which a name that is in several of them is looked for."""
    first = ["jaxbandits", *(f"jaxbandits.{family}" for family in FAMILIES)]
    return sorted(modules, key=lambda each: (each.modulename not in first, each.modulename))


def url_of(member: Any) -> str:
    """Returns the address of a member, from the folder of the reference."""
    if member.kind == "module":
        return f"{member.fullname.replace('.', '/')}.html"
    return f"{member.modulename.replace('.', '/')}.html#{member.qualname}"


def public_members(modules: list[Any]) -> Iterator[Any]:
    """Yields each public module and each of its public members once, by the preferred name."""
    done = set()
    shown = {module.modulename for module in modules}
    for module in preferred(modules):
        if identity(module) not in done:
            done.add(identity(module))
            yield module
    for module in preferred(modules):
        for member in module.members.values():
            is_page = member.kind == "module" and member.fullname in shown
            if not member.name.startswith("_") and not is_page and identity(member) not in done:
                done.add(identity(member))
                yield member


def public_names(modules: list[Any]) -> dict[str, str]:
    """Returns the public name of each private path: `jaxbandits.mab.Gaussian` for where the class is written."""
    names = {}
    for member in public_members(modules):
        if member.kind in ("class", "function"):
            names[f"{member.obj.__module__}.{member.obj.__qualname__}"] = member.fullname
        elif typing.get_origin(member.obj) is Callable:
            # An annotation may spell out what an alias stands for, with or without the module of `Callable`.
            text = inspect.formatannotation(member.obj)
            names |= dict.fromkeys((text, text.replace("collections.abc.", "")), member.fullname)
    return names


def urls(modules: list[Any]) -> dict[str, str]:
    """Returns the address of every dotted public name."""
    addresses = {}
    for module in modules:
        addresses[module.modulename] = url_of(module)
        addresses |= {each.fullname: url_of(each) for each in module.members.values() if each.kind != "module"}
    return addresses


def plain(text: str) -> str:
    """Returns Markdown without its marks."""
    return " ".join(re.sub(r"[`*#|>]|\[([^]]*)\]\([^)]*\)", r"\1", text).split())


def entry(title: str, url: str, role: str, text: str, *, name: str = "") -> dict[str, str]:
    """Returns an entry of the search index: the first paragraph is shown, all words are searched."""
    summary = plain(text.strip().split("\n\n")[0])
    words = sorted({word.lower() for word in re.findall(r"[^\W_]\w+", text)})
    return {
        "name": name or title,
        "title": title,
        "url": url,
        "role": role,
        "summary": summary if len(summary) < 200 else summary[:197] + "...",
        "words": " ".join(words),
    }


def module_entries(modules: list[Any]) -> list[dict[str, str]]:
    """Returns the entries of the modules and their members: no object twice, and fields with their struct."""
    singular = {"Problems and instances": "instance", "Bounds and diagnostics": "bound", "Building blocks": "function"}
    entries = []
    for member in public_members(modules):
        role = role_of(member)
        text = member.docstring
        if member.kind == "class":
            fields = [each for each in member.own_members if not each.name.startswith("_")]
            text = "\n\n".join([text, *(f"{each.name} {each.docstring}" for each in fields)])
        label = singular.get(role, role.lower().removesuffix("s"))
        entries.append(entry(member.fullname, url_of(member), label, text, name=member.name))
    return entries


def filters(names: Mapping[str, str], addresses: Mapping[str, str]) -> dict[str, Any]:
    """Returns the filters of the templates, from the public name of each private path and the address of each name."""
    from markupsafe import Markup
    from pdoc.render_helpers import format_signature

    from jaxbandits.reference.text import link_names, scrollable, set_formulas, spelled, spelled_signature

    def default(text: str) -> str:
        # An object's address says nothing, and differs from one call to the next.
        return re.sub(r"<function (?:[\w.]*\.)?(\w+) at 0x\w+>", r"\1", ARRAY_VALUE.sub("jax.Array", text))

    def signature(value: inspect.Signature, colon: bool) -> Any:
        return Markup(format_signature(spelled_signature(value, names), colon))

    def named(html: Any, module: str) -> Any:
        short, root = module.removeprefix("jaxbandits."), "../" * module.count(".")
        return Markup(link_names(str(html), addresses, family=short, root=root))

    return {
        "named": named,
        "format_signature": signature,
        "spelled": lambda text: spelled(str(text), names),
        "default": default,
        "formulas": lambda html: Markup(scrollable(set_formulas(str(html)))),
        "by_role": by_role,
        "first_paragraph": lambda text: text.strip().split("\n\n")[0],
    }


ARRAY_VALUE = re.compile(r"<class 'jax[\w.]*\.Array(?:Impl)?'>")
