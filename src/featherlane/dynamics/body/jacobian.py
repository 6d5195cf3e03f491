"""Computes Jacobians of points and bodies of each world.

J qvel is the velocity of a point and the angular velocity of its body, in world axes; both parts are (3, nv).  `jac`
has six rows of nv entries, so entry (r, dof) is at nv r + dof: rows 0 to 2 are linear, rows 3 to 5 angular.  The
DoFs that move a body are its own and its ancestors', the chain of dof_parentid.  All motion axes of a tree refer to
its centre of mass, so the velocity of a point follows from the lever arm.
Source: Featherstone, Rigid Body Dynamics Algorithms, eq. 2.24; MuJoCo mj_jac.
"""

from featherlane.prelude import *
from featherlane.lanes import Field, Layout

JACOBIAN = Layout(
    "Jacobian",
    (
        Field("jac_nv", "size", doc="dofs"),
        Field("jac_nbody", "size", doc="bodies"),
        Field("jac_point", "real", (3,), "m", "the point, for Jacobians of a point", "", "scratch"),
        Field(
            "jac",
            "real",
            (6, "jac_nv"),
            "m, 1",
            "Jacobian of the point's velocity and of the angular velocity",
            "jacobian",
            "scratch",
        ),
        Field("jac_mass", "real", ("jac_nbody",), "kg", "mass of each subtree", "subtree_jacobian", "scratch"),
        Field("jac_M", "real", ("jac_nv", "jac_nv"), "kg, kg m, kg m^2", "inertia matrix", "dense_inertia", "scratch"),
    ),
)


@kernel
def point_of_object(m, d, jr, kind, i):
    """Returns (body, point in world coordinates) of object i of that kind; for an unlisted kind i is a body.

    OBJ_XBODY: the body's origin, OBJ_BODY: its centre of mass, OBJ_GEOM, OBJ_SITE: their origins, else the given point.
    """
    body, point = i, Vec3(jr.jac_point[0:3])
    if kind == OBJ_XBODY:
        point = d.xpos[i]
    elif kind == OBJ_BODY:
        point = d.xipos[i]
    elif kind == OBJ_GEOM:
        body, point = m.geom_bodyid[i], d.geom_xpos[i]
    elif kind == OBJ_SITE:
        body, point = m.site_bodyid[i], d.site_xpos[i]
    return body, point


@kernel
def chain_end(m, body):
    """Returns the last DoF that moves a body, the end of the chain of dof_parentid; -1: none."""
    while body > 0 and m.body_dofnum[body] == 0:
        body = m.body_parentid[body]
    return m.body_dofadr[body] + m.body_dofnum[body] - 1 if body > 0 else -1


@kernel
def _point_velocity(m, d, dof, point):
    """Returns the (linear, angular) velocity of a point of a body per unit velocity of a DoF that moves it.

    v + w x r with S = (w, v) and the lever r from the com of the tree to the point.
    """
    w = d.cdof[dof].angular
    lever = point - d.subtree_com[m.body_rootid[m.dof_bodyid[dof]]]
    return d.cdof[dof].linear + cross(w, lever), w


@kernel
def clear_jacobian(jr):
    """jac <- 0."""
    for k in range(6 * jr.jac_nv):
        jr.jac[k] = 0.0


@stage(jr=JACOBIAN)
def jacobian(m, d, jr, kind, i):
    """Computes the Jacobians of the origin of a body, geom or site, of a body's centre of mass, or of a given point.

    Reads:  cdof, subtree_com, xpos, xipos, geom_xpos, site_xpos, jac_point.
    Writes: jac (6, jac_nv) [m, 1].   Frame: world.   Cost: O(nv).
    """
    n = jr.jac_nv
    body, point = point_of_object(m, d, jr, kind, i)
    clear_jacobian(jr)
    dof = chain_end(m, body)
    while dof >= 0:
        v, w = _point_velocity(m, d, dof, point)
        for k in range(3):
            jr.jac[n * k + dof], jr.jac[n * (3 + k) + dof] = v[k], w[k]
        dof = m.dof_parentid[dof]


@kernel
def descends(m, i, body):
    """Returns whether body i is `body` or one of its descendants; ancestors have smaller ids."""
    while i > body:
        i = m.body_parentid[i]
    return i == body


@stage(jr=JACOBIAN)
def subtree_jacobian(m, d, jr, body):
    """Computes the Jacobian of the centre of mass of a body's subtree; zeros for a subtree without mass.

    A DoF of body k in the subtree moves the centre of mass of the subtree of k, weighted by its share of the mass.
    Reads:  cdof, subtree_com.
    Writes: jac (6, jac_nv) [m, 1], in its first three rows; jac_mass (jac_nbody,) [kg].
    Frame: world.   Cost: O(nv depth).
    """
    n = jr.jac_nv
    clear_jacobian(jr)
    # mass of each subtree
    for i in range(m.nbody):
        jr.jac_mass[i] = m.body_mass[i]
    for i in range(m.nbody - 1, 0, -1):
        jr.jac_mass[m.body_parentid[i]] += jr.jac_mass[i]
    mass = jr.jac_mass[body]
    inverse = where(mass > 0.0, 1.0 / where(mass > 0.0, mass, 1.0), 0.0)
    for dof in range(n):
        moved = m.dof_bodyid[dof]
        is_inside = descends(m, moved, body)
        if not is_inside and descends(m, body, moved):
            # a DoF of an ancestor moves the whole subtree
            moved, is_inside = body, True
        if is_inside:
            v, _ = _point_velocity(m, d, dof, d.subtree_com[moved])
            v = jr.jac_mass[moved] * inverse * v
            for k in range(3):
                jr.jac[n * k + dof] = v[k]
