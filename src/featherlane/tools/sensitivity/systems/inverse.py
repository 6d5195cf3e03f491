"""Inverse dynamics as a system: nothing is solved, and a column is the derivative of the forces themselves.

A column has the derivatives by one coordinate: positions by dof, then velocities, then accelerations.  It is p.dg of
the record p (records.py).  report[KNOWN]: 1 if all rates of a world have formulas, 0 if not, -1 if the world must run
alone; report[FITS], report[NEAREST]: as in solution.py, 1 here.

    inverse_columns    forces M a + c - J^T f, contacts included, minus actuator forces if requested
    rnea_columns       forces that accelerate the bodies, without any others

`outward_pass` and `inward_pass` (smooth_rates.py) compute what the columns of the bodies' forces need.  crb is the
composite inertia of each body.  con_overflow: 1 if contacts do not fit into the tile.
A stage `..._of_tile` works on one tile of worlds.  The transfers of its record b copy worlds and columns into the tile
and results out of it; b.nstep is the number of columns.
"""

from featherlane.engine.prelude import *
from featherlane.engine.constraint.row import make_rows
from featherlane.engine.dynamics.inertia.articulated import needs_inertia
from featherlane.engine.dynamics.inertia.joint_space import crb
from featherlane.engine.lanes import Kernel
from featherlane.engine.simulation.step.forward import control_and_actuate, forward_position, forward_velocity
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.solver.free_bodies import mark_touched
from featherlane.engine.solver.inverse import constraint_forces
from featherlane.tools.sensitivity.columns.formulas import (
    acceleration_rates,
    clear_rates,
    finish_rates,
    position_rates,
    velocity_rates,
)
from featherlane.tools.sensitivity.columns.system import System, columns_of
from featherlane.tools.sensitivity.rates.records import FITS, KNOWN, NEAREST, RATES
from featherlane.tools.sensitivity.rates.smooth_rates import (
    acceleration_column,
    inward_pass,
    outward_pass,
    position_column,
    velocity_column,
)
from featherlane.tools.sensitivity.systems.formulas import prepare_rates
from featherlane.tools.sensitivity.systems.solution import compute_position


def _column(position: Kernel, velocity: Kernel, acceleration: Kernel) -> Kernel:
    """Returns the column of a coordinate, `(m, d, p, s)`, computed by one of three kernels `(m, d, p, dof)`."""

    def column(m, d, p, s):
        """dg <- derivatives of the forces by coordinate s."""
        clear_rates(m, p)  # the kernels add to dg
        if s < m.nv:
            position(m, d, p, s)
        elif s < 2 * m.nv:
            velocity(m, d, p, s - m.nv)
        else:
            acceleration(m, d, p, s - 2 * m.nv)

    return kernel(column)


_forces_by = _column(position_rates, velocity_rates, acceleration_rates)


@kernel
def _inverse_residual(m, d, p, s):
    """dg <- derivatives of the forces by coordinate s, contacts included."""
    _forces_by(m, d, p, s)
    finish_rates(m, d, p)


INVERSE = System(residual=_inverse_residual)
RNEA = System(residual=_column(position_column, velocity_column, acceleration_column))
_inverse_columns, _rnea_columns = columns_of(INVERSE), columns_of(RNEA)


@stage(p=RATES)
def inverse_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of inverse dynamics by formulas, column by column.

    Reads:  the rows that the transfers of b bring in, qacc among them.
    Writes: those that they take back; dg, dp, qacc_step, report; dof_*, body_*, geom_*, row_*, slot_*, ten_* and all
            else of p; con_fresh, con_wrench, crb_rate, cvel, cacc, cfrc, dof_touched, qfrc_constraint, and all
            else of this thread's workspace.
    """
    overflow = compute_position(m, d, p)
    # KNOWN stays -1, "compute the world alone", if contacts do not fit
    p.report[FITS], p.report[NEAREST], p.report[KNOWN] = 1.0, 1.0, -1.0
    if overflow == 0:
        forward_velocity(m, d)
        control_and_actuate(m, d)
        make_rows(m, d)
        mark_touched(m, d)  # dof_touched: trees on which rows act, for the integrator `discrete`
        # the integrator's correction p is 0 if its acceleration is the given one
        for i in range(m.nv):
            d.qacc_step[i] = d.qacc[i]
        constraint_forces(m, d, store=0)  # qfrc_constraint alone, without a force of each row
        prepare_rates(m, d, p)
        _inverse_columns(m, d, b, p, thread, tile, shared=0)  # shared: unused without a next state
    else:
        write_records(b, thread, tile, s=0)  # the report


inverse_columns = in_each_tile("inverse_columns", inverse_columns_of_tile)


@stage(p=RATES)
def rnea_columns_of_tile(m, d, b, p, thread, tile):
    """Computes rates of the Newton-Euler forces, column by column.

    Reads:  the rows that the transfers of b bring in, qacc among them.
    Writes: those that they take back; dg, dp, dact, report; body_field*, dof_*, crb_rate, cvel, cacc, cfrc; what
            `forward_position` and `crb` write.
    """
    forward_position(m, d)
    # composite inertias, which `forward_position` computes only for models that need M
    if not needs_inertia(m, d):
        crb(m, d)
    # `outward_pass` also takes a second field of accelerations, whose forces are not needed here: 0
    for i in range(m.nv):
        p.taken_off[i] = 0.0
    outward_pass(m, d, p, p.taken_off)
    inward_pass(m, d, p)
    p.report[KNOWN] = 1.0
    _rnea_columns(m, d, b, p, thread, tile, shared=0)  # shared: unused without a next state


rnea_columns = in_each_tile("rnea_columns", rnea_columns_of_tile)
