"""The model's record: every field that the engine reads, declared once.

Names and meaning are MuJoCo's; options carry the prefix `opt_`, statistics `stat_`, candidate collision pairs `cand_`.
Sizes and ints are shared by all worlds.  Every real may differ by world: these are the fields that users edit and
randomise.  Angles are radians, quaternions are (w, x, y, z), spatial rows put rotation first.
"""

from __future__ import annotations

from featherlane.lanes.layout import Field, Layout
from featherlane.model.enums import NGEOMTYPES


def _size(name: str, doc: str) -> Field:
    return Field(name, "size", doc=doc)


def _int(name: str, shape: tuple[str | int, ...], doc: str) -> Field:
    return Field(name, "int", shape, doc=doc, dtype="int32")


def _flag(name: str, shape: tuple[str | int, ...], doc: str) -> Field:
    return Field(name, "int", shape, doc=doc, dtype="bool")


def _scalar(name: str, shape: tuple[str | int, ...], unit: str, doc: str) -> Field:
    return Field(name, "scalar", shape, unit, doc)


def _real(name: str, shape: tuple[str | int, ...], unit: str, doc: str) -> Field:
    return Field(name, "real", shape, unit, doc)


def _time(name: str, shape: tuple[str | int, ...], doc: str) -> Field:
    """What is added to times: float64 at every precision."""
    return Field(name, "real", shape, "s", doc, dtype="float64")


SIZES = (
    _size("nq", "coordinates: length of qpos"),
    _size("nv", "degrees of freedom: length of qvel"),
    _size("nu", "controls: length of ctrl"),
    _size("na", "activations: length of act"),
    _size("nactuator", "actuators"),
    _size("nout", "force outputs of actuators"),
    _size("nbody", "bodies, the world included as body 0"),
    _size("njnt", "joints"),
    _size("ntree", "kinematic trees under the world"),
    _size("nM", "non-zeros of the inertia matrix on its full tree pattern"),
    _size("nC", "non-zeros of M as stored: lower triangle, simple bodies reduced to their diagonal"),
    _size("nD", "non-zeros of the velocity derivatives: M's full tree pattern, both triangles"),
    _size("ngeom", "geoms"),
    _size("nsite", "sites"),
    _size("nmocap", "mocap bodies"),
    _size("npair", "explicit geom pairs"),
    _size("neq", "equality constraints"),
    _size("nmesh", "meshes"),
    _size("nhfield", "height fields"),
    _size("nhfielddata", "heights of all height fields"),
    _size("ngravcomp", "bodies with gravity compensation; set_const counts them again, in a batch each call does"),
    _size("ncam", "cameras"),
    _size("ntendon", "tendons"),
    _size("nJten", "non-zeros of the tendons' Jacobian"),
    _size("nwrap", "elements of all tendons' paths"),
    _size("nsensor", "sensors"),
    _size("nsensordata", "sensor values: length of sensordata"),
    _size("nhistory", "history of delayed controls and sensors: length of history"),
    _size("nplastic", "references of springs that yield: length of plastic"),
    _size("flg_adhesion", "1: some geom or pair is adhesive; updated by set_const, in a batch by each call"),
    _size("flg_surfacevel", "1: some geom's surface moves; updated by set_const, in a batch by each call"),
    _size("nlink", "links: joints between bodies, beside the tree; contact model lcp"),
)

DERIVED_SIZES = (
    _size("nchain", "entries of all dofs' chains to the root"),
    _size("nmoment", "entries of all actuators' moments"),
    _size("nstepsite", "sites whose frames a step needs"),
    _size("nadhesion", "actuators that act through the contacts of a body"),
    _size("nstepgeom", "geoms whose frames a step needs, colliding or not"),
    _size("nblock", "blocks of dofs: each the parent of the next, and no other dof's but the last of them"),
    _size("ncand", "geom pairs that may collide, after all filters that do not depend on the state"),
    _size("ncollide", "geoms in candidate pairs"),
    _size("ncrowd", "geoms whose pairs are too many to list: a tree finds them in each step"),
    _size("ngroup", "pairs of bodies among the candidates, 0: their boxes are not worth testing"),
    _size("nexcluded", "pairs of bodies that must not touch"),
    _size("nnamed", "pairs of geoms that an explicit pair names"),
    _size("filter_parent", "1: parent and child do not touch (as it was when the model was loaded)"),
    _size("sorted_by_type", "1: contacts of two bodies come in the order of the geoms' types"),
    _size("nhullvert", "vertices of all convex hulls"),
    _size("nhulledge", "neighbours of all hull vertices"),
    _size("nhullpoly", "faces of all hulls"),
    _size("nhullpolyvert", "corners of all faces"),
    _size("nhulloutline", "corners of all faces' outlines"),
    _size("nhullmap", "faces at all hull vertices"),
    _size("nhullstart", "directions of all hulls for which a first vertex is kept"),
    _size("ntriangle", "triangles of all meshes"),
    _size("ntrianglevert", "vertices of all meshes"),
    _size("nmeshnode", "nodes of the trees of boxes about all meshes' triangles"),
    _size("articulated_pays", "1: the articulated-body algorithm costs less than the factor of M"),
    _size("implicit_diagonal", "1: implicitfast changes nothing but the diagonal of M"),
    _size("nbounded", "tendons on which the sum of actuator forces is clamped"),
    _size("ndcmotor", "actuators with the bias of a dcmotor"),
    _size("all_round", "1: only planes, spheres and capsules collide"),
    _size("sensor_reads", "bits of what sensors read: 1 momenta of subtrees, 2 forces between bodies, 4 energies"),
)

# no options of MuJoCo's
LCP_OPTIONS = (
    _size("opt_contact_model", "0 convex (MuJoCo's), 1 lcp (ODE's)"),
    _size("opt_lcp_solver", "0 dantzig, 1 pgs, 2 apgd"),
    _size("opt_lcp_iterations", "most sweeps of pgs and steps of apgd, most passes of consistent friction limits"),
    _size("opt_lcp_friction", "friction limits of dantzig: 0 frozen at the normals without friction, 1 consistent"),
    _size("opt_lcp_cone", "friction of pgs and apgd: 0 pyramid, 1 cone"),
    _size("opt_softness", "of rows of the lcp: 0 by ERP and CFM, 1 by solref and solimp"),
    _size("opt_gyroscopic", "gyroscopic torque of free bodies: 0 explicit, 1 implicit, 2 off"),
    _size("opt_rotation", "how quaternions turn: 0 finite (exponential), 1 infinitesimal (first order, normalised)"),
    _real("opt_lcp_tolerance", (1,), "1", "pgs and apgd stop at a residual below this"),
    _real("opt_lcp_relaxation", (1,), "1", "over-relaxation of pgs"),
    _real("opt_erp", (1,), "1", "part of a position error that a step removes"),
    _real("opt_cfm", (1,), "m/(s N)", "velocity that a unit force of a row lets through"),
    _real("opt_contact_max_vel", (1,), "m/s", "largest velocity at which a contact is pushed apart"),
    _real("opt_contact_min_depth", (1,), "m", "penetration that is left alone"),
)

OPTIONS = (
    _size("opt_integrator", "0 Euler, 1 RK4, 2 implicit, 3 implicitfast, 4 discrete"),
    _size("opt_cone", "0 pyramidal, 1 elliptic"),
    _size("opt_solver", "0 PGS, 1 CG, 2 Newton"),
    _size("opt_iterations", "most iterations of the solver"),
    _size("opt_noslip_iterations", "most iterations of the pass against slip after the solver, 0: none"),
    _size("opt_ls_iterations", "most iterations of the line search"),
    _size("opt_disableflags", "bits of mjtDisableBit"),
    _size("opt_enableflags", "bits of mjtEnableBit"),
    _size("opt_disableactuator", "bits of the actuator groups that are off"),
    _size("opt_forward_dynamics", "accelerations without constraints: 0 auto, 1 crb (factor M), 2 aba; not MuJoCo's"),
    _time("opt_timestep", (1,), "time step"),
    _real("opt_gravity", (3,), "m/s^2", "gravitational acceleration, world axes"),
    _real("opt_wind", (3,), "m/s", "velocity of the medium, world axes"),
    _real("opt_magnetic", (3,), "T", "magnetic flux, world axes"),
    _real("opt_density", (1,), "kg/m^3", "density of the medium"),
    _real("opt_viscosity", (1,), "Pa s", "viscosity of the medium"),
    _real("opt_impratio", (1,), "1", "ratio of frictional to normal contact impedance"),
    _real("opt_tolerance", (1,), "1", "solver stops at a scaled improvement or gradient below this"),
    _real("opt_ls_tolerance", (1,), "1", "line search stops at a relative slope below this"),
    _real("opt_noslip_tolerance", (1,), "1", "the pass against slip stops at a scaled improvement below this"),
    _real("opt_sleep_tolerance", (1,), "m/s", "a tree whose velocities are below this may fall asleep"),
    _real("opt_o_margin", (1,), "m", "margin of all contacts, with the flag override"),
    _real("opt_o_solref", (2,), "s, 1", "reference of all contacts, with the flag override"),
    _real("opt_o_solimp", (5,), "1", "impedance of all contacts, with the flag override"),
    _real("opt_o_friction", (5,), "1, m", "friction of all contacts, with the flag override"),
    *LCP_OPTIONS,
    _real("stat_meaninertia", (1,), "kg, kg m^2", "mean diagonal of M in qpos0 as it was compiled"),
)

BODIES = (
    _int("body_parentid", ("nbody",), "parent body"),
    _int("body_rootid", ("nbody",), "ancestor that is a child of the world"),
    _int("body_weldid", ("nbody",), "topmost body reached over bodies without dofs; a mocap body is its own"),
    _int("body_mocapid", ("nbody",), "row in mocap_pos, -1: not a mocap body"),
    _int("body_jntnum", ("nbody",), "joints of the body"),
    _int("body_jntadr", ("nbody",), "first joint, -1: none"),
    _int("body_dofnum", ("nbody",), "dofs of the body"),
    _int("body_dofadr", ("nbody",), "first dof, -1: none"),
    _int("body_treeid", ("nbody",), "kinematic tree, -1: static"),
    _int("body_geomnum", ("nbody",), "geoms of the body"),
    _int("body_geomadr", ("nbody",), "first geom, -1: none"),
    _int("body_simple", ("nbody",), "1: M is diagonal here; 2: and only slides; 0: neither"),
    _real("body_pos", ("nbody", 3), "m", "offset from the parent's frame"),
    _real("body_quat", ("nbody", 4), "1", "rotation from the parent's frame"),
    _real("body_ipos", ("nbody", 3), "m", "centre of mass in the body's frame"),
    _real("body_iquat", ("nbody", 4), "1", "principal axes of inertia in the body's frame"),
    _real("body_mass", ("nbody",), "kg", "mass"),
    _real("body_subtreemass", ("nbody",), "kg", "mass of the body and all below it"),
    _real("body_inertia", ("nbody", 3), "kg m^2", "principal moments of inertia about the centre of mass"),
    _real("body_invweight0", ("nbody", 2), "1/kg, 1/(kg m^2)", "mean inverse inertia in qpos0: translation, rotation"),
    _int("body_gyroscopic", ("nbody",), "gyroscopic torque of free bodies: 0 explicit, 1 implicit, 2 off, -1: by opt"),
    _real("body_gravcomp", ("nbody",), "1", "gravity compensation, as a part of the body's weight"),
)

JOINTS = (
    _int("jnt_type", ("njnt",), "0 free, 1 ball, 2 slide, 3 hinge"),
    _int("jnt_qposadr", ("njnt",), "first coordinate in qpos"),
    _int("jnt_dofadr", ("njnt",), "first dof in qvel"),
    _int("jnt_bodyid", ("njnt",), "body that the joint moves"),
    _int("jnt_actuatorid", ("njnt",), "actuator that adds damping or armature: -1 none, -2 several"),
    _int("jnt_plasticadr", ("njnt",), "first plastic reference of the joint's spring, -1: it does not yield"),
    _flag("jnt_limited", ("njnt",), "the joint has limits"),
    _flag("jnt_actfrclimited", ("njnt",), "the sum of actuator forces is clamped"),
    _flag("jnt_actgravcomp", ("njnt",), "gravity compensation counts as actuator force"),
    _real(
        "jnt_solref",
        ("njnt", 2),
        "s, 1",
        "reference of the limit: time constant, damping ratio; or -stiffness, -damping",
    ),
    _real("jnt_solimp", ("njnt", 5), "1", "impedance of the limit: dmin, dmax, width, midpoint, power"),
    _real("jnt_pos", ("njnt", 3), "m", "anchor in the body's frame"),
    _real("jnt_axis", ("njnt", 3), "1", "axis in the body's frame"),
    _real("jnt_stiffness", ("njnt",), "N/m, N m/rad", "linear spring stiffness"),
    _real("jnt_stiffnesspoly", ("njnt", 2), "N/m^2, N/m^3", "stiffness coefficients of the second and third power"),
    _real("jnt_springyield", ("njnt",), "m, rad", "deflection beyond which the spring's reference follows"),
    _real("jnt_range", ("njnt", 2), "m, rad", "lower and upper limit; a ball takes the larger as its largest angle"),
    _real("jnt_actfrcrange", ("njnt", 2), "N, N m", "range of the sum of actuator forces"),
    _real("jnt_margin", ("njnt",), "m, rad", "distance from the limit at which its row appears"),
    _real("jnt_motor_vel", ("njnt",), "m/s, rad/s", "velocity that the motor of a slide or hinge seeks; lcp"),
    _real("jnt_motor_force", ("njnt",), "N, N m", "largest force of the motor, 0: there is none"),
    _real("jnt_motor_cfm", ("njnt",), "m/(s N)", "softness of the motor, negative: opt_cfm"),
    _real("jnt_motor_fudge", ("njnt",), "1", "part of the force with which a motor drives away from a stop"),
    _real("jnt_stop_erp", ("njnt",), "1", "ERP of the limit, negative: opt_erp"),
    _real("jnt_stop_cfm", ("njnt",), "m/(s N)", "CFM of the limit, negative: opt_cfm"),
    _real("jnt_stop_bounce", ("njnt",), "1", "restitution of the limit"),
    _real("qpos0", ("nq",), "m, rad, 1", "coordinates in which the model was defined"),
    _real("qpos_spring", ("nq",), "m, rad, 1", "coordinates at which joint springs are at rest"),
)

DOFS = (
    _int("dof_bodyid", ("nv",), "body that the dof moves"),
    _int("dof_jntid", ("nv",), "joint of the dof"),
    _int("dof_parentid", ("nv",), "next dof towards the root, -1: none (Featherstone's expanded parent array)"),
    _int("dof_treeid", ("nv",), "kinematic tree of the dof"),
    _int("dof_simplenum", ("nv",), "simple dofs in a row from here on"),
    _real("dof_solref", ("nv", 2), "s, 1", "reference of the friction loss row"),
    _real("dof_solimp", ("nv", 5), "1", "impedance of the friction loss row"),
    _real("dof_frictionloss", ("nv",), "N, N m", "largest dry friction"),
    _real("dof_length", ("nv",), "m", "turns a velocity of the dof into m/s: 1, or the mean length of what it turns"),
    _real("dof_armature", ("nv",), "kg, kg m^2", "inertia added on the diagonal of M"),
    _real("dof_damping", ("nv",), "N s/m, N m s/rad", "linear damping"),
    _real("dof_dampingpoly", ("nv", 2), "N s^2/m^2, N s^3/m^3", "damping coefficients of the second and third power"),
    _real("dof_invweight0", ("nv",), "1/kg, 1/(kg m^2)", "diagonal of the inverse inertia in qpos0"),
    _real("dof_M0", ("nv",), "kg, kg m^2", "diagonal of the inertia in qpos0"),
)

TREE = (
    _int("tree_bodyadr", ("ntree",), "first body of the tree"),
    _int("tree_bodynum", ("ntree",), "bodies of the tree"),
    _int("tree_dofadr", ("ntree",), "first dof of the tree"),
    _int("tree_dofnum", ("ntree",), "dofs of the tree"),
    _int("tree_sleep_policy", ("ntree",), "1, 3: never sleeps; 2, 4: may sleep; 5: starts asleep (mjtSleepPolicy)"),
    _int("tree_asleep0", ("ntree",), "tree_asleep after a reset, with the flag sleep"),
    _int("M_rownnz", ("nv",), "non-zeros in a row of M's lower triangle, the diagonal last"),
    _int("M_rowadr", ("nv",), "address of a row's first entry"),
    _int("M_colind", ("nC",), "column of an entry, ascending in a row"),
    _int("D_rownnz", ("nv",), "non-zeros in a row of D: the dof's ancestors, itself, its descendants"),
    _int("D_rowadr", ("nv",), "address of a row's first entry"),
    _int("D_diag", ("nv",), "place of the diagonal in its row"),
    _int("D_colind", ("nD",), "column of an entry, ascending in a row"),
)

CHAINS = (
    _int("body_lastchild", ("nbody",), "child with the largest number, -1: none"),
    _int("body_lastdof", ("nbody",), "last dof that moves the body, its own or an ancestor's, -1: none"),
    _int("chain_rownnz", ("nv",), "dofs from the root down to this one, itself included"),
    _int("chain_rowadr", ("nv",), "address of the chain's first dof"),
    _int("chain_colind", ("nchain",), "dofs of a chain, ascending, the dof itself last"),
    _int("block_dofadr", ("nblock",), "first dof of the block"),
    _int("block_dofnum", ("nblock",), "dofs of the block, at most 8"),
    _int("block_parentid", ("nblock",), "block of the parent of its first dof, -1: none"),
    _int("dof_blockid", ("nv",), "block of the dof"),
    _int("M_below", ("nv",), "rows of M with an entry in this column, below the diagonal: they follow row i at once"),
)

GEOMS = (
    _int(
        "geom_type",
        ("ngeom",),
        "0 plane, 1 height field, 2 sphere, 3 capsule, 4 ellipsoid, 5 cylinder, 6 box, 7 mesh",
    ),
    _int("geom_contype", ("ngeom",), "bits: kinds that the geom is"),
    _int("geom_conaffinity", ("ngeom",), "bits: kinds that the geom touches"),
    _int("geom_condim", ("ngeom",), "dimension of the contact space: 1, 3, 4 or 6"),
    _int("geom_bodyid", ("ngeom",), "body that carries the geom"),
    _int("geom_dataid", ("ngeom",), "mesh or height field of the geom, -1: none"),
    _int("geom_group", ("ngeom",), "group for display"),
    _int("geom_priority", ("ngeom",), "the geom of higher priority sets the contact's parameters"),
    _real("geom_solmix", ("ngeom",), "1", "weight when two geoms' solref and solimp are mixed"),
    _real("geom_solref", ("ngeom", 2), "s, 1", "reference of contacts"),
    _real("geom_solimp", ("ngeom", 5), "1", "impedance of contacts"),
    _real("geom_size", ("ngeom", 3), "m", "sizes; capsule: radius, half length; box: half sides"),
    _real("geom_aabb", ("ngeom", 6), "m", "bounding box in the geom's frame: centre, half sides"),
    _real("geom_rbound", ("ngeom",), "m", "radius of the bounding sphere, 0: unbounded"),
    _flag("geom_visible", ("ngeom",), "rays of rangefinders see it: its colour is not wholly transparent"),
    _real("geom_pos", ("ngeom", 3), "m", "offset from the body's frame"),
    _real("geom_quat", ("ngeom", 4), "1", "rotation from the body's frame"),
    _real("geom_friction", ("ngeom", 3), "1, m, m", "friction: sliding, spinning, rolling"),
    _real("geom_fluid", ("ngeom", 12), "1", "coefficients of the ellipsoid model of fluid forces"),
    _real("geom_margin", ("ngeom",), "m", "distance below which a contact acts"),
    _real("geom_gap", ("ngeom",), "m", "distance beyond the margin at which a contact is listed without acting"),
    _real("geom_adhesion", ("ngeom",), "N", "force with which a contact can pull, where flg_adhesion is 1"),
    _real("geom_surfacevel", ("ngeom", 6), "m/s, rad/s", "velocity of the surface in the geom's frame, turning last"),
    _flag("geom_frictionforce", ("ngeom",), "lcp: sliding friction is a force [N], not a coefficient"),
    _real("geom_erp", ("ngeom",), "1", "lcp: ERP of contacts, negative: opt_erp"),
    _real("geom_cfm", ("ngeom",), "m/(s N)", "lcp: CFM of the normal row, negative: opt_cfm"),
    _real("geom_restitution", ("ngeom",), "1", "lcp: part of the approach speed with which contacts part"),
    _real("geom_restitution_vel", ("ngeom",), "m/s", "lcp: approach speed above which they do"),
    _real("geom_slip", ("ngeom", 2), "m/(s N)", "lcp: CFM of the two rows of sliding friction"),
    _real("geom_fdir", ("ngeom", 3), "1", "lcp: direction of the first friction row, geom's frame; zeros: any"),
)

# the convex hull of each mesh, its vertices numbered from 0; the mesh's own triangles are for rays alone
HULLS = (
    _int("hull_vertadr", ("nmesh",), "first vertex of the mesh's hull"),
    _int("hull_vertnum", ("nmesh",), "vertices of the hull"),
    _int("hull_polyadr", ("nmesh",), "first face"),
    _int("hull_polynum", ("nmesh",), "faces: coplanar triangles are one"),
    _int("hull_convex", ("nmesh",), "1: its edges are those of the convex hull of its vertices, exactly"),
    _int("hull_startadr", ("nmesh",), "first direction of the mesh in hull_start, -1: all vertices are asked"),
    _int("hull_start", ("nhullstart",), "vertex farthest along a direction, where the way to a support point begins"),
    _int("hull_edgeadr", ("nhullvert",), "first neighbour of a vertex"),
    _int("hull_edgenum", ("nhullvert",), "neighbours of a vertex"),
    _int("hull_edge", ("nhulledge",), "neighbour: number of a vertex within its hull"),
    _int("hull_polyvertadr", ("nhullpoly",), "first corner of a face"),
    _int("hull_polyvertnum", ("nhullpoly",), "corners of a face"),
    _int("hull_polyvert", ("nhullpolyvert",), "corner: number of a vertex within its hull, counterclockwise"),
    _int("hull_outlineadr", ("nhullpoly",), "first corner of a face's outline"),
    _int("hull_outlinenum", ("nhullpoly",), "corners of a face's outline: the face without what bends inwards"),
    _int("hull_outline", ("nhulloutline",), "corner of an outline, counterclockwise: vertex within its hull"),
    _int("hull_mapadr", ("nhullvert",), "first face at a vertex"),
    _int("hull_mapnum", ("nhullvert",), "faces at a vertex"),
    _int("hull_map", ("nhullmap",), "face: its number within its hull"),
    _scalar("hull_vert", ("nhullvert", 3), "m", "vertex in the mesh's frame"),
    _scalar("hull_error", ("nmesh",), "m", "by which a vertex may be off, being stored in float32"),
    _scalar("hull_planenormal", ("nhullpoly", 3), "1", "unit normal of a face, from its corners"),
    _scalar("hull_planeoffset", ("nhullpoly",), "m", "greatest height of its corners along that"),
    _scalar("hull_planeerror", ("nhullpoly",), "m", "by which its corners differ in that"),
    _scalar("hull_planedrop", ("nhullpoly",), "m", "by which all other vertices are lower, at least"),
    _scalar("hull_polynormal", ("nhullpoly", 3), "1", "unit normal of a face, outwards"),
    _scalar("mesh_pos", ("nmesh", 3), "m", "offset of the vertices' frame from that in which the mesh was given"),
    _scalar("mesh_quat", ("nmesh", 4), "1", "rotation of the vertices' frame from it"),
    _int("triangle_adr", ("nmesh",), "first triangle of a mesh"),
    _int("triangle_num", ("nmesh",), "triangles of a mesh"),
    _int("triangle_vertadr", ("nmesh",), "first vertex of a mesh"),
    _int("triangle", ("ntriangle", 3), "corners of a triangle: numbers of vertices within the mesh"),
    _scalar("triangle_vert", ("ntrianglevert", 3), "m", "vertex in the mesh's frame"),
    _int("meshnode_adr", ("nmesh",), "root of the mesh's tree of boxes"),
    _int("meshnode_child", ("nmeshnode", 2), "children of a node, numbered within the tree, -1: none"),
    _int("meshnode_triangle", ("nmeshnode",), "triangle of a leaf, numbered within the mesh, -1: no leaf"),
    _scalar("meshnode_box", ("nmeshnode", 6), "m", "box about all below a node: lower, upper corner, mesh's frame"),
)

HFIELDS = (
    _int("hfield_nrow", ("nhfield",), "rows of samples, along y"),
    _int("hfield_ncol", ("nhfield",), "columns of samples, along x"),
    _int("hfield_adr", ("nhfield",), "first height"),
    _scalar("hfield_size", ("nhfield", 4), "m", "half side in x, half side in y, height of 1, depth of the base"),
    _scalar("hfield_data", ("nhfielddata",), "1", "heights between 0 and 1, row by row"),
)

SITES = (
    _int("site_bodyid", ("nsite",), "body that carries the site"),
    _int("site_type", ("nsite",), "shape: 2 sphere, 3 capsule, 4 ellipsoid, 5 cylinder, 6 box, 7 mesh"),
    _int("site_dataid", ("nsite",), "mesh of the site, -1: none"),
    _real("site_pos", ("nsite", 3), "m", "offset from the body's frame"),
    _real("site_quat", ("nsite", 4), "1", "rotation from the body's frame"),
    _real("site_size", ("nsite", 3), "m", "half sizes, as of a geom of the same type"),
)

PAIRS = (
    _int("pair_dim", ("npair",), "dimension of the contact space"),
    _int("pair_geom1", ("npair",), "first geom"),
    _int("pair_geom2", ("npair",), "second geom"),
    _real("pair_solref", ("npair", 2), "s, 1", "reference of the normal rows"),
    _real("pair_solreffriction", ("npair", 2), "s, 1", "reference of the friction rows; zeros: as the normal's"),
    _real("pair_solimp", ("npair", 5), "1", "impedance"),
    _real("pair_margin", ("npair",), "m", "distance below which the contact acts"),
    _real("pair_gap", ("npair",), "m", "distance beyond the margin at which the contact is listed without acting"),
    _real("pair_friction", ("npair", 5), "1, 1, m, m, m", "friction: two sliding, spinning, two rolling"),
    _real("pair_adhesion", ("npair",), "N", "force with which the contact can pull, where flg_adhesion is 1"),
)

EQUALITIES = (
    _int("eq_type", ("neq",), "0 connect, 1 weld, 2 joint"),
    _int("eq_obj1id", ("neq",), "first body, site or joint"),
    _int("eq_obj2id", ("neq",), "second body, site or joint, -1: no second joint"),
    _int("eq_objtype", ("neq",), "1 body, 3 joint, 6 site"),
    _flag("eq_active0", ("neq",), "the constraint is active after a reset"),
    _real("eq_erp", ("neq",), "1", "lcp: ERP of the rows, negative: opt_erp"),
    _real("eq_cfm", ("neq",), "m/(s N)", "lcp: CFM of the rows, negative: opt_cfm"),
    _real("eq_solref", ("neq", 2), "s, 1", "reference"),
    _real("eq_solimp", ("neq", 5), "1", "impedance"),
    _real("eq_data", ("neq", 12), "m, 1", "connect: two anchors; weld: anchor, relative pose, torquescale; joint: a_k"),
)

# joints between any two bodies, as rows of the lcp: bodies keep their own coordinates (maximal coordinates)
LINKS = (
    _int("link_type", ("nlink",), "0 ball, 1 hinge, 2 slider, 3 fixed"),
    _int("link_body", ("nlink", 2), "the two bodies, 0: the world"),
    _flag("link_limited", ("nlink",), "a hinge or slider has stops"),
    _real("link_anchor", ("nlink", 2, 3), "m", "anchor in the frame of either body"),
    _real("link_axis", ("nlink", 2, 3), "1", "axis in the frame of either body"),
    _real("link_quat", ("nlink", 4), "1", "orientation of the second body in the frame of the first, at rest"),
    _real(
        "link_offset",
        ("nlink", 3),
        "m",
        "first body's com from the second's at rest; slider: in the second's frame, fixed: in the first's",
    ),
    _real("link_erp", ("nlink",), "1", "ERP of the rows, negative: opt_erp"),
    _real("link_cfm", ("nlink",), "m/(s N)", "CFM of the rows, negative: opt_cfm"),
    _real("link_range", ("nlink", 2), "m, rad", "lower and upper stop"),
    _real("link_motor_vel", ("nlink",), "m/s, rad/s", "velocity that the motor seeks"),
    _real("link_motor_force", ("nlink",), "N, N m", "largest force of the motor, 0: there is none"),
    _real("link_motor_cfm", ("nlink",), "m/(s N)", "softness of the motor, negative: opt_cfm"),
    _real("link_motor_fudge", ("nlink",), "1", "part of the force with which a motor drives away from a stop"),
    _real("link_stop_erp", ("nlink",), "1", "ERP of the stop, negative: opt_erp"),
    _real("link_stop_cfm", ("nlink",), "m/(s N)", "CFM of the stop, negative: opt_cfm"),
    _real("link_stop_bounce", ("nlink",), "1", "restitution of the stop"),
)

CANDIDATES = (
    _int("cand_geom1", ("ncand",), "first geom of a candidate pair, the one of lower type"),
    _int("cand_geom2", ("ncand",), "second geom"),
    _int("cand_pair", ("ncand",), "explicit pair that sets the parameters, -1: mixed from the geoms"),
    _int("cand_npoint", ("ncand",), "most contact points of the pair"),
    _int("collide_geom", ("ncollide",), "geoms that may collide, ascending"),
    _int("pair_function", (NGEOMTYPES, NGEOMTYPES), "pair function of two geom types, lower first, -1: none"),
    _int("crowd_geom", ("ncrowd",), "geoms of the crowd, ascending"),
    _int("excluded_body", ("nexcluded", 2), "bodies that must not touch, lower first, sorted"),
    _int("named_geom", ("nnamed", 2), "geoms that an explicit pair names, lower first, sorted"),
    _int("group_body", ("ngroup", 2), "bodies of a group of candidates"),
    _int("group_first", ("ngroup",), "first candidate of a group"),
    _int("group_boxed", ("ngroup",), "1: all geoms of the group are bounded"),
)

TENDONS = (
    _int("tendon_adr", ("ntendon",), "first element of the tendon's path"),
    _int("tendon_num", ("ntendon",), "elements of the path"),
    _int("tendon_actuatorid", ("ntendon",), "actuator that adds damping or armature: -1 none, -2 several"),
    _int("tendon_plasticadr", ("ntendon",), "plastic reference of the tendon's spring, -1: it does not yield"),
    _int("tendon_treenum", ("ntendon",), "kinematic trees along the path"),
    _int("tendon_treeid", ("ntendon", 2), "the first two of them"),
    _int("ten_J_rownnz", ("ntendon",), "non-zeros in a row of the tendons' Jacobian"),
    _int("ten_J_rowadr", ("ntendon",), "address of a row's first entry"),
    _int("ten_J_colind", ("nJten",), "dof of an entry, ascending in a row"),
    _flag("tendon_limited", ("ntendon",), "the length has limits"),
    _flag("tendon_actfrclimited", ("ntendon",), "the sum of actuator forces is clamped"),
    _real("tendon_solref_lim", ("ntendon", 2), "s, 1", "reference of the limit"),
    _real("tendon_solimp_lim", ("ntendon", 5), "1", "impedance of the limit"),
    _real("tendon_solref_fri", ("ntendon", 2), "s, 1", "reference of the friction loss row"),
    _real("tendon_solimp_fri", ("ntendon", 5), "1", "impedance of the friction loss row"),
    _real("tendon_range", ("ntendon", 2), "m", "lower and upper limit of the length"),
    _real("tendon_actfrcrange", ("ntendon", 2), "N", "range of the sum of actuator forces"),
    _real("tendon_margin", ("ntendon",), "m", "distance from the limit at which its row appears"),
    _real("tendon_stiffness", ("ntendon",), "N/m", "linear spring stiffness"),
    _real("tendon_stiffnesspoly", ("ntendon", 2), "N/m^2, N/m^3", "stiffness coefficients of second and third power"),
    _real("tendon_damping", ("ntendon",), "N s/m", "linear damping"),
    _real("tendon_dampingpoly", ("ntendon", 2), "N s^2/m^2, N s^3/m^3", "damping coefficients of higher powers"),
    _real("tendon_armature", ("ntendon",), "kg", "inertia that goes with the rate of the length"),
    _real("tendon_frictionloss", ("ntendon",), "N", "largest dry friction"),
    _real("tendon_lengthspring", ("ntendon", 2), "m", "lengths between which the spring is at rest"),
    _real("tendon_springyield", ("ntendon",), "m", "deflection beyond which the spring's references follow"),
    _real("tendon_length0", ("ntendon",), "m", "length in qpos0"),
    _real("tendon_invweight0", ("ntendon",), "1/kg", "J M^-1 J^T in qpos0"),
    _int("wrap_type", ("nwrap",), "0 none, 1 joint, 2 pulley, 3 site, 4 sphere, 5 cylinder"),
    _int("wrap_objid", ("nwrap",), "joint, site or geom, -1: none"),
    _real("wrap_prm", ("nwrap",), "1", "joint: coefficient; pulley: divisor; geom: number of its side site, -1: none"),
)

# what a step reads of sites and geoms beside contacts
PATHS = (
    _int("step_site", ("nstepsite",), "sites whose frames a step needs, ascending"),
    _int("step_site_turned", ("nstepsite",), "1: their orientations, too; 0: positions alone"),
    _int("step_geom", ("nstepgeom",), "geoms that tendons go round, ascending"),
    _int("wrap_sideid", ("nwrap",), "side site of a geom on a tendon's path, -1: none (as wrap_prm said at loading)"),
)

ACTUATORS = (
    _int(
        "actuator_trntype",
        ("nactuator",),
        "transmission: 0 joint, 1 joint in the parent's frame, 2 slider-crank, 3 tendon, 4 site, 5 body, 6 so3",
    ),
    _int(
        "actuator_dyntype",
        ("nactuator",),
        "activation: 0 none, 1 integrator, 2 filter, 3 filterexact, 4 muscle, 5 dcmotor, 6 pid, 7 user",
    ),
    _int("actuator_gaintype", ("nactuator",), "gain: 0 fixed, 1 affine, 2 muscle, 3 dcmotor, 4 so3, 5 pid, 6 user"),
    _int("actuator_biastype", ("nactuator",), "bias: 0 none, 1 affine, 2 muscle, 3 dcmotor, 4 so3, 5 user"),
    _int("actuator_ctrlspec", ("nactuator",), "what the controls mean, by the kind of gain"),
    _int("actuator_ctrladr", ("nactuator",), "first control in ctrl"),
    _int("actuator_ctrlnum", ("nactuator",), "controls of the actuator"),
    _int("actuator_outadr", ("nactuator",), "first force output"),
    _int("actuator_outnum", ("nactuator",), "force outputs of the actuator"),
    _int("actuator_actadr", ("nactuator",), "first activation, -1: none"),
    _int("actuator_actnum", ("nactuator",), "activations of the actuator"),
    _int(
        "actuator_states",
        ("nactuator",),
        "bits of optional activations, in order: 1 slewed setpoint, 2 integral, 4 temperature, 8 bristle, 16 current",
    ),
    _int("actuator_simple", ("nactuator",), "1: on a slide or hinge, fixed or affine in length and rate, one control"),
    _int("actuator_trnid", ("nactuator", 2), "joint, tendon, site or body; second: slider's or reference's site"),
    _int("actuator_history", ("nactuator", 2), "samples of the delayed control, and how they are interpolated"),
    _int("actuator_historyadr", ("nactuator",), "first value in history, -1: none"),
    _flag("actuator_actlimited", ("nactuator",), "the activation is clamped"),
    _flag("actuator_actearly", ("nactuator",), "the force follows from the next activation"),
    _int("moment_rownnz", ("nout",), "dofs that an output can act on"),
    _int("moment_rowadr", ("nout",), "address of the output's first entry"),
    _int("moment_colind", ("nmoment",), "dof of an entry, ascending in a row"),
    _int("actuator_group", ("nactuator",), "group; opt_disableactuator switches groups off"),
    _flag("actuator_ctrllimited", ("nu",), "the control is clamped"),
    _flag("actuator_forcelimited", ("nactuator",), "the force is clamped"),
    _real("actuator_cranklength", ("nactuator",), "m", "length of the rod of a slider-crank"),
    _real("actuator_dynprm", ("nactuator", 10), "s", "parameters of the activation"),
    _real("actuator_actrange", ("nactuator", 2), "1", "range of the activation"),
    _time("actuator_delay", ("nactuator",), "delay of the control"),
    _real("actuator_lengthrange", ("nout", 2), "m, rad", "lengths that the output can take"),
    _real("actuator_gainprm", ("nactuator", 10), "N, N/m, N s/m", "gain parameters"),
    _real("actuator_biasprm", ("nactuator", 10), "N, N/m, N s/m", "bias parameters"),
    _real("actuator_gear", ("nout", 6), "1", "scales length and transmitted force; balls and free joints use an axis"),
    _real("actuator_ctrlrange", ("nu", 2), "1", "range of the control"),
    _real("actuator_forcerange", ("nactuator", 2), "N, N m", "range of the force"),
    _real("actuator_damping", ("nactuator",), "N s/m, N m s/rad", "damping added to the joint, times gear squared"),
    _real("actuator_dampingpoly", ("nactuator", 2), "N s^2/m^2, N s^3/m^3", "damping of the second and third power"),
    _real("actuator_armature", ("nactuator",), "kg, kg m^2", "inertia added to the joint, times gear squared"),
    _real("actuator_acc0", ("nout",), "m/s^2, rad/s^2", "norm of the acceleration from unit force in qpos0"),
    _real("actuator_length0", ("nout",), "m, rad", "transmission length in qpos0"),
)

CAMERAS = (
    _int("cam_mode", ("ncam",), "0 fixed, 1 track, 2 trackcom, 3 targetbody, 4 targetbodycom"),
    _int("cam_bodyid", ("ncam",), "body that carries the camera"),
    _int("cam_targetbodyid", ("ncam",), "body that it looks at, -1: none"),
    _int("cam_projection", ("ncam",), "0 perspective, 1 orthographic"),
    _int("cam_resolution", ("ncam", 2), "pixels: width, height"),
    _real("cam_pos", ("ncam", 3), "m", "offset from the body's frame"),
    _real("cam_quat", ("ncam", 4), "1", "rotation from the body's frame"),
    _real("cam_poscom0", ("ncam", 3), "m", "offset from the subtree's centre of mass in qpos0"),
    _real("cam_pos0", ("ncam", 3), "m", "offset from the body in qpos0, world axes"),
    _real("cam_mat0", ("ncam", 9), "1", "orientation in qpos0"),
    _real("cam_fovy", ("ncam",), "degree", "vertical field of view"),
    _real("cam_sensorsize", ("ncam", 2), "m", "size of the image sensor, zeros: none"),
    _real("cam_intrinsic", ("ncam", 4), "m", "focal lengths, principal point"),
)

SENSORS = (
    _int("sensor_type", ("nsensor",), "kind, as mjtSensor"),
    _int("sensor_datatype", ("nsensor",), "0 real, 1 positive, 2 axis, 3 quaternion"),
    _int("sensor_needstage", ("nsensor",), "1 position, 2 velocity, 3 acceleration"),
    _int("sensor_objtype", ("nsensor",), "kind of the object, as mjtObj"),
    _int("sensor_objid", ("nsensor",), "the object"),
    _int("sensor_reftype", ("nsensor",), "kind of the reference frame's object"),
    _int("sensor_refid", ("nsensor",), "that object, -1: the world"),
    _int("sensor_intprm", ("nsensor", 3), "parameters of the kind"),
    _int("sensor_dim", ("nsensor",), "values of the sensor"),
    _int("sensor_adr", ("nsensor",), "first of them in sensordata"),
    _int("sensor_history", ("nsensor", 2), "samples of the delayed values, and how they are interpolated"),
    _int("sensor_historyadr", ("nsensor",), "first value in history, -1: none"),
    _real("sensor_cutoff", ("nsensor",), "sensor's", "values are clamped to this, 0: not"),
    _real("sensor_noise", ("nsensor",), "sensor's", "standard deviation of the noise that a user may add"),
    _time("sensor_delay", ("nsensor",), "delay of the values"),
    _time("sensor_interval", ("nsensor", 2), "period and phase of the samples, 0: each step"),
)

MODEL = Layout(
    "Model",
    (
        *SIZES,
        *DERIVED_SIZES,
        *OPTIONS,
        *BODIES,
        *JOINTS,
        *DOFS,
        *TREE,
        *CHAINS,
        *GEOMS,
        *HULLS,
        *HFIELDS,
        *SITES,
        *PAIRS,
        *EQUALITIES,
        *LINKS,
        *CANDIDATES,
        *TENDONS,
        *PATHS,
        *ACTUATORS,
        *CAMERAS,
        *SENSORS,
    ),
)

# of the lcp, with their values after loading
LCP_DEFAULTS = {
    "opt_contact_model": 0,
    "opt_lcp_solver": 0,
    "opt_lcp_iterations": 100,
    "opt_lcp_friction": 0,
    "opt_lcp_cone": 0,
    "opt_softness": 0,
    "opt_gyroscopic": 0,
    "opt_rotation": 0,
    "opt_lcp_tolerance": 1e-8,
    "opt_lcp_relaxation": 1.3,
    "opt_erp": 0.2,
    "opt_cfm": 1e-10,
    "opt_contact_max_vel": float("inf"),
    "opt_contact_min_depth": 0.0,
    "body_gyroscopic": -1,
    "jnt_motor_vel": 0.0,
    "jnt_motor_force": 0.0,
    "jnt_motor_cfm": -1.0,
    "jnt_motor_fudge": 1.0,
    "jnt_stop_erp": -1.0,
    "jnt_stop_cfm": -1.0,
    "jnt_stop_bounce": 0.0,
    "geom_frictionforce": 0,
    "geom_erp": -1.0,
    "geom_cfm": -1.0,
    "geom_restitution": 0.0,
    "geom_restitution_vel": 0.0,
    "geom_slip": 0.0,
    "geom_fdir": 0.0,
    "eq_erp": -1.0,
    "eq_cfm": -1.0,
}

# computed when the model is loaded; MuJoCo's model does not have them
DERIVED = frozenset(
    (
        *("opt_forward_dynamics", "tree_asleep0", "geom_visible", "nlink"),
        *(field.name for field in (*LCP_OPTIONS, *LINKS)),
        *LCP_DEFAULTS,
        *("moment_rownnz", "moment_rowadr", "moment_colind", "actuator_states", "actuator_simple"),
        *(field.name for field in (*DERIVED_SIZES, *CHAINS, *CANDIDATES, *HULLS, *PATHS)),
    )
)

# which features are in use: MuJoCo's mj_setConst finds these ints and sizes
DEPENDENT_INTS = ("jnt_actuatorid", "tendon_actuatorid", "ngravcomp", "flg_adhesion", "flg_surfacevel")

# ints that kernels read anew at each step and nothing was derived from when the model was loaded
EDITABLE_INTS = frozenset(
    (
        "jnt_actfrclimited",
        "jnt_actgravcomp",
        "body_gyroscopic",
        "geom_frictionforce",
        "link_limited",
        "eq_active0",
        "geom_group",
        "actuator_group",
        "actuator_ctrllimited",
        "actuator_forcelimited",
    )
)


def is_editable(field: Field) -> bool:
    """Whether a user may write the field between steps: all reals, the heights of height fields, some ints."""
    return field.kind == "real" or field.name in EDITABLE_INTS or field.name == "hfield_data"
