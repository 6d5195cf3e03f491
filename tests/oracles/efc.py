"""Builds the rows of one world as MuJoCo's `efc_` arrays, naively in NumPy: in MuJoCo's order, Jacobian dense.

It reads one world of a tile of any width; `data.efc_*` is compiled.

Order: equality constraints; friction loss by dof, then by tendon; limits by joint, slides, hinges and balls mixed, then
by tendon, lower side first; contacts.  A contact of dimension n acts along the first n of (normal, two tangents,
rotations about the three).  Its rows are these directions if the cone is elliptic; for a pyramid, normal +
mu_i (direction i) and normal - mu_i (direction i) for i = 1, 2, ..
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from featherlane.engine.constraint.end_of_step import limit_to_step
from featherlane.engine.constraint.impedance import MAXIMP, MINIMP, MINVAL, friction_reference, impedance, reference
from featherlane.engine.model.enums import (
    CONTACT_ELLIPTIC,
    CONTACT_FRICTIONLESS,
    CONTACT_PYRAMIDAL,
    DISABLE_REFSAFE,
    ELLIPTIC,
    EQ_CONNECT,
    EQ_WELD,
    EQUALITY,
    FRICTION_DOF,
    FRICTION_TENDON,
    LIMIT_TENDON,
    METRIC,
    STATE_CONE,
    STATE_LINEARNEG,
    STATE_LINEARPOS,
    STATE_QUADRATIC,
    STATE_SATISFIED,
)
from featherlane.engine.model.integrator import has_metric
from featherlane.engine.model.solver import in_forces

FRICTION = (FRICTION_DOF, FRICTION_TENDON)

# names of the columns that all kinds of rows share, and their types
COLUMNS = {"type": np.int32, "id": np.int32, "pos": float, "margin": float, "frictionloss": float}
COLUMNS |= {"vel": float, "D": float, "aref": float, "force": float}


def efc(model, arrays, lane: int = 0) -> SimpleNamespace:
    """Returns the rows of one world of a tile, after `make_rows` and, for `efc_force`, after the solver.

    Args:
        model: the model.
        arrays: a tile's arrays by field name: (n, W) for reals, (n,) for ints.
        lane: the world.

    Returns:
        Arrays without the prefix `efc_`, n = nefc rows: `J` (n, nv), `type`, `id`, `pos`, `margin`, `frictionloss`,
        `diagA`, `KBIP` (n, 4), `D`, `R`, `vel`, `aref`, `force`, `state`, all (n,); counts `nefc`, `ne`, `nf`, `nl`;
        `contact_slot` and `contact_efc_address`, one for each contact of the world: its slot, and its first row or -1.

    Note:
        `force` and `state` are from the last solve or inverse pass; pos, vel, aref and J are from the state in
        which the rows were made.
    """
    d = {name: a[:, lane] if a.ndim == 2 else a for name, a in arrays.items()}
    joint, joint_J = _joint_rows(model, d)
    contact, contact_J, slot, address = _contact_rows(model, d)
    out = SimpleNamespace(**{name: np.concatenate([joint[name], contact[name]]) for name in COLUMNS})

    out.J = np.concatenate([joint_J, contact_J])
    out.nefc = len(out.D)
    out.ne, out.nf = (int(np.isin(joint["type"], kinds).sum()) for kinds in (EQUALITY, FRICTION))
    out.nl = len(joint["type"]) - out.ne - out.nf
    out.contact_slot, out.contact_efc_address = slot, np.where(address < 0, -1, len(joint["type"]) + address)

    out.R = 1.0 / out.D
    out.KBIP = _kbip(model, d, out, slot)
    out.diagA = out.R * out.KBIP[:, 2] / (1.0 - out.KBIP[:, 2])
    out.force, out.state = _force(d, out, slot)
    if in_forces(model) or model.opt_noslip_iterations > 0:
        _set_dual_forces(d, out)
    return out


def _force(d, rows, slot):
    """Returns force and mjtConstraintState of each row; those of contacts at the solver's last point."""
    equality, friction = rows.type == EQUALITY, np.isin(rows.type, FRICTION)
    lo = np.where(equality, -np.inf, np.where(friction, -rows.frictionloss, 0.0))
    hi, force, cone = np.where(friction, rows.frictionloss, np.inf), rows.force.copy(), {}
    for k, i in zip(slot, rows.contact_efc_address, strict=True):
        if i >= 0:
            y = _contact_point(d, k)
            if rows.type[i] == CONTACT_ELLIPTIC:
                force[i : i + len(y)], cone[i] = _cone_force(d, k, y)
            else:
                x = y if len(y) == 1 else np.stack([y[0] + y[1:], y[0] - y[1:]], 1).ravel()
                force[i : i + len(x)] = np.maximum(-d["con_D"][k] * x, 0.0)
    state = np.where(force <= lo, np.where(friction, STATE_LINEARPOS, STATE_SATISFIED), STATE_QUADRATIC)
    state = np.where(force >= hi, STATE_LINEARNEG, state)
    for i, zone in cone.items():
        state[i : i + d["con_dim"][slot[rows.id[i]]]] = zone
    return force, state.astype(np.int32)


def _contact_point(d, k: int) -> np.ndarray:
    """Returns J a - aref along the basis of the contact in slot k, (dim,)."""
    y, nconmax = d["primal.con_y"], len(d["con_dim"])
    return np.concatenate([y[3 * k :][:3], y[3 * (nconmax + k) :][:3]])[: d["con_dim"][k]]


def body_jacobian(model, d, body: int, point: np.ndarray) -> np.ndarray:
    """Returns (6, nv): velocity of the body's material at a point of the world frame, then rotation, for each dof."""
    J = np.zeros((6, model.nv))
    while body > 0 and model.body_dofnum[body] == 0:
        body = model.body_parentid[body]
    if body == 0:
        return J
    com = d["subtree_com"][3 * model.body_rootid[body] :][:3]
    i = model.body_dofadr[body] + model.body_dofnum[body] - 1
    while i >= 0:
        S = d["cdof"][6 * i :][:6]
        J[:3, i], J[3:, i] = S[3:] + np.cross(S[:3], point - com), S[:3]
        i = model.dof_parentid[i]
    return J


def _joint_rows(model, d):
    """Returns columns and Jacobian of friction loss and limits, in MuJoCo's order."""
    columns, J, order = {name: [] for name in COLUMNS}, [], []
    for k in range(d["nrow"][0]):
        if d["row_present"][k] == 0.0 or d["row_type"][k] == METRIC:
            continue
        row, entries = np.zeros(model.nv), slice(d["row_dofadr"][k], d["row_dofadr"][k] + d["row_dofnum"][k])
        row[d["row_dof"][entries]] = d["row_J"][entries]
        J.append(row)
        for name in COLUMNS:
            if name != "frictionloss":
                columns[name].append(d[f"row_{name}"][k])
        friction = columns["type"][-1] in FRICTION
        columns["frictionloss"].append(d["row_hi"][k] if friction else 0.0)
        order.append((columns["type"][-1], columns["id"][-1]))

    # friction before limits, each by id; a joint's lower side stays before its upper one
    index = sorted(range(len(order)), key=order.__getitem__)
    arrays = {name: np.array(columns[name], dtype)[index] for name, dtype in COLUMNS.items()}
    return arrays, np.reshape(J, (len(J), model.nv))[index]


def _contact_rows(model, d):
    """Returns columns and Jacobian of the contacts' rows; each contact's slot and first row (-1: none)."""
    columns, J, address, rows = {name: [] for name in COLUMNS}, [np.zeros((0, model.nv))], [], 0
    slot = np.flatnonzero(d["con_present"][: d["ncon_slot"][0]])
    for contact, k in enumerate(slot):
        if d["con_D"][k] == 0.0:
            address.append(-1)
            continue
        kind = _kind(model, d, k)
        contact_J, vel = _directions(model, d, k)
        if kind == CONTACT_PYRAMIDAL:
            edges = _edges(d, k)
            contact_J, vel = edges @ contact_J, edges @ vel
        n = len(vel)
        address.append(rows)
        rows += n
        J.append(contact_J)
        pos, margin, D, damping, stiffpos = (
            np.full(n, d[f"con_{name}"][k]) for name in ("dist", "includemargin", "D", "damping", "stiffpos")
        )
        if kind == CONTACT_ELLIPTIC:
            D[1:], damping[1:] = d["con_Dt"][k] * _friction(d, k) ** 2, d["con_frictiondamping"][k]
            pos[1:], margin[1:], stiffpos[1:] = 0.0, 0.0, 0.0
        values = (kind, contact, pos, margin, 0.0, vel, D, -damping * vel - stiffpos, 0.0)
        for name, value in zip(COLUMNS, values, strict=True):
            columns[name].append(np.broadcast_to(value, n))
    empty = [np.zeros(0)]
    arrays = {name: np.concatenate(empty + columns[name]).astype(dtype) for name, dtype in COLUMNS.items()}
    return arrays, np.concatenate(J), slot, np.array(address, np.int32)


def _kind(model, d, k: int) -> int:
    """Returns mjtConstraint of the rows of the contact in slot k."""
    if d["con_dim"][k] == 1:
        return CONTACT_FRICTIONLESS
    return CONTACT_ELLIPTIC if model.opt_cone == ELLIPTIC else CONTACT_PYRAMIDAL


def _friction(d, k: int) -> np.ndarray:
    """Returns the coefficients of the directions of friction."""
    return d["con_friction"][5 * k :][: d["con_dim"][k] - 1]


def _directions(model, d, k: int):
    """Returns Jacobian (dim, nv) and velocity (dim,) along normal, tangents and rotations of the contact in slot k.

    The velocity is computed from the bodies' velocities, which an integration step does not change.
    """
    point = d["con_pos"][3 * k :][:3]
    frame = np.kron(np.eye(2), d["con_frame"][9 * k :][:9].reshape(3, 3))[: d["con_dim"][k]]
    J, vel = np.zeros((len(frame), model.nv)), np.zeros(len(frame))
    for sign, body in zip((-1.0, 1.0), d["con_carrier"][2 * k :][:2], strict=True):
        com, v = d["subtree_com"][3 * model.body_rootid[body] :][:3], d["cvel"][6 * body :][:6]
        J += sign * frame @ body_jacobian(model, d, body, point)
        vel += sign * frame @ np.concatenate([v[3:] + np.cross(v[:3], point - com), v[:3]])
    if model.flg_surfacevel:
        vel += _slip_of_surfaces(model, d, k, frame, point)
    return J, vel


def _slip_of_surfaces(model, d, k: int, frame: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Returns (dim,): velocity of geom 2's surface relative to geom 1's, along the tangents and about the normal."""
    slip = np.zeros(6)
    for sign, geom in zip((-1.0, 1.0), d["con_geom"][2 * k :][:2], strict=True):
        if geom >= 0:
            R, centre = d["geom_xmat"][9 * geom :][:9].reshape(3, 3), d["geom_xpos"][3 * geom :][:3]
            v, w = model.geom_surfacevel[geom].reshape(2, 3) @ R.T
            slip += sign * np.concatenate([v + np.cross(w, point - centre), w])
    return (frame @ slip) * [0.0, 1.0, 1.0, 1.0, 0.0, 0.0][: len(frame)]


def _edges(d, k: int) -> np.ndarray:
    """Returns (2 (dim - 1), dim): the edges of a pyramid in terms of its directions."""
    mu = _friction(d, k)
    edges = np.zeros((2 * len(mu), len(mu) + 1))
    edges[:, 0] = 1.0
    for i, friction in enumerate(mu):
        edges[2 * i, i + 1], edges[2 * i + 1, i + 1] = friction, -friction
    return edges


def _cone_force(d, k: int, y: np.ndarray) -> tuple[np.ndarray, int]:
    """Returns forces of an elliptic contact at y along its basis, see solver/rows/cone.py, and their state."""
    mu, D, Dt, E = _friction(d, k), d["con_D"][k], d["con_Dt"][k], d["con_slip"][k]
    T = np.linalg.norm(y[1:])
    if y[0] >= T:
        return np.zeros_like(y), STATE_SATISFIED
    if D * y[0] + Dt * T <= 0.0:
        return -np.concatenate([[D * y[0]], Dt * mu * y[1:]]), STATE_QUADRATIC
    return E * (T - y[0]) * np.concatenate([[1.0], -mu * y[1:] / T]), STATE_CONE


def _set_dual_forces(d, rows) -> None:
    """Sets the contact forces of a dual solver; elliptic ones are kept in the basis scaled by friction."""
    joint = d["nrow"][0]
    for i, ident in zip(rows.contact_efc_address, range(len(rows.contact_slot)), strict=True):
        if i >= 0:
            k = rows.contact_slot[ident]
            n = int(np.count_nonzero((rows.id == ident) & (rows.type >= CONTACT_FRICTIONLESS)))
            scale = np.ones(n)
            if rows.type[i] == CONTACT_ELLIPTIC:
                scale[1:] = _friction(d, k)
            rows.force[i : i + n] = scale * d["dual.f"][10 * (joint + k) :][:n]


def _kbip(model, d, rows, slot) -> np.ndarray:
    """Returns (nefc, 4): stiffness, damping, impedance and the derivative of the impedance of each row."""
    out = np.zeros((rows.nefc, 4))
    honoured = model.opt_disableflags & DISABLE_REFSAFE or has_metric(model)
    shortest = 0.0 if honoured else 2.0 * model.opt_timestep[0]
    for i, (kind, ident) in enumerate(zip(rows.type, rows.id, strict=True)):
        if kind == FRICTION_DOF:
            solref, solimp = model.dof_solref[ident], model.dof_solimp[ident]
        elif kind == FRICTION_TENDON:
            solref, solimp = model.tendon_solref_fri[ident], model.tendon_solimp_fri[ident]
        elif kind == LIMIT_TENDON:
            solref, solimp = model.tendon_solref_lim[ident], model.tendon_solimp_lim[ident]
        elif kind in (CONTACT_FRICTIONLESS, CONTACT_PYRAMIDAL, CONTACT_ELLIPTIC):
            k = slot[ident]
            solref, solimp = d["con_solref"][2 * k :][:2], d["con_solimp"][5 * k :][:5]
        elif kind == EQUALITY:
            solref, solimp = model.eq_solref[ident], model.eq_solimp[ident]
        else:
            solref, solimp = model.jnt_solref[ident], model.jnt_solimp[ident]
        # the rows of an elliptic contact share the impedance of its first one
        first = rows.contact_efc_address[ident] if kind == CONTACT_ELLIPTIC else i
        r = rows.pos[first] - rows.margin[first]
        if kind == EQUALITY and model.eq_type[ident] in (EQ_CONNECT, EQ_WELD):
            # the rows of a connect or weld share the impedance of their norm
            r = np.linalg.norm(rows.pos[(rows.type == EQUALITY) & (rows.id == ident)])
        K, B = reference(solref, solimp, shortest)
        if kind in FRICTION:
            K = 0.0
        elif first < i:
            K, B = 0.0, friction_reference(d["con_solreffriction"][2 * k :][:2], B, solimp, shortest)
        elif kind != EQUALITY:
            K, B = limit_to_step(model, model.opt_timestep[0], solref, impedance(solimp, r), (K, B))
        out[i] = K, B, impedance(solimp, r), _slope(solimp, r)
    return out


def _slope(solimp, r: float) -> float:
    """Returns the derivative of the impedance with respect to r."""
    dmin, dmax, mid = np.clip(solimp[[0, 1, 3]], MINIMP, MAXIMP)
    width, power = max(solimp[2], 0.0), max(solimp[4], 1.0)
    if dmin == dmax or width <= MINVAL or not 0.0 < abs(r) < width:
        return 0.0
    x = abs(r) / width
    ratio = x / mid if x <= mid else (1.0 - x) / (1.0 - mid)
    return power * ratio ** (power - 1.0) * np.sign(r) * (dmax - dmin) / width
