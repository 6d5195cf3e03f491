"""Derivatives of a Runge-Kutta step by the chain rule, from those of its four accelerations.

    q_k = q_0 (+) c h r_{k-1},   v_k = v_0 + c h a_{k-1},   a_k = a(q_k, v_k, u),   r_k = dexp^-1_{c h r_{k-1}}(v_k)
    q' = q_0 (+) h sum b_k r_k,  v' = v_0 + h sum b_k a_k

with c = 0, 1/2, 1/2, 1 and b = 1/6, 1/3, 1/3, 1/6.  Accelerations are differentiated by the implicit function theorem,
in the tangent space at their position; positions as in tangent.py.  Arrays have one row for each displaced
coordinate, (nworld, n, nv), as in the passes.
Source: Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999; dynamics/integrator/runge_kutta.py.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.prelude import *
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_stage, rk4_start, rotation_rate
from featherlane.engine.lanes.layout import Declare, Layout
from featherlane.engine.sensor.measure import FIRST_PASS, LAST_STAGE, WITHIN
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.rows import copy_step_inputs, write_records
from featherlane.engine.simulation.tile.tiles import in_each_tile
from featherlane.engine.simulation.tile.transfer import Plan
from featherlane.tools.sensitivity.rates.coordinates import delta
from featherlane.tools.sensitivity.systems.tangent import right_jacobian
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds

NODES, WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0)

_given, _found = Declare("", "given"), Declare("", "output")
CHAIN = Layout(
    "Chain",
    (
        _given.real("r", "nv", "m, rad", "displacement from the start"),
        _given.real("w", "nv", "m/s, rad/s", "velocity"),
        _given.real("dr", "nv", "m, rad", "derivative of r by a coordinate"),
        _given.real("dw", "nv", "m/s, rad/s", "derivative of w by a coordinate"),
        _found.real("dq", "nv", "m, rad", "derivative of the position, by dof"),
        _found.real("drate", "nv", "m/s, rad/s", "derivative of the rate of r"),
    ),
)


@stage
def rk4_states_of_tile(m, d, b, thread, tile):
    """Computes the four states of a step at which accelerations are evaluated; the results of state k are record k.

    Reads:  the rows that the transfers of b bring in.
    Writes: those that they take back; in_stage; what `forward`, `rk4_start` and `rk4_stage` write.
    """
    forward(m, d)
    rk4_start(m, d)  # stores q_0 and v_0
    write_records(b, thread, tile, s=0)
    for k in range(1, 4):
        d.in_stage[0] = LAST_STAGE if k == 3 else WITHIN  # the results of the last stage stay in the world
        rk4_stage(m, d, k)  # qpos, qvel, time <- the state q_k, v_k
        forward(m, d)
        write_records(b, thread, tile, k)
    d.in_stage[0] = FIRST_PASS


rk4_states = in_each_tile("rk4_states", rk4_states_of_tile)


@stage(p=CHAIN)
def rk4_columns_of_tile(m, d, b, p, thread, tile):
    """Computes derivatives of q_0 (+) r and of the rate of r, by coordinate s in column s.

    They are dq_0 + dr and dw; for a quaternion exp(-r) dq_0 + J(r) dr and the tangent of dexp^-1_r(w).  dq_0 is 1 for
    the dof of position s.
    Reads:  the rows that the transfers of b bring in: r, w, dr, dw.   Writes: those that they take back; dq, drate.
    """
    for s in range(b.nstep):
        copy_step_inputs(b, thread, tile, s)
        for i in range(m.nv):
            p.dq[i], p.drate[i] = delta(1.0 * s, i) + p.dr[i], p.dw[i]
        for j in range(m.njnt):
            v, kind = m.jnt_dofadr[j], m.jnt_type[j]
            if has_quaternion(kind):
                v += 3 if is_free_joint(kind) else 0  # the rotations follow the translations
                r, w = Vec3(p.r[v : v + 3]), Vec3(p.w[v : v + 3])
                dr, dw = Vec3(p.dr[v : v + 3]), Vec3(p.dw[v : v + 3])
                dq0 = Vec3(delta(1.0 * s, v + c) for c in range(3))
                p.dq[v : v + 3] = rotation_vector_quat(r).T @ dq0 + right_jacobian(r, dr)
                _, rate = split_tangents(rotation_rate(seed(r, dr), seed(w, dw)), 1)
                p.drate[v : v + 3] = rate
        write_records(b, thread, tile, s)


rk4_columns = in_each_tile("rk4_columns", rk4_columns_of_tile)


def rk4_rates(worlds: ImplicitWorlds) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Computes rates of the next state by positions, velocities and controls, for models without activations.

    Args:
        worlds: in the states at which derivatives are taken; their states are changed.

    Returns:
        Rates (nworld, n, 2 nv), those of the velocity alone (nworld, n, nv), the distance to the nearest switch over
        the four accelerations (nworld,), and the indices of worlds whose rows do not fit, which have no rates.
    """
    rows, nv, n, nworld = worlds.batch.arrays.rows, worlds.model.nv, worlds.seeds.input.stop, worlds.batch.nworld
    h = np.reshape(worlds.batch.arrays.expanded.shared_or_own("opt_timestep", slice(None)), (-1, 1))
    h, states = np.broadcast_to(h, (nworld, 1)), _states(worlds)
    dv0 = np.eye(n, nv, -nv)
    dq, drate, da, sum_da, sum_drate = np.zeros((5, nworld, n, nv))
    dq[...], drate[...] = np.eye(n, nv), dv0
    dv, sum_rate, nearest, left = drate, np.zeros((nworld, nv)), np.ones(nworld), np.zeros(0, int)
    for k, (c, b) in enumerate(zip(NODES, WEIGHTS, strict=True)):
        if k:
            shift, before = c * h, states["rk.rate"][:, k - 1]
            dv = dv0 + shift[:, None] * da
            dq, drate = _moved(worlds, shift * before, shift[:, None] * drate, states["qvel"][:, k], dv)
            for name in ("qpos", "qvel", "time"):
                rows[name][...] = states[name][:, k]
        rates, _, near, without = worlds.rates()
        # the passes return v' = v + h a
        by = (rates[:, :n, nv : 2 * nv] - dv0) / h[:, None]
        da = np.matmul(dq, by[:, :nv]) + np.matmul(dv, by[:, nv : 2 * nv])
        da[:, 2 * nv :] += by[:, 2 * nv :]
        sum_rate += b * states["rk.rate"][:, k]
        sum_drate += b * drate
        sum_da += b * da
        nearest, left = np.minimum(nearest, near), np.union1d(left, without)
    out = np.empty((nworld, n, 2 * nv))
    out[..., :nv], _ = _moved(worlds, h * sum_rate, h[:, None] * sum_drate, sum_rate, sum_drate)
    out[..., nv:] = dv0 + h[:, None] * sum_da
    return out, out[..., nv:], nearest, left


def _moved(worlds: ImplicitWorlds, r, dr, w, dw) -> tuple[np.ndarray, np.ndarray]:
    """Returns `rk4_columns` of all worlds: dq and drate, (nworld, n, nv) each, valid until the next call."""
    nworld, every = worlds.batch.nworld, worlds.every

    def make() -> tuple[Plan, dict[str, np.ndarray]]:
        shape = nworld, worlds.seeds.input.stop, worlds.model.nv
        brought, taken = ({name: np.zeros(shape) for name in names} for names in (("dr", "dw"), ("dq", "drate")))
        load = {name: np.zeros((nworld, worlds.model.nv)) for name in ("r", "w")}
        return worlds.plan_of(rk4_columns, nworld, brought, taken, load), brought | taken | load

    plan, arrays = worlds.kept("rk4", make)
    for name, value in (("r", r), ("dr", dr), ("w", w), ("dw", dw)):
        arrays[name][...] = value
    worlds.plans.prepare(worlds.width)
    plan.begin(worlds.seeds.input.stop, every, every)
    worlds.go(plan, -(-nworld // worlds.width))
    return arrays["dq"], arrays["drate"]


def _states(worlds: ImplicitWorlds) -> dict[str, np.ndarray]:
    """Returns field -> (nworld, 4, ...) at the four accelerations, bitwise identical to those of a step."""
    every = worlds.every
    sizes = {"qpos": worlds.model.nq, "qvel": worlds.model.nv, "time": 1, "rk.rate": worlds.model.nv}
    found = {name: np.zeros((len(every), 4, size)) for name, size in sizes.items()}
    plan = worlds.plan_of(rk4_states, len(every), {}, found)
    plan.begin(4, every, every)
    worlds.go(plan, -(-len(every) // worlds.width))
    return found
