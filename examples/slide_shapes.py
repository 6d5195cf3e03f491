"""Slides different objects down a slope: geom types and meshes differ by world in one batch of one model."""

import itertools
import sys

import featherlane as fl

SCENE = """
<mujoco>
  <option timestep="0.004"/>
  <asset>
    <mesh name="wall" vertex="0 -1 0  0 1 0  .1 -1 0  .1 1 0  0 -1 .3  0 1 .3  .1 -1 .3  .1 1 .3"/>
    <mesh name="ramp" vertex="0 -1 0  0 1 0  .8 -1 0  .8 1 0  .8 -1 .1  .8 1 .1"/>
    <mesh name="stone" vertex=".1 0 0  -.08 .05 .01  -.06 -.09 0  .02 .1 .05  .03 -.02 .1  0 .02 -.08  -.05 0 .07"/>
  </asset>
  <worldbody>
    <geom name="slope" type="plane" size="4 1 .1" euler="0 12 0" friction=".05"/>
    <geom name="end" type="mesh" mesh="wall" pos="2 0 -.5" euler="0 12 0" rgba=".3 .3 .35 1" friction=".05"/>
    <body name="object" pos="0 0 .15">
      <freejoint/>
      <geom name="ball" size=".1" rgba=".9 .5 .2 1" condim="6" friction=".3 .005 .001"/>
      <geom name="can" type="cylinder" size=".08 .1" euler="90 0 0" rgba=".1 .5 .5 1" friction=".3"/>
      <geom name="crate" type="box" size=".09 .09 .09" rgba=".7 .3 .3 1" friction=".08"/>
      <geom name="stone" type="mesh" mesh="stone" rgba=".6 .6 .3 1" friction=".08"/>
    </body>
  </worldbody>
</mujoco>
"""
# a world has one geom of the body `object`, and one of two meshes of the geom `end`
VARIANTS = {"object": ["ball", "can", "crate", "stone"], "end": ["wall", "ramp"]}


def main(repeat=2, nstep=500):
    model = fl.load(SCENE, variants=VARIANTS)
    kinds = list(itertools.product(VARIANTS["end"], VARIANTS["object"])) * repeat
    batch = fl.Batch(model, len(kinds))
    for k, group in enumerate(("end", "object")):
        for name in VARIANTS[group]:
            batch.set_variant(group, name, ids=[kind[k] == name for kind in kinds])

    out = batch.rollout(nstep, record=("qpos",))["qpos"]
    for world, (end, shape) in enumerate(kinds[: len(kinds) // repeat]):
        mass = batch.get_model(world).body("object").mass[0]
        x = out[world, :, 0]
        print(
            f"{shape:5} of {mass:.2f} kg to the {end}: {x[-1]:.2f} m, at most {x.max():.2f} m"
        )
    return batch


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
