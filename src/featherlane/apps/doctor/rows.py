"""Checks the stiffness of constraint rows against the time step.

A row at full impedance makes its error r obey r'' = -B r' - K r, independent of the masses:

    solref = (T, z) > 0:   B = 2 / T,  K = 1 / (T z)^2          solref < 0:   K = -solref[0],  B = -solref[1]

A step of semi-implicit Euler has the determinant 1 - h B and the trace 2 - h B - h^2 K; both roots lie in the unit
circle if 0 <= h B < 2 and h^2 K < 4 - 2 h B.  A step of Runge-Kutta is its polynomial at the roots of s^2 + B s + K.
`refsafe` raises T to at least 2 h.  The integrator `discrete` treats rows implicitly; rows of the LCP contact model
have ERP and CFM.
Source: MuJoCo, chapter Computation, "Reference"; Jury's criterion.
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.predictions import REFUTED, is_refuted, push_of_row
from featherlane.apps.doctor.registry import check
from featherlane.enums import Disable, Enable, Integrator

SAFE = 2.0  # smallest time constant that refsafe allows, in steps
DEFAULT_SOLREF = 0.02, 1.0  # replaces a solref whose two signs differ
SLACK = 1e-9  # relative to the step: time constants of exactly two steps are common

Row = tuple[str, int | str, str, np.ndarray, np.ndarray]  # kind, id, attribute, solref, solimp


def rows(examined: ExaminedModel) -> Iterator[Row]:
    """Yields elements that can have rows: colliding geoms, pairs, limits, friction losses, equalities."""
    m, off = examined.model, Disable(examined.model.opt_disableflags)
    geoms = np.unique(examined.pairs) if not m.opt_enableflags & Enable.OVERRIDE else []
    yield from (("geom", int(g), "solref", m.geom_solref[g], m.geom_solimp[g]) for g in geoms)
    if len(examined.pairs):
        yield from (("pair", p, "solref", m.pair_solref[p], m.pair_solimp[p]) for p in range(m.npair))
    if m.opt_enableflags & Enable.OVERRIDE and len(examined.pairs):
        yield "option", "o_solref", "o_solref", m.opt_o_solref, m.opt_o_solimp
    if Disable.CONSTRAINT in off:
        return
    limits, losses = Disable.LIMIT not in off, Disable.FRICTIONLOSS not in off
    for j in range(m.njnt):
        if limits and m.jnt_limited[j]:
            yield "joint", j, "solreflimit", m.jnt_solref[j], m.jnt_solimp[j]
        first = int(m.jnt_dofadr[j])  # all DoFs of a joint have the same friction loss
        if losses and m.dof_frictionloss[first]:
            yield "joint", j, "solreffriction", m.dof_solref[first], m.dof_solimp[first]
    for t in range(m.ntendon):
        if limits and m.tendon_limited[t]:
            yield "tendon", t, "solreflimit", m.tendon_solref_lim[t], m.tendon_solimp_lim[t]
        if losses and m.tendon_frictionloss[t]:
            yield "tendon", t, "solreffriction", m.tendon_solref_fri[t], m.tendon_solimp_fri[t]
    if Disable.EQUALITY not in off:
        yield from (("equality", e, "solref", m.eq_solref[e], m.eq_solimp[e]) for e in range(m.neq))


def _relevant(examined: ExaminedModel) -> Iterator[Row]:
    """Yields rows whose solref is stiff in an explicit step."""
    if not examined.uses_erp and examined.model.opt_integrator != Integrator.DISCRETE:
        yield from rows(examined)


def row_stiffness(examined: ExaminedModel, solref: np.ndarray, friction: bool) -> tuple[float, float]:
    """Computes (K [1/s^2], B [1/s]) of a row at full impedance; friction loss rows have no stiffness."""
    first, second = map(float, solref)
    if (first > 0) != (second > 0):
        first, second = DEFAULT_SOLREF
    if first <= 0:
        return (0.0 if friction else -first), -second
    if not examined.model.opt_disableflags & Disable.REFSAFE:
        first = max(first, SAFE * examined.h)
    return (0.0 if friction else (first * second) ** -2), 2 / first


def growth(examined: ExaminedModel, K: float, B: float) -> float:
    """Computes the largest factor by which a step multiplies (r, r') if r'' = -B r' - K r."""
    h = examined.h
    if examined.model.opt_integrator == Integrator.RK4:
        z = h * np.roots([1.0, B, K]).astype(complex)
        return float(np.abs(1 + z * (1 + z / 2 * (1 + z / 3 * (1 + z / 4)))).max())
    return float(np.abs(np.roots([1.0, h * B + h * h * K - 2.0, 1.0 - h * B])).max())


@check("row-unstable", WARNING, "constraint errors grow from step to step: the motion oscillates or diverges")
def unstable_rows(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds rows (contact, limit, friction loss, equality) whose reference multiplies errors by more than 1 per step.
    With Euler: h B >= 2 or h^2 K >= 4 - 2 h B; for `solref` = (T, z) with T = 2 h, a damping ratio z below 0.36.  It is
    a note if the row of a geom, a pair or an equality acts in the first trial and a push decays."""
    for kind, ident, attribute, solref, _ in _relevant(examined):
        K, B = row_stiffness(examined, solref, attribute == "solreffriction")
        factor = growth(examined, K, B)
        if factor > 1 + SLACK and (K > 0 or B > 0):
            omega = np.sqrt(max(K, 0.0))
            seen = f"{attribute} {_shown(solref)}: h w = {examined.h * omega:.3g}, h B = {examined.h * B:.3g}; "
            seen += f"each step multiplies its error by {factor:.3g}"
            least = SAFE * examined.h
            advice = f"use a time constant of at least {least:.3g} s with damping ratio 1, or a smaller time step"
            refuted = _is_refuted(examined, kind, ident, factor)
            seen += REFUTED + examined.start.name if refuted else ""
            yield Sign(kind, ident, seen, advice, NOTE if refuted else "")


def _is_refuted(examined: ExaminedModel, kind: str, ident: int | str, factor: float) -> bool:
    """Returns whether a geom, a pair or an equality acts at the end of the first trial, and a push decays."""
    m, end = examined.model, examined.trials[0].end
    if kind == "equality":
        acts = [ident in sample.equality for sample in end]
    elif kind in ("geom", "pair"):
        geoms = [ident] if kind == "geom" else [int(m.pair_geom1[ident]), int(m.pair_geom2[ident])]
        acts = [bool(np.isin(geoms, sample.geom).all()) for sample in end]
    else:
        return False  # limits and friction losses may not act in the trial
    if not acts or not all(acts):
        return False
    return is_refuted(examined, examined.start, push_of_row(examined, kind, int(ident)), factor)


@check("row-softer", WARNING, "the constraint is softer than specified, and becomes stiffer with a smaller time step")
def softer(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds time constants in `solref` below two time steps, which `refsafe` raises to two."""
    if examined.model.opt_disableflags & Disable.REFSAFE:
        return
    least = SAFE * examined.h
    for kind, ident, attribute, solref, _ in _relevant(examined):
        if 0 < solref[0] < least * (1 - SLACK) and solref[1] > 0:
            seen = f"{attribute} {_shown(solref)}: the time constant {solref[0]:.3g} s is replaced by {least:.3g} s"
            advice = f"use a timestep of at most {solref[0] / 2:.3g} s, or a time constant of {least:.3g} s"
            yield Sign(kind, ident, seen, advice)


@check("row-contradicts", WARNING, "values with contradicting signs are replaced by (0.02, 1)")
def contradicting(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds `solref` with one value above 0 and one at or below 0."""
    for kind, ident, attribute, solref, _ in _relevant(examined):
        if (solref[0] > 0) != (solref[1] > 0):
            advice = (
                "use two positive values (time constant, damping ratio) or two negative values (-stiffness, -damping)"
            )
            yield Sign(kind, ident, f"{attribute} {_shown(solref)}: replaced by 0.02 1", advice)


@check("impedance-clipped", NOTE, "the values are clipped, so the constraint is softer or harder than specified")
def clipped_impedance(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds `solimp` whose first two values lie outside 0 to 1, or whose first exceeds its second."""
    for kind, ident, attribute, _, solimp in _relevant(examined):
        low, high = map(float, solimp[:2])
        if low < 0 or high > 1 or low > high:
            seen = f"{attribute.replace('ref', 'imp')} {_shown(solimp[:2])}"
            yield Sign(kind, ident, seen, f"use dmin <= dmax, both from {mujoco.mjMINIMP:g} to {mujoco.mjMAXIMP:g}")


def _shown(numbers: np.ndarray) -> str:
    return " ".join(f"{x:g}" for x in numbers)
