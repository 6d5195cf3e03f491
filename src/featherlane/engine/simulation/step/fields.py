"""Declares fields of a whole step: participating worlds, sleeping trees, status codes."""

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.rows import row_type

Pose = row_type("Pose", "x y z qw qx qy qz")

_fall_asleep_memory = Declare("fall_asleep", "memory", condition="sleep")
_store_mocap_poses_memory = Declare("store_mocap_poses", "memory", condition="sleep")
_mark_awake_output = Declare("mark_awake", "output")
_wake_perturbed_scratch = Declare("wake_perturbed", "scratch")
_mark_settled_scratch = Declare("mark_settled", "scratch")
_mark_awake_scratch = Declare("mark_awake", "scratch")
_find_contacts_scratch = Declare("find_contacts", "scratch")
_fall_asleep_scratch = Declare("fall_asleep", "scratch")
_step_scratch = Declare("step", "scratch")
_solve_in_parts_scratch = Declare("solve_in_parts", "scratch")
_part = Declare("solve_in_parts", "scratch", record="part")
_report = Declare("sign_contacts", "report")
_count = Declare("step", "count")
_cause = Declare("reset_bad", "cause", condition="request")
_detail = Declare("compare_forward_inverse", "detail")
_compare_scratch = Declare("compare_forward_inverse", "scratch")
_inverse_output = Declare("inverse", "output")

FIELDS = (
    size("nsignature", "words of the signature: 24 candidate pairs each, and one for iterations"),
    size("want_frames", "1: compute the frames of all geoms and sites, 0: only those of colliding geoms"),
    size("want_energy", "1: compute energies in each step"),
    size("want_all", "1: write every field, 0: only fields that a step reads"),
    size("user_control", "address of the control function of this call, 0: none"),
    size("control_record", "address of the record of its numbers, 0: none"),
    # with the flag `sleep`
    _fall_asleep_memory.real(
        "tree_asleep", "ntree", "1", "awake: counts up to -1 (ready to sleep); asleep: the next tree of its island"
    ),
    _fall_asleep_memory.real("sleep_qpos", "nq", "m, rad, quaternion", "qpos of sleeping trees"),
    _store_mocap_poses_memory.rows(Pose, "sleep_mocap", "nmocap", "m, 1", "poses of mocap bodies at the last check"),
    _mark_awake_output.real("tree_awake", "ntree", "1", "1: the tree is awake, 0: asleep"),
    _mark_awake_output.real("body_awake", "nbody", "1", "1: body of an awake tree, or mocap body; 0: asleep or static"),
    _wake_perturbed_scratch.real("sleep_perturbed", "ntree", "1", "1: the user changed the state of the sleeping tree"),
    # one value for all worlds of a tile: used to skip work that would not change a result
    _mark_settled_scratch.int(
        "tree_settled", "ntree", "1", "1: the tree is asleep in all worlds and its derived fields are current"
    ),
    _mark_awake_scratch.int("body_any_awake", "nbody", "1", "1: the body is awake in at least one world"),
    _mark_awake_scratch.int("nunsettled", "1", "1", "number of unsettled trees, plus other reasons to compute"),
    _find_contacts_scratch.int("con_fresh", "1", "1", "1: the contacts of the current positions are computed"),
    _fall_asleep_scratch.int("island_ready", "ntree", "1", "1: all trees of the island are ready to sleep"),
    _fall_asleep_scratch.int("island_first", "ntree", "1", "first tree of the island"),
    _fall_asleep_scratch.int("island_last", "ntree", "1", "last tree of the island found so far"),
    # a tile whose contact slots overflow is split into parts
    _step_scratch.real("active", "1", "1", "1: the world is computed, 0: it belongs to the other part of a split tile"),
    _solve_in_parts_scratch.real("lane_active", "1", "1", "`active` of the whole tile while its parts are solved"),
    # results collected from the parts of a split tile
    _part.real("qacc", "nv", "m/s^2, rad/s^2", "acceleration"),
    _part.real("qfrc_constraint", "nv", "N, N m", "constraint forces"),
    _part.real("ncon", "1", "1", "number of contacts"),
    _part.real("nefc", "1", "1", "number of rows"),
    _part.real("solver_niter", "1", "1", "number of iterations"),
    _part.real("solver_residual", "1", "1", "residual"),
    _part.real("solver_gap", "1", "1", "scaled duality gap"),
    _part.real("ordered", "1", "1", "Hessian factored in its own order"),
    _part.real("nisland", "1", "1", "number of islands"),
    _part.real("tree_island", "ntree", "1", "island of each tree"),
    # reported by a batch for each world
    _report.real(
        "signature",
        "nsignature",
        "1",
        "candidate pairs in contact and solver effort, as bits; similar worlds share tiles",
    ),
    _count.real("warning", "6", "1", "counts of the entries of `status`: contacts_full, ..., singular_inertia"),
    _count.real(
        "nreset", "1", "1", "number of resets of this world because of non-finite or out-of-range values", dtype="int64"
    ),
    _cause.real("bad_part", "1", "1", "bad part of the state at the last count of non_finite: 1 qpos, 2 qvel, 0 other"),
    _step_scratch.int("found_bad", "1", "1", "bits: 1 this thread has counted a world as non-finite, 2 as full"),
    _step_scratch.int("found_pair", "2", "1", "1 + the geoms of a pair with too many contacts, as counted; 0: none"),
    _compare_scratch.real("qfrc_forward", "nv", "N, N m", "qfrc_constraint of `forward`"),
    _detail.real("solver_fwdinv", "2", "N, N m", "norm of forward minus inverse: constraint force, applied force"),
    _inverse_output.real("qfrc_inverse", "nv", "N, N m", "external force that produces qacc"),
)
