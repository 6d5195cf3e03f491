"""Fields of contact rows: bodies and contact points."""

from featherlane.engine.lanes.layout import Declare
from featherlane.engine.spatial.types import Force, Mat3, Vec3

_slot = Declare("solve", "slot")
_scratch = Declare("solve", "scratch")

FIELDS = (
    _slot.int(
        "con_body", "nconmax 2", "1", "body on which the contact force acts, and the other body if both move, else 0"
    ),
    _slot.rows(Vec3, "con_arm", "nconmax 2", "m", "contact point relative to the coms of the two bodies' trees"),
    _slot.rows(
        Mat3,
        "con_basis",
        "2 nconmax",
        "1, m",
        "n, mu1 t1, mu2 t2, pointing at the first of con_body; then rotations: mu3 n, mu4 t1, mu5 t2",
    ),
    _scratch.int(
        "body_reached",
        "nbody",
        "1",
        "a slot acts on the body or below it: 1 with a body of its tree, 2 as a stiffness, 3 as a force",
    ),
    _scratch.rows(Force, "con_wrench", "nbody", "N m, N", "contact force on the body and below it, at the tree's com"),
)
