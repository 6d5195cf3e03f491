"""Fields of bodies, joints and frames: poses, velocities and forces."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.lanes.rows import row_type
from featherlane.engine.spatial.types import Force, Inertia, Mat3, Motion, Quat, Vec3

# rate of the rotational inertia, angular and linear momentum
InertiaRate = row_type("InertiaRate", "Jxx Jyy Jzz Jxy Jxz Jyz lx ly lz px py pz")

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
    _kinematics_output.rows(Vec3, "xpos", "nbody", "m", "position of the body frame"),
    _kinematics_output.rows(Quat, "xquat", "nbody", "1", "orientation of the body frame"),
    _kinematics_output.rows(Mat3, "xmat", "nbody", "1", "orientation of the body frame"),
    _kinematics_output.rows(Vec3, "xipos", "nbody", "m", "position of the body's com"),
    _com_pos_output.rows(Mat3, "ximat", "nbody", "1", "orientation of the body's principal axes"),
    _kinematics_output.rows(Vec3, "xanchor", "njnt", "m", "position of the joint anchor"),
    _kinematics_output.rows(Vec3, "xaxis", "njnt", "1", "joint axis in world coordinates"),
    _frames_output.rows(Vec3, "geom_xpos", "ngeom", "m", "position of the geom"),
    _frames_output.rows(Mat3, "geom_xmat", "ngeom", "1", "orientation of the geom"),
    _frames_output.rows(Vec3, "site_xpos", "nsite", "m", "position of the site"),
    _frames_output.rows(Mat3, "site_xmat", "nsite", "1", "orientation of the site"),
    _com_pos_output_always.rows(Vec3, "subtree_com", "nbody", "m", "center of mass of each subtree"),
    _com_pos_output_always.rows(
        Motion, "cdof", "nv", "1, m", "motion axis of each dof at the tree's com, rotation first"
    ),
    _com_pos_output_always.rows(Inertia, "cinert", "nbody", "kg m^2, kg m, kg", "body inertia at the tree's com"),
    _link_positions_output.real("link_position", "nlink", "m, rad", "angle of a hinge, position of a slider"),
    _com_vel_output.rows(Motion, "cvel", "nbody", "rad/s, m/s", "body velocity at the tree's com, rotation first"),
    _com_vel_output_conditional.rows(Motion, "cdof_dot", "nv", "1/s, m/s", "time derivative of cdof"),
    _rne_output.real("qfrc_bias", "nv", "N, N m", "Coriolis, centrifugal and gravity forces C(q, v)"),
    _rne_post_constraint_output.rows(Motion, "cacc", "nbody", "rad/s^2, m/s^2", "body acceleration at the tree's com"),
    _detail.rows(Force, "cfrc", "nbody", "N m, N", "body force at the tree's com"),
    _scratch.rows(InertiaRate, "crb_rate", "nbody", "kg m^2/s", "composite: rate of inertia (6), momentum (6)"),
    _scratch.rows(Motion, "cdof_rate", "nv", "1/s, m/s", "d acceleration / d qvel, without the body's part"),
)
