"""Declares the record of inverse kinematics: targets, the state of the iteration, and its scratch memory."""

from __future__ import annotations

from featherlane.engine.lanes import Layout, kernel
from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.lanes.rows import attribute, row_type
from featherlane.engine.spatial.types import Quat, Vec2, Vec3

_given, _state, _result, _scratch = Declare(), Declare(), Declare(), Declare("", "scratch")

Goal = row_type("Goal", "x y z qw qx qy qz lx ly lz ax ay az")  # position, quaternion, point to look at, axis
GOAL = len(Goal._fields)


@attribute(Goal, "position")
@kernel
def goal_position(g):
    """Returns the position of a goal."""
    return Vec3(g[0:3])


@attribute(Goal, "quat")
@kernel
def goal_quat(g):
    """Returns the orientation of a goal, of length 1."""
    return Quat(g[3:7]).unit


@attribute(Goal, "point")
@kernel
def goal_point(g):
    """Returns the point that a goal looks at."""
    return Vec3(g[7:10])


@attribute(Goal, "axis")
@kernel
def goal_axis(g):
    """Returns the axis of a goal that looks at the point, in the object's frame."""
    return Vec3(g[10:13])


IK = Layout(
    "InverseKinematics",
    (
        size("npos", "coordinates"),
        size("nvel", "dofs of the model"),
        size("ndof", "dofs that move"),
        size("ntriangle", "entries of the lower triangle of a matrix of these dofs"),
        size("njoint", "joints with these dofs"),
        size("nframe", "bodies whose frames the targets depend on"),
        size("ntarget", "targets"),
        size("nequality", "equality constraints that depend on a dof that moves"),
        size("nrow", "targets and these equality constraints"),
        size("has_tendons", "1: some of these constraints are of tendons"),
        size("most", "largest number of iterations of a call"),
        size("limited", "1: joints stay within their limits"),
        _given.int("joint", "njoint", "1", "joints that move"),
        _given.int("frame", "nframe", "1", "bodies whose frames the targets depend on, ascending"),
        _given.int("dof", "ndof", "1", "dofs that move"),
        _given.int("dof_joint", "ndof", "1", "joint of a dof"),
        _given.int("kind", "ntarget", "1", "kind of a target's object, as mjtObj"),
        _given.int("object", "ntarget", "1", "index of the object"),
        _given.int("prescribed", "ntarget", "1", "bits: 1 position, 2 orientation, 4 point to look at"),
        _given.int("equality", "nequality", "1", "index of an equality constraint"),
        _given.int("moves", "nrow ndof", "1", "1: the dof changes the error; -1: it moves the second body"),
        _given.rows(Goal, "goal", "ntarget", "m, 1", "position, quaternion, point to look at, axis"),
        _given.rows(Vec2, "weight", "nrow", "1/m, 1/rad", "weights of position and rotation"),
        _given.real("posture", "npos", "m, rad, quaternion", "preferred position of the joints"),
        _given.real("stiffness", "1", "1", "weight of the distance to the posture; 0: none"),
        _given.real("tolerance", "2", "m, rad", "largest errors of a target that is reached, and of a constraint"),
        _state.real("damping", "1", "1", "damping of the next step; 0: not chosen yet"),
        _state.real("growth", "1", "1", "factor of the damping after a rejected step"),
        _state.real("niter", "1", "1", "iterations"),
        _state.real("status", "1", "1", "an IkStatus; -1: the iteration continues"),
        _result.rows(Vec2, "error", "nrow", "m, rad", "distance and angle to the target, or of the constraint"),
        _result.real("cost", "1", "1", "half the weighted sum of squares"),
        _scratch.real("q", "npos", "m, rad, quaternion", "last accepted position"),
        _scratch.real("step", "nvel", "m, rad", "change of position"),
        _scratch.rows(Vec3, "column", "ndof", "m, 1", "columns of three rows of the Jacobian"),
        _scratch.real("trial_cost", "1", "1", "cost of the position in d"),
        _scratch.rows(Vec2, "trial_error", "nrow", "m, rad", "errors of the position in d"),
        _scratch.real("trial_A", "ndof ndof", "1", "J^T W J of the position in d, lower triangle"),
        _scratch.real("trial_g", "ndof", "1", "J^T W e of the position in d"),
        _scratch.real("A", "ndof ndof", "1", "J^T W J of the accepted position, lower triangle"),
        _scratch.real("g", "ndof", "1", "J^T W e of the accepted position"),
        _scratch.real("free", "ndof", "1", "1: the dof is not held at a limit"),
        _scratch.real("L", "ntriangle", "1", "factor L D L^T of the damped system; D on the diagonal"),
        _scratch.real("x", "ndof", "m, rad", "step of the dofs"),
    ),
)
