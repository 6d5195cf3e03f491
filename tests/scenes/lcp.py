"""Defines scenes with every kind of row of the contact model lcp, and models under it."""

import mujoco

from featherlane.engine.model import load

# friction loss, limits of a hinge, a slide, a ball and a tendon, equalities, contacts of 1 to 6 rows
SCENE = """
<mujoco><option timestep=".004"/>
  <worldbody>
    <geom type="plane" size="9 9 1" friction=".8 .02 .01"/>
    <body name="arm" pos="0 0 .9">
      <joint name="a" axis="0 1 0" frictionloss=".3" damping=".2" limited="true" range="-40 40"/>
      <geom type="capsule" fromto="0 0 0 .5 0 0" size=".05"/>
      <body name="fore" pos=".5 0 0"><joint name="b" axis="0 1 0" damping=".4" limited="true" range="-30 30"/>
        <geom type="capsule" fromto="0 0 0 .4 0 0" size=".04" condim="6"/>
        <body name="hand" pos=".4 0 0"><joint name="c" type="ball" limited="true" range="0 30"/>
          <geom size=".08" condim="4"/></body>
      </body>
    </body>
    <body name="cart" pos="0 1 .6"><joint name="s" type="slide" axis="1 0 0" limited="true" range="-.2 .2"/>
      <geom type="box" size=".1 .1 .1"/>
      <body name="pole" pos="0 0 -.1"><joint name="p" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".03"/></body></body>
    <body name="box" pos=".9 0 .098"><freejoint/><geom type="box" size=".1 .12 .1" condim="3"/></body>
    <body name="upper" pos=".9 0 .297"><freejoint/>
      <geom type="box" size=".1 .1 .1" condim="6" friction=".5 .03 .02"/></body>
    <body name="ball" pos="1.5 0 .099"><freejoint/><geom size=".1" condim="1" priority="1"/></body>
  </worldbody>
  <tendon><fixed name="t" limited="true" range="-.3 .3" frictionloss=".2">
    <joint joint="a" coef="1"/><joint joint="p" coef="-1"/></fixed></tendon>
  <equality>
    <joint joint1="s" joint2="p" polycoef="0 .3 0 0 0"/><connect body1="ball" body2="upper" anchor="0 0 .2"/>
    <connect body1="ball" body2="upper" anchor="0 0 .2"/>
  </equality>
</mujoco>"""


def lcp_model(xml=SCENE, solver="dantzig", **options):
    """Returns the model with the contact model lcp."""
    model = load(mujoco.MjModel.from_xml_string(xml))
    model.opt.contact_model, model.opt.lcp_solver = "lcp", solver
    model.opt.lcp_friction = "consistent"
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model
