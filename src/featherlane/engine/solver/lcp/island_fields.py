"""Fields of the LCP in a step only: islands of one world, and the address of a registered solver."""

from featherlane.engine.lanes.layout import Declare

_lcp = Declare("solve", "scratch", record="lcp")
_lcp_room = Declare("solve", "room", record="lcp")

_address = Declare("", "address")

FIELDS = (
    _address.long("lcp_function", "1", "1", "address of the registered LCP solver; 0: none"),
    _lcp.int("root", "ntree", "1", "lcp: first tree of the island of a tree, in one world"),
    _lcp.int("head", "ntree", "1", "lcp: first row of the island with this first tree, -1: none"),
    _lcp_room.int("next", "nlcp", "1", "lcp: next row of the same island, -1: none"),
)
