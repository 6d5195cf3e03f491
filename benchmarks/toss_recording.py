"""The recorded cube tosses of ContactNets, errors of a simulation, and an evolution strategy; NumPy only.

    python benchmarks/toss_recording.py ADDRESS tosses.npz    # one file of all tosses, for examples/identify_toss.py

Interpreters of other engines import this module, so it imports neither Featherlane nor MuJoCo.

Source of the data: Pfrommer, Halm, Posa, ContactNets (CoRL 2020), github.com/DAIRLab/contact-nets, BSD-3-Clause.
"""

from __future__ import annotations

import collections
import io
import pickle
import sys
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

RATE, HALF, MASS, INERTIA = 148.0, 0.0524, 0.37, 0.00081  # Hz, m, kg, kg m^2 of the authors
ADDRESS = "https://github.com/DAIRLab/contact-nets/archive/refs/heads/main.zip"
FOLDER = "data/tosses_processed/"
FIELDS = "position", "quaternion", "velocity", "angular_velocity"


class Recording(NamedTuple):
    """Tosses, padded with NaN: `pose` (n, L, 7) [m, quaternion], `velocity` (n, 6) of sample 0, `length` (n,)."""

    pose: np.ndarray
    velocity: np.ndarray
    length: np.ndarray

    def part(self, ids, samples: int | None = None) -> Recording:
        """Returns some tosses, at most the first `samples` samples of each."""
        length = np.minimum(self.length[ids], samples or self.length.max())
        return Recording(self.pose[ids][:, : length.max()], self.velocity[ids], length)


class _Storage(pickle.Unpickler):
    """Reads a tensor of PyTorch's file format of 2020; classes other than the tensor's are refused."""

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: (offset, size, stride)
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in ("FloatStorage", "DoubleStorage"):
            return np.float32 if name == "FloatStorage" else np.float64
        raise ValueError(f"a file of a toss holds a tensor, not {module}.{name}")

    def persistent_load(self, pid):
        self.dtype = pid[1]
        return pid


def read_tensor(data: bytes) -> np.ndarray:
    """Returns the tensor of a file `N.pt`.

    Raises:
        ValueError: the file holds something else.
    """
    stream = io.BytesIO(data)
    for _ in range(3):  # magic number, version, sizes of types
        _Storage(stream).load()
    reader = _Storage(stream)
    offset, size, stride = reader.load()
    _Storage(stream).load()  # names of storages
    values = np.frombuffer(data[stream.tell() + 8 :], reader.dtype)[offset:]
    bytes_each = np.dtype(reader.dtype).itemsize
    return np.lib.stride_tricks.as_strided(values, size, [bytes_each * s for s in stride]).astype(float)


def _public(place: str) -> list[np.ndarray]:
    """Returns the states (samples, 13) of each toss, in metres, from a folder, a zip file or its address."""
    if place.startswith(("http://", "https://")):
        with urllib.request.urlopen(place) as answer:
            archive = zipfile.ZipFile(io.BytesIO(answer.read()))
    elif Path(place).is_dir():
        files = {int(f.stem): f.read_bytes() for f in Path(place).rglob("*.pt") if f.stem.isdigit()}
        archive = None
    else:
        archive = zipfile.ZipFile(place)
    if archive is not None:
        names = [name for name in archive.namelist() if FOLDER in name and name.endswith(".pt")]
        files = {int(Path(name).stem): archive.read(name) for name in names}
    if not files:
        raise ValueError(f"{place}: no file {FOLDER}N.pt")
    states = [read_tensor(files[k])[0, :, :13] for k in sorted(files)]
    for state in states:
        state[:, [0, 1, 2, 7, 8, 9]] *= HALF  # the unit of length of the data is half of the width
    return states


def states(place: str) -> list[np.ndarray]:
    """Returns (samples, 13) of each toss: position [m], quaternion, velocity [m/s], angular velocity [rad/s].

    Args:
        place: a .npz file (start, position, quaternion, velocity, angular_velocity), the folder `tosses_processed`, a
            zip file of the public repository, or its address.

    Raises:
        ValueError: the place has no tosses, or a toss is not finite or has fewer than three samples.
    """
    if str(place).endswith(".npz"):
        with np.load(place) as data:
            missing = [name for name in ("start", *FIELDS) if name not in data]
            if missing:
                raise ValueError(f"{place}: no array {', '.join(missing)}")
            found = np.split(np.concatenate([data[name] for name in FIELDS], axis=1), data["start"][1:-1])
    else:
        found = _public(str(place))
    for k, state in enumerate(found):
        if len(state) < 3 or not np.isfinite(state).all():
            raise ValueError(f"{place}: toss {k} has {len(state)} samples, or a sample that is not finite")
    return found


def load(place: str) -> Recording:
    """Returns the tosses of `states` from their second sample on, because velocities are backward differences."""
    found = states(place)
    length = np.array([len(state) - 1 for state in found])
    pose = np.full((len(found), length.max(), 7), np.nan)
    for k, state in enumerate(found):
        pose[k, : length[k]] = state[1:, :7]
    return Recording(pose, np.array([state[1, 7:13] for state in found]), length)


def halves(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns the ids of the tosses for fitting and of the held-out tosses."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


class Errors(NamedTuple):
    """Errors of each toss: means over time, and the angle at the end; position in widths, angles in degrees."""

    position: np.ndarray
    rotation: np.ndarray
    last: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """What is minimized: the means over tosses; 12 % of the width weigh as 16 degrees."""
        return self.position.mean(-1) / 0.12 + self.rotation.mean(-1) / 16.0

    def summary(self) -> dict[str, float]:
        """Means and medians over tosses, and the share of tosses that end more than 45 degrees off."""
        return {
            "position": 100 * self.position.mean(),
            "position median": 100 * np.median(self.position),
            "rotation": self.rotation.mean(),
            "rotation median": np.median(self.rotation),
            "other face": 100 * (self.last > 45.0).mean(),
        }


def errors(recording: Recording, pose: np.ndarray) -> Errors:
    """Compares simulated poses (..., n, >= L, 7), whose sample 0 is the recorded one, with a recording.

    Quaternions may have any norm: Drake's discrete plant does not normalize them.
    """
    pose = pose[..., : recording.pose.shape[1], :]
    real, n = recording.pose, recording.length
    distance = np.linalg.norm(pose[..., :3] - real[..., :3], axis=-1) / (2.0 * HALF)
    norms = np.linalg.norm(pose[..., 3:], axis=-1) * np.linalg.norm(real[..., 3:], axis=-1)
    cosine = np.abs((pose[..., 3:] * real[..., 3:]).sum(-1)) / norms
    angle = np.degrees(2.0 * np.arccos(np.minimum(cosine, 1.0)))
    last = np.take_along_axis(angle, np.broadcast_to((n - 1)[:, None], (*angle.shape[:-1], 1)), axis=-1)[..., 0]
    inside = np.arange(real.shape[1]) < n[:, None]
    return Errors(*(np.where(inside, x, 0.0).sum(-1) / n for x in (distance, angle)), last)


class Parameter(NamedTuple):
    """An unknown: initial guess, spread of the first samples, whether its logarithm is searched, and bounds."""

    first: float
    spread: float
    log: bool = True
    least: float = -np.inf
    most: float = np.inf

    def value(self, x: np.ndarray) -> np.ndarray:
        """Returns values for the search's coordinates; 0 is the guess, 1 is the guess and one spread."""
        raw = self.first * np.exp(self.spread * x) if self.log else self.first + self.spread * x
        return np.clip(raw, self.least, self.most)


def evolve(loss: Callable[[np.ndarray], np.ndarray], n: int, *, population: int, generations: int, seed: int = 0):
    """Minimizes a loss of n unknowns, all of order 1, by CMA-ES; returns the mean of the last generation (n,).

    Args:
        loss: takes candidates (population, n), returns their losses (population,); not finite is the worst.
        n: the unknowns.
        population: candidates of a generation.
        generations: generations.
        seed: of the samples.

    Source: Hansen, The CMA Evolution Strategy: A Tutorial (arXiv 1604.00772), with its default constants.
    """
    rng, parents = np.random.default_rng(seed), population // 2
    weight = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weight /= weight.sum()
    mass = 1.0 / (weight @ weight)
    c_sigma = (mass + 2.0) / (n + mass + 5.0)
    damping = 1.0 + c_sigma + 2.0 * max(0.0, np.sqrt((mass - 1.0) / (n + 1.0)) - 1.0)
    c_path = (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n)
    c_one = 2.0 / ((n + 1.3) ** 2 + mass)
    c_rank = min(1.0 - c_one, 2.0 * (mass - 2.0 + 1.0 / mass) / ((n + 2.0) ** 2 + mass))
    expected = np.sqrt(n) * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n))
    mean, sigma, C, path_sigma, path = np.zeros(n), 1.0, np.eye(n), np.zeros(n), np.zeros(n)
    for generation in range(generations):
        square, axes = np.linalg.eigh(C)
        scale = np.sqrt(np.maximum(square, 1e-12))
        steps = (rng.standard_normal((population, n)) * scale) @ axes.T
        found = loss(mean + sigma * steps)
        best = steps[np.argsort(np.where(np.isfinite(found), found, np.inf))[:parents]]
        step = weight @ best
        mean = mean + sigma * step
        path_sigma = (1.0 - c_sigma) * path_sigma
        path_sigma += np.sqrt(c_sigma * (2.0 - c_sigma) * mass) * (axes @ (axes.T @ step / scale))
        norm = np.linalg.norm(path_sigma)
        steady = norm / np.sqrt(1.0 - (1.0 - c_sigma) ** (2 * generation + 2)) < (1.4 + 2.0 / (n + 1.0)) * expected
        path = (1.0 - c_path) * path + steady * np.sqrt(c_path * (2.0 - c_path) * mass) * step
        C = (1.0 - c_one - c_rank) * C + c_one * np.outer(path, path) + c_rank * (best.T * weight) @ best
        sigma *= np.exp(c_sigma / damping * (norm / expected - 1.0))
    return mean


def main(place: str, path: str) -> None:
    """Writes the tosses of a place into a .npz file."""
    found = states(place)
    columns = np.split(np.concatenate(found), [3, 7, 10], axis=1)
    start = np.cumsum([0, *map(len, found)])
    np.savez_compressed(path, start=start, **dict(zip(FIELDS, columns, strict=True)))
    print(f"{path}: {len(found)} tosses, {start[-1]} samples")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
