"""Which dofs each force output of an actuator can act on: the pattern of the moments, fixed when a model is loaded.

joint       the dofs of the joint
tendon      those of the tendon's row in ten_J
site        those that move the site; with a reference those that move one of the two sites and not the other
slider      those that move the crank's site or the slider's, and not both
so3         of a ball one dof each, of a site as above
body        all: the body may touch anything

A dof above both of two sites moves them as one.
"""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.model.joint import DOFS

TRN = mujoco.mjtTrn
JOINT = {TRN.mjTRN_JOINT, TRN.mjTRN_JOINTINPARENT}
SITES = {TRN.mjTRN_SITE, TRN.mjTRN_SLIDERCRANK, TRN.mjTRN_SO3}


def moment_ints(mj) -> dict[str, np.ndarray]:
    """`moment_rownnz`, `moment_rowadr` (nout,) and `moment_colind` (nmoment,) of a compiled model."""
    rows: list[list[int]] = [[] for _ in range(mj.nout)]
    for i in range(mj.nactuator):
        first = int(mj.actuator_outadr[i])
        for o in range(first, first + int(mj.actuator_outnum[i])):
            rows[o] = row_dofs(mj, i, o - first)
    nnz = np.array([len(row) for row in rows], int)
    return {
        "moment_rownnz": nnz,
        "moment_rowadr": np.cumsum(nnz) - nnz,
        "moment_colind": np.array([dof for row in rows for dof in row], int),
    }


def adhesion_count(mj) -> int:
    """Actuators that act through the contacts of a body."""
    return int(np.count_nonzero(mj.actuator_trntype == int(TRN.mjTRN_BODY)))


def _on_ball(mj) -> np.ndarray:
    """Which actuators are of kind so3 and turn a ball joint."""
    return (mj.actuator_trntype == int(TRN.mjTRN_SO3)) & (mj.actuator_trnid[:, 1] < 0)


def row_dofs(mj, i: int, k: int) -> list[int]:
    """Dofs that output k of actuator i can act on, ascending."""
    kind, (first, second) = TRN(int(mj.actuator_trntype[i])), mj.actuator_trnid[i]
    if kind in JOINT:
        start, number = int(mj.jnt_dofadr[first]), DOFS[mj.jnt_type[first]]
        return list(range(start, start + number))
    if kind == TRN.mjTRN_TENDON:
        start = int(mj.ten_J_rowadr[first])
        return [int(dof) for dof in mj.ten_J_colind[start : start + mj.ten_J_rownnz[first]]]
    if _on_ball(mj)[i]:
        return [int(mj.jnt_dofadr[first]) + k]
    if kind in SITES:
        moving, held = (_chain(mj, int(mj.site_bodyid[site])) if site >= 0 else set() for site in (first, second))
        return sorted(moving ^ held)
    return list(range(mj.nv))


def _chain(mj, body: int) -> set[int]:
    """Dofs that move a body."""
    top, chain = mj.body_weldid[body], set()
    dof = int(mj.body_dofadr[top] + mj.body_dofnum[top] - 1) if mj.body_dofnum[top] else -1
    while dof >= 0:
        chain.add(dof)
        dof = int(mj.dof_parentid[dof])
    return chain
