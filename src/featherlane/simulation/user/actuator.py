"""Actuators of the type `user`: functions for activation, gain and bias."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from featherlane.errors import ModelError
from featherlane.model.assignment import entries
from featherlane.model.model import Model, check_model
from featherlane.simulation.tile.calls import KINDS, TYPES
from featherlane.simulation.user.function import UserFunction
from featherlane.simulation.user.roles import named
from featherlane.simulation.user.trial import try_function


def set_user_actuator(
    model: Model,
    actuators: str | int | Iterable[str | int] | None = None,
    *,
    activation: Callable | None = None,
    gain: Callable | None = None,
    bias: Callable | None = None,
) -> None:
    """Say how activation, gain and bias of actuators of the type `user` are computed.

    The force is gain times control, or times the last activation where there is one, plus bias.  Each function takes
    the model's record, the world's record and the actuator's number, and gives a number; `activation` gives the rate,
    a tuple of rates where the actuator has several activations.  Functions must not write to the records.

        @featherlane.kernel
        def gain(m, d, i):
            return m.actuator_gainprm[10 * i] * lanes.exp(-d.actuator_length[m.actuator_outadr[i]])

        fl.set_user_actuator(model, "muscle", gain=gain)

    A kernel is compiled for each width and precision; it is written over values, with the functions of
    `featherlane.lanes`.  A function without the decorator is plain Python, called for one world after the other, and
    may do what it likes with the numbers it reads.  Both read flat fields by MuJoCo's names: number k of row i of a
    field (n, c) is `m.field[c * i + k]`.  Of the world they read the state, the inputs and what follows from positions
    and velocities; `d.actuator_input` are the controls that act, delayed and clamped.

    Args:
        model: the model.
        actuators: names or numbers; None for all that have a type `user` for which a function is given.
        activation: rate of the activations [1/s], for `dyntype="user"`.
        gain: for `gaintype="user"` [N, N m].
        bias: for `biastype="user"` [N, N m].

    Raises:
        UnknownNameError: no such actuator.
        ModelError: an actuator has another type; a function has other parameters, refers to what cannot be compiled,
            cannot be compiled, fails in a trial call in qpos0, or gives there what is no finite number.  Nothing is
            registered then.
        InstallationError: a kernel is given and there is no compiler.

    Source: MuJoCo mjcb_act_dyn, mjcb_act_gain, mjcb_act_bias.  Deviation: a function that is missing is an error, and
        several activations are given as a tuple and not written to act_dot.
    Note:   integrators that are implicit in velocities take these functions for constant in length and velocity, as
        MuJoCo does.  Copies of the model keep its functions; pickles name them, so they must be found by their names.
        Whatever the width, a world's bits are its own as long as the functions give equal bits: the engine's promise
        ends where they begin.
    """
    check_model(model)
    given = {k: f for k, f in zip(KINDS, (activation, gain, bias), strict=True) if f is not None}
    if not given:
        raise ModelError("set_user_actuator: no function is given, allowed are activation, gain and bias")
    found = {}
    for kind, function in given.items():
        for i in _chosen(model, actuators, kind):
            name = model.names("actuator")[i]
            label = f"actuator {name!r}: {kind}" if name else f"actuator #{i}: {kind}"
            number = int(model.actuator_actnum[i]) if kind == "activation" else 1
            found[i, kind] = UserFunction(named(kind), label, function, i, number)
    for function in found.values():
        try_function(model, function)
    for function in found.values():
        if function.is_compiled:
            function.check_compiled()
    model.user_actuators.update(found)
    model.__dict__["revision"] += 1


def _chosen(model: Model, actuators, kind: str) -> list[int]:
    """Numbers of the actuators that are meant; of a kind that is the user's."""
    field, user = TYPES[kind]
    types = getattr(model, f"actuator_{field}")
    if actuators is None:
        everyone = [i for i in range(model.nactuator) if types[i] == user]
        if not everyone:
            raise ModelError(f"set_user_actuator: a function for {kind} is given, and no actuator has {field} user")
        return everyone
    several = (actuators,) if isinstance(actuators, int) else actuators
    numbers = []
    for key in entries("actuators", several, "are names and numbers, or None"):
        numbers.append(model.actuator(key).id)
        if types[numbers[-1]] != user:
            raise ModelError(f"actuator {key!r}: a function for {kind} is given; allowed with {field} user alone")
    return numbers
