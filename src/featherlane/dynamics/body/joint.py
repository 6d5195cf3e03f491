"""What a joint is, by its type."""

from __future__ import annotations

from featherlane.lanes import kernel
from featherlane.model.enums import BALL, FREE


@kernel
def joint_dofs(kind):
    """Dofs of a joint of that type."""
    return 6 if kind == FREE else 3 if kind == BALL else 1
