"""Multilayer perceptrons in lanes against NumPy and PyTorch, and their errors."""

import importlib
from itertools import pairwise

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.lanes import processor
from featherlane.policies import MLP, gaussian_noise
from featherlane.tools.policy.mlp import ACTIVATIONS

CLOSE = {"float64": 1e-12, "float32": 1e-5}  # outputs are of the order of 1
FUNCTIONS = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
}


def layers(rng, *sizes):
    """Returns random weights and biases of a network of these sizes."""
    weights = [rng.standard_normal((b, a)) / np.sqrt(a) for a, b in pairwise(sizes)]
    return weights, [0.3 * rng.standard_normal(len(w)) for w in weights]


def by_numpy(weights, biases, activations, x):
    for w, b, name in zip(weights, biases, activations, strict=True):
        x = FUNCTIONS[name](x @ w.T + b)
    return x


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("sizes", [(3, 1), (17, 64, 64, 6), (5, 13, 8, 9, 2)])
def test_outputs_equal_numpy(sizes, activation, dtype, rng):
    weights, biases = layers(rng, *sizes)
    mean, variance, offset = (
        rng.standard_normal(sizes[0]),
        rng.uniform(0.5, 2, sizes[0]),
        rng.standard_normal(sizes[-1]),
    )
    policy = MLP(weights, biases, activation, mean=mean, variance=variance, clip=1.5, scale=0.7, offset=offset)
    x = rng.standard_normal((37, sizes[0])).astype(dtype)
    normalized = np.clip((x - mean) / np.sqrt(variance + 1e-8), -1.5, 1.5)
    want = offset + 0.7 * by_numpy(weights, biases, policy.activations, normalized)
    found = policy(x)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, want, rtol=0, atol=CLOSE[dtype])


def test_an_output_is_bitwise_the_same_in_any_batch(rng):
    policy = MLP(*layers(rng, 7, 20, 3), "elu")
    x = rng.standard_normal((4, 11, 7))
    whole = policy(x)
    assert whole.shape == (4, 11, 3)
    for i in np.ndindex(4, 11):
        np.testing.assert_array_equal(policy(x[i]), whole[i])
    assert policy(x[:0]).shape == (0, 11, 3)


def test_noise_is_added_before_the_range_clips(rng):
    policy = MLP(*layers(rng, 4, 8, 2), std=[0.0, 3.0], low=-0.5, high=[0.5, 1.0])
    x, noise = rng.standard_normal((50, 4)), rng.standard_normal((50, 2))
    sample = policy.sample(x, noise)
    np.testing.assert_array_equal(sample, policy.sample(x) + [0.0, 3.0] * noise)
    np.testing.assert_array_equal(policy(x, noise), np.clip(sample, [-0.5, -0.5], [0.5, 1.0]))
    assert (policy(x, noise) != sample).any()


def test_observations_that_are_not_finite_give_nan(rng):
    for activation in ACTIVATIONS:
        policy = MLP(*layers(rng, 3, 9, 2), activation, mean=0.0)
        found = policy([[np.nan, 0.0, 0.0], [0.1, 0.2, 0.3], [np.inf, 0.0, 0.0]])
        assert np.isnan(found[0]).all() and np.isfinite(found[1:]).all(), activation


def test_moments_of_parts_equal_those_of_all_observations(rng):
    policy, rows = MLP(*layers(rng, 3, 2)), rng.normal(2.0, 3.0, (5, 40, 3))
    for part in rows:
        policy.update_normalization(part)
    np.testing.assert_allclose(policy.mean, rows.mean((0, 1)), rtol=1e-12)
    np.testing.assert_allclose(policy.variance, rows.var((0, 1)), rtol=1e-12)
    assert policy.count == 200
    for wrong in (np.nan, np.inf, 1e300):
        with pytest.raises(fl.ModelError, match="observations: got numbers without a finite variance"):
            policy.update_normalization([[wrong, 0, 0]])
    np.testing.assert_allclose(policy.mean, rows.mean((0, 1)), rtol=1e-12)


def test_new_weights_compile_nothing(rng, monkeypatch):
    policy, x = MLP(*layers(rng, 5, 6, 2)), rng.standard_normal((9, 5))
    kept = policy.copy()
    before = policy(x)
    monkeypatch.setattr(importlib.import_module("featherlane.engine.lanes.toolchain"), "emit", None)
    weights, biases = layers(rng, 5, 6, 2)
    policy.set_weights(weights, biases)
    np.testing.assert_array_equal(policy(x), MLP(weights, biases)(x))
    np.testing.assert_array_equal(kept(x), before)


@pytest.mark.parametrize("width", [1, 8])
def test_every_tile_width_gives_the_same_bits(width, rng, monkeypatch):
    policy, x = MLP(*layers(rng, 5, 11, 2)), rng.standard_normal((10, 5))
    whole = policy(x)
    monkeypatch.setattr(processor, "tile_width", lambda dtype: width)
    np.testing.assert_array_equal(policy(x), whole)


class Parameter(np.ndarray):
    """Presents an array as a tensor of PyTorch."""

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return np.asarray(self)


class Linear:
    def __init__(self, weight, bias):
        self.weight, self.bias = weight.view(Parameter), None if bias is None else bias.view(Parameter)


class ELU:
    alpha = 1.0


class Dropout:
    pass


class Sequential:
    def __init__(self, modules):
        self.modules = modules

    def children(self):
        return iter(self.modules)


def test_modules_are_read_by_their_names(rng):
    (first, second), (bias, _) = layers(rng, 4, 6, 2)
    network = Sequential([Linear(first, bias), ELU(), Linear(second, None)])
    policy = MLP.from_torch(network, std=0.1)
    assert policy.activations == ("elu", "identity") and not policy.biases[1].any()
    x = rng.standard_normal((3, 4))
    np.testing.assert_array_equal(policy(x), MLP([first, second], [bias, np.zeros(2)], "elu")(x))
    policy.set_weights(Sequential([Linear(2 * first, bias), ELU(), Linear(second, None)]))
    np.testing.assert_array_equal(policy.weights[0], 2 * first)
    ELU.alpha, other = 2.0, ELU()
    with pytest.raises(fl.ModelError, match="module 1: got ELU with alpha 2"):
        MLP.from_torch(Sequential([Linear(first, bias), other]))
    ELU.alpha = 1.0
    for wrong, what in (([Dropout()], "Dropout"), ([ELU()], "module 0"), ([], "Sequential"), (["x"], "str")):
        with pytest.raises(fl.ModelError, match=what):
            MLP.from_torch(Sequential(wrong))
    with pytest.raises(fl.ModelError, match="activations"):
        policy.set_weights(Sequential([Linear(first, bias), Linear(second, None)]))


def test_observations_are_normalized_on_request_only(rng):
    weights, x = [np.eye(3)], 100.0 * rng.standard_normal((5, 3))
    plain, clipped = MLP(weights), MLP(weights, mean=0.0)
    np.testing.assert_array_equal(plain(x), x)
    np.testing.assert_allclose(clipped(x), np.clip(x, -10, 10), rtol=1e-8)
    plain.set_normalization(0.0, 1.0)
    np.testing.assert_array_equal(plain(x), clipped(x))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_outputs_equal_pytorch(dtype, rng):
    torch = pytest.importorskip("torch")
    nn, kind = torch.nn, getattr(torch, dtype)
    network = nn.Sequential(nn.Linear(9, 20), nn.ELU(), nn.Linear(20, 7), nn.ReLU(), nn.Linear(7, 3), nn.Tanh()).to(
        kind
    )
    x = rng.standard_normal((30, 9)).astype(dtype)
    with torch.no_grad():
        want = network(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(MLP.from_torch(network)(x), want, rtol=0, atol=CLOSE[dtype])


def test_noise_of_a_world_depends_on_its_seed_only():
    noise = gaussian_noise(5, nworld=4, nstep=20, n=3)
    assert noise.shape == (4, 20, 3) and abs(noise.mean()) < 0.3
    np.testing.assert_array_equal(gaussian_noise([8, 6], nworld=2, nstep=20, n=3), noise[[3, 1]])


WEIGHTS, BIASES = [np.ones((4, 3)), np.ones((2, 4))], [np.ones(4), np.ones(2)]
WRONG = {
    "layer 1: weights: got shape (2, 5)": lambda: MLP([WEIGHTS[0], np.ones((2, 5))]),
    "layer 0: weights: got shape (3,)": lambda: MLP([np.ones(3)]),
    "layer 1: weights: got nan at (1, 2)": lambda: MLP(
        [WEIGHTS[0], np.where(np.arange(8) == 6, np.nan, 1).reshape(2, 4)]
    ),
    "layer 0: biases: got shape (3,)": lambda: MLP(WEIGHTS, [np.ones(3), BIASES[1]]),
    "layer 0: biases: got inf": lambda: MLP(WEIGHTS, [np.full(4, np.inf), BIASES[1]]),
    "biases: got 1 arrays": lambda: MLP(WEIGHTS, BIASES[:1]),
    "activation: got 'gelu'": lambda: MLP(WEIGHTS, BIASES, "gelu"),
    "activation: got 'relu6'": lambda: MLP(WEIGHTS[:1], BIASES[:1], "relu6"),  # no layer uses it
    "layer 0: activation: got 'swish'": lambda: MLP(WEIGHTS, BIASES, ["swish", "tanh"]),
    "activation: got ['tanh']": lambda: MLP(WEIGHTS, BIASES, ["tanh"]),
    "weights: got ndarray": lambda: MLP(np.ones((2, 3, 4))),
    "weights: got layers of the shapes": lambda: MLP(WEIGHTS).set_weights(WEIGHTS[:1]),
    "mean: got shape (2,)": lambda: MLP(WEIGHTS, mean=[0, 1]),
    "variance: got -1.0": lambda: MLP(WEIGHTS, variance=-1),
    "std: got -1.0": lambda: MLP(WEIGHTS, std=-1),
    "clip: got 0": lambda: MLP(WEIGHTS, clip=0),
    "low: got 1.0 for output 0": lambda: MLP(WEIGHTS, low=1, high=[0, 2]),
    "high: got nan": lambda: MLP(WEIGHTS, high=np.nan),
    "observations: got shape (2,)": lambda: MLP(WEIGHTS)([1, 2]),
    "noise: got shape (3,)": lambda: MLP(WEIGHTS)([1, 2, 3], [1, 2, 3]),
    "seed: got 2 seeds": lambda: gaussian_noise([1, 2], nworld=3, nstep=1, n=1),
    "seed: got -1": lambda: gaussian_noise(-1, nworld=3, nstep=1, n=1),
}


@pytest.mark.parametrize("message", list(WRONG))
def test_invalid_arguments_are_refused(message):
    with pytest.raises(fl.ModelError) as error:
        WRONG[message]()
    assert message in str(error.value)
