"""The integrators: each is registered with how it takes a step, and what it asks of the passes before it.

Whoever wants to know something of the model's integrator asks one of the kernels here; uncompiled they take anything
with `opt_integrator`.  `dynamics/integrator/table.py` registers those that there are.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.errors import ArgumentError
from featherlane.lanes import Choice, Kernel, kernel
from featherlane.lanes.choice import being, doing, no, nothing


class Scheme(NamedTuple):
    """An integrator.

    Attributes:
        number: an `opt_integrator`.
        name: as `model.opt.integrator` takes it.
        advance: the kernel or stage of (m, d) that takes the step, once the last acceleration is there: it writes the
            next state.
        accelerations: how many accelerations a step evaluates.
        start: of (m, d), where there are several: after the first one, before `move`.
        move: of (m, d, k): from acceleration k - 1 to the state in which number k is evaluated.
        reads_inertia: of (m): whether `advance` reads M where accelerations are found without it.
        moment: of (m, d): from the acceleration of a step, in qacc and qacc_step, to that of the moment, in qacc; None
            where a step has no acceleration of its own, or no other.
        has_metric: whether the constraint solve is the time step itself, in a metric of the integrator's own.
    """

    number: int
    name: str
    advance: Kernel
    accelerations: int = 1
    start: Kernel = nothing
    move: Kernel | None = None
    reads_inertia: Kernel = no
    moment: Kernel | None = None
    has_metric: bool = False


SCHEMES: dict[int, Scheme] = {}  # by number


# ---- the links of the questions' chains ------------------------------------------------------------------------------
@kernel
def _integrator(m):
    return m.opt_integrator


_act, _is = doing(_integrator), being(_integrator)


def _move(number: int, move: Kernel, others: Kernel) -> Kernel:
    @kernel
    def moves(m, d, k):
        """To the state in which acceleration k is evaluated."""
        if m.opt_integrator == number:
            move(m, d, k)
        else:
            others(m, d, k)

    return moves


def _say(number: int, says: Kernel, others: Kernel) -> Kernel:
    @kernel
    def said(m):
        """What the integrator of this number says."""
        return says(m) if m.opt_integrator == number else others(m)

    return said


def _count(number: int, count: int, others: Kernel) -> Kernel:
    @kernel
    def counted(m):
        """How many accelerations the integrator evaluates."""
        return count if m.opt_integrator == number else others(m)

    return counted


@kernel
def _one(m):
    """One acceleration."""
    return 1


@kernel
def _stay(m, d, k):
    """No state but that of the step's start."""


# ---- the questions ---------------------------------------------------------------------------------------------------
advance = Choice(_act, nothing)  # (m, d): the next state
start = Choice(_act, nothing)  # (m, d): what is kept of the first of several accelerations
move = Choice(_move, _stay)  # (m, d, k): to the state of acceleration k
accelerations = Choice(_count, _one)  # (m): how many a step evaluates
reads_inertia = Choice(_say, no)  # (m): does `advance` read M?
has_moment = Choice(_is, no)  # (m): does a step have another acceleration than the moment?
to_the_moment = Choice(_act, nothing)  # (m, d): qacc <- that of the moment
has_metric = Choice(_is, no)  # (m): is the constraint solve the time step, in a metric of its own?


def register(scheme: Scheme) -> None:
    """Take up an integrator, before the stages that ask for it are compiled.

    Raises:
        ValueError: the number or the name is registered already.
    """
    if scheme.number in SCHEMES or scheme.name in {other.name for other in SCHEMES.values()}:
        raise ArgumentError(f"an integrator {scheme.number}, {scheme.name!r} is registered already")
    n = scheme.number
    SCHEMES[n] = scheme
    advance.add(n, scheme.advance)
    if scheme.accelerations > 1:
        accelerations.add(n, scheme.accelerations)
        start.add(n, scheme.start)
        move.add(n, scheme.move)
    if scheme.reads_inertia is not no:
        reads_inertia.add(n, scheme.reads_inertia)
    if scheme.moment is not None:
        has_moment.add(n)
        to_the_moment.add(n, scheme.moment)
    if scheme.has_metric:
        has_metric.add(n)
