"""Reads and filters recorded motions of an arm, and identifies its parameters from them; the arm of recorded_arm.py.

Unknowns of a body are its ten inertial parameters, in the order of `fl.query.inertial_parameters`.  Unknowns of a joint
are rotor inertia (armature), Coulomb friction, viscous friction, and an offset of the torque.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

import featherlane as fl

JOINTS, RATE = 6, 100.0  # samples per second of the robot's log, nearly
# Drive gains [N m/A]: the ratio of desired torque to desired current in the log while joints 2 to 5 stand and carry
# weight.  Joints 1 and 6 carry none; they have the drives of joints 2 and 5.
GAINS = np.array([11.976, 11.976, 9.839, 10.76, 10.76, 10.76])
STATE_CUTOFF, TORQUE_CUTOFF, ORDER = 8.0, 10.0, 4  # low-pass filters [Hz]
SLOW = 0.02  # width of the change of sign of Coulomb friction [rad/s]
SOFT = 0.5  # impedance of friction losses: they change sign nearly as gradually
PRIOR = 3e-3  # residual, as a share of the torque, that equals one unit of a logarithmic unknown


class Recording(NamedTuple):
    """Samples at even times: filtered positions, velocities, accelerations, torques, and unfiltered torques, (n, 6)."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    torque: np.ndarray
    measured: np.ndarray


def low_pass(x: np.ndarray, rate: float, cutoff: float, derivative: int = 0) -> np.ndarray:
    """Filters rows at even times without phase, by the squared gain of a Butterworth filter; also differentiates them.

    The rows are continued by their point reflections at both ends.

    Args:
        x: (n, k).
        rate: rows per second.
        cutoff: the frequency of half the amplitude [Hz].
        derivative: the order of the derivative by time.
    """
    n = len(x)
    long = np.concatenate([2 * x[0] - x[:0:-1], x, 2 * x[-1] - x[-2::-1]])
    # without the line between the ends, the continued rows are periodic
    slope = (long[-1] - long[0]) / (len(long) - 1)
    line = long[0] + slope * np.arange(len(long))[:, None]
    f = np.fft.rfftfreq(len(long) - 1, 1.0 / rate)[:, None]
    gain = (2j * np.pi * f) ** derivative / (1.0 + (f / cutoff) ** (2 * ORDER))
    found = np.fft.irfft(gain * np.fft.rfft((long - line)[:-1], axis=0), len(long) - 1, axis=0)[n - 1 : 2 * n - 1]
    if derivative > 1:
        return found
    return found + (slope * rate if derivative else line[n - 1 : 2 * n - 1])


def read(path: Path) -> Recording:
    """Reads a log with the columns time, positions, velocities, currents, desired currents, desired torques.

    Raises:
        ValueError: the file has fewer columns, or no motion.
    """
    with path.open() as lines:
        rows = [line.split(",") for line in lines]
    # an interrupted log has a last line that is incomplete
    data = np.array([row[: 1 + 3 * JOINTS] for row in rows if len(row) == len(rows[0])], dtype=float)
    if data.shape[1] < 1 + 3 * JOINTS:
        raise ValueError(f"{path.name}: has {data.shape[1]} columns, needed are {1 + 3 * JOINTS}")
    moving = np.flatnonzero(np.abs(data[:, 7:13]).max(axis=1) > 1e-3)
    if not len(moving):
        raise ValueError(f"{path.name}: the arm does not move")
    return prepared(data[moving[0] : moving[-1] + 1])


def prepared(data: np.ndarray) -> Recording:
    """Returns a recording from rows of time, positions, velocities and currents."""
    time = np.arange(data[0, 0], data[-1, 0], 1.0 / RATE)
    even = np.stack([np.interp(time, data[:, 0], column) for column in data[:, 1:19].T], axis=1)
    q, v, torque = even[:, :6], even[:, 6:12], even[:, 12:] * GAINS
    return Recording(
        low_pass(q, RATE, STATE_CUTOFF),
        low_pass(v, RATE, STATE_CUTOFF),
        low_pass(v, RATE, STATE_CUTOFF, derivative=1),
        low_pass(torque, RATE, TORQUE_CUTOFF),
        torque,
    )


class Parameters(NamedTuple):
    """Inertial parameters (bodies, 10), and for each joint armature, Coulomb and viscous friction, offset, (6,)."""

    body: np.ndarray
    armature: np.ndarray
    coulomb: np.ndarray
    viscous: np.ndarray
    offset: np.ndarray

    def vector(self) -> np.ndarray:
        return np.concatenate([np.ravel(part) for part in self])


def parameters(x: np.ndarray) -> Parameters:
    """Returns the parameters of a vector."""
    body = x[: -4 * JOINTS].reshape(-1, 10)
    return Parameters(body, *x[-4 * JOINTS :].reshape(4, JOINTS))


def regressor(model: fl.Model, recording: Recording) -> np.ndarray:
    """Returns the derivative of the torques by the vector of `Parameters`, (n, 6, parameters)."""
    n = len(recording.q)
    batch = fl.Batch(model, n)
    batch.qpos[:], batch.qvel[:] = recording.q, recording.v
    Y = batch.torque_regressor(recording.a)[:, :, 1:].reshape(n, JOINTS, -1)  # without the world
    joint = np.stack([recording.a, np.tanh(recording.v / SLOW), recording.v, np.ones((n, JOINTS))], axis=1)
    own = np.einsum("nki,ij->nikj", joint, np.eye(JOINTS)).reshape(n, JOINTS, -1)
    return np.concatenate([Y, own], axis=2)


class Equations(NamedTuple):
    """The equations Y x = torque of each joint, compressed by QR: rows (6, k + 1, k) and (6, k + 1), and samples."""

    A: np.ndarray
    b: np.ndarray
    samples: int

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Returns the root mean square of the residual of each joint, (6,) [N m]."""
        return np.linalg.norm(self.A @ x - self.b, axis=1) / np.sqrt(self.samples)

    def without(self, x: np.ndarray) -> Equations:
        """Returns the equations of the torque that the parameters x leave."""
        return self._replace(b=self.b - self.A @ x)

    def weighted(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the rows of all joints, times a weight of each joint."""
        return (self.A * weight[:, None, None]).reshape(-1, self.A.shape[2]), (self.b * weight[:, None]).ravel()


def equations(model: fl.Model, recordings: list[Recording]) -> Equations:
    """Returns the equations of the samples of all recordings."""
    Y = np.concatenate([regressor(model, recording) for recording in recordings])
    torque = np.concatenate([recording.torque for recording in recordings])
    rows = np.concatenate([Y, torque[..., None]], axis=2)
    R = np.stack([np.linalg.qr(rows[:, joint], mode="r") for joint in range(JOINTS)])
    return Equations(R[..., :-1], R[..., -1], len(rows))


def least_squares(given: Equations, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Fits some parameters by weighted least squares; the others remain zero.

    Returns the vector of least norm, the weights of the joints (the inverse root mean squares of the residuals), and
    the number of base parameters: the rank.
    """
    weight, x, rank = np.ones(JOINTS), np.zeros(given.A.shape[2]), 0
    for _ in range(3):  # ordinary least squares, then weights from residuals
        A, b = given.weighted(weight)
        scale = np.linalg.norm(A[:, columns], axis=0)
        scale[scale == 0.0] = 1.0
        found, _, rank, _ = np.linalg.lstsq(A[:, columns] / scale, b, rcond=1e-7)
        x[columns] = found / scale
        weight = 1.0 / given.residual(x)
    return x, weight, int(rank)


def pseudo_inertia(body: np.ndarray) -> np.ndarray:
    """Returns the pseudo-inertia matrices (n, 4, 4) of inertial parameters (n, 10).

    [[tr(I)/2 E - I, m c], [m c^T, m]]; it is positive definite if and only if a body with positive density exists.
    Source: Wensing, Kim, Slotine, IEEE RA-L 3 (2018).
    """
    xx, yy, zz, xy, xz, yz = body[:, :6].T
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).transpose(2, 0, 1)
    J = np.empty((len(body), 4, 4))
    J[:, :3, :3] = 0.5 * np.trace(I, axis1=1, axis2=2)[:, None, None] * np.eye(3) - I
    J[:, :3, 3] = J[:, 3, :3] = body[:, 6:9]
    J[:, 3, 3] = body[:, 9]
    return J


def inertial(J: np.ndarray) -> np.ndarray:
    """Returns the inertial parameters (..., 10) of pseudo-inertia matrices (..., 4, 4), a linear function."""
    S, trace = J[..., :3, :3], np.trace(J[..., :3, :3], axis1=-2, axis2=-1)
    diagonal = [trace - S[..., k, k] for k in range(3)]
    products = [-S[..., 0, 1], -S[..., 0, 2], -S[..., 1, 2]]
    return np.stack([*diagonal, *products, *(J[..., k, 3] for k in range(4))], axis=-1)


ROW, COLUMN = np.tril_indices(4)


def from_logarithms(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the parameters of unconstrained unknowns, and their derivative.

    A body's unknowns are the lower triangle of the Cholesky factor of its pseudo-inertia, in units of its diagonal,
    which has logarithms: L = D (E + N), with J = L L^T.  Armature and friction are logarithms, offsets are themselves.
    Source: Rucker, Wensing, IEEE RA-L 7 (2022).  Deviation: the factor is a product of diagonal and unit triangle.
    """
    nbody = (len(u) - 4 * JOINTS) // 10
    x, slope = np.zeros(len(u)), np.zeros((len(u), len(u)))
    for k in range(nbody):
        rows = slice(10 * k, 10 * k + 10)
        t = u[rows]
        on = ROW == COLUMN
        D, U = np.diag(np.exp(t[on])), np.eye(4)
        U[ROW[~on], COLUMN[~on]] = t[~on]
        L = D @ U
        x[rows] = inertial(L @ L.T)
        for j in range(10):
            dL = np.zeros((4, 4))
            dL[ROW[j]] = L[ROW[j]] if on[j] else 0.0
            if not on[j]:
                dL[ROW[j], COLUMN[j]] = D[ROW[j], ROW[j]]
            slope[rows, 10 * k + j] = inertial(dL @ L.T + L @ dL.T)
    positive = slice(10 * nbody, 10 * nbody + 3 * JOINTS)
    x[positive] = np.exp(u[positive])
    np.fill_diagonal(slope[positive, positive], x[positive])
    x[-JOINTS:] = u[-JOINTS:]
    slope[-JOINTS:, -JOINTS:] = np.eye(JOINTS)
    return x, slope


def logarithms(p: Parameters) -> np.ndarray:
    """Returns the unknowns of `from_logarithms` of consistent parameters."""
    L = np.linalg.cholesky(pseudo_inertia(p.body))
    D = np.diagonal(L, axis1=1, axis2=2)
    t = (L / D[:, :, None])[:, ROW, COLUMN]
    t[:, ROW == COLUMN] = np.log(D)
    return np.concatenate([t.ravel(), *(np.log(part) for part in p[1:4]), p.offset])


def consistent(A: np.ndarray, b: np.ndarray, prior: Parameters, steps: int = 100) -> Parameters:
    """Fits physically consistent parameters to equations by Levenberg-Marquardt, starting from the prior.

    Minimizes |A x(u) - b|^2 + (PRIOR |b| |u - u_0|)^2; the second term decides what the data do not determine.
    """
    start = u = logarithms(prior)
    pull = PRIOR * np.linalg.norm(b) * np.ones(len(u))
    pull[-JOINTS:] = 0.0  # offsets are determined
    damping = 1e-3

    def loss(u: np.ndarray) -> float:
        return float(np.sum((A @ from_logarithms(u)[0] - b) ** 2) + np.sum((pull * (u - start)) ** 2))

    now = loss(u)
    for _ in range(steps):
        x, slope = from_logarithms(u)
        G = A @ slope
        H = G.T @ G + np.diag(pull**2)
        g = G.T @ (A @ x - b) + pull**2 * (u - start)
        while damping < 1e12:
            step = -np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
            tried = loss(u + step) if np.abs(step).max() < 10.0 else np.inf
            if tried < now:
                break
            damping *= 4.0
        else:
            break
        done, u, now, damping = now - tried < 1e-9 * now, u + step, tried, damping / 5.0
        if done:
            break
    return parameters(from_logarithms(u)[0])


def set_parameters(model: fl.Model, p: Parameters) -> None:
    """Writes parameters into a model: masses, centres, principal inertias and axes, armature, damping, friction."""
    for k, body in enumerate(p.body, 1):
        mass, com = body[9], body[6:9] / body[9]
        xx, yy, zz, xy, xz, yz = body[:6]
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - mass * (com @ com * np.eye(3) - np.outer(com, com))
        inertia, axes = np.linalg.eigh(I)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        model.body_mass[k], model.body_ipos[k], model.body_inertia[k] = mass, com, inertia
        model.body_iquat[k] = quaternion(axes)
    model.dof_armature[:], model.dof_frictionloss[:], model.dof_damping[:] = p.armature, p.coulomb, p.viscous
    model.dof_solimp[:, :2] = SOFT
    fl.set_const(model)


def quaternion(R: np.ndarray) -> np.ndarray:
    """Returns the unit quaternion (w, x, y, z) of a rotation matrix: the eigenvector of Bar-Itzhack's matrix."""
    K = np.array(
        [
            [np.trace(R), R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [0.0, R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [0.0, 0.0, R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
            [0.0, 0.0, 0.0, R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    return np.linalg.eigh(K, UPLO="U")[1][:, -1]
