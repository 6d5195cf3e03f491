"""A control kernel: a function of the user that sets controls within each step of a rollout."""

from __future__ import annotations

from ..lanes import Kernel
from ..model.model import Model
from .user_function import UserFunction
from .user_roles import CONTROL
from .user_trial import try_function


def control_function(model: Model, control: Kernel) -> UserFunction:
    """The kernel `control(m, d)`, checked.

    Raises:
        ModelError: other parameters, a failure in a trial call, what cannot be compiled.
        InstallationError: there is no compiler.
    """
    function = UserFunction(CONTROL, f"control {control.function.__name__}", control, 0, 0)
    try_function(model, function)
    function.check_compiled()
    return function
