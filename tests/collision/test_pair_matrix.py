"""Each cell of the pair matrix against MuJoCo, and the page with the matrix."""

import itertools
from pathlib import Path

import numpy as np
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


def test_the_exact_depth_of_boxes():
    """The boxes overlap along x; the second pair has one box rotated by 45 degrees about z."""
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    distance, normal = pairs.exact_depth(corners, corners + (1.9, 0.3, 0.0))
    assert abs(distance + 0.1) < 1e-14 and abs(normal - (1, 0, 0)).max() < 1e-14
    turn = np.array([[1, -1, 0], [1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    distance, _ = pairs.exact_depth(corners, corners @ turn.T + (2.3, 0.0, 0.0))
    assert abs(distance - (2.3 - 1.0 - np.sqrt(2))) < 1e-14


def test_a_polyhedron_has_the_vertices_of_its_mesh_alone():
    """The scene has two meshes."""
    model = pairs.model_of("box", "mesh")
    solids = pairs.polyhedra(model, np.zeros((2, 3)), np.tile(np.eye(3).ravel(), (2, 1)))
    assert [solid.shape for solid in solids] == [(8, 3), (16, 3)]


def test_every_colliding_pair_of_mujoco_has_a_table_entry():
    names = set(NAMES)
    without = {("plane", "plane"), ("plane", "hfield"), ("hfield", "hfield"), ("hfield", "sdf")}
    for i, first in enumerate(TYPES):
        for second in TYPES[i:]:
            assert (f"{first}-{second}" in names) == ((first, second) not in without)


def test_the_page_shows_this_matrix():
    text = PAGE.read_text()
    assert matrix() in text, "run: python docs/pairs.py"
    for name in NAMES:
        assert f"| {name} |" in text
    assert pairs.HEAD.splitlines()[0] in text
