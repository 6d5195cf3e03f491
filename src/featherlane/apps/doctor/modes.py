"""Analyses springs, dampers and servos as one linear system, and the stability of its modes under the time step.

Near a start at rest M x'' = -D x' - K x, with K = sum of k J^T J and D = sum of d J^T J over elements with direction J:
springs and dampers of joints (J: one DoF) and of tendons (their Jacobian), actuators (their moment).  Gravity, contacts
and muscles are left out, and forces are not clamped by limits.  The step, with Di and Ki the implicit parts of D and
K,

    (M + h Di + h^2 Ki) (v' - v) = -h (K x + D v + h Ki v),    x' = x + h v'

has Di = dampers of joints under Euler, all dampers under `implicit` and `implicitfast`, and Ki = K under `discrete`;
RK4 applies its polynomial to the continuous system.

Rows G of active equalities add the force G^T w, with their stiffness k, damping b and regularization R:

    G a + R w = -b G v - k G x

`discrete` and the LCP contact model solve these rows together with the implicit parts.  The other integrators solve
them with M, and then apply all forces to the implicit parts: the rows do not include the implicit damping.
Source: MuJoCo, chapter Computation, "Numerical integration" and "Constraint model".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import mujoco
import numpy as np

from featherlane.apps.doctor.examined_model import ExaminedModel, Start
from featherlane.enums import (
    BIAS_AFFINE,
    BIAS_SO3,
    GAIN_AFFINE,
    GAIN_DCMOTOR,
    INPUT_POS,
    INPUT_VEL,
    SLIDE,
    TRN_JOINTINPARENT,
    ContactModel,
    Disable,
    Integrator,
    Solver,
)
from featherlane.tree import sparsity

MOST_DOFS = 400  # largest system whose modes are computed: its matrix has twice as many rows
MOST_STARTS = 8
TINY = 1e-12  # m/(s N): least CFM of a row; a hard row has none
PIVOT = 1e-6  # smallest root of a pivot of M, scaled to a unit diagonal


class Term(NamedTuple):
    """A spring, damper or servo along one direction of joint space.

    Attributes:
        kind: `joint`, `tendon` or `actuator`.
        J: (nv,) direction.
        k: stiffness [N/m, N m/rad].
        d: damping [N s/m, N m s/rad].
        by_joint: whether the damper belongs to a joint: implicit under Euler.
    """

    kind: str
    id: int
    J: np.ndarray
    k: float
    d: float
    by_joint: bool = False


class Loops(NamedTuple):
    """Rows of active equalities: G a + w / D = -damping G v - stiffness G x.

    Attributes:
        G: (n, nv) Jacobian.
        D: (n,) inverse regularization [kg, kg m^2].
        stiffness: (n,) [1/s^2].
        damping: (n,) [1/s].
        in_metric: whether the rows are solved together with the implicit springs and dampers.
    """

    G: np.ndarray
    D: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    in_metric: bool


@dataclass
class Mode:
    """One eigenvalue of the step.

    Attributes:
        factor: magnitude of the factor per step.
        root: corresponding root of the continuous system [1/s], as far as it can be determined.
        term: term with the largest contribution.
        share: its part of the contributions.
    """

    factor: float
    root: complex
    term: Term
    share: float


@dataclass
class System:
    """The linear system of DoFs that are coupled by terms.

    Attributes:
        h: time step [s].
        M: (n, n) inertia.
        terms: springs, dampers and servos, with J over these n DoFs.
        dampers: which dampers are implicit: `none`, `joint`, `all`.
        springs: which springs are implicit: `none`, `joint`, `all`.
        pattern: (n, n) possible nonzeros of M; implicit dampers have no others, except under `discrete`.
        loops: rows of active equalities, with G over these n DoFs.
        loaded: whether these rows have their full impedance instead of that of the start.
    """

    h: float
    M: np.ndarray
    terms: list[Term]
    integrator: int
    dampers: str
    springs: str
    pattern: np.ndarray
    loops: Loops
    loaded: bool

    def sum(self, coefficient: str, which: str = "all") -> np.ndarray:
        """Computes the sum of coefficient J^T J."""
        chosen = [term for term in self.terms if which == "all" or (which == "joint" and term.by_joint)]
        J = np.array([term.J for term in chosen]).reshape(-1, len(self.M))
        return (J.T * [getattr(term, coefficient) for term in chosen]) @ J if chosen else np.zeros_like(self.M)

    def _acceleration(self, inertia: np.ndarray, K: np.ndarray, D: np.ndarray) -> np.ndarray:
        """Returns the matrix (n, 2 n) from (x, v) to the acceleration under -K x - D v and the rows of equalities."""
        G, weighted = self.loops.G, self.loops.G.T * self.loops.D
        force = np.hstack([K + weighted * self.loops.stiffness @ G, D + weighted * self.loops.damping @ G])
        return -np.linalg.solve(inertia + weighted @ G, force)

    @cached_property
    def continuous(self) -> np.ndarray:
        """Returns A (2 n, 2 n) of (x, v)' = A (x, v)."""
        n = len(self.M)
        motion = self._acceleration(self.M, self.sum("k"), self.sum("d"))
        return np.vstack([np.hstack([np.zeros((n, n)), np.eye(n)]), motion])

    @cached_property
    def step(self) -> np.ndarray:
        """Returns the matrix (2 n, 2 n) from (x, v) to the next (x, v)."""
        h, n = self.h, len(self.M)
        one = np.eye(2 * n)
        if self.integrator == Integrator.RK4:
            z = h * self.continuous
            return one + z @ (one + z @ (one + z @ (one + z / 4) / 3) / 2)
        K, D, Ki = self.sum("k"), self.sum("d"), self.sum("k", self.springs)
        metric = self.M + h * np.where(self.pattern, self.sum("d", self.dampers), 0.0) + h * h * Ki
        if self.loops.in_metric:
            gain = self._acceleration(metric, K, D + h * Ki)
        else:
            gain = np.linalg.solve(metric, self.M @ self._acceleration(self.M, K, D + h * Ki))
        velocity = np.hstack([np.zeros((n, n)), np.eye(n)]) + h * gain
        return np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + h * velocity, velocity])

    @cached_property
    def factors(self) -> np.ndarray:
        """Computes (2 n,) magnitudes of the factors of a step, without eigenvectors, which take four times as long."""
        return np.abs(np.linalg.eigvals(self.step))

    @cached_property
    def roots(self) -> np.ndarray:
        """Computes (2 n,) roots of the continuous system [1/s]."""
        return np.linalg.eigvals(self.continuous).astype(complex)

    def discrete_modes(self) -> Iterator[Mode]:
        """Yields the modes of the step."""
        values, vectors = np.linalg.eig(self.step)
        with np.errstate(divide="ignore"):
            roots = np.log(values.astype(complex)) / self.h
        yield from self._modes(np.abs(values), roots, vectors)

    def continuous_modes(self) -> Iterator[Mode]:
        """Yields the modes of the continuous system; their factors are those of exact steps."""
        roots, vectors = np.linalg.eig(self.continuous)
        yield from self._modes(np.exp(self.h * np.real(roots)), roots.astype(complex), vectors)

    def _modes(self, factors: np.ndarray, roots: np.ndarray, vectors: np.ndarray) -> Iterator[Mode]:
        n = len(self.M)
        J = np.array([term.J for term in self.terms])
        k, d = (np.abs([getattr(term, name) for term in self.terms]) for name in "kd")
        x, v = np.abs(J @ vectors[:n]), np.abs(J @ vectors[n:])
        pulls = k[:, None] * x * x + d[:, None] * x * v
        for i, (factor, root) in enumerate(zip(factors, roots, strict=True)):
            most = int(pulls[:, i].argmax())
            yield Mode(float(factor), root, self.terms[most], float(pulls[most, i] / (pulls[:, i].sum() or 1.0)))


def systems(examined: ExaminedModel, loaded: bool = False) -> list[tuple[Start, System]]:
    """Returns the coupled systems of each start, except those that are too large or have singular inertia.

    loaded: whether to include closed loops a second time, with the rows' full impedance.
    """
    if not examined.systems:
        examined.systems += _systems(examined)
    return [(start, system) for start, system in examined.systems if loaded or not system.loaded]


def _systems(examined: ExaminedModel) -> Iterator[tuple[Start, System]]:
    m = examined.model
    dampers, springs = implicit_parts(examined)
    full = sparsity(m.dof_parentid)
    for start in examined.starts[:MOST_STARTS]:
        found, all_loops = terms(examined, start), loops_of(examined, start)
        for dofs in _coupled(examined, found, start.rows["J"]):
            own = [t._replace(J=t.J[dofs]) for t in found if t.J[dofs].any()]
            M = start.M[np.ix_(dofs, dofs)]
            rows = np.flatnonzero(start.rows["J"][:, dofs].any(axis=1))
            if len(dofs) <= MOST_DOFS and _is_regular(M):
                fills = m.opt_integrator == Integrator.DISCRETE
                pattern = np.ones(M.shape, bool) if fills else full[np.ix_(dofs, dofs)]
                for i, loops in enumerate(all_loops if len(rows) else all_loops[:1]):
                    D, stiffness, damping = (of[rows] for of in (loops.D, loops.stiffness, loops.damping))
                    closed = Loops(loops.G[np.ix_(rows, dofs)], D, stiffness, damping, loops.in_metric)
                    yield start, System(examined.h, M, own, m.opt_integrator, dampers, springs, pattern, closed, i > 0)


def _is_regular(M: np.ndarray) -> bool:
    """Returns whether the inertia is positive definite, with a margin of half of the digits."""
    if not (np.isfinite(M).all() and (M.diagonal() > 0).all()):
        return False
    D = np.sqrt(M.diagonal())
    try:
        return bool(np.linalg.cholesky(M / D[:, None] / D).diagonal().min() > PIVOT)
    except np.linalg.LinAlgError:
        return False


def implicit_parts(examined: ExaminedModel) -> tuple[str, str]:
    """Returns which dampers and which springs a step treats implicitly: `none`, `joint` or `all`."""
    m = examined.model
    if m.opt_integrator == Integrator.DISCRETE:
        return ("joint", "joint") if m.opt_solver == Solver.PGS else ("all", "all")
    if m.opt_integrator in (Integrator.IMPLICIT, Integrator.IMPLICITFAST):
        return "all", "none"
    if m.opt_integrator == Integrator.RK4 or m.opt_disableflags & (Disable.EULERDAMP | Disable.DAMPER):
        return "none", "none"
    return "joint", "none"


def loops_of(examined: ExaminedModel, start: Start) -> list[Loops]:
    """Returns the rows of active equalities in the form that a step uses: at a start, and at their full impedance.

    With the impedance d, R = (1 - d) / d A; a load increases d.  Under `discrete` the rows act at the end of the step:
    with k = K d and s = h B + h^2 k, the stiffness and damping are k and B + h k over 1 + s, and the impedance is
    d (1 + s) / (1 + d s).  An LCP row G v' + cfm w = -erp / h G x has R = cfm / h.
    """
    m, h, rows = examined.model, examined.h, start.rows
    K, B, d = rows["KBIP"].T[:3]
    if examined.uses_erp:
        pairs = ((m.eq_erp[rows["id"]], m.opt.erp), (m.eq_cfm[rows["id"]], m.opt.cfm))
        erp, cfm = (np.where(own < 0, default, own) for own, default in pairs)
        return [Loops(rows["J"], h / np.maximum(cfm, TINY), erp / h**2, np.full(len(d), 1 / h), True)]
    at_end = m.opt_integrator == Integrator.DISCRETE
    full = np.clip(m.eq_solimp[rows["id"], 1], mujoco.mjMINIMP, mujoco.mjMAXIMP)
    found, A = [], 0.0
    for imp in (d, full) if (np.abs(full - d) > PIVOT).any() else (d,):
        stiffness, damping, closing = K * imp, B, imp
        if at_end:
            damping = B + h * stiffness
            s = h * damping
            stiffness, damping = stiffness / (1 + s), damping / (1 + s)
            closing = np.minimum(imp * (1 + s) / (1 + imp * s), mujoco.mjMAXIMP)
        A = A if found else closing / (1 - closing) / rows["D"]
        D = closing / (1 - closing) / A
        if m.opt_contact_model == ContactModel.LCP:  # softness by solref
            total = np.maximum(h * stiffness + B, TINY)
            found.append(Loops(rows["J"], h * D * total, stiffness / (h * total), np.full(len(d), 1 / h), True))
        else:
            found.append(Loops(rows["J"], D, stiffness, damping, at_end))
    return found


def terms(examined: ExaminedModel, start: Start) -> list[Term]:
    """Returns the springs, dampers and servos at a start, without disabled ones."""
    m, off = examined.model, Disable(examined.model.opt_disableflags)
    found: list[Term] = []
    spring, damper = Disable.SPRING not in off, Disable.DAMPER not in off
    found += _joints(examined, spring, damper)
    dense = np.zeros((m.ntendon, m.nv))
    for t in range(m.ntendon):
        at = slice(m.ten_J_rowadr[t], m.ten_J_rowadr[t] + m.ten_J_rownnz[t])
        dense[t, m.ten_J_colind[at]] = start.data["ten_J"][at]
        found.append(Term("tendon", t, dense[t], spring * m.tendon_stiffness[t], damper * m.tendon_damping[t]))
    if Disable.ACTUATION not in off:
        for i in range(m.nactuator):
            if not is_off(examined, i):
                k, d = servo_rates(examined, start, i)
                found += [Term("actuator", i, row, k, d) for row in actuator_moments(examined, start, i)]
    return [term for term in found if (term.k or term.d) and term.J.any()]


def _joints(examined: ExaminedModel, spring: bool, damper: bool) -> Iterator[Term]:
    """Yields springs and dampers of joints; actuators can add to the dampers."""
    m, unit = examined.model, np.eye(examined.model.nv)
    added = np.zeros(m.njnt)
    for i in np.flatnonzero(m.actuator_trntype <= TRN_JOINTINPARENT):
        added[m.actuator_trnid[i, 0]] += m.actuator_damping[i] * m.actuator_gear[m.actuator_outadr[i], 0] ** 2
    for j in range(m.njnt):
        for i in np.flatnonzero(m.dof_jntid == j):
            d = m.dof_damping[i] + (added[j] if m.jnt_type[j] >= SLIDE else 0.0)
            yield Term("joint", j, unit[i], spring * m.jnt_stiffness[j], damper * d, True)


def actuator_moments(examined: ExaminedModel, start: Start, i: int) -> Iterator[np.ndarray]:
    """Yields the moment (nv,) of each output of an actuator."""
    m = examined.model
    for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
        at, row = slice(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]), np.zeros(m.nv)
        row[m.moment_colind[at]] = start.data["actuator_moment"][at]
        yield row


def is_off(examined: ExaminedModel, i: int) -> bool:
    """Returns whether the actuator's group is disabled."""
    group = int(examined.model.actuator_group[i])
    return 0 <= group < 31 and bool(examined.model.opt.disableactuator >> group & 1)


def servo_rates(examined: ExaminedModel, start: Start, i: int) -> tuple[float, float]:
    """Computes (stiffness, damping) of an actuator: minus the derivatives of its force by length and by velocity."""
    m = examined.model
    gain, bias, prm = int(m.actuator_gaintype[i]), int(m.actuator_biastype[i]), m.actuator_gainprm[i]
    k = d = 0.0
    if bias in (BIAS_AFFINE, BIAS_SO3):
        k, d = -float(m.actuator_biasprm[i, 1]), -float(m.actuator_biasprm[i, 2])
    if gain == GAIN_AFFINE and m.actuator_ctrlnum[i]:
        driven = max(drives(examined, start, i), key=lambda u: -u * (prm[2] or prm[1]))
        k, d = k - float(prm[1]) * driven, d - float(prm[2]) * driven
    if gain == GAIN_DCMOTOR:
        if m.actuator_ctrlspec[i] & (INPUT_POS | INPUT_VEL):
            k, d = k + float(prm[4]), d + float(prm[6])
        elif prm[0] > 0:
            d += float(prm[1] ** 2 / prm[0])
    return k, d


def drives(examined: ExaminedModel, start: Start, i: int) -> tuple[float, ...]:
    """Returns the possible multipliers of an actuator's gain: control or activation at the start, and range limits."""
    m, u = examined.model, int(examined.model.actuator_ctrladr[i])
    if m.actuator_actnum[i]:
        own = float(start.data["act"][m.actuator_actadr[i] + m.actuator_actnum[i] - 1])
        return (own, *m.actuator_actrange[i]) if m.actuator_actlimited[i] else (own,)
    if not m.actuator_ctrlnum[i]:
        return (0.0,)
    own = float(start.data["ctrl"][u])
    return (own, *map(float, m.actuator_ctrlrange[u])) if m.actuator_ctrllimited[u] else (own,)


def _coupled(examined: ExaminedModel, found: list[Term], loops: np.ndarray) -> list[np.ndarray]:
    """Returns the DoFs of trees with terms, grouping trees that a term or a row of an equality couples."""
    m = examined.model
    group = np.arange(m.ntree)
    pulled = np.zeros(m.ntree, bool)
    for J in (*(term.J for term in found), *loops):
        trees = np.unique(m.dof_treeid[np.flatnonzero(J)])
        group[np.isin(group, group[trees])] = group[trees].min(initial=m.ntree)
    for term in found:
        pulled[m.dof_treeid[np.flatnonzero(term.J)]] = True
    return [np.flatnonzero(group[m.dof_treeid] == g) for g in np.unique(group[pulled])]
