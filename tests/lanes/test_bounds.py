"""Bounds checks: an invalid index raises an IndexError with field, index and length, and accesses nothing outside."""

import numpy as np
import pytest

from featherlane.engine.lanes import gather, gather_rows, read_lane, real, stage
from scenes.cells import CELLS, OUTPUTS, cells, evaluate, library

WIDTHS = (1, 8)


@stage
def shifts(d, by):
    for i in range(d.n):
        d.x[i + by] = d.y[i] + 1.0


@stage
def reads(d, at):
    d.x[0] = d.y[at]


@stage
def reads_integer(d, at):
    d.k[0] = d.k[at]


@stage
def gathers(d, at):
    d.x[0] = gather(d.table, d.y[0]) + gather_rows(d.y, d.y[at])


@stage
def calls(d, at):
    shifts(d, 0)
    reads(d, at)


@stage
def fills(d):
    for i in range(d.n):
        d.out[OUTPUTS * i] = d.x[i]


@stage
def reads_lane(d, at):
    d.x[0] = real(d, read_lane(d.y, 0, at))


@pytest.fixture(scope="module")
def stages():
    return library()


@pytest.fixture(params=["checked", "python"])
def checked(request, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", request.param)
    return request.param


@pytest.mark.parametrize("w", WIDTHS)
@pytest.mark.parametrize(
    "tried, argument, message",
    [
        (shifts, 1, r"Cells.x\[4\] of 4 rows"),
        (shifts, -1, r"Cells.x\[-1\] of 4 rows"),
        (reads, 4, r"Cells.y\[4\] of 4 rows"),
        (reads, -3, r"Cells.y\[-3\] of 4 rows"),
        (reads_integer, 10**12, r"Cells.k\[1000000000000\] of 4 rows"),
        (calls, 9, r"Cells.y\[9\] of 4 rows"),
        (reads_lane, 8, r"Cells.y\[8\] of [18] rows|index 8 is out of bounds"),
    ],
)
def test_an_index_out_of_range_is_an_error(stages, checked, w, tried, argument, message):
    with pytest.raises(IndexError, match=message):
        stages.bind(tried, cells("float64", w, 4))(argument)


@pytest.mark.parametrize("w", WIDTHS)
@pytest.mark.parametrize("field, at", [("table", 0), ("y", 1)])
def test_gathering_out_of_range_is_an_error(stages, checked, w, field, at):
    y = np.zeros((4, w))
    y[at, -1] = 7  # one world only
    with pytest.raises(IndexError, match=rf"{field}\[7\]"):
        stages.bind(gathers, cells("float64", w, 4, y=y))(at)


@pytest.mark.parametrize("w", WIDTHS)
def test_the_first_fault_is_reported_and_all_are_counted(stages, w, monkeypatch):
    monkeypatch.setenv("FEATHERLANE_MODE", "checked")
    d = cells("float64", w, 4)
    run = stages.bind(shifts, d)
    with pytest.raises(IndexError, match=r"shifts: Cells.x\[6\] of 4 rows \(4 accesses out of range\)"):
        run(6)
    run(0)  # the record's error is cleared
    assert np.all(d.arrays["x"] == 1.0)


@pytest.mark.parametrize("w", WIDTHS)
def test_checks_change_no_result(stages, w, rng):
    x = rng.normal(size=32)
    plain, checked = (evaluate(stages, fills, "float64", w, checked=c, x=x) for c in (False, True))
    assert np.array_equal(plain, checked) and np.array_equal(plain[0], x)


def test_a_fault_in_the_model_is_found(stages, checked):
    m, d = cells("float64", 8, 2), cells("float64", 8, 4)
    with pytest.raises(IndexError, match=r"x\[2\]"):
        stages.bind(copies, m, d)()


@stage
def copies(m, d):
    for i in range(d.n):
        d.x[i] = m.x[i]


def test_lengths_are_in_rows(stages):
    d = cells("float64", 8, 4)
    assert d.table[4 + 2 * CELLS.index["out"] + 1] == 4 * OUTPUTS
