"""Derivatives of a Runge-Kutta step by the chain rule, from those of its four accelerations.

    q_k = q_0 (+) c h r_{k-1},   v_k = v_0 + c h a_{k-1},   a_k = a(q_k, v_k, u),   r_k = dexp^-1_{c h r_{k-1}}(v_k)
    q' = q_0 (+) h sum b_k r_k,  v' = v_0 + h sum b_k a_k

with c = 0, 1/2, 1/2, 1 and b = 1/6, 1/3, 1/3, 1/6.  Accelerations are differentiated by the implicit function theorem,
in the tangent space at their position; positions as in tangent.py.  Arrays have one row for each displaced
coordinate, (nworld, n, nv), as in the passes.
Source: Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999; dynamics/integrator/runge_kutta.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_stage, rk4_start
from featherlane.engine.model.model import Model
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.rows import write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.spatial.rotation import cross
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds

NODES, WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)
SMALL_ANGLE = 0.3  # below: series, whose first neglected term is then below 1e-13
TURN = 2.0 * np.pi


@stage
def rk4_states_of_tile(m, d, b, thread, tile):
    """Computes the states of a step at which accelerations are evaluated: step s of the call is the s-th of four.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; in_stage; what `forward`, `rk4_start` and `rk4_stage` write.
    """
    forward(m, d)
    rk4_start(m, d)  # stores q_0 and v_0
    write_records(b, thread, tile, s=0)
    for k in range(1, 4):
        # in_stage: 1 a state within the step, 2 its last one, whose results stay in the world
        d.in_stage[0] = 2 if k == 3 else 1
        rk4_stage(m, d, k)  # qpos, qvel, time <- the state q_k, v_k
        forward(m, d)
        write_records(b, thread, tile, k)
    d.in_stage[0] = 0


rk4_states = in_each_tile("rk4_states", rk4_states_of_tile)


def rk4_rates(worlds: ImplicitWorlds) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Computes rates of the next state by positions, velocities and controls, for models without activations.

    Args:
        worlds: in the states at which derivatives are taken; their states are changed.

    Returns:
        Rates (nworld, n, 2 nv), those of the velocity alone (nworld, n, nv), the distance to the nearest switch over
        the four accelerations (nworld,), and the indices of worlds whose rows do not fit, which have no rates.
    """
    model, rows = worlds.model, worlds.batch.arrays.rows
    nv, n, nworld = model.nv, worlds.seeds.input.stop, worlds.batch.nworld
    h = np.reshape(worlds.batch.arrays.expanded.shared_or_own("opt_timestep", slice(None)), (-1, 1))
    h, states = np.broadcast_to(h, (nworld, 1)), _states(worlds)
    dq0, dv0 = np.eye(n, nv), np.eye(n, nv, -nv)
    drate = dv = np.broadcast_to(dv0, (nworld, n, nv))
    dq, da = np.broadcast_to(dq0, drate.shape), np.zeros(drate.shape)
    sum_rate, sums = np.zeros((nworld, nv)), np.zeros((2, *drate.shape))
    nearest, left = np.ones(nworld), np.zeros(0, int)
    for k, (c, b) in enumerate(zip(NODES, WEIGHTS, strict=True)):
        if k:
            shift, before = c * h, states["rk.rate"][:, k - 1]
            dq = _tangent(model, dq0, shift[:, None] * drate, shift * before)
            dv = dv0 + shift[:, None] * da
            drate = _rotation_rates(model, shift * before, shift[:, None] * drate, states["qvel"][:, k], dv)
            for name in ("qpos", "qvel", "time"):
                rows[name][...] = states[name][:, k]
        rates, _, near, without = worlds.rates()
        # the passes return v' = v + h a
        by = (rates[:, :n, nv : 2 * nv] - dv0) / h[:, None]
        da = np.matmul(dq, by[:, :nv]) + np.matmul(dv, by[:, nv : 2 * nv])
        da[:, 2 * nv :] += by[:, 2 * nv :]
        sum_rate += b * states["rk.rate"][:, k]
        for total, x in zip(sums, (drate, da), strict=True):
            total += b * x
        nearest, left = np.minimum(nearest, near), np.union1d(left, without)
    out = np.empty((nworld, n, 2 * nv))
    out[..., :nv] = _tangent(model, dq0, h[:, None] * sums[0], h * sum_rate)
    out[..., nv:] = dv0 + h[:, None] * sums[1]
    return out, out[..., nv:], nearest, left


def _states(worlds: ImplicitWorlds) -> dict[str, np.ndarray]:
    """Returns field -> (nworld, 4, ...) at the four accelerations, bitwise identical to those of a step."""
    every = worlds.every
    sizes = {"qpos": worlds.model.nq, "qvel": worlds.model.nv, "time": 1, "rk.rate": worlds.model.nv}
    found = {name: np.zeros((len(every), 4, size)) for name, size in sizes.items()}
    plan = worlds.plan_of(rk4_states, len(every), {}, found)
    plan.begin(4, every, every)
    worlds.go(plan, -(-len(every) // worlds.width))
    return found


def _turning(model: Model) -> list[slice]:
    """Returns the dofs of each quaternion."""
    first = model.jnt_dofadr + np.where(is_free_joint(model.jnt_type), 3, 0)
    return [slice(v, v + 3) for v in first[has_quaternion(model.jnt_type)]]


def _coefficients(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns sin t / t, (1 - cos t) / t^2, (t - sin t) / t^3."""
    z, small = t * t, t < SMALL_ANGLE
    s = np.where(small, 1.0, t)
    sin, cos = _each(math.sin, s), _each(math.cos, s)
    sine = np.where(small, 1 - z / 6 * (1 - z / 20 * (1 - z / 42 * (1 - z / 72))), sin / s)
    cosine = np.where(small, (1 - z / 12 * (1 - z / 30 * (1 - z / 56 * (1 - z / 90)))) / 2, (1 - cos) / (s * s))
    third = np.where(small, (1 - z / 20 * (1 - z / 42 * (1 - z / 72 * (1 - z / 110)))) / 6, (s - sin) / (s * s * s))
    return sine, cosine, third


def _tangent(model: Model, dq: np.ndarray, dr: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Returns the change of q (+) r: dq + dr; for a quaternion exp(-r) dq + J(r) dr.

    Args:
        model: the model.
        dq: (n, nv) displacements of q.
        dr: (nworld, n, nv) changes of r.
        r: (nworld, nv).
    """
    out = dq + dr
    for part in _turning(model):
        u, x, y = r[:, None, part], dq[None, :, part], dr[..., part]
        sine, cosine, third = _coefficients(np.sqrt(_square(u)))
        ux, uy = cross(u, x), cross(u, y)
        turned = x - sine * ux + cosine * cross(u, ux)
        out[..., part] = turned + (y - cosine * uy + third * cross(u, uy))
    return out


def _rotation_rates(model: Model, u: np.ndarray, du: np.ndarray, w: np.ndarray, dw: np.ndarray) -> np.ndarray:
    """Computes the change of the rates of coordinates by u, the displacement from the start, and by the velocity w.

    The rates are w; for a rotation w + u x w / 2 + k(|u|) u x (u x w), with whole turns subtracted from u.
    """
    drate = np.array(np.broadcast_to(dw, du.shape))
    for part in _turning(model):
        x, dx, y, dy = u[:, None, part], du[..., part], w[:, None, part], drate[..., part]
        t = np.sqrt(_square(x))
        whole = TURN * np.rint(t / TURN) / np.where(t > 0.0, t, 1.0)
        # u minus its whole turns, and its change; the length of the whole turns is constant
        along = _dot(x, dx) / np.where(t > 0.0, t * t, 1.0)
        x, dx = (1.0 - whole) * x, (1.0 - whole) * dx + whole * along * x
        k, slope = _third_coefficient(np.sqrt(_square(x)))
        xy, dxy = cross(x, y), cross(dx, y) + cross(x, dy)
        change = k * (cross(dx, xy) + cross(x, dxy)) + slope * _dot(x, dx) * cross(x, xy)
        drate[..., part] = dy + 0.5 * dxy + change
    return drate


def _third_coefficient(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns k(t) = (1 - t/2 cot t/2) / t^2, and its slope divided by t."""
    z, small = t * t, t < SMALL_ANGLE
    k = 1 / 12 + z * (1 / 720 + z * (1 / 30240 + z * (1 / 1209600 + z / 47900160)))
    slope = 1 / 360 + z * (1 / 7560 + z * (1 / 201600 + z * (1 / 5987520 + z * (691 / 130767436800))))
    s = np.where(small, 1.0, t)
    sine = _each(math.sin, 0.5 * s)
    cotangent = _each(math.cos, 0.5 * s) / sine
    far = 1 / s**2 - cotangent / (2 * s)
    steep = (-2 / s**3 + cotangent / (2 * s**2) + 1 / (4 * s * sine**2)) / s
    return np.where(small, k, far), np.where(small, slope, steep)


# ---- sums that are bitwise identical for any number of worlds --------------------------------------------------------
def _each(function: Callable[[float], float], a: np.ndarray) -> np.ndarray:
    """Applies a function value by value, because NumPy's vector loops round differently from its remainder loops."""
    return np.array([function(x) for x in a.ravel().tolist()]).reshape(a.shape)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a . b along the last axis, which is kept."""
    return (a[..., 0] * b[..., 0] + a[..., 1] * b[..., 1] + a[..., 2] * b[..., 2])[..., None]


def _square(a: np.ndarray) -> np.ndarray:
    """Returns a . a along the last axis, which is kept."""
    return _dot(a, a)
