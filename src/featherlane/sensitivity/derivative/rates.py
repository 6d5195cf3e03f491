"""Memory of derivatives by formulas: what one pass over bodies and contacts keeps for the columns that follow."""

from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.lanes.layout import Declare, Layout, size

SIZES = (
    size("rate_nv", "dofs"),
    size("rate_na", "activations"),
    size("rate_nbody", "bodies"),
    size("rate_ngeom", "geoms"),
    size("rate_ncon", "capacity: contact slots"),
    size("rate_steps", "1: rates of the next state are asked for, 0: those of accelerations alone"),
    size("rate_rest", "1: forces that formulas do not have go by differences besides"),
)

_scratch = Declare("formula_columns", "scratch")
RATES = Layout(
    "Rates",
    (
        *SIZES,
        # of each dof
        _scratch.real(
            "dof_carried", "rate_nv 6", "1/s^2", "acceleration of the bodies beyond that its displacement gives"
        ),
        _scratch.real("dof_turned", "rate_nv 3", "1/s", "angular velocity that it gives them"),
        _scratch.real("dof_rate", "rate_nv 6", "1/s", "acceleration of the bodies beyond that its velocity gives"),
        _scratch.real("dof_momentum", "rate_nv 6", "kg m", "I^c S"),
        _scratch.real("dof_drag", "rate_nv 3", "kg m^2/s", "B^c^T S, its rotational part"),
        _scratch.real("dof_force", "rate_nv 6", "N", "rate by its displacement of the force on all beyond it"),
        _scratch.real("dof_damping_force", "rate_nv 6", "N s", "rate by its velocity of the same"),
        _scratch.real("dof_lag", "rate_nv 6", "1/s^2", "dof_carried of the acceleration that the integrator takes off"),
        _scratch.real("dof_lag_force", "rate_nv 6", "N", "dof_force of it"),
        _scratch.real("dof_lift", "rate_nv 3", "kg", "momentum of what gravity compensation carries beyond it"),
        _scratch.real("dof_stiffness", "rate_nv", "N/m, N m/rad", "springs, actuators and limits of the dof alone"),
        _scratch.real("dof_friction", "rate_nv", "N s/m, N m s/rad", "the same by its velocity"),
        _scratch.real("dof_lag_friction", "rate_nv", "N/m, N m/rad", "rate of what the integrator damps, over -h"),
        _scratch.real("dof_curvature", "rate_nv", "kg, kg m^2", "rate by its acceleration: of limits and dry friction"),
        _scratch.real("dof_g", "rate_nv", "N, N m", "rates of the residual, in one column"),
        _scratch.real("dof_p", "rate_nv", "N, N m", "the same of what the integrator takes off"),
        _scratch.real(
            "dof_tangent", "rate_nv 3", "1", "columns of the right Jacobian of SO(3) at h w', of quaternions"
        ),
        _scratch.real("dof_back", "rate_nv 3", "1", "columns of exp(-h w')"),
        _scratch.real("act_upper", "rate_na", "1", "next activations at an upper point"),
        # of the columns that go through the factors together
        _scratch.int("panel_at", f"{PANEL}", "1", "their coordinates"),
        _scratch.real("panel_acceleration", f"rate_nv {PANEL}", "m/s^2, rad/s^2", "rates of the acceleration"),
        _scratch.real("panel_lag", f"rate_nv {PANEL}", "N, N m", "dof_p"),
        _scratch.real("panel_step", f"rate_nv {PANEL}", "m/s^2, rad/s^2", "rates of the integrator's acceleration"),
        _scratch.real("panel_act", f"rate_na {PANEL}", "1", "rates of the next activations"),
        # of each body
        _scratch.real("body_lag", "rate_nbody 6", "m/s^2", "the acceleration that the integrator takes off"),
        _scratch.real("body_lag_force", "rate_nbody 6", "N", "force that gives it"),
        _scratch.real(
            "body_lift", "rate_nbody 4", "kg, kg m", "what is carried of it and of all beyond, and its moment"
        ),
        # of each geom
        _scratch.real("geom_pos", "rate_ngeom 3", "m", "where geoms are"),
        _scratch.real("geom_mat", "rate_ngeom 9", "1", "how they are turned"),
        # of each contact slot
        _scratch.int("slot_cand", "rate_ncon", "1", "candidate of the slot"),
        _scratch.int("slot_point", "rate_ncon", "1", "point of its pair"),
        _scratch.int("slot_geom", "rate_ncon 2", "1", "geoms of the slot"),
        _scratch.int("slot_carrier", "rate_ncon 2", "1", "bodies of the slot"),
        _scratch.int("slot_at", "rate_ncon", "1", "where it is at a displaced pose"),
        _scratch.int("slot_taken", "rate_ncon", "1", "1: a slot there is known"),
        _scratch.real("slot_present", "rate_ncon", "1", "1 where the world has the contact"),
        _scratch.real("slot_upper", "rate_ncon 13", "m, 1", "distance, position and frame at a displaced pose"),
        _scratch.real("slot_lower", "rate_ncon 13", "m, 1", "the same at the opposite one"),
        _scratch.real("slot_own", "rate_ncon 13", "m, 1", "the same at the world's own pose"),
        _scratch.real("slot_lost", "rate_ncon", "1", "1 where no point is near at the displaced pose"),
        _scratch.real(
            "slot_moves", "rate_ncon 42", "1", "rates of distance, position and frame's turn by a relative twist"
        ),
        _scratch.real(
            "slot_spin", "rate_ncon 3", "1", "spin of the frame about its normal while all is turned, less the turn"
        ),
        _scratch.real("slot_force", "rate_ncon 6", "N m, N", "moment and force on the body that is pushed"),
        _scratch.real("slot_motion", "rate_ncon 12", "m/s^2, m/s", "relative acceleration and velocity, angular first"),
        _scratch.real("slot_slope", "rate_ncon 2", "1/m, 1/s^2", "rates by distance: of all stiffnesses, of aref"),
        _scratch.real("slot_curvature", "rate_ncon 36", "kg", "second derivative of the cost in the contact's basis"),
        _scratch.real(
            "slot_gone", "rate_ncon", "1", "1 where the contact is at neither of two displaced poses, 0.5: at one"
        ),
        _scratch.real("slot_jumps", "1", "1", "1 where a contact's point is nowhere near at both poses of a twist"),
        _scratch.real("slot_near", "1", "1", "1 where other contacts are at a displaced pose"),
        _scratch.real("slot_known", "1", "1", "1 where all displaced poses have the contacts of the world, -1 no room"),
    ),
)
