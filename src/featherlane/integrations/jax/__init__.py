"""Rollouts in JAX: `jax.grad` differentiates simulation steps, with contact, by the engine's adjoint.

    worlds = featherlane.integrations.jax.Dynamics(batch)
    qpos, qvel, act = worlds.rollout(qpos, qvel, act, control)

Arrays are float64 (`jax.config.update("jax_enable_x64", True)`) or float32; states are (qpos, qvel, act).  The worlds
are stepped on the CPU in the batch's precision, and gradients are computed in float64.
"""

from featherlane.integrations.jax.dynamics import Dynamics

__all__ = ["Dynamics"]
