"""Worlds that the page runs: in real time, step by step, back in time, and with mouse forces.

A session does not depend on a browser.  One thread makes all its calls; a refused argument raises a ModelError and
changes nothing.
"""

from __future__ import annotations

import copy
import io
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from featherlane import Batch, MixedBatch, Model, State, state_size
from featherlane.apps.viewer.edits import Edits
from featherlane.apps.viewer.failure_replay import Incident, incident_of
from featherlane.apps.viewer.history import (
    FRAME,
    SECONDS,
    History,
    Moment,
    Pull,
    keep,
    kept_of,
    kept_of_world,
    pulled_step,
)
from featherlane.apps.viewer.mouse_forces import MouseForces
from featherlane.apps.viewer.source import BAD
from featherlane.errors import ModelError, near
from featherlane.extension import bounded, read_arrays, whole_argument

BITS = int(State.INTEGRATION)  # of a saved state
HEADER = 4096  # largest size of an array in a file without its values [bytes]
REFUSAL = "not a saved state"
MOST_INCIDENTS = 16
CONTACT_MODELS = ("convex", "coulomb", "lcp")  # of a comparison
PIECE = 32  # most steps between two moments of the history
FIRST_STEPS = 100  # steps of a new page before its step time is measured
TICK_SECONDS = 0.03  # longest time for steps before the page is redrawn [s]
FEW = 16  # number of worlds from which on all cores step them; below, one thread


class Session(Edits):
    """Steps worlds, with a history.

    Args:
        batch: the worlds, which the session owns with their models.
        labels: a label for each world, or none.
        seconds: length of the history on the session's clock [s].
    """

    def __init__(self, batch: Batch | MixedBatch, labels: tuple[str, ...] = (), seconds: float = SECONDS):
        super().__init__()
        self.batch, self.labels = batch, labels
        batch.mute()  # failures are reported in the page
        self.mouse = MouseForces(self.model, self.locate)
        self.clock = 0.0  # time that the session has run [s]; a reset does not set it back
        self.history = History(seconds)
        self.position: tuple[int, int] | None = None  # place in the history, moment and step; None at its end
        self.incidents: list[Incident] = []  # failures of worlds; the first of each world, 16 at most
        self.bookmarks: dict[str, Moment] = {}
        self._debt, self._cost, self._fresh = 0.0, 0.0, False

    @classmethod
    def of(
        cls,
        model: Model,
        nworld: int = 1,
        nthread: int | None = None,
        dtype: DTypeLike = "float64",
        seconds: float = SECONDS,
    ) -> Session:
        """Creates a session of a copy of a model, at its defaults."""
        own = copy.deepcopy(model)
        if nthread is None:
            nthread = 1 if isinstance(nworld, int) and nworld < FEW else 0
        return cls(Batch(own, nworld, nthread=nthread, dtype=dtype), seconds=seconds)

    @classmethod
    def from_batch(cls, batch: Batch) -> Session:
        """Creates a session from a copy of a batch, its worlds and their models, in its present state."""
        session = cls.of(batch.model, batch.nworld, batch.nthread, batch.dtype)
        kept = batch.checkpoint().items()
        session.batch.restore({name: rows for name, rows in kept if not name.startswith("given_")})
        return session

    # ---- time --------------------------------------------------------------------------------------------------------
    def tick(self, now: float | None = None) -> int:
        """Takes the steps that are due, and returns their number; slow worlds lag behind the clock."""
        lag = self.elapsed(now)
        if lag is None:
            self._debt = self.pace = 0.0
            return 0
        self._debt += lag * self.speed / self.timestep
        affordable = max(1, int(TICK_SECONDS / self._cost)) if self._cost else FIRST_STEPS
        self._debt = min(self._debt, float(affordable))  # a time step of 1e-320 s would require infinitely many steps
        steps = int(self._debt)
        if lag > 0.0:
            self.pace += 0.1 * (steps * self.timestep / lag - self.pace)
        if steps:
            self._debt -= steps
            start = time.perf_counter()
            self.advance(steps)
            cost = (time.perf_counter() - start) / steps
            self._cost = cost if not self._cost else 0.8 * self._cost + 0.2 * cost
        return steps

    def advance(self, steps: int = 1) -> None:
        """Steps all worlds; steps from the past discard the later history."""
        self._leave_past()
        while steps > 0:
            n = min(steps, PIECE)
            moment, bad = self._moment(), self.batch.count_of(*BAD)
            self._step(n, moment)
            moment.steps, self._fresh = n, False
            self.history.add(moment)
            self.clock += n * self.timestep
            steps -= n
            self._look_for_bad(bad)

    def reset(self, keyframe: int | str = -1) -> None:
        """Resets all worlds to the model's defaults, or to a keyframe; the history keeps the state before."""
        if keyframe != -1:
            self.model.keyframe(keyframe)  # checked before any change
        self.jump()
        self.batch.reset(keyframe=keyframe)

    @property
    def place(self) -> tuple[float, float, float]:
        first = self.history[0].clock if len(self.history) else self.clock
        last = self.clock if self.position is None else self.history[-1].clock
        return first, self.clock, max(last, first + self.timestep)

    @property
    def pitch(self) -> float:
        return self.timestep

    def go_to(self, place: float) -> None:
        """Goes to a time of the session's clock [s] within the history; before an edit of the model, to a moment."""
        if len(self.history) and place < self.place[2] - self.timestep / 2:
            k = self.history.before(place + self.timestep / 4)
            moment = self.history[k]
            steps = round(max(place - moment.clock, 0.0) / self.timestep) if moment.epoch == self.epoch else 0
            self.seek(k, min(steps, moment.steps))
        elif len(self.history):
            self.seek(len(self.history) - (self.position is not None))

    def pictures(self, fps: float) -> list[float]:
        first, _, last = self.place
        return np.arange(first, last + 0.5 * self.timestep, 1.0 / fps).tolist()

    def seconds(self, world: int) -> float:
        return self.clock

    def detach(self) -> None:
        self.mouse.release()

    def _step(self, n: int, moment: Moment) -> None:
        if not self.mouse:
            self.batch.step(n)
            return
        for _ in range(n):
            pulls = [Pull(world, body, wrench) for (world, body), wrench in self.mouse.wrenches().items()]
            moment.pulls.append(pulls)
            pulled_step(self.batch, pulls)

    def _moment(self) -> Moment:
        return Moment(kept_of(self.batch), self.clock, self.epoch, self._fresh)

    # ---- history -----------------------------------------------------------------------------------------------------
    def seek(self, k: int, steps: int = 0) -> None:
        """Restores moment k of the history, len(history) for the present, and takes some steps; the clock stops.

        Raises:
            ModelError: the moment does not exist, or the model was edited since, so that a replay would differ.
        """
        self.pause()
        if self.position is None:
            self.history.add(self._moment())  # the present, to return to
        last = len(self.history) - 1
        k = min(whole_argument("moment", k, 0, last + 1), last)
        moment = self.history[k]
        whole_argument("steps", steps, 0, moment.steps)
        if steps and moment.epoch != self.epoch:
            raise ModelError("the model was edited after this moment, so a replay would give other states")
        self._restore(moment, steps)
        self.position = (k, steps) if (k, steps) != (last, 0) else None
        if self.position is None:
            self.history.drop_from(last)

    def step_back(self) -> bool:
        """Goes back one step, or, under an edited model, to the previous moment; returns whether there was one."""
        k, steps = self.position or (len(self.history), 0)
        if steps > 0:
            self.seek(k, steps - 1)
        elif k > 0:
            moment = self.history[k - 1]
            self.seek(k - 1, moment.steps - 1 if moment.steps and moment.epoch == self.epoch else 0)
        else:
            return False
        return True

    def _restore(self, moment: Moment, steps: int = 0) -> None:
        keep(self.batch, moment.kept)
        self.clock = moment.clock + steps * self.timestep
        if steps and not moment.pulls:
            self.batch.step(steps)
        for pulls in moment.pulls[:steps]:
            pulled_step(self.batch, pulls)

    def _leave_past(self) -> None:
        """Makes the present state the end of the history; discards what came after it."""
        if self.position is None:
            return
        k, steps = self.position
        if steps:
            self.history[k].cut(steps)
        self.history.drop_from(k + bool(steps))
        self.position = None

    def jump(self) -> None:
        """Records the present state before the worlds are set, so that it can be restored, and releases the mouse."""
        self._leave_past()
        if len(self.history):
            self.history.add(self._moment())
        self._fresh = True
        self.mouse.clear()

    def pose(self, joints: Sequence[int] | np.ndarray, values: Sequence[float], worlds: Sequence[int] | None) -> None:
        """Sets positions of hinges and slides [rad or m], at zero velocity, in some worlds or in all."""
        for value in values:
            bounded("joint position", value)
        if self.running and self.position is None:
            self._fresh = True  # a dragged slider sets many states; each piece of steps starts with a stored one
        elif not self._fresh or self.position is not None:
            self.jump()
        rows = slice(None) if worlds is None else list(worlds)
        for joint, value in zip(joints, values, strict=True):
            self.batch.qpos[rows, self.model.jnt_qposadr[joint]] = value
            self.batch.qvel[rows, self.model.jnt_dofadr[joint]] = 0.0

    # ---- bookmarks ---------------------------------------------------------------------------------------------------
    def bookmark(self, name: str) -> None:
        """Saves the present state under a name."""
        self.bookmarks[name] = self._moment()

    def recall(self, name: str) -> None:
        """Restores a bookmark."""
        if name not in self.bookmarks:
            raise ModelError(f"bookmark: unknown name {name!r}{near(name, self.bookmarks)}")
        self.jump()
        keep(self.batch, self.bookmarks[name].kept)

    def written(self) -> bytes:
        """Returns the present state as the content of a .npz file.

        It holds the vector of `fl.get_state` (`state`, bitwise exact), which `fl.set_state` accepts, and the arrays of
        a recording with one frame, which `featherlane view` plays.
        """
        batch, out = self.batch, io.BytesIO()
        held: dict[str, Any] = {name: getattr(batch, name)[:, None] for name in FRAME}
        held |= {"status": np.stack(list(batch.status.values()), 1)[:, None], "status_names": list(batch.status)}
        held |= {"state": batch.get_state(BITS), "state_bits": BITS, "model": self.model.source}
        np.savez_compressed(out, timestep=self.timestep, **held)
        return out.getvalue()

    def take_up(self, content: bytes, source: str = "file") -> None:
        """Sets the state in a file; the history keeps the state before.

        Args:
            content: content of the file; the state of one world is copied to all worlds.
            source: name of the file in error messages.

        Raises:
            ModelError: the file is not a bookmark, or it is of another model or number of worlds.
        """
        bits = read_arrays(io.BytesIO(content), source, REFUSAL, {"state_bits": HEADER})["state_bits"]
        if bits.shape != () or bits.dtype.kind not in "iu":
            got = f"{bits.dtype} {bits.shape}"
            raise ModelError(f"{source}: not a saved state: state_bits is {got}, allowed is an integer")
        bits, n = int(bits), self.nworld
        size = state_size(self.model, bits)
        state = read_arrays(io.BytesIO(content), source, REFUSAL, {"state": HEADER + 8 * n * size})["state"]
        shapes = dict.fromkeys(((n, size), (1, size)))
        if state.shape not in shapes:
            allowed = " and ".join(map(str, shapes))
            raise ModelError(f"{source}: got states of shape {state.shape}, allowed for this model: {allowed}")
        if state.dtype.kind != "f" or not np.isfinite(state).all():
            raise ModelError(f"{source}: got states that are not finite numbers")
        self.jump()
        self.batch.set_state(state, bits)

    # ---- failures ----------------------------------------------------------------------------------------------------
    def _look_for_bad(self, before: np.ndarray) -> None:
        """Records the last second of worlds that failed in the newest piece."""
        known = {incident.world for incident in self.incidents}
        for world in np.flatnonzero(self.batch.count_of(*BAD) > before).tolist():
            if world not in known and len(self.incidents) < MOST_INCIDENTS:
                self.incidents.append(incident_of(self.batch, world, self.history, self.epoch))

    # ---- comparison --------------------------------------------------------------------------------------------------
    def side_by_side(self, world: int) -> tuple[Session, str]:
        """Returns a session with a world's state under each contact model, and the model changes that this required."""
        self.locate(world)
        models, note = [], ""
        for contact_model in CONTACT_MODELS:
            model = self.batch.get_model(world)
            if int(model.opt.integrator) != 0:
                model.opt.integrator, note = "euler", "All use the integrator euler, which lcp requires."
            model.opt.contact_model = contact_model
            models.append(model)
        batch = MixedBatch([(model, 1) for model in models], nthread=1, dtype=self.batch.dtype)
        kept = kept_of_world(self.batch, kept_of(self.batch), world)
        batch.restore({f"{k}.{name}": array for k in range(len(models)) for name, array in kept.items()})
        session = Session(batch, CONTACT_MODELS, self.history.seconds)
        session.speed = self.speed
        return session, note
