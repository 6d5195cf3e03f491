"""The documentation site: it builds without a warning, no link is broken, no resource is external."""

import ast
import html
import importlib
import json
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pages import site

pytest.importorskip("material")
pytest.importorskip("latex2mathml")
pytestmark = pytest.mark.ci

ROOT = Path(__file__).parents[1]
MOST_ENTRIES = 10  # of the navigation, and of a section of it
MOST_BYTES = 43e6  # of these, the sources of all modules are more than half
MOST_OF_A_PICTURE = 150_000  # bytes
MOST_OF_A_THUMBNAIL = 160_000
MOST_LINES = 600  # of Markdown of a page of the reference that is made when the site is built; about 20 pixels each


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Returns the site, built with warnings as errors."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def pages(folder):
    return site.pages(folder)


def test_no_link_is_broken(folder, pages):
    assert len(pages) > 40
    assert site.broken(folder, pages) == []


def test_the_site_loads_no_external_resource(pages):
    assert site.foreign(pages) == []
    assert not any("mermaid" in page.anchors for page in pages.values())


def test_every_markdown_element_is_rendered(pages):
    assert site.unread(pages) == []


def entries(nav: list) -> dict:
    """Returns the entries of a part of the navigation: pages, and sections with theirs."""
    pairs = [next(iter(entry.items())) if isinstance(entry, dict) else (entry, entry) for entry in nav]
    return {title: entries(place) if isinstance(place, list) else place for title, place in pairs}


def leaves(nav: dict) -> list[str]:
    """Returns the pages of a part of the navigation."""
    return [page for place in nav.values() for page in (leaves(place) if isinstance(place, dict) else [place])]


NAVIGATION = yaml.load((ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2], yaml.SafeLoader)


def test_every_page_is_in_the_navigation(folder, pages):
    """The pages that are made when the site is built are included; pages of the source are linked by others."""
    listed = {"index.html"}  # a page has the part of the menu that it shows
    for name in pages:
        menu = (folder / name).read_text().partition('<nav class="md-nav md-nav--primary')[2]
        links = site.Page(menu.partition('data-md-component="content"')[0]).links
        listed |= {
            posixpath.normpath(posixpath.join(posixpath.dirname(name), link.partition("#")[0])) for link in links
        }
    there = {name for name in pages if not name.startswith("source/")}
    assert len(there) > 120 and there <= listed, f"not listed: {sorted(there - listed)}"


def test_the_navigation_is_grouped():
    """A reader sees at most ten tabs, and at most ten entries at once below one; the list of examples is longer."""
    tabs = entries(NAVIGATION)
    assert 5 < len(tabs) <= MOST_ENTRIES and len(leaves(tabs)) > 100
    todo = list(tabs.items())
    for title, place in todo:
        if isinstance(place, dict):
            assert len(place) <= MOST_ENTRIES or title == "Programs", title
            todo += place.items()


def test_the_search_index_contains_every_page(folder, pages):
    index = json.loads((folder / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {name for name in pages if not name.startswith("source/")} - {"index.html"} <= found


# terms that users search for
TERMS = """domain randomization, sim-to-real, parallel environments, vectorized environments, reproducible,
bitwise identical, user-defined, broad phase, narrow phase, system identification, trajectory optimization, gradient,
Jacobian, mass matrix, warm start, convergence, tolerance"""


@pytest.mark.parametrize("term", re.split(r",\s+", TERMS))
def test_the_search_finds_a_page_for_a_usual_term(term, folder):
    """The page is not the changelog, and the term is in one section of it."""
    index = json.loads((folder / "search" / "search_index.json").read_text())
    found = {
        entry["location"].partition("#")[0]
        for entry in index["docs"]
        if term.lower() in " ".join(f"{entry['title']} {entry['text']}".lower().split())
    }
    assert found - {"changelog.html"}


def test_it_is_small(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < MOST_BYTES


def test_code_keeps_its_text_and_anchors_without_needless_markup(hooks):
    line = '<a id="__codelineno-0-{0}" name="__codelineno-0-{0}"></a><a href="#__codelineno-0-{0}">{0}</a>{1}\n'
    code = [
        '<span class="n">x</span><span class="w"> </span><span class="o">=</span><span class="p">(</span>',
        '<span class="p">[</span><span class="n">y</span><span class="p">]</span><span class="p">)</span>',
    ]
    page = "".join(line.format(k, text) for k, text in enumerate(code, 1))
    expected = (
        '<a id="__codelineno-0-1" href="#__codelineno-0-1">1</a>x <span class="o">=</span><span class="p">(</span>\n'
        '<a id="__codelineno-0-2" href="#__codelineno-0-2">2</a><span class="p">[</span>y<span class="p">])</span>\n'
    )
    assert hooks("sources").slim(page) == expected


def test_the_checks_find_injected_errors(tmp_path):
    """Each fault is found once, and nothing else."""
    (tmp_path / "a.html").write_text(
        '<h1 id="here">x</h1><a href="#here"></a><a href="#there"></a><a href="b.html"></a><a href="c.html#x"></a>'
        '<a href="https://other.org"></a><img src="https://other.org/x.png"><p>\n| --- |\n- x</p><code>\n- y</code>'
    )
    (tmp_path / "c.html").write_text('<h2 id="x">x</h2><a href="a.html#here"></a>')
    found = site.pages(tmp_path)
    assert site.broken(tmp_path, found) == ["a.html: #there has no such anchor", "a.html: b.html is not there"]
    assert site.foreign(found) == ["a.html: https://other.org/x.png"]
    assert len(site.unread(found)) == 2


SCRIPTS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_page_contains_its_output(path, folder, pages):
    name = f"{path.parent.name}/{path.stem}.html"
    text = (folder / name).read_text()
    assert text.count('highlight">') >= 7, "blocks of code, and what they print"
    drawn = [load for load in pages[name].loads if path.stem in load]
    assert len(drawn) == path.read_text().count("plt.subplots(")
    assert all((folder / path.parent.name / picture).stat().st_size < MOST_OF_A_PICTURE for picture in drawn)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_has_the_code_of_its_script(path, folder, pages):
    """The code is that of the script, which tests/test_tutorials.py runs."""
    made = json.loads((folder / "tutorials" / f"{path.stem}.ipynb").read_text())
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in made["cells"]}) == len(made["cells"])
    text = {kind: [] for kind in ("markdown", "code")}
    for cell in made["cells"]:
        text[cell["cell_type"]].append("".join(cell["source"]))
    assert ast.dump(ast.parse("\n".join(text["code"]))) == ast.dump(ast.parse(path.read_text()))
    assert text["markdown"][0].startswith("# ")
    assert not re.search(r"\]\((?!https?:)", "".join(text["markdown"])), "no link to a page of the site"
    assert f"{path.stem}.ipynb" in pages[f"tutorials/{path.stem}.html"].links


def test_every_example_has_a_page(folder, pages):
    """The page has a picture and the source, the gallery links it."""
    linked = pages["gallery.html"].links
    for path in sorted((ROOT / "examples").glob("*.py")):
        name = f"examples/{path.stem}.html"
        assert name in linked, path.stem
        (picture,) = [load for load in pages[name].loads if "images/" in load]
        assert (folder / "examples" / picture).stat().st_size < MOST_OF_A_THUMBNAIL
        shown = html.unescape(re.sub(r"<[^>]+>", "", (folder / name).read_text()))
        assert path.read_text().splitlines()[-1] in shown


def test_equations_are_typeset_next_to_code(folder):
    text = (folder / "chapters" / "dynamics.html").read_text()
    assert text.count("<math") >= 10 and "arithmatex" not in text and "{{ source" not in text
    assert text.count("@</span>") + text.count('class="nd">@') >= 7, "kernels and stages"


@pytest.fixture
def hooks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    return importlib.import_module


def test_an_excerpt_is_the_function_that_runs(hooks):
    code, path, line = hooks("excerpts").excerpt("featherlane.engine.dynamics.body.newton_euler", "rne")
    assert code.startswith("@stage\ndef rne(m, d):\n    _outward_pass(m, d, ") and '"""' not in code
    assert (ROOT / path).read_text().splitlines()[line - 1] == "@stage"
    code, *_ = hooks("excerpts").excerpt("featherlane.environments.gymnasium_v5.ant", "Ant.healthy")
    assert (
        code.startswith("def healthy(self, worlds: Batch) -> np.ndarray:")
        and "    low, high = " in code
        and '"""' not in code
    )
    for missing in ("nothing", "rne.nothing"):
        with pytest.raises(LookupError, match="nothing"):
            hooks("excerpts").excerpt("featherlane.engine.dynamics.body.newton_euler", missing)


def test_diagrams_contain_their_labels(hooks):
    drawn = hooks("flowcharts").svg("flowchart TD\n A[one] -->|if| B{two<br>lines}\n B --> A\n A -.-> C[(store)]\n")
    assert drawn.count("<rect") == 3 and drawn.count('class="edge') == 3 and drawn.count("dashed") == 1
    assert all(f">{word}</text>" in drawn for word in ("one", "two", "lines", "store", "if"))
    for wrong in ("graph TD\n A --> B", "flowchart TD\n A[one"):
        with pytest.raises(ValueError, match="allowed are"):
            hooks("flowcharts").svg(wrong)


def test_cells_of_a_script_are_text_and_code(hooks):
    page, drawn = hooks("tutorials").told("tutorials", "try", "# # Title\n\n# %%\n# words\n\nprint(6 * 7)\n")
    assert page.startswith("# Title\n\nwords\n\n```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n") and drawn == ()
    with pytest.raises(ZeroDivisionError):
        hooks("tutorials").told("tutorials", "try", "# %%\n1 / 0\n")


COLUMN = 868  # pixels of a page's column at a width of 1400: docs/site/site.css
CODE, SMALL = 8.2, 6.8  # pixels of a character of code, at most
NUMBER, PADDING = 7.0, 18.5  # of a character of a table, and of the padding of a cell; as measured in Chromium
TABLE = re.compile(r"<table>(.*?)</table>", re.DOTALL)
HIGHLIGHT = re.compile(r'<div class="([\w -]*)highlight"><pre>.*?<code[^>]*>(.*?)</code></pre>', re.DOTALL)
NUMBERED = 'class="linenos"'  # blocks of the source


def words(cell: str) -> list[str]:
    """Returns the parts of a cell between which a line may break."""
    text = html.unescape(re.sub(r"<(?!wbr)[^>]+>", "", re.sub(r"<br ?/?>", " ", cell)))
    return re.split(r"<wbr>|[ \n]|(?<=[-,])(?=\w{2})", text)


def least_width(table: str) -> float:
    """Returns the least width of a table in pixels: its lines break at every place where a browser may break them."""
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in table.split("<tr>")[1:]]
    columns = [[cells[k] for cells in rows if k < len(cells)] for k in range(max(map(len, rows)))]
    return sum(NUMBER * max(len(word) for cell in column for word in words(cell)) + PADDING for column in columns)


def code_width(kind: str, code: str) -> float:
    """Returns the pixels of the longest line of a block of code; a broken line has no width."""
    lines = html.unescape(re.sub(r"<[^>]+>", "", code)).splitlines()
    size = SMALL if "small" in kind else CODE
    return 0.0 if "broken" in kind else 36 + size * max(map(len, lines), default=0)


def test_tables_and_code_fit_into_their_column(folder, pages):
    """Widths are estimated from the characters; a browser gave the sizes and the column of 868 at 1400 pixels."""
    tables, blocks = {}, {}
    for name in pages:
        if name.startswith("source/"):
            continue
        text = (folder / name).read_text()
        tables |= {f"{name}, table {k}": least_width(table) for k, table in enumerate(TABLE.findall(text))}
        blocks |= {f"{name}, block {k}": code_width(*block) for k, block in enumerate(HIGHLIGHT.findall(text))}
    assert len(tables) > 150 and len(blocks) > 900
    assert {name: width for name, width in (tables | blocks).items() if width > COLUMN} == {}
    assert max(tables.values()) > 0.7 * COLUMN and max(blocks.values()) > 0.9 * COLUMN, "the estimates have a scale"


def test_wide_tables_and_code_are_found():
    row = "".join(f"<td>{'x' * 12}</td>" for _ in range(9))
    assert least_width(f"<tr>{row}</tr>") > COLUMN > least_width(f"<tr>{row.replace('xx', 'x<wbr>x')}</tr>")
    assert code_width("", "x" * 103) > COLUMN > code_width("", f"<b>{'x' * 88}</b>\nx")
    assert COLUMN > code_width("small ", "x" * 120) > 800


def test_columns_are_grouped_and_folded(hooks):
    layout, table = hooks("layout"), "| a | b | c, d |\n| --- | --- | ---: |\n| 1 | 2 | 3 |\n"
    page = f"<!-- columns: c, d | b -->\n<!-- x:begin -->\n{table}<!-- x:end -->\n"
    made = layout.on_page_markdown(page, None, None, None)
    assert made.startswith("<!-- x:begin -->\n| a | c, d |\n| --- | ---: |\n| 1 | 3 |\n")
    assert "| a | b |\n| --- | --- |\n| 1 | 2 |" in made.partition("<details")[2]
    for wrong in ("b", "b; c", "b; c, d; e"):
        with pytest.raises(ValueError, match="allowed are"):
            layout.on_page_markdown(page.replace("c, d | b", wrong), None, None, None)


def test_a_column_of_a_further_processor_follows_its_column(hooks):
    columns = ["model", "dofs", "ratio", "time", "ratio, Intel Xeon"]
    assert hooks("layout").groups("ratio; time | dofs", columns) == [[0, 2, 4, 3], [0, 1]]
    assert hooks("layout").groups("ratio; time | dofs; ratio, Intel Xeon", columns) == [[0, 2, 3], [0, 1, 4]]


def test_code_keeps_its_indentation_and_other_text_has_none(hooks):
    page = "<p>\n\n  a\n  b</p>\n<pre><code>if x:\n\n    y\n</code></pre>\n\n  <p>c</p>"
    assert hooks("layout").on_post_page(page, None, None) == (
        "<p>\na\nb</p>\n<pre><code>if x:\n\n    y\n</code></pre>\n<p>c</p>"
    )


def test_every_comment_about_columns_has_a_table(hooks):
    layout, pages = hooks("layout"), [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    comments = sum(len(re.findall(r"^<!-- columns: ", page, re.MULTILINE)) for page in pages)
    assert comments > 10 and comments == sum(len(layout.TABLE.findall(page)) for page in pages)


def test_old_anchors_lead_to_the_parts_of_a_page(folder, pages):
    """An address that was published keeps its anchor: the page lists its parts there."""
    for address in ("reference/api.html#Batch.step", "fields.html#model", "speed.html#thread-scaling"):
        name, _, anchor = address.partition("#")
        assert anchor in pages[name].anchors, address
    assert "fields/model.html#model" in pages["reference/actuators.html"].links or any(
        "fields/model.html#model" in link for page in pages.values() for link in page.links
    )


def test_a_page_is_cut_at_its_headings(hooks):
    split = hooks("split")
    text = "# T\n\nintro\n\n## A b\n\n[x](c.md#d) ![y](images/y.svg)\n\n```sh\n# no heading\n```\n\n"
    text += "### In\n\n## Z { #z.Z }\n\nend\n"
    rest, parts, nav = split.cut("speed", text)
    assert nav == ["speed/a-b.md", "speed/z.z.md"]
    assert rest.startswith("# T\n\nintro\n\n- ") and "[A b](speed/a-b.md)" in rest and 'id="in"' in rest
    assert parts["speed/a-b.md"].startswith("# A b\n\n[x](../c.md#d) ![y](../images/y.svg)")
    assert "\n## In\n" in parts["speed/a-b.md"] and "\n# no heading\n" in parts["speed/a-b.md"]
    assert parts["speed/z.z.md"] == "# Z { #z.Z }\n\nend\n"
    with pytest.raises(ValueError, match="no heading"):
        split.cut("speed", "# T\n")


def test_pages_of_the_reference_are_short(hooks):
    split, made = hooks("split"), hooks("reference").pages()
    pages = {f"reference/{name}": text for name, text in made.items() if name != "index"}  # it lists all names
    for name in pages.keys() & set(split.PAGES):
        rest, parts, _ = split.cut(name, pages[name])
        pages |= parts | {name: rest}
    assert {name: n for name, text in pages.items() if (n := text.count("\n")) > MOST_LINES} == {}


def test_a_section_of_a_page_is_cut_at_its_headings(hooks):
    split = hooks("split")
    text = "# T\n\n## Worlds\n\n### Batch { #Batch }\n\nclass\n\n#### Batch: state\n\n##### x\n\n### Data\n\n## End\n"
    rest, parts, nav = split.cut("reference/api", text)
    at = {name: f"reference/api/{name}.md" for name in ("worlds", "batch", "batch-state", "data", "end")}
    assert nav == [{"Worlds": [at["worlds"], {"Batch": [at["batch"], at["batch-state"]]}, at["data"]]}, at["end"]]
    assert parts[at["batch"]] == "# Batch { #Batch }\n\nclass\n\n\n- [Batch: state](batch-state.md)\n"
    assert parts[at["batch-state"]].startswith("# Batch: state\n\n## x\n")
    assert "\n- [Batch](batch.md)\n    - [Batch: state](batch-state.md)\n- [Data](data.md)\n" in parts[at["worlds"]]
    assert '        - <span id="batch-state"></span><span id="x"></span>[Batch: state](api/batch-state.md)\n' in rest
