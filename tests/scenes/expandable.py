"""Defines a machine in which every real field of a model has an effect, and two values of each for worlds."""

from __future__ import annotations

import numpy as np

import featherlane as fl
from featherlane.engine.model import simple_bodies
from featherlane.engine.model.enums import WRAP_CYLINDER, WRAP_SPHERE
from scenes.signed_distance import heap

MACHINE = """
<mujoco>
<extension><plugin plugin="mujoco.pid"/></extension>
<option timestep=".004" density="1.2" viscosity=".01" wind=".3 .1 0" magnetic="0 -.5 .1" {option}>
  <flag {flags}/></option>
<worldbody>
  <geom name="floor" type="plane" size="9 9 1" friction=".8 .02 .01" solmix="2" solref=".03 1"
    surfacevel=".1 0 0 0 0 .2" gap=".004"/>
  <camera name="watcher" mode="track" pos="1 1 2" euler="10 20 30"/>
  <camera name="follower" mode="trackcom" pos="1 1 2"/>
  <body name="trunk" pos="0 0 .099" gravcomp=".2"><freejoint/>
    <geom name="trunk" type="box" size=".15 .1 .1" mass="3" pos=".01 0 0" condim="6" adhesion="3" margin=".002"
      fluidshape="ellipsoid"/>
    <site name="eye" pos=".1 0 .1" size=".1"/><site name="base" pos="0 0 -.05" size=".45"/>
    <camera name="lens" pos=".1 .1 .3" resolution="4 3" sensorsize=".03 .02" focal=".015 .03" principal=".002 -.004"/>
    <camera name="wide" pos=".1 .1 .3" resolution="4 3"/>
    <body name="arm" pos=".1 0 .2" gravcomp=".4">
      <joint name="shoulder" axis="0 1 0" pos="0 0 .01" range="-20 -.1" limited="true" margin=".05" frictionloss=".2"
        damping=".1 .02 .01" stiffness="2 .5 .1" springref="20" springyield=".1" armature=".01"
        actuatorfrcrange="-1 1" actuatorfrclimited="true" actuatorgravcomp="true"/>
      <geom name="arm" type="capsule" size=".03 .1" pos=".1 0 0" mass=".5" fluidshape="ellipsoid"/>
      <site name="palm" pos=".2 .02 0" size=".05"/>
      <body name="hand" pos=".25 0 0"><joint name="wrist" type="ball" range="0 10" limited="true" stiffness=".3"/>
        <geom name="hand" size=".05" mass=".2"/><site name="tip" pos=".05 0 .02" size=".02"/></body>
    </body>
  </body>
  <body name="cart" pos="0 1 .5"><joint name="rail" type="slide" axis="1 0 0" range="-.01 .2" limited="true"/>
    <geom name="cart" type="box" size=".1 .1 .05" mass="1"/>
    <site name="end" pos=".1 0 0"/><site name="crank" pos="-.1 0 0"/>
    <geom name="post" type="cylinder" size=".03 .1" pos=".05 .2 .1" contype="0" conaffinity="0"/>
    <body name="pole" pos="0 0 .1"><joint name="pole" axis="0 1 0" frictionloss="8"/>
      <geom name="pole" type="capsule" size=".02 .1" pos="0 0 .1" mass=".3"/><site name="top" pos=".05 .3 .2"/></body>
  </body>
  <body name="ball" pos=".6 0 .098"><freejoint/><geom name="ball" size=".1" mass=".4" adhesion="1"/>
    </body>
  <body name="cube" pos=".6 .6 .099"><freejoint/><geom name="cube" type="box" size=".1 .1 .1" mass=".6"/></body>
  <body name="dice" pos=".9 .6 .098"><freejoint/>
    <geom name="dice" type="box" size=".1 .1 .1" mass=".6" friction=".4"/></body>
  <body name="mocap" mocap="true" pos="0 0 2"><site name="side"/></body>
</worldbody>
<contact><pair geom1="ball" geom2="floor" condim="6" margin=".01" gap=".002" friction=".5 .4 .01 .01 .01" adhesion="2"
  solreffriction=".03 1"/></contact>
<tendon>
  <fixed name="fixed" limited="true" range=".01 .1" margin=".01" stiffness="3 1 .5" damping=".2 .1 .1"
    springlength="-.1 -.05" armature=".02" actuatorfrcrange="-.2 .2" actuatorfrclimited="true">
    <joint joint="shoulder" coef=".5"/><joint joint="rail" coef="1"/></fixed>
  <spatial name="wrap" stiffness="2" springlength=".1" springyield=".01" damping=".3" frictionloss="30">
    <site site="end"/>
    <geom geom="post" sidesite="side"/><site site="top"/><pulley divisor="2"/>
    <site site="end"/><site site="tip"/></spatial>
</tendon>
<equality>
  <connect body1="cube" body2="dice" anchor=".15 0 0"/>
  <joint joint1="rail" joint2="pole" polycoef="0.01 .3 0 0 0"/>
  {pull}
</equality>
<actuator>
  <motor joint="shoulder" gear="2" ctrlrange="-.2 .2" ctrllimited="true" armature=".01" damping=".1 .05 .02"/>
  <position joint="rail" kp="5" kv=".5" forcerange="-1.5 1.5" forcelimited="true" delay=".008" nsample="4"
    damping=".2"/>
  <general joint="pole" dyntype="filter" dynprm=".03" actrange="-.05 .05" actlimited="true" gainprm="3"
    biastype="affine" biasprm="0 -1 -.1"/>
  <muscle tendon="wrap" lengthrange=".1 1.5" scale="4"/>
  <motor tendon="fixed" armature=".01" damping=".1"/>
  <general name="crank" cranksite="crank" slidersite="end" cranklength=".3"/>
  <adhesion body="ball" gain="1" ctrlrange="0 1"/>
  <plugin plugin="mujoco.pid" joint="rail" actdim="2"><config key="kp" value="2"/><config key="ki" value="30"/>
    <config key="kd" value=".1"/><config key="imax" value=".02"/><config key="slewmax" value="2"/></plugin>
</actuator>
<sensor>
  <accelerometer site="eye" cutoff="8" noise=".1"/><magnetometer site="eye"/><rangefinder site="eye"/>
  <insidesite objtype="site" objname="tip" site="base"/>
  <framepos objtype="camera" objname="watcher"/><framexaxis objtype="camera" objname="watcher"/>
  <framepos objtype="camera" objname="follower"/><framequat objtype="camera" objname="lens"/>
  <camprojection site="tip" camera="lens"/><camprojection site="tip" camera="wide"/>
  <framepos objtype="site" objname="tip" delay=".008" nsample="4" interval=".008"/><tendonpos tendon="wrap"/>
  <actuatorpos actuator="crank"/><e_potential/><e_kinetic/><contact geom1="trunk" data="force dist" num="2"/>
  <framequat objtype="geom" objname="hand"/><framequat objtype="site" objname="tip"/>
</sensor>
</mujoco>
"""

# no adhesion, gravity compensation, surface velocity, or damping in it
SIMPLE = """
<mujoco><option timestep=".005" tolerance="0" iterations="50"/><worldbody>
<geom name="floor" type="plane" size="9 9 1"/>
<body pos="0 0 .0995"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <geom name="box" type="box" size=".1 .1 .1" mass="1"/>
  <body pos="0 0 .3"><joint name="hinge" axis="0 1 0"/>
    <geom type="capsule" size=".02 .1" pos=".1 0 0" mass=".3" contype="0" conaffinity="0"/></body></body>
<body pos="1 0 .0995"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
  <geom name="puck" type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="2 0 1"><joint name="slide" type="slide" axis="0 0 1"/><geom size=".1" mass="1"/></body>
</worldbody>
<contact><pair geom1="floor" geom2="puck"/></contact>
<tendon><fixed name="tendon"><joint joint="hinge" coef="1"/><joint joint="slide" coef=".5"/></fixed></tendon>
<actuator><motor joint="slide"/><motor joint="hinge"/><motor joint="hinge" gear="2"/><motor tendon="tendon"/></actuator>
</mujoco>
"""
LINKED = """
<mujoco><option timestep=".004"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="b" pos=".3 0 1"><freejoint/><geom size=".1" mass="2"/></body>
  <body name="c" pos=".6 .1 1" euler="10 20 30"><freejoint/><geom size=".1" mass="1"/></body>
  <body name="d" pos=".9 0 1"><freejoint/><geom size=".1" mass="1"/></body>
</worldbody></mujoco>
"""
LINKS = (
    fl.Link("hinge", "a", "b", anchor=(0.15, 0, 1), axis=(0, 1, 0), range=(-0.5, -0.001)),
    fl.Link("slider", "b", "c", axis=(1, 0, 0), range=(0.01, 0.5)),
    fl.Link("fixed", "c", "d"),
)
PULL = '<tendon tendon1="wrap" tendon2="fixed" polycoef=".05 1 0 0 0"/>'
OPTIONS = {"option": "", "flags": "", "pull": PULL}
# values that a field needs in place of these
NEEDS = {
    "opt_o_": {"flags": 'override="enable"'},
    "opt_noslip_tolerance": {"option": 'cone="elliptic" noslip_iterations="3" noslip_tolerance="1e-3"'},
    "opt_sleep_tolerance": {"flags": 'sleep="enable"', "pull": ""},
    "opt_impratio": {"option": 'cone="elliptic"'},
    "opt_ls_tolerance": {"option": 'iterations="3" tolerance="0" solver="CG"'},
    "stat_meaninertia": {"option": 'tolerance="0.1"'},
    "pair_solreffriction": {"option": 'cone="elliptic"'},
}
# groups of fields of which the others are set to 0
TOGETHER = (
    ("geom_adhesion", "pair_adhesion"),
    ("actuator_damping", "actuator_dampingpoly", "actuator_armature"),
)
# values of related fields under the contact model lcp
LCP = {
    "jnt_motor": {"jnt_motor_vel": 5.0, "jnt_motor_force": 50.0, "jnt_motor_fudge": 0.5},
    "jnt_stop": {"jnt_stop_bounce": 0.8},
    "geom": {"geom_restitution": 0.8, "geom_slip": 1e-3, "geom_cfm": 1e-4, "geom_fdir": (1.0, 0.2, 0.0)},
    "geom_stribeck": {"geom_friction_static": 3.0, "geom_stribeck_vel": 1.0},
    "geom_friction_static": {"geom_stribeck_vel": 100.0},
    "link_motor": {"link_motor_vel": 5.0, "link_motor_force": 500.0, "link_motor_fudge": 0.5},
    "link_stop": {"link_stop_bounce": 0.8},
}
# values with an effect, if 1.2 times the field's value has none
SOME = {
    **{"opt_tolerance": 0.3, "opt_ls_tolerance": 0.9, "opt_sleep_tolerance": 10.0, "stat_meaninertia": 1e6},
    **{"opt_lcp_tolerance": 0.5, "opt_noslip_tolerance": 0.5, "jnt_motor_cfm": 0.1, "link_motor_cfm": 0.1},
    "opt_sdf_tolerance": 1e-6,
    **{"geom_restitution_vel": 10.0, "geom_friction_static": 30.0},
}
# fields that act only where memory is allocated, and the fields that are positive there
MEMORY = {
    **{"actuator_delay": "actuator_history", "sensor_delay": "sensor_history"},
    **{"jnt_springyield": "jnt_springyield", "tendon_springyield": "tendon_springyield"},
}
UNIT = ("quat", "axis")


def load(name: str, contact_model: str) -> fl.Model:
    """Returns the model in which a field has an effect under a contact model, if it has any."""
    linked, options = name.startswith("link_"), OPTIONS
    if name == "opt_sdf_tolerance":
        model = fl.load(heap("octree", "capsule"))
        model.opt.contact_model = contact_model
        return model
    for start, needs in NEEDS.items():
        if name.startswith(start) and contact_model == "convex":
            options = OPTIONS | needs
    model = fl.load(LINKED, links=LINKS) if linked else fl.load(MACHINE.format(**options))
    model.opt.contact_model = "lcp" if linked else contact_model
    for start, values in LCP.items():
        if name.startswith(start) and model.opt.contact_model == "lcp":
            for field, value in values.items():
                getattr(model, field)[...] = value
    if name.startswith("opt_lcp") and not linked:
        model.opt.lcp_solver = "pgs"
    for other in {other for group in TOGETHER if name in group for other in group} - {name}:
        getattr(model, other)[...] = 0.0
    return model


def two_values(model: fl.Model, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns a field's value with zeros, if zero is allowed, and one without."""
    value, rng = getattr(model, name).copy(), np.random.default_rng(1)
    some = np.where(np.isfinite(value) & (value != 0.0), 1.2 * value, 0.05 + 0.1 * rng.random(value.shape))
    some = np.full_like(value, SOME[name]) if name in SOME else some
    if name.endswith(UNIT):
        some = value + 0.1 * rng.normal(size=value.shape)
        some /= np.linalg.norm(some, axis=-1, keepdims=True)
    if name in simple_bodies.ROWS:
        wrong, _ = simple_bodies.ROWS[name](model, some)
        some[wrong] = value[wrong]
    if name in MEMORY:
        some = np.where(getattr(model, MEMORY[name]).reshape(len(value), -1)[:, 0] > 0, some, value)
    if name == "wrap_prm":
        some = np.where(np.isin(model.wrap_type, (WRAP_SPHERE, WRAP_CYLINDER)), value, some)
    return (value if is_positive(name) else np.zeros_like(value)), some


def is_positive(name: str) -> bool:
    """Returns whether a field cannot be zero."""
    fields = (
        "timestep impratio relaxation meaninertia mass inertia M0 size cranklength dynprm pidprm lengthrange wrap_prm"
    )
    return name.endswith((*UNIT, "stribeck_vel", *fields.split()))
