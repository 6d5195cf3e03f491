"""Kernels with a table of cases: a list in Python becomes an if-chain in the kernel.

    def _case(number, act, others):
        @kernel
        def case(m, d):
            if m.opt_integrator == number:
                act(m, d)
            else:
                others(m, d)

        return case

    advance = Choice(_case, nothing)
    advance.add(1, runge_kutta)

A stage that calls `advance` is compiled with the cases registered at that time, in their order, and the cases are
part of its object's name.  Adding a case recompiles the stages that use the table.  Objects compiled ahead of time
contain the engine's cases only: once a user has added one, kernels compile just in time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from featherlane.errors import CallError
from featherlane.lanes.kernel import Kernel, kernel


class _Tables:
    """State of all tables: the engine has filled them, a user has extended them, a stage has been loaded."""

    filled = extended = is_loaded = False


def mark_complete() -> None:
    """Marks the engine's cases as complete: later cases count as user extensions."""
    _Tables.filled = True


def is_extended() -> bool:
    """Returns whether a user has added a case."""
    return _Tables.extended


def mark_loaded() -> None:
    """Marks that a stage is about to be loaded with the current cases."""
    _Tables.is_loaded = True


class Choice(Kernel):
    """A kernel with a list of cases, of which the first matching one runs.

    Args:
        link: function of the arguments of `add` and of the kernel of the later cases; it returns the kernel that runs
            the case or calls the later ones.
        otherwise: the kernel that runs if no case matches.
    """

    def __init__(self, link: Callable[..., Kernel], otherwise: Kernel):
        self._link, self._otherwise, self._cases = link, otherwise, []
        self._engines = not _Tables.filled

    def add(self, *case: Any) -> None:
        """Appends a case.

        Raises:
            RuntimeError: stages are already loaded without it.
        """
        if self._engines and _Tables.filled:
            if _Tables.is_loaded:
                raise CallError(
                    "register it before the first step: the stages are already loaded with the cases registered so far"
                )
            _Tables.extended = True
        self._cases.append(case)
        for made in ("function", "_named", "_written"):
            self.__dict__.pop(made, None)

    @functools.cached_property
    def function(self):
        """Returns the chain, built on first use: precompiled stages do not need it."""
        chain = self._otherwise
        for case in reversed(self._cases):
            chain = self._link(*case, chain)
        return chain.function


# ---- links of tables whose cases are selected by an integer of the model ---------------------------------------------
@kernel
def nothing(m, d):
    """Does nothing: the default without a matching case."""


@kernel
def no(m):
    """Returns False: the default without a matching case."""
    return False


def doing(number_of: Kernel) -> Callable[..., Kernel]:
    """Returns the link of a `Choice` of (m, d) that runs the case of the model's integer `number_of(m)`."""

    def link(number: int, act: Kernel, others: Kernel) -> Kernel:
        @kernel
        def acts(m, d):
            """Runs the case of this number."""
            if number_of(m) == number:
                act(m, d)
            else:
                others(m, d)

        return acts

    return link


def being(number_of: Kernel) -> Callable[..., Kernel]:
    """Returns the link of a `Choice` of (m): is the case of the model's integer among those added?"""

    def link(number: int, others: Kernel) -> Kernel:
        @kernel
        def is_so(m):
            """Returns whether this case, or a later one, matches the model's integer."""
            return number_of(m) == number or others(m)

        return is_so

    return link
