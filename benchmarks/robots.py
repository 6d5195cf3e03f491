"""Robots as they come, with their meshes, against MuJoCo: whole steps of a batch and of one world; two minutes.

    python benchmarks/robots.py --write
    python benchmarks/robots.py --held-out --write    ten robots that were named before their first timing
    python benchmarks/robots.py --second-held-out --write    ten further ones
    python benchmarks/robots.py --muscles --write     musculoskeletal models

The models are those of public wheels (`tests/robots/wheels.py`), unchanged.  Races and shares are those of
`featherlane bench`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from races import race_precisions
from report import arguments, markdown, origin, publish

from featherlane.apps.measure.speed_comparison import Course, Lineup, race_batches, race_one_world
from featherlane.engine.model.enums import MESH
from featherlane.tools.profile.stage_times import stage_times

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import HELD_OUT_MODELS, MUSCLE_MODELS, SECOND_HELD_OUT_MODELS, Unreachable, model_path

ROBOTS = {
    "robosuite/robots": "spot spot_arm tiago baxter gr1 panda sawyer ur5e jaco xarm7",
    "robosuite/grippers": "fourier_left_hand inspire_right_hand robotiq_gripper_s jaco_three_finger_gripper",
    "robosuite_models/robots": "h1 g1 go2 b1 z1 yumi pr2 aloha arx5",
    "robosuite_models/grippers": "ability_left_hand g1_three_finger_left_gripper aloha_gripper",
    "gym_aloha": "bimanual_viperx_transfer_cube",
    "gymnasium_robotics/assets": (
        "hand/manipulate_block hand/manipulate_egg adroit_hand/adroit_hammer fetch/push "
        "kitchen_franka/kitchen_assets/kitchen_env_model"
    ),
    "mjx": "shadow_hand/scene_right convex barkour_v0/assets/barkour_v0_mjx",
    "metaworld/sawyer_xyz": "sawyer_assembly_peg sawyer_box sawyer_window sawyer_soccer sawyer_handle_press",
    "myosuite": (
        "simhive/myo_sim/leg/myolegs envs/myo/assets/leg/myolegs_chasetag envs/myo/assets/leg_soccer/myolegs_soccer "
        "envs/myo/assets/arm/myoarm_bionic_bimanual simhive/MPL_sim/scenes/left_arm simhive/YCB_sim/ycb_objects"
    ),
}
WHOLE = ("robosuite/robots", "robosuite_models/robots")  # folders of folders, each with a robot.xml
MODELS = tuple(
    f"{folder}/{name}{'/robot' * (folder in WHOLE)}" for folder, names in ROBOTS.items() for name in names.split()
)
WORLDS = 256
COLUMNS = (
    "model",
    "dofs",
    "geoms, hulls",
    "largest hull",
    "contacts",
    "MuJoCo [us]",
    "ours [us]",
    "ratio",
    "float32",
    "float32 / float64",
    "one world",
    "collision",
    "solve",
)
# stages of the step that find contacts, and that find the acceleration under them
COLLISION, SOLVE = ("collision", "early_contacts"), ("solve_constraint", "solve_in_parts")


def row(name: str, rounds: int) -> list[str]:
    """All races of one robot, and where the time of its step goes."""
    lineup = Lineup(str(model_path(name)), Course(rounds=rounds, worlds=WORLDS))
    double, worlds = race_batches(lineup)
    single, _ = race_batches(lineup.on(dtype="float32"))
    times, model = stage_times(lineup), lineup.model
    hulls = [int(model.geom_dataid[g]) for g in model.collide_geom if model.geom_type[g] == MESH]
    return [
        name,
        str(model.nv),
        f"{len(model.collide_geom)}, {len(hulls)}",
        str(max((model.hull_vertnum[mesh] for mesh in hulls), default="")),
        f"{worlds['contacts']['mean']:.1f}",
        f"{double.theirs:.1f}",
        f"{double.ours:.1f}",
        str(double.ratio),
        str(single.ratio),
        f"{race_precisions(lineup).median:.2f}",
        f"{race_one_world(lineup).ratio.median:.2f}",
        *(f"{sum(times.get(stage, 0.0) for stage in part) / times['step']:.0%}" for part in (COLLISION, SOLVE)),
    ]


NOTE = f"""\
Times are microseconds per step of a world on one thread, with {WORLDS} worlds. \
A simulation with random controls generates the initial state of each world. \
The measurement is repeated in several rounds ([Timing method](speed.md#timing-method)). \
Each ratio is the median of the rounds, and the brackets have the least and the greatest of the rounds' ratios. \
Sensors are off. Featherlane and MuJoCo use Newton's method and the model's cone and tolerance. The columns are:

- `geoms, hulls`: the number of geoms that may collide, and how many of them are meshes
- `largest hull`: the number of vertices of the largest mesh hull
- `contacts`: the mean number of contacts of a world
- `ratio`: the speed of Featherlane in float64 divided by the speed of MuJoCo
- `float32`: the speed of Featherlane in float32 divided by the speed of MuJoCo
- `float32 / float64`: the speed of Featherlane in float32 divided by its speed in float64
- `one world`: the speed of `fl.step` divided by the speed of `mj_step`
- `collision`, `solve`: shares of a batch step in float64"""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="measured rounds of each race")
    parser.add_argument("--held-out", action="store_true", help="the robots that were named before their first timing")
    parser.add_argument("--second-held-out", action="store_true", help="ten further ones, likewise")
    parser.add_argument("--muscles", action="store_true", help="musculoskeletal models")
    parser.add_argument("--models", nargs="*", help="wheel/model")
    asked = parser.parse_args()
    rows, chosen = [], HELD_OUT_MODELS if asked.held_out else MUSCLE_MODELS if asked.muscles else MODELS
    for name in asked.models or (SECOND_HELD_OUT_MODELS if asked.second_held_out else chosen):
        print(name, file=sys.stderr)
        try:
            rows.append(row(name, asked.rounds))
        except Unreachable as error:
            sys.exit(str(error))
    table = markdown(COLUMNS, rows)
    if asked.held_out:
        publish("held-out-robots", f"{table}\n\n{origin()}", asked.write)
    elif asked.second_held_out:
        publish("second-held-out-robots", f"{table}\n\n{origin()}", asked.write)
    elif asked.muscles:
        publish("muscle-robots", f"{table}\n\n{origin()}", asked.write)
    else:
        publish("robots", f"{table}\n\n{NOTE}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
