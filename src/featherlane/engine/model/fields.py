"""Declares the model's record: every field that the engine reads.

`MUJOCO` lists the fields copied from MuJoCo's model; `OWN` those with the initial value next to them; the functions in
`DERIVED` declare the fields that they compute (`derived.py`).

Names and meanings are MuJoCo's; options have the prefix `opt_`, statistics `stat_`, candidate collision pairs `cand_`.
Sizes and ints are shared by all worlds.  Every real may differ by world: users edit and randomise these fields (domain
randomization).  Angles are radians, quaternions are (w, x, y, z), spatial rows put rotation first.
"""

from __future__ import annotations

from typing import Any

from featherlane.engine.lanes.layout import Declare, Field, Layout, size
from featherlane.engine.model.actuators import actuator_kinds
from featherlane.engine.model.ancestors import ancestor_chains
from featherlane.engine.model.broad_phase import broad_phase
from featherlane.engine.model.derived import derived
from featherlane.engine.model.field_tree import field_trees
from featherlane.engine.model.forward_dynamics import choices
from featherlane.engine.model.geom import Fluid
from featherlane.engine.model.hull import hulls
from featherlane.engine.model.link import link_fields
from featherlane.engine.model.moments import moment_rows
from featherlane.engine.model.paths import step_frames
from featherlane.engine.model.presence import presence
from featherlane.engine.model.shapes import visible_geoms
from featherlane.engine.model.signed_distance import signed_distances
from featherlane.engine.model.sleep import asleep_at_start
from featherlane.engine.model.taxels import taxels, touch_grids
from featherlane.engine.model.triangle_tree import triangle_trees
from featherlane.engine.spatial.types import (
    Box,
    Intrinsic,
    Invweight,
    Mat3,
    Powers,
    Quat,
    Range,
    Solimp,
    Solref,
    Vec2,
    Vec3,
    Vec4,
    Vec5,
    Vec10,
    Wrench,
)

_field = Declare()

MUJOCO = (
    # sizes
    size("nq", "coordinates: length of qpos"),
    size("nv", "degrees of freedom: length of qvel"),
    size("nu", "controls: length of ctrl"),
    size("na", "activations: length of act"),
    size("nactuator", "actuators"),
    size("nout", "force outputs of actuators"),
    size("nbody", "bodies, the world included as body 0"),
    size("njnt", "joints"),
    size("ntree", "kinematic trees under the world"),
    size("nM", "non-zeros of the inertia matrix on its full tree pattern"),
    size("nC", "non-zeros of M as stored: lower triangle, simple bodies reduced to their diagonal"),
    size("nD", "non-zeros of the velocity derivatives: M's full tree pattern, both triangles"),
    size("ngeom", "geoms"),
    size("nsite", "sites"),
    size("nmocap", "mocap bodies"),
    size("npair", "explicit geom pairs"),
    size("neq", "equality constraints"),
    size("nmesh", "meshes"),
    size("nhfield", "height fields"),
    size("nhfielddata", "heights of all height fields"),
    size("ngravcomp", "bodies with gravity compensation; updated by each call"),
    size("ncam", "cameras"),
    size("ntendon", "tendons"),
    size("nJten", "non-zeros of the tendons' Jacobian"),
    size("nwrap", "elements of all tendons' paths"),
    size("nsensor", "sensors"),
    size("nsensordata", "sensor values: length of sensordata"),
    size("nhistory", "history of delayed controls and sensors: length of history"),
    size("nplastic", "references of plastic springs: length of plastic"),
    size("flg_adhesion", "1: at least one geom or pair is adhesive; updated by each call"),
    size("flg_surfacevel", "1: at least one geom has a surface velocity; updated by each call"),
    # options
    size("opt_integrator", "0 Euler, 1 RK4, 2 implicit, 3 implicitfast, 4 discrete"),
    size("opt_cone", "0 pyramidal, 1 elliptic"),
    size("opt_solver", "0 PGS, 1 CG, 2 Newton"),
    size("opt_iterations", "largest number of solver iterations"),
    size("opt_noslip_iterations", "largest number of iterations of the no-slip solver, 0: disabled"),
    size("opt_ls_iterations", "largest number of line search iterations"),
    size("opt_sdf_initpoints", "starting points of collisions of signed distance fields"),
    size("opt_sdf_iterations", "iterations of their minimization"),
    size("opt_disableflags", "bits of mjtDisableBit"),
    size("opt_enableflags", "bits of mjtEnableBit"),
    size("opt_disableactuator", "bits of the disabled actuator groups"),
    _field.real("opt_timestep", "1", "s", "time step", "float64"),
    _field.rows(Vec3, "opt_gravity", "", "m/s^2", "gravitational acceleration, world axes"),
    _field.rows(Vec3, "opt_wind", "", "m/s", "wind: velocity of the fluid, world axes"),
    _field.rows(Vec3, "opt_magnetic", "", "T", "magnetic flux, world axes"),
    _field.real("opt_density", "1", "kg/m^3", "density of the fluid"),
    _field.real("opt_viscosity", "1", "Pa s", "viscosity of the fluid"),
    _field.real("opt_impratio", "1", "1", "ratio of frictional to normal contact impedance"),
    _field.real("opt_tolerance", "1", "1", "solver stops at a scaled improvement or gradient below this"),
    _field.real("opt_ls_tolerance", "1", "1", "line search stops at a relative slope below this"),
    _field.real("opt_noslip_tolerance", "1", "1", "the no-slip solver stops at a scaled improvement below this"),
    _field.real("opt_sleep_tolerance", "1", "m/s", "a tree whose velocities are below this may fall asleep"),
    _field.real("opt_ccd_tolerance", "1", "m", "tolerance of the distance at impact, with the flag speculative"),
    _field.real("opt_o_margin", "1", "m", "margin of all contacts, with the flag override"),
    _field.rows(Solref, "opt_o_solref", "", "s, 1", "solref of all contacts, with the flag override"),
    _field.rows(Solimp, "opt_o_solimp", "", "1", "solimp of all contacts, with the flag override"),
    _field.real("opt_o_friction", "5", "1, m", "friction of all contacts, with the flag override"),
    _field.real("stat_meaninertia", "1", "kg, kg m^2", "mean diagonal of M in qpos0, from the compiler"),
    # bodies
    _field.int("body_parentid", "nbody", "1", "parent body"),
    _field.int("body_rootid", "nbody", "1", "root body of the tree: the ancestor that is a child of the world"),
    _field.int("body_weldid", "nbody", "1", "topmost body that it is welded to; a mocap body: itself"),
    _field.int("body_mocapid", "nbody", "1", "row in mocap_pos, -1: not a mocap body"),
    _field.int("body_jntnum", "nbody", "1", "joints of the body"),
    _field.int("body_jntadr", "nbody", "1", "first joint, -1: none"),
    _field.int("body_dofnum", "nbody", "1", "dofs of the body"),
    _field.int("body_dofadr", "nbody", "1", "first dof, -1: none"),
    _field.int("body_treeid", "nbody", "1", "kinematic tree, -1: static"),
    _field.int("body_geomnum", "nbody", "1", "geoms of the body"),
    _field.int("body_geomadr", "nbody", "1", "first geom, -1: none"),
    _field.int("body_simple", "nbody", "1", "1: the rows of M are diagonal; 2: and all joints are slides; 0: neither"),
    _field.rows(Vec3, "body_pos", "nbody", "m", "offset from the parent's frame"),
    _field.rows(Quat, "body_quat", "nbody", "1", "rotation from the parent's frame"),
    _field.rows(Vec3, "body_ipos", "nbody", "m", "centre of mass in the body's frame"),
    _field.rows(Quat, "body_iquat", "nbody", "1", "principal axes of inertia in the body's frame"),
    _field.real("body_mass", "nbody", "kg", "mass"),
    _field.real("body_subtreemass", "nbody", "kg", "mass of the subtree: the body and its descendants"),
    _field.rows(Vec3, "body_inertia", "nbody", "kg m^2", "principal moments of inertia about the centre of mass"),
    _field.rows(Invweight, "body_invweight0", "nbody", "1/kg, 1/(kg m^2)", "inverse inertia in qpos0: linear, angular"),
    _field.real("body_gravcomp", "nbody", "1", "gravity compensation, as a fraction of the body's weight"),
    # joints
    _field.int("jnt_type", "njnt", "1", "0 free, 1 ball, 2 slide, 3 hinge"),
    _field.int("jnt_qposadr", "njnt", "1", "first coordinate in qpos"),
    _field.int("jnt_dofadr", "njnt", "1", "first dof in qvel"),
    _field.int("jnt_bodyid", "njnt", "1", "body that the joint moves"),
    _field.int("jnt_actuatorid", "njnt", "1", "actuator that adds damping or armature: -1 none, -2 several"),
    _field.int("jnt_plasticadr", "njnt", "1", "first plastic reference of the joint's spring, -1: not plastic"),
    _field.int("jnt_limited", "njnt", "1", "the joint has limits", "bool"),
    _field.int("jnt_actfrclimited", "njnt", "1", "the sum of actuator forces is clamped", "bool"),
    _field.int("jnt_actgravcomp", "njnt", "1", "gravity compensation counts as actuator force", "bool"),
    _field.rows(Solref, "jnt_solref", "njnt", "s, 1", "solref: time constant, damping ratio; or -stiffness, -damping"),
    _field.rows(Solimp, "jnt_solimp", "njnt", "1", "solimp of the limit: dmin, dmax, width, midpoint, power"),
    _field.rows(Vec3, "jnt_pos", "njnt", "m", "anchor in the body's frame"),
    _field.rows(Vec3, "jnt_axis", "njnt", "1", "axis in the body's frame"),
    _field.real("jnt_stiffness", "njnt", "N/m, N m/rad", "linear spring stiffness"),
    _field.rows(Powers, "jnt_stiffnesspoly", "njnt", "N/m^2, N/m^3", "stiffness coefficients of higher powers"),
    _field.real("jnt_springyield", "njnt", "m, rad", "yield deflection: beyond it the spring's reference moves"),
    _field.rows(Range, "jnt_range", "njnt", "m, rad", "lower and upper limit; a ball: the larger is its largest angle"),
    _field.rows(Range, "jnt_actfrcrange", "njnt", "N, N m", "range of the sum of actuator forces"),
    _field.real("jnt_margin", "njnt", "m, rad", "distance from the limit at which its row appears"),
    _field.real("qpos0", "nq", "m, rad, 1", "reference configuration: coordinates in which the model was defined"),
    _field.real("qpos_spring", "nq", "m, rad, 1", "rest configuration of the joint springs"),
    # dofs
    _field.int("dof_bodyid", "nv", "1", "body that the dof moves"),
    _field.int("dof_jntid", "nv", "1", "joint of the dof"),
    _field.int("dof_parentid", "nv", "1", "next dof towards the root, -1: none (Featherstone's expanded parent array)"),
    _field.int("dof_treeid", "nv", "1", "kinematic tree of the dof"),
    _field.int("dof_simplenum", "nv", "1", "number of consecutive simple dofs from this one on"),
    _field.rows(Solref, "dof_solref", "nv", "s, 1", "solref of the friction loss row"),
    _field.rows(Solimp, "dof_solimp", "nv", "1", "solimp of the friction loss row"),
    _field.real("dof_frictionloss", "nv", "N, N m", "largest dry friction"),
    _field.real("dof_length", "nv", "m", "scale of its velocity to m/s: 1, or the mean lever arm of a rotation"),
    _field.real("dof_armature", "nv", "kg, kg m^2", "inertia added on the diagonal of M"),
    _field.real("dof_damping", "nv", "N s/m, N m s/rad", "linear damping"),
    _field.rows(Powers, "dof_dampingpoly", "nv", "N s^2/m^2, N s^3/m^3", "damping coefficients of higher powers"),
    _field.real("dof_invweight0", "nv", "1/kg, 1/(kg m^2)", "diagonal of the inverse inertia in qpos0"),
    _field.real("dof_M0", "nv", "kg, kg m^2", "diagonal of the inertia in qpos0"),
    # kinematic trees, M and D
    _field.int("tree_bodyadr", "ntree", "1", "first body of the tree"),
    _field.int("tree_bodynum", "ntree", "1", "bodies of the tree"),
    _field.int("tree_dofadr", "ntree", "1", "first dof of the tree"),
    _field.int("tree_dofnum", "ntree", "1", "dofs of the tree"),
    _field.int("tree_sleep_policy", "ntree", "1", "mjtSleepPolicy: 1, 3 never sleeps; 2, 4 may sleep; 5 starts asleep"),
    _field.int("M_rownnz", "nv", "1", "non-zeros in a row of M's lower triangle, the diagonal last"),
    _field.int("M_rowadr", "nv", "1", "address of a row's first entry"),
    _field.int("M_colind", "nC", "1", "column of an entry, ascending in a row"),
    _field.int("D_rownnz", "nv", "1", "non-zeros in a row of D: the dof's ancestors, itself, its descendants"),
    _field.int("D_rowadr", "nv", "1", "address of a row's first entry"),
    _field.int("D_diag", "nv", "1", "place of the diagonal in its row"),
    _field.int("D_colind", "nD", "1", "column of an entry, ascending in a row"),
    # geoms
    _field.int(
        "geom_type", "ngeom", "1", "0 plane, 1 hfield, 2 sphere, 3 capsule, 4 ellipsoid, 5 cylinder, 6 box, 7 mesh"
    ),
    _field.int("geom_contype", "ngeom", "1", "collision bits: types of the geom"),
    _field.int("geom_conaffinity", "ngeom", "1", "collision bits: types that the geom collides with"),
    _field.int("geom_condim", "ngeom", "1", "dimension of the contact space: 1, 3, 4 or 6"),
    _field.int("geom_bodyid", "ngeom", "1", "body that carries the geom"),
    _field.int("geom_dataid", "ngeom", "1", "mesh or height field of the geom, -1: none"),
    _field.int("geom_group", "ngeom", "1", "group for display"),
    _field.int("geom_priority", "ngeom", "1", "the geom of higher priority sets the contact's parameters"),
    _field.real("geom_solmix", "ngeom", "1", "weight in the mixing of two geoms' solref and solimp"),
    _field.rows(Solref, "geom_solref", "ngeom", "s, 1", "solref of contacts"),
    _field.rows(Solimp, "geom_solimp", "ngeom", "1", "solimp of contacts"),
    _field.rows(Vec3, "geom_size", "ngeom", "m", "sizes; capsule: radius, half length; box: half sides"),
    _field.rows(Box, "geom_aabb", "ngeom", "m", "bounding box in the geom's frame: centre, half sides"),
    _field.real("geom_rbound", "ngeom", "m", "radius of the bounding sphere, 0: unbounded"),
    _field.rows(Vec3, "geom_pos", "ngeom", "m", "offset from the body's frame"),
    _field.rows(Quat, "geom_quat", "ngeom", "1", "rotation from the body's frame"),
    _field.rows(Vec3, "geom_friction", "ngeom", "1, m, m", "friction: sliding, spinning, rolling"),
    _field.real("geom_rgba", "ngeom 4", "1", "colour, for images"),
    # whole numbers, stored as reals because they may differ by world (`set_variant`)
    _field.real("geom_variant", "ngeom", "1", "mesh or height field of the geom; -1: none, -2: the geom is absent"),
    _field.real("geom_material", "ngeom", "1", "material of the geom, for images; -1: none"),
    _field.rows(Fluid, "geom_fluid", "ngeom", "1", "coefficients of the ellipsoid model of fluid forces"),
    _field.real("geom_margin", "ngeom", "m", "distance below which a contact is active"),
    _field.real("geom_gap", "ngeom", "m", "distance beyond the margin up to which inactive contacts are listed"),
    _field.real("geom_adhesion", "ngeom", "N", "adhesion: largest tensile force of a contact, if flg_adhesion is 1"),
    _field.real("geom_surfacevel", "ngeom 6", "m/s, rad/s", "velocity of the surface, geom's frame, angular last"),
    # meshes
    _field.rows(Vec3, "mesh_pos", "nmesh", "m", "offset of the vertices' frame from the file's frame", shared=True),
    _field.rows(Quat, "mesh_quat", "nmesh", "1", "rotation of the vertices' frame from the file's frame", shared=True),
    # height fields
    _field.int("hfield_nrow", "nhfield", "1", "rows of samples, along y"),
    _field.int("hfield_ncol", "nhfield", "1", "columns of samples, along x"),
    _field.int("hfield_adr", "nhfield", "1", "first height"),
    _field.rows(Vec4, "hfield_size", "nhfield", "m", "half sides, elevation of height 1, base depth", shared=True),
    _field.scalar("hfield_data", "nhfielddata", "1", "heights between 0 and 1, row by row"),
    # sites
    _field.int("site_bodyid", "nsite", "1", "body that carries the site"),
    _field.int("site_type", "nsite", "1", "shape: 2 sphere, 3 capsule, 4 ellipsoid, 5 cylinder, 6 box, 7 mesh"),
    _field.int("site_dataid", "nsite", "1", "mesh of the site, -1: none"),
    _field.rows(Vec3, "site_pos", "nsite", "m", "offset from the body's frame"),
    _field.rows(Quat, "site_quat", "nsite", "1", "rotation from the body's frame"),
    _field.rows(Vec3, "site_size", "nsite", "m", "half sizes, as for a geom of the same type"),
    # explicit pairs
    _field.int("pair_dim", "npair", "1", "dimension of the contact space"),
    _field.int("pair_geom1", "npair", "1", "first geom"),
    _field.int("pair_geom2", "npair", "1", "second geom"),
    _field.rows(Solref, "pair_solref", "npair", "s, 1", "solref of the normal rows"),
    _field.rows(Solref, "pair_solreffriction", "npair", "s, 1", "solref of the friction rows; zeros: the normal rows'"),
    _field.rows(Solimp, "pair_solimp", "npair", "1", "solimp"),
    _field.real("pair_margin", "npair", "m", "distance below which the contact is active"),
    _field.real("pair_gap", "npair", "m", "distance beyond the margin up to which the inactive contact is listed"),
    _field.rows(Vec5, "pair_friction", "npair", "1, 1, m, m, m", "friction: two sliding, spinning, two rolling"),
    _field.real("pair_adhesion", "npair", "N", "adhesion: largest tensile force of the contact, if flg_adhesion is 1"),
    # equality constraints
    _field.int("eq_type", "neq", "1", "0 connect, 1 weld, 2 joint"),
    _field.int("eq_obj1id", "neq", "1", "first body, site or joint"),
    _field.int("eq_obj2id", "neq", "1", "second body, site or joint, -1: no second joint"),
    _field.int("eq_objtype", "neq", "1", "1 body, 3 joint, 6 site"),
    _field.int("eq_active0", "neq", "1", "the constraint is active after a reset", "bool"),
    _field.rows(Solref, "eq_solref", "neq", "s, 1", "solref"),
    _field.rows(Solimp, "eq_solimp", "neq", "1", "solimp"),
    _field.real("eq_data", "neq 12", "m, 1", "connect: anchors; weld: anchor, relative pose, torquescale; joint: a_k"),
    # tendons
    _field.int("tendon_adr", "ntendon", "1", "first element of the tendon's path"),
    _field.int("tendon_num", "ntendon", "1", "elements of the path"),
    _field.int("tendon_actuatorid", "ntendon", "1", "actuator that adds damping or armature: -1 none, -2 several"),
    _field.int("tendon_plasticadr", "ntendon", "1", "plastic reference of the tendon's spring, -1: not plastic"),
    _field.int("tendon_treenum", "ntendon", "1", "number of kinematic trees along the path"),
    _field.int("tendon_treeid", "ntendon 2", "1", "the first two trees along the path"),
    _field.int("ten_J_rownnz", "ntendon", "1", "non-zeros in a row of the tendons' Jacobian"),
    _field.int("ten_J_rowadr", "ntendon", "1", "address of a row's first entry"),
    _field.int("ten_J_colind", "nJten", "1", "dof of an entry, ascending in a row"),
    _field.int("tendon_limited", "ntendon", "1", "the length has limits", "bool"),
    _field.int("tendon_actfrclimited", "ntendon", "1", "the sum of actuator forces is clamped", "bool"),
    _field.rows(Solref, "tendon_solref_lim", "ntendon", "s, 1", "solref of the limit"),
    _field.rows(Solimp, "tendon_solimp_lim", "ntendon", "1", "solimp of the limit"),
    _field.rows(Solref, "tendon_solref_fri", "ntendon", "s, 1", "solref of the friction loss row"),
    _field.rows(Solimp, "tendon_solimp_fri", "ntendon", "1", "solimp of the friction loss row"),
    _field.rows(Range, "tendon_range", "ntendon", "m", "lower and upper limit of the length"),
    _field.rows(Range, "tendon_actfrcrange", "ntendon", "N", "range of the sum of actuator forces"),
    _field.real("tendon_margin", "ntendon", "m", "distance from the limit at which its row appears"),
    _field.real("tendon_stiffness", "ntendon", "N/m", "linear spring stiffness"),
    _field.rows(Powers, "tendon_stiffnesspoly", "ntendon", "N/m^2, N/m^3", "stiffness coefficients of higher powers"),
    _field.real("tendon_damping", "ntendon", "N s/m", "linear damping"),
    _field.rows(Powers, "tendon_dampingpoly", "ntendon", "N s^2/m^2, N s^3/m^3", "coefficients of higher powers"),
    _field.real("tendon_armature", "ntendon", "kg", "armature: inertia with respect to the rate of the length"),
    _field.real("tendon_frictionloss", "ntendon", "N", "largest dry friction"),
    _field.rows(Range, "tendon_lengthspring", "ntendon", "m", "lengths between which the spring is at rest"),
    _field.real("tendon_springyield", "ntendon", "m", "yield deflection: beyond it the spring's references move"),
    _field.real("tendon_length0", "ntendon", "m", "length in qpos0"),
    _field.real("tendon_invweight0", "ntendon", "1/kg", "J M^-1 J^T in qpos0"),
    _field.int("wrap_type", "nwrap", "1", "0 none, 1 joint, 2 pulley, 3 site, 4 sphere, 5 cylinder"),
    _field.int("wrap_objid", "nwrap", "1", "joint, site or geom, -1: none"),
    _field.real("wrap_prm", "nwrap", "1", "joint: coefficient; pulley: divisor; geom: side site, -1: none"),
    # actuators
    _field.int(
        "actuator_trntype", "nactuator", "1", "0 joint, 1 jointinparent, 2 slidercrank, 3 tendon, 4 site, 5 body, 6 so3"
    ),
    _field.int(
        "actuator_dyntype",
        "nactuator",
        "1",
        "0 none, 1 integrator, 2 filter, 3 filterexact, 4 muscle, 5 dcmotor, 6 pid, 7 user",
    ),
    _field.int("actuator_gaintype", "nactuator", "1", "0 fixed, 1 affine, 2 muscle, 3 dcmotor, 4 so3, 5 pid, 6 user"),
    _field.int("actuator_biastype", "nactuator", "1", "0 none, 1 affine, 2 muscle, 3 dcmotor, 4 so3, 5 user"),
    _field.int("actuator_ctrlspec", "nactuator", "1", "meaning of the controls, by gain type"),
    _field.int("actuator_ctrladr", "nactuator", "1", "first control in ctrl"),
    _field.int("actuator_ctrlnum", "nactuator", "1", "controls of the actuator"),
    _field.int("actuator_outadr", "nactuator", "1", "first force output"),
    _field.int("actuator_outnum", "nactuator", "1", "force outputs of the actuator"),
    _field.int("actuator_actadr", "nactuator", "1", "first activation, -1: none"),
    _field.int("actuator_actnum", "nactuator", "1", "activations of the actuator"),
    _field.int("actuator_trnid", "nactuator 2", "1", "joint, tendon, site or body; site of the slider or reference"),
    _field.int("actuator_history", "nactuator 2", "1", "samples of the delayed control; interpolation order"),
    _field.int("actuator_historyadr", "nactuator", "1", "first value in history, -1: none"),
    _field.int("actuator_actlimited", "nactuator", "1", "the activation is clamped", "bool"),
    _field.int("actuator_actearly", "nactuator", "1", "the force is computed from the next activation", "bool"),
    _field.int("actuator_group", "nactuator", "1", "group; opt_disableactuator disables groups"),
    _field.int("actuator_ctrllimited", "nu", "1", "the control is clamped", "bool"),
    _field.int("actuator_forcelimited", "nactuator", "1", "the force is clamped", "bool"),
    _field.real("actuator_cranklength", "nactuator", "m", "length of the rod of a slider-crank"),
    _field.rows(Vec10, "actuator_dynprm", "nactuator", "s", "parameters of the activation"),
    _field.rows(Range, "actuator_actrange", "nactuator", "1", "range of the activation"),
    _field.real("actuator_delay", "nactuator", "s", "delay of the control", "float64"),
    _field.rows(Range, "actuator_lengthrange", "nout", "m, rad", "range of the output's transmission length"),
    _field.rows(Vec10, "actuator_gainprm", "nactuator", "N, N/m, N s/m", "gain parameters"),
    _field.rows(Vec10, "actuator_biasprm", "nactuator", "N, N/m, N s/m", "bias parameters"),
    _field.rows(Wrench, "actuator_gear", "nout", "1", "factor of length and force; for balls and free joints an axis"),
    _field.rows(Range, "actuator_ctrlrange", "nu", "1", "range of the control"),
    _field.rows(Range, "actuator_forcerange", "nactuator", "N, N m", "range of the force"),
    _field.real("actuator_damping", "nactuator", "N s/m, N m s/rad", "damping added to the joint, times gear squared"),
    _field.rows(Powers, "actuator_dampingpoly", "nactuator", "N s^2/m^2, N s^3/m^3", "damping of higher powers"),
    _field.real("actuator_armature", "nactuator", "kg, kg m^2", "inertia added to the joint, times gear squared"),
    _field.real("actuator_acc0", "nout", "m/s^2, rad/s^2", "norm of the acceleration from unit force in qpos0"),
    _field.real("actuator_length0", "nout", "m, rad", "transmission length in qpos0"),
    # cameras
    _field.int("cam_mode", "ncam", "1", "0 fixed, 1 track, 2 trackcom, 3 targetbody, 4 targetbodycom"),
    _field.int("cam_bodyid", "ncam", "1", "body that carries the camera"),
    _field.int("cam_targetbodyid", "ncam", "1", "body that the camera looks at, -1: none"),
    _field.int("cam_projection", "ncam", "1", "0 perspective, 1 orthographic"),
    _field.int("cam_resolution", "ncam 2", "1", "pixels: width, height"),
    _field.rows(Vec3, "cam_pos", "ncam", "m", "offset from the body's frame"),
    _field.rows(Quat, "cam_quat", "ncam", "1", "rotation from the body's frame"),
    _field.rows(Vec3, "cam_poscom0", "ncam", "m", "offset from the subtree's centre of mass in qpos0"),
    _field.rows(Vec3, "cam_pos0", "ncam", "m", "offset from the body in qpos0, world axes"),
    _field.rows(Mat3, "cam_mat0", "ncam", "1", "orientation in qpos0"),
    _field.real("cam_fovy", "ncam", "degree", "vertical field of view"),
    _field.rows(Vec2, "cam_sensorsize", "ncam", "m", "size of the image sensor, zeros: none"),
    _field.rows(Intrinsic, "cam_intrinsic", "ncam", "m", "focal lengths, principal point"),
    # sensors
    _field.int("sensor_type", "nsensor", "1", "type, as mjtSensor"),
    _field.int("sensor_datatype", "nsensor", "1", "0 real, 1 positive, 2 axis, 3 quaternion"),
    _field.int("sensor_needstage", "nsensor", "1", "1 position, 2 velocity, 3 acceleration"),
    _field.int("sensor_objtype", "nsensor", "1", "type of the object, as mjtObj"),
    _field.int("sensor_objid", "nsensor", "1", "id of the object"),
    _field.int("sensor_reftype", "nsensor", "1", "type of the reference frame's object, as mjtObj"),
    _field.int("sensor_refid", "nsensor", "1", "id of the reference frame's object, -1: the world"),
    _field.int("sensor_intprm", "nsensor 3", "1", "parameters of the sensor type"),
    _field.int("sensor_dim", "nsensor", "1", "number of values of the sensor"),
    _field.int("sensor_adr", "nsensor", "1", "first value in sensordata"),
    _field.int("sensor_history", "nsensor 2", "1", "samples of the delayed values; interpolation order"),
    _field.int("sensor_historyadr", "nsensor", "1", "first value in history, -1: none"),
    _field.real("sensor_cutoff", "nsensor", "sensor's", "values are clamped to this, 0: unclamped"),
    _field.real("sensor_noise", "nsensor", "sensor's", "standard deviation of the noise, for `add_sensor_noise`"),
    _field.real("sensor_delay", "nsensor", "s", "delay of the values", "float64"),
    _field.real("sensor_interval", "nsensor 2", "s", "period and phase of the samples, 0: each step", "float64"),
)

# options and fields that MuJoCo does not have, with their initial values
OWN = (
    (size("opt_forward_dynamics", "unconstrained forward dynamics: 0 auto, 1 crb (factor M), 2 aba"), 0),
    (size("opt_contact_model", "0 convex (MuJoCo's), 1 lcp (ODE's), 2 coulomb"), 0),
    (size("opt_lcp_solver", "0 dantzig, 1 pgs, 2 apgd, 3 a registered solver"), 0),
    (size("opt_lcp_iterations", "largest number of iterations; of dantzig: passes of consistent friction limits"), 100),
    (size("opt_lcp_friction", "friction limits of dantzig: 0 from frictionless normal forces, 1 consistent"), 0),
    (size("opt_lcp_cone", "friction of pgs and apgd: 0 pyramid, 1 cone"), 0),
    (size("opt_softness", "softness of lcp rows: 0 from ERP and CFM, 1 from solref and solimp"), 0),
    (size("opt_gyroscopic", "gyroscopic torque of free bodies: 0 explicit, 1 implicit, 2 off"), 0),
    (size("opt_rotation", "quaternion update: 0 finite (exponential), 1 infinitesimal (first order, normalised)"), 0),
    (_field.real("opt_lcp_tolerance", "1", "1", "pgs and apgd stop at a residual below this"), 1e-08),
    (_field.real("opt_lcp_relaxation", "1", "1", "over-relaxation of pgs"), 1.3),
    (_field.real("opt_erp", "1", "1", "fraction of a position error that a step removes"), 0.2),
    (_field.real("opt_cfm", "1", "m/(s N)", "CFM: velocity error of a row per unit force"), 1e-10),
    (_field.real("opt_contact_max_vel", "1", "m/s", "largest error-correcting velocity of a contact"), float("inf")),
    (_field.real("opt_contact_min_depth", "1", "m", "penetration that is not corrected"), 0.0),
    (_field.real("opt_sdf_tolerance", "1", "m", "collision of SDFs converges to this, 0: MuJoCo's steps"), 0.0),
    (_field.int("body_gyroscopic", "nbody", "1", "gyroscopic torque: 0 explicit, 1 implicit, 2 off, -1: option"), -1),
    (_field.real("jnt_motor_vel", "njnt", "m/s, rad/s", "lcp: target velocity of the motor of a slide or hinge"), 0.0),
    (_field.real("jnt_motor_force", "njnt", "N, N m", "lcp: largest force of the motor, 0: no motor"), 0.0),
    (_field.real("jnt_motor_cfm", "njnt", "m/(s N)", "lcp: CFM of the motor, negative: opt_cfm"), -1.0),
    (_field.real("jnt_motor_fudge", "njnt", "1", "lcp: fraction of the motor force at a stop"), 1.0),
    (_field.real("jnt_stop_erp", "njnt", "1", "lcp: ERP of the limit, negative: opt_erp"), -1.0),
    (_field.real("jnt_stop_cfm", "njnt", "m/(s N)", "lcp: CFM of the limit, negative: opt_cfm"), -1.0),
    (_field.real("jnt_stop_bounce", "njnt", "1", "lcp: restitution of the limit"), 0.0),
    (_field.int("geom_frictionforce", "ngeom", "1", "lcp: sliding friction is a force [N]", "bool"), 0),
    (_field.real("geom_erp", "ngeom", "1", "lcp: ERP of contacts, negative: opt_erp"), -1.0),
    (_field.real("geom_cfm", "ngeom", "m/(s N)", "lcp: CFM of the normal row, negative: opt_cfm"), -1.0),
    (_field.real("geom_restitution", "ngeom", "1", "lcp, coulomb: separation speed over approach speed"), 0.0),
    (_field.real("geom_restitution_vel", "ngeom", "m/s", "lcp, coulomb: speed above which restitution acts"), 0.0),
    (_field.real("geom_friction_static", "ngeom", "1", "lcp, coulomb: friction at rest, if above that in motion"), 0.0),
    (_field.real("geom_stribeck_vel", "ngeom", "m/s", "lcp, coulomb: slip speed that ends static friction"), 0.01),
    (_field.real("geom_slip", "ngeom 2", "m/(s N)", "lcp: CFM of the two rows of sliding friction"), 0.0),
    (_field.rows(Vec3, "geom_fdir", "ngeom", "1", "lcp: first friction direction, geom's frame; zeros: any"), 0.0),
    (_field.real("eq_erp", "neq", "1", "lcp: ERP of the rows, negative: opt_erp"), -1.0),
    (_field.real("eq_cfm", "neq", "m/(s N)", "lcp: CFM of the rows, negative: opt_cfm"), -1.0),
)
DEFAULTS = {field.name: value for field, value in OWN}


@derived(*(field for field, _ in OWN))
def defaults() -> dict[str, Any]:
    """Returns the initial values of the fields in OWN."""
    return DEFAULTS


DERIVED = (
    defaults,
    ancestor_chains,
    broad_phase,
    hulls,
    triangle_trees,
    visible_geoms,
    link_fields,
    step_frames,
    actuator_kinds,
    moment_rows,
    presence,
    choices,
    asleep_at_start,
    taxels,
    touch_grids,
    signed_distances,
    field_trees,
)
# kinds of objects, with the prefix of their fields
OBJECTS = {"joint": "jnt_", "camera": "cam_", "equality": "eq_"}
OBJECTS |= {kind: f"{kind}_" for kind in "body dof geom site light mesh hfield pair tendon actuator sensor".split()}
MODEL = Layout("Model", MUJOCO + tuple(field for each in DERIVED for field in each.fields), OBJECTS)

# ints and sizes that MuJoCo's mj_setConst computes: which features are in use
DEPENDENT_INTS = ("jnt_actuatorid", "tendon_actuatorid", "ngravcomp", "flg_adhesion", "flg_surfacevel")

# ints that kernels read in each step and from which nothing is derived at load time
EDITABLE_INTS = frozenset(
    "jnt_actfrclimited jnt_actgravcomp body_gyroscopic geom_frictionforce link_limited eq_active0 geom_group"
    " actuator_group actuator_ctrllimited actuator_forcelimited".split()
)


def is_editable(field: Field) -> bool:
    """Returns whether users may write the field between steps: all reals, the heights of height fields, some ints."""
    return field.kind == "real" or field.name in EDITABLE_INTS or field.name == "hfield_data"
