"""`Frame`: plain arrays with everything that is drawn of some worlds at one time.

Kinematics computes the poses of all bodies together.  Contacts, their forces and islands need a forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from featherlane import Batch
from featherlane.apps.viewer.paths import Paths, paths
from featherlane.enums import Enable
from featherlane.extension import one_of

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
FORWARD = {"tree_island": -1, "actuator_force": 0.0}  # fields of a forward pass, and their value in other worlds
MOST_DETAILED = 64  # number of worlds (the first) with contacts and other results of a forward pass


@dataclass
class Touches:
    """Contacts of the drawn worlds, concatenated.

    Attributes:
        world: (k,) index of the world among the drawn worlds.
        geom: (k, 2) the two geoms.
        pos: (k, 3) [m].
        normal: (k, 3) from the first geom to the second.
        force: (k,) force on the second geom's body, in world axes [N]; zero if the contact has no rows.
    """

    world: np.ndarray
    geom: np.ndarray
    pos: np.ndarray
    normal: np.ndarray
    force: np.ndarray


@dataclass
class Frame:
    """Data to draw n worlds, in world axes, relative to each world's origin.

    Attributes:
        worlds: (n,) numbers of the worlds.
        time: (n,) [s].
        pos: (n, nbody, 3) positions of bodies [m].
        quat: (n, nbody, 4) orientations of bodies.
        fields: (n, ...) other fields that layers need, by name; those of `FORWARD` are of the first 64 worlds only.
        asleep: (n, ntree) whether each tree sleeps; None if no layer needs it, like all fields below.
        touches: contacts of the first 64 worlds.
        needs: data that was computed for layers, see `LAYERS`.
        variants: (n, groups) names of the variants that each world has of the model's groups, None without groups.
    """

    worlds: np.ndarray
    time: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    asleep: np.ndarray | None = None
    touches: Touches | None = None
    paths: Paths | None = None
    variants: np.ndarray | None = None
    needs: frozenset[str] = frozenset()

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
        """Computes the frame of the present states of some worlds, which do not change.

        Args:
            worlds: numbers of the worlds; None for all worlds.
            layers: names of the drawn layers (`LAYERS`); data for other layers is not computed.
            fields: further fields, of `KINEMATIC`.

        Raises:
            ModelError: a world does not exist, or a layer is unknown.
            RuntimeError: another thread is executing a call of the batch.
        """
        needs = {need for layer in layers for need in LAYERS[one_of("layers", layer, LAYERS)]} | {*fields}
        chosen = np.arange(batch.nworld) if worlds is None else np.asarray(worlds, int)
        kinematic = [name for name in KINEMATIC if name in needs or ("paths" in needs and name in PATHS)]
        found = batch.present_fields(["xpos", "xquat", *kinematic], ids=chosen)
        frame = cls(chosen, batch.time[chosen], found["xpos"], found["xquat"], needs=frozenset(needs))
        frame.fields = {name: found[name] for name in kinematic}
        frame.fields |= {name: _per_world(batch, name, chosen) for name in needs if name.startswith("body_")}
        frame.fields |= _forwarded(batch, chosen, [name for name in FORWARD if name in needs])
        if "qpos" in needs:
            frame.fields["qpos"] = batch.qpos[chosen]
        if groups := batch.model.variants:
            frame.variants = np.stack([batch.get_variant(group, ids=chosen) for group in groups], 1)
        if "paths" in needs:
            ends, length = batch.tendon_arcs(ids=chosen)
            sites, centres, frames = (found[name] for name in PATHS)
            frame.paths = paths(batch.model, sites, centres, frames, ends, length)
        if "asleep" in needs:
            frame.asleep = np.zeros((len(chosen), batch.model.ntree), bool)
            if batch.model.opt.enableflags & Enable.SLEEP:
                frame.asleep = batch.tree_asleep[chosen] >= 0
        if "touches" in needs:
            frame.touches = _touches(batch, chosen[:MOST_DETAILED])
        return frame


def _per_world(batch: Batch, name: str, chosen: np.ndarray) -> np.ndarray:
    """Returns a field of the model in some worlds (n, ...)."""
    own, value = batch.expanded(name), getattr(batch.model, name)
    return np.broadcast_to(value, (len(chosen), *value.shape)).copy() if own is None else own[chosen]


def checkpoint_of(batch: Batch, worlds: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
    """Returns the checkpoint of some worlds, for a batch of as many worlds."""
    own = {f"model.{name}": rows for name, rows in batch.expanded_fields.items()}
    return {name: rows[worlds] for name, rows in (own | dict(batch.rows)).items()}


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
        probe.restore(checkpoint_of(batch, first))
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
