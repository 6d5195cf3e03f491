"""Computes how far geoms move in the coming step, which the flag `speculative` adds to the broad phase.

A geom moves with its velocity at the start of the step.  A point p of it moves by dx + dw x (p - c) about its centre c,
at most by its travel s = |dx| + |dw| r, where r is the radius of its bounding sphere.  A pair is swept if one of its
geoms travels at least as far as the least half extent of both bounding boxes: only then it can pass through the other.
Source: MuJoCo 4.0.1, chapter "Speculative contacts", sec. "Broadphase and sphere filtering".
"""

from featherlane.engine.prelude import *


@kernel
def sweeping(m):
    """Returns whether contacts are also detected within the step: the flag `speculative`, as in MuJoCo's native ccd."""
    return m.opt_enableflags & ENABLE_SPECULATIVE != 0 and m.opt_disableflags & DISABLE_NATIVECCD == 0


@kernel
def is_swept_pair(m, geom1, geom2):
    """Returns whether the pair is swept with `speculative`: two convex shapes, or a plane first and a convex shape."""
    type1, type2 = m.geom_type[geom1], m.geom_type[geom2]
    return (type1 == PLANE or SPHERE <= type1 <= MESH) and SPHERE <= type2 <= MESH


@kernel
def step_motion(m, d, geom):
    """Returns (dx, dw, s) of a geom in world axes: displacement of its centre [m], rotation vector [rad], travel [m].

    A sphere has dw = 0, because its rotation does not move its surface.  Reads: cvel, subtree_com, geom_xpos.
    """
    body = m.geom_bodyid[geom]
    dx, dw = Vec3(zeros(3)), Vec3(zeros(3))
    # bodies that are welded to the world do not move
    if m.body_weldid[body] > 0:
        vel = d.cvel[body]
        step = timestep(m)
        w = vel.angular
        # the velocity of the geom's centre is v + w x arm; cvel has v at the centre of mass of the body's tree
        arm = d.geom_xpos[geom] - d.subtree_com[m.body_rootid[body]]
        dx = step * (vel.linear + cross(w, arm))
        if m.geom_type[geom] != SPHERE:
            dw = step * w
    return dx, dw, fma(norm3(dw), m.geom_rbound[geom], norm3(dx))


@kernel
def least_extent(m, geom):
    """Returns the least half side of the geom's bounding box [m]."""
    x, y, z = m.geom_aabb[geom].half
    return fmin(x, fmin(y, z))


@kernel
def may_pass(m, geom1, geom2, travel):
    """Returns the mask of worlds where a geom of the pair with this travel [m] may pass through the other one."""
    extent = least_extent(m, geom2)
    if m.geom_type[geom1] != PLANE:
        extent = fmin(extent, least_extent(m, geom1))
    # travel > 0: a geom at rest passes through nothing, even if the extent is 0
    return (travel > 0.0) & (travel >= extent)


@kernel
def least_squared_distance(p, v):
    """Returns the least |p + t v|^2 of a point that moves from p to p + v: t = -(p . v) / |v|^2, clipped to 0 .. 1."""
    v_squared = dot(v, v)
    moves = v_squared > MINVAL
    t = where(moves, clip(-dot(p, v) / where(moves, v_squared, 1.0), 0.0, 1.0), 0.0)
    nearest = fma(t, v, p)
    return dot(nearest, nearest)


@kernel
def spheres_meet(m, d, geom1, geom2, reach):
    """Returns the mask of worlds where two bounding spheres come within reach during the step.

    reach: largest distance of the centres [m]; if geom1 is a plane, largest height of geom2's centre over the plane.
    A geom that is too slow to pass through the other one (`may_pass`) counts as resting.
    """
    dx1, _, s1 = step_motion(m, d, geom1)
    dx2, _, s2 = step_motion(m, d, geom2)
    at_rest = Vec3(zeros(3))
    dx1, dx2 = where(may_pass(m, geom1, geom2, s1), dx1, at_rest), where(may_pass(m, geom1, geom2, s2), dx2, at_rest)
    offset = d.geom_xpos[geom2] - d.geom_xpos[geom1]
    if m.geom_type[geom1] == PLANE:
        normal = d.geom_xmat[geom1].columns[2]
        height = dot(offset, normal)
        meet = fmin(height, height + dot(dx2, normal)) <= reach
    else:
        meet = least_squared_distance(offset, dx2 - dx1) <= reach * reach
    return meet
