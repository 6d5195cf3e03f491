"""Checks springs, dampers and gains against the inertia that they move and the time step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel, Start
from featherlane.apps.doctor.finding import ERROR, NOTE, WARNING, Sign
from featherlane.apps.doctor.modes import Mode, System, actuator_moments, servo_rates, systems, terms
from featherlane.apps.doctor.predictions import REFUTED, is_refuted, push_along
from featherlane.apps.doctor.registry import check
from featherlane.apps.doctor.remedies import set_options
from featherlane.enums import GAIN_FIXED, GAIN_PID
from featherlane.errors import FeatherlaneError

GROWS = 1e-3  # growth per step in excess of the continuous system
COARSE = 1.0  # rad of a period per step: about six steps per period
ALIKE = 0.1  # relative: a mode that the rows of equalities have without springs and dampers
HALVINGS = 8  # of the suggested time step, until it is stable
RINGS = 0.1  # damping ratio below which a servo oscillates three times or more


@check("step-unstable", ERROR, "each step amplifies the motion until the state is non-finite or a limit acts")
def unstable_modes(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds modes of springs, dampers and servos that a step amplifies by a factor above 1.001 though the continuous
    system decays: explicit springs with h w > 2, explicit dampers with h d / I > 2.  The inertia is that of the whole
    tree and of trees that active equalities join to it.  The advised integrator is one whose step has no such mode.  It
    is a note if a push along the mode decays in a trial."""
    worst = _amplified(examined)
    for (kind, ident), (start, system, mode) in worst.items():
        inertia, omega, rate = _alone(examined, start, system, mode)
        seen = (
            f"each step multiplies a mode by {mode.factor:.3g} at {start.name}, with a share of "
            f"{mode.share:.0%} from this element; alone "
        )
        seen += f"it has h w = {examined.h * omega:.3g}, h d / I = {examined.h * rate:.3g} with I = {inertia:.3g}"
        term = next(t for t in terms(examined, start) if (t.kind, t.id) == (kind, ident))
        refuted = is_refuted(examined, start, push_along(start, term.J), mode.factor)
        seen += REFUTED + start.name if refuted else ""
        yield Sign(kind, ident, seen, _remedy(examined, system, mode, rate > omega), NOTE if refuted else "")


def _amplified(examined: ExaminedModel, loaded: bool = False) -> dict[tuple[str, int], tuple[Start, System, Mode]]:
    """Returns the most amplified mode of each element, except in loops whose rows alone amplify the motion.

    loaded: whether to include loops under a load, at the full impedance of their rows.
    """
    worst: dict[tuple[str, int], tuple[Start, System, Mode]] = {}
    for start, system in systems(examined, loaded):
        limit = np.exp(examined.h * max(0.0, np.real(system.roots).max())) * (1 + GROWS)
        if system.factors.max() <= limit:
            continue
        if len(system.loops.D) and replace(system, terms=[]).factors.max() > limit:
            continue  # the rows alone: `row-unstable` reports them
        for mode in system.discrete_modes():
            key = mode.term.kind, mode.term.id
            known = worst[key][2].factor if key in worst else limit
            if mode.factor > known:
                worst[key] = start, system, mode
    return worst


def _alone(examined: ExaminedModel, start: Start, system: System, mode: Mode) -> tuple[float, float, float]:
    """Computes (effective inertia, natural frequency [rad/s], decay rate [1/s]) along the main term of a mode."""
    term, G = mode.term, system.loops.G
    inertia = system.M + (G.T * system.loops.D) @ G  # of the tree and, by their rows, of trees that equalities join
    inverse = float(term.J @ np.linalg.solve(inertia, term.J))
    return 1 / inverse, float(np.sqrt(abs(term.k) * inverse)), term.d * inverse


def _remedy(examined: ExaminedModel, system: System, mode: Mode, by_damper: bool) -> str:
    """Suggests a smaller step, a smaller coefficient, or an integrator that stabilizes the element's modes.

    A damper of rate r has the factor h r - 1, so that h / (1 + factor) is 1 / r, far below the limit of springs.
    """
    what = {"joint": "stiffness", "tendon": "stiffness", "actuator": "kp"}[mode.term.kind]
    if by_damper:
        what = "kv" if mode.term.kind == "actuator" else "damping"
    advice = f"use a timestep of at most {_stable_step(examined, mode):.2g} s, or a smaller {what}, or more armature"
    fast, implicit = "implicitfast", "discrete"
    # the rows of equalities do not include the implicit damping of `implicitfast`
    candidates = (fast, implicit) if by_damper and not len(system.loops.D) else (implicit, fast)
    stable = next((name for name in candidates if _stabilizes(examined, mode, integrator=name)), None)
    return advice + (f', or integrator="{stable}"' if stable else "")


def _stable_step(examined: ExaminedModel, mode: Mode) -> float:
    """Returns a time step [s] at which the element has no amplified mode; 0 if the search finds none."""
    h = examined.h / (1 + mode.factor)
    for _ in range(HALVINGS):
        h = float(f"{h:.2g}")
        if _stabilizes(examined, mode, timestep=h):
            return h
        h /= 2
    return 0.0


def _stabilizes(examined: ExaminedModel, mode: Mode, **options: float | str) -> bool:
    """Returns whether the element has no amplified mode with other options; False if the model does not allow them."""
    try:
        changed = _amplified(examined.changed(partial(set_options, **options)), loaded=True)
        return (mode.term.kind, mode.term.id) not in changed
    except FeatherlaneError:
        return False


@check(
    "step-coarse", NOTE, "frequency and phase have errors of some per cent, and the amplitude depends on the time step"
)
def coarse(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds oscillating modes (damping ratio below 0.7) with h w above 1: fewer than six steps per period."""
    worst: dict[tuple[str, int], tuple[Start, Mode]] = {}
    for start, system in systems(examined):
        fast = np.abs(system.roots).max() * examined.h > COARSE
        of_rows = replace(system, terms=[]).roots if fast and len(system.loops.D) else np.zeros(0)
        for mode in system.continuous_modes() if fast else ():
            key, size = (mode.term.kind, mode.term.id), abs(mode.root)
            if (np.abs(of_rows - mode.root) < ALIKE * size).any():
                continue
            known = abs(worst[key][1].root) if key in worst else COARSE / examined.h
            if size > known and -mode.root.real < 0.7 * size and mode.root.imag != 0:
                worst[key] = start, mode
    for (kind, ident), (start, mode) in worst.items():
        size = abs(mode.root)
        seen = f"a mode of {size / (2 * np.pi):.3g} Hz at {start.name} has {2 * np.pi / (examined.h * size):.2g} "
        advice = f"use a timestep of at most {0.3 / size:.2g} s for 20 steps per period"
        yield Sign(kind, ident, f"{seen}steps per period", advice)


@check("servo-rings", NOTE, "the servo overshoots and oscillates unless a policy or a filter damps it")
def ringing(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds position servos with damping ratio d / (2 sqrt(k I)) below 0.1.  I and d act along the moment; joint and
    tendon damping count, dry friction does not."""
    m, start = examined.model, examined.start
    D = np.zeros((m.nv, m.nv))
    for term in terms(examined, start):
        D += term.d * np.outer(term.J, term.J)
    for i in range(m.nactuator):
        k, _ = servo_rates(examined, start, i)
        if k <= 0 or m.actuator_gaintype[i] not in (GAIN_FIXED, GAIN_PID):
            continue
        for a in actuator_moments(examined, start, i):
            x = examined.inverse_inertia @ a
            if a @ x > 0 and not _has_friction(examined, a):
                inertia, d = 1 / float(a @ x), float(x @ D @ x) / float(a @ x) ** 2
                ratio = d / (2 * np.sqrt(k * inertia))
                if ratio < RINGS:
                    seen = f"kp {k:.4g}, effective inertia {inertia:.3g}: damping ratio {ratio:.2g}"
                    yield Sign("actuator", i, seen, f"set dampratio=1, that is kv {2 * np.sqrt(k * inertia):.3g}")


def _has_friction(examined: ExaminedModel, a: np.ndarray) -> bool:
    """Returns whether dry friction acts on a DoF that the actuator moves."""
    return bool(examined.model.dof_frictionloss[np.flatnonzero(a)].any())


@check("rate-negative", WARNING, "the force drives the motion away from rest, so that the motion gains energy")
def negative(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds negative stiffness or damping of a joint, a tendon, or an actuator whose force grows with length or
    velocity."""
    m = examined.model
    for j in range(m.njnt):
        for name, value in (("stiffness", m.jnt_stiffness[j]), ("damping", m.dof_damping[m.jnt_dofadr[j]])):
            if value < 0:
                yield Sign("joint", j, f"{name} {value:g}", "use a value of at least 0")
    for t in range(m.ntendon):
        for name, value in (("stiffness", m.tendon_stiffness[t]), ("damping", m.tendon_damping[t])):
            if value < 0:
                yield Sign("tendon", t, f"{name} {value:g}", "use a value of at least 0")
    for i in range(m.nactuator):
        k, d = servo_rates(examined, examined.start, i)
        for name, value, slope in (("length", k, "biasprm[1]"), ("velocity", d, "biasprm[2]")):
            if value < 0:
                seen = f"its force grows with the {name}, by {-value:g}"
                yield Sign("actuator", i, seen, f"use a negative {slope}: -kp, -kv")
