"""Checks for physically impossible or implausible masses and inertias.

For a body of mass m, principal moments A <= B <= C and centre of mass c, with r the distance from c:

    A + B - C = 2 * integral of z^2 dm >= 0          (A + B + C) / 2 = integral of r^2 dm <= m R^2

where R is the distance from c to the farthest point of matter.  Geoms of bodies that are welded together count as one.
"""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import ERROR, NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    EQ_CONNECT,
    EQ_WELD,
    FREE,
    MESH,
    SDF,
    SPHERE,
    Integrator,
)

ROUNDING = 1e-6  # relative to the largest moment: rounding by text and compilers
DENSEST, LIGHTEST = 25_000.0, 1.0  # kg/m^3: osmium has 22,590, the lightest aerogels and air about 1
COMPACT = 100.0  # a uniform body's radius of gyration is at least half of its radius; a hundredth is a mistake
OUTSIDE = 2.0  # geoms are often simpler than the real part
RATIO = 1e3  # of masses that support each other
SPIN = 40.0  # rad/s: of thrown and rolling bodies
DRIFT = 0.01  # relative, of the energy
# least eigenvalue of M scaled to a unit diagonal: half of the digits of float64, and only rounding
ALIKE, REDUNDANT = 1e-8, 1e-14
# volumes of geoms by their sizes [m^3]
UNIT_BALL = 4 / 3 * np.pi
VOLUMES = {
    SPHERE: lambda a, b, c: UNIT_BALL * a**3,
    CAPSULE: lambda a, b, c: np.pi * a * a * 2 * b + UNIT_BALL * a**3,
    ELLIPSOID: lambda a, b, c: UNIT_BALL * a * b * c,
    CYLINDER: lambda a, b, c: np.pi * a * a * 2 * b,
    BOX: lambda a, b, c: 8 * a * b * c,
}


@check(
    "constants-stale",
    WARNING,
    "constants computed from masses (subtree masses, constraint weights) are those before the edit",
)
def stale(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds edited masses without an update of derived constants: `body_subtreemass` differs from the sum of masses."""
    m = examined.model
    total = examined.subtree_mass
    for b in np.flatnonzero(np.abs(m.body_subtreemass - total) > ROUNDING * np.maximum(total, m.body_subtreemass)):
        if m.body_mass[b] != m.mj_model.body_mass[b]:
            seen = f"subtree mass {total[b]:.4g} kg, but body_subtreemass is {m.body_subtreemass[b]:.4g} kg"
            yield Sign("body", int(b), seen, "call featherlane.set_const(model) after edits of masses and inertias")


@check("inertia-impossible", ERROR, "no mass distribution has these moments of inertia; a rotation gains energy")
def impossible(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds moving bodies with principal moments A + B < C; A + B - C is twice the integral of z^2 dm."""
    m = examined.model
    moments = np.sort(m.body_inertia)
    total = moments.sum(axis=1)
    for b in np.flatnonzero(examined.moving & ((2.0 - ROUNDING) * moments[:, 2] > total)):
        a, b_, c = moments[b]
        seen = f"principal moments {a:.4g}, {b_:.4g} and {c:.4g} kg m^2: the largest exceeds the sum of the others"
        yield Sign("body", int(b), seen, "compute the inertia from geoms, or correct fullinertia (units, signs)")


@check("inertia-large", WARNING, "the body rotates like a body several times its size")
def beyond_geoms(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds bodies whose radius of gyration (square root of half the trace of the inertia over the mass) is more than
    twice the reach of their geoms.  A larger radius than the reach itself means mass outside of all geoms."""
    for b, gyration, reach in _gyrations(examined):
        if gyration > OUTSIDE * reach:
            seen = (
                f"radius of gyration {gyration:.3g} m, but its geoms extend only {reach:.3g} m from the centre of mass"
            )
            yield Sign("body", b, seen, "check units (kg, m), or compute the inertia from geoms")


@check("inertia-small", NOTE, "off-centre contact forces cause a fast rotation, which makes the problem stiff")
def concentrated(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds bodies with joints whose radius of gyration is below a hundredth of the reach of their geoms (0.58 for a
    uniform rod)."""
    for b, gyration, reach in _gyrations(examined):
        if examined.model.body_dofnum[b] and gyration * COMPACT < reach:
            seen = (
                f"radius of gyration {gyration:.3g} m, but its geoms extend only {reach:.3g} m from the centre of mass"
            )
            yield Sign("body", b, seen, "compute the inertia from geoms, or set the armature of its joints")


def _gyrations(examined: ExaminedModel) -> Iterator[tuple[int, float, float]]:
    """Yields (body, radius of gyration [m], farthest point of geoms [m]) of moving bodies with mass and geoms."""
    m, d = examined.model, examined.start.data
    for b in np.flatnonzero(examined.moving & (m.body_mass > mujoco.mjMINVAL)):
        geoms = _matter(examined, int(m.body_weldid[b]))
        if len(geoms):
            reach = np.linalg.norm(d["geom_xpos"][geoms] - d["xipos"][b], axis=1) + m.geom_rbound[geoms]
            yield int(b), float(np.sqrt(0.5 * m.body_inertia[b].sum() / m.body_mass[b])), float(reach.max())


def _matter(examined: ExaminedModel, weld: int) -> np.ndarray:
    """Returns the bounded geoms of the bodies that are welded together."""
    m = examined.model
    return np.flatnonzero((m.body_weldid[m.geom_bodyid] == weld) & (m.geom_rbound > 0))


@check("density", NOTE, "a mass in grams or a length in millimetres is wrong by 1e3 or 1e9")
def density(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds bodies with density above 25,000 kg/m^3 over the volume of all geoms (osmium has 22,590), or below 1 kg/m^3
    over the largest geom (air has 1.2)."""
    m = examined.model
    for weld in np.unique(m.body_weldid[examined.moving]):
        geoms = _matter(examined, int(weld))
        mass = m.body_mass[m.body_weldid == weld].sum()
        most, least = _volumes(examined, geoms)
        advice = "check units (kg, m); ignore this if the geoms are only markers"
        if most > 0 and mass > DENSEST * most:
            seen = f"{mass:.3g} kg in {1e6 * most:.3g} cm^3, a density of at least {mass / most:.3g} kg/m^3"
            yield Sign("body", int(weld), seen, advice)
        elif 0 < mass < LIGHTEST * least:
            seen = f"{mass:.3g} kg in {1e6 * least:.3g} cm^3, a density of at most {mass / least:.3g} kg/m^3"
            yield Sign("body", int(weld), seen, advice)


def _volumes(examined: ExaminedModel, geoms: np.ndarray) -> tuple[float, float]:
    """Computes bounds (upper, lower) of the volume of the union of geoms [m^3]; a mesh is bounded by its box."""
    m, most, least = examined.model, 0.0, 0.0
    for g in geoms:
        kind, (a, b, c) = m.geom_type[g], m.geom_size[g]
        if kind in (MESH, SDF):
            most += 8 * float(m.geom_aabb[g, 3:].prod())
            continue
        volume = VOLUMES[kind](a, b, c) if kind in VOLUMES else 0.0
        most, least = most + volume, max(least, volume)
    return float(most), float(least)


@check("centre-outside", NOTE, "a wrong centre of mass makes the body tip over, and is not visible in a rendering")
def centre_outside(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds moving bodies whose centre of mass lies outside the bounding box of all geoms welded to them."""
    m, d = examined.model, examined.start.data
    for b in np.flatnonzero(examined.moving & (m.body_mass > mujoco.mjMINVAL)):
        geoms = _matter(examined, int(m.body_weldid[b]))
        if len(geoms):
            r, p = m.geom_rbound[geoms, None], d["geom_xpos"][geoms]
            low, high, centre = (p - r).min(axis=0), (p + r).max(axis=0), d["xipos"][b]
            away = float(np.linalg.norm(np.maximum(0.0, np.maximum(low - centre, centre - high))))
            if away > ROUNDING * examined.size:
                seen = f"its centre of mass is {away:.3g} m outside the bounding box of its geoms"
                yield Sign("body", int(b), seen, "check pos of <inertial> (in the body's frame, in metres)")


@check(
    "frame-off-centre",
    NOTE,
    "the integrators of first order (as in MuJoCo) advance the body's frame, not its centre of mass: a spin makes the "
    "momentum oscillate",
)
def frame_off_centre(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds separate free bodies whose spin at 40 rad/s changes the energy by more than 1 %, except with `rk4`.
    With s from the frame to the centre of mass and the radius of gyration r about an axis, a spin w changes the
    velocity of the centre by up to h w^2 s, and the energy of the spin by up to (h w s / r)^2."""
    m, d = examined.model, examined.start.data
    for j in np.flatnonzero((m.jnt_type == FREE) & (m.opt_integrator != Integrator.RK4)):
        b = int(m.jnt_bodyid[j])
        bodies = np.flatnonzero(m.body_treeid == m.body_treeid[b])
        mass = m.body_mass[bodies].sum()
        if m.tree_dofnum[m.body_treeid[b]] == 6 and mass > mujoco.mjMINVAL:
            centre = m.body_mass[bodies] @ d["xipos"][bodies] / mass
            apart = np.square(d["xipos"][bodies] - centre).sum(axis=1)
            square = (m.body_inertia[bodies].sum() + 2 * m.body_mass[bodies] @ apart) / (3 * mass)
            offset = float(np.linalg.norm(centre - d["xpos"][b]))
            spin = float(np.sqrt(DRIFT * square)) / max(examined.h * offset, mujoco.mjMINVAL)
            if spin < SPIN:
                seen = (
                    f"its frame is {offset:.3g} m from its centre of mass: a spin of {spin:.3g} rad/s changes the "
                    f"energy by up to {100 * DRIFT:.0f} %"
                )
                advice = (
                    "move the frame to the centre of mass (pos of body and geoms), use rk4, or reduce the time step"
                )
                yield Sign("body", b, seen, advice)


@check(
    "mass-ratio",
    NOTE,
    "a light tree in contact with a heavy one needs more solver iterations, and loses digits in float32",
)
def mass_ratio(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trees in contact at a start, or joined by an equality, whose mass ratio exceeds 1,000."""
    m, found = examined.model, set()
    for a, b in _joined(examined):
        a, b = sorted((int(m.body_rootid[a]), int(m.body_rootid[b])), key=lambda body: m.body_subtreemass[body])
        light, heavy = m.body_subtreemass[a], m.body_subtreemass[b]
        if examined.moving[a] and examined.moving[b] and heavy > RATIO * light and a not in found:
            found.add(a)
            seen = f"{light:.3g} kg, but {examined.label('body', b)} has {heavy:.3g} kg: a ratio of {heavy / light:.3g}"
            yield Sign("body", a, seen, "reduce the mass ratio, or weld the light body to its neighbour")


def _joined(examined: ExaminedModel) -> Iterator[tuple[int, int]]:
    """Yields pairs of bodies that touch at a start, and pairs that active equalities of bodies or sites join."""
    m = examined.model
    for start in examined.starts:
        yield from ((m.geom_bodyid[g], m.geom_bodyid[h]) for g, h in start.contact.geom if min(g, h) >= 0)
    for e in np.flatnonzero(m.eq_active0 & np.isin(m.eq_type, (EQ_CONNECT, EQ_WELD))):
        yield examined.bodies_of_equality(int(e))


@check("dofs-redundant", ERROR, "the mass matrix is singular: accelerations are rounding errors, `singular_inertia`")
def redundant(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trees whose mass matrix, scaled to a unit diagonal, has an eigenvalue below 1e-14: only rounding remains,
    as with two hinges on one axis."""
    advice = "remove a joint whose motion the other joints have, or give its DoF armature"
    yield from _singular(examined, -np.inf, REDUNDANT, advice)


@check(
    "inertia-singular", NOTE, "two DoFs are nearly redundant, so accelerations lose digits (in float32, all of them)"
)
def singular(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds trees whose mass matrix, scaled to a unit diagonal, has an eigenvalue below 1e-8."""
    yield from _singular(examined, REDUNDANT, ALIKE, "add mass or armature to light bodies between joints")


def _singular(examined: ExaminedModel, low: float, high: float, advice: str) -> Iterator[Sign]:
    """Yields the joint that moves most in each tree whose scaled M has its least eigenvalue in [low, high)."""
    m = examined.model
    for tree in range(m.ntree):
        at = examined.dofs_of_tree(tree)
        M = examined.start.M[at, at]
        D = np.sqrt(np.maximum(M.diagonal(), mujoco.mjMINVAL))
        if not np.isfinite(M).all():
            continue
        scaled = M / D[:, None] / D
        least = np.linalg.eigvalsh(scaled)[0]
        if low <= least < high and (M.diagonal() > mujoco.mjMINVAL).all():
            share = np.abs(np.linalg.eigh(scaled)[1][:, 0])
            dof = at.start + int(np.flatnonzero(share > share.max() - ROUNDING)[-1])  # equal shares: the last DoF
            seen = (
                f"the mass matrix, scaled to a unit diagonal, has the eigenvalue {max(least, 0.0):.2g} along its motion"
            )
            yield Sign("joint", int(m.dof_jntid[dof]), seen, advice)
