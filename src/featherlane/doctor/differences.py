"""What differs from MuJoCo, or from the text that was read."""

from __future__ import annotations

from collections.abc import Iterator

from featherlane.doctor.finding import ERROR, NOTE, WARNING, Sign
from featherlane.doctor.patient import Patient
from featherlane.doctor.registry import check
from featherlane.model.enums import Disable, Enable


@check("not-computed", ERROR, "Featherlane would leave it out, so it refuses the model")
def not_computed(patient: Patient) -> Iterator[Sign]:
    """Features that would change the motion and are not computed, each by name; nothing else is looked at then."""
    del patient  # a model that loads has none
    yield from ()


@check("impossible-number", ERROR, "every call that computes something refuses the model")
def impossible_number(patient: Patient) -> Iterator[Sign]:
    """A number of an edited model that its field cannot hold; nothing else is looked at then."""
    del patient  # one that can be computed has none
    yield from ()


@check("numbers-overflow", WARNING, "nothing is known of what the check looks for, and steps may turn bad")
def numbers_overflow(patient: Patient) -> Iterator[Sign]:
    """A check that ends early because its own numbers exceed float64: a time step, stiffness or mass near 1e300."""
    del patient  # `diagnose` reports it of the other checks
    yield from ()


@check("function-missing", ERROR, "every call that computes forces of actuators refuses the model")
def function_missing(patient: Patient) -> Iterator[Sign]:
    """An actuator of the type `user` for which no function is registered; nothing else is looked at then."""
    del patient  # one that can be computed has none
    yield from ()


@check("urdf-dropped", WARNING, "the motion is without it")
def dropped(patient: Patient) -> Iterator[Sign]:
    """What a URDF says and MuJoCo's reader drops without a word."""
    for element in patient.original.dropped:
        yield Sign("model", -1, f"not read: {element}", "say it in MJCF, or in an MjSpec")


@check("urdf-fused", NOTE, "there is no body of this name to read a position from, or to put a sensor on")
def fused(patient: Patient) -> Iterator[Sign]:
    """A link of a URDF that a fixed joint merges into the body that carries it, such as a tool frame."""
    for link in patient.original.fused:
        advice = '<mujoco><compiler fusestatic="false"/></mujoco> in the robot, or a site in an MjSpec'
        yield Sign("model", -1, f"link {link!r} is part of the body that carries it", advice)


@check("option-unused", NOTE, "it steers MuJoCo's own search for contacts of convex shapes, and changes nothing here")
def unused(patient: Patient) -> Iterator[Sign]:
    """`ccd_tolerance` or `ccd_iterations` other than MuJoCo's defaults."""
    import mujoco

    given, default = patient.model.mj_model.opt, mujoco.MjOption()
    for name in ("ccd_tolerance", "ccd_iterations"):
        value = getattr(given, name)
        if value != getattr(default, name):
            yield Sign("option", name, f"{value:g}", "nothing: contacts are found to rounding")


@check("sleep", NOTE, "a tree that sleeps shows no acceleration and no forces, where MuJoCo shows its last ones")
def sleep(patient: Patient) -> Iterator[Sign]:
    """The flag `sleep`; docs/migration.md lists what differs.  The doctor looks at the model awake."""
    if patient.original.opt_enableflags & Enable.SLEEP:
        yield Sign("option", "sleep", "is on", "nothing, if no code reads forces of bodies at rest")


@check("autoreset-off", NOTE, "a world whose numbers turn bad stays bad, and counts one bad number a step")
def autoreset(patient: Patient) -> Iterator[Sign]:
    """The flag `autoreset` is off."""
    if patient.model.opt_disableflags & Disable.AUTORESET:
        yield Sign("option", "autoreset", "is off", "reset such worlds by batch.status, or switch it on")
