"""Steps of real and bundled models against MuJoCo, from the same states."""

import pytest

import featherlane as fl
import parity

# nothing to touch, or nothing within reach
UNTOUCHED = {
    *("gymnasium/inverted_double_pendulum", "gymnasium/inverted_pendulum", "gymnasium/reacher", "dm_control/lqr"),
    *(f"dm_control/{name}" for name in ("acrobot", "cartpole", "finger", "pendulum", "reacher")),
    *("bundled/cartpole", "bundled/slider_crank", "bundled/double_pendulum", "bundled/pendulum"),
}
FEW, MANY = 24, 504  # states of a model, in tiles of 8


def check(name, count, path):
    worst = parity.compare(name, count, path)
    print(parity.table({name: worst}))
    assert not worst.beyond()
    assert worst.ncon > 0 or name in UNTOUCHED
    assert worst.nefc > worst.ncon or worst.ncon == 0


@pytest.mark.parametrize("name", parity.MODELS)
def test_steps_equal_mujocos(name, real_model):
    check(name, FEW, real_model)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in parity.MODELS if name != "bundled/pyramid"])  # minutes in MuJoCo
def test_many_steps_equal_mujocos(name, real_model):
    check(name, MANY, real_model)


@pytest.mark.parametrize("name", parity.LEFT_OUT)
def test_models_that_are_left_out_use_features_that_are_named(name, real_model):
    mj = parity.oracle(name, real_model)
    with pytest.raises(fl.UnsupportedFeatureError) as caught:
        fl.load(mj)
    assert parity.reasons(caught.value) == parity.LEFT_OUT[name]
