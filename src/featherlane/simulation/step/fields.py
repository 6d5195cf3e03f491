"""Fields of a step as a whole: which worlds take part, what sleeps, what went wrong."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("npart", "size", doc="values kept of each world while a tile is solved in parts, 2 nv + ntree + 6"),
    Field("nsignature", "size", doc="words of 24 bits that say which candidate pairs touch"),
    Field("want_frames", "size", doc="1: compute the frames of all geoms and sites, 0: of colliding geoms only"),
    Field("want_energy", "size", doc="1: compute energies in each step"),
    Field("want_all", "size", doc="1: write every field, 0: only what a step reads"),
    Field("user_control", "size", doc="address of the control function of this call, 0: none"),
    # with the flag `sleep`
    Field(
        "tree_asleep",
        "real",
        ("ntree",),
        "1",
        "below 0: awake, counts up to -1, ready to sleep; else the next tree of the sleeping island",
        "fall_asleep",
        "memory",
        asked="sleep",
    ),
    Field(
        "sleep_qpos",
        "real",
        ("nq",),
        "m, rad, quaternion",
        "qpos of the trees that sleep",
        "fall_asleep",
        "memory",
        asked="sleep",
    ),
    Field(
        "sleep_mocap",
        "real",
        ("nmocap", 7),
        "m, 1",
        "poses of mocap bodies as they were last looked at",
        "note_mocap",
        "memory",
        asked="sleep",
    ),
    Field("tree_awake", "real", ("ntree",), "1", "1: the tree is awake, 0: asleep", "mark_awake", "output"),
    Field(
        "body_awake",
        "real",
        ("nbody",),
        "1",
        "1: of an awake tree or a mocap body; 0: asleep or static",
        "mark_awake",
        "output",
    ),
    Field(
        "sleep_perturbed",
        "real",
        ("ntree",),
        "1",
        "1: the user has changed the sleeping tree",
        "wake_perturbed",
        "scratch",
    ),
    # of all worlds of a tile together: they serve to skip what would change nothing
    Field(
        "tree_settled", "int", ("ntree",), "1", "1: asleep in all worlds, its derived fields stand", "settle", "scratch"
    ),
    Field("body_stirs", "int", ("nbody",), "1", "1: the body is awake in some world", "mark_awake", "scratch"),
    Field(
        "nstir",
        "int",
        (1,),
        "1",
        "trees that are not settled, and reasons to compute all the same",
        "mark_awake",
        "scratch",
    ),
    Field(
        "con_fresh", "int", (1,), "1", "1: the contacts of the present positions are found", "find_contacts", "scratch"
    ),
    Field(
        "island_ready",
        "int",
        ("ntree",),
        "1",
        "1: all trees of the island are ready to sleep",
        "fall_asleep",
        "scratch",
    ),
    Field(
        "island_first", "int", ("ntree",), "1", "first tree of an island that falls asleep", "fall_asleep", "scratch"
    ),
    Field("island_last", "int", ("ntree",), "1", "the last one so far", "fall_asleep", "scratch"),
    # a tile whose slots do not fit is split in parts
    Field(
        "active",
        "real",
        (1,),
        "1",
        "1: this world takes part, 0: it waits for the other part of a split tile",
        "step",
        "scratch",
    ),
    Field("lane_active", "real", (1,), "1", "active, while parts of the tile are", "solve_in_parts", "scratch"),
    Field(
        "part", "real", ("npart",), "1", "results gathered from the parts of a split tile", "solve_in_parts", "scratch"
    ),
    # what a batch has of each world
    Field(
        "signature",
        "real",
        ("nsignature",),
        "1",
        "which candidate pairs touch, in words of 24 bits: worlds that touch alike share tiles",
        "sign_contacts",
        "report",
    ),
    Field(
        "warning",
        "real",
        (5,),
        "1",
        "counts: contacts full, rows full, bad number, not converged, bad control",
        "step",
        "count",
    ),
    Field("nbad", "real", (1,), "1", "times this world was reset for bad numbers", "step", "count", dtype="int64"),
    Field(
        "solver_fwdinv",
        "real",
        (2,),
        "N, N m",
        "forward less inverse: constraint force, applied force",
        "compare_forward_inverse",
        "detail",
    ),
    Field("qfrc_inverse", "real", ("nv",), "N, N m", "external force that gives qacc", "inverse", "output"),
)
