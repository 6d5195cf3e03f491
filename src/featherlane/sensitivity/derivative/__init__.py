"""Derivatives of a step and of inverse dynamics: a batch whose worlds have a coordinate moved each."""
