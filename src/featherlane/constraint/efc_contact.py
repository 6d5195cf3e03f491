"""Writes the contact rows of MuJoCo's `efc_` arrays; see efc.py.

A contact has up to six directions r: normal, two tangents, and rotations about the three.  direction_J (6, nv) and
direction_vel (6,) hold the Jacobian and velocity of the current contact along them, body 2 relative to body 1.  A row
i is row i of efc_J (nefc, nv).  Both matrices are flat arrays: entry (i, dof) is at nv i + dof.
er holds these arrays of one world, so any_(x) is x of this world.  A contact's slot k is its number in the tile;
contact.carrier has its two bodies, contact.D .. stiffpos the fields of row.py.
"""

from featherlane.prelude import *
from featherlane.constraint.row import contact_row_count
from featherlane.constraint.surface import surface_velocity
from featherlane.model.solver import in_forces


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
    # column of each dof above the body: its velocity per unit of the dof
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

    The velocity is computed from the bodies' velocities, which an integration step does not change.
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
    nv, mu = er.efc_nv, sign * contact.friction[max(r - 1, 0)]  # direction r >= 1 has the coefficient friction[r - 1]
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
    """Writes row i without its force: friction direction r of the elliptic contact in slot k, D_r = Dt mu_r^2."""
    contact = d.contact[k]
    nv, mu = er.efc_nv, contact.friction[r - 1]
    for c in range(nv):
        er.efc_J[nv * i + c] = er.direction_J[nv * r + c]
    er.efc_pos[i], er.efc_margin[i], er.efc_vel[i] = 0.0, 0.0, er.direction_vel[r]
    er.efc_D[i] = contact.Dt * mu * mu
    er.efc_aref[i] = -contact.frictiondamping * er.efc_vel[i]


@kernel
def _write_cone_forces(m, d, er, i, k, dim):
    """Writes forces and states of the elliptic contact in slot k, rows i .. i + dim - 1, as solver/rows/cone.py.

    y: normal residual J a - aref; T = |y_t|, the length of the friction residuals, scaled by friction.  Normal force N
    and friction forces mu_r along y_r are:
        inside the dual cone (y >= T)          N = 0
        inside the cone (D y + Dt T <= 0)      N = -D y,         along = -Dt
        between, on the cone's surface         N = slip (T - y), along = -N / T
    Under Coulomb's law N = max(-D y, 0), and |friction| = min(Dt T, N).
    T = 0 only in the first two zones, which do not use N / T.
    """
    c = d.contact[k]
    y, square = _residual(d, k, r=0), 0.0
    for r in range(1, dim):
        square += _residual(d, k, r) * _residual(d, k, r)
    T, D, Dt = sqrt(square), c.D, c.Dt
    # along: force over residual of each friction direction;  at first the zone between, on the cone's surface
    state, normal, along = STATE_CONE, c.slip * (T - y), -c.slip * (T - y) / T
    if m.opt_contact_model == COULOMB:
        normal = fmax(-(D * y), 0.0)
        along = -normal / T
        if any_(normal <= 0.0):
            state, normal, along = STATE_SATISFIED, 0.0, 0.0
        elif any_(Dt * T <= normal):
            state, along = STATE_QUADRATIC, -Dt
    elif any_(y >= T):
        state, normal, along = STATE_SATISFIED, 0.0, 0.0
    elif any_(D * y + Dt * T <= 0.0):
        state, normal, along = STATE_QUADRATIC, -D * y, -Dt
    er.efc_force[i], er.efc_state[i] = normal, state
    for r in range(1, dim):
        er.efc_force[i + r] = along * c.friction[r - 1] * _residual(d, k, r)
        er.efc_state[i + r] = state


@kernel
def _write_dual_forces(m, d, er, i, k, rows):
    """Writes the forces of a dual solver for the contact in slot k, from row i on.

    dual.f has ten places for each scalar row and contact, in this order.  Forces of elliptic contacts are
    stored in the basis scaled by friction.
    """
    first = 10 * (d.nrow[0] + k)
    for r in range(rows):
        er.efc_force[i + r] = d.dual.f[first + r]
        if r > 0 and not has_pyramids(m):  # friction of an elliptic cone
            er.efc_force[i + r] = er.efc_force[i + r] * d.con_friction[k, r - 1]


@kernel
def _count_rows(m, d, k):
    """Returns the number of rows of the contact in slot k; 0 if it has none in this world."""
    return 0 if any_(d.con_D[k] == 0.0) else contact_row_count(m, d, k)


@kernel
def list_contacts(m, d, er, n):
    """Lists the slot and the first row of each contact; returns the total number of rows.

    n: number of rows before those of contacts.
    Writes: contact_slot, contact_row (-1: the contact has no rows), efc_count[4], the number of contacts.
    """
    contact = 0
    for k in range(d.ncon_slot[0]):
        if any_(d.con_present[k] != 0.0):
            rows = _count_rows(m, d, k)
            er.contact_slot[contact], er.contact_row[contact] = k, n if rows > 0 else -1
            n += rows
            contact += 1
    er.efc_count[4] = contact
    return n


@kernel
def _write_contact_rows(m, d, er, contact, i):
    """Writes the rows of contact number `contact`, from row i on."""
    k = er.contact_slot[contact]
    dim, rows, kind = d.con_dim[k], _count_rows(m, d, k), CONTACT_FRICTIONLESS
    _write_directions(m, d, er, k, dim)
    if dim == 1 or not has_pyramids(m):  # the first row is the normal
        _write_normal_row(d, er, i, k, r=0, sign=0.0)
    if dim > 1 and not has_pyramids(m):
        kind = CONTACT_ELLIPTIC
        for r in range(1, dim):
            _write_friction_row(d, er, i + r, k, r)
        _write_cone_forces(m, d, er, i, k, dim)
    elif dim > 1:
        kind = CONTACT_PYRAMIDAL
        for r in range(1, dim):
            # two edges per direction: normal + and - mu_r (direction r)
            _write_normal_row(d, er, i + 2 * r - 2, k, r, sign=1.0)
            _write_normal_row(d, er, i + 2 * r - 1, k, r, sign=-1.0)
    for r in range(rows):
        er.efc_type[i + r], er.efc_id[i + r], er.efc_frictionloss[i + r] = kind, contact, 0.0
    # a solver in forces, or the no-slip solver, has stored its own
    if in_forces(m) or m.opt_noslip_iterations > 0:
        _write_dual_forces(m, d, er, i, k, rows)


@kernel
def write_contact_rows(m, d, er):
    """Writes the rows of all contacts that have rows."""
    for contact in range(er.efc_count[4]):
        if er.contact_row[contact] >= 0:
            _write_contact_rows(m, d, er, contact, er.contact_row[contact])
