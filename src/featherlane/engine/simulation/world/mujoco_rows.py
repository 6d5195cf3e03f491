"""Contacts and constraint rows of one world in the arena of an `mujoco.MjData`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from featherlane.engine.libraries import private
from featherlane.engine.model.enums import (
    CONTACT_ELLIPTIC,
    CONTACT_FRICTIONLESS,
    CONTACT_PYRAMIDAL,
    EQ_TENDON,
    EQUALITY,
    FRICTION_DOF,
    FRICTION_TENDON,
    LIMIT_JOINT,
    LIMIT_TENDON,
    Disable,
)
from featherlane.engine.model.joint import is_scalar
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.rows import COLUMNS, WorldRows
from featherlane.engine.spatial.vector import MINVAL
from featherlane.errors import ModelError

SHARED = ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp")
SHARED += ("dim", "geom", "exclude", "efc_address")  # of a contact; `adhesion` exists from MuJoCo 3.12 on
SLOTS = (*(name for name in SHARED if name not in ("exclude", "efc_address")),)  # of a contact slot

ROW_BYTES = 400  # more than all arrays of rows take for each row, those of islands included
CLEARED = [f"efc_{matrix}_{what}" for matrix in ("J", "Y", "AR") for what in ("rownnz", "rowadr", "colind")]
CLEARED += ["efc_J_rowsuper"]  # optional arrays: zero is no entry of the dual problem, no supernode of the Jacobian
FIXED_BYTES = 16384  # more than the alignment of all arrays takes


# ---- to MuJoCo -------------------------------------------------------------------------------------------------------
def check_rows(rows: WorldRows, mj_data: Any) -> None:
    """Raises an error if an MjData cannot hold the rows.

    Raises:
        ModelError: the arena is too small, or a contact is given by bodies.
    """
    ncon, nefc = len(rows.contacts), rows.counts[0]
    if (rows.contacts.geom < 0).any():
        raise ModelError("to_mujoco: got contacts that are given by bodies, allowed are contacts of two geoms")
    needed = ncon * mj_data.contact.dist.strides[0] + nefc * ROW_BYTES + 12 * rows.columns["J"].size + FIXED_BYTES
    if needed > mj_data.narena:
        raise ModelError(
            f"to_mujoco: {ncon} contacts and {nefc} rows need up to {needed} bytes, the arena of mj_data has "
            f"{mj_data.narena}; set <size memory='...'/> in the model"
        )


def write_rows(rows: WorldRows, mj_data: Any) -> None:
    """Writes contacts, constraint rows and islands, after all other fields."""
    import mujoco

    columns, mj_model, (nefc, ne, nf, nl) = rows.columns, mj_data.model, rows.counts
    J, sparse = columns["J"], bool(mujoco.mj_isSparse(mj_model))
    nJ = int(np.count_nonzero(J)) if sparse else J.size
    reallocate = private("mujoco", private("mujoco", mujoco, "_functions"), "_realloc_con_efc")
    reallocate(mj_data, len(rows.contacts), nefc, nJ)
    for name in CLEARED:
        if hasattr(mj_data, name):  # some exist from MuJoCo 4.0 on
            getattr(mj_data, name)[...] = 0
    mj_data.ne, mj_data.nf, mj_data.nl = ne, nf, nl
    _write_contacts(mj_data.contact, rows.contacts, mj_model)
    if hasattr(mj_data, "tendon_efcadr"):
        mj_data.tendon_efcadr[:] = _tendon_rows(mj_model, columns)
    if nefc:
        _write_jacobian(mj_data, J, sparse)
        for name in COLUMNS:
            if name != "J":
                earlier = hasattr(mj_data, "efc_diagApprox") and name == "diagA"  # its name before MuJoCo 3.8
                getattr(mj_data, "efc_diagApprox" if earlier else f"efc_{name}")[:] = columns[name]
        mj_data.efc_b[:] = J @ mj_data.qacc_smooth - columns["aref"]
        if not mj_model.opt.disableflags & Disable.ISLAND:
            mujoco.mj_island(mj_model, mj_data)
            _sort_by_island(mj_data)


def _sort_by_island(mj_data: Any) -> None:
    """Writes the values of DoFs and rows in the order of islands, which MuJoCo's solver writes."""
    dof, row = mj_data.map_idof2dof[: mj_data.nidof], mj_data.map_iefc2efc
    for kind in ("smooth", "constraint"):
        getattr(mj_data, f"ifrc_{kind}")[:] = getattr(mj_data, f"qfrc_{kind}")[dof]
    mj_data.iacc_smooth[:], mj_data.iacc[:] = mj_data.qacc_smooth[dof], mj_data.qacc[dof]
    for name in ("aref", "state", "force"):
        getattr(mj_data, f"iefc_{name}")[:] = getattr(mj_data, f"efc_{name}")[row]


def _tendon_rows(mj_model: Any, columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the first row of each tendon, (ntendon,), -1 without a row."""
    first, kind, of = np.full(mj_model.ntendon, -1), columns["type"], columns["id"]
    equality = np.flatnonzero(kind == EQUALITY)
    equality = equality[mj_model.eq_type[of[equality]] == EQ_TENDON]
    own = np.flatnonzero((kind == FRICTION_TENDON) | (kind == LIMIT_TENDON))
    rows = np.concatenate([own, equality, equality])
    tendons = np.concatenate([of[own], mj_model.eq_obj1id[of[equality]], mj_model.eq_obj2id[of[equality]]])
    for at in np.argsort(-rows, kind="stable"):  # the smallest row is written last
        if tendons[at] >= 0:
            first[tendons[at]] = rows[at]
    return first


def _write_contacts(theirs: Any, contacts: np.recarray, mj_model: Any) -> None:
    for name in SHARED:
        getattr(theirs, name)[:] = contacts[name]
    if hasattr(theirs, "adhesion"):
        theirs.adhesion[:] = contacts.adhesion
    theirs.geom1[:], theirs.geom2[:] = contacts.geom[:, 0], contacts.geom[:, 1]
    for name in ("flex", "elem", "vert"):
        getattr(theirs, name)[:] = -1
    ratio = max(mj_model.opt.impratio, MINVAL)
    theirs.mu[:] = np.where(contacts.dim > 1, contacts.friction[:, 0] / np.sqrt(ratio), 0.0)
    theirs.H[:] = 0.0
    if hasattr(theirs, "surfacevel"):
        theirs.surfacevel[:] = 0.0


def _write_jacobian(mj_data: Any, J: np.ndarray, sparse: bool) -> None:
    """Writes a dense Jacobian (nefc, nv), as sparse rows if MuJoCo's is sparse."""
    if not sparse:
        mj_data.efc_J.reshape(J.shape)[:] = J
        return
    row, column = np.nonzero(J)
    count = np.bincount(row, minlength=len(J))
    mj_data.efc_J_rownnz[:] = count
    mj_data.efc_J_rowadr[:] = np.cumsum(count) - count
    mj_data.efc_J_colind[:] = column
    mj_data.efc_J[:] = J[row, column]


# ---- from MuJoCo -----------------------------------------------------------------------------------------------------
class TheirRows:
    """Holds the rows of an MjData, split as Featherlane stores them.

    Attributes:
        J: (nefc, nv) dense Jacobian.
        one: numbers of the rows with a separate dof each: friction loss of dofs, then limits of slides and hinges.
        general: numbers of equalities, friction loss of tendons, limits of balls and tendons.
    """

    def __init__(self, mj_data: Any):
        self.J = _dense_jacobian(mj_data)
        kind, scalar = mj_data.efc_type, np.zeros(mj_data.nefc, bool)
        limit = np.flatnonzero(kind == LIMIT_JOINT)
        scalar[limit] = is_scalar(mj_data.model.jnt_type[mj_data.efc_id[limit]])
        self.one = np.flatnonzero((kind == FRICTION_DOF) | scalar)
        self.general = np.flatnonzero((kind < CONTACT_FRICTIONLESS) & (kind != FRICTION_DOF) & ~scalar)


def read_rows(model, sizes: Mapping[str, int], mj_data: Any) -> list[tuple[str, np.ndarray]]:
    """Returns contacts and rows of an MjData as values of slots, by field.

    Raises:
        ModelError: more contacts or rows than slots.
    """
    rows = TheirRows(mj_data)
    values = _scalar_rows(rows, mj_data) + _contacts(model, sizes, rows, mj_data)
    for name, value in values:
        most = DATA[name].count(sizes)
        if np.size(value) > most:
            raise ModelError(f"from_mujoco: {name} needs {np.size(value)} values, the capacity is {most}")
    return values


def _dense_jacobian(mj_data: Any) -> np.ndarray:
    """Returns the Jacobian of the rows, (nefc, nv)."""
    import mujoco

    shape = mj_data.nefc, mj_data.model.nv
    if not mujoco.mj_isSparse(mj_data.model) or not mj_data.nefc:
        return mj_data.efc_J[: shape[0] * shape[1]].reshape(shape)
    J, count = np.zeros(shape), mj_data.efc_J_rownnz
    row = np.repeat(np.arange(len(count)), count)
    at = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + mj_data.efc_J_rowadr[row]
    J[row, mj_data.efc_J_colind[at]] = mj_data.efc_J[at]
    return J


def _bounds(mj_data: Any, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the smallest and largest forces of rows that are not of contacts."""
    kind, loss = mj_data.efc_type[chosen], mj_data.efc_frictionloss[chosen]
    friction = (kind == FRICTION_DOF) | (kind == FRICTION_TENDON)
    low = np.where(friction, -loss, np.where(kind == EQUALITY, -np.inf, 0.0))
    return low, np.where(friction, loss, np.inf)


def _rows_together(mj_data: Any, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first rows of equalities and all other rows; for each row, the rows from it to its equality's end."""
    kind, ident = mj_data.efc_type[chosen], mj_data.efc_id[chosen]
    begins = np.ones(len(chosen), bool)
    begins[1:] = (kind[1:] != EQUALITY) | (kind[:-1] != EQUALITY) | (ident[1:] != ident[:-1])
    first = np.flatnonzero(begins)
    end = np.append(first, len(chosen))[1:]
    return first, np.repeat(end, end - first) - np.arange(len(chosen))


def _scalar_rows(rows: TheirRows, mj_data: Any) -> list[tuple[str, np.ndarray]]:
    """Returns the fields of rows that are not of contacts: rows of one dof, then general rows."""
    chosen, one = np.concatenate([rows.one, rows.general]), len(rows.one)
    first, rownum = _rows_together(mj_data, chosen)
    entries = rows.J[chosen] != 0.0
    if len(chosen):
        # rows of one equality have the same dofs
        entries = np.repeat(np.logical_or.reduceat(entries, first), rownum[first], axis=0)
    # a row of one dof has exactly one entry, even if it is 0
    entries[:one] = False
    entries[np.arange(one), np.abs(rows.J[rows.one]).argmax(1) if one else []] = True
    row, column = np.nonzero(entries)
    count = np.bincount(row, minlength=len(chosen))
    friction = np.count_nonzero(mj_data.efc_type[rows.one] == FRICTION_DOF)
    counts = {"nrow": len(chosen), "ndofrow": one, "nfrictionrow": friction}
    values = [(name, np.array([n])) for name, n in counts.items()]
    values += [("row_dofnum", count), ("row_rownum", rownum)]
    values += [("row_dofadr", np.cumsum(count) - count), ("row_dof", column), ("row_J", rows.J[chosen][row, column])]
    names = ("type", "id", "pos", "margin", "vel", "D", "aref", "force")
    values += [(f"row_{name}", getattr(mj_data, f"efc_{name}")[chosen]) for name in names]
    low, high = _bounds(mj_data, chosen)
    return [*values, ("row_lo", low), ("row_hi", high), ("row_present", np.ones(len(chosen)))]


def _contacts(model, sizes: Mapping[str, int], rows: TheirRows, mj_data: Any) -> list[tuple[str, np.ndarray]]:
    """Returns the fields of contacts, one slot each, in MuJoCo's order."""
    theirs, n = mj_data.contact, mj_data.ncon
    values = [(f"con_{name}", np.array(getattr(theirs, name))) for name in SLOTS]
    adhesion = np.array(theirs.adhesion) if hasattr(theirs, "adhesion") else np.zeros(n)
    values += [("con_adhesion", adhesion), ("con_carrier", model.geom_bodyid[theirs.geom]), ("con_present", np.ones(n))]
    values += [("ncon_slot", np.array([n])), ("ncon", np.array([n])), ("nefc", np.array([mj_data.nefc]))]
    values += [("con_point", np.zeros(n))]
    values += [("con_cand", np.full(n, -1)), ("con_pair", np.full(n, -1))]
    return values + _contact_rows(sizes, rows, mj_data)


def _contact_rows(sizes: Mapping[str, int], rows: TheirRows, mj_data: Any) -> list[tuple[str, np.ndarray]]:
    """Returns what the rows of each contact share, its force, and J qacc - aref along each direction.

    Friction directions are scaled by their coefficients.
    Source: aref = -con_damping J v - con_stiffpos, and the cones of `constraint.row.compute_contact_row`.
    """
    n, capacity = mj_data.ncon, sizes["nconmax"]
    slots = {name: np.zeros(n) for name in ("D", "Dt", "slip", "damping", "frictiondamping", "stiffpos")}
    y, force, dual = np.zeros((2, capacity, 3)), np.zeros((n, 6)), np.zeros((n, 10))
    jar = rows.J @ mj_data.qacc - mj_data.efc_aref
    D, B, f = mj_data.efc_D, mj_data.efc_KBIP[:, 1], mj_data.efc_force
    for k, (first, dim) in enumerate(zip(mj_data.contact.efc_address, mj_data.contact.dim, strict=True)):
        if first < 0 or k >= capacity:
            continue
        kind, mu = mj_data.efc_type[first], mj_data.contact.friction[k][: dim - 1]
        along, at = np.zeros(6), slice(first, first + dim)
        slots["D"][k], slots["damping"][k], slots["frictiondamping"][k] = D[first], B[first], B[first]
        slots["stiffpos"][k] = -mj_data.efc_aref[first] - B[first] * mj_data.efc_vel[first]
        if kind == CONTACT_PYRAMIDAL:
            at = slice(first, first + 2 * dim - 2)
            edges, pushes = jar[at].reshape(-1, 2), f[at].reshape(-1, 2)
            along[0], along[1:dim] = edges[0].mean(), (edges[:, 0] - edges[:, 1]) / 2.0
            force[k, 0], force[k, 1:dim] = pushes.sum(), mu * (pushes[:, 0] - pushes[:, 1])
            dual[k, : 2 * dim - 2] = f[at]
        else:
            scale = np.concatenate([[1.0], mu])
            along[:dim], force[k, :dim], dual[k, :dim] = scale * jar[at], f[at], f[at] / scale
        if kind == CONTACT_ELLIPTIC:
            slots["Dt"][k] = D[first + 1] / mu[0] ** 2
            slots["slip"][k] = D[first] / (1.0 + D[first] / slots["Dt"][k])
            slots["frictiondamping"][k] = B[first + 1]
        y[:, k] = along.reshape(2, 3)
    values = [(f"con_{name}", value) for name, value in slots.items()]
    edges = np.concatenate([np.zeros(10 * (len(rows.one) + len(rows.general))), dual.reshape(-1)])
    return [*values, ("con_force", force), ("primal.con_y", y), ("dual.f", edges[: sizes["ndualmax"] * 10])]
