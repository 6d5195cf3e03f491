"""Drops one term of the derivatives at a time, uncompiled: `FEATHERLANE_MODE=python python dropped_terms.py FILE`.

FILE has the model's text, its state, and A and B by differences of steps.  Prints, as JSON, the error of the
analytic derivatives relative to these, with all terms and without each term.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator

import numpy as np

import featherlane as fl
from featherlane.engine.spatial.types import Vec3
from featherlane.tools.sensitivity.columns import formulas
from featherlane.tools.sensitivity.rates import contact_curvature, contact_rates, dof_rates, smooth_rates, tendon_rates
from featherlane.tools.sensitivity.systems import differences, panel, tangent
from featherlane.tools.sensitivity.systems import formulas as preparation


def nothing(*arguments, **named) -> None:
    """Contributes nothing, in place of a term."""


def at_rest(whole: Callable) -> Callable:
    """Changes motions as if all accelerations were 0: the mass matrix is constant."""

    def outward_pass(m, d, t, x):
        kept = [d.qacc[i].copy() for i in range(m.nv)]
        for i in range(m.nv):
            d.qacc[i] = 0.0 * kept[i]
        whole(m, d, t, x)
        for i in range(m.nv):
            d.qacc[i] = kept[i]

    return outward_pass


def without(part: int) -> Callable[[Callable], Callable]:
    """Returns a contact's motion without its distance (0), its point (1) or the rotation of its frame (2)."""

    def change(whole: Callable) -> Callable:
        def moved_by(*arguments, **named):
            found = list(whole(*arguments, **named))
            found[part] = 0.0 * found[part]
            return tuple(found)

        return moved_by

    return change


def stiff(whole: Callable) -> Callable:
    """Returns an impedance that does not depend on the distance."""

    def impedance_slopes(*arguments, **named):
        stiffer, pull, B = whole(*arguments, **named)
        return 0.0 * stiffer, pull, B

    return impedance_slopes


def uncoupled(whole: Callable) -> Callable:
    """Returns friction whose limit does not depend on the normal force."""

    def cone_weights(m, d, k):
        (w, e, q, b), inverse = whole(m, d, k)
        return (w, 0.0 * e, q, b), inverse

    return cone_weights


def flat(whole: Callable) -> Callable:
    """Integrates positions as plain vectors, ignoring quaternions."""

    def quaternion_tangent(m, r):
        unit = Vec3(1.0, 0.0, 0.0), Vec3(0.0, 1.0, 0.0), Vec3(0.0, 0.0, 1.0)
        return unit, unit

    return quaternion_tangent


def constant(whole: Callable) -> Callable:
    """Returns a force law and its derivative that are 0."""
    return lambda m, d, i: (0.0, 0.0)


def kept(whole: Callable) -> Callable:
    """Treats every axis as fixed: no dof rotates another one's axis."""
    return lambda m, j, k: 0


# name of the term -> module, name of the kernel in it, its replacement
TERMS: dict[str, tuple[object, str, Callable[[Callable], Callable]]] = {
    "mass matrix": (preparation, "outward_pass", at_rest),
    "Coriolis": (formulas, "velocity_column", lambda whole: nothing),
    "axes of a ball": (smooth_rates, "shares_quaternion", kept),
    "gravity compensation": (formulas, "subtract_lift", lambda whole: nothing),
    "distance": (contact_rates, "moved_by", without(0)),
    "point": (contact_rates, "moved_by", without(1)),
    "turning frame": (contact_rates, "moved_by", without(2)),
    "impedance": (contact_rates, "impedance_slopes", stiff),
    "impedance of a limit": (dof_rates, "impedance_slopes", stiff),
    "friction's limit": (contact_curvature, "cone_weights", uncoupled),
    "damping at contacts": (formulas, "add_velocity_column", lambda whole: nothing),
    "springs": (dof_rates, "_joint_spring", constant),
    "dampers": (dof_rates, "_joint_damper", constant),
    "motors": (dof_rates, "_add_motors", lambda whole: nothing),
    "tendons": (tendon_rates, "_add_tendons", lambda whole: nothing),
    "controls": (formulas, "control_rates", lambda whole: nothing),
    "damping of the integrator": (panel, "is_implicit", lambda whole: lambda m: False),
    "rate of that damping": (formulas, "is_implicit", lambda whole: lambda m: False),
    "tangent of rotations": (tangent, "quaternion_tangent", flat),
    "equalities": (tendon_rates, "_add_rows", lambda whole: nothing),
    "bending tendons": (tendon_rates, "_add_dJ_of_tendon", lambda whole: nothing),
    "fastenings": (formulas, "add_fastenings", lambda whole: nothing),
    "fluid": (formulas, "subtract_fluid_velocity", lambda whole: nothing),
    "turning in a fluid": (formulas, "subtract_fluid_position", lambda whole: nothing),
    "what the integrator takes off": (differences, "_set_correction", lambda whole: nothing),
}


@contextlib.contextmanager
def left_out(term: str) -> Iterator[None]:
    """Removes that term."""
    module, name, change = TERMS[term]
    whole = getattr(module, name)
    setattr(module, name, change(whole))
    try:
        yield
    finally:
        setattr(module, name, whole)


def errors(text: str, state: np.ndarray, A: np.ndarray, B: np.ndarray) -> dict[str, float]:
    """Returns errors relative to the largest entries of A, B, without each term of the model, and with all."""

    def error() -> float:
        model = fl.load(text)
        data = fl.Data(model)
        fl.set_state(model, data, state, fl.State.INTEGRATION)
        found = fl.linearize(model, data, nthread=1)
        return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in ((found.A, A), (found.B, B)))

    out = {"nothing": error()}
    for term in TERMS:
        with left_out(term):
            out[term] = error()
    return out


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    print(json.dumps(errors(str(given["text"]), given["state"], given["A"], given["B"])))
