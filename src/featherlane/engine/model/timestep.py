"""The time step in kernels."""

from featherlane.engine.lanes import kernel, real


@kernel
def timestep(m):
    """Returns the time step in the tile's precision [s]; sums of time use `m.opt_timestep`, which is float64."""
    return real(m, m.opt_timestep[0])
