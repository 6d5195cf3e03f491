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


# ---- parameters whose zero switches terms off ------------------------------------------------------------------------
ZEROS = """
<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body pos="0 0 .0995"><freejoint/><geom name="box" type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="1 0 1"><joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass="1"/>
</body></worldbody><contact><pair geom1="floor" geom2="box"/></contact>
<actuator><motor joint="hinge"/></actuator></mujoco>
"""
SWITCHED = (
    "geom_surfacevel geom_adhesion pair_adhesion body_gravcomp dof_damping dof_dampingpoly actuator_damping"
    " actuator_dampingpoly dof_frictionloss jnt_stiffness"
).split()
ONE_SIDED = 1e-6  # displacement of the difference
NEAR = 1e-7  # of its error, relative to derivatives up to 1


@pytest.mark.parametrize("method", ["analytic", "finite_difference"])
@pytest.mark.parametrize("name", SWITCHED)
def test_derivatives_by_a_parameter_that_is_zero(name, method):
    """`euler` without damping uses the acceleration itself: the formulas omitted the derivative of M + h B."""
    model = fl.load(ZEROS)
    size = getattr(model, name).size
    batch, single = fl.Batch(model, 1 + size), fl.Data(model)
    rows = batch.expand(name).reshape(1 + size, -1)
    rows[np.arange(1, 1 + size), np.arange(size)] = ONE_SIDED
    for worlds in (batch, single):
        worlds.qvel, worlds.ctrl = 0.1 * np.arange(1.0, 8.0), 0.3
    found = fl.linearize(model, single, parameters=[name], method=method).P[name].reshape(14, size)
    batch.step()
    expected = (batch.qvel[1:] - batch.qvel[0]).T / ONE_SIDED
    np.testing.assert_allclose(found[7:], expected, atol=NEAR)


def test_the_first_damping_of_a_world_does_not_depend_on_other_worlds():
    model = fl.load(ZEROS)
    batch = fl.Batch(model, 3)
    batch.expand("dof_damping")[1] = 0.2
    batch.qvel = 0.1 * np.arange(1.0, 8.0)
    together = fl.linearize(model, batch, parameters=["dof_damping"]).P["dof_damping"]
    for w in range(3):
        alone = batch.get_data(w)
        np.testing.assert_array_equal(
            together[w], fl.linearize(alone.model, alone, parameters=["dof_damping"]).P["dof_damping"]
        )
