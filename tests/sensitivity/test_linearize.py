"""The two methods of `linearize` and `inverse_derivatives`: the same results, and their settings."""

import numpy as np
import pytest

import featherlane as fl
from scenes.states import kicked


@pytest.fixture
def moving(rng):
    model = fl.bundled("humanoid")
    model.opt.tolerance = 0.0
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    return model, data


def test_both_methods_agree(moving):
    model, data = moving
    names = ("body_mass[1]", "opt.gravity[2]")
    formulas, steps = (
        fl.linearize(model, data, method=method, sensors=True, parameters=names)
        for method in ("analytic", "finite_difference")
    )
    for name in "ABCD":
        exact = getattr(formulas, name)
        np.testing.assert_allclose(getattr(steps, name), exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max(initial=0.0))
    assert formulas.P.keys() == steps.P.keys() == set(names)
    for name in names:
        np.testing.assert_allclose(steps.P[name], formulas.P[name], rtol=1e-4, atol=1e-6)
    assert np.isnan(steps.switching) and 0.0 < formulas.switching <= 1.0


def test_finite_differences_reach_the_requested_accuracy(moving):
    model, data = moving
    exact = fl.linearize(model, data).A

    def error(**how):
        return np.abs(fl.linearize(model, data, method="finite_difference", **how).A - exact).max()

    assert error(eps=1e-6) < error(eps=1e-6, centered=False) and error(eps=1e-5) < error(eps=1e-2)


def test_inverse_dynamics_have_both_methods(moving):
    model, data = moving
    fl.forward(model, data)
    exact, found = (fl.inverse_derivatives(model, data, method=m) for m in ("analytic", "finite_difference"))
    for a, b in zip(exact, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(a).max()))


@pytest.mark.parametrize("function", [fl.linearize, fl.inverse_derivatives])
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"method": "exact"}, "method: got 'exact', allowed are analytic, finite_difference"),
        ({"method": None}, "method: got None"),
        ({"eps": 1e-6}, "eps: got a value with another method, allowed only with method='finite_difference'"),
        ({"centered": False}, "centered: got a value with another method, allowed only with"),
        ({"method": "finite_difference", "eps": 0.0}, "eps"),
        ({"method": "finite_difference", "eps": np.nan}, "eps"),
        ({"method": "finite_difference", "centered": "no"}, "centered"),
        ({"nthread": -1}, "nthread"),
    ],
)
def test_wrong_settings_are_refused(moving, function, settings, message):
    with pytest.raises(fl.ModelError) as error:
        function(*moving, **settings)
    assert message in str(error.value)
