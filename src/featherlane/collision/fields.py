"""Declares the fields of collision detection: user-defined contacts, near pairs, slots, narrow-phase scratch memory."""

from featherlane.lanes.layout import Declare, size

_given = Declare("", "given", asked="ngiven")
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
_manifold = Declare("collision", "scratch", record="manifold")
_convex = Declare("collision", "scratch", record="convex")
_support = Declare("collision", "scratch", record="support")
_simplex = Declare("collision", "scratch", record="simplex")
_gjk = Declare("collision", "scratch", record="gjk")
_epa = Declare("collision", "scratch", record="epa")
_facet = Declare("collision", "scratch", record="facet")
_feature = Declare("collision", "scratch", record="feature")
_clip = Declare("collision", "scratch", record="clip")
_distance = Declare("geom_distance", "scratch", record="distance")
_ray = Declare("cast", "scratch", record="ray")
_line = Declare("cast", "scratch", record="line")

FIELDS = (
    size("nconmax", "capacity: contact slots of a tile, and contacts of one world"),
    size("ngroupbody", "bodies whose boxes are tested: all or none"),
    size("nnode", "nodes of the tree over a crowd"),
    size("nnear", "capacity: near pairs of a tile, in a model with a crowd"),
    size("nlisted", "capacity: candidate pairs that a world by itself lists for some steps"),
    size("keeps_list", "1: the tile's one world is the same in each pass, and keeps that list"),
    size("ngiven", "capacity: contacts that the caller gives to one world"),
    size("nmanifold", "capacity: contact points of one pair of geoms"),
    # user-defined contacts, separate for each world
    # integers are stored as reals, because they differ between worlds
    _given.real("given_replace", "1", "1", "1: no contacts are detected in this world"),
    _given.real("given_present", "ngiven", "1", "1 where a contact is given, else 0"),
    _given.real("given_body", "ngiven 2", "1", "the two bodies that touch"),
    _given.real("given_geom", "ngiven 2", "1", "their geoms, -1: the contact names bodies alone"),
    _given.real("given_dim", "ngiven", "1", "dimension of the contact space"),
    _given.real("given_dist", "ngiven", "m", "distance, negative: penetration"),
    _given.real("given_pos", "ngiven 3", "m", "midpoint of the contact"),
    _given.real("given_frame", "ngiven 9", "1", "normal (from the first to the second) and two tangents, as rows"),
    _given.real("given_includemargin", "ngiven", "m", "a row exists where dist < includemargin"),
    _given.real("given_friction", "ngiven 5", "1, m", "sliding 1, sliding 2, spinning, rolling 1, rolling 2"),
    _given.real("given_solref", "ngiven 2", "s, 1", "reference of the normal row"),
    _given.real("given_solreffriction", "ngiven 2", "s, 1", "elliptic: reference of the friction rows, or zeros"),
    _given.real("given_solimp", "ngiven 5", "1", "impedance"),
    _given.real("given_adhesion", "ngiven", "N", "force with which the contact can pull"),
    _given.real("given_frictionforce", "ngiven", "1", "lcp: 1: sliding friction is a force [N]"),
    _given.real("given_erp", "ngiven", "1", "lcp: ERP of the normal row, negative: opt_erp"),
    _given.real("given_cfm", "ngiven", "m/(s N)", "lcp: CFM of the normal row, negative: opt_cfm"),
    _given.real("given_restitution", "ngiven", "1", "lcp: part of the approach speed with which bodies part"),
    _given.real("given_restitution_vel", "ngiven", "m/s", "lcp: approach speed above which they do"),
    _given.real("given_slip", "ngiven 2", "m/(s N)", "lcp: CFM of the two rows of sliding friction"),
    _given.real("given_motion", "ngiven 3", "m/s", "lcp: surface velocity along normal and tangents"),
    # near pairs
    _near.real("detects", "1", "1", "1: this world takes part in detection"),
    _near.real("given_left", "1", "1", "1: this world's given contact has no slot yet"),
    _near.real("geom_reach", "ngeom", "m", "bounding radius, margin and gap of the geom"),
    _near.int("cand_near", "ncand", "1", "candidate pairs that are near in some world"),
    # not reset: a list is validated against the current poses of the geoms
    _neighbours.int("count", "1", "1", "1 + pairs that the world lists, 0: it has no list"),
    _neighbours.int("pair", "nlisted", "1", "candidate pairs that are near or may be soon"),
    _neighbours.real("pos", "ncollide 3", "m", "of each colliding geom: where it was then"),
    _neighbours.real("axis", "ncollide 6", "1", "two rows of its orientation"),
    _neighbours.real("box", "ncollide 6", "m", "its bounding box"),
    _neighbours.real("reach", "ncollide", "m", "its near.geom_reach"),
    _neighbours.real("margin", "ncollide", "m", "its margin and gap"),
    _neighbours.real("move", "ncollide", "m", "how far it may go along each axis"),
    _neighbours.real("turn", "ncollide", "1", "how far each cosine may change"),
    _neighbours_scratch.real("travel", "ngeom", "m", "how far points may go, as a list is made"),
    _crowd.real("box", "ncrowd 6", "m", "box about a geom of the crowd: lower, upper corner"),
    _near.real("body_box", "ngroupbody 6", "m", "box about the geoms of a body: lower, upper corner"),
    _crowd.scalar("leaf_box", "ncrowd 6", "m", "crowd.box of one world"),
    _crowd.scalar("fixed_box", "ncrowd 6", "m", "boxes of the geoms that cannot move, zeros for the others"),
    _crowd.int("fixed", "1", "1", "1: the tree holds the geoms that cannot move, with fixed_box"),
    _crowd.long("leaf_key", "ncrowd", "1", "place on the curve, and number in the crowd"),
    _crowd.long("leaf_room", "ncrowd", "1", "room to sort them"),
    _crowd.scalar("node_box", "nnode 6", "m", "box about all below a node of the tree"),
    _crowd.int("digit_count", "1024", "1", "how many keys have a digit"),
    _crowd.int("node_stack", "256", "1", "pairs of nodes to visit, and how high they stand"),
    _near.int("count", "1", "1", "near pairs of a model with a crowd"),
    _near_table.long("key", "nnear", "1", "their sorting keys"),
    _near_room.long("room", "nnear", "1", "room to sort them"),
    _crowd.int("leaf_awake", "ncrowd", "1", "1: the geom of the crowd is awake in the world at hand"),
    # a slot is a contact point of at least one world of the tile; con_present = 0 in worlds without that contact
    _scratch.int("ncon_slot", "1", "1", "contact slots of the tile"),
    _scratch.int("con_overflow", "1", "1", "1: the slots did not fit, the tile has to be split"),
    _report.real("ncon", "1", "1", "contacts of each world", dtype="int64"),
    _slot.int("con_cand", "nconmax", "1", "candidate pair; in a crowd that of no one, -1: given"),
    _slot.int("con_geom", "nconmax 2", "1", "geoms of the slot, -1: given by its bodies alone"),
    _slot.int("con_carrier", "nconmax 2", "1", "bodies that carry the two geoms"),
    _slot.int("con_point", "nconmax", "1", "which of its pair's points the slot is"),
    _slot.int("con_dim", "nconmax", "1", "dimension of the contact space"),
    _slot.int("con_pair", "nconmax", "1", "explicit pair that set the parameters, -1: none"),
    _slot.real("con_present", "nconmax", "1", "1 where the world has this contact, else 0"),
    _slot.real("con_dist", "nconmax", "m", "distance, negative: penetration"),
    _slot.real("con_pos", "nconmax 3", "m", "midpoint of the contact"),
    _slot.real("con_frame", "nconmax 9", "1", "normal (geom 1 to geom 2) and two tangents, as rows"),
    _slot.real("con_includemargin", "nconmax", "m", "a row exists where dist < includemargin"),
    _slot.real("con_friction", "nconmax 5", "1, m", "sliding 1, sliding 2, spinning, rolling 1, rolling 2"),
    _slot.real("con_solref", "nconmax 2", "s, 1", "reference of the normal row"),
    _slot.real(
        "con_solreffriction", "nconmax 2", "s, 1", "elliptic: reference of the friction rows; zeros: as the normal's"
    ),
    _slot.real("con_solimp", "nconmax 5", "1", "impedance"),
    _slot.real("con_adhesion", "nconmax", "N", "force with which the contact can pull"),
    # the cache of each world for its pairs of convex shapes
    size("nlane", "worlds of the tile"),
    size("nrecall", "pairs that a world remembers, a power of two or 0"),
    size("nproof", "pairs that overlap of which it keeps a proof of how deep"),
    size("nmemory", "numbers in which it does, and counts how it went"),
    _recall.scalar("memory", "nlane nmemory", "1", "what each world remembers of its pairs, where no batch keeps it"),
    _address.long("recall_address", "nlane", "1", "address of what each world remembers of its pairs; 0: nothing"),
    _recall_scratch.long("pair", "2", "1", "address of the pair at hand in that memory, 0: none; of the memory"),
    _recall_scratch.long("key", "1", "1", "by which the pair at hand is known there"),
    # scratch memory of the branching narrow phase: one world and one pair of shapes, in float64
    _narrow.real("near", "1", "1", "1 where the pair is near in this world"),
    _narrow.real("limit", "1", "m", "distance up to which a point counts in this world"),
    _shape.int("type", "2", "1", "types of the two geoms"),
    _shape.int("data", "2", "1", "their meshes or height fields"),
    _shape.scalar("pos", "2 3", "m", "their centres"),
    _shape.scalar("mat", "2 9", "1", "their orientations"),
    _shape.scalar("size", "2 3", "m", "their sizes"),
    _shape.scalar("limit", "1", "m", "distance up to which a point counts"),
    _box.scalar(
        "axis",
        "15 8",
        "1, m",
        "axes of a box in another's frame; for each edge of that the separations along axes with these, and the axes",
    ),
    _box.scalar("corner", "3 8", "1", "signs of the coordinates of a box's corners"),
    _box.scalar(
        "edge",
        "3 4 8",
        "m^2, 1",
        "of edges along each axis, at their lower corners: squared distance from a segment, coordinates, cut end",
    ),
    _box.scalar("polygon", "2 12 3", "m", "a box's face over another's, before and after a cut"),
    _manifold.int("count", "1", "1", "points found"),
    _manifold.scalar("dist", "nmanifold", "m", "their distances"),
    _manifold.scalar("pos", "nmanifold 3", "m", "their positions"),
    _manifold.scalar("normal", "nmanifold 3", "1", "their normals, from the first to the second"),
    # scratch memory of general convex pairs: one pair of shapes at a time, in the frame of the first
    _shape.scalar("prism", "6 3", "m", "vertices of a prism, a shape of type 8, in its frame"),
    _convex.scalar("pos", "3", "m", "the second shape's centre in the frame of the first"),
    _convex.scalar("mat", "9", "1", "its orientation there"),
    _support.scalar("dir", "3", "1", "where a support point is asked for"),
    _support.scalar("first", "3", "m", "point of the first core that is farthest there"),
    _support.scalar("point", "3", "m", "that less the second core's, farthest the other way"),
    _support.int("vertex", "2", "1", "their numbers within their shapes, -1: none"),
    _simplex.int("count", "1", "1", "points of the simplex"),
    _simplex.scalar("point", "4 3", "m", "support points of the difference of the cores"),
    _simplex.scalar("first", "4 3", "m", "their points of the first core"),
    _simplex.int("vertex", "4 2", "1", "their vertices"),
    _simplex.scalar("weight", "4", "1", "their parts in the point nearest to the origin"),
    _gjk.int("state", "1", "1", "0 apart, 1 farther than asked for, 2 overlap or touch"),
    _convex.scalar("flush", "1", "m", "by how much the shapes may overlap without touching"),
    _gjk.scalar("reach", "1", "m", "distance beyond which nothing more is asked"),
    _gjk.scalar("gap", "1", "1", "gap at which the search ends, as a part of squared distance"),
    _epa.scalar("gap", "1", "1", "gap at which the search ends, as a part of the size"),
    _gjk.scalar("nearest", "3", "m", "point of the difference nearest to the origin"),
    _epa.scalar("point", "256 3", "m", "vertices of the polytope in the difference of the cores"),
    _epa.scalar("first", "256 3", "m", "their points of the first core"),
    _epa.int("vertex", "256 2", "1", "their vertices"),
    _epa.int("link", "256 2", "1", "new face that begins, that ends at a vertex of the horizon"),
    _epa.int("corner", "512 3", "1", "corners of a face, counterclockwise from outside"),
    _epa.int("neighbour", "512 3", "1", "faces beyond its edges; edge i leads from corner i"),
    _epa.scalar("normal", "512 3", "1", "its unit normal, outwards"),
    _epa.scalar("offset", "512", "m", "its plane: normal . x = offset"),
    _epa.scalar("key", "512", "m", "offset of a face still to be looked at, else more"),
    _epa.scalar("least", "2 8", "1", "least key of every eighth face, and how many eights before it"),
    _epa.int("mark", "512", "1", "1: the face is seen from the new vertex"),
    _epa.int("seen", "512", "1", "the faces that are seen"),
    _epa.int("edge", "512 3", "1", "edges of the horizon: from, to, face beyond"),
    _epa.int("spare", "512", "1", "faces that were taken away"),
    _epa.int("count", "2", "1", "vertices of the polytope, and faces ever made"),
    _facet.int("apart", "1", "1", "1: the cores are apart, 0: they overlap"),
    _facet.int("kind", "1", "1", "which kind of facet, as collision.facet numbers them; 0: none"),
    _facet.int("vertex", "2 3", "1", "vertices of the first and of the second core that span it"),
    _epa.int("best", "3", "1", "corners of the face that gave the depth"),
    _convex.int("way", "1", "1", "how a normal was polished, 0: not"),
    _convex.scalar("dist", "1", "m", "signed distance of the two shapes"),
    _convex.scalar("normal", "3", "1", "direction from the first to the second, in world axes"),
    _convex.scalar("witness", "2 3", "m", "nearest points of the two, in world axes"),
    _feature.scalar("axes", "4 3", "1, m", "two tangents and the normal as rows; where they begin"),
    _feature.scalar(
        "point",
        "2 3 64",
        "m",
        "corners of the edge, face or disc with which a shape meets: along two tangents and the normal",
    ),
    _feature.scalar(
        "edge",
        "2 3 64",
        "m, m^2",
        "edge from each corner on, along two tangents; how far beyond it is on it, times its length",
    ),
    _feature.int("count", "2", "1", "its corners; 1 a point, -1 a disc"),
    _feature.scalar("normal", "2 3", "1", "its normal, if it is a face"),
    _clip.scalar(
        "place",
        "4 192",
        "m",
        "ends of cut edges, and corners: along two tangents and the normal, and the distance there",
    ),
    _clip.int("count", "1", "1", "places that both features cover"),
    _clip.scalar("point", "3 160", "m", "the places: along two tangents and the normal"),
    _clip.scalar("dist", "160", "m", "distances there"),
    # the requested distance of two geoms
    _distance.real("geom", "2", "1", "the two geoms"),
    _distance.scalar("limit", "1", "m", "distance from which on they are not looked at"),
    _distance.real("dist", "1", "m", "their signed distance"),
    _distance.real("fromto", "6", "m", "nearest point of the first, then of the second"),
    # rays, one of each world at a time
    _ray.real("point", "3", "m", "where the ray starts"),
    _ray.real("direction", "3", "1", "unit vector of where it goes"),
    _ray.real("exclude", "1", "1", "body that it passes through, -1: none"),
    _ray.real("distance", "1", "m", "distance of the first surface, -1: none"),
    _ray.real("geom", "1", "1", "geom that it meets, -1: none"),
    _ray.real("normal", "3", "1", "outward normal of the surface"),
    _ray.scalar("cutoff", "1", "m", "surfaces farther than this are not seen"),
    _ray.int("ngeom", "1", "1", "geoms that rays can meet"),
    _ray.int("seen", "ngeom", "1", "these geoms"),
    _line.scalar("point", "3", "m", "start of a ray in the frame of one shape"),
    _line.scalar("direction", "3", "1", "its unit direction"),
    _line.scalar("distance", "1", "m", "nearest surface so far; what lies beyond does not count"),
    _line.int("hit", "1", "1", "1: the shape has a nearer one"),
    _line.scalar("normal", "3", "1", "its outward normal, in the frame of the shape"),
    _line.int("node", "64", "1", "nodes of a mesh's tree still to visit"),
    _line.scalar("enter", "64", "m", "where the ray enters their boxes"),
)
