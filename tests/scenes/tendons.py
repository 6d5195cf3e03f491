"""Defines tendons over four trees: fixed ones, straight and wrapping ones, pulleys, side sites outside and inside."""

from __future__ import annotations

BODIES = """
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <site name="w0" pos="-.3 0 .9"/><site name="w1" pos=".4 .1 1.2"/>
    <geom name="post" type="cylinder" size=".08 .2" pos=".1 .1 .9" euler="80 10 0"/>
    <body name="trunk" pos="0 0 1"><freejoint/><geom size=".1" mass="1"/><site name="s0" pos=".15 0 0"/>
      <geom name="ball" type="sphere" size=".07" pos=".1 0 .15"/>
      <site name="side" pos=".25 0 .15"/><site name="inner" pos=".12 .01 .15"/>
      <body name="arm" pos="0 0 .3"><joint name="shoulder" axis="0 1 0"/><geom size=".1"/>
        <site name="s1" pos=".1 0 .1"/>
        <body pos="0 0 .3"><joint name="wrist" type="ball"/><geom size=".1"/><site name="s2" pos=".1 0 .1"/>
          <geom name="roll" type="cylinder" size=".06 .1" euler="90 10 0" pos=".05 0 -.05"/>
          <site name="roll side" pos="-.1 0 -.05"/><site name="roll inner" pos=".05 .01 -.04"/>
        </body>
      </body>
      <body name="leg" pos=".3 0 .3"><joint name="hip" axis="0 1 1"/>
        <joint name="stilt" axis="1 0 0" pos="0 0 .1" type="slide"/><geom size=".1"/><site name="s3" pos=".1 0 .1"/>
      </body>
    </body>
    <body name="cart" pos="1 0 .6"><joint type="slide" name="rail" axis="1 0 1"/><geom size=".1"/>
      <site name="t0" pos=".1 .2 .1"/>
      <body pos="0 0 .3"><joint name="pole" axis="0 1 0"/><geom size=".1"/><site name="t1" pos="-.1 0 .2"/></body>
    </body>
    <body name="door" pos="-1 0 .6"><joint name="hinge" axis="1 0 1"/><geom size=".1" pos="0 .1 0"/>
      <site name="u0" pos=".1 .2 .1"/>
    </body>
    <body name="lift" pos="-1 1 .6"><joint name="lift" type="slide" axis="0 0 1"/><geom size=".1" pos="0 .1 0"/>
      <site name="v0" pos=".1 .2 .1"/>
    </body>
  </worldbody>
"""

PATHS = {
    "muscle": '<site site="s1"/><site site="s2"/>',
    "over": '<site site="s2"/><site site="s3"/><site site="t0"/>',
    "round": '<site site="s0"/><geom geom="roll"/><site site="s3"/>',
    "sided": '<site site="s0"/><geom geom="ball" sidesite="side"/><site site="s2"/>'
    '<geom geom="roll" sidesite="roll side"/><site site="s3"/>',
    "inside": '<site site="s0"/><geom geom="ball" sidesite="inner"/><site site="s1"/>'
    '<geom geom="roll" sidesite="roll inner"/><site site="t1"/>',
    "pulleys": '<site site="w0"/><site site="s1"/><pulley divisor="2"/><site site="s1"/><geom geom="ball"/>'
    '<site site="t0"/><pulley divisor="3"/><site site="s2"/><site site="u0"/>',
    "world": '<site site="w0"/><geom geom="post"/><site site="w1"/>',
    "ball": '<site site="w0"/><geom geom="ball"/><site site="w1"/>',
    "post": '<site site="u0"/><geom geom="post" sidesite="w1"/><site site="t1"/>',
    "three": '<site site="t1"/><site site="u0"/><site site="v0"/>',
}
FIXED = {
    "sum": '<joint joint="rail" coef="1.5"/><joint joint="shoulder" coef="-.3"/><joint joint="hinge" coef="2"/>',
    "four": '<joint joint="lift" coef="-2"/><joint joint="rail" coef="1.5"/><joint joint="shoulder" coef=".5"/>'
    '<joint joint="hinge" coef="1"/>',
}


def scene(options: str = "", tail: str = "", **attributes: str) -> str:
    """Returns MJCF of the bodies with all tendons.

    Args:
        options: elements before the bodies.
        tail: elements after the tendons.
        attributes: of tendons by name, such as `muscle='stiffness="3"'`; `every` for all, `only` names those to keep.
    """
    every, only = attributes.pop("every", ""), attributes.pop("only", " ".join((*PATHS, *FIXED))).split()
    rows = [
        f'<{kind} name="{name}" {every} {attributes.get(name, "")}>{path}</{kind}>'
        for kind, paths in (("spatial", PATHS), ("fixed", FIXED))
        for name, path in paths.items()
        if name in only
    ]
    head = '<compiler autolimits="true"/>' + options
    return f"<mujoco>{head}{BODIES}<tendon>{''.join(rows)}</tendon>{tail}</mujoco>"
