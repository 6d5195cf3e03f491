"""Worlds whose costates are propagated backwards through tiles, and the arrays shared with the kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from featherlane.engine.model.enums import Disable
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.tools.sensitivity.adjoint.jacobians import JacobianSteps, transposed_product
from featherlane.tools.sensitivity.adjoint.products import REPORTS, adjoint_steps
from featherlane.tools.sensitivity.adjoint.sweep import Gradients, Steps
from featherlane.tools.sensitivity.adjoint.trajectory import States, Trajectory
from featherlane.tools.sensitivity.systems.served import has_products
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, borrowed

EACH = 16  # steps at a time: after a step without formulas, the later steps of the part are recomputed
FEW = 4  # fewer worlds are processed one by one
COSTATE, DIRECT = ("by_q", "by_v", "by_act"), ("loss_q", "loss_v", "loss_act")


class ProductWorlds(OwnWorlds):
    """Holds worlds and the costates of some of their steps, stored in processing order: the last step first.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        nstep: the largest number of steps.
        fields: the fields of a state.

    Attributes:
        states: field -> (nworld, nstep + 1, n) before each step.
        direct: (nworld, nstep + 1, nx) partial derivative of the loss by the state after each step.
        found: (nworld, nstep + 1, nx + nu + REPORTS) costates before the steps processed so far, without the direct
            part there, then gradients by controls, then reports.
    """

    solves_columns = True

    def __init__(self, model: Model, source: Batch, nthread: int, disabled: int, nstep: int, fields: tuple[str, ...]):
        super().__init__(model, source, nstep, nthread, disabled)
        n, nx = source.nworld, self.seeds.state.stop
        self.nx, self.ncol, self.nrow = nx, nx + model.nu + REPORTS, nstep + 1
        sizes = {name: self.batch.arrays.rows[name][0].size for name in (*fields, "ctrl")}
        self.states = {name: np.zeros((n, self.nrow, size)) for name, size in sizes.items()}
        self.direct, self.found = np.zeros((n, self.nrow, nx)), np.zeros((n, self.nrow, self.ncol))
        kinds = self.seeds.position, self.seeds.velocity, self.seeds.activation
        self._given = {name: self._from_anywhere(a) for name, a in self.states.items()}
        for names, a in ((COSTATE, self.found), (DIRECT, self.direct)):
            self._given |= {name: self._from_anywhere(a[..., part]) for name, part in zip(names, kinds, strict=True)}
        self._numbers = np.lib.stride_tricks.as_strided(
            self.found[:, 1:], (n * self.nrow, nstep * self.ncol, 1), (8 * self.ncol, 8, 8)
        )

    def _from_anywhere(self, a: np.ndarray) -> np.ndarray:
        """Returns rows (nworld, nrow, n) in which a pass can begin anywhere: row k of world w is place w nrow + k."""
        step = a.strides[1]
        return np.lib.stride_tricks.as_strided(a, (a.shape[0] * self.nrow, self.nrow, a.shape[2]), (step, step, 8))

    def take(self, worlds: np.ndarray, first: int, nstep: int, width: int) -> None:
        """Processes steps of some worlds, from number `first` in processing order."""
        self.go(self.prepared(worlds, first, nstep, width), -(-len(worlds) // width))

    def prepared(self, worlds: np.ndarray, first: int, nstep: int, width: int) -> Plan:
        """Returns the plan of such a pass, ready to run."""
        self.plans.prepare(width)
        sizes = {"differences_p": 0, "rate_steps": 1, "nslipmax": 0}
        plan = self.kept(
            width,
            lambda: self.plan_of(
                adjoint_steps, self.batch.nworld, self._given, {"number": self._numbers}, width=width, sizes=sizes
            ),
        )
        plan.begin(nstep, worlds, worlds * self.nrow + first)
        return plan

    def known(self, nstep: int) -> np.ndarray:
        """Returns (nworld, nstep) by step: 1 formulas apply, 0 they do not, -1 they may if the world runs alone."""
        return self.found[:, 1 : nstep + 1, -REPORTS]


class ProductSteps(Steps):
    """Propagates costates without forming derivatives, except for steps without formulas.

    These steps differ between worlds; the usual case is a contact within 2e-7 m of its end.

    Args:
        trajectory: the first trajectory; later ones have as many worlds and steps.
        nthread, frictionloss: as `linearize` has them.
    """

    def __init__(self, trajectory: Trajectory, nthread: int, frictionloss: bool):
        self.each, self.trajectory = min(trajectory.control.shape[1], EACH), trajectory
        self.nthread, self.frictionloss = nthread, frictionloss
        self._jacobians = JacobianSteps(trajectory, (), nthread, frictionloss)

    @contextmanager
    def entered(self, trajectory: Trajectory) -> Iterator[None]:
        model, disabled = trajectory.model, 0 if self.frictionloss else int(Disable.FRICTIONLOSS)
        how = self.nthread, disabled, self.each, tuple(trajectory.fields)
        with borrowed(ProductWorlds, model, trajectory.worlds, *how) as worlds:
            self.trajectory = self._jacobians.trajectory = trajectory
            self._worlds = worlds
            yield

    def pull_back(self, states: States, first: int, costate: np.ndarray, direct: np.ndarray) -> Gradients:
        worlds, (nworld, n, nx) = self._worlds, direct.shape
        control = self.trajectory.control[:, first : first + n]
        for name, values in (states | {"ctrl": control}).items():
            worlds.states[name][:, :n] = values.reshape(nworld, n, -1)[:, ::-1]
        worlds.found[:, 0, :nx] = costate
        worlds.direct[:, 0], worlds.direct[:, 1 : n + 1] = 0.0, direct[:, ::-1]
        worlds.take(np.arange(nworld), 0, n, worlds.width)
        self._mend(n)
        found = worlds.found[:, 1 : n + 1]
        by_control = found[:, ::-1, nx:-REPORTS]
        return Gradients(found[:, -1, :nx] + direct[:, 0], by_control, {}, found[:, :, -1].min(1))

    def _mend(self, n: int) -> None:
        """Processes steps without formulas by their derivatives, and recomputes the steps after them."""
        worlds, known = self._worlds, self._worlds.known(n)
        at, derivatives = np.zeros(len(known), int), {}
        while True:
            wrong = (known <= 0.0) & (np.arange(n) >= at[:, None])
            left = np.flatnonzero(wrong.any(1))
            if not len(left):
                return
            at[left] = wrong[left].argmax(1)
            for step in np.unique(at[left]):
                some = left[at[left] == step]
                alone = some[known[some, step] < 0.0]
                if len(alone):
                    worlds.take(alone, step, n - step, 1)
                    # if formulas still do not apply, the cause is in the world itself
                    worlds.found[alone, 1 : n + 1, -REPORTS] = np.maximum(known[alone], 0.0)
                some = some[known[some, step] == 0.0]
                if len(some):
                    missing = [
                        (w, k) for w, k in zip(*np.nonzero(known == 0.0), strict=True) if (w, k) not in derivatives
                    ]
                    derivatives |= self._derivatives(missing) if missing else {}
                    for w in some:
                        self._jump(w, step, *derivatives[w, step])
                    at[some] = step + 1
                    if step + 1 < n:
                        worlds.take(some, step + 1, n - step - 1, worlds.width if len(some) >= FEW else 1)

    def _jump(self, world: int, step: int, A: np.ndarray, B: np.ndarray, switching: float) -> None:
        """Propagates through a step of a world, by its derivatives."""
        worlds = self._worlds
        costate = worlds.found[world, step, : worlds.nx] + worlds.direct[world, step]
        row = worlds.found[world, step + 1]
        row[: worlds.nx] = transposed_product(A[None], costate[None])[0]
        row[worlds.nx : -REPORTS] = transposed_product(B[None], costate[None])[0]
        row[-1] = switching

    def _derivatives(self, pairs: list[tuple[int, int]]) -> dict:
        """Returns (A, B, switching) of steps of worlds, by (world, step)."""
        k = max(FEW, 1 << (len(pairs) - 1).bit_length())  # few sizes, as each has a batch
        which, step = np.transpose(pairs + [pairs[-1]] * (k - len(pairs)))
        found = self._jacobians.at(which, {name: a[which, step] for name, a in self._worlds.states.items()})
        parts = zip(found.A, found.B, found.switching, strict=True)
        return {pair: part for pair, part in zip(pairs, parts, strict=False)}


def steps_of(trajectory: Trajectory, parameters: tuple[str, ...], nthread: int, frictionloss: bool) -> Steps:
    """Returns the `Steps` for a trajectory and similar ones, by the model and the fields to differentiate by."""
    if parameters or not has_products(trajectory.model):
        return JacobianSteps(trajectory, parameters, nthread, frictionloss)
    return ProductSteps(trajectory, nthread, frictionloss)
