"""Computes fluid forces on moving bodies: drag, lift and added mass, without a state of the fluid.

A body without fluid coefficients on its geoms is a box of the same mass and moments of inertia: each axis has viscous
resistance and quadratic drag.  Geoms with coefficients are ellipsoids, and replace the box of their body:

    added mass   (P x u + L x w, P x w),  P = rho m_A u,  L = rho I_A w: added fluid momentum, without added inertia
    Magnus       rho C_M V w x u
    Kutta        rho C_K A cos(alpha) (n x u) x u
    drag         -(6 pi beta r + rho |u| (C_blunt A + C_slender (A_max - A))) u
    torque       -(8 pi beta r^3 + rho |m * w|) w

with the velocities w, u of the shape relative to the fluid in the shape's axes, the projected area A along u, the angle
alpha between u and the normal n of the surface at the projection, the volume V, the mean semi-axis r, and the moments m
of angular drag.  m_A and I_A are mass and inertia of the added mass per density, by axis.  m_A u, I_A w and
m * w are products of components.
geom_fluid[g] holds the coefficients of geom g: scale (0: the geom is no ellipsoid), blunt, slender and angular (drag),
kutta (C_K), magnus (C_M), and the added mass and inertia along each axis.
Shapes are represented by axis ratios and flows by directions, which avoids underflow for small bodies.
Source: MuJoCo, chapter Computation, fluid forces.  A spatial vector holds rotation first.
"""

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.body.com import point_wrench
from featherlane.engine.dynamics.body.kinematics import geom_pose
from featherlane.engine.model.geom import semi_axes_of

TINY = 1e-30  # limit of ratios in float32; only plates thinner than 1e-7 of their width come near


# ---- worlds with a fluid ---------------------------------------------------------------------------------------------
@kernel
def fluid_worlds(m):
    """Returns the mask of worlds with a fluid: the density or the viscosity is positive."""
    return (m.opt_density[0] > 0.0) | (m.opt_viscosity[0] > 0.0)


@kernel
def passive_forces_act(m):
    """Returns whether passive forces are enabled: springs and dampers are not both disabled."""
    both = DISABLE_SPRING | DISABLE_DAMPER
    return m.opt_disableflags & both != both


@kernel
def has_ellipsoids(m, i):
    """Returns the mask of worlds where geoms represent body i in the fluid."""
    found = 0.0
    for g in body_geoms(m, i):
        found = where(m.geom_fluid[g].scale > 0.0, 1.0, found)
    return found > 0.0


@kernel
def velocity_in_fluid(m, d, i, pos, R):
    """Returns the (angular, linear) velocity (w, u) of a point of body i relative to the fluid, in the axes of R.

    pos: the point in world coordinates;  R: a rotation matrix from the result's axes to the world's.
    """
    v = d.cvel[i]
    w = v.angular
    r = pos - d.subtree_com[m.body_rootid[i]]
    u = v.linear + cross(w, r) - m.opt_wind[0]
    return R.T @ w, R.T @ u


# ---- the box of a body's inertia -------------------------------------------------------------------------------------
@kernel
def body_axes(m, d, i):
    """Returns the principal axes of inertia of body i."""
    return (d.xquat[i] @ m.body_iquat[i]).matrix


@kernel
def inertia_box(m, i):
    """Returns (sides, whether it has mass) of the box with the mass and the moments of inertia of body i.

    Side x is sqrt(6 (I_y + I_z - I_x) / mass), because I_x = mass (y^2 + z^2) / 12.
    """
    x, y, z = m.body_inertia[i]
    mass = m.body_mass[i]
    s = 6.0 / fmax(mass, MINVAL)
    sides = sqrt(s * fmax(Vec3(y + z - x, x + z - y, x + y - z), MINVAL))
    return sides, mass >= MINVAL


@kernel
def box_resistance(m, box):
    """Returns (angular, linear) viscous resistance of the sphere with the mean side as diameter: pi beta (D^3, 3 D)."""
    diameter = (box[0] + box[1] + box[2]) * (1.0 / 3.0)
    s = PI * m.opt_viscosity[0] * diameter
    return s * (diameter * diameter), 3.0 * s


@kernel
def box_drag(m, box):
    """Returns the quadratic drag along the three axes: (angular, linear).

    Linear along x: rho y z / 2.  Angular about x: rho x (y^4 + z^4) / 64.
    """
    rho, x, y, z = m.opt_density[0], box[0], box[1], box[2]
    x4, y4, z4 = (x * x) * (x * x), (y * y) * (y * y), (z * z) * (z * z)
    s = rho * (1.0 / 64.0)
    half = 0.5 * rho
    angular = Vec3(s * x * (y4 + z4), s * y * (x4 + z4), s * z * (x4 + y4))
    return angular, Vec3(half * y * z, half * x * z, half * x * y)


@kernel
def _resistance(viscous, drag, v):
    """Returns -(viscous + drag_i |v_i|) v_i, component by component."""
    return -times3(v, fma(drag, fabs(v), viscous))


@kernel
def _box_wrench(m, d, i, mask):
    """Returns the wrench on the box of body i, at the com of its tree, in worlds of the mask; zeros elsewhere."""
    pos = d.xipos[i]
    R = body_axes(m, d, i)
    w, u = velocity_in_fluid(m, d, i, pos, R)
    box, has_mass = inertia_box(m, i)
    angular, linear = box_resistance(m, box)
    moment_drag, force_drag = box_drag(m, box)
    moment = _resistance(angular, moment_drag, w)
    force = _resistance(linear, force_drag, u)
    return _wrench_at_com(m, d, i, pos, R, moment, force, has_mass & mask)


@kernel
def _wrench_at_com(m, d, i, pos, R, moment, force, mask):
    """Returns a moment and force at a point, in the axes of R, as a wrench at the tree's com; zeros off the mask."""
    wrench = point_wrench(d, R @ force, R @ moment, pos, m.body_rootid[i])
    return where(mask, wrench, Force(zeros(6)))


# ---- the ellipsoid of a geom -----------------------------------------------------------------------------------------
@kernel
def semi_axes(m, g):
    """Returns the semi-axes of the ellipsoid for geom g."""
    return semi_axes_of(m.geom_type[g], m.geom_size[g])


@kernel
def face_areas(r):
    """Returns (q, face): squares of the products r_y r_z, r_z r_x, r_x r_y relative to the largest, and the largest.

    pi times a product is the area of a cross section; the squares weigh the axes in a projection.  r: semi-axes.
    """
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
    """Returns the (middle, largest) of three semi-axes r."""
    largest = fmax(fmax(r[0], r[1]), r[2])
    smallest = fmin(fmin(r[0], r[1]), r[2])
    return r[0] + r[1] + r[2] - largest - smallest, largest


@kernel
def _drag_moment(x, y, z):
    """Returns 8/15 pi x max(y, z)^4: the moment of angular drag about the semi-axis x."""
    largest = fmax(y, z)
    square = largest * largest
    return (8.0 / 15.0 * PI) * x * (square * square)


@kernel
def angular_drag(m, g, r):
    """Returns (moments, largest_moment): moments of angular drag about the three axes, relative to the largest moment.

    moments_i = angular x_i + slender (1 - x_i), where x_i is the `_drag_moment` about axis i relative to the largest
    one that the semi-axes r can have in any order.  angular, slender: coefficients of geom g.
    """
    slender, angular = m.geom_fluid[g].slender, m.geom_fluid[g].angular
    middle, largest = sorted_axes(r)
    largest_moment = _drag_moment(middle, largest, largest)
    s = 1.0 / fmax(largest_moment, TINY)
    x = s * _drag_moment(r[0], r[1], r[2])
    y = s * _drag_moment(r[1], r[2], r[0])
    z = s * _drag_moment(r[2], r[0], r[1])
    return Vec3(
        fma(angular, x, slender * (1.0 - x)),
        fma(angular, y, slender * (1.0 - y)),
        fma(angular, z, slender * (1.0 - z)),
    ), largest_moment


@kernel
def stokes_resistance(m, r):
    """Returns (angular, linear) resistance pi beta (D^3, 3 D) of the sphere whose radius is the mean semi-axis."""
    diameter = (r[0] + r[1] + r[2]) * (2.0 / 3.0)
    s = PI * m.opt_viscosity[0] * diameter
    return s * (diameter * diameter), 3.0 * s


@kernel
def volume(r):
    """Returns the volume of the ellipsoid."""
    return (4.0 / 3.0 * PI) * (r[0] * r[1] * r[2])


@kernel
def added_mass(m, g):
    """Returns (mass, inertia) of the added mass along the three axes, per density of the fluid."""
    fluid = m.geom_fluid[g]
    return Vec3(fluid.mass_x, fluid.mass_y, fluid.mass_z), Vec3(fluid.inertia_x, fluid.inertia_y, fluid.inertia_z)


@kernel
def added_momentum(m, g, w, u):
    """Returns (L, P): angular and linear momentum of the added mass."""
    rho = m.opt_density[0]
    mass, inertia = added_mass(m, g)
    return rho * times3(inertia, w), rho * times3(mass, u)


@kernel
def drag_area(m, g, r, area):
    """Returns the effective drag area: C_blunt area + C_slender (largest section - area), `area` the projected one."""
    blunt, slender = m.geom_fluid[g].blunt, m.geom_fluid[g].slender
    middle, largest = sorted_axes(r)
    return fma(area, blunt, slender * (PI * largest * middle - area))


@kernel
def _ellipsoid_force(m, g, w, u):
    """Returns (moment, force) on the ellipsoid of geom g in the geom's axes; (w, u): its angular and linear velocity.

    The terms are those of the module docstring: added mass, Magnus, Kutta, drag, torque.
    """
    rho, fluid = m.opt_density[0], m.geom_fluid[g]
    r = semi_axes(m, g)

    # the projection along the velocity e |u|: its area A, and the normal n of the surface there (not of unit length)
    # n_i = q_i e_i, q the squared face products relative to the largest;   A = pi face sqrt(n.n / n.e)
    e, speed = normalize3(u)
    q, face = face_areas(r)
    n = times3(q, e)
    nn, ne = dot(n, n), dot(n, e)
    area = PI * face * sqrt(nn / fmax(ne, TINY))
    # |u|^2 A cos(alpha) / |n|, with cos(alpha) = n . e / |n|
    lift = PI * face * sqrt(ne / fmax(nn, TINY)) * (speed * speed)

    L, P = added_momentum(m, g, w, u)
    kutta = fluid.kutta * rho * lift * cross(cross(n, e), e)
    magnus = fluid.magnus * rho * volume(r) * cross(w, u)
    angular, linear = stokes_resistance(m, r)
    drag = fma(rho * speed, drag_area(m, g, r, area), linear)
    moments, largest_moment = angular_drag(m, g, r)
    torque = fma(rho * largest_moment, norm3(times3(moments, w)), angular)

    moment = cross(P, u) + cross(L, w) - torque * w
    force = cross(P, w) + (magnus + kutta) - drag * u
    return moment, force


@kernel
def _geom_wrench(m, d, i, g, mask):
    """Returns the wrench on the ellipsoid of geom g of body i, at the com of its tree, in worlds of the mask.

    It is 0 in other worlds, and for a massless body or a geom with scale 0.
    """
    pos, R = geom_pose(m, d, g)
    w, u = velocity_in_fluid(m, d, i, pos, R)
    moment, force = _ellipsoid_force(m, g, w, u)
    scale = m.geom_fluid[g].scale
    has_mass = m.body_mass[i] >= MINVAL
    return _wrench_at_com(m, d, i, pos, R, scale * moment, scale * force, (scale != 0.0) & has_mass & mask)


# ---- all bodies ------------------------------------------------------------------------------------------------------
@kernel
def _body_wrench(m, d, i):
    """Returns the fluid's wrench on body i at the com of its tree.

    It is the sum over the ellipsoids of the body, or the wrench on its box in worlds where it has no ellipsoid.
    """
    ellipsoids = has_ellipsoids(m, i)
    f = Force(zeros(6))
    if any_(not_(ellipsoids)):
        f += _box_wrench(m, d, i, not_(ellipsoids))
    if any_(ellipsoids):
        for g in body_geoms(m, i):
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
    has_fluid = fluid_worlds(m)
    # a body outside all trees cannot move
    for i in range(1, m.nbody):
        if m.body_treeid[i] >= 0:
            d.cfrc_fluid[i] = _body_wrench(m, d, i)
    # children before their parents
    for i in range(m.nbody - 1, 0, -1):
        body = m.body[i]
        if body.treeid >= 0:
            f, p, first = d.cfrc_fluid[i], body.parentid, body.dofadr
            if p > 0 and m.body_treeid[p] >= 0:
                d.cfrc_fluid[p] += f
            for k in range(first, first + body.dofnum):
                d.qfrc_fluid[k] = where(has_fluid, dot(d.cdof[k], f), 0.0)
