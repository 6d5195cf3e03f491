"""Checks for contacts that never occur, and for contacts with poor parameters."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import PLANE, Cone, ContactModel, Disable, Enable

RUNG = 1.0  # m/s: speed after a fall of 5 cm
HARD = 100.0  # ratio of the stiffnesses of friction and normal rows
ROUGH = 10.0  # friction coefficient
UNYIELDING = 1e-10  # 1/kg: less than for any body that a push moves
PHYSICS = Disable.CONSTRAINT | Disable.EQUALITY | Disable.FRICTIONLOSS | Disable.LIMIT | Disable.CONTACT
PHYSICS |= Disable.SPRING | Disable.DAMPER | Disable.GRAVITY | Disable.ACTUATION


@check("mask-alone", NOTE, "the geom has collision bits, but collides with no other geom")
def mask_alone(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds geoms whose contype and conaffinity match no geom of another body, unless all these bodies are static."""
    m = examined.model
    types, affinities = m.geom_contype.astype(np.int64), m.geom_conaffinity.astype(np.int64)
    alone = (types | affinities) != 0
    alone[np.unique(examined.candidates)] = False
    for g in np.flatnonzero(alone):
        match = (types & affinities[g]) | (affinities & types[g])
        others = m.body_weldid[m.geom_bodyid] != m.body_weldid[m.geom_bodyid[g]]
        match = match[others]
        if not match.any() and (examined.moving[m.geom_bodyid[g]] or examined.moving[m.geom_bodyid[others]].any()):
            seen = f"contype {types[g]}, conaffinity {affinities[g]}: no geom of another body matches"
            yield Sign("geom", int(g), seen, "set bits that match another geom, or set contype and conaffinity to 0")


@check("physics-off", NOTE, "the model uses physics that this flag disables")
def physics_off(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds disable flags that switch off physics which the model uses."""
    m, off = examined.model, Disable(examined.model.opt_disableflags) & PHYSICS
    there = {
        Disable.CONTACT: len(examined.candidates) > 0,
        Disable.EQUALITY: m.neq > 0,
        Disable.LIMIT: bool(m.jnt_limited.any() or m.tendon_limited.any()),
        Disable.FRICTIONLOSS: bool(m.dof_frictionloss.any() or m.tendon_frictionloss.any()),
        Disable.SPRING: bool(m.jnt_stiffness.any() or m.tendon_stiffness.any()),
        Disable.DAMPER: bool(m.dof_damping.any() or m.tendon_damping.any()),
        Disable.GRAVITY: bool(np.any(m.opt.gravity)),
        Disable.ACTUATION: m.nactuator > 0,
    }
    there[Disable.CONSTRAINT] = there[Disable.CONTACT] or there[Disable.EQUALITY] or there[Disable.LIMIT]
    for flag in off:
        if there[flag]:
            advice = "enable the flag if this physics should be simulated"
            yield Sign("option", str(flag.name).lower(), "is disabled", advice)


@check("friction-none", NOTE, "rows with zero friction cost time and exert no force; condim 1 has the same effect")
def no_friction(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds geoms with condim 3 or more and no sliding friction in any pair, or condim 4 or 6 and no spinning or
    rolling friction."""
    m, pairs = examined.model, examined.pairs
    if not len(pairs) or m.opt_enableflags & Enable.OVERRIDE:
        return
    mu, dim = m.geom_friction[pairs].max(axis=1), m.geom_condim[pairs].max(axis=1)
    lacking = {"sliding": (dim >= 3, mu[:, 0]), "spinning": (dim >= 4, mu[:, 1]), "rolling": (dim >= 6, mu[:, 2])}
    for name, (wanted, most) in lacking.items():
        for g in np.unique(pairs[wanted & (most < mujoco.mjMINMU)]):
            own = (pairs == g).any(axis=1)
            if (most[own] < mujoco.mjMINMU).all() and m.geom_condim[g] >= {"sliding": 3, "spinning": 4, "rolling": 6}[
                name
            ]:
                seen = f"condim {m.geom_condim[g]} without {name} friction in any pair"
                yield Sign("geom", int(g), seen, "reduce condim, or set a friction coefficient")


@check("friction-large", NOTE, "the rows of a pyramidal cone become nearly parallel, and solvers slow down")
def rough(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds colliding geoms with sliding friction above 10 (rubber on rubber has about 1)."""
    m = examined.model
    for g in np.unique(examined.pairs):
        if m.geom_friction[g, 0] > ROUGH:
            advice = "use a coefficient of 0.5 to 2; reduce slip with impratio"
            yield Sign("geom", int(g), f"friction {m.geom_friction[g, 0]:g}", advice)


@check("impratio", NOTE, "friction rows are stiffer than normal rows by this factor: more iterations, less accuracy")
def impratio(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds `impratio` above 1 with pyramidal cones, whose edges mix friction and normal force, or above 100 with any
    cone."""
    m = examined.model
    ratio = m.opt.impratio
    if (
        len(examined.pairs)
        and m.opt_contact_model != ContactModel.LCP
        and (ratio > HARD or (ratio > 1 and m.opt_cone == Cone.PYRAMIDAL))
    ):
        cone = "pyramidal" if m.opt_cone == Cone.PYRAMIDAL else "elliptic"
        seen = f"{ratio:g} with {cone} cones"
        advice = 'use cone="elliptic" with impratio near 10, or the contact model lcp, which has no creep'
        yield Sign("option", "impratio", seen, advice)


@check("contact-unyielding", WARNING, "the contact is so stiff that its force is dominated by rounding errors")
def unyielding(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds moving geoms in pairs of bodies with almost zero `body_invweight0`, from which contact stiffness is
    computed: the centre of mass lies on the axis of the only joint."""
    m, found = examined.model, set()
    if m.opt_contact_model == ContactModel.LCP:
        return
    for pair in examined.pairs:
        bodies = m.geom_bodyid[pair]
        if m.body_invweight0[bodies, 0].sum() < UNYIELDING:
            found.update(int(g) for g in pair[examined.moving[bodies]])
    for g in sorted(found):
        seen = (
            f"body_invweight0 of its body is {m.body_invweight0[m.geom_bodyid[g], 0]:.1g} 1/kg: a "
            f"force at the centre of mass does not move it"
        )
        advice = "move the centre of mass off the axis, or exclude the pair if the joint prevents contact"
        yield Sign("geom", g, seen, advice)


@check(
    "tunnels",
    NOTE,
    "a faster geom passes through thin geoms, because contacts are detected at the start of a step only",
)
def tunnelling(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds moving geoms, in pairs without a plane, that move farther than their smallest half side in one step at 1
    m/s, without the flag speculative."""
    m = examined.model
    if m.opt.enableflags & Enable.SPECULATIVE:
        return
    others = (
        examined.pairs[(m.geom_type[examined.pairs] != PLANE).all(axis=1)] if len(examined.pairs) else examined.pairs
    )
    for g in np.unique(others):
        speed = examined.half_width[g] / examined.h
        if examined.moving[m.geom_bodyid[g]] and 0 < speed < RUNG:
            seen = (
                f"half size {1e3 * examined.half_width[g]:.3g} mm, which a speed of {speed:.2g} m/s covers in one step"
            )
            yield Sign("geom", int(g), seen, "enable the flag speculative, reduce the timestep, or use a thicker geom")
