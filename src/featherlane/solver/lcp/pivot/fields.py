"""Fields of the islands of one world, each a problem of its own for a solver that pivots."""

from featherlane.lanes.layout import Field

FIELDS = (
    Field("lcp_root", "int", ("ntree",), "1", "lcp: first tree of the island of one world's tree", "solve", "scratch"),
    Field(
        "lcp_head",
        "int",
        ("ntree",),
        "1",
        "lcp: first row of the island, by its first tree, -1: none",
        "solve",
        "scratch",
    ),
    Field("lcp_next", "int", ("nlcp",), "1", "lcp: next row of the same island, -1: none", "solve", "room"),
)
