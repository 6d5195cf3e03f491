"""Exports the stages of a step as functions: `featherlane.stages.kinematics(model, data)`, `crb`, `factor_m`, ...

`featherlane.step` and `featherlane.forward` run the stages in order.  A single stage does not check its inputs: the
stages before it must have run for the present state.  `docs/stages.md` lists what each stage reads and writes.
"""

from featherlane.engine.simulation.query.product import half_solve
from featherlane.engine.simulation.stages import (
    actuation,
    actuator_vel,
    cameras,
    com_pos,
    com_vel,
    crb,
    energy,
    factor_m,
    forward_constraint,
    forward_velocity,
    frames,
    implicit,
    implicitfast,
    islands,
    make_constraint,
    passive_vel,
    rne_post_constraint,
    rne_vel,
    smooth_acceleration,
    smooth_vel,
    solve,
    subtree_vel,
    tendon,
)
from featherlane.engine.simulation.steps import (
    aba,
    collision,
    compare_forward_inverse,
    euler,
    forward_position,
    inverse_smooth,
    kinematics,
    passive,
    rne,
    runge_kutta,
    transmission,
)

__all__ = [  # noqa: RUF022  in groups
    # position
    "kinematics",
    "frames",
    "com_pos",
    "cameras",
    "tendon",
    "crb",
    "factor_m",
    "transmission",
    "collision",
    "forward_position",
    # velocity
    "com_vel",
    "subtree_vel",
    "passive",
    "rne",
    "forward_velocity",
    # derivatives with respect to velocity
    "actuator_vel",
    "passive_vel",
    "rne_vel",
    "smooth_vel",
    # force and acceleration
    "actuation",
    "smooth_acceleration",
    "aba",
    "half_solve",
    "energy",
    "rne_post_constraint",
    "inverse_smooth",
    # constraints
    "islands",
    "make_constraint",
    "solve",
    "forward_constraint",
    "compare_forward_inverse",
    # integration
    "euler",
    "implicit",
    "implicitfast",
    "runge_kutta",
]
