"""Memory of derivatives under the contact model lcp: what holds of rows and contacts while a coordinate moves."""

from featherlane.lanes.layout import Field, Layout
from featherlane.sensitivity.derivative.rates import RATES


def _real(name: str, shape: tuple, unit: str, doc: str) -> Field:
    return Field(name, "real", shape, unit, doc, "lcp_columns", "scratch")


LCP_RATES = Layout(
    "LcpRates",
    (
        *RATES.fields,
        Field("rate_nrow", "size", doc="capacity: rows of the LCP"),
        Field("rate_npair", "size", doc="its square"),
        Field("rate_ndofrow", "size", doc="capacity: rows of one dof"),
        Field("rate_ncol", "size", doc="columns"),
        Field("rate_ncolrow", "size", doc="capacity: rows of all columns"),
        Field("rate_ncoldof", "size", doc="dofs of all columns"),
        Field("rate_ncolact", "size", doc="activations of all columns"),
        # the bodies and contacts of the worlds as they are
        _real("dof_axis", ("rate_nv", 6), "1", "motion axes"),
        _real("slot_dist", ("rate_ncon",), "m", "distance"),
        _real("slot_pos", ("rate_ncon", 3), "m", "point"),
        _real("slot_frame", ("rate_ncon", 9), "1", "normal and tangents, before they turn to a direction of friction"),
        _real("slot_belt", ("rate_ncon", 3), "m/s", "velocity of the surface that the caller gave"),
        _real("slot_arms", ("rate_ncon", 6), "m", "point from the com of the tree of either body"),
        _real(
            "slot_branch",
            ("rate_ncon", 4),
            "1",
            "1 where: apart, deeper than is left alone, as fast as may be, bounces",
        ),
        _real("slot_edge", ("rate_ncon",), "m/s", "to where the law of the normal's velocity changes"),
        _real("dof_edge", ("rate_ndofrow",), "m/s, rad/s", "the same of a limit"),
        _real("slot_flat", ("rate_ncon",), "1", "1 where some dof tilts flat faces, whose points are counted anew"),
        _real("slot_shift", ("rate_ncon", 7), "m, 1", "how a column moves distance and point and turns the frame"),
        _real("dof_bounces", ("rate_ndofrow",), "1", "1 where a limit bounces"),
        # rows
        Field("row_count", "int", (1,), "1", "rows", "lcp_columns", "scratch"),
        _real("row_present", ("rate_nrow",), "1", "1 where the world has the row"),
        _real("row_x", ("rate_nrow",), "N, N m", "force"),
        _real("row_first", ("rate_nrow",), "N, N m", "force that holds without friction, which sets its limits"),
        _real("row_free", ("rate_nrow",), "1", "1 where the force is between its bounds"),
        _real("row_slope", ("rate_nrow",), "1", "force of friction that slips for each newton of the normal"),
        _real("row_cone", ("rate_nrow",), "1", "1 at a normal whose friction slips on a round cone"),
        _real(
            "row_pull",
            ("rate_nrow",),
            "m/s^2",
            "there: slack of the friction over its force, both in the cone's metric",
        ),
        _real("row_unit", ("rate_nrow",), "1", "direction of the friction in that metric"),
        _real("row_pivot", ("rate_nrow",), "kg", "1 / pivot, 0 of a row that depends on others"),
        _real("row_dx", ("rate_nrow",), "N, N m", "rates of the forces"),
        _real("row_matrix", ("rate_npair",), "1/kg", "A over the rows that are free, factored"),
        _real("rows_same", (1,), "1", "1 where the rows at all points are those of the world"),
        # columns, at fixed forces
        _real("col_acceleration", ("rate_ncoldof",), "m/s^2", "rates of the acceleration"),
        _real("col_act", ("rate_ncolact",), "1", "rates of the next activations"),
        _real("col_w", ("rate_ncolrow",), "m/s^2", "rates of the slack"),
        _real("col_first", ("rate_ncolrow",), "m/s^2", "rates of it at the forces without friction"),
    ),
)
