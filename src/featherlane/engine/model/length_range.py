"""Recomputes the length ranges of actuators after edits: muscles are scaled by them.

MuJoCo's compiler computes them by simulation; mj_setLengthRange, called here, does the same.  Each actuator is pulled
to its shortest and to its longest length, in damped motion from qpos0, without contacts, gravity, passive forces,
friction loss and other actuators.  So only joint limits, tendon limits and geometry bound the length.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from featherlane.engine.model.arguments import bounded, instance, one_of
from featherlane.engine.model.assignment import flag
from featherlane.engine.model.enums import LRMODE_ALL, Disable
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.model.reader import heard
from featherlane.errors import ModelError

# features that the compiler disables for this simulation
OFF = Disable.CONTACT | Disable.GRAVITY | Disable.SPRING | Disable.DAMPER | Disable.FRICTIONLOSS | Disable.ACTUATION
PARAMETERS = "accel maxforce timeconst timestep inttotal interval tolrange".split()  # fields of mjLROpt


def _options(uselimit: bool, parameters: dict[str, float]):
    """Returns an MjLROpt that includes every given actuator."""
    import mujoco

    options = mujoco.MjLROpt()
    mujoco.mj_defaultLROpt(options)
    options.mode, options.useexisting, options.uselimit = LRMODE_ALL, 0, int(bool(uselimit))
    for name, value in parameters.items():
        one_of("set_length_range", name, PARAMETERS)
        setattr(options, name, bounded(f"set_length_range: {name}", value, 0.0))
    return options


def _muscles(model: Model) -> np.ndarray:
    """Returns the actuators with a muscle gain or bias."""
    import mujoco

    gain, bias = mujoco.mjtGain.mjGAIN_MUSCLE, mujoco.mjtBias.mjBIAS_MUSCLE
    return np.flatnonzero((model.actuator_gaintype == gain) | (model.actuator_biastype == bias))


def set_length_range(
    model: Model, actuators: Iterable[str | int] | None = None, *, uselimit: bool = False, **parameters: float
) -> None:
    """Recomputes `actuator_lengthrange`, after edits that affect a muscle's path.

    Args:
        model: the model; only its `actuator_lengthrange` is written.
        actuators: names or ids; None: all muscles.
        uselimit: whether an actuator of a limited joint or tendon copies this limit, without its gear and without
            simulation.
        parameters: of the simulation, as in the compiler element `lengthrange`: `accel` [m/s^2, rad/s^2] norm
            of the acceleration that pulls an actuator, `maxforce` [N] largest pulling force (0: unlimited),
            `timeconst` [s] of the damping, `timestep` [s] (0: the model's), `inttotal` [s] duration, `interval` [s] at
            its end during which the length must stay within `tolrange` of the range.

    Raises:
        ModelError: an actuator's length does not converge (its range is unlimited, or `inttotal` is too short), or a
            parameter is unknown or not a number; nothing is changed then.
        UnknownNameError: the actuator does not exist.

    Source: MuJoCo mj_setLengthRange, plus the features that its compiler disables.
    """
    import mujoco

    check_model(model)
    options = _options(flag("uselimit", uselimit), parameters)
    if isinstance(actuators, str | int):
        actuators = [actuators]
    instance("actuators", actuators, Iterable | None, "a list of names and numbers, or None")
    chosen = _muscles(model) if actuators is None else [model.actuator(key).id for key in actuators]
    mj = model.edited_mujoco()
    mj.opt.disableflags |= int(OFF)
    if options.timestep > 0.0:
        mj.opt.timestep = options.timestep
    for i in map(int, chosen):
        try:
            with heard():
                mujoco.mj_setLengthRange(mj, mujoco.MjData(mj), i, options)
        except (mujoco.FatalError, RuntimeError, ValueError) as error:
            raise ModelError(f"set_length_range: actuator {model.actuator(i).name!r}: {error}") from None
    model.actuator_lengthrange[...] = mj.actuator_lengthrange
