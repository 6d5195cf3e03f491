"""Executor of UniSim's `mujoco` backend on Featherlane: the calls of `mjbatch.Batch` that `MuJoCoBackend` makes.

The backend reads and writes bound arrays.  An input in another precision than the batch's is a copy (`Mirrors`).

Source: mjbatch-uni 0.2.5, Batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import DTypeLike

from featherlane import Batch, Model, State
from featherlane.integrations.mirrors import EVERY, Mirrors

INPUTS = frozenset(
    ("time", "qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "qacc_warmstart", "mocap_pos", "mocap_quat")
)
OPTIONS = frozenset(("gravity",))  # model fields that MuJoCo has in `opt`
# fields without dependent ones, except for a damping ratio in actuator_biasprm[2], which is positive
FREE = frozenset(
    ("actuator_gainprm", "actuator_biasprm", "dof_damping", "dof_frictionloss", "geom_friction", "geom_solref")
    + ("geom_solimp", "opt_gravity")
)
EDGE = 0.001  # distance from the last row and column of a height field, in cells, where points outside are placed
SEEN = State.TIME | State.QPOS | State.QVEL | State.ACT  # the first columns of mjSTATE_INTEGRATION


class Executor:
    """Steps the worlds of a `MuJoCoBackend`.

    Args:
        model: the model.
        num_sims: number of worlds.
        num_threads: threads; 0: one for each core.
        dtype: float64 or float32, of the state and of all arithmetic.
        cpu_ids: cores to which the threads are pinned, one for each thread; None: they are not pinned.
    """

    def __init__(
        self,
        model: Model,
        num_sims: int,
        num_threads: int = 0,
        dtype: DTypeLike = "float64",
        cpu_ids: Sequence[int] | None = None,
    ):
        self.batch, self.num_sims = Batch(model, num_sims, num_threads, dtype=dtype, cpu_ids=cpu_ids), num_sims
        self.batch.mute()
        self._mirrors = Mirrors()
        self._written: set[str] = set()  # model fields since the last `set_const`
        self._bound: dict[str, np.ndarray] = {}  # outputs of the batch
        self._outputs: dict[str, np.ndarray] = {}  # as of the last call that updates all outputs

    # ---- arrays ------------------------------------------------------------------------------------------------------
    def bind(self, name: str, dtype: DTypeLike | None = None) -> np.ndarray:
        """Returns a live array (nworld, ...) over a field; an input is writable.

        Args:
            name: an input or an output of a step, by its name in MjData.
            dtype: precision of the array; None: the batch's.
        """
        if name not in INPUTS:
            if name not in self._outputs:
                self._bound[name] = self.batch.bind(name)
                self._outputs[name] = self._bound[name].astype(dtype or self.batch.dtype)
            return self._outputs[name]
        rows = getattr(self.batch, name)
        return self._mirrors.shown(name, rows, dtype or rows.dtype)

    def expand(self, name: str) -> np.ndarray:
        """Returns separate values of a model field for each world, (nworld, ...), to be written."""
        self._written.add(_field(name))
        return self.batch.expand(_field(name))

    def set_variants(self, group: str, assignment: np.ndarray) -> None:
        """Gives the worlds their variants of a group, whose names are numbers; `assignment` is (nworld,)."""
        for variant in np.unique(assignment).tolist():
            self.batch.set_variant(group, str(variant), ids=np.flatnonzero(assignment == variant))

    def values(self, name: str) -> np.ndarray:
        """Returns the values of a model field in each world, (nworld, ...), to be read."""
        rows = self.batch.expanded(_field(name))
        value = getattr(self.batch.model, _field(name))
        return np.broadcast_to(value, (self.num_sims, *np.shape(value))) if rows is None else rows

    def set_const(self, ids: np.ndarray | None = None) -> None:
        """Recomputes the model fields that depend on expanded ones that were written."""
        written, self._written = self._written, set()
        if written <= FREE and not (
            "actuator_biasprm" in written and (self.values("actuator_biasprm")[..., 2] > 0).any()
        ):
            return
        self.batch.set_const(ids)

    # ---- calls -------------------------------------------------------------------------------------------------------
    def forward(self, ids: np.ndarray | None = None) -> None:
        """Computes the outputs of the present state."""
        self._write(ids)
        self.batch.forward(ids)
        self._read(ids, self._outputs)

    def reset(self, ids: np.ndarray | None = None) -> None:
        """Sets worlds to the model's defaults, then writes pending inputs; the outputs are those of the next call."""
        self.batch.reset(ids, forward=False)
        self._write(ids)
        self._read(ids, ())

    def step(
        self, nstep: int = 1, callback: Callable | None = None, substep_sensor_copyout: Sequence[int] | None = None
    ) -> None:
        """Advances all worlds.

        Args:
            nstep: time steps.
            callback: `callback(k, state, ctrl)` is called before step k, with the state (nworld, n), in the order of
                mjSTATE_INTEGRATION up to the activations, and the writable controls (nworld, nu).
            substep_sensor_copyout: first and last + 1 element of `sensordata` to compute before each callback, which
                gets them as a fourth argument.

        If the callback raises an error, the worlds keep the state before step k, and the outputs belong to that state.
        """
        if callback is None:
            self._write(None)
            self.batch.step(nstep)
            self._read(None, self._outputs)
            return
        for k in range(nstep):
            sensed = ()
            if substep_sensor_copyout is not None:
                self.refresh_sensor_ranges(None, substep_sensor_copyout)
                sensed = (self._outputs["sensordata"][:, slice(*substep_sensor_copyout)],)
            state = self.batch.get_state(SEEN)
            state.flags.writeable = False
            try:
                callback(k, state, self.batch.ctrl, *sensed)
            except BaseException:
                self.forward()
                raise
            self._write(None)
            self.batch.step()
            self._read(None, ())
        self._read(None, self._outputs)

    def refresh_sensor_ranges(self, ids: np.ndarray | None, sensor_ranges: Sequence[int]) -> None:
        """Computes position and velocity sensors in ranges of `sensordata` from the present state.

        Args:
            ids: the worlds; None for all.
            sensor_ranges: first and last + 1 element of each range, in pairs.
        """
        self._write(ids)
        shown, now = self.bind("sensordata"), self.batch.present_fields("sensordata", ids=ids)["sensordata"]
        chosen = np.zeros(self.batch.model.nsensordata, bool)
        for first, end in zip(sensor_ranges[::2], sensor_ranges[1::2], strict=True):
            chosen[first:end] = True
        columns = np.flatnonzero(chosen & ~np.isnan(now).all(0))  # NaN: sensors that need contacts or forces
        rows = np.arange(self.num_sims) if ids is None else ids
        shown[rows[:, None], columns] = now[:, columns]

    # ---- queries -----------------------------------------------------------------------------------------------------
    def jac(self, jacp: np.ndarray, jacr: np.ndarray, point: np.ndarray, body: np.ndarray, ids: None = None) -> None:
        """Computes Jacobians of a point of each world in the present state.

        Args:
            jacp, jacr: (nworld, 3, nv) arrays for the velocity of the point and the angular velocity, in world axes.
            point: (nworld, 3) the points [m], in world axes.
            body: (nworld,) the bodies that carry the points.
            ids: None, all worlds.
        """
        self._write(None)
        jacp[...], jacr[...] = self.batch.jac(point, np.broadcast_to(body, self.num_sims))

    def sample_hfield(self, geom: int, body: int, offsets: np.ndarray, alignment: str = "world") -> np.ndarray:
        """Interpolates the heights of a height field at horizontal offsets from a body's origin, in the present state.

        Args:
            geom: the height field, which all worlds share.
            body: the body.
            offsets: (n, 2) offsets [m], along the axes of the world, or of the body's yaw.
            alignment: `world` or `yaw`.

        Returns:
            (nworld, n) heights of the surface in the world [m].
        """
        self._write(None)
        now = self.batch.present_fields(("xpos", "xmat", "geom_xpos", "geom_xmat"))
        mj, axes = self.batch.model.mj_model, now["xmat"][:, body].reshape(-1, 3, 3)
        yaw = np.arctan2(axes[:, 1, 0], axes[:, 0, 0]) * (alignment == "yaw")
        turn = np.moveaxis(np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]), 2, 0)
        origin, frame = now["geom_xpos"][:, geom], now["geom_xmat"][:, geom].reshape(-1, 3, 3)
        arm = np.zeros((self.num_sims, len(offsets), 3))
        arm[..., :2] = offsets @ turn.swapaxes(1, 2) + (now["xpos"][:, body] - origin)[:, None, :2]
        local = arm @ frame
        local[..., 2] = _interpolated(mj, int(mj.geom_dataid[geom]), local)
        return origin[:, None, 2] + (local @ frame.swapaxes(1, 2))[..., 2]

    # ---- copies ------------------------------------------------------------------------------------------------------
    def _write(self, ids: np.ndarray | None) -> None:
        self._mirrors.push(EVERY if ids is None else ids)

    def _read(self, ids: np.ndarray | None, outputs) -> None:
        at = EVERY if ids is None else ids
        self._mirrors.pull(at)
        for name in outputs:
            self._outputs[name][at] = self._bound[name][at]


def _interpolated(mj, field: int, local: np.ndarray) -> np.ndarray:
    """Returns the heights of a height field at points (..., 3) of its frame [m], of the nearest point outside it."""
    shape, size = np.array([mj.hfield_ncol[field], mj.hfield_nrow[field]]), mj.hfield_size[field]
    heights = mj.hfield_data[mj.hfield_adr[field] :][: shape.prod()].reshape(shape[1], shape[0]).astype(float)
    cell = np.clip((local[..., :2] + size[:2]) / (2.0 * size[:2]) * (shape - 1), 0.0, shape - 1 - EDGE)
    first = cell.astype(int)
    (c, r), (x, y) = np.moveaxis(first, -1, 0), np.moveaxis(cell - first, -1, 0)
    low, high = (heights[k, c] * (1.0 - x) + heights[k, c + 1] * x for k in (r, r + 1))
    return size[2] * (low * (1.0 - y) + high * y)


def _field(name: str) -> str:
    """Returns the name of a model field in Featherlane."""
    return f"opt_{name}" if name in OPTIONS else name
