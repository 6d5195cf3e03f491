"""Declares fields of a whole step: participating worlds, sleeping trees, status codes."""

from featherlane.lanes.layout import Declare, size

_fall_asleep_memory = Declare("fall_asleep", "memory", asked="sleep")
_note_mocap_memory = Declare("note_mocap", "memory", asked="sleep")
_mark_awake_output = Declare("mark_awake", "output")
_wake_perturbed_scratch = Declare("wake_perturbed", "scratch")
_mark_settled_scratch = Declare("mark_settled", "scratch")
_mark_awake_scratch = Declare("mark_awake", "scratch")
_find_contacts_scratch = Declare("find_contacts", "scratch")
_fall_asleep_scratch = Declare("fall_asleep", "scratch")
_step_scratch = Declare("step", "scratch")
_solve_in_parts_scratch = Declare("solve_in_parts", "scratch")
_report = Declare("sign_contacts", "report")
_count = Declare("step", "count")
_detail = Declare("compare_forward_inverse", "detail")
_inverse_output = Declare("inverse", "output")

FIELDS = (
    size("npart", "values kept of each world while a tile is solved in parts, 2 nv + ntree + 6"),
    size("nsignature", "words of 24 bits that say which candidate pairs touch"),
    size("want_frames", "1: compute the frames of all geoms and sites, 0: of colliding geoms only"),
    size("want_energy", "1: compute energies in each step"),
    size("want_all", "1: write every field, 0: only what a step reads"),
    size("user_control", "address of the control function of this call, 0: none"),
    # with the flag `sleep`
    _fall_asleep_memory.real(
        "tree_asleep",
        "ntree",
        "1",
        "below 0: awake, counts up to -1, ready to sleep; else the next tree of the sleeping island",
    ),
    _fall_asleep_memory.real("sleep_qpos", "nq", "m, rad, quaternion", "qpos of the trees that sleep"),
    _note_mocap_memory.real("sleep_mocap", "nmocap 7", "m, 1", "poses of mocap bodies as they were last looked at"),
    _mark_awake_output.real("tree_awake", "ntree", "1", "1: the tree is awake, 0: asleep"),
    _mark_awake_output.real("body_awake", "nbody", "1", "1: of an awake tree or a mocap body; 0: asleep or static"),
    _wake_perturbed_scratch.real("sleep_perturbed", "ntree", "1", "1: the user has changed the sleeping tree"),
    # one value for all worlds of a tile: used to skip work that would not change a result
    _mark_settled_scratch.int("tree_settled", "ntree", "1", "1: asleep in all worlds, its derived fields stand"),
    _mark_awake_scratch.int("body_stirs", "nbody", "1", "1: the body is awake in some world"),
    _mark_awake_scratch.int("nstir", "1", "1", "trees that are not settled, and reasons to compute all the same"),
    _find_contacts_scratch.int("con_fresh", "1", "1", "1: the contacts of the present positions are found"),
    _fall_asleep_scratch.int("island_ready", "ntree", "1", "1: all trees of the island are ready to sleep"),
    _fall_asleep_scratch.int("island_first", "ntree", "1", "first tree of an island that falls asleep"),
    _fall_asleep_scratch.int("island_last", "ntree", "1", "the last one so far"),
    # a tile whose contact slots overflow is split into parts
    _step_scratch.real("active", "1", "1", "1: this world takes part, 0: it waits for the other part of a split tile"),
    _solve_in_parts_scratch.real("lane_active", "1", "1", "active, while parts of the tile are"),
    _solve_in_parts_scratch.real("part", "npart", "1", "results gathered from the parts of a split tile"),
    # reported by a batch for each world
    _report.real(
        "signature",
        "nsignature",
        "1",
        "which candidate pairs touch, in words of 24 bits: worlds that touch alike share tiles",
    ),
    _count.real("warning", "5", "1", "counts: contacts full, rows full, non-finite, not converged, bad control"),
    _count.real("nreset", "1", "1", "times this world was reset for non-finite or out-of-range values", dtype="int64"),
    _detail.real("solver_fwdinv", "2", "N, N m", "forward less inverse: constraint force, applied force"),
    _inverse_output.real("qfrc_inverse", "nv", "N, N m", "external force that gives qacc"),
)
