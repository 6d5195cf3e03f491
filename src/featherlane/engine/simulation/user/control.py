"""Prepares a control kernel: a user callback that sets controls within each step of a rollout."""

from __future__ import annotations

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.user.roles import CONTROL
from featherlane.engine.simulation.user.trial import try_function


def control_function(model: Model, control: Kernel) -> UserFunction:
    """Returns the kernel `control(m, d)` as a user function, checked.

    Raises:
        ModelError: other parameters, a failure in a trial call, code that cannot be compiled.
        InstallationError: no compiler is installed.
    """
    function = UserFunction(CONTROL, f"control {control.function.__name__}", control, 0, 0)
    try_function(model, function)
    function.check_compiled()
    return function
