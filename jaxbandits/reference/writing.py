"""The command: `python -m jaxbandits.reference FOLDER`."""

import argparse
import base64
import importlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jaxbandits
from jaxbandits.reference import modules as module_pages
from jaxbandits.reference.facts import FAMILIES, all_facts
from jaxbandits.reference.fields import document_fields
from jaxbandits.reference.text import link_names, scrollable, set_formulas
from jaxbandits.reference.tutorials import Tutorial, read

TEMPLATES = Path(__file__).with_name("templates")
LINK = re.compile(r'(<(?:a href|img src)=")([^"#:]+)(#[^"]*)?(")')  # a relative address
IMAGE = re.compile(r"!\[([^]]+)\]\((?:[\w./]*/)?gallery/(\w+)\.png\)")


class Figure(NamedTuple):
    """Picture of the gallery."""

    name: str  # name of the file, without its ending
    caption: str  # text of the picture in a README, or ""
    command: str  # command line that draws it
    is_tall: bool  # True if only its top is shown in the gallery


class Page(NamedTuple):
    """Page that is written by hand, in Markdown, or by a script."""

    url: str  # address, from the folder of the reference
    title: str  # title of the window
    html: str  # content


class Text(NamedTuple):
    """Page of a Markdown file."""

    url: str  # address, from the folder of the reference
    title: str  # title of the window


TEXTS = {
    "README.md": Text("readme.html", "README"),
    "experiments/README.md": Text("experiments.html", "Verdicts and errata"),
    "experiments/RESULTS.md": Text("results.html", "Every table"),
    "experiments/SPEED.md": Text("speed.html", "Speed"),
}


def clone() -> Path | None:
    """Returns the clone in which the command runs, or from which the package is imported; None outside of one."""
    for folder in (Path.cwd(), Path(jaxbandits.__file__).parents[1]):
        if (folder / "pyproject.toml").is_file() and (folder / "experiments" / "gallery").is_dir():
            return folder
    return None


def gallery(root: Path) -> list[Figure]:
    """Returns the figures of a clone, with the command that draws each."""
    texts = [(root / path).read_text() for path in TEXTS if (root / path).is_file()]
    captions = {name: caption for caption, name in IMAGE.findall("\n".join(texts))}
    scripts = {path.stem: path.read_text() for path in sorted((root / "experiments").glob("*.py"))}
    figures = []
    for path in sorted((root / "experiments" / "gallery").glob("*.png")):
        # A picture that is drawn by a script of its own is named there.
        drawing = [stem for stem, text in scripts.items() if f'"{path.name}"' in text]
        if drawing:
            command = f"python -m experiments.{drawing[0]}"
        elif path.stem.startswith("bench_"):
            command = f"python -m experiments bench {path.stem.removeprefix('bench_')}"
        else:
            command = f"python -m experiments {path.stem}"
        # Width and height stand at a fixed place in a PNG file.
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        figures.append(Figure(path.stem, captions.get(path.stem, ""), command, height > 1.5 * width))
    # The picture of a sweep stands at the top of the start page.
    return sorted(figures, key=lambda figure: (figure.name != "sweep", figure.name))


def rendered(text: str) -> str:
    """Returns Markdown as HTML."""
    from pdoc.render_helpers import to_html

    return str(to_html(text))


def readme_pages(root: Path | None) -> list[Page]:
    """Returns the README, and in a clone the texts about the experiments."""
    if root is None:
        sources = {"README.md": importlib.metadata.metadata("jaxbandits")["Description"]}
        targets = {}
    else:
        sources = {path: (root / path).read_text() for path in TEXTS if (root / path).is_file()}
        targets = {f"experiments/gallery/{figure.name}.png": f"gallery/{figure.name}.png" for figure in gallery(root)}
    targets |= {path: TEXTS[path].url for path in sources}
    pages = []
    for source, text in sources.items():

        def address(match: re.Match[str], base: str = source.rpartition("/")[0]) -> str:
            path = "/".join(_normal([*base.split("/"), *match[2].split("/")]))
            # A file that is not shipped with the pages is no link.
            return f"{match[1]}{targets.get(path, '')}{match[3] or ''}{match[4]}"

        html = LINK.sub(address, rendered(text))
        html = re.sub(r'<a href="">(.*?)</a>', r"\1", html, flags=re.DOTALL)
        html = re.sub(r"<img src=\"\"[^>]*>", "", html)
        pages.append(Page(*TEXTS[source], html))
    return pages


def _normal(parts: list[str]) -> list[str]:
    """Returns the parts of a path without `..`."""
    result: list[str] = []
    for part in parts:
        if part == ".." and result:
            result.pop()
        elif part not in (".", ""):
            result.append(part)
    return result


def headings(html: str) -> list[tuple[str, str]]:
    """Returns (anchor, text) of the second-level headings."""
    return [
        (anchor, re.sub(r"<[^>]+>", "", text))
        for anchor, text in re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', html, re.DOTALL)
    ]


def tutorial_page(tutorial: Tutorial, folder: Path) -> Page:
    """Returns the page of a tutorial, and writes its pictures."""
    import pygments
    import pygments.formatters
    import pygments.lexers
    from markupsafe import escape

    style = pygments.formatters.HtmlFormatter(cssclass="pdoc-code")
    parts, number = [], 0
    for cell, output in zip(tutorial.cells, tutorial.outputs, strict=True):
        if cell.is_text:
            parts.append(f'<div class="docstring">{rendered(cell.source)}</div>')
            continue
        parts.append(pygments.highlight(cell.source, pygments.lexers.PythonLexer(), style))
        if output is None:
            continue
        if output.text.strip():
            parts.append(f'<pre class="output">{escape(output.text.rstrip())}</pre>')
        for picture in output.figures:
            number += 1
            path = folder / "tutorials" / f"{tutorial.path.stem}-{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(picture))
            parts.append(f'<p class="picture"><img src="{path.name}" alt="Figure {number} of this tutorial"></p>')
        if output.error:
            parts.append(f'<pre class="output error">{escape(output.error.rstrip())}</pre>')
    is_run = any(tutorial.outputs) or all(cell.is_text for cell in tutorial.cells)
    note = "" if is_run else "<p><em>Not executed: written with <code>--no-run</code>.</em></p>"
    has_title = any(cell.is_text and "# " in cell.source for cell in tutorial.cells)
    title = "" if has_title else f"<h1>{escape(tutorial.title)}</h1>"
    return Page(f"tutorials/{tutorial.path.stem}.html", tutorial.title, title + note + "\n".join(parts))


def options(arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m jaxbandits.reference", description="Writes the reference as HTML pages. It needs pdoc."
    )
    parser.add_argument("folder", type=Path, help="output folder")
    parser.add_argument(
        "--tutorials", type=Path, metavar="DIR", help="folder of tutorials; by default experiments/tutorials of a clone"
    )
    parser.add_argument("--no-run", action="store_true", help="show tutorials without executing them")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Writes all pages. Returns 1 if a tutorial failed, or if pdoc is missing."""
    given = options(arguments)
    if importlib.util.find_spec("pdoc") is None:
        print("The reference needs pdoc: pip install pdoc", file=sys.stderr)
        return 1
    root = clone()
    scripts = given.tutorials or (root and root / "experiments" / "tutorials")
    paths = [path for path in sorted(scripts.glob("*.py")) if path.name[0] != "_"] if scripts else []
    if given.tutorials and not paths:
        print(f"no tutorial: {given.tutorials} has no file *.py", file=sys.stderr)
        return 1
    stored = given.folder / "tutorials" / "results"
    tutorials = [read(path, stored, run=not given.no_run, root=root) for path in paths]

    document_fields()
    write_pages(given.folder, root, tutorials)
    print(f"written: {given.folder / 'index.html'}")
    if root is None:
        print("The gallery and the tutorials are in a clone of the repository: run the command there.")
    failures = [tutorial.failure for tutorial in tutorials if tutorial.failure]
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


def write_pages(folder: Path, root: Path | None, tutorials: list[Tutorial]) -> None:
    """Writes the pages, their style, and the search.

    Args:
        folder: output folder.
        root: clone with README, gallery and experiments; None outside of one.
        tutorials: tutorials with their results.
    """
    import pdoc.render
    import pygments.formatters

    modules = module_pages.public_modules()
    addresses = module_pages.urls(modules)
    readmes = readme_pages(root)
    lessons = [tutorial_page(tutorial, folder) for tutorial in tutorials]

    pdoc.render.configure(docformat="google", template_directory=TEMPLATES, math=False, search=False)
    environment = pdoc.render.env
    environment.filters.update(module_pages.filters(modules, addresses))
    environment.globals["shared"] = {
        "version": importlib.metadata.version("jaxbandits"),
        "modules": [(each.modulename, module_pages.url_of(each)) for each in modules],
        "tutorials": [(page.title, page.url) for page in lessons],
        "readmes": [(page.title, page.url, headings(page.html)) for page in readmes],
    }

    def write(url: str, text: str) -> None:
        (folder / url).parent.mkdir(parents=True, exist_ok=True)
        (folder / url).write_text(text)

    def linked(html: str, url: str, family: str = "") -> str:
        return scrollable(link_names(set_formulas(html), addresses, family=family, root="../" * url.count("/")))

    def show(template: str, url: str, **values: Any) -> None:
        page = environment.get_template(template)
        write(url, page.render(root="../" * url.count("/"), module=None, **values))

    colors = {
        scheme: pygments.formatters.HtmlFormatter(style=name).get_style_defs(".pdoc-code")
        for scheme, name in (("light", "default"), ("dark", "monokai"))
    }
    write("style.css", environment.get_template("style.css.jinja2").render(**colors))
    all_modules = {module.modulename: module for module in modules}
    for module in modules:
        write(module_pages.url_of(module), pdoc.render.html_module(module, all_modules))
    for page in [*readmes, *lessons]:
        content, contents = linked(page.html, page.url), headings(page.html)
        show("page.html.jinja2", page.url, title=page.title, content=content, toc=contents)
    if root is not None:
        shutil.copytree(root / "experiments" / "gallery", folder / "gallery", dirs_exist_ok=True)
    figures = [] if root is None else gallery(root)
    show("start.html.jinja2", "index.html", **start(linked, addresses, tutorials), figures=figures)

    entries = module_pages.module_entries(modules)
    for role, pages in (("page", readmes), ("tutorial", lessons)):
        for page in pages:
            text = re.sub(r"<[^>]+>", " ", page.html)
            entries.append(module_pages.entry(page.title, page.url, role, text))
    code = (TEMPLATES / "search.js").read_text()
    write("search.js", f"window.referenceEntries = {json.dumps(entries, ensure_ascii=False)};\n{code}")


def start(linked: Callable[..., str], addresses: dict[str, str], tutorials: list[Tutorial]) -> dict[str, Any]:
    """Returns the parts of the start page that come from docstrings and tutorials."""

    def inline(text: str, family: str = "") -> str:
        html = linked(rendered(text), "index.html", family)
        return re.sub(r"^<p>(.*)</p>$", r"\1", html.strip(), flags=re.DOTALL)

    def about(name: str) -> str:
        text = importlib.import_module(name).__doc__ or ""
        return inline(" ".join(text.strip().split("\n\n")[0].split()), name.removeprefix("jaxbandits."))

    names = [name for name in addresses if f"{name.replace('.', '/')}.html" == addresses[name]]
    listed = sorted(names, key=lambda name: (name.count("."), not name.endswith(tuple(FAMILIES)), name))
    places = [(name, addresses[name], about(name)) for name in listed if name.count(".") < 2]
    rows = []
    for facts in all_facts():
        cells = (inline(text, facts.family) for text in (facts.guarantee, facts.cost, facts.precision, facts.source))
        rows.append((facts, addresses[f"jaxbandits.{facts.family}.{facts.name}"], *cells))
    tables = [(family, title, [row for row in rows if row[0].family == family]) for family, title in FAMILIES.items()]
    return {
        "places": places,
        "tables": tables,
        "count": len(rows),
        "summaries": [inline(tutorial.summary) for tutorial in tutorials],
    }
