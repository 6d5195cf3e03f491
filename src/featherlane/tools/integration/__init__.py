"""Integrates worlds with error control; the step size of each world follows from its error."""
