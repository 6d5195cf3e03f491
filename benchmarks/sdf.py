"""Steps of models with signed distance fields, compared with MuJoCo's: one world and a batch; half a minute.

    python benchmarks/sdf.py --write

Three scenes of MuJoCo's SDF plugins: a nut that turns down a bolt, a gear that drives another, cubes in a bowl.  All
sides start from the same states of a motion in MuJoCo, on one thread, in turns; the table has medians of the rounds.
"""

from __future__ import annotations

import time

import numpy as np
from report import arguments, markdown, origin, publish

import mujoco  # isort: skip  (the tests' oracle)

import featherlane as fl

NWORLD, SETTLE, STEPS = 64, 700, 30  # worlds of the batch; steps before the measured ones
SPREAD = 1e-3  # m/s and rad/s: standard deviation of the worlds' velocities
COLUMNS = ("scene", "contacts", "MuJoCo [us]", "one world [us]", "batch [us]", "ratio, one world", "ratio, batch")


def scene(fields: dict[str, tuple[str, dict[str, float]]], option: str, worldbody: str, more: str = "") -> str:
    """Returns a scene; `fields` has plugin and attributes by name, and GEOM:name in `worldbody` is its geom."""
    plugins, meshes = "", ""
    for name, (plugin, config) in fields.items():
        text = "".join(f'<config key="{key}" value="{value}"/>' for key, value in config.items())
        plugins += f'<plugin plugin="mujoco.sdf.{plugin}"><instance name="{name}">{text}</instance></plugin>'
        meshes += f'<mesh name="{name}"><plugin instance="{name}"/></mesh>'
        geom = f'<geom type="sdf" mesh="{name}"><plugin instance="{name}"/></geom>'
        worldbody = worldbody.replace(f"GEOM:{name}.", geom)
    return f"""<mujoco><extension>{plugins}</extension><option timestep=".002" {option}/>
    <default><geom solref=".01 1" solimp=".95 .99 .0001" friction=".01"/></default>
    <asset>{meshes}</asset><worldbody>{worldbody}</worldbody>{more}</mujoco>"""


GEAR = {"diameter": 2.8, "teeth": 25, "innerdiameter": 0.2}
CUBES = "".join(
    f'<body pos="{0.2 * (k % 3) - 0.2} {0.2 * (k // 3) - 0.2} -.8" euler="{10 * k} {20 * k} 0"><freejoint/>'
    '<geom type="box" size=".06 .06 .06"/></body>'
    for k in range(6)
)
SCENES = {
    "nut on a bolt": scene(
        {"nut": ("nut", {"radius": 0.26}), "bolt": ("bolt", {"radius": 0.255})},
        'sdf_iterations="10" sdf_initpoints="20"',
        '<body euler="180 0 0">GEOM:bolt.</body><body pos="0 0 .83" quat="0 1 0 0">'
        '<joint type="free" damping="30"/>GEOM:nut.</body>',
    ),
    "two gears": scene(
        {"first": ("gear", GEAR | {"alpha": 0.0}), "second": ("gear", GEAR | {"alpha": 0.1})},
        'sdf_iterations="5" sdf_initpoints="20"',
        '<body><joint damping="1000" axis="0 0 1"/>GEOM:first.</body>'
        '<body pos="2.85 0 0"><joint name="drive" damping=".1" axis="0 0 1"/>GEOM:second.</body>',
        '<actuator><motor joint="drive" gear="1500"/></actuator>',
    ),
    "six cubes in a bowl": scene(
        {"bowl": ("bowl", {"height": 0.4, "radius": 1.0, "thickness": 0.05})},
        'sdf_iterations="5" sdf_initpoints="20"',
        f"<body>GEOM:bowl.</body>{CUBES}",
    ),
}


def clocked(call) -> float:
    """Returns the processor time of a call [us]."""
    start = time.process_time()
    call()
    return 1e6 * (time.process_time() - start)


def row(name: str, rounds: int) -> list[str]:
    """Returns the row of a scene."""
    model = fl.load(SCENES[name])
    mj = model.to_mujoco()
    theirs, data, batch = mujoco.MjData(mj), fl.Data(model), fl.Batch(model, NWORLD, nthread=1)
    theirs.ctrl[:], data.ctrl[:], batch.ctrl[:] = 1.0, 1.0, 1.0
    mujoco.mj_step(mj, theirs, SETTLE)
    qpos, qvel = theirs.qpos.copy(), theirs.qvel.copy()
    others = qvel + SPREAD * np.random.default_rng(0).standard_normal((NWORLD, mj.nv))
    times, contacts = [], 0
    for _ in range(rounds + 1):
        theirs.qpos[:], theirs.qvel[:], data.qpos[:], data.qvel[:] = qpos, qvel, qpos, qvel
        batch.qpos[:], batch.qvel[:] = qpos, others
        sides = (
            clocked(lambda: mujoco.mj_step(mj, theirs, STEPS)) / STEPS,
            clocked(lambda: fl.step(model, data, STEPS)) / STEPS,
            clocked(lambda: batch.step(STEPS)) / STEPS / NWORLD,
        )
        times.append(sides)
        contacts = theirs.ncon
    taken = np.array(times[1:])  # the first round warms up
    middle, ratio = np.median(taken, axis=0), np.median(taken[:, :1] / taken[:, 1:], axis=0)
    return [name, str(contacts), *(f"{x:.0f}" for x in middle), *(f"{x:.1f}" for x in ratio)]


def main() -> None:
    """Prints the table; with `--write` also writes it into its page."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    given = parser.parse_args()
    rows = [row(name, given.rounds) for name in SCENES]
    note = (
        f"Each time is that of a step per world, on one thread. The batch has {NWORLD} worlds that start with "
        "different velocities. `contacts` is the number of contacts in the last step of MuJoCo's simulation. `ratio` "
        "is MuJoCo's time divided by Featherlane's."
    )
    publish("sdf", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", given.write)


if __name__ == "__main__":
    main()
