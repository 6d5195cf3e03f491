"""Which trees sleep after a reset: those with the policy `init`, in the islands that MuJoCo finds at qpos0."""

from __future__ import annotations

import copy

import numpy as np

from featherlane.lanes.layout import Declare
from featherlane.model.derived import derived
from featherlane.model.enums import ENABLE_SLEEP, EQ_TENDON, MINAWAKE, SLEEP_INIT

AWAKE = -(1 + MINAWAKE)  # tree_asleep of a tree that is fully awake
_field = Declare()


@derived(_field.int("tree_asleep0", "ntree", "1", "tree_asleep after a reset, with the flag sleep"))
def asleep_at_start(mj) -> dict[str, np.ndarray]:
    """`tree_asleep` (ntree,) after a reset with the flag `sleep`, whether or not the flag is on as the model is loaded.

    Trees that share an island with one that does not start asleep start awake; MuJoCo warns of them.  Beside equalities
    of tendons, which do not go with the flag, all are awake.
    Source: MuJoCo mj_resetData.
    """
    import mujoco

    if not (mj.tree_sleep_policy == SLEEP_INIT).any() or (mj.eq_type == EQ_TENDON).any():
        return {"tree_asleep0": np.full(mj.ntree, AWAKE)}
    sleeping = copy.copy(mj)
    sleeping.opt.enableflags |= ENABLE_SLEEP
    return {"tree_asleep0": np.array(mujoco.MjData(sleeping).tree_asleep)}
