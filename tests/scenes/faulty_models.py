"""Defines small valid models into which tests of the doctor insert faults."""

import numpy as np

BALL = """<mujoco><option timestep=".002"/><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="ball" pos="0 0 .1"><freejoint/><geom name="skin" size=".1" density="1000"/></body></worldbody></mujoco>"""
TWO_BALLS = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="low" pos="0 0 .1"><freejoint/><geom size=".1" density="1000"/></body>
<body name="high" pos="0 0 .3"><freejoint/><geom size=".1" density="1000"/></body></worldbody></mujoco>"""
INERTIAL = """<mujoco><worldbody><body name="link"><joint name="pin" axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/><geom size=".1"/></body></worldbody></mujoco>"""
ARM = """<mujoco><option timestep=".002"/><worldbody><body name="upper"><joint name="pin" axis="0 1 0" range="-90 90"
damping="1" stiffness="0"/><geom type="capsule" size=".04" fromto="0 0 0 0 0 -.5"/><site name="tip" pos="0 0 -.5"/>
<body name="lower" pos="0 0 -.5"><joint name="knee" axis="0 1 0" range="-90 90" damping="1"/>
<geom type="capsule" size=".04" fromto="0 0 0 0 0 -.5"/></body></body></worldbody>
<actuator><motor name="drive" joint="pin" gear="1" ctrlrange="-1 1"/></actuator>
<sensor><velocimeter name="speed" site="tip"/></sensor>
<keyframe><key name="bent" qpos=".5 .5" ctrl=".5"/></keyframe></mujoco>"""
SERVO = ARM.replace("<motor", "<position").replace('gear="1"', 'kp="10" kv="2"')
LIMITED = ARM.replace('gear="1"', 'gear="1" forcerange="-1 1"').replace(
    'name="pin"', 'name="pin" actuatorfrcrange="-1 1"'
)
LOOP = """<mujoco><worldbody><body name="a"><joint axis="0 1 0" damping=".1"/>
<geom type="capsule" size=".04" fromto="0 0 0 .5 0 0"/></body><body name="b" pos="1 0 0"><joint axis="0 1 0"/>
<geom type="capsule" size=".04" fromto="0 0 0 -.5 0 0"/></body></worldbody>
<equality><weld name="shut" body1="a" body2="b"/></equality></mujoco>"""
TOUCH = """<mujoco><worldbody><geom type="plane" size="5 5 1"/><body name="foot" pos="0 0 .1"><freejoint/>
<geom name="sole" size=".1"/><site name="pad" size=".11"/></body></worldbody>
<sensor><touch name="felt" site="pad"/></sensor></mujoco>"""
APART = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
<body name="ball" pos="0 0 1"><freejoint/><geom name="skin" size=".1"/></body><body name="box" pos="1 0 1"><freejoint/>
<geom name="side" type="box" size=".05 .05 .05"/></body></worldbody><sensor>
<distance name="gap" geom1="skin" geom2="side" cutoff="2"/></sensor></mujoco>"""
LINKS = 100


def chain(*branches: int) -> str:
    """Returns branches of so many balls on hinges, one inside the other, from one body on a hinge."""
    link = '<body pos=".1 0 0"><joint axis="0 1 0"/><geom size=".05" contype="0" conaffinity="0"/>'
    return (
        '<mujoco><worldbody><body name="root"><joint axis="0 0 1"/><geom size=".05" contype="0" conaffinity="0"/>'
        + "".join(link * n + "</body>" * n for n in branches)
        + "</body></worldbody></mujoco>"
    )


def crowd(n: int, geom: str) -> str:
    """Returns n free bodies over a floor, and a height field far away."""
    bodies = "".join(f'<body pos="{3 * k} 0 2"><freejoint/><geom {geom}/></body>' for k in range(n))
    return (
        '<mujoco><asset><hfield name="hill" nrow="4" ncol="4" size="1 1 .1 .1"/></asset><worldbody>'
        f'<geom name="floor" type="plane" size="5 5 1"/>{bodies}<geom name="hill" type="hfield" hfield="hill" '
        'pos="0 0 -9" contype="0" conaffinity="0"/></worldbody></mujoco>'
    )


def sphere_mesh(points: int) -> str:
    """Returns a ball whose hull has so many vertices, over a floor."""
    at = np.random.default_rng(0).standard_normal((points, 3))
    text = " ".join(f"{x:.5f}" for x in (at / np.linalg.norm(at, axis=1, keepdims=True)).ravel())
    return (
        f'<mujoco><asset><mesh name="ball" vertex="{text}"/></asset><worldbody><geom type="plane" size="5 5 1"/>'
        '<body pos="0 0 1.1"><freejoint/><geom name="skin" type="mesh" mesh="ball"/></body></worldbody></mujoco>'
    )
