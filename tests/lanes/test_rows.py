"""Typed rows: operators, attributes, fields and parts, compiled at every width and uncompiled, and the refused ones."""

import numpy as np
import pytest

from featherlane import lanes
from featherlane.engine.lanes import (
    Field,
    Layout,
    Library,
    Record,
    allocate,
    dot,
    flat,
    fma,
    fmax,
    kernel,
    read_lane,
    stage,
    unrolled,
    where,
    write_lane,
)
from featherlane.engine.lanes.compiler.rules import KernelLanguageError
from featherlane.engine.lanes.layout import Declare
from featherlane.engine.lanes.processor import base_of
from featherlane.engine.lanes.record import python_record
from featherlane.engine.lanes.rows import OPERATORS, operator, row_type
from featherlane.engine.spatial.types import Force, Inertia, Mat3, Motion, Quat, Vec3, Wrench
from featherlane.engine.spatial.vector import mat_mul_vec
from featherlane.errors import ArgumentError
from scenes.cells import FORMS, same_bits

N = 3
_field = Declare()
BODIES = Layout(
    "Bodies",
    (
        Field("n", "size", doc="bodies"),
        _field.rows(Vec3, "pos", "n", "m", "positions"),
        _field.rows(Quat, "quat", "n", "1", "orientations"),
        _field.rows(Mat3, "mat", "n", "1", "orientations"),
        _field.rows(Motion, "vel", "n", "1", "velocities"),
        _field.rows(Force, "force", "n", "1", "forces"),
        _field.rows(Wrench, "wrench", "n", "1", "forces in MuJoCo's order"),
        _field.rows(Inertia, "inertia", "n", "1", "inertias"),
        _field.rows(Vec3, "corner", "n", "m", "corners", shared=True),
        _field.real("out", "n 12", "1", "results"),
        _field.int("k", "n", "1", "ints"),
    ),
)
NUMBERS = ("pos", "quat", "mat", "vel", "force", "wrench", "inertia")
LIBRARY = Library({"d": (BODIES, False)})


def bodies(dtype, width, rng) -> Record:
    """Returns a record with equal numbers in each world."""
    arrays = allocate(BODIES, {"n": N}, width=width, dtype=dtype)
    for name in NUMBERS:
        arrays[name][:] = rng.normal(size=(len(arrays[name]), 1))
    arrays["corner"][:] = rng.normal(size=len(arrays["corner"]))
    return Record(BODIES, {"n": N}, arrays, width=width, dtype=dtype)


@kernel
def put(d, b, v):
    """Stores three values."""
    for i in unrolled(range(3)):
        d.out[12 * b + i] = v[i]


@stage
def products(d):
    """Multiplies rows by operators."""
    for b in range(d.n):
        put(d, b, d.mat[b] @ (d.mat[b].T @ d.pos[b]))
        d.out[12 * b + 3] = dot(d.vel[b], d.inertia[b] @ d.vel[b])
        d.out[12 * b + 4] = (d.quat[b] @ d.quat[b].T).w + (d.quat[b] @ d.pos[b]).x
        d.out[12 * b + 5] = (d.mat[b] @ d.mat[b]).zz + d.quat[b].unit.matrix.xy


@stage
def sums(d):
    """Adds and scales rows part by part."""
    for b in range(d.n):
        v = 2.0 * d.pos[b] - d.pos[b] / 3.0 + -d.pos[b] * d.quat[b].w
        v += d.vel[b].linear
        put(d, b, where(v.x > 0.0, fmax(v, d.pos[b]), fma(0.1, v, d.pos[b])))
        x, y, z = d.force[b].moment + d.wrench[b].torque
        d.out[12 * b + 3] = x + y * z
        d.out[12 * b + 4] = dot(d.pos[b] - d.corner[b], d.corner[b])
        d.out[12 * b + 5] = where(d.pos[b].x > d.corner[b].y, d.corner[b].x, d.pos[b].y)


@stage
def stores(d):
    """Stores rows and parts."""
    for b in range(d.n):
        d.pos[b] += d.pos[0]
        d.mat[b][8] = d.pos[b].z
        d.vel[b] = (1.0, 2.0, d.pos[b][0], 0.0, 0.0, 3.0)
        for k in range(4):
            flat(d.quat)[4 * b + k] = 0.5 * flat(d.quat)[4 * b + k]


@stage
def slices(d):
    """Reads and stores slices of flat fields and of tuples."""
    for b in range(d.n):
        at = 12 * b
        d.out[at : at + 3] = Vec3(flat(d.pos)[3 * b : 3 * b + 3]) + d.pos[b]
        d.out[at + 3 : at + 6] = d.inertia[b][3:6]
        d.out[12 * b + 6 : 12 * b + 8] = d.out[0:2]
        d.out[at + 9 : at + 9 + WIDE] = Vec3(d.out[at + 1 : at + 1 + WIDE]) * d.pos[b].x


@stage
def lanes_of_rows(d):
    """Copies rows from one world to others."""
    for b in range(d.n):
        for lane in range(lanes.width(d)):
            q = read_lane(d.quat, b, 0)
            write_lane(d.pos, b, lane, read_lane(d.corner, b, 0) + Vec3(q.x, q.y, q.z))


WIDE = 3


@pytest.mark.parametrize("what", [products, sums, stores, slices, lanes_of_rows], ids=lambda s: s.name)
def test_rows_compute_the_same_at_every_width_checked_and_uncompiled(what):
    found = {}
    for dtype, width in FORMS:
        for checked in (False, True):
            record = bodies(dtype, width, np.random.default_rng(5))
            LIBRARY.function(what, base_of(dtype), width, checked=checked)(record.address)
            record.check_faults(what.name)
            out = {name: record.arrays[name][:, 0] for name in (*NUMBERS, "out")}
            first = found.setdefault(dtype, out)
            assert all(same_bits(out[name], first[name]) for name in out)
        plain = bodies(dtype, width, np.random.default_rng(5))
        what(python_record(plain))
        for name in out:
            tolerance = 1e-12 if dtype == "float64" else 1e-4
            np.testing.assert_allclose(plain.arrays[name][:, 0], out[name], rtol=tolerance, atol=tolerance)


@stage
def shares(d):
    """Multiplies values by numbers that all worlds share."""
    for b in range(d.n):
        put(d, b, d.corner[b].x * d.pos[b])


def test_a_shared_number_takes_the_precision_of_the_worlds():
    for dtype, width in FORMS:
        record = bodies(dtype, width, np.random.default_rng(2))
        LIBRARY.function(shares, base_of(dtype), width)(record.address)
        factor = record.arrays["corner"].reshape(N, 3)[:, :1, None].astype(dtype)
        expected = factor * record.arrays["pos"].reshape(N, 3, width)
        assert expected.dtype == dtype
        assert same_bits(record.arrays["out"].reshape(N, 12, width)[:, :3], expected)
        plain = bodies(dtype, width, np.random.default_rng(2))
        shares(python_record(plain))
        assert same_bits(plain.arrays["out"], record.arrays["out"])


@kernel
def sum_of_one_world(m1, b):
    """Returns the sum of two numbers of a table in float64."""
    return m1.corner[b].x + m1.corner[b].y


@stage
def table_sums(m, d):
    """Adds numbers of a table in the precision of the worlds, and in float64."""
    for b in range(d.n):
        d.out[12 * b] = (m.corner[b].x + m.corner[b].y) * d.pos[b].x
        d.out[12 * b + 1] = sum_of_one_world(m, b) * d.pos[b].x


def test_tables_of_the_model_are_read_in_the_precision_of_the_worlds_and_of_one_world_in_float64():
    library = Library({"m": (BODIES, True), "d": (BODIES, False)})
    for dtype, width in FORMS:
        m, d = (bodies(dtype, width, np.random.default_rng(4)) for _ in range(2))
        library.function(table_sums, base_of(dtype), width)(m.address, d.address)
        x, y, _ = m.arrays["corner"].reshape(N, 3).T
        sums = np.stack([x.astype(dtype) + y.astype(dtype), (x + y).astype(dtype)], axis=1)
        assert (sums[:, 0] != sums[:, 1]).any() == (dtype == "float32")
        expected = sums[:, :, None] * d.arrays["pos"].reshape(N, 3, width)[:, :1]
        assert same_bits(d.arrays["out"].reshape(N, 12, width)[:, :2], expected)


@stage
def unfused(d):
    """Computes a sum by notation and by parts."""
    for b in range(d.n):
        s, v = d.quat[b].w, d.pos[b]
        put(d, b, s * v + d.vel[b].linear)
        for i in unrolled(range(3)):
            d.out[12 * b + 3 + i] = s * v[i] + d.vel[b][3 + i]
            d.out[12 * b + 6 + i] = fma(s, v[i], d.vel[b][3 + i])
        w = fma(s, v, d.vel[b].linear)
        for i in unrolled(range(3)):
            d.out[12 * b + 9 + i] = w[i]


def test_a_sum_by_notation_is_not_fused():
    record = bodies("float64", 8, np.random.default_rng(1))
    LIBRARY.function(unfused, "f64", 8)(record.address)
    out = record.arrays["out"].reshape(N, 4, 3, 8)
    assert same_bits(out[:, 0], out[:, 1]) and same_bits(out[:, 2], out[:, 3])
    assert not same_bits(out[:, 0], out[:, 2])


CASES = {}


def says(rule):
    """Decorates a stage that breaks a rule, with words of the rule."""

    def enter(function):
        CASES[function.__name__] = stage(function), rule
        return function

    return enter


@says(r"one Vec3 per index: \[b\] is a row.*flat\(field\) has the index 3 \* b")
def takes_a_flat_index(d):
    for b in range(d.n):
        d.out[b] = d.pos[3 * b]


@says("one Quat per index")
def stores_at_a_flat_index(d):
    d.quat[4 * d.n + 1] = 1.0


@says("a Motion \\+ a Force")
def adds_two_types(d):
    d.vel[0] = d.vel[0] + d.force[0]


@says("a Force is assigned to a Motion")
def stores_another_type(d):
    d.vel[0] = d.force[0]


@says("a value .* is assigned to a Vec3")
def stores_a_number(d):
    d.pos[0] = d.out[0]


@says(r"a Vec3 \+ a value.*\.x, \[0\]")
def adds_a_number(d):
    d.pos[0] = d.pos[0] + d.out[0]


@says(r"a Vec3 \+ a tuple of 3; Vec3\(\.\.\.\) makes a row")
def adds_a_tuple(d):
    d.pos[0] = d.pos[0] + (1.0, 2.0, 3.0)


@says("a Vec3 @ a Mat3; allowed are Mat3 @ Vec3, Quat @ Vec3")
def multiplies_in_the_other_order(d):
    d.pos[0] = d.pos[0] @ d.mat[0]


@says("an int @ an int; `@` is a product of typed rows")
def multiplies_ints(d):
    d.k[0] = d.n @ d.n


@says("has no attribute transposed|it has no attribute")
def names_no_attribute(d):
    d.mat[0] = d.mat[0].transposed


@says("dot: got a Motion, a Motion")
def projects_a_motion_on_a_motion(d):
    d.out[0] = dot(d.vel[0], d.vel[0])


@says("needed is a value|a Vec3")
def returns_a_row_for_a_number(d):
    d.out[0] = d.pos[0]


@says("part 3 of a Vec3")
def stores_a_missing_part(d):
    d.pos[0][3] = 1.0


@says("changes its type")
def rebinds_a_row_as_a_tuple(d):
    v = d.vel[0]
    if d.n > 1:
        v = d.force[0]
    d.vel[0] = v


@says("write_lane.*a Vec3 as the last argument")
def writes_a_number_for_a_row(d):
    write_lane(d.pos, 0, 0, 1.0)


@says(r"\[0:d\.n\]: a slice of a field is \[a : a \+ n\] with a constant n")
def slices_to_a_variable(d):
    d.out[0 : d.n] = d.pos[0]


@says("a slice of a field is")
def slices_from_the_start(d):
    d.pos[0] = d.out[:3]


@says("a slice of a field is")
def slices_by_steps(d):
    d.pos[0] = d.out[0:6:2]


@says(r"a slice of a field of Vec3: \[b\] is a row")
def slices_rows(d):
    d.pos[0] = d.pos[0:1]


@says(r"\[2:4\] of a Vec3")
def slices_beyond_a_row(d):
    d.out[0:2] = d.pos[0][2:4]


@says("a Vec3 is assigned to a slice of 2 numbers")
def stores_too_many(d):
    d.out[0:2] = d.pos[0]


@says("a slice has no row type: write")
def adds_to_a_slice(d):
    d.out[0:3] += d.pos[0]


@says("an int has no slices")
def slices_an_int(d):
    d.out[0] = d.n[0:2]


@pytest.mark.parametrize("name", CASES)
def test_rows_of_wrong_types_are_refused(name):
    broken, rule = CASES[name]
    with pytest.raises(KernelLanguageError, match=rule):
        LIBRARY.function(broken, "f64", 8)


def test_an_index_out_of_range_is_reported_with_bounds_checks():
    @stage
    def beyond(d):
        d.out[0] = d.pos[d.n].x

    record = bodies("float64", 8, np.random.default_rng(0))
    LIBRARY.function(beyond, "f64", 8, checked=True)(record.address)
    with pytest.raises(IndexError, match=r"Bodies\.pos\[9\] of 9 rows"):
        record.check_faults("beyond")
    with pytest.raises(IndexError, match=r"Bodies\.pos\[3\] of 3 rows"):
        beyond(python_record(record))


def test_a_declared_row_type_must_fit_the_shape():
    with pytest.raises(ArgumentError, match=r"rows are Vec3.*allowed are real and scalar with 3"):
        Field("x", "real", ("n", 4), rows=Vec3)


def test_code_hashes_depend_on_the_operators_that_a_kernel_uses_only():
    Pair = row_type("Pair", "a b")

    @kernel
    def adds(x, y):
        return x + y

    @kernel
    def multiplies(x, y):
        return x @ y

    before = adds.code_hash(), multiplies.code_hash()
    try:

        @operator("@", Pair, Pair)
        @kernel
        def product(x, y):
            return Pair(x.a * y.a, x.b * y.b)

        assert adds.code_hash() == before[0]
        assert multiplies.code_hash() != before[1]
    finally:
        del OPERATORS["@", Pair, Pair]
    assert mat_mul_vec in [k for _, k in multiplies.references()]
