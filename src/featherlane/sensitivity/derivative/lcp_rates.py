"""Record of derivatives under the contact model lcp: data of rows and contacts while a coordinate is displaced."""

from featherlane.lanes.layout import Declare, Layout, size
from featherlane.sensitivity.derivative.rates import RATES

_scratch = Declare("lcp_columns", "scratch")
LCP_RATES = Layout(
    "LcpRates",
    (
        *RATES.fields,
        size("rate_nrow", "capacity: rows of the LCP"),
        size("rate_npair", "its square"),
        size("rate_ncol", "columns"),
        size("rate_ncolrow", "capacity: rows of all columns"),
        size("rate_ncoldof", "dofs of all columns"),
        size("rate_ncolact", "activations of all columns"),
        # bodies and contacts in the worlds' present state
        _scratch.real("dof_axis", "nv 6", "1", "motion axes"),
        _scratch.real("slot_dist", "nconmax", "m", "distance"),
        _scratch.real("slot_pos", "nconmax 3", "m", "point"),
        _scratch.real("slot_frame", "nconmax 9", "1", "normal and tangents, before friction's direction turns them"),
        _scratch.real("slot_belt", "nconmax 3", "m/s", "velocity of the surface that the caller gave"),
        _scratch.real("slot_arms", "nconmax 6", "m", "point from the com of the tree of either body"),
        _scratch.real("slot_branch", "nconmax 4", "1", "1: apart, deeper than the minimum, at most speed, bounces"),
        _scratch.real("slot_edge", "nconmax", "m/s", "to where the law of the normal's velocity changes"),
        _scratch.real("dof_edge", "ndofrowmax", "m/s, rad/s", "the same of a limit"),
        _scratch.real("slot_flat", "nconmax", "1", "1 where some dof tilts flat faces, whose points are counted anew"),
        _scratch.real("slot_shift", "nconmax 7", "m, 1", "how a column moves distance and point and turns the frame"),
        _scratch.real("dof_bounces", "ndofrowmax", "1", "1 where a limit bounces"),
        # rows
        _scratch.int("row_count", "1", "1", "rows"),
        _scratch.real("row_present", "rate_nrow", "1", "1 where the world has the row"),
        _scratch.real("row_x", "rate_nrow", "N, N m", "force"),
        _scratch.real("row_first", "rate_nrow", "N, N m", "force that holds without friction, which sets its limits"),
        _scratch.real("row_free", "rate_nrow", "1", "1 where the force is between its bounds"),
        _scratch.real("row_slope", "rate_nrow", "1", "force of friction that slips for each newton of the normal"),
        _scratch.real("row_cone", "rate_nrow", "1", "1 at a normal whose friction slips on a round cone"),
        _scratch.real("row_pull", "rate_nrow", "m/s^2", "slack of that friction over its force, in the cone's metric"),
        _scratch.real("row_unit", "rate_nrow", "1", "direction of the friction in that metric"),
        _scratch.real("row_pivot", "rate_nrow", "kg", "1 / pivot, 0 of a row that depends on others"),
        _scratch.real("row_dx", "rate_nrow", "N, N m", "rates of the forces"),
        _scratch.real("row_matrix", "rate_npair", "1/kg", "A over the rows that are free, factored"),
        _scratch.real("rows_same", "1", "1", "1 where the rows at all points are those of the world"),
        _scratch.real("row_entries", "nv", "1", "a row of Y, column by column"),
        # columns, at fixed forces
        _scratch.real("col_acceleration", "rate_ncoldof", "m/s^2", "rates of the acceleration"),
        _scratch.real("col_act", "rate_ncolact", "1", "rates of the next activations"),
        _scratch.real("col_w", "rate_ncolrow", "m/s^2", "rates of the slack"),
        _scratch.real("col_first", "rate_ncolrow", "m/s^2", "rates of it at the forces without friction"),
    ),
)
