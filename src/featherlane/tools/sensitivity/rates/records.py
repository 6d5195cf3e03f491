"""Records of passes that differentiate: inputs and outputs of a column, and intermediate results of formulas.

A column belongs to a coordinate.  `COLUMNS` is the record of all passes.  `RATES` has its fields first, then those of
formulas.  `LCP_RATES` (lcp_rates.py) has the fields of `RATES` first.
"""

from featherlane.engine.dynamics.sparse.tree_factor import PANEL
from featherlane.engine.lanes.layout import Declare, Layout, size
from featherlane.engine.spatial.types import Force, Mat3, Motion, Vec3, Vec4, Wrench
from featherlane.tools.sensitivity.rates.contact_types import ContactPlace, ContactSlope, Weight

# indices in the report of a pass on a world; KNOWN: 1 all rates have formulas, 0 not, -1 the world must run alone;
# HELD, of `base_tiles`: 1 the world has constraint rows
FITS, NEAREST, KNOWN, HELD = 0, 1, 2, 2

_given, _found, _work = Declare("", "given"), Declare("", "output"), Declare("", "scratch")

COLUMNS = Layout(
    "Columns",
    (
        _given.real("at", "1", "1", "index of the coordinate, -1: none"),
        _given.real("displacement", "1", "1", "displacement of the coordinate"),
        _given.real("inwards", "1", "1", "1: a control at its upper limit is displaced down"),
        _given.real("follow", "nv", "m/s^2, rad/s^2", "derivative of the acceleration along which dg is taken"),
        _given.real("rest_p", "nv", "N, N m", "derivative of M a* - K a*, if it is computed by finite differences"),
        _found.real("dg", "nv", "N, N m", "derivative of the residual, or the residual at a point"),
        _found.real("dp", "nv", "N, N m", "derivative of the integrator's correction p, or p at a point"),
        _found.real("dact", "na", "1", "derivative of the next activations, or the activations at a point"),
        _found.real("da", "nv", "m/s^2, rad/s^2", "derivative of the acceleration"),
        _found.real("dq", "nv", "m, rad", "derivative of the next position, by dof"),
        _found.real("dv", "nv", "m/s, rad/s", "derivative of the next velocity"),
        _found.real("report", "3", "1", "FITS, NEAREST, KNOWN (solution.py)"),
        _work.real("point_g", "nv", "N, N m", "residual at a displaced point"),
        _work.real("point_p", "nv", "N, N m", "p at a displaced point"),
        _work.real("next_qvel", "nv", "m/s, rad/s", "next velocity"),
        _work.rows(Vec3, "dof_tangent", "nv", "1", "columns of the right Jacobian of SO(3) at h w' (quaternions)"),
        _work.rows(Vec3, "dof_back", "nv", "1", "columns of exp(-h w')"),
        _work.real("solved", "nv", "m/s^2, rad/s^2", "H^-1 times a column"),
        _work.real("force", "nv", "N, N m", "given forces, and products with the integrator's matrix"),
        _work.real("product", "nv", "N, N m", "products with the mass matrix"),
    ),
)

SWEEPS = 16  # of the no-slip solver, whose accelerations are kept for all columns

SIZES = (
    size("rate_steps", "1: compute derivatives of the next state, 0: of accelerations only"),
    size("differences_p", "1: the call provides derivatives of M a* - K a*"),
    size("nslipmax", "capacity: rows of friction of the no-slip solver"),
)

_scratch = Declare("formula_columns", "scratch")
RATES = Layout(
    "Rates",
    (
        *COLUMNS.fields,
        *SIZES,
        _scratch.real("taken_off", "nv", "m/s^2, rad/s^2", "acceleration that the integrator subtracts"),
        # of each dof
        _scratch.rows(Motion, "dof_zeta", "nv", "1/s^2", "derivative of the descendants' acceleration by position"),
        _scratch.rows(Vec3, "dof_eta_angular", "nv", "1/s", "angular part of eta, of smooth_rates.py"),
        _scratch.rows(Motion, "dof_w", "nv", "1/s", "derivative of the descendants' acceleration by velocity"),
        _scratch.rows(Force, "dof_momentum", "nv", "kg m", "I^c S"),
        _scratch.rows(Vec3, "dof_drag", "nv", "kg m^2/s", "B^c^T S, rotational part"),
        _scratch.rows(Force, "dof_force", "nv", "N", "derivative of the descendants' composite force by position"),
        _scratch.rows(Force, "dof_damping_force", "nv", "N s", "derivative of this force by velocity"),
        _scratch.rows(Motion, "dof_field_zeta", "nv", "1/s^2", "dof_zeta of the subtracted acceleration"),
        _scratch.rows(Force, "dof_field_force", "nv", "N", "dof_force of the subtracted acceleration"),
        _scratch.rows(Force, "dof_fluid", "nv", "kg/s", "derivative of the fluid force by the descendants' motion"),
        _scratch.rows(Vec3, "dof_lift", "nv", "kg", "gravity-compensated first moment of the descendants"),
        _scratch.real("dof_stiffness", "nv", "N/m, N m/rad", "stiffness of springs, actuators, limits of this dof"),
        _scratch.real("dof_net_damping", "nv", "N s/m, N m s/rad", "damping of dampers, actuators, rows of this dof"),
        _scratch.real("dof_implicit_damping", "nv", "N/m, N m/rad", "derivative of the implicit damping force over -h"),
        _scratch.real("dof_curvature", "nv", "kg, kg m^2", "derivative of limits and dry friction by acceleration"),
        # of each tendon and each general row
        _scratch.real("ten_force", "ntendon", "N", "tension of springs, dampers, actuators, limits and dry friction"),
        _scratch.real("ten_curvature", "ntendon", "kg", "derivative of the tension by the length's acceleration"),
        _scratch.real("dJ", "nv", "m", "derivative of a row of the tendons' Jacobian by the position of a dof"),
        _scratch.real("ten_stiffness", "ntendon", "N/m", "minus the derivative of the tension by the length"),
        _scratch.real("ten_damping", "ntendon", "N s/m", "minus the derivative of the tension by the length's rate"),
        _scratch.real("row_force", "nrowmax", "N", "force of an equality, or of the limit of a ball"),
        _scratch.real("row_stiffness", "nrowmax", "N/m", "minus the derivative of the force by the error"),
        _scratch.real("row_damping", "nrowmax", "N s/m", "minus the derivative of the force by the velocity"),
        _scratch.real("row_curvature", "nrowmax", "kg", "minus the derivative of the force by the acceleration"),
        _scratch.real("row_J2_stiffness", "nrowmax", "N/m", "force times second derivative of the polynomial"),
        _scratch.real("row_cross_stiffness", "nrowmax", "N/m", "derivative of the force by the second coordinate"),
        # of the columns that are solved together
        _scratch.int("panel_at", f"{PANEL}", "1", "coordinates of the columns solved together"),
        _scratch.rows(Vec4, "panel_acceleration", "nv", "m/s^2, rad/s^2", "derivatives of the acceleration"),
        _scratch.rows(Vec4, "panel_dp", "nv", "N, N m", "derivatives of the integrator's correction p"),
        _scratch.rows(Vec4, "panel_step", "nv", "m/s^2, rad/s^2", "derivatives of the integrator's acceleration"),
        _scratch.real("panel_act", f"na {PANEL}", "1", "derivatives of the next activations"),
        # of each body
        _scratch.int("npushed", "1", "1", "number of bodies with applied forces"),
        _scratch.int("body_pushed", "nbody", "1", "1: a world of the tile has an applied force on the body"),
        _scratch.rows(Motion, "body_field", "nbody", "m/s^2", "subtracted acceleration of the body"),
        _scratch.rows(Force, "body_field_force", "nbody", "N", "force for the subtracted acceleration"),
        _scratch.rows(
            Weight, "body_lift", "nbody", "kg, kg m", "gravity-compensated mass of the subtree, first moment"
        ),
        # of each geom
        _scratch.rows(Vec3, "geom_pos", "ngeom", "m", "positions of geoms"),
        _scratch.rows(Mat3, "geom_mat", "ngeom", "1", "orientations of geoms"),
        # of each contact slot
        _scratch.int("slot_cand", "nconmax", "1", "candidate pair of the slot"),
        _scratch.int("slot_point", "nconmax", "1", "index of the contact in its pair"),
        _scratch.int("slot_geom", "nconmax 2", "1", "geoms of the slot"),
        _scratch.int("slot_carrier", "nconmax 2", "1", "bodies of the slot"),
        _scratch.int("slot_at", "nconmax", "1", "slot of this contact at a displaced pose"),
        _scratch.int("slot_taken", "nconmax", "1", "1: this slot of the displaced pose is matched"),
        _scratch.real("slot_present", "nconmax", "1", "1: the world has the contact"),
        _scratch.rows(ContactPlace, "slot_upper", "nconmax", "m, 1", "distance, point and frame at the displaced pose"),
        _scratch.rows(ContactPlace, "slot_lower", "nconmax", "m, 1", "distance, point and frame at the opposite pose"),
        _scratch.rows(ContactPlace, "slot_own", "nconmax", "m, 1", "distance, point and frame at the own pose"),
        _scratch.real("slot_lost", "nconmax", "1", "1: no contact is near at the displaced pose"),
        _scratch.rows(Force, "slot_moves", "nconmax 7", "1", "derivatives of distance, point and frame by a twist"),
        _scratch.rows(Vec3, "slot_spin", "nconmax", "1", "spin of the frame relative to a rotation of both bodies"),
        _scratch.rows(Force, "slot_force", "nconmax", "N m, N", "moment and force on the first body"),
        _scratch.rows(Motion, "slot_acceleration", "nconmax", "m/s^2", "relative acceleration at the contact"),
        _scratch.rows(Motion, "slot_velocity", "nconmax", "m/s", "relative velocity at the contact"),
        _scratch.rows(
            ContactSlope, "slot_slope", "nconmax", "1/m, 1/s^2", "derivatives of stiffness and aref by distance"
        ),
        _scratch.rows(Wrench, "slot_curvature", "nconmax 6", "kg", "Hessian of the cost in the contact's basis"),
        _scratch.real(
            "slot_gone", "nconmax", "1", "1: absent at a displaced pose, or lost at both of a twist; 0.5: lost at one"
        ),
        _scratch.real("slot_jumps", "1", "1", "1: a contact has no near point at both poses of a twist"),
        _scratch.real("slot_near", "1", "1", "1: the displaced pose has other contacts"),
        _scratch.real("slot_known", "1", "1", "1: all displaced poses have the world's contacts, -1: buffer full"),
        # of each row of friction that the no-slip solver corrects
        _scratch.int("nslip", "1", "1", "number of rows"),
        _scratch.int("slip_con", "nslipmax", "1", "contact slot of the row"),
        _scratch.int("slip_axis", "nslipmax", "1", "index of the row in the contact's basis"),
        _scratch.real("slip_force", "nslipmax", "N, N m", "force before the correction: difference of two edges"),
        _scratch.real("slip_bound", "nslipmax", "N, N m", "sum of the forces of these edges"),
        _scratch.real("slip_y", "nslipmax", "m/s^2, rad/s^2", "J a - aref before the correction"),
        _scratch.real("slip_size", "nslipmax", "m/s^2, rad/s^2", "size of the row or its contact (switching.py)"),
        _scratch.real("slip_change", "nslipmax", "N, N m", "correction of the force"),
        _scratch.real("slip_dforce", "nslipmax", "N, N m", "derivative of slip_force by a coordinate"),
        _scratch.real("slip_dbound", "nslipmax", "N, N m", "derivative of slip_bound"),
        _scratch.real("slip_dy", "nslipmax", "m/s^2, rad/s^2", "derivative of slip_y"),
        _scratch.real("slip_dchange", "nslipmax", "N, N m", "derivative of slip_change"),
        _scratch.real("slip_path", f"nslipmax {SWEEPS}", "m/s^2, rad/s^2", "J a - aref of each update, first sweeps"),
        _scratch.rows(Motion, "slip_moved", "nslipmax", "1/kg", "derivative of each row's motion at one contact"),
        _scratch.real("slip_rows", "6", "m/s^2, rad/s^2", "derivatives of J a - aref of one contact"),
        _scratch.real("slip_stiffness", "1", "1", "relative derivative of its stiffness"),
        _scratch.real("slip_A", "nslipmax nslipmax", "1/kg", "J M^-1 J^T"),
        _scratch.real("slip_dA", "nslipmax nslipmax", "1/kg", "derivative of slip_A by the position of a dof"),
        _scratch.rows(Motion, "slip_zeta", "nslipmax nv", "1/s^2", "dof_field_zeta for the row's unit force"),
        _scratch.rows(Motion, "slip_motion", "nslipmax nbody", "1/kg", "accelerations of bodies by this force"),
        _scratch.rows(Force, "slip_momentum", "nslipmax nbody", "1", "their forces, with those of all descendants"),
    ),
)
