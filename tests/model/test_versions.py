"""Every supported MuJoCo version reads the model of 4.0.1 except for listed differences, and the motion agrees."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import oracle
from featherlane.engine.model import MODEL, bundled_names, load
from featherlane.engine.model.bundle import resolve_name
from featherlane.engine.model.enums import Disable
from robots import wheels

VERSIONS = ("3.6.0", "3.7.0", "3.10.0", "3.11.0", "3.12.0", "3.13.0", "3.14.0", "3.15.0", "3.16.0", "3.17.0", "4.0.0")
REAL = (
    "gymnasium/ant",
    "dm_control/humanoid",
    "dm_control/quadruped",
    "gymnasium_robotics/assets/fetch/pick_and_place",
    "robosuite/grippers/fourier_left_hand",
)
ROUNDING = 1e-9  # relative, absolute for the smallest values: versions sum in different orders
STEPS = 20
FAR = 1e-4  # m or rad after so many steps: hull contacts come in another order, solvers stop at different iterations
FACES = set(
    "hull_polyvertadr hull_polyvertnum hull_polyvert hull_map hull_polynormal hull_planenormal hull_planeoffset".split()
)
FACES |= {"hull_planeerror", "hull_planedrop", "hull_outlineadr", "hull_outlinenum", "hull_outline", "hull_flat"}
MESHES = FACES | set(
    "nhulledge nhulloutline nhullflat hull_flatadr hull_flatnum hull_edgeadr hull_edgenum hull_edge "
    "hull_vert hull_start trianglegroup_vert trianglegroup_face ntrianglegroup meshnode_child meshnode_box nmeshnode"
    " mesh_quat geom_quat geom_size geom_aabb"
    " geom_rbound body_iquat body_inertia body_invweight0 dof_length dof_invweight0 dof_M0 actuator_acc0"
    " stat_meaninertia".split()
)
# version that removes a difference: its description, and the affected fields of the models above
DIFFERENCES = {
    (3, 8): {"opt_disableflags"},  # multiccd is disabled by default
    (3, 11): {"opt_sleep_tolerance"},  # its default
    (3, 12): {"body_weldid"},  # of a mocap body: itself, before 0
    (3, 14): MESHES,  # the principal axes of a mesh, with all values in its frame
    (3, 16): {
        "actuator_ctrlspec",  # the kind of a control, if it has no effect
        "actuator_dynprm",  # defaults that an actuator inherits from those of another kind
        "actuator_gainprm",
        "actuator_biasprm",
    },
    (3, 17): {"eq_data"},  # the last column: a weld whose pose set_const computes
    (4, 0): FACES,  # normals of faces, and so the triangles merged into one
}
ACTUATED = "robosuite/grippers/fourier_left_hand"  # moves differently because its actuators differ

# bits of enable flags differ up to 3.7
ASLEEP = """<mujoco><option><flag sleep="enable" energy="enable"/></option><worldbody>
  <geom type="plane" size="5 5 1"/><body pos="0 0 .0998" sleep="init"><freejoint/><geom type="box" size=".1 .1 .1"/>
  </body></worldbody></mujoco>"""

# models read in a process of another version, as arrays by model and field
READ = """
import sys
sys.path.insert(0, {tests!r})
import test_versions
import mujoco
assert mujoco.__version__ == {version!r} and {folder!r} in mujoco.__file__
test_versions.write({target!r})
"""


def sources() -> dict[str, str]:
    return {name: name for name in bundled_names()} | {name: str(wheels.model_path(name)) for name in REAL}


def moved(model) -> np.ndarray:
    """Returns positions after some steps under a small constant control."""
    import featherlane as fl

    model.opt.disableflags &= ~Disable.MULTICCD
    data = fl.Data(model)
    data.ctrl = 0.05
    for _ in range(STEPS):
        fl.step(model, data)
    vector = fl.get_state(model, data, fl.State.PHYSICS)
    assert np.isfinite(vector).all()
    return data.qpos.copy()


def arrays() -> dict[str, np.ndarray]:
    found = {}
    for name, source in (sources() | {"asleep": ASLEEP}).items():
        model = load(source if name == "asleep" else resolve_name(source))
        for field in MODEL.fields:
            value = model.size_values()[field.name] if field.kind == "size" else getattr(model, field.name)
            found[f"{name}:{field.name}"] = np.array(value)
        found[f"{name}:moved"] = moved(model)
    return found


def write(target: str) -> None:
    np.savez(target, **arrays())


@pytest.fixture(scope="module")
def newest(real_model):
    for name in REAL:
        real_model(name)
    return arrays()


def unpacked(version, target):
    """Returns a folder with all files of a version, as pip installs them."""
    projects = ("mujoco",) if version < "4" else ("mujoco", "mujoco-core")
    for project in projects:
        shutil.copytree(oracle.unpacked(project, version), target, dirs_exist_ok=True)
    return str(target)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_is_equal_in_all_mujoco_versions_except_for_listed_fields(version, newest, tmp_path):
    folder, target = unpacked(version, tmp_path / "site"), tmp_path / "models.npz"
    code = READ.format(tests=os.path.dirname(__file__), version=version, folder=folder, target=str(target))
    path = [folder, *(place for place in sys.path if place)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    number = tuple(map(int, version.split(".")))
    allowed = set().union(*(fields for first, fields in DIFFERENCES.items() if number < first))
    found, seen = dict(np.load(target)), set()
    for key, value in newest.items():
        name, field = key.split(":")
        if field == "moved":
            if name != ACTUATED or number >= (3, 16):
                np.testing.assert_allclose(found[key], value, rtol=0, atol=FAR, err_msg=key)
        elif value.shape != found[key].shape or not np.allclose(found[key], value, rtol=ROUNDING, atol=1e-12):
            seen.add(field)
            assert field in allowed, f"{key}: {found[key]} where 4.0.1 has {value}"
    # an entry without a real difference is an error
    assert seen == allowed
