"""Selects the cheaper forward dynamics for a model: the factorization of M, or the articulated-body algorithm.

The cost is the number of operations (a fused multiply-add counts as one) on the model's tree:

    crb     L^T D L and the substitutions on the pattern of M: n (n + 1) / 2 + 2 n + 1 for a dof with n others above it
    aba     93 for a dof (a symmetric 6 x 6 matrix times its axis, a division, the matrix less a product, two motions),
            27 for a body (added to its parent)

M itself is not counted: a step with constraints computes it in either case.  The operations of a factorization are in
long sums, those of the recursion go through memory.  So MEASURED is the time of one operation of each in a tile of
eight worlds in float64 (AMD EPYC, Zen 4, 3.7 GHz).  Measured solve times, in microseconds:

                      nv   crb      aba
    arm                7     0.1      0.8
    quadruped         18     0.8      1.7
    humanoid          27     1.1      2.4
    rope             200   671       18
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes.layout import size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import TRN_JOINTINPARENT
from featherlane.engine.model.joint import is_free_joint, is_scalar

MEASURED = {"crb": 0.65, "aba": 0.84}  # ns per operation


def costs(mj) -> dict[str, float]:
    """Returns the time [ns] of one solve with M in a tile of eight worlds, by algorithm."""
    above = np.asarray(mj.M_rownnz) - 1
    operations = {
        "crb": float((above * (above + 1) / 2 + 2 * above + 1).sum()),
        "aba": 93.0 * mj.nv + 27.0 * (mj.nbody - 1),
    }
    return {algorithm: MEASURED[algorithm] * count for algorithm, count in operations.items()}


@derived(
    size("articulated_pays", "1: the articulated-body algorithm costs less than the factor of M"),
    size("implicit_diagonal", "1: implicitfast changes only the diagonal of M"),
)
def choices(mj) -> dict[str, bool]:
    """Returns which algorithms are faster on the model's tree."""
    cost = costs(mj)
    return {"articulated_pays": cost["aba"] < cost["crb"], "implicit_diagonal": _is_diagonal(mj)}


def _is_diagonal(mj) -> bool:
    """Returns whether implicitfast changes only M's diagonal: all actuators on slides and hinges, no lone free body."""
    kinds = np.asarray(mj.jnt_type)
    if mj.ntendon:  # tendons may have damping
        return False
    on_joint = np.asarray(mj.actuator_trntype) <= TRN_JOINTINPARENT
    driven = kinds[np.asarray(mj.actuator_trnid)[on_joint, 0]]
    alone = is_free_joint(kinds) & (
        np.asarray(mj.tree_dofnum)[np.asarray(mj.body_treeid)[np.asarray(mj.jnt_bodyid)]] == 6
    )
    return bool(on_joint.all() and is_scalar(driven).all() and not alone.any())
