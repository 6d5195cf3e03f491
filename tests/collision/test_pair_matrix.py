"""Each cell of the pair matrix against MuJoCo, and the page with the matrix."""

from pathlib import Path

import pytest

from pages import pairs
from pages.pairs import CELLS, FAMILIES, TYPES, compare, failures, matrix

FEW, MANY = 80, 2500
PAGE = Path(__file__).parents[2] / "docs" / "pairs.md"
NAMES = [f"{first}-{second}" for first, second, _, _ in CELLS]


def check(cell, family, n, seed):
    first, second, ident, _ = cell
    found = compare(first, second, ident, family, n, seed)
    assert not failures(first, second, ident, family, found)
    assert found.touching > n / 20


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cell", CELLS, ids=NAMES)
def test_a_pair_agrees_with_mujoco(cell, family):
    check(cell, family, FEW, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("cell", CELLS, ids=NAMES)
def test_a_pair_agrees_with_mujoco_in_many_poses(cell, family):
    check(cell, family, MANY, seed=2)


def test_every_colliding_pair_of_mujoco_has_a_table_entry():
    names = set(NAMES)
    unbounded = {("plane", "plane"), ("plane", "hfield"), ("hfield", "hfield")}
    for i, first in enumerate(TYPES):
        for second in TYPES[i:]:
            assert (f"{first}-{second}" in names) == ((first, second) not in unbounded)


def test_the_page_shows_this_matrix():
    text = PAGE.read_text()
    assert matrix() in text, "run: python docs/pairs.py"
    for name in NAMES:
        assert f"| {name} |" in text
    assert pairs.HEAD.splitlines()[0] in text
