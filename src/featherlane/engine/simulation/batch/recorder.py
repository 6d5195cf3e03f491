"""Records the last states and inputs of each world of a batch, so that a failed step can be inspected and replayed.

A ring buffer holds the persistent fields of each world before each of its last n steps, and before those of a piece of
a call.  Calls of one step copy rows.  Longer calls run in pieces, in which kernels write the state and the counts of
`status` after each step.  These identify the step in which a count grew.
"""

from __future__ import annotations

import copy

import numpy as np

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.enums import Disable
from featherlane.engine.model.status import NON_FINITE
from featherlane.engine.simulation.batch.arrays import LASTING, WorldArrays
from featherlane.engine.simulation.batch.failure import Failure
from featherlane.engine.simulation.tile.fields import STATUS
from featherlane.engine.simulation.user.control import NUMBERS

ALL = slice(None)
MOST_FAILURES = 64  # limit of the list; the user may remove some: each holds states, all may hold copies of models
PIECE_BYTES = 1 << 24  # limit of the memory that kernels write in one piece
PIECE_STEPS = 64


class Recorder:
    """Records the last steps of a batch and the failures found in them.

    Args:
        nworld: worlds.
        n: steps to keep of each.
        kind: the class of the batch.

    Attributes:
        failures: the failures, oldest first: each world's first of each cause.
    """

    def __init__(self, nworld: int, n: int, kind: type):
        self.nworld, self.n, self.kind = nworld, n, kind
        self.failures: list[Failure] = []
        self._taken = np.zeros(nworld, np.int64)  # steps since the batch was made
        self._start()

    def _start(self) -> None:
        """Discards all records."""
        self._held = np.zeros(self.nworld, np.int64)  # recorded states, at most n
        self._rings: dict[str, np.ndarray] = {}  # (length, nworld, ...): step k of a world is at index k modulo length
        self._length = 0
        self._written: dict[str, np.ndarray] = {}  # written by kernels after each step
        self._counts = np.zeros((0, len(STATUS)))
        self._given: dict[str, np.ndarray] = {}
        self._control: Kernel | None = None
        self._scratch: dict[str, int] = {}  # sizes of the control kernel's scratch memory
        self._at: slice | np.ndarray = ALL  # the worlds of the call
        self._together = False  # whether the call has all worlds, at equal step numbers
        self._is_open = False  # whether a piece began and has not ended
        # the model and the per-world model fields of the last call; and a copy for failures
        self._numbers: tuple = ()
        self._own: dict[str, np.ndarray] = {}
        self._frozen = None

    def __getstate__(self):
        kept = ("nworld", "n", "kind", "failures", "_taken")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._start()

    def forget(self, worlds: slice | np.ndarray = ALL) -> None:
        """Discards the records of these worlds, whose state was set."""
        self._held[worlds] = 0

    # ---- around a piece of a call ------------------------------------------------------------------------------------
    def piece(self, nstep: int, worlds: WorldArrays) -> int:
        """Returns how many steps of a call to run as one piece."""
        if nstep == 1:
            return 1
        row = sum(worlds.rows[name].nbytes for name in _kept(worlds))
        return min(nstep, PIECE_STEPS, max(2, int(PIECE_BYTES // max(row, 1))))

    def before(
        self,
        worlds: WorldArrays,
        chosen: np.ndarray,
        given: dict[str, np.ndarray],
        control: Kernel | None,
        scratch: dict[str, int],
    ) -> None:
        """Records the state before a piece.

        Args:
            worlds: the worlds.
            chosen: the worlds that will step.
            given: the controls of the piece, (n, nstep, ...) by field, and the kernel's own numbers.
            control: the kernel that sets controls, or None.  A replay calls one kernel: another one discards records.
            scratch: sizes of the kernel's scratch memory, by name.
        """
        if self._is_open or control is not self._control:  # an interrupt or an error ended the last piece early
            self.forget()
            self._rings = {name: ring for name, ring in self._rings.items() if not name.startswith(NUMBERS)}
        self._is_open = True
        self._look_at_models(worlds)
        # slices if possible: indexing by them takes a tenth of the time of lists of worlds
        everyone = len(chosen) == self.nworld and (chosen[1:] > chosen[:-1]).all()
        self._at = ALL if everyone else chosen
        self._together = bool(everyone and (self._taken == self._taken[0]).all())
        self._scratch = scratch
        self._given, self._control, self._counts = given, control, worlds.rows["warning"][self._at].copy()
        self._length = self._length or self.n + self.piece(PIECE_STEPS, worlds)
        for name in _kept(worlds):
            self._put(name, 0, worlds.rows[name][self._at])

    def written(self, worlds: WorldArrays) -> dict[str, np.ndarray]:
        """Returns arrays into which kernels write the states of a piece of several steps, by step and world."""
        kept = [*_kept(worlds), "warning"]
        if [*self._written] != kept:
            n, rows = self.piece(PIECE_STEPS, worlds), worlds.rows
            arrays = {name: np.empty((n, *rows[name].shape), rows[name].dtype) for name in kept}
            self._written = {name: np.swapaxes(a, 0, 1) for name, a in arrays.items()}
        return self._written

    def after(self, worlds: WorldArrays, chosen: np.ndarray, nstep: int) -> None:
        """Records the states between the steps of the piece, and finds its failed steps."""
        n, at, now = len(chosen), self._at, worlds.rows["warning"][self._at]
        for k in range(nstep):
            for name, a in self._written.items() if k else ():
                if name != "warning":
                    self._put(name, k, a[:n, k - 1])
            for name, controls in self._given.items():
                self._put(name, k, controls[:, k])
        held = self._held[at] + nstep
        if not np.array_equal(now, self._counts):
            resets = self._look_at_counts(worlds, chosen, now, nstep)
            held = np.where(resets < 0, held, nstep - 1 - resets)
        self._held[at] = np.minimum(held, self.n)
        self._taken[at] += nstep
        self._is_open = False

    def _put(self, name: str, k: int, rows: np.ndarray) -> None:
        """Copies rows of the worlds of the call into their rings, as the state before step k of the piece."""
        if name not in self._rings:
            self._rings[name] = np.zeros((self._length, self.nworld, *rows.shape[1:]), rows.dtype)
        if self._together:
            self._rings[name][(self._taken[0] + k) % self._length] = rows
        else:
            at = np.arange(self.nworld)[self._at]
            self._rings[name][(self._taken[at] + k) % self._length, at] = rows

    # ---- models ------------------------------------------------------------------------------------------------------
    def _look_at_models(self, worlds: WorldArrays) -> None:
        """Discards records from before an edit of the model, because they could not be replayed."""
        model, held = worlds.model, self._numbers
        buffers = (model.real_buffer, model.int_buffer, model.scalar_buffer)
        if not held or held[0] != model.revision or any(map(_differ, held[1], buffers)):
            self._numbers, self._frozen = (model.revision, [b.copy() for b in buffers]), None
            self.forget()
        for name, rows in worlds.expanded.items():
            kept = self._own.get(name)
            if kept is None:
                kept = np.broadcast_to(np.asarray(model.__dict__[name], rows.dtype), rows.shape)
            if _differ(kept, rows):
                self.forget((_bits(kept) != _bits(rows)).reshape(self.nworld, -1).any(1))
                kept = None
            if kept is None or name not in self._own:
                self._own[name] = rows.copy()

    def _model(self, worlds: WorldArrays):
        """Returns the present model, shared by all its failures."""
        if self._frozen is None:
            self._frozen = copy.deepcopy(worlds.model)
        return self._frozen

    # ---- failures ----------------------------------------------------------------------------------------------------
    def _look_at_counts(self, worlds: WorldArrays, chosen: np.ndarray, now: np.ndarray, nstep: int) -> np.ndarray:
        """Creates failures for the steps in which a world's status counted a cause for the first time.

        Args:
            worlds: the worlds.
            chosen: the worlds that stepped.
            now: their counts after the piece, (n, cause).
            nstep: steps of the piece.

        Returns:
            The last step in which each of them was reset, (n,), or -1.
        """
        between = [self._written["warning"][: len(chosen), : nstep - 1]] if nstep > 1 else []
        counts = np.concatenate([self._counts[:, None], *between, now[:, None]], 1)
        turned = counts[:, 1:] > counts[:, :-1]  # (n, nstep, cause)
        reset = turned[:, :, NON_FINITE] & (worlds.model.opt_disableflags & Disable.AUTORESET == 0)
        capacity = MOST_FAILURES - len(self.failures)
        if capacity > 0:
            known = np.zeros((self.nworld, len(STATUS)), bool)
            for failure in self.failures:
                known[failure.world, [STATUS.index(cause) for cause in failure.causes]] = True
            new = turned & ~known[chosen][:, None]
            first = new & (np.cumsum(new, 1) == 1)
            steps, places = np.nonzero(first.any(2).T)
            for k, i in zip(steps[:capacity].tolist(), places[:capacity].tolist(), strict=True):
                self.failures.append(self._failure(worlds, int(chosen[i]), k, turned[i, k], reset[i]))
        return np.where(reset.any(1), nstep - 1 - reset[:, ::-1].argmax(1), -1)

    def _failure(self, worlds: WorldArrays, w: int, k: int, turned: np.ndarray, reset: np.ndarray) -> Failure:
        """Returns the failure of a world.

        Args:
            worlds: the worlds.
            w: the world.
            k: the failed step of the piece.
            turned: which causes were counted in it, (cause,).
            reset: in which steps of the piece the world was reset, (nstep,).
        """
        cut = np.flatnonzero(reset[:k])
        count = min(k - int(cut[-1]) if len(cut) else int(self._held[w]) + 1 + k, self.n)
        places = (int(self._taken[w]) + k - np.arange(count)[::-1]) % self._length
        return Failure(
            world=w,
            step=int(self._taken[w]) + k,
            causes=tuple(STATUS[c] for c in np.flatnonzero(turned)),
            states={name: ring[places, w] for name, ring in self._rings.items()},
            model=self._model(worlds),
            own={name: rows[w].copy() for name, rows in worlds.expanded.items()},
            kind=self.kind,
            given_contacts=worlds.ngiven,
            control=self._control,
            scratch=self._scratch,
        )


def _kept(worlds: WorldArrays) -> tuple[str, ...]:
    """Returns the names of fields that are recorded step by step."""
    return tuple(n for n in LASTING if n in worlds.rows and worlds.rows[n].size)


def _bits(a: np.ndarray) -> np.ndarray:
    """Returns the bits of an array's elements as integers, flattened."""
    return np.ravel(a).view(f"u{a.itemsize}")


def _differ(a: np.ndarray, b: np.ndarray) -> bool:
    """Returns whether the bits of two arrays of one shape and dtype differ."""
    return not np.array_equal(_bits(a), _bits(b))
