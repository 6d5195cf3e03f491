"""The shape of friction cones in kernels."""

from featherlane.engine.lanes import kernel
from featherlane.engine.model.enums import COULOMB, PYRAMIDAL


@kernel
def has_pyramids(m):
    """Returns whether friction cones are pyramids; Coulomb's law has elliptic cones, whatever the option `cone`."""
    return m.opt_cone == PYRAMIDAL and m.opt_contact_model != COULOMB
