"""Defines mechanisms that equalities close: a coupled pair, a four-bar linkage, a Stewart platform."""

import numpy as np

FREE = '<default><geom contype="0" conaffinity="0"/></default>'

# a servo drives a light link, which an equality couples to a heavy body
COUPLED = f"""<mujoco><option timestep=".001"/>{FREE}<worldbody>
<body name="light"><joint name="a" type="slide" axis="0 0 1"/><geom size=".02" mass=".01"/><site name="p"/></body>
<body name="heavy"><joint name="b" type="slide" axis="0 0 1"/><geom size=".2" mass="10"/><site name="q"/></body>
</worldbody><equality>{{equality}}</equality>
<actuator><position name="servo" joint="a" kp="50000" kv="{{kv}}"/></actuator></mujoco>"""
STIFF = 'solref=".004 1" solimp=".99 .999 .001"'
CONNECT, JOINT = '<connect site1="p" site2="q" {}/>', '<joint joint1="a" joint2="b" {}/>'
FOUR_BAR = f"""<mujoco><option timestep=".002"/>{FREE}<worldbody>
<body><joint name="crank" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 .2"/>
<body name="rod" pos="0 0 .2"><joint axis="0 1 0" damping=".01"/>
<geom type="capsule" size=".02" fromto="0 0 0 .5 0 .1"/></body></body>
<body name="rocker" pos=".5 0 0"><joint axis="0 1 0" stiffness="3"/>
<geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/></body></worldbody>
<equality><connect body1="rod" body2="rocker" anchor=".5 0 .1"/></equality>
<actuator><position name="servo" joint="crank" kp="300" kv="{{kv}}"/></actuator></mujoco>"""


def stewart(integrator: str, kv: float = 300, mass: float = 10) -> str:
    """Returns a platform on six legs with servos on their slides, which connects close."""
    legs = closures = servos = ""
    for k in range(6):
        low, high = np.pi / 3 * (k // 2 * 2 + (k % 2) * 0.4), np.pi / 3 * (k // 2 * 2 + (1 - k % 2) * 0.4)
        foot, top = (
            np.array([0.4 * np.cos(low), 0.4 * np.sin(low), 0]),
            np.array([0.2 * np.cos(high), 0.2 * np.sin(high), 0.5]),
        )
        along, length = (top - foot) / np.linalg.norm(top - foot), np.linalg.norm(top - foot)
        at, axis, end = (" ".join(f"{x:.9g}" for x in v) for v in (foot, along, along * length))
        legs += f"""<body pos="{at}"><joint type="ball"/><geom type="capsule" size=".01" mass=".1"
        fromto="0 0 0 {end}"/>
        <body name="rod{k}"><joint name="leg{k}" type="slide" axis="{axis}"/>
        <geom size=".01" mass=".02" pos="{end}"/></body></body>"""
        closures += f'<connect body1="rod{k}" body2="top" anchor="{end}" solref=".004 1" solimp=".99 .999 .001"/>'
        servos += f'<position name="servo{k}" joint="leg{k}" kp="20000" kv="{kv}"/>'
    return f"""<mujoco><option timestep=".001" integrator="{integrator}"/>{FREE}<worldbody>{legs}
    <body name="top" pos="0 0 .5"><freejoint/><geom type="cylinder" size=".2 .02" mass="{mass}"/></body></worldbody>
    <equality>{closures}</equality><actuator>{servos}</actuator></mujoco>"""
