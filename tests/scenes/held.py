"""Defines rows whose opposing forces are far larger than their sum: a finger jammed in a palm, a puck between walls."""

# the finger's centre of mass is on its hinge, so forces there do not move it: contacts with the palm, deep on both
# sides of it, have D = 5e14; a second hinge carries its tip
FINGERS = """<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
  <geom name="left" type="box" size=".02 .02 .02" pos="-.031 .002 .02"/>
  <geom name="right" type="box" size=".02 .02 .02" pos=".031 -.001 .024" euler="0 10 5"/>
  <body><joint name="root" axis="0 1 0" damping=".15"/><inertial pos="0 0 0" mass=".02" diaginertia="2e-5 2e-5 2e-5"/>
    <geom type="box" size=".015 .012 .04"/>
    <body pos="0 0 .05"><joint name="tip" axis="0 1 0" damping=".1" armature="1e-5"/>
      <geom type="capsule" size=".008" fromto="0 0 0 0 0 .04" contype="0" conaffinity="0" mass=".01"/></body></body>
  <body pos=".2 0 0"><joint axis="1 0 0" damping=".15"/><joint axis="0 1 0" armature="1e-4"/>
    <geom size=".03" mass=".05"/></body>
</worldbody><actuator><motor joint="root" gear="2"/><motor joint="tip"/></actuator></mujoco>"""

# the same with a rotating palm: contacts between two bodies of one tree, without effect on their common joint
CARRIED = """<mujoco><option timestep="0.002" cone="{cone}"/><worldbody>
  <body><joint name="base" axis="0 0 1" damping=".2"/><inertial pos="0 0 0" mass=".5" diaginertia="1e-3 1e-3 1e-3"/>
    <geom type="box" size=".02 .02 .02" pos="-.031 .002 .02"/>
    <geom type="box" size=".02 .02 .02" pos=".031 -.001 .024" euler="0 10 5"/>
    <body><joint axis="1 0 0" damping=".2" armature="1e-4"/>
      <inertial pos="0 0 0" mass=".01" diaginertia="1e-5 1e-5 1e-5"/>
      <body><joint name="root" axis="0 1 0" damping=".15"/>
        <inertial pos="0 0 0" mass=".02" diaginertia="2e-5 2e-5 2e-5"/><geom type="box" size=".015 .012 .04"/>
        <body pos="0 0 .05"><joint name="tip" axis="0 1 0" damping=".1" armature="1e-5"/>
          <geom type="capsule" size=".008" fromto="0 0 0 0 0 .04" contype="0" conaffinity="0" mass=".01"/></body>
      </body></body></body>
</worldbody><actuator><motor joint="root" gear="2"/><motor joint="tip"/><motor joint="base"/></actuator></mujoco>"""

# walls press by 68 m/s^2 from both sides, and the puck comes to rest between them
PUCK = """<mujoco><option timestep="0.002" cone="{cone}" gravity="0 0 0"/><worldbody>
  <geom type="box" size=".1 .1 .1" pos="-.137 0 0"/><geom type="box" size=".1 .1 .1" pos=".137 0 0"/>
  <body><joint type="slide" axis="1 0 0" damping="1"/><joint type="slide" axis="0 1 0" damping="1"/>
    <geom type="box" size=".04 .04 .02" mass=".05"/></body></worldbody></mujoco>"""

# a light box on a separate hinge, pressed from both sides: the pressing contacts are millions of times as stiff as it
# is heavy, and hundreds of times as stiff as the arm that carries it
JAMMED = """<mujoco><option cone="{cone}"/><worldbody>
  <geom type="box" size=".1 .1 .1" pos=".149 0 .3" contype="2" conaffinity="2"/>
  <geom type="box" size=".1 .1 .1" pos="-.149 0 .3" contype="2" conaffinity="2"/>
  <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 .3" size=".03"/>
    <body pos="0 0 .3"><joint axis="0 1 0" armature="1e-7"/>
      <inertial pos="0 0 0" mass="1e-3" diaginertia="1e-9 1e-9 1e-9"/>
      <geom type="box" size=".05 .05 .05" contype="2" conaffinity="2"/></body></body></worldbody></mujoco>"""

_SWINGING = """
  <body name="{name}" pos="0 {y} 0">
    <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 1 0" stiffness="50"/>
    <geom size=".1" mass="7" pos=".1 0 0" contype="0" conaffinity="0"/><site name="{name}"/>
    <body pos="0 0 -.3">
      <joint axis="0 1 0" stiffness="20"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04" contype="0" conaffinity="0"/>
    </body>
  </body>"""

# two pendulums in parallel planes, tied by a rope: in the initial pose it is orthogonal to their motions, and so its
# row has the largest possible stiffness
TIED = f"""
<mujoco>
  <worldbody>{_SWINGING.format(name="a", y=-0.3)}{_SWINGING.format(name="b", y=0.3)}
  </worldbody>
  <tendon><spatial limited="true" range="0 1"><site site="a"/><site site="b"/></spatial></tendon>
</mujoco>
"""
