"""Benchmarks that others published, run as they define them: their models, states, options and steps; ten minutes.

    pip install -e '.[bench]' && python benchmarks/published.py --write
    python benchmarks/published.py --only speed --write
    python benchmarks/published.py --only grasp --write

The published speeds are quoted with their machines and dates; nothing is measured for machines that are not here.
Here, MuJoCo's batch and Featherlane run in turns on one thread.  The models are those of the publications: wheels of
PyPI, and files of a commit on GitHub.  Meshes that only draw are left out, as the wheels do not have them.
`--only gpu` measures nothing: it compares tables of the pages with published speeds of GPUs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plots
from contact_problems import grasp
from contact_problems.primitive_scene import primitive_scene
from report import PAGES, arguments, markdown, origin, publish, section

import featherlane as fl
from featherlane import environments
from featherlane.apps.measure.speed_comparison import Ratio, ratio, their_batch
from featherlane.extension import mujoco_module

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from robots.wheels import Unreachable, unpacked

WORLDS = 512
TABLES = ("speed", "grasp", "gpu")
FRAMES = 5  # frames of an environment step of EnvPool's Ant
COLUMNS = (
    "benchmark, model",
    "dofs",
    "published [1000/s]",
    "by",
    "MuJoCo, a core [1000/s]",
    "float64, a core [1000/s]",
    "float32, a core [1000/s]",
    "ratio",
    "cores that equal it",
)
SOURCES = ("", "publication", "date", "machine", "precision", "what was run")


@dataclass(frozen=True)
class Source:
    """A publication: its table or comment, its machine, and the definition of its benchmark."""

    key: str
    publication: str
    date: str
    machine: str
    precision: str
    definition: str


@dataclass(frozen=True)
class Start:
    """How worlds begin and are driven.

    Attributes:
        speed: standard deviation of the initial velocities; the generator is `RandomState(42)`, as in mujoco-torch.
        keyframe: whether all worlds begin at the model's first keyframe, with its controls.
        noise: standard deviation of Ornstein-Uhlenbeck noise of the controls, as a share of half of their range.
        rate: time constant of the noise [s].
        warm: steps before the measured ones.
        steps: measured steps.
        again: number of steps after which all worlds begin again; 0: never.
    """

    speed: float = 0.0
    keyframe: bool = False
    noise: float = 0.0
    rate: float = 0.1
    warm: int = 0
    steps: int = 1000
    again: int = 0


@dataclass(frozen=True)
class Case:
    """A row: a model, its start, and what was published for it.

    Attributes:
        speed: published world-steps per second; None if no number with these states was found.
        source: key of `SOURCES_BY_KEY`.
    """

    name: str
    model: Callable[[], Any]
    start: Start
    source: str
    speed: float | None


def _wheel(name: str, requirement: str, sha256: str, part: str) -> Path:
    return unpacked(name, requirement, (sha256,), part) / part


def mujoco_torch(name: str):
    """Returns a model of mujoco-torch's wheel, of the day after its table was written."""
    folder = _wheel(
        "mujoco_torch-0.2.0",
        "mujoco-torch==0.2.0",
        "95264ddf2eb3ab30a607eeafbf9569592ce10e1001b29f626c69f3872719bb4b",
        "mujoco_torch/test_data/",
    )
    return mujoco_module().MjModel.from_xml_path(str(folder / f"{name}.xml"))


def unilab():
    """Returns UniLab's G1 on a plane, without the meshes that draw it."""
    folder = _wheel(
        "unilab-0.1.0-g1",
        "unilab==0.1.0",
        "008fd0b16ece46e9d3d00f17118bf2d49507ae2f3e6d8d48cc131a42482d7a7f",
        "unilab/assets/robots/g1/",
    )
    return primitive_scene(folder / "scene_flat.xml").compile()


def mujoco_warp(name: str):
    """Returns MuJoCo Warp's humanoid, or its scene of three."""
    folder = _wheel(
        "mujoco_warp-3.12.0-humanoid",
        "mujoco-warp==3.12.0",
        "a0d5d5df854dbf49727cbe2463f8b1c44117cc979cf17ae91d81f291ae0a3b62",
        "mujoco_warp/test_data/humanoid/",
    )
    return mujoco_module().MjModel.from_xml_path(str(folder / f"{name}.xml"))


TORCH = "[mujoco-torch, README](https://github.com/vmoens/mujoco-torch/tree/4ff1216)"
WARP_HUMANOID = "[mujoco_warp pull request 1060](https://github.com/google-deepmind/mujoco_warp/pull/1060)"
UNILAB = "https://github.com/Motphys/UniLab/discussions/2517"
WARP = "[mujoco_warp pull request 1422](https://github.com/google-deepmind/mujoco_warp/pull/1422)"
ENVPOOL = "[EnvPool, benchmark](https://github.com/sail-sg/envpool/blob/main/docs/content/benchmark.rst)"
BENCH_ALL = "`bench_all.py`: velocities of 0.01, 105 steps, then 1000 measured steps without controls; "
SOURCES_BY_KEY = {
    source.key: source
    for source in (
        Source("A", TORCH, "2026-04-22", "NVIDIA H200", "float64", f"{BENCH_ALL}mujoco-torch, tuned, 131,072 worlds"),
        Source("B", TORCH, "2026-04-22", "NVIDIA H200", "float64", f"{BENCH_ALL}MJX, 32,768 worlds"),
        Source(
            "C",
            f"[UniLab discussion 2517]({UNILAB})",
            "2026",
            "not quoted: our copy has the definition, but not the tables",
            "engines differ",
            "G1 `scene_flat`: keyframe `stand` with its controls, 20 steps from there",
        ),
        Source(
            "D",
            WARP_HUMANOID,
            "2026-01-19",
            "NVIDIA RTX PRO 6000 Blackwell",
            "float32",
            "`mjwarp-testspeed`: 8192 worlds, 1000 steps from the first keyframe, noise in the controls",
        ),
        Source(
            "E",
            WARP,
            "2026-06-12",
            "NVIDIA RTX PRO 6000 Blackwell",
            "float32",
            "`mjwarp-testspeed`: 8192 worlds, 1000 steps from the initial pose, noise in the controls",
        ),
        Source(
            "F",
            ENVPOOL,
            "2022, EnvPool 0.5.3",
            "DGX-A100, 256 threads of AMD EPYC 7742",
            "float64",
            "Ant-v3, frames, NUMA and async mode",
        ),
        Source(
            "G", ENVPOOL, "2022, EnvPool 0.5.3", "one thread of AMD EPYC 7742", "float64", "Ant-v3, frames, async mode"
        ),
    )
}
RANDOM = Start(speed=0.01, warm=105, steps=1000)
CASES = (
    Case("mujoco-torch, humanoid", lambda: mujoco_torch("humanoid"), RANDOM, "B", 3_025_783),
    Case("mujoco-torch, ant", lambda: mujoco_torch("ant"), RANDOM, "A", 1_638_131),
    Case("mujoco-torch, half-cheetah", lambda: mujoco_torch("halfcheetah"), RANDOM, "A", 4_479_824),
    Case("mujoco-torch, walker2d", lambda: mujoco_torch("walker2d"), RANDOM, "A", 537_856),
    Case("mujoco-torch, hopper", lambda: mujoco_torch("hopper"), RANDOM, "A", 4_893_648),
    Case("UniLab, G1 scene_flat", unilab, Start(keyframe=True, steps=300, again=20), "C", None),
    Case("mujoco_warp, humanoid", lambda: mujoco_warp("humanoid"), Start(keyframe=True, noise=0.01), "D", 3_973_340),
    Case("mujoco_warp, three humanoids", lambda: mujoco_warp("n_humanoid"), Start(noise=0.01), "E", 1_420_000),
)
ENVPOOL_ROWS = (("F", 3_134_287), ("G", 21_177.71))


class Worlds:
    """The worlds of a case, driven on either side.

    Args:
        batch: a `featherlane.Batch` or a `mujoco.batch.Batch`.
    """

    def __init__(self, case: Case, mj, batch, worlds: int):
        self.start, self.batch = case.start, batch
        self.qpos, self.ctrl = mj.qpos0.copy(), np.zeros(mj.nu)
        if self.start.keyframe:
            self.qpos, self.ctrl = mj.key_qpos[0].copy(), mj.key_ctrl[0].copy()
        self.qvel = self.start.speed * np.random.RandomState(42).randn(worlds, mj.nv)
        limited = np.asarray(mj.actuator_ctrllimited, bool)
        low, high = np.where(limited[:, None], mj.actuator_ctrlrange, (-1.0, 1.0)).T
        self.middle, self.half, self.timestep = (low + high) / 2, (high - low) / 2, mj.opt.timestep
        self.random = np.random.default_rng(0)
        self.put()

    def put(self) -> None:
        """Begins again."""
        self.batch.qpos[:], self.batch.qvel[:] = self.qpos, self.qvel
        self.batch.qacc_warmstart[:] = 0.0
        if self.ctrl.size:
            self.batch.ctrl[:] = self.ctrl

    def drive(self) -> None:
        """Moves the controls by a step of the noise."""
        decay = np.exp(-self.timestep / self.start.rate)
        scale = self.start.noise * np.sqrt(1.0 - decay**2)
        ctrl = np.asarray(self.batch.ctrl)
        noise = scale * self.half * self.random.uniform(-1.0, 1.0, ctrl.shape)
        moved = decay * ctrl + (1.0 - decay) * self.middle + noise
        self.batch.ctrl[:] = np.clip(moved, self.middle - self.half, self.middle + self.half)

    def advance(self, steps: int) -> float:
        """Returns the processor time of this number of steps [s], without that to drive them."""
        if self.start.again:
            self.put()
        if not self.start.noise:
            begin = time.process_time()
            self.batch.step(nstep=steps)
            return time.process_time() - begin
        seconds = 0.0
        for _ in range(steps):
            self.drive()
            begin = time.process_time()
            self.batch.step()
            seconds += time.process_time() - begin
        return seconds


def parts(start: Start, rounds: int) -> list[int]:
    """Returns the steps of each round: all measured steps, in parts or from the start again."""
    if start.again:
        return [start.again] * (start.steps // start.again)
    each, more = divmod(start.steps, rounds)
    return [each + (k < more) for k in range(rounds) if each + (k < more)]


def race(case: Case, worlds: int, rounds: int) -> tuple[int, dict[str, float], Ratio]:
    """Returns the DoFs, world-steps per second by side, and the ratio of float64 to MuJoCo.

    All sides advance the same worlds part by part, in turns, so that each part has the same states.
    """
    mj = case.model()
    model, Theirs = fl.load(mj), their_batch()
    sides = {
        "MuJoCo": Worlds(case, mj, Theirs(mj, worlds, nthread=1), worlds),
        "float64": Worlds(case, mj, fl.Batch(model, worlds, nthread=1), worlds),
        "float32": Worlds(case, mj, fl.Batch(model, worlds, nthread=1, dtype="float32"), worlds),
    }
    for side in sides.values():
        side.advance(case.start.warm or 1)
        if not case.start.warm:
            side.put()
    steps = parts(case.start, rounds)
    seconds = {name: [] for name in sides}
    for k, count in enumerate(steps):
        for name in sides if k % 2 == 0 else reversed(sides):
            seconds[name].append(sides[name].advance(count))
    speeds = {name: worlds * sum(steps) / sum(taken) for name, taken in seconds.items()}
    return mj.nv, speeds, ratio(np.array(seconds["MuJoCo"]), np.array(seconds["float64"]))


def ant_frames(worlds: int, rounds: int) -> dict[str, float]:
    """Returns frames per second of our Ant with random actions, on one thread, by precision."""
    found = {}
    for dtype in ("float64", "float32"):
        env = environments.make_vec("Ant-v5", worlds, nthread=1, dtype=dtype)
        env.reset(seed=1)
        space: Any = env.action_space
        random, seconds = np.random.default_rng(0), []
        for k in range(20 + 10 * rounds):
            action = random.uniform(space.low, space.high).astype(np.float32)
            begin = time.process_time()
            env.step(action)
            if k >= 20:
                seconds.append(time.process_time() - begin)
        found[dtype] = FRAMES * worlds * len(seconds) / sum(seconds)
    return found


def thousands(speed: float) -> str:
    """Returns a speed in thousands per second, with three digits."""
    return f"{float(f'{speed / 1000:.3g}'):,g}"


def cores(published: float, ours: float) -> str:
    """Returns the cores of this machine that equal a published speed, if each adds the speed of one."""
    return f"{published / ours:.1f}"


def row(case: Case, worlds: int, rounds: int) -> list[str]:
    """The cells of `COLUMNS`."""
    dofs, speeds, faster = race(case, worlds, rounds)
    source = SOURCES_BY_KEY[case.source]
    own = speeds["float32" if source.precision == "float32" else "float64"]
    return [
        case.name,
        str(dofs),
        f"{case.speed / 1000:,.0f}" if case.speed else "",
        case.source,
        *(thousands(speeds[name]) for name in ("MuJoCo", "float64", "float32")),
        str(faster),
        cores(case.speed, own) if case.speed else "",
    ]


def rows(worlds: int, rounds: int) -> Iterator[list[str]]:
    """Measures all rows."""
    for case in CASES:
        print(case.name, file=sys.stderr)
        yield row(case, worlds, rounds)
    speeds = ant_frames(worlds, rounds)
    for key, published in ENVPOOL_ROWS:
        shown = [thousands(speeds[name]) for name in ("float64", "float32")]
        name = f"EnvPool, Ant, {'256 threads' if key == 'F' else 'one thread'}"
        yield [name, "14", f"{published / 1000:,.0f}", key, "", *shown, "", cores(published, speeds["float64"])]


def sources() -> str:
    """Returns the table of the publications."""
    lines = [[s.key, s.publication, s.date, s.machine, s.precision, s.definition] for s in SOURCES_BY_KEY.values()]
    return markdown(SOURCES, lines)


@dataclass(frozen=True)
class Use:
    """A use of a simulator, with a speed of a table of the pages and a published speed of a GPU.

    Attributes:
        user: whose use it is.
        quantity: what is measured here.
        section: section of the table, a key of `PAGES`.
        row: first cell of its row, and the second one if several rows begin with it.
        column: its column.
        unit: of the cell.
        published: what was published for a GPU, with its source.
    """

    user: str
    quantity: str
    section: str
    row: str
    column: str
    unit: str
    published: str

    def cells(self) -> list[str]:
        """Returns a row of the table.

        Raises:
            LookupError: the table has no such row or column.
        """
        columns, lines = plots.tables(section(self.section))[0]
        found = [line for line in lines if self.row in (line[0], ", ".join(line[:2]))]
        if len(found) != 1 or self.column not in columns:
            raise LookupError(f"{self.section}: {len(found)} rows {self.row!r}, columns {', '.join(columns)}")
        place = PAGES[self.section].relative_to(PAGES["gpu"].parent).as_posix()
        measured = f"{found[0][columns.index(self.column)]} {self.unit}"
        return [self.user, f"[{self.quantity}]({place})", measured, self.published]


H200 = "NVIDIA H200 (mujoco-torch's [README](https://github.com/vmoens/mujoco-torch/tree/4ff1216), 2026-04-22)"
UNILAB_G1 = "[UniLab issue 1364](https://github.com/Motphys/UniLab/issues/1364), 2026-08-27"
MANISKILL = "ManiSkill 3 on an RTX 4090 ([README](https://pypi.org/project/mani-skill/))"
USES = (
    Use(
        "one robot in control",
        "a step of Panda, median, one core",
        "latency",
        "robosuite/robots/panda/robot, step",
        "ours p50 [us]",
        "us",
        f"1,786 us by MJX, and 16 us by MuJoCo on a CPU core: a step of one humanoid, {H200}",
    ),
    Use(
        "one robot in control",
        "a step of G1, median, one core",
        "latency",
        "robosuite_models/robots/g1/robot, step",
        "ours p50 [us]",
        "us",
        f"630 us: a step of one world with three humanoids, MuJoCo Warp on an RTX PRO 6000 ({WARP}, 2026-06-12)",
    ),
    Use(
        "RL of a legged robot",
        "environment steps of G1's velocity task in mjlab, float32, two cores",
        "integrations-mjlab",
        "Mjlab-Velocity-Flat-Unitree-G1",
        "float32 [steps/s]",
        "steps/s",
        f"237,813 steps/s: G1's tracking task of UniLab, MuJoCo Warp on an RTX 4090 ({UNILAB_G1})",
    ),
    Use(
        "RL of a legged robot",
        "the same by mjbatch, MuJoCo on two cores",
        "integrations-mjlab",
        "Mjlab-Velocity-Flat-Unitree-G1",
        "mjbatch [steps/s]",
        "steps/s",
        "101,906 steps/s: the same task of UniLab by MuJoCo on a Ryzen 9 9950X3D, 16 cores, in the same issue",
    ),
    Use(
        "vision and manipulation",
        "depth images of 64 x 64 of a Panda, float32, one core",
        "cameras",
        "panda",
        "float32 [images/s]",
        "images/s",
        f"more than 30,000 images/s with colour, depth and segmentation: {MANISKILL}",
    ),
    Use(
        "vision and manipulation",
        "robosuite's Lift with two images of 128 x 128, float32, two threads",
        "integrations-robosuite",
        "Lift, two images 128 x 128",
        "float32 [steps/s]",
        "steps/s",
        "no published number with this task",
    ),
    Use(
        "huge batches",
        "world-steps of mujoco-torch's humanoid, float64, one core",
        "published",
        "mujoco-torch, humanoid",
        "float64, a core [1000/s]",
        "thousand/s",
        "3,026 thousand/s: MJX on an NVIDIA H200, in the README above",
    ),
    Use(
        "huge batches",
        "world-steps of MuJoCo Warp's humanoid, float32, one core",
        "published",
        "mujoco_warp, humanoid",
        "float32, a core [1000/s]",
        "thousand/s",
        f"3,973 thousand/s: MuJoCo Warp on an RTX PRO 6000 Blackwell ({WARP_HUMANOID}, 2026-01-19)",
    ),
)
USE_COLUMNS = ("user", "quantity", "Featherlane", "published for a GPU, and for comparison a CPU")


def uses() -> list[list[str]]:
    """Returns the rows of the page about GPUs; nothing is measured."""
    return [use.cells() for use in USES]


USE_NOTE = "The third column is read from the tables of the linked pages, which name their machines."


def note(worlds: int) -> str:
    """Explains the columns."""
    return (
        "Speeds are world-steps (frames for EnvPool) per second of processor time, on one thread with "
        f"{worlds} worlds. `ratio` is float64 divided by MuJoCo's batch, over the same states: median (least - "
        "greatest) of the parts of the run. "
        "`cores that equal it` is the published speed divided by the speed of a core here, in the precision of the "
        "publication. It assumes that each further core adds the speed of one, which was not measured beyond two cores."
    )


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", choices=TABLES, help="one table instead of all")
    parser.add_argument("--worlds", type=int, default=WORLDS, help="worlds on the core")
    parser.add_argument("--rounds", type=int, default=10, help="parts of a run in which the sides take turns")
    asked = parser.parse_args()
    for name in ("worlds", "rounds"):
        if getattr(asked, name) < 1:
            parser.error(f"--{name} {getattr(asked, name)}: at least 1")
    chosen = (asked.only,) if asked.only else TABLES
    try:
        if "speed" in chosen:
            table = markdown(COLUMNS, list(rows(asked.worlds, asked.rounds)))
            publish("published", f"{table}\n\n{note(asked.worlds)}\n\n{sources()}\n\n{origin()}", asked.write)
        if "grasp" in chosen:
            publish("published_grasp", f"{grasp.text()}\n\n{origin()}", asked.write)
        if "gpu" in chosen:
            publish("gpu", f"{markdown(USE_COLUMNS, uses())}\n\n{USE_NOTE}\n\n{origin()}", asked.write)
    except Unreachable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
