"""Actuators: from a control to forces of the dofs."""
