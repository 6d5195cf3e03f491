"""A small model: every joint type, two joints on a body, a branch, a mocap body, limits, friction, pairs, actuators."""

XML = """
<mujoco model="all joints">
  <compiler angle="radian"/>
  <option timestep="0.004" gravity="0.1 0.2 -9.7" impratio="2"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" friction="0.8 0.01 0.001"/>
    <body name="torso" pos="0 0 1" gravcomp="0.25">
      <freejoint name="root"/>
      <geom name="chest" type="capsule" size=".1 .2" euler=".3 .2 .1" pos=".01 .02 .03"/>
      <site name="imu" pos=".05 0 .1" euler="0 .4 0"/>
      <body name="arm" pos=".3 0 .1" euler=".2 0 .1">
        <joint name="shoulder" type="ball" stiffness="3" damping=".2" range="0 1.5" limited="true"/>
        <geom name="upper" type="capsule" size=".04" fromto="0 0 0 .3 .05 0"/>
        <body name="hand" pos=".35 0 0">
          <joint name="wrist" axis="0 1 .2" range="-.5 .7" limited="true" armature=".01" frictionloss=".3"/>
          <joint name="finger" type="slide" axis="1 0 0" range="0 .2" limited="true" springref=".05" stiffness="20"/>
          <geom name="fingertip" type="sphere" size=".05" condim="1" priority="2" margin=".02" gap=".01"/>
        </body>
      </body>
      <body name="leg" pos="0 0 -.4">
        <joint name="knee" type="hinge" axis="0 1 0" pos="0 0 .1" damping="1" actuatorfrcrange="-20 20"/>
        <geom name="shin" type="capsule" size=".05" fromto="0 0 0 0 0 -.3"/>
      </body>
    </body>
    <body name="cart" pos="3 0 .5">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="trolley" type="sphere" size=".2"/>
    </body>
    <body name="target" mocap="true" pos="1 1 1"/>
  </worldbody>
  <contact>
    <pair name="clash" geom1="trolley" geom2="chest" condim="3" friction="1 1 .1 .1 .1"/>
    <exclude body1="torso" body2="hand"/>
  </contact>
  <actuator>
    <motor name="kick" joint="knee" gear="30" ctrlrange="-1 1" ctrllimited="true" group="1"/>
    <position name="grip" joint="finger" kp="50" kv="2" forcerange="-5 5" forcelimited="true"/>
    <velocity name="push" joint="rail" kv="4"/>
  </actuator>
  <keyframe>
    <key name="up" time="2" ctrl="1 0 0"/>
    <key name="fast" qvel="1 0 0 0 0 0 0 0 0 0 0 0 0"/>
  </keyframe>
</mujoco>
"""
