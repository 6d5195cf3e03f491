"""Steps a frozen world with the kernels of its file: `featherlane.thaw`.  The C library featherlane.c does the work."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.model.assignment import assign, broadcast_reals, is_mixed
from featherlane.engine.model.status import FOUND_FULL, FOUND_NON_FINITE, STATUS
from featherlane.engine.simulation.batch.arrays import chosen_worlds
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.frozen.loader import CONTACT, Field, Long, Opened, loader
from featherlane.engine.simulation.frozen.queries import QUERIES, numbers_of, values_of
from featherlane.engine.simulation.tile.call_lock import Turn
from featherlane.engine.simulation.tile.fields import DATA
from featherlane.engine.simulation.world.data import Data
from featherlane.errors import (
    ArgumentTypeError,
    ModelError,
    UnknownAttributeError,
    UnknownNameError,
    near,
    warn_of_full,
    warn_of_non_finite,
)

SUFFIX = ".flz"
MOST_WORLDS = 1 << 24  # as in featherlane.c
HASH = re.compile("[0-9a-f]{64}")


class _Steppable(Protocol):
    """What a self-test moves: a `Data` or a `FrozenWorld`."""

    ctrl: Any

    def step(self, nstep: int = 1) -> None: ...

    def get_state(self) -> np.ndarray: ...


def moved(world: _Steppable, controls: np.ndarray, steps: int) -> str:
    """Moves a world `steps` steps with each row of controls; returns the SHA-256 of the states after each row."""
    found = hashlib.sha256()
    for row in controls:
        world.ctrl = row
        world.step(steps)
        found.update(world.get_state().astype("<f8").tobytes())
    return found.hexdigest()


def checked_path(path: Any) -> Path:
    """Returns a path that ends in .flz.

    Raises:
        TypeError, ModelError: it is no path, or has another suffix.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(f"path: got {type(path).__name__}, allowed is the path of a {SUFFIX} file")
    found = Path(path)
    if found.suffix != SUFFIX or "\0" in str(found):
        raise ModelError(f"path: got {str(found)!r}, allowed is the path of a {SUFFIX} file")
    return found


class FrozenWorld:
    """Holds one world of a frozen file, which its own kernels step; `featherlane.thaw` creates it.

    Fields of the world are attributes under their names, in float64: `world.qpos` (nq,), `world.xpos` (nbody, 3).
    Arrays are live.  States, controls and other inputs may be written; all
    else is read-only.  Sizes, such as `world.nq`, are attributes, too.  Each step has the bits that `featherlane.step`
    had when the file was written.

    A frozen world steps, computes a forward pass, resets, and answers the queries that the file has.  Everything else
    needs a model: edits of its constants, more sensors or actuators, other queries, derivatives.

    Attributes:
        path: the file.
        hash: its hash, for `thaw(path, trust=...)`.
        target: the CPU level of the kernels in use.
        version: the version of Featherlane that wrote the file.
    """

    _what, _can = "frozen world", "step, forward, reset, query, contact"

    def __init__(self, path: Path, trust: str | None = None, nworld: int = 0):
        own = self.__dict__
        own["_library"], own["_opened"], own["path"] = loader(), Opened(path, trust, nworld), path
        own["_handle"] = self._opened.address
        own["_turn"], own["_unreported"] = Turn(self._what), FOUND_NON_FINITE | FOUND_FULL
        for name in ("hash", "target", "version"):
            own[name] = getattr(self._library, f"fl_{name}")(self._handle).decode()

    def __reduce__(self):
        raise ArgumentTypeError(f"a {self._what} cannot be pickled; thaw its file again, and set its state")

    # ---- fields ------------------------------------------------------------------------------------------------------
    def _field(self, name: str, find: str = "fl_find") -> Field | None:
        """Returns a field of the world, or a constant of the model; None for an unknown name."""
        found = Field()
        return found if getattr(self._library, find)(self._handle, name.encode(), found) else None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_handle" not in self.__dict__:
            raise UnknownAttributeError(f"a {self._what} has no {name!r}")
        f = self._field(name)
        if f is not None:
            array = self._shown(f)
            if not isinstance(array, np.ndarray) or array.flags.owndata:
                return array  # a number, or a copy
            array.flags.writeable = bool(f.writable)
            return self.__dict__.setdefault(name, array)
        size = self._library.fl_size(self._handle, name.encode())
        if size >= 0:
            return size
        if hasattr(Data, name) or hasattr(Batch, name):
            raise UnknownAttributeError(
                f"a {self._what} cannot do {name!r}, allowed are {self._can}, get_state, set_state, constant, id, "
                "status, self_test and fields; load the model for all else"
            )
        raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownAttributeError:
        return UnknownAttributeError(f"a {self._what} has no {name!r}{near(name, DATA.index)}")

    def _shown(self, f: Field) -> Any:
        """Returns a field in its shape; one number as a number."""
        array = f.array(self._opened)
        if array.shape == (1,):
            return int(array[0]) if f.whole else float(array[0])
        return array

    def __setattr__(self, name: str, value: Any) -> None:
        f = self._field(name)
        if f is None:
            raise UnknownAttributeError(f"a {self._what} has no field {name!r} to set{near(name, DATA.index)}")
        if not f.writable:
            raise UnknownAttributeError(f"{name} of a {self._what} is computed and cannot be set")
        assign(name, f.array(self._opened), value, mixed=is_mixed(name))

    def __repr__(self) -> str:
        kind, path = type(self).__name__, str(self.path)
        return f"{kind}({path!r}, version={self.version}, target={self.target}, nworld={self.nworld})"

    def constant(self, name: str) -> np.ndarray:
        """Returns a field of the model by name, such as `body_mass` (nbody,), read-only.

        Raises:
            UnknownNameError: an unknown name.
        """
        f = self._field(name, "fl_find_constant") if isinstance(name, str) else None
        if f is None:
            raise UnknownNameError(f"constant: got {name!r}, allowed are names of arrays of the model")
        return f.array(self._opened).copy()

    def id(self, kind: str, name: str) -> int:
        """Returns the id of an object by its kind (`body`, `joint`, `actuator`, `sensor`, ...) and its name.

        Raises:
            UnknownNameError: the file has no object of this kind and name.
        """
        found = self._library.fl_id(self._handle, str(kind).encode(), str(name).encode())
        if found < 0:
            raise UnknownNameError(f"{kind}: got {name!r}, allowed are names of the file's objects of this kind")
        return found

    @property
    def status(self) -> dict[str, int]:
        """Counts of steps and forward passes with an event since the last reset, as `Data.status`."""
        return {name: int(count) for name, count in zip(STATUS, self.warning, strict=True)}

    @property
    def contact(self) -> np.recarray:
        """Returns the contacts of the last pass, (ncon,), in MuJoCo's order; a copy.

        Names and shapes are those of `Data.contact`: `dist` [m], `pos` (3,) [m], `frame` (9,), `includemargin` [m],
        `friction` (5,), `dim`, `geom` (2,).  In addition, `force` (6,) is the force along normal and tangents [N], and
        the moment about them [N m].
        """
        out = np.zeros(self._library.fl_contact_count(self._handle), CONTACT)
        for k in range(len(out)):
            self._library.fl_contact_at(self._handle, k, out[k : k + 1].ctypes.data)
        return out.view(np.recarray)

    # ---- calls -------------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1) -> None:
        """Advances the world by nstep time steps, as `featherlane.step` does.

        Args:
            nstep: time steps, at least 1.

        Raises:
            ModelError: nstep is not an integer or below 1.
            RuntimeError: another thread is in a call of this world.
        """
        nstep = whole_argument("nstep", nstep, 1)
        found = self._turn.hold(self._library.fl_step, self._handle, nstep)
        if found & self._unreported:
            self._warn(found, FOUND_NON_FINITE | FOUND_FULL)

    def forward(self) -> None:
        """Computes all derived fields of the present state, down to `qacc`, without a step.

        Raises:
            RuntimeError: another thread is in a call of this world.
        """
        found = self._turn.hold(self._library.fl_forward, self._handle)
        if found & self._unreported & FOUND_FULL:
            self._warn(found, FOUND_FULL)

    def _warn(self, found: int, kinds: int) -> None:
        found &= self._unreported & kinds
        self.__dict__["_unreported"] &= ~found
        if found & FOUND_NON_FINITE:
            warn_of_non_finite(f"a {self._what}", bool(np.any(self.nreset)), owner="world", level=2)
        if found & FOUND_FULL:
            warn_of_full(f"a {self._what}", self.nconmax, owner="world", level=2)

    def query(
        self, name: str, *, kind: str | None = None, id: int | str | None = None, **inputs: ArrayLike
    ) -> dict[str, np.ndarray]:
        """Computes a query that the file has, of the fields of the last step or `forward`.

        Args:
            name: `jac`, `jac_dot`: the Jacobian of an object and its rate, (6, nv), linear rows first;
                `object_velocity`: angular and linear velocity (6,) [rad/s, m/s];  `full_m`: the inertia matrix
                (nv, nv);  `energy`: potential and kinetic (2,) [J];  `inverse`: `qfrc_inverse` (nv,) of `qacc` (nv,);
                `ray`: `distance` [m] and `geom`, -1 without a hit, and `normal` (3,).
            kind: of the object: "body", "com" (its centre of mass), "geom", "site", "camera", or "point" (of a body).
            id: name or number of the object.
            inputs: `point` (3,) [m] of a "point" or a ray; `direction` (3,), a unit vector, and `exclude`, a body, of
                a ray; `qacc` of the inverse.

        Returns:
            Copies of the results, by name.

        Raises:
            ModelError: the file does not have the query; invalid arguments.
            UnknownNameError: an unknown object.
            RuntimeError: another thread is in a call of this world.
        """
        numbers = numbers_of(self, name, kind, id)
        for field, value in values_of(name, inputs).items():
            array = self._required(field).array(self._opened)
            array[...] = broadcast_reals(field.rpartition(".")[2], value, array.shape)
        if not self._turn.hold(self._library.fl_query, self._handle, name.encode(), (Long * 2)(*numbers)):
            raise ModelError(f"query: the file has no {name!r}; freeze the model with queries=({name!r},)")
        results = {field: self._required(field).array(self._opened).copy() for field in QUERIES[name].results}
        return {field.rpartition(".")[2]: array for field, array in results.items()}

    def _required(self, name: str) -> Field:
        f = self._field(name)
        if f is None:
            raise ModelError(f"query: the file has no queries with {name!r}; freeze the model with queries=")
        return f

    def reset(self) -> None:
        """Resets to the state that the file has; all derived fields become zero.

        Raises:
            RuntimeError: another thread is in a call of this world.
        """
        self._turn.hold(self._library.fl_reset, self._handle)

    def get_state(self) -> np.ndarray:
        """Returns all that a step reads, (state_size,), as `featherlane.get_state` of the model; a copy."""
        out = np.zeros(self._state_shape())
        self._library.fl_get_state(self._handle, out.ctypes.data)
        return out

    def set_state(self, state: ArrayLike) -> None:
        """Sets all that a step reads, from a vector of `get_state`, or of `featherlane.get_state` of the model.

        Raises:
            ModelError: a vector of another length.
        """
        given = np.ascontiguousarray(broadcast_reals("state", state, self._state_shape()), np.float64)
        self._library.fl_set_state(self._handle, given.ctypes.data)

    def _state_shape(self) -> tuple[int, ...]:
        return (self._library.fl_state_size(self._handle),)

    def self_test(self) -> bool:
        """Returns whether this machine computes the states of the file's self-test, bit for bit; the world is reset."""
        return bool(self._turn.hold(self._library.fl_self_test, self._handle))


class FrozenBatch(FrozenWorld):
    """Holds worlds of a frozen file, which step together as in a `Batch`; `thaw(path, nworld=n)` creates it.

    Fields, states and counts have the number of the world as their first axis: `batch.qpos` (nworld, nq), `batch.time`
    (nworld,).  A batch has the fields of the state and the outputs with which the file was frozen.  An output belongs
    to the state before the last step, or to the present one after `forward`.  A batch uses one thread; several
    batches of a file may run in different threads.

    A frozen batch has no contacts, no queries, no rollouts and no fields of the model by world.
    """

    _what, _can = "frozen batch", "step, forward, reset"

    def _unknown(self, name: str) -> UnknownAttributeError:
        if name in DATA:
            return UnknownAttributeError(f"a frozen batch has no {name!r}; freeze the model with outputs=({name!r},)")
        return super()._unknown(name)

    def _shown(self, f: Field) -> np.ndarray:
        array = f.array(self._opened)
        array = array[:, 0] if array.shape[1:] == (1,) else array
        return array.astype(np.int64) if f.whole else array

    @property
    def status(self) -> dict[str, np.ndarray]:
        """Counts of steps and forward passes with an event since each world's reset, (nworld,), as `Batch.status`."""
        return {name: self.warning[:, k].astype(np.int64) for k, name in enumerate(STATUS)}

    @property
    def contact(self) -> np.recarray:
        """Raises an error, because a frozen batch has no contacts."""
        raise ModelError("a frozen batch has no contacts; thaw one world, and set its state")

    def query(self, name: str, **inputs: Any) -> dict[str, np.ndarray]:
        """Raises an error, because a frozen batch has no queries."""
        raise ModelError("a frozen batch has no queries; thaw one world, and set its state")

    def reset(self, ids: ArrayLike | None = None) -> None:
        """Resets worlds to the state that the file has; their derived fields become zero.

        Args:
            ids: the worlds, by number or as a mask; None for all.

        Raises:
            ModelError: ids out of range or repeated.
            RuntimeError: another thread is in a call of this batch.
        """
        if ids is None:
            super().reset()
            return
        for k in chosen_worlds(ids, self.nworld).tolist():
            self._turn.hold(self._library.fl_reset_world, self._handle, k)

    def _state_shape(self) -> tuple[int, ...]:
        return (self.nworld, *super()._state_shape())


@overload
def thaw(path: str | os.PathLike[str], *, trust: str | None = None, nworld: None = None) -> FrozenWorld: ...


@overload
def thaw(path: str | os.PathLike[str], *, trust: str | None = None, nworld: int) -> FrozenBatch: ...


def thaw(
    path: str | os.PathLike[str], *, trust: str | None = None, nworld: int | None = None
) -> FrozenWorld | FrozenBatch:
    """Opens a file of `freeze`: worlds that its own kernels step, bitwise as on the day the file was written.

    The file has machine code, which runs with all rights of this process: open only files of a source that you trust,
    or give the hash that the source has published.  Hashes, sizes and offsets are verified before code is mapped.

    Args:
        path: the file, which ends in .flz.
        trust: the hash that `freeze` returned, 64 hexadecimal digits; None: any file that fits.
        nworld: number of worlds of a batch, which the file must have; None: one world.

    Returns:
        The world, or the batch of worlds, in the state that the file has.

    Raises:
        ModelError: the file cannot be read, is no frozen world, does not fit, has another hash than `trust`, has no
            kernels for this processor or no batch; nworld is out of range.
        RuntimeError: the system is not Linux, or the installation lacks the C library and a C compiler.
    """
    if trust is not None and not (isinstance(trust, str) and HASH.fullmatch(trust)):
        raise ModelError(f"trust: got {trust!r}, allowed are 64 hexadecimal digits in lower case, or None")
    if nworld is None:
        return FrozenWorld(checked_path(path), trust)
    return FrozenBatch(checked_path(path), trust, whole_argument("nworld", nworld, 1, MOST_WORLDS))
