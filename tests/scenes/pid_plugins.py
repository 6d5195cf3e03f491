"""Actuators with MuJoCo's plugin mujoco.pid: its parts, each on a hinge, a slide and a tendon."""

from __future__ import annotations

ALL = {"kp": 12, "ki": 30, "kd": 1.5, "imax": 0.8, "slewmax": 3}
# name -> (attributes of the element, configuration)
CASES = {
    "p": ("", {"kp": 9}),
    "pd": ('ctrlrange="-.5 .5"', {"kp": 9, "kd": 0.7}),
    "pi": ('actdim="1" forcerange="-4 4"', {"kp": 9, "ki": 4}),
    "negative": ('actdim="1"', {"kp": 9, "ki": -2}),
    "bounded": ('actdim="1" ctrlrange="-.5 .5"', {"kp": 9, "ki": 40, "imax": 0.5}),
    "slewed": ('actdim="1"', {"kp": 9, "kd": 0.7, "slewmax": 2}),
    "all": ('actdim="2"', ALL),
    "filtered": ('actdim="3" dyntype="filter" dynprm=".03"', ALL),
    "exact": ('actdim="3" dyntype="filterexact" dynprm=".03" actearly="true"', ALL),
    "integrated": ('actdim="2" dyntype="integrator" actlimited="true" actrange="-.3 .3"', {"kp": 9, "ki": 4, "kd": 1}),
    "early": ('actdim="1" dyntype="integrator" actearly="true"', {"kp": 9, "kd": 1}),
}
SCENE = """<mujoco><compiler autolimits="true"/><option timestep=".005" integrator="{integrator}"/>
<extension><plugin plugin="mujoco.pid"/></extension><worldbody><body>
<joint name="hinge" damping=".1" armature=".01"/><geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
<body pos=".3 0 0"><joint name="slide" type="slide" axis="1 0 0" armature=".02"/><geom size=".05"/></body></body>
</worldbody><tendon><fixed name="both" actuatorfrcrange="-5 5"><joint joint="hinge" coef="1"/>
<joint joint="slide" coef=".4"/></fixed></tendon><actuator>{actuators}</actuator></mujoco>"""


# MuJoCo clamps the sum on a tendon only if an actuator without plugin acts on a tendon with a limited sum
OTHER = '<motor joint="hinge"/><motor tendon="both"/>'


def plugin(name: str, where: str) -> str:
    attributes, config = CASES[name]
    keys = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
    place = where.split('"')[1]
    return f'<plugin name="{name} {place}" plugin="mujoco.pid" {where} {attributes}>{keys}</plugin>'


def scene(*names: str, integrator: str = "Euler") -> str:
    on = ('joint="hinge" gear=".7"', 'joint="slide" gear="-1.3"', 'tendon="both"')
    actuators = "".join(plugin(name, place) for name in names for place in on)
    return SCENE.format(integrator=integrator, actuators=OTHER + actuators)
