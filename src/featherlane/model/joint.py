"""The types of joints in numbers: how many coordinates each has, and how many dofs; by mjtJoint."""

from __future__ import annotations

NAMES = ("free", "ball", "slide", "hinge")
COORDINATES = (7, 4, 1, 1)
DOFS = (6, 3, 1, 1)
