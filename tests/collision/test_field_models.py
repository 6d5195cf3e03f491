"""Models with signed distance fields of MuJoCo's and MuJoCo Warp's repositories: contacts along MuJoCo's motion."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import featherlane as fl
import repositories
from robots import wheels
from scenes.signed_distance import rows

MUJOCO = "google-deepmind/mujoco", "a7255075b003506ff5f34b512d88e02df12a73c6"
WARP = "google-deepmind/mujoco_warp", "f76464fae745d8b8a1550d0208ccc3c222650297"
PLUGIN, DATA = "model/plugin/sdf/", "mujoco_warp/test_data/collision_sdf/"
ASSETS = {
    "cow": ("asset/spot.obj", "asset/spot.png"),
    "mesh": ("asset/die.obj",),
    "mug": ("../../mug/mug.obj",),
}
# model, and the steps of MuJoCo between two comparisons
MODELS = (
    *((MUJOCO, PLUGIN, name, steps) for name, steps in (("bowl", 30), ("cow", 20), ("gear", 20), ("mesh", 20))),
    *((MUJOCO, PLUGIN, name, steps) for name, steps in (("mug", 20), ("nutbolt", 20), ("primitives", 25))),
    (MUJOCO, PLUGIN, "torus", 25),
    *((WARP, DATA, name, 20) for name in ("cow", "mesh", "nutbolt", "tactile")),
)
CONTACT = 1e-5  # m: MuJoCo's gradients are differences over 1e-8 m, and a descent amplifies their errors
COMPARED = 30
# a starting point on the corner of a box, or a trial at the edge of a field, ends elsewhere after a rounding error
SAME = 0.97  # of the contacts


def source(repository: tuple[str, str], folder: str, name: str) -> Path:
    """Returns a model next to the files that it reads; skips the test without a network."""
    try:
        for path in ("scene.xml", *ASSETS.get(name, ())):
            repositories.file(*repository, str(Path(folder + path)) if ".." not in path else "model/mug/mug.obj")
        return repositories.file(*repository, f"{folder}{name}.xml")
    except wheels.Unreachable as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m[0][0].split('/')[1]}-{m[2]}")
def test_contacts_along_a_motion_are_those_of_mujoco(model):
    *place, steps = model
    mj = mujoco.MjModel.from_xml_path(str(source(*place)))
    model, truth = fl.load(mj), mujoco.MjData(mj)
    data, number, total, same = fl.Data(model), 0, 0, 0
    for _ in range(COMPARED):
        for _ in range(steps):
            mujoco.mj_step(mj, truth)
        mujoco.mj_forward(mj, truth)
        data.qpos[:], data.qvel[:] = truth.qpos, truth.qvel
        fl.forward(model, data)
        ours, theirs = rows(data.contact), rows(truth.contact)
        total += len(theirs)
        same += sum(len(ours) > 0 and np.abs(ours - row).max(axis=1).min() < CONTACT for row in theirs)
        number += len(ours)
    print(f"{same} of {total} contacts")
    assert same >= SAME * total and abs(number - total) <= (1.0 - SAME) * total
