"""Worlds whose steps are differentiated by the implicit function theorem, and the passes through their tiles.

    base       forward dynamics: a and a*
    rates      dg and dp by each coordinate: by formulas at fixed a (formulas.py), or by differences (differences.py)
    solution   da = -H^-1 dg, and from it the next state's rates (solution.py)

Differences in worlds with constraints are taken twice: over a short displacement at fixed a, which predicts da, and
then with an acceleration that follows the displacement by this prediction P: da = P - H^-1 dg.

Long differences.  A central difference over EPS = 2e-7 avoids nonsmooth points, and keeps nine of sixteen digits.  A
long chain, whose inertia has a condition number of 1e6, then loses six of them in the solve.  If the residual is
analytic (`are_analytic`), three differences over e, 2e and 3e are weighted so that all terms up to the sixth order
vanish:

    1.5 D(e) - 0.6 D(2e) + 0.1 D(3e),    D(e) = (g(x + e) - g(x - e)) / 2e.

With e = 1e-3 the rounding error is 5000 times smaller, and the truncation error is of the order of 36 e^6.
Source: Fornberg, Generation of Finite Difference Formulas on Arbitrarily Spaced Grids, 1988.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from featherlane.engine.dynamics.inertia.articulated import recurses
from featherlane.engine.lanes import Stage
from featherlane.engine.lanes.record import address
from featherlane.engine.model.enums import COULOMB
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.engine.simulation.world.data import Data
from featherlane.tools.sensitivity.columns.coordinates import EPS, Seeds
from featherlane.tools.sensitivity.columns.system import Stages
from featherlane.tools.sensitivity.rates.records import FITS, HELD, KNOWN, NEAREST
from featherlane.tools.sensitivity.systems.served import (
    DAMPING,
    FLUID,
    acts_at_once,
    are_analytic,
    differences_lag,
    lags_of_worlds,
    noslip_capacity,
    serves,
)
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds, each_step
from featherlane.tools.sensitivity.worlds.parameters import Parameters

FAR = 1e-3  # e [m, rad, m/s, rad/s]
WEIGHTS = 1.5, -0.6, 0.1
SHORT = 1e-3  # part of a displacement that predicts the derivative of the acceleration
REALS = 1 << 21  # values of a pass in each array, so that results stay in or near the cache
LEAST = 64  # worlds of a pass, so that all threads have tiles


class ImplicitWorlds(OwnWorlds):
    """Holds the worlds of a `Data` or a `Batch`, and the derivatives of their steps.

    Args:
        model, source, nthread, disabled: as for `OwnWorlds`.
        stages: of the system that a step solves.
        torques: whether generalized forces are coordinates, too, after the controls.
        by_formulas: use formulas where they apply; otherwise differences of the residual.
        parameters: the `Parameters` of the model whose values are coordinates, too; None for none.

    Attributes:
        qacc, qacc_step: (nworld, nv) accelerations of forward dynamics and of the integrator.
        based: (nworld, 1, 3) reports of the passes that compute accelerations.
        every: (nworld,) indices of all worlds.
    """

    solves_columns = True

    def __init__(
        self,
        model: Model,
        source: Data | Batch,
        stages: Stages,
        torques: bool,
        nthread: int,
        disabled: int = 0,
        by_formulas: bool = True,
        parameters: Any = None,
    ):
        n = 2 * Seeds.of_model(model).input.stop
        super().__init__(model, source, n, nthread, disabled)
        self.stages, self.torques, self.formulas_wanted, self.parameters = stages, torques, by_formulas, parameters
        self.qacc, self.qacc_step = np.zeros((2, self.batch.nworld, model.nv))
        self.based = np.zeros((self.batch.nworld, 1, 3))
        self.every = np.arange(self.batch.nworld)
        self._stepped, self._steps = None, (self.qacc, self.qacc)

    _asked: Any = None
    _looked_at: Any = None

    @property
    def by_formulas(self) -> bool:
        """Returns whether formulas are requested and apply to the model in its present state."""
        own = self.model.__dict__
        key = own["revision"], own["body_gyroscopic"].tobytes()  # the answer changes with these only
        if key != self._asked:
            self._asked, self._serves = key, self.formulas_wanted and serves(self.model)
        return self._serves

    def steps(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the displacements of some worlds' coordinates, up and down, (k, ncoordinates), controls in range."""
        ctrl = self.batch.arrays.rows["ctrl"]
        limits = (
            self.model.__dict__["actuator_ctrllimited"],
            self.batch.arrays.expanded.shared_or_own("actuator_ctrlrange", chosen),
        )
        # with one world they are unchanged until its controls or their limits change
        key = [a.tobytes() for a in (ctrl, *limits)] if len(ctrl) == 1 else None
        if key is None or key != self._stepped:
            self._stepped, self._steps = key, self.displacements(chosen, self.seeds.input.stop)
        return self._steps

    def passes(self, width: int, lag: bool) -> Passes:
        """Returns the passes through tiles of that width; lag: for worlds whose correction p is differenced."""
        return self.kept((width, lag, self.by_formulas), lambda: Passes(self, width, lag))

    def groups(self) -> list[tuple[bool, np.ndarray]]:
        """Groups the worlds by whether their correction p is differenced, for their present parameters."""
        model, own = self.model, self.batch.arrays.expanded
        if own.keys().isdisjoint((*FLUID, *DAMPING)):
            # the result is valid until these parameters change
            key = [model.revision, *(getattr(model, name).tobytes() for name in (*FLUID, *DAMPING))]
            if key != self._looked_at:
                self._looked_at, self._lag = key, differences_lag(model)
            return [(self._lag, self.every)]
        lags = lags_of_worlds(model, own, len(self.every))
        return [(kind, self.every[lags == kind]) for kind in (False, True) if (lags == kind).any()]

    def accelerations(self) -> np.ndarray:
        """Returns (nworld, nv) of forward dynamics, for the worlds that fit into a tile."""
        (lag, _), *_ = self.groups()

        def run(chosen: np.ndarray, width: int) -> np.ndarray:
            self.passes(width, lag).run_base(chosen)
            return chosen[~(self.based[chosen, 0, FITS] > 0.0)]

        self.narrowing(self.every, self.passes(self.width, lag).each, run)
        return self.qacc

    def rates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Computes the rates of all worlds, pass by pass; worlds that do not fit into a tile together run one by one.

        Returns:
            Rates of the next state (nworld, n, 2 nv + na), of the acceleration (nworld, n or 0, nv), distances to the
            nearest switch (nworld,), and the indices of the remaining worlds.
        """
        nworld, found = self.batch.nworld, []

        def run(wide: Passes, chosen: np.ndarray, width: int) -> np.ndarray:
            passes = wide if wide.width == width else self.passes(width, wide.lags)
            rates = passes.run(chosen)
            parts = rates.state, rates.acceleration, rates.nearest
            if rates.is_kept and len(chosen) == nworld:
                found[:] = parts
                return chosen[:0]
            found[:] = found or [np.empty((nworld, *a.shape[1:])) for a in parts]
            for total, a in zip(found, parts, strict=True):
                total[chosen] = a
            return chosen[~rates.fits]

        over = []
        for lag, todo in self.groups():
            wide = self.passes(self.width, lag)
            over.append(self.narrowing(todo, wide.each, partial(run, wide)))
        state, acceleration, nearest = found
        return state, acceleration, nearest, over[0] if len(over) == 1 else np.concatenate(over)


class Rates(NamedTuple):
    """Holds the derivatives of some worlds; valid until the next pass, except for parts that the caller may keep.

    Attributes:
        state: (k, n, 2 nv + na) of the next state; empty if formulas apply and forces are coordinates.
        acceleration: (k, n, nv) of forward dynamics; empty if formulas apply and forces are not coordinates.
        fits: (k,) whether the Hessian of implicit differentiation is available.
        nearest: (k,) distance to the nearest switch.
        known: (k,) whether formulas applied.
        is_kept: whether formulas apply to all worlds and the arrays belong to the caller.
    """

    state: np.ndarray
    acceleration: np.ndarray
    fits: np.ndarray
    nearest: np.ndarray
    known: np.ndarray
    is_kept: bool = False


class Part(NamedTuple):
    """Holds columns of one kind of coordinates.

    Attributes:
        start: the first column.
        npass: columns of each lane.
        residual, correction: the stages that difference the residual and its part p; None: the call computes them.
    """

    start: int
    npass: int
    residual: Stage | None = None
    correction: Stage | None = None


class Passes:
    """Holds the plans of tiles of one width, and the arrays between them.

    Args:
        worlds: the worlds of the passes.
        width: of tiles.
        lag: whether the integrator's correction p of these worlds is differenced.
    """

    def __init__(self, worlds: ImplicitWorlds, width: int, lag: bool):
        model, batch = worlds.model, worlds.batch
        nv, nx, seeds = model.nv, worlds.seeds.state.stop, worlds.seeds
        self.width, self.worlds, self.lags = width, worlds, lag
        self.copies = width * batch.nthread if batch.nworld == 1 else 1
        #: width of tiles in which a world has one lane
        self.narrow = 1 if batch.nworld == 1 else width
        # first and last coordinate of each part
        by_positions, by_others = zip(worlds.stages.residual, worlds.stages.correction, strict=True)
        groups: list[tuple] = [(0, nv, *by_positions), (nv, seeds.input.stop, *by_others)]
        if worlds.torques:
            groups.append((seeds.force.start, seeds.force.stop))
        if worlds.parameters is not None:
            groups.append((seeds.force.stop, seeds.force.stop + worlds.parameters.n))
        at, self.parts = [], []
        for first, last, *stages in groups:
            npass = -(-(last - first) // self.copies)
            if npass:
                self.parts.append(Part(len(at), npass, *stages))
            at += [*range(first, last), *[-1] * (npass * self.copies - (last - first))]
        self.at, self.ncol = np.array(at, float), len(at)
        #: indices of columns with a coordinate, without padding
        self.kept = np.flatnonzero(self.at >= 0.0)
        self.each = min(batch.nworld, max(LEAST, REALS // max(self.ncol * nv, 1)))
        n = self.each
        self.up, self.down = np.zeros((2, n, self.ncol))
        self.g, self.p, self.follow = np.zeros((3, n, self.ncol, nv))
        self.acceleration, self.state = np.zeros((n, self.ncol, nv)), np.zeros((n, self.ncol, nx))
        self.report, self.known = np.zeros((n * self.copies, 3)), np.zeros((n, 3))
        # formulas and solution in one pass, except with the recursion, which needs the same memory
        self.whole = worlds.by_formulas and not recurses(model) and worlds.parameters is None
        #: number of differenced columns, and those of them whose coordinates allow large displacements
        self.differenced = sum(part.npass * self.copies for part in self.parts if part.residual is not None)
        self.far = self.kept[self.at[self.kept] < 2 * nv]
        #: whether formulas read the displacements of coordinates
        self.asks = not self.whole or bool(model.na) or not acts_at_once(model) or lag
        if worlds.torques:  # dg/dtau = -1
            self.g[:, self.parts[-1].start :][:, np.arange(nv), np.arange(nv)] = -1.0
        if worlds.parameters is not None:
            self.by_parameters = slice(self.parts[-1].start, self.parts[-1].start + worlds.parameters.n)
        self._plan()

    def _plan(self) -> None:
        """Prepares the transfers of each pass."""
        worlds, model = self.worlds, self.worlds.model
        nv, total, width = model.nv, self.each * self.copies, self.width

        def rows(arrays: dict[str, np.ndarray], start: int, npass: int) -> dict[str, np.ndarray]:
            """Returns the columns of a pass as rows of tiles: (worlds * copies, npass, ...)."""
            parts = {name: a[:, start : start + npass * self.copies] for name, a in arrays.items()}
            if self.copies == 1:
                return parts
            return {name: part.reshape(self.copies, npass, -1) for name, part in parts.items()}

        at = np.broadcast_to(self.at, (self.each, self.ncol)).copy()
        found = {"qacc": worlds.qacc[:, None], "qacc_step": worlds.qacc_step[:, None], "report": worlds.based}
        self.base = worlds.plan_of(worlds.stages.accelerations, self.each, {}, found, width=self.narrow)
        given = {"qacc": worlds.qacc, "qacc_step": worlds.qacc_step}

        def differences(loop: Stage, part: Part, taken: dict[str, np.ndarray]) -> tuple[Plan, int]:
            """Returns the plan that differences the residual, or its part p, column by column."""
            brought = {"at": at[..., None], "up": self.up[..., None], "down": self.down[..., None]}
            brought, taken = (rows(a, part.start, part.npass) for a in (brought | {"follow": self.follow}, taken))
            return worlds.plan_of(loop, total, brought, taken, given, width), part.npass

        taken = {"dg": self.g, "dp": self.p, "dact": self.state[..., 2 * nv :]}
        self.rates = [differences(part.residual, part, taken) for part in self.parts if part.residual is not None]
        # rates of accelerations do not depend on p
        lag = worlds.by_formulas and self.lags and not worlds.torques
        taken, parts = {"dp": self.p}, self.parts if lag else []
        self.lag = [differences(part.correction, part, taken) for part in parts if part.correction is not None]
        self.few_up, self.few_down, self.few_p = self.up, self.down, self.p
        self.formulas = self._formulas(at) if worlds.by_formulas else None
        self._begun, self._moves = set(), None
        npass = self.ncol // self.copies
        brought = {"at": at[..., None], "dg": self.g, "dp": self.p, "follow": self.follow, "da": self.acceleration}
        taken = {"da": self.acceleration, "dq": self.state[..., :nv], "dv": self.state[..., nv : 2 * nv]}
        brought, taken = (rows(arrays, 0, npass) for arrays in (brought, taken))
        taken["report"] = each_step(self.report, npass)
        self.solution = worlds.plan_of(worlds.stages.solution, total, brought, taken, width=width), npass

    def _formulas(self, at: np.ndarray) -> tuple[Plan, int]:
        """Plans rates, or the whole derivative, by formulas; a single world runs in a tile of width 1."""
        worlds, nv = self.worlds, self.worlds.model.nv
        given = [part.start for part in self.parts if part.residual is None]
        n = given[0] if given and not self.whole else self.ncol
        state, acceleration = self.state, self.acceleration
        if self.whole and self.copies > 1:
            # leave out the columns that only fill lanes
            n = len(self.kept)
            self.few_up, self.few_down, self.few_p, state, acceleration = (
                a[:, self.kept] for a in (self.up, self.down, self.p, state, acceleration)
            )
        brought = {} if self.whole else {"at": at}  # a whole derivative has all coordinates in their order
        if self.lags:
            brought["rest_p"] = self.few_p
        if self.asks:
            brought |= {"up": self.few_up, "down": self.few_down}
        taken = {"dact": state[..., 2 * nv :], "dg": self.g, "dp": self.p}
        if self.whole:
            taken = {"dact": state[..., 2 * nv :], "dq": state[..., :nv], "dv": state[..., nv : 2 * nv]}
            if worlds.torques:
                taken = {"da": acceleration}
        taken = {name: a for name, a in taken.items() if a.size}
        names, shifts = list(taken), {"dq": 0, "dv": nv, "dact": 2 * nv}
        # shapes and offsets of the arrays that a pass writes
        self.dims = (0 if worlds.torques else n, state.shape[2]), (n if worlds.torques else 0, nv)
        self.to_state = [(names.index(name), 8 * shift) for name, shift in shifts.items() if name in taken]
        self.to_acceleration = names.index("da") if "da" in taken else -1
        brought = {name: a[:, :n] if a.ndim == 3 else a[:, :n, None] for name, a in brought.items()}
        taken = {name: a[:, :n] for name, a in taken.items()}
        taken["report"] = each_step(self.known, n)  # last, see `formulas.py`
        stages, memory = worlds.stages, worlds.batch.pair_memory
        sizes = {"rate_lag": int(self.lags), "rate_steps": int(not worlds.torques)}
        sizes["nslipmax"] = noslip_capacity(worlds.model)
        loop = stages.whole if self.whole else stages.formulas
        plan = worlds.plan_of(loop, self.each, brought, taken, width=self.narrow, memory=memory, sizes=sizes)
        self.rows = plan.addresses("record")
        return plan, n

    def run(self, chosen: np.ndarray, up: np.ndarray | None = None, down: np.ndarray | None = None) -> Rates:
        """Runs all passes of at most `each` worlds.

        Args:
            chosen: indices of the worlds.
            up, down: (k, ncoordinates) displacements of their coordinates; None: those of the worlds' `steps`.
        """
        k, worlds = len(chosen), self.worlds
        if up is None and self.asks:
            up, down = worlds.steps(chosen)
        if up is not None and down is not None:
            self._set_steps(up, down)
        known = np.zeros(k, bool)
        if self.formulas is not None:
            if self.lag:
                self._take_lag(chosen)
            worlds.plans.prepare(self.narrow)
            fresh = self._fresh(k)
            self._go(*self.formulas, chosen, worlds.every[:k], self.narrow)
            reported = self.known[:k]
            known = reported[:, KNOWN] > 0.0
            if self.whole and known.all():
                # where formulas apply, the Hessian is available
                return Rates(*fresh, known, reported[:, NEAREST].copy(), known, True)
        worlds.plans.prepare(self.width)
        if up is None:
            self._set_steps(*worlds.steps(chosen))
        left = np.flatnonzero(~known)
        if len(left) or worlds.parameters is not None:
            based = left if worlds.parameters is None else worlds.every[:k]
            self.run_base(chosen[based])
            self._predict(chosen, left, based[worlds.based[chosen[based], 0, HELD] > 0.0])
            self._differentiate(chosen, left, worlds.every[:k])
        if not self.whole:
            left = worlds.every[:k]
        if len(left):
            self._solve(chosen, left)
        report = self.report[: k * self.copies : self.copies]
        if self.formulas is not None:
            # only formulas detect a contact that begins or ends at a displaced pose
            nearest = np.minimum(report[:, NEAREST], self.known[:k, NEAREST])
            report = np.stack([report[:, FITS], nearest], 1)
        picked = slice(None) if self.copies == 1 else self.kept
        state, acceleration = self.state[:k, picked], self.acceleration[:k, picked]
        if self.whole:
            report = np.where(known[:, None], self.known[:k, :KNOWN], report)
            if worlds.torques:
                fresh[1][left] = acceleration[left]
            else:
                fresh[0][left] = state[left]
            state, acceleration = fresh
        fits = report[:, FITS] > 0.0
        if self.formulas is not None:
            # displaced poses exceeded the tile's shared buffer; Coulomb's law is too stiff to be differenced, and the
            # no-slip solver's forces are no function of the acceleration
            model = worlds.model
            whole = model.opt_contact_model == COULOMB or model.opt_noslip_iterations > 0
            fits &= self.known[:k, KNOWN] >= (1.0 if whole else 0.0)
        return Rates(state, acceleration, fits, report[:, NEAREST], known)

    def _solve(self, chosen: np.ndarray, rows: np.ndarray) -> None:
        """Converts the rates of the residual in some rows to those of the acceleration and of the next state."""
        plan, npass = self.solution
        self._go(plan, npass, *self._lanes(chosen, rows))

    def _differentiate(self, chosen: np.ndarray, left: np.ndarray, rows: np.ndarray, part: float = 1.0) -> None:
        """Computes rates of the residual by differences.

        Args:
            chosen: (k,) indices of the worlds.
            left: rows in which all rates are differenced.
            rows: rows in which those by parameters are.
            part: of the displacements of parameters.
        """
        if len(left):
            self._difference(self.rates, chosen, left)
        if self.worlds.parameters is not None:
            self._take_parameters(self.worlds.parameters, chosen, rows, part)

    def _predict(self, chosen: np.ndarray, left: np.ndarray, rows: np.ndarray) -> None:
        """Sets `follow`, at which the acceleration is displaced, to da by displacements that are SHORT times as long.

        At fixed acceleration a displacement moves J a - aref of a row by up to K EPS or B EPS.  A stiff row, such as
        one of Coulomb's law or with a large `impratio`, would start to slip or turn its slip within this distance.  If
        the acceleration follows by this prediction, the row stays where it is.

        Args:
            chosen, left: as for `_differentiate`.
            rows: rows of worlds with constraints.
        """
        self.follow[: len(chosen)] = 0.0
        if not len(rows):
            return
        left, up, down = np.intersect1d(left, rows), self.up[rows], self.down[rows]
        self.up[rows], self.down[rows] = SHORT * up, SHORT * down
        self._differentiate(chosen, left, rows, SHORT)
        self._solve(chosen, rows)
        self.up[rows], self.down[rows] = up, down
        n = self.differenced
        self.follow[left, :n] = self.acceleration[left, :n]
        if self.worlds.parameters is not None:
            self.follow[rows, self.by_parameters] = self.acceleration[rows, self.by_parameters]

    def run_base(self, chosen: np.ndarray) -> None:
        """Computes accelerations of some worlds, at which the following passes compute their rates."""
        self.worlds.plans.prepare(self.narrow)
        self._go(self.base, 1, chosen, chosen, self.narrow)
        self.worlds.plans.prepare(self.width)

    def _difference(self, plans: list[tuple[Plan, int]], chosen: np.ndarray, rows: np.ndarray) -> None:
        """Computes rates of some worlds by differences, to the sixth order for analytic residuals.

        Args:
            plans: of the passes.
            chosen: (k,) indices of the worlds.
            rows: rows of those that are differenced.
        """
        worlds = self.worlds
        order, place = self._lanes(chosen, rows)

        def go() -> None:
            for plan, npass in plans:
                self._go(plan, npass, order, place)

        # evaluated in each call, because parameters may be edited in between
        far = rows[are_analytic(worlds.model, worlds.disabled, worlds.batch.arrays.expanded, chosen[rows])]
        if not len(far):
            go()
            return
        act = self.state[..., 2 * worlds.model.nv :]
        rates = [a[:, : self.differenced] for a in (self.g, self.p, act)]
        sums, moved = [np.zeros((len(far), *a.shape[1:])) for a in rates], np.ix_(far, self.far)
        for k, weight in enumerate(WEIGHTS):
            self.up[moved] = self.down[moved] = (k + 1) * FAR
            go()
            for a, total in zip(rates, sums, strict=True):
                total += weight * a[far]
        self.up[moved] = self.down[moved] = EPS
        for a, total in zip(rates, sums, strict=True):
            a[far] = total

    def _lanes(self, chosen: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the worlds of all lanes, and their places, of some rows."""
        return np.repeat(chosen[rows], self.copies), (rows[:, None] * self.copies + np.arange(self.copies)).ravel()

    def _take_lag(self, chosen: np.ndarray) -> None:
        """Computes the rates of p without formulas by differences, into the array that formulas read."""
        self.run_base(chosen)
        self._difference(self.lag, chosen, self.worlds.every[: len(chosen)])
        if self.few_p is not self.p:
            self.few_p[...] = self.p[:, self.kept]

    def _set_steps(self, up: np.ndarray, down: np.ndarray) -> None:
        """Writes the displacements of the first coordinates to the arrays that kernels read."""
        if up is self._moves:
            return
        k, n = up.shape
        moves = self.at[self.kept].astype(int)
        moves, kept = moves[moves < n], self.kept[moves < n]
        for a, compact, given in ((self.up, self.few_up, up), (self.down, self.few_down, down)):
            a[:k, kept] = given[:, moves]
            if compact is not a:
                compact[:k] = a[:k, self.kept]
        self._moves = up if self.worlds.batch.nworld == 1 else None

    def _fresh(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns states and accelerations of k worlds for formulas to write; new arrays if these write all of them."""
        if not self.whole:
            return self.state, self.acceleration
        state, acceleration = np.empty((k, *self.dims[0])), np.empty((k, *self.dims[1]))
        first = address(state)
        for row, shift in self.to_state:
            self.rows[row] = first + shift
        if self.to_acceleration >= 0:
            self.rows[self.to_acceleration] = address(acceleration)
        return state, acceleration

    def _take_parameters(self, parameters: Parameters, chosen: np.ndarray, rows: np.ndarray, part: float) -> None:
        """Computes the columns of the model's fields; arguments as for `_differentiate`."""
        nv, columns = self.worlds.model.nv, self.by_parameters
        follow = self.follow[rows, columns]
        g, p, act = parameters.rates(self.worlds, chosen[rows], self.width, follow, part)
        self.g[rows, columns], self.p[rows, columns], self.state[rows, columns, 2 * nv :] = g, p, act
        self.follow[rows, columns] = follow

    def _go(self, plan: Plan, nstep: int, order: np.ndarray, place: np.ndarray, width: int = 0) -> None:
        # with one world the order of a plan never changes
        if self.worlds.batch.nworld > 1 or id(plan) not in self._begun:
            plan.begin(nstep, order, place)
            self._begun.add(id(plan))
        self.worlds.go(plan, -(-len(order) // (width or self.width)))
