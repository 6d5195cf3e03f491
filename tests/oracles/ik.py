"""Inverse kinematics of one world in NumPy over MuJoCo: the method of `fl.ik` without its code, for one site's pose."""

from __future__ import annotations

import mujoco
import numpy as np

LEAST, COSINE, DECREASE, SHORT = 1e-11, 1e-7, 1e-10, 1e-10


class SiteIk:
    """Solves for the pose of a site by Levenberg-Marquardt within the limits of hinges and slides.

    Args:
        mj: a model with hinges and slides only.
        site: number of the site.
        weights: of position and orientation.
    """

    def __init__(self, mj: mujoco.MjModel, site: int, weights: tuple[float, float] = (1.0, 1.0)):
        self.mj, self.data, self.site = mj, mujoco.MjData(mj), site
        self.weight = np.repeat(weights, 3)
        limited = mj.jnt_limited.astype(bool)
        self.low, self.high = (np.where(limited, mj.jnt_range[:, k], (-np.inf, np.inf)[k]) for k in (0, 1))
        self.jac, self.quat, self.error, self.turn = np.empty((6, mj.nv)), np.empty(4), np.empty(6), np.empty(3)

    def residual(self, q: np.ndarray, position: np.ndarray, orientation: np.ndarray):
        """Returns (errors (6,), Jacobian (6, nv)) in world axes, a new array each."""
        mj, data, s = self.mj, self.data, self.site
        data.qpos[:] = q
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        mujoco.mj_jacSite(mj, data, self.jac[:3], self.jac[3:], s)
        mujoco.mju_mat2Quat(self.quat, data.site_xmat[s])
        mujoco.mju_subQuat(self.turn, orientation, self.quat)
        mujoco.mju_rotVecQuat(self.error[3:], self.turn, self.quat)
        self.error[:3] = position - data.site_xpos[s]
        return self.error.copy(), self.jac.copy()

    def solve(self, q: np.ndarray, position: np.ndarray, orientation: np.ndarray, tolerance: float = 1e-6, most=100):
        """Returns (qpos, errors (6,), iterations, whether the target is reached)."""
        q = np.clip(q, self.low, self.high)
        e, J = self.residual(q, position, orientation)
        mu, nu = None, 2.0
        for k in range(most):
            if np.linalg.norm(e[:3]) <= tolerance and np.linalg.norm(e[3:]) <= tolerance:
                return q, e, k, True
            we, WJ = self.weight * e, self.weight[:, None] * J
            A, g, cost = WJ.T @ WJ, WJ.T @ we, 0.5 * we @ we
            size = np.sqrt(A.diagonal())
            free = ~(((q <= self.low) & (g <= 0)) | ((q >= self.high) & (g >= 0)))
            if (np.abs(g[free]) <= COSINE * np.sqrt(2 * cost) * size[free]).all():
                return q, e, k, False
            if mu is None:
                mu = 1e-3 * A.diagonal().max()
            x = np.zeros(len(q))
            x[free] = np.linalg.solve(A[np.ix_(free, free)] + mu * np.eye(free.sum()), g[free])
            trial = np.clip(q + x, self.low, self.high)
            x = trial - q
            new = self.residual(trial, position, orientation)
            gain, promised = cost - 0.5 * np.sum((self.weight * new[0]) ** 2), g @ x - 0.5 * x @ A @ x
            stops = np.abs(x).max() <= SHORT
            if gain > 0 and promised > 0:
                stops |= max(gain, promised) <= DECREASE * cost
                q, (e, J) = trial, new
                largest = np.einsum("ij,ij->j", self.weight[:, None] * J, self.weight[:, None] * J).max()
                mu, nu = max(mu * max(1 / 3, 1 - (2 * gain / promised - 1) ** 3), LEAST * largest), 2.0
            else:
                mu, nu = mu * nu, 2 * nu
            if stops:
                return q, e, k + 1, bool(max(np.linalg.norm(e[:3]), np.linalg.norm(e[3:])) <= tolerance)
        return q, e, most, False
