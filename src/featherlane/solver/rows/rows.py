"""Matrix-free contact rows: contacts act on body motions and body forces, without a stored Jacobian.

The Jacobian row of a contact along a unit vector u is u . (velocity of body 2 - velocity of body 1) at the contact
point.  With w_b the spatial motion of body b at its tree's com, and r the contact point relative to it,

    J v = u . (l_2 + a_2 x r_2 - l_1 - a_1 x r_1),       w_b = sum over dofs i above b of S_i v_i = (a, l).

So J v costs one pass over the tree and a few products per contact, J^T f one force per contact and one pass back.  A
contact stores its position and frame.  Its basis is (n, mu_1 t_1, mu_2 t_2); in dimensions 4 and 6 turns
follow, u . (a_2 - a_1) for u = mu_3 n and for (mu_4 t_1, mu_5 t_2).  The edges of a pyramid are the normal plus or
minus each of the others.  Values of turns are stored after those of the slots: x[TURN, k], after x[k].
Source: MuJoCo documentation, Computation, "Constraint model"; Featherstone, RBDA, sec. 5.3 (the recursion is RNE's).
"""

from featherlane.prelude import *

TURN = 1  # x[TURN, k]: the values of contact k along its turns, in con_basis, primal.con_* and coulomb.*

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
    """Marks body b and its ancestors as reached by a contact."""
    while b > 0 and d.body_reached[b] < mark:
        d.body_reached[b] = mark
        b = m.body_parentid[b]


@kernel
def store_arm(m, d, k, place, b):
    """Stores the contact point relative to the com of body b's tree."""
    d.con_arm[k, place] = d.con_pos[k] - d.subtree_com[m.body_rootid[b]]


@kernel
def basis_value(d, y, k, c):
    """Returns the value along basis vector c of contact k, of primal.con_y, con_z or con_warm."""
    return flat(y)[3 * k + c if c < 3 else 3 * (d.nconmax + k) + c - 3]


@kernel
def others(d, k, x, y):
    """Returns the sum of x_i y_i over the directions of the basis other than n."""
    a, b = x[k], y[k]
    s = fma(a[1], b[1], a[2] * b[2])
    if d.con_dim[k] > 3:
        a, b = x[TURN, k], y[TURN, k]
        s = fma(a[0], b[0], fma(a[1], b[1], fma(a[2], b[2], s)))
    return s


@kernel
def store_turns(d, k, sign):
    """Stores the basis of contact k's turns; dimension 4 has only the spin about the normal."""
    c = d.contact[k]
    n, t, u = c.frame.rows
    spin, rolls = sign * c.friction[2] * n, zeros(6)
    if c.dim > 4:
        rolls = join(sign * c.friction[3] * t, sign * c.friction[4] * u)
    d.con_basis[TURN, k] = join(spin, rolls)


@kernel
def list_slots(d):
    """Lists the contact slots of all worlds."""
    for k in range(d.ncon_slot[0]):
        d.primal.slot[k] = k
    d.primal.nslot[0] = d.ncon_slot[0]


@kernel
def list_live_slots(d):
    """Lists the contact slots of the worlds that the solver continues; the others take steps of length 0."""
    n, live = 0, d.primal.live[0] > 0.0
    for k in range(d.ncon_slot[0]):
        if any_(live & (d.con_D[k] != 0.0)):
            d.primal.slot[n] = k
            n += 1
    d.primal.nslot[0] = n


@kernel
def prepare_contacts(m, d):
    """Computes the constant data of each contact slot for the iterations.

    con_body: the body that the basis pushes, and the other one if both move (else 0).  con_arm: the contact point
    relative to the com of their trees.  con_basis: (n, mu_1 t_1, mu_2 t_2), reversed if geom 1's body is the only one
    that moves.  body_reached[b] > 0 if a contact acts on b or below it; passes over the tree skip all others.
    """
    for b in range(m.nbody):
        d.body_reached[b] = 0
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        other, b = moving_body(m, c.carrier[0]), moving_body(m, c.carrier[1])
        sign = 1.0
        if b == 0:
            b, other, sign = other, 0, -1.0
        c.body[0] = b
        c.body[1] = other
        mark = PAIRED if other > 0 and m.body_treeid[b] == m.body_treeid[other] else REACHED
        mark_contact_path(m, d, b, mark)
        mark_contact_path(m, d, other, mark)
        store_arm(m, d, k, 0, b)
        if other > 0:
            store_arm(m, d, k, 1, other)
        n, t, u = c.frame.rows
        flat(d.con_basis)[9 * k : 9 * k + 3] = sign * n
        if c.dim > 1:
            flat(d.con_basis)[9 * k + 3 : 9 * k + 9] = join(sign * c.friction[0] * t, sign * c.friction[1] * u)
        if c.dim > 3:
            store_turns(d, k, sign)
    list_slots(d)


@kernel
def body_motion(m, d, v, out):
    """Computes w_b = w_parent + sum of S_i v_i over the dofs of b, for the bodies that contacts reach."""
    out[0] = zeros(6)
    for b in range(1, m.nbody):
        if d.body_reached[b]:
            w = out[m.body_parentid[b]]
            i0 = m.body_dofadr[b]
            for i in range(i0, i0 + m.body_dofnum[b]):
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
    """Returns the velocity of the point at arm r on body b, given body motions w."""
    return w[b].linear + cross(w[b].angular, r)


@kernel
def turning_rows(d, k, w, out):
    """Computes the rows of J v along the contact's turns, given the body motions of v."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    a = w[b].angular
    if other > 0:
        a = a - w[other].angular
    out[TURN, k] = d.con_basis[TURN, k] @ a


@kernel
def relative_velocity(d, k, w):
    """Returns the velocity of the pushed body relative to the other one at contact k, given body motions w."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    u = point_velocity(b, pushed_body_arm(d, k), w)
    if other > 0:
        u = u - point_velocity(other, other_arm(d, k), w)
    return u


@kernel
def contact_row_products(d, k, w, out):
    """Computes out[k] = the contact's three basis rows of J v from the body motions of v; turns: `turning_rows`."""
    u = relative_velocity(d, k, w)
    n, t, b = d.con_basis[k].rows
    out[k][0] = dot(n, u)
    if d.con_dim[k] > 1:
        out[k][1] = dot(t, u)
        out[k][2] = dot(b, u)


@kernel
def clear_body_forces(m, d):
    """Clears the contact forces on all bodies."""
    for b in range(m.nbody):
        if d.body_reached[b]:
            d.con_wrench[b] = zeros(6)


@kernel
def add_contact_force(d, k, f):
    """Adds contact force f (on the pushed body, world axes) as a body force at the com of each body's tree."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    d.con_wrench[b] += Force(join(cross(pushed_body_arm(d, k), f), f))
    if other > 0:
        d.con_wrench[other] -= Force(join(cross(other_arm(d, k), f), f))


@kernel
def add_contact_moment(d, k, t):
    """Adds a contact moment t, as `add_contact_force`."""
    b, other = d.con_body[k, 0], d.con_body[k, 1]
    f = d.con_wrench[b]
    d.con_wrench[b] = join(f.moment + t, f.translation)
    if other > 0:
        f = d.con_wrench[other]
        d.con_wrench[other] = join(f.moment - t, f.translation)


@kernel
def body_forces_to_dofs(m, d, out):
    """Computes out_i += S_i . (contact forces on the bodies below dof i): a pass from the leaves to the root."""
    for k in range(m.nbody - 1):
        b = m.nbody - 1 - k
        if d.body_reached[b]:
            f = d.con_wrench[b]
            p = m.body_parentid[b]
            if d.body_reached[p]:
                d.con_wrench[p] += f
            i0 = m.body_dofadr[b]
            for i in range(i0, i0 + m.body_dofnum[b]):
                s = d.cdof[i]
                x = out[i]
                for c in unrolled(range(6)):
                    x = fma(s[c], f[c], x)
                out[i] = x
