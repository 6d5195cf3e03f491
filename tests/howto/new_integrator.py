"""Adds an integrator from outside the package, as docs/extending.md explains: the midpoint rule, of two accelerations.

`test_howto.py` runs this file in a separate process, in which no stage is compiled yet.
Source: Runge, Ueber die numerische Aufloesung von Differentialgleichungen, 1895.
"""

from __future__ import annotations

import numpy as np

import featherlane as fl
from featherlane.engine.dynamics.integrator.integrate import integrate_pos
from featherlane.engine.dynamics.integrator.runge_kutta import rk4_start
from featherlane.engine.lanes import fma, stage
from featherlane.engine.model.enums import FINITE
from featherlane.engine.model.integrator import Scheme, register

NUMBER = 5
XML = """<mujoco><option timestep="{h}"/><worldbody>
  <body pos="0 0 1"><joint axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
  <body pos=".3 0 0"><joint type="ball"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/></body></body>
  </worldbody></mujoco>"""
SECONDS = 0.256


@stage
def midpoint_move(m, d, k):
    """Moves half a step, with the velocity and the acceleration at its start."""
    half = 0.5 * m.opt_timestep[0]
    integrate_pos(m, d.qpos, d.rk.qvel, d.rk.qpos, half, FINITE)
    for i in range(m.nv):
        d.qvel[i] = fma(half, d.qacc[i], d.rk.qvel[i])
    d.time[0] = d.rk.time[0] + half


@stage
def midpoint_advance(m, d):
    """Takes the whole step, with the velocity and the acceleration at its midpoint."""
    h = m.opt_timestep[0]
    integrate_pos(m, d.qpos, d.qvel, d.rk.qpos, h, FINITE)
    for i in range(m.nv):
        d.qvel[i] = fma(h, d.qacc[i], d.rk.qvel[i])
        d.qacc_warmstart[i] = d.qacc[i]
    d.time[0] = d.rk.time[0] + h


def end(h: float, integrator: str) -> np.ndarray:
    """Returns positions after SECONDS in nine worlds, bitwise identical to a world simulated alone."""
    model = fl.load(XML.format(h=h))
    model.opt.integrator = integrator
    batch, data = fl.Batch(model, nworld=9), fl.Data(model)
    batch.qvel[:, 1:] = data.qvel[1:] = 1.0, 2.0, 3.0
    batch.step(round(SECONDS / h))
    for _ in range(round(SECONDS / h)):
        fl.step(model, data)
    np.testing.assert_array_equal(batch.qpos, np.tile(data.qpos, (9, 1)))
    return data.qpos.copy()


if __name__ == "__main__":
    register(
        Scheme(NUMBER, "midpoint", midpoint_advance, accelerations=2, start=rk4_start, move=midpoint_move),
    )
    exact = end(0.001, "rk4")
    coarse, fine = (np.abs(end(h, "midpoint") - exact).max() for h in (0.008, 0.004))
    assert 3.5 < coarse / fine < 4.5, f"of the second order: half the step, a quarter of the error; {coarse / fine}"
    assert repr(fl.load(XML.format(h=0.001)).opt).count("integrator=euler") == 1
