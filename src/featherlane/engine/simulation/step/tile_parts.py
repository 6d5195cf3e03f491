"""Solves a tile in parts if its contact slots overflow, so that a world loses no contact because of the other worlds.

The slots suffice for the contacts of any one world, up to its capacity.  A part of one world therefore fits, or it
drops its own last contacts and reports that.
"""

from __future__ import annotations

from collections.abc import Callable

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel

REPEATED = (CONTACTS_FULL, ROWS_FULL, NOT_CONVERGED, BAD_CONTROL, SINGULAR_INERTIA)  # counts of a pass


@kernel
def load_counts(d):
    """Returns the counts of warnings in REPEATED, as a tuple."""
    return tuple(d.warning[k] for k in REPEATED)


@kernel
def restore_counts(d, counts, mask):
    """Restores the counts of REPEATED to `counts`, those from before a pass that is repeated, in worlds of the mask."""
    for i in unrolled(range(5)):  # all of REPEATED
        d.warning[REPEATED[i]] = where(mask, counts[i], d.warning[REPEATED[i]])


def by_halves(function: Callable) -> Kernel:
    """Returns a kernel that applies `function(m, d, purpose)`, which processes the worlds of one part, to all parts.

    The function reads the worlds of its part from `active` and sets `con_overflow` if they do not fit.  Then all parts
    are processed again at half the size, and the function has to overwrite what it wrote for the larger parts.
    """
    do = kernel(function)

    @kernel
    def parts_fit(m, d, size, purpose):
        """Processes parts of `size` worlds one after the other; returns 0 if one of them does not fit, else 1.

        purpose: the last argument of `function`.
        Writes: active, the worlds of the part; what the function writes.
        """
        start = 0
        active = d.lane_active[0] > 0.0
        while start < width(d):
            lane = lane_index(d)
            d.active[0] = where((lane >= start) & (lane < start + size) & active, 1.0, 0.0)
            do(m, d, purpose)
            if d.con_overflow[0]:
                return 0
            start += size
        return 1

    @kernel
    def halved(m, d, purpose):
        """Applies `function` of `by_halves` to halves of the tile, then to smaller parts until all fit.

        Writes: what the function writes; active, which is restored.   Scratch: lane_active.
        """
        d.lane_active[0] = d.active[0]
        size = width(d) // 2
        counts = load_counts(d)
        while size > 1 and parts_fit(m, d, size, purpose) == 0:
            size = size // 2
            # all worlds are processed again, so counts of the larger parts are discarded
            restore_counts(d, counts, true_mask(d))
        # a part of one world never sets con_overflow, because a world that does not fit drops contacts instead: all
        # parts are processed, and the result of parts_fit needs no check
        if size <= 1:
            parts_fit(m, d, size=1, purpose=purpose)
        d.active[0] = d.lane_active[0]

    return halved
