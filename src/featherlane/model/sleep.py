"""Which trees sleep after a reset: those with the policy `init`, in the islands that MuJoCo finds at qpos0."""

from __future__ import annotations

import copy

import numpy as np

from featherlane.model.enums import EQ_TENDON, MINAWAKE, SLEEP_INIT

AWAKE = -(1 + MINAWAKE)  # tree_asleep of a tree that is fully awake


def asleep_at_start(mj_model) -> np.ndarray:
    """`tree_asleep` (ntree,) after a reset with the flag `sleep`, whether or not the flag is on as the model is loaded.

    Trees that share an island with one that does not start asleep start awake; MuJoCo warns of them.  Beside equalities
    of tendons, which do not go with the flag, all are awake.
    Source: MuJoCo mj_resetData.
    """
    import mujoco

    if not (mj_model.tree_sleep_policy == SLEEP_INIT).any() or (mj_model.eq_type == EQ_TENDON).any():
        return np.full(mj_model.ntree, AWAKE)
    sleeping = copy.copy(mj_model)
    sleeping.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    return np.array(mujoco.MjData(sleeping).tree_asleep)
