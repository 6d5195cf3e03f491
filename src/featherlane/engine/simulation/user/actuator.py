"""Registers user callbacks for activation, gain and bias of actuators of the type `user`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from featherlane.engine.model.actuators import USER_TYPES
from featherlane.engine.model.assignment import value_entries
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.tile.calls import KINDS
from featherlane.engine.simulation.user.function import UserFunction
from featherlane.engine.simulation.user.roles import find_role
from featherlane.engine.simulation.user.trial import try_function
from featherlane.errors import ModelError


def set_user_actuator(
    model: Model,
    actuators: str | int | Iterable[str | int] | None = None,
    *,
    activation: Callable[..., Any] | None = None,
    gain: Callable[..., Any] | None = None,
    bias: Callable[..., Any] | None = None,
) -> None:
    """Registers the functions that compute activation, gain and bias of actuators of the type `user`.

    The force is gain times control (or times the last activation, if there is one) plus bias.  Each function takes
    the model's record, the world's record and the actuator's number, and returns a number.  `activation` returns the
    rate, or a tuple of rates if the actuator has several activations.  Functions must not write to the records.

        @featherlane.kernel
        def gain(m, d, i):
            return m.actuator_gainprm[i][0] * lanes.exp(-d.actuator_length[m.actuator_outadr[i]])

        fl.set_user_actuator(model, "muscle", gain=gain)

    A kernel is compiled for each width and precision; it uses the functions of `featherlane.lanes`, which work on one
    value per world.  A function without the decorator is plain Python, is called for one world after the other, and
    may use any Python code.  Both read fields by MuJoCo's names: `m.field[i]` is the row of an object if the field has
    a row type; else element k of row i of a field (n, c) is `m.field[c * i + k]`.  Of the world they can read the
    state, the inputs and the fields that depend on positions and velocities; `d.actuator_input` holds the controls in
    effect, delayed and clamped.

    Args:
        model: the model.
        actuators: names or numbers; None for all that have a type `user` for which a function is given.
        activation: rate of the activations [1/s], for `dyntype="user"`.
        gain: for `gaintype="user"` [N, N m].
        bias: for `biastype="user"` [N, N m].

    Raises:
        UnknownNameError: an unknown actuator.
        ModelError: an actuator has another type; a function has other parameters, uses names that cannot be compiled,
            cannot be compiled, fails in a trial call in qpos0, or returns a non-finite or non-numeric value there.
            Nothing is registered then.
        InstallationError: a kernel is given and no compiler is installed.

    Source: MuJoCo mjcb_act_dyn, mjcb_act_gain, mjcb_act_bias.  Deviation: a missing function is an error, and
        several activations are returned as a tuple and not written to act_dot.
    Note:   Integrators that are implicit in velocities treat these functions as constant in length and velocity, as
        MuJoCo does.  Copies of the model keep its functions.  Pickles store their names, so they must be importable.
        Results are bitwise identical for every width only if the functions' results are.
    """
    check_model(model)
    given = {k: f for k, f in zip(KINDS, (activation, gain, bias), strict=True) if f is not None}
    if not given:
        raise ModelError("set_user_actuator: got no function, allowed are activation, gain and bias")
    found = {}
    for kind, function in given.items():
        for i in _chosen(model, actuators, kind):
            name = model.names("actuator")[i]
            label = f"actuator {name!r}: {kind}" if name else f"actuator #{i}: {kind}"
            number = int(model.actuator_actnum[i]) if kind == "activation" else 1
            found[i, kind] = UserFunction(find_role(kind), label, function, i, number)
    for function in found.values():
        try_function(model, function)
    for function in found.values():
        if function.is_compiled:
            function.check_compiled()
    model.user_actuators.update(found)
    model.renew()


def _chosen(model: Model, actuators, kind: str) -> list[int]:
    """Returns the numbers of the selected actuators, checked to have a type `user` of this kind."""
    field, user = USER_TYPES[kind]
    types = getattr(model, f"actuator_{field}")
    if actuators is None:
        everyone = [i for i in range(model.nactuator) if types[i] == user]
        if not everyone:
            raise ModelError(f"set_user_actuator: got a function for {kind}, but no actuator has {field} user")
        return everyone
    several = (actuators,) if isinstance(actuators, int) else actuators
    numbers = []
    for key in value_entries("actuators", several, "are names and numbers, or None"):
        numbers.append(model.actuator(key).id)
        if types[numbers[-1]] != user:
            raise ModelError(f"actuator {key!r}: got a function for {kind}, allowed only with {field} user")
    return numbers
