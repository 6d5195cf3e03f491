"""`Frame`: plain arrays with everything that is drawn of some worlds at one time.

Kinematics computes the poses of all bodies together, in the tiles of a batch.  Quantities that need constraint rows
(contacts, their forces, islands) are computed per world in the viewer's `Data`.  The source's worlds do not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from featherlane.apps.viewer.paths import Paths, paths
from featherlane.engine.model.arguments import instance, one_of
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.model.variant import nearest_variants
from featherlane.engine.simulation.batch.arrays import LASTING, chosen_worlds
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.one_world import batch_of
from featherlane.engine.simulation.query.pose import Poses
from featherlane.engine.simulation.query.tendon_wrap import ArcsRoundGeoms
from featherlane.engine.simulation.step.forward import forward_pass
from featherlane.engine.simulation.world.data import Data, other_model, run_stage
from featherlane.errors import ArgumentTypeError

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
    "contacts": ("rows",),
    "forces": ("rows",),
    "islands": ("rows",),
    "sleep": ("sleep",),
    "glass": (),
}
FIELDS = {
    "joints": ("xanchor", "xaxis"),
    "masses": ("xipos",),
    "paths": ("site_xpos", "geom_xpos", "geom_xmat"),
}  # fields of kinematics by need
MOST_DETAILED = 64  # number of worlds (the first) with contacts and islands: each takes a separate forward pass


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
        variants: (n, groups) the variant that each world has of each group of the model, None without groups.
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
    def of(
        cls, model: Model, source: Data | Batch, worlds: ArrayLike | None = None, layers: Iterable[str] = ()
    ) -> Frame:
        """Computes the frame of the present states of some worlds.

        Args:
            source: a `Data` or a `Batch` of this model; it is not changed.
            worlds: numbers of the worlds, or a mask; None for all worlds.
            layers: names of the drawn layers (`LAYERS`); data for other layers is not computed.

        Raises:
            TypeError: `model` is not a `Model`, or `source` is neither a `Data` nor a `Batch`.
            ModelError: the source has another model, a world does not exist, or a layer is unknown.
            RuntimeError: another thread is executing a call of the source.
        """
        check_model(model)
        instance("source", source, Data | Batch, "a Data or a Batch", ArgumentTypeError)
        if source.model is not model:
            raise other_model("batch" if isinstance(source, Batch) else "data", model, source.model)
        needs = {need for layer in layers for need in LAYERS[one_of("layers", layer, LAYERS)]}
        source = batch_of(source)
        chosen = chosen_worlds(worlds, source.nworld)
        fields = {"xpos", "xquat"}.union(*(names for need, names in FIELDS.items() if need in needs))
        found = source.query(Poses(model, len(chosen), source.dtype, fields), chosen)
        frame = cls(chosen, source.time[chosen], found["xpos"], found["xquat"], found.get("xanchor"))
        frame.axis = found.get("xaxis")
        if model.nvariant:
            frame.variants = nearest_variants(model, lambda name: _per_world(source, name, chosen), len(chosen))
        if "masses" in needs:
            mass, inertia = (_per_world(source, f"body_{name}", chosen) for name in ("mass", "inertia"))
            frame.masses = Masses(found["xipos"], mass, inertia)
        if "paths" in needs:
            arcs = source.query(ArcsRoundGeoms(model, len(chosen), source.dtype), chosen)
            frame.paths = paths(model, found["site_xpos"], found["geom_xpos"], found["geom_xmat"], arcs)
        if "sleep" in needs:
            frame.asleep = _asleep(model, source, chosen)
        if "rows" in needs:
            frame.touches, frame.island = _rows(model, source, chosen)
        return frame


def _per_world(source: Batch, name: str, chosen: np.ndarray) -> np.ndarray:
    """Returns a field of the model: (n, ...) if it differs between worlds, else (1, ...)."""
    own = source.expanded_fields.get(name)
    return source.model.__dict__[name][None].copy() if own is None else own[chosen]


_BESIDE: WeakKeyDictionary[Batch, Data] = WeakKeyDictionary()  # the viewer's worlds, kept as long as their source


def _beside(source: Batch, world: int) -> Data:
    """Returns a `Data` with the state of one world."""
    data = _BESIDE.get(source)
    if data is None:
        data = _BESIDE[source] = Data(source.model, source.ngiven)
    if source.expanded_fields:
        data.model = source.get_model(world)
    arrays = data.workspace.arrays
    for name in LASTING:
        if name in source.rows:
            row = source.rows[name][world]
            arrays[name][: row.size, 0] = row.reshape(-1)
    arrays["tree_settled"][...] = 0  # its value belongs to another state
    return data


def _asleep(model: Model, source: Batch, chosen: np.ndarray) -> np.ndarray:
    """Returns whether each tree sleeps, (n, ntree)."""
    if "tree_asleep" not in source.rows:
        return np.zeros((len(chosen), model.ntree), bool)
    return source.rows["tree_asleep"][chosen] >= 0


def _rows(model: Model, source: Batch, chosen: np.ndarray) -> tuple[Touches, np.ndarray]:
    """Returns contacts with their forces, and islands."""
    found, island = [], np.full((len(chosen), model.ntree), -1, np.int64)
    for k, world in enumerate(chosen[:MOST_DETAILED]):
        data = _beside(source, int(world))
        run_stage(data.model, data, forward_pass)
        island[k] = data.tree_island
        slots, contact = data.contact_slots(), data.contact
        axes, force = contact.frame.reshape(-1, 3, 3), data.con_force[slots, :3].copy()
        if model.flg_adhesion:
            force[:, 0] -= data.con_adhesion[slots]
        force = np.einsum("ki,kij->kj", np.where(data.con_D[slots, None] != 0.0, force, 0.0), axes)
        found.append((np.full(len(slots), k), contact.geom, contact.pos, axes[:, 0], force))
    empty = (np.zeros(0, int), np.zeros((0, 2), int), *(np.zeros((0, 3)) for _ in range(3)))
    return Touches(*(np.concatenate(parts) for parts in zip(empty, *found, strict=True))), island
