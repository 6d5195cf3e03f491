"""One call at a time on an object, whatever interrupts the call.

No lock of Python's can be released safely: an interrupt (Ctrl-C) raises between any two instructions, also between
those that take a lock and the `try` whose `finally` releases it.  So a turn is not held until it is released.  It is
held for as long as the call that took it is on the stack of a thread.  Giving it back is only the fast path: where a
turn is missing, the next call looks through the stacks, and takes it over if no call there holds it.

What a call does to the memory behind an object is one instruction of its thread (`team`, `work`), so a call that is on
no stack has nothing under way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_holders: set[CodeType] = set()  # functions that hold turns, which their local variable `turns` names


def holds_turns(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function holds the turns in its local variable `turns`, as long as it is on a stack."""
    _holders.add(function.__code__)
    return function


class Turn:
    """The right to work on an object.

    Args:
        what: the object, as an error names it.

    Attributes:
        token: a list of one element while the turn is free; `pop` takes it, in a third of the time of a lock.
    """

    __slots__ = ("token", "what")

    def __init__(self, what: str):
        self.token, self.what = [None], what

    def take_over(self) -> None:
        """Hold the turn, whose token is missing, if no other call on any stack holds it.

        Raises:
            RuntimeError: another call holds it.
        """
        own = sys._getframe(1)
        for top in sys._current_frames().values():
            frame: FrameType | None = top
            while frame is not None:
                if frame is not own and frame.f_code in _holders and self in frame.f_locals.get("turns", ()):
                    raise RuntimeError(
                        f"another call of this {self.what} is under way, in another thread or in a function that it "
                        f"calls; give each thread a {self.what} of its own"
                    )
                frame = frame.f_back


@holds_turns
def hold(turns: Sequence[Turn], function: Callable[..., R], *arguments: Any) -> R:
    """Call the function while no other call works on the objects of the turns.

    Raises:
        RuntimeError: another call holds one of the turns.
    """
    taken = []
    try:
        for turn in turns:
            try:
                turn.token.pop()
            except IndexError:
                turn.take_over()
            taken.append(turn)
        return function(*arguments)
    finally:
        for turn in taken:
            turn.token.append(None)
