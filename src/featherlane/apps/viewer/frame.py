"""`Frame`: plain arrays with everything that is drawn of some worlds at one time.

Kinematics computes the poses of all bodies together.  Contacts, their forces and islands need a forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from featherlane import Batch
from featherlane.apps.viewer.paths import Paths, paths
from featherlane.enums import Enable
from featherlane.extension import one_of

# every layer and what it needs in addition to the poses of bodies
LAYERS = {
    "geoms": (),
    "hulls": (),
    "sites": (),
    "tendons": ("paths",),
    "joints": ("joints",),
    "bodies": (),
    "mass centres": ("masses",),
    "inertias": ("masses",),
    "contacts": ("touches",),
    "forces": ("touches",),
    "islands": ("islands",),
    "sleep": ("sleep",),
    "glass": (),
}
FIELDS = {
    "joints": ("xanchor", "xaxis"),
    "masses": ("xipos",),
    "paths": ("site_xpos", "geom_xpos", "geom_xmat"),
}  # fields of kinematics by need
MOST_DETAILED = 64  # number of worlds (the first) with contacts and islands, which take a forward pass


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
class Masses:
    """Masses of bodies, which can differ between worlds.

    Attributes:
        centre: (n, nbody, 3) centres of mass [m].
        mass: (n or 1, nbody) [kg].
        inertia: (n or 1, nbody, 3) about the principal axes [kg m^2].
    """

    centre: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray


@dataclass
class Frame:
    """Data to draw n worlds, in world axes, relative to each world's origin.

    Attributes:
        worlds: (n,) numbers of the worlds.
        time: (n,) [s].
        pos: (n, nbody, 3) positions of bodies [m].
        quat: (n, nbody, 4) orientations of bodies.
        anchor: (n, njnt, 3) anchors of joints [m]; None if no layer needs it, like all fields below.
        axis: (n, njnt, 3) axes of joints.
        asleep: (n, ntree) whether each tree sleeps.
        island: (n, ntree) constraint island of each tree, -1 for none; -1 in worlds after the first 64.
        touches: contacts of the first 64 worlds.
        variants: (n, groups) names of the variants that each world has of the model's groups, None without groups.
    """

    worlds: np.ndarray
    time: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    anchor: np.ndarray | None = None
    axis: np.ndarray | None = None
    masses: Masses | None = None
    asleep: np.ndarray | None = None
    island: np.ndarray | None = None
    touches: Touches | None = None
    paths: Paths | None = None
    variants: np.ndarray | None = None

    @classmethod
    def of(cls, batch: Batch, worlds: np.ndarray | None = None, layers: Iterable[str] = ()) -> Frame:
        """Computes the frame of the present states of some worlds, which do not change.

        Args:
            worlds: numbers of the worlds; None for all worlds.
            layers: names of the drawn layers (`LAYERS`); data for other layers is not computed.

        Raises:
            ModelError: a world does not exist, or a layer is unknown.
            RuntimeError: another thread is executing a call of the batch.
        """
        needs = {need for layer in layers for need in LAYERS[one_of("layers", layer, LAYERS)]}
        chosen = np.arange(batch.nworld) if worlds is None else np.asarray(worlds, int)
        fields = ["xpos", "xquat", *(name for need, names in FIELDS.items() if need in needs for name in names)]
        found = batch.present_fields(fields, ids=chosen)
        frame = cls(chosen, batch.time[chosen], found["xpos"], found["xquat"], found.get("xanchor"), found.get("xaxis"))
        if groups := batch.model.variants:
            frame.variants = np.stack([batch.get_variant(group, ids=chosen) for group in groups], 1)
        if "masses" in needs:
            mass, inertia = (_per_world(batch, f"body_{name}", chosen) for name in ("mass", "inertia"))
            frame.masses = Masses(found["xipos"], mass, inertia)
        if "paths" in needs:
            ends, length = batch.tendon_arcs(ids=chosen)
            frame.paths = paths(batch.model, found["site_xpos"], found["geom_xpos"], found["geom_xmat"], ends, length)
        if "sleep" in needs:
            frame.asleep = np.zeros((len(chosen), batch.model.ntree), bool)
            if batch.model.opt.enableflags & Enable.SLEEP:
                frame.asleep = batch.tree_asleep[chosen] >= 0
        if "touches" in needs:
            frame.touches = _touches(batch, chosen[:MOST_DETAILED])
        if "islands" in needs:
            frame.island = np.full((len(chosen), batch.model.ntree), -1)
            frame.island[:MOST_DETAILED] = _islands(batch, chosen[:MOST_DETAILED])
        return frame


def _per_world(batch: Batch, name: str, chosen: np.ndarray) -> np.ndarray:
    """Returns a field of the model: (n, ...) if it differs between worlds, else (1, ...)."""
    own = batch.expanded(name)
    return getattr(batch.model, name)[None].copy() if own is None else own[chosen]


def checkpoint_of(batch: Batch, worlds: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
    """Returns the checkpoint of some worlds, for a batch of as many worlds."""
    own = {f"model.{name}": rows for name, rows in batch.expanded_fields.items()}
    return {name: rows[worlds] for name, rows in (own | dict(batch.rows)).items()}


_PROBES: WeakKeyDictionary[Batch, Batch] = WeakKeyDictionary()  # copies of worlds, kept as long as their source


def _islands(batch: Batch, chosen: np.ndarray) -> np.ndarray:
    """Returns the constraint island of each tree, (n, ntree), which a forward pass of copies computes."""
    probe = _PROBES.get(batch)
    if probe is None or probe.nworld != len(chosen):
        n = max(len(chosen), 1)
        probe = _PROBES[batch] = Batch(batch.model, n, nthread=1, dtype=batch.dtype, given_contacts=batch.ngiven)
        probe.mute()
    if len(chosen):
        probe.restore(checkpoint_of(batch, chosen))
        probe.bind("tree_island")
        probe.forward()
    return probe.bind("tree_island")[: len(chosen)]


def _touches(batch: Batch, chosen: np.ndarray) -> Touches:
    """Returns contacts with their forces."""
    listed: Any = batch.contacts(output=("geom", "pos", "normal", "tangent", "force"), ids=chosen)
    world, k = np.nonzero(np.arange(listed.geom.shape[1]) < listed.found[:, None])
    normal, tangent = listed.normal[world, k], listed.tangent[world, k]
    axes = np.stack((normal, tangent, np.cross(normal, tangent)), 1)
    force = np.einsum("ki,kij->kj", listed.force[world, k], axes)
    return Touches(world, listed.geom[world, k], listed.pos[world, k], normal, force)
