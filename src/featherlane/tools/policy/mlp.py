"""`MLP`: a policy that is evaluated in lanes.  `network.py` has its kernels."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from featherlane.engine.lanes import processor
from featherlane.engine.lanes.record import address, aligned, allocated
from featherlane.engine.model.arguments import bounded, one_of, whole_argument
from featherlane.engine.model.assignment import as_real_array, check_finite
from featherlane.engine.simulation.tile.library import library
from featherlane.errors import ModelError
from featherlane.tools.policy.network import BLOCK, ELU, IDENTITY, POLICY, RELU, TANH, evaluate_policy

ACTIVATIONS = {"identity": IDENTITY, "tanh": TANH, "elu": ELU, "relu": RELU}
TORCH = {"Identity": "identity", "Tanh": "tanh", "ELU": "elu", "ReLU": "relu"}
SMALLEST = 1e-8  # added to variances


class MLP:
    """A policy: a multilayer perceptron with normalized observations, evaluated for many worlds in vector lanes.

        action = offset + scale * network(clip((observation - mean) / sqrt(variance + 1e-8), -clip, clip)) + std * noise

    A world's action is bitwise identical in any batch and at any tile width.  `set_weights` changes the weights without
    compilation.

    Args:
        weights: (outputs, inputs) of each layer, as in `torch.nn.Linear`.
        biases: (outputs,) of each layer; None: zeros.
        activation: "tanh", "elu", "relu" or "identity", of all layers but the last; or a list with one of each layer.
        mean, variance: of observations, (inputs,) or a number; None for both: observations are neither normalized nor
            clipped until `update_normalization` or `set_normalization`.
        clip: largest absolute value of a normalized observation; `np.inf` for none.
        scale, offset: of the network's output, (outputs,) or a number.
        std: standard deviation of the noise, (outputs,) or a number.
        low, high: range of the controls, (outputs,) or a number.

    Attributes:
        weights, biases: read-only arrays of each layer.
        activations: names of the activations, one of each layer.
        mean, variance: of observations, (inputs,); `update_normalization` changes them.
        count: observations in them.
        normalizes: whether observations are normalized and clipped.
        clip, scale, offset, std, low, high: as given; arrays have the shape (outputs,).

    Raises:
        ModelError: a shape that does not fit; a non-finite number; an unknown activation.  The message names the layer.

    Source: Clevert et al., Fast and accurate deep network learning by exponential linear units, 2015 (`elu`, alpha 1).
    """

    mean: np.ndarray
    variance: np.ndarray
    count: float
    normalizes: bool

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike] | None = None,
        activation: str | Sequence[str] = "tanh",
        *,
        mean: ArrayLike | None = None,
        variance: ArrayLike | None = None,
        clip: float = 10.0,
        scale: ArrayLike = 1.0,
        offset: ArrayLike = 0.0,
        std: ArrayLike = 0.0,
        low: ArrayLike = -np.inf,
        high: ArrayLike = np.inf,
    ):
        self.weights, self.biases = _layers(weights, biases)
        self.activations = _activations(activation, len(self.weights))
        self.clip = bounded("clip", clip, 0.0, math.inf, above=True)
        self.set_normalization(0.0 if mean is None else mean, 1.0 if variance is None else variance)
        self.normalizes = not (mean is None and variance is None)
        n = self.noutput
        self.scale, self.offset = _row("scale", scale, n), _row("offset", offset, n)
        self.set_std(std)
        self.low, self.high = _row("low", low, n, True), _row("high", high, n, True)
        if (self.low > self.high).any():
            k = int(np.argmax(self.low > self.high))
            raise ModelError(f"low: got {self.low[k]} for output {k}, allowed is at most high, {self.high[k]}")

    @classmethod
    def from_torch(cls, network: Any, **options: Any) -> MLP:
        """Returns the policy of a `torch.nn.Sequential` of `Linear`, `Tanh`, `ELU`, `ReLU` and `Identity`.

        Args:
            network: the network; its weights are copied.
            options: keyword arguments of `MLP` except weights, biases and activation.

        Raises:
            ModelError: another module, an ELU with alpha other than 1, an activation that follows no Linear.
        """
        weights, biases, activations = _torch_layers(network)
        return cls(weights, biases, activations, **options)

    @property
    def ninput(self) -> int:
        """Returns the number of observations."""
        return self.weights[0].shape[1]

    @property
    def noutput(self) -> int:
        """Returns the number of actions."""
        return self.weights[-1].shape[0]

    # ---- changes without compilation -------------------------------------------------------------------------------
    def set_weights(self, weights: Any, biases: Sequence[ArrayLike] | None = None) -> None:
        """Replaces the weights, of the same shapes, without compilation.

        Args:
            weights: (outputs, inputs) of each layer, or a `torch.nn.Sequential` like that of `from_torch`.
            biases: (outputs,) of each layer; None: zeros.

        Raises:
            ModelError: other shapes or activations, non-finite numbers; the policy keeps its weights then.
        """
        if not isinstance(weights, list | tuple) and hasattr(weights, "children"):
            weights, biases, activations = _torch_layers(weights)
            if activations != self.activations:
                raise ModelError(f"weights: got the activations {activations}, allowed are {self.activations}")
        weights, biases = _layers(weights, biases)
        given, allowed = ([w.shape for w in some] for some in (weights, self.weights))
        if given != allowed:
            raise ModelError(f"weights: got layers of the shapes {given}, allowed are {allowed}")
        self.__dict__.update(weights=weights, biases=biases)  # one call: an interrupt may come before or after it

    def set_std(self, std: ArrayLike) -> None:
        """Replaces the standard deviation of the noise, (outputs,) or a number.

        Raises:
            ModelError: a negative or non-finite number, another shape.
        """
        std = _row("std", std, self.noutput)
        if (std < 0.0).any():
            raise ModelError(f"std: got {std.min()}, allowed are numbers >= 0")
        self.std = std

    def set_normalization(self, mean: ArrayLike, variance: ArrayLike, count: float = 0.0) -> None:
        """Replaces mean and variance of observations, (inputs,) or numbers, and the number of observations in them.

        Raises:
            ModelError: a negative variance or count, a non-finite number, another shape.
        """
        mean, variance = _row("mean", mean, self.ninput), _row("variance", variance, self.ninput)
        if (variance < 0.0).any():
            raise ModelError(f"variance: got {variance.min()}, allowed are numbers >= 0")
        count = bounded("count", count, 0.0)
        # one call: an interrupt may come before or after it
        self.__dict__.update(mean=mean, variance=variance, count=count, normalizes=True)

    def update_normalization(self, observations: ArrayLike) -> None:
        """Merges observations (..., inputs) into `mean`, `variance` and `count`.

        Raises:
            ModelError: another shape, or numbers without a finite variance.

        Source: Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
        """
        rows = self._observations(observations).reshape(-1, self.ninput).astype(np.float64)
        if not len(rows):
            return
        with np.errstate(all="ignore"):
            mean, total = np.add.reduce(rows, axis=0) / len(rows), self.count + len(rows)
            rest, delta = rows - mean, mean - self.mean
            squares = self.variance * self.count + np.add.reduce(rest * rest, axis=0)
            squares += delta * delta * (self.count * len(rows) / total)
        if not np.isfinite(squares).all():
            raise ModelError("observations: got numbers without a finite variance, allowed are finite numbers")
        self.set_normalization(self.mean + delta * (len(rows) / total), squares / total, total)

    # ---- evaluation --------------------------------------------------------------------------------------------------
    def __call__(self, observations: ArrayLike, noise: ArrayLike | None = None) -> np.ndarray:
        """Returns the controls: `sample`, clipped to the range from `low` to `high`."""
        return self.clipped(self.sample(observations, noise))

    def sample(self, observations: ArrayLike, noise: ArrayLike | None = None) -> np.ndarray:
        """Returns the actions of observations before they are clipped.

        Args:
            observations: (..., inputs), float32 or float64; the network is evaluated in this precision.
            noise: (..., outputs) of the standard normal distribution; None for the mean action.

        Returns:
            (..., outputs) in the precision of the observations.

        Raises:
            ModelError: another shape, or values that are no numbers.
        """
        given = self._observations(observations)
        dtype = self._real(given)
        rows = np.ascontiguousarray(given.reshape(-1, self.ninput), dtype)
        actions = self._mean(rows).reshape(*given.shape[:-1], self.noutput)
        if noise is None:
            return actions
        noise = as_real_array("noise", noise, f"is an array {actions.shape} of numbers")
        if noise.shape != actions.shape:
            raise ModelError(f"noise: got shape {noise.shape}, allowed is {actions.shape}")
        return actions + self.std.astype(dtype) * noise.astype(dtype)

    def _mean(self, rows: np.ndarray) -> np.ndarray:
        """Returns the mean actions of observations (n, inputs), (n, outputs)."""
        out, width = np.empty((len(rows), self.noutput), rows.dtype), processor.tile_width(rows.dtype)
        if len(rows):
            numbers = self.numbers(rows.dtype)
            sizes = self.sizes() | {"numbers": address(numbers), "nrow": len(rows)}
            sizes |= {"rows_in": address(rows), "rows_out": address(out)}
            record = allocated(POLICY, sizes, width, rows.dtype)
            self.fill(record.arrays)
            library().bind(evaluate_policy, record)(0, -(-len(rows) // width))
        return out

    def _observations(self, observations: ArrayLike) -> np.ndarray:
        rows = as_real_array("observations", observations, f"is an array (..., {self.ninput}) of numbers")
        if not rows.ndim or rows.shape[-1] != self.ninput:
            raise ModelError(f"observations: got shape {rows.shape}, allowed is (..., {self.ninput})")
        return rows

    @staticmethod
    def _real(observations: ArrayLike) -> np.dtype:
        return np.dtype(np.float32 if getattr(observations, "dtype", None) == np.float32 else np.float64)

    def clipped(self, actions: np.ndarray) -> np.ndarray:
        """Returns actions (..., outputs), clipped to the range from `low` to `high`."""
        return np.clip(actions, self.low.astype(actions.dtype), self.high.astype(actions.dtype))

    # ---- for compiled code -------------------------------------------------------------------------------------------
    def numbers(self, dtype: DTypeLike) -> np.ndarray:
        """Returns all numbers as kernels read them: layers, mean, 1 / std, clip, scale, offset, std, low, high."""
        parts = [_packed(w, b) for w, b in zip(self.weights, self.biases, strict=True)]
        if self.normalizes:
            parts += [self.mean, 1.0 / np.sqrt(self.variance + SMALLEST), np.array([self.clip])]
        else:
            parts += [np.zeros(self.ninput), np.ones(self.ninput), np.array([np.inf])]
        parts += [self.scale, self.offset, self.std, self.low, self.high]
        out = aligned(sum(part.size for part in parts), dtype)
        with np.errstate(over="ignore"):
            np.concatenate(parts, out=out, casting="same_kind")
        return out

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of the record `POLICY` except addresses."""
        padded = [self.ninput, *(_ceil(w.shape[0]) for w in self.weights)]
        sizes = {"nlayer": len(self.weights), "ninput": self.ninput, "noutput": self.noutput, "nhidden": max(padded)}
        tail = sum(_ceil(w.shape[0]) * (w.shape[1] + 1) for w in self.weights)
        return sizes | {"nhidden2": 2 * max(padded), "tail": tail, **dict.fromkeys(("nrow", "rows_in", "rows_out"), 0)}

    def fill(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes the shapes of the layers into the arrays of a record."""
        first = 0
        for k, (w, name) in enumerate(zip(self.weights, self.activations, strict=True)):
            arrays["layer_out"][k], arrays["layer_in"][k] = w.shape
            arrays["layer_activation"][k], arrays["layer_adr"][k] = ACTIVATIONS[name], first
            first += _ceil(w.shape[0]) * (w.shape[1] + 1)

    def copy(self) -> MLP:
        """Returns a policy with the same values, which changes independently."""
        return copy.copy(self)  # the arrays are read-only and replaced as a whole

    def __repr__(self) -> str:
        sizes = " ".join(str(n) for n in (self.ninput, *(len(b) for b in self.biases)))
        return f"MLP({sizes}, {', '.join(self.activations)})"


def gaussian_noise(seed: int | Sequence[int], *, nworld: int, nstep: int, n: int) -> np.ndarray:
    """Returns noise of the standard normal distribution, (nworld, nstep, n); a world's noise depends on its seed only.

    Args:
        seed: world i has seed + i; a sequence has one seed for each world.
        nworld, nstep, n: worlds, steps and actions.

    Raises:
        ModelError: a seed that is no whole number >= 0, another number of seeds, negative counts.
    """
    shape = tuple(whole_argument(name, x, 0) for name, x in (("nworld", nworld), ("nstep", nstep), ("n", n)))
    if isinstance(seed, list | tuple) or (isinstance(seed, np.ndarray) and seed.ndim > 0):
        each: Sequence[Any] = list(seed)
    else:
        first = whole_argument("seed", seed, 0)
        each = range(first, first + shape[0])
    if len(each) != shape[0]:
        raise ModelError(f"seed: got {len(each)} seeds, allowed is one for each of the {shape[0]} worlds")
    noise = np.empty(shape)
    for row, one in zip(noise, each, strict=True):
        np.random.default_rng(whole_argument("seed", one, 0)).standard_normal(out=row)
    return noise


# ---- arguments -------------------------------------------------------------------------------------------------------
def _ceil(n: int) -> int:
    """Returns the number of outputs with those that fill the last group."""
    return -(-n // BLOCK) * BLOCK


def _packed(weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    """Returns a layer's numbers in the order of `network.py`."""
    n, nin = weights.shape
    rows = np.zeros((_ceil(n), nin + 1))
    rows[:n, 0], rows[:n, 1:] = biases, weights
    return np.ascontiguousarray(rows.reshape(-1, BLOCK, nin + 1).transpose(0, 2, 1)).ravel()


def _layers(weights: Any, biases: Any) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Returns checked, read-only copies of weights and biases."""
    if not isinstance(weights, list | tuple) or not len(weights):
        raise ModelError(f"weights: got {type(weights).__name__}, allowed is a list with an array of each layer")
    if biases is None:
        biases = [0.0] * len(weights)
    if not isinstance(biases, list | tuple) or len(biases) != len(weights):
        given = f"{len(biases)} arrays" if isinstance(biases, list | tuple) else type(biases).__name__
        raise ModelError(f"biases: got {given}, allowed is a list with one for each of the {len(weights)} layers")
    pairs, nin = [], None
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        allowed = f"is (outputs, {'inputs' if nin is None else nin})"
        w = as_real_array(f"layer {k}: weights", w, allowed)
        if w.ndim != 2 or not w.size or (nin is not None and w.shape[1] != nin):
            raise ModelError(f"layer {k}: weights: got shape {w.shape}, allowed {allowed}")
        pairs.append((_finite(f"layer {k}: weights", w), _row(f"layer {k}: biases", b, len(w))))
        nin = len(w)
    weights, biases = zip(*pairs, strict=True)
    return weights, biases


def _finite(name: str, values: np.ndarray, infinite: bool = False) -> np.ndarray:
    """Returns a read-only copy in float64 of values that are finite, or not NaN."""
    values = np.array(values, np.float64)
    check_finite(name, values, infinite)
    values.flags.writeable = False
    return values


def _row(name: str, values: ArrayLike, n: int, infinite: bool = False) -> np.ndarray:
    """Returns a checked read-only array (n,) of a number or an array (n,)."""
    given = as_real_array(name, values, f"is a number or an array ({n},)")
    if given.shape not in ((), (n,)):
        raise ModelError(f"{name}: got shape {given.shape}, allowed is () or ({n},)")
    return _finite(name, np.broadcast_to(given, (n,)), infinite)


def _activations(given: str | Sequence[str], n: int) -> tuple[str, ...]:
    """Returns the name of each layer's activation, checked."""
    if isinstance(given, str):
        given = [one_of("activation", given, ACTIVATIONS)] * (n - 1) + ["identity"]
    if not isinstance(given, list | tuple) or len(given) != n:
        raise ModelError(f"activation: got {given!r}, allowed is a name or a list with one for each of the {n} layers")
    return tuple(one_of(f"layer {k}: activation", name, ACTIVATIONS) for k, name in enumerate(given))


def _torch_layers(network: Any) -> tuple[list[np.ndarray], list[np.ndarray], tuple[str, ...]]:
    """Returns weights, biases and activations of a `torch.nn.Sequential`, without an import of PyTorch."""
    weights, biases, activations = [], [], list[str]()
    modules = list(network.children()) if hasattr(network, "children") else []
    for k, module in enumerate(modules):
        kind = type(module).__name__
        if kind == "Linear":
            weights.append(module.weight.detach().cpu().numpy())
            bias = module.bias
            biases.append(np.zeros(len(weights[-1])) if bias is None else bias.detach().cpu().numpy())
            activations.append("identity")
        elif kind in TORCH and activations and activations[-1] == "identity":
            if getattr(module, "alpha", 1.0) != 1.0:
                raise ModelError(f"module {k}: got ELU with alpha {module.alpha}, allowed is 1")
            activations[-1] = TORCH[kind]
        else:
            allowed = f"are Linear, and after a Linear one of {', '.join(TORCH)}"
            raise ModelError(f"module {k}: got {kind}, allowed {allowed}")
    if not weights:
        raise ModelError(f"network: got {type(network).__name__}, allowed is a torch.nn.Sequential with a Linear")
    return weights, biases, tuple(activations)
