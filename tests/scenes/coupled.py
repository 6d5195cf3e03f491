"""Defines scenes whose rows couple branches: free bodies, arms and chains of balls that overlap."""

from __future__ import annotations

import mujoco

ARM = ("1 0 0", "0 1 0", "0 0 1")


def arm(name, at, n, bend=0):
    """Returns n hinges in a row, three per body; at body `bend` a second branch of two bodies starts."""
    text, end = "", ""
    for k in range(n):
        joints = "".join(f'<joint axis="{ARM[(k + i) % 3]}" limited="true" range="-9 9"/>' for i in range(1 + k % 3))
        text += f'<body pos="{at if k == 0 else "0.12 0 0"}">{joints}<geom type="capsule" fromto="0 0 0 0.1 0 0"/>'
        if k == bend:
            text += '<body pos="0 0.1 0"><joint axis="1 0 0" frictionloss="0.2"/><geom pos="0 0.05 0"/></body>'
        end += "</body>"
    return text + end


def balls(at, n):
    """Returns n limited ball joints in a row."""
    text = ""
    for k in range(n):
        text += f'<body pos="{at if k == 0 else "0.12 0 0"}"><joint type="ball" limited="true" range="0 20"/>'
        text += '<geom type="capsule" fromto="0 0 0 0.1 0 0"/>'
    return text + "</body>" * n


def mixed(cone="pyramidal", condim=3, impratio=1.0, tolerance=0):
    """Returns three free bodies, one with a leg, an arm of 11 dofs, one of 3, a chain of 4 balls, all at one place."""
    free = "".join(f'<body pos="0.1 {0.05 * i} 0.1"><freejoint/><geom size="0.06"/></body>' for i in range(2))
    leg = '<body pos="0.15 0 0.05"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -0.1"/></body>'
    text = f"""<mujoco><option cone="{cone}" impratio="{impratio}" tolerance="{tolerance}" iterations="100"
        ls_iterations="100" jacobian="dense"/>
      <default><geom size="0.04" condim="{condim}" friction="0.7 0.03 0.01"/></default>
      <worldbody><geom type="plane" size="5 5 1"/>
        {arm("a", "-0.2 0 0.1", 5, 2)}
        <body pos="0.2 0.1 0.1"><freejoint/><geom type="capsule" fromto="-0.1 0 0 0.1 0 0"/>{leg}</body>
        {balls("0 -0.1 0.12", 4)}{free}{arm("b", "0 0.35 0.1", 2, 9)}
      </worldbody></mujoco>"""
    return mujoco.MjModel.from_xml_string(text)


def states(mj, n, rng, spread=None):
    """Returns n states (qpos, qvel) about qpos0, at this distance [m, rad] or, in turn, from near to far."""
    found = []
    for k in range(n):
        data = mujoco.MjData(mj)
        step = rng.normal(0, spread or (0.02, 0.1, 0.3, 1.0)[k % 4], mj.nv)
        mujoco.mj_integratePos(mj, data.qpos, step, 1.0)
        data.qvel[:] = rng.normal(0, 0.5, mj.nv)
        found.append((data.qpos.copy(), data.qvel.copy()))
    return found


def truth(mj, state):
    """Returns MuJoCo's data of a state."""
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = state
    mujoco.mj_forward(mj, data)
    return data


def put(w, lane, state):
    """Sets one world of a workspace to a state."""
    for name, value in zip(("qpos", "qvel"), state, strict=True):
        w.arrays[name][: len(value), lane] = value
    w.arrays["qacc_warmstart"][:, lane] = 0.0


def ancestors(parents, i):
    """Returns dof i and all above it."""
    found = []
    while i >= 0:
        found.append(int(i))
        i = parents[i]
    return found
