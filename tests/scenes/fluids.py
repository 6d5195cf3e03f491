"""Defines bodies in a fluid: every shape, both models, and every connection of a body to others."""

from __future__ import annotations

# a chain of all joints under a free body, with geoms that count and geoms that do not; uncoupled free bodies,
# one of them simple, one of several parts; bodies with a diagonal M; a plate, and a body of some millimetres
XML = """
<mujoco><option density="{density}" viscosity="{viscosity}" wind="{wind}" timestep=".005" integrator="{integrator}"
  gravity="0 0 -9" tolerance="0"><flag {flags}/></option>
<asset><mesh name="wedge" vertex="0 0 0 .2 0 0 0 .1 0 0 0 .3"/></asset>
<default><geom contype="0" conaffinity="0"/></default>
<worldbody>
  <body name="trunk" pos="0 0 1"><freejoint/>
    <geom type="ellipsoid" size=".1 .2 .05" pos=".1 .02 .03" euler="10 20 30" {shape} fluidcoef=".7 .3 1.2 .9 .8"/>
    <geom type="cylinder" size=".05 .1" pos=".1 .02 .03" euler="10 20 30"/>
    <body pos=".2 0 0"><joint name="hinge" axis="0 1 .2" damping=".1"/>
      <geom type="capsule" size=".05 .1" pos=".1 .02 .03" euler="10 20 30" {shape}/>
      <geom type="sphere" size=".05" {shape}/>
      <body pos=".2 0 0"><joint type="slide" axis="0 1 .2"/>
        <geom type="box" size=".05 .1 .02" pos=".1 .02 .03" euler="10 20 30"/></body></body>
    <body pos="-.2 0 0"><joint type="ball" damping=".05"/>
      <geom type="cylinder" size=".05 .1" pos=".1 .02 .03" euler="10 20 30" {shape}/>
      <body pos=".2 0 0"><geom type="mesh" mesh="wedge" {shape}/></body>
      <body pos=".3 0 0"><geom type="sphere" size=".1" mass="0" {shape}/></body></body>
  </body>
  <body name="lone" pos="3 0 1"><freejoint/>
    <geom type="ellipsoid" size=".1 .2 .05" {shape} fluidcoef=".3 .7 1.2 .9 .8"/></body>
  <body pos="4 0 1"><freejoint/><geom type="box" size=".05 .04 .05" {shape} pos=".1 0 0"/>
    <body pos=".1 .1 0"><geom type="box" size=".1 .2 .05"/></body></body>
  <body pos="5 0 1"><joint type="slide"/><joint type="slide" axis="0 1 0"/>
    <geom type="box" size=".1 .2 .05" {shape}/></body>
  <body pos="5 0 1"><joint type="hinge"/><joint type="hinge" axis="0 1 0"/><geom type="box" size=".1 .2 .05"/></body>
  <body pos="6 0 1"><freejoint/><geom type="ellipsoid" size=".3 .2 .0003" pos=".01 0 0" {shape} density="1e6"/></body>
  <body pos="7 0 1"><joint damping="1e-6"/><geom type="ellipsoid" size=".004 .008 .002" pos=".001 0 0" {shape}/></body>
</worldbody>
<actuator><motor joint="hinge"/></actuator></mujoco>
"""
ELLIPSOIDS, BOXES = 'fluidshape="ellipsoid"', ""
MEDIA = {"water": (800.0, 0.3), "oil": (0.0, 0.5), "ideal": (800.0, 0.0), "vacuum": (0.0, 0.0)}
INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")


def scene(medium="water", integrator="Euler", shape=ELLIPSOIDS, wind=".3 .2 -.1", flags="") -> str:
    """Returns the XML text of the bodies in a fluid."""
    density, viscosity = MEDIA[medium]
    return XML.format(density=density, viscosity=viscosity, integrator=integrator, shape=shape, wind=wind, flags=flags)
