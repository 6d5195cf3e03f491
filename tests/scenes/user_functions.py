"""Defines user callbacks for activation, gain and bias, as kernels, and the same for MuJoCo's callbacks."""

from __future__ import annotations

import contextlib

import mujoco
import numpy as np

import featherlane as fl
from featherlane.engine.lanes import exp, fabs
from scenes.actuators import scene

RATE = 'dyntype="user" dynprm="0.04"'
RATES = 'dyntype="user" actdim="2" dynprm="0.04 0.07"'
GAIN = 'gaintype="user" gainprm="2 0.6"'
BIAS = 'biastype="user" biasprm="0.3 -0.7"'
AFFINE = 'gaintype="affine" gainprm="2 -3 -1" biastype="affine" biasprm="0.3 -4 -0.7"'
# every kind of call of a function by an actuator; %s is a joint
USER = {
    "gain": f'<general {{j}} {GAIN} ctrlrange="-0.5 0.7"/>',
    "bias": f"<general {{j}} {BIAS}/>",
    "gain-bias-forcerange": f'<general {{j}} {GAIN} {BIAS} forcerange="-0.8 1"/>',
    "gain-affine-bias": f'<general {{j}} {GAIN} biastype="affine" biasprm="0.3 -4 -0.7"/>',
    "bias-affine-gain": f'<general {{j}} gaintype="affine" gainprm="2 -3 -1" {BIAS}/>',
    "gain-filter": f'<general {{j}} dyntype="filterexact" dynprm="0.03" actearly="true" {GAIN}/>',
    "activation": f"<general {{j}} {RATE} {AFFINE}/>",
    "activation-early-limited": f'<general {{j}} {RATE} actearly="true" actlimited="true" actrange="-0.2 0.3" '
    f"{AFFINE}/>",
    "activation-delay": f'<general {{j}} {RATE} delay="0.02" nsample="3" {AFFINE}/>',
    "activations": f"<general {{j}} {RATES} {AFFINE}/>",
    "activations-early": f'<general {{j}} {RATES} actearly="true" actlimited="true" actrange="-0.2 0.3"/>',
    "all": f"<general {{j}} {RATE} {GAIN} {BIAS}/>",
    "all-several": f'<general {{j}} {RATES} actearly="true" {GAIN} {BIAS} forcerange="-0.8 1"/>',
    "group": f'<general {{j}} group="3" {RATE} {GAIN} {BIAS}/>',
}


@fl.kernel
def rate(m, d, i):
    """Computes a filter."""
    a, u = m.actuator_actadr[i], d.actuator_input[m.actuator_ctrladr[i]]
    return (u - d.act[a]) / m.actuator_dynprm[i][0]


@fl.kernel
def rates(m, d, i):
    """Computes two filters in series."""
    a = m.actuator_actadr[i]
    return rate(m, d, i), (d.act[a] - d.act[a + 1]) / m.actuator_dynprm[i][1]


@fl.kernel
def gain(m, d, i):
    return m.actuator_gainprm[i][0] * exp(-m.actuator_gainprm[i][1] * d.actuator_length[m.actuator_outadr[i]])


@fl.kernel
def bias(m, d, i):
    v = d.actuator_velocity[m.actuator_outadr[i]]
    return m.actuator_biasprm[i][0] + fl.lanes.fma(m.actuator_biasprm[i][1] * v, fabs(v), 0.0)


KERNELS = {"gain": gain, "bias": bias}


def user_scene(name: str, integrator: str = "Euler") -> mujoco.MjModel:
    """Returns MuJoCo's model with two actuators of a branch: one on a hinge, one on a slide."""
    actuators = USER[name].format(j='name="turn" joint="hinge" gear="0.7"')
    actuators += USER[name].format(j='name="push" joint="slide" gear="-1.3"')
    option = 'actuatorgroupdisable="3"' if name == "group" else ""
    mj = mujoco.MjModel.from_xml_string(scene(actuators, integrator, option))
    mj.opt.tolerance = 0
    return mj


def given(model, plain=False) -> dict:
    """Returns the functions that the model's actuators need, by kind."""
    out = {k: f for k, f in KERNELS.items() if (getattr(model, f"actuator_{k}type") == (6 if k == "gain" else 5)).any()}
    if (model.actuator_dyntype == 7).any():
        out["activation"] = rates if model.actuator_actnum.max() > 1 else rate
    return {k: f.function for k, f in out.items()} if plain else out


def loaded(mj: mujoco.MjModel, plain: bool = False) -> fl.Model:
    """Returns the model with its functions registered."""
    model = fl.load(mj)
    fl.set_user_actuator(model, **given(model, plain))
    return model


# ---- the same for MuJoCo ---------------------------------------------------------------------------------------------
def act_dyn(m, d, i):
    u = np.full((1, 1), d.ctrl[m.actuator_ctrladr[i]])
    if m.actuator_delay[i]:
        mujoco.mj_readCtrl(m, d, i, d.time, u, int(m.actuator_history[i, 1]))
    a, tau = m.actuator_actadr[i], m.actuator_dynprm[i]
    first = (u[0, 0] - d.act[a]) / tau[0]
    if m.actuator_actnum[i] == 1:
        return first
    d.act_dot[a], d.act_dot[a + 1] = first, (d.act[a] - d.act[a + 1]) / tau[1]
    return 0.0


def act_gain(m, d, i):
    prm = m.actuator_gainprm[i]
    return prm[0] * np.exp(-prm[1] * d.actuator_length[m.actuator_outadr[i]])


def act_bias(m, d, i):
    v = d.actuator_velocity[m.actuator_outadr[i]]
    return m.actuator_biasprm[i, 0] + m.actuator_biasprm[i, 1] * v * abs(v)


@contextlib.contextmanager
def callbacks(**functions):
    """Sets MuJoCo's callbacks inside this block, by default those of actuators; no model can be loaded there."""
    functions = functions or {"act_dyn": act_dyn, "act_gain": act_gain, "act_bias": act_bias}
    for name, function in functions.items():
        getattr(mujoco, f"set_mjcb_{name}")(function)
    try:
        yield
    finally:
        for name in functions:
            getattr(mujoco, f"set_mjcb_{name}")(None)
