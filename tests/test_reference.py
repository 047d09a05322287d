"""The pages of `python -m jaxbandits.reference`: written once, read by all tests."""

import html.parser
import importlib
import json
import re
import shutil
from urllib.parse import unquote

import pytest

from jaxbandits import linear, reference
from jaxbandits.reference import text, tutorials, writing
from jaxbandits.reference.facts import FAMILIES, sections

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.xdist_group("reference")

GOOD = """\
# %% [markdown]
# # A tiny tutorial
#
# It adds `numbers`.

# %%
import sys
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np


class Pair(NamedTuple):
    one: int


print("printed", __name__)
Pair(7)

# %%
figure, axes = plt.subplots()
axes.plot([1, 2])

# %% [markdown]
# The end, with x_i and `linear.lingape`.
"""
BAD = '''\
"""A tutorial that fails."""

# %%
1 + 1

# %%
print("before")
raise RuntimeError("on purpose")

# %%
print("never")
'''


class Links(html.parser.HTMLParser):
    """The anchors and the addresses of a page."""

    def __init__(self, page):
        super().__init__()
        self.anchors, self.addresses = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.add(given.get("id"))
        self.addresses += [given[name] for name in ("href", "src") if given.get(name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes the reference with a tutorial that works and one that fails, and restores the docstrings of fields."""
    scripts, folder = tmp_path_factory.mktemp("scripts"), tmp_path_factory.mktemp("pages")
    (scripts / "good.py").write_text(GOOD)
    (scripts / "bad.py").write_text(BAD)
    with pytest.MonkeyPatch.context() as patch:
        for kind in reference.structs():
            for name in kind._fields:
                patch.setattr(getattr(kind, name), "__doc__", getattr(kind, name).__doc__)
        assert reference.main([str(folder), "--tutorials", str(scripts)]) == 1
    return folder


@pytest.fixture(scope="module")
def pages(folder):
    """Reads each page; returns them by address."""
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.html"))}


@pytest.fixture(scope="module")
def entries(folder):
    """Reads the search index."""
    line = (folder / "search.js").read_text().partition("\n")[0]
    return json.loads(re.fullmatch(r"window\.referenceEntries = (.*);", line)[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_factory_names_guarantee_cost_and_source(family):
    factories = reference.factories(family)
    assert factories
    for name in factories:
        facts = reference.facts_of(family, name)
        for field in ("summary", "guarantee", "cost", "source"):
            assert len(getattr(facts, field)) > 3, (name, field)


def test_facts_of_lingape_are_those_of_its_docstring():
    facts = reference.facts_of("linear", "lingape")
    assert facts.guarantee.startswith("(Theorem 1, either rule): P(gap of the answer > epsilon) <= delta")
    assert facts.cost.startswith("O(K d) per round")
    assert facts.precision.startswith("float32 gives mean stopping times")
    assert facts.source.startswith("Xu, Honda, Sugiyama (2018)")


def test_sections_end_at_the_next_name_and_at_the_paragraph():
    docstring = (
        "Returns.\n\n**Guarantee** and **queries**: as `f`.\n**Cost**: O(K)\nper round.\n\nMore.\n\nSource: X.\n"
    )
    assert sections(docstring) == {
        "Guarantee": ": as `f`.",
        "queries": ": as `f`.",
        "Cost": ": O(K) per round.",
        "Source": "X.",
    }


@pytest.mark.parametrize(
    ("plain", "formula"),
    [
        ("m^2 + 2^(2 - t)", "m<sup>2</sup> + 2<sup>2 - t</sup>"),
        ("d^1.5 and 10^-9", "d<sup>1.5</sup> and 10<sup>-9</sup>"),
        ("x_0..x_{K-1}", "x<sub>0</sub>..x<sub>K-1</sub>"),
        ("||x||_{A^-1}", "||x||<sub>A<sup>-1</sup></sub>"),
        ("a &lt;= b", "a ≤ b"),
        ("theta_hat, noise_scale", "theta_hat, noise_scale"),
        ("<code>m^2, l_t3c</code> x_i", "<code>m^2, l_t3c</code> x<sub>i</sub>"),
    ],
)
def test_formulas_are_set_outside_of_code(plain, formula):
    assert text.set_formulas(plain) == formula


def test_start_page_has_tutorials_gallery_and_all_algorithms(folder, pages):
    start = pages["index.html"]
    for family in FAMILIES:
        for name in reference.factories(family):
            assert f'<tr id="{family}-{name}">' in start
            assert f'href="jaxbandits/{family}.html#{name}"' in start
    assert 'as for <a href="jaxbandits/linear.html#lingame"><code>lingame</code></a>' in start
    assert 'href="tutorials/good.html">A tiny tutorial</a>' in start
    assert "It adds <code>numbers</code>." in start
    figures = writing.gallery(writing.clone())
    assert len(figures) > 3
    for figure in figures:
        assert (folder / "gallery" / f"{figure.name}.png").is_file()
        assert f'<code class="command">{figure.command}</code>' in start
    heading = re.search(r"^## (\w+)", (writing.clone() / "README.md").read_text(), re.MULTILINE)[1]
    assert re.search(rf'href="readme\.html#{heading.lower()}[\w-]*"', start)


def test_commands_of_the_gallery_exist():
    experiments = importlib.import_module("experiments.__main__").experiments()
    for figure in writing.gallery(writing.clone()):
        words = figure.command.split()
        if words[2] == "experiments":
            assert words[3] in [*experiments, "bench"], figure
        else:
            assert importlib.util.find_spec(words[2]), figure


def test_every_link_leads_to_an_anchor_that_exists(folder, pages):
    parsed = {url: Links(page) for url, page in pages.items()}
    broken = []
    for url, links in parsed.items():
        for address in links.addresses:
            if address.startswith(("http:", "https:", "data:", "mailto:")):
                continue
            path, _, anchor = unquote(address).partition("#")
            target = (folder / url).parent / path if path else folder / url
            key = str(target.resolve().relative_to(folder.resolve()))
            if not target.is_file() or (anchor and key in parsed and anchor not in parsed[key].anchors):
                broken.append((url, address))
    assert broken == []


def test_every_page_has_the_search_and_a_way_back(pages):
    for url, page in pages.items():
        up = "../" * url.count("/")
        assert f'<a class="home" href="{up}index.html">' in page, url
        assert f'src="{up}search.js"' in page, url
        # Nothing is read from a network.
        assert not re.search(r'(?:src|<link [^>]*href)="https?:', page), url


def test_pages_describe_fields_and_spell_types_by_public_names(pages):
    assert "oracle queries spent" in pages["jaxbandits/base.html"]
    for url, page in pages.items():
        shown = re.sub(r'<div class="pdoc-code codehilite">.*?</div>', "", page, flags=re.DOTALL)
        plain = re.sub(r"<[^>]+>", "", shown)
        assert "Alias for field number" not in plain
        assert "block_until_ready" not in plain  # a method of jax.Array
        assert not re.search(r"jaxlib\.|ArrayImpl|jaxbandits\.\w+\._", plain), url
    signature = re.search(r'<section id="ttucb">.*?</section>', pages["jaxbandits/mab.html"], re.DOTALL)[0]
    signature = " ".join(re.sub(r"<[^>]+>", "", signature.partition("</div>")[0]).split())
    assert "problem: Gaussian | Bernoulli" in signature
    assert "threshold: jaxbandits.numerics.thresholds.Threshold | None" in signature
    assert "delta: jax.Array | float" in signature


def test_members_are_sorted_by_role_and_shown_once(pages):
    page = pages["jaxbandits/linear.html"]
    roles = re.findall(r'<h2 class="role" id="role-\d">(.*?)</h2>', page)
    assert roles[:4] == ["Algorithms", "Problems and instances", "Environments", "Bounds and diagnostics"]
    assert roles[-1] == "Structs"
    members = re.findall(r'<section id="([^"]+)">', page)
    assert sorted(members) == sorted(linear.__all__)
    algorithms = page.partition('class="role" id="role-2"')[0]
    assert 'id="lingape"' in algorithms
    assert 'id="soare"' not in algorithms


def test_search_index_has_each_object_once(entries):
    urls, titles = [entry["url"] for entry in entries], [entry["title"] for entry in entries]
    assert len(set(urls)) == len(urls)
    assert len(set(titles)) == len(titles)
    for name in ("sweep", "Results", "Algorithm"):
        assert [entry["title"] for entry in entries if entry["name"] == name] == [f"jaxbandits.{name}"]
    contents = [(entry["name"], entry["summary"], entry["words"]) for entry in entries]
    assert len(set(contents)) == len(contents)
    assert [entry["title"] for entry in entries if entry["name"].lower() == "lingape"] == ["jaxbandits.linear.lingape"]
    assert "tutorials/good.html" in urls
    instance = next(entry for entry in entries if entry["title"] == "jaxbandits.linear.Instance")
    assert "noise_scale" in instance["words"].split()  # a field


def test_tutorial_shows_output_values_and_pictures(folder, pages):
    page = pages["tutorials/good.html"]
    assert '<pre class="output">printed __main__\nPair(one=7)</pre>' in page
    assert "Line2D" not in page
    assert (folder / "tutorials" / "good-1.png").read_bytes().startswith(b"\x89PNG")
    assert 'src="good-1.png"' in page
    assert "x<sub>i</sub>" in page
    assert '<a href="../jaxbandits/linear.html#lingape"><code>linear.lingape</code></a>' in page


def test_failing_tutorial_is_reported_by_file_and_cell(tmp_path, capsys, pages):
    path = tmp_path / "bad.py"
    path.write_text(BAD)
    tutorial = tutorials.read(path, tmp_path / "stored")
    assert tutorial.title == "A tutorial that fails"
    assert tutorial.failure == "bad.py, cell 3 (line 7): RuntimeError: on purpose"
    assert tutorial.outputs[1].text == "2\n"
    assert tutorial.outputs[2].text == "before\n"
    assert f'File "{path}", line 8' in tutorial.outputs[2].error
    assert tutorial.outputs[3] is None
    assert not (tmp_path / "stored").exists()
    assert "RuntimeError: on purpose" in pages["tutorials/bad.html"]


def test_tutorial_is_executed_again_only_if_it_changed(tmp_path, capsys):
    path = tmp_path / "short.py"
    path.write_text("# %%\nprint(1)\n")
    first = tutorials.read(path, tmp_path / "stored")
    assert "executed" in capsys.readouterr().out
    assert tutorials.read(path, tmp_path / "stored") == first
    assert "executed" not in capsys.readouterr().out
    path.write_text("# %%\nprint(2)\n")
    assert tutorials.read(path, tmp_path / "stored", run=False).outputs == (None,)
    assert tutorials.read(path, tmp_path / "stored").outputs[0].text == "2\n"


def test_tutorial_whose_process_ends_is_reported(tmp_path):
    path = tmp_path / "ends.py"
    path.write_text("# %%\nimport os\nos._exit(3)\n")
    assert tutorials.read(path, tmp_path).failure.endswith("The process ended with status 3.")


def test_missing_tutorials_are_refused(tmp_path, capsys):
    assert reference.main([str(tmp_path / "pages"), "--tutorials", str(tmp_path)]) == 1
    assert "has no file *.py" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt install chromium")
def test_in_a_browser(folder, pages):
    from playwright.sync_api import sync_playwright

    messages, requests = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
        tab.on("console", lambda message: messages.append(message.text))
        tab.on("pageerror", lambda error: messages.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        for url in (
            "index.html",
            "readme.html",
            "tutorials/good.html",
            *(f"jaxbandits/{name}.html" for name in FAMILIES),
        ):
            tab.goto((folder / url).as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, url
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"

        # The search works from a page in a folder, by name in any case, by several words, and by a field.
        for query, first in (
            ("LinGapE", "linear.lingape"),
            ("sweep", "sweep"),
            ("track and stop", "kcenter.track_and_stop"),
        ):
            tab.fill("#search", query)
            titles = tab.locator("#results .hit code").all_text_contents()
            assert titles[0] == f"jaxbandits.{first}"
            assert len(set(titles)) == len(titles)
            assert not tab.locator("main").is_visible()
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/kcenter.html#track_and_stop")
        assert tab.locator("main").is_visible()
        tab.fill("#search", "nosuchword")
        assert tab.locator("#results").inner_text() == '0 results for "nosuchword".'
        tab.keyboard.press("Escape")
        tab.locator("a.home").click()
        tab.wait_for_url("**/index.html")
        browser.close()
    assert messages == []
    assert all(url.startswith(("file:", "data:")) for url in requests)
