"""Checks the docs' chapters: functions they show exist, equations are closed, pictures exist and are small."""

import ast
import re
from pathlib import Path

import pytest

from pages import links

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "docs" / "chapters"
PAGES = sorted(CHAPTERS.glob("*.md"))
SOURCE = re.compile(r"^\{\{ source: ([\w.]+):(\w+) \}\}$", re.MULTILINE)
SHOWN = [(page, *found) for page in PAGES for found in SOURCE.findall(page.read_text())]
MOST_BYTES = 150_000  # limit for a picture
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def place_of(module: str) -> Path:
    """Returns the file of a module."""
    return ROOT / "src" / Path(*module.split(".")).with_suffix(".py")


@pytest.mark.parametrize("page, module, name", SHOWN, ids=[f"{page.stem}-{name}" for page, _, name in SHOWN])
def test_a_function_that_is_shown_exists_and_its_file_is_linked(page, module, name):
    place = place_of(module)
    assert place.exists(), f"{place} is not there"
    functions = [
        node.name
        for node in ast.parse(place.read_text()).body
        if isinstance(node, ast.FunctionDef) and not any(ast.unparse(d) == "overload" for d in node.decorator_list)
    ]
    assert functions.count(name) == 1, f"{module} has no function {name}"
    linked = {(page.parent / target.partition("#")[0]).resolve() for target in links.links(page.read_text())}
    assert place in linked or place.parent in linked, f"{page.name} shows {name} and links to no {place.name}"


@pages
def test_every_source_line_is_valid(page):
    text = links.text(page.read_text())
    assert len(SOURCE.findall(text)) == len(re.findall(r"\{\{ *source", text))


@pages
def test_equations_close(page):
    text = re.sub(r"`[^`\n]*`", "", links.text(page.read_text()))
    assert text.count("$$") % 2 == 0
    blocks = re.findall(r"\$\$(.*?)\$\$", text, re.DOTALL)
    rest = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|^\|.*$", rest, flags=re.MULTILINE):
        assert paragraph.count("$") % 2 == 0, paragraph
    for equation in [*blocks, *re.findall(r"\$([^$]+)\$", rest)]:
        assert equation.count("{") == equation.count("}"), equation
        assert equation.count(r"\left") - equation.count(r"\leftarrow") == equation.count(r"\right") - equation.count(
            r"\rightarrow"
        ), equation
        assert equation.count(r"\begin") == equation.count(r"\end"), equation


@pages
def test_images_are_small_and_generated_by_a_listed_script(page):
    for told, target in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", page.read_text()):
        assert len(told) > 20, f"{target}: say what is to be seen"
        assert (page.parent / target).stat().st_size < MOST_BYTES, target


def test_every_picture_of_the_script_is_shown():
    code = ast.parse((ROOT / "docs" / "images" / "chapters.py").read_text())
    (pictures,) = (
        node.value.generators[0].iter
        for node in code.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PICTURES"
    )
    drawn = {element.id for element in pictures.elts}
    shown = {Path(target).stem for page in PAGES for target in links.links(page.read_text()) if target.endswith(".png")}
    assert drawn == shown
