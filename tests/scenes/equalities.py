"""Models with every kind of equality constraint."""

# all kinds within a tree, between trees, with the world and with a mocap body; bodies, sites and joints of every type
EQUALITIES = """
<mujoco>
  <option timestep="0.004" jacobian="dense"><flag contact="disable"/></option>
  <default><geom size="0.1" density="800"/></default>
  <worldbody>
    <body name="mocap" mocap="true" pos="0 1 0" quat="1 0.2 0.1 0"><geom contype="0" conaffinity="0"/></body>
    <body name="a">
      <joint name="slide_a" type="slide" axis="1 0 0" frictionloss="0.3"/>
      <joint name="hinge_a" axis="0 1 0" limited="true" range="-5 5"/>
      <geom pos="0 0.05 0"/>
      <body name="b" pos="0.3 0 0">
        <joint name="ball_b" type="ball" limited="true" range="0 35" margin="0.02"/>
        <geom pos="0 0.2 0"/>
        <site name="site_b" pos="0.1 0.02 0.1" quat="1 0.3 0.2 0"/>
        <body name="c" pos="0.3 0 0"><joint name="hinge_c" axis="0 0 1"/><geom pos="0.1 0.2 0"/></body>
      </body>
      <body name="e" pos="-0.3 0 0">
        <joint name="hinge_e" axis="0 1 1"/>
        <geom pos="0 0.2 0"/>
        <body name="fixed" pos="0 0.1 0" quat="1 0.5 0 0">
          <geom type="box" size="0.1 0.05 0.2"/>
          <site name="site_fixed" pos="0.1 0.1 0" quat="0.5 0.5 0.5 -0.5"/>
        </body>
      </body>
    </body>
    <body name="f" pos="0 0 1">
      <freejoint/>
      <geom/>
      <geom pos="0.1 0.2 0"/>
      <body name="g" pos="0 0.4 0">
        <joint name="slide_g" type="slide" axis="0 1 1"/>
        <geom pos="0 0.2 0"/>
        <site name="site_g" pos="0 0.1 0.2"/>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect body1="c" body2="e" anchor="0.1 0.1 0.1"/>
    <connect body1="g" anchor="0.1 0.1 0.1" solref="0.05 0.7" solimp="0.8 0.95 0.02 0.3 3"/>
    <connect site1="site_b" site2="site_g" solref="-300 -20"/>
    <weld body1="c" body2="f" torquescale="0.7" solimp="0.9 0.95 0"/>
    <weld body1="mocap" body2="g" relpose="0.1 0 0 1 0.2 0.3 0.4" anchor="0.1 0.2 0.3" solref="0.3 2"/>
    <weld site1="site_fixed" site2="site_g" torquescale="2" solimp="0.5 0.99 0.5 0.7 1.5"/>
    <joint joint1="hinge_c" joint2="hinge_e" polycoef="0.1 1 -0.5 0.2 0.3"/>
    <joint joint1="slide_g" joint2="slide_a" polycoef="0 -2 0 0 0" solimp="0.8 0.99 0.1 0.5 1"/>
    <joint joint1="hinge_a" polycoef="0.2 1 0 0 0"/>
    <connect body1="fixed" body2="e" anchor="0.1 0 0" active="false"/>
    <weld body1="fixed" body2="world"/>
  </equality>
</mujoco>
"""

# two free trees on a mocap body's leash above a floor; a point of one is tied to two places of the world
WELDED = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <site name="left" pos="0.2 0 1"/>
    <site name="right" pos="0.4 0 1"/>
    <body name="hand" mocap="true" pos="0 0 1"/>
    <body name="held" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.05 0.05" mass="1"/></body>
    <body name="other" pos="0.3 0 1">
      <freejoint/>
      <geom type="box" size="0.1 0.05 0.05" mass="1"/>
      <site name="knob"/>
    </body>
  </worldbody>
  <equality>
    <weld name="grip" body1="hand" body2="held"/>
    <weld name="glue" body1="held" body2="other"/>
    <connect name="pin" site1="knob" site2="left" active="false"/>
    <connect name="far" site1="knob" site2="right" active="false"/>
  </equality>
</mujoco>
"""
