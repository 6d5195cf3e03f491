"""Adjoint of a rollout: gradients of a loss by initial states, controls and parameters."""
