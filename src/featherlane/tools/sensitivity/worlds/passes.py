"""Passes through tiles that differentiate steps by the implicit function theorem, and the arrays between them.

    base       forward dynamics: a and a*
    formulas   dg and dp by each coordinate at fixed a (formulas.py), or the whole derivative; the contact model lcp
               has this pass only (lcp_columns.py)
    residual   the same by differences (differences.py), for worlds without formulas
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

from typing import NamedTuple

import numpy as np

from featherlane.engine.dynamics.inertia.articulated import recurses
from featherlane.engine.lanes import Stage
from featherlane.engine.model.enums import COULOMB
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.tools.sensitivity.rates.coordinates import EPS
from featherlane.tools.sensitivity.rates.records import FITS, HELD, KNOWN, NEAREST
from featherlane.tools.sensitivity.systems.served import are_analytic
from featherlane.tools.sensitivity.worlds.displaced_worlds import each_step

FAR = 1e-3  # e [m, rad, m/s, rad/s]
WEIGHTS = 1.5, -0.6, 0.1
SHORT = 1e-3  # part of a displacement that predicts the derivative of the acceleration
REALS = 1 << 21  # values of a pass in each array, so that results stay in or near the cache
LEAST = 64  # worlds of a pass, so that all threads have tiles


class Rates(NamedTuple):
    """Holds the derivatives of some worlds; valid until the next pass.

    Attributes:
        state: (k, n, 2 nv + na) of the next state; empty if formulas apply and forces are coordinates.
        acceleration: (k, n, nv) of forward dynamics; empty if formulas apply and forces are not coordinates.
        nearest: (k,) distance to the nearest switch.
        fits: (k,) whether the Hessian of implicit differentiation is available.
        known: (k,) whether formulas applied.
    """

    state: np.ndarray
    acceleration: np.ndarray
    nearest: np.ndarray
    fits: np.ndarray
    known: np.ndarray


class Passes:
    """Holds the plans of tiles of one width, and the arrays between them.

    A column is the derivative by one coordinate.  A single world has a copy in each lane, and consecutive coordinates
    are columns of different lanes; the last lanes may be unused (-1).

    Args:
        worlds: `ImplicitWorlds` of the passes.
        width: of tiles.
        lags: whether the integrator's correction p of these worlds is differenced.

    Attributes:
        size: (n, ncol) displacement of each column's coordinate.
    """

    def __init__(self, worlds, width: int, lags: bool):
        model, batch, seeds, parameters = worlds.model, worlds.batch, worlds.seeds, worlds.parameters
        nv, nx = model.nv, seeds.state.stop
        self.width, self.worlds, self.lags = width, worlds, lags
        self.copies = width * batch.nthread if batch.nworld == 1 else 1
        #: width of tiles in which a world has one lane
        self.narrow = 1 if batch.nworld == 1 else width
        inputs = self._in_lanes(np.arange(seeds.input.stop))
        others = np.arange(seeds.force.start, seeds.force.stop) if worlds.torques else np.zeros(0)
        if parameters is not None:
            others = seeds.force.stop + np.arange(parameters.n)
        #: coordinate of each column; those of the first columns can be differenced
        self.at = np.concatenate([inputs, self._in_lanes(others)])
        self.differenced, self.ncol = len(inputs), len(self.at)
        #: columns with a coordinate, in the order of the coordinates; those by forces or parameters
        self.kept = np.argsort(self.at, kind="stable")[np.count_nonzero(self.at < 0.0) :]
        self.others = self.kept[seeds.input.stop :]
        #: columns whose coordinates allow large displacements
        self.far = self.kept[: 2 * nv]
        self.each = n = min(batch.nworld, max(LEAST, REALS // max(self.ncol * nv, 1)))
        self.size = np.full((n, self.ncol), EPS)
        self.g, self.p, self.follow = np.zeros((3, n, self.ncol, nv))
        self.acceleration, self.state = np.zeros((n, self.ncol, nv)), np.zeros((n, self.ncol, nx))
        self.report, self.known = np.zeros((n * self.copies, 3)), np.zeros((n, 3))
        # formulas and solution in one pass, except with the recursion, which needs the same memory
        self.only = worlds.stages.residual is None  # there are no other passes
        self.whole = self.only or (worlds.by_formulas and not recurses(model) and parameters is None)
        if worlds.torques:  # dg/dtau = -1
            self.g[:, self.others, np.arange(nv)] = -1.0
        self._plan()

    def _in_lanes(self, coordinates: np.ndarray) -> np.ndarray:
        """Returns the coordinates of columns, lane after lane, whose first columns have consecutive coordinates."""
        npass = -(-len(coordinates) // self.copies)
        columns = np.full(npass * self.copies, -1.0)
        columns[: len(coordinates)] = coordinates
        return columns.reshape(npass, self.copies).T.ravel()

    def _plan(self) -> None:
        """Prepares the transfers of each pass."""
        worlds, nv, total = self.worlds, self.worlds.model.nv, self.each * self.copies
        stages, at = worlds.stages, np.broadcast_to(self.at, (self.each, self.ncol)).copy()
        self._begun = set()

        def columns(loop: Stage, n: int, brought: dict, taken: dict, load=None, report=None) -> tuple[Plan, int]:
            """Returns the plan of the first n columns, as rows of tiles (worlds * copies, npass, ...)."""
            npass = n // self.copies
            brought, taken = (
                {
                    name: a[:, :n] if self.copies == 1 else a[0, :n].reshape(self.copies, npass, -1)
                    for name, a in x.items()
                }
                for x in (brought, taken)
            )
            if report is not None:
                taken["report"] = each_step(report, npass)
            return worlds.plan_of(loop, total, brought, taken, load or {}, self.width), npass

        self.formulas, self.correction = self._formulas(at) if worlds.by_formulas else None, None
        if self.only:
            return
        found = {"qacc": worlds.qacc[:, None], "qacc_step": worlds.qacc_step[:, None], "report": worlds.based}
        self.base = worlds.plan_of(stages.accelerations, self.each, {}, found, width=self.narrow), 1
        given = {"at": at[..., None], "displacement": self.size[..., None], "follow": self.follow}
        based = {"qacc": worlds.qacc, "qacc_step": worlds.qacc_step}
        n, dact = self.differenced, self.state[..., 2 * nv :]
        self.residual = columns(stages.residual, n, given, {"dg": self.g, "dp": self.p, "dact": dact}, based)
        # rates of accelerations do not depend on p
        if worlds.by_formulas and self.lags and not worlds.torques:
            self.correction = columns(stages.correction, n, given, {"dp": self.p}, based)
        given = {"at": at[..., None], "dg": self.g, "dp": self.p, "follow": self.follow, "da": self.acceleration}
        taken = {"da": self.acceleration, "dq": self.state[..., :nv], "dv": self.state[..., nv : 2 * nv]}
        self.solution = columns(stages.solution, self.ncol, given, taken, report=self.report)

    def _formulas(self, at: np.ndarray) -> tuple[Plan, int]:
        """Plans rates, or the whole derivative, by formulas; a single world runs in a tile of width 1."""
        worlds, nv, (each, _, nx) = self.worlds, self.worlds.model.nv, self.state.shape
        # a whole derivative has all coordinates in their order, and its arrays; the other one has the first columns
        n, brought, loop, self.rest = self.differenced, {"at": at[..., None]}, worlds.stages.formulas, self.p
        taken = {"dg": self.g, "dp": self.p, "dact": self.state[..., 2 * nv :]}
        if self.whole:
            n, brought, loop, self.rest = len(self.kept), {}, worlds.stages.whole, np.zeros((each, len(self.kept), nv))
            of_state, of_acceleration = (0, n) if worlds.torques else (n, 0)
            state = self.found_state = np.zeros((each, of_state, nx))
            self.found_acceleration = np.zeros((each, of_acceleration, nv))
            taken = {"dq": state[..., :nv], "dv": state[..., nv : 2 * nv], "dact": state[..., 2 * nv :]}
            taken["da"] = self.found_acceleration
            if self.only:
                brought = {"at": at[:, self.kept, None], "displacement": self.size[:, self.kept, None]}
        if self.lags:
            brought["rest_p"] = self.rest
        brought, taken = ({name: a[:, :n] for name, a in x.items() if a.size} for x in (brought, taken))
        taken["report"] = each_step(self.known, n)  # last, see `formulas.py`
        sizes, memory = worlds.sizes(self.narrow, self.lags, n), worlds.batch.pair_memory
        return worlds.plan_of(loop, each, brought, taken, width=self.narrow, memory=memory, sizes=sizes), n

    def run(self, chosen: np.ndarray) -> Rates:
        """Runs all passes of at most `each` worlds; chosen: their indices."""
        k, worlds = len(chosen), self.worlds
        every, known = worlds.every[:k], np.zeros(k, bool)
        if self.formulas is not None:
            if self.correction is not None:
                # the rates of p have no formulas
                self.run_base(chosen)
                self._difference(self.correction, chosen, every)
                if self.rest is not self.p:
                    self.rest[:k] = self.p[:k, self.kept]
            worlds.plans.prepare(self.narrow)
            self._go(*self.formulas, chosen, every, self.narrow)
            known = self.known[:k, KNOWN] > 0.0
            if self.only or (self.whole and known.all()):
                # where formulas apply, the Hessian is available
                return Rates(self.found_state[:k], self.found_acceleration[:k], self.known[:k, NEAREST], known, known)
        worlds.plans.prepare(self.width)
        left = np.flatnonzero(~known)
        if len(left) or worlds.parameters is not None:
            based = left if worlds.parameters is None else every
            self.run_base(chosen[based])
            self._predict(chosen, left, based[worlds.based[chosen[based], 0, HELD] > 0.0])
            self._differentiate(chosen, left, every)
        if not self.whole:
            left = every
        if len(left):
            self._go(*self.solution, *self._lanes(chosen, left))
        report = self.report[: k * self.copies : self.copies]
        if self.formulas is not None:
            # only formulas detect a contact that begins or ends at a displaced pose
            nearest = np.minimum(report[:, NEAREST], self.known[:k, NEAREST])
            report = np.stack([report[:, FITS], nearest], 1)
        if self.whole:
            report = np.where(known[:, None], self.known[:k, :KNOWN], report)
            for found, a in ((self.found_state, self.state), (self.found_acceleration, self.acceleration)):
                if found.size:
                    found[left] = a[left][:, self.kept]
            state, acceleration = self.found_state[:k], self.found_acceleration[:k]
        else:
            columns = slice(None) if self.copies == 1 else self.kept
            state, acceleration = self.state[:k, columns], self.acceleration[:k, columns]
        fits = report[:, FITS] > 0.0
        if self.formulas is not None:
            # displaced poses exceeded the tile's shared buffer; Coulomb's law is too stiff to be differenced, and the
            # no-slip solver's forces are no function of the acceleration
            model = worlds.model
            whole = model.opt_contact_model == COULOMB or model.opt_noslip_iterations > 0
            fits &= self.known[:k, KNOWN] >= (1.0 if whole else 0.0)
        return Rates(state, acceleration, report[:, NEAREST], fits, known)

    def _differentiate(self, chosen: np.ndarray, left: np.ndarray, rows: np.ndarray, part: float = 1.0) -> None:
        """Computes rates of the residual by differences.

        Args:
            chosen: (k,) indices of the worlds.
            left: rows in which all rates are differenced.
            rows: rows in which those by parameters are.
            part: of the displacements of parameters.
        """
        if len(left):
            self._difference(self.residual, chosen, left)
        parameters, nv = self.worlds.parameters, self.worlds.model.nv
        if parameters is not None:
            row, column = place = np.ix_(rows, self.others)
            follow = self.follow[place]
            g, p, act = parameters.rates(self.worlds, chosen[rows], self.width, follow, part)
            self.g[place], self.p[place], self.state[row, column, 2 * nv :] = g, p, act
            self.follow[place] = follow

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
        left, size, n = np.intersect1d(left, rows), self.size[rows], self.differenced
        self.size[rows] = SHORT * size
        self._differentiate(chosen, left, rows, SHORT)
        self._go(*self.solution, *self._lanes(chosen, rows))
        self.size[rows] = size
        self.follow[left, :n] = self.acceleration[left, :n]
        if self.worlds.parameters is not None:
            place = np.ix_(rows, self.others)
            self.follow[place] = self.acceleration[place]

    def run_base(self, chosen: np.ndarray) -> None:
        """Computes accelerations of some worlds, at which the following passes compute their rates."""
        self.worlds.plans.prepare(self.narrow)
        self._go(*self.base, chosen, chosen, self.narrow)
        self.worlds.plans.prepare(self.width)

    def _difference(self, plan: tuple[Plan, int], chosen: np.ndarray, rows: np.ndarray) -> None:
        """Computes rates of some worlds by differences, to the sixth order for analytic residuals.

        Args:
            plan: that of the pass, and its number of columns.
            chosen: (k,) indices of the worlds.
            rows: rows of those that are differenced.
        """
        worlds, lanes = self.worlds, self._lanes(chosen, rows)
        # evaluated in each call, because parameters may be edited in between
        far = rows[are_analytic(worlds.model, worlds.disabled, worlds.batch.arrays.expanded, chosen[rows])]
        if not len(far):
            self._go(*plan, *lanes)
            return
        act = self.state[..., 2 * worlds.model.nv :]
        rates = [a[:, : self.differenced] for a in (self.g, self.p, act)]
        sums, moved = [np.zeros((len(far), *a.shape[1:])) for a in rates], np.ix_(far, self.far)
        for k, weight in enumerate(WEIGHTS):
            self.size[moved] = (k + 1) * FAR
            self._go(*plan, *lanes)
            for a, total in zip(rates, sums, strict=True):
                total += weight * a[far]
        self.size[moved] = EPS
        for a, total in zip(rates, sums, strict=True):
            a[far] = total

    def _lanes(self, chosen: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the worlds of all lanes, and their places, of some rows."""
        return np.repeat(chosen[rows], self.copies), (rows[:, None] * self.copies + np.arange(self.copies)).ravel()

    def _go(self, plan: Plan, nstep: int, order: np.ndarray, place: np.ndarray, width: int = 0) -> None:
        # with one world the order of a plan never changes
        if self.worlds.batch.nworld > 1 or id(plan) not in self._begun:
            plan.begin(nstep, order, place)
            self._begun.add(id(plan))
        self.worlds.go(plan, -(-len(order) // (width or self.width)))
