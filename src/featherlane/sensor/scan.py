"""Places the rays of a pattern at a frame of the robot, and chooses the geoms that they can meet."""

from featherlane.prelude import *
from featherlane.collision.rays.ray_shape import FAR
from featherlane.sensor.image import near_bundle

BASE, YAW, WORLD = 0, 1, 2  # alignments of a pattern's axes: the frame's, the frame's heading, the world's
STEEP = 0.1  # horizontal length of the frame's x axis below which its y axis defines the heading


@kernel
def aligned_axes(R, alignment):
    """Returns the rotation of a pattern: that of the frame, its rotation about the vertical alone, or the identity."""
    no = 0.0 * R[0]
    one = no + 1.0
    length = sqrt(fma(R[0], R[0], R[3] * R[3]))
    level = length >= STEEP
    x, y = where(level, R[0], R[4]), where(level, R[3], -R[1])
    length = sqrt(fma(x, x, y * y))
    x, y = x / length, y / length
    if alignment == YAW:
        R = x, -y, no, y, x, no, no, no, one
    if alignment == WORLD:
        R = one, no, no, no, one, no, no, no, one
    return R


@kernel
def choose_near(m, d, frame, bundle, chosen):
    """Sets `chosen` to the candidates near a bundle of rays; returns their number, and NaN if a pose is not finite.

    Args:
        frame: (position, rotation) of the pattern.
        bundle: numbers of `bundle_of` (simulation/query/pattern.py), in the pattern's frame.
        chosen: field of ints that receives the geoms.
    """
    pos, R = frame
    center, axis = load3(bundle, 0), load3(bundle, 3)
    rho, slope, behind, reach = load4(bundle, 6)
    center, axis = mat_mul_vec(R, tuple(center[i] + zero(d) for i in range(3))), mat_mul_vec(R, axis)
    origin, cutoff = add3(pos, center), real(d, d.ray.cutoff[0])
    spoiled, n = dot3(pos, (R[0] + R[1], R[3] + R[4], R[6] + R[7])), 0
    for k in range(d.camera.ncandidate[0]):
        g = d.camera.candidate[k]
        spoiled = spoiled + (dot3(load3(d.geom_xpos, 3 * g), load3(d.geom_xmat, 9 * g)) + d.geom_xmat[9 * g + 8])
        near, _, r = near_bundle(m, d, g, axpy3(-behind, axis, origin), axis, rho, slope)
        if slope < 0.0:
            near = true_mask(d)
        away = norm3(sub3(load3(d.geom_xpos, 3 * g), origin)) - r > cutoff + reach
        if m.geom_type[g] == PLANE or any_(near & not_(away)):
            chosen[n] = g
            n += 1
    return n, where(fabs(spoiled) < FAR, 0.0, spoiled - spoiled)
