"""Computes fluid forces on moving bodies: drag, lift and added mass, without a state of the fluid.

A body without fluid coefficients on its geoms is a box of the same mass and moments of inertia: each axis has viscous
resistance and quadratic drag.  Geoms with coefficients are ellipsoids, and replace the box of their body:

    added mass   (P x u + L x w, P x w),  P = rho m_A u,  L = rho I_A w: added fluid momentum, without added inertia
    Magnus       rho C_M V w x u
    Kutta        rho C_K A cos(alpha) (n x u) x u
    drag         -(6 pi beta r + rho |u| (C_blunt A + C_slender (A_max - A))) u
    torque       -(8 pi beta r^3 + rho |m * w|) w

with the velocities w, u of the shape relative to the fluid in the shape's axes, the projected area A, the normal n at
the projection and the moments m of angular drag.
Shapes are represented by axis ratios and flows by directions, which avoids underflow for small bodies.
Source: MuJoCo, chapter Computation, fluid forces.  A spatial vector holds rotation first.
"""

from featherlane.prelude import *
from featherlane.dynamics.body.com import point_wrench
from featherlane.dynamics.body.kinematics import geom_pose
from featherlane.model.geom import semi_axes_of

TINY = 1e-30  # limit of ratios in float32; only plates thinner than 1e-7 of their width come near


# ---- worlds with a fluid ---------------------------------------------------------------------------------------------
@kernel
def in_medium(m):
    """Returns the mask of worlds with a fluid."""
    return (m.opt_density[0] > 0.0) | (m.opt_viscosity[0] > 0.0)


@kernel
def medium_acts(m):
    """Returns whether passive forces are enabled."""
    both = DISABLE_SPRING | DISABLE_DAMPER
    return m.opt_disableflags & both != both


@kernel
def has_ellipsoids(m, i):
    """Returns the mask of worlds where geoms represent body i in the fluid."""
    found = 0.0
    for g in range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i]):
        found = where(m.geom_fluid[g].scale > 0.0, 1.0, found)
    return found > 0.0


@kernel
def medium_velocity(m, d, i, pos, R):
    """Returns (w, u): the velocity of a point of body i relative to the fluid, in the axes of R."""
    v = d.cvel[i]
    w, r = v.angular, pos - d.subtree_com[m.body_rootid[i]]
    u = v.linear + cross(w, r) - m.opt_wind[0]
    return R.T @ w, R.T @ u


# ---- the box of a body's inertia -------------------------------------------------------------------------------------
@kernel
def body_axes(m, d, i):
    """Returns the principal axes of inertia of body i."""
    return (d.xquat[i] @ m.body_iquat[i]).matrix


@kernel
def inertia_box(m, i):
    """Returns the sides of the box with the mass and the moments of inertia of body i, and whether it has mass."""
    x, y, z = m.body_inertia[i]
    mass = m.body_mass[i]
    s = 6.0 / fmax(mass, MINVAL)
    sides = sqrt(s * fmax(Vec3(y + z - x, x + z - y, x + y - z), MINVAL))
    return sides, mass >= MINVAL


@kernel
def box_resistance(m, box):
    """Returns (angular, linear) viscous resistance of the sphere with the mean side as diameter."""
    diameter = (box[0] + box[1] + box[2]) * (1.0 / 3.0)
    s = PI * m.opt_viscosity[0] * diameter
    return s * (diameter * diameter), 3.0 * s


@kernel
def box_drag(m, box):
    """Returns the quadratic drag along the three axes: (angular, linear)."""
    rho, x, y, z = m.opt_density[0], box[0], box[1], box[2]
    x4, y4, z4 = (x * x) * (x * x), (y * y) * (y * y), (z * z) * (z * z)
    s, h = rho * (1.0 / 64.0), 0.5 * rho
    return Vec3(s * x * (y4 + z4), s * y * (x4 + z4), s * z * (x4 + y4)), Vec3(h * y * z, h * x * z, h * x * y)


@kernel
def _resist(a, c, v):
    """Returns -(a + c_i |v_i|) v_i."""
    return -times3(v, fma(c, fabs(v), a))


@kernel
def _box_wrench(m, d, i, mask):
    """Computes the wrench on the box of body i, at the com of its tree, in worlds of the mask."""
    pos, R = d.xipos[i], body_axes(m, d, i)
    w, u = medium_velocity(m, d, i, pos, R)
    box, heavy = inertia_box(m, i)
    angular, linear = box_resistance(m, box)
    turning, moving = box_drag(m, box)
    return _to_com(m, d, i, pos, R, _resist(angular, turning, w), _resist(linear, moving, u), heavy & mask)


@kernel
def _to_com(m, d, i, pos, R, moment, force, mask):
    """Returns a moment and force at a point, in the axes of R, as a wrench at the tree's com; zeros off the mask."""
    f = point_wrench(d, R @ force, R @ moment, pos, m.body_rootid[i])
    return where(mask, f, Force(zeros(6)))


# ---- the ellipsoid of a geom -----------------------------------------------------------------------------------------
@kernel
def semi_axes(m, g):
    """Returns the semi-axes of the ellipsoid for geom g."""
    return semi_axes_of(m.geom_type[g], m.geom_size[g])


@kernel
def faces(r):
    """Returns (q, s): squares of r_y r_z etc. relative to the largest, s; they weigh the axes in a projection."""
    x, y, z = r[1] * r[2], r[2] * r[0], r[0] * r[1]
    largest = fmax(fmax(x, y), z)
    s = 1.0 / fmax(largest, TINY)
    x, y, z = s * x, s * y, s * z
    return Vec3(x * x, y * y, z * z), largest


@kernel
def times3(a, b):
    """Returns the products of components."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


@kernel
def sorted_axes(r):
    """Returns the (middle, largest) semi-axis."""
    largest = fmax(fmax(r[0], r[1]), r[2])
    smallest = fmin(fmin(r[0], r[1]), r[2])
    return r[0] + r[1] + r[2] - largest - smallest, largest


@kernel
def _moment(x, y, z):
    """Returns 8/15 pi x max(y, z)^4."""
    s = fmax(y, z)
    s = s * s
    return (8.0 / 15.0 * PI) * x * (s * s)


@kernel
def angular_coefficients(m, g, r):
    """Returns (m, s): moments of angular drag about the three axes relative to the largest, s."""
    slender, angular = m.geom_fluid[g].slender, m.geom_fluid[g].angular
    middle, largest = sorted_axes(r)
    most = _moment(middle, largest, largest)
    s = 1.0 / fmax(most, TINY)
    x, y, z = s * _moment(r[0], r[1], r[2]), s * _moment(r[1], r[2], r[0]), s * _moment(r[2], r[0], r[1])
    return Vec3(
        fma(angular, x, slender * (1.0 - x)),
        fma(angular, y, slender * (1.0 - y)),
        fma(angular, z, slender * (1.0 - z)),
    ), most


@kernel
def stokes(m, r):
    """Returns (angular, linear) viscous resistance of the sphere with the mean semi-axis as radius."""
    diameter = (r[0] + r[1] + r[2]) * (2.0 / 3.0)
    s = PI * m.opt_viscosity[0] * diameter
    return s * (diameter * diameter), 3.0 * s


@kernel
def volume(r):
    """Returns the volume of the ellipsoid."""
    return (4.0 / 3.0 * PI) * (r[0] * r[1] * r[2])


@kernel
def added_mass(m, g):
    """Returns mass and inertia of the added mass along the three axes, per density of the fluid."""
    c = m.geom_fluid[g]
    return Vec3(c.mass_x, c.mass_y, c.mass_z), Vec3(c.inertia_x, c.inertia_y, c.inertia_z)


@kernel
def added_momentum(m, g, w, u):
    """Returns (L, P): angular and linear momentum of the added mass."""
    rho, (mass, inertia) = m.opt_density[0], added_mass(m, g)
    return rho * times3(inertia, w), rho * times3(mass, u)


@kernel
def area_drag(m, g, r, area):
    """Returns the effective drag area: blunt for the projected area, slender for the rest of the largest section."""
    blunt, slender = m.geom_fluid[g].blunt, m.geom_fluid[g].slender
    middle, largest = sorted_axes(r)
    return fma(area, blunt, slender * (PI * largest * middle - area))


@kernel
def _ellipsoid_force(m, g, w, u):
    """Returns (moment, force) on the ellipsoid of geom g in the geom's axes."""
    rho, c, r = m.opt_density[0], m.geom_fluid[g], semi_axes(m, g)

    # the projection along the velocity: its area, and the normal of the surface there
    e, speed = normalize3(u)
    q, face = faces(r)
    n = times3(q, e)
    slope, height = dot(n, n), dot(n, e)
    area = PI * face * sqrt(slope / fmax(height, TINY))
    lift = PI * face * sqrt(height / fmax(slope, TINY)) * (speed * speed)

    turned, carried = added_momentum(m, g, w, u)
    kutta = c.kutta * rho * lift * cross(cross(n, e), e)
    magnus = c.magnus * rho * volume(r) * cross(w, u)
    angular, linear = stokes(m, r)
    drag = fma(rho * speed, area_drag(m, g, r, area), linear)
    moments, most = angular_coefficients(m, g, r)
    twist = fma(rho * most, norm3(times3(moments, w)), angular)

    moment = cross(carried, u) + cross(turned, w) - twist * w
    force = cross(carried, w) + (magnus + kutta) - drag * u
    return moment, force


@kernel
def _geom_wrench(m, d, i, g, mask):
    """Computes the wrench on the ellipsoid of geom g of body i, at the com of its tree, in worlds of the mask."""
    pos, R = geom_pose(m, d, g)
    w, u = medium_velocity(m, d, i, pos, R)
    moment, force = _ellipsoid_force(m, g, w, u)
    scale = m.geom_fluid[g].scale
    heavy = m.body_mass[i] >= MINVAL
    return _to_com(m, d, i, pos, R, scale * moment, scale * force, (scale != 0.0) & heavy & mask)


# ---- all bodies ------------------------------------------------------------------------------------------------------
@kernel
def _body_wrench(m, d, i):
    """Computes the fluid's wrench on body i, at the com of its tree."""
    ellipsoids = has_ellipsoids(m, i)
    f = Force(zeros(6))
    if any_(not_(ellipsoids)):
        f += _box_wrench(m, d, i, not_(ellipsoids))
    if any_(ellipsoids):
        for g in range(m.body_geomadr[i], m.body_geomadr[i] + m.body_geomnum[i]):
            if any_(m.geom_fluid[g].scale != 0.0):
                f += _geom_wrench(m, d, i, g, ellipsoids)
    return f


@kernel
def fluid_force(m, d):
    """qfrc_fluid <- fluid forces on all bodies, in worlds with a fluid.

    Wrenches of bodies are summed towards the root; the force of a DoF is the component along its axis.
    Source: MuJoCo mj_inertiaBoxFluidModel, mj_ellipsoidFluidModel.
    Reads:  cvel, xquat, xpos, xmat, xipos, subtree_com, cdof.   Writes: qfrc_fluid (nv,) [N, N m]; cfrc_fluid.
    Frame:  world axes at the tree's com.                        Cost: O(nbody + ngeom + nv).
    """
    medium = in_medium(m)
    for i in range(1, m.nbody):
        if m.body_treeid[i] >= 0:
            d.cfrc_fluid[i] = _body_wrench(m, d, i)
    for i in range(m.nbody - 1, 0, -1):
        body = m.body[i]
        if body.treeid >= 0:
            f, p, first = d.cfrc_fluid[i], body.parentid, body.dofadr
            if p > 0 and m.body_treeid[p] >= 0:
                d.cfrc_fluid[p] += f
            for k in range(first, first + body.dofnum):
                d.qfrc_fluid[k] = where(medium, dot(d.cdof[k], f), 0.0)
