"""Fields of contacts as rows: the bodies that they push, and where."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field(
        "con_body",
        "int",
        ("nconmax", 2),
        "1",
        "body that the slot pushes, and the other if both move, else 0",
        "solve",
        "slot",
    ),
    Field(
        "con_arm", "real", ("nconmax", 6), "m", "contact point from the coms of the two bodies' trees", "solve", "slot"
    ),
    Field(
        "con_basis",
        "real",
        (2, "nconmax", 9),
        "1, m",
        "n, mu1 t1, mu2 t2, pointing at the body that is pushed; then turns: mu3 n, mu4 t1, mu5 t2",
        "solve",
        "slot",
    ),
    Field(
        "body_reached",
        "int",
        ("nbody",),
        "1",
        "a slot acts on the body or below it: 1 with a body of its tree, 2 as a stiffness, 3 if it pushes",
        "solve",
        "scratch",
    ),
    Field(
        "con_wrench",
        "real",
        ("nbody", 6),
        "N m, N",
        "contact force on the body and below it, at the tree's com",
        "solve",
        "scratch",
    ),
)
