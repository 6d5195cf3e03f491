"""Derivatives of steps, inverse dynamics and rollouts, and products with them."""
