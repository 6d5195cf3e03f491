"""Public functions take at most three positional arguments, except those in the order of another library."""

import importlib
import inspect
from collections.abc import Iterator

import pytest

import featherlane as fl

MOST = 3  # positional arguments besides `self`
PARTS = (
    "query stages lcp tree registration results controllers policies terrain patterns distributed environments lanes "
    "errors"
)
MODULES = [
    "featherlane",
    *(f"featherlane.{part}" for part in PARTS.split()),
    "featherlane.integrations.torch",
    "featherlane.integrations.jax",
    "featherlane.apps.doctor",
]

# more positional arguments -> the library that has them in this order
ALLOWED = {
    "differentiate_pos": "MuJoCo: mj_differentiatePos(m, qvel, dt, qpos1, qpos2), whose result is returned",
    "integrate_pos": "MuJoCo: mj_integratePos(m, qpos, qvel, dt)",
    "set_state": "MuJoCo: mj_setState(m, d, state, sig)",
    "init_ctrl_history": "MuJoCo: mj_initCtrlHistory(m, d, id, times, values)",
    "init_sensor_history": "MuJoCo: mj_initSensorHistory(m, d, id, times, values, phase)",
    "read_ctrl": "MuJoCo: mj_readCtrl(m, d, id, time, interp)",
    "read_sensor": "MuJoCo: mj_readSensor(m, d, id, time, result, interp), whose result is returned",
    "query.apply_ft": "MuJoCo: mj_applyFT(m, d, force, torque, point, body, qfrc_target), whose result is returned",
    "query.jac": "MuJoCo: mj_jac(m, d, jacp, jacr, point, body), whose results are returned",
    "query.jac_dot": "MuJoCo: mj_jacDot(m, d, jacp, jacr, point, body), whose results are returned",
    "query.geom_distance": "MuJoCo: mj_geomDistance(m, d, geom1, geom2, distmax, fromto), whose result is returned",
    "query.ray": "MuJoCo: mj_ray(m, d, pnt, vec, geomgroup, flg_static, bodyexclude, geomid, normal)",
    "Batch.ray": "MuJoCo: mujoco.batch.Batch.ray(pnt, vec, geomgroup, flg_static, bodyexclude, ...)",
    "environments.RandomStreams.uniform": "NumPy: Generator.uniform(low, high, size), after the worlds",
    "environments.RandomStreams.integers": "NumPy: Generator.integers(low, high, size), after the worlds",
    "integrations.jax.Dynamics.step": "MuJoCo: the order of a state in mjtState: qpos, qvel, act, ctrl",
    "integrations.jax.Dynamics.rollout": "MuJoCo: as `step`",
    "integrations.torch.Dynamics.step": "MuJoCo: as of `jax`",
    "integrations.torch.Dynamics.rollout": "MuJoCo: as of `jax`",
}
# a row of a table of fields, one per line; operations of the kernel language, `rows[i, lane] = x` and a call
KERNELS = {"lanes.Field", "lanes.write_lane", "lanes.call"}
# classes whose objects programs receive and do not construct -> what returns them
RETURNED = {
    "Model": "load",
    "distributed.Source": "distributed.uniform, ...",
    "apps.doctor.Finding": "diagnose",
    "lcp.BatchSolution": "lcp.solve_batch",
    "lcp.Method": "lcp.methods",
    "lcp.Solution": "lcp.solve",
    "registration.Registration": "registration.register_points",
    "results.Failure": "Batch.failures",
    "results.Finding": "diagnose",
    "results.NamedView": "Model.body, ...",
    "tree.BranchCounts": "tree.branch_counts",
    "tree.Cost": "tree.cost_table",
    "tree.ForwardCosts": "tree.compare_costs",
}


def positional(function) -> list[str]:
    """Returns the names of the parameters that can be given by position, without `self`."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def is_result(kind: type) -> bool:
    """Returns whether programs receive objects of a class and do not make them."""
    return hasattr(kind, "_fields") or kind.__module__ == "featherlane.errors"


def members(kind: type) -> Iterator[tuple[str, object]]:
    """Yields the constructor and the public methods of a class, those of its bases in this library included."""
    for base in reversed([base for base in kind.__mro__ if base.__module__.startswith("featherlane")]):
        for name, member in vars(base).items():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and (not name.startswith("_") or name in ("__init__", "__call__")):
                yield name, function


def public_calls() -> Iterator[tuple[str, object]]:
    """Yields all public functions, constructors and methods, by name without `featherlane.`; not of kernels."""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except fl.InstallationError:
            continue
        for public in module.__all__:
            thing, label = (
                getattr(module, public),
                f"{name}.{public}".removeprefix("featherlane."),
            )
            if inspect.isclass(thing):
                for member, function in members(thing):
                    if member != "__init__" or not is_result(thing):
                        yield label if member == "__init__" else f"{label}.{member}", function
            elif inspect.isfunction(thing):
                yield label, thing


CALLS = dict(public_calls())


def test_at_most_three_arguments_are_positional(subtests):
    assert len(CALLS) > 250
    for name, function in CALLS.items():
        with subtests.test(name=name):
            given = positional(function)
            assert len(given) <= MOST or name in {*ALLOWED, *KERNELS, *RETURNED}, f"{name}({', '.join(given)})"


def test_the_allowed_ones_exist_and_need_the_permission():
    for name in (*ALLOWED, *KERNELS, *RETURNED):
        if name.startswith("integrations.torch.") and "integrations.torch.Dynamics.step" not in CALLS:
            continue
        assert len(positional(CALLS[name])) > MOST, name


def test_worlds_are_a_keyword_unless_they_come_first(subtests):
    """A number is never mistaken for a world: `batch.step(2)` takes two steps, `batch.forward(2)` computes world 2."""
    for name, function in CALLS.items():
        if name.startswith("environments."):
            continue
        given = positional(function)
        with subtests.test(name=name):
            assert "ids" not in given or given.index("ids") == 0, f"{name}({', '.join(given)})"


def test_a_keyframe_is_a_keyword_of_each_reset():
    model = fl.bundled("humanoid")
    resets = {name: function for name, function in CALLS.items() if name.endswith(".reset")}
    having = {name for name, function in resets.items() if "keyframe" in inspect.signature(function).parameters}
    assert having == {"Batch.reset", "Data.reset", "MixedBatch.reset", "Worlds.reset", "distributed.Batch.reset"}
    assert not any("keyframe" in positional(resets[name]) for name in having)
    with pytest.raises(TypeError, match="positional"):
        fl.Data(model).reset(0)


def test_a_new_offender_is_found():
    def offender(model, data, a, b, *, c): ...

    class Kind:
        def method(self, a, b, c): ...

    assert positional(offender) == ["model", "data", "a", "b"]
    assert positional(Kind.method) == ["a", "b", "c"]


def test_the_state_has_the_same_default_as_a_function_and_as_a_method():
    model = fl.load("cartpole")
    data, batch = fl.Data(model), fl.Batch(model, 2)
    data.qpos = 0.5
    assert fl.get_state(model, data).tolist() == data.get_state().tolist()
    assert len(data.get_state()) == fl.state_size(model)
    fl.set_state(model, batch, fl.get_state(model, data))
    assert batch.qpos.tolist() == [data.qpos.tolist()] * 2


def test_counts_are_integers():
    assert fl.Batch(fl.load("cartpole"), 2).count_of("non_finite", "bad_control").dtype == "int64"


def test_minus_one_and_none_are_the_default_state_of_each_reset():
    model = fl.load("quadruped")
    for worlds in (fl.Data(model), fl.Batch(model, 2)):
        for keyframe in (None, -1):
            worlds.reset(keyframe="home")
            worlds.reset(keyframe=keyframe)
            assert (worlds.qpos == model.qpos0).all()
        worlds.reset(keyframe=0)
        assert (worlds.qpos != model.qpos0).any()


def test_an_object_is_one_argument():
    model = fl.load("arm")
    data, batch = fl.Data(model), fl.Batch(model, 1)
    batch.qvel = data.qvel = 1.0
    fl.forward(model, data)
    for thing in (("site", "grip"), ("xbody", 1), ("geom", 0), 2):
        alone = fl.query.object_velocity(model, data, thing)
        assert (batch.object_velocity(thing)[0] == alone).all()
        assert batch.jac(thing)[0].shape == (1, 3, model.nv)
    found = fl.ik(
        batch, [fl.IkTarget(("site", "grip"), position=(0.4, 0.1, 0.4)), fl.IkTarget(1, orientation=(1, 0, 0, 0))]
    )
    assert found.position_error.shape == (1, 2)
    with pytest.raises(TypeError):
        fl.IkTarget("grip", "site", position=(0.4, 0.1, 0.4))
