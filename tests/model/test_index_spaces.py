"""Index spaces list every index of their kind once, and those of an object belong to it."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import index_spaces

MODEL = fl.load("""<mujoco>
  <worldbody>
    <body>
      <freejoint/> <geom size=".1"/> <geom size=".1" pos=".2 0 0"/>
      <body pos="0 0 1">
        <joint name="a" axis="1 0 0"/> <joint name="b" axis="0 1 0"/> <geom size=".1"/>
        <body pos="0 0 1"> <joint name="c" type="ball"/> <geom size=".1"/> </body>
      </body>
    </body>
    <body pos="1 0 0"> <joint name="d" type="slide"/> <geom size=".1"/> </body>
  </worldbody>
  <tendon>
    <fixed name="t"> <joint joint="a" coef="1"/> <joint joint="d" coef="2"/> </fixed>
    <fixed name="u"> <joint joint="b" coef="3"/> </fixed>
  </tendon>
  <actuator> <motor joint="a"/> <motor joint="c" gear="1 2 3"/> <motor tendon="t"/> </actuator>
</mujoco>""")
MUJOCO = MODEL.to_mujoco()


def listed(space, count):
    """Returns (index, owner) of all indices of a space."""
    return [(k, owner) for owner in range(count) for k in space(MODEL, owner)]


@pytest.mark.parametrize(("space", "owner"), [
    (index_spaces.body_joints, MUJOCO.jnt_bodyid),
    (index_spaces.body_dofs, MUJOCO.dof_bodyid),
    (index_spaces.body_geoms, MUJOCO.geom_bodyid),
])  # fmt: skip
def test_the_indices_of_a_body_belong_to_it(space, owner):
    assert sorted(listed(space, MODEL.nbody)) == list(enumerate(owner))


@pytest.mark.parametrize(("space", "count", "sizes"), [
    (index_spaces.actuator_outputs, MODEL.nactuator, [1, 1, 1]),
    (index_spaces.moment_entries, 3, [1, 3, 2]),
    (index_spaces.tendon_entries, MODEL.ntendon, [2, 1]),
    (index_spaces.inertia_entries, MODEL.nv, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1]),
])  # fmt: skip
def test_the_indices_of_owners_follow_one_another(space, count, sizes):
    owners = np.repeat(np.arange(count), sizes).tolist()
    assert listed(space, count) == list(enumerate(owners))


def test_the_entries_of_a_row_of_the_inertia_are_the_ancestors_of_the_dof_and_the_dof():
    assert [MODEL.M_colind[e] for e in index_spaces.inertia_entries(MODEL, 7)] == list(range(8))
