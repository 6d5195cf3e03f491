"""Defines `DataFields`: access to the memory of one world: live fields, contacts, constraint rows, solver reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.model.assignment import assign, is_mixed
from featherlane.engine.model.enums import LCP, LcpSolver
from featherlane.engine.model.model import Model
from featherlane.engine.model.names import NamedAccess
from featherlane.engine.simulation.tile.call_lock import Turn, hold
from featherlane.engine.simulation.tile.fields import DATA, STATUS, WANTED
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.simulation.world.contacts import Contacts, takes_contacts
from featherlane.engine.simulation.world.recordings import WHOLE, check_bindable
from featherlane.engine.simulation.world.rows import COLUMNS, contact_list, efc_column, row_counts
from featherlane.engine.simulation.world.user_contacts import given_fields
from featherlane.engine.solver.island import islands
from featherlane.errors import MissingMethodError, ModelError, UnknownAttributeError, near

REPORTED = ("report", "count")
# integers are indices and addresses that compiled stages use without a check
SETTABLE = {f.name for f in DATA.fields if f.kind == "real" and not f.is_number and f.role not in REPORTED} | {"time"}


class DataFields(NamedAccess):
    """Gives access to the memory of one world by name."""

    layout = DATA
    model: Model
    workspace: Workspace  # internal
    _turns: tuple[Turn]
    _islands: bool

    def _switch(self, model: Model) -> None:
        """Switches to another model of equal sizes."""
        raise MissingMethodError("_switch")

    def __getattr__(self, name: str) -> Any:
        workspace = self.__dict__.get("workspace")
        if workspace is not None and name in DATA:
            f = DATA[name]
            if name == "sensordata":
                check_bindable(self.model, "data", name)  # raises an error for an unsupported sensor
            if f.kind == "size":
                return workspace.record.size(name)
            if name in WANTED["want_islands"]:
                self._find_islands()
            if not f.is_number:
                return self._view(name)
            number = workspace.arrays[name].item()
            return int(number) if name in WHOLE else number
        if workspace is not None and name.startswith("efc_") and name.removeprefix("efc_") in COLUMNS:
            if self.model.opt.contact_model == "lcp":
                raise ModelError(
                    f"{name}: the contact model 'lcp' has no such rows; allowed are 'convex' and 'coulomb'. "
                    f"`query.contact_force`, `query.equality_force` and `qfrc_constraint` work with all contact models"
                )
            column = efc_column(workspace, name.removeprefix("efc_"))
            column.flags.writeable = False  # a copy
            return column
        raise UnknownAttributeError(f"data has no attribute {name!r}{near(name, dir(type(self)) + list(DATA.index))}")

    def _find_islands(self) -> None:
        """Computes the islands of the present rows at the first access; from then on each pass computes them."""
        if not self._islands:
            self.__dict__["_islands"] = True
            self.workspace.record.set_size("want_islands", 1)
            hold(self._turns, self.workspace.bound(islands))

    def _view(self, name: str) -> np.ndarray:
        """Returns a field's array, created at the first access and the same from then on."""
        view = self.workspace.view(name)
        view.flags.writeable = name in SETTABLE
        return self.__dict__.setdefault(name, view)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "record_solver":
            object.__setattr__(self, name, value)  # a property
            return
        if name == "model":
            self._switch(value)
            return
        if name not in DATA and name not in self.__dir__():
            raise UnknownAttributeError(f"data has no field {name!r} to set{near(name, DATA.index)}")
        if name not in SETTABLE:
            raise UnknownAttributeError(f"data.{name} is computed and cannot be set")
        if name == "time":
            assign(name, self.workspace.arrays[name], value, (0, 0))
        else:
            assign(name, getattr(self, name), value, mixed=is_mixed(name))

    def __dir__(self):
        public = (name for name in DATA.index if "." not in name)  # the others are scratch memory of one pass
        return sorted({*super().__dir__(), *public, *(f"efc_{name}" for name in COLUMNS)})

    def sensor_values(self, sensor: int) -> np.ndarray:
        """Returns `sensordata`, to read one sensor.

        Raises:
            UnsupportedFeatureError: the sensor is not computed.
        """
        from featherlane.engine.model.features import refuse_sensors

        refuse_sensors(self.model, [sensor])
        return self.workspace.view("sensordata")

    # ---- contacts, rows, reports -------------------------------------------------------------------------------------
    @property
    def status(self) -> dict[str, int]:
        """Counts of `contacts_full`, `rows_full`, `non_finite`, `not_converged`, `bad_control`, `singular_inertia`.

        Each counts the steps and forward passes since the last reset in which the event occurred.  `contacts_full` and
        `rows_full`: contacts or rows exceeded their capacity.  `non_finite`: a state or acceleration value was NaN or
        beyond 1e10.  `not_converged`: the solver did not converge.  `bad_control`: a control was NaN or beyond 1e10,
        and all controls acted as 0.  `singular_inertia`: the inertia matrix was singular to rounding.
        """
        return {name: int(count) for name, count in zip(STATUS, self.warning, strict=True)}

    @property
    def contact(self) -> np.recarray:
        """Returns the contacts, (ncon,), in MuJoCo's order with the names of its `mjContact`; a read-only copy.

        `data.contact[i].dist` [m], `.pos` (3,) [m], `.frame` (9,): normal from geom 1 to geom 2 and two tangents as
        rows, `.geom1`, `.geom2`, `.geom` (2,), `.dim`, `.friction` (5,), `.includemargin`, `.solref`, `.solimp`,
        `.adhesion`; `.exclude` is 1 for a contact in the gap that cannot pull; `.efc_address` is its first row, or -1
        without one.  Without an index the same names are arrays over all contacts: `data.contact.dist` (ncon,).
        """
        return contact_list(self.workspace)

    @takes_contacts
    def give_contacts(self, contacts: Contacts, *, replace: bool = False) -> None:
        """Gives the world n user-defined contacts, in addition to detected contacts or in place of them.

        Given contacts act unchanged in every step, until other contacts are given, they are cleared, or the data is
        reset.  They come first in `data.contact`.  Disabling the flag `contact` or `constraint` disables them, too.
        They are stored in the fields `given_*`, which may also be written directly, without checks
        (`data.given_pos[i] += ...`).

            data.give_contacts(dist, pos, frame, geom=geom)  # or data.give_contacts(fl.Contacts(...))

        Args:
            contacts: a `featherlane.Contacts`; or its fields as keyword arguments.
            replace: whether contact detection is skipped while these contacts act, even if n = 0.

        Raises:
            ModelError: more contacts than the capacity of `Data(model, given_contacts=n)`, or an invalid shape or
                value; nothing is changed then.

        Note:
            A contact between bodies that are welded to each other is listed and has no rows, as in MuJoCo.
        """
        model = self.model
        values, adhesive = (lambda name: getattr(model, name)[None]), model.flg_adhesion
        rows = given_fields(model, self.ngiven, 1, values, adhesive, replace, None, contacts)
        for name, value in rows.items():
            self.workspace.arrays[name][: value.size, 0] = value.reshape(-1)

    def clear_given_contacts(self) -> None:
        """Removes given contacts and detects contacts again."""
        for name in ("given_present", "given_replace"):
            self.workspace.arrays[name][...] = 0

    @property
    def record_solver(self) -> bool:
        """Whether each iteration of the solver is recorded for `solver_history`; set it to True or False."""
        return bool(self.workspace.record.size("want_history"))

    @record_solver.setter
    def record_solver(self, value: bool) -> None:
        self.workspace.record.set_size("want_history", int(bool(value)))

    @property
    def solver_history(self) -> np.recarray:
        """Returns the iterates of the last solve, (solver_niter + 1,), beginning with the initial point; read-only.

        With the contact model convex, `data.solver_history[i].cost` and `.gradient` are the scaled cost and the norm of
        its scaled gradient after i iterations.  `.improvement` is the decrease of the cost in iteration i (of PGS: of
        the dual cost in a sweep), `.step` the step length along the search direction (of PGS: the momentum).  Costs are
        those of MuJoCo's primal problem for every solver, scaled by 1 / trace M as `solver_residual` is.

        With lcp, `.residual` is the complementarity residual after i iterations of `pgs` or `apgd`, as in
        `solver_residual`.  `apgd` ends with its best iterate, which need not be the last one.

        Without an index the same names are arrays.

        Raises:
            ModelError: nothing was recorded: set `data.record_solver = True` before the solve; or the LCP's solver is
                `dantzig` or registered: these report their last residual only.

        Note:
            MuJoCo has `improvement` and `gradient` in `mjData.solver`, from the first iteration on and without cost.
        """
        if not self.record_solver:
            raise ModelError("solver_history: no solve was recorded; set data.record_solver = True before the step")
        names = ("cost", "gradient", "improvement", "step")
        if self.model.opt_contact_model == LCP:
            solver = LcpSolver(self.model.opt_lcp_solver)
            if solver not in (LcpSolver.PGS, LcpSolver.APGD):
                name = solver.name.lower() if solver != LcpSolver.REGISTERED else self.model.opt.lcp_solver
                raise ModelError(
                    f"solver_history: got lcp_solver {name!r}, allowed are 'pgs' and 'apgd'; "
                    "the others have only a final residual (`solver_residual`) and a number of pivots or steps "
                    "(`solver_niter`)"
                )
            names = ("residual",)
        n = min(self.solver_niter + 1, self.nrecord)
        columns = [getattr(self, f"stat_{name}")[:n] for name in names]
        history = np.rec.fromarrays(columns, dtype=[(name, float) for name in names])
        history.flags.writeable = False
        return history

    def contact_slots(self) -> np.ndarray:
        """Returns the slot of each contact, (ncon,)."""
        return np.flatnonzero(self.con_present[: self.ncon_slot])

    @property
    def ne(self) -> int:
        """Number of rows of equality constraints."""
        return row_counts(self.workspace)[1]

    @property
    def nf(self) -> int:
        """Number of rows of friction loss."""
        return row_counts(self.workspace)[2]

    @property
    def nl(self) -> int:
        """Number of rows of limits."""
        return row_counts(self.workspace)[3]

    @property
    def nefc(self) -> int:
        """Number of rows: the length of the arrays `efc_*`, computed at each access (`efc_J` is dense, (nefc, nv))."""
        return row_counts(self.workspace)[0]
