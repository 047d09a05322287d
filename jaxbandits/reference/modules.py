"""Pages of the modules: their members by role, their public names, the search index."""

import importlib
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from jaxbandits.base import Algorithm, Environment
from jaxbandits.reference.facts import FAMILIES, documented_order
from jaxbandits.reference.signatures import ARRAY, Speller, owner
from jaxbandits.reference.text import link_names, scrollable, set_formulas

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
    positions = {name: position for position, name in enumerate(order)}
    members = sorted(module.members.values(), key=lambda member: positions.get(member.name, len(positions)))
    roles = {role: [member for member in members if role_of(member) == role] for role in ROLES}
    return {role: each for role, each in roles.items() if each}


def identity(member: Any) -> object:
    """Returns a key that is equal for the same object in two modules."""
    if member.kind in ("module", "class", "function"):
        return id(member.obj)
    return member.name, str(member.default_value)[:200]


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
        if role == "Constants" and not text and typing.get_origin(member.default_value) is None:
            # A number without a word about it is no answer to a question; an alias of a type is one.
            continue
        if member.kind == "class":
            fields = [each for each in member.own_members if not each.name.startswith("_")]
            text = "\n\n".join([text, *(f"{each.name} {each.docstring}" for each in fields)])
        label = singular.get(role, role.lower().removesuffix("s"))
        entries.append(entry(member.fullname, url_of(member), label, text, name=member.name))
    return entries


def filters(modules: list[Any], addresses: Mapping[str, str]) -> dict[str, Any]:
    """Returns the filters of the templates, from the public modules and the address of each public name."""
    from markupsafe import Markup
    from pdoc.render_helpers import format_signature

    # An alias is a value of a public module that is no class, such as a type of functions.
    members = [member for member in public_members(modules) if member.kind == "variable"]
    speller = Speller(public_names(modules), {member.fullname: member.default_value for member in members})

    def signature(member: Any) -> Any:
        is_constructor = member.name == "__init__"
        value = owner(member.modulename, member.qualname) if is_constructor else member.obj
        shown = member.signature_without_self if is_constructor else member.signature
        return Markup(format_signature(speller.signature(value, shown), not is_constructor))

    def annotation(member: Any) -> str:
        if "." in member.qualname:
            fields = speller.fields(owner(member.modulename, member.qualname))
            if text := fields.get(member.name):
                return f": {text}"
        return ARRAY.sub("jax.Array", member.annotation_str)

    def default(text: str) -> str:
        # The representation of an object says nothing.
        if text.startswith("<"):
            return ""
        return ARRAY.sub("jax.Array", text).replace("collections.abc.", "")

    def named(html: Any, module: str) -> Any:
        short, root = module.removeprefix("jaxbandits."), "../" * module.count(".")
        return Markup(link_names(str(html), addresses, family=short, root=root))

    return {
        "named": named,
        "spelled_signature": signature,
        "spelled_annotation": annotation,
        "value_text": default,
        "formulas": lambda html: Markup(scrollable(set_formulas(str(html)))),
        "by_role": by_role,
        "first_paragraph": lambda text: text.strip().split("\n\n")[0],
    }
