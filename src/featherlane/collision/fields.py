"""Declares the fields of collision detection: user-defined contacts, near pairs, slots, narrow-phase scratch memory."""

from featherlane.lanes.layout import Declare, size
from featherlane.spatial.types import Bounds, Box, Mat3, Solimp, Solref, Vec3

_given = Declare("", "given", condition="ngiven")
_near = Declare("collision", "scratch", record="near")
_neighbours = Declare("collision", "room", record="neighbours")
_neighbours_scratch = Declare("collision", "scratch", record="neighbours")
_crowd = Declare("collision", "scratch", record="crowd")
_near_table = Declare("collision", "table", record="near")
_near_room = Declare("collision", "room", record="near")
_scratch = Declare("collision", "scratch")
_report = Declare("collision", "report")
_slot = Declare("collision", "slot")
_recall = Declare("collision", "room", record="recall")
_address = Declare("", "address")
_recall_scratch = Declare("collision", "scratch", record="recall")
_narrow = Declare("collision", "scratch", record="narrow")
_shape = Declare("collision", "scratch", record="shapes")
_box = Declare("collision", "scratch", record="box")
_sweep = Declare("collision", "scratch", record="sweep")
_manifold = Declare("collision", "scratch", record="manifold")
_convex = Declare("collision", "scratch", record="convex")
_support = Declare("collision", "scratch", record="support")
_simplex = Declare("collision", "scratch", record="simplex")
_gjk = Declare("collision", "scratch", record="gjk")
_epa = Declare("collision", "scratch", record="epa")
_facet = Declare("collision", "scratch", record="facet")
_feature = Declare("collision", "scratch", record="feature")
_clip = Declare("collision", "scratch", record="clip")
_descent = Declare("collision", "scratch", record="descent")
_distance = Declare("geom_distance", "scratch", record="distance")
_ray = Declare("cast", "scratch", record="ray")
_line = Declare("cast", "scratch", record="line")

FIELDS = (
    size("nconmax", "capacity: contact slots of a tile, and contacts of one world"),
    size("ngroupbody", "number of bodies whose bounding boxes are tested: all or none"),
    size("nnode", "number of nodes of the bounding volume tree"),
    size("nnear", "capacity: near pairs of a tile, in a model with a bounding volume tree"),
    size("nlisted", "capacity: candidate pairs in the neighbour list of a single world"),
    size("keeps_list", "1: the tile has one world, the same in each pass, and keeps its neighbour list"),
    size("ngiven", "capacity: user-defined contacts of one world"),
    size("nmanifold", "capacity: contacts of one pair of geoms"),
    # user-defined contacts, separate for each world
    # integers are stored as reals, because they differ between worlds
    _given.real("given_replace", "1", "1", "1: only user-defined contacts, no detection in this world"),
    _given.real("given_present", "ngiven", "1", "1: the contact exists"),
    _given.real("given_body", "ngiven 2", "1", "the two bodies"),
    _given.real("given_geom", "ngiven 2", "1", "the two geoms, -1: the contact is defined by bodies"),
    _given.real("given_dim", "ngiven", "1", "dimension of the contact space"),
    _given.real("given_dist", "ngiven", "m", "distance, negative: penetration"),
    _given.rows(Vec3, "given_pos", "ngiven", "m", "midpoint of the contact"),
    _given.rows(Mat3, "given_frame", "ngiven", "1", "normal (from the first to the second) and two tangents, as rows"),
    _given.real("given_includemargin", "ngiven", "m", "a row exists where dist < includemargin"),
    _given.real("given_friction", "ngiven 5", "1, m", "sliding 1, sliding 2, spinning, rolling 1, rolling 2"),
    _given.rows(Solref, "given_solref", "ngiven", "s, 1", "reference of the normal row"),
    _given.rows(Solref, "given_solreffriction", "ngiven", "s, 1", "elliptic: reference of the friction rows, or zeros"),
    _given.rows(Solimp, "given_solimp", "ngiven", "1", "impedance"),
    _given.real("given_adhesion", "ngiven", "N", "largest tensile force of the contact"),
    _given.real("given_frictionforce", "ngiven", "1", "lcp: 1: sliding friction is a force [N]"),
    _given.real("given_erp", "ngiven", "1", "lcp: ERP of the normal row, negative: opt_erp"),
    _given.real("given_cfm", "ngiven", "m/(s N)", "lcp: CFM of the normal row, negative: opt_cfm"),
    _given.real("given_restitution", "ngiven", "1", "lcp: coefficient of restitution"),
    _given.real("given_restitution_vel", "ngiven", "m/s", "lcp: approach speed above which restitution acts"),
    _given.real("given_slip", "ngiven 2", "m/(s N)", "lcp: CFM of the two rows of sliding friction"),
    _given.rows(Vec3, "given_motion", "ngiven", "m/s", "lcp: surface velocity along normal and tangents"),
    # near pairs
    _near.real("detects", "1", "1", "1: contacts are detected in this world"),
    _near.real("given_left", "1", "1", "1: this world's user-defined contact has no slot yet"),
    _near.real("geom_reach", "ngeom", "m", "bounding radius plus margin and gap of the geom"),
    _near.int("cand_near", "ncand", "1", "candidate pairs that are near in at least one world"),
    # not reset: a list is validated against the current poses of the geoms
    _neighbours.int("count", "1", "1", "1 + number of pairs in the neighbour list, 0: no list"),
    _neighbours.int("pair", "nlisted", "1", "candidate pairs that are near or can become near soon"),
    _neighbours.rows(Vec3, "pos", "ncollide", "m", "position of each colliding geom when the list was made"),
    _neighbours.rows(Vec3, "axis", "ncollide 2", "1", "two rows of its orientation at that time"),
    _neighbours.rows(Box, "box", "ncollide", "m", "its bounding box at that time"),
    _neighbours.real("reach", "ncollide", "m", "its near.geom_reach at that time"),
    _neighbours.real("margin", "ncollide", "m", "its margin plus gap at that time"),
    _neighbours.real("move", "ncollide", "m", "largest displacement along each axis that keeps the list valid"),
    _neighbours.real("turn", "ncollide", "1", "largest change of each direction cosine that keeps the list valid"),
    _neighbours_scratch.real("travel", "ngeom", "m", "estimated travel of the geom's points, for the list's margin"),
    _crowd.rows(Bounds, "box", "ncrowd", "m", "bounding box of a geom in the tree: lower, upper corner"),
    _near.rows(Bounds, "body_box", "ngroupbody", "m", "bounding box of a body's geoms: lower, upper corner"),
    _crowd.rows(Bounds, "leaf_box", "ncrowd", "m", "crowd.box of one world", shared=True),
    _crowd.rows(
        Bounds,
        "fixed_box",
        "ncrowd",
        "m",
        "bounding boxes of the geoms that cannot move, zeros for the others",
        shared=True,
    ),
    _crowd.int("fixed", "1", "1", "1: the tree holds the geoms that cannot move, with fixed_box"),
    _crowd.long("leaf_key", "ncrowd", "1", "sort key of a leaf: position on the space-filling curve, then its number"),
    _crowd.long("leaf_room", "ncrowd", "1", "buffer of the sort"),
    _crowd.rows(Bounds, "node_box", "nnode", "m", "bounding box of a node of the tree", shared=True),
    _crowd.int("digit_count", "1024", "1", "histogram of a digit of the keys"),
    _crowd.int("node_stack", "256", "1", "stack of pairs of nodes to visit, with their levels"),
    _near.int("count", "1", "1", "number of near pairs, in a model with a bounding volume tree"),
    _near_table.long("key", "nnear", "1", "sort keys of the near pairs"),
    _near_room.long("room", "nnear", "1", "buffer of the sort"),
    _crowd.int("leaf_awake", "ncrowd", "1", "1: the geom is awake in the current world"),
    # a slot is a contact point of at least one world of the tile; con_present = 0 in worlds without that contact
    _scratch.int("ncon_slot", "1", "1", "number of contact slots of the tile"),
    _scratch.int("con_overflow", "1", "1", "1: the slots do not fit, so the tile has to be split"),
    _report.real("ncon", "1", "1", "number of contacts of each world", dtype="int64"),
    _slot.int("con_cand", "nconmax", "1", "candidate pair; with the tree another number, -1: user-defined"),
    _slot.int("con_geom", "nconmax 2", "1", "the two geoms, -1: user-defined by bodies"),
    _slot.int("con_carrier", "nconmax 2", "1", "bodies of the two geoms"),
    _slot.int("con_point", "nconmax", "1", "index of the contact among those of its pair"),
    _slot.int("con_dim", "nconmax", "1", "dimension of the contact space"),
    _slot.int("con_pair", "nconmax", "1", "explicit pair with the parameters, -1: none"),
    _slot.real("con_present", "nconmax", "1", "1: the world has this contact"),
    _slot.real("con_dist", "nconmax", "m", "distance, negative: penetration"),
    _slot.rows(Vec3, "con_pos", "nconmax", "m", "midpoint of the contact"),
    _slot.rows(Mat3, "con_frame", "nconmax", "1", "normal (geom 1 to geom 2) and two tangents, as rows"),
    _slot.real("con_includemargin", "nconmax", "m", "a row exists where dist < includemargin"),
    _slot.real("con_speculative", "nconmax", "1", "speculative: 1: a contact within the step, with rows at any dist"),
    _slot.real("con_friction", "nconmax 5", "1, m", "sliding 1, sliding 2, spinning, rolling 1, rolling 2"),
    _slot.rows(Solref, "con_solref", "nconmax", "s, 1", "reference of the normal row"),
    _slot.rows(
        Solref,
        "con_solreffriction",
        "nconmax",
        "s, 1",
        "elliptic: reference of the friction rows; zeros: as the normal's",
    ),
    _slot.rows(Solimp, "con_solimp", "nconmax", "1", "impedance"),
    _slot.real("con_adhesion", "nconmax", "N", "largest tensile force of the contact"),
    # the cache of each world for its pairs of convex shapes
    size("nlane", "number of worlds of the tile"),
    size("nrecall", "number of pairs in the pair cache of a world, a power of two or 0"),
    size("nproof", "number of overlapping pairs with a cached proof of their depth"),
    size("nmemory", "numbers per world of the pair cache and its counters"),
    _recall.scalar("memory", "nlane nmemory", "1", "pair cache of each world, if no batch keeps it"),
    _address.long("recall_address", "nlane", "1", "address of the pair cache of each world; 0: none"),
    _recall_scratch.long("pair", "2", "1", "address of the current pair's entry, 0: none; address of the cache"),
    _recall_scratch.long("key", "1", "1", "key of the current pair in the cache"),
    # scratch memory of the branching narrow phase: one world and one pair of shapes, in float64
    _narrow.real("near", "1", "1", "1: the pair is near in this world"),
    _narrow.real("limit", "1", "m", "largest distance of a contact in this world"),
    _shape.int("type", "2", "1", "types of the two geoms"),
    _shape.int("data", "2", "1", "meshes or height fields of the two geoms"),
    _shape.rows(Vec3, "pos", "2", "m", "centres of the two geoms", shared=True),
    _shape.rows(Mat3, "mat", "2", "1", "orientations of the two geoms", shared=True),
    _shape.rows(Vec3, "size", "2", "m", "sizes of the two geoms", shared=True),
    _shape.scalar("limit", "1", "m", "largest distance of a contact"),
    _shape.scalar("slack", "1", "m", "overlap beyond the limit that rounding of poses makes; 0 for queries"),
    _shape.int("field", "2 2", "1", "signed distance fields of the two geoms: geom_field, geom_fieldadr"),
    _shape.scalar("tolerance", "1", "m", "length of a step that ends the minimization of fields, 0: as in MuJoCo"),
    _shape.rows(
        Box, "box", "2", "m", "bounding boxes of the two geoms in their frames, for signed distance fields", shared=True
    ),
    _box.scalar(
        "axis",
        "15 8",
        "1, m",
        "axes of one box in the other's frame; separations along the cross products of edges, and these directions",
    ),
    _box.scalar("corner", "3 8", "1", "signs of the coordinates of a box's corners"),
    _box.scalar(
        "edge",
        "3 4 8",
        "m^2, 1",
        "edges along each axis, by their lower corners: squared distance from a segment, coordinates, cut end",
    ),
    _box.rows(
        Vec3, "polygon", "2 12", "m", "face of one box clipped by the other's, before and after a cut", shared=True
    ),
    # contacts within the step, with the flag speculative
    _sweep.rows(Vec3, "steps", "2", "m", "displacements of two geoms in the step"),
    _sweep.rows(Vec3, "spins", "2", "rad", "their rotation vectors in the step"),
    _sweep.real("travels", "2", "m", "largest distances that their points move in the step"),
    _sweep.real("margins", "1", "m", "margin of the pair"),
    _sweep.real("found", "1", "1", "1: the pair has a contact within the step in this world"),
    _sweep.real("times", "1", "1", "time of this impact, as a fraction of the step"),
    _sweep.real("rates", "1", "m", "closing distance of the contact points per step at this impact"),
    _sweep.real("current", "1", "1", "1: the world whose contacts are computed"),
    _sweep.rows(Vec3, "step", "2", "m", "sweep.steps of one world", shared=True),
    _sweep.rows(Vec3, "spin", "2", "rad", "sweep.spins of one world", shared=True),
    _sweep.scalar("travel", "2", "m", "sweep.travels of one world"),
    _sweep.scalar("margin", "1", "m", "sweep.margins of one world"),
    _sweep.scalar("tolerance", "1", "m", "tolerance of the distance at impact"),
    _sweep.rows(Vec3, "pos", "2", "m", "centres of the two shapes at the start of the step", shared=True),
    _sweep.rows(Mat3, "mat", "2", "1", "orientations of the two shapes at the start of the step", shared=True),
    _sweep.int("state", "1", "1", "whether the advancement continues, ended at an impact, or without one"),
    _sweep.scalar("time", "1", "1", "time of impact, as a fraction of the step"),
    _sweep.scalar("rate", "1", "m", "closing distance of the contact points per step at impact"),
    _sweep.rows(Vec3, "normal", "", "1", "normal at impact, from the first shape to the second", shared=True),
    _sweep.rows(
        Vec3, "impact", "2 4", "m", "contact points on the first and on the second shape at impact", shared=True
    ),
    _sweep.rows(Vec3, "start", "2 4", "m", "these points at the start of the step", shared=True),
    _sweep.rows(Vec3, "line", "2", "m", "segment of the line-of-sight test", shared=True),
    _sweep.int("hidden", "1", "1", "1: a geom meets this segment"),
    _manifold.int("count", "1", "1", "number of contacts found"),
    _manifold.scalar("dist", "nmanifold", "m", "distances of the contacts"),
    _manifold.rows(Vec3, "pos", "nmanifold", "m", "positions of the contacts", shared=True),
    _manifold.rows(
        Vec3, "normal", "nmanifold", "1", "normals of the contacts, from the first shape to the second", shared=True
    ),
    # scratch memory of general convex pairs: one pair of shapes at a time, in the frame of the first
    _shape.rows(Vec3, "prism", "6", "m", "vertices of a prism (shape type 8) in its frame", shared=True),
    _convex.rows(Vec3, "pos", "", "m", "centre of the second shape in the frame of the first", shared=True),
    _convex.rows(Mat3, "mat", "", "1", "orientation of the second shape in the frame of the first", shared=True),
    _support.rows(Vec3, "dir", "", "1", "direction of a support point", shared=True),
    _support.rows(Vec3, "first", "", "m", "support point of the first core in this direction", shared=True),
    _support.rows(Vec3, "point", "", "m", "support point of the difference of the cores", shared=True),
    _support.int("vertex", "2", "1", "vertex numbers of the two support points, -1: none"),
    _simplex.int("count", "1", "1", "number of points of the simplex"),
    _simplex.rows(Vec3, "point", "4", "m", "support points of the difference of the cores", shared=True),
    _simplex.rows(Vec3, "first", "4", "m", "support points of the first core", shared=True),
    _simplex.int("vertex", "4 2", "1", "vertex numbers of the support points"),
    _simplex.scalar("weight", "4", "1", "barycentric coordinates of the point nearest to the origin"),
    _gjk.int("state", "1", "1", "0 apart, 1 farther than gjk.reach, 2 overlapping or touching"),
    _gjk.scalar("reach", "1", "m", "distance beyond which the search stops"),
    _gjk.scalar("gap", "1", "1", "tolerance of the search, relative to the squared distance"),
    _epa.scalar("gap", "1", "1", "tolerance of the search, relative to the size"),
    _gjk.rows(Vec3, "nearest", "", "m", "point of the difference of the cores nearest to the origin", shared=True),
    _epa.rows(Vec3, "point", "256", "m", "vertices of the polytope in the difference of the cores", shared=True),
    _epa.rows(Vec3, "first", "256", "m", "support points of the first core", shared=True),
    _epa.int("vertex", "256 2", "1", "vertex numbers of the support points"),
    _epa.int("link", "256 2", "1", "new face that starts and that ends at a vertex of the horizon"),
    _epa.int("corner", "512 3", "1", "corners of a face, counterclockwise from outside"),
    _epa.int("neighbour", "512 3", "1", "edge beyond edge i, which starts at corner i: 4 face + edge"),
    _epa.scalar("normal", "3 512", "1", "outward unit normal of a face"),
    _epa.scalar("offset", "512", "m", "plane of a face: normal . x = offset"),
    _epa.scalar("key", "512", "m", "priority of a face in the search: its offset, larger if the face is finished"),
    _epa.scalar("least", "2 8", "1", "smallest key among every eighth face, and among eight of these"),
    _epa.int("mark", "512", "1", "1: the face is visible from the new vertex"),
    _epa.int("seen", "512", "1", "faces visible from the new vertex"),
    _epa.int("edge", "512 3", "1", "edges of the horizon: start, end or new face, edge beyond as in `neighbour`"),
    _epa.int("spare", "512", "1", "removed faces, to be reused"),
    _epa.int("count", "2", "1", "number of vertices of the polytope, and of faces created"),
    _epa.int("side", "1024", "1", "edge from vertex i to j of a cached polytope, at 32 i + j, as in `neighbour`"),
    _epa.scalar("place", "8 9 8", "m", "corners of the faces of a cached polytope, eight faces at a time"),
    _epa.int("closed", "1", "1", "whether the bounds of the depth agree (1) or the search gave up (0)"),
    _epa.scalar("size", "1", "m", "approximate extent of the shapes, for tolerances"),
    _facet.int("apart", "1", "1", "1: the cores are separated, 0: they overlap"),
    _facet.int("kind", "1", "1", "kind of the facet, as numbered in collision.facet; 0: none"),
    _facet.int("vertex", "2 3", "1", "vertices of the first and of the second core that span the facet"),
    _epa.int("best", "3", "1", "corners of the face with the penetration depth"),
    _convex.int("way", "1", "1", "method that refined the normal, 0: not refined"),
    _convex.scalar("dist", "1", "m", "signed distance of the two shapes"),
    _convex.rows(Vec3, "normal", "", "1", "direction from the first shape to the second, in world axes", shared=True),
    _convex.rows(Vec3, "witness", "2", "m", "nearest points of the two shapes, in world axes", shared=True),
    _feature.rows(Mat3, "axes", "", "1", "two tangents and the normal as rows", shared=True),
    _feature.rows(Vec3, "origin", "", "m", "origin of the contact coordinates", shared=True),
    _feature.scalar(
        "point",
        "2 3 64",
        "m",
        "corners of a shape's contact feature (edge, face or disc) along two tangents and the normal",
    ),
    _feature.scalar(
        "edge", "2 3 64", "m, m^2", "edge from each corner along two tangents; offset of its line times its length"
    ),
    _feature.int("count", "2", "1", "number of corners of the feature; 1 a point, -1 a disc"),
    _feature.rows(Vec3, "normal", "2", "1", "normal of the feature, if it is a face", shared=True),
    _clip.scalar(
        "place",
        "4 192",
        "m",
        "ends of clipped edges, and corners: along two tangents and the normal, and the distance there",
    ),
    _clip.int("count", "1", "1", "number of points covered by both features"),
    _clip.scalar("point", "3 160", "m", "these points along two tangents and the normal"),
    _clip.scalar("dist", "160", "m", "distances at these points"),
    # minimization of signed distance fields from eight starting points
    _descent.scalar("trial", "3 8", "m", "points in the frame of the second shape"),
    _descent.scalar("jet", "2 4 8", "m, 1", "value and gradient of the first and of the second shape's field there"),
    _descent.scalar("dist", "8", "m", "distances of the contacts found"),
    _descent.scalar("normal", "3 8", "1", "their normals"),
    _descent.scalar("shift", "8", "m", "their positions along the normals, from the points found"),
    _descent.scalar("triangle", "9 8", "m", "corners of eight triangles of a mesh"),
    _descent.scalar("start", "3 8", "m", "starting points that wait for others"),
    _descent.scalar("corner", "9 8", "m", "corners of their triangles"),
    _descent.int("node", "128", "1", "stack of tree nodes and groups of triangles of the mesh still to visit"),
    _descent.int("count", "1", "1", "points found, known ones included"),
    _descent.rows(Vec3, "known", "nmanifold", "m", "points that became contacts", shared=True),
    # the requested distance of two geoms
    _distance.real("geom", "2", "1", "the two geoms"),
    _distance.scalar("limit", "1", "m", "largest distance that is computed"),
    _distance.real("dist", "1", "m", "signed distance of the two geoms"),
    _distance.real("fromto", "6", "m", "nearest points of the first and of the second geom"),
    # rays, one of each world at a time
    _ray.rows(Vec3, "point", "", "m", "origin of the ray"),
    _ray.rows(Vec3, "direction", "", "1", "unit direction of the ray"),
    _ray.real("exclude", "1", "1", "body that the ray ignores, -1: none"),
    _ray.real("distance", "1", "m", "distance of the first hit, -1: none"),
    _ray.real("geom", "1", "1", "geom of the first hit, -1: none"),
    _ray.rows(Vec3, "normal", "", "1", "outward normal of the surface at the hit"),
    _ray.real("triangle", "1", "1", "entry of trianglegroup_face of the triangle that is hit, if the geom is a mesh"),
    _ray.int("field", "2", "1", "SDF geom whose field is marched through; its geom_fieldadr"),
    _ray.real("near", "1", "1", "1: the ray comes near this geom"),
    _ray.real("met", "1", "1", "1: the ray hits this geom first"),
    _ray.rows(Vec3, "local_point", "", "m", "origin of the ray in the geom's frame"),
    _ray.rows(Vec3, "local_direction", "", "1", "unit direction of the ray in the geom's frame"),
    _ray.real("local_distance", "1", "m", "distance of the first hit with the field"),
    _ray.rows(Vec3, "local_normal", "", "1", "outward normal there, in the geom's frame"),
    _ray.scalar("cutoff", "1", "m", "largest distance of a hit"),
    _ray.int("culls", "1", "1", "1: surfaces that a ray leaves are not hit"),
    _ray.int("ngeom", "1", "1", "number of geoms that rays can hit"),
    _ray.int("seen", "ngeom", "1", "geoms that rays can hit"),
    _line.rows(Vec3, "point", "", "m", "origin of the ray in the frame of one shape", shared=True),
    _line.rows(Vec3, "direction", "", "1", "unit direction of the ray in this frame", shared=True),
    _line.scalar("distance", "1", "m", "distance of the nearest hit so far"),
    _line.int("hit", "1", "1", "1: the shape has a nearer hit"),
    _line.int("triangle", "1", "1", "entry of trianglegroup_face of the nearest triangle of the mesh"),
    _line.rows(Vec3, "normal", "", "1", "outward normal at the hit, in the frame of the shape", shared=True),
    _line.int("node", "160", "1", "stack of tree nodes and groups of triangles of the mesh still to visit"),
    _line.scalar("enter", "160", "m", "distances at which the ray enters the boxes of these nodes"),
    _line.scalar("near", "8", "m", "distances of eight boxes or triangles"),
)
