"""Registers the integrators, each with its step kernel and its requirements on the preceding stages.

Code that depends on the model's integrator calls the kernels below; uncompiled they accept any object
with `opt_integrator`.  `dynamics/integrator/table.py` registers the integrators.
"""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes import Kernel, dispatch, kernel
from featherlane.engine.lanes.choice import Choice
from featherlane.errors import ArgumentError


class Scheme(NamedTuple):
    """An integrator.

    Attributes:
        number: value of `opt_integrator`.
        name: value of `model.opt.integrator`.
        advance: the kernel or stage of (m, d) that completes the step after the last acceleration: it writes the
            next state.
        accelerations: number of accelerations evaluated per step.
        start: of (m, d), if there are several: called after the first one, before `move`.
        move: of (m, d, k): from acceleration k - 1 to the state at which acceleration k is evaluated.
        reads_inertia: of (m): whether `advance` reads M if accelerations are computed without it; None: it does not.
        to_continuous: of (m, d): converts the step's acceleration (qacc, qacc_step) to the instantaneous one, in qacc;
            None if the step uses the instantaneous acceleration or has none to convert.
        has_metric: whether the constraint solve is the time step itself, in the integrator's metric.
        order: order of the error of smooth motion.
    """

    number: int
    name: str
    advance: Kernel
    accelerations: int = 1
    start: Kernel | None = None
    move: Kernel | None = None
    reads_inertia: Kernel | None = None
    to_continuous: Kernel | None = None
    has_metric: bool = False
    order: int = 1


SCHEMES: dict[int, Scheme] = {}  # by number


# ---- dispatch by integrator ------------------------------------------------------------------------------------------
@kernel
def _number(m):
    return m.opt_integrator


def _nothing(m, d):
    """Does nothing."""


def _no(m):
    """Returns False."""
    return False


advance = Choice(_nothing, _number)  # (m, d): writes the next state
start = Choice(_nothing, _number)  # (m, d): stores the first of several accelerations
reads_inertia = Choice(_no, _number)  # (m): whether `advance` reads M
has_conversion = Choice(_no, _number)  # (m): whether a step's acceleration differs from the instantaneous one
convert_to_continuous = Choice(_nothing, _number)  # (m, d): sets qacc to the instantaneous acceleration
has_metric = Choice(_no, _number)  # (m): whether the constraint solve is the time step, in the integrator's metric


@dispatch(_number)
def move(m, d, k):
    """Moves to the state at which acceleration k is evaluated."""


@dispatch(_number)
def accelerations(m):
    """Returns the number of accelerations per step."""
    return 1


def register(scheme: Scheme) -> None:
    """Registers an integrator, before the stages that use it are compiled.

    Raises:
        ValueError: the number or the name is already registered.
    """
    if scheme.number in SCHEMES or scheme.name in {other.name for other in SCHEMES.values()}:
        raise ArgumentError(f"the integrator {scheme.number}, {scheme.name!r}, is registered already")
    n = scheme.number
    SCHEMES[n] = scheme
    advance.add(n, scheme.advance)
    if scheme.accelerations > 1:
        accelerations.add(n, scheme.accelerations)
        start.add(n, scheme.start)
        move.add(n, scheme.move)
    if scheme.reads_inertia is not None:
        reads_inertia.add(n, scheme.reads_inertia)
    if scheme.to_continuous is not None:
        has_conversion.add(n)
        convert_to_continuous.add(n, scheme.to_continuous)
    if scheme.has_metric:
        has_metric.add(n)
