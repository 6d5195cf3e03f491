"""Computes mechanics by definition, in NumPy, one world at a time, sharing no code with the package.

Uses homogeneous transforms, velocities and accelerations of points, and sums over bodies; rotation in world axes.
"""

from __future__ import annotations

import numpy as np

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3


def skew(v):
    """Returns [v]x."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rotation(axis, angle):
    """Returns a rotation matrix by Rodrigues' formula."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def matrix(quat):
    """Returns the rotation matrix of a quaternion of any length but 0."""
    w, v = quat[0], np.asarray(quat[1:])
    return ((w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * skew(v)) / (w * w + v @ v)


def transform(R, p):
    """Returns the 4 x 4 matrix of a rotation followed by a translation."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


class Naive:
    """Computes frames, Jacobians, inertia and forces of one world.

    Attributes:
        T: body frames (nbody, 4, 4).
        com: centres of mass (nbody, 3).
        inertia: rotational inertia about them in world axes (nbody, 3, 3).
        axis, anchor, turns: of each dof; the anchor is used if it rotates.
        jacp, jacr: Jacobians of the centres of mass and of the bodies' rotation (nbody, 3, nv).
        acc, alpha: acceleration of the centres of mass and angular acceleration at qacc = 0 (nbody, 3).
    """

    def __init__(self, model, qpos, qvel):
        self.model, self.qpos, self.qvel = model, np.asarray(qpos), np.asarray(qvel)
        n, nv = model.nbody, model.nv
        self.T = np.tile(np.eye(4), (n, 1, 1))
        self.axis, self.anchor, self.turns = np.zeros((nv, 3)), np.zeros((nv, 3)), np.zeros(nv, bool)
        self.dofs = [[] for _ in range(n)]
        for i in range(1, n):
            self._place(i)
        local = np.array([transform(matrix(q), p) for q, p in zip(model.body_iquat, model.body_ipos, strict=True)])
        X = self.T @ local
        self.com = X[:, :3, 3]
        self.inertia = X[:, :3, :3] @ (model.body_inertia[:, :, None] * X[:, :3, :3].transpose(0, 2, 1))
        self.jacp, self.jacr = np.zeros((n, 3, nv)), np.zeros((n, 3, nv))
        for i in range(1, n):
            self.jacp[i], self.jacr[i] = self.jac(self.com[i], i)
        self.omega, self.alpha, self.acc = self.jacr @ self.qvel, np.zeros((n, 3)), np.zeros((n, 3))
        self._at = [(np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3))] * n
        for i in range(1, n):
            self._accelerate(i)

    def _place(self, i):
        m = self.model
        T = self.T[m.body_parentid[i]] @ transform(matrix(m.body_quat[i]), m.body_pos[i])
        joints = range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i])
        self.dofs[i] = list(self.dofs[m.body_parentid[i]])
        for j in joints:
            T = self._move(i, j, T)
        self.T[i] = T
        for j in joints:
            if m.jnt_type[j] in (FREE, BALL):
                v = m.jnt_dofadr[j] + 3 * (m.jnt_type[j] == FREE)
                self.axis[v : v + 3] = T[:3, :3].T

    def _move(self, i, j, T):
        m, kind = self.model, self.model.jnt_type[j]
        a, v, axis = m.jnt_qposadr[j], m.jnt_dofadr[j], m.jnt_axis[j]
        number = {FREE: 6, BALL: 3}.get(kind, 1)
        self.dofs[i] += range(v, v + number)
        anchor = transform(np.eye(3), m.jnt_pos[j])
        back = transform(np.eye(3), -m.jnt_pos[j])
        self.axis[v], self.anchor[v : v + number] = T[:3, :3] @ axis, (T @ anchor)[:3, 3]
        self.turns[v : v + number] = kind != SLIDE
        if kind == FREE:
            self.turns[v : v + 3], self.axis[v : v + 3] = False, np.eye(3)
            self.anchor[v : v + 6] = self.qpos[a : a + 3]
            return transform(matrix(self.qpos[a + 3 : a + 7]), self.qpos[a : a + 3])
        if kind == BALL:
            return T @ anchor @ transform(matrix(self.qpos[a : a + 4]), np.zeros(3)) @ back
        x = self.qpos[a] - m.qpos0[a]
        if kind == SLIDE:
            return T @ transform(np.eye(3), x * axis)
        return T @ anchor @ transform(rotation(axis, x), np.zeros(3)) @ back

    def jac(self, point, body):
        """Returns (jacp, jacr) of a point that moves with a body, dof by dof."""
        p, r = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        for k in self.dofs[body]:
            if self.turns[k]:
                p[:, k], r[:, k] = np.cross(self.axis[k], point - self.anchor[k]), self.axis[k]
            else:
                p[:, k] = self.axis[k]
        return p, r

    def _accelerate(self, i):
        """Computes the acceleration of body i at qacc = 0, by moving a point along the chain of its joints."""
        m = self.model
        point, acc, omega, alpha = self._at[m.body_parentid[i]]
        for j in range(m.body_jntadr[i], m.body_jntadr[i] + m.body_jntnum[i]):
            kind, v = m.jnt_type[j], m.jnt_dofadr[j]
            acc = acc + _carry(omega, alpha, self.anchor[v] - point)
            point = self.anchor[v]
            if kind == SLIDE:
                acc = acc + 2 * np.cross(omega, self.axis[v] * self.qvel[v])
                continue
            v, number = (v + 3, 3) if kind == FREE else (v, 3) if kind == BALL else (v, 1)
            relative = self.qvel[v : v + number] @ self.axis[v : v + number]
            alpha, omega = alpha + np.cross(omega, relative), omega + relative
        self._at[i] = point, acc, omega, alpha
        self.acc[i], self.alpha[i] = acc + _carry(omega, alpha, self.com[i] - point), alpha

    def M(self):
        """Returns the sum over bodies of m Jp^T Jp + Jr^T I Jr, and armature."""
        m = self.model
        M = np.diag(m.dof_armature.copy())
        for i in range(1, m.nbody):
            M += m.body_mass[i] * self.jacp[i].T @ self.jacp[i] + self.jacr[i].T @ self.inertia[i] @ self.jacr[i]
        return M

    def bias(self):
        """Returns Newton's and Euler's equations of each body at qacc = 0, projected on the dofs."""
        m, total = self.model, np.zeros(self.model.nv)
        for i in range(1, m.nbody):
            moment = self.inertia[i] @ self.alpha[i] + np.cross(self.omega[i], self.inertia[i] @ self.omega[i])
            total += self.jacp[i].T @ (m.body_mass[i] * (self.acc[i] - m.opt_gravity)) + self.jacr[i].T @ moment
        return total

    def force_rates(self, qacc):
        """Returns rates of linear momentum (nbody, 3) and of angular momentum about each com, of moving bodies."""
        acc, alpha = self.acc + self.jacp @ qacc, self.alpha + self.jacr @ qacc
        spin = np.einsum("bij,bj->bi", self.inertia, self.omega)
        moment = np.einsum("bij,bj->bi", self.inertia, alpha) + np.cross(self.omega, spin)
        return self.model.body_mass[:, None] * acc, moment


def _carry(omega, alpha, r):
    """Returns the acceleration of a point at r on a rotating body, relative to the origin of r."""
    return np.cross(alpha, r) + np.cross(omega, np.cross(omega, r))
