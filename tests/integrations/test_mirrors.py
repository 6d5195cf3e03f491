"""Copies of a batch's arrays: edited elements are written once, all others keep their digits."""

import numpy as np

from featherlane.integrations.mirrors import Mirror


def mirror(written=True):
    rows = np.array([[1 / 3, np.nan], [2 / 3, 5.0]])
    return rows, Mirror(rows, np.empty((2, 2), np.float32), written)


def test_only_edited_elements_are_written():
    rows, copy = mirror()
    before = rows.copy()
    copy.push()
    np.testing.assert_array_equal(rows, before)
    copy.shown[1, 1] = 7.5
    copy.push(np.array([0]))
    np.testing.assert_array_equal(rows, before)
    copy.push(np.array([1]))
    assert rows[1].tolist() == [2 / 3, 7.5]


def test_an_element_that_is_set_back_is_written():
    rows, copy = mirror()
    copy.shown[1, 1] = 7.5
    copy.push()
    copy.shown[1, 1] = 5.0
    copy.push()
    assert rows[1, 1] == 5.0


def test_edits_are_written_again_if_they_were_written_for_a_query():
    rows, copy = mirror()
    copy.shown[0] = 3.0
    copy.push(once=False)
    rows[0] = 0.0
    copy.push()
    assert rows[0].tolist() == [3.0, 3.0]
    rows[0] = 1 / 3
    copy.push()
    assert rows[0].tolist() == [1 / 3, 1 / 3]
    copy.pull(np.array([0]))
    assert copy.shown[0, 0] == np.float32(1 / 3)


def test_a_copy_that_is_only_read_is_not_written():
    rows, copy = mirror(written=False)
    copy.shown[1, 1] = 7.5
    copy.push()
    assert rows[1, 1] == 5.0
