"""Stages that process one world at a time: they access ints and scalars of a tile, at every width and precision."""

import numpy as np
import pytest

from featherlane.engine.lanes import (
    Field,
    Layout,
    Library,
    Record,
    allocate,
    eights,
    fma,
    has,
    read_lane,
    stage,
    whole,
    width,
    write_lane,
)

CELL = Layout(
    "Cell",
    (
        Field("n", "size"),
        Field("x", "real", ("n",)),
        Field("y", "real", ("n",)),
        Field("room", "scalar", ("n",)),
        Field("steps", "int", (1,)),
    ),
)
LIBRARY = Library({"c": (CELL, False), "c1": (CELL, False)})
FORMS = [(np.float64, 1), (np.float64, 8), (np.float32, 16)]


@stage
def halvings(c1):
    """Counts halvings of each number until it is below 1: a loop and a branch on one world's number."""
    c1.steps[0] = 0
    for i in range(c1.n):
        x = c1.room[i]
        while x >= 1.0:
            if whole(x) % 2 == 0:
                c1.steps[0] = c1.steps[0] + 1
            x = 0.5 * x
        c1.room[i] = x


@stage
def halve_positive(c):
    """Processes every world with a positive first number, one after the other."""
    for lane in range(width(c)):
        if has(c.x[0] > 0.0, lane):
            for i in range(c.n):
                c.room[i] = read_lane(c.x, i, lane)
            halvings(c)
            for i in range(c.n):
                write_lane(c.y, i, lane, c.room[i])
            write_lane(c.y, 0, lane, 1.0 * c.steps[0])


def run(x, dtype, monkeypatch, mode):
    W = x.shape[1]
    arrays = allocate(CELL, {"n": len(x)}, width=W, dtype=dtype)
    arrays["x"][...] = x
    record = Record(CELL, {"n": len(x)}, arrays, width=W, dtype=dtype)
    monkeypatch.setenv("FEATHERLANE_MODE", mode)
    LIBRARY.bind(halve_positive, record)()
    return arrays["y"]


@pytest.mark.parametrize("mode", ["python", "jit", "checked"])
@pytest.mark.parametrize(("dtype", "W"), FORMS)
def test_scalar_branches_run_per_world(dtype, W, mode, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.integers(-20, 40, (3, W)).astype(dtype) * dtype(0.5)
    got = run(x, dtype, monkeypatch, mode)
    for lane in range(W):
        column, steps, expected = x[:, lane].astype(float), 0, np.zeros(3)
        if column[0] > 0:
            for i, v in enumerate(column):
                while v >= 1.0:
                    steps += int(v) % 2 == 0
                    v *= 0.5
                expected[i] = v
            expected[0] = steps
        assert np.array_equal(got[:, lane], expected.astype(dtype))


EIGHTS = Layout("Eights", (Field("n", "size"), Field("y", "scalar", ("n",)), Field("x", "scalar", ("n",))))
EIGHTS_LIBRARY = Library({"e": (EIGHTS, False), "e1": (EIGHTS, False)})


@stage
def add_twice(e1):
    """y += 2 x, eight numbers at once."""
    y, x = eights(e1.y), eights(e1.x)
    for k in range(e1.n // 8):
        y[k] = fma(2.0, x[k], y[k])


@pytest.mark.parametrize("mode", ["python", "jit", "checked"])
def test_scalars_are_read_and_written_eight_at_once(mode, monkeypatch):
    arrays = allocate(EIGHTS, {"n": 24}, width=1, dtype=np.float64)
    arrays["x"][...] = np.arange(24.0)
    arrays["y"][...] = 1.0
    record = Record(EIGHTS, {"n": 24}, arrays, width=1, dtype=np.float64)
    monkeypatch.setenv("FEATHERLANE_MODE", mode)
    EIGHTS_LIBRARY.bind(add_twice, record)()
    assert np.array_equal(arrays["y"], 1.0 + 2.0 * np.arange(24.0))
