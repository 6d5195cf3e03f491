"""The comparisons with libraries that need another MuJoCo than the oracle, each in a process with that MuJoCo.

`python tests/exam.py adapters` runs them in environments with these libraries.
"""

import importlib.util

import numpy as np
import pytest

from integrations import other_mujoco
from integrations.unisim_trajectories import trajectories
from scenes.unisim_scenes import ROBOT, copied

# file -> module of the library, MuJoCo, number of tests
FILES = {
    # MuJoCo 4.0.0 and 4.0.1 fail in dm_control 1.0.50
    "with_dm_control.py": ("dm_control", "3.17.0", 125),
    "with_robosuite.py": ("robosuite", "3.7.0", 6),
    "with_robosuite_controllers.py": ("robosuite", "3.7.0", 56),
    "with_robosuite_tasks.py": ("robosuite", "3.9.0", 98),
    "with_libero.py": ("libero", "3.17.0", 200),
    "with_judo.py": ("judo", "3.6.0", 4),
    "with_mjbatch.py": ("mjbatch", "3.14.0", 38),
    "with_mjlab.py": ("mjlab", "3.11.0", 54),
    "with_unisim.py": ("unisim", "3.11.0", 50),
    "with_unilab.py": ("unilab", "3.11.0", 7),
}
SHORT = ("with_dm_control.py", "with_robosuite.py", "with_robosuite_controllers.py")  # a minute


def installed(module: str) -> bool:
    """Returns whether a module can be found; `mjbatch` is also a module of UniSim's dependency mjbatch-uni."""
    if module == "mjbatch" and importlib.util.find_spec("unisim"):
        return False
    return importlib.util.find_spec(module) is not None


def needs(module: str):
    return pytest.mark.skipif(not installed(module), reason=f"{module} is not installed")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(name, id=module, marks=[pytest.mark.ci if name in SHORT else pytest.mark.slow, needs(module)])
        for name, (module, _, _) in FILES.items()
    ],
)
def test_the_library_agrees(file, tmp_path, record_property):
    _, mujoco, least = FILES[file]
    other_mujoco.run(file, mujoco, least, tmp_path / "report.xml", record_property)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "keyframe"),
    [
        pytest.param("robot", "home", marks=needs("unisim")),
        pytest.param("go2", "home", marks=needs("unilab")),
        pytest.param("g1", "stand", marks=needs("unilab")),
    ],
)
def test_both_versions_of_mujoco_agree_on_the_scenes_of_unisim(name, keyframe, tmp_path):
    """UniSim's backend uses MuJoCo 3.11, and Featherlane is compared with 4.0.1 everywhere else."""
    scene, file = tmp_path / "robot.xml", tmp_path / "states.npy"
    if name == "robot":
        scene.write_text(ROBOT)
    else:
        scene = copied(name, tmp_path / name)
    other_mujoco.python("3.11.0", other_mujoco.HERE / "unisim_trajectories.py", scene, keyframe, file)
    np.testing.assert_allclose(np.load(file), trajectories(str(scene), keyframe), rtol=1e-9, atol=1e-9)
