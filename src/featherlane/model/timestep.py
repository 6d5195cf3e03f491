"""The time step as kernels use it."""

from featherlane.lanes import kernel, real


@kernel
def timestep(m):
    """The time step in the precision of the tile [s]; what adds to time takes `m.opt_timestep`, which is float64."""
    return real(m, m.opt_timestep[0])
