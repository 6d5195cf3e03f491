"""Defines models without contact, states and stages for tests of the smooth dynamics."""

from __future__ import annotations

import numpy as np

from featherlane.engine.dynamics.actuator.actuation import actuation
from featherlane.engine.dynamics.actuator.transmission import transmission
from featherlane.engine.dynamics.body.com import com_pos, com_vel
from featherlane.engine.dynamics.body.kinematics import frames, kinematics
from featherlane.engine.dynamics.body.newton_euler import rne
from featherlane.engine.dynamics.inertia.joint_space import crb, factor_m
from featherlane.engine.dynamics.integrator.smooth import energy, smooth_acceleration
from featherlane.engine.dynamics.passive.forces import passive
from featherlane.engine.simulation.tile.workspace import Workspace
from scenes.states import kicked

WIDTHS = (1, 8)
STEP = 1e-5  # rad/s, m/s: of difference quotients, which are exact for forces quadratic in the velocities
FORWARD = (
    kinematics,
    frames,
    com_pos,
    crb,
    factor_m,
    transmission,
    com_vel,
    passive,
    rne,
    actuation,
    smooth_acceleration,
    energy,
)

# every joint type, joints that share a body, branches, simple and uncoupled bodies, springs,
# dampers and their polynomials, gravity compensation, and saturating actuators
XML = """
<mujoco>
  <compiler autolimits="true"/>
  <option timestep="0.01" gravity="0.3 -0.2 -9.6"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body pos="0 0 1" gravcomp=".4">
      <freejoint/>
      <geom type="box" size=".1 .2 .3" pos=".03 .02 -.05" euler="10 20 30"/>
      <body pos="0 .3 0" gravcomp="1">
        <joint name="ball" type="ball" damping=".3 .1 .05" stiffness="3 1 .5"/>
        <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 .2"/>
        <body pos=".3 0 0" quat=".9 .1 .2 .3">
          <joint name="hinge" axis="1 2 3" pos=".02 .01 0" damping=".2" armature=".01" stiffness="2 .3 .2"
            actuatorgravcomp="true" actuatorfrcrange="-3 3"/>
          <joint name="slide" type="slide" axis="0 1 1" damping="1 .5 .2" stiffness="10" springref=".1"/>
          <geom type="capsule" size=".04" fromto="0 0 0 .2 .1 0"/>
          <site pos=".1 0 0" euler="0 30 10"/>
        </body>
      </body>
      <body pos="0 -.3 .1">
        <joint name="cardan" axis="0 1 0"/>
        <joint name="cardan2" axis="1 0 0" pos="0 .1 0"/>
        <geom type="ellipsoid" size=".05 .1 .2"/>
      </body>
    </body>
    <body pos="2 0 1"><freejoint name="lone"/><geom type="box" size=".1 .2 .4" pos=".1 .05 .02"/></body>
    <body pos="3 0 1">
      <joint name="simple" type="free" damping=".1" stiffness="2"/>
      <geom type="box" size=".1 .2 .4"/>
    </body>
    <body pos="4 0 1"><joint type="ball" damping=".01"/><geom type="box" size=".1 .2 .4" pos="0 0 .2"/></body>
    <body pos="5 0 1"><joint type="slide" axis="1 0 0"/><geom size=".1"/></body>
    <body pos="6 0 1" mocap="true" quat=".5 .5 .5 .6"><geom size=".1"/><site pos=".1 .2 .3" euler="10 0 0"/></body>
  </worldbody>
  <actuator>
    <motor joint="hinge" gear="2"/>
    <position joint="hinge" kp="5" kv="1" forcerange="-2 2"/>
    <velocity joint="slide" kv="3" ctrlrange="-.5 .5"/>
    <general joint="cardan" gaintype="affine" gainprm="2 .1 .3" biastype="affine" biasprm=".1 -.2 -.3" group="3"/>
    <position joint="ball" kp="2" kv=".5" gear=".5 1 .2"/>
    <velocity joint="lone" kv=".4" gear="1 2 3 .4 .5 .6"/>
    <velocity joint="simple" kv=".4" gear="1 2 3 .4 .5 .6"/>
    <damper joint="cardan2" kv="2" ctrlrange="0 1"/>
  </actuator>
</mujoco>
"""

JOINTS = (
    '<joint type="hinge" axis="{0}" pos="{1}" armature="{2}"/>',
    '<joint type="slide" axis="{0}" armature="{2}"/>',
    '<joint type="ball" pos="{1}" armature="{2}"/>',
    '<joint type="slide" axis="{0}"/><joint type="hinge" axis="{1}" pos="{0}"/><joint type="hinge" axis="{0}"/>',
    "",
)


def random_tree(rng: np.random.Generator, nbody: int, floating: bool = False) -> str:
    """Returns MJCF of a random tree: all joint types, any branching, general inertias.

    Args:
        rng: random generator.
        nbody: bodies.
        floating: the root is a free joint, and no constraint or armature holds the tree.
    """

    def numbers(n, scale=1.0):
        return " ".join(f"{x:.6f}" for x in scale * rng.standard_normal(n))

    def body(i):
        kind = JOINTS[rng.integers(len(JOINTS))].format(
            numbers(3), numbers(3, 0.2), 0 if floating else rng.uniform(0, 0.2)
        )
        if i == 0:
            kind = (
                "<freejoint/>"
                if floating or rng.random() < 0.5
                else JOINTS[rng.integers(3)].format("1 2 3", "0 0 .1", 0.1)
            )
        moments = rng.uniform(0.5, 1.0, 3) * rng.uniform(0.02, 0.3)
        inertia = f'mass="{rng.uniform(0.2, 3):.6f}" diaginertia="{" ".join(f"{x:.6f}" for x in moments)}"'
        inside = "".join(body(k) for k in children[i])
        return (
            f'<body pos="{numbers(3, 0.3)}" quat="{numbers(4)}">{kind}'
            f'<inertial pos="{numbers(3, 0.1)}" quat="{numbers(4)}" {inertia}/>{inside}</body>'
        )

    children = [[] for _ in range(nbody)]
    for i in range(1, nbody):
        children[rng.integers(i)].append(i)
    return f'<mujoco><option gravity="{numbers(3, 5)}"/><worldbody>{body(0)}</worldbody></mujoco>'


def fill(ws: Workspace, lane: int, **state) -> None:
    """Sets fields of one world."""
    for name, value in state.items():
        value = np.ravel(value)
        ws.arrays[name][: value.size, lane] = value


def random_state(model, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Returns a random state with controls and forces."""
    qpos, qvel = kicked(model, rng)
    return {
        "qpos": qpos,
        "qvel": qvel,
        "ctrl": 2 * rng.standard_normal(model.nu),
        "qfrc_applied": rng.standard_normal(model.nv),
        "xfrc_applied": rng.standard_normal((model.nbody, 6)) * (rng.random((model.nbody, 1)) < 0.5),
    }


def forward(ws: Workspace) -> None:
    """Runs all smooth stages, and sets qacc = qacc_smooth."""
    for stage in FORWARD:
        ws.run(stage)
    ws.arrays["qacc"][...] = ws.arrays["qacc_smooth"]


def relative(found, expected) -> float:
    """Returns the largest error over max(1, largest expected)."""
    found, expected = np.ravel(found), np.ravel(expected)
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max())) if expected.size else 0.0


def dense(model, rows: np.ndarray) -> np.ndarray:
    """Returns a symmetric matrix from its lower rows (CSR)."""
    M = np.zeros((model.nv, model.nv))
    for i in range(model.nv):
        at = slice(model.M_rowadr[i], model.M_rowadr[i] + model.M_rownnz[i])
        M[i, model.M_colind[at]] = M[model.M_colind[at], i] = rows[at]
    return M


def dense_rate(model, values):
    """Returns a matrix on the pattern of D, dense."""
    A = np.zeros((model.nv, model.nv))
    A[np.repeat(np.arange(model.nv), model.D_rownnz), model.D_colind] = values
    return A


def differences(model, data, force):
    """Returns d force() / d qvel by central differences; force computes from the current data."""
    A, v = np.zeros((model.nv, model.nv)), data.qvel.copy()
    for k in range(model.nv):
        for sign in (1.0, -1.0):
            data.qvel = v
            data.qvel[k] += sign * STEP
            A[:, k] += sign * force() / (2 * STEP)
    data.qvel = v
    return A
