"""Checks for differences from MuJoCo, or from the source text."""

from __future__ import annotations

from collections.abc import Iterator

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import ERROR, NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import Disable, Enable


@check("not-computed", ERROR, "the simulation would ignore the feature, so the model is rejected")
def unsupported_features(examined: ExaminedModel) -> Iterator[Sign]:
    """Lists unsupported features that would change the motion.  No other check runs then."""
    return iter(())  # a loaded model has no unsupported feature


@check("impossible-number", ERROR, "every call that computes something raises an error")
def impossible_number(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds an out-of-range value in an edited model.  No other check runs then."""
    return iter(())  # a valid model has none


@check("numbers-overflow", WARNING, "the check has no result, and a step may produce a non-finite state")
def numbers_overflow(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds values near 1e300 (time step, stiffness, mass) that overflow float64 in a check."""
    return iter(())  # `diagnose` reports overflow in the other checks


@check("function-missing", ERROR, "every call that computes actuator forces raises an error")
def function_missing(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds actuators of type `user` without a registered function.  No other check runs then."""
    return iter(())  # a valid model has none


@check("urdf-dropped", WARNING, "the simulated model does not contain the element")
def dropped(examined: ExaminedModel) -> Iterator[Sign]:
    """Lists URDF elements that MuJoCo's reader ignores without a warning."""
    for element in examined.original.dropped:
        yield Sign("model", -1, f"ignored: {element}", "define it in MJCF, or in an MjSpec")


@check("urdf-repaired", WARNING, "the simulated model has other values than the file")
def repaired(examined: ExaminedModel) -> Iterator[Sign]:
    """Lists invalid elements that `load(..., repair=True)` repaired."""
    for line in examined.original.repairs:
        yield Sign("model", -1, f"repaired: {line}", "correct the file")


@check("urdf-fused", NOTE, "no body has this name, so its position cannot be read, and no sensor can be attached")
def fused(examined: ExaminedModel) -> Iterator[Sign]:
    """Lists URDF links that a fixed joint merges into their parent body, such as a tool frame."""
    for link in examined.original.fused:
        advice = 'add <mujoco><compiler fusestatic="false"/></mujoco> to the robot, or a site in an MjSpec'
        yield Sign("model", -1, f"link {link!r} is merged into its parent body", advice)


@check("option-unused", NOTE, "the option controls MuJoCo's convex collision algorithm and has no effect here")
def unused(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds `ccd_iterations`, or `ccd_tolerance` without the flag `speculative`, other than MuJoCo's defaults."""
    import mujoco

    given, default = examined.model.mj_model.opt, mujoco.MjOption()
    swept = examined.model.opt.enableflags & Enable.SPECULATIVE
    for name in ("ccd_iterations",) if swept else ("ccd_tolerance", "ccd_iterations"):
        value = getattr(given, name)
        if value != getattr(default, name):
            advice = "no change is necessary: contacts are computed to rounding accuracy"
            yield Sign("option", name, f"{value:g}", advice)


@check("sleep", NOTE, "a sleeping tree has zero acceleration and force; MuJoCo keeps the last values")
def sleep(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds the flag `sleep`; docs/migration.md lists the differences.  The checks run with all trees awake."""
    if examined.original.opt_enableflags & Enable.SLEEP:
        advice = "no change is necessary unless your code reads forces of sleeping bodies"
        yield Sign("option", "sleep", "is enabled", advice)


@check("autoreset-off", NOTE, "a world with a non-finite state is not reset and is counted in every step")
def autoreset(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds the flag `autoreset` disabled."""
    if examined.model.opt_disableflags & Disable.AUTORESET:
        advice = "reset these worlds yourself (batch.status lists them), or enable the flag"
        yield Sign("option", "autoreset", "is disabled", advice)
