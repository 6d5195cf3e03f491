"""Derivatives of a step and of inverse dynamics: a batch whose worlds each have one coordinate displaced."""
