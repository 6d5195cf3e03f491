"""Worlds that step in a batch, as a scene of `bits.py`; some are also simulated alone, with identical bits."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from unittest import mock

import numpy as np

import featherlane as fl
from bits.hashes import Outcome, Scene, model_inputs
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.model.enums import Enable
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.fields import WANTED

FREE, BALL = 0, 1
WORLDS = {"float64": 8 + 3, "float32": 16 + 3}  # a full tile and a partial one
FEW = {"float64": 3, "float32": 2}
ALONE = (0, -1)  # worlds that `fl.Data` repeats
STEPWISE = ("qpos", "qvel", "ncon", "solver_niter", "solver_residual", "solver_gap")  # stored after each step
OUTPUTS = ("xpos", "qacc", "qfrc_constraint", "actuator_force")
ASKED = {
    "energy",
    *WANTED["want_subtree"],
    *WANTED["want_wrenches"],
}  # `fl.Data` computes them if a sensor or a flag needs them
LAST = ("time", "act", "plastic", "qacc_warmstart", "ctrl", "eq_active", "nreset")


@dataclass(frozen=True)
class Motion:
    """Describes how worlds of a model move.

    Attributes:
        model: returns a new model.
        steps: number of steps.
        position: initial states differ from qpos0 by at most this in each coordinate [m, rad].
        velocity: largest initial velocity [m/s, rad/s].
        drop: free bodies start lower by at most this [m].
        user: called with (step, world) before each step, for each world; it may write the world's inputs.
        expand: called with (batch, rng) before the start, to set per-world model fields.
        control: a kernel that sets controls within each step.
        outputs: derived fields in addition to the state.
        given: capacity for given contacts.
        slots: maximum number of contact slots of a tile; None: the default.
        worlds: number of worlds, by precision.
    """

    model: Callable[[], fl.Model]
    steps: int = 30
    position: float = 0.2
    velocity: float = 1.0
    drop: float = 0.0
    user: Callable | None = None
    expand: Callable | None = None
    control: fl.lanes.Kernel | None = None
    outputs: tuple[str, ...] = OUTPUTS
    given: int = 0
    slots: int | None = None
    worlds: dict[str, int] | None = None

    def scene(self, name: str, slow: bool = False) -> Scene:
        """Returns the motion as a scene; its name is the seed."""
        return Scene(functools.partial(move, name, self), slow=slow)


def loading(source, links=(), **options) -> Callable[[], fl.Model]:
    """Returns a loader of a model that sets its options, in their order."""

    def load() -> fl.Model:
        model = fl.load(resolve_name(source), links=links)
        for name, value in options.items():
            setattr(model.opt, name, value)
        return model

    return load


def symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Returns values from -1 to 1, bitwise identical everywhere."""
    return 2.0 * rng.random(shape) - 1.0


def start(model: fl.Model, motion: Motion, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Returns a world's initial state, and its constant controls."""
    qpos = model.qpos0 + motion.position * symmetric(rng, model.nq)
    for kind, adr in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind == FREE:
            qpos[adr + 2] -= motion.drop * rng.random()
        if kind in (FREE, BALL):
            quat = qpos[adr + 3 : adr + 7] if kind == FREE else qpos[adr : adr + 4]
            quat /= math.sqrt(sum(x * x for x in quat.tolist()))
    return {"qpos": qpos, "qvel": motion.velocity * symmetric(rng, model.nv), "ctrl": symmetric(rng, model.nu)}


def move(name: str, motion: Motion, dtype: str) -> Outcome:
    """Steps all worlds in a batch; in float64 also some of them alone, which must be identical."""
    with mock.patch.object(capacity, "CONTACT_LIMIT", motion.slots or capacity.CONTACT_LIMIT):
        return _move(name, motion, dtype)


def _move(name: str, motion: Motion, dtype: str) -> Outcome:
    """Does the same with the current limit of contact slots."""
    model, rng = motion.model(), np.random.default_rng(zlib.crc32(name.encode()))
    n = (motion.worlds or WORLDS)[dtype]
    starts = [start(model, motion, rng) for _ in range(n)]
    batch = fl.Batch(model, n, nthread=1, dtype=dtype, given_contacts=motion.given)
    batch.mute()  # some motions diverge, others have few slots
    if motion.expand:
        motion.expand(batch, rng)
    for field in starts[0]:
        getattr(batch, field)[...] = [world[field] for world in starts]
    inputs = {f"{f}.start": np.array([world[f] for world in starts]) for f in starts[0]} | model_inputs(model)
    inputs |= {f"{f}.own": rows for f, rows in batch.checkpoint().items() if f.startswith("model.")}
    outputs = together(model, batch, motion)
    if dtype == "float64":
        for w in ALONE:
            check_alone(batch, w % n, starts[w], motion, outputs)
    return Outcome(inputs, outputs)


def asked(model: fl.Model, motion: Motion) -> tuple[str, ...]:
    """Returns the derived fields that the motion records."""
    return (*motion.outputs, *(("sensordata",) if model.nsensordata else ()))


def together(model: fl.Model, batch: fl.Batch, motion: Motion) -> dict[str, np.ndarray]:
    """Returns the state after each step, and the other results of the last one."""
    for field in asked(model, motion):
        batch.bind(field)
    chunk = 1 if motion.user else motion.steps
    found = {field: [] for field in STEPWISE}
    for i in range(0, motion.steps, chunk):
        for w in range(batch.nworld if motion.user else 0):
            motion.user(i, World(batch, w))
        for field, rows in batch.rollout(chunk, motion.control, STEPWISE).items():
            found[field].append(rows[..., None] if rows.ndim == 2 else rows)  # as the values were recorded
    kept = {field: getattr(batch, field).copy() for field in (*kept_fields(model), *asked(model, motion))}
    kept["nreset"] = kept["nreset"].astype(batch.dtype)  # as the values were recorded
    return {field: np.concatenate(rows, axis=1) for field, rows in found.items()} | kept


def kept_fields(model: fl.Model) -> tuple[str, ...]:
    """Returns the persistent arrays other than position and velocity."""
    sleeps = bool(model.opt.enableflags & Enable.SLEEP)
    return (*LAST, *(("tree_asleep",) if sleeps else ()), *(("history",) if model.nhistory else ()))


class World:
    """Presents one world of a batch, with live fields, like an `fl.Data` to a user callback."""

    def __init__(self, batch: fl.Batch, w: int):
        object.__setattr__(self, "_of", SimpleNamespace(batch=batch, w=w))

    def __getattr__(self, field: str):
        return getattr(self._of.batch, field)[self._of.w]

    def __setattr__(self, field: str, value):
        getattr(self._of.batch, field)[self._of.w] = value

    def give_contacts(self, *args, **kwargs):
        """As `fl.Data.give_contacts`."""
        self._of.batch.give_contacts(*args, ids=[self._of.w], **kwargs)

    def clear_given_contacts(self):
        """As `fl.Data.clear_given_contacts`."""
        self._of.batch.clear_given_contacts([self._of.w])


def check_alone(batch: fl.Batch, w: int, begin, motion: Motion, outputs) -> None:
    """Asserts that a world alone is bitwise identical to that in the batch."""
    if motion.control:
        return  # a kernel of `rollout`, which `fl.Data` does not have
    model = batch.get_model(w)
    data = fl.Data(model, motion.given)
    data.mute()
    for field, row in begin.items():
        getattr(data, field)[...] = row
    for i in range(motion.steps):
        if motion.user:
            motion.user(i, data)
        fl.step(model, data)
        for field in STEPWISE:
            same(f"{field} of world {w} after step {i}", getattr(data, field), outputs[field][w, i])
    for field in set(outputs) - set(STEPWISE) - ASKED:
        same(f"{field} of world {w}", getattr(data, field), outputs[field][w])


def same(what: str, alone, in_batch) -> None:
    """Compares bits; all NaNs are equal."""
    alone, in_batch = (np.asarray(x, float).reshape(-1) for x in (alone, in_batch))
    differ = (alone.view(np.int64) != in_batch.view(np.int64)) & ~(np.isnan(alone) & np.isnan(in_batch))
    assert not differ.any(), f"{what} differs between fl.Data and fl.Batch: {alone[differ]} and {in_batch[differ]}"
