"""A real UR10e against its identified and its nominal model, on recordings that were not used; half a minute.

    git clone https://github.com/shamilmamedov/dynamic_calibration
    python benchmarks/recorded_arm.py dynamic_calibration --write

`--pinocchio PYTHON` compares the torques of one recording with Pinocchio, which this interpreter has.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from arm_recording import (
    GAINS,
    JOINTS,
    RATE,
    Parameters,
    Recording,
    consistent,
    equations,
    least_squares,
    parameters,
    read,
    regressor,
    set_parameters,
)
from report import arguments, markdown, origin, publish

import featherlane as fl

URDF, DATA = Path("URe/urdf/ur10e.urdf"), Path("dataset_ur10e")
FIT = "20_02_05-20sec_8harm", "20_02_10-30sec_12harm", "20_02_12-40sec_12harm"
HELD = "20_02_12-50sec_12harm", "20_02_19_14harm50sec", "20_02_19_15harm50sec"
POINTS = "20_01_17-ptp_10_points"  # point-to-point motions, the authors' validation
MOVES = 0.02  # least speed of a joint that moves [rad/s]
SUBSTEPS, HORIZONS = 10, (5, 10)  # steps per sample; samples that are predicted
EVERY, PAST = 5, 5  # samples between the starts of predictions; samples before a start that give a disturbance


def model_of(folder: Path) -> fl.Model:
    """Loads the robot's URDF; bodies do not touch, and the recorded positions are within the limits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a URDF has for other simulators, and a link without inertia
        model = fl.load(folder / URDF, repair=True)
    model.opt.timestep = 1.0 / (RATE * SUBSTEPS)
    model.opt.disableflags = "contact,limit"
    return model


def recordings(folder: Path) -> dict[str, Recording]:
    """Reads the recordings that are used."""
    files = {name: DATA / "identification_data" / f"ur-{name}.csv" for name in FIT + HELD}
    files[POINTS] = DATA / "validation_data" / f"ur-{POINTS}.csv"
    return {name: read(folder / file) for name, file in files.items()}


class Identified(NamedTuple):
    """Parameters by method, seconds by step, the number of base parameters and the weights of joints."""

    found: dict[str, Parameters]
    seconds: dict[str, float]
    rank: int
    weight: np.ndarray


def identify(model: fl.Model, given: list[Recording]) -> Identified:
    """Fits all parameters, consistent ones, and friction with and without rotor inertia under the nominal ones."""
    nominal = fl.query.inertial_parameters(model, fl.Data(model))[1:]
    seconds, start = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal start
        seconds[name], start = time.perf_counter() - start, time.perf_counter()

    known = equations(model, given)
    lap("regressor and QR")
    k = known.A.shape[2]
    bodies = k - 4 * JOINTS
    base, weight, rank = least_squares(known, np.arange(k))
    lap("base parameters")
    fixed = np.zeros(k)
    fixed[:bodies] = nominal.ravel()
    rest = known.without(fixed)
    friction = fixed + least_squares(rest, np.arange(bodies + JOINTS, k))[0]
    rotors = fixed + least_squares(rest, np.arange(bodies, k))[0]
    start = time.perf_counter()
    first = parameters(friction)._replace(armature=np.ones(JOINTS))
    whole = consistent(*known.weighted(weight), first)
    lap("consistent parameters")
    found = {
        "nominal, friction fitted": parameters(friction),
        "nominal, friction and rotors fitted": parameters(rotors),
        "base parameters": parameters(base),
        "consistent parameters": whole,
    }
    return Identified(found, seconds, rank, weight)


def published(folder: Path) -> tuple[Parameters, np.ndarray]:
    """The authors' identified parameters and drive gains."""
    text = (folder / "UR10E_parameters.txt").read_text()

    def numbers(name: str) -> np.ndarray:
        found = re.search(rf"{name}\s*=\s*\[([^]]*)]", text)
        assert found is not None, name
        return np.array(found[1].split(), dtype=float)

    body = numbers("pi_rgd").reshape(-1, 10)[:, [0, 3, 5, 1, 2, 4, 6, 7, 8, 9]]
    viscous, coulomb, offset = numbers("pi_frcn").reshape(-1, 3).T
    return Parameters(body, numbers("pi_drvs"), coulomb, viscous, offset), numbers("drvGains")


def shares(error: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Returns the RMS errors of the joints as shares of the RMS of the signal, (6,) [%]."""
    return 100.0 * np.linalg.norm(error, axis=0) / np.linalg.norm(signal, axis=0)


def inverse(model: fl.Model, p: Parameters, recording: Recording) -> np.ndarray:
    """Returns the torques of Featherlane's inverse dynamics, friction losses included, (n, 6) [N m]."""
    batch = fl.Batch(model, len(recording.q))
    batch.qpos[:], batch.qvel[:] = recording.q, recording.v
    batch.inverse(recording.a)
    return batch.qfrc_inverse + p.offset


def in_mujoco(model: fl.Model, p: Parameters, recording: Recording) -> np.ndarray:
    """Returns the torques of `mj_inverse` with the fields of the model, (n, 6) [N m]."""
    import mujoco

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its edited fields are copied here
        m = model.to_mujoco()
    for name in ("body_mass", "body_ipos", "body_iquat", "body_inertia", "dof_armature", "dof_frictionloss"):
        getattr(m, name)[:] = getattr(model, name)
    m.dof_damping[:] = model.dof_damping.reshape(m.dof_damping.shape)
    m.opt.disableflags, m.opt.timestep = int(model.opt.disableflags), model.opt.timestep
    d = mujoco.MjData(m)
    mujoco.mj_setConst(m, d)
    found = []
    for d.qpos[:], d.qvel[:], d.qacc[:] in zip(recording.q, recording.v, recording.a, strict=True):
        mujoco.mj_inverse(m, d)
        found.append(d.qfrc_inverse + p.offset)
    return np.array(found)


def in_pinocchio(python: str, folder: Path, p: Parameters, recording: Recording) -> np.ndarray:
    """Returns the torques of rigid bodies by Pinocchio's regressor, (n, 6) [N m]."""
    with tempfile.TemporaryDirectory() as place:
        states = Path(place) / "states.npz"
        np.savez(states, q=recording.q, v=recording.v, a=recording.a, parameters=p.body)
        script = Path(__file__).with_name("arm_pinocchio.py")
        subprocess.run([python, str(script), str(folder / URDF), str(states)], check=True)
        return np.load(states.with_name("torques.npy"))


def predicted(model: fl.Model, p: Parameters, recording: Recording, observed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Simulates from recorded states with the recorded torques.

    Args:
        observed: the torque that the model does not explain before the start, its mean over `PAST` samples, is
            taken as a constant disturbance.

    Returns:
        The errors of the velocities after `HORIZONS` samples and the recorded changes, each (horizons, starts, 6).
    """
    q, v, _, torque, _ = recording
    starts = np.arange(PAST, len(q) - HORIZONS[-1] - 1, EVERY)
    left = torque - inverse(model, p, recording)
    past = np.stack([left[starts - k] for k in range(1, PAST + 1)]).mean(axis=0) if observed else 0.0
    batch = fl.Batch(model, len(starts))
    batch.qpos[:], batch.qvel[:] = q[starts], v[starts]
    found = []
    for sample in range(HORIZONS[-1]):
        before, after = (torque[starts + sample + k] - p.offset - past for k in range(2))
        for step in range(SUBSTEPS):
            batch.qfrc_applied[:] = before + (step + 0.5) / SUBSTEPS * (after - before)
            batch.step()
        if sample + 1 in HORIZONS:
            found.append(batch.qvel - v[starts + sample + 1])
    return np.array(found), np.stack([v[starts + horizon] - v[starts] for horizon in HORIZONS])


JOINT = ["base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3"]


def row(label: str, values: np.ndarray) -> list[str]:
    return [label, *(f"{value:.1f}" for value in values)]


def torques(folder: Path, model: fl.Model, made: Identified, given: dict[str, Recording]) -> tuple[str, float]:
    """Returns the tables of torque errors, and the largest difference to MuJoCo [N m]."""
    held = [given[name] for name in HELD]
    authors, gains = published(folder)
    consistent_model = model_of(folder)
    set_parameters(consistent_model, made.found["consistent parameters"])
    texts, difference = [], 0.0
    for some in (held, [given[POINTS]]):
        Y = np.concatenate([regressor(model, recording) for recording in some])
        measured = np.concatenate([recording.measured for recording in some])
        smooth = np.concatenate([recording.torque for recording in some])
        rows = [row(label, shares(measured - Y @ p.vector(), measured)) for label, p in made.found.items()]
        p = made.found["consistent parameters"]
        ours = np.concatenate([inverse(consistent_model, p, recording) for recording in some])
        rows.append(row("consistent parameters: Featherlane's `inverse`", shares(measured - ours, measured)))
        theirs = np.concatenate([in_mujoco(consistent_model, p, recording) for recording in some])
        rows.append(row("consistent parameters: MuJoCo's `mj_inverse`", shares(measured - theirs, measured)))
        moves = np.abs(np.concatenate([recording.v for recording in some])) > MOVES
        error = measured - Y @ p.vector()
        rows.append(row("consistent parameters, while the joint moves", shares(error * moves, measured * moves)))
        scaled = measured * gains / GAINS
        error = scaled - Y @ authors.vector()
        rows.append(row("published parameters and gains", shares(error, scaled)))
        rows.append(row("published, while the joint moves", shares(error * moves, scaled * moves)))
        rows.append(row("noise: measured against filtered torques", shares(measured - smooth, measured)))
        difference = max(difference, float(np.abs(ours - theirs).max()))
        texts.append(markdown(["torque error [%]", *JOINT], rows))
    return "\n\n".join(texts), difference


def predictions(folder: Path, made: Identified, given: dict[str, Recording]) -> str:
    """Returns the table of errors of predicted velocities, as shares of the recorded change of velocity."""
    rows = []
    for label in ("nominal, friction fitted", "nominal, friction and rotors fitted", "consistent parameters"):
        model, p = model_of(folder), made.found[label]
        set_parameters(model, p)
        for observed in (False, True):
            pairs = [predicted(model, p, given[name], observed) for name in HELD]
            error, change = (np.concatenate([pair[k] for pair in pairs], axis=1) for k in range(2))
            for k, horizon in enumerate(HORIZONS):
                name = f"{label}{', disturbance' if observed else ''}: {1000 * horizon / RATE:.0f} ms"
                rows.append(row(name, shares(error[k], change[k])))
    return markdown(["velocity error [%]", *JOINT], rows)


def table(folder: Path, python: str | None) -> str:
    """Identifies, and returns all tables."""
    given, model = recordings(folder), model_of(folder)
    fit = [given[name] for name in FIT]
    equations(model, [Recording(*(part[:10] for part in fit[0]))])  # kernels are compiled or loaded
    made = identify(model, fit)
    p, rotors = made.found["consistent parameters"], made.found["nominal, friction and rotors fitted"]
    stands = 100.0 * (np.abs(given[POINTS].v) < MOVES).mean(axis=0)
    rows = [
        row("mass [kg], nominal", made.found["nominal, friction fitted"].body[:, 9]),
        row("mass [kg]", p.body[:, 9]),
        ["rotor inertia [kg m2], nominal", *(f"{value:.2f}" for value in rotors.armature)],
        *([label, *(f"{value:.2f}" for value in part)] for label, part in zip(JOINT_FIELDS, p[1:], strict=True)),
    ]
    errors, difference = torques(folder, model, made, given)
    text = [
        errors,
        predictions(folder, made, given),
        markdown(["consistent parameters", *JOINT], rows),
    ]
    samples, total = sum(len(recording.q) for recording in fit), sum(made.seconds.values())
    seconds = ", ".join(f"{name} {value:.2f} s" for name, value in made.seconds.items())
    facts = [f"Identification from {samples:,} samples: {total:.1f} s ({seconds}). Rank of the equations: {made.rank}."]
    facts.append(f"Largest difference of `inverse` to MuJoCo: {difference:.0e} N m.")
    facts.append(
        f"In the point-to-point motions the joints stand {', '.join(f'{x:.0f}' for x in stands)} % of the time."
    )
    if python:
        recording = given[HELD[0]]
        bodies = Parameters(p.body, *np.zeros((4, JOINTS)))
        ours = regressor(model, recording) @ bodies.vector()
        error = np.abs(ours - in_pinocchio(python, folder, p, recording)).max()
        facts.append(f"Largest difference to the torques by Pinocchio's regressor, on one recording: {error:.0e} N m.")
    return "\n\n".join([*text, " ".join(facts)])


JOINT_FIELDS = ["rotor inertia [kg m2]", "Coulomb friction [N m]", "viscous friction [N m s]", "offset [N m]"]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("path", type=Path, help="a clone of https://github.com/shamilmamedov/dynamic_calibration")
    parser.add_argument("--pinocchio", metavar="PYTHON", help="an interpreter with Pinocchio")
    args = parser.parse_args()
    publish("real-arm", f"{table(args.path, args.pinocchio)}\n\n{origin()}", args.write)


if __name__ == "__main__":
    main()
