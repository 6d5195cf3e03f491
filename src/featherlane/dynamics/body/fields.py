"""Fields of bodies, joints and frames: poses, velocities and forces."""

from featherlane.lanes.layout import Declare

_kinematics_output = Declare("kinematics", "output")
_com_pos_output = Declare("com_pos", "output", condition="want_all")
_frames_output = Declare("frames", "output", condition="want_frames")
_com_pos_output_always = Declare("com_pos", "output")
_link_positions_output = Declare("link_positions", "output")
_com_vel_output = Declare("com_vel", "output")
_com_vel_output_conditional = Declare("com_vel", "output", condition="want_all")
_rne_output = Declare("rne", "output")
_rne_post_constraint_output = Declare("rne_post_constraint", "output", condition="want_wrenches want_all")
_detail = Declare("rne", "detail", condition="want_all")
_scratch = Declare("rne_vel", "scratch")

FIELDS = (
    _kinematics_output.real("xpos", "nbody 3", "m", "position of the body frame"),
    _kinematics_output.real("xquat", "nbody 4", "1", "orientation of the body frame"),
    _kinematics_output.real("xmat", "nbody 9", "1", "orientation of the body frame"),
    _kinematics_output.real("xipos", "nbody 3", "m", "position of the body's com"),
    _com_pos_output.real("ximat", "nbody 9", "1", "orientation of the body's principal axes"),
    _kinematics_output.real("xanchor", "njnt 3", "m", "position of the joint anchor"),
    _kinematics_output.real("xaxis", "njnt 3", "1", "joint axis in world coordinates"),
    _frames_output.real("geom_xpos", "ngeom 3", "m", "position of the geom"),
    _frames_output.real("geom_xmat", "ngeom 9", "1", "orientation of the geom"),
    _frames_output.real("site_xpos", "nsite 3", "m", "position of the site"),
    _frames_output.real("site_xmat", "nsite 9", "1", "orientation of the site"),
    _com_pos_output_always.real("subtree_com", "nbody 3", "m", "center of mass of each subtree"),
    _com_pos_output_always.real("cdof", "nv 6", "1, m", "motion axis of each dof at the tree's com, rotation first"),
    _com_pos_output_always.real("cinert", "nbody 10", "kg m^2, kg m, kg", "body inertia at the tree's com"),
    _link_positions_output.real("link_position", "nlink", "m, rad", "angle of a hinge, position of a slider"),
    _com_vel_output.real("cvel", "nbody 6", "rad/s, m/s", "body velocity at the tree's com, rotation first"),
    _com_vel_output_conditional.real("cdof_dot", "nv 6", "1/s, m/s", "time derivative of cdof"),
    _rne_output.real("qfrc_bias", "nv", "N, N m", "Coriolis, centrifugal and gravity forces C(q, v)"),
    _rne_post_constraint_output.real("cacc", "nbody 6", "rad/s^2, m/s^2", "body acceleration at the tree's com"),
    _detail.real("cfrc", "nbody 6", "N m, N", "body force at the tree's com"),
    _scratch.real("crb_rate", "nbody 12", "kg m^2/s", "composite: rate of inertia (6), momentum (6)"),
    _scratch.real("cdof_rate", "nv 6", "1/s, m/s", "d acceleration / d qvel, without the body's part"),
)
