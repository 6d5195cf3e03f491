"""Copies one world between a `Data` and an `mujoco.MjData`: state, inputs, outputs, contacts and constraint rows.

MuJoCo's `efc_*` arrays and contacts have variable sizes.  They are allocated in the arena of the MjData by the function
that MJX and MuJoCo Warp use for the same purpose; MuJoCo's mj_island computes the islands of these rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.model.arguments import instance
from featherlane.engine.model.assignment import value_entries
from featherlane.engine.model.enums import LCP, Enable
from featherlane.engine.model.status import STATUS
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.mujoco_rows import check_rows, read_rows, write_rows
from featherlane.engine.simulation.world.rows import rows_of_world
from featherlane.errors import ArgumentTypeError, ModelError, UnsupportedFeatureError, near

# fields with the same name and another meaning or layout in MuJoCo
DIFFERENT = frozenset("body_awake dof_island nisland ncon nefc qLU signature solver_niter time".split())
DIFFERENT |= {"tree_island", "warning"}
COPIED = tuple(name for name in DATA.that("shown") if name not in DIFFERENT)  # those that MuJoCo lacks are skipped
ON_DEMAND = DATA.conditional("use")  # inputs that a batch allocates at their first use
GROUPS = ("time", "solver_niter", "warning", "contact")  # fields with a conversion; `contact` includes the rows
# layouts of MuJoCo before 4.0 that differ; such a field is skipped
SPARSE = frozenset("M qDeriv qLD ten_J actuator_moment".split())
MOMENTS = ("moment_rownnz", "moment_rowadr", "moment_colind")  # constant here, written by every pass of MuJoCo
SIZES = "nq nv nu na nbody njnt ngeom nsite ncam neq ntendon nmocap nsensordata".split()
COUNTED = {
    "contacts_full": "CONTACTFULL",
    "rows_full": "CNSTRFULL",
    "bad_control": "BADCTRL",
    "singular_inertia": "INERTIA",
}
RESETS = ("BADQACC", "BADQPOS", "BADQVEL")  # counted as non_finite
LAZY = {"flg_energypos": "want_energy", "flg_energyvel": "want_energy", "flg_subtreevel": "want_subtree"}
LAZY |= {"flg_rnepost": "want_wrenches"}


def check_mujoco_data(call: str, model, mj_data: Any) -> None:
    """Raises an error unless an object is an MjData of a model with the sizes of this one.

    Raises:
        TypeError: no MjData.
        ModelError: other sizes.
    """
    import mujoco  # slow to import

    instance(call, mj_data, mujoco.MjData, "a mujoco.MjData", ArgumentTypeError)
    theirs = mj_data.model
    sizes = ((name, getattr(theirs, name), getattr(model, name)) for name in SIZES)
    _refuse_sizes(call, [f"{name} is {b}, of the model {a}" for name, b, a in sizes if a != b])


def _refuse_sizes(call: str, wrong: list[str]) -> None:
    """Raises an error if sizes differ."""
    if wrong:
        raise ModelError(f"{call}: mj_data has other sizes: {'; '.join(wrong)}")


def chosen_fields(call: str, model, fields: Any) -> frozenset[str]:
    """Returns names of fields to copy, checked; None selects all, without `sensordata` if a sensor is not computed.

    Raises:
        ModelError: an unknown name.
        UnsupportedFeatureError: `sensordata` of a model with a sensor that is not computed.
    """
    from featherlane.engine.model.features import refuse_sensors

    allowed = (*COPIED, *GROUPS)
    if fields is None:
        try:
            refuse_sensors(model)
        except UnsupportedFeatureError:
            return frozenset(allowed) - {"sensordata"}
        return frozenset(allowed)
    chosen = tuple(value_entries(call, fields, "are names of fields"))
    for name in chosen:
        if not isinstance(name, str) or name not in allowed:
            raise ModelError(f"{call}: got {name!r}, allowed are fields of Data and MjData{near(str(name), allowed)}")
    if "sensordata" in chosen:
        refuse_sensors(model)
    return frozenset(chosen)


def pairs(call: str, ours: Any, mj_data: Any, names: Iterable[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns arrays of fields that both have, `(ours, theirs)` of equal shapes.

    Args:
        call: name for errors.
        ours: returns the array of a field of Featherlane by name.
        mj_data: the MjData.
        names: fields.

    Raises:
        ModelError: a field whose sizes differ.
    """
    found, wrong = [], []
    for name in names:
        theirs = getattr(mj_data, name, None)
        if theirs is None or not (theirs.size or DATA[name].shape):
            continue
        array = ours(name)
        if array.size == theirs.size:
            if theirs.size:
                found.append((array.reshape(theirs.shape), theirs))
        elif name not in SPARSE:
            wrong.append(f"{name} has {theirs.size} values, of the model {array.size}")
    _refuse_sizes(call, wrong)
    return found


# ---- one world -------------------------------------------------------------------------------------------------------
class Link(NamedTuple):
    """Holds the arrays that a call copies between a `Data` and an MjData.

    Attributes:
        mj_data: the MjData.
        chosen: names of fields.
        both: flat memory of fields that both have, `(ours, theirs)`.
    """

    mj_data: Any
    chosen: frozenset[str]
    both: list[tuple[Any, Any]]


def linked(call: str, data, mj_data: Any, fields: Any) -> Link:
    """Returns the arrays to copy; the last ones for the same tuple of fields are reused, which takes a microsecond.

    Raises:
        TypeError, ModelError: as `Data.to_mujoco`.
    """
    kept = data._links.get(fields) if isinstance(fields, tuple) else None
    if kept is None or kept.mj_data is not mj_data:
        chosen = chosen_fields(call, data.model, fields)
        check_mujoco_data(call, data.model, mj_data)
        both = pairs(call, data.workspace.view, mj_data, (name for name in COPIED if name in chosen))
        kept = Link(mj_data, chosen, [_flat(*arrays) for arrays in both])
        if isinstance(fields, tuple):
            data._links[fields] = kept
    return kept


def _flat(ours: np.ndarray, theirs: np.ndarray) -> tuple[Any, Any]:
    """Returns two arrays of equal size, flat; as buffers if their types are equal, which are copied faster."""
    a, b = ours.reshape(-1), theirs.reshape(-1)
    return (a.data.cast("B"), b.data.cast("B")) if a.dtype == b.dtype else (a, b)


def write_mujoco(data, mj_data: Any, fields: Any = None) -> None:
    """Copies a world to an MjData; see `Data.to_mujoco`."""
    _, chosen, both = linked("to_mujoco", data, mj_data, fields)
    workspace = data.workspace
    rows = rows_of_world(workspace, data.model.opt_contact_model != LCP) if "contact" in chosen else None
    if rows:
        check_rows(rows, mj_data)
    for ours, theirs in both:
        theirs[:] = ours
    if "actuator_moment" in chosen:
        for name in MOMENTS:
            getattr(mj_data, name)[...] = getattr(data.model, name)
    if rows:
        write_rows(rows, mj_data)
    if "tree_awake" in chosen and data.model.opt_enableflags & Enable.SLEEP:
        _write_awake(mj_data)
    if "time" in chosen:
        mj_data.time = workspace.arrays["time"].item()
    if "solver_niter" in chosen:
        mj_data.solver_niter[:] = 0
        mj_data.solver_niter[0] = data.solver_niter
        _write_solver(data, mj_data)
    if "warning" in chosen:
        _write_warnings(workspace.arrays["warning"][:, 0], mj_data)
    for name in LAZY if fields is None else ():
        if hasattr(mj_data, name):
            setattr(mj_data, name, bool(workspace.record.size(LAZY[name])))


def _write_solver(data, mj_data: Any) -> None:
    """Writes improvement and gradient of each iteration if they were recorded, else only the last gradient."""
    import mujoco

    arrays, n = data.workspace.arrays, min(data.solver_niter, mujoco.mjNSOLVER)
    recorded = data.record_solver and data.model.opt_contact_model != LCP
    for k in range(n):
        each = mj_data.solver[k]
        each.nactive = each.nchange = each.neval = each.nupdate = 0
        each.lineslope = each.improvement = each.gradient = 0.0
        if recorded:
            each.improvement = arrays["stat_improvement"][k + 1, 0]
            each.gradient = arrays["stat_gradient"][k + 1, 0]
        elif k == n - 1:
            each.gradient = data.solver_residual


def _write_awake(mj_data: Any) -> None:
    """Writes MuJoCo's lists of awake bodies and DoFs, from `tree_awake`."""
    import mujoco

    model, states = mj_data.model, mujoco.mjtSleepState
    tree, mocap = model.body_treeid, model.body_mocapid[model.body_rootid] >= 0
    fixed = np.where(mocap, states.mjS_AWAKE, states.mjS_STATIC)
    state = np.where(tree >= 0, np.append(mj_data.tree_awake, 0)[tree], fixed)
    acts = state != states.mjS_ASLEEP
    mj_data.body_awake[:], mj_data.ntree_awake = state, int(mj_data.tree_awake.sum())
    lists = {"body": acts, "parent": acts[model.body_parentid], "dof": mj_data.tree_awake[model.dof_treeid] > 0}
    lists["parent"][0] = False
    for name, chosen in lists.items():
        found = np.flatnonzero(chosen)
        getattr(mj_data, f"{name}_awake_ind")[: len(found)] = found
        setattr(mj_data, "nv_awake" if name == "dof" else f"n{name}_awake", len(found))


def read_mujoco(data, mj_data: Any, fields: Any = None) -> None:
    """Copies an MjData to a world; see `Data.from_mujoco`."""
    _, chosen, both = linked("from_mujoco", data, mj_data, fields)
    workspace, arrays = data.workspace, data.workspace.arrays
    rows = read_rows(data.model, workspace.sizes, mj_data) if "contact" in chosen else []
    for ours, theirs in both:
        ours[:] = theirs
    if "time" in chosen:
        arrays["time"][...] = mj_data.time
    if "solver_niter" in chosen:
        arrays["solver_niter"][...] = mj_data.solver_niter.sum()
    if "warning" in chosen:
        _read_warnings(arrays["warning"][:, 0], mj_data)
    for name, value in rows:
        arrays[name].reshape(-1)[: value.size] = value.reshape(-1)
    if "tree_asleep" in chosen:
        keep_asleep(data.model, workspace.view)
    arrays["tree_settled"][...] = 0


def keep_asleep(model, view) -> None:
    """Stores the poses that wake a sleeping tree if they change: those of the present state."""
    if model.opt_enableflags & Enable.SLEEP:
        view("sleep_qpos")[...] = view("qpos")
        view("sleep_mocap")[...] = np.concatenate([view("mocap_pos"), view("mocap_quat")], 1)


# ---- a world of a batch ----------------------------------------------------------------------------------------------
def read_world(arrays, world: int, mj_data: Any) -> None:
    """Copies an MjData to a world of the arrays of a batch; see `Batch.from_mujoco`."""
    check_mujoco_data("from_mujoco", arrays.model, mj_data)
    used = [name for name in ON_DEMAND if getattr(mj_data, name).any()]
    rows = {name: arrays.lasting(name)[world] for name in (*arrays.rows, *used)}
    own = rows | {name: array[world] for name, array in arrays.bound.items()}
    for ours, theirs in pairs("from_mujoco", own.__getitem__, mj_data, [name for name in COPIED if name in own]):
        np.copyto(ours, theirs, casting="unsafe")
    rows["time"][...] = mj_data.time
    _read_warnings(rows["warning"], mj_data)
    if "tree_asleep" in rows:
        keep_asleep(arrays.model, rows.__getitem__)


# ---- warnings --------------------------------------------------------------------------------------------------------
@functools.cache
def _kind(name: str) -> int:
    import mujoco

    return int(getattr(mujoco.mjtWarning, f"mjWARN_{name}"))


def _write_warnings(status: np.ndarray, mj_data: Any) -> None:
    """Writes the counts of `status`; a change of `non_finite` is counted as BADQACC."""
    numbers = mj_data.warning.number
    for name, kind in COUNTED.items():
        numbers[_kind(kind)] = status[STATUS.index(name)]
    resets, kinds = status[STATUS.index("non_finite")], [_kind(name) for name in RESETS]
    if numbers[kinds].sum() != resets:
        numbers[kinds] = resets, 0, 0


def _read_warnings(status: np.ndarray, mj_data: Any) -> None:
    """Reads the counts of `status` that MuJoCo has."""
    numbers = mj_data.warning.number
    for name, kind in COUNTED.items():
        status[STATUS.index(name)] = numbers[_kind(kind)]
    status[STATUS.index("non_finite")] = numbers[[_kind(name) for name in RESETS]].sum()
