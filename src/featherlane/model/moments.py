"""Which dofs each force output of an actuator can act on: the pattern of the moments, fixed when a model is loaded.

joint       the dofs of the joint
tendon      those of the tendon's row in ten_J
site        those that move the site or the site of its reference frame
slider      those that move the crank's site or the slider's
body        all: the body may touch anything
"""

from __future__ import annotations

import mujoco
import numpy as np

JOINT = {mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT}
SITES = {mujoco.mjtTrn.mjTRN_SITE, mujoco.mjtTrn.mjTRN_SLIDERCRANK}


def moment_ints(mj, body_lastdof: np.ndarray) -> dict[str, np.ndarray]:
    """`moment_rownnz`, `moment_rowadr` (nout,) and `moment_colind` (nmoment,).

    Args:
        mj: a compiled model.
        body_lastdof: last dof that moves each body, -1: none.
    """
    rows: list[list[int]] = [[] for _ in range(mj.nout)]
    for i in range(mj.nactuator):
        first = int(mj.actuator_outadr[i])
        for o in range(first, first + int(mj.actuator_outnum[i])):
            rows[o] = _dofs(mj, i, body_lastdof)
    nnz = np.array([len(row) for row in rows], int)
    return {
        "moment_rownnz": nnz,
        "moment_rowadr": np.cumsum(nnz) - nnz,
        "moment_colind": np.array([dof for row in rows for dof in row], int),
    }


def _dofs(mj, i: int, body_lastdof: np.ndarray) -> list[int]:
    """Dofs that actuator i can act on, ascending."""
    kind, (first, second) = mujoco.mjtTrn(int(mj.actuator_trntype[i])), mj.actuator_trnid[i]
    if kind in JOINT:
        start, number = int(mj.jnt_dofadr[first]), (6, 3, 1, 1)[mj.jnt_type[first]]
        return list(range(start, start + number))
    if kind == mujoco.mjtTrn.mjTRN_TENDON:
        start = int(mj.ten_J_rowadr[first])
        return [int(dof) for dof in mj.ten_J_colind[start : start + mj.ten_J_rownnz[first]]]
    if kind in SITES:
        bodies = [int(mj.site_bodyid[site]) for site in (first, second) if site >= 0]
        return sorted(set().union(*(_chain(mj, int(body_lastdof[body])) for body in bodies)))
    return list(range(mj.nv))


def _chain(mj, dof: int) -> set[int]:
    """A dof and all above it; empty for -1."""
    chain = set()
    while dof >= 0:
        chain.add(dof)
        dof = int(mj.dof_parentid[dof])
    return chain
