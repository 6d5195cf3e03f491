"""Derived fields: one registration declares, sizes and computes them."""

import numpy as np
import pytest

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derive, derived
from featherlane.engine.model.fields import DERIVED, MODEL, MUJOCO

field = Declare()


@derived(
    size("nodd", "odd numbers"),
    size("largest", "the largest of them"),
    field.int("odd", "nodd", "1", "them"),
    field.real("pair", "nodd 2", "1", "each one twice"),
)
def odd_numbers(below):
    odd = np.arange(1, below, 2)
    return {"odd": odd, "pair": np.stack([odd, odd], axis=1), "largest": odd.max()}


def test_a_size_is_returned_or_the_length_of_an_array():
    sizes, arrays = derive([odd_numbers], below=8, unread=None)
    assert sizes == {"nodd": 4, "largest": 7}
    assert arrays["pair"].shape == (4, 2)
    assert list(odd_numbers(4)["odd"]) == [1, 3]


def test_a_declared_field_has_to_be_computed():
    with pytest.raises(KeyError):
        derive([derived(field.int("none", "1", "1", "nothing"))(lambda: {})])


def test_every_model_field_comes_from_mujoco_or_names_its_function():
    names = {field.name: each.__name__ for each in DERIVED for field in each.fields}
    assert {field.name: field.stage for field in MODEL.fields if field.stage} == names
    assert [field for field in MODEL.fields if not field.stage] == list(MUJOCO)
