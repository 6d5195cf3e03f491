"""Records of passes that differentiate: inputs and outputs of a column, and intermediate results of formulas.

A column belongs to a coordinate.  `COLUMNS` is the record of all passes.  `RATES` has its fields first, then those of
formulas.  `LCP_RATES` (lcp_rates.py) has the fields of `RATES` first.
"""

from featherlane.dynamics.sparse.tree_panel import PANEL
from featherlane.lanes.layout import Declare, Layout, size

_given, _found, _work = Declare("", "given"), Declare("", "output"), Declare("", "scratch")

COLUMNS = Layout(
    "Columns",
    (
        _given.real("at", "1", "1", "number of the coordinate, -1: none"),
        _given.real("up", "1", "1", "how far it moves up"),
        _given.real("down", "1", "1", "how far it moves down"),
        _given.real("rest_g", "nv", "N, N m", "rates of the residual that come by differences beside formulas"),
        _given.real("rest_p", "nv", "N, N m", "the same of what the integrator takes off"),
        _found.real("dg", "nv", "N, N m", "rates of the residual, or the residual at a point"),
        _found.real("dp", "nv", "N, N m", "the same of p, what the integrator takes off"),
        _found.real("dact", "na", "1", "rates of the next activations, or these at a point"),
        _found.real("da", "nv", "m/s^2, rad/s^2", "rates of the acceleration"),
        _found.real("dq", "nv", "m, rad", "rates of the next position, dof by dof"),
        _found.real("dv", "nv", "m/s, rad/s", "rates of the next velocity"),
        _found.real("report", "3", "1", "FITS, NEAREST (columns.py), KNOWN (formulas.py)"),
        _work.real("lower_g", "nv", "N, N m", "the residual at the lower point"),
        _work.real("lower_p", "nv", "N, N m", "p at the lower point"),
        _work.real("next_qvel", "nv", "m/s, rad/s", "the next velocity"),
        _work.real("unit", "nv", "1", "displacement of the position by the coordinate"),
        _work.real("solved", "nv", "m/s^2, rad/s^2", "H^-1 of a column"),
        _work.real("force", "nv", "N, N m", "forces that are given, and products of the integrator's matrix"),
        _work.real("product", "nv", "N, N m", "products of the inertia matrix"),
        _work.real("upper_force", "nv", "N, N m", "forces of general rows at a point above"),
        _work.real("lower_force", "nv", "N, N m", "forces of general rows at a point below"),
    ),
)

SIZES = (
    size("rate_steps", "1: rates of the next state are asked for, 0: those of accelerations alone"),
    size("rate_rest", "1: forces that formulas do not have go by differences besides"),
)

_scratch = Declare("formula_columns", "scratch")
RATES = Layout(
    "Rates",
    (
        *COLUMNS.fields,
        *SIZES,
        _scratch.real("taken_off", "nv", "m/s^2, rad/s^2", "acceleration that the integrator takes off"),
        # of each dof
        _scratch.real("dof_carried", "nv 6", "1/s^2", "acceleration of the bodies beyond that its displacement gives"),
        _scratch.real("dof_turned", "nv 3", "1/s", "angular velocity that it gives them"),
        _scratch.real("dof_rate", "nv 6", "1/s", "acceleration of the bodies beyond that its velocity gives"),
        _scratch.real("dof_momentum", "nv 6", "kg m", "I^c S"),
        _scratch.real("dof_drag", "nv 3", "kg m^2/s", "B^c^T S, its rotational part"),
        _scratch.real("dof_force", "nv 6", "N", "rate by its displacement of the force on all beyond it"),
        _scratch.real("dof_damping_force", "nv 6", "N s", "rate by its velocity of the same"),
        _scratch.real("dof_lag", "nv 6", "1/s^2", "dof_carried of the acceleration that the integrator takes off"),
        _scratch.real("dof_lag_force", "nv 6", "N", "dof_force of it"),
        _scratch.real("dof_lift", "nv 3", "kg", "momentum of what gravity compensation carries beyond it"),
        _scratch.real("dof_stiffness", "nv", "N/m, N m/rad", "springs, actuators and limits of the dof alone"),
        _scratch.real("dof_friction", "nv", "N s/m, N m s/rad", "the same by its velocity"),
        _scratch.real("dof_lag_friction", "nv", "N/m, N m/rad", "rate of what the integrator damps, over -h"),
        _scratch.real("dof_curvature", "nv", "kg, kg m^2", "rate by its acceleration: of limits and dry friction"),
        _scratch.real("dof_tangent", "nv 3", "1", "columns of the right Jacobian of SO(3) at h w', of quaternions"),
        _scratch.real("dof_back", "nv 3", "1", "columns of exp(-h w')"),
        _scratch.real("act_upper", "na", "1", "next activations at an upper point"),
        # of the columns that are solved together
        _scratch.int("panel_at", f"{PANEL}", "1", "their coordinates"),
        _scratch.real("panel_acceleration", f"nv {PANEL}", "m/s^2, rad/s^2", "rates of the acceleration"),
        _scratch.real("panel_lag", f"nv {PANEL}", "N, N m", "dof_p"),
        _scratch.real("panel_step", f"nv {PANEL}", "m/s^2, rad/s^2", "rates of the integrator's acceleration"),
        _scratch.real("panel_act", f"na {PANEL}", "1", "rates of the next activations"),
        # of each body
        _scratch.real("body_lag", "nbody 6", "m/s^2", "the acceleration that the integrator takes off"),
        _scratch.real("body_lag_force", "nbody 6", "N", "force that gives it"),
        _scratch.real("body_lift", "nbody 4", "kg, kg m", "what is carried of it and of all beyond, and its moment"),
        # of each geom
        _scratch.real("geom_pos", "ngeom 3", "m", "where geoms are"),
        _scratch.real("geom_mat", "ngeom 9", "1", "how they are turned"),
        # of each contact slot
        _scratch.int("slot_cand", "nconmax", "1", "candidate of the slot"),
        _scratch.int("slot_point", "nconmax", "1", "point of its pair"),
        _scratch.int("slot_geom", "nconmax 2", "1", "geoms of the slot"),
        _scratch.int("slot_carrier", "nconmax 2", "1", "bodies of the slot"),
        _scratch.int("slot_at", "nconmax", "1", "where it is at a displaced pose"),
        _scratch.int("slot_taken", "nconmax", "1", "1: a slot there is known"),
        _scratch.real("slot_present", "nconmax", "1", "1 where the world has the contact"),
        _scratch.real("slot_upper", "nconmax 13", "m, 1", "distance, position and frame at a displaced pose"),
        _scratch.real("slot_lower", "nconmax 13", "m, 1", "the same at the opposite one"),
        _scratch.real("slot_own", "nconmax 13", "m, 1", "the same at the world's own pose"),
        _scratch.real("slot_lost", "nconmax", "1", "1 where no point is near at the displaced pose"),
        _scratch.real("slot_moves", "nconmax 42", "1", "rates of distance, point and frame's turn by a relative twist"),
        _scratch.real("slot_spin", "nconmax 3", "1", "spin of the frame about its normal if all turns, less the turn"),
        _scratch.real("slot_force", "nconmax 6", "N m, N", "moment and force on the body that is pushed"),
        _scratch.real("slot_motion", "nconmax 12", "m/s^2, m/s", "relative acceleration and velocity, angular first"),
        _scratch.real("slot_slope", "nconmax 2", "1/m, 1/s^2", "rates by distance: of all stiffnesses, of aref"),
        _scratch.real("slot_curvature", "nconmax 36", "kg", "second derivative of the cost in the contact's basis"),
        _scratch.real("slot_gone", "nconmax", "1", "1: the contact is at neither of two displaced poses, 0.5: at one"),
        _scratch.real("slot_jumps", "1", "1", "1 where a contact's point is nowhere near at both poses of a twist"),
        _scratch.real("slot_near", "1", "1", "1 where other contacts are at a displaced pose"),
        _scratch.real("slot_known", "1", "1", "1 where all displaced poses have the contacts of the world, -1 no room"),
    ),
)
