"""Defines single stages for one world: `featherlane.stages.crb`, `featherlane.stages.factor_m`, ...

A function of a model and a `Data` runs one compiled stage on the data's memory and writes its results to the data's
fields.  Its docstring is that of the stage.  It assumes that its inputs are valid, as computed by the stages above it
in this file.  `python docs/stages.py` writes `stages.pyi`, for type checkers and editors, and the reference page.
Functions that need more than one call are in `steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from featherlane.engine.dynamics.actuator import actuation as _actuation
from featherlane.engine.dynamics.body import com, kinematics, rne_derivative
from featherlane.engine.dynamics.inertia import joint_space
from featherlane.engine.dynamics.integrator import implicit as _implicit
from featherlane.engine.dynamics.integrator import integrate, smooth, velocity_derivative
from featherlane.engine.dynamics.tendon import length
from featherlane.engine.lanes import Stage
from featherlane.engine.model.model import Model
from featherlane.engine.sensor import camera, momentum, wrench
from featherlane.engine.simulation.docstring import public_docstring
from featherlane.engine.simulation.step import forward
from featherlane.engine.simulation.world.data import Data, run_stage
from featherlane.engine.solver import island


def _alone(stage: Stage, name: str = "") -> Callable[[Model, Data], None]:
    """Returns the public function of a stage, under its name or another one."""

    def call(model: Model, data: Data) -> None:
        run_stage(model, data, stage)

    call.__name__ = call.__qualname__ = name or stage.name
    call.__doc__ = public_docstring(stage)
    return call


# position
frames = _alone(kinematics.frames)
com_pos = _alone(com.com_pos)
cameras = _alone(camera.cameras)
tendon = _alone(length.tendon)
crb = _alone(joint_space.crb)
factor_m = _alone(joint_space.factor_m)

# velocity
forward_velocity = _alone(forward.forward_velocity)
com_vel = _alone(com.com_vel)
subtree_vel = _alone(momentum.subtree_vel)

# force and acceleration
actuation = _alone(_actuation.actuation)
smooth_acceleration = _alone(smooth.smooth_acceleration)
energy = _alone(smooth.energy)
rne_post_constraint = _alone(wrench.rne_post_constraint)

# derivatives by velocity
rne_vel = _alone(rne_derivative.rne_vel)
passive_vel = _alone(velocity_derivative.passive_vel)
actuator_vel = _alone(velocity_derivative.actuator_vel)
smooth_vel = _alone(velocity_derivative.smooth_vel)

# constraints
forward_constraint = _alone(forward.forward_constraint)
make_constraint = _alone(forward.make_constraint)
solve = _alone(forward.solve_constraint, "solve")
islands = _alone(island.islands)

# integration
implicitfast = _alone(integrate.implicitfast)
implicit = _alone(_implicit.implicit)
