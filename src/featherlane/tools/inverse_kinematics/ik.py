"""Solves inverse kinematics in the worlds of a batch: arguments, pieces of the iteration, restarts, the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from featherlane.engine.model.arguments import bounded, instance, whole_argument
from featherlane.engine.model.assignment import described, flag, reals
from featherlane.engine.model.enums import EQ_TENDON
from featherlane.engine.model.joint import is_angle, is_ball, is_scalar
from featherlane.engine.simulation.batch.arrays import chosen_worlds
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.query.query import Query
from featherlane.errors import ArgumentTypeError, ModelError
from featherlane.tools.inverse_kinematics.dofs import Dofs, chosen_dofs, equalities_of
from featherlane.tools.inverse_kinematics.levenberg_marquardt import REACHED, RUNNING, solve_ik
from featherlane.tools.inverse_kinematics.result import IkSolution, IkStatus
from featherlane.tools.inverse_kinematics.targets import IkTarget, Targets, rows_of_worlds

PIECE = 8  # iterations, after which the worlds that continue are placed in tiles again
TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
# weight of constraints if not all targets can be met: errors are about 1e-6 times those of the targets, in float32 1e-4
CONSTRAINT = {np.dtype(np.float64): 1e3, np.dtype(np.float32): 1e2}
STATE = ("damping", "growth", "niter", "status")  # of the iteration, besides qpos


def ik(
    batch: Batch,
    targets: IkTarget | Sequence[IkTarget],
    *,
    ids: ArrayLike | None = None,
    dofs: Iterable[str | int] | None = None,
    limits: bool = True,
    posture: ArrayLike | None = None,
    posture_weight: float = 0.0,
    restarts: int = 0,
    seed: int = 0,
    tolerance: ArrayLike | None = None,
    max_iterations: int = 100,
) -> IkSolution:
    """Computes positions of joints that bring objects to their targets, in each world of a batch.

    The method is Levenberg-Marquardt (damped least squares) with the limits of joints.  It starts at the present
    positions of the worlds and finds a local minimum.  The batch does not change: to apply the result, assign its
    `qpos`.  Active equality constraints that depend on a moving DoF are treated as targets, with priority over the
    other targets.  Contacts are ignored.

    Args:
        batch: the worlds; fields of the model that differ by world (`expand`) apply.
        targets: one target, or several that all apply to each world, with arrays for the n worlds of the call.
        ids: the worlds; None for all.
        dofs: names of joints and numbers of DoFs that move; None for all DoFs that move an object of the targets, and
            DoFs that active equality constraints couple with them.
        limits: whether joints stay within their limits (`jnt_range`).
        posture: (nq,) or (n, nq) preferred positions [m, rad, quaternions]; None for the present ones.
        posture_weight: weight of the distance to the posture [1/m, 1/rad], >= 0.  If the weight is not 0, each start
            has two more phases: the residuals of targets and posture are minimized together, then those of the targets
            again.
        restarts: number of random starts for worlds that did not reach their targets.  The best result counts.
        seed: of the random starts: uniform within the limits, angles without limits within pi of the present ones.
            Free joints and slides without limits begin at the present positions.
        tolerance: largest error of a target that is reached, and of an equality constraint [m, rad], one number or two,
            > 0; None for 1e-6, in float32 1e-4.
        max_iterations: largest number of iterations of a start, or of one of its phases.

    Returns:
        `IkSolution` of the n worlds: qpos (n, nq), errors (n, ntarget) [m], [rad], iterations and an `IkStatus` (n,),
        errors of equality constraints (n, neq, 2).

    Raises:
        ModelError: no targets, a target without a goal, invalid shapes, NaN or infinite values, a quaternion or an axis
            of length 0, no DoFs that move a target, numbers out of range.
        UnknownNameError: an unknown object or joint.
        TypeError: no `Batch`, or no `IkTarget`.
        RuntimeError: another thread is in a call of this batch.

    Source: Madsen, Nielsen, Tingleff, Methods for non-linear least squares problems, 2004, sec. 3.2; Sugihara,
        Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method, 2011 (residual and weights).
    """
    instance("batch", batch, Batch, "a Batch", ArgumentTypeError)
    chosen = chosen_worlds(ids, batch.nworld)
    given = Targets(batch.model, len(chosen), batch.dtype, targets)
    tolerances, limited = _tolerances(batch, tolerance), flag("limits", limits)
    listed = None if dofs is None else chosen_dofs(batch.model, dofs)
    preferred = _posture(batch, chosen, posture)
    weight = bounded("posture_weight", posture_weight, 0.0)
    number, most = whole_argument("restarts", restarts, 0), whole_argument("max_iterations", max_iterations, 1)
    first_seed = whole_argument("seed", seed, 0)
    found: dict[str, np.ndarray] = {}
    for active, at in _groups(batch, chosen):
        moving = Dofs(batch.model, given.body, active, listed)
        problem = Problem(batch, chosen[at], given.of(at), moving, limited, tolerances)
        best = problem.best(batch.qpos[chosen[at]], preferred[at], weight, most, number, first_seed)
        for name, rows in best.items():
            found.setdefault(name, np.zeros((len(chosen), *rows.shape[1:]), rows.dtype))[at] = rows
    return IkSolution(**found)


def _groups(batch: Batch, chosen: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the active equality constraints of groups of worlds, and the indices of the worlds of each group."""
    enabled = equalities_of(batch.model)
    if not enabled.size or not len(chosen):
        return [(enabled, np.arange(len(chosen)))]
    patterns, group = np.unique(batch.eq_active[chosen][:, enabled] != 0, axis=0, return_inverse=True)
    return [(enabled[on], np.flatnonzero(group.ravel() == k)) for k, on in enumerate(patterns)]


# ---- arguments -------------------------------------------------------------------------------------------------------
def _tolerances(batch: Batch, tolerance: ArrayLike | None) -> np.ndarray:
    """Returns the tolerances of positions and orientations (2,) [m, rad]."""
    allowed = "are numbers > 0 [m, rad], one or two"
    given = np.asarray(TOLERANCE[batch.dtype]) if tolerance is None else reals("tolerance", tolerance, allowed)
    if given.shape not in ((), (2,)) or not (given > 0.0).all() or not np.isfinite(given).all():
        raise ModelError(f"tolerance: got {described(tolerance)}, allowed {allowed}")
    return np.broadcast_to(given, 2)


def _posture(batch: Batch, chosen: np.ndarray, posture: ArrayLike | None) -> np.ndarray:
    """Returns preferred positions of the worlds of the call, (n, nq)."""
    if posture is None:
        return batch.qpos[chosen]
    return rows_of_worlds("posture", posture, len(chosen), batch.model.nq).astype(batch.dtype)


# ---- iteration -------------------------------------------------------------------------------------------------------
class Iteration(Query):
    """Holds the rows of worlds for a piece of the iteration; the answer is `state`.

    Args:
        sizes, tables: of the record.
        given: rows (n, 1, ...) that the kernels read, by field.
        state: rows (n, 1, ...) that they continue, by field.
    """

    loop = solve_ik
    reads = ("mocap_pos", "mocap_quat")
    number = 1

    def __init__(self, sizes, tables, given: dict[str, np.ndarray], state: dict[str, np.ndarray]):
        self.sizes, self.tables, self.taken = sizes, tables, state
        self.brought = given | {name: state[name] for name in ("qpos", *STATE)}

    def answer(self) -> Mapping[str, np.ndarray]:
        return self.taken


class Problem:
    """Holds the targets of worlds whose active equality constraints are the same.

    Args:
        batch: the worlds.
        chosen: (n,) worlds.
        targets: of these worlds.
        dofs: those that move.
        limits: as for `ik`, checked.
        tolerance: (2,) [m, rad].
    """

    def __init__(
        self, batch: Batch, chosen: np.ndarray, targets: Targets, dofs: Dofs, limits: bool, tolerance: np.ndarray
    ):
        model, n, ndof = batch.model, dofs.equality.size, dofs.dof.size
        self.batch, self.chosen, self.limits, self.targets, self.dofs = batch, chosen, limits, targets, dofs
        self.tables = targets.tables | dofs.tables
        self.sizes = {"npos": model.nq, "nvel": model.nv, "ntarget": targets.number, "limited": int(limits)}
        self.sizes |= {"ndof": ndof, "ntriangle": ndof * (ndof + 1) // 2, "njoint": dofs.joint.size}
        self.sizes["nframe"] = self.tables["frame"].size
        self.sizes |= {"nequality": n, "nrow": targets.number + n}
        self.sizes["has_tendons"] = int((model.eq_type[dofs.equality] == EQ_TENDON).any())
        self.rows = targets.rows | {"tolerance": self._same(tolerance), "weight": self._weights(1.0)}

    def _weights(self, constraint: float) -> np.ndarray:
        """Returns the weights (n, 1, nrow, 2) of targets and constraints."""
        weight = self.targets.rows["weight"]
        shape = (*weight.shape[:2], self.dofs.equality.size, 2)
        return np.concatenate([weight, np.full(shape, constraint, weight.dtype)], axis=2)

    def _same(self, values) -> np.ndarray:
        """Returns equal rows (n, 1, k) of k values for each world."""
        return np.tile(np.asarray(values, self.batch.dtype), (len(self.chosen), 1, 1))

    def best(
        self, first: np.ndarray, posture: np.ndarray, weight: float, most: int, restarts: int, seed: int
    ) -> dict[str, np.ndarray]:
        """Returns the fields of `IkSolution` for the best of several starts; `first` are the present positions."""
        model, chosen, generator = self.batch.model, self.chosen, np.random.default_rng(seed)
        best = self.solve(np.arange(len(chosen)), first, posture, weight, most)
        restart = np.zeros(len(chosen), int)
        for k in range(1, restarts + 1):
            # all worlds have the same sample, so a world's result does not depend on the other worlds of the call
            sample = generator.uniform(size=model.njnt), generator.standard_normal((model.njnt, 4))
            again = np.flatnonzero(best["status"][:, 0, 0] != REACHED)
            if not again.size:
                break
            start = self.random_start(again, first[again], *sample)
            found = self.solve(again, start, posture, weight, most)
            better = (found["status"][:, 0, 0] == REACHED) | (found["cost"][:, 0, 0] < best["cost"][again, 0, 0])
            niter = best["niter"][again] + found["niter"]
            for name, rows in best.items():
                rows[again[better]] = found[name][better]
            best["niter"][again], restart[again[better]] = niter, k
        return self._fields(best) | {"restart": restart}

    def _fields(self, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the fields of `IkSolution` but `restart`, from rows of results."""
        error, n = rows["error"][:, 0], self.targets.number
        equality = np.zeros((len(error), self.batch.model.neq, 2), error.dtype)
        equality[:, self.dofs.equality] = error[:, n:]
        niter, status = (rows[name][:, 0, 0].astype(int) for name in ("niter", "status"))
        place, turn = error[:, :n, 0], error[:, :n, 1]
        found = {"qpos": rows["qpos"][:, 0], "position_error": place, "orientation_error": turn}
        return found | {"niter": niter, "status": status, "equality_error": equality}

    def solve(
        self, at: np.ndarray, start: np.ndarray, posture: np.ndarray, weight: float, most: int
    ) -> dict[str, np.ndarray]:
        """Returns the rows (k, 1, ...) of results of worlds.

        Args:
            at: (k,) indices of worlds of the call.
            start: (k, nq) first positions.
            posture: (n, nq) of all worlds of the call.
            weight: of the posture.
            most: iterations.
        """
        given = {name: rows[at] for name, rows in self.rows.items()}
        given["posture"] = np.ascontiguousarray(posture[at])[:, None]
        found: dict[str, np.ndarray] = {}
        niter: Any = 0
        for stiffness in (0.0, weight, 0.0) if weight else (0.0,):
            given["stiffness"] = self._same([stiffness])[at]
            found = self._iterate(at, start, given, most)
            start, niter = found["qpos"][:, 0], niter + found["niter"]
        found["niter"] = niter
        self._favour_constraints(at, found, given, most)
        return found

    def _favour_constraints(self, at: np.ndarray, found: dict[str, np.ndarray], given, most: int) -> None:
        """Continues with a large weight of the constraints in the worlds whose minimum violates them."""
        status, error = found["status"][:, 0, 0], found["error"][:, 0, self.targets.number :]
        violated = (error > given["tolerance"]).any(axis=(1, 2))
        some = np.flatnonzero(violated & ((status == IkStatus.STATIONARY) | (status == IkStatus.ITERATION_LIMIT)))
        if some.size:
            given = {name: rows[some] for name, rows in given.items()}
            given["weight"] = self._weights(CONSTRAINT[self.batch.dtype])[at[some]]
            again = self._iterate(at[some], found["qpos"][some, 0], given, most)
            again["niter"] += found["niter"][some]
            for name, rows in found.items():
                rows[some] = again[name]

    def _iterate(self, at: np.ndarray, start: np.ndarray, given, most: int) -> dict[str, np.ndarray]:
        """Returns the rows of results of worlds after at most `most` iterations."""
        k, dtype, n = len(at), self.batch.dtype, self.sizes["nrow"]
        state = {name: np.zeros((k, 1, 1), dtype) for name in (*STATE, "cost")}
        state |= {"qpos": np.ascontiguousarray(start, dtype)[:, None].copy(), "error": np.zeros((k, 1, n, 2), dtype)}
        state["status"][...] = RUNNING
        running, done = np.arange(k), 0
        while running.size and done < most:
            piece = min(PIECE, most - done)
            some = [{name: a[running] for name, a in rows.items()} for rows in (given, state)]
            query = Iteration(self.sizes | {"most": piece}, self.tables, *some)
            for name, rows in self.batch.query(query, self.chosen[at[running]]).items():
                state[name][running] = rows
            running, done = np.flatnonzero(state["status"][:, 0, 0] == RUNNING), done + piece
        state["status"][running] = IkStatus.ITERATION_LIMIT
        return state

    def random_start(self, at: np.ndarray, first: np.ndarray, uniform: np.ndarray, normal: np.ndarray) -> np.ndarray:
        """Returns random positions of the joints that move, (k, nq).

        Args:
            at: (k,) indices of worlds of the call.
            first: (k, nq) present positions, of which the other joints keep theirs.
            uniform: (njnt,) from 0 to 1.
            normal: (njnt, 4) standard normal.
        """
        model, start = self.batch.model, first.copy()
        ranges = self.batch.arrays.expanded.own("jnt_range", self.chosen[at])
        # along an axis, norm sums in NumPy's own loop; of one vector in BLAS, whose rounding depends on the processor
        turns = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        for j in self.dofs.joint:
            a, kind = int(model.jnt_qposadr[j]), model.jnt_type[j]
            if is_scalar(kind) and model.jnt_limited[j] and self.limits:
                low, high = ranges[:, j].T
                start[:, a] = low + uniform[j] * (high - low)
            elif is_angle(kind):
                start[:, a] = first[:, a] + np.pi * (2.0 * uniform[j] - 1.0)
            elif is_ball(kind):
                start[:, a : a + 4] = turns[j]
        return start
