"""Declares the roles of a tile's fields.

A role determines whether a field lasts, is reset, is copied, is returned by name and may be read by user callbacks.
Compiled code does not depend on roles: an edit here recompiles nothing.
"""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """Traits of a role.

    Attributes:
        meaning: one line, for the reference page.
        of_world: each world has separate values, in rows of kind `real`.
        lasts: kept for each world between calls.
        shown: can be requested by name, world by world.
        read: user callbacks may read it once it is valid.
        reset: a reset writes zeros.
        copied: a copy includes it.
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
    "state": Role("state that a step advances; lasts, may be written", shown=True, read=True, **_KEPT),
    "drive": Role("control or force of a step; callbacks may write it, too; lasts", shown=True, read=True, **_KEPT),
    "input": Role("written between steps; lasts", shown=True, read=True, **_KEPT),
    "given": Role("written by one call that validates all values; lasts", **_KEPT),
    "memory": Role("result of a step that the next step uses; lasts, read-only", shown=True, **_KEPT),
    "output": Role("result of a pass for each world", read=True, **_SEEN),
    "detail": Role("intermediate result; options determine which passes compute it", **_SEEN),
    "report": Role("diagnostics of a pass; always available in a batch", **_SEEN),
    "count": Role("counter that increases from step to step until a reset", **_SEEN),
    "cause": Role("detail of a counter; persistent, but stored only by batches that request it", of_world=True),
    "slot": Role("per slot (row, contact) that the worlds of a tile share; valid within a pass"),
    "scratch": Role("scratch memory of a pass, or a cache of the tile"),
    "table": Role("large array; a separate count, which is reset, defines its valid part", reset=False),
    "room": Role("large scratch memory, invalid between passes: no reset, no copy", reset=False, copied=False),
    "address": Role("address of a compiled function, valid in this process only", reset=False, copied=False),
    "pointer": Role("address within the memory of a record, valid in this process only", reset=False, copied=False),
}
NONE = Role("a size, or a field of another record", reset=False, copied=False)
