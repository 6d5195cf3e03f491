"""Rollouts in PyTorch: `torch.autograd` differentiates simulation steps, with contact, by the engine's adjoint.

    worlds = featherlane.integrations.torch.Dynamics(batch)
    qpos, qvel, act = worlds.rollout(qpos, qvel, act, control)
    loss(qpos).backward()

Tensors are float64 or float32 on the CPU; states are (qpos, qvel, act).  The worlds are stepped in the batch's
precision, and gradients are computed in float64.
"""

from featherlane.integrations.torch.dynamics import Dynamics

__all__ = ["Dynamics"]
