"""Checks the rows of a trial: contacts that sink, and loops that open.

At rest the force f of a row with the impedance d and the stiffness K sinks by r:

    R f = K d r,    R = (1 - d) / d A:    r = (1 - d) / d^2 (A f) / K

A is computed from the masses of both bodies in `qpos0`, so A f is the acceleration that the load gives to the lighter
one.  It is far beyond gravity if a heavy body rests on a light one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.apps.doctor.remedies import soften_contacts, soften_equality, stiffer, tried
from featherlane.apps.doctor.rows import row_stiffness
from featherlane.apps.doctor.starts import DEEP as OVERLAPPING
from featherlane.apps.doctor.trials import Sample, Trial
from featherlane.enums import EQ_CONNECT, EQ_JOINT, EQ_WELD, HINGE, ContactModel

LOOSE = 0.05  # of the size: an error of a position that is visible; rad
SUNK, DEEP = 0.25, LOOSE  # of the half side of the smaller body: a warning, a note
HEAVY = 10.0  # times its weight: a load that no light body carries by itself
SOFT = 0.02  # s: the default time constant
MOST_TRIED = 3  # findings of a start whose advice is tried; each try is a trial


# ---- contacts ------------------------------------------------------------------------------------------------------
def sunk_pairs(examined: ExaminedModel, trial: Trial) -> dict[tuple[int, int], float]:
    """Returns the least depth of pairs of geoms over the end of a trial [m], of its deepest contact."""
    found: dict[tuple[int, int], float] = {}
    for i, sample in enumerate(trial.end):
        now: dict[tuple[int, int], float] = {}
        for pair, depth in zip(sample.geom, sample.depth, strict=True):
            g, h = sorted(map(int, pair))
            if g >= 0:
                now[g, h] = max(now.get((g, h), 0.0), float(depth))
        found = {pair: min(depth, found.get(pair, depth)) for pair, depth in now.items() if pair in found or not i}
    return found


def _half_side(examined: ExaminedModel, pair: tuple[int, int]) -> float:
    """Returns the half side of the smaller body of two geoms [m], infinite if neither has one."""
    sides = examined.thickness[examined.model.geom_bodyid[list(pair)]]
    return float(sides[sides > 0].min(initial=np.inf))


@check("trial-sinks", WARNING, "bodies overlap visibly, and a deeper contact can push through the far side")
def sinking(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds contacts that are deeper than 5 % (a note) or a quarter of the smaller body's half side during the last
    tenth of a trial, except those that `overlap` reports.  The cause is a load of more than ten times the weight that
    the contact's softness is computed for, dropped contacts, or a soft solref.  The advice of a warning was tried in
    another trial."""
    m, seen_pairs = examined.model, set()
    for trial in examined.trials:
        depths = sunk_pairs(examined, trial)
        shares = {pair: depth / _half_side(examined, pair) for pair, depth in depths.items()}
        if trial.end:
            first = trial.samples[0]
            shares = {p: x for p, x in shares.items() if _depth_at(first, p) <= OVERLAPPING * _half_side(examined, p)}
        worst = sorted((pair for pair in shares if shares[pair] > DEEP), key=lambda pair: -shares[pair])
        advice = _hardening(examined, trial, {pair: shares[pair] for pair in worst}) if set(worst) - seen_pairs else ""
        for pair in (pair for pair in worst if pair not in seen_pairs):
            seen_pairs.add(pair)
            g, h = sorted(pair, key=lambda geom: -examined.thickness[m.geom_bodyid[geom]] or -np.inf)
            seen = f"{1e3 * depths[pair]:.3g} mm deep in {examined.label('geom', g)} at the end of a trial from "
            seen += f"{trial.start}, {shares[pair]:.0%} of the smaller half side; {_cause(examined, trial, pair)}"
            yield Sign("geom", h, seen, advice, WARNING if shares[pair] > SUNK else NOTE)


def _hardening(examined: ExaminedModel, trial: Trial, shares: dict[tuple[int, int], float]) -> str:
    """Returns the advice for all deep contacts of a trial, a change of all their geoms."""
    geoms = sorted({geom for pair in shares for geom in pair})
    time = min(_time_constant(examined, trial, pair) * np.sqrt(0.5 * DEEP / share) for pair, share in shares.items())
    where = "both geoms" if len(geoms) == 2 else f"the {len(geoms)} geoms of such contacts"
    if max(shares.values()) <= SUNK:
        return f"ignore it, or try a smaller solref of {where}, for example {time:.2g} 1"
    remedies = stiffer(examined, where, time, partial(soften_contacts, geoms))
    advice = tried(examined, trial, remedies, lambda e, t: all(_lies_on(pair, e, t) for pair in shares))
    return advice or "use similar masses, a smaller solref, or the contact model lcp"


def _lies_on(pair: tuple[int, int], examined: ExaminedModel, trial: Trial) -> bool:
    """Returns whether two geoms still touch, no deeper than 5 % of the half side."""
    return sunk_pairs(examined, trial).get(pair, np.inf) <= DEEP * _half_side(examined, pair)


def _depth_at(sample: Sample, pair: tuple[int, int]) -> float:
    """Returns the depth of the deepest contact of a pair [m]."""
    return float(sample.depth[_of_pair(sample, pair)].max(initial=0.0))


def _of_pair(sample: Sample, pair: tuple[int, int]) -> np.ndarray:
    return np.flatnonzero((np.sort(sample.geom, axis=1) == pair).all(axis=1))


def _time_constant(examined: ExaminedModel, trial: Trial, pair: tuple[int, int]) -> float:
    """Returns the time constant of a pair's contact [s]; that of the stiffness if solref has it."""
    at = _of_pair(trial.end[-1], pair)
    return time_constant(examined, trial.end[-1].solref[at[0]]) if len(at) else SOFT


def time_constant(examined: ExaminedModel, solref: np.ndarray) -> float:
    """Returns the time constant of a row [s], that of critical damping: 1 / sqrt(K), with K of `row_stiffness`."""
    K, _ = row_stiffness(examined, solref, False)
    return 1 / np.sqrt(max(K, 1e-12))


def _cause(examined: ExaminedModel, trial: Trial, pair: tuple[int, int]) -> str:
    """Returns the cause of a deep contact: dropped contacts, a load beyond the masses, or a soft solref."""
    m, sample = examined.model, trial.end[-1]
    at = _of_pair(sample, pair)
    force = float(sample.force[at].max(initial=0.0))
    inverse = float(m.body_invweight0[m.geom_bodyid[list(pair)], 0].sum())
    return reason(examined, trial, force, inverse, _time_constant(examined, trial, pair))


def reason(examined: ExaminedModel, trial: Trial, force: float, inverse: float, time: float, g: float = 0.0) -> str:
    """Returns the cause of a large error of a row, from its force [N] and its inverse mass A [1/kg]."""
    dropped = sum(trial.counts[name] for name in ("contacts_full", "rows_full"))
    if dropped:
        return f"contacts were dropped in {dropped} steps, because their buffer is full"
    if examined.model.opt_contact_model == ContactModel.LCP:
        return f"its force is {force:.3g} N"
    gravity = g or float(np.linalg.norm(examined.model.opt.gravity)) or 1.0
    ratio = force * inverse / gravity
    if ratio > HEAVY:
        what = f"{ratio:.3g} times the weight of the {1 / inverse:.3g} kg from which its softness is computed"
        return f"mass ratio: its force of {force:.3g} N is {what}"
    return f"its solref has a time constant of {time:.3g} s"


# ---- equalities ----------------------------------------------------------------------------------------------------
def loop_errors(examined: ExaminedModel, trial: Trial) -> dict[int, tuple[float, float, str]]:
    """Returns (share of the lever, error, unit) of each equality: its least error over the end of a trial."""
    found: dict[int, tuple[float, float, str]] = {}
    for i, sample in enumerate(trial.end):
        now = {int(e): _loop_error(examined, int(e), sample) for e in np.unique(sample.equality)}
        found = {e: min(error, found.get(e, error)) for e, error in now.items() if e in found or not i}
    return found


def _loop_error(examined: ExaminedModel, e: int, sample: Sample) -> tuple[float, float, str]:
    m, r = examined.model, sample.error[sample.equality == e]
    if m.eq_type[e] in (EQ_CONNECT, EQ_WELD):
        apart, turned = float(np.linalg.norm(r[:3])), float(np.linalg.norm(r[3:]))
        share = apart / lever(examined, e)
        return (share, apart, "m") if share >= turned else (turned, turned, "rad")
    error = float(np.abs(r).max(initial=0.0))
    if _turns(examined, e):
        return error, error, "rad"
    return error / examined.size, error, "m"


def _turns(examined: ExaminedModel, e: int) -> bool:
    """Returns whether the error of an equality of joints or tendons is an angle: of a hinge, or of a tendon of one."""
    m, first = examined.model, int(examined.model.eq_obj1id[e])
    if m.eq_type[e] != EQ_JOINT:
        path = int(m.tendon_adr[first])
        if m.wrap_type[path] != mujoco.mjtWrap.mjWRAP_JOINT:
            return False
        first = int(m.wrap_objid[path])
    return bool(m.jnt_type[first] == HINGE)


def lever(examined: ExaminedModel, e: int) -> float:
    """Returns the reach of the smaller moving body that a connect or a weld joins, or the mean body size [m]."""
    bodies = [b for b in examined.bodies_of_equality(e) if examined.moving[b] and examined.reach[b] > 0]
    return min((float(examined.reach[b]) for b in bodies), default=examined.size)


@check("trial-loop-opens", WARNING, "the mechanism moves differently from its drawing, as if the joint were soft")
def opening(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds equalities with an error above 5 % of the reach of the smaller body (of the mean body size for slides and
    tendons), or 0.05 rad, during the last tenth of a trial.  The cause is a load of more than ten times the weight that
    the softness is computed for, or a soft solref.  The advice was tried in another trial."""
    m, known = examined.model, set()
    for trial in examined.trials:
        errors = {e: error for e, error in loop_errors(examined, trial).items() if error[0] > LOOSE and e not in known}
        for k, (e, (share, error, unit)) in enumerate(sorted(errors.items(), key=lambda item: -item[1][0])):
            known.add(e)
            sample = trial.end[-1]
            force = float(np.linalg.norm(sample.pull[sample.equality == e][:3]))
            inverse, gravity = _inverse_mass(examined, e)
            time = time_constant(examined, m.eq_solref[e])
            seen = f"error of {error:.3g} {unit} at the end of a trial from {trial.start}"
            seen += f", {share:.0%} of its lever" if unit == "m" else ""
            seen += f"; {reason(examined, trial, force, inverse, time, gravity)}"
            remedies = stiffer(
                examined, "the equality", time * np.sqrt(0.5 * LOOSE / share), partial(soften_equality, e)
            )
            cured = partial(_is_closed, e)
            advice = tried(examined, trial, remedies, cured) if k < MOST_TRIED else ""
            yield Sign("equality", e, seen, advice or "check whether other constraints or limits contradict it")


def _is_closed(e: int, examined: ExaminedModel, trial: Trial) -> bool:
    return loop_errors(examined, trial).get(e, (0.0,))[0] <= LOOSE


def _inverse_mass(examined: ExaminedModel, e: int) -> tuple[float, float]:
    """Returns the inverse mass [1/kg, 1/(kg m^2)] from which an equality's softness is computed, and gravity there."""
    m, gravity = examined.model, float(np.linalg.norm(examined.model.opt.gravity)) or 1.0
    first, second = int(m.eq_obj1id[e]), int(m.eq_obj2id[e])
    if m.eq_type[e] in (EQ_CONNECT, EQ_WELD):
        return float(m.body_invweight0[list(examined.bodies_of_equality(e)), 0].sum()), gravity
    both = [k for k in (first, second) if k >= 0]
    gravity = gravity / examined.size if _turns(examined, e) else gravity
    if m.eq_type[e] != EQ_JOINT:
        return float(m.tendon_invweight0[both].sum()), gravity
    return float(m.dof_invweight0[m.jnt_dofadr[both]].sum()), gravity
