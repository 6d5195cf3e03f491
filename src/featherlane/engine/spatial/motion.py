"""Spatial vectors: motions (angular, linear) and forces (moment, force), six values about one point in world axes.

Source: Featherstone, Rigid Body Dynamics Algorithms, ch. 2; the cross operators are eq. 2.31 and 2.32.
"""

from featherlane.engine.lanes import fma, join, kernel
from featherlane.engine.lanes.rows import attribute, operator
from featherlane.engine.spatial.types import Bounds, Box, Force, Motion, Vec3, Wrench
from featherlane.engine.spatial.vector import cross, cross_plus


@operator("dot", Motion, Force)
@operator("dot", Force, Motion)
@kernel
def dot6(a, b):
    """Returns a . b, the power of a force along a motion."""
    # one chain of six operations; two chains of three would take seven
    return fma(a[0], b[0], fma(a[1], b[1], fma(a[2], b[2], fma(a[3], b[3], fma(a[4], b[4], a[5] * b[5])))))


@attribute(Bounds, "low")
@attribute(Box, "centre")
@attribute(Wrench, "force")
@attribute(Force, "moment")
@attribute(Motion, "angular")
@kernel
def first3(a):
    """Returns the first three parts."""
    return Vec3(a[0], a[1], a[2])


@attribute(Bounds, "high")
@attribute(Box, "half")
@attribute(Wrench, "torque")
@attribute(Force, "translation")
@attribute(Motion, "linear")
@kernel
def last3(a):
    """Returns the last three parts."""
    return Vec3(a[3], a[4], a[5])


@kernel
def at_point(v, r):
    """Returns the motion v at the point at r: (w, u + w x r) with v = (w, u); the linear part is the point's."""
    return Motion(join(first3(v), last3(v) + cross(first3(v), r)))


@kernel
def cross_motion(v, m):
    """Returns v x m: the rate of change of the motion m when it moves with velocity v.

    (w x m_angular, w x m_linear + u x m_angular) with v = (w, u).
    """
    w = first3(v)
    u = last3(v)
    return Motion(join(cross(w, first3(m)), cross_plus(u, first3(m), cross(w, last3(m)))))


@kernel
def cross_force(v, f):
    """Returns v x* f: the rate of change of the force f when it moves with velocity v.

    (w x f_moment + u x f_linear, w x f_linear) with v = (w, u).
    """
    w = first3(v)
    u = last3(v)
    return Force(join(cross_plus(u, last3(f), cross(w, first3(f))), cross(w, last3(f))))
