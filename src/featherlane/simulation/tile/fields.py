"""What a tile of worlds consists of, in the order in which its fields become valid.

This one list gives allocation, reset, copy, the record that kernels read, the arrays of `fl.Data`, and the reference
page. Names are MuJoCo's where the meaning is MuJoCo's.
"""

from featherlane.lanes.layout import Field, Layout
from featherlane.solver.lcp.fields import LCP, LCP_ROOM, LCP_SIZES

# sizes that a workspace decides for itself (capacities and what a step is asked to compute)
SIZES = (
    Field("nconmax", "size", doc="capacity: contact slots of a tile, and contacts of one world"),
    Field("ngroupbody", "size", doc="bodies whose boxes are tested: all or none"),
    Field("nnode", "size", doc="nodes of the tree over a crowd"),
    Field("nnear", "size", doc="capacity: near pairs of a tile, in a model with a crowd"),
    Field("ngiven", "size", doc="capacity: contacts that the caller gives to one world"),
    Field("nmanifold", "size", doc="capacity: contact points of one pair of geoms"),
    Field("ndofrowmax", "size", doc="capacity: one-dof rows (friction loss, limits of slides and hinges)"),
    Field("ngenrowmax", "size", doc="capacity: general rows (equalities, limits of balls)"),
    Field("ngenJmax", "size", doc="capacity: Jacobian entries of the general rows"),
    Field("nH", "size", doc="capacity: entries of the Hessian, at most nv (nv + 1) / 2"),
    Field("nHblock", "size", doc="capacity: blocks of the sparse Hessian, at most nblock (nblock + 1) / 2"),
    Field("npath", "size", doc="capacity: entries of rows closed under paths, 0 in a model of many dofs"),
    Field("ncouplingmax", "size", doc="capacity: pairs of branches that rows couple"),
    Field("ngraph", "size", doc="trees of a model of many, whose worlds may be factored one by one, else 0"),
    Field("ngraphword", "size", doc="words of a row of the graph of trees"),
    Field("nfill", "size", doc="capacity: couplings of two trees in one world, with fill-in"),
    Field("npanel", "size", doc="capacity: entries of one world's factor"),
    Field("npanelcolumn", "size", doc="columns of the widest panel"),
    Field("npanelscale", "size", doc="square of the most dofs of a tree"),
    Field("nsignature", "size", doc="words of 24 bits that say which candidate pairs touch"),
    Field("npart", "size", doc="values kept of each world while a tile is solved in parts, 2 nv + ntree + 6"),
    Field("want_frames", "size", doc="1: compute the frames of all geoms and sites, 0: of colliding geoms only"),
    Field("want_energy", "size", doc="1: compute energies in each step"),
    Field("want_history", "size", doc="1: record each iteration of the solver"),
    Field("nrecord", "size", doc="capacity: points in the record of a solve, the start included"),
    Field("ndualmax", "size", doc="capacity: blocks of the dual problem: one-dof rows, general rows, contacts"),
    Field("ndualdofmax", "size", doc="capacity: dofs of all blocks"),
    Field("ndualYmax", "size", doc="capacity: entries of all blocks' rows"),
    *LCP_SIZES,
    Field("want_sensors", "size", doc="1: compute the values of sensors in each step"),
    Field("want_subtree", "size", doc="1: compute velocities and momenta of subtrees"),
    Field("want_wrenches", "size", doc="1: compute accelerations of bodies, and forces on and between them"),
    Field("user_control", "size", doc="address of the control function of this call, 0: none"),
    Field("want_all", "size", doc="1: write every field, 0: only what a step reads (not those of ON_REQUEST)"),
)

STATE = (
    Field("time", "real", (1,), "s", "simulation time", "integrate"),
    Field("qpos", "real", ("nq",), "m, rad, quaternion", "position", "integrate"),
    Field("qvel", "real", ("nv",), "m/s, rad/s", "velocity", "integrate"),
    Field("act", "real", ("na",), "1", "actuator activation", "integrate"),
    Field("history", "real", ("nhistory",), "1", "past controls and sensor values of those with a delay", "integrate"),
    Field("plastic", "real", ("nplastic",), "m, rad, quaternion", "references of springs that yield", "integrate"),
    Field("qacc_warmstart", "real", ("nv",), "m/s^2, rad/s^2", "acceleration that the solver starts from", "integrate"),
    Field("ctrl", "real", ("nu",), "1", "control (given by the user)"),
    Field("qfrc_applied", "real", ("nv",), "N, N m", "applied generalized force (given by the user)"),
    Field("xfrc_applied", "real", ("nbody", 6), "N, N m", "applied force and torque at body coms (given by the user)"),
    Field("mocap_pos", "real", ("nmocap", 3), "m", "positions of mocap bodies (given by the user)"),
    Field("mocap_quat", "real", ("nmocap", 4), "1", "orientations of mocap bodies (given by the user)"),
    Field("eq_active", "real", ("neq",), "1", "1: the equality constraint acts, 0: not (given by the user)"),
    Field(
        "tree_asleep",
        "real",
        ("ntree",),
        "1",
        "below 0: awake, counts up to -1, ready to sleep; else the next tree of the sleeping island",
        "sleep",
    ),
    Field("sleep_qpos", "real", ("nq",), "m, rad, quaternion", "qpos of the trees that sleep", "sleep"),
    Field("sleep_mocap", "real", ("nmocap", 7), "m, 1", "poses of mocap bodies as they were last looked at", "sleep"),
)

# with the flag `sleep`; ints tell of all worlds of a tile together, and serve to skip what would change nothing
AWAKE = (
    Field("tree_awake", "real", ("ntree",), "1", "1: the tree is awake, 0: asleep", "sleep"),
    Field("body_awake", "real", ("nbody",), "1", "1: of an awake tree or a mocap body; 0: asleep or static", "sleep"),
    Field("sleep_perturbed", "real", ("ntree",), "1", "1: the user has changed the sleeping tree", "sleep"),
    Field("tree_settled", "int", ("ntree",), "1", "1: asleep in all worlds, its derived fields stand", "sleep"),
    Field("body_stirs", "int", ("nbody",), "1", "1: the body is awake in some world", "sleep"),
    Field("nstir", "int", (1,), "1", "trees that are not settled, and reasons to compute all the same", "sleep"),
    Field("con_fresh", "int", (1,), "1", "1: the contacts of the present positions are found", "sleep"),
    Field("leaf_awake", "int", ("ncrowd",), "1", "1: the geom of the crowd is awake in the world at hand", "sleep"),
    Field("island_ready", "int", ("ntree",), "1", "1: all trees of the island are ready to sleep", "sleep"),
    Field("island_first", "int", ("ntree",), "1", "first tree of an island that falls asleep", "sleep"),
    Field("island_last", "int", ("ntree",), "1", "the last one so far", "sleep"),
)

POSITION = (
    Field("xpos", "real", ("nbody", 3), "m", "position of the body frame", "kinematics"),
    Field("xquat", "real", ("nbody", 4), "1", "orientation of the body frame", "kinematics"),
    Field("xmat", "real", ("nbody", 9), "1", "orientation of the body frame", "kinematics"),
    Field("xipos", "real", ("nbody", 3), "m", "position of the body's com", "kinematics"),
    Field("ximat", "real", ("nbody", 9), "1", "orientation of the body's principal axes", "com_pos"),
    Field("xanchor", "real", ("njnt", 3), "m", "position of the joint anchor", "kinematics"),
    Field("xaxis", "real", ("njnt", 3), "1", "joint axis in world coordinates", "kinematics"),
    Field("geom_xpos", "real", ("ngeom", 3), "m", "position of the geom", "frames"),
    Field("geom_xmat", "real", ("ngeom", 9), "1", "orientation of the geom", "frames"),
    Field("site_xpos", "real", ("nsite", 3), "m", "position of the site", "frames"),
    Field("site_xmat", "real", ("nsite", 9), "1", "orientation of the site", "frames"),
    Field("subtree_com", "real", ("nbody", 3), "m", "center of mass of each subtree", "com_pos"),
    Field("cdof", "real", ("nv", 6), "1, m", "motion axis of each dof at the tree's com, rotation first", "com_pos"),
    Field("cinert", "real", ("nbody", 10), "kg m^2, kg m, kg", "body inertia at the tree's com", "com_pos"),
    Field("crb", "real", ("nbody", 10), "kg m^2, kg m, kg", "composite rigid body inertia", "crb"),
    Field("M", "real", ("nC",), "kg, kg m, kg m^2", "joint-space inertia matrix, lower triangle by rows (CSR)", "crb"),
    Field("qLD", "real", ("nC",), "1", "M = L^T D L: strict lower rows of L, D on the diagonal", "factor_m"),
    Field("qLDiagInv", "real", ("nv",), "1/(kg m^2)", "1 / D", "factor_m"),
    Field("cam_xpos", "real", ("ncam", 3), "m", "position of the camera", "sensors"),
    Field("cam_xmat", "real", ("ncam", 9), "1", "orientation of the camera", "sensors"),
    Field("ten_length", "real", ("ntendon",), "m", "tendon length", "tendon"),
    Field("ten_J", "real", ("nJten",), "1, m", "Jacobian of the tendon lengths, rows of ten_J_colind", "tendon"),
    Field("actuator_length", "real", ("nout",), "m, rad", "actuator length", "transmission"),
    Field("actuator_moment", "real", ("nmoment",), "1, m", "actuator moments, rows of moment_colind", "transmission"),
    Field(
        "energy",
        "real",
        (2,),
        "J",
        "potential and kinetic energy; `fl.energy` right after a step would mix old positions with new velocities",
        "energy",
    ),
)

VELOCITY = (
    Field("cvel", "real", ("nbody", 6), "rad/s, m/s", "body velocity at the tree's com, rotation first", "com_vel"),
    Field("cdof_dot", "real", ("nv", 6), "1/s, m/s", "rate of cdof", "com_vel"),
    Field("ten_velocity", "real", ("ntendon",), "m/s", "rate of the tendon length", "tendon_velocity"),
    Field("actuator_velocity", "real", ("nout",), "m/s, rad/s", "actuator velocity", "actuation"),
    Field("qfrc_bias", "real", ("nv",), "N, N m", "Coriolis, centrifugal and gravity forces C(q, v)", "rne"),
    Field("qfrc_spring", "real", ("nv",), "N, N m", "joint spring force", "passive"),
    Field("qfrc_damper", "real", ("nv",), "N, N m", "joint damper force", "passive"),
    Field("qfrc_gravcomp", "real", ("nv",), "N, N m", "gravity compensation", "passive"),
    Field("qfrc_fluid", "real", ("nv",), "N, N m", "fluid force", "passive"),
    Field("qfrc_adhesion", "real", ("nv",), "N, N m", "pull of adhesive contacts", "passive"),
    Field("qfrc_passive", "real", ("nv",), "N, N m", "total passive force", "passive"),
    Field("subtree_linvel", "real", ("nbody", 3), "m/s", "velocity of a subtree's centre of mass", "sensors"),
    Field("subtree_angmom", "real", ("nbody", 3), "kg m^2/s", "angular momentum of a subtree about it", "sensors"),
)

FORCE = (
    Field("actuator_force", "real", ("nout",), "N, N m", "actuator force before gearing", "actuation"),
    Field("act_dot", "real", ("na",), "1/s", "rate of the activation", "actuation"),
    Field("actuator_input", "real", ("nu",), "1", "control that acts: delayed, clamped, slewed", "actuation"),
    Field("actuator_rate", "real", ("nactuator", 2), "N/m, N s/m", "slope of the force in length, rate", "actuation"),
    Field("user_actuator", "long", ("nactuator", 3), "1", "addresses of the user's activation, gain, bias; 0: none"),
    Field("user_term", "real", (1,), "N, N m", "gain or bias that a function of the user gave", "actuation"),
    Field("tendon_actuatorfrc", "real", ("ntendon",), "N", "sum of actuator forces on a limited tendon", "actuation"),
    Field("badctrl", "real", (1,), "1", "1: a control was no number, all counted as 0", "actuation"),
    Field("qfrc_actuator", "real", ("nv",), "N, N m", "actuator force in joint space", "actuation"),
    Field("qfrc_smooth", "real", ("nv",), "N, N m", "force without constraints", "smooth_acceleration"),
    Field("qacc_smooth", "real", ("nv",), "m/s^2, rad/s^2", "acceleration without constraints", "smooth_acceleration"),
)

# contacts that the caller gives, in each world its own; whole numbers are kept as reals, because they differ by world
GIVEN = (
    Field("given_replace", "real", (1,), "1", "1: no contacts are detected in this world"),
    Field("given_present", "real", ("ngiven",), "1", "1 where a contact is given, else 0"),
    Field("given_body", "real", ("ngiven", 2), "1", "the two bodies that touch"),
    Field("given_geom", "real", ("ngiven", 2), "1", "their geoms, -1: the contact names bodies alone"),
    Field("given_dim", "real", ("ngiven",), "1", "dimension of the contact space"),
    Field("given_dist", "real", ("ngiven",), "m", "distance, negative: penetration"),
    Field("given_pos", "real", ("ngiven", 3), "m", "midpoint of the contact"),
    Field("given_frame", "real", ("ngiven", 9), "1", "normal (from the first to the second) and two tangents, as rows"),
    Field("given_includemargin", "real", ("ngiven",), "m", "a row exists where dist < includemargin"),
    Field("given_friction", "real", ("ngiven", 5), "1, m", "sliding 1, sliding 2, spinning, rolling 1, rolling 2"),
    Field("given_solref", "real", ("ngiven", 2), "s, 1", "reference of the normal row"),
    Field("given_solreffriction", "real", ("ngiven", 2), "s, 1", "elliptic: reference of the friction rows, or zeros"),
    Field("given_solimp", "real", ("ngiven", 5), "1", "impedance"),
    Field("given_adhesion", "real", ("ngiven",), "N", "force with which the contact can pull"),
    Field("given_frictionforce", "real", ("ngiven",), "1", "lcp: 1: sliding friction is a force [N]"),
    Field("given_erp", "real", ("ngiven",), "1", "lcp: ERP of the normal row, negative: opt_erp"),
    Field("given_cfm", "real", ("ngiven",), "m/(s N)", "lcp: CFM of the normal row, negative: opt_cfm"),
    Field("given_restitution", "real", ("ngiven",), "1", "lcp: part of the approach speed with which bodies part"),
    Field("given_restitution_vel", "real", ("ngiven",), "m/s", "lcp: approach speed above which they do"),
    Field("given_slip", "real", ("ngiven", 2), "m/(s N)", "lcp: CFM of the two rows of sliding friction"),
    Field("given_motion", "real", ("ngiven", 3), "m/s", "lcp: surface velocity along normal and tangents"),
)

# a slot is a row or a contact point that some world of the tile has; a world that lacks it has D = 0 there
CONTACT = (
    Field(
        "active", "real", (1,), "1", "1: this world takes part, 0: it waits for the other part of a split tile", "step"
    ),
    Field("detects", "real", (1,), "1", "1: this world takes part in detection", "collision"),
    Field("given_left", "real", (1,), "1", "1: this world's given contact has no slot yet", "collision"),
    Field("geom_reach", "real", ("ngeom",), "m", "bounding radius, margin and gap of the geom", "collision"),
    Field("cand_near", "int", ("ncand",), "1", "candidate pairs that are near in some world", "collision"),
    Field("crowd_box", "real", ("ncrowd", 6), "m", "box about a geom of the crowd: lower, upper corner", "collision"),
    Field(
        "body_box", "real", ("ngroupbody", 6), "m", "box about the geoms of a body: lower, upper corner", "collision"
    ),
    Field("leaf_box", "scalar", ("ncrowd", 6), "m", "crowd_box of one world", "collision"),
    Field("leaf_key", "long", ("ncrowd",), "1", "place on the curve, and number in the crowd", "collision"),
    Field("leaf_room", "long", ("ncrowd",), "1", "room to sort them", "collision"),
    Field("node_box", "scalar", ("nnode", 6), "m", "box about all below a node of the tree", "collision"),
    Field("digit_count", "int", (1024,), "1", "how many keys have a digit", "collision"),
    Field("node_stack", "int", (256,), "1", "pairs of nodes to visit, and how high they stand", "collision"),
    Field("near_count", "int", (1,), "1", "near pairs of a model with a crowd", "collision"),
    Field("near_key", "long", ("nnear",), "1", "their sorting keys", "collision"),
    Field("near_room", "long", ("nnear",), "1", "room to sort them", "collision"),
    Field("ncon_slot", "int", (1,), "1", "contact slots of the tile", "collision"),
    Field("con_overflow", "int", (1,), "1", "1: the slots did not fit, the tile has to be split", "collision"),
    Field("ncon", "real", (1,), "1", "contacts of each world", "collision"),
    Field("con_cand", "int", ("nconmax",), "1", "candidate pair; in a crowd that of no one, -1: given", "collision"),
    Field("con_geom", "int", ("nconmax", 2), "1", "geoms of the slot, -1: given by its bodies alone", "collision"),
    Field("con_carrier", "int", ("nconmax", 2), "1", "bodies that carry the two geoms", "collision"),
    Field("con_point", "int", ("nconmax",), "1", "which of its pair's points the slot is", "collision"),
    Field("con_dim", "int", ("nconmax",), "1", "dimension of the contact space", "collision"),
    Field("con_pair", "int", ("nconmax",), "1", "explicit pair that set the parameters, -1: none", "collision"),
    Field("con_present", "real", ("nconmax",), "1", "1 where the world has this contact, else 0", "collision"),
    Field("con_dist", "real", ("nconmax",), "m", "distance, negative: penetration", "collision"),
    Field("con_pos", "real", ("nconmax", 3), "m", "midpoint of the contact", "collision"),
    Field("con_frame", "real", ("nconmax", 9), "1", "normal (geom 1 to geom 2) and two tangents, as rows", "collision"),
    Field("con_includemargin", "real", ("nconmax",), "m", "a row exists where dist < includemargin", "collision"),
    Field(
        "con_friction",
        "real",
        ("nconmax", 5),
        "1, m",
        "sliding 1, sliding 2, spinning, rolling 1, rolling 2",
        "collision",
    ),
    Field("con_solref", "real", ("nconmax", 2), "s, 1", "reference of the normal row", "collision"),
    Field(
        "con_solreffriction",
        "real",
        ("nconmax", 2),
        "s, 1",
        "elliptic: reference of the friction rows; zeros: as the normal's",
        "collision",
    ),
    Field("con_solimp", "real", ("nconmax", 5), "1", "impedance", "collision"),
    Field("con_adhesion", "real", ("nconmax",), "N", "force with which the contact can pull", "collision"),
)

# rays, one of each world at a time
RAY = (
    Field("ray_point", "real", (3,), "m", "where the ray starts", "cast"),
    Field("ray_direction", "real", (3,), "1", "unit vector of where it goes", "cast"),
    Field("ray_exclude", "real", (1,), "1", "body that it passes through, -1: none", "cast"),
    Field("ray_distance", "real", (1,), "m", "distance of the first surface, -1: none", "cast"),
    Field("ray_geom", "real", (1,), "1", "geom that it meets, -1: none", "cast"),
    Field("ray_normal", "real", (3,), "1", "outward normal of the surface", "cast"),
    Field("ray_cutoff", "scalar", (1,), "m", "surfaces farther than this are not seen", "cast"),
    Field("ray_ngeom", "int", (1,), "1", "geoms that rays can meet", "cast"),
    Field("ray_seen", "int", ("ngeom",), "1", "these geoms", "cast"),
    Field("line_point", "scalar", (3,), "m", "start of a ray in the frame of one shape", "cast"),
    Field("line_direction", "scalar", (3,), "1", "its unit direction", "cast"),
    Field("line_distance", "scalar", (1,), "m", "nearest surface so far; what lies beyond does not count", "cast"),
    Field("line_hit", "int", (1,), "1", "1: the shape has a nearer one", "cast"),
    Field("line_normal", "scalar", (3,), "1", "its outward normal, in the frame of the shape", "cast"),
    Field("line_node", "int", (64,), "1", "nodes of a mesh's tree still to visit", "cast"),
    Field("line_enter", "scalar", (64,), "m", "where the ray enters their boxes", "cast"),
)

# room for the general convex pairs: one pair of shapes at a time, in the frame of the first
CONVEX = (
    Field("prism_vert", "scalar", (6, 3), "m", "vertices of a prism, a shape of type 8, in its frame", "collision"),
    Field("convex_pos", "scalar", (3,), "m", "the second shape's centre in the frame of the first", "collision"),
    Field("convex_mat", "scalar", (9,), "1", "its orientation there", "collision"),
    Field("support_dir", "scalar", (3,), "1", "where a support point is asked for", "collision"),
    Field("support_first", "scalar", (3,), "m", "point of the first core that is farthest there", "collision"),
    Field("support_point", "scalar", (3,), "m", "that less the second core's, farthest the other way", "collision"),
    Field("support_vertex", "int", (2,), "1", "their numbers within their shapes, -1: none", "collision"),
    Field("simplex_count", "int", (1,), "1", "points of the simplex", "collision"),
    Field("simplex_point", "scalar", (4, 3), "m", "support points of the difference of the cores", "collision"),
    Field("simplex_first", "scalar", (4, 3), "m", "their points of the first core", "collision"),
    Field("simplex_vertex", "int", (4, 2), "1", "their vertices", "collision"),
    Field("simplex_weight", "scalar", (4,), "1", "their parts in the point nearest to the origin", "collision"),
    Field("gjk_state", "int", (1,), "1", "0 apart, 1 farther than asked for, 2 overlap or touch", "collision"),
    Field("gjk_reach", "scalar", (1,), "m", "distance beyond which nothing more is asked", "collision"),
    Field("gjk_gap", "scalar", (1,), "1", "gap at which the search ends, as a part of squared distance", "collision"),
    Field("epa_gap", "scalar", (1,), "1", "gap at which the search ends, as a part of the size", "collision"),
    Field("gjk_nearest", "scalar", (3,), "m", "point of the difference nearest to the origin", "collision"),
    Field("epa_point", "scalar", (256, 3), "m", "vertices of the polytope in the difference of the cores", "collision"),
    Field("epa_first", "scalar", (256, 3), "m", "their points of the first core", "collision"),
    Field("epa_vertex", "int", (256, 2), "1", "their vertices", "collision"),
    Field("epa_link", "int", (256, 2), "1", "new face that begins, that ends at a vertex of the horizon", "collision"),
    Field("epa_corner", "int", (512, 3), "1", "corners of a face, counterclockwise from outside", "collision"),
    Field("epa_neighbour", "int", (512, 3), "1", "faces beyond its edges; edge i leads from corner i", "collision"),
    Field("epa_normal", "scalar", (512, 3), "1", "its unit normal, outwards", "collision"),
    Field("epa_offset", "scalar", (512,), "m", "its plane: normal . x = offset", "collision"),
    Field("epa_key", "scalar", (512,), "m", "offset of a face still to be looked at, else more", "collision"),
    Field("epa_mark", "int", (512,), "1", "1: the face is seen from the new vertex", "collision"),
    Field("epa_seen", "int", (512,), "1", "the faces that are seen", "collision"),
    Field("epa_edge", "int", (512, 3), "1", "edges of the horizon: from, to, face beyond", "collision"),
    Field("epa_spare", "int", (512,), "1", "faces that were taken away", "collision"),
    Field("epa_best", "int", (3,), "1", "corners of the face that gave the depth", "collision"),
    Field("convex_way", "int", (1,), "1", "how a normal was polished, 0: not", "collision"),
    Field("convex_dist", "scalar", (1,), "m", "signed distance of the two shapes", "collision"),
    Field("convex_normal", "scalar", (3,), "1", "direction from the first to the second, in world axes", "collision"),
    Field("convex_witness", "scalar", (2, 3), "m", "nearest points of the two, in world axes", "collision"),
    Field(
        "contact_axes", "scalar", (4, 3), "1, m", "two tangents and the normal as rows; where they begin", "collision"
    ),
    Field("feature_point", "scalar", (2, 64, 3), "m", "edge, face or disc with which a shape meets", "collision"),
    Field("feature_count", "int", (2,), "1", "its corners; 1 a point, -1 a disc", "collision"),
    Field("feature_normal", "scalar", (2, 3), "1", "its normal, if it is a face", "collision"),
    Field("clip_count", "int", (1,), "1", "places that both features cover", "collision"),
    Field("clip_point", "scalar", (160, 3), "m", "the places: along two tangents and the normal", "collision"),
    Field("clip_dist", "scalar", (160,), "m", "distances there", "collision"),
)

# the distance of two geoms that is asked for
DISTANCE = (
    Field("distance_geom", "real", (2,), "1", "the two geoms", "geom_distance"),
    Field("distance_limit", "scalar", (1,), "m", "distance from which on they are not looked at", "geom_distance"),
    Field("distance", "real", (1,), "m", "their signed distance", "geom_distance"),
    Field("distance_fromto", "real", (6,), "m", "nearest point of the first, then of the second", "geom_distance"),
)

# room in which the branching work of one world and one pair of shapes is done, in float64
NARROW = (
    Field("narrow_near", "real", (1,), "1", "1 where the pair is near in this world", "collision"),
    Field("narrow_limit", "real", (1,), "m", "distance up to which a point counts in this world", "collision"),
    Field("shape_type", "int", (2,), "1", "types of the two geoms", "collision"),
    Field("shape_data", "int", (2,), "1", "their meshes or height fields", "collision"),
    Field("shape_pos", "scalar", (2, 3), "m", "their centres", "collision"),
    Field("shape_mat", "scalar", (2, 9), "1", "their orientations", "collision"),
    Field("shape_size", "scalar", (2, 3), "m", "their sizes", "collision"),
    Field("shape_limit", "scalar", (1,), "m", "distance up to which a point counts", "collision"),
    Field("box_polygon", "scalar", (2, 12, 3), "m", "a box's face over another's, before and after a cut", "collision"),
    Field("manifold_count", "int", (1,), "1", "points found", "collision"),
    Field("manifold_dist", "scalar", ("nmanifold",), "m", "their distances", "collision"),
    Field("manifold_pos", "scalar", ("nmanifold", 3), "m", "their positions", "collision"),
    Field(
        "manifold_normal", "scalar", ("nmanifold", 3), "1", "their normals, from the first to the second", "collision"
    ),
)

CONSTRAINT = (
    Field("ndofrow", "int", (1,), "1", "one-dof row slots of the tile: friction loss, then limits", "make_rows"),
    Field("nfrictionrow", "int", (1,), "1", "how many of them are friction loss", "make_rows"),
    Field("dofrow_dof", "int", ("ndofrowmax",), "1", "dof of the row", "make_rows"),
    Field("dofrow_type", "int", ("ndofrowmax",), "1", "mjtConstraint", "make_rows"),
    Field("dofrow_id", "int", ("ndofrowmax",), "1", "dof (friction loss) or joint (limit) of the row", "make_rows"),
    Field("dofrow_present", "real", ("ndofrowmax",), "1", "1 where the world has this row, else 0", "make_rows"),
    Field("dofrow_J", "real", ("ndofrowmax",), "1", "the one Jacobian entry", "make_rows"),
    Field("dofrow_pos", "real", ("ndofrowmax",), "m, rad", "position error", "make_rows"),
    Field("dofrow_margin", "real", ("ndofrowmax",), "m, rad", "margin", "make_rows"),
    Field("dofrow_vel", "real", ("ndofrowmax",), "m/s, rad/s", "velocity J v", "make_rows"),
    Field("dofrow_D", "real", ("ndofrowmax",), "kg, kg m^2", "1 / R, 0 where absent", "make_rows"),
    Field("dofrow_aref", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "reference acceleration", "make_rows"),
    Field("dofrow_lo", "real", ("ndofrowmax",), "N, N m", "smallest force", "make_rows"),
    Field("dofrow_hi", "real", ("ndofrowmax",), "N, N m", "largest force", "make_rows"),
    Field("ngenrow", "int", (1,), "1", "general row slots of the tile", "make_rows"),
    Field(
        "genrow_dofadr", "int", ("ngenrowmax",), "1", "first entry of the row in genrow_dof and genrow_J", "make_rows"
    ),
    Field("genrow_dofnum", "int", ("ngenrowmax",), "1", "entries of the row", "make_rows"),
    Field("genrow_rownum", "int", ("ngenrowmax",), "1", "rows from this one on that share its dofs", "make_rows"),
    Field("genrow_dof", "int", ("ngenJmax",), "1", "dof of each entry, ascending within a row", "make_rows"),
    Field("genrow_type", "int", ("ngenrowmax",), "1", "mjtConstraint", "make_rows"),
    Field("genrow_id", "int", ("ngenrowmax",), "1", "equality or joint of the row", "make_rows"),
    Field("genrow_present", "real", ("ngenrowmax",), "1", "1 where the world has this row, else 0", "make_rows"),
    Field("genrow_J", "real", ("ngenJmax",), "1", "Jacobian entries", "make_rows"),
    Field("genrow_pos", "real", ("ngenrowmax",), "m, rad", "position error", "make_rows"),
    Field("genrow_margin", "real", ("ngenrowmax",), "m, rad", "margin", "make_rows"),
    Field("genrow_vel", "real", ("ngenrowmax",), "m/s, rad/s", "velocity J v", "make_rows"),
    Field("genrow_D", "real", ("ngenrowmax",), "kg, kg m^2", "1 / R, 0 where absent", "make_rows"),
    Field("genrow_aref", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "reference acceleration", "make_rows"),
    Field("genrow_lo", "real", ("ngenrowmax",), "N, N m", "smallest force", "make_rows"),
    Field("genrow_hi", "real", ("ngenrowmax",), "N, N m", "largest force", "make_rows"),
    Field(
        "con_D",
        "real",
        ("nconmax",),
        "kg",
        "1 / R of the normal row, of every row of a pyramid; 0: no row",
        "make_rows",
    ),
    Field("con_Dt", "real", ("nconmax",), "kg", "elliptic: 1 / R of friction row i over friction_i^2", "make_rows"),
    Field("con_slip", "real", ("nconmax",), "kg", "elliptic: D / (1 + mu^2), of a contact that slips", "make_rows"),
    Field("con_damping", "real", ("nconmax",), "1/s", "B: aref = -B J v - con_stiffpos, row by row", "make_rows"),
    Field("con_frictiondamping", "real", ("nconmax",), "1/s", "B of the friction rows: aref = -B J v", "make_rows"),
    Field("con_stiffpos", "real", ("nconmax",), "m/s^2", "K imp (dist - includemargin) - adhesion / D", "make_rows"),
    Field("con_frictionforce", "real", ("nconmax",), "1", "lcp: 1: sliding friction is a force", "make_lcp"),
    Field("con_erp", "real", ("nconmax",), "1", "lcp: ERP of the normal row", "make_lcp"),
    Field("con_cfm", "real", ("nconmax",), "m/(s N)", "lcp: CFM of the normal row", "make_lcp"),
    Field("con_restitution", "real", ("nconmax",), "1", "lcp: restitution", "make_lcp"),
    Field("con_restitution_vel", "real", ("nconmax",), "m/s", "lcp: approach speed above which it acts", "make_lcp"),
    Field("con_compliance", "real", ("nconmax", 2), "m/(s N)", "lcp: CFM of the friction rows (slip)", "make_lcp"),
    Field("con_belt", "real", ("nconmax", 3), "m/s", "lcp: surface velocity along normal and tangents", "make_lcp"),
    Field(
        "con_lcprow", "int", ("nconmax",), "1", "lcp: row of the slot's normal; those of friction follow", "make_lcp"
    ),
    Field("dofrow_lcprow", "int", ("ndofrowmax",), "1", "lcp: row of the one-dof row", "make_lcp"),
    Field("genrow_lcprow", "int", ("ngenrowmax",), "1", "lcp: row of the general row", "make_lcp"),
    Field(
        "link_lcprow",
        "int",
        ("nlink", 2),
        "1",
        "lcp: first row of the link; that of its motor or stop, -1: none",
        "make_lcp",
    ),
    Field("link_position", "real", ("nlink",), "m, rad", "angle of a hinge, position of a slider", "make_lcp"),
    Field("link_force", "real", ("nlink", 6), "N, N m", "force and torque on the first body at its com", "make_lcp"),
)

SOLVER = (
    Field("qacc", "real", ("nv",), "m/s^2, rad/s^2", "acceleration", "solve"),
    Field("qfrc_constraint", "real", ("nv",), "N, N m", "constraint force", "solve"),
    Field("qfrc_inverse", "real", ("nv",), "N, N m", "external force that gives qacc", "inverse"),
    Field("solver_fwdinv", "real", (2,), "N, N m", "forward less inverse: constraint force, applied force", "step"),
    Field("solver_niter", "real", (1,), "1", "solver iterations", "solve"),
    Field("solver_residual", "real", (1,), "1", "norm of the scaled gradient at the end", "solve"),
    Field("solver_gap", "real", (1,), "1", "scaled duality gap at the end: bounds the cost above its minimum", "solve"),
    Field("stat_cost", "real", ("nrecord",), "1", "scaled cost after each iteration, the start first", "solve"),
    Field("stat_gradient", "real", ("nrecord",), "1", "norm of the scaled gradient there", "solve"),
    Field("stat_improvement", "real", ("nrecord",), "1", "by how much the iteration lowered the cost", "solve"),
    Field("stat_step", "real", ("nrecord",), "1", "length of its step, in search directions; PGS: momentum", "solve"),
    Field("dofrow_force", "real", ("ndofrowmax",), "N, N m", "force of the row", "solve"),
    Field("genrow_force", "real", ("ngenrowmax",), "N, N m", "force of the row", "solve"),
    Field("con_force", "real", ("nconmax", 6), "N, N m", "force along normal and tangents, moment about them", "solve"),
    Field(
        "warning",
        "real",
        (5,),
        "1",
        "counts: contacts full, rows full, bad number, not converged, bad control",
        "step",
    ),
    Field("nbad", "real", (1,), "1", "times this world was reset for bad numbers", "step"),
)

SENSORS = (
    Field("cfrc_int", "real", ("nbody", 6), "N m, N", "force from the parent, at the tree's com", "sensors"),
    Field("cfrc_ext", "real", ("nbody", 6), "N m, N", "external force on the body, at the tree's com", "sensors"),
    Field("in_stage", "int", (1,), "1", "1: this pass is a stage within a step, whose sensors do not count"),
    Field("user_sensor", "long", ("nsensor",), "1", "address of a sensor's compiled function; 0: none"),
    Field("sensor_now", "real", ("nsensordata",), "sensor's", "values of this moment, before any delay", "sensors"),
    Field("sensordata", "real", ("nsensordata",), "sensor's", "values of all sensors", "sensors"),
)

# what passes use within themselves
SCRATCH = (
    Field("cacc", "real", ("nbody", 6), "rad/s^2, m/s^2", "body acceleration at the tree's com", "rne"),
    Field("cfrc", "real", ("nbody", 6), "N m, N", "body force at the tree's com", "rne"),
    Field(
        "signature", "real", ("nsignature",), "1", "which candidate pairs touch, in words of 24 bits", "sign_contacts"
    ),
    Field("part", "real", ("npart",), "1", "results gathered from the parts of a split tile", "solve_in_parts"),
    Field("lane_active", "real", (1,), "1", "active, while parts of the tile are", "solve_in_parts"),
    Field(
        "con_body", "int", ("nconmax", 2), "1", "body that the slot pushes, and the other if both move, else 0", "solve"
    ),
    Field("con_arm", "real", ("nconmax", 6), "m", "contact point from the coms of the two bodies' trees", "solve"),
    Field(
        "con_basis",
        "real",
        (2, "nconmax", 9),
        "1, m",
        "n, mu1 t1, mu2 t2, pointing at the body that is pushed; then turns: mu3 n, mu4 t1, mu5 t2",
        "solve",
    ),
    Field(
        "body_reached",
        "int",
        ("nbody",),
        "1",
        "a slot acts on the body or below it: 1 with a body of its tree, 2 to 4 as a stiffness",
        "solve",
    ),
    Field("con_motion", "real", ("nbody", 6), "rad/s^2, m/s^2", "body motion that a joint-space vector makes", "solve"),
    Field(
        "con_wrench",
        "real",
        ("nbody", 6),
        "N m, N",
        "contact force on the body and below it, at the tree's com",
        "solve",
    ),
    Field(
        "body_K",
        "real",
        ("nbody", 21),
        "kg, kg m, kg m^2",
        "contact stiffness on the body: aa (6), al (9), ll (6)",
        "solve",
    ),
    Field(
        "dof_K",
        "real",
        ("nv", 3),
        "kg, kg m^2",
        "stiffness of the dof's own rows, and between it and the one and two dofs before it in its ball joint",
        "solve",
    ),
    Field("coupled", "real", (1,), "1", "1: rows of this world couple two branches", "solve"),
    Field("con_y", "real", (2, "nconmax", 3), "m/s^2", "J a - aref along the contact's basis", "solve"),
    Field("con_z", "real", (2, "nconmax", 3), "m/s^2", "J p along the contact's basis", "solve"),
    Field("con_warm", "real", (2, "nconmax", 3), "m/s^2", "J a - aref at the warm start", "solve"),
    Field("dofrow_x", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "J a - aref", "solve"),
    Field("dofrow_v", "real", ("ndofrowmax",), "m/s^2, rad/s^2", "J p", "solve"),
    Field("genrow_x", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "J a - aref", "solve"),
    Field("genrow_v", "real", ("ngenrowmax",), "m/s^2, rad/s^2", "J p", "solve"),
    Field("Ma", "real", ("nv",), "N, N m", "M a", "solve"),
    Field("Mv", "real", ("nv",), "N, N m", "M p", "solve"),
    Field("grad", "real", ("nv",), "N, N m", "gradient of the cost", "solve"),
    Field("search", "real", ("nv",), "m/s^2, rad/s^2", "search direction p", "solve"),
    Field("Mgrad", "real", ("nv",), "m/s^2, rad/s^2", "M^-1 grad", "solve"),
    Field("grad_old", "real", ("nv",), "N, N m", "grad one iteration before", "solve"),
    Field("Mgrad_old", "real", ("nv",), "m/s^2, rad/s^2", "Mgrad one iteration before", "solve"),
    Field("ndual", "int", (1,), "1", "blocks of the dual problem", "solve"),
    Field("dual_dofadr", "int", ("ndualmax",), "1", "first entry of the block in dual_dof", "solve"),
    Field("dual_dofnum", "int", ("ndualmax",), "1", "dofs of the block", "solve"),
    Field("dual_rowadr", "int", ("ndualmax",), "1", "first entry of the block's first row in dual_Y", "solve"),
    Field("dual_mark", "int", ("nv",), "1", "1: the dof is one of the block that is being made", "solve"),
    Field("dual_place", "int", ("nv",), "1", "where the dof stands among those of the block", "solve"),
    Field("dual_dof", "int", ("ndualdofmax",), "1", "dofs of a block and all above them, descending", "solve"),
    Field("dual_Y", "real", ("ndualYmax",), "1", "rows of J L^-1 D^-1/2, M = L^T D L: A = Y Y^T + R", "solve"),
    Field("dual_A", "real", ("ndualmax", 21), "1/kg", "Y Y^T of each block, lower triangle", "solve"),
    Field("dual_f", "real", ("ndualmax", 10), "N, N m", "force of each row, of each edge of a pyramid", "solve"),
    Field("dual_old", "real", ("ndualmax", 10), "N, N m", "dual_f before the momentum of a sweep", "solve"),
    Field("dual_z", "real", ("nv",), "1", "Y^T f", "solve"),
    Field("visit_key", "long", ("ndualmax",), "1", "blocks in the order of a sweep, in the lower 31 bits", "solve"),
    Field("visit_room", "long", ("ndualmax",), "1", "room to sort them", "solve"),
    Field("dual_room", "real", (96,), "1", "room for the problem of one block", "solve"),
    Field(
        "H_pattern",
        "int",
        (1,),
        "1",
        "rows of ancestors: 1, 3 (trees apart), 5 (closed); block rows: 2, 4 (no fill-in); 0: none yet",
        "solve",
    ),
    Field("H_rowadr", "int", ("nv",), "1", "first entry of a row of H", "solve"),
    Field("H_rownnz", "int", ("nv",), "1", "entries of a row of H, the diagonal last", "solve"),
    Field("H", "real", ("nH",), "kg, kg m, kg m^2", "Hessian, then its factor L^T D L", "solve"),
    Field("H_dinv", "real", ("nv",), "1/(kg m^2)", "1 / D", "solve"),
    Field("ncoupling", "int", (2,), "1", "pairs of branches that rows couple: of this step, of the pattern", "solve"),
    Field("coupling_key", "long", ("ncouplingmax",), "1", "the pair: higher tip dof x nv + the lower one", "solve"),
    Field("coupling_room", "long", ("ncouplingmax",), "1", "room to sort them", "solve"),
    Field("coupling_last", "long", ("ncouplingmax",), "1", "the pairs that the pattern was made for", "solve"),
    Field("coupling_K", "real", ("ncouplingmax", 36), "kg, kg m, kg m^2", "stiffness between the two bodies", "solve"),
    Field("con_coupling", "int", ("nconmax",), "1", "pair of branches that the slot couples, -1: none", "solve"),
    Field("H_parent", "int", ("nv",), "1", "dof before the diagonal in a row closed under paths, -1: none", "solve"),
    Field("H_colind", "int", ("npath",), "1", "columns of the rows closed under paths, ascending", "solve"),
    Field("H_below", "int", ("nv",), "1", "rows below with an entry in this column, closed under paths", "solve"),
    Field("H_belowadr", "int", ("nv",), "1", "the first of them in H_belowrow", "solve"),
    Field("H_belowrow", "int", ("npath",), "1", "the rows below of each column, descending", "solve"),
    Field("H_blockadr", "int", ("nblock",), "1", "first block of a block row of H", "solve"),
    Field("H_blocknum", "int", ("nblock",), "1", "blocks of a block row, the diagonal last", "solve"),
    Field("H_blockcol", "int", ("nHblock",), "1", "column of each block, ascending", "solve"),
    Field("H_blockplace", "int", ("nHblock",), "1", "place of the block's first column in the row", "solve"),
    Field("H_blockchild", "int", ("nblock",), "1", "last block eliminated into this one, -1: none", "solve"),
    Field("H_blocknext", "int", ("nblock",), "1", "the one eliminated into the same block before", "solve"),
    Field("H_blockmark", "int", ("nblock",), "1", "place of a block in the row at hand", "solve"),
    Field("H_pivot", "real", (64,), "1", "multipliers of one block of columns", "solve"),
    Field("nisland", "real", (1,), "1", "constraint islands", "islands"),
    Field("tree_island", "real", ("ntree",), "1", "island of the tree, -1: no row acts on it", "islands"),
    Field("dof_island", "real", ("nv",), "1", "island of the dof, -1: no row acts on its tree", "islands"),
    Field("H_fill", "int", (1,), "1", "1: block rows hold what the factor fills in", "solve"),
    Field("ordered", "real", (1,), "1", "1: this world's Hessian is factored in an order of its own", "solve"),
    Field("live", "real", (1,), "1", "1: the solver goes on in this world", "solve"),
    Field("graph", "long", ("ngraph", "ngraphword"), "1", "bits: trees that a tree is coupled to", "solve"),
    Field("graph_degree", "int", ("ngraph",), "1", "how many they are", "solve"),
    Field("graph_head", "int", ("ngraph",), "1", "first tree of a degree", "solve"),
    Field("graph_next", "int", ("ngraph",), "1", "next tree of the same degree", "solve"),
    Field("graph_prev", "int", ("ngraph",), "1", "the one before", "solve"),
    Field("graph_order", "int", ("ngraph",), "1", "trees in the order of elimination", "solve"),
    Field("graph_place", "int", ("ngraph",), "1", "place of a tree in the order", "solve"),
    Field("graph_rowadr", "int", ("ngraph",), "1", "first tree in a tree's row of the factor", "solve"),
    Field("graph_rownnz", "int", ("ngraph",), "1", "trees in the row, itself left out", "solve"),
    Field("graph_col", "int", ("nfill",), "1", "trees of the rows, in the order of elimination", "solve"),
    Field("graph_colplace", "int", ("nfill",), "1", "their first columns in the panel", "solve"),
    Field("panel_adr", "int", ("ngraph",), "1", "first entry of a tree's panel", "solve"),
    Field("panel_width", "int", ("ngraph",), "1", "columns of the panel", "solve"),
    Field("panel_fits", "int", (1,), "1", "1: there is room for the panels", "solve"),
    Field("panel_cost", "scalar", (2,), "1", "multiplications of a factor: with fill-in, without", "solve"),
    Field("panel", "scalar", ("npanel",), "kg, kg m, kg m^2", "Hessian of one world, then its factor", "solve"),
    Field("panel_inverse", "scalar", ("nv",), "1/(kg m^2)", "1 / D", "solve"),
    Field("panel_scale", "scalar", ("npanelscale",), "1", "-L between the rows of two trees", "solve"),
    Field("panel_column", "scalar", ("npanelcolumn",), "1", "x of the trees in one row, as in its panel", "solve"),
    Field("panel_sum", "scalar", (8,), "1", "sums of one row, eight side by side", "solve"),
    Field("panel_zero", "scalar", (8,), "1", "eight zeros"),
    Field("panel_x", "scalar", ("nv",), "1", "right-hand side, then solution", "solve"),
    Field("pair_dof", "int", ("nv",), "1", "dofs of one contact between moving bodies, descending", "solve"),
    Field("pair_J", "real", (2, "nv", 3), "1", "its basis rows at those dofs", "solve"),
    Field("qvec", "real", ("nv",), "1", "right-hand side or product of one call from Python", "solve_m"),
    Field("qproduct", "real", ("nv",), "1", "product M qvec", "mul_m"),
    Field("qacc_step", "real", ("nv",), "m/s^2, rad/s^2", "acceleration that the integrator takes", "euler"),
    Field("qH", "real", ("nC",), "1", "L^T D L of the inertia with implicit damping", "euler"),
    Field("qHDiagInv", "real", ("nv",), "1/(kg m^2)", "1 / D of qH", "euler"),
    Field("lcp_scale", "real", ("nv",), "1/sqrt(kg)", "lcp: 1 / sqrt(D) of the factor in qH", "make_lcp"),
    Field("lcp_large", "real", (1,), "1", "lcp: 1: some island of the world has more rows than nlcpone", "solve"),
    Field("lcp_root", "int", ("ntree",), "1", "lcp: first tree of the island of one world's tree", "solve"),
    Field("lcp_head", "int", ("ntree",), "1", "lcp: first row of the island, by its first tree, -1: none", "solve"),
    Field("lcp_next", "int", ("nlcp",), "1", "lcp: next row of the same island, -1: none", "solve"),
    Field("qDeriv", "real", ("nD",), "N s/m, N m s/rad", "d (passive + actuator - bias force) / d qvel", "smooth_vel"),
    Field("qLU", "real", ("nD",), "1", "M - h qDeriv = U L, L with ones on the diagonal", "implicit"),
    Field(
        "cfrc_fluid", "real", ("nbody", 6), "N m, N", "composite: wrench of the medium, at the tree's com", "passive"
    ),
    Field("crb_drag", "real", ("nbody", 36), "N s/m, N m s/rad", "composite: its rates by the velocity", "smooth_vel"),
    Field("crb_rate", "real", ("nbody", 12), "kg m^2/s", "composite: rate of inertia (6), momentum (6)", "rne_vel"),
    Field("cdof_rate", "real", ("nv", 6), "1/s, m/s", "d acceleration / d qvel, less the body's part", "rne_vel"),
    Field("Mhat", "real", ("nC",), "kg, kg m, kg m^2", "M + h D + h^2 K, on M's pattern", "discrete"),
    Field("dof_touched", "real", ("nv",), "1", "of a tree's first dof: 1 where rows or servos act there", "discrete"),
    Field("block", "real", (36,), "1", "inertia with implicit forces of one free body", "implicitfast"),
    Field("rk_qpos", "real", ("nq",), "m, rad, quaternion", "position at the start of the step", "rk4_start"),
    Field("rk_qvel", "real", ("nv",), "m/s, rad/s", "velocity at the start of the step", "rk4_start"),
    Field("rk_act", "real", ("na",), "1", "activation at the start of the step", "rk4_start"),
    Field("rk_act_dot", "real", ("na",), "1/s", "weighted sum of the stages' act_dot", "rk4_stage"),
    Field("rk_length", "real", ("nout",), "m, rad", "actuator length at the start of the step", "rk4_start"),
    Field("rk_rate_of_length", "real", ("nout",), "m/s, rad/s", "its rate there", "rk4_start"),
    Field("rk_time", "real", (1,), "s", "time at the start of the step", "rk4_start"),
    Field("rk_ten_length", "real", ("ntendon",), "m", "tendon length at the start, where springs yield", "rk4_start"),
    Field("rk_ten_J", "real", ("nJten",), "1, m", "Jacobian of the lengths there", "rk4_start"),
    Field("rk_velocity", "real", ("nv",), "m/s, rad/s", "weighted sum of the stages' velocities", "rk4_stage"),
    Field("rk_acceleration", "real", ("nv",), "m/s^2, rad/s^2", "weighted sum of the stages' qacc", "rk4_stage"),
    Field(
        "rk_rate", "real", ("nv",), "m/s, rad/s", "velocity of one stage, seen from the start of the step", "rk4_stage"
    ),
    Field("aba_inertia", "real", ("nbody", 21), "kg m^2, kg m, kg", "articulated inertia, lower triangle", "aba"),
    Field("aba_axis", "real", ("nv", 6), "1", "articulated inertia times axis, over D", "aba"),
)

# written only with want_all: a step does not read them, or has no need of them in some models
ON_REQUEST = frozenset("ximat qfrc_fluid crb M qLD qLDiagInv energy cdof_dot cacc cfrc".split())

# written in a batch only where they are asked for; the last two kinds in a data, too
LATE_FRAMES = frozenset("geom_xpos geom_xmat site_xpos site_xmat cam_xpos cam_xmat".split())
MOMENTA = frozenset("subtree_linvel subtree_angmom".split())
WRENCHES = frozenset("cacc cfrc_int cfrc_ext".split())

# large, and without meaning between calls: no reset writes them, so memory that no step touches is never taken
ROOM = LCP_ROOM | frozenset(
    "crb_drag H panel graph_col graph_colplace H_blockcol H_blockplace"
    " coupling_key coupling_room coupling_last coupling_K near_key near_room"
    " visit_key visit_room lcp_next dual_dofadr dual_dofnum dual_rowadr dual_dof dual_Y dual_A dual_f dual_old"
    " stat_cost stat_gradient stat_improvement stat_step".split()
)

# compiled functions of the user, known to this process alone: no reset clears them, no copy takes them over
ADDRESSES = frozenset(("user_actuator", "user_sensor"))

STATUS = ("contacts_full", "rows_full", "bad_number", "not_converged", "bad_control")  # the entries of `warning`
DATA = Layout(
    "Data",
    SIZES
    + STATE
    + AWAKE
    + GIVEN
    + POSITION
    + VELOCITY
    + FORCE
    + CONTACT
    + NARROW
    + CONVEX
    + DISTANCE
    + RAY
    + CONSTRAINT
    + SOLVER
    + SENSORS
    + LCP
    + SCRATCH,
)
