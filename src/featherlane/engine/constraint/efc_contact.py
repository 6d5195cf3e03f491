"""Writes the contact rows of MuJoCo's `efc_` arrays; see efc.py.

A contact has up to six directions r: normal, two tangents, and rotations about the three.  direction_J (6, nv) and
direction_vel (6,) hold the Jacobian and velocity of the current contact along them, body 2 relative to body 1.  A row
i is row i of efc_J (nefc, nv).  Both matrices are flat arrays: entry (i, dof) is at nv i + dof.
er holds these arrays of one world, so any_(x) is x of this world.  A contact's slot k is its number in the tile;
contact.carrier has its two bodies, contact.D .. stiffpos the fields of row.py, contact.force the solver's forces along
the directions; dual.f[b, e] is the force of edge e of block b, nrow + k for slot k.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.efc_fields import CONTACTS
from featherlane.engine.constraint.row import contact_row_count
from featherlane.engine.constraint.surface import surface_velocity
from featherlane.engine.model.solver import in_forces


# ---- directions ------------------------------------------------------------------------------------------------------
@kernel
def _add_body_velocity(m, d, er, k, dim, body, sign):
    """Adds sign times a body's velocity and Jacobian along the first `dim` directions of the contact in slot k.

    Along an axis these are axis . (v + w x lever); a rotation about it is axis . w.   Writes: direction_vel,
    direction_J.
    """
    c = d.contact[k]
    nv, point = er.efc_nv, c.pos
    lever = point - d.subtree_com[m.body_rootid[body]]
    omega = d.cvel[body].angular
    v = d.cvel[body].linear + cross(omega, lever)
    for r in range(dim):
        axis = c.frame.rows[r % 3]
        er.direction_vel[r] += sign * (dot(axis, v) if r < 3 else dot(axis, omega))
    # the column of each dof above the body is the velocity at unit velocity of the dof
    dof = m.body_lastdof[body]
    while dof >= 0:
        omega = d.cdof[dof].angular
        v = d.cdof[dof].linear + cross(omega, lever)
        for r in range(dim):
            axis = c.frame.rows[r % 3]
            er.direction_J[nv * r + dof] += sign * (dot(axis, v) if r < 3 else dot(axis, omega))
        dof = m.dof_parentid[dof]


@kernel
def _add_surface_velocity(m, d, er, k, dim, geom, sign):
    """Adds sign times a geom's belt velocity to direction_vel: along the tangents and about the normal."""
    v, w = surface_velocity(m, d, geom, d.con_pos[k])
    for r in range(1, min(dim, 4)):  # r = 3: rotation about the normal
        axis = d.con_frame[k].rows[r % 3]
        er.direction_vel[r] += sign * (dot(axis, v) if r < 3 else dot(axis, w))


@kernel
def _write_directions(m, d, er, k, dim):
    """Writes direction_J and direction_vel of the contact in slot k, along its first `dim` directions.

    Both are those of body 2 less those of body 1.
    The velocity is computed from cvel, because the integration of a step changes qvel, but not cvel.
    """
    contact = d.contact[k]
    for r in range(dim):
        er.direction_vel[r] = 0.0
        for c in range(er.efc_nv):
            er.direction_J[er.efc_nv * r + c] = 0.0
    _add_body_velocity(m, d, er, k, dim, contact.carrier[0], sign=-1.0)
    _add_body_velocity(m, d, er, k, dim, contact.carrier[1], sign=1.0)
    if m.flg_surfacevel:
        for side in range(2):
            _add_surface_velocity(m, d, er, k, dim, contact.geom[side], sign=2.0 * side - 1.0)  # -1, +1


# ---- rows ------------------------------------------------------------------------------------------------------------
@kernel
def _residual(d, k, r):
    """Returns J a - aref along direction r of the contact in slot k, at the solver's final acceleration.

    primal.con_y holds three translations of each slot, then three rotations of each slot.
    """
    return flat(d.primal.con_y)[3 * k + r if r < 3 else 3 * (d.nconmax + k) + r - 3]


@kernel
def _write_normal_row(d, er, i, k, r, sign):
    """Writes row i: the normal of the contact in slot k plus sign mu_r times direction r; sign = 0: only the normal.

    Its force is max(-D (J a - aref), 0).
    """
    contact = d.contact[k]
    nv = er.efc_nv
    mu = sign * contact.friction[max(r - 1, 0)]  # direction r >= 1 has the coefficient friction[r - 1]
    for c in range(nv):
        er.efc_J[nv * i + c] = er.direction_J[c] + mu * er.direction_J[nv * r + c]
    er.efc_pos[i], er.efc_margin[i], er.efc_D[i] = contact.dist, contact.includemargin, contact.D
    er.efc_vel[i] = er.direction_vel[0] + mu * er.direction_vel[r]
    er.efc_aref[i] = -contact.damping * er.efc_vel[i] - contact.stiffpos
    # primal.con_y is along the basis (n, mu_1 t_1, ..): its values include mu_r
    residual = _residual(d, k, r=0) + sign * _residual(d, k, r)
    er.efc_force[i] = fmax(-contact.D * residual, 0.0)
    er.efc_state[i] = STATE_SATISFIED if any_(er.efc_force[i] <= 0.0) else STATE_QUADRATIC


@kernel
def _write_friction_row(d, er, i, k, r):
    """Writes row i: friction direction r of the elliptic contact in slot k.

    J is not scaled by mu_r here, so D_r = Dt mu_r^2.  The row has no position error: aref = -frictiondamping J v.
    """
    contact = d.contact[k]
    nv, mu = er.efc_nv, contact.friction[r - 1]  # direction 0 is the normal
    for c in range(nv):
        er.efc_J[nv * i + c] = er.direction_J[nv * r + c]
    er.efc_pos[i], er.efc_margin[i], er.efc_vel[i] = 0.0, 0.0, er.direction_vel[r]
    er.efc_D[i] = contact.Dt * mu * mu
    er.efc_aref[i] = -contact.frictiondamping * er.efc_vel[i]


@kernel
def _write_cone_forces(d, er, i, k, dim):
    """Writes force and state of rows i .. i + dim - 1: the contact in slot k, elliptic or without friction.

    N: normal force; T: length of the friction residuals, scaled by friction.  If N = 0, the state is satisfied.  If the
    friction Dt T is at most N, the contact sticks, and its state is quadratic; else it slips, and its state is cone.
    """
    c = d.contact[k]
    state, square = STATE_SATISFIED, 0.0
    for r in range(1, dim):
        square += _residual(d, k, r) * _residual(d, k, r)
    if any_(c.force[0] > 0.0):
        state = STATE_QUADRATIC if any_(c.Dt * sqrt(square) <= c.force[0]) else STATE_CONE
    for r in range(dim):
        er.efc_force[i + r], er.efc_state[i + r] = c.force[r], state


@kernel
def _count_rows(m, d, k):
    """Returns the number of rows of the contact in slot k; 0 if it has none in this world."""
    return 0 if any_(d.con_D[k] == 0.0) else contact_row_count(m, d, k)


@kernel
def list_contacts(m, d, er, n):
    """Lists the slot and the first row of each contact; returns the total number of rows.

    n: number of rows before those of contacts.
    Writes: contact_slot, contact_row (-1: the contact has no rows), efc_count[CONTACTS], the number of contacts.
    """
    contact = 0
    for k in range(d.ncon_slot[0]):
        if any_(d.con_present[k] != 0.0):
            rows = _count_rows(m, d, k)
            er.contact_slot[contact] = k
            er.contact_row[contact] = n if rows > 0 else -1
            n += rows
            contact += 1
    er.efc_count[CONTACTS] = contact
    return n


@kernel
def write_contact_rows(m, d, er, contact, i):
    """Writes the rows of contact number `contact`, from row i on."""
    k = er.contact_slot[contact]
    dim = d.con_dim[k]
    rows = _count_rows(m, d, k)
    kind = CONTACT_PYRAMIDAL
    _write_directions(m, d, er, k, dim)
    if dim == 1 or not has_pyramids(m):
        kind = CONTACT_ELLIPTIC if dim > 1 else CONTACT_FRICTIONLESS
        _write_normal_row(d, er, i, k, r=0, sign=0.0)
        for r in range(1, dim):
            _write_friction_row(d, er, i + r, k, r)
        _write_cone_forces(d, er, i, k, dim)
    else:
        for r in range(1, dim):
            # two edges per direction: normal + and - mu_r (direction r)
            _write_normal_row(d, er, i + 2 * r - 2, k, r, sign=1.0)
            _write_normal_row(d, er, i + 2 * r - 1, k, r, sign=-1.0)
        # a solver in forces, or the no-slip solver, has stored the force of each edge
        for r in range(rows if in_forces(m) or m.opt_noslip_iterations > 0 else 0):
            er.efc_force[i + r] = d.dual.f[d.nrow[0] + k, r]
    for r in range(rows):
        er.efc_type[i + r], er.efc_id[i + r] = kind, contact
        er.efc_frictionloss[i + r] = 0.0
