"""The adjoint of a rollout: gradients of a loss by where worlds start, by controls and by parameters."""
