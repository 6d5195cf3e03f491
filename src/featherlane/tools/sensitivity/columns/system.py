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

A residual has formulas (columns/formulas.py), or it is differenced at two displaced points, see `difference_columns`.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, Stage
from featherlane.engine.simulation.tile.rows import copy_step_inputs, load_worlds, write_records
from featherlane.tools.sensitivity.rates.coordinates import displacements, move_coordinate, per_span


@kernel
def _given(m, d, p, s):
    """Computes nothing, for a part whose results the call provides or an earlier part computed."""


@kernel
def _none(m, d, p, s, shared):
    """Computes nothing, for a call that does not request the next state."""


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
    """The stages that differentiate a system, tile by tile.  A call runs those that its worlds need, or `whole` alone.

    Attributes:
        whole: derivatives of the acceleration and of the next state in one stage.
        accelerations: forward dynamics in the present state.
        residual: differences of the residual.
        correction: differences of the integrator's correction p alone.
        parameters: the residual of worlds with one displaced parameter of the model each.
        formulas: the residual by formulas.
        solution: derivatives of the acceleration and of the next state, from those of the residual.
    """

    whole: Stage
    accelerations: Stage | None = None
    residual: Stage | None = None
    correction: Stage | None = None
    parameters: Stage | None = None
    formulas: Stage | None = None
    solution: Stage | None = None


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


def difference_columns(place: Kernel, evaluate: Kernel, keep: Kernel, subtract: Kernel) -> Kernel:
    """Returns the loop over columns of central differences, `(m, d, b, p, thread, tile)`.

    Reads of each column its coordinate p.at and the size p.displacement.  A coordinate that is not displaced has the
    derivative 0.  Bodies are placed at each point where a position is displaced, and once for all other coordinates in
    succession.

    Args:
        place: `(m, d, p)` computes all that depends on the position; returns an int for `evaluate`.
        evaluate: `(m, d, p, step, given)` computes the results at a point that is displaced by `step`.
        keep: `(m, d, p, s)` stores the results at the upper point.
        subtract: `(m, d, b, p, thread, tile, s, scale)` replaces them by (upper - lower) scale.
    """

    def columns(m, d, b, p, thread, tile):
        """Computes (results at `up` - results at -`down`) / (up + down) of each column."""
        placed, given = 0, 0
        for s in range(b.nstep):
            copy_step_inputs(b, thread, tile, s)
            # 1: some world displaces a position
            moves = 1 if any_((p.at[0] >= 0.0) & (p.at[0] < 1.0 * m.nv)) else 0
            for side in range(2):
                load_worlds(b, thread, tile)  # restores the undisplaced state
                up, down = displacements(m, d, p.at[0], p.displacement[0])
                step = up if side == 0 else -down
                move_coordinate(m, d, p.at[0], step)
                if moves or not placed:
                    given = place(m, d, p)
                placed = 1 - moves  # 1: the bodies are at the undisplaced position
                evaluate(m, d, p, step, given)
                if side == 0:
                    keep(m, d, p, s)
                else:
                    subtract(m, d, b, p, thread, tile, s, per_span(up + down))

    return kernel(columns)
