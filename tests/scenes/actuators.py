"""Models for every branch of the actuator model: a row of joints of all types, and one kind of actuator each."""

from __future__ import annotations

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
MUSCLE = 'gaintype="muscle" biastype="muscle" lengthrange="-1.2 1.3"'
CURVES = "0.75 1.05 50 200 0.5 1.6 1.5 1.3 1.2"
AFFINE = 'gaintype="affine" gainprm="2 -3 -1" biastype="affine" biasprm="0.3 -4 -0.7"'
MOTOR = 'motorconst="0.6" resistance="1.5"'
LAG = 'inductance="0.006"'
HEAT = 'thermal="2 3 0 0.004 25 25"'
BRISTLES = 'lugre="30 0.2 0.3 0.4 0.1"'

# name: actuators; %s is a joint
ACTUATORS = {
    "motor": '<motor {j} ctrlrange="-0.5 0.7"/>',
    "position": '<position {j} kp="12" kv="1.5"/>',
    "forcerange": '<position {j} kp="12" kv="1.5" forcerange="-1 2"/>',
    "affine": f"<general {{j}} {AFFINE}/>",
    "integrator": f'<general {{j}} dyntype="integrator" {AFFINE}/>',
    "integrator-limited": f'<general {{j}} dyntype="integrator" actlimited="true" actrange="-0.01 0.02" {AFFINE}/>',
    "integrator-early": f'<general {{j}} dyntype="integrator" actearly="true" {AFFINE}/>',
    "intvelocity": '<intvelocity {j} kp="9" kv="0.5" actrange="-2 2"/>',
    "filter": f'<general {{j}} dyntype="filter" dynprm="0.04" {AFFINE}/>',
    "filter-early-limited": '<general {j} dyntype="filter" dynprm="0.04" actearly="true" actlimited="true" '
    f'actrange="-0.1 0.1" {AFFINE}/>',
    "filterexact": f'<general {{j}} dyntype="filterexact" dynprm="0.04" {AFFINE}/>',
    "filterexact-fast": f'<general {{j}} dyntype="filterexact" dynprm="0.004" actearly="true" {AFFINE}/>',
    "filterexact-limited": '<general {j} dyntype="filterexact" dynprm="0.03" actlimited="true" actrange="-0.2 0.3"/>',
    "position-filtered": '<position {j} kp="12" kv="1.5" timeconst="0.03"/>',
    "velocity": '<velocity {j} kv="2"/>',
    "damper": '<damper {j} kv="2" ctrlrange="0 1"/>',
    "cylinder": '<cylinder {j} area="2" timeconst="0.05" bias="0.1 -1 -0.2"/>',
    "muscle": '<muscle {j} lengthrange="-1.2 1.3" force="50"/>',
    "muscle-scaled": '<muscle {j} lengthrange="-1.2 1.3" scale="3" timeconst="0.02 0.05"/>',
    "muscle-smooth": '<muscle {j} lengthrange="-1.2 1.3" force="50" tausmooth="0.3"/>',
    "muscle-early": f'<general {{j}} dyntype="muscle" dynprm="0.01 0.04" actearly="true" {MUSCLE} gainprm="{CURVES}" '
    f'biasprm="{CURVES}"/>',
    "muscle-static": f'<general {{j}} {MUSCLE} gainprm="{CURVES}" biasprm="{CURVES}" forcerange="-30 5"/>',
    "muscle-gain": f'<general {{j}} gaintype="muscle" lengthrange="-1.2 1.3" gainprm="{CURVES}" biastype="affine" '
    'biasprm="1 -2 -0.3"/>',
    "muscle-bias": f'<general {{j}} dyntype="filter" dynprm="0.02" biastype="muscle" lengthrange="-1.2 1.3" '
    f'biasprm="{CURVES}"/>',
    "pid": '<pid {j} kp="12" kv="1.5"/>',
    "pid-all": '<pid {j} kp="12" kv="1.5" ki="7" imax="0.02" slewmax="3" input="pos vel ff"/>',
    "pid-velocity": '<pid {j} kp="0" kv="1.5" input="vel"/>',
    "pid-integral": '<pid {j} kp="12" kv="1.5" ki="30" input="pos ff"/>',
    "pid-slew": '<pid {j} kp="12" kv="1.5" slewmax="2" forcerange="-4 4"/>',
    "dcmotor": f"<dcmotor {{j}} {MOTOR}/>",
    "dcmotor-passive": f'<dcmotor {{j}} {MOTOR} input="none" {BRISTLES}/>',
    "dcmotor-lag": f"<dcmotor {{j}} {MOTOR} {LAG}/>",
    "dcmotor-hot": f"<dcmotor {{j}} {MOTOR} {HEAT}/>",
    "dcmotor-hot-lag": f"<dcmotor {{j}} {MOTOR} {HEAT} {LAG}/>",
    "dcmotor-bristles": f'<dcmotor {{j}} {MOTOR} {BRISTLES} cogging="0.2 7 0.3"/>',
    "dcmotor-servo": f'<dcmotor {{j}} {MOTOR} input="pos vel ff" controller="5 2 0.4"/>',
    "dcmotor-servo-all": f'<dcmotor {{j}} {MOTOR} {HEAT} {LAG} {BRISTLES} cogging="0.2 7 0.3" '
    'saturation="0 0 2" input="pos vel ff voltage" controller="5 2 0.4 3 0.05 1"/>',
    "dcmotor-hot-servo": f'<dcmotor {{j}} {MOTOR} {HEAT} input="pos vel" controller="5 2 0.4 3 0.05"/>',
    "dcmotor-saturated": f'<dcmotor {{j}} {MOTOR} {LAG} saturation="0.2 0.5"/>',
    "delay-hold": '<motor {j} delay="0.023" nsample="5"/>',
    "delay-linear": '<motor {j} delay="0.023" nsample="5" interp="linear"/>',
    "delay-cubic": f'<general {{j}} delay="0.023" nsample="6" interp="cubic" {AFFINE}/>',
    "delay-several": '<pid {j} kp="12" kv="1.5" ki="7" input="pos vel" delay="0.015" nsample="4" interp="linear"/>',
    "delay-filter": f'<general {{j}} dyntype="filterexact" dynprm="0.02" delay="0.02" nsample="3" {AFFINE}/>',
    "delay-short": '<motor {j} delay="0.5" nsample="3"/>',
    "history": '<motor {j} nsample="3"/>',
    "group": f'<general {{j}} group="3" dyntype="filter" dynprm="0.04" {AFFINE}/>',
    "group-muscle": '<muscle {j} group="3" lengthrange="-1.2 1.3" force="50"/>',
    "group-dcmotor": f"<dcmotor {{j}} {MOTOR} group='3' {BRISTLES} {LAG}/>",
    "group-limited": '<motor {j} group="3" forcerange="0.5 1"/>',
    "group-integrator": '<general {j} group="3" dyntype="integrator" actlimited="true" actrange="-0.1 0.1" '
    f"{AFFINE}/>",
}
SERVO = 'gaintype="so3" biastype="so3" gainprm="3" biasprm="0 -3 -0.2" dyntype="integrator"'
# joints other than a hinge and a slide: servos with several equivalent setpoints, and tendons
OTHERS = {
    "ball": '<position joint="ball" gear="1 0 0" kp="3" kv="0.2"/><position joint="ball" gear="0 0.6 0.8" kp="2"/>',
    "ball-integrator": '<intvelocity joint="ball" gear="0 1 0" kp="3" actrange="-20 20"/>',
    "ball-parent": '<position jointinparent="ball" gear="0 0 1" kp="3" kv="0.2"/>',
    "ball-pid": '<pid joint="ball" gear="0 1 0" kp="3" kv="0.2" ki="2" slewmax="9"/>',
    "ball-muscle": '<muscle joint="ball" gear="0 1 0" lengthrange="-1.2 1.3" force="5"/>',
    "orientation": '<orientation joint="ball" kp="3" kv="0.2"/>',
    "orientation-quat": '<orientation joint="ball" kp="3" kv="0.2" input="quat"/>',
    "orientation-integrator": f'<general joint="ball" {SERVO}/>',
    "orientation-early": f'<general joint="ball" {SERVO} actearly="true"/>',
    "orientation-delay": '<orientation joint="ball" kp="3" kv="0.2" delay="0.02" nsample="4" interp="linear"/>',
    "tendon": '<muscle tendon="string" lengthrange="-1 1" force="5"/><position tendon="string" kp="3" kv="0.2"/>',
    "tendon-limited": '<muscle tendon="bounded" lengthrange="-1 1" force="2"/><motor tendon="string"/>'
    '<position tendon="bounded" kp="3" kv="0.2"/>',
    "free": '<motor joint="free" gear="1 0 2 0 3 0"/><velocity joint="free" gear="0 0 0 0 0 1" kv="2"/>',
}
SCENE = """<mujoco><option timestep="0.01" integrator="{integrator}" {option}><flag {flag}/></option>
<compiler autolimits="true"/><worldbody>
  <body pos="0 0 3"><joint name="hinge" axis="0 1 0" armature="0.02" {joint}/>
    <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 -0.1" contype="0" conaffinity="0"/>
    <body pos="0.3 0 -0.1"><joint name="slide" type="slide" axis="1 0 0.2" damping="0.3" range="-0.4 0.5"/>
      <geom type="box" size="0.1 0.05 0.08" contype="0" conaffinity="0"/>
      <body pos="0.3 0 0"><joint name="ball" type="ball"/>
        <geom type="box" size="0.12 0.06 0.05" pos="0.05 0.02 0" contype="0" conaffinity="0" mass="2"/>
      </body></body></body>
  <body pos="2 0 3"><freejoint name="free"/>
    <geom type="box" size="0.2 0.1 0.3" contype="0" conaffinity="0" mass="3"/></body>
</worldbody>
<tendon><fixed name="string"><joint joint="hinge" coef="0.5"/><joint joint="slide" coef="-1"/></fixed>
  <fixed name="bounded" actuatorfrcrange="-0.3 0.4">
    <joint joint="hinge" coef="0.5"/><joint joint="slide" coef="1"/></fixed>
</tendon><actuator>{actuators}</actuator></mujoco>"""


def scene(actuators: str, integrator: str = "Euler", option: str = "", flag: str = "", joint: str = "") -> str:
    """Returns a model with actuators given as XML; a branch's name selects its actuators on a hinge and on a slide."""
    if actuators in ACTUATORS:
        kind = ACTUATORS[actuators]
        actuators = kind.format(j='joint="hinge" gear="0.7"') + kind.format(j='joint="slide" gear="-1.3"')
    actuators = OTHERS.get(actuators, actuators)
    return SCENE.format(actuators=actuators, integrator=integrator, option=option, flag=flag, joint=joint)
