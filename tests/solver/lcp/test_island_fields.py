"""The fields of islands are rows of a tile."""

from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.solver.lcp import island_fields


def test_each_field_belongs_to_a_tile():
    assert island_fields.FIELDS
    for field in island_fields.FIELDS:
        assert DATA[field.name] == field
