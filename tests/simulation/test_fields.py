"""Declarations of fields, checked against the kernels and against their behaviour in `Data` and `Batch`."""

import ast
import copy
import functools
from pathlib import Path

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes.role import ROLES
from featherlane.engine.simulation.tile.fields import DATA, FIELD_MODULES, STATUS, WANTED
from featherlane.engine.simulation.tile.workspace import in_use

SRC = Path(fl.__path__[0])
ASKED_BY_USE = {"use", "sleep", "request"}  # conditions for kept rows that are not sizes; sleep: the flag
BY_CALLERS = ("drive", "input", "given", "address", "pointer")  # not computed by kernels
ZEROS = ("panel.zero",)  # read-only
ELSEWHERE = {
    "eq_active": "an input, beside the others; constraint reads it",
    "found_pair": "belongs to a counted status, as found_bad does; collision writes it",
    "recall.memory": "kernels know its address alone, from recall_address",
    "signature": "a report of a step, beside the others; the loop over tiles writes it",
}
MUCH = 200_000  # bytes of a field that are too many for a reset to write; slots of a pile take up to 150,000
MODEL = fl.load(
    """<mujoco><option timestep=".004"><flag sleep="enable"/></option>
<worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 .1"><freejoint/><geom name="ball" size=".1"/></body>
<body pos="1 0 1"><joint name="j" stiffness="3"/><geom size=".1"/></body>
<body name="target" mocap="true" pos="2 0 1"/></worldbody>
<actuator><motor joint="j"/></actuator><sensor><jointpos joint="j"/></sensor></mujoco>"""
)


@functools.cache
def trees(folder: Path) -> list[ast.Module]:
    """Returns the sources below a folder."""
    return [ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))]


def named(folder: Path) -> set[str]:
    """Returns the fields of the data that code below a folder names: `d.qpos`, `d.primal.grad`, `c.dist`."""
    nodes = [node for tree in trees(folder) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    names = {f"{node.value.attr}.{node.attr}" for node in nodes if isinstance(node.value, ast.Attribute)}
    of_names = [node for node in nodes if isinstance(node.value, ast.Name)]
    names |= {f"{node.value.id}.{node.attr}" for node in of_names}
    names |= {prefix + node.attr for node in of_names for prefix in DATA.groups.values()}
    return {name for name in names | {node.attr for node in nodes} if name in DATA}


@functools.cache
def kernels() -> set[str]:
    """Returns the names of all kernels and stages."""
    nodes = (node for tree in trees(SRC) for node in tree.body if isinstance(node, ast.FunctionDef))
    return {
        node.name
        for node in nodes
        if any(ast.unparse(d) in ("kernel", "stage", "over_tiles") for d in node.decorator_list)
    }


def folder_of(room) -> Path:
    return SRC.joinpath(*room.__name__.split(".")[1:-1])


# ---- declarations ----------------------------------------------------------------------------------------------------
def test_every_field_of_a_tile_has_a_role_and_every_role_a_field():
    found = {f.role for f in DATA.fields if f.kind != "size"}
    assert found == set(ROLES), "a field without a role, or a role without a field"


@pytest.mark.parametrize("room", FIELD_MODULES, ids=lambda room: room.__name__)
def test_a_package_declares_the_fields_that_its_code_names(room):
    strange = {f.name for f in room.FIELDS if f.kind != "size"} - named(folder_of(room)) - set(ELSEWHERE)
    assert not strange, "declared in a room that knows nothing of them"


def test_every_size_shapes_a_field_or_is_read_by_a_kernel():
    shapes = {n for f in DATA.fields for n in f.shape}
    idle = {f.name for f in DATA.fields if f.kind == "size"} - shapes - named(SRC)
    assert not idle


def test_computed_fields_name_their_kernel():
    stages = {f.name: f.stage for f in DATA.fields if f.kind != "size" and f.role not in BY_CALLERS}
    unknown = {name: stage for name, stage in stages.items() if stage not in kernels() and name not in ZEROS}
    assert not unknown
    assert not [f.name for f in DATA.fields if f.role in BY_CALLERS and f.stage]


def test_requests_for_fields_are_known():
    sizes = {f.name for f in DATA.fields if f.kind == "size"}
    for f in DATA.fields:
        known = sizes | ASKED_BY_USE if f.traits.lasts or f.role == "cause" else sizes
        assert set(f.condition.split()) <= known, f.name
    assert {name for name in sizes if name.startswith("want_")} - {"want_history"} == set(WANTED)
    assert DATA.conditional("want_history")


def test_statuses_are_the_entries_of_warning():
    assert DATA["warning"].shape == (len(STATUS),)


def test_no_reset_writes_much_memory():
    data = fl.Data(fl.bundled("pile"))
    data.step()
    arrays = data.workspace.arrays
    large = [n for n in DATA.that("reset") if in_use(arrays[n]).nbytes > MUCH]
    assert not large, "a role of table or room leaves memory untouched until somebody needs it"


# ---- consequences of the declarations --------------------------------------------------------------------------------
def test_a_batch_stores_persistent_fields_and_reports():
    batch = fl.Batch(MODEL, 2, nthread=1, given_contacts=1)
    batch.qfrc_applied[:], batch.xfrc_applied[:] = 0.5, 0.25
    assert set(batch.checkpoint()) == {*DATA.that("lasts"), *DATA.of("report", "count")}


def test_persistent_fields_determine_the_motion():
    """A checkpoint loaded into a new batch continues bitwise identically: it has the whole state."""
    batch, other = (fl.Batch(MODEL, 2, nthread=1, given_contacts=1) for _ in range(2))
    batch.ctrl[:], batch.qfrc_applied[:] = 0.3, 0.01
    batch.step(5)
    other.restore(batch.checkpoint())
    for each in (batch, other):
        each.step(5)
    for name in DATA.that("lasts"):
        np.testing.assert_array_equal(getattr(other, name), getattr(batch, name), err_msg=name)


def test_only_output_fields_can_be_bound():
    batch = fl.Batch(MODEL, 2, nthread=1)
    for f in DATA.fields:
        if f.traits.shown:
            assert batch.bind(f.name).shape[0] == 2, f.name
        else:
            with pytest.raises(fl.ModelError):
                batch.bind(f.name)


def test_only_state_and_inputs_of_a_batch_are_assigned():
    batch, settable = fl.Batch(MODEL, 2, nthread=1), DATA.of("state", "drive", "input")
    for f in DATA.fields:
        if f.name in settable:
            setattr(batch, f.name, np.array(getattr(batch, f.name)))
        else:
            with pytest.raises(fl.errors.UnknownAttributeError):
                setattr(batch, f.name, 1.0)


def test_whole_numbers_and_reports_of_a_data_are_read_only():
    data = fl.Data(MODEL)
    for f in DATA.fields:
        if f.kind == "size" or f.is_number:
            continue
        free = f.kind == "real" and f.role not in ("report", "count")
        assert getattr(data, f.name).flags.writeable == free, f.name


def test_a_copy_does_not_copy_buffers():
    data = fl.Data(MODEL)
    for name, array in data.workspace.arrays.items():
        if DATA[name].role in ("room", "table", "scratch") and array.nbytes < MUCH:
            array[...] = 1
    other = copy.copy(data)
    for name in DATA.of("room"):
        assert not other.workspace.arrays[name].any(), name
    for name in DATA.of("table", "scratch"):
        np.testing.assert_array_equal(other.workspace.arrays[name], data.workspace.arrays[name], err_msg=name)
