"""Computes how deep a point is inside a geom, by signed distance functions of shapes.

Source: MuJoCo's signed distance functions (engine_collision_sdf); that of the ellipsoid is of first order, and the
distance in a box is measured along directions that turn from radial ones to those of the faces.
"""

from featherlane.prelude import *


@kernel
def _depth_in_box(size, x):
    """Returns the distance to the faces along the unit vector of (size / margin), margin the distance to a face."""
    a = tuple(size[k] - fabs(x[k]) for k in range(3))
    inside = (a[0] > 0.0) & (a[1] > 0.0) & (a[2] > 0.0)
    a = tuple(where(inside, a[k], 1.0) for k in range(3))
    b = tuple(size[k] / a[k] for k in range(3))
    n = norm3(b)
    return where(inside, n * fmin(a[0] / b[0], fmin(a[1] / b[1], a[2] / b[2])), 0.0)


@kernel
def _depth_in_ellipsoid(size, x):
    """Returns the distance by the gradient of the implicit function."""
    a = tuple(x[k] / size[k] for k in range(3))
    k0, k1 = norm3(a), norm3(tuple(a[k] / size[k] for k in range(3)))
    return where(k1 > 0.0, k0 * (1.0 - k0) / where(k1 > 0.0, k1, 1.0), 0.0)


@kernel
def depth_in_shape(d, kind, size, x):
    """Returns the depth [m] of a point x in the frame of a shape; 0 outside, and for shapes without a function."""
    depth = zero(d)
    if kind == PLANE:
        depth = -x[2]
    elif kind == SPHERE:
        depth = size[0] - norm3(x)
    elif kind == CAPSULE:
        depth = size[0] - norm3((x[0], x[1], x[2] - clip(x[2], -size[1], size[1])))
    elif kind == CYLINDER:
        depth = fmin(size[0] - sqrt(fma(x[0], x[0], x[1] * x[1])), size[1] - fabs(x[2]))
    elif kind == ELLIPSOID:
        depth = _depth_in_ellipsoid(size, x)
    elif kind == BOX:
        depth = _depth_in_box(size, x)
    return fmax(depth, 0.0)
