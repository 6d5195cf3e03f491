"""Matrix-free contact rows: contacts act on body motions and body forces, without a stored Jacobian.

The Jacobian row of a contact along a unit vector u is u . (velocity of body 2 - velocity of body 1) at the contact
point.  With w_b the spatial motion of body b at its tree's com, and r the contact point relative to it,

    J v = u . (l_2 + a_2 x r_2 - l_1 - a_1 x r_1),       w_b = sum over dofs i above b of S_i v_i = (a, l).

So J v costs one pass over the tree and a few products per contact, J^T f one force per contact and one pass back.  A
contact stores its position and frame.  Its basis is (n, mu_1 t_1, mu_2 t_2); in dimensions 4 and 6
rotation axes follow, for torsional and rolling friction: u . (a_2 - a_1) for u = mu_3 n and for (mu_4 t_1, mu_5 t_2).
The edges of a pyramid are the normal plus or minus each of the others.

Names
    x[k]         values along the basis of contact k, three per slot, for x = con_basis, primal.con_y, con_z, con_warm.
                 x[ANGULAR, k]: those about its rotation axes, in memory row nconmax + k, after those of all slots.
                 Dimension 4 has only the first rotation axis: the other two are zero vectors, and values along them are
                 0
    con_body[k]  the pushed body, on which the contact force along n acts, and the other body, which gets the opposite
                 force; the other one is 0 if it cannot move.  con_arm[k, 0], con_arm[k, 1]: contact point relative to
                 the com of their trees
    con_frame    rows n, t_1, t_2; con_friction: mu_1 to mu_5; con_dim: number of directions; con_carrier: bodies of
                 the two geoms
    bodies       con_wrench[b]: force on body b, about its tree's com.  Body motions w[b] = w_b, also about it
    S_i          cdof[i], motion axis of dof i, about the com of its tree
    reached      d.body_reached[b]: 0 if no contact acts on body b or below it, else a value below
    slots        primal.slot lists the contact slots in use; primal.live: 1 in worlds that a solver continues
Source: MuJoCo documentation, Computation, "Constraint model"; Featherstone, RBDA, sec. 5.3 (the recursion is RNE's).
"""

from featherlane.engine.prelude import *

ANGULAR = 1  # x[ANGULAR, k]: the values of contact k about its rotation axes, in con_basis, primal.con_* and coulomb.*

# values of body_reached; 0: no contact acts on the body or below it
PAIRED = 1  # only contacts between two bodies of one tree do, which are no body stiffness (within_tree.py)
REACHED = 2  # a contact acts there that may be a stiffness of the body
STIFF = 3  # as REACHED, and the sum of the pushing contacts has begun (stiffness.py)


@kernel
def moving_body(m, b):
    """Returns body b, or 0 if it cannot move."""
    return b if m.body_lastdof[b] >= 0 else 0


@kernel
def mark_contact_path(m, d, b, mark):
    """Marks body b and its ancestors in body_reached with PAIRED or REACHED, up to one with at least this mark."""
    while b > 0 and d.body_reached[b] < mark:
        d.body_reached[b] = mark
        b = m.body_parentid[b]


@kernel
def store_arm(m, d, k, side, b):
    """Stores the contact point relative to the com of body b's tree in con_arm; side: 0 pushed body, 1 other body."""
    d.con_arm[k, side] = d.con_pos[k] - d.subtree_com[m.body_rootid[b]]


@kernel
def basis_value(d, y, k, c):
    """Returns the value of y along basis vector c of contact k: 0 to 2 are (n, t_1, t_2), 3 to 5 the rotation axes.

    y: primal.con_y, con_z or con_warm.
    """
    # three values per row: row k has those along normal and tangents, row nconmax + k those about the rotation axes
    return flat(y)[3 * k + c if c < 3 else 3 * (d.nconmax + k) + c - 3]


@kernel
def friction_dot(d, k, x, y):
    """Returns the sum of x_i y_i over the friction directions of contact k: the directions of the basis other than n.

    x, y: values along the basis of all contacts, for example primal.con_y.
    """
    a, b = x[k], y[k]
    s = fma(a[1], b[1], a[2] * b[2])
    if d.con_dim[k] > 3:
        a, b = x[ANGULAR, k], y[ANGULAR, k]
        s = fma(a[0], b[0], fma(a[1], b[1], fma(a[2], b[2], s)))
    return s


@kernel
def line_sums(d, k, a):
    """Returns (y, v, yy, yv, vv) of contact k at step length a: values along n, then sums over the friction directions.

    y: con_y + a con_z, the rows at the end of the step; v: con_z.  yy = sum of y_i^2, yv of y_i v_i, vv of v_i^2.
    """
    v, v1, v2 = d.primal.con_z[k]
    y, y1, y2 = fma(a, d.primal.con_z[k], d.primal.con_y[k])
    yy, yv, vv = fma(y1, y1, y2 * y2), fma(y1, v1, y2 * v2), fma(v1, v1, v2 * v2)
    if d.con_dim[k] > 3:
        v_angular = d.primal.con_z[ANGULAR, k]
        y_angular = fma(a, v_angular, d.primal.con_y[ANGULAR, k])
        for i in unrolled(range(3)):
            yi, vi = y_angular[i], v_angular[i]
            yy, yv, vv = fma(yi, yi, yy), fma(yi, vi, yv), fma(vi, vi, vv)
    return y, v, yy, yv, vv


@kernel
def store_angular_basis(d, k, sign):
    """Stores the basis of contact k's rotation axes in con_basis[ANGULAR, k]: sign times (mu_3 n, mu_4 t_1, mu_5 t_2).

    Dimension 4 has only the spin about the normal.  sign: -1 if the basis is reversed, else 1.
    """
    c = d.contact[k]
    n, t1, t2 = c.frame.rows
    spin_axis = sign * c.friction[2] * n
    roll_axes = zeros(6)  # two rows
    if c.dim > 4:
        roll_axes = join(sign * c.friction[3] * t1, sign * c.friction[4] * t2)
    d.con_basis[ANGULAR, k] = join(spin_axis, roll_axes)


@kernel
def list_slots(d):
    """Lists the contact slots of all worlds in primal.slot, primal.nslot."""
    for k in range(d.ncon_slot[0]):
        d.primal.slot[k] = k
    d.primal.nslot[0] = d.ncon_slot[0]


@kernel
def list_live_slots(d):
    """Lists the contact slots of the worlds that the solver continues in primal.slot; primal.nslot: their number.

    The other worlds take steps of length 0, so their contacts do not change.
    """
    n = 0
    live = d.primal.live[0] > 0.0
    for k in range(d.ncon_slot[0]):
        if any_(live & (d.con_D[k] != 0.0)):  # D is 0 in worlds without the contact
            d.primal.slot[n] = k
            n += 1
    d.primal.nslot[0] = n


@kernel
def prepare_contacts(m, d):
    """Computes the fields of each contact slot that are constant during the iterations.

    Writes: con_body, con_arm (see the top of this file);
            con_basis: (n, mu_1 t_1, mu_2 t_2) and rotation axes, reversed if the first geom's body is the only one that
            moves; body_reached[b] > 0 if a contact acts on b or below it: passes over the tree skip all other bodies;
            primal.slot, nslot: all slots.
    """
    for b in range(m.nbody):
        d.body_reached[b] = 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        # the frame's normal points from the first geom to the second one, whose body is pushed
        other, pushed = moving_body(m, c.carrier[0]), moving_body(m, c.carrier[1])
        sign = 1.0
        if pushed == 0:  # the second body cannot move: the first one is pushed, by the reversed basis
            pushed = other
            other = 0
            sign = -1.0
        c.body[0] = pushed
        c.body[1] = other
        # a contact between two bodies of one tree is no stiffness of a body
        mark = PAIRED if other > 0 and m.body_treeid[pushed] == m.body_treeid[other] else REACHED
        mark_contact_path(m, d, pushed, mark)
        mark_contact_path(m, d, other, mark)
        store_arm(m, d, k, side=0, b=pushed)
        if other > 0:
            store_arm(m, d, k, side=1, b=other)
        # the three rows of con_basis are nine values: n, then both tangents
        n, t1, t2 = c.frame.rows
        flat(d.con_basis)[9 * k : 9 * k + 3] = sign * n
        if c.dim > 1:
            flat(d.con_basis)[9 * k + 3 : 9 * k + 9] = join(sign * c.friction[0] * t1, sign * c.friction[1] * t2)
        if c.dim > 3:
            store_angular_basis(d, k, sign)
    list_slots(d)


@kernel
def compute_body_motions(m, d, v, out):
    """Computes out[b] = w_b = w_parent + sum of S_i v_i over the dofs i of b, for the bodies that contacts reach.

    v: a joint-space vector.
    """
    out[0] = zeros(6)
    for b in range(1, m.nbody):  # parents before their children
        if d.body_reached[b]:
            w = out[m.body_parentid[b]]
            for i in body_dofs(m, b):
                w = fma(d.cdof[i], v[i], w)
            out[b] = w


@kernel
def pushed_body_arm(d, k):
    """Returns the contact point relative to the com of the pushed body's tree."""
    return d.con_arm[k, 0]


@kernel
def other_arm(d, k):
    """Returns the contact point relative to the com of the other body's tree."""
    return d.con_arm[k, 1]


@kernel
def point_velocity(b, r, w):
    """Returns the velocity of the point at arm r on body b, given the motions w of all bodies."""
    return w[b].linear + cross(w[b].angular, r)


@kernel
def compute_angular_rows(d, k, w, out):
    """Computes out[ANGULAR, k] = the rows of J v about contact k's rotation axes, given the body motions w of v."""
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    angular = w[pushed].angular
    if other > 0:
        angular = angular - w[other].angular
    out[ANGULAR, k] = d.con_basis[ANGULAR, k] @ angular


@kernel
def relative_velocity(d, k, w):
    """Returns the velocity of the pushed body relative to the other body at contact k, given body motions w."""
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    velocity = point_velocity(pushed, pushed_body_arm(d, k), w)
    if other > 0:
        velocity = velocity - point_velocity(other, other_arm(d, k), w)
    return velocity


@kernel
def compute_contact_rows(d, k, w, out):
    """Computes out[k] = the contact's rows of J v along n and the tangents, given the body motions w of v.

    `compute_angular_rows` computes those about the rotation axes.
    """
    velocity = relative_velocity(d, k, w)
    n, t1, t2 = d.con_basis[k].rows
    out[k][0] = dot(n, velocity)
    if d.con_dim[k] > 1:
        out[k][1] = dot(t1, velocity)
        out[k][2] = dot(t2, velocity)


@kernel
def clear_body_forces(m, d):
    """Sets con_wrench = 0 for all bodies that contacts reach."""
    for b in range(m.nbody):
        if d.body_reached[b]:
            d.con_wrench[b] = zeros(6)


@kernel
def add_contact_force(d, k, f):
    """Adds contact force f on the pushed body, in world axes, to con_wrench of both bodies.

    The pushed body gets (r x f, f), the other body -(r x f, f), each with its arm r about the com of its tree.
    """
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    d.con_wrench[pushed] += Force(join(cross(pushed_body_arm(d, k), f), f))
    if other > 0:
        d.con_wrench[other] -= Force(join(cross(other_arm(d, k), f), f))


@kernel
def add_contact_moment(d, k, moment):
    """Adds a contact's moment on the pushed body, in world axes, to con_wrench, and its opposite on the other body."""
    pushed, other = d.con_body[k, 0], d.con_body[k, 1]
    wrench = d.con_wrench[pushed]
    d.con_wrench[pushed] = join(wrench.moment + moment, wrench.translation)
    if other > 0:
        wrench = d.con_wrench[other]
        d.con_wrench[other] = join(wrench.moment - moment, wrench.translation)


@kernel
def body_forces_to_dofs(m, d, out):
    """Adds J^T of the body forces con_wrench to a joint-space vector: `project_body_forces`."""
    project_body_forces(m, d, out, absolute=0)


@kernel
def project_body_forces(m, d, out, absolute):
    """Computes out_i += S_i . (sum of con_wrench of the body of dof i and all bodies below it), from leaves to root.

    out: a joint-space vector.  absolute: 1 uses |S_i| in place of S_i, else 0.
    Writes: con_wrench of each body, to which it adds the forces on the bodies below.
    """
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k  # from the last body to the first: children before their parents
        if d.body_reached[b]:  # a contact acts on b or below it
            f = d.con_wrench[b]
            parent = m.body_parentid[b]
            if d.body_reached[parent]:  # false for the world only, which has no dofs
                d.con_wrench[parent] += f
            for i in body_dofs(m, b):
                S = fabs(d.cdof[i]) if absolute else d.cdof[i]
                x = out[i]
                for c in unrolled(range(6)):
                    x = fma(S[c], f[c], x)
                out[i] = x
