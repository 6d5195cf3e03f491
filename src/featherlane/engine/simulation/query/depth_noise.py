"""Adds noise of depth cameras to depth images: normally distributed errors, quantization, dropped pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featherlane.engine.model.assignment import real_number, regular
from featherlane.errors import ModelError

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class DepthNoise:
    """Describes the noise of a depth camera: normally distributed errors, then quantization, then dropped pixels.

    The noise of a world depends on its seed, its time and the pixel, so it is the same in any batch and differs from
    step to step.  Another seed for each episode makes episodes differ.

    Args:
        std: standard deviation of the depth [m].
        growth: its increase with the square of the depth [1/m].
        quantization: step to which depths are rounded [m], 0: none.
        dropout: probability that a pixel has no value.
        fill: depth of such a pixel [m].
        seed: world i of a batch has seed + i; a sequence has one seed for each world of the batch.

    Raises:
        ModelError: a number that is not finite or out of range.

    Source: Khoshelham and Elberink, Accuracy and resolution of Kinect depth data (2012), for the square of the depth.
    """

    std: float = 0.0
    growth: float = 0.0
    quantization: float = 0.0
    dropout: float = 0.0
    fill: float = 0.0
    seed: int | Sequence[int] = 0

    def __post_init__(self):
        for name, most in (
            ("std", np.inf),
            ("growth", np.inf),
            ("quantization", np.inf),
            ("dropout", 1.0),
            ("fill", np.inf),
        ):
            value, allowed = getattr(self, name), f"is a finite number >= 0{' and <= 1' * (most == 1.0)}"
            number = float(real_number(name, value, allowed))
            if not (0.0 <= number <= most and np.isfinite(number)):
                raise ModelError(f"{name}: got {value!r}, allowed {allowed}")
        seed = regular("seed", self.seed)
        if seed.dtype.kind not in "iu" or seed.ndim > 1 or (seed < 0).any() or (seed > LARGEST_SEED).any():
            raise ModelError(f"seed: got {self.seed!r}, allowed are integers from 0 to 2^63 - 1")

    def seeds(self, nworld: int) -> np.ndarray:
        """Returns the seeds (nworld,) of a batch's worlds.

        Raises:
            ModelError: another number of seeds.
        """
        seed = np.asarray(self.seed, np.uint64)
        if seed.ndim and len(seed) != nworld:
            raise ModelError(f"seed: got {len(seed)} seeds, allowed is one for each of the {nworld} worlds")
        return seed if seed.ndim else seed + np.arange(nworld, dtype=np.uint64)

    def add(self, depth: np.ndarray, *, far: float, seed: np.ndarray, time: np.ndarray) -> None:
        """Adds the noise to images in place; pixels without a surface have no error, but may be dropped.

        Args:
            depth: (n, height, width) float32 [m].
            far: depth of pixels without a surface [m].
            seed, time: (n,) of the worlds [s].
        """
        clock = np.ascontiguousarray(time, np.float64).view(np.uint64)
        for image, key in zip(depth, np.stack([seed.astype(np.uint64), clock], 1), strict=True):
            random = np.random.Generator(np.random.Philox(key=key))
            exact = image.astype(np.float64)
            error = (self.std + self.growth * exact * exact) * random.standard_normal(image.shape)
            noisy = np.maximum(exact + error, 0.0)
            if self.quantization > 0.0:
                noisy = np.rint(noisy / self.quantization) * self.quantization
            noisy = np.where(exact < np.float32(far), noisy, exact)
            image[...] = np.where((random.random(image.shape) < self.dropout) & ~np.isnan(exact), self.fill, noisy)
