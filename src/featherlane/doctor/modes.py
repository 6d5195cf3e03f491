"""Springs, dampers and servos as one linear system, and what a time step makes of its modes.

About a start at rest M x'' = -D x' - K x, with K = sum of k J^T J and D = sum of d J^T J over what pulls along J:
springs and dampers of joints (J: one dof) and of tendons (their Jacobian), actuators (their moment).  Gravity, contacts
and muscles are left out; forces count as if no limit clamped them.  The step, with Di and Ki the implicit parts of D
and K,

    (M + h Di + h^2 Ki) (v' - v) = -h (K x + D v + h Ki v),    x' = x + h v'

has Di = dampers of joints under Euler, all dampers under `implicit` and `implicitfast`, and Ki = K under `discrete`;
RK4 applies its polynomial to the continuous system.
Source: MuJoCo, chapter Computation, "Numerical integration".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from featherlane.doctor.patient import Patient, Start
from featherlane.model.enums import (
    BIAS_AFFINE,
    BIAS_SO3,
    GAIN_AFFINE,
    GAIN_DCMOTOR,
    IMPLICIT,
    IMPLICITFAST,
    INPUT_POS,
    INPUT_VEL,
    RK4,
    TRN_JOINTINPARENT,
    Disable,
)
from featherlane.model.integrator import has_metric
from featherlane.model.joint import DOFS, is_scalar
from featherlane.model.solver import takes_couplings
from featherlane.tree import sparsity

MOST_DOFS = 400  # of a system whose modes are sought: its matrix has twice as many rows
MOST_STARTS = 8
PIVOT = 1e-6  # least root of a pivot of M, scaled to a unit diagonal


class Term(NamedTuple):
    """What pulls along one direction of joint space.

    Attributes:
        kind: `joint`, `tendon` or `actuator`.
        id: its number.
        J: (nv,) direction.
        k: stiffness [N/m, N m/rad].
        d: damping [N s/m, N m s/rad].
        by_joint: the damper is of a joint: implicit under Euler.
    """

    kind: str
    id: int
    J: np.ndarray
    k: float
    d: float
    by_joint: bool = False


@dataclass
class Mode:
    """One root of the step.

    Attributes:
        factor: what a step multiplies it by, in size.
        root: of the continuous system [1/s], the one that a step means, as well as can be told.
        term: what pulls most in it.
        share: its part of the pull.
    """

    factor: float
    root: complex
    term: Term
    share: float


@dataclass
class System:
    """The linear system of dofs that terms couple.

    Attributes:
        h: time step [s].
        M: (n, n) inertia.
        terms: what pulls, with J over these n dofs.
        integrator: which step is taken.
        dampers: whose dampers are implicit: `none`, `joint`, `all`.
        springs: whose springs are: `none`, `joint`, `all`.
        pattern: (n, n) entries that M may have: implicit dampers have no others, but under `discrete`.
    """

    h: float
    M: np.ndarray
    terms: list[Term]
    integrator: int
    dampers: str
    springs: str
    pattern: np.ndarray

    def sum(self, coefficient: str, which: str = "all") -> np.ndarray:
        """Sum of coefficient J^T J."""
        result = np.zeros_like(self.M)
        for term in self.terms:
            if which == "all" or (which == "joint" and term.by_joint):
                result += getattr(term, coefficient) * np.outer(term.J, term.J)
        return result

    @cached_property
    def continuous(self) -> np.ndarray:
        """(2 n, 2 n) of (x, v)' = A (x, v)."""
        n = len(self.M)
        pull = np.linalg.solve(self.M, np.hstack([self.sum("k"), self.sum("d")]))
        return np.block([[np.zeros((n, n)), np.eye(n)], [-pull]])

    @cached_property
    def step(self) -> np.ndarray:
        """(2 n, 2 n) of (x, v) to the next."""
        h, n = self.h, len(self.M)
        one = np.eye(2 * n)
        if self.integrator == RK4:
            z = h * self.continuous
            return one + z @ (one + z @ (one + z @ (one + z / 4) / 3) / 2)
        Ki = self.sum("k", self.springs)
        Di = self.sum("d", self.dampers)
        metric = self.M + h * np.where(self.pattern, Di, 0.0) + h * h * Ki
        gain = np.linalg.solve(metric, h * np.hstack([self.sum("k"), self.sum("d") + h * Ki]))
        velocity = np.hstack([np.zeros((n, n)), np.eye(n)]) - gain
        return np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + h * velocity, velocity])

    @cached_property
    def factors(self) -> np.ndarray:
        """(2 n,) what a step multiplies each mode by, in size; without the modes, which take four times as long."""
        return np.abs(np.linalg.eigvals(self.step))

    @cached_property
    def roots(self) -> np.ndarray:
        """(2 n,) roots of the continuous system [1/s]."""
        return np.linalg.eigvals(self.continuous).astype(complex)

    def discrete_modes(self) -> Iterator[Mode]:
        """Modes of the step."""
        values, vectors = np.linalg.eig(self.step)
        with np.errstate(divide="ignore"):
            roots = np.log(values.astype(complex)) / self.h
        yield from self._modes(np.abs(values), roots, vectors)

    def continuous_modes(self) -> Iterator[Mode]:
        """Modes of the continuous system; their factors are those of exact steps."""
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


def systems(patient: Patient) -> list[tuple[Start, System]]:
    """The coupled systems of each start; one whose inertia is singular, or that is too large, is left out."""
    if not patient.systems:
        patient.systems += _systems(patient)
    return patient.systems


def _systems(patient: Patient) -> Iterator[tuple[Start, System]]:
    m = patient.model
    dampers, springs = implicit_parts(patient)
    full = sparsity(m.dof_parentid)
    for start in patient.starts[:MOST_STARTS]:
        found = terms(patient, start)
        for dofs in _coupled(patient, found):
            own = [t._replace(J=t.J[dofs]) for t in found if t.J[dofs].any()]
            M = start.M[np.ix_(dofs, dofs)]
            if len(dofs) <= MOST_DOFS and _is_regular(M):
                pattern = np.ones(M.shape, bool) if has_metric(m) else full[np.ix_(dofs, dofs)]
                yield start, System(patient.h, M, own, m.opt_integrator, dampers, springs, pattern)


def _is_regular(M: np.ndarray) -> bool:
    """Is the inertia positive definite, with half of its digits to spare?"""
    if not (np.isfinite(M).all() and (M.diagonal() > 0).all()):
        return False
    D = np.sqrt(M.diagonal())
    try:
        return bool(np.linalg.cholesky(M / D[:, None] / D).diagonal().min() > PIVOT)
    except np.linalg.LinAlgError:
        return False


def implicit_parts(patient: Patient) -> tuple[str, str]:
    """Whose dampers, and whose springs, a step takes at its end: `none`, `joint` or `all`."""
    m = patient.model
    if has_metric(m):
        return ("joint", "joint") if not takes_couplings(m) else ("all", "all")
    if m.opt_integrator in (IMPLICIT, IMPLICITFAST):
        return "all", "none"
    if m.opt_integrator == RK4 or m.opt_disableflags & (Disable.EULERDAMP | Disable.DAMPER):
        return "none", "none"
    return "joint", "none"


def terms(patient: Patient, start: Start) -> list[Term]:
    """What pulls at a start, disabled parts left out."""
    m, off = patient.model, Disable(patient.model.opt_disableflags)
    found: list[Term] = []
    spring, damper = Disable.SPRING not in off, Disable.DAMPER not in off
    found += _joints(patient, spring, damper)
    dense = np.zeros((m.ntendon, m.nv))
    for t in range(m.ntendon):
        at = slice(m.ten_J_rowadr[t], m.ten_J_rowadr[t] + m.ten_J_rownnz[t])
        dense[t, m.ten_J_colind[at]] = start.data["ten_J"][at]
        found.append(Term("tendon", t, dense[t], spring * m.tendon_stiffness[t], damper * m.tendon_damping[t]))
    if Disable.ACTUATION not in off:
        for i in range(m.nactuator):
            if not is_off(patient, i):
                k, d = servo_rates(patient, start, i)
                found += [Term("actuator", i, row, k, d) for row in moments(patient, start, i)]
    return [term for term in found if (term.k or term.d) and term.J.any()]


def _joints(patient: Patient, spring: bool, damper: bool) -> Iterator[Term]:
    """Springs and dampers of joints, with what actuators add to dampers."""
    m, unit = patient.model, np.eye(patient.model.nv)
    added = np.zeros(m.njnt)
    for i in np.flatnonzero(m.actuator_trntype <= TRN_JOINTINPARENT):
        added[m.actuator_trnid[i, 0]] += m.actuator_damping[i] * m.actuator_gear[m.actuator_outadr[i], 0] ** 2
    for j in range(m.njnt):
        for i in range(m.jnt_dofadr[j], m.jnt_dofadr[j] + DOFS[m.jnt_type[j]]):
            d = m.dof_damping[i] + (added[j] if is_scalar(m.jnt_type[j]) else 0.0)
            yield Term("joint", j, unit[i], spring * m.jnt_stiffness[j], damper * d, True)


def moments(patient: Patient, start: Start, i: int) -> Iterator[np.ndarray]:
    """(nv,) moment of each output of an actuator."""
    m = patient.model
    for o in range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i]):
        at, row = slice(m.moment_rowadr[o], m.moment_rowadr[o] + m.moment_rownnz[o]), np.zeros(m.nv)
        row[m.moment_colind[at]] = start.data["actuator_moment"][at]
        yield row


def is_off(patient: Patient, i: int) -> bool:
    """Is the actuator's group switched off?"""
    group = int(patient.model.actuator_group[i])
    return 0 <= group < 31 and bool(patient.model.opt.disableactuator >> group & 1)


def servo_rates(patient: Patient, start: Start, i: int) -> tuple[float, float]:
    """(stiffness, damping) of an actuator along its length: what its force loses by length, and by velocity."""
    m = patient.model
    gain, bias, prm = int(m.actuator_gaintype[i]), int(m.actuator_biastype[i]), m.actuator_gainprm[i]
    k = d = 0.0
    if bias in (BIAS_AFFINE, BIAS_SO3):
        k, d = -float(m.actuator_biasprm[i, 1]), -float(m.actuator_biasprm[i, 2])
    if gain == GAIN_AFFINE and m.actuator_ctrlnum[i]:
        driven = max(drives(patient, start, i), key=lambda u: -u * (prm[2] or prm[1]))
        k, d = k - float(prm[1]) * driven, d - float(prm[2]) * driven
    if gain == GAIN_DCMOTOR:
        if m.actuator_ctrlspec[i] & (INPUT_POS | INPUT_VEL):
            k, d = k + float(prm[4]), d + float(prm[6])
        elif prm[0] > 0:
            d += float(prm[1] ** 2 / prm[0])
    return k, d


def drives(patient: Patient, start: Start, i: int) -> tuple[float, ...]:
    """What an actuator's gain may be multiplied by: control or activation at the start, and the ends of its range."""
    m, u = patient.model, int(patient.model.actuator_ctrladr[i])
    if m.actuator_actnum[i]:
        own = float(start.data["act"][m.actuator_actadr[i] + m.actuator_actnum[i] - 1])
        return (own, *m.actuator_actrange[i]) if m.actuator_actlimited[i] else (own,)
    if not m.actuator_ctrlnum[i]:
        return (0.0,)
    own = float(start.data["ctrl"][u])
    return (own, *map(float, m.actuator_ctrlrange[u])) if m.actuator_ctrllimited[u] else (own,)


def _coupled(patient: Patient, found: list[Term]) -> list[np.ndarray]:
    """Dofs of trees that terms pull at, those of trees that one term joins together."""
    m = patient.model
    group = np.arange(m.ntree)
    pulled = np.zeros(m.ntree, bool)
    for term in found:
        trees = np.unique(m.dof_treeid[np.flatnonzero(term.J)])
        pulled[trees] = True
        joined = np.unique(group[trees])
        group[np.isin(group, joined)] = joined[0]
    return [np.flatnonzero(group[m.dof_treeid] == g) for g in np.unique(group[pulled])]
