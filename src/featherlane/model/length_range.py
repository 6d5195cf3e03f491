"""Lengths that actuators can take, found anew after edits: muscles measure their own length by them.

MuJoCo's compiler finds them by simulation, and so does mj_setLengthRange, which is called here: each actuator is drawn
to its shortest and to its longest, in damped motion from qpos0, without contacts, gravity, passive forces, friction
loss and other actuators, so that joint limits, tendon limits and geometry alone end the way.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.arguments import LARGEST, bounded, instance, one_of
from featherlane.model.assignment import flag
from featherlane.model.enums import LRMODE_ALL, Disable
from featherlane.model.model import Model, check_model
from featherlane.model.reader import heard

# what the compiler switches off while it looks
OFF = Disable.CONTACT | Disable.GRAVITY | Disable.SPRING | Disable.DAMPER | Disable.FRICTIONLOSS | Disable.ACTUATION
PARAMETERS = "accel maxforce timeconst timestep inttotal interval tolrange".split()  # of mjLROpt


def _options(uselimit: bool, parameters: dict[str, float]):
    """MjLROpt that looks at whatever actuator it is given."""
    import mujoco

    options = mujoco.MjLROpt()
    mujoco.mj_defaultLROpt(options)
    options.mode, options.useexisting, options.uselimit = LRMODE_ALL, 0, int(bool(uselimit))
    for name, value in parameters.items():
        one_of("set_length_range", name, PARAMETERS)
        setattr(options, name, bounded(f"set_length_range: {name}", value, 0.0, LARGEST))
    return options


def _muscles(model: Model) -> np.ndarray:
    """Actuators whose gain or bias is a muscle's."""
    import mujoco

    gain, bias = mujoco.mjtGain.mjGAIN_MUSCLE, mujoco.mjtBias.mjBIAS_MUSCLE
    return np.flatnonzero((model.actuator_gaintype == gain) | (model.actuator_biastype == bias))


def set_length_range(
    model: Model, actuators: Iterable[str | int] | None = None, *, uselimit: bool = False, **parameters: float
) -> None:
    """Find `actuator_lengthrange` anew, after edits of what a muscle's path depends on.

    Args:
        model: the model; its `actuator_lengthrange` is written, and nothing else.
        actuators: names or numbers; None: all muscles.
        uselimit: an actuator of a limited joint or tendon takes over that limit, without gear and simulation.
        parameters: of the simulation, as the compiler's element `lengthrange` has them: `accel` [m/s^2, rad/s^2] norm
            of the acceleration by which an actuator is drawn, `maxforce` [N] the most it is drawn with (0: any),
            `timeconst` [s] of the damping, `timestep` [s] (0: the model's), `inttotal` [s] duration, `interval` [s] at
            its end over which the length has to stay within `tolrange` of the range.

    Raises:
        ModelError: an actuator's length does not settle, so that its range is unlimited or `inttotal` too short; a
            parameter is unknown or no number; nothing is changed then.
        UnknownNameError: no such actuator.

    Source: MuJoCo mj_setLengthRange, with what its compiler switches off beside it.
    """
    import mujoco

    check_model(model)
    options = _options(flag("uselimit", uselimit), parameters)
    if isinstance(actuators, str | int):
        actuators = [actuators]
    instance("actuators", actuators, Iterable | None, "a list of names and numbers, or None")
    chosen = _muscles(model) if actuators is None else [model.actuator(key).id for key in actuators]
    mj = model.to_mujoco()
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
