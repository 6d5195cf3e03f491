"""Worlds whose steps are differentiated by the implicit function theorem, and the passes through their tiles.

    base       forward dynamics: a and a*
    rates      dg and dp by each coordinate, at fixed a (residual.py)
    solution   da = -H^-1 dg, and from it the next state's rates (columns.py)

Rates stand in rows, a row for each column of each world; the solution takes them up column by column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from featherlane.dynamics.inertia.articulated import uses_articulated
from featherlane.lanes import Record, Stage, allocate
from featherlane.model.model import Model
from featherlane.simulation.batch.batch import Batch
from featherlane.simulation.derivative.columns import (
    FITS,
    NEAREST,
    base_tiles,
    force_columns,
    position_columns,
    solve_columns,
)
from featherlane.simulation.derivative.formulas import KNOWN, formula_columns, formula_steps, serves
from featherlane.simulation.derivative.moved import OwnWorlds
from featherlane.simulation.derivative.parameters import Parameters
from featherlane.simulation.tile.rates import RATES
from featherlane.simulation.tile.transfer import Plan, Transfer
from featherlane.simulation.tile.workspace import Workspace
from featherlane.simulation.world.data import Data

EPS = 2e-7  # by how much a coordinate moves where the residual is differenced
REALS = 1 << 21  # of a pass, in each array: what a pass leaves stays in cache, or near
LEAST = 64  # worlds of a pass, so that all threads have tiles


class Rates(NamedTuple):
    """What the columns of some worlds are; valid until the next pass.

    Attributes:
        state: (k, n, 2 nv + na) the next state's.
        acceleration: (k, n, nv) that of forward dynamics.
        fits: (k,) whether the theorem's Hessian is there.
        nearest: (k,) distance to the nearest switch.
        known: (k,) whether formulas served.
    """

    state: np.ndarray
    acceleration: np.ndarray
    fits: np.ndarray
    nearest: np.ndarray
    known: np.ndarray


class _Passes:
    """The plans of tiles of one width, and the memory between them.

    Args:
        worlds: whose passes they are.
        width: of tiles.
    """

    def __init__(self, worlds: ImplicitWorlds, width: int):
        model, batch = worlds.model, worlds.batch
        nv, nx = model.nv, 2 * model.nv + model.na
        self.width, self.worlds = width, worlds
        self.copies = width * batch.nthread if batch.nworld == 1 else 1
        groups = [(position_columns, 0, nv), (force_columns, nv, nx + model.nu)]
        if worlds.torques:
            groups.append((None, nx + model.nu, nx + model.nu + nv))
        if worlds.parameters is not None:
            groups.append((None, nx + model.nu + nv, nx + model.nu + nv + worlds.parameters.n))
        at, self.parts = [], []
        for loop, first, last in groups:
            npass = -(-(last - first) // self.copies)
            start, total = len(at), npass * self.copies
            at += [*range(first, last), *[-1] * (total - (last - first))]
            if npass:
                self.parts.append((loop, start, npass))
        self.at, self.ncol = np.array(at, float), len(at)
        #: columns in the order of their coordinates
        self.kept = np.flatnonzero(self.at >= 0.0)
        self.each = min(batch.nworld, max(LEAST, REALS // max(self.ncol * nv, 1)))
        n = self.each
        self.up, self.down = np.zeros((2, n, self.ncol))
        self.g, self.p = np.zeros((2, n, self.ncol, nv))
        self.acceleration, self.state = np.zeros((n, self.ncol, nv)), np.zeros((n, self.ncol, nx))
        self.report, self.known = np.zeros((n * self.copies, 2)), np.zeros((n, 3))
        # formulas and solution in one go, but for the recursion, which needs the same memory
        self.whole = worlds.by_formulas and not uses_articulated(model) and worlds.parameters is None
        if worlds.torques:  # dg/dtau = -1
            self.g[:, self.parts[-1][1] :][:, np.arange(nv), np.arange(nv)] = -1.0
        self._plan()

    def _plan(self) -> None:
        """The transfers of each pass."""
        worlds, batch = self.worlds, self.worlds.batch
        nv, total = worlds.model.nv, self.each * self.copies
        workspaces, wanted = worlds._prepared(self.width), batch._wanted(set())
        loads = worlds._loads()

        def rows(a: np.ndarray, start: int, npass: int) -> np.ndarray:
            """The columns of a pass as rows of tiles: (worlds * copies, npass, ...)."""
            part = a[:, start : start + npass * self.copies]
            return part if self.copies == 1 else part.reshape(self.copies, npass, -1)

        def plan(loop: Stage, kinds: dict[str, list[Transfer]], n: int) -> Plan:
            made = Plan(workspaces, kinds, n, wanted, loop)
            made.workspaces[0].calls.require(loop)
            return made

        at = np.broadcast_to(self.at, (self.each, self.ncol)).copy()
        self.base = plan(
            base_tiles,
            {
                "load": loads,
                "record": [
                    Transfer("qacc", worlds.qacc[:, None]),
                    Transfer("qacc_step", worlds.qacc_step[:, None]),
                ],
            },
            self.each,
        )
        given = [*loads, Transfer("qacc", worlds.qacc), Transfer("qacc_step", worlds.qacc_step)]
        self.rates = []
        for loop, start, npass in self.parts:
            if loop is None:
                continue
            brought = {"qacc_smooth": at, "qfrc_smooth": self.up, "qfrc_passive": self.down}
            taken = {"rk_acceleration": self.g, "rk_velocity": self.p, "rk_act": self.state[..., 2 * nv :]}
            kinds = {
                "load": given,
                "control": [Transfer(name, rows(a, start, npass)[..., None]) for name, a in brought.items()],
                "record": [Transfer(name, rows(a, start, npass)) for name, a in taken.items() if a.size],
            }
            self.rates.append((plan(loop, kinds, total), npass))
        self.formulas = self._formulas(loads, at) if worlds.by_formulas else None
        npass = self.ncol // self.copies
        brought = {"qacc_smooth": at[..., None], "grad": self.g, "qfrc_inverse": self.p}
        brought["rk_acceleration"] = self.acceleration
        taken = {
            "rk_acceleration": self.acceleration,
            "rk_rate": self.state[..., :nv],
            "rk_velocity": self.state[..., nv : 2 * nv],
        }
        report = np.lib.stride_tricks.as_strided(self.report, (total, npass, 2), (self.report.strides[0], 0, 8))
        kinds = {
            "load": loads,
            "control": [Transfer(name, rows(a, 0, npass)) for name, a in brought.items()],
            "record": [*(Transfer(name, rows(a, 0, npass)) for name, a in taken.items()), Transfer("part", report)],
        }
        self.solution = plan(solve_columns, kinds, total), npass

    def _formulas(self, loads: list[Transfer], at: np.ndarray) -> tuple[Plan, int]:
        """Rates by formulas, or the whole derivative by them; one world alone goes through a tile of width 1."""
        worlds, nv = self.worlds, self.worlds.model.nv
        self.narrow = 1 if worlds.batch.nworld == 1 else self.width
        workspaces, wanted = worlds._prepared(self.narrow), worlds.batch._wanted(set())
        given = [start for loop, start, _ in self.parts if loop is None]
        n = given[0] if given and not self.whole else self.ncol
        report = np.lib.stride_tricks.as_strided(self.known, (self.each, n, 3), (self.known.strides[0], 0, 8))
        brought = {"qacc_smooth": at, "qfrc_smooth": self.up, "qfrc_passive": self.down}
        state, act = self.state[..., : 2 * nv], self.state[..., 2 * nv :]
        taken = {"rk_act": act, "rk_acceleration": self.g, "rk_velocity": self.p}
        if self.whole:
            taken = {"rk_act": act, "rk_rate": state[..., :nv], "rk_velocity": state[..., nv:]}
            if worlds.torques:
                taken["rk_acceleration"] = self.acceleration
        kinds = {
            "load": loads,
            "control": [Transfer(name, a[:, :n, None]) for name, a in brought.items()],
            "record": [*(Transfer(name, a[:, :n]) for name, a in taken.items() if a.size), Transfer("part", report)],
        }
        rooms, loop = [_room(w) for w in workspaces], formula_steps if self.whole else formula_columns
        plan = Plan(workspaces, kinds, self.each, wanted, loop, rooms=rooms)
        plan.workspaces[0].calls.require(loop)
        return plan, n

    def run(self, chosen: np.ndarray, up: np.ndarray, down: np.ndarray) -> Rates:
        """All passes of some worlds, `each` at most.

        Args:
            chosen: their numbers.
            up, down: (k, ncoordinates) how far their coordinates move.
        """
        k, worlds = len(chosen), self.worlds
        moves = self.at[self.kept].astype(int)
        moves, kept = moves[moves < up.shape[1]], self.kept[moves < up.shape[1]]
        self.up[:k, kept], self.down[:k, kept] = up[:, moves], down[:, moves]
        worlds._prepared(self.width)
        known = np.zeros(k, bool)
        if self.formulas is not None:
            plan, n = self.formulas
            worlds._prepared(self.narrow)
            self._go(plan, n, chosen, np.arange(k), self.narrow)
            known = self.known[:k, KNOWN] > 0.0
        left, other = np.flatnonzero(~known), np.arange(self.copies)
        if len(left):
            self._go(self.base, 1, chosen[left], chosen[left])
            places = (left[:, None] * self.copies + other).reshape(-1)
            for plan, npass in self.rates:
                self._go(plan, npass, np.repeat(chosen[left], self.copies), places)
        if worlds.parameters is not None:
            if self.formulas is not None:
                self._go(self.base, 1, chosen, chosen)
            self._take_parameters(worlds.parameters, chosen)
        if not self.whole:
            left = np.arange(k)
        if len(left):
            plan, npass = self.solution
            places = (left[:, None] * self.copies + other).reshape(-1)
            self._go(plan, npass, np.repeat(chosen[left], self.copies), places)
        report = self.report[: k * self.copies : self.copies]
        if self.formulas is not None:
            # a contact that begins or ends at a displaced pose is told by formulas alone
            nearest = np.minimum(report[:, NEAREST], self.known[:k, NEAREST])
            report = np.stack([report[:, FITS], nearest], 1)
        if self.whole:
            report = np.where(known[:, None], self.known[:k, :KNOWN], report)
        picked = slice(None) if self.copies == 1 else self.kept
        return Rates(
            self.state[:k, picked],
            self.acceleration[:k, picked],
            report[:, FITS] > 0.0,
            report[:, NEAREST],
            known,
        )

    def _take_parameters(self, parameters: Parameters, chosen: np.ndarray) -> None:
        """The columns of the model's fields."""
        worlds, nv, k = self.worlds, self.worlds.model.nv, len(chosen)
        columns = slice(self.parts[-1][1], self.parts[-1][1] + parameters.n)
        g, p, act = parameters.rates(worlds, chosen, self.width)
        self.g[:k, columns], self.p[:k, columns], self.state[:k, columns, 2 * nv :] = g, p, act

    def _go(self, plan: Plan, nstep: int, order: np.ndarray, place: np.ndarray, width: int = 0) -> None:
        plan.begin(nstep, order, place)
        self.worlds._go(plan, -(-len(order) // (width or self.width)))


def _room(workspace: Workspace) -> Record:
    """Memory of a thread for rates by formulas."""
    names = {"rate_nv": "nv", "rate_na": "na", "rate_nbody": "nbody", "rate_ngeom": "ngeom", "rate_ncon": "nconmax"}
    sizes = {name: int(workspace.sizes[size]) for name, size in names.items()}
    arrays = allocate(RATES, sizes, workspace.width, workspace.dtype)
    return Record(RATES, sizes, arrays, workspace.width, workspace.dtype)


class ImplicitWorlds(OwnWorlds):
    """The worlds of a data or a batch, and their derivatives.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        torques: are generalized forces coordinates, too, after the controls?
        by_formulas: where these serve; else by differences of the residual.
        parameters: fields of the model whose numbers are coordinates, too.

    Attributes:
        qacc, qacc_step: (nworld, nv) accelerations of forward dynamics and of the integrator.
    """

    def __init__(
        self,
        model: Model,
        source: Data | Batch,
        torques: bool,
        nthread: int,
        disabled: int = 0,
        by_formulas: bool = True,
        parameters: Parameters | None = None,
    ):
        n = 2 * (2 * model.nv + model.na + model.nu)
        super().__init__(model, source, n, nthread, disabled)
        self.torques, self.formulas_wanted, self.parameters = torques, by_formulas, parameters
        self.qacc, self.qacc_step = np.zeros((2, self.batch.nworld, model.nv))
        self._passes: dict[int, _Passes] = {}
        self._revision = None

    def passes(self, width: int) -> _Passes:
        """Those through tiles of that width."""
        if self._revision != self.model.revision:
            self._passes.clear()
            self._revision = self.model.revision
            self.by_formulas = self.formulas_wanted and serves(self.model)
        if width not in self._passes:
            self._passes[width] = _Passes(self, width)
        return self._passes[width]
