"""Kernels that are made of a table: what is listed in Python, a kernel goes through as an if-chain.

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

A stage that calls `advance` is compiled with the cases that are there then, in their order, and its object is named for
them: a case more, and the stages that ask the table are compiled anew.  Objects compiled ahead of time have the
engine's own cases: once one was added from outside, kernels compile just in time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from featherlane.errors import CallError
from featherlane.lanes.kernel import Kernel, kernel


class _Tables:
    """What has happened to all tables: has the engine filled them, has anybody else, has a stage been loaded?"""

    filled = extended = asked = False


def fill() -> None:
    """The engine's own cases are there: what is added from now on comes from outside."""
    _Tables.filled = True


def is_extended() -> bool:
    """Was a case added from outside?"""
    return _Tables.extended


def ask() -> None:
    """A stage is about to be loaded, with the cases that are there."""
    _Tables.asked = True


class Choice(Kernel):
    """A kernel out of cases, of which the first that fits is taken.

    Args:
        link: from what a case was added with, and the kernel of the cases behind it, to the kernel that takes the case
            or asks those.
        otherwise: the kernel where no case fits.
    """

    def __init__(self, link: Callable[..., Kernel], otherwise: Kernel):
        self._link, self._otherwise, self._cases = link, otherwise, []
        self._engines = not _Tables.filled

    def add(self, *case) -> None:
        """One more case, behind those that are there.

        Raises:
            RuntimeError: stages have been loaded that would not know of it.
        """
        if self._engines and _Tables.filled:
            if _Tables.asked:
                raise CallError(
                    "register it before the first step: stages are loaded already, with the cases that there were"
                )
            _Tables.extended = True
        self._cases.append(case)
        for made in ("function", "_named", "_written"):
            self.__dict__.pop(made, None)

    @functools.cached_property
    def function(self):
        """The chain, made when somebody asks: where stages are compiled already nobody does."""
        chain = self._otherwise
        for case in reversed(self._cases):
            chain = self._link(*case, chain)
        return chain.function


# ---- links of tables whose cases are told by a number of the model ---------------------------------------------------
@kernel
def nothing(m, d):
    """No case that has something to do."""


@kernel
def no(m):
    """No case of which it is true."""
    return False


def doing(number_of: Kernel) -> Callable[..., Kernel]:
    """The link of a `Choice` of (m, d) that does what the case with the model's number does; `number_of`: of (m)."""

    def link(number: int, act: Kernel, others: Kernel) -> Kernel:
        @kernel
        def acts(m, d):
            """What the case of this number does."""
            if number_of(m) == number:
                act(m, d)
            else:
                others(m, d)

        return acts

    return link


def being(number_of: Kernel) -> Callable[..., Kernel]:
    """The link of a `Choice` of (m) that tells whether the case with the model's number is among those added."""

    def link(number: int, others: Kernel) -> Kernel:
        @kernel
        def is_so(m):
            """Is it true of the case with the model's number?"""
            return number_of(m) == number or others(m)

        return is_so

    return link
