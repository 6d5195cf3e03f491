"""The LCP of a tile: all rows in order, from the constraint layer, the contacts, and links and motors.

First come unbounded rows, then rows with constant bounds, then contacts, each normal before its friction.  A world's
rows keep this order whatever the other worlds of the tile have.
"""

from featherlane.engine.prelude import *
from featherlane.engine.solver.lcp.rows.contact import append_contact_rows
from featherlane.engine.solver.lcp.rows.joint import append_bounded_rows, append_equality_rows
from featherlane.engine.solver.lcp.rows.link import append_link_rows
from featherlane.engine.solver.lcp.rows.metric import factor_step_inertia
from featherlane.engine.solver.lcp.rows.motor import append_motor_rows
from featherlane.engine.solver.lcp.status import SOLVED


@kernel
def clear_rows(m, d):
    """Removes all rows of the LCP, and clears the marks of the dofs."""
    d.lcp.n[0] = 0
    d.lcp.dense[0] = 0  # rows of Y, no dense A
    d.one.status[0] = SOLVED  # no row has exceeded the capacity, see `report_full_rows`
    for i in range(m.nv):
        d.dual.mark[i] = 0


@stage
def make_lcp(m, d):
    """Builds the rows of the LCP, and computes the acceleration without them.

    A = J Mh^-1 J^T + cfm / h,   b = c / h - J (v / h + Mh^-1 f),   x in [N, N m].
    Source: ODE manual; recorded steps of an ODE world are reproduced to rounding.
    Reads:  M, qfrc_smooth, qvel, all rows and contacts.
    Writes: lcp.*; qH, qHDiagInv, qacc_step; row_lcprow, con_lcprow; con_D > 0 if a contact acts;
            con_overflow if the rows of a tile do not fit; found_bad; con_erp, con_cfm, con_belt, con_compliance,
            con_frictionforce, con_restitution, con_restitution_vel, con_frame, con_friction of contacts; link_lcprow;
            one.*, warning (rows full).
    Scratch: exact.*, dual.*, primal.*.
    Cost:   O(rows depth^2).
    """
    clear_rows(m, d)
    factor_step_inertia(m, d)
    append_equality_rows(m, d)
    append_link_rows(m, d)
    append_bounded_rows(m, d, first=0)  # from row 0 of the constraint layer on
    append_motor_rows(m, d)
    append_contact_rows(m, d)
