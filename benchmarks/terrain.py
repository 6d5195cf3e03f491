"""Contact on terrain: scenes with known answers, and robots on rough ground, now and in an earlier version.

    git worktree add --detach FOLDER eaef9756
    python benchmarks/terrain.py --before FOLDER/src --write
    python benchmarks/terrain.py --only robots --before FOLDER/src --write

The scenes take five minutes, the robots ten.  The commit above is the last one in which each prism of a height field is
a convex shape with at most one contact point.  Each version runs in a separate process; for the robots, the rounds
of the two versions alternate.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np
from contact_problems import terrain_scenes
from report import ROOT, arguments, markdown, origin, publish

sys.path.insert(0, str(ROOT / "tests"))
from robots.wheels import unpacked

SCENES = Path(terrain_scenes.__file__)
FAMILIES = ("scenes", "robots")
CELL, SAMPLES, HEIGHT = 0.1, 101, 0.06  # of the rough field: side of a cell [m], samples along a side, height [m]
WORLDS, ROUNDS = 128, 7
MJLAB = "mjlab==1.6.0"
DIGEST = "03d003854e2f44c48330c6dcf4c2253ff7641bb569747846825a21b9efa8540b"
# the file, the stiffness and damping of the joints' servos, height and joint angles of the standing robot, its feet
ROBOTS = {
    "Go1": {
        "file": "unitree_go1/xmls/go1.xml",
        "servo": (30.0, 1.0),
        "height": 0.3,
        "home": {".*thigh_joint": 0.9, ".*calf_joint": -1.8, ".*R_hip_joint": 0.1, ".*L_hip_joint": -0.1},
        "foot": "[FR][LR]_foot_collision",
    },
    "G1": {
        "file": "unitree_g1/xmls/g1.xml",
        "servo": (100.0, 3.0),
        "height": 0.79,
        "home": {
            ".*_hip_pitch_joint": -0.312,
            ".*_knee_joint": 0.669,
            ".*_ankle_pitch_joint": -0.363,
            ".*_elbow_joint": 0.6,
            ".*_shoulder_pitch_joint": 0.2,
            "left_shoulder_roll_joint": 0.2,
            "right_shoulder_roll_joint": -0.2,
        },
        "foot": "(left|right)_foot[1-7]_collision",
    },
}


def robot(name: str, ground: str) -> mujoco.MjModel:
    """Returns a robot of mjlab with servos, its keyframe `home`, and a "height field" or "boxes"."""
    chosen = ROBOTS[name]
    part = "mjlab/asset_zoo/robots/unitree_g"
    folder = unpacked("mjlab-1.6.0", MJLAB, (DIGEST,), part) / "mjlab/asset_zoo/robots"
    spec = mujoco.MjSpec.from_file(str(folder / chosen["file"]))
    spec.option.timestep, spec.option.integrator = 0.005, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # meshes are only drawn
    for geom in [geom for geom in spec.geoms if geom.type == mujoco.mjtGeom.mjGEOM_MESH]:
        spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)
    for geom in spec.geoms:
        foot = re.fullmatch(chosen["foot"], geom.name) is not None
        geom.condim, geom.priority, geom.friction[0] = (3 if foot else 1), int(foot), 0.6
    add_ground(spec, ground)
    for joint in spec.joints:
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            joint.armature = max(joint.armature, 0.01)
            servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            servo.set_to_position(kp=chosen["servo"][0], kv=chosen["servo"][1])
    pose = spec.compile().qpos0
    pose[:3] = 0.0, 0.0, chosen["height"]
    # the free joint is first, so joint j has the coordinate j + 6
    for j, joint in enumerate(spec.joints):
        for pattern, angle in chosen["home"].items():
            if re.fullmatch(pattern, joint.name):
                pose[j + 6] = angle
    spec.add_key(name="home", qpos=pose.tolist())
    return spec.compile()


def add_ground(spec: mujoco.MjSpec, ground: str) -> None:
    """Adds a rough height field, or boxes of 1 m and different heights."""
    random, half = np.random.default_rng(0), CELL * (SAMPLES - 1) / 2
    if ground == "height field":
        heights = random.uniform(0.0, 1.0, SAMPLES * SAMPLES)
        size = [half, half, HEIGHT, 0.2]
        spec.add_hfield(name="ground", nrow=SAMPLES, ncol=SAMPLES, size=size, userdata=heights.tolist())
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname="ground")
    else:
        for x in np.arange(0.5 - half, half):
            for y in np.arange(0.5 - half, half):
                top = random.uniform(0.0, HEIGHT)
                spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5, 0.5, 0.1], pos=[x, y, top - 0.1])


def start(source: Path | None, *asked: str) -> subprocess.Popen[str]:
    """Starts `terrain_scenes.py` with the version in a folder, None for this one."""
    paths = [str(Path(mujoco.__file__).parents[1]), str(source or ROOT / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(SCENES), *asked]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(program: subprocess.Popen[str]) -> dict:
    """Returns the next JSON object that a program prints, after a line of input.

    Raises:
        JSONDecodeError: the program has failed.
    """
    program.stdin.write("\n")
    program.stdin.flush()
    return json.loads(program.stdout.readline())


def scene_table(before: Path) -> str:
    """Returns the table of the scenes: the expected value, MuJoCo, the earlier version and this one."""
    asked = ((None, "MuJoCo"), (before, "featherlane"), (None, "featherlane"))
    theirs, old, new = [answer(start(source, engine)) for source, engine in asked]
    rows = [
        [name, expected, *(found.get(name, "") for found in (theirs, old, new))]
        for name, expected in terrain_scenes.EXPECTED.items()
    ]
    return markdown(("scene", "expected", "MuJoCo", "before", "now"), rows)


def robot_table(before: Path, rounds: int) -> str:
    """Returns the table of the robots' speeds; the versions alternate."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ROBOTS:
            for ground in ("height field", "boxes"):
                file = str(Path(folder) / "robot.mjb")
                mujoco.mj_saveModel(robot(name, ground), file)
                programs = [start(source, file, str(WORLDS)) for source in (before, None)]
                # the first round compiles the kernels
                pairs = [[answer(program) for program in programs] for _ in range(rounds + 1)][1:]
                for program in programs:
                    program.communicate()
                ratios = sorted(new["speed"] / old["speed"] for old, new in pairs)
                speeds = [statistics.median(pair[side]["speed"] for pair in pairs) for side in (0, 1)]
                contacts = [statistics.mean(pair[side]["contacts"] for pair in pairs) for side in (0, 1)]
                ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
                rows.append(
                    [f"{name}, {ground}", *(f"{x:.1f}" for x in contacts), *(f"{x:,.0f}" for x in speeds), ratio]
                )
    columns = ("robot, ground", "contacts before", "now", "steps per second before", "now", "ratio of the rounds")
    return markdown(columns, rows)


def main() -> None:
    """Prints the tables of the chosen families, and writes them into their page with `--write`."""
    parser = arguments(__doc__)
    parser.add_argument("--only", choices=FAMILIES, help="one family instead of both")
    parser.add_argument("--before", type=Path, metavar="FOLDER", required=True, help="source of the earlier version")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="measured rounds of each robot")
    asked = parser.parse_args()
    if not (asked.before / "featherlane").is_dir():
        parser.error(f"--before: {asked.before} has no folder featherlane; give the folder src of a worktree")
    written = origin().replace(str(asked.before), "FOLDER/src")
    if asked.only != "robots":
        publish("terrain-scenes", f"{scene_table(asked.before)}\n\n{written}", asked.write)
    if asked.only != "scenes":
        publish("terrain-robots", f"{robot_table(asked.before, asked.rounds)}\n\n{written}", asked.write)


if __name__ == "__main__":
    main()
