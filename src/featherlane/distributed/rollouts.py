"""Rollouts of a distributed batch: recordings that are returned, reduced by the workers, or left there."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.distributed.calls import Calls
from featherlane.distributed.recording import Recorded, Recording
from featherlane.distributed.serialization import serialize
from featherlane.distributed.worker import Left
from featherlane.errors import ModelError
from featherlane.lanes import Kernel
from featherlane.model.arguments import whole_argument
from featherlane.simulation.batch.filming import Filming, Record, split_cameras
from featherlane.simulation.batch.reduction import Reduction, check_rollout, merged
from featherlane.simulation.query.imaging import camera_of_worlds
from featherlane.simulation.tile.fields import DATA
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.recordings import (
    Control,
    check_bindable,
    control_of_step,
    controls_of_rollout,
    recordings,
)


class Rollouts(Calls):
    """Runs rollouts on the workers."""

    def rollout(
        self,
        nstep: int,
        control: Control | None = None,
        record: Record = ("qpos",),
        *,
        ids: ArrayLike | None = None,
        out: Mapping[str, np.ndarray] | str | None = None,
        reduce: Reduction | None = None,
    ) -> Any:
        nstep, chosen = whole_argument("nstep", nstep, 1), self._ids(ids)
        if not isinstance(out, Mapping | None) and not (isinstance(out, str) and out == "refs"):
            given = repr(out) if isinstance(out, str) else type(out).__name__
            raise ModelError(f"out: got {given}, allowed is 'refs' or a dict of arrays by name")
        how = check_rollout(reduce, {} if isinstance(out, str) else out, len(chosen))
        names, cameras = split_cameras(record, how)
        for name in names:
            check_bindable(self.model, "record", name)
        lead = (0, 0) if out == "refs" or how is not None else (len(chosen), nstep)  # of the arrays to return
        film = Filming(self, cameras, lead, None if isinstance(out, str) else out)
        sizes = Workspace.sizes_of(self.model, self._one.ngiven)
        result = recordings(names, lead, film.rest, lambda name: DATA[name].dims(sizes), self.dtype) | film.result
        if callable(control) and not isinstance(control, Kernel):
            return self._driven(nstep, control, (*names, *cameras), chosen, out, how, result)
        controls = self._control(control, (len(chosen), nstep, self.model.nu))
        nbytes = sum(a.itemsize * math.prod(a.shape[2:]) for a in result.values())
        recorded = Recording(tuple(names), tuple(cameras), nbytes)
        if out == "refs":
            return self._left(nstep, controls, recorded, chosen)
        if how is not None:
            return self._reduced(nstep, controls, recorded, chosen, how)

        def take(part, start: int, n: int, rows: dict[str, np.ndarray]) -> None:
            for name, whole in result.items():
                whole[part.at, start : start + n] = rows[name]

        self._roll(nstep, controls, recorded, chosen, take)
        return result

    def _control(self, control, shape: tuple[int, ...]) -> Any:
        """Returns the controls of a rollout: an array for all its worlds, a packed kernel, or None."""
        if isinstance(control, Kernel):
            self._one.runner.control_kernel(control)  # or raises its error
            return serialize("control", control) if self.is_remote else control
        if control is None:
            return None
        return np.asarray(controls_of_rollout(control, shape), self.dtype)

    def _roll(self, nstep: int, controls, recorded: Recording, chosen, take, how=None, stays: bool = False) -> None:
        """Runs the pieces of a rollout; `take` receives the recordings of each worker."""

        def orders(part, start: int, n: int):
            own = controls
            if isinstance(controls, np.ndarray):
                own = np.ascontiguousarray(controls[part.at, start : start + n])
            first, last = self.starts[part.worker : part.worker + 2].tolist()
            cameras = [camera_of_worlds(camera, self.nworld, first, last) for camera in recorded.cameras]
            return [("rollout", (n, own, (*recorded.names, *cameras), part.ids, how))]

        self._advance(nstep, chosen, orders, take, recorded.nbytes + self._one.ctrl.nbytes, stays)

    def _left(self, nstep: int, controls, recorded: Recording, chosen) -> list[Recorded]:
        """Runs a rollout whose recordings stay on the workers."""
        found: list[Recorded] = []

        def take(part, start: int, n: int, left) -> None:
            where = left if isinstance(left, Left) else (left, None)
            found.append(Recorded(chosen[part.at], start, n, *where))

        self._roll(nstep, controls, recorded, chosen, take, stays=True)
        return found

    def _reduced(self, nstep: int, controls, recorded: Recording, chosen, how: Reduction) -> dict[str, np.ndarray]:
        """Runs a rollout whose recordings are reduced by the workers."""
        pieces: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
        self._roll(nstep, controls, recorded, chosen, lambda part, start, n, rows: pieces[start].append(rows), how)
        return {
            name: np.concatenate([merged(how, [rows[name] for rows in pieces[start]]) for start in sorted(pieces)])
            for name in recorded.names
        }

    def _driven(self, nstep: int, control, record, chosen, out, how, result) -> Any:
        """Runs a rollout step by step, with controls that a function computes in this process."""
        results = []
        for k in range(nstep):
            values = control_of_step(control(self, k), k, (len(chosen), self.model.nu), self.dtype)
            rows = self.rollout(
                1, values[:, None], record, ids=chosen, out="refs" if out == "refs" else None, reduce=how
            )
            if out == "refs" or how is not None:
                results.append(rows)
                continue
            for name, whole in result.items():
                whole[:, k] = rows[name][:, 0]
        if out == "refs":
            return [part._replace(start=k) for k, parts in enumerate(results) for part in parts]
        return result if how is None else {name: np.concatenate([one[name] for one in results]) for name in record}
