"""Checks edits of simple bodies: those that a diagonal M excludes.

The compiler stores only the diagonal of M for a *simple* body: a leaf on the world whose inertial frame is its frame,
and whose joints have anchors at its origin and axes along its frame.  An edit that makes other entries of M nonzero
would lose them, but not the forces that depend on them.  M cannot grow after loading, so the edit is refused.
MuJoCo's mj_setConst refuses a moved inertial frame; after other edits its M lacks the entries.  The same holds for the
armature of a tendon, which couples DoFs of one body; with a wrapping geom the compiler refuses armature.

Each function returns a mask of invalid rows and the text of what is allowed, for `limits.ROWS`.
Source: MuJoCo's documentation, XML reference, body/simple and tendon/spatial/armature.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.enums import TRN_TENDON, WRAP_CYLINDER, WRAP_SPHERE
from featherlane.engine.model.joint import is_angle, is_ball, is_scalar
from featherlane.engine.model.mujoco_arrays import COINCIDENT
from featherlane.engine.model.protocol import ModelFields

WHY = (
    'because M of the simple body is stored as a diagonal; give its <body> the attribute simple="false", before MuJoCo '
    "3.11 an <inertial> whose pos is not zero"
)
Checked = tuple[np.ndarray, str]


def _is_simple(model: ModelFields) -> np.ndarray:
    """Returns the moving bodies whose part of M is a diagonal, (nbody,) bool."""
    return (model.body_simple > 0) & (model.body_dofnum > 0)


def _joints(model: ModelFields) -> np.ndarray:
    """Returns the joints of simple bodies with several DoFs, (njnt,) bool: only their M has further entries."""
    return (_is_simple(model) & (model.body_dofnum > 1))[model.jnt_bodyid]


def centres(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks centres of mass."""
    moved = (np.abs(rows) > COINCIDENT).any(-1)
    return _is_simple(model) & moved, f"zeros, {WHY}"


def principal_axes(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks the rotations of principal axes."""
    turned = (np.abs(rows[..., 1:]) > COINCIDENT).any(-1)
    return _is_simple(model) & turned, f"(1, 0, 0, 0), {WHY}"


def anchors(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks the anchors of balls and hinges."""
    turns = is_ball(model.jnt_type) | is_angle(model.jnt_type)
    return _joints(model) & turns & (np.abs(rows) > COINCIDENT).any(-1), f"zeros, {WHY}"


def axes(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks the axes of slides and hinges."""
    oblique = (np.abs(rows) > COINCIDENT).sum(-1) > 1
    return _joints(model) & is_scalar(model.jnt_type) & oblique, f"axes of the body's frame, {WHY}"


def _refusing(model: ModelFields) -> np.ndarray:
    """Returns the tendons without armature that cannot have it, (ntendon,) bool."""
    refusing = np.zeros(model.ntendon, bool)
    for i in range(model.ntendon):
        first, path = model.ten_J_rowadr[i], slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
        moved = model.dof_bodyid[model.ten_J_colind[first : first + model.ten_J_rownnz[i]]]
        simple = moved[_is_simple(model)[moved]]
        around = np.isin(model.wrap_type[path], (WRAP_SPHERE, WRAP_CYLINDER)).any()
        refusing[i] = around or len(simple) > len(np.unique(simple))
    return refusing


NO_ARMATURE = "zeros, because the tendon wraps around a geom or acts on several DoFs of a simple body; for the latter: "


def tendon_armatures(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks the armature of tendons."""
    return (rows != 0.0) & _refusing(model), NO_ARMATURE + WHY


def actuator_armatures(model: ModelFields, rows: np.ndarray) -> Checked:
    """Checks the armature of actuators on tendons."""
    pulls = model.actuator_trntype == TRN_TENDON
    tendon = np.where(pulls, model.actuator_trnid[:, 0], 0)
    refusing = pulls & _refusing(model)[tendon] if model.ntendon else pulls
    return (rows != 0.0) & refusing, NO_ARMATURE + WHY


ROWS = {
    "body_ipos": centres,
    "body_iquat": principal_axes,
    "jnt_pos": anchors,
    "jnt_axis": axes,
    "tendon_armature": tendon_armatures,
    "actuator_armature": actuator_armatures,
}
