"""Every Featherlane name in the tables and text of the migration pages exists."""

import re
from pathlib import Path

import pytest

import featherlane as fl

DOCS = Path(__file__).parents[1] / "docs"
SIMULATORS = "migration-pybullet", "migration-isaac", "migration-genesis", "migration-drake"
PAGES = [DOCS / f"{name}.md" for name in ("migration", "migration-mjx", "migration-pinocchio", *SIMULATORS, "limits")]
NAME = re.compile(r"(?<![\w.])(fl|model|data|batch)\.((?:opt\.)?[a-zA-Z_]\w*)")


def ours(page: str) -> list[tuple[str, str]]:
    """Returns (object, attribute) of code in all table columns but the first, which has the other library's names."""
    found = []
    for line in re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE).splitlines():
        shown = line.split("|", 2)[-1] if line.startswith("|") else line
        for code in re.findall(r"`([^`]+)`", shown.replace(r"\|", " ")):
            found += NAME.findall(code)
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def things():
    """Returns an example of each object."""
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    data.record_solver = True
    data.forward()
    batch = fl.Batch(model, 2)
    batch.inverse()  # binds qfrc_inverse, which no step computes
    return {"fl": fl, "model": model, "data": data, "batch": batch}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_featherlane_name_exists(page, things):
    named = ours(page.read_text())
    assert len(named) > 3
    for thing, name in named:
        target = things[thing]
        *path, last = name.split(".")
        for part in path:
            target = getattr(target, part)
        assert hasattr(target, last) or _is_bound(thing, target, last), f"{page.name}: {thing}.{name}"


def _is_bound(thing: str, batch, name: str) -> bool:
    """Returns whether the name is a batch field that `bind` adds."""
    if thing != "batch":
        return False
    batch.bind(name)
    return hasattr(batch, name)


def test_a_wrong_name_is_found(things):
    page = "| `theirs.x` | `fl.load`, `model.nothing` |\n`batch.stepp(3)`\n```python\nfl.hidden\n```\n"
    named = ours(page)
    assert named == [("fl", "load"), ("model", "nothing"), ("batch", "stepp")]
    assert not hasattr(things["model"], "nothing") and not hasattr(things["batch"], "stepp")
