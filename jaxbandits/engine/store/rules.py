"""A store of several rules: a folder with a store for each rule, and a list of their names."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from jaxbandits.engine.store.files import explained, write_file
from jaxbandits.engine.store.manifest import MANIFEST

# Readers of Parquet folders skip names that begin with an underscore or a dot.
RULES = "_rules.json"
LONGEST = 100  # longest name of a folder, in bytes, before the digits that tell two names apart; file systems allow 255


def read_rules(folder: Path) -> dict[str, str] | None:
    """Reads the folder of every rule, in order. Returns None if the folder is not a store of several rules.

    Raises:
        ValueError: the list cannot be read.
    """
    try:
        rules = json.loads((folder / RULES).read_bytes())["rules"]
        if not isinstance(rules, dict) or not all(isinstance(name, str) and _is_plain(name) for name in rules.values()):
            raise ValueError("it is not a list of rules")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, RecursionError, IsADirectoryError) as error:
        raise ValueError(
            f"store has a list of rules that cannot be read, {str(folder / RULES)!r} ({error}). Restore a copy of it, "
            "or choose another folder."
        ) from error
    return rules


def write_rules(folder: Path, rules: Mapping[str, str]) -> None:
    """Writes the folder of every rule."""
    if rules != read_rules(folder):
        with explained(folder):
            write_file(folder / RULES, (json.dumps({"rules": rules}, indent=1) + "\n").encode())


def folders_of(folder: Path, rules: Iterable[str]) -> dict[str, str]:
    """Returns the name of the folder of every rule: of those that the store has, and of new ones.

    A folder is called rule=NAME, which readers of Parquet folders take for a column `rule`. Letters that a file system
    may not have are written as in a URL. Names that differ in case alone, or are long, end with some digits.

    Raises:
        ValueError: the folder is a store of one rule.
    """
    if (folder / MANIFEST).exists():
        raise ValueError(
            f"store must be a new folder or one of several rules, but {str(folder)!r} holds a sweep of one. Choose "
            "another folder."
        )
    names = dict(read_rules(folder) or {})
    for rule in rules:
        if rule not in names:
            # A byte that is no text would not survive the list.
            name = f"rule={quote(rule, safe=' ', errors='surrogatepass')}".replace("~", "%7E")
            # Windows drops a dot and a space at the end.
            name = re.sub(r"[. ]$", lambda end: f"%{ord(end[0]):02X}", name)
            if len(name) > LONGEST or name.lower() in {other.lower() for other in names.values()}:
                digits = hashlib.sha256(rule.encode(errors="surrogatepass")).hexdigest()[:12]
                name = f"{name[:LONGEST]}-{digits}"
            names[rule] = name
    return names


def refuse_rules(folder: Path) -> None:
    """Raises `ValueError` if the folder is a store of several rules, which a sweep of one must not write to."""
    rules = read_rules(folder)
    if rules is not None:
        raise ValueError(
            f"store must be a new folder or one of a single rule, but {str(folder)!r} holds the rules "
            f"{', '.join(map(repr, rules))}. Give build as a dict {{name: build}}, or choose another folder."
        )


def _is_plain(name: str) -> bool:
    """True if a folder of this name lies right beneath its parent."""
    return name not in ("", ".", "..") and Path(name).name == name
