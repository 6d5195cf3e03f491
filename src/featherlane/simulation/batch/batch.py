"""`Batch`: many worlds of one model, stepped side by side in the lanes of the processor.

What lasts is a row per world for each state field, `(nworld, n)` in C order.  A thread takes W worlds, moves their rows
into its workspace, steps there while they are in cache, and writes them back.  Which worlds share a tile never shows in
a result, so worlds with alike contacts are put together for speed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from featherlane.errors import ModelError, UnknownAttributeError, near
from featherlane.lanes import Kernel
from featherlane.model.arguments import count
from featherlane.model.assignment import entries, flag, is_numbers, numbers
from featherlane.simulation.batch.call import Share
from featherlane.simulation.batch.failure import Failure
from featherlane.simulation.batch.reduction import Reduction, check_rollout, over_worlds
from featherlane.simulation.batch.running import Running
from featherlane.simulation.batch.worlds import LASTING, check_bindable, keyframe_numbers
from featherlane.simulation.query.distance import Distances, Pairs
from featherlane.simulation.query.inverse import Accelerations
from featherlane.simulation.query.ray import Hits, Rays, check_geoms
from featherlane.simulation.steps import check_inverse
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.transfer import Transfer
from featherlane.simulation.tile.turn import hold
from featherlane.simulation.tile.uninterrupted import set_all
from featherlane.simulation.user.control import control_function
from featherlane.simulation.user.function import UserFunction
from featherlane.simulation.user.sensor import fields_read, fill, plain_sensors
from featherlane.simulation.world.data import Data


class Batch(Running):
    """nworld worlds of one model.

    Args:
        model: the model; edits take effect at the next call.
        nworld: number of worlds, at least 1.
        nthread: threads, 0 for one for each core.
        dtype: float64 or float32, of the state and of all arithmetic; times are float64 in both.
        given_contacts: how many contacts `give_contacts` may give to a world, at most.
        record_bad: steps that are kept of each world, so that one that goes wrong can be replayed; 0: none.

    State fields are live arrays: `batch.qpos` (nworld, nq), `qvel`, `act`, `ctrl`, `time` (nworld,), `qacc_warmstart`,
    `qfrc_applied`, `xfrc_applied`, `mocap_pos`, `mocap_quat`, `eq_active`.  Derived fields are bound
    (`bind`) and refreshed by every call that computes them.

    Attributes:
        status: worlds' counts of `contacts_full`, `rows_full`, `bad_number`, `not_converged` and `bad_control`, each
            (nworld,).
        nbad: times each world was reset for bad numbers, (nworld,); the first time is told by a `BadNumberWarning`.
        ncon, solver_niter, solver_residual, solver_gap: of each world's last step, (nworld,).
        failures: with record_bad, a list of `Failure`: steps in which a count of `status` grew, each with the world's
            last states and inputs, which replay to the same bits.  It keeps of each world the first of each cause, and
            64 in all, the oldest; what is taken out makes room (`batch.failures.clear()`).

    Raises:
        TypeError: `model` is no Model.
        ModelError: nworld, nthread, given_contacts or record_bad out of range, an unknown dtype.
    """

    failures: list[Failure]

    def _found_failures(self) -> list[Failure]:
        if self._recorder is None:
            raise UnknownAttributeError(
                "batch has no failures: featherlane.Batch(..., record_bad=n) keeps n steps of each world"
            )
        return self._recorder.failures

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, ids=None) -> None:
        """Advance worlds by nstep time steps.

        An interrupt (Ctrl-C) leaves all worlds of the call at the same step: it is raised when they are, about a fifth
        of a second later at most, or a step of all of them where one takes longer.  `time` says how far they came, and
        the batch goes on from there to the same bits.

        Args:
            nstep: time steps, at least 1.
            ids: the worlds, by number or as a mask; None for all.

        Raises:
            ModelError: nstep below 1, ids out of range or repeated.
            RuntimeError: another thread is in a call of this batch.
        """
        self._run(count("nstep", nstep, 1), self._ids(ids), None)

    def forward(self, ids=None) -> None:
        """Compute all derived fields of the present state, without a step."""
        self._run(0, self._ids(ids), None)

    def reset(self, ids=None, keyframe: int | str | np.ndarray = -1, forward: bool = True) -> None:
        """Worlds to the model's defaults, or to keyframes; bound outputs follow.

        Args:
            ids: the worlds; None for all.
            keyframe: a keyframe's name or number for all of them, or one number each; -1 for the defaults.
            forward: False leaves bound outputs as they are, for a caller that sets the state next.

        Raises:
            ModelError: no such keyframe; `forward` is no switch.
        """
        chosen, forward = self._ids(ids), flag("forward", forward)
        keys = keyframe_numbers(self.model, keyframe, len(chosen))
        hold((self._turn,), self._reset, chosen, keys)
        if forward:
            self.forward_bound(chosen)

    def forward_bound(self, ids=None) -> None:
        """Computes the bound outputs of worlds that were set; the other outputs have no values from now on."""
        self.__dict__["_computed"] = True
        if self._bound:
            self.forward(ids)

    def _reset(self, chosen: np.ndarray, keys: np.ndarray) -> None:
        """Sets worlds to the defaults or to keyframes, in one bytecode."""
        values = self._defaults(chosen)
        for k in sorted(set(keys.tolist()) - {-1}) if len(keys) else ():
            at, model = chosen[keys == k], self.model
            values.append((self._arrays["time"], at, model.key_time[k]))
            for name in ("qpos", "qvel", "act", "ctrl", "plastic"):
                values.append((self._arrays[name], at, getattr(model, f"key_{name}")[k]))
            for name, key in (("mocap_pos", "key_mpos"), ("mocap_quat", "key_mquat")):
                shape = self._arrays[name].shape[1:]
                values.append((self._arrays[name], at, getattr(model, key)[k].reshape(shape)))
        set_all(values)

    def rollout(
        self, nstep: int, control=None, record=("qpos",), ids=None, out=None, reduce: Reduction | None = None
    ) -> dict[str, np.ndarray]:
        """Advance worlds by nstep steps and record fields after each.

        An interrupt leaves worlds as one of `step` does; what was recorded until then is in `out`.

        Args:
            nstep: time steps, at least 1.
            control: (n, nstep, nu) controls for the n worlds of the call, or (nstep, nu) for all of them; a function
                `control(batch, step)`, called between steps, that gives what broadcasts to (n, nu); a kernel
                `control(m, d)`, compiled and called within each step, once positions and velocities are known, which
                sets `d.ctrl` (or `d.qfrc_applied`, `d.xfrc_applied`); or None to leave `ctrl` as it is.
            record: names of state or derived fields.
            ids: the worlds; None for all.
            out: arrays to record into, by name, of the shapes and dtype returned; missing ones are made.
            reduce: `mean`, `sum`, `min`, `max` or a `Histogram` over the worlds; None to return the recordings.

        Returns:
            name -> (n, nstep, ...), of a single number (`time`, `ncon`) (n, nstep).  State is that after the step,
            derived fields those of the state before it.  With `reduce`, name -> (nstep, ...), of a histogram
            (nstep, ..., nbin).

        Raises:
            ModelError: shapes, names or counts that do not fit; a kernel that cannot be compiled, or fails in a trial
                call, see `set_user_actuator`.
            InstallationError: a kernel is given and there is no compiler.

        Source: MuJoCo mjcb_control (a kernel; under RK4 it is called in each of the four stages, as there).
        """
        nstep, chosen = count("nstep", nstep, 1), self._ids(ids)
        names, how = field_names("record", record), check_rollout(reduce, out, len(chosen))
        for name in names:
            check_bindable(self.model, "record", name)
        dims = lambda name: DATA[name].dims(self._sizes)  # noqa: E731
        result = recordings(names, (len(chosen), nstep), out, dims, self.dtype)
        if callable(control) and not isinstance(control, Kernel):
            self._driven(control, nstep, chosen, result)
        else:
            share, reads = self._share(nstep, chosen, control, result)
            self._run(nstep, chosen, share.extra, share.control)
            self._measure_recorded(chosen, reads, result)
        return result if how is None else over_worlds(how, result, chosen)

    def _share(self, nstep: int, chosen: np.ndarray, control, result) -> tuple[Share, dict[str, np.ndarray]]:
        """A rollout's share of a call, and what sensors of the user read in it, by name."""
        transfers, kernel = {"control": [], "record": [Transfer(name, rows) for name, rows in result.items()]}, None
        if isinstance(control, Kernel):
            kernel = self.control_kernel(control)
            for name in kernel.sets():
                self.row_memory(name)
        elif control is not None:
            transfers["control"].append(
                Transfer(
                    "ctrl",
                    np.ascontiguousarray(controls_of_rollout(control, (len(chosen), nstep, self.model.nu)), self.dtype),
                )
            )
        reads = self._reads(result, (len(chosen), nstep))
        transfers["record"] += [Transfer(name, array) for name, array in reads.items()]
        return Share(self, chosen, transfers, kernel), reads

    def _measure_recorded(self, chosen: np.ndarray, reads: dict[str, np.ndarray], result) -> None:
        """Compute the user's sensors from the recordings of a rollout."""
        if "sensordata" in result and plain_sensors(self.model):
            cutoffs = self._expanded.shared_or_own("sensor_cutoff", chosen)
            fill(self.model, result["sensordata"], lambda name: reads[name], cutoffs)

    def _driven(self, control, nstep: int, chosen: np.ndarray, result) -> None:
        """A rollout of one step after the other, with controls that a function computes between them."""
        shape = (len(chosen), self.model.nu)
        for k in range(nstep):
            values = control_of_step(control(self, k), k, shape, self.dtype)
            for name, rows in self.rollout(1, values[:, None], list(result), chosen).items():
                result[name][:, k] = rows[:, 0]

    def control_kernel(self, control: Kernel) -> UserFunction:
        """The kernel, checked when it is first used with the model as it is now."""
        known = self._controls.get(control)
        if known is None:
            known = self._controls[control] = control_function(self.model, control)
        return known

    def _reads(self, names, lead: tuple[int, int]) -> dict[str, np.ndarray]:
        """Arrays for what the user's sensors read in a rollout that records sensordata."""
        read = fields_read(self.model) - {"sensordata"} if "sensordata" in names else set()
        fields = [DATA[name] for name in read]
        return {f.name: np.empty((*lead, *f.dims(self._sizes)), f.stored_as(self.dtype)) for f in fields}

    def inverse(self, qacc: ArrayLike | None = None, ids=None) -> np.ndarray:
        """Inverse dynamics: the external force that gives each world an acceleration in its present state.

        Args:
            qacc: what broadcasts to (n, nv) [m/s^2, rad/s^2] for the n worlds of the call; None for the accelerations
                of forward dynamics, so that the result is what is applied and what actuators give.
            ids: the worlds; None for all.

        Returns:
            qfrc_inverse (n, nv) [N, N m], as `fl.inverse` has it.  State and bound outputs stay as they are.

        Raises:
            ModelError: a shape that does not fit, numbers that are none; as `fl.inverse` does.
        """
        check_inverse(self.model)
        chosen = self._ids(ids)
        return self.query(Accelerations(self.model, len(chosen), self.dtype, qacc), chosen)

    def ray(
        self,
        point: ArrayLike,
        direction: ArrayLike,
        geomgroup: ArrayLike | None = None,
        flg_static: bool = True,
        bodyexclude: ArrayLike | str | None = -1,
        cutoff: float = np.inf,
        ids=None,
    ) -> Hits:
        """Where rays meet the first surface of a geom, in each world's present state.

        Args:
            point: where rays start [m]: what broadcasts to (n, nray, 3) for the n worlds of the call, (nray, 3) for the
                same rays in every world, (3,) for one.
            direction: where they go, of any length; alike.
            geomgroup: six flags, which groups of geoms are seen; None for all.
            flg_static: whether geoms that are welded to the world are seen.
            bodyexclude: a body whose geoms are not seen, by name or number, or numbers (n, nray); -1 for none.
            cutoff: surfaces from this distance on are not seen [m].
            ids: the worlds; None for all.

        Returns:
            `Hits`: distance (n, nray) in lengths of the direction, geom (n, nray), outward normal (n, nray, 3); where
            point and direction are (3,): (n,), (n,) and (n, 3).  -1, -1 and zeros for a ray that meets nothing.  State
            and bound outputs stay as they are.

        Raises:
            ModelError, UnknownNameError, UnsupportedFeatureError: as `fl.ray` does.
        """
        chosen = self._ids(ids)
        check_geoms(self.model, geomgroup, flg_static)
        rays = Rays(self.model, len(chosen), self.dtype, point, direction, geomgroup, flg_static, bodyexclude, cutoff)
        return self.query(rays, chosen)

    def geom_distance(self, geom1: ArrayLike, geom2: ArrayLike, distmax: float = np.inf, ids=None) -> Distances:
        """Signed distances of pairs of geoms and their nearest points, in each world's present state.

        Args:
            geom1, geom2: geoms by name or number: one, or arrays that broadcast to (n, npair) for the n worlds of the
                call, (npair,) for the same pairs in every world.
            distmax: distances from this on are not looked for [m].
            ids: the worlds; None for all.

        Returns:
            `Distances`: distance (n, npair) [m] and fromto (n, npair, 6) [m], where geom1 and geom2 are one geom each
            (n,) and (n, 6); distmax and zeros for a pair that is farther apart.  State and bound outputs stay as they
            are.

        Raises:
            ModelError, UnknownNameError: as `fl.geom_distance` does.
        """
        chosen = self._ids(ids)
        return self.query(Pairs(self.model, len(chosen), self.dtype, geom1, geom2, distmax), chosen)

    def get_data(self, world: int):
        """One world as an `fl.Data` in float64, forward computed."""
        w = self._world(world)
        data = Data(self.get_model(world), self.ngiven)
        for name in LASTING:
            if name in self._arrays:
                data.workspace.arrays[name][: self._arrays[name][w].size, 0] = self._arrays[name][w].reshape(-1)
        data.forward()
        return data

    def __repr__(self) -> str:
        return f"Batch({self.model!r}, nworld={self.nworld}, nthread={self.nthread}, dtype={self.dtype.name})"


def field_names(call: str, given) -> list[str]:
    """Names of fields, one or several."""
    names = []
    for name in entries(call, given, "are names of fields"):
        if not isinstance(name, str):
            raise ModelError(f"{call}: got {name!r}, allowed are names of fields")
        names.append(name)
    return names


def recordings(
    names: list[str], lead: tuple[int, int], out, dims: Callable[[str], tuple[int, ...]], dtype: np.dtype
) -> dict[str, np.ndarray]:
    """Arrays to record fields into, with these leading axes, checked where they are given; `dims` are of a world."""
    spare, result = sorted(set(out or ()) - set(names)), {}
    if spare:
        raise ModelError(f"out: {spare[0]!r} is not recorded{near(spare[0], names)}")
    for name in names:
        field, given = DATA[name], (out or {}).get(name)
        shape, kind = lead if field.is_number else (*lead, *dims(name)), field.stored_as(dtype)
        result[name] = np.empty(shape, kind) if given is None else _recordable(name, given, shape, kind)
    return result


def _recordable(name: str, given, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array to record into, checked."""
    allowed = f"allowed is a writable C-order array of {dtype} {shape}"
    if not isinstance(given, np.ndarray):
        raise ModelError(f"out[{name!r}]: got {type(given).__name__}, {allowed}")
    fits = given.shape == shape and given.dtype == dtype
    if not (fits and given.flags.c_contiguous and given.flags.writeable):
        raise ModelError(f"out[{name!r}]: got {given.dtype} {given.shape}, {allowed}")
    return given


def controls_of_rollout(control, shape: tuple[int, ...]) -> np.ndarray:
    """Controls of a rollout, checked: of each world, or the same for all."""
    given = numbers("control", control, f"are numbers {shape} or {shape[1:]}")
    if given.shape not in (shape, shape[1:]):
        raise ModelError(f"control: got shape {given.shape}, allowed is {shape} or {shape[1:]}")
    return np.broadcast_to(given, shape)


def control_of_step(given, step: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Controls that a function gave for one step of a rollout, checked."""
    try:
        return np.broadcast_to(numbers("control", given, "").astype(dtype, copy=False), shape)
    except ValueError:
        what = f"shape {np.shape(given)}" if is_numbers(given) else type(given).__name__
        raise ModelError(f"control: step {step} gave {what}, allowed is what broadcasts to {shape}") from None
