"""The status of a world: how often a step met each condition that is counted, the entries of `warning`."""

from featherlane.lanes import kernel, where

STATUS = ("contacts_full", "rows_full", "bad_number", "not_converged", "bad_control")
CONTACTS_FULL, ROWS_FULL, BAD_NUMBER, NOT_CONVERGED, BAD_CONTROL = range(len(STATUS))


@kernel
def warn(d, entry, mask):
    """Adds one to an entry of the status where the mask holds."""
    d.warning[entry] = where(mask, d.warning[entry] + 1.0, d.warning[entry])
