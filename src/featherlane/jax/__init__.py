"""Rollouts in JAX: `jax.grad` goes through steps of worlds, with contact, by the adjoint of the engine.

    worlds = featherlane.jax.Dynamics(batch)
    qpos, qvel, act = worlds.rollout(qpos, qvel, act, control)

Arrays of float64 (`jax.config.update("jax_enable_x64", True)`) or float32; states by their numbers, (qpos, qvel, act).
The worlds are stepped on the CPU in the batch's own precision, and gradients computed in float64.
"""

from featherlane.jax.dynamics import Dynamics

__all__ = ["Dynamics"]
