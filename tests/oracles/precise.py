"""Minimizes a step's convex problem in extended precision, from its rows, and bounds their rounding.

If rows push against each other by 1e16 N, float64 loses their sum; the 64 bits of a long double do not.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.enums import CONTACT_ELLIPTIC, CONTACT_FRICTIONLESS
from oracles.convex import Convex
from oracles.efc import efc
from oracles.hessians import cone_curvature

LONG = np.longdouble


def solve(H, b):
    """Returns H^-1 b of a positive definite H, b a vector or columns, by L^T D L: LAPACK has no long doubles."""
    scale = 1 / np.sqrt(np.diag(H))
    H, x = H * np.outer(scale, scale), (scale * np.transpose(b)).T
    for k in range(len(H) - 1, -1, -1):
        L = H[k, :k] / H[k, k]
        H[:k, :k] -= np.outer(L, H[k, :k])
        x[:k] -= np.multiply.outer(L, x[k])
        H[k, :k] = L
    x = (np.transpose(x) / np.diag(H)).T
    for k in range(len(H)):
        x[k] -= H[k, :k] @ x[:k]
    return (scale * np.transpose(x)).T


def contact_sizes(model, d, k):
    """Returns (nv,) of the terms of a contact's entries of J, whose sum is a point's velocity: |l| + |w| |r|."""
    out = np.zeros(model.nv)
    for body in d["con_carrier"][2 * k : 2 * k + 2]:
        i, com = model.body_lastdof[body], d["subtree_com"][3 * model.body_rootid[body] :][:3, 0]
        r = np.linalg.norm(d["con_pos"][3 * k :][:3, 0] - com)
        while i >= 0:
            S = d["cdof"][6 * i :][:6, 0]
            out[i] += np.linalg.norm(S[3:]) + np.linalg.norm(S[:3]) * r
            i = model.dof_parentid[i]
    return out


class Precise(Convex):
    """Returns M, f0 and the rows of one world of a tile, in long doubles, after a solve."""

    def __init__(self, model, arrays, lane=0):
        # float32 values are widened, so that J is not rounded to it
        wide = {name: a[:, lane : lane + 1].astype(float) if a.ndim == 2 else a for name, a in arrays.items()}
        rows, self.nv = efc(model, wide), model.nv
        self.M = np.zeros((self.nv, self.nv), LONG)
        for i in range(self.nv):
            entries = slice(model.M_rowadr[i], model.M_rowadr[i] + model.M_rownnz[i])
            self.M[i, model.M_colind[entries]] = self.M[model.M_colind[entries], i] = wide["M"][entries, 0]
        self.f0 = wide["qfrc_smooth"][: self.nv, 0].astype(LONG)
        self.a0 = solve(self.M, self.f0)
        self.J, self.aref, self.D, self.type = (
            rows.J.astype(LONG),
            rows.aref.astype(LONG),
            rows.D.astype(LONG),
            rows.type,
        )
        self.lo = np.where(self.type == 0, -np.inf, np.where(self.type <= 2, -rows.frictionloss, 0.0))
        self.hi = np.where((self.type == 1) | (self.type == 2), rows.frictionloss, np.inf)
        self.cones, self.sizes, self.references = [], np.abs(rows.J), np.abs(rows.aref)
        for ident, (k, first) in enumerate(zip(rows.contact_slot, rows.contact_efc_address, strict=True)):
            if first < 0:
                continue
            at = (rows.id == ident) & (rows.type >= CONTACT_FRICTIONLESS)
            self.sizes[at] = sizes = contact_sizes(model, wide, k)
            damping = max(wide["con_damping"][k, 0], wide["con_frictiondamping"][k, 0])
            self.references[at] += damping * sizes @ np.abs(wide["qvel"][: self.nv, 0])
            if self.type[first] == CONTACT_ELLIPTIC:
                dim = wide["con_dim"][k]
                friction = wide["con_friction"][5 * k : 5 * k + dim - 1, 0].astype(LONG)
                # R_1 = R_n / impratio = R_n mu^2 / mu_1^2
                mu = friction[0] * np.sqrt(self.D[first] / self.D[first + 1])
                self.cones.append((slice(first, first + dim), friction, mu))

    def hessian(self, a):
        x = self.J @ a - self.aref
        t = -self.D * x
        free = (t > self.lo) & (t < self.hi) & (self.type != CONTACT_ELLIPTIC)
        weighted = (self.D * free)[:, None] * self.J
        for at, friction, mu in self.cones:
            weighted[at] = cone_curvature(mu, friction, self.D[at], x[at]) @ self.J[at]
        self.weighted = weighted
        return self.M + self.J.T @ weighted

    def minimum(self, start=None, rounds=200):
        """Returns the acceleration of minimum cost, from a point near it."""
        a = self.a0.copy() if start is None else np.array(start, LONG)
        for _ in range(rounds):
            g = self.gradient(a)
            p, step = -solve(self.hessian(a), g), LONG(1)
            # the cost is too coarse to compare: the slope at the end decides whether the step is too long
            while step > 1e-12 and abs(self.gradient(a + step * p) @ p) > abs(g @ p):
                step *= 0.5
            a = a + step * p
            if np.abs(p).max() <= 1e-17 * np.abs(a).max() or step <= 1e-12:
                break
        return a

    def net(self, a):
        """Returns (nv,): the force of all rows together, from the acceleration."""
        return self.M @ a - self.f0

    def rounding(self, a, eps):
        """Returns (nv,): the largest change of all rows' force if each term of a row rounds once."""
        H, x = self.hessian(a), self.sizes @ np.abs(a) + self.references
        return np.abs(self.M @ solve(H, self.weighted.T)) @ (eps * x)
