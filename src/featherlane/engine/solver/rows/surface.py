"""Moving surfaces of fixed geoms: conveyor belts, turntables.

J v of a contact includes the velocity of the second surface relative to the first (constraint/surface.py) along the
tangents, and their relative angular velocity about the normal: friction then moves bodies along with the surface.
The normal and rolling directions do not change.
con_y[k] has J a - aref along (n, mu_1 t_1, mu_2 t_2), con_y[ANGULAR, k][0] that about the rotation axis mu_3 n, in
dimensions 4, 6.  aref of friction is -B J v, so a surface velocity adds B times its part along the basis.
con_frame has the rows n, t_1, t_2, con_friction mu_1 to mu_5.
`surface_velocity` returns (velocity at a point, angular velocity) of the surface of a geom.
Source: MuJoCo 4, attribute surfacevel of geoms; documentation, Computation, "Constraint model".
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.surface import surface_velocity
from featherlane.engine.solver.rows.rows import ANGULAR


@kernel
def add_surface_velocities(m, d, con_y):
    """Adds B (velocity of the second surface - velocity of the first) to con_y, along the basis of each contact.

    B is the damping of the contact's friction rows; the surfaces are those of its two geoms.
    """
    for k in range(d.ncon_slot[0]):
        c = d.contact[k]
        if c.dim > 1:
            pos, damping = c.pos, c.frictiondamping
            # velocity of each surface at the contact point, and its angular velocity
            v1, w1 = surface_velocity(m, d, c.geom[0], pos)
            v2, w2 = surface_velocity(m, d, c.geom[1], pos)
            v = v2 - v1
            n, t1, t2 = c.frame.rows
            con_y[k][1] = fma(damping, c.friction[0] * dot(t1, v), con_y[k][1])
            con_y[k][2] = fma(damping, c.friction[1] * dot(t2, v), con_y[k][2])
            if c.dim > 3:
                spin = dot(n, w2 - w1)
                con_y[ANGULAR, k][0] = fma(damping, c.friction[2] * spin, con_y[ANGULAR, k][0])
