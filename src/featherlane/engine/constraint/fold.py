"""Enumerates all rows of a tile: scalar rows, then contacts."""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel


def fold_rows(scalar: Kernel, contact: Kernel) -> Kernel:
    """Returns the kernel (m, d, s, x) that computes a value x from all rows, one after the other.

    Args:
        scalar: kernel (m, d, k, s, x) that returns x after scalar row k, of d.row[k].
        contact: kernel (m, d, k, s, x) that returns x after contact slot k, of d.contact[k].
    """

    @kernel
    def fold(m, d, s, x):
        """Returns x after all rows; s: an argument that is the same for all of them."""
        for k in range(d.nrow[0]):
            x = scalar(m, d, k, s, x)
        for k in range(d.ncon_slot[0]):
            x = contact(m, d, k, s, x)
        return x

    return fold
