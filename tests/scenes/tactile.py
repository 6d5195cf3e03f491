"""Defines a plate between a floor and other bodies, with tactile sensors and a touch grid."""

from __future__ import annotations

OTHERS = {
    "sphere": 'type="sphere" size=".06"',
    "capsule": 'type="capsule" size=".04 .05"',
    "ellipsoid": 'type="ellipsoid" size=".05 .06 .07"',
    "cylinder": 'type="cylinder" size=".05 .06"',
    "box": 'type="box" size=".05 .06 .07"',
}
GRID = """<plugin name="grid" plugin="mujoco.sensor.touch_grid" objtype="site" objname="eye" {cutoff}>
  <config key="size" value="6 4"/><config key="fov" value="170 80"/>{more}</plugin>"""
SCENE = """
<mujoco><option tolerance="0" iterations="60" ls_iterations="60"/>{extension}
  <asset><mesh name="plate" builtin="plate" params="7 5" scale=".1 .08 .02"/>
    <mesh name="wedge" builtin="wedge" params="9 8 40 40 0" scale=".1 .1 .1"/>
    <mesh name="points" vertex="-1 -1 -1 1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 1 -1 1" scale=".05 .04 .02"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" pos="0 0 .1"/>
    <body pos="0 0 .12" euler="3 5 0"><joint axis="1 0 0"/><geom type="box" size=".5 .5 .02" pos="0 .03 -.02"/></body>
    <body name="pad" pos="0 0 .2" euler="10 20 30"><freejoint/><geom type="box" size=".1 .08 .02" condim="6"/>
      <body pos="0 0 -.02"><geom size=".01" pos=".02 .01 .05"/><site name="eye" pos=".01 0 .03" euler="0 10 20"/>
        <geom name="flat" type="mesh" mesh="plate" contype="0" conaffinity="0" mass="0"/>
        <geom name="round" type="mesh" mesh="wedge" contype="0" conaffinity="0" mass="0"/></body></body>
    <body pos="0 0 .16"><freejoint/><geom name="other" {other}/></body>
    <body pos=".05 0 .24"><freejoint/><geom size=".04"/></body>
  </worldbody>
  <sensor><tactile name="flat" geom="flat" mesh="plate"/><tactile name="round" geom="round" mesh="wedge"/>
    <tactile name="bare" geom="flat" mesh="points"/><tactile name="cut" geom="flat" mesh="plate" cutoff=".02"/>{grid}
  </sensor>
</mujoco>"""
EXTENSION = '<extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>'


def scene(other: str = "sphere", grid: str = "") -> str:
    """Returns a plate on a floor, touched by other bodies, with tactile sensors and a touch grid."""
    return SCENE.format(other=OTHERS[other], grid=grid, extension=EXTENSION if grid else "")
