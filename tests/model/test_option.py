"""Incompatible options: one table of them, checked by every setter and in any order."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.lcp_solver import REGISTERED_SOLVERS
from featherlane.engine.model.option import (
    CLASHES,
    OPTION_OF,
    Disable,
    Enable,
    Gyroscopic,
    Integrator,
    LcpSolver,
    clashes,
)
from featherlane.engine.solver.lcp.method import METHODS

TENDONS = """<mujoco><worldbody>
  <body><joint name="a"/><geom size=".1"/></body><body pos="1 0 0"><joint name="b"/><geom size=".1"/></body></worldbody>
<tendon><fixed name="s"><joint joint="a" coef="1"/></fixed><fixed name="t"><joint joint="b" coef="1"/></fixed></tendon>
<equality>%s</equality></mujoco>"""
LINKED = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
ISLAND_OFF = Enable.SLEEP, Integrator.DISCRETE, Disable.ISLAND


def scene(settings) -> fl.Model:
    """Returns a model with the elements that the settings concern."""
    if "nlink" in settings:
        return fl.load(LINKED, links=fl.Link("fixed", 1))
    model = fl.load(TENDONS % ('<tendon tendon1="s" tendon2="t"/>' if "tendon_equalities" in settings else ""))
    if "implicit_bodies" in settings:
        model.body_gyroscopic[1] = Gyroscopic.IMPLICIT
    if LcpSolver.DANTZIG in settings:  # the default differs until it is set
        model.opt.lcp_solver = "pgs"
    return model


@fl.kernel
def nothing(p, iterations):
    """Solves nothing."""
    return 0.0


@pytest.fixture(autouse=True)
def registrations():
    """Forgets the solvers that a test registers."""
    with patch.dict(METHODS), patch.dict(REGISTERED_SOLVERS):
        yield


def choose(model, setting) -> None:
    """Sets an option as a user would."""
    if isinstance(setting, str):
        setattr(model.opt, setting, 1)
        return
    if setting is LcpSolver.REGISTERED:  # selected by its name
        fl.lcp.register("nothing", nothing)
        setting = "nothing"
    name = OPTION_OF[type(setting)] if setting != "nothing" else "lcp_solver"
    bits = isinstance(setting, Enable | Disable)
    setattr(model.opt, name, getattr(model.opt, name) | setting if bits else setting)


@pytest.mark.parametrize(("settings", "says"), CLASHES, ids=[says for _, says in CLASHES])
def test_conflicting_options_are_refused_in_any_order(settings, says):
    options = [s for s in settings if s not in ("nlink", "tendon_equalities", "implicit_bodies")]
    for *first, last in itertools.permutations(options):
        model = scene(settings)
        model.opt.lcp_solver = "pgs"  # supports every cone and limit
        for setting in first:
            choose(model, setting)
        before = dict(model.size_values())
        with pytest.raises(fl.UnsupportedFeatureError) as error:
            choose(model, last)
        assert error.value.features == [f"option {says}"]
        assert model.size_values() == before
        fl.step(model, fl.Data(model))


def test_compatible_options_are_accepted():
    model = scene(())
    for setting in (Enable.SLEEP, Integrator.DISCRETE):
        choose(model, setting)
    assert clashes(model_options(model)) == []
    model.opt.enableflags = 0
    model.opt.disableflags = Disable.ISLAND
    assert model.opt.integrator == Integrator.DISCRETE


def model_options(model) -> dict[str, int]:
    """Returns the model's options by name."""
    return {name.removeprefix("opt_"): value for name, value in model.size_values().items()}


def test_all_conflicts_of_an_option_are_reported_together():
    model = scene(())
    model.opt.integrator, model.opt.noslip_iterations, model.opt.enableflags = "rk4", 2, "fwdinv,invdiscrete"
    with pytest.raises(fl.UnsupportedFeatureError) as error:
        model.opt.contact_model = "lcp"
    found = " ".join(error.value.features)
    assert len(error.value.features) == 4
    assert all(word in found for word in ("'rk4'", "flag fwdinv", "flag invdiscrete", "noslip_iterations"))


def test_a_file_with_conflicting_flags_is_refused():
    text = TENDONS.replace("<worldbody>", '<option integrator="RK4"><flag sleep="enable"/></option><worldbody>') % ""
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.load(text)


def test_unnamed_options_count_as_zero():
    assert clashes({"enableflags": np.int32(Enable.SLEEP)}) == []
    assert len(clashes({"enableflags": np.int32(Enable.SLEEP), "integrator": np.int32(Integrator.RK4)})) == 1
    assert clashes({s: 1 for s in ("enableflags", "integrator")}, "rotation") == []
    assert len(clashes({OPTION_OF[type(s)]: int(s) for s in ISLAND_OFF})) == 1


@pytest.mark.parametrize("name", ["sdf_initpoints", "sdf_iterations"])
def test_a_search_in_signed_distance_fields_ends(name):
    model = scene(())
    setattr(model.opt, name, 10_000)
    with pytest.raises(fl.ModelError, match=f"{name}: got 2147483647, allowed is a whole number from 0 to 10000"):
        setattr(model.opt, name, 2**31 - 1)
    with pytest.raises(fl.ModelError, match=name):
        fl.load(f"<mujoco><option {name}='1000000'/></mujoco>")
