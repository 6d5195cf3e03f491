"""Excludes contacts of coplanar parts: hulls overlap by more than the rounding of their vertices, or not at all.

Flanges of a robot lie in one plane, and MuJoCo stores mesh vertices in float32, so rounding would decide in each pose
whether such parts touch.  Here polytopes, at least one a hull, touch only if they overlap by more than
`convex.flush`.  The cached direction of a pair (`result_cache`) shows a gap if the overlap is below CERTAIN times that.
The plane of a face, which is flat up to an error, counts only if that error does not span both limits.
So cached and searched results always agree on whether the shapes touch.
The poses of float32 worlds move flanges by as much as `convex.flush`.  If half of it were left, the arm of a
UR5e would often search such a pair again.
"""

from featherlane.prelude import *
from featherlane.collision.convex.support import core_limit, is_convex, is_curved

CERTAIN = 0.9  # of the largest overlap without contact: the rest is a hundred times the error of a search


@kernel
def flush(m1, d1):
    """Returns the largest overlap without contact [m]: 0 unless both shapes are polytopes and one is a hull."""
    slack = 0.0 * d1.shapes.limit[0]
    if not is_curved(d1) and is_convex(m1, d1, 0) and is_convex(m1, d1, 1):
        for side in range(2):
            if d1.shapes.type[side] == MESH:
                slack = slack + 2.0 * m1.hull_error[d1.shapes.data[side]]
    return slack


@kernel
def is_decided(d1, dist, error):
    """Returns whether all distances of the cores from dist to dist + error agree on whether the shapes touch."""
    limit, slack = core_limit(d1), d1.convex.flush[0]
    return slack == 0.0 or dist > limit - slack or dist + error <= limit - CERTAIN * slack
