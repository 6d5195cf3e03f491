"""Writes the rows of one world as MuJoCo's `efc_` arrays, in MuJoCo's order, with a dense Jacobian.

Order: equality constraints; friction loss by dof, then by tendon; limits by joint, slides, hinges and balls mixed, then
by tendon, lower side first; contacts.  A contact of dimension n acts along the first n of (normal, two tangents,
rotations about the three).  The rows of an elliptic cone are these directions; those of a pyramid are
normal + mu_i (direction i) and normal - mu_i (direction i) for i = 1, 2, ...
Names: er: the arrays, of a tile with one world, so that any_(x) is x of this world; row_*: scalar rows
    (row.py); METRIC: type of the rows that add to the integrator's metric;
    K, B, imp: stiffness, damping, impedance d of a row: aref = -B v - K d r, r: position error less the margin;
    R = 1 / D; STATE_*: mjtConstraintState.
    efc_source: number of the scalar row k that an efc_ row copies; efc_id of a contact's row: number of the contact,
    with the slot contact_slot and the first row contact_row.  efc_count[ALL]: number of rows; efc_count[CONTACTS]:
    number of contacts, not of their rows.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.efc_contact import list_contacts, write_contact_rows
from featherlane.engine.constraint.efc_fields import ALL, CONTACTS, EFC, EQUALITIES, LIMITS, LOSSES
from featherlane.engine.constraint.end_of_step import limit_to_step
from featherlane.engine.constraint.friction_loss import loss_damping
from featherlane.engine.constraint.general import row_entries, row_parameters
from featherlane.engine.constraint.impedance import friction_reference, impedance, reference, shortest_timeconst


# ---- equalities, friction loss, limits -------------------------------------------------------------------------------
@kernel
def _insert_sorted(er, n, source, kind, ident):
    """Inserts a row into the n rows that are sorted by kind, then by id; rows of equal kind and id keep their order.

    So the lower side of a joint's limit stays before its upper side.
    source: number of the scalar row that it copies; kind: mjtConstraint; ident: dof, joint, tendon or equality.
    Writes: efc_type, efc_id, efc_source.
    """
    i = n
    while i > 0:  # rows with a larger kind or id move from i - 1 to i
        kind_before = er.efc_type[i - 1]
        if kind_before < kind or (kind_before == kind and er.efc_id[i - 1] <= ident):
            break
        er.efc_type[i], er.efc_id[i], er.efc_source[i] = kind_before, er.efc_id[i - 1], er.efc_source[i - 1]
        i -= 1
    er.efc_type[i], er.efc_id[i], er.efc_source[i] = kind, ident, source


@kernel
def _list_sources(d, er):
    """Lists the sources of the world's rows in MuJoCo's order; returns their number.

    Writes: efc_type, efc_id, efc_source, the number of the scalar row.
    """
    n = 0
    for k in range(d.nrow[0]):
        # METRIC rows add to the integrator's metric and are no constraint rows; MuJoCo does not list them
        if any_(d.row_present[k] != 0.0) and d.row_type[k] != METRIC:
            _insert_sorted(er, n, k, d.row_type[k], d.row_id[k])
            n += 1
    return n


@kernel
def _write_state(er, i, hi):
    """Writes efc_state of row i, the piece of its cost (linear, quadratic, satisfied), and efc_frictionloss.

    hi: largest force.  The force of friction loss is between -hi and hi, that of a limit at least 0.
    """
    f, kind = er.efc_force[i], er.efc_type[i]
    state = STATE_QUADRATIC
    if kind in (FRICTION_DOF, FRICTION_TENDON):
        er.efc_frictionloss[i] = hi
        # at a bound the cost is linear
        if any_(f >= hi):
            state = STATE_LINEARNEG
        elif any_(f <= -hi):
            state = STATE_LINEARPOS
    elif kind != EQUALITY and any_(f <= 0.0):  # a limit that does not push
        state = STATE_SATISFIED
    er.efc_state[i] = state


@kernel
def _copy_rows(d, er, n):
    """Copies the fields and the Jacobian of the first n rows from their sources; row i of efc_J begins at nv i."""
    nv = er.efc_nv
    for i in range(n):
        er.efc_frictionloss[i] = 0.0
        for c in range(nv):
            er.efc_J[nv * i + c] = 0.0
        k = er.efc_source[i]
        row = d.row[k]
        for e in row_entries(d, k):
            er.efc_J[nv * i + d.row_dof[e]] = d.row_J[e]
        er.efc_pos[i], er.efc_margin[i], er.efc_vel[i] = row.pos, row.margin, row.vel
        er.efc_D[i], er.efc_aref[i], er.efc_force[i] = row.D, row.aref, row.force
        _write_state(er, i, row.hi)


# ---- softness --------------------------------------------------------------------------------------------------------
@kernel
def _solver_parameters(m, d, er, i):
    """Returns (solref, solimp) of row i."""
    kind, ident = er.efc_type[i], er.efc_id[i]
    if kind >= CONTACT_FRICTIONLESS:  # the kinds of contacts have the largest numbers
        k = er.contact_slot[ident]
        solref, solimp = d.con_solref[k], d.con_solimp[k]
    else:
        solref, solimp = row_parameters(m, kind, ident)
    return solref, solimp


@kernel
def _violation(m, er, i, first):
    """Returns the position error of row i less the margin; for a connect or weld, the norm of the errors of its rows.

    first: the row whose error is used: the first one of an elliptic contact's rows, else i.
    """
    r = er.efc_pos[first] - er.efc_margin[first]
    if er.efc_type[i] == EQUALITY and m.eq_type[er.efc_id[i]] in (EQ_CONNECT, EQ_WELD):
        square = 0.0
        for k in range(er.efc_count[EQUALITIES]):  # these rows come first
            if er.efc_id[k] == er.efc_id[i]:
                square += er.efc_pos[k] * er.efc_pos[k]
        r = sqrt(square)
    return r


@kernel
def _write_softness(m, d, er, i):
    """Writes R = 1 / D, diagA = R d / (1 - d) and KBIP = (K, B, d, dd/dr) of row i, with the impedance d."""
    kind, first = er.efc_type[i], i
    if kind == CONTACT_ELLIPTIC:  # the rows of a contact share the impedance of its first row
        first = er.contact_row[er.efc_id[i]]
    solref, solimp = _solver_parameters(m, d, er, i)
    shortest = shortest_timeconst(m)
    r = _violation(m, er, i, first)
    imp, rate = split_tangents(impedance(solimp, seed(r, 1.0)), 1)  # rate: derivative of the impedance by r
    K, B = reference(solref, solimp, shortest)
    # friction loss, and friction of a contact below, has no stiffness
    if kind in (FRICTION_DOF, FRICTION_TENDON):
        K = 0.0
        B = loss_damping(m, solref, solimp, shortest)
    elif first < i:  # a friction row of an elliptic cone
        k = er.contact_slot[er.efc_id[i]]
        K = 0.0
        B = friction_reference(d.con_solreffriction[k], B, solimp, shortest)
    elif kind != EQUALITY:  # limits and contacts
        K, B = limit_to_step(m, timestep(m), solref, imp, (K, B))
    er.efc_KBIP[i, 0], er.efc_KBIP[i, 1], er.efc_KBIP[i, 2], er.efc_KBIP[i, 3] = K, B, imp, rate
    er.efc_R[i] = 1.0 / er.efc_D[i]
    er.efc_diagA[i] = er.efc_R[i] * imp / (1.0 - imp)


@kernel
def _count_row(er, present, kind):
    """Counts a scalar row that is present in efc_count, in total and by its kind (mjtConstraint)."""
    if any_(present != 0.0) and kind != METRIC:
        er.efc_count[ALL] += 1
        if kind == EQUALITY:
            er.efc_count[EQUALITIES] += 1
        elif kind in (FRICTION_DOF, FRICTION_TENDON):
            er.efc_count[LOSSES] += 1
        else:
            er.efc_count[LIMITS] += 1


@stage(er=EFC)
def efc_numbers(m, d, er):
    """Counts the rows of each kind and lists the first row of each contact.

    efc_count holds the number of all rows, equalities, friction loss, limits, and contacts.
    Reads:  row_present, row_type, con_present, con_D, con_dim.
    Writes: efc_count (5,), contact_slot (efc_ncon,), contact_row (efc_ncon,).   Cost: O(nefc).
    """
    for k in range(CONTACTS):  # `list_contacts` writes efc_count[CONTACTS]
        er.efc_count[k] = 0
    for k in range(d.nrow[0]):
        _count_row(er, d.row_present[k], d.row_type[k])
    before = er.efc_count[ALL]  # number of rows that precede those of contacts
    er.efc_count[ALL] = list_contacts(m, d, er, before)


@stage(er=EFC)
def efc_rows(m, d, er):
    """Writes the rows of a world in MuJoCo's order, after `make_rows` and, for forces and states, after the solver.

    Reads:  row_*, con_*, primal.con_y, dual.f, cdof, cvel, subtree_com, geom_xpos, geom_xmat.
    Writes: efc_*, direction_*, contact_slot, contact_row.   Frame: world.   Cost: O(nefc nv).
    """
    efc_numbers(m, d, er)
    n = _list_sources(d, er)
    _copy_rows(d, er, n)
    for contact in range(er.efc_count[CONTACTS]):
        if er.contact_row[contact] >= 0:
            write_contact_rows(m, d, er, contact, er.contact_row[contact])
    for i in range(er.efc_count[ALL]):
        _write_softness(m, d, er, i)
