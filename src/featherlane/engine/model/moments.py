"""Computes which dofs each actuator output can act on: the sparsity of the moments, fixed at load time.

joint       the dofs of the joint
tendon      the dofs of the tendon's row in ten_J
site        the dofs that move the site; with a reference, those that move only one of the two sites
slider      the dofs that move only one of the crank's site and the slider's site
so3         one dof each for a ball, or the dofs of a site as above
body        all dofs: the body may touch anything

A dof above two sites moves both of them equally.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import TRN_BODY, TRN_JOINTINPARENT, TRN_SO3, TRN_TENDON
from featherlane.engine.model.joint import DOFS

_field = Declare()


@derived(
    size("nmoment", "number of entries of all actuator moments"),
    _field.int("moment_rownnz", "nout", "1", "number of dofs that the output can act on"),
    _field.int("moment_rowadr", "nout", "1", "address of the output's first entry"),
    _field.int("moment_colind", "nmoment", "1", "dof of an entry, ascending in a row"),
)
def moment_rows(mj) -> dict[str, np.ndarray]:
    """Returns the rows of all outputs, in CSR form."""
    rows = [_dofs(mj, i, k) for i in range(mj.nactuator) for k in range(mj.actuator_outnum[i])]
    nnz = np.array([len(row) for row in rows], int)
    return {
        "moment_rownnz": nnz,
        "moment_rowadr": np.cumsum(nnz) - nnz,
        "moment_colind": np.array([dof for row in rows for dof in row], int),
    }


def _dofs(mj, i: int, k: int) -> list[int]:
    """Returns the dofs that output k of actuator i can act on, ascending."""
    kind, (first, second) = mj.actuator_trntype[i], mj.actuator_trnid[i]
    if kind <= TRN_JOINTINPARENT:
        return [mj.jnt_dofadr[first] + n for n in range(DOFS[mj.jnt_type[first]])]
    if kind == TRN_TENDON:
        start = mj.ten_J_rowadr[first]
        return list(mj.ten_J_colind[start : start + mj.ten_J_rownnz[first]])
    if kind == TRN_BODY:
        return list(range(mj.nv))
    if kind == TRN_SO3 and second < 0:  # a ball joint
        return [mj.jnt_dofadr[first] + k]
    moving, held = (_chain(mj, mj.site_bodyid[site]) if site >= 0 else set() for site in (first, second))
    return sorted(moving ^ held)


def _chain(mj, body: int) -> set[int]:
    """Returns the dofs that move a body."""
    top, chain = mj.body_weldid[body], set()
    dof = mj.body_dofadr[top] + mj.body_dofnum[top] - 1 if mj.body_dofnum[top] else -1
    while dof >= 0:
        chain.add(dof)
        dof = mj.dof_parentid[dof]
    return chain
