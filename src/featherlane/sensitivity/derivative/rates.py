"""Memory of derivatives by formulas: what one pass over bodies and contacts keeps for the columns that follow."""

from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.lanes.layout import Field, Layout

SIZES = (
    Field("rate_nv", "size", doc="dofs"),
    Field("rate_na", "size", doc="activations"),
    Field("rate_nbody", "size", doc="bodies"),
    Field("rate_ngeom", "size", doc="geoms"),
    Field("rate_ncon", "size", doc="capacity: contact slots"),
    Field("rate_steps", "size", doc="1: rates of the next state are asked for, 0: those of accelerations alone"),
    Field("rate_rest", "size", doc="1: forces that formulas do not have go by differences besides"),
)


def _real(name: str, shape: tuple, unit: str, doc: str) -> Field:
    return Field(name, "real", shape, unit, doc, "formula_columns", "scratch")


RATES = Layout(
    "Rates",
    (
        *SIZES,
        # of each dof
        _real("dof_carried", ("rate_nv", 6), "1/s^2", "acceleration of the bodies beyond that its displacement gives"),
        _real("dof_turned", ("rate_nv", 3), "1/s", "angular velocity that it gives them"),
        _real("dof_rate", ("rate_nv", 6), "1/s", "acceleration of the bodies beyond that its velocity gives"),
        _real("dof_momentum", ("rate_nv", 6), "kg m", "I^c S"),
        _real("dof_drag", ("rate_nv", 3), "kg m^2/s", "B^c^T S, its rotational part"),
        _real("dof_force", ("rate_nv", 6), "N", "rate by its displacement of the force on all beyond it"),
        _real("dof_damping_force", ("rate_nv", 6), "N s", "rate by its velocity of the same"),
        _real("dof_lag", ("rate_nv", 6), "1/s^2", "dof_carried of the acceleration that the integrator takes off"),
        _real("dof_lag_force", ("rate_nv", 6), "N", "dof_force of it"),
        _real("dof_lift", ("rate_nv", 3), "kg", "momentum of what gravity compensation carries beyond it"),
        _real("dof_stiffness", ("rate_nv",), "N/m, N m/rad", "springs, actuators and limits of the dof alone"),
        _real("dof_friction", ("rate_nv",), "N s/m, N m s/rad", "the same by its velocity"),
        _real("dof_lag_friction", ("rate_nv",), "N/m, N m/rad", "rate of what the integrator damps, over -h"),
        _real("dof_curvature", ("rate_nv",), "kg, kg m^2", "rate by its acceleration: of limits and dry friction"),
        _real("dof_g", ("rate_nv",), "N, N m", "rates of the residual, in one column"),
        _real("dof_p", ("rate_nv",), "N, N m", "the same of what the integrator takes off"),
        _real("dof_tangent", ("rate_nv", 3), "1", "columns of the right Jacobian of SO(3) at h w', of quaternions"),
        _real("dof_back", ("rate_nv", 3), "1", "columns of exp(-h w')"),
        _real("act_upper", ("rate_na",), "1", "next activations at an upper point"),
        # of the columns that go through the factors together
        Field("panel_at", "int", (PANEL,), "1", "their coordinates", "formula_steps", "scratch"),
        _real("panel_acceleration", ("rate_nv", PANEL), "m/s^2, rad/s^2", "rates of the acceleration"),
        _real("panel_lag", ("rate_nv", PANEL), "N, N m", "dof_p"),
        _real("panel_step", ("rate_nv", PANEL), "m/s^2, rad/s^2", "rates of the integrator's acceleration"),
        _real("panel_act", ("rate_na", PANEL), "1", "rates of the next activations"),
        # of each body
        _real("body_lag", ("rate_nbody", 6), "m/s^2", "the acceleration that the integrator takes off"),
        _real("body_lag_force", ("rate_nbody", 6), "N", "force that gives it"),
        _real("body_lift", ("rate_nbody", 4), "kg, kg m", "what is carried of it and of all beyond, and its moment"),
        # of each geom
        _real("geom_pos", ("rate_ngeom", 3), "m", "where geoms are"),
        _real("geom_mat", ("rate_ngeom", 9), "1", "how they are turned"),
        # of each contact slot
        Field("slot_cand", "int", ("rate_ncon",), "1", "candidate of the slot", "formula_columns", "scratch"),
        Field("slot_point", "int", ("rate_ncon",), "1", "point of its pair", "formula_columns", "scratch"),
        Field("slot_geom", "int", ("rate_ncon", 2), "1", "geoms of the slot", "formula_columns", "scratch"),
        Field("slot_carrier", "int", ("rate_ncon", 2), "1", "bodies of the slot", "formula_columns", "scratch"),
        Field("slot_at", "int", ("rate_ncon",), "1", "where it is at a displaced pose", "formula_columns", "scratch"),
        Field("slot_taken", "int", ("rate_ncon",), "1", "1: a slot there is known", "formula_columns", "scratch"),
        _real("slot_present", ("rate_ncon",), "1", "1 where the world has the contact"),
        _real("slot_upper", ("rate_ncon", 13), "m, 1", "distance, position and frame at a displaced pose"),
        _real("slot_lower", ("rate_ncon", 13), "m, 1", "the same at the opposite one"),
        _real("slot_own", ("rate_ncon", 13), "m, 1", "the same at the world's own pose"),
        _real("slot_lost", ("rate_ncon",), "1", "1 where no point is near at the displaced pose"),
        _real("slot_moves", ("rate_ncon", 42), "1", "rates of distance, position and frame's turn by a relative twist"),
        _real(
            "slot_spin", ("rate_ncon", 3), "1", "spin of the frame about its normal while all is turned, less the turn"
        ),
        _real("slot_force", ("rate_ncon", 6), "N m, N", "moment and force on the body that is pushed"),
        _real("slot_motion", ("rate_ncon", 12), "m/s^2, m/s", "relative acceleration and velocity, angular first"),
        _real("slot_slope", ("rate_ncon", 2), "1/m, 1/s^2", "rates by distance: of all stiffnesses, of aref"),
        _real("slot_curvature", ("rate_ncon", 36), "kg", "second derivative of the cost in the contact's basis"),
        _real(
            "slot_gone", ("rate_ncon",), "1", "1 where the contact is at neither of two displaced poses, 0.5: at one"
        ),
        _real("slot_jumps", (1,), "1", "1 where a contact's point is nowhere near at both poses of a twist"),
        _real("slot_near", (1,), "1", "1 where other contacts are at a displaced pose"),
        _real("slot_known", (1,), "1", "1 where all displaced poses have the contacts of the world, -1 no room"),
    ),
)
