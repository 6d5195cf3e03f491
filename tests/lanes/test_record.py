"""Declarations and memory of records."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from featherlane.engine.lanes import Field, Layout, Record, aligned, allocate, stage
from featherlane.engine.lanes.layout import layout_hash
from featherlane.engine.lanes.record import python_record
from featherlane.errors import ArgumentError
from scenes.cells import CELLS, FORMS, cells, library

SIZES = {"n": 3}


# ---- layouts -----------------------------------------------------------------------------------------------
def test_a_field_of_unknown_kind_is_an_error():
    with pytest.raises(ArgumentError):
        Field("x", "float")


@pytest.mark.parametrize(
    "kind, role, message",
    [
        ("real", "physics", "field x: role is 'physics', allowed are state, drive, "),
        ("size", "scratch", "field x: a size has no role, got 'scratch'"),
        ("int", "output", "field x: role output differs by world: kind is 'int'"),
    ],
)
def test_a_role_that_does_not_fit_is_an_error(kind, role, message):
    with pytest.raises(ValueError, match=message):
        Field("x", kind, role=role)


def test_fields_are_selected_by_role_trait_and_request():
    parts = (("q", "real", "state", ""), ("x", "real", "output", "n want"), ("y", "int", "room", ""))
    fields = [Field(name, kind, (1,), role=role, condition=condition) for name, kind, role, condition in parts]
    layout = Layout("A", (Field("n", "size"), *fields))
    assert layout.of("room", "state") == ("q", "y") and layout.that("lasts") == ("q",)
    assert layout.that("shown") == ("q", "x") and layout.that("copied") == ("q", "x")
    assert layout.conditional("want") == layout.conditional("n") == ("x",) and layout.conditional("wan") == ()


def test_a_field_declared_twice_is_an_error():
    with pytest.raises(ArgumentError):
        Layout("Two", (Field("x", "real"), Field("y", "real"), Field("x", "int")))


def test_shapes_come_from_sizes():
    f = Field("x", "real", ("n", 4, "k"))
    assert f.dims({"n": 3, "k": 2}) == (3, 4, 2)
    assert f.count({"n": 3, "k": 2}) == 24
    assert Field("y", "real").count({}) == 1


def test_a_layout_is_read_by_name():
    assert CELLS["x"].kind == "real"
    assert "x" in CELLS and "missing" not in CELLS


def test_layout_hash_follows_order_names_and_kinds_only():
    x, y = Field("x", "real", ("n",)), Field("y", "int", ("n",))
    same = Layout("A", (Field("x", "real", (7,), "m", "another line", "step", "output"), y))
    assert layout_hash(Layout("A", (x, y))) == layout_hash(same)
    others = [Layout("A", (y, x)), Layout("A", (x,)), Layout("B", (x, y)), Layout("A", (Field("x", "scalar"), y))]
    assert len({layout_hash(a) for a in [same, *others]}) == 5


# ---- memory --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(1,), (3, 8), (7, 1), (0, 8), ()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int64])
def test_aligned_memory_is_zero_and_on_a_cache_line(shape, dtype):
    a = aligned(shape, dtype)
    assert a.shape == shape and a.dtype == dtype and not a.any()
    assert a.flags.c_contiguous and (a.ctypes.data % 64 == 0 or not a.size)


@pytest.mark.parametrize("dtype, w", FORMS)
def test_allocate_gives_each_kind_its_rows(dtype, w):
    arrays = allocate(CELLS, SIZES, width=w, dtype=dtype)
    assert {n: (a.shape, a.dtype.name) for n, a in arrays.items() if n != "out"} == {
        "k": ((3,), "int32"),
        "long": ((3,), "int64"),
        "table": ((3,), "float64"),
        "x": ((3, w), dtype),
        "y": ((3, w), dtype),
        "z": ((3, w), dtype),
        "clock": ((3, w), "float64"),
    }
    assert allocate(CELLS, {"n": 0}, width=w, dtype=dtype)["x"].shape == (1, w)


def off_by(array, n):
    """Returns the same values n bytes past a cache line."""
    raw = aligned(array.nbytes + 64, np.uint8)[n : n + array.nbytes]
    return raw.view(array.dtype).reshape(array.shape)


@pytest.mark.parametrize(
    "name, wrong, message",
    [
        ("x", lambda a: a.astype(np.float32), "field x: got float32"),
        ("k", lambda a: a.astype(np.int64), "field k: got int64"),
        ("x", lambda a: a[:, ::2], "field x: .* contiguous"),
        ("x", lambda a: a[:, :5].copy(), r"field x: got float64 \(3, 5\), .* rows of 8"),
        (
            "x",
            lambda a: off_by(a, 16),
            "field x: got unaligned memory, allowed is an address that is a multiple of 64 bytes",
        ),
    ],
)
def test_arrays_that_compiled_code_cannot_read_are_errors(name, wrong, message):
    arrays = allocate(CELLS, SIZES, width=8, dtype=np.float64)
    arrays[name] = wrong(arrays[name])
    with pytest.raises(ValueError, match=message):
        Record(CELLS, SIZES, arrays, width=8, dtype=np.float64)


def test_one_world_needs_the_alignment_of_one_number():
    arrays = allocate(CELLS, SIZES, width=1, dtype=np.float64)
    arrays["x"] = off_by(arrays["x"], 8)
    Record(CELLS, SIZES, arrays, width=1, dtype=np.float64)


def test_an_empty_array_can_lie_anywhere():
    arrays = allocate(CELLS, SIZES, width=8, dtype=np.float64)
    arrays["x"] = off_by(arrays["x"], 16)[:0]
    Record(CELLS, SIZES, arrays, width=8, dtype=np.float64)


def test_a_missing_array_is_an_error():
    arrays = allocate(CELLS, SIZES, width=8, dtype=np.float64)
    del arrays["y"]
    with pytest.raises(ArgumentError):
        Record(CELLS, SIZES, arrays, width=8, dtype=np.float64)


# ---- types inside kernels --------------------------------------------------------------------------------------
@stage
def doubles(d):
    for i in range(d.n):
        d.x[i] = 2.0 * d.x[i]


def run(stages, record, compiled):
    if compiled:
        stages.function(doubles, "f64", 8)(record.address)
    else:
        doubles(python_record(record))


@pytest.mark.parametrize("compiled", [True, False])
def test_sizes_and_arrays_change_in_place(compiled):
    stages, d = library(), cells("float64", 8, 3, x=np.ones(24))
    d.set_size("n", 2)
    assert d.size("n") == 2
    run(stages, d, compiled)
    assert np.array_equal(d.arrays["x"][:, 0], [2, 2, 1])
    old, other = d.arrays["x"], aligned((3, 8))
    other[:] = 5
    d.point("x", other)
    run(stages, d, compiled)
    assert np.array_equal(other[:, 0], [10, 10, 5]) and np.array_equal(old[:, 0], [2, 2, 1])


def test_a_record_points_at_aligned_memory_only():
    d = cells("float64", 8, 3)
    with pytest.raises(ArgumentError):
        d.point("x", off_by(d.arrays["x"], 8))


def test_an_uncompiled_read_is_a_copy():
    d = cells("float64", 8, 3, x=np.ones(24))
    rows = python_record(d).x
    value = rows[1]
    value += 1.0
    rows[2] = value
    value += 1.0
    assert np.array_equal(d.arrays["x"][:, 0], [1, 1, 2])


# ---- faults --------------------------------------------------------------------------------------------------
def test_faults_are_reported_once():
    d = cells("float64", 8, 3)
    d.check_faults("nothing")
    d.table[:4] = [5, CELLS.index["y"], 17, 3]
    with pytest.raises(IndexError, match=r"somewhere: Cells.y\[17\] of 3 rows \(5 accesses out of range\)"):
        d.check_faults("somewhere")
    d.check_faults("cleared")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory is taken")
def test_unused_buffers_take_no_memory():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    size, before = 24 << 20, resident()
    for _ in range(3):  # an allocator keeps freed memory for later
        used = aligned((size,), np.uint8)
        used[...] = 1
        del used
    room = aligned((size,), np.uint8)
    assert resident() - before < size // 2
    assert room[0] == room[size // 2] == room[-1] == 0
