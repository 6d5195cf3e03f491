"""A tile whose contact slots do not fit is worked on part by part, so that no world loses a contact for its mates.

A world alone has as many slots as it has contacts, so parts of one world always fit, or lose their own last contacts
and say so.
"""

from __future__ import annotations

from collections.abc import Callable

from featherlane.prelude import *
from featherlane.lanes import Kernel


def by_halves(function: Callable) -> Kernel:
    """Decorator: what is done with the worlds of a part, `(m, d, purpose)`, as a kernel that does it with all parts.

    The function finds the part in `active`, and leaves `con_overflow` where it does not fit: then parts half as large
    are begun anew, and what it wrote for a part of the larger ones has to be written again.
    """
    do = kernel(function)

    @kernel
    def parts_fit(m, d, size, purpose):
        """Parts of `size` worlds one after the other; 0 if one of them does not fit."""
        start, active = 0, d.lane_active[0] > 0.0
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
        """Halve the parts until all fit."""
        d.lane_active[0] = d.active[0]
        size, full, rows_full, unconverged = (
            width(d) // 2,
            d.warning[CONTACTS_FULL],
            d.warning[ROWS_FULL],
            d.warning[NOT_CONVERGED],
        )
        while size > 1 and parts_fit(m, d, size, purpose) == 0:
            size = size // 2
            # what a part said before the next one failed to fit is said again by the smaller parts
            d.warning[CONTACTS_FULL], d.warning[ROWS_FULL], d.warning[NOT_CONVERGED] = full, rows_full, unconverged
        if size <= 1:
            parts_fit(m, d, 1, purpose)
        d.active[0] = d.lane_active[0]

    return halved
