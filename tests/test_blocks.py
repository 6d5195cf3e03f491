"""Every code block of every page runs as written; every command on a page exists."""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import typer

import featherlane as fl
from featherlane.apps.cli.application import application
from featherlane.tools.renderer import Painter, prepare_rendering
from pages import blocks, environments

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# pages whose blocks have separate tests, or are parts of a program that is tested (tests/howto)
ELSEWHERE = {"README.md", "CONTRIBUTING.md", "docs/extending.md", "docs/training.md"}
ELSEWHERE |= {"docs/reference/examples.md", "docs/reference/members.md"}
OTHER_LIBRARIES = ("unisim", "dm_control", "mjlab", "gymnasium", "judo", "libero", "robosuite")
ELSEWHERE |= {f"docs/integrations/{name}.md" for name in OTHER_LIBRARIES}
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
SHOWN = [name for name in NAMES if name not in ELSEWHERE and blocks.python((ROOT / name).read_text())]
# headings of sections whose blocks need a package; "#" is the whole page
NEEDS = {
    "docs/tasks.md": {"#": "gymnasium"},
    "docs/urdf.md": {"#": "jvrc_description"},
    "docs/derivatives.md": {"## Gradients in PyTorch": "torch", "## Gradients in JAX": "jax"},
    "docs/start/index.md": {"## Train a policy": "gymnasium"},
    "docs/environments/robots.md": {"#": "gymnasium"},
    "docs/environments/gymnasium.md": {"#": "gymnasium"},
    "docs/environments/dm_control.md": {"#": "dm_control"},
    "docs/migration-isaac.md": {"## Worked example: a vectorized task": "gymnasium"},
    "docs/muscles.md": {"## Musculoskeletal models": "musclemimic_models"},
    "docs/video.md": {"## Images of an environment": "gymnasium", "## MuJoCo's renderer": "OpenGL"},
}
COMMANDS = sorted({command for page in PAGES for command in blocks.commands(page.read_text())})


def available(package: str) -> bool:
    """Returns whether a package is installed; for OpenGL also whether an image can be rendered."""
    if importlib.util.find_spec(package) is None:
        return False
    if package == "OpenGL":
        try:
            prepare_rendering(("OpenGL",))
            with Painter(fl.bundled("pendulum"), -1, (16, 16)):
                pass
        except fl.InstallationError:
            return False
    return True


def without(text: str, heading: str) -> str:
    """Removes a section and its subsections from a page."""
    if heading == "#":
        return ""
    before, found, rest = text.partition(f"\n{heading}\n")
    assert found, heading
    return before + "".join(re.split(r"^(?=## )", rest, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize("name", SHOWN)
def test_the_blocks_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text()
    for heading, package in NEEDS.get(name, {}).items():
        text = text if available(package) else without(text, heading)
    if "```text" not in text:  # fewer worlds if no output is compared
        text = re.sub(r"\b(num_envs|nworld)=\d{3,}", r"\1=64", text)
    blocks.run(text, tmp_path)


ORDER = re.compile(r"[Rr]un the (code )?blocks (of this (page|section) in order|one\s+after\s+the\s+other)")
PARTS = {
    "CONTRIBUTING.md",
    "docs/extending.md",
    "docs/reference/examples.md",
}  # no page shows their blocks as a program


@pytest.mark.parametrize("name", sorted({*NAMES} - PARTS))
def test_a_page_whose_blocks_need_earlier_ones_says_so(name):
    page = (ROOT / name).read_text()
    needed = {k: blocks.missing(code) for k, code in enumerate(blocks.python(page))}
    assert ORDER.search(page) or not any(needed.values()), needed


def test_names_that_a_block_lacks_are_found():
    assert blocks.missing("x.save()\nx = f(1)\n") == {"x", "f"}
    whole = "import a.b as c\ndef f(x):\n    return later + x\nlater = [c.g(i) for i in range(3)]\n"
    whole += "with c.open() as file:\n    y: int = file\nfor k in later:\n    print(k, y, (lambda z: z)(1))\n"
    assert blocks.missing(whole) == set()


def test_every_code_block_is_tested():
    """Checks fences: one with another name, an indented one or an unclosed one would not run."""
    for name in sorted(
        {*NAMES} - {"CONTRIBUTING.md", "docs/extending.md"}
    ):  # its parts run as complete programs in tests/howto
        text = (ROOT / name).read_text()
        fences = [line for line in text.splitlines() if re.match(r" {0,3}(```|~~~)(py|Py|>>>)", line)]
        assert len(fences) == len(re.findall(r"^```python$", text, re.MULTILINE)), name
        assert len(fences) == sum(bool(block["shown"]) for block in blocks.PYTHON.finditer(text)), name


def test_every_page_of_an_integration_has_an_environment():
    """Checks the table of `python tests/exam.py pages`, which runs the pages with their libraries."""
    pages = {page.stem for page in environments.FOLDER.glob("*.md") if blocks.python(page.read_text())}
    assert pages == environments.PAGES.keys()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {needs.extra for needs in environments.PAGES.values()} - {""} <= extras.keys()


def test_no_code_is_hidden():
    """A copied block fails if the code before it is in a comment."""
    hidden = re.compile(r"<!--(?:(?!-->).)*^(?:import|from|\w+ =) ?(?:(?!-->).)*-->", re.DOTALL | re.MULTILINE)
    assert [page.name for page in PAGES if hidden.search(page.read_text())] == []
    assert hidden.search("<!-- before\nmodel = 1\n-->") and hidden.search("<!--\nimport numpy as np\n-->")


@pytest.mark.parametrize("command", COMMANDS)
def test_documented_commands_exist(command):
    """Checks that the program has the options; files need not exist."""
    _, *words = shlex.split(command)
    group = typer.main.get_command(application)
    name, *rest = words
    if name == "--version":
        return
    assert name in group.commands, f"allowed are {sorted(group.commands)}"
    group.commands[name].make_context(name, rest)


def test_a_wrong_block_and_a_wrong_command_are_found(tmp_path):
    page = "```python\nx = 1\n```\n\n```python\nx += 1\n```\n\n```sh\nfeatherlane diagnose a.xml  # what\npip x\n```\n"
    assert blocks.run(page, tmp_path)[0]["x"] == 2
    assert blocks.commands(page) == ["featherlane diagnose a.xml"]
    with pytest.raises(ZeroDivisionError):
        blocks.run(page + "```python\n1 / (x - 2)\n```\n", tmp_path)
    page += "```python\nprint(x)\n```\n\n```text\n2\n```\n"
    assert blocks.run(page, tmp_path)[1] == page
    with pytest.raises(AssertionError, match="prints\n2\n"):
        blocks.run(page.replace("\n2\n", "\n3\n"), tmp_path)
