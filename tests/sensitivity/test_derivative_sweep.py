"""Derivatives of real robots' steps against Richardson extrapolation of differences of steps, at tolerance 0.

Differences are less accurate: if a contact's impedance bends within their range, or an active set changes, two
extrapolations of different range disagree, and such a state is not used.
"""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from robots import wheels
from robots.models import ROBOTS
from sensitivity.test_transition import exact, relative

EXACT = 1e-6  # of derivatives with contacts
SMOOTH = 1e-8  # without
# under discrete the whole residual is differenced; rk4 divides the error of force differences by a short step
DIFFERENCED = {("discrete", EXACT): 2e-5, ("discrete", SMOOTH): 3e-8, ("rk4", SMOOTH): 3e-8}
APART = 1e-7  # largest disagreement of usable extrapolations
AWAY = 1e-3  # distance from switches
STATES = 12  # states tried until one is usable
INTEGRATORS, CONES = ("euler", "implicit", "implicitfast", "discrete", "rk4"), ("pyramidal", "elliptic")
BUNDLED = "humanoid quadruped quadruped_elliptic arm cartpole double_pendulum hand slider_crank rope".split()
SAMPLE = "gymnasium/ant dm_control/walker dm_control/fish dm_control/dog metaworld/sawyer_xyz/sawyer_dial".split()


def extrapolated(model, data, eps: float) -> list[np.ndarray]:
    """A and B by differences over 2 eps and eps, less the error that they share."""
    coarse, fine = (fl.linearize(model, data, eps=e, method="finite_difference")[:2] for e in (2 * eps, eps))
    return [(4.0 * b - a) / 3.0 for a, b in zip(coarse, fine, strict=True)]


def long_ways(model, data, eps: float) -> list[np.ndarray]:
    """A and B by differences over eps, 2 eps and 3 eps, less the errors of their second and fourth order."""
    three = (fl.linearize(model, data, eps=k * eps, method="finite_difference")[:2] for k in (1, 2, 3))
    return [1.5 * a - 0.6 * b + 0.1 * c for a, b, c in zip(*three, strict=True)]


def error(model, data, eps: float, reference=extrapolated) -> tuple[float, float] | None:
    """(that of the derivatives, how far two references are apart); None near a switch."""
    found = fl.linearize(model, data)
    if not found.switching > AWAY:
        return None
    near, far = reference(model, data, eps), reference(model, data, (3.0 if reference is extrapolated else 2.0) * eps)
    apart = max(relative(a, b) for a, b in zip(near, far, strict=True) if a.size)
    return max(relative(a, b) for a, b in zip(found[:2], near, strict=True) if a.size), apart


def told(model: fl.Model, rng) -> float | None:
    """Returns the error at the first usable state of a motion."""
    data = fl.Data(model)
    data.ctrl = 0.1 * rng.uniform(-1, 1, model.nu)
    data.qvel = 0.05 * rng.normal(size=model.nv)
    for _ in range(STATES):
        fl.step(model, data, 12)
        both = error(model, data, 1e-6)
        if both is not None and both[1] < APART:
            return both[0]
    return None


def told_smooth(model: fl.Model, rng) -> tuple[float, float] | None:
    """Calls `told` for steps without rows, with the difference of the references: longer ranges reduce rounding."""
    data, best = fl.Data(model), None
    data.ctrl = 0.1 * rng.uniform(-1, 1, model.nu)
    data.qvel = 0.05 * rng.normal(size=model.nv)
    for _ in range(STATES):
        fl.step(model, data, 12)
        for eps, reference in ((1e-3, long_ways), (1e-4, extrapolated)):
            both = error(model, data, eps, reference)
            if both is not None and both[1] < SMOOTH:
                return both
            if both is not None and (best is None or both[1] < best[1]):
                best = both
    return best if best is not None and best[1] < APART else None


def hard(path: str, friction: str) -> fl.Model:
    """Returns the model under the contact model lcp, slightly soft, so that resting contacts are not at a kink."""
    model = served(path)
    model.opt.noslip_iterations = 0  # lcp refuses the no-slip solver
    model.opt.integrator, model.opt.contact_model, model.opt.lcp_friction = "euler", "lcp", friction
    model.opt.cfm = 1e-4
    return model


def told_hard(model: fl.Model, rng) -> float | None:
    """Calls `told` for hard contacts: a gap change of e requires e / h^2, so differences must be short."""
    data = fl.Data(model)
    data.ctrl = 0.1 * rng.uniform(-1, 1, model.nu)
    data.qvel = 0.05 * rng.normal(size=model.nv)
    for _ in range(STATES):
        fl.step(model, data, 12)
        for eps in (3e-7, 3e-8):
            both = error(model, data, eps)
            if both is not None and both[1] < APART:
                return both[0]
    return None


def allowed(model: fl.Model, tolerance: float) -> float:
    """Returns the tolerance of a model's derivatives."""
    return DIFFERENCED.get((model.opt.integrator.name.lower(), tolerance), tolerance)


def served(path: str) -> fl.Model:
    """Returns the model with tolerance 0; sweeps of the no-slip solver end with their number."""
    model = exact(fl.load(resolve_name(path)))
    model.opt.noslip_tolerance = 0.0
    return model


def check(path: str, names: list[str], rng) -> None:
    """Checks all integrators and cones of a model."""
    model = served(path)
    if model.nv == 0:
        names.append("nothing moves")
        return
    for integrator, cone in ((i, c) for i in INTEGRATORS for c in CONES):
        model.opt.integrator, model.opt.cone = integrator, cone
        found = told(model, rng)
        if found is not None:
            names.append(f"{integrator} {cone}")
            assert found < allowed(model, EXACT), f"{integrator} {cone}: {found}"


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_robots(name, real_model, rng):
    model, some = served(str(real_model(name))), 0
    for cone in CONES:
        model.opt.cone = cone
        found = told(model, rng)
        if found is not None:
            assert found < EXACT
            some += 1
    assert some


def test_switches_of_a_nail_and_of_dry_friction_are_reported(real_model, rng):
    """The nail rests at its limit's margin, and slow joints at the bound of their dry friction.

    There differences over 1e-6 differ from the derivatives, those over 1e-8 do not.
    """
    model = served(str(real_model("gymnasium_robotics/assets/adroit_hand/adroit_hammer")))
    model.opt.noslip_iterations = 0
    data, deviate = fl.Data(model), 0
    data.ctrl = 0.1 * rng.uniform(-1, 1, model.nu)
    data.qvel = 0.05 * rng.normal(size=model.nv)
    for _ in range(STATES):
        fl.step(model, data, 12)
        found = fl.linearize(model, data)
        near, far = (fl.linearize(model, data, eps=e, method="finite_difference").A for e in (1e-8, 1e-6))
        assert relative(found.A, near) < EXACT
        if relative(found.A, far) > 1e-3:
            deviate += 1
            assert found.switching < AWAY
    assert deviate


@pytest.mark.slow
@pytest.mark.parametrize("name", (*BUNDLED, *wheels.GYMNASIUM_MODELS, *wheels.DM_CONTROL_MODELS))
def test_models_of_gymnasium_and_dm_control(name, real_model, rng):
    seen: list[str] = []
    check(str(real_model(name)) if "/" in name else name, seen, rng)
    assert seen or name == "gymnasium/point"  # its ball touches the ground permanently, at depth 0


@pytest.mark.slow
@pytest.mark.parametrize("friction", ["frozen", "consistent"])
@pytest.mark.parametrize("name", (*BUNDLED, *wheels.GYMNASIUM_MODELS, *wheels.DM_CONTROL_MODELS))
def test_hard_contacts_of_gymnasium_and_dm_control(name, friction, real_model, rng):
    model = hard(str(real_model(name)) if "/" in name else name, friction)
    if model.nv and (found := told_hard(model, rng)) is not None:
        assert found < EXACT


@pytest.mark.slow
@pytest.mark.parametrize("wheel", ROBOTS)
def test_robots_of_all_wheels(wheel, real_model, rng):
    """Uses one integrator and one cone per model, in turn."""
    real_model(f"{wheel}/")
    told_of, bad = 0, {}
    for k, name in enumerate(wheels.models_in(wheel)):
        try:
            model = served(str(wheels.model_path(name)))
        except (fl.ModelError, fl.UnsupportedFeatureError):
            continue
        if model.nv:
            model.opt.integrator, model.opt.cone = INTEGRATORS[k % 5], CONES[k % 2]
            found = told(model, rng)
            told_of += found is not None
            if found is not None and not found < allowed(model, EXACT):
                bad[name] = INTEGRATORS[k % 5], CONES[k % 2], found
    assert not bad
    assert told_of > (2 if wheel == "gym_aloha" else 10)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", (*BUNDLED, *wheels.GYMNASIUM_MODELS, *wheels.DM_CONTROL_MODELS))
def test_without_constraints_they_are_exact_to_eight_digits(name, integrator, real_model, rng):
    model = exact(fl.load(resolve_name(str(real_model(name)) if "/" in name else name)))
    model.opt.disableflags, model.opt.integrator = "constraint", integrator
    if model.nv and (found := told_smooth(model, rng)) is not None:
        assert found[0] < allowed(model, SMOOTH), f"references are {found[1]:.1e} apart"
