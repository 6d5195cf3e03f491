"""The last states and inputs of each world of a batch, kept so that what went wrong can be looked at and replayed.

A ring of n places for each world holds all that lasts of it, as it was before each step.  Calls of one step copy rows;
longer ones run in pieces, in which kernels write the state after each step beside the counts of `status`.  So the step
in which a count grew is known, and with it what the world was in that step and in those before it.
"""

from __future__ import annotations

import copy

import numpy as np

from featherlane.lanes import Kernel
from featherlane.model.enums import Disable
from featherlane.model.status import BAD_NUMBER
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.worlds import LASTING
from featherlane.simulation.tile.fields import STATUS
from featherlane.simulation.tile.transfer import Transfer

ALL = slice(None)
MOST_FAILURES = 64  # kept until the user takes some out of the list: each holds states, all may hold copies of models
PIECE_BYTES = 1 << 24  # of what kernels write in one piece
PIECE_STEPS = 64


class Recorder:
    """What a batch keeps of its last steps, and the failures that it found.

    Args:
        nworld: worlds.
        n: steps that are kept of each.

    Attributes:
        failures: what was found, oldest first; of each world the first of each cause.
    """

    def __init__(self, nworld: int, n: int):
        self.nworld, self.n = nworld, n
        self.failures: list[Failure] = []
        self._taken = np.zeros(nworld, np.int64)  # steps since the batch was made
        self._start()

    def _start(self) -> None:
        """Nothing is kept yet."""
        self._held = np.zeros(self.nworld, np.int64)  # states that are kept, at most n
        self._rings: dict[str, np.ndarray] = {}  # (n, nworld, ...): step k of a world stands at k modulo n
        self._written: list[Transfer] = []  # what kernels write after each step
        self._counts = np.zeros((0, len(STATUS)))
        self._given: list[Transfer] = []
        self._control: Kernel | None = None
        self._at: slice | np.ndarray = ALL  # the worlds of the call
        self._together = False  # they are all worlds, and have taken equally many steps
        self._is_open = False  # a piece began and has not ended
        # the model and the fields of worlds' own as they were in the last call; and a copy for failures
        self._numbers: tuple = ()
        self._own: dict[str, np.ndarray] = {}
        self._frozen = None

    def __getstate__(self):
        return {"nworld": self.nworld, "n": self.n, "failures": self.failures, "_taken": self._taken}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def forget(self, worlds: slice | np.ndarray = ALL) -> None:
        """These worlds were set anew: what they did before is not kept."""
        self._held[worlds] = 0

    # ---- around a piece of a call ------------------------------------------------------------------------------------
    def piece(self, nstep: int, batch) -> int:
        """Steps of a call that may run at once."""
        if nstep == 1:
            return 1
        row = sum(batch._arrays[name].nbytes for name in _kept(batch))
        return min(nstep, PIECE_STEPS, max(2, int(PIECE_BYTES // max(row, 1))))

    def before(self, batch, chosen: np.ndarray, given: list[Transfer], control: Kernel | None) -> None:
        """Keep the state before a piece.

        Args:
            batch: the worlds.
            chosen: those that will step.
            given: the controls of the piece, (n, nstep, ...).
            control: the kernel that sets them, if one does.
        """
        if self._is_open:  # an interrupt or an error came between
            self.forget()
        self._is_open = True
        self._look_at_models(batch)
        # slices where they do: a tenth of the time of lists of worlds
        everyone = len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all()
        self._at = ALL if everyone else chosen
        self._together = bool(everyone and (self._taken == self._taken[0]).all())
        self._given, self._control, self._counts = given, control, batch._arrays["warning"][self._at].copy()
        for name in _kept(batch):
            rows = batch._arrays[name]
            if name not in self._rings:
                self._rings[name] = np.zeros((self.n, *rows.shape), rows.dtype)
            self._put(name, 0, rows[self._at])
        for t in given:
            self._put(t.field, 0, t.array[:, 0])

    def written(self, batch) -> list[Transfer]:
        """Where kernels write what they come to in a piece of several steps: step by step, world by world."""
        kept = [*_kept(batch), "warning"]
        if [t.field for t in self._written] != kept:
            n = self.piece(PIECE_STEPS, batch)
            self._written = [
                Transfer(name, np.swapaxes(np.empty((n, *rows.shape), rows.dtype), 0, 1))
                for name, rows in ((name, batch._arrays[name]) for name in kept)
            ]
        return self._written

    def after(self, batch, chosen: np.ndarray, nstep: int) -> None:
        """Find what failed in the piece, and keep the states between its steps."""
        n, at, now = len(chosen), self._at, batch._arrays["warning"][self._at]
        held = self._held[at] + nstep
        if not np.array_equal(now, self._counts):
            resets = self._look_at_counts(batch, chosen, now, nstep)
            held = np.where(resets < 0, held, nstep - 1 - resets)
        for k in range(max(1, nstep - self.n), nstep):
            for t in self._written[:-1]:
                self._put(t.field, k, t.array[:n, k - 1])
            for t in self._given:
                self._put(t.field, k, t.array[:, k])
        self._held[at] = np.minimum(held, self.n)
        self._taken[at] += nstep
        self._is_open = False

    def _put(self, name: str, k: int, rows: np.ndarray) -> None:
        """Rows of the worlds of the call into their rings, as the state before step k of the piece."""
        if self._together:
            self._rings[name][(self._taken[0] + k) % self.n] = rows
        else:
            at = np.arange(self.nworld)[self._at]
            self._rings[name][(self._taken[at] + k) % self.n, at] = rows

    # ---- models ------------------------------------------------------------------------------------------------------
    def _look_at_models(self, batch) -> None:
        """Let go of what worlds did under another model than now: it could not be replayed."""
        model, held = batch.model, self._numbers
        buffers = (model.real_buffer, model.int_buffer, model.scalar_buffer)
        if not held or held[0] != model.revision or any(map(_differ, held[1], buffers)):
            self._numbers, self._frozen = (model.revision, [b.copy() for b in buffers]), None
            self.forget()
        for name, rows in batch._expanded.items():
            kept = self._own.get(name)
            if kept is None:
                kept = np.broadcast_to(np.asarray(model.__dict__[name], rows.dtype), rows.shape)
            if _differ(kept, rows):
                self.forget((_bits(kept) != _bits(rows)).reshape(self.nworld, -1).any(1))
                kept = None
            if kept is None or name not in self._own:
                self._own[name] = rows.copy()

    def _model(self, batch):
        """The model as it is now, shared by all failures that it met."""
        if self._frozen is None:
            self._frozen = copy.deepcopy(batch.model)
        return self._frozen

    # ---- failures ----------------------------------------------------------------------------------------------------
    def _look_at_counts(self, batch, chosen: np.ndarray, now: np.ndarray, nstep: int) -> np.ndarray:
        """Make failures of the steps in which a world's status had a cause for the first time.

        Args:
            batch: the worlds.
            chosen: those that stepped.
            now: their counts after the piece, (n, cause).
            nstep: steps of the piece.

        Returns:
            The last step in which each of them was reset, (n,), -1 where none was.
        """
        between = [self._written[-1].array[: len(chosen), : nstep - 1]] if nstep > 1 else []
        counts = np.concatenate([self._counts[:, None], *between, now[:, None]], 1)
        turned = counts[:, 1:] > counts[:, :-1]  # (n, nstep, cause)
        reset = turned[:, :, BAD_NUMBER] & (batch.model.opt_disableflags & Disable.AUTORESET == 0)
        room = MOST_FAILURES - len(self.failures)
        if room > 0:
            known = np.zeros((self.nworld, len(STATUS)), bool)
            for failure in self.failures:
                known[failure.world, [STATUS.index(cause) for cause in failure.causes]] = True
            new = turned & ~known[chosen][:, None]
            first = new & (np.cumsum(new, 1) == 1)
            steps, places = np.nonzero(first.any(2).T)
            for k, i in zip(steps[:room].tolist(), places[:room].tolist(), strict=True):
                self.failures.append(self._failure(batch, int(chosen[i]), i, k, turned[i, k], reset[i]))
        return np.where(reset.any(1), nstep - 1 - reset[:, ::-1].argmax(1), -1)

    def _failure(self, batch, w: int, i: int, k: int, turned: np.ndarray, reset: np.ndarray) -> Failure:
        """A failure of world w in step k of the piece; for the others see `_states`."""
        return Failure(
            world=w,
            step=int(self._taken[w]) + k,
            causes=tuple(STATUS[c] for c in np.flatnonzero(turned)),
            states=self._states(w, i, k, reset),
            model=self._model(batch),
            own={name: rows[w].copy() for name, rows in batch._expanded.items()},
            kind=type(batch),
            given_contacts=batch.ngiven,
            control=self._control,
        )

    def _states(self, w: int, i: int, k: int, reset: np.ndarray) -> dict[str, np.ndarray]:
        """The last states of a world before step k of the piece and the one before it, (nstep, ...) each.

        Args:
            w: the world.
            i: its place in the call.
            k: the step.
            reset: in which steps of the piece it was reset, (nstep,).
        """
        cut = np.flatnonzero(reset[:k])
        first = cut[-1] + 1 if len(cut) else 0  # of the piece
        held = 0 if len(cut) else min(int(self._held[w]) + 1, self.n)
        places = (int(self._taken[w]) - np.arange(held)[::-1]) % self.n
        written = {t.field: t.array[i] for t in self._written}
        given = {t.field: t.array[i] for t in self._given}
        out = {}
        for name, ring in self._rings.items():
            rows = [ring[places, w]]
            if k >= max(first, 1):
                inside = (given[name][1:] if name in given else written[name])[max(first, 1) - 1 : k]
                rows.append(inside)
            out[name] = np.concatenate(rows)[-self.n :]
        return out


def _kept(batch) -> tuple[str, ...]:
    """Fields of a batch that are kept step by step."""
    return tuple(n for n in LASTING if n in batch._arrays and batch._arrays[n].size)


def _bits(a: np.ndarray) -> np.ndarray:
    """The numbers of an array as whole numbers of their bits, in a row."""
    return np.ravel(a).view(f"u{a.itemsize}")


def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    """Are the bits of two arrays of one shape and dtype others?"""
    return not np.array_equal(_bits(a), _bits(b))
