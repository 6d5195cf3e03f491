"""Several indices, and objects of a record: the same at every width, checked and uncompiled; wrong ones are refused."""

import numpy as np
import pytest

from featherlane.engine.lanes import Field, Layout, Library, Record, allocate, dot, kernel, stage, unrolled
from featherlane.engine.lanes.compiler.rules import KernelLanguageError
from featherlane.engine.lanes.layout import Declare
from featherlane.engine.lanes.processor import base_of
from featherlane.engine.lanes.record import python_record
from featherlane.engine.spatial.types import Vec3
from featherlane.errors import ArgumentError
from scenes.cells import FORMS, same_bits

N = 4
PUSH, TURN = range(2)
_field = Declare()
CONTACTS = Layout(
    "Contacts",
    (
        Field("n", "size", doc="contacts"),
        _field.real("con_dist", "n", "m", "distances"),
        _field.rows(Vec3, "con_pos", "n", "m", "points"),
        _field.rows(Vec3, "con_arm", "n 2", "m", "arms of two sides"),
        _field.real("con_friction", "n 5", "1", "coefficients"),
        _field.int("con_geom", "n 2", "1", "geoms of two sides"),
        _field.rows(Vec3, "basis", "2 n", "1", "directions of pushes and of turns"),
        _field.real("grid", "2 n 3", "1", "numbers"),
        _field.real("out", "n 10", "1", "results"),
    ),
    groups={"contact": "con_"},
)
LIBRARY = Library({"d": (CONTACTS, False)})


def contacts(dtype, width) -> Record:
    """Returns a record with equal numbers in each world."""
    rng = np.random.default_rng(3)
    arrays = allocate(CONTACTS, {"n": N}, width=width, dtype=dtype)
    for name, rows in arrays.items():
        if name == "con_geom":
            rows[:] = rng.integers(0, 9, size=len(rows))
        else:
            rows[:] = rng.normal(size=(len(rows), 1))
    return Record(CONTACTS, {"n": N}, arrays, width=width, dtype=dtype)


@kernel
def reach(c, side):
    """Returns the length, squared, of an arm of a contact."""
    return dot(c.arm[side], c.arm[side])


@stage
def by_objects(d):
    """Reads and writes fields of objects."""
    for k in range(d.n):
        c = d.contact[k]
        g = c.geom
        for side in unrolled(range(2)):
            d.out[k, side] = reach(c, side) * (1.0 * g[side])
        d.out[k, 2] = c.friction[1] * c.dist - c.pos.z
        c.dist += 2.0
        c.pos = c.arm[1] - 0.5 * c.pos
        c.friction[4] = c.dist
        c.arm[0] = Vec3(c.friction[2:5])


@stage
def by_fields(d):
    """Reads and writes the same fields by their indices."""
    for k in range(d.n):
        for side in unrolled(range(2)):
            d.out[10 * k + side] = dot(d.con_arm[2 * k + side], d.con_arm[2 * k + side]) * (1.0 * d.con_geom[k, side])
        d.out[10 * k + 2] = d.con_friction[5 * k + 1] * d.con_dist[k] - d.con_pos[k].z
        d.con_dist[k] += 2.0
        d.con_pos[k] = d.con_arm[k, 1] - 0.5 * d.con_pos[k]
        d.con_friction[k, 4] = d.con_dist[k]
        d.con_arm[k, 0] = (d.con_friction[k, 2], d.con_friction[k, 3], d.con_friction[k, 4])


@kernel
def sum_of(x, side, k):
    """Returns a row of an array with two indices plus the row of the other side."""
    return x[side, k] + x[1 - side, k]


@stage
def by_index_spaces(d):
    """Indexes by two and by three numbers, also through a parameter."""
    for k in range(d.n):
        d.basis[TURN, k] += sum_of(d.basis, PUSH, k)
        d.basis[PUSH, k][2] = d.grid[TURN, k, 2] + d.grid[0, k, k % 3]


@stage
def by_products(d):
    """Computes the same indices by products."""
    for k in range(d.n):
        d.basis[d.n + k] += d.basis[k] + d.basis[d.n + k]
        d.basis[k] = Vec3(d.basis[k].x, d.basis[k].y, d.grid[3 * (d.n + k) + 2] + d.grid[3 * k + k % 3])


def results(run) -> list[dict]:
    """Returns all fields after a stage, in every form."""
    found = []
    for dtype, width in FORMS:
        for checked in (False, True):
            record = contacts(dtype, width)
            LIBRARY.function(run, base_of(dtype), width, checked=checked)(record.address)
            record.check_faults(run.name)
            found.append(record.arrays)
    return found


@pytest.mark.parametrize("one, other", [(by_objects, by_fields), (by_index_spaces, by_products)])
def test_objects_and_index_spaces_equal_plain_indices_bitwise(one, other):
    for a, b in zip(results(one), results(other), strict=True):
        assert all(same_bits(a[name], b[name]) for name in a)


@pytest.mark.parametrize("run", [by_objects, by_index_spaces], ids=lambda s: s.name)
def test_uncompiled_they_compute_the_same(run):
    compiled, plain = contacts("float64", 8), contacts("float64", 8)
    LIBRARY.function(run, "f64", 8)(compiled.address)
    run(python_record(plain))
    for name, rows in compiled.arrays.items():
        np.testing.assert_allclose(plain.arrays[name], rows, rtol=1e-13, atol=1e-13, err_msg=name)


CASES = {}


def says(rule):
    """Decorates a stage that breaks a rule, with words of the rule."""

    def enter(function):
        CASES[function.__name__] = stage(function), rule
        return function

    return enter


@says("an object of contact has no field distance; did you mean 'dist'")
def names_an_unknown_field(d):
    d.out[0] = d.contact[0].distance


@says("3 indices of a field of Vec3, which has 2")
def gives_too_many_indices(d):
    d.basis[0] = d.basis[0, 1, 2]


@says("2 indices of a field of reals, which has 1")
def gives_two_indices_of_one(d):
    d.out[0, 0] = d.con_dist[0, 1]


@says("index 2, allowed are 0 to 1")
def leaves_the_inner_range(d):
    d.con_arm[0, 2] = d.con_pos[0]


@says("geom has 2 indices: assign one of its rows")
def assigns_a_field_of_rows(d):
    c = d.contact[0]
    c.geom = 1


@says("allowed targets of an assignment")
def assigns_a_part_by_name(d):
    v = d.con_pos[0]
    v.x = 1.0


@says("cannot be an index")
def indexes_objects_by_a_value(d):
    d.out[0] = d.contact[d.out[0]].dist


@pytest.mark.parametrize("name", CASES)
def test_wrong_indices_and_objects_are_refused(name):
    broken, rule = CASES[name]
    with pytest.raises(KernelLanguageError, match=rule):
        LIBRARY.function(broken, "f64", 8)


@stage
def beyond_an_object(d):
    """Reads a row of the next object."""
    c = d.contact[0]
    d.out[0] = c.friction[5]


def test_an_index_is_checked_against_the_rows_of_the_object():
    record = contacts("float64", 8)
    LIBRARY.function(beyond_an_object, "f64", 8, checked=True)(record.address)
    with pytest.raises(IndexError, match=r"Contacts\.con_friction\[5\] of 5 rows"):
        record.check_faults("beyond_an_object")
    with pytest.raises(IndexError, match=r"Contacts\.con_friction\[5\] of 5 rows"):
        beyond_an_object(python_record(record))


def test_a_group_has_another_name_than_fields():
    with pytest.raises(ArgumentError, match=r"groups have the names \['x'\] of fields"):
        Layout("X", (_field.real("x", "n", "1", "numbers"),), groups={"x": "x_"})
