"""The protocol of a system of equations that a step solves, and the loop over the columns of its derivative.

A step solves g(z; x, u) = 0 for z, and continues with x' = s(z, x, u).  By the implicit function theorem a column of
derivatives, by one coordinate of the state x or the controls u, takes three kernels:

    residual    dg, the derivative of g at fixed z
    solve       dz = -(dg/dz)^-1 dg
    step        dx', the derivative of s

and `switching` returns the distance to the next change of the active set, at which these derivatives jump.

    system                                   z                             x' = s(z, x, u)
    solution.py: convex rows                 accelerations                 v' = v + h a*,  q' = q (+) h v'
    lcp_columns.py: the contact model lcp    forces of the rows            the same
    inverse.py: inverse dynamics             none: g itself is the result  none
    rk4.py: Runge-Kutta                      four accelerations, convex    chain rule of the four

A residual has formulas (columns/formulas.py), or it is differenced at two displaced points, see `difference_column`.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes import Kernel, Stage, kernel
from featherlane.engine.simulation.tile.rows import copy_step_inputs, load_worlds, write_records
from featherlane.tools.sensitivity.columns.coordinates import per_span


@kernel
def _given(m, d, p, s):
    """Leaves what the call provides, or what an earlier part computed."""


@kernel
def _none(m, d, p, s, shared):
    """Leaves the next state, which the call does not request."""


class System(NamedTuple):
    """The kernels that differentiate a system.  s is the number of a column of the call.

    Attributes:
        residual: of (m, d, p, s): dg, at fixed z.
        solve: of (m, d, p, s): dz from dg.
        step: of (m, d, p, s, shared): dx' from dz; shared: what all columns share.
        switching: of the system's present state: the distance to the next change of its active set, which its stage
            reports; None if nothing is solved.
    """

    residual: Kernel = _given
    solve: Kernel = _given
    step: Kernel = _none
    switching: Kernel | None = None


class Stages(NamedTuple):
    """The stages that differentiate a system, tile by tile.  A call runs those that its worlds need.

    Attributes:
        accelerations: forward dynamics in the present state.
        residual: differences of the residual, by positions and by all other coordinates.
        correction: differences of the integrator's correction p alone, likewise.
        parameters: the residual of worlds with one displaced parameter of the model each.
        formulas: the residual by formulas.
        solution: derivatives of the acceleration and of the next state, from those of the residual.
        whole: both by formulas in one stage.
    """

    accelerations: Stage
    residual: tuple[Stage, Stage]
    correction: tuple[Stage, Stage]
    parameters: Stage
    formulas: Stage
    solution: Stage
    whole: Stage


def columns_of(system: System) -> Kernel:
    """Returns the loop over the columns of a call, `(m, d, b, p, thread, tile, shared)`.

    A part that the system lacks is left out: its results are inputs of the call, or not requested.
    """
    residual, solve, step = system.residual, system.solve, system.step

    def columns(m, d, b, p, thread, tile, shared):
        """Computes all columns of the call, and copies each out of the tile."""
        for s in range(b.nstep):
            copy_step_inputs(b, thread, tile, s)
            residual(m, d, p, s)
            solve(m, d, p, s)
            step(m, d, p, s, shared)
            write_records(b, thread, tile, s)

    return kernel(columns)


def difference_column(evaluate: Kernel, keep: Kernel, subtract: Kernel) -> Kernel:
    """Returns the residual of a column by central differences, `(m, d, b, p, thread, tile, s, given)`.

    Reads the inputs of the column: its coordinate p.at, and the displacements p.up and p.down; a coordinate that is not
    displaced has the derivative 0.

    Args:
        evaluate: `(m, d, p, step, given, upper)` computes the results of the loaded worlds with this coordinate
            displaced by `step`; upper: 1 at the first point, 0 at the second one.
        keep: `(m, d, p, s)` stores the results at the upper point.
        subtract: `(m, d, p, s, scale)` replaces them by (upper - lower) scale.
    """

    def column(m, d, b, p, thread, tile, s, given):
        """Computes (results at `up` - results at -`down`) / (up + down)."""
        up, down = p.up[0], p.down[0]
        load_worlds(b, thread, tile)
        evaluate(m, d, p, up, given, upper=1)
        keep(m, d, p, s)
        load_worlds(b, thread, tile)  # undoes the displacement
        evaluate(m, d, p, -down, given, upper=0)
        subtract(m, d, p, s, per_span(up + down))

    return kernel(column)
