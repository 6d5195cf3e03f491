"""Defines `GroupedWorlds`: worlds of this process in groups of one model each, which a call steps together.

A `Batch` is one group, a `MixedBatch` has several.  A call runs a share of each group in the same threads.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.lanes import Kernel
from featherlane.engine.model.arguments import whole_argument
from featherlane.engine.model.assignment import flag, regular
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import model_of_world
from featherlane.engine.model.variant import values_of
from featherlane.engine.simulation.batch.arrays import LASTING
from featherlane.engine.simulation.batch.constants import set_const_of, set_variant
from featherlane.engine.simulation.batch.rollout_request import RolloutRequest
from featherlane.engine.simulation.batch.runner import EVERY, Share, roll_shares, run_shares, stage_number
from featherlane.engine.simulation.batch.worlds import Worlds
from featherlane.engine.simulation.tile.call_lock import hold
from featherlane.engine.simulation.user.control import Controller
from featherlane.engine.simulation.world.data import Data
from featherlane.engine.simulation.world.recordings import inputs_of_rollout
from featherlane.errors import ModelError

FOR_ALL = (int, str, type(None))  # types of a keyframe for all worlds of a call


class GroupedWorlds(Worlds):
    """Runs calls of worlds in groups.

    Attributes:
        groups: a `Batch` for each model.
        models: the model of each group.
        starts: (ngroup + 1,) the first world of each group, and `nworld`.
    """

    starts: np.ndarray

    @property
    def groups(self) -> tuple[Any, ...]:
        """Returns a `Batch` for each model, whose arrays are parts of this batch's."""
        return (self,)

    @property
    def models(self) -> tuple[Model, ...]:
        return tuple(group.model for group in self.groups)

    def _split(self, chosen: np.ndarray) -> list[tuple[int, np.ndarray, Any]]:
        """Returns the groups of these worlds, the worlds' numbers in the group, and their indices in `chosen`."""
        return [(0, chosen, slice(None))]

    def world_shape(self, name: str) -> tuple[int, ...]:
        return self.groups[0].arrays.dims(name)

    def _cut(self, name: str, group: int, rows: np.ndarray) -> np.ndarray:
        """Returns a view of the entries of padded rows that worlds of a group use."""
        return rows

    # ---- running -----------------------------------------------------------------------------------------------------
    def step(self, nstep: int = 1, *, ids: ArrayLike | None = None, stage: str | None = None) -> None:
        self._advance(whole_argument("nstep", nstep, 1), self._ids(ids), stage_number(stage))

    def forward(self, ids: ArrayLike | None = None) -> None:
        self._advance(0, self._ids(ids))

    def _advance(self, nstep: int, chosen: np.ndarray, stage: int = 0) -> None:
        """Runs steps, or a forward pass if nstep is 0."""
        shares = [Share(self.groups[k].runner, worlds, stage=stage) for k, worlds, _ in self._split(chosen)]
        if shares:
            run_shares(nstep, shares)
            self._warn(nstep)

    def _warn(self, nstep: int) -> None:
        """Warns of what a call found."""
        for first, group in zip(self.starts.tolist(), self.groups, strict=False):
            group.runner.warn_of_found(nstep, first)

    def reset(
        self, ids: ArrayLike | None = None, *, keyframe: int | str | ArrayLike | None = None, forward: bool = True
    ) -> None:
        chosen, forward = self._ids(ids), flag("forward", forward)
        each = None if isinstance(keyframe, FOR_ALL) else regular("keyframe", keyframe)
        groups, resets = self.groups, []
        for k, worlds, at in self._split(chosen):
            own = keyframe if each is None or each.shape != chosen.shape else each[at]
            resets.append((groups[k].runner, worlds, groups[k].model.keyframe_numbers(own, len(worlds))))
        for runner, worlds, keys in resets:
            hold((runner.turn,), runner.reset, worlds, keys)
        if forward:
            self.forward_bound(chosen)

    def forward_bound(self, ids: ArrayLike | None = None) -> None:
        """Computes the bound outputs of worlds that were set."""
        if self.groups[0].arrays.bound:
            self.forward(ids)

    def _rollout(self, request: RolloutRequest) -> dict[str, np.ndarray]:
        chosen, how = request.chosen, request.reduction
        if len(self.groups) > 1 and (np.diff(chosen) < 0).any():
            raise ModelError("ids: got numbers that do not ascend, allowed are ascending world numbers")
        if request.cameras or request.is_driven:
            request.run_step_by_step()
        else:
            self._roll(request.nstep, chosen, request.control, request.fields)
        return request.result if how is None else how.over(request.result, chosen)

    def _roll(self, nstep: int, chosen: np.ndarray, control: Any, out: dict[str, np.ndarray]) -> None:
        """Runs steps with given controls or a kernel, and records into parts of padded arrays."""
        several = len(self.groups) > 1
        if several:
            for rows in out.values():
                rows[...] = 0
            if not isinstance(control, Kernel | Controller | None):
                control = inputs_of_rollout(control, (len(chosen), nstep), self.world_shape)
        parts = []
        for k, worlds, at in self._split(chosen):
            result, own = out, control
            if several:
                span = slice(at[0], at[-1] + 1)
                result = {name: self._cut(name, k, rows[span]) for name, rows in out.items()}
                if isinstance(control, Controller):
                    own = control.of_worlds(self.starts[k], self.starts[k + 1])
                if isinstance(control, dict):
                    own = {name: self._cut(name, k, rows[span]) for name, rows in control.items()}
            parts.append((self.groups[k].runner, worlds, own, result))
        roll_shares(nstep, parts)
        self._warn(nstep)

    # ---- model fields by world ---------------------------------------------------------------------------------------
    def set_const(self, ids: ArrayLike | None = None) -> None:
        for k, worlds, _ in self._split(self._ids(ids)):
            hold((self.groups[k].runner.turn,), set_const_of, self.groups[k].arrays, worlds)

    def set_variant(self, geom: str, variant: str, *, ids: ArrayLike | None = None, inertia: bool = True) -> None:
        shares = [(self.groups[k], worlds) for k, worlds, _ in self._split(self._ids(ids))]
        # of all groups, before any is set
        values = [values_of(group.model.variants, geom, variant, flag("inertia", inertia)) for group, _ in shares]
        for (group, worlds), entries in zip(shares, values, strict=True):
            hold((group.runner.turn,), set_variant, group.arrays, worlds, entries)

    # ---- worlds ------------------------------------------------------------------------------------------------------
    def _place(self, world) -> tuple[Any, int]:
        """Returns the group of a world, and its number in the group, checked."""
        [(k, own, _)] = self._split(np.array([whole_argument("world", world, 0, self.nworld - 1)]))
        return self.groups[k], int(own[0])

    def get_model(self, world: int) -> Model:
        group, w = self._place(world)
        return model_of_world(group.model, {name: rows[w] for name, rows in group.arrays.expanded.items()})

    def get_data(self, world: int) -> Data:
        group, w = self._place(world)
        data = Data(self.get_model(world) if group.arrays.expanded else group.model, group.ngiven)
        for name, rows in group.arrays.rows.items():
            if name in LASTING:
                data.workspace.arrays[name][: rows[w].size, 0] = rows[w].reshape(-1)
        data.forward()
        return data

    def _restore(self, values: Sequence[Mapping[str, np.ndarray]]) -> None:
        """Sets the arrays of each group to those of a checked checkpoint."""

        def restore() -> None:
            for group, own in zip(self.groups, values, strict=True):
                group.runner.forget(slice(None))
                group.arrays.restore(own)

        hold([group.runner.turn for group in self.groups], restore)

    # ---- for programs that display or run a user's batch -------------------------------------------------------------
    @property
    def is_busy(self) -> bool:
        """Returns whether a call is running."""
        return any(group.runner.turn.is_held for group in self.groups)

    def mute(self) -> None:
        """Emits no NonFiniteWarning or CapacityWarning from now on: the caller reports what `status` counts."""
        for group in self.groups:
            group.runner.warned = EVERY

    def copy(self) -> Self:
        """Returns an independent batch of the same models, in the same state."""
        return copy.deepcopy(self, {id(model): model for model in self.models})

    __copy__ = copy
