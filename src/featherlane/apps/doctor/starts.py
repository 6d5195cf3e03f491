"""Checks initial states: overlaps, open loops, values beyond ranges, and jumps at the first step.

A row with initial error r, critically damped with the time constant T, reaches the speed r / (e T).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel, Start
from featherlane.apps.doctor.finding import ERROR, NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import BALL, EQ_CONNECT, EQ_JOINT, EQ_WELD, FREE, HINGE, SLIDE, Disable

DEEP = 0.1  # relative to the smaller half side of two geoms
OPEN = 0.01  # relative to the mean body size, or rad
BEYOND = 0.05  # relative to the width of a range: limits yield to a load, and poses are rounded
JUMP = 0.1  # relative to the mean body size, or rad, in the first step
TURNS = 4 * np.pi  # rad: two turns
RADIANS = np.radians(2 * np.pi)  # rad: a full turn in radians, converted as if it were in degrees
TINY = 1e-9


@check("start-bad", ERROR, "every step resets the world to the model's defaults")
def bad_start(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds initial accelerations that are NaN or beyond 1e10."""
    for start in examined.starts:
        bad = np.flatnonzero(~(np.abs(start.data["qacc"]) <= mujoco.mjMAXVAL))
        if len(bad):
            joint = int(examined.model.dof_jntid[bad[0]])
            seen = f"acceleration {start.data['qacc'][bad[0]]:g} at {start.name}"
            yield Sign("joint", joint, seen, "fix the other findings on masses, overlaps and loops first")


@check("start-jumps", WARNING, "initial forces are too large for the masses and the time step")
def jumping(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds DoFs that the first step from rest moves too far: by h^2 a (a: acceleration) above a tenth of the mean body
    size, or above 0.1 rad."""
    m, h = examined.model, examined.h
    for start in examined.starts:
        limit = np.array([JUMP * (examined.size if examined.is_linear(i) else 1.0) for i in range(m.nv)])
        part = h * h * np.abs(start.data["qacc"]) / limit if m.nv else np.zeros(1)
        worst = int(part.argmax())
        if part[worst] > 1 and part[worst] * limit[worst] <= h * h * mujoco.mjMAXVAL:
            a = start.data["qacc"][worst]
            unit = "m" if examined.is_linear(worst) else "rad"
            seen = f"{a:.3g} {unit}/s^2 at {start.name}: the first step moves it by {h * h * abs(a):.3g} {unit}"
            advice = (
                "check for overlaps, open loops, servos far from their targets and light bodies, or "
                "reduce the time step"
            )
            yield Sign("joint", int(m.dof_jntid[worst]), seen, advice)


@check("overlap", WARNING, "the contact pushes the bodies apart at the reported speed")
def overlapping(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds initial contacts deeper than a tenth of the smaller half side of the geoms' bounding boxes."""
    width, found = examined.half_width, {}
    for start in examined.starts:
        for contact in start.contact:
            geoms = tuple(sorted(map(int, contact.geom)))
            sides = [width[g] for g in geoms if g >= 0 and width[g] > 0]
            depth = -float(contact.dist)
            if sides and depth > DEEP * min(sides) and depth > found.get(geoms, (0.0,))[0]:
                time = float(contact.solref[0]) if contact.solref[0] > 0 else 0.02
                found[geoms] = depth, min(sides), time, start
    for (g, h), (depth, side, time, start) in found.items():
        speed = examined.model.opt.erp * depth / examined.h if examined.uses_erp else depth / (np.e * time)
        seen = f"{1e3 * depth:.3g} mm deep in {examined.label('geom', g)} at {start.name}, "
        seen += f"{depth / side:.0%} of its half size; separates at about {speed:.2g} m/s"
        yield Sign("geom", h, seen, "move the geoms apart, or exclude the pair if it may overlap")


@check("loop-open", WARNING, "the constraint closes the gap at the reported speed")
def open_loops(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds active equalities with an initial error above 1 % of the mean body size, or 0.01 rad."""
    m = examined.model
    for e in range(m.neq):
        errors = [(np.abs(s.rows["pos"][s.rows["id"] == e]).max(initial=0.0), s) for s in examined.starts]
        error, start = max(errors, key=lambda pair: pair[0])
        if error > OPEN * min(examined.size, 1.0):
            ref = float(m.eq_solref[e, 0])
            speed = m.opt.erp * error / examined.h if examined.uses_erp else error / (np.e * (ref if ref > 0 else 0.02))
            unit = _unit_of_equality(examined, e)
            seen = f"error of {error:.3g} {unit} at {start.name}; closes at about {speed:.2g} {unit}/s"
            yield Sign("equality", e, seen, 'choose a matching qpos, anchor or relpose, or set active="false"')


def _unit_of_equality(examined: ExaminedModel, e: int) -> str:
    """Returns the unit of an equality's error; for a weld, that of the worst of its six rows."""
    m = examined.model
    if m.eq_type[e] == EQ_JOINT:
        return "rad" if m.jnt_type[m.eq_obj1id[e]] == HINGE else "m"
    return "m or rad" if m.eq_type[e] == EQ_WELD else "m"


@check("beyond-range", WARNING, "the limit pushes the joint or tendon back after every reset")
def beyond_range(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds joints or tendons that start beyond their range by more than 5 % of its width."""
    m = examined.model
    for j in map(int, np.flatnonzero(m.jnt_limited)):
        yield from _beyond(examined, "joint", j, m.jnt_range[j], lambda s, j=j: _position(examined, s, j))
    for t in np.flatnonzero(m.tendon_limited):
        yield from _beyond(examined, "tendon", int(t), m.tendon_range[t], lambda s, t=t: s.data["ten_length"][t])


def _position(examined: ExaminedModel, start: Start, j: int) -> float:
    """Returns the coordinate of a slide or hinge, or the angle of a ball [m, rad]."""
    m, a = examined.model, int(examined.model.jnt_qposadr[j])
    if m.jnt_type[j] == BALL:
        w, *vector = start.data["qpos"][a : a + 4]
        return float(2 * np.arctan2(np.linalg.norm(vector), abs(w)))
    return float(start.data["qpos"][a])


def _beyond(examined: ExaminedModel, kind: str, ident: int, limits, value) -> Iterator[Sign]:
    m = examined.model
    is_ball_joint = kind == "joint" and m.jnt_type[ident] == BALL
    low, high = (-np.inf, max(limits)) if is_ball_joint else map(float, limits)
    allowed = BEYOND * (high - low if np.isfinite(high - low) else abs(high)) + TINY
    values = [(value(s), s) for s in examined.starts]
    worst, start = max(values, key=lambda pair: max(low - pair[0], pair[0] - high))
    if max(low - worst, worst - high) > allowed:
        unit = "rad" if is_ball_joint or (kind == "joint" and m.jnt_type[ident] == HINGE) else "m"
        seen = f"{worst:.4g} {unit} at {start.name}, but its range is {limits[0]:.4g} to {limits[1]:.4g} {unit}"
        yield Sign(kind, ident, seen, "change ref, qpos or range")


@check("control-beyond-range", NOTE, "the control is clipped, so the keyframe does not hold its pose")
def control_beyond_range(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds keyframes with a control outside of the actuator's range."""
    m = examined.model
    for i in range(m.nactuator):
        for u in range(m.actuator_ctrladr[i], m.actuator_ctrladr[i] + m.actuator_ctrlnum[i]):
            low, high = m.actuator_ctrlrange[u]
            for start in examined.starts[1:]:
                value = float(start.data["ctrl"][u])
                if m.actuator_ctrllimited[u] and not low - TINY <= value <= high + TINY:
                    seen = f"control {value:.4g} at {start.name}, but its range is {low:g} to {high:g}"
                    yield Sign("actuator", i, seen, "change the control or ctrlrange")
                    break


@check("range-in-degrees", NOTE, "a range in the wrong angle unit is wrong by a factor of 57")
def degrees(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds limited hinges with a range of more than two turns; or models with two or more limited hinges that all stay
    within 0.11 rad, as if radians were read as degrees."""
    m = examined.model
    hinges = np.flatnonzero(m.jnt_limited & (m.jnt_type == HINGE))
    widest = np.abs(m.jnt_range[hinges]).max(axis=1, initial=0.0)
    for j, reach in zip(hinges, widest, strict=True):
        if TURNS < reach < np.inf:
            seen = f"range {m.jnt_range[j, 0]:.4g} to {m.jnt_range[j, 1]:.4g} rad: {reach / (2 * np.pi):.2g} turns"
            advice = 'use <compiler angle="degree"/> (the default of MJCF), or limited="false"'
            yield Sign("joint", int(j), seen, advice)
    if len(hinges) > 1 and 0 < widest.max() <= RADIANS:
        seen = f"the widest range of all limited hinges is {widest.max():.3g} rad"
        yield Sign("joint", int(hinges[widest.argmax()]), seen, 'use <compiler angle="radian"/>')


@check(
    "range-empty", NOTE, "two opposing constraint rows are solved in each step; a body without the joint costs nothing"
)
def locked(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds limited slides or hinges with equal limits (to 1e-6 m or rad)."""
    m = examined.model
    for j in np.flatnonzero(m.jnt_limited & (m.jnt_type >= SLIDE)):
        if m.jnt_range[j, 1] - m.jnt_range[j, 0] < 1e-6:
            yield Sign("joint", int(j), f"range {m.jnt_range[j, 0]:g} to {m.jnt_range[j, 1]:g}", "remove the joint")


@check("falls-forever", WARNING, "nothing stops the body: its coordinates grow until they are out of range")
def falling(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds free bodies under gravity that no geom, equality or tendon connects, directly or through others, to
    something that is supported."""
    m, off = examined.model, Disable(examined.model.opt_disableflags)
    if not np.any(m.opt.gravity) or Disable.GRAVITY in off:
        return
    free = np.isin(m.body_rootid, m.body_rootid[m.jnt_bodyid[m.jnt_type == FREE]])
    held, group = ~free | (m.body_gravcomp >= 1.0), np.arange(m.nbody)
    chains = [(b, int(m.body_parentid[b])) for b in range(1, m.nbody) if m.body_parentid[b]]
    for a, b in chains + _joined(examined, off):
        low, high = sorted((group[a], group[b]))
        group[group == high] = low
    safe = np.isin(group, group[held])
    for j in np.flatnonzero(m.jnt_type == FREE):
        b = int(m.jnt_bodyid[j])
        if not safe[b]:
            seen = f"a free body of {m.body_subtreemass[b]:.3g} kg that nothing supports"
            yield Sign("body", b, seen, "add a floor with matching contype and conaffinity, or disable gravity")


def _joined(examined: ExaminedModel, off: Disable) -> list[tuple[int, int]]:
    """Returns pairs of bodies that may touch, or that equalities, tendons or links connect."""
    m = examined.model
    touching = m.geom_bodyid[examined.pairs].reshape(-1, 2)
    found = [*np.unique(touching, axis=0), *m.link_body]
    if not off & (Disable.EQUALITY | Disable.CONSTRAINT):
        found += [examined.bodies_of_equality(e) for e in range(m.neq) if m.eq_type[e] in (EQ_CONNECT, EQ_WELD)]
    for t in range(m.ntendon):
        at = slice(m.ten_J_rowadr[t], m.ten_J_rowadr[t] + m.ten_J_rownnz[t])
        bodies = m.dof_bodyid[m.ten_J_colind[at]]
        found += [(0, b) for b in bodies] if m.tendon_treenum[t] < 2 else list(pairwise(bodies))
    return [(int(a), int(b)) for a, b in found]
