"""Estimates the diagonal A = J M^-1 J^T of the first row of a contact, from which its regularisation follows.

Source: MuJoCo's documentation, "Computation", sec. "Diagonal regularizer"; the lower bound under Coulomb's law is
Featherlane's.
con_carrier[k, side] is the body on side 0 or 1 of contact k; body_invweight0 has each body's inverse weights, linear
and angular, in qpos0.  STICK (impedance.py) is the stiffness of friction under Coulomb's law, over the inverse mass.
`wants_exact`: the flag `diagexact` is set; then `exact_contact_diagonal` returns J M^-1 J^T in this state.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.diagonal import exact_contact_diagonal, wants_exact
from featherlane.engine.constraint.impedance import MINVAL

ROTATION_SHARE = 0.1  # under Coulomb's law A is at least this part of `inverse_rotational_mass` of both bodies


@kernel
def contact_lever(d, k, b):
    """Returns the point of contact k relative to the center of mass of body b."""
    return d.con_pos[k] - d.xipos[b]


@kernel
def inverse_rotational_mass(m, d, k, b):
    """Returns the largest inverse mass at contact k by rotation of body b: inverse inertia times the arm squared."""
    r = contact_lever(d, k, b)
    return m.body_invweight0[b].angular * dot(r, r)


@kernel
def contact_inertia(m, d, k, condim, mu2):
    """Returns A of the first row of contact k: along the normal, or a pyramid's first edge n + mu_1 t_1.

    condim: dimension of the contact; mu2: mu_1^2.
    - With the flag `diagexact` A is J M^-1 J^T in this state.
    - Else A = w_1 + w_2, the bodies' linear `body_invweight0`; for an edge A = (1 + mu_1^2) (w_1 + w_2).
    - Under Coulomb's law A is at least ROTATION_SHARE of the bodies' inverse masses by rotation.  Else a body whose
      center of mass lies on its only hinge would have w = 0, and friction of the unbounded stiffness STICK / A.
    """
    b1, b2 = d.con_carrier[k, 0], d.con_carrier[k, 1]
    edge = 1 if condim > 1 and has_pyramids(m) else 0  # 1: the first row is an edge of a pyramid
    A = m.body_invweight0[b1].linear + m.body_invweight0[b2].linear
    if wants_exact(m):
        A = exact_contact_diagonal(m, d, k, b1, b2, edge)
    elif edge:
        A = fma(mu2, A, A)  # (1 + mu_1^2) A
    if m.opt_contact_model == COULOMB:
        A = fmax(A, ROTATION_SHARE * (inverse_rotational_mass(m, d, k, b1) + inverse_rotational_mass(m, d, k, b2)))
    return A


@kernel
def contact_inertia_rate(m, d, k, shift1, shift2):
    """Returns dA / A of `contact_inertia` at contact k under Coulomb's law, by displacements of the levers r_1, r_2.

    shift1, shift2: displacements of r_1, r_2 [m].  With the bodies' angular inverse weights w,
        A = ROTATION_SHARE (w_1 |r_1|^2 + w_2 |r_2|^2),    dA = 2 ROTATION_SHARE (w_1 r_1 . shift1 + w_2 r_2 . shift2).
    In the code, `rotation` is this A and `half_change` is w_1 r_1 . shift1 + w_2 r_2 . shift2.
    In worlds in which the sum of the linear weights is larger, A is this sum, which is constant, and dA = 0.
    """
    b1, b2 = d.con_carrier[k, 0], d.con_carrier[k, 1]
    rotation = ROTATION_SHARE * (inverse_rotational_mass(m, d, k, b1) + inverse_rotational_mass(m, d, k, b2))
    half_change = m.body_invweight0[b1].angular * dot(contact_lever(d, k, b1), shift1)
    half_change = fma(m.body_invweight0[b2].angular, dot(contact_lever(d, k, b2), shift2), half_change)
    is_rotation = rotation > fmax(m.body_invweight0[b1].linear + m.body_invweight0[b2].linear, MINVAL)
    return where(is_rotation, 2.0 * ROTATION_SHARE * half_change / where(is_rotation, rotation, 1.0), 0.0)
