"""Every supported MuJoCo version reads the model of 4.0.1 except for listed differences, and the motion agrees."""

import os
import shutil
import subprocess
import sys
import warnings

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
AXES = 3e-8  # relative to the largest entry: versions before 3.14 compute principal axes to this accuracy
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

INERTIAL = """<inertial><origin xyz="0.1 0 0.2" rpy="0.3 -0.4 0.5"/><mass value="2"/>
<inertia ixx="1" iyy="2" izz="2.5" ixy="0.2" ixz="-0.1" iyz="0.3"/></inertial>"""
SHAPES = "".join(
    f'<collision><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/><geometry>{shape}</geometry></collision>'
    for shape in (
        '<box size="0.1 0.2 0.3"/>',
        '<cylinder radius="0.1" length="0.2"/>',
        '<capsule radius="0.1" length="0.2"/>',
        '<sphere radius="0.1"/>',
        '<mesh filename="left/m.obj"/>',
        '<mesh filename="right/m.obj" scale="1 2 1"/>',
    )
)
MESH = "o first\nv 0 0 0\nv {0} 0 0\nv 0 {0} 0\nv 0 0 {0}\nf 1 3 2\nf 1 2 4\no second\nf 2 3 4\nf 3 1 4\n"
ASSETS = {"left/m.obj": MESH.format(0.2), "right/m.obj": MESH.format(0.1)}
LIMIT = '<axis xyz="0 1 2"/><limit lower="-1" upper="1" effort="3"/><dynamics damping="0.2" friction="0.3"/>'
# type of the joint, its content, content of its link
URDFS = {
    "inertia": [("floating", "", INERTIAL)],
    "shapes": [("floating", "", SHAPES)],
    "joints": [
        ("revolute", LIMIT, INERTIAL),
        ("prismatic", LIMIT, INERTIAL),
        ("planar", '<origin xyz="1 0 0" rpy="1 2 3"/><axis xyz="0 0 1"/>', INERTIAL),
        ("spherical", "", INERTIAL),
    ],
    "continuous": [("continuous", LIMIT, INERTIAL)],
    "merged": [
        ("continuous", LIMIT, INERTIAL),
        ("fixed", '<origin xyz="1 0 0.3" rpy="1 2 3"/>', INERTIAL),
        ("fixed", '<origin rpy="1 2 3"/>', SHAPES),
        ("revolute", LIMIT, INERTIAL),
    ],
    "mimic": [
        ("continuous", '<mimic joint="joint1" multiplier="-2" offset="0.1"/>', INERTIAL),
        ("prismatic", LIMIT, INERTIAL),
        ("revolute", '<mimic joint="absent"/>', INERTIAL),
    ],
    "limits": [
        ("revolute", limit, INERTIAL)
        for limit in ("", '<limit upper="1"/>', '<limit lower="1" upper="-1"/>', '<limit lower="0" upper="0"/>')
    ],
}
OF_URDF = (
    "jnt_type jnt_axis jnt_range jnt_limited jnt_actfrcrange jnt_actfrclimited dof_damping dof_frictionloss geom_type "
    "geom_contype eq_type eq_obj1id eq_obj2id eq_data qpos0"
).split()


def urdf(parts) -> str:
    """Returns a chain of links."""
    text = '<link name="link0"/>'
    for k, (kind, joint, link) in enumerate(parts):
        text += f'<link name="link{k + 1}">{link}</link><joint name="joint{k}" type="{kind}">{joint}'
        text += f'<parent link="link{k}"/><child link="link{k + 1}"/></joint>'
    return f'<robot name="r">{text}</robot>'


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
    return found | urdf_arrays()


def urdf_arrays() -> dict[str, np.ndarray]:
    """Returns fields of URDF models that no version may change, and what depends on all inertias."""
    import featherlane as fl

    found = {}
    for name, parts in URDFS.items():
        with warnings.catch_warnings(action="ignore"):
            model = load(urdf(parts), assets=ASSETS)
        for field in OF_URDF:
            found[f"{name}:urdf {field}"] = np.array(getattr(model, field))
        data = fl.Data(model)
        data.qvel[:] = 1.0
        fl.forward(model, data)
        found |= {f"{name}:urdf M": fl.query.full_m(model, data), f"{name}:urdf qacc": np.array(data.qacc)}
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
        if field.startswith("urdf "):
            largest = np.abs(value).max(initial=1.0)
            np.testing.assert_allclose(found[key], value, rtol=0, atol=AXES * largest, err_msg=key)
        elif field == "moved":
            if name != ACTUATED or number >= (3, 16):
                np.testing.assert_allclose(found[key], value, rtol=0, atol=FAR, err_msg=key)
        elif value.shape != found[key].shape or not np.allclose(found[key], value, rtol=ROUNDING, atol=1e-12):
            seen.add(field)
            assert field in allowed, f"{key}: {found[key]} where 4.0.1 has {value}"
    # an entry without a real difference is an error
    assert seen == allowed
