"""Checks edits of a loaded model, or of a world of a batch: those without effect, and masses without inertias.

An edit is a difference from `mj_model`, which holds the values of the source or of the last `set_const`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from featherlane import Model
from featherlane.apps.doctor.examined_model import ExaminedModel, kind_of
from featherlane.apps.doctor.finding import WARNING, Sign
from featherlane.apps.doctor.registry import check
from featherlane.enums import (
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
from featherlane.query import contact_parameters

SAME = 1e-6  # relative change of a mass that is rounding, also of float32
ANY = 10  # number of parameters of an actuator


def edited(examined: ExaminedModel, name: str) -> np.ndarray:
    """Returns which entries of a field differ from the source's by more than rounding."""
    m = examined.model
    new = getattr(m, name)
    old = np.asarray(getattr(m.mj_model, name), float).reshape(new.shape)
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
    return lambda m: ~np.asarray(getattr(m, flag), bool)


def _beyond(kind: str, known: dict[int, int]) -> Callable[[Model], np.ndarray]:
    """Returns a function for the parameters that an actuator's type does not read; `known`: number of those read."""

    def unread(m: Model) -> np.ndarray:
        plain = (np.asarray(m.mj_model.actuator_plugin) < 0) & (m.actuator_states == 0)
        number = [known.get(int(k), ANY) if p else ANY for k, p in zip(getattr(m, kind), plain, strict=True)]
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
        lambda m: m.dof_frictionloss == 0.0,
        "its friction loss is 0",
        "set dof_frictionloss",
    ),
    Unread(
        "tendon_solref_fri tendon_solimp_fri",
        lambda m: m.tendon_frictionloss == 0.0,
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
    return kind_of(prefix), i


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
def _friction(m: Model, geom1: int, geom2: int) -> list[float]:
    """Returns the coefficients of friction that the contact space of a pair has."""
    found = contact_parameters(m, geom1, geom2)
    return found.friction[[0, 2, 3]][: {1: 0, 3: 1, 4: 2}.get(found.dim, 3)].tolist()


def _softness(m: Model, geom1: int, geom2: int) -> list[float]:
    """Returns solref and solimp of a pair."""
    found = contact_parameters(m, geom1, geom2)
    return [*found.solref, *found.solimp]


USED = {"geom_friction": _friction, "geom_solmix": _softness, "geom_solref": _softness, "geom_solimp": _softness}


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
    pairs = examined.candidates
    for name, geoms in changes.items():
        for g in geoms.tolist():
            own = pairs[(pairs == g).any(1)].tolist()
            if len(own) and not _acts(m, name, g, own):
                advice = "edit the other geoms, too, or set priority or an explicit pair in the XML"
                yield Sign("geom", g, f"{name} was edited, but no contact of the geom changes", advice)


def _acts(m: Model, name: str, geom: int, pairs: list[list[int]]) -> bool:
    """Returns whether the parameters of a pair differ from those with the geom's unedited value."""
    unedited, used = copy.copy(m), USED[name]
    getattr(unedited, name)[geom] = getattr(m.mj_model, name)[geom]
    return any(used(m, *pair) != used(unedited, *pair) for pair in pairs)


# ---- masses ----------------------------------------------------------------------------------------------------------
@check("mass-without-inertia", WARNING, "the body has the new weight, but rotates as with its old mass")
def mass_without_inertia(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds bodies whose mass was edited after loading, and whose inertia and centre of mass were not.  A body of
    another density has an inertia in proportion to its mass."""
    m = examined.model
    changed = edited(examined, "body_mass")
    for name in ("body_inertia", "body_ipos"):
        changed &= ~edited(examined, name).any(1)
    changed &= m.body_inertia.any(1) & _turns(examined)
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
