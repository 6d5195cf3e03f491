"""Checks edits of a loaded model, or of a world of a batch: those without effect, and masses without inertias.

An edit is a difference from `mj_model`, which holds the values of the source or of the last `set_const`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.engine.collision.mixing import contact_dim, friction, reference_and_impedance
from featherlane.engine.lanes.record import Rows
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.enums import (
    BIAS_AFFINE,
    BIAS_NONE,
    DYN_FILTER,
    DYN_FILTEREXACT,
    DYN_INTEGRATOR,
    DYN_NONE,
    GAIN_AFFINE,
    GAIN_FIXED,
    Disable,
)
from featherlane.engine.model.limits import KINDS
from featherlane.engine.model.model import Model, peek
from featherlane.engine.model.mujoco_arrays import read_field

SAME = 1e-6  # relative change of a mass that is rounding, also of float32
ANY = 10  # number of parameters of an actuator


def edited(examined: ExaminedModel, name: str) -> np.ndarray:
    """Returns which entries of a field differ from the source's by more than rounding."""
    m = examined.model
    old, new = np.asarray(read_field(m.mj_model, name), float).reshape(peek(m, name).shape), peek(m, name)
    with np.errstate(invalid="ignore"):
        return ~((new == old) | (np.abs(new - old) <= SAME * np.abs(old)))


# ---- flags and types -------------------------------------------------------------------------------------------------
class Unread(NamedTuple):
    """A condition under which fields of an element are not read.

    Attributes:
        names: the fields.
        unread: function of the model that returns a mask of the elements, or of the entries.
        why: text of the condition.
        advice: what enables them.
    """

    names: str
    unread: Callable[[Model], np.ndarray]
    why: str
    advice: str


def _off(flag: str) -> Callable[[Model], np.ndarray]:
    return lambda m: ~np.asarray(peek(m, flag), bool)


def _beyond(kind: str, known: dict[int, int]) -> Callable[[Model], np.ndarray]:
    """Returns a function for the parameters that an actuator's type does not read; `known`: number of those read."""

    def unread(m: Model) -> np.ndarray:
        plain = (np.asarray(m.mj_model.actuator_plugin) < 0) & (m.actuator_states == 0)
        number = [known.get(int(k), ANY) if p else ANY for k, p in zip(peek(m, kind), plain, strict=True)]
        return np.arange(ANY) >= np.array(number, int).reshape(-1, 1)

    return unread


def _no_limit(m: Model) -> np.ndarray:
    return _off("jnt_limited")(m) | bool(m.opt_disableflags & (Disable.LIMIT | Disable.CONSTRAINT))


def _no_tendon_limit(m: Model) -> np.ndarray:
    return _off("tendon_limited")(m) | bool(m.opt_disableflags & (Disable.LIMIT | Disable.CONSTRAINT))


LIMIT, SOURCE = "it is not limited, or a flag disables limits", 'set limited="true" in the XML'
UNREAD = (
    Unread("jnt_range jnt_margin jnt_solref jnt_solimp", _no_limit, LIMIT, SOURCE),
    Unread("tendon_range tendon_margin tendon_solref_lim tendon_solimp_lim", _no_tendon_limit, LIMIT, SOURCE),
    Unread("jnt_actfrcrange", _off("jnt_actfrclimited"), "it is not clamped", "set model.jnt_actfrclimited"),
    Unread(
        "tendon_actfrcrange",
        _off("tendon_actfrclimited"),
        "it is not clamped",
        'set actuatorfrclimited="true" in the XML',
    ),
    Unread("actuator_ctrlrange", _off("actuator_ctrllimited"), "it is not clamped", "set model.actuator_ctrllimited"),
    Unread(
        "actuator_forcerange", _off("actuator_forcelimited"), "it is not clamped", "set model.actuator_forcelimited"
    ),
    Unread("actuator_actrange", _off("actuator_actlimited"), "it is not clamped", 'set actlimited="true" in the XML'),
    Unread(
        "actuator_gainprm",
        _beyond("actuator_gaintype", {GAIN_FIXED: 1, GAIN_AFFINE: 3}),
        "its gaintype does not read them",
        "use general with another gaintype in the XML",
    ),
    Unread(
        "actuator_biasprm",
        _beyond("actuator_biastype", {BIAS_NONE: 0, BIAS_AFFINE: 3}),
        "its biastype does not read them",
        "use position, velocity, or general with another biastype in the XML",
    ),
    Unread(
        "actuator_dynprm",
        _beyond("actuator_dyntype", {DYN_NONE: 0, DYN_INTEGRATOR: 0, DYN_FILTER: 1, DYN_FILTEREXACT: 1}),
        "its dyntype does not read them",
        "set another dyntype in the XML",
    ),
    Unread(
        "dof_solref dof_solimp",
        lambda m: peek(m, "dof_frictionloss") == 0.0,
        "its friction loss is 0",
        "set dof_frictionloss",
    ),
    Unread(
        "tendon_solref_fri tendon_solimp_fri",
        lambda m: peek(m, "tendon_frictionloss") == 0.0,
        "its friction loss is 0",
        "set tendon_frictionloss",
    ),
)


def _element(m: Model, name: str, i: int) -> tuple[str, int]:
    """Returns kind and id of the element of row i of a field."""
    prefix = name.partition("_")[0]
    if prefix == "dof":
        return "joint", int(m.dof_jntid[i])
    if name == "actuator_ctrlrange":
        i = int(np.searchsorted(m.actuator_ctrladr, i, side="right")) - 1
    return KINDS.get(prefix, prefix), i


@check("edit-unread", WARNING, "the edit, for example domain randomization, has no effect")
def unread(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds fields that were edited after loading, and that a flag, a type or a zero switches off: ranges without a
    limit, parameters of actuators that their types do not read, and solref and solimp of absent friction loss.  A
    world of a batch is examined by `batch.get_model(world)`."""
    m = examined.model
    for names, unread_by, why, advice in UNREAD:
        for name in names.split():
            new = edited(examined, name)
            if new.any():
                mask = unread_by(m)
                lost = new & mask.reshape(*mask.shape, *(1,) * (new.ndim - mask.ndim))
                for i in np.flatnonzero(lost.any(axis=tuple(range(1, lost.ndim)))):
                    yield Sign(*_element(m, name, int(i)), f"{name} was edited, but {why}", advice)


# ---- contact parameters ----------------------------------------------------------------------------------------------
def _friction(m: Any, e: int, g: int, h: int) -> list[float]:
    """Returns the coefficients of friction that the contact space of a pair has."""
    slide, _, spin, roll, _ = friction(m, e, g, h)
    return [float(mu) for mu in (slide, spin, roll)[: {1: 0, 3: 1, 4: 2}.get(int(contact_dim(m, e, g, h)), 3)]]


def _softness(m: Any, e: int, g: int, h: int) -> list[float]:
    """Returns solref and solimp of a pair."""
    ref, imp = reference_and_impedance(m, e, g, h)
    return [float(x) for x in (*ref, *imp)]


USED = {"geom_friction": _friction, "geom_solmix": _softness, "geom_solref": _softness, "geom_solimp": _softness}
READ = (
    "geom_friction geom_solmix geom_solref geom_solimp geom_priority geom_condim pair_dim pair_friction pair_solref"
    " pair_solimp opt_o_friction opt_o_solref opt_o_solimp"
).split()


@check("edit-mixed-out", WARNING, "the edit, for example domain randomization, has no effect")
def mixed_out(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds friction, solmix, solref and solimp of geoms that were edited after loading without an effect on any
    contact: friction is the maximum of both geoms, one geom has a higher priority, an explicit pair sets the
    parameters, or the flag override replaces them."""
    m = examined.model
    if not m.ngeom:
        return
    changes = {name: np.flatnonzero(edited(examined, name).reshape(m.ngeom, -1).any(1)) for name in USED}
    if not any(map(len, changes.values())):
        return
    found = candidates(m.mj_model)
    pairs = np.stack([found[name] for name in ("cand_pair", "cand_geom1", "cand_geom2")], axis=1)
    for name, geoms in changes.items():
        for g in geoms.tolist():
            own = pairs[(pairs[:, 1:] == g).any(1)].tolist()
            if len(own) and not _acts(m, name, g, own):
                advice = "edit the other geoms, too, or set priority or an explicit pair in the XML"
                yield Sign("geom", g, f"{name} was edited, but no contact of the geom changes", advice)


def _acts(m: Model, name: str, geom: int, pairs: list[list[int]]) -> bool:
    """Returns whether the parameters of a pair differ from those with the geom's unedited value."""
    unedited = np.array(peek(m, name))
    unedited[geom] = np.asarray(read_field(m.mj_model, name))[geom]
    values = {field: peek(m, field) for field in READ}
    new, old = (
        SimpleNamespace(
            **{field: Rows(value.ravel(), field, m.layout[field].rows) for field, value in each.items()},
            opt_enableflags=m.opt_enableflags,
        )
        for each in (values, values | {name: unedited})
    )
    return any(USED[name](new, *pair) != USED[name](old, *pair) for pair in pairs)


# ---- masses ----------------------------------------------------------------------------------------------------------
@check("mass-without-inertia", WARNING, "the body has the new weight, but rotates as with its old mass")
def mass_without_inertia(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds bodies whose mass was edited after loading, and whose inertia and centre of mass were not.  A body of
    another density has an inertia in proportion to its mass."""
    m = examined.model
    changed = edited(examined, "body_mass")
    for name in ("body_inertia", "body_ipos"):
        changed &= ~edited(examined, name).any(1)
    changed &= peek(m, "body_inertia").any(1) & _turns(examined)
    for b in np.flatnonzero(changed):
        seen = f"mass {m.body_mass[b]:.4g} kg was {m.mj_model.body_mass[b]:.4g} kg, and body_inertia is unchanged"
        yield Sign("body", int(b), seen, "scale body_inertia by the factor of body_mass")


def _turns(examined: ExaminedModel) -> np.ndarray:
    """Returns the bodies (nbody,) that a DoF rotates."""
    m, turns = examined.model, np.zeros(examined.model.nbody, bool)
    for dof in range(m.nv):
        if not examined.is_linear(dof):
            turns[m.dof_bodyid[dof]] = True
    for b in range(1, m.nbody):
        turns[b] |= turns[m.body_parentid[b]]
    return turns
