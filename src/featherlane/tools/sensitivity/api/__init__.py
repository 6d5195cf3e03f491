"""Functions that return derivatives."""
