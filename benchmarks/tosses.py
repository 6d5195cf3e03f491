"""Real cube tosses against simulation, with parameters identified on one half and judged on the other; five minutes.

    python benchmarks/tosses.py PATH --write

PATH is a file of tosses, the folder `tosses_processed` of the public data, its zip file, or the address of this file,
https://github.com/DAIRLab/contact-nets/archive/refs/heads/main.zip.  `--engine pybullet=PYTHON` adds an engine that
another interpreter has (pybullet, drake, dart).  `--gradients` compares gradients with finite differences, `--causes`
contact models and friction cones under the parameters of the data set.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import toss_gradients
from report import arguments, markdown, origin, publish
from toss_recording import (
    ADDRESS,
    HALF,
    INERTIA,
    MASS,
    RATE,
    Errors,
    Parameter,
    Recording,
    errors,
    evolve,
    halves,
    load,
)

import featherlane as fl

# one step for each sample: the backward differences of the recording are then the velocities of semi-implicit Euler
SCENE = f"""<mujoco><option timestep="{1.0 / RATE}" cone="elliptic"/><worldbody>
  <geom name="board" type="plane" size="1 1 1" pos="0 0 -0.0012" friction="0.18 0.005 0.0001" priority="1"/>
  <body name="cube"><freejoint/><inertial pos="0 0 0" mass="{MASS}" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>
    <geom name="cube" type="box" size="{HALF} {HALF} {HALF}"/></body></worldbody></mujoco>"""
BOARD, CUBE = 0, 1  # geoms; the board's friction, solref and solimp count, by its priority
POPULATION, GENERATIONS, FIT_SAMPLES = 20, 30, 100
SHAPE = {
    "friction": Parameter(0.17, 0.15),
    "half width [m]": Parameter(HALF, 0.0004, log=False),
    "height of the board [m]": Parameter(-0.0012, 0.0004, log=False),
    "inertia [kg m2]": Parameter(INERTIA, 0.1),
}
SOFT = {
    "time constant [s]": Parameter(0.02, 0.4, least=2.0 / RATE),  # MuJoCo raises smaller values to two steps
    "damping ratio": Parameter(0.7, 0.4),
    "impedance at contact": Parameter(0.7, 0.3, most=0.95),
    "width of impedance [m]": Parameter(0.001, 0.6),
}
BOUNCE = {"restitution": Parameter(0.125, 0.4, most=1.0)}


class Variant(NamedTuple):
    """A contact model with options, and its unknowns."""

    options: dict
    unknowns: dict[str, Parameter]


CONE = {"contact_model": "lcp", "lcp_solver": "pgs", "lcp_cone": "cone"}
VARIANTS = {
    "convex": Variant({"contact_model": "convex"}, SHAPE | SOFT | {"impratio": Parameter(1.0, 1.0)}),
    "coulomb": Variant({"contact_model": "coulomb"}, SHAPE | SOFT | BOUNCE),
    "lcp, cone": Variant(CONE, SHAPE | BOUNCE),
    "lcp, pyramid": Variant({"contact_model": "lcp"}, SHAPE | BOUNCE),
}


def apply(batch: fl.Batch, values: dict[str, np.ndarray]) -> None:
    """Sets parameters of worlds, each (nworld,)."""
    for name, value in values.items():
        if name == "friction":
            batch.expand("geom_friction")[:, BOARD, 0] = value
        elif name == "half width [m]":
            batch.expand("geom_size")[:, CUBE] = value[:, None]
        elif name == "height of the board [m]":
            batch.expand("geom_pos")[:, BOARD, 2] = value
        elif name == "inertia [kg m2]":
            batch.expand("body_inertia")[:, 1] = value[:, None]
        elif name == "impratio":
            batch.expand("opt.impratio")[:, 0] = value
        elif name == "restitution":
            batch.expand("geom_restitution")[:, BOARD] = value
        else:
            field, k = {"time": ("geom_solref", 0), "damping": ("geom_solref", 1), "impedance": ("geom_solimp", 0)}.get(
                name.split()[0], ("geom_solimp", 2)
            )
            batch.expand(field)[:, BOARD, k] = value
    batch.set_const()


def prepared(options: dict) -> fl.Model:
    """The scene under options of the contact model."""
    model = fl.load(SCENE)
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model


def simulate(model: fl.Model, recording: Recording, values: dict[str, np.ndarray] | None = None) -> np.ndarray:
    """Simulates all tosses of a recording, for each candidate, as one batch.

    Args:
        model: the scene.
        recording: n tosses.
        values: by unknown, (candidates,); None for the model's.

    Returns:
        (candidates, n, L, 7) poses.
    """
    count = len(next(iter(values.values()))) if values else 1
    n, samples = recording.pose.shape[:2]
    batch = fl.Batch(model, count * n)
    batch.qpos[:] = np.tile(recording.pose[:, 0], (count, 1))
    batch.qvel[:] = np.tile(recording.velocity, (count, 1))
    if values:
        apply(batch, {name: np.repeat(value, n) for name, value in values.items()})
    pose = np.empty((count * n, samples, 7))
    pose[:, 0] = batch.qpos
    pose[:, 1:] = batch.rollout(samples - 1, record=("qpos",))["qpos"]
    return pose.reshape(count, n, samples, 7)


def judge(model: fl.Model, recording: Recording, values: dict[str, float] | None = None) -> Errors:
    """Errors of all tosses over their whole length, short and long tosses in separate batches."""
    found = [np.empty(len(recording.length)) for _ in Errors._fields]
    for ids in np.array_split(np.argsort(recording.length), 4):
        part = recording.part(ids)
        arrays = values and {name: np.array([value]) for name, value in values.items()}
        for whole, some in zip(found, errors(part, simulate(model, part, arrays)), strict=True):
            whole[ids] = some[0]
    return Errors(*found)


def identify(variant: Variant, recording: Recording, *, generations=GENERATIONS, population=POPULATION, seed=0):
    """Fits the unknowns of a variant by CMA-ES; returns the values by name, the seconds and the CPU seconds."""
    model, names = prepared(variant.options), list(variant.unknowns)
    part = recording.part(np.arange(len(recording.length)), FIT_SAMPLES)

    def values(x: np.ndarray) -> dict[str, np.ndarray]:
        return {name: variant.unknowns[name].value(x[..., k]) for k, name in enumerate(names)}

    simulate(model, part, values(np.zeros((1, len(names)))))  # kernels are compiled or loaded
    start, cpu = time.perf_counter(), time.process_time()
    found = evolve(
        lambda x: errors(part, simulate(model, part, values(x))).loss,
        len(names),
        population=population,
        generations=generations,
        seed=seed,
    )
    seconds = time.perf_counter() - start, time.process_time() - cpu
    return {name: float(value) for name, value in values(found).items()}, *seconds


def in_mujoco(recording: Recording, values: dict[str, float]) -> Errors:
    """The errors of MuJoCo's `mj_step` with parameters of the convex model."""
    import mujoco

    m = mujoco.MjModel.from_xml_string(SCENE)
    m.geom_friction[BOARD, 0], m.geom_size[CUBE] = values["friction"], values["half width [m]"]
    m.geom_rbound[CUBE] = np.sqrt(3.0) * values["half width [m]"]
    m.geom_aabb[CUBE, 3:] = values["half width [m]"]
    m.geom_pos[BOARD, 2], m.body_inertia[1] = values["height of the board [m]"], values["inertia [kg m2]"]
    m.geom_solref[BOARD] = values["time constant [s]"], values["damping ratio"]
    m.geom_solimp[BOARD, [0, 2]] = values["impedance at contact"], values["width of impedance [m]"]
    m.opt.impratio = values["impratio"]
    d = mujoco.MjData(m)
    mujoco.mj_setConst(m, d)
    pose = np.full((1, *recording.pose.shape), np.nan)
    for k, length in enumerate(recording.length):
        mujoco.mj_resetData(m, d)
        d.qpos[:], d.qvel[:] = recording.pose[k, 0], recording.velocity[k]
        for sample in range(length):
            pose[0, k, sample] = d.qpos
            mujoco.mj_step(m, d)
    return Errors(*(x[0] for x in errors(recording, pose)))


CAUSES = {  # the same parameters under other options
    "lcp, frozen pyramid (default)": {"contact_model": "lcp"},
    "lcp, consistent pyramid": {"contact_model": "lcp", "lcp_friction": "consistent"},
    "lcp, pyramid by pgs": {"contact_model": "lcp", "lcp_solver": "pgs"},
    "lcp, cone by pgs": CONE,
    "lcp, cone by apgd": CONE | {"lcp_solver": "apgd"},
    "lcp, cone, softness of solref": CONE | {"softness": "solref"},
    "convex, pyramid": {"contact_model": "convex", "cone": "pyramidal"},
    "convex, cone": {"contact_model": "convex"},
    "coulomb": {"contact_model": "coulomb"},
}
NOISE = 0.0055, 0.07  # of velocities [m/s, rad/s]: the change if they are fitted to three samples instead of two


def slid(recording: Recording, pose: np.ndarray) -> float:
    """The median over tosses of how much too far the cube goes along its way [% of the width]."""
    at = np.arange(len(recording.length)), recording.length - 1
    real, end = recording.pose[at][:, :2], pose[at][:, :2]
    way = real - recording.pose[:, 0, :2]
    return 50.0 / HALF * float(np.median(((end - real) * way).sum(1) / np.linalg.norm(way, axis=1)))


def causes(recording: Recording) -> str:
    """Returns tables: contact models under the authors' parameters, errors by final face, and the floor by noise."""
    rows = []
    for name, options in CAUSES.items():
        for restitution in (0.125, 0.0) if name in ("lcp, frozen pyramid (default)", "lcp, cone by pgs") else (0.125,):
            model = prepared(options)
            model.geom_restitution[BOARD] = restitution
            pose = simulate(model, recording)[0]
            found = Errors(*(x[0] for x in errors(recording, pose[None])))
            same = found.last < 45.0
            keys = "position", "position median", "rotation", "rotation median", "other face"
            rows.append(
                [name + (", restitution 0" if restitution == 0.0 else "")]
                + [f"{found.summary()[key]:.1f}" for key in keys]
                + [f"{slid(recording, pose):.0f}"]
                + [f"{100 * found.position[same].mean():.1f}", f"{found.rotation[same].mean():.1f}"]
            )
    columns = COLUMNS[:6] + ["too far [%]", "position, same face [%]", "rotation, same face [°]"]
    model, rng = prepared({"contact_model": "convex"}), np.random.default_rng(0)
    pose = simulate(model, recording)[0]
    noise = np.concatenate([NOISE[k] * rng.standard_normal((len(pose), 3)) for k in range(2)], axis=1)
    moved = simulate(model, recording._replace(velocity=recording.velocity + noise))[0]
    floor = Errors(*(x[0] for x in errors(recording._replace(pose=pose), moved[None]))).summary()
    cells = ["convex against convex with velocities changed by noise", *(f"{floor[key]:.1f}" for key in keys)]
    return f"{markdown(columns, rows)}\n\n{markdown(COLUMNS[:6], [cells])}"


def engine(name: str, python: str, place: str, generations: int) -> dict:
    """Runs toss_engines.py under another interpreter; returns its record."""
    script = Path(__file__).with_name("toss_engines.py")
    result = subprocess.run([python, str(script), name, place, str(generations)], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{name}: {result.stderr.strip().splitlines()[-1]}")
    return json.loads(result.stdout.splitlines()[-1])


def record(variant: Variant, fit: Recording, held: Recording, generations: int) -> dict:
    """Identifies a variant on one half; returns errors on the other half before and after, parameters and times."""
    model = prepared(variant.options)
    guess = {name: unknown.first for name, unknown in variant.unknowns.items()}
    found, seconds, cpu = identify(variant, fit, generations=generations)
    before, after = (judge(model, held, values).summary() for values in (guess, found))
    return {"before": before, "after": after, "parameters": found, "seconds": seconds, "cpu": cpu}


COLUMNS = ["simulation", "position [%]", "median", "rotation [°]", "median", "other face [%]", "time [s]", "CPU [s]"]


def row(label: str, found: dict[str, float], seconds: tuple[float | None, ...] = ()) -> list[str]:
    """A row of the table."""
    keys = "position", "position median", "rotation", "rotation median", "other face"
    times = ["" if s is None else f"{s:.0f}" for s in seconds] or ["", ""]
    return [label, *(f"{found[key]:.1f}" for key in keys), *times]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("path", help=f"the recording, or its address {ADDRESS}")
    parser.add_argument("--variants", default=",".join(VARIANTS).replace("lcp, ", "lcp "), help="which are identified")
    parser.add_argument("--generations", type=int, default=GENERATIONS)
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--gradients", action="store_true", help="the table of gradients instead")
    parser.add_argument("--causes", action="store_true", help="the table of contact options instead")
    parser.add_argument("--parameters", type=Path, help="write all results into this JSON file")
    parser.add_argument("--reuse", type=Path, help="read results from this file; only other variants are identified")
    args = parser.parse_args()
    recording = load(args.path)
    fit, held = halves(len(recording.length))
    if args.causes:
        return publish("real-impacts-causes", f"{causes(recording)}\n\n{origin()}", args.write)
    if args.gradients:
        text = toss_gradients.table(recording.part(fit), recording.part(held), args.generations)
        return publish("real-impacts-gradients", f"{text}\n\n{origin()}", args.write)
    records = json.loads(args.reuse.read_text()) if args.reuse else {}
    for name in (name.replace("lcp ", "lcp, ") for name in args.variants.split(",")):
        if name not in records:
            records[name] = record(VARIANTS[name], recording.part(fit), recording.part(held), args.generations)
            print(name, records[name], file=sys.stderr, flush=True)
    for text in args.engine:
        name, _, python = text.partition("=")
        found = engine(name, python, args.path, args.generations)
        records[found.pop("name")] = found
    if args.parameters:
        args.parameters.write_text(json.dumps(records, indent=1) + "\n")
    rows = []
    for name, found in records.items():
        rows.append(row(f"{name}: initial guess", found["before"]))
        rows.append(row(f"{name}: identified", found["after"], (found["seconds"], found["cpu"])))
        if name == "convex":
            judged = in_mujoco(recording.part(held), found["parameters"]).summary()
            rows.append(row("MuJoCo with the parameters of convex", judged))
    unknowns = {name: found["parameters"] for name, found in records.items()}
    names = list(dict.fromkeys(name for found in unknowns.values() for name in found))
    cells = [[name, *(f"{found[name]:.3g}" if name in found else "" for found in unknowns.values())] for name in names]
    text = f"{markdown(COLUMNS, rows)}\n\n{markdown(['identified', *unknowns], cells)}"
    publish("real-impacts", f"{text}\n\n{origin()}", args.write)


if __name__ == "__main__":
    main()
