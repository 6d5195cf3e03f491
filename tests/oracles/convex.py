"""Defines the convex problem of one world, dense, in MuJoCo's rows: cost, forces, minimum.

    1/2 (a - a0)^T M (a - a0) + sum over rows of s(J a - aref)

Source: MuJoCo documentation, Computation, "Primal problem".
"""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.model.enums import CONTACT_ELLIPTIC
from oracles.hessians import cone_curvature


class Convex:
    """Returns M, a0, J, aref, D of MuJoCo's data after a forward pass, with `jacobian="dense"`."""

    def __init__(self, mj, data):
        nv, n = mj.nv, data.nefc
        self.nv, self.data = nv, data
        self.M = np.zeros((nv, nv))
        mujoco.mj_fullM(mj, data, self.M)
        self.a0 = data.qacc_smooth.copy()
        self.J = np.reshape(data.efc_J, (-1, nv))[:n].copy()
        self.aref, self.D, self.R = (getattr(data, f"efc_{name}")[:n].copy() for name in ("aref", "D", "R"))
        self.type, loss = data.efc_type[:n].copy(), data.efc_frictionloss[:n]
        # bounds of the force of each single row
        self.lo = np.where(self.type == 0, -np.inf, np.where(self.type <= 2, -loss, 0.0))
        self.hi = np.where((self.type == 1) | (self.type == 2), loss, np.inf)
        self.cones = []
        for c in data.contact:
            if c.efc_address >= 0 and self.type[c.efc_address] == CONTACT_ELLIPTIC:
                friction = np.array(c.friction[: c.dim - 1])
                at = slice(c.efc_address, c.efc_address + c.dim)
                self.cones.append((at, friction, friction[0] / np.sqrt(mj.opt.impratio)))

    def force(self, a):
        """Returns the forces of all rows at an acceleration."""
        x = self.J @ a - self.aref
        f = np.clip(-self.D * x, self.lo, self.hi)
        for at, friction, mu in self.cones:
            U = np.array([mu, *friction]) * x[at]
            T = np.linalg.norm(U[1:])
            if U[0] >= mu * T:
                f[at] = 0.0
            elif mu * U[0] + T <= 0:
                f[at] = -self.D[at] * x[at]
            else:
                push = -self.D[at.start] * (U[0] - mu * T) / (mu * mu * (1 + mu * mu))
                f[at] = push * np.array([mu, *(-mu * friction * U[1:] / T)])
        return f

    def cost(self, a):
        """Returns the total cost: a row's cost is that of its force, -f x - R f^2 / 2."""
        x, f, p = self.J @ a - self.aref, self.force(a), a - self.a0
        total = 0.5 * p @ self.M @ p - f @ x
        R = 1 / self.D
        return total - 0.5 * f @ (R * f)

    def gradient(self, a):
        return self.M @ (a - self.a0) - self.J.T @ self.force(a)

    def hessian(self, a):
        """Returns its second derivative, where it exists."""
        x = self.J @ a - self.aref
        t = -self.D * x
        free = (t > self.lo) & (t < self.hi) & (self.type != CONTACT_ELLIPTIC)
        H = self.M + self.J.T @ ((self.D * free)[:, None] * self.J)
        for at, friction, mu in self.cones:
            H += self.J[at].T @ cone_curvature(mu, friction, self.D[at], x[at]) @ self.J[at]
        return H

    def minimum(self, rounds=200):
        """Returns the acceleration of minimum cost, by Newton's method with halved steps."""
        a = self.a0.copy()
        for _ in range(rounds):
            g = self.gradient(a)
            p, step = -np.linalg.solve(self.hessian(a), g), 1.0
            cost = self.cost(a)
            while step > 1e-10 and self.cost(a + step * p) > cost + 1e-4 * step * (g @ p) + 1e-15 * abs(cost):
                step *= 0.5
            a = a + step * p
            if step <= 1e-10 or np.linalg.norm(p) <= 1e-12 * max(1.0, np.linalg.norm(a)):
                break
        return a
