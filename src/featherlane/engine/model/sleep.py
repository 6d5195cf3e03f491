"""Computes which trees sleep after a reset: those with the policy `init`, in the islands that MuJoCo finds at qpos0."""

from __future__ import annotations

import copy

import numpy as np

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import EQ_TENDON, MINAWAKE, SLEEP_INIT

AWAKE = -(1 + MINAWAKE)  # tree_asleep of a fully awake tree
_field = Declare()


@derived(_field.int("tree_asleep0", "ntree", "1", "initial tree_asleep, with the flag sleep"))
def asleep_at_start(mj) -> dict[str, np.ndarray]:
    """Returns `tree_asleep` (ntree,) after a reset with the flag `sleep`, even if the flag is off at load time.

    Trees that share an island with a tree that starts awake start awake; MuJoCo warns of them.  In a model with tendon
    equalities, which are incompatible with the flag, all trees are awake.
    Source: MuJoCo mj_resetData.
    """
    import mujoco

    if not (mj.tree_sleep_policy == SLEEP_INIT).any() or (mj.eq_type == EQ_TENDON).any():
        return {"tree_asleep0": np.full(mj.ntree, AWAKE)}
    sleeping = copy.copy(mj)
    sleeping.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)  # not ENABLE_SLEEP: up to MuJoCo 3.7 another bit
    return {"tree_asleep0": np.array(mujoco.MjData(sleeping).tree_asleep)}
