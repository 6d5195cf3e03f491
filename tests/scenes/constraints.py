"""Defines models with every kind of row, and copies MuJoCo's states of them into a tile."""

from __future__ import annotations

import mujoco
import numpy as np

from featherlane.engine.model import load
from featherlane.engine.simulation.tile.workspace import Workspace

# slides, hinges and balls with limits, mixed in one tree and over two trees; friction loss on dofs of every joint type
JOINTS = """
<mujoco>
  <option timestep="0.004" jacobian="dense"><flag contact="disable"/></option>
  <default><geom size="0.1" density="800"/></default>
  <worldbody>
    <body>
      <joint type="slide" axis="1 0 0" limited="true" range="-0.2 0.3" margin="0.05" frictionloss="0.7"/>
      <joint type="hinge" axis="0 1 0" limited="true" range="-20 30"/>
      <geom/>
      <body pos="0.3 0 0">
        <joint type="ball" limited="true" range="0 35" margin="0.02" frictionloss="0.3"/>
        <geom pos="0 0.2 0"/>
        <body pos="0.3 0 0">
          <joint type="hinge" axis="0 0 1" limited="true" range="-10 10" margin="0.3"/>
          <geom pos="0.1 0.2 0"/>
        </body>
      </body>
    </body>
    <body pos="0 0 1">
      <freejoint/>
      <geom/>
      <body pos="0 0.4 0">
        <joint type="ball" limited="true" range="0 120"/>
        <joint type="slide" frictionloss="2"/>
        <geom pos="0 0.2 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

# contacts of dimension 1 and 3, with the world and between trees, in the gap and in the margin; one explicit pair
CONTACTS = """
<mujoco>
  <option timestep="0.004" jacobian="dense"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.8"/>
    <body pos="0 0 0.08">
      <freejoint/>
      <geom name="ball" size="0.1" friction="0.6" priority="1" solref="0.03 0.7"/>
      <body pos="0.25 0 0">
        <joint axis="0 1 0"/>
        <geom type="capsule" size="0.08" fromto="0 0 0.02 0.2 0 0.01" condim="1"/>
      </body>
    </body>
    <body pos="0 0 0.27">
      <freejoint/>
      <geom name="top" size="0.1" condim="1" priority="2"/>
    </body>
    <body pos="1 0 0.105">
      <freejoint/>
      <geom size="0.1" margin="0.02" gap="0.01" solimp="0.8 0.95 0.02 0.3 3"/>
    </body>
    <body pos="2 0 0.115">
      <freejoint/>
      <geom size="0.1" margin="0.01" gap="0.02"/>
    </body>
    <body pos="3 0 0.09">
      <freejoint/>
      <geom name="left" size="0.1" contype="0" conaffinity="0"/>
      <body pos="0.1 0 0"><geom name="right" size="0.1" contype="0" conaffinity="0"/></body>
      <body pos="0 0.15 0">
        <joint type="ball"/>
        <geom name="near" size="0.1" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <contact>
    <pair geom1="left" geom2="near" friction="0.5 0.9 0 0 0" condim="3"/>
    <pair geom1="left" geom2="right"/>
  </contact>
</mujoco>
"""


# fields from which rows are made
COPIED = "qpos qvel qacc xpos xquat xmat subtree_com cdof cvel qLD qLDiagInv eq_active".split()


def forward(mj, qpos, qvel):
    """Returns MuJoCo's data in a state, with every `efc_` array."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(mj, data)
    return data


def tile(mj, states, stage, dtype=np.float64):
    """Returns a workspace with one world for each of MuJoCo's states, after a stage.

    Contacts come from MuJoCo; all worlds share the slots, sorted by candidates, then by points.
    """
    workspace = Workspace(load(mj), len(states), dtype)
    for lane, data in enumerate(states):
        for name in COPIED:
            workspace.arrays[name][: getattr(data, name).size, lane] = np.ravel(getattr(data, name))
    fill_contacts(workspace, states)
    workspace.run(stage)
    return workspace


def fill_contacts(workspace, states):
    """Fills the slots with all worlds' contacts: a world's n-th contact of a candidate takes its n-th slot."""
    model, arrays = workspace.model, workspace.arrays
    pairs = [tuple(sorted(pair)) for pair in zip(model.cand_geom1.tolist(), model.cand_geom2.tolist(), strict=True)]
    found = {}
    for lane, data in enumerate(states):
        seen = {}
        for contact in data.contact:
            cand = pairs.index(tuple(sorted(contact.geom.tolist())))
            seen[cand] = seen.get(cand, -1) + 1
            found.setdefault((cand, seen[cand]), []).append((lane, contact))
    arrays["ncon_slot"][0] = len(found)
    for k, key in enumerate(sorted(found)):
        geoms = found[key][0][1].geom
        arrays["con_cand"][k], arrays["con_pair"][k] = key[0], model.cand_pair[key[0]]
        arrays["con_dim"][k] = found[key][0][1].dim
        arrays["con_geom"][2 * k : 2 * k + 2], arrays["con_carrier"][2 * k : 2 * k + 2] = (
            geoms,
            model.geom_bodyid[geoms],
        )
        for lane, contact in found[key]:
            arrays["con_present"][k, lane] = 1.0
            for name in ("dist", "pos", "frame", "includemargin", "friction", "solref", "solreffriction", "solimp"):
                value = np.ravel(getattr(contact, name))
                arrays[f"con_{name}"][value.size * k : value.size * (k + 1), lane] = value
