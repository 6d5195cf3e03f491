"""Every round of a race starts from the same states."""

import numpy as np

import featherlane as fl
from featherlane.measure.race import Course, Lineup

FILTER = """<mujoco><worldbody><body><joint name="knee"/><geom size=".1" pos=".2 0 0"/></body></worldbody>
<actuator><general joint="knee" dyntype="filter" dynprm=".1"/></actuator></mujoco>"""


def test_activations_are_put_back_before_each_round():
    lineup = Lineup(FILTER, Course(worlds=3, settle=0.3))
    batch, ends = fl.Batch(lineup.model, 3), []
    for _ in range(2):
        lineup.put(batch)
        assert batch.act.all()
        batch.step(4)
        ends.append((batch.qvel.copy(), batch.act.copy()))
    np.testing.assert_array_equal(*ends)
