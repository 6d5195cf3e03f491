"""Registers the built-in integrators, which are those of MuJoCo.

Source: MuJoCo, chapter Computation, integrators.
"""

from featherlane.engine.dynamics.integrator import integrate
from featherlane.engine.dynamics.integrator.continuous import (
    continuous_from_euler,
    continuous_from_implicit,
    continuous_from_implicitfast,
)
from featherlane.engine.dynamics.integrator.implicit import implicit, implicit_reads_inertia
from featherlane.engine.dynamics.integrator.integrate import implicitfast, implicitfast_reads_inertia, semi_implicit
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_finish, rk4_stage, rk4_start
from featherlane.engine.model.enums import DISCRETE, EULER, IMPLICIT, IMPLICITFAST, RK4
from featherlane.engine.model.integrator import Scheme, accelerations, advance, move, register, start

__all__ = ["BUILT_IN", "accelerations", "advance", "move", "start"]

BUILT_IN = (
    Scheme(EULER, "euler", semi_implicit, to_continuous=continuous_from_euler),
    Scheme(RK4, "rk4", rk4_finish, accelerations=4, start=rk4_start, move=rk4_stage, order=4),
    Scheme(
        IMPLICIT, "implicit", implicit, reads_inertia=implicit_reads_inertia, to_continuous=continuous_from_implicit
    ),
    Scheme(
        IMPLICITFAST,
        "implicitfast",
        implicitfast,
        reads_inertia=implicitfast_reads_inertia,
        to_continuous=continuous_from_implicitfast,
    ),
    Scheme(DISCRETE, "discrete", integrate.advance, has_metric=True),
)

for scheme in BUILT_IN:
    register(scheme)
