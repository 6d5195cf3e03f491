"""Gradients of the tosses' errors through impacts: where they mislead, and identification by multiple shooting.

python benchmarks/tosses.py PATH --gradients --write
"""

from __future__ import annotations

import time

import numpy as np
from report import markdown
from toss_recording import HALF, INERTIA, RATE, Recording, evolve

import featherlane as fl

HORIZONS, TOSSES = (15, 20, 30, 50, 80), 60
SEGMENT, STRIDE, EPS = 12, 6, 0.02
UNKNOWNS = {  # entry of the model: initial guess
    "geom_friction[board, 0]": 0.25,
    "geom_solref[board, 0]": 0.02,
    "geom_solref[board, 1]": 0.7,
    "body_inertia[cube]": INERTIA,
}
ANGLE = HALF  # a rotation of 1 rad weighs as this distance [m]


def segments(recording: Recording, stride: int, samples: int) -> Recording:
    """Cuts tosses into overlapping parts, each of which starts in a recorded state."""
    pose, velocity = [], []
    for k, length in enumerate(recording.length):
        for start in range(0, length - samples, stride):
            pose.append(recording.pose[k, start : start + samples + 1])
            velocity.append(recording.velocity[k] if start == 0 else backward(recording.pose[k, start - 1 : start + 1]))
    return Recording(np.array(pose), np.array(velocity), np.full(len(pose), samples + 1))


def difference(q: np.ndarray, to: np.ndarray) -> np.ndarray:
    """The rotation vector from quaternions q to others, in the frame of q [rad]."""
    w = (q * to).sum(-1, keepdims=True)
    v = q[..., :1] * to[..., 1:] - to[..., :1] * q[..., 1:] - np.cross(q[..., 1:], to[..., 1:])
    v, w = np.where(w < 0, -v, v), np.abs(w)
    size = np.linalg.norm(v, axis=-1, keepdims=True)
    return v * np.where(size > 1e-9, 2.0 * np.arctan2(size, w) / np.maximum(size, 1e-9), 2.0)


def backward(pose: np.ndarray) -> np.ndarray:
    """The velocity (6,) of the later of two samples."""
    return RATE * np.concatenate([pose[1, :3] - pose[0, :3], difference(pose[0, 3:], pose[1, 3:])])


class Problem:
    """Half the mean squared error of parts of tosses, and its gradient by the logarithms of the unknowns."""

    def __init__(self, model: fl.Model, part: Recording) -> None:
        self.model, self.part = model, part
        self.nstep = part.pose.shape[1] - 1

    def batch(self, values: np.ndarray) -> fl.Batch:
        """The worlds in their recorded states; `values` (nworld, unknowns)."""
        batch = fl.Batch(self.model, len(self.part.pose))
        batch.qpos[:], batch.qvel[:] = self.part.pose[:, 0], self.part.velocity
        for k, name in enumerate(UNKNOWNS):
            field, _, entry = name.partition("[")
            at = (slice(None), 1) if "cube" in entry else (slice(None), 0, int(entry[-2]))
            target = batch.expand(field)
            target[at] = values[:, k, None] if target[at].ndim == 2 else values[:, k]
        batch.set_const()
        return batch

    def residual(self, k: int, qpos: np.ndarray) -> np.ndarray:
        """Errors of position and rotation after k steps, (nworld, 6) [m]."""
        real = self.part.pose[:, k]
        q = qpos[:, 3:] / np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
        return np.concatenate([qpos[:, :3] - real[:, :3], -ANGLE * difference(q, real[:, 3:])], axis=1)

    def loss(self, values: np.ndarray) -> np.ndarray:
        """The loss of each world (nworld,) [m^2]."""
        qpos = self.batch(values).rollout(self.nstep, record=("qpos",))["qpos"]
        return sum(0.5 * (self.residual(k + 1, qpos[:, k]) ** 2).sum(1) for k in range(self.nstep)) / self.nstep

    def gradient(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The loss of each world and its gradient by the logarithms of the unknowns, (nworld, unknowns)."""
        worlds = len(self.part.pose)
        total = np.zeros(worlds)

        def by_state(k: int, state) -> np.ndarray | None:
            if k == 0:
                return None
            error = self.residual(k, state.qpos)
            total[:] += 0.5 * (error**2).sum(1) / self.nstep
            error[:, 3:] *= ANGLE  # the derivative of the rotation vector by a rotation is about 1 for small errors
            return np.concatenate([error / self.nstep, np.zeros((worlds, 6))], axis=1)

        found = fl.rollout_gradient(
            self.model,
            self.batch(values),
            np.zeros((self.nstep, 0)),
            loss_gradient=by_state,
            parameters=tuple(UNKNOWNS),
        )
        parts = [found.parameters[name].reshape(worlds, -1).sum(1) for name in UNKNOWNS]
        return total, np.stack(parts, axis=1) * values


def first(worlds: int) -> np.ndarray:
    """The initial guesses of all worlds."""
    return np.tile(list(UNKNOWNS.values()), (worlds, 1))


def horizons(model: fl.Model, recording: Recording) -> list[list[str]]:
    """By horizon: gradient of the mean loss by log friction, and the slope of the mean loss over 2 % of friction."""
    rows = []
    for samples in HORIZONS:
        keep = recording.length > samples + 1
        part = recording.part(np.flatnonzero(keep), samples + 1)
        problem, values = Problem(model, part), first(int(keep.sum()))
        loss, slope = problem.gradient(values)
        up, down = values.copy(), values.copy()
        up[:, 0] *= np.exp(EPS)
        down[:, 0] *= np.exp(-EPS)
        chord = (problem.loss(up) - problem.loss(down)) / (2.0 * EPS)
        size = np.abs(slope[:, 0])
        share = np.sort(size)[-max(1, len(size) // 100) :].sum() / size.sum()
        equal = (np.sign(slope[:, 0]) == np.sign(chord))[np.abs(chord) > 0]
        agree = f"{100 * equal.mean():.0f}" if len(equal) else ""
        rows.append(
            [samples, f"{1e6 * loss.mean():.3g}", f"{1e6 * slope[:, 0].mean():.3g}", f"{1e6 * chord.mean():.3g}",
             agree, f"{100 * share:.0f}"]
        )  # fmt: skip
    return rows


def descend(model: fl.Model, part: Recording, steps: int, worlds: int, seed: int = 0) -> np.ndarray:
    """Fits the unknowns by Adam on random parts, with the gradient of each part clipped; returns them (unknowns,)."""
    rng = np.random.default_rng(seed)
    x, mean, square = np.log(list(UNKNOWNS.values())), np.zeros(len(UNKNOWNS)), np.zeros(len(UNKNOWNS))
    for step in range(1, steps + 1):
        ids = rng.choice(len(part.pose), min(worlds, len(part.pose)), replace=False)
        _, slope = Problem(model, part.part(ids)).gradient(np.tile(np.exp(x), (len(ids), 1)))
        limit = 10.0 * np.median(np.abs(slope), axis=0)  # a few parts have gradients of any size
        g = np.clip(slope, -limit, limit).mean(0)
        mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g**2
        rate = 0.1 * (0.05 ** (step / steps))
        x -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-12)
    return np.exp(x)


COLUMNS = [
    "samples", "loss [mm²]", "gradient [mm²]", "slope over ±2 % [mm²]", "equal signs [%]", "share of largest 1 % [%]",
]  # fmt: skip


def table(fit: Recording, held: Recording, steps: int = 30) -> str:
    """Returns both tables: where gradients mislead, and identifications of some steps, judged on held-out tosses."""
    from tosses import judge, prepared

    model = prepared({"contact_model": "convex"})
    rows = horizons(model, fit.part(np.flatnonzero(fit.length > max(HORIZONS) + 1)[:TOSSES]))
    names = ["friction", "time constant [s]", "damping ratio", "inertia [kg m2]"]
    results = []

    def result(label: str, values: np.ndarray, seconds: float) -> None:
        found = judge(model, held, dict(zip(names, map(float, values), strict=True))).summary()
        results.append(
            [label, f"{found['position']:.1f}", f"{found['rotation']:.1f}", f"{seconds:.0f}"]
            + [f"{value:.3g}" for value in values]
        )

    result("initial guess", np.array(list(UNKNOWNS.values())), 0.0)
    long = fit.part(np.flatnonzero(fit.length > 81), 81)
    short = segments(fit.part(np.arange(len(fit.length)), 60), STRIDE, SEGMENT)
    for label, part, worlds in (("gradient, 80 samples", long, 40), (f"gradient, {SEGMENT} samples", short, 240)):
        start = time.perf_counter()
        result(label, descend(model, part, steps, worlds), time.perf_counter() - start)
    start = time.perf_counter()
    guess = np.array(list(UNKNOWNS.values()))
    some = short.part(np.random.default_rng(0).choice(len(short.pose), 240, replace=False))

    def losses(x: np.ndarray) -> np.ndarray:
        count = len(x)
        tiled = Recording(
            np.tile(some.pose, (count, 1, 1)), np.tile(some.velocity, (count, 1)), np.tile(some.length, count)
        )
        values = np.repeat(guess * np.exp(0.3 * x), len(some.pose), axis=0)
        return Problem(model, tiled).loss(values).reshape(count, -1).mean(1)

    found = guess * np.exp(0.3 * evolve(losses, len(guess), population=12, generations=steps))
    result(f"CMA-ES, {SEGMENT} samples", found, time.perf_counter() - start)
    columns = ["method", "position [%]", "rotation [°]", "time [s]", *names]
    return f"{markdown(COLUMNS, rows)}\n\n{markdown(columns, results)}"
