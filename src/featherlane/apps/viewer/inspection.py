"""Describes an element of a world in its present state: its values, its limits, and what limits it."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

import featherlane as fl
from featherlane import Data, Model
from featherlane.apps.viewer.markup import labels
from featherlane.enums import HINGE, SLIDE, TRN_BODY, TRN_JOINT, TRN_JOINTINPARENT, TRN_TENDON, Disable
from featherlane.extension import DATA, MODEL, mujoco_module

# fields of each kind of element, of a world or of the model
FIELDS = {
    "body": "body_mass xpos xquat subtree_com xfrc_applied",
    "joint": "qpos jnt_range qvel qacc qfrc_actuator jnt_actfrcrange "
    "qfrc_bias qfrc_passive qfrc_constraint qfrc_applied",
    "geom": "geom_size geom_xpos geom_friction geom_condim geom_contype geom_conaffinity",
    "actuator": "ctrl actuator_ctrlrange act actuator_length actuator_velocity actuator_force actuator_forcerange",
    "tendon": "ten_length tendon_range ten_velocity",
}
KINDS = (*FIELDS, "contact")
# limits, and the field of the model that activates each
LIMITS = {
    "jnt_range": "jnt_limited",
    "jnt_actfrcrange": "jnt_actfrclimited",
    "actuator_ctrlrange": "actuator_ctrllimited",
    "actuator_forcerange": "actuator_forcelimited",
    "tendon_range": "tendon_limited",
}
TARGETS = {TRN_JOINT: "joint", TRN_JOINTINPARENT: "joint", TRN_TENDON: "tendon", TRN_BODY: "body"}
# forces that an actuator balances at zero acceleration, and their signs; bias has gravity
LOADS = {"bias": 1, "passive": -1, "constraint": -1, "applied": -1}
REACHED = 1e-6  # part of a range within which a value is at its limit
Line = tuple[str, str]


def names(data: Data, kind: str) -> tuple[str, ...]:
    """Returns a name for each element of a kind; contacts are those of the present state."""
    if kind != "contact":
        return labels(data.model.names(kind))
    geoms = labels(data.model.names("geom"))
    return tuple(f"{k}: {geoms[a]} - {geoms[b]}" for k, (a, b) in enumerate(data.contact.geom.tolist()))


def at_body(data: Data, kind: str, body: int) -> np.ndarray:
    """Returns the elements of a kind that belong to a body."""
    model = data.model
    owners = {
        "body": lambda: np.arange(model.nbody),
        "joint": lambda: model.jnt_bodyid,
        "geom": lambda: model.geom_bodyid,
        "actuator": lambda: np.where((j := moved_joints(model)) >= 0, model.jnt_bodyid[j], -1),
        "tendon": lambda: np.zeros(0),
        "contact": lambda: model.geom_bodyid[data.contact.geom].reshape(-1, 2),
    }[kind]()
    return np.flatnonzero((owners == body).reshape(len(owners), -1).any(1))


def lines(data: Data, kind: str, element: int) -> list[Line]:
    """Returns label and text of lines about an element of a world after `forward`; a finding has no label."""
    if kind == "contact":
        return list(_contact(data, element)) if element < len(data.contact) else [("", "this contact is open")]
    return [*_findings(data, kind, element), *_values(data, kind, element)]


def _values(data: Data, kind: str, element: int) -> Iterator[Line]:
    """Yields the fields of an element, and those of the joint that an actuator moves."""
    model = data.model
    yield kind, _place(data, kind, element)
    for name in FIELDS[kind].split():
        found = value(data, kind, element, name)
        if found.size and (name not in LIMITS or getattr(model, LIMITS[name])[element]):
            yield name, _text(found, _unit(data, kind, element, name))
    if kind == "body":
        velocity = fl.query.object_velocity(model, data, ("body", element))
        yield "velocity", f"{_text(velocity[3:], 'm/s')}; {_text(velocity[:3], 'rad/s')}"
    if kind in ("body", "geom"):
        touching = (model.geom_bodyid if kind == "body" else np.arange(model.ngeom))[data.contact.geom] == element
        yield "contacts", str(int(touching.any(1).sum()))
    if kind == "actuator" and (joint := moved_joint(data, kind, element)) >= 0:
        yield from _values(data, "joint", joint)


def value(data: Data, kind: str, element: int, name: str) -> np.ndarray:
    """Returns a field of an element in a world."""
    view = getattr(data.model if name in MODEL else data, kind)(element)
    return np.ravel(getattr(view, name))


def moved_joints(model: Model) -> np.ndarray:
    """Returns the hinge or slide that each actuator moves, -1 for none."""
    moves = np.isin(model.actuator_trntype, (TRN_JOINT, TRN_JOINTINPARENT))
    joint = np.where(moves, model.actuator_trnid[:, 0], -1)
    scalar = np.append(np.isin(model.jnt_type, (HINGE, SLIDE)), False)
    return np.where(scalar[joint], joint, -1)


def moved_joint(data: Data, kind: str, element: int) -> int:
    """Returns the hinge or slide that an element is, or that it moves as an actuator; -1 for none."""
    if kind == "actuator":
        return int(moved_joints(data.model)[element])
    return element if kind == "joint" and data.model.jnt_type[element] in (HINGE, SLIDE) else -1


def _place(data: Data, kind: str, element: int) -> str:
    """Returns the type of an element and the element that it belongs to."""
    model, mujoco = data.model, mujoco_module()
    name = lambda kind, k: labels(model.names(kind))[k]  # noqa: E731
    if kind == "body":
        return f"{name('body', element)}, child of {name('body', int(model.body_parentid[element]))}"
    if kind in ("joint", "geom"):
        prefix, types = ("jnt", mujoco.mjtJoint) if kind == "joint" else ("geom", mujoco.mjtGeom)
        form = types(int(getattr(model, f"{prefix}_type")[element])).name.split("_")[1].lower()
        body = name("body", int(getattr(model, f"{prefix}_bodyid")[element]))
        return f"{name(kind, element)}, {form} of body {body}"
    target = TARGETS.get(int(model.actuator_trntype[element])) if kind == "actuator" else None
    moved = f" on {target} {name(target, int(model.actuator_trnid[element, 0]))}" if target else ""
    return name(kind, element) + moved


def _unit(data: Data, kind: str, element: int, name: str) -> str:
    """Returns the unit of a field for this element, from the units for translation and rotation."""
    unit, model = (MODEL if name in MODEL else DATA)[name].unit, data.model
    joint = moved_joint(data, kind, element)
    if joint < 0 or ", " not in unit:
        return unit.removeprefix("1")
    return unit.split(", ")[int(model.jnt_type[joint] == HINGE)]


def _text(values: np.ndarray | float, unit: str) -> str:
    return " ".join((", ".join(f"{float(x):.4g}" for x in np.ravel(values)), unit)).strip()


def _findings(data: Data, kind: str, element: int) -> Iterator[Line]:
    """Yields sentences about limits that are reached, and why."""
    if kind == "joint" and moved_joint(data, kind, element) >= 0:
        if side := _side(data, kind, element, "qpos", "jnt_range"):
            yield "", f"The joint is at its {side} limit, or beyond it."
        if _side(data, kind, element, "qfrc_actuator", "jnt_actfrcrange"):
            yield "", "Saturated: the force of its actuators is at jnt_actfrcrange."
    if kind == "actuator":
        yield from _actuator_findings(data, element)


def _actuator_findings(data: Data, k: int) -> Iterator[Line]:
    """Yields sentences about the control, the force and the joint of an actuator."""
    model, unit = data.model, _unit(data, "actuator", k, "actuator_forcerange")
    if side := _side(data, "actuator", k, "ctrl", "actuator_ctrlrange"):
        clamped = not int(model.opt.disableflags) & Disable.CLAMPCTRL
        yield "", f"The control is at its {side} limit{', or clamped to it' * clamped}."
    if side := _side(data, "actuator", k, "actuator_force", "actuator_forcerange"):
        demand = _text(unlimited_force(data, k), unit)
        yield "", f"Saturated: the force is at its {side} limit. Without it, the force would be {demand}."
    elif model.actuator_forcelimited[k]:
        force, limit = value(data, "actuator", k, "actuator_force")[0], model.actuator_forcerange[k]
        yield "", f"The force is {100 * force / limit[int(force > 0)]:.0f} % of its limit."
    joint = moved_joint(data, "actuator", k)
    if joint < 0:
        return
    target, (low, high) = _target(data, k), model.jnt_range[joint]
    if target is not None and model.jnt_limited[joint] and not low <= target <= high:
        outside = _text(target, _unit(data, "joint", joint, "jnt_range"))
        yield "", f"Its target {outside} is outside of the range of the joint."
    load = sum(sign * value(data, "joint", joint, f"qfrc_{name}")[0] for name, sign in LOADS.items())
    yield "", f"Force that would hold the joint at zero acceleration: {_text(load, unit)}."
    yield from _findings(data, "joint", joint)


def _side(data: Data, kind: str, element: int, name: str, limit: str) -> str:
    """Returns which limit a value has reached: "lower", "upper", or "" for none."""
    if not getattr(data.model, LIMITS[limit])[element]:
        return ""
    (low, high), x = getattr(data.model, limit)[element], value(data, kind, element, name)[0]
    near = REACHED * (high - low)
    return "lower" if x <= low + near else "upper" if x >= high - near else ""


def _target(data: Data, actuator: int) -> float | None:
    """Returns the joint position at which a position servo, force = k (ctrl - length), has no force; else None."""
    model = data.model
    gain, bias, gear = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator, 1], model.actuator_gear
    if gain <= 0 or bias != -gain:
        return None
    ctrl = value(data, "actuator", actuator, "ctrl")[0]
    if model.actuator_ctrllimited[actuator] and not int(model.opt.disableflags) & Disable.CLAMPCTRL:
        ctrl = np.clip(ctrl, *model.actuator_ctrlrange[actuator])
    return float(ctrl / (gear[actuator, 0] or 1.0))


def unlimited_force(data: Data, actuator: int) -> float:
    """Computes the force of an actuator without its force range, in a copy of the world and its model."""
    model = copy.deepcopy(data.model)
    model.actuator_forcelimited[actuator] = 0
    other = Data(model, data.ngiven)
    fl.set_state(model, other, fl.get_state(data.model, data))
    fl.forward(model, other)
    return float(value(other, "actuator", actuator, "actuator_force")[0])


def _contact(data: Data, k: int) -> Iterator[Line]:
    """Yields the values of a contact: geometry, force and friction."""
    contact, geoms = data.contact[k], labels(data.model.names("geom"))
    force = fl.query.contact_force(data.model, data, k)
    normal, slip = float(force[0]), float(np.linalg.norm(force[1:3]))
    yield "geoms", " - ".join(geoms[g] for g in contact.geom)
    yield "dist", _text(contact.dist, "m")
    yield "pos", _text(contact.pos, "m")
    yield "normal", _text(contact.frame[:3], "")
    yield "normal force", _text(normal, "N")
    yield "friction force", _text(slip, "N")
    yield "friction", _text(contact.friction, "")
    if normal > 0 and contact.dim > 1:
        part = float(slip / (normal * contact.friction[:2].max()))
        yield "", f"Friction uses {100 * part:.0f} % of its limit{': it slips or is about to' * (part > 0.99)}."
