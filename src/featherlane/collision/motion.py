"""Computes how far geoms move in the coming step, which the flag `speculative` adds to the broad phase.

A geom moves with its velocity at the start of the step.  A point p of it moves by dx + dw x (p - c) about its centre c,
at most by its travel s = |dx| + |dw| r, where r is the radius of its bounding sphere.  A pair is swept if one of its
geoms travels at least as far as the least half extent of both bounding boxes: only then it can pass through the other.
Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Broadphase and sphere filtering".
"""

from featherlane.prelude import *


@kernel
def sweeping(m):
    """Returns whether contacts are also detected within the step: the flag `speculative`, as in MuJoCo's native ccd."""
    return m.opt_enableflags & ENABLE_SPECULATIVE != 0 and m.opt_disableflags & DISABLE_NATIVECCD == 0


@kernel
def is_swept_pair(m, g, h):
    """Returns whether both shapes are convex, and at most the first one a plane."""
    a, b = m.geom_type[g], m.geom_type[h]
    return (a == PLANE or SPHERE <= a <= MESH) and SPHERE <= b <= MESH


@kernel
def step_motion(m, d, g):
    """Returns (dx, dw, s) of geom g: displacement of its centre, rotation vector, travel; a sphere does not rotate."""
    b, dx, dw = m.geom_bodyid[g], Vec3(zeros(3)), Vec3(zeros(3))
    if m.body_weldid[b] > 0:
        vel, h = d.cvel[b], timestep(m)
        spin = vel.angular
        arm = d.geom_xpos[g] - d.subtree_com[m.body_rootid[b]]
        dx = h * (vel.linear + cross(spin, arm))
        if m.geom_type[g] != SPHERE:
            dw = h * spin
    return dx, dw, fma(norm3(dw), m.geom_rbound[g], norm3(dx))


@kernel
def least_extent(m, g):
    """Returns the least half extent of the geom's bounding box."""
    x, y, z = m.geom_aabb[g].half
    return fmin(x, fmin(y, z))


@kernel
def fast(m, g, h, s):
    """Returns the mask of worlds where a geom of the pair with travel s may pass through the other."""
    extent = least_extent(m, h)
    if m.geom_type[g] != PLANE:
        extent = fmin(extent, least_extent(m, g))
    return (s > 0.0) & (s >= extent)


@kernel
def nearest_approach(p, v):
    """Returns the least |p + t v|^2 for t from 0 to 1."""
    vv = dot(v, v)
    moves = vv > MINVAL
    t = where(moves, clip(-dot(p, v) / where(moves, vv, 1.0), 0.0, 1.0), 0.0)
    q = fma(t, v, p)
    return dot(q, q)


@kernel
def spheres_meet(m, d, g, h, reach):
    """Returns the mask of worlds where two bounding spheres come within reach during the step.

    Slow geoms count as resting.  A plane acts as a half-space.
    """
    dx1, _, s1 = step_motion(m, d, g)
    dx2, _, s2 = step_motion(m, d, h)
    still = Vec3(zeros(3))
    dx1, dx2 = where(fast(m, g, h, s1), dx1, still), where(fast(m, g, h, s2), dx2, still)
    p = d.geom_xpos[h] - d.geom_xpos[g]
    if m.geom_type[g] == PLANE:
        n = d.geom_xmat[g].columns[2]
        height = dot(p, n)
        meet = fmin(height, height + dot(dx2, n)) <= reach
    else:
        meet = nearest_approach(p, dx2 - dx1) <= reach * reach
    return meet
