"""The gallery shows the scenes of its script; the speed page lists every benchmark and the page that each writes."""

import ast
import re
from pathlib import Path

import pytest

from pages import links

ROOT = Path(__file__).parents[1]
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks"
MOST_BYTES = 150_000  # limit for a picture of the gallery
MOST_OF_AN_ANIMATION = 1_200_000
# buttons of viser, and those whose text is computed
BUTTONS = {"Save Canvas", "Reset View", "Reset Panel Layout", *(f"{sign}{axis}" for sign in "+-" for axis in "xyz")}
# shared modules; scripts for contributors
TOSSES = {"toss_recording", "toss_engines", "toss_gradients"}  # parts of tosses.py
ARM = {"arm_recording", "arm_pinocchio"}  # parts of recorded_arm.py
NO_TABLE = {"races", "report", "columns", "plots", "dart", "edit_loop", "compile_time"} | TOSSES | ARM


def scenes() -> set[str]:
    """Returns the names in SCENES of the script; the script itself needs a display."""
    code = ast.parse((DOCS / "images" / "gallery.py").read_text())
    (found,) = [node.value for node in code.body if getattr(getattr(node, "targets", [None])[0], "id", "") == "SCENES"]
    return {key.value for key in found.keys}


def test_the_gallery_shows_the_images_of_its_script():
    shown = {target for target in links.links((DOCS / "gallery.md").read_text()) if "gallery_" in target}
    assert shown == {f"images/gallery_{name}.png" for name in scenes()}


def test_images_are_small_and_generated_by_a_listed_script():
    for told, target in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", (DOCS / "gallery.md").read_text()):
        assert len(told) > 15, f"{target}: say what is to be seen"
        if "gallery_" in target:
            assert (DOCS / target).stat().st_size < MOST_BYTES, target


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "start" / "index.md", DOCS / "gallery.md"])
def test_a_first_page_has_a_small_animation(page):
    (found,) = re.findall(r"!\[([^]]*)\]\(([^)]+\.gif)\)", page.read_text())
    assert len(found[0]) > 15
    data = (page.parent / found[1]).read_bytes()
    assert data.startswith(b"GIF89a") and len(data) < MOST_OF_AN_ANIMATION


@pytest.mark.parametrize("name", ["humanoid", "batch", "recording", "robot"])
def test_a_picture_of_the_viewer_has_the_present_buttons(name):
    """If it fails, run `python docs/images/viewer.py`, which writes the texts of the buttons into the picture."""
    image = pytest.importorskip("PIL.Image")
    source = "\n".join(path.read_text() for path in (ROOT / "src" / "featherlane" / "apps" / "viewer").rglob("*.py"))
    shown = set(image.open(DOCS / "images" / f"viewer_{name}.png").text["buttons"].splitlines()) - BUTTONS
    assert len(shown) > 5 and [button for button in shown if f'"{button}"' not in source] == []


def test_the_gallery_links_every_example():
    linked = {target.removeprefix("../") for target in links.links((DOCS / "gallery.md").read_text())}
    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.py")} <= linked


def test_every_benchmark_is_listed_with_the_page_that_it_writes(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    report = pytest.importorskip("report")
    page = DOCS / "speed.md"
    rows = links.rows(page.read_text().partition("### Benchmark scripts")[2])
    listed = {row[0].strip("`"): row for row in rows}
    scripts = {path for path in BENCHMARKS.glob("*.py") if path.stem not in NO_TABLE}
    assert listed.keys() == {f"benchmarks/{path.name}" for path in scripts}
    for path in scripts:
        row = listed[f"benchmarks/{path.name}"]
        named = {(DOCS / (target.partition("#")[0] or page)).resolve() for target in links.links(row[1])}
        written = {page for name, page in report.PAGES.items() if f'publish("{name}"' in path.read_text()}
        assert named & written, f"{path.name} writes {written}"
