"""Roles: what a field of a tile is to the tile's worlds.

What lasts, what a reset and a copy take along, what is shown of a world and what functions of the user may read follow
from a field's role.  Compiled code does not: an edit here compiles nothing anew.
"""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """What follows from a role.

    Attributes:
        meaning: one line, for the reference page.
        of_world: each world has its own, in rows of kind `real`.
        lasts: kept for each world from call to call.
        shown: whoever asks for it by name gets it, world by world.
        read: functions of the user may read it once it is valid.
        reset: a reset writes zeros.
        copied: a copy takes it over.
    """

    meaning: str
    of_world: bool = False
    lasts: bool = False
    shown: bool = False
    read: bool = False
    reset: bool = True
    copied: bool = True


_KEPT = {"of_world": True, "lasts": True}
_SEEN = {"of_world": True, "shown": True}

ROLES = {
    "state": Role("what a step moves on; lasts, and may be set", shown=True, read=True, **_KEPT),
    "drive": Role("what acts within a step, where a function may set it, too; lasts", shown=True, read=True, **_KEPT),
    "input": Role("what is set between steps; lasts", shown=True, read=True, **_KEPT),
    "given": Role("what a call sets, all of it checked together; lasts", **_KEPT),
    "memory": Role("what a step remembers for the next one; lasts, and is not to be set", shown=True, **_KEPT),
    "output": Role("what a pass finds out about a world", read=True, **_SEEN),
    "detail": Role("a number on the way to it; which passes leave one depends on options", **_SEEN),
    "report": Role("how a pass went; a batch always has it", **_SEEN),
    "count": Role("a report that adds up from step to step, until a reset", **_SEEN),
    "slot": Role("of a place that the worlds of a tile share, such as a row; means something within a pass"),
    "scratch": Role("for use within a pass, or kept of a whole tile to save time"),
    "table": Role("large: no reset writes it, because a number that is reset says how much of it holds", reset=False),
    "room": Role("large, and without meaning between passes: no reset, no copy", reset=False, copied=False),
    "address": Role("of a compiled function, known to this process alone", reset=False, copied=False),
}
NONE = Role("a size, or a field of another record", reset=False, copied=False)
