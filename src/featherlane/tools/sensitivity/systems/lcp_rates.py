"""Record of derivatives under the contact model lcp: data of rows and contacts while a coordinate is displaced."""

from featherlane.engine.lanes.layout import Declare, Layout, size
from featherlane.engine.spatial.types import Motion, Vec3
from featherlane.tools.sensitivity.rates.contact_types import ContactCase, ContactShift
from featherlane.tools.sensitivity.rates.records import RATES

_scratch = Declare("lcp_columns", "scratch")
LCP_RATES = Layout(
    "LcpRates",
    (
        *RATES.fields,
        size("rate_nrow", "capacity: rows of the LCP"),
        size("rate_npair", "square of rate_nrow"),
        size("rate_ncol", "number of columns"),
        size("rate_ncolrow", "capacity: rows of all columns"),
        size("rate_ncoldof", "number of dofs of all columns"),
        size("rate_ncolact", "number of activations of all columns"),
        # bodies and contacts in the worlds' present state
        _scratch.rows(Motion, "dof_axis", "nv", "1", "motion axes"),
        _scratch.rows(Vec3, "slot_belt", "nconmax", "m/s", "user-defined surface velocity"),
        _scratch.rows(Vec3, "slot_arms", "nconmax 2", "m", "contact point relative to the com of either body's tree"),
        _scratch.rows(ContactCase, "slot_branch", "nconmax", "1", "1: separated, deep, at maximum speed, bouncing"),
        _scratch.real("slot_edge", "nconmax", "m/s", "margin to a change of the case of the normal's velocity"),
        _scratch.real("dof_edge", "nrowmax", "m/s, rad/s", "margin to a change of the case of a limit's velocity"),
        _scratch.real("slot_flat", "nconmax", "1", "1: a dof tilts two flat faces, which lose contacts"),
        _scratch.rows(ContactShift, "slot_shift", "nconmax", "m, 1", "derivative of distance, point and frame"),
        _scratch.real("dof_bounces", "nrowmax", "1", "1: the limit bounces"),
        # rows
        _scratch.int("row_count", "1", "1", "number of rows"),
        _scratch.real("row_present", "rate_nrow", "1", "1: the world has the row"),
        _scratch.real("row_x", "rate_nrow", "N, N m", "force"),
        _scratch.real("row_first", "rate_nrow", "N, N m", "force of the frictionless problem, which bounds friction"),
        _scratch.real("row_free", "rate_nrow", "1", "1: the force is between its bounds"),
        _scratch.real("row_slope", "rate_nrow", "1", "derivative of a sliding friction force by the normal force"),
        _scratch.real("row_cone", "rate_nrow", "1", "1: normal row whose friction slides on a round cone"),
        _scratch.real("row_pull", "rate_nrow", "m/s^2", "slack of this friction over its force, cone metric"),
        _scratch.real("row_unit", "rate_nrow", "1", "direction of this friction in the cone's metric"),
        _scratch.real("row_pivot", "rate_nrow", "kg", "1 / pivot, 0 for a linearly dependent row"),
        _scratch.real("row_dx", "rate_nrow", "N, N m", "derivatives of the forces"),
        _scratch.real("row_matrix", "rate_npair", "1/kg", "A of the rows between their bounds, factorized"),
        _scratch.real("rows_same", "1", "1", "1: all displaced points have the rows of the world"),
        _scratch.real("row_entries", "nv", "1", "dense row of Y"),
        # columns, at fixed forces
        _scratch.real("col_acceleration", "rate_ncoldof", "m/s^2", "derivatives of the acceleration at fixed forces"),
        _scratch.real("col_act", "rate_ncolact", "1", "derivatives of the next activations"),
        _scratch.real("col_w", "rate_ncolrow", "m/s^2", "derivatives of the slack at fixed forces"),
        _scratch.real("col_first", "rate_ncolrow", "m/s^2", "derivatives of the slack of the frictionless problem"),
    ),
)
