"""Predicates of LIBERO's goals as NumPy functions over n worlds: On, In, Up, Open, Close, TurnOn, TurnOff.

A goal is a conjunction.  `goal_of` reads bodies, sites, joints and thresholds once, from a live environment of LIBERO;
the returned `Goal` is then evaluated for all worlds at once.
Source: LIBERO, envs/predicates/base_predicates.py, envs/object_states/base_object_states.py, envs/objects.  As there,
an object is the origin of its root body; the extent of a site is that of `SiteObject.in_box` and `SiteObject.under`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from featherlane.environments.robosuite.contacts import Contacts
from featherlane.errors import ModelError

CENTERED = 0.03  # largest horizontal distance of stacked objects [m]
BELOW_BOX = 0.01  # an object may be lower than the box that contains it [m]
ABOVE_SITE, INTO_SITE = 0.10, 0.005  # heights of an object over the top of a site that it lies on [m]
LIFTED = 1.0  # least height of an object that is up [m]


class Scene(NamedTuple):
    """States of n worlds.

    Attributes:
        qpos: (n, nq).
        xpos: (n, nbody, 3) [m].
        site_xpos: (n, nsite, 3) [m].
        site_xmat: (n, nsite, 9).
        touching: (n, k) bool: whether the two objects of each pair of `Goal.contacts` are in contact.
    """

    qpos: np.ndarray
    xpos: np.ndarray
    site_xpos: np.ndarray
    site_xmat: np.ndarray
    touching: np.ndarray


class Limit(NamedTuple):
    """A condition on the position of a joint: below or above a value."""

    value: float
    below: bool
    inclusive: bool

    def holds(self, position: np.ndarray) -> np.ndarray:
        """Returns where the condition holds."""
        inside = position < self.value if self.below else position > self.value
        return inside | (position == self.value) if self.inclusive else inside


Predicate = Callable[[Scene], np.ndarray]


@dataclass
class Goal:
    """A conjunction of predicates.

    Attributes:
        predicates: by their text in the goal: "on akita_black_bowl_1 plate_1".
        contacts: the pairs of objects whose contacts `Scene.touching` has.
    """

    predicates: dict[str, Predicate] = field(default_factory=dict)
    contacts: Contacts = field(default_factory=Contacts)

    def each(self, scene: Scene) -> dict[str, np.ndarray]:
        """Returns where each predicate holds, (n,) bool by its text."""
        return {text: predicate(scene) for text, predicate in self.predicates.items()}

    def reached(self, scene: Scene) -> np.ndarray:
        """Returns in which worlds all predicates hold, (n,) bool."""
        return np.all([predicate(scene) for predicate in self.predicates.values()], axis=0)


# ---- predicates ------------------------------------------------------------------------------------------------------
def stacked(scene: Scene, upper: int, lower: int, pair: int) -> np.ndarray:
    """Returns where a body lies on another one: higher, in contact, and centered on it, (n,) bool."""
    offset = scene.xpos[:, upper] - scene.xpos[:, lower]
    near = np.sqrt(offset[:, 0] ** 2 + offset[:, 1] ** 2) < CENTERED
    return (offset[:, 2] >= 0.0) & scene.touching[:, pair] & near


def on_site(scene: Scene, body: int, site: int, size: np.ndarray, pair: int | None) -> np.ndarray:
    """Returns where a body is over a site, and touches the object of the site if there is one, (n,) bool.

    As in LIBERO, the offset is multiplied by the matrix of the site, not by its transpose.
    """
    offset = scene.xpos[:, body] - scene.site_xpos[:, site]
    local = np.einsum("nij,nj->ni", scene.site_xmat[:, site].reshape(-1, 3, 3), offset)
    height = (local[:, 2] > size[2] - INTO_SITE) & (local[:, 2] < size[2] + ABOVE_SITE)
    over = height & (np.abs(local[:, :2]) < size[:2]).all(axis=1)
    return over if pair is None else over & scene.touching[:, pair]


def in_site(scene: Scene, body: int, site: int, size: np.ndarray) -> np.ndarray:
    """Returns where a body is in the box, parallel to the world's axes, that the turned sizes of a site span."""
    half = np.abs(scene.site_xmat[:, site].reshape(-1, 3, 3) @ size)
    low, high = scene.site_xpos[:, site] - half, scene.site_xpos[:, site] + half
    low[:, 2] -= BELOW_BOX
    return np.all((scene.xpos[:, body] > low) & (scene.xpos[:, body] < high), axis=1)


def joints_hold(scene: Scene, combine: Callable[..., np.ndarray], columns: np.ndarray, limit: Limit) -> np.ndarray:
    """Returns where joints of an object fulfill a condition, (n,) bool; `combine`: `np.any` or `np.all` of them."""
    return combine(limit.holds(scene.qpos[:, columns]), axis=1)


def lifted(scene: Scene, field: str, at: int) -> np.ndarray:
    """Returns where a body ("xpos") or a site ("site_xpos") is at least 1 m high, (n,) bool."""
    return getattr(scene, field)[:, at, 2] >= LIFTED


# ---- predicates of a live environment --------------------------------------------------------------------------------
class Reader:
    """Reads the bodies, sites, joints and thresholds of a goal from a live environment of LIBERO."""

    def __init__(self, env: Any, contacts: Contacts):
        self.env, self.model, self.contacts = env, env.sim.model, contacts

    def on(self, upper: str, lower: str) -> Predicate:
        body = self.body(upper)
        if lower not in self.env.object_sites_dict:
            low, pair = self.body(lower), self.pair(lower, upper)
            return partial(stacked, upper=body, lower=low, pair=pair)
        site, size = self.site(lower)
        carrier = self.env.object_sites_dict[lower].parent_name
        pair = None if carrier is None else self.pair(carrier, upper)
        return partial(on_site, body=body, site=site, size=size, pair=pair)

    def inside(self, content: str, box: str) -> Predicate:
        if box not in self.env.object_sites_dict:
            raise ModelError(f"goal: got (in {content} {box}), allowed is a site as the second object")
        body, (site, size) = self.body(content), self.site(box)
        return partial(in_site, body=body, site=site, size=size)

    def up(self, name: str) -> Predicate:
        if name in self.env.object_sites_dict:
            return partial(lifted, field="site_xpos", at=self.site(name)[0])
        return partial(lifted, field="xpos", at=self.body(name))

    def joints(self, condition: str, combine: Callable[..., np.ndarray], name: str) -> Predicate:
        """Returns a predicate of the joints of an object or of the part that carries a site.

        Args:
            condition: method of LIBERO's object with one joint position: is_open, is_close, turn_on, turn_off.
            combine: `np.any` or `np.all`.
        """
        sites = self.env.object_sites_dict
        of = sites[name].parent_name if name in sites else name
        owner = self.object(of)
        limit = limit_of(owner, condition, of)
        names = sites[name].joints if name in sites else owner.joints
        columns = np.array([self.model.get_joint_qpos_addr(joint) for joint in names], int)
        return partial(joints_hold, combine=combine, columns=columns, limit=limit)

    def object(self, name: str) -> Any:
        found = self.env.get_object(name)
        if found is None:
            known = [*self.env.objects_dict, *self.env.fixtures_dict, *self.env.object_sites_dict]
            raise ModelError(f"goal: got the object {name!r}, allowed are {', '.join(known)}")
        return found

    def body(self, name: str) -> int:
        self.object(name)
        return int(self.env.obj_body_id[name])

    def site(self, name: str) -> tuple[int, np.ndarray]:
        return int(self.model.site_name2id(name)), np.array(self.object(name).size, float)

    def pair(self, first: str, second: str) -> int:
        """Returns the column of two objects in `Scene.touching`."""
        return self.contacts.between(*(self.object(name).contact_geoms for name in (first, second)))


PREDICATES: dict[str, Callable[..., Predicate]] = {
    "on": Reader.on,
    "in": Reader.inside,
    "up": Reader.up,
    "open": lambda reader, name: reader.joints("is_open", np.any, name),
    "close": lambda reader, name: reader.joints("is_close", np.all, name),
    "turnon": lambda reader, name: reader.joints("turn_on", np.any, name),
    "turnoff": lambda reader, name: reader.joints("turn_off", np.all, name),
}


def goal_of(env: Any, goal: list[list[str]] | None = None) -> Goal:
    """Returns the goal of a live environment.

    Args:
        env: a problem of LIBERO (`ControlEnv.env`) after its reset.
        goal: predicates with their objects, `[["on", "bowl_1", "plate_1"], ...]`; None: those of the environment.

    Raises:
        ModelError: an unknown predicate; an object that the environment does not have, or one without the property of
            the predicate; `in` with a second object that is no site.
    """
    result = Goal()
    reader = Reader(env, result.contacts)
    for name, *objects in env.parsed_problem["goal_state"] if goal is None else goal:
        text = " ".join([name, *objects])
        if name.lower() not in PREDICATES or len(objects) != (2 if name.lower() in ("on", "in") else 1):
            raise ModelError(f"goal: got ({text}), allowed are the predicates {', '.join(PREDICATES)}")
        result.predicates[text] = PREDICATES[name.lower()](reader, *objects)
    return result


def limit_of(owner: Any, condition: str, name: str) -> Limit:
    """Returns the condition of an object's method on a joint position, from values of the method.

    Each condition of LIBERO compares the position with one of the values of `object_properties["articulation"]`.

    Raises:
        ModelError: the object has no such condition, or one that changes at no such value.
    """
    try:
        test, values = getattr(owner, condition), owner.object_properties["articulation"].values()
        for value in (float(each) for entry in values for each in entry):
            below, above = test(np.nextafter(value, -np.inf)), test(np.nextafter(value, np.inf))
            if below != above:
                return Limit(value, bool(below), bool(test(value)))
    except (AttributeError, KeyError, NotImplementedError, ValueError):
        pass
    raise ModelError(f"goal: {name} ({type(owner).__name__}) has no condition {condition} on a joint position")
