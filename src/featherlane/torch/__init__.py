"""Rollouts in PyTorch: `torch.autograd` goes through steps of worlds, with contact, by the adjoint of the engine.

    worlds = featherlane.torch.Dynamics(batch)
    qpos, qvel, act = worlds.rollout(qpos, qvel, act, control)
    loss(qpos).backward()

Tensors of float64 or float32 on the CPU; states by their numbers, (qpos, qvel, act).  The worlds are stepped in the
batch's own precision, and gradients computed in float64.
"""

from featherlane.torch.dynamics import Dynamics

__all__ = ["Dynamics"]
