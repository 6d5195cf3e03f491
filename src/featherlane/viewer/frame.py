"""`Frame`: what a picture shows of some worlds at one moment, as plain arrays.

Poses of all bodies are found together, in the tiles of the batch, by kinematics alone; what needs rows (contacts, their
forces, islands) is found world by world in a data of the viewer's own.  The worlds that are looked at stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from featherlane.dynamics.body.kinematics import kinematics
from featherlane.errors import ModelError, near
from featherlane.model.model import Model, check_model
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.batch.worlds import LASTING, MOCAP
from featherlane.simulation.query.pose import Poses
from featherlane.simulation.step.forward import forward_pass
from featherlane.simulation.world.data import Data, run
from featherlane.solver.island import islands

# every layer that can be drawn, and what it needs beside poses of bodies
LAYERS = {
    "geoms": (),
    "hulls": (),
    "sites": (),
    "tendons": ("paths",),
    "joints": ("joints",),
    "bodies": (),
    "mass centres": ("centres",),
    "inertias": ("centres",),
    "contacts": ("rows",),
    "forces": ("rows",),
    "islands": ("rows",),
    "sleep": ("sleep",),
}
MOST_DETAILED = 64  # worlds whose contacts and islands are found, the first: each is a forward pass by itself
FIELDS = {"joints": ("xanchor", "xaxis"), "centres": ("xipos",)}
POSES = ("xpos", "xquat")


@dataclass
class Touches:
    """Contacts of the drawn worlds, one after the other.

    Attributes:
        world: (k,) place of the world among the drawn ones.
        geom: (k, 2) the two geoms.
        pos: (k, 3) [m].
        normal: (k, 3) from the first geom to the second.
        force: (k, 3) on the second geom's body, in world axes [N]; zero where the contact has no rows.
    """

    world: np.ndarray
    geom: np.ndarray
    pos: np.ndarray
    normal: np.ndarray
    force: np.ndarray


@dataclass
class Frame:
    """What is drawn of n worlds; in world axes, of each world about its own origin.

    Attributes:
        worlds: (n,) their numbers.
        time: (n,) [s].
        pos: (n, nbody, 3) positions of bodies [m].
        quat: (n, nbody, 4) their orientations.
        anchor: (n, njnt, 3) anchors of joints [m], or None where nobody wants them; so are all below.
        axis: (n, njnt, 3) axes of joints.
        centre: (n, nbody, 3) centres of mass of bodies [m].
        asleep: (n, ntree) trees that sleep.
        island: (n, ntree) constraint island of each tree, -1: none; -1 in worlds beyond the first 64.
        touches: contacts of the first 64 worlds.
        paths: tendons' ways.
    """

    worlds: np.ndarray
    time: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    anchor: np.ndarray | None = None
    axis: np.ndarray | None = None
    centre: np.ndarray | None = None
    asleep: np.ndarray | None = None
    island: np.ndarray | None = None
    touches: Touches | None = None
    paths: None = field(default=None)

    @classmethod
    def of(
        cls, model: Model, source: Data | Batch, worlds: ArrayLike | None = None, wanted: Iterable[str] = ()
    ) -> Frame:
        """The present states of some worlds.

        Args:
            model: the model.
            source: one world, or a batch, of this model; neither is changed.
            worlds: numbers of the worlds, or a mask; None for all.
            wanted: names of the layers that are drawn (`LAYERS`); nothing is computed for the others.

        Raises:
            TypeError: no Model, neither a Data nor a Batch.
            ModelError: a model that is not the source's, a world that is not there, an unknown layer.
            RuntimeError: another thread is in a call of the source.
        """
        check_model(model)
        if not isinstance(source, Data | Batch):
            raise TypeError(f"source: got {type(source).__name__}, allowed is a Data or a Batch")
        if source.model is not model:
            raise ModelError("model: it is not the source's")
        needs = {need for layer in wanted for need in _needs(layer)}
        fields = (*POSES, *(name for need in FIELDS if need in needs for name in FIELDS[need]))
        chosen, found = _poses(model, source, worlds, fields)
        time = source.time[chosen] if isinstance(source, Batch) else np.array([source.time])
        frame = cls(chosen, np.array(time), found["xpos"], found["xquat"])
        frame.anchor, frame.axis, frame.centre = (found.get(name) for name in ("xanchor", "xaxis", "xipos"))
        if "sleep" in needs:
            frame.asleep = _asleep(model, source, chosen)
        if "rows" in needs:
            frame.touches, frame.island = _rows(model, source, chosen)
        return frame


def _needs(layer: str) -> tuple[str, ...]:
    if layer not in LAYERS:
        raise ModelError(f"wanted: got {layer!r}, allowed are {', '.join(LAYERS)}{near(layer, LAYERS)}")
    return LAYERS[layer]


# ---- a data of the viewer's own ----------------------------------------------------------------------------
_SCRATCH: WeakKeyDictionary[Data | Batch, Data] = WeakKeyDictionary()


def _copied(source: Data | Batch, world: int, names: Iterable[str]) -> Data:
    """The world's fields in a data that is kept beside the source."""
    scratch = _SCRATCH.get(source)
    if scratch is None:
        scratch = _SCRATCH[source] = Data(source.model, source.ngiven)
    if isinstance(source, Batch) and source._expanded:
        scratch.use(source.get_model(world))
    arrays = scratch.workspace.arrays
    for name in names:
        if isinstance(source, Data):
            arrays[name][...] = source.workspace.arrays[name]
        elif name in source._arrays:
            row = source._arrays[name][world]
            arrays[name][: row.size, 0] = row.reshape(-1)
    arrays["tree_settled"][...] = 0  # what stands there is of another state
    return scratch


def _poses(model: Model, source: Data | Batch, worlds, fields: tuple[str, ...]):
    """Numbers of the worlds, and fields of kinematics."""
    if isinstance(source, Batch):
        chosen = source._ids(worlds)
        return chosen, source._ask(Poses(model, len(chosen), source.dtype, fields), chosen)
    chosen = np.zeros(1, np.int64) if worlds is None else np.asarray(worlds)
    if chosen.shape != (1,) or chosen[0] != 0:
        raise ModelError(f"worlds: got {worlds!r}, a data has world 0 alone")
    scratch = _copied(source, 0, ("qpos", *MOCAP))
    run(scratch.model, scratch, kinematics)
    return chosen, {name: getattr(scratch, name)[None].copy() for name in fields}


def _asleep(model: Model, source: Data | Batch, chosen: np.ndarray) -> np.ndarray:
    """Which trees sleep, (n, ntree)."""
    if isinstance(source, Data):
        return source.tree_asleep[None] >= 0
    if "tree_asleep" not in source._arrays:
        return np.zeros((len(chosen), model.ntree), bool)
    return source._arrays["tree_asleep"][chosen] >= 0


def _rows(model: Model, source: Data | Batch, chosen: np.ndarray) -> tuple[Touches, np.ndarray]:
    """Contacts with their forces, and islands."""
    found, island = [], np.full((len(chosen), model.ntree), -1, np.int64)
    for k, world in enumerate(chosen[:MOST_DETAILED]):
        scratch = _copied(source, int(world), LASTING)
        run(scratch.model, scratch, forward_pass)
        run(scratch.model, scratch, islands)
        island[k] = scratch.tree_island
        slots, contact = scratch.contact_slots(), scratch.contact
        frames = contact.frame.reshape(-1, 3, 3)
        force = scratch.con_force[slots, :3].copy()
        if model.flg_adhesion:
            force[:, 0] -= scratch.con_adhesion[slots]
        force = np.einsum("ki,kij->kj", np.where(scratch.con_D[slots, None] != 0.0, force, 0.0), frames)
        found.append((np.full(len(slots), k), contact.geom, contact.pos, frames[:, 0], force))
    empty = (np.zeros(0, int), np.zeros((0, 2), int), *(np.zeros((0, 3)) for _ in range(3)))
    return Touches(*(np.concatenate(parts) for parts in zip(empty, *found, strict=True))), island
