"""Status of a world: how many steps met each condition; the entries of `warning`.  Base class of other status codes."""

from enum import IntEnum

from featherlane.engine.lanes import kernel, where

STATUS = ("contacts_full", "rows_full", "non_finite", "not_converged", "bad_control", "singular_inertia")
CONTACTS_FULL, ROWS_FULL, NON_FINITE, NOT_CONVERGED, BAD_CONTROL, SINGULAR_INERTIA = range(len(STATUS))
FOUND_NON_FINITE, FOUND_FULL = 1, 2  # bits of found_bad: counts that emit a warning


class StatusCode(IntEnum):
    """A status code, which is an int and prints its name."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self) if spec[-1:] in (*"bcdeEfFgGnoxX%",) else self.name, spec)


@kernel
def warn(d, entry, mask):
    """Adds one to an entry of the status in worlds of the mask."""
    d.warning[entry] = where(mask, d.warning[entry] + 1.0, d.warning[entry])


@kernel
def warn_full(d, entry, mask):
    """Counts contacts or rows beyond the capacity, in worlds of the mask."""
    warn(d, entry, mask)
    d.found_bad[0] = d.found_bad[0] | FOUND_FULL
