"""Parts that are drawn flush do not touch: hulls overlap by more than the rounding of their vertices, or not at all.

Flanges of a robot lie in one plane, and MuJoCo stores the vertices of meshes in float32: whether such parts touch would
be decided by rounding, anew in each pose.  Here polytopes of which one is a hull touch where they overlap by more than
`convex.flush`.  What a world remembers of them (`recall`) proves that they are apart where half of that is left; and
the plane of a face, which is flat but for an error, counts only where that error does not reach from one to the other.
So what is remembered and what is found never differ on whether they touch.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import core_limit, is_convex, is_curved


@kernel
def flush(m1, d1):
    """By how much the two shapes may overlap without touching [m]: 0 unless both are polytopes and one is a hull."""
    slack = 0.0 * d1.shapes.limit[0]
    if not is_curved(d1) and is_convex(m1, d1, 0) and is_convex(m1, d1, 1):
        for side in range(2):
            if d1.shapes.type[side] == MESH:
                slack = slack + 2.0 * m1.hull_error[d1.shapes.data[side]]
    return slack


@kernel
def is_decided(d1, dist, error):
    """Is it the same for all distances of the cores, from one to what is farther by an error, whether they touch?"""
    limit, slack = core_limit(d1), d1.convex.flush[0]
    return slack == 0.0 or dist > limit - slack or dist + error <= limit - 0.5 * slack
