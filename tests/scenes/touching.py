"""Defines a scene in which every kind of row acts, up to its rows: a solver's input, and its problem.

A trunk with two branches that touch each other, a ball that lies on it, a separate arm; contacts of every dimension
with the ground, within a tree and between trees; limits of a hinge and a ball joint, friction loss of a dof and of a
tendon, an equality of two hinges and a link of two trees.
"""

from __future__ import annotations

from types import SimpleNamespace

import mujoco
import numpy as np

from featherlane.engine.collision.collision import collision
from featherlane.engine.constraint import make_rows
from featherlane.engine.dynamics.inertia.metric import metric_times
from featherlane.engine.dynamics.integrator.smooth import smooth_acceleration
from featherlane.engine.lanes.processor import tile_width
from featherlane.engine.model import load
from featherlane.engine.simulation.step.forward import forward_position, forward_velocity
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.primal.problem import compute_row_products, compute_rows_at
from featherlane.engine.solver.rows.rows import prepare_contacts
from oracles.convex import Convex
from oracles.uncompiled import call, records
from scenes.coupled import truth
from scenes.states import kicked

XML = """<mujoco><option cone="{cone}" impratio="2" timestep="0.004" jacobian="dense" tolerance="0"
    iterations="100" ls_iterations="100"/>
  <default><geom friction="0.7 0.04 0.02" size="0.06"/><joint armature="0.01"/></default>
  <worldbody><geom type="plane" size="5 5 1" condim="1"/>
    <body pos="0 0 0.055"><freejoint/><geom name="trunk" type="capsule" fromto="-0.1 0 0 0.1 0 0"/>
      <geom pos="0 -0.1 0" condim="1"/>
      <body pos="0.2 0 0"><joint name="a" axis="0 1 0" limited="true" range="-60 -1" frictionloss="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.15 0 0" condim="4"/>
        <body pos="0.2 0 0"><joint type="ball" limited="true" range="0 0.4"/>
          <geom name="hand" pos="0.05 0 0" condim="6"/></body>
      </body>
      <body pos="0.1 0.11 0"><joint name="b" type="slide" axis="1 0 0"/><joint name="e" axis="0 0 1"/>
        <geom type="capsule" fromto="0 0 0 0.15 0 0" size="0.055"/>
        <geom name="side" pos="0.35 0 0" size="0.055"/></body>
    </body>
    <body pos="0 0 0.165"><freejoint/><geom condim="6"/></body>
    <body pos="-0.16 0 0.3"><joint name="c" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.15" condim="1"/>
      <body pos="0 0 -0.2"><joint name="f" axis="1 0 0"/><geom name="end"/></body></body>
  </worldbody>
  <contact><pair geom1="trunk" geom2="end" condim="1"/><pair geom1="hand" geom2="side" condim="1"/></contact>
  <tendon><fixed name="t" frictionloss="0.4"><joint joint="b" coef="1"/><joint joint="c" coef="0.7"/></fixed></tendon>
  <equality><joint joint1="c" joint2="f" polycoef="0.01 0.5 0 0 0"/><joint joint1="e" joint2="f"/></equality>
</mujoco>"""

# one long tree, no row between two bodies of it: limits of balls and a slide, friction loss, contacts of all dimensions
CHAIN = """<mujoco><option cone="{cone}" timestep="0.004" jacobian="dense" tolerance="0" iterations="100"/>
  <default><geom friction="0.7 0.04 0.02" size="0.05" conaffinity="0"/></default>
  <worldbody><geom type="plane" size="5 5 1" conaffinity="1" condim="1"/>
    <body pos="0 0 0.045"><joint type="ball" range="0 0.4" limited="true" armature="0.02"/>
      <joint type="slide" range="-0.001 0.001" limited="true" frictionloss="0.1"/>
      <geom type="capsule" fromto="0.05 0 0 0.3 0 0" condim="3"/>
      <body pos="0.3 0 0"><joint type="ball" range="0 0.4" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" condim="6"/>
        <body pos="0.3 0 0"><joint range="-0.1 0.1" limited="true" axis="0 1 0" armature="0.01"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" condim="4"/></body>
        <body pos="0.3 0.1 0"><joint type="hinge" axis="0 1 0"/><geom condim="1"/></body></body></body>
  </worldbody></mujoco>"""


def touching(cone="pyramidal", width=None, xml=XML, spread=0.01, dtype=np.float64, **options) -> SimpleNamespace:
    """Returns a tile whose rows are made: mj, model, w, (m, d) for uncompiled kernels, of each world
    MuJoCo's data and the convex problem.

    In the last of several worlds nothing touches: its contact slots are those of the other worlds.
    """
    mj, rng = mujoco.MjModel.from_xml_string(xml.format(cone=cone)), np.random.default_rng(7)
    model, width = load(mj), width or tile_width(dtype)
    for name, value in options.items():
        setattr(model.opt, name, value)
    w = Workspace(model, width, dtype)
    found = [kicked(mj, rng, spread, 0.5) for _ in range(width)]
    if width > 1:
        for j in np.flatnonzero(mj.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            found[-1][0][mj.jnt_qposadr[j] + 2] += 3.0 + j
        found[-1][0][[mj.joint(j).qposadr[0] for j in range(mj.njnt) if mj.joint(j).name == "e"]] += 1.5
    for lane, (qpos, qvel) in enumerate(found):
        w.arrays["qpos"][: mj.nq, lane], w.arrays["qvel"][: mj.nv, lane] = qpos, qvel
    for stage in (forward_position, forward_velocity, smooth_acceleration, collision, make_rows):
        w.run(stage)
    w.arrays["qacc_warmstart"][...] = w.arrays["qacc_smooth"]
    m, d = records(w)
    call(prepare_contacts, m, d)
    data = [truth(mj, state) for state in found]
    convex = [Convex(mj, one) for one in data]
    return SimpleNamespace(
        mj=mj, model=model, w=w, m=m, d=d, a=w.arrays, data=data, problems=convex, nv=mj.nv, width=width
    )


def go_to(s, a):
    """Sets the tile's point to a (nv, width): qacc, M qacc and the rows there."""
    d = s.d
    s.a["qacc"][: s.nv] = a
    call(metric_times, s.m, d, d.qacc, d.primal.Ma)
    call(compute_rows_at, s.m, d, d.qacc, d.primal.row_x, d.primal.con_y)


def go_along(s, p):
    """Sets the tile's search direction to p (nv, width), with its rows."""
    d = s.d
    s.a["primal.search"][: s.nv] = p
    call(metric_times, s.m, d, d.primal.search, d.primal.Mv)
    call(compute_row_products, s.m, d, d.primal.search, d.primal.row_v, d.primal.con_z)


def near(s, rng, size=20.0):
    """Returns accelerations about those without constraints."""
    return s.a["qacc_smooth"][: s.nv] + vectors(s, rng, size)


def each(s, a, function):
    """Returns function(problem, a) of each world, for s.problems."""
    return np.array([function(p, x) for p, x in zip(s.problems, a.T, strict=True)])


def vectors(s, rng, scale=1.0):
    """Returns a joint-space vector for each world, (nv, width)."""
    return scale * rng.normal(size=(s.nv, s.width))


def contact_jacobian(s, lane, k):
    """Returns rows (dim, nv) of contact slot k, (n, mu_1 t_1, mu_2 t_2, mu_3 n, mu_4 t_1, mu_5 t_2), by mj_jac."""
    data, a, point, turn = s.data[lane], s.a, np.zeros((3, s.nv)), np.zeros((3, s.nv))
    for sign, geom in zip((-1, 1), a["con_geom"][2 * k : 2 * k + 2], strict=True):
        jacp, jacr = np.zeros((2, 3, s.nv))
        mujoco.mj_jac(s.mj, data, jacp, jacr, a["con_pos"][3 * k : 3 * k + 3, lane].copy(), s.mj.geom_bodyid[geom])
        point, turn = point + sign * jacp, turn + sign * jacr
    frame = a["con_frame"][9 * k : 9 * k + 9, lane].reshape(3, 3)
    scale = np.array([1.0, *a["con_friction"][5 * k : 5 * k + 5, lane]])[:, None]
    return (scale * np.vstack([frame @ point, frame @ turn]))[: a["con_dim"][k]]


def scalar_jacobian(s):
    """Returns the Jacobian of the scalar rows, (n, nv, width)."""
    a = s.a
    J = np.zeros((a["nrow"][0], s.nv, s.width))
    for k in range(len(J)):
        for e in range(a["row_dofadr"][k], a["row_dofadr"][k] + a["row_dofnum"][k]):
            J[k, a["row_dof"][e]] = a["row_J"][e]
    return J


def present(s):
    """Returns (slot, world) of each active contact."""
    return [tuple(at) for at in np.argwhere(s.a["con_D"][: s.a["ncon_slot"][0]] > 0)]


def basis_rows(s, k):
    """Returns the rows of contact slot k's dim values in con_y: normal and tangents, then rotations after all slots."""
    turn = 3 * (s.d.nconmax + k)
    return [3 * k, 3 * k + 1, 3 * k + 2, turn, turn + 1, turn + 2][: s.a["con_dim"][k]]
