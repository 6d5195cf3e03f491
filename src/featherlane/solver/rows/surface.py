"""Moving surfaces of fixed geoms: conveyor belts, turntables.

    sigma(p) = R (v + w x R^T (p - p_g)),   v and w in the frame of geom g, R its orientation, p_g its centre

is the velocity of the surface at point p.  J v of a contact includes the difference of the two surfaces along the
tangents and, as the difference of the turns R w, about the normal: friction then moves bodies along with the surface.
The normal and rolling directions do not change.
Source: MuJoCo 4, attribute surfacevel of geoms; documentation, Computation, "Constraint model".
"""

from featherlane.prelude import *
from featherlane.solver.rows.rows import turn_index


@kernel
def surface_velocity(m, d, g, p):
    """Returns (sigma(p), R w) of geom g, -1: none."""
    v, w = zeros(d, 3), zeros(d, 3)
    if g >= 0:
        R = load9(d.geom_xmat, 9 * g)
        w = mat_mul_vec(R, load3(m.geom_surfacevel, 6 * g + 3))
        v = add3(mat_mul_vec(R, load3(m.geom_surfacevel, 6 * g)), cross(w, sub3(p, load3(d.geom_xpos, 3 * g))))
    return v, w


@kernel
def add_surface_velocities(m, d, con_y):
    """Adds B (velocity of the second surface - velocity of the first) to con_y, along the basis of each contact."""
    for k in range(d.ncon_slot[0]):
        if d.con_dim[k] > 1:
            p, b, mu = load3(d.con_pos, 3 * k), d.con_frictiondamping[k], 5 * k
            v1, w1 = surface_velocity(m, d, d.con_geom[2 * k], p)
            v2, w2 = surface_velocity(m, d, d.con_geom[2 * k + 1], p)
            v = sub3(v2, v1)
            along, across = dot3(load3(d.con_frame, 9 * k + 3), v), dot3(load3(d.con_frame, 9 * k + 6), v)
            con_y[3 * k + 1] = fma(b, d.con_friction[mu] * along, con_y[3 * k + 1])
            con_y[3 * k + 2] = fma(b, d.con_friction[mu + 1] * across, con_y[3 * k + 2])
            if d.con_dim[k] > 3:
                spin = dot3(load3(d.con_frame, 9 * k), sub3(w2, w1))
                con_y[3 * turn_index(d, k)] = fma(b, d.con_friction[mu + 2] * spin, con_y[3 * turn_index(d, k)])
