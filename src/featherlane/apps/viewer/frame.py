"""`Frame`: plain arrays with everything that is drawn of some worlds at one time.

Kinematics computes the poses of all bodies together.  Contacts, their forces and islands need a forward pass.
A path of a tendon is straight segments; an arc around a geom is several of them.

Source: MuJoCo mj_tendon, `fl.query.tendon_path` for one world.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from featherlane import Batch
from featherlane.enums import WRAP_CYLINDER, WRAP_SITE, WRAP_SPHERE, Enable
from featherlane.extension import one_of, rotation

# every layer and what it needs in addition to the poses of bodies: fields of a world or the model, or other parts
LAYERS = {
    "geoms": (),
    "hulls": (),
    "sites": (),
    "tendons": ("paths",),
    "joints": ("xanchor", "xaxis"),
    "joint limits": ("xanchor", "xaxis", "qpos"),
    "actuators": ("xanchor", "xaxis", "paths", "actuator_force"),
    "bodies": (),
    "mass centres": ("xipos", "subtree_com"),
    "support": ("touches", "subtree_com"),
    "inertias": ("xipos", "body_mass", "body_inertia"),
    "contacts": ("touches",),
    "forces": ("touches",),
    "body names": (),
    "joint names": ("xanchor",),
    "geom names": ("geom_xpos",),
    "site names": ("site_xpos",),
    "islands": ("tree_island",),
    "sleep": ("asleep",),
    "glass": (),
}
KINEMATIC = "xanchor xaxis xipos subtree_com geom_xpos geom_xmat site_xpos cam_xpos cam_xmat".split()
PATHS = ("site_xpos", "geom_xpos", "geom_xmat")  # fields that paths need
PIECES = 8  # segments per arc
FORWARD = {"tree_island": -1, "actuator_force": 0.0}  # fields of a forward pass, and their value in other worlds
MOST_DETAILED = 64  # number of worlds (the first) with contacts and other results of a forward pass


class Touches(NamedTuple):
    """Contacts of the drawn worlds, concatenated."""

    world: np.ndarray  # (k,) index of the world among the drawn worlds
    geom: np.ndarray  # (k, 2) the two geoms
    pos: np.ndarray  # (k, 3) [m]
    normal: np.ndarray  # (k, 3) from the first geom to the second
    force: np.ndarray  # (k, 3) on the second geom's body, in world axes [N]; zero if the contact has no rows


class Paths(NamedTuple):
    """Straight segments of tendons of the drawn worlds, concatenated."""

    world: np.ndarray  # (k,) index of the world among the drawn worlds
    tendon: np.ndarray  # (k,) the tendon
    start: np.ndarray  # (k, 3) [m]
    end: np.ndarray


@dataclass
class Frame:
    """Data to draw n worlds, in world axes, relative to each world's origin; None if no layer needs it."""

    worlds: np.ndarray  # (n,) numbers of the worlds
    time: np.ndarray  # (n,) [s]
    pos: np.ndarray  # (n, nbody, 3) positions of bodies [m]
    quat: np.ndarray  # (n, nbody, 4) orientations of bodies
    # (n, ...) other fields that layers need, by name; those of `FORWARD` are of the first 64 worlds only
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    asleep: np.ndarray | None = None  # (n, ntree) whether each tree sleeps
    touches: Any = None  # `Touches` of the first 64 worlds
    paths: Any = None  # `Paths`
    variants: np.ndarray | None = None  # (n, groups) names of the variants that each world has of the model's groups
    needs: frozenset[str] = frozenset()  # data that was computed for layers, see `LAYERS`

    def shows(self, layer: str) -> bool:
        """Returns whether the frame has the data of a layer."""
        return self.needs.issuperset(LAYERS[layer])

    @classmethod
    def of(
        cls,
        batch: Batch,
        worlds: np.ndarray | None = None,
        layers: Iterable[str] = (),
        fields: Iterable[str] = (),
    ) -> Frame:
        """Computes the frame of the present states of some worlds, or of all; the worlds do not change.

        Args:
            layers: names of the drawn layers (`LAYERS`); data for other layers is not computed.
            fields: further fields, of `KINEMATIC`.
        """
        needs = {need for layer in layers for need in LAYERS[one_of("layers", layer, LAYERS)]} | {*fields}
        chosen = np.arange(batch.nworld) if worlds is None else np.asarray(worlds, int)
        kinematic = [name for name in KINEMATIC if name in needs or ("paths" in needs and name in PATHS)]
        found = batch.present_fields(["xpos", "xquat", *kinematic], ids=chosen)
        frame = cls(chosen, batch.time[chosen], found["xpos"], found["xquat"], needs=frozenset(needs))
        frame.fields = {name: found[name] for name in kinematic}
        for name in (name for name in needs if name.startswith("body_")):
            own, value = batch.expanded(name), getattr(batch.model, name)
            frame.fields[name] = np.broadcast_to(value, (len(chosen), *value.shape)) if own is None else own[chosen]
        frame.fields |= _forwarded(batch, chosen, [name for name in FORWARD if name in needs])
        if "qpos" in needs:
            frame.fields["qpos"] = batch.qpos[chosen]
        if groups := batch.model.variants:
            frame.variants = np.stack([batch.get_variant(group, ids=chosen) for group in groups], 1)
        if "paths" in needs:
            parts = zip(*_segments(batch, chosen, *(found[name] for name in PATHS)), strict=True)
            frame.paths = Paths(*(np.concatenate(part) for part in parts))
        if "asleep" in needs:
            frame.asleep = np.zeros((len(chosen), batch.model.ntree), bool)
            if batch.model.opt.enableflags & Enable.SLEEP:
                frame.asleep = batch.tree_asleep[chosen] >= 0
        if "touches" in needs:
            frame.touches = _touches(batch, chosen[:MOST_DETAILED])
        return frame

    @classmethod
    def join(cls, frames: Sequence[Frame]) -> Frame:
        """Joins the frames of several batches."""
        counts = np.cumsum([0, *(len(frame.worlds) for frame in frames)])

        def joined(parts: list[Any]) -> Any:
            if isinstance(parts[0], dict):
                return {name: joined([part[name] for part in parts]) for name in parts[0]}
            if isinstance(parts[0], tuple):  # its worlds are indices among the drawn worlds
                rows = [part._replace(world=part.world + first) for part, first in zip(parts, counts, strict=False)]
                return type(parts[0])(*(np.concatenate(column) for column in zip(*rows, strict=True)))
            return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else parts[0]

        return cls(**{f.name: joined([getattr(frame, f.name) for frame in frames]) for f in dataclasses.fields(cls)})


_PROBES: WeakKeyDictionary[Batch, Batch] = WeakKeyDictionary()  # copies of worlds, kept as long as their source


def _forwarded(batch: Batch, chosen: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """Returns fields (n, ...) that a forward pass of copies of the first worlds computes."""
    first = chosen[:MOST_DETAILED]
    if not names:
        return {}
    probe = _PROBES.get(batch)
    if probe is None or probe.nworld != len(first):
        n = max(len(first), 1)
        probe = _PROBES[batch] = Batch(batch.model, n, nthread=1, dtype=batch.dtype, given_contacts=batch.ngiven)
        probe.mute()
    bound = {name: probe.bind(name) for name in names}
    if len(first):
        own = {f"model.{name}": rows for name, rows in batch.expanded_fields.items()}
        probe.restore({name: rows[first] for name, rows in (own | dict(batch.rows)).items()})
        probe.forward()
    found = {}
    for name, values in bound.items():
        found[name] = np.full((len(chosen), *values.shape[1:]), FORWARD[name])
        found[name][: len(first)] = values[: len(first)]
    return found


def _touches(batch: Batch, chosen: np.ndarray) -> Touches:
    """Returns contacts with their forces."""
    listed: Any = batch.contacts(output=("geom", "pos", "normal", "tangent", "force"), ids=chosen)
    world, k = np.nonzero(np.arange(listed.geom.shape[1]) < listed.found[:, None])
    normal, tangent = listed.normal[world, k], listed.tangent[world, k]
    axes = np.stack((normal, tangent, np.cross(normal, tangent)), 1)
    force = np.einsum("ki,kij->kj", listed.force[world, k], axes)
    return Touches(world, listed.geom[world, k], listed.pos[world, k], normal, force)


def _segments(
    batch: Batch, chosen: np.ndarray, sites: np.ndarray, centres: np.ndarray, frames: np.ndarray
) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields segments of tendons (world, tendon, start, end) from the positions of sites and the frames of geoms."""
    model, (ends, length) = batch.model, batch.tendon_arcs(ids=chosen)
    kind, obj, tendon = model.wrap_type, model.wrap_objid, np.repeat(np.arange(model.ntendon), model.tendon_num)

    def those(there: np.ndarray, k: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
        world, piece = np.nonzero(there)
        return world, tendon[k][piece], start[world, piece], end[world, piece]

    # between consecutive sites of the same tendon and branch
    k = np.flatnonzero((kind[:-1] == WRAP_SITE) & (kind[1:] == WRAP_SITE) & (tendon[:-1] == tendon[1:]))
    yield those(np.ones((len(chosen), len(k)), bool), k, sites[:, obj[k]], sites[:, obj[k + 1]])
    k = np.flatnonzero(kind >= WRAP_SPHERE)
    before, after, bends = sites[:, obj[k - 1]], sites[:, obj[(k + 1) % max(len(kind), 1)]], length >= 0
    yield those(~bends, k, before, after)
    axis = frames[:, obj[k], 2::3] * (kind[k] == WRAP_CYLINDER)[:, None]
    corners = [before, *_arc(centres[:, obj[k]], axis, ends, length), after]
    for start, end in pairwise(corners):
        yield those(bends, k, start, end)


def _arc(centre: np.ndarray, axis: np.ndarray, ends: np.ndarray, length: np.ndarray) -> list[np.ndarray]:
    """Returns PIECES + 1 arrays (n, k, 3) of points along arcs in planes through the centres, or around cylinders.

    Args:
        axis: (n, k, 3) axes of the cylinders; zero for spheres.
    """
    first, last = ends[:, :, 0] - centre, ends[:, :, 1] - centre
    low, high = (axis * (end * axis).sum(-1, keepdims=True) for end in (first, last))  # linear in the angle
    a, b = first - low, last - high
    normal, radius = np.cross(a, b), np.maximum(np.linalg.norm(a, axis=-1), 1e-12)
    size = np.linalg.norm(normal, axis=-1)
    angle = np.arctan2(size, (a * b).sum(-1))
    # if the arc is the long one, go the long way around
    flat = np.sqrt(np.maximum(length**2 - ((high - low) ** 2).sum(-1), 0.0)) / radius
    angle = np.where(flat > np.pi + 1e-3, angle - 2 * np.pi, angle)
    turn = normal * np.where(size > 1e-9 * radius**2, angle / np.maximum(size, 1e-12), 0.0)[..., None]
    parts = np.linspace(0.0, 1.0, PIECES + 1)
    return [centre + rotation.to_world(rotation.exp_so3(t * turn), a) + low + t * (high - low) for t in parts]
