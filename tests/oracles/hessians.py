"""Computes the Hessian of a workspace as a dense lower triangle, and the Hessian by definition."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.model.enums import CONTACT_ELLIPTIC
from featherlane.engine.solver.hessian.entries.pattern import BLOCKS, ORDERED, PATHS
from scenes.coupled import truth


def columns(w, i):
    """Returns the columns of row i of the pattern, ascending, the diagonal last."""
    m, a = w.model, w.arrays
    if a["hessian.pattern"][0] == PATHS:
        return a["hessian.colind"][a["hessian.rowadr"][i] :][: a["hessian.rownnz"][i]]
    if a["hessian.pattern"][0] not in (BLOCKS, ORDERED):
        return m.chain_colind[m.chain_rowadr[i] :][: m.chain_rownnz[i]]
    b = m.dof_blockid[i]
    blocks = a["hessian.blockcol"][a["hessian.blockadr"][b] :][: a["hessian.blocknum"][b]]
    return np.concatenate([m.block_dofadr[c] + np.arange(m.block_dofnum[c]) for c in blocks])[: a["hessian.rownnz"][i]]


def dense_hessian(w, lane=0):
    """Returns H (nv, nv) of one world, zero above the diagonal."""
    a, nv = w.arrays, w.model.nv
    H = np.zeros((nv, nv))
    for i in range(nv):
        H[i, columns(w, i)] = a["hessian.H"][a["hessian.rowadr"][i] :][: a["hessian.rownnz"][i], lane]
    return H


def cone_curvature(mu, friction, D, x):
    """Returns the second derivative of an elliptic contact's cost by its rows x.

    Source: MuJoCo documentation, Computation, "Primal problem": with U = (mu x_0, friction_i x_i), T = |U_1..|, it is
    quadratic below, 0 above and D_0 (U_0 - mu T)^2 / (2 mu^2 (1 + mu^2)) between.
    """
    scale = np.array([mu, *friction])
    U = scale * x
    T = np.linalg.norm(U[1:])
    if U[0] >= mu * T:
        return np.zeros((len(x), len(x)))
    if mu * U[0] + T <= 0:
        return np.diag(D)
    t = U[1:] / T
    g = np.array([1.0, *(-mu * t)])
    bend = np.zeros((len(x), len(x)))
    bend[1:, 1:] = -mu * (U[0] - mu * T) * (np.eye(len(t)) - np.outer(t, t)) / T
    return D[0] / (mu**2 * (1 + mu**2)) * scale[:, None] * (np.outer(g, g) + bend) * scale


def curvature(model, w, rows):
    """Returns J^T (second derivative of the rows' cost) J, dense, from the definition."""
    d, nv = w.arrays, model.nv
    x = rows.J @ d["qacc"][:nv, 0] - rows.aref
    free = np.where(rows.type <= 2, np.abs(rows.D * x) < np.where(rows.type == 0, np.inf, rows.frictionloss), x < 0)
    H = rows.J.T @ ((rows.D * free * (rows.type != CONTACT_ELLIPTIC))[:, None] * rows.J)
    for k, i in zip(rows.contact_slot, rows.contact_efc_address, strict=True):
        if i >= 0 and rows.type[i] == CONTACT_ELLIPTIC:
            at, friction = slice(i, i + d["con_dim"][k]), d["con_friction"][5 * k : 5 * k + d["con_dim"][k] - 1, 0]
            mu = friction[0] / np.sqrt(model.opt_impratio[0])
            H += rows.J[at].T @ cone_curvature(mu, friction, rows.D[at], x[at]) @ rows.J[at]
    return H


def basis_weights(s, k, lane):
    """Returns the Hessian of contact k's cost in its basis (n, mu_1 t_1, ..), at con_y, in a scenes.touching scene."""
    a, dim = s.a, s.a["con_dim"][k]
    turn = 3 * (s.d.nconmax + k)
    y = a["primal.con_y"][[3 * k, 3 * k + 1, 3 * k + 2, turn, turn + 1, turn + 2][:dim], lane]
    D, friction = a["con_D"][k, lane], a["con_friction"][5 * k : 5 * k + dim - 1, lane]
    if dim == 1:
        return np.array([[D * (y[0] < 0)]])
    if s.mj.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL:
        edges = np.array([[1.0, *(sign * np.eye(dim - 1)[i])] for i in range(dim - 1) for sign in (1, -1)])
        return edges.T @ ((D * (edges @ y < 0))[:, None] * edges)
    scale = np.array([1.0, *friction])
    stiff = np.array([D, *(D * s.mj.opt.impratio * (friction / friction[0]) ** 2)])
    bend = cone_curvature(friction[0] / np.sqrt(s.mj.opt.impratio), friction, stiff, y / scale)
    return bend / scale / scale[:, None]


def inertia(mj, state):
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, truth(mj, state), M)
    return M
