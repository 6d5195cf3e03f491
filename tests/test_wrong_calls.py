"""Calls of public functions with what they do not take: one clear error, whatever is given."""

import numpy as np
import pytest

import featherlane as fl

WRONG = [
    "", "x", "\0", None, -1, 10**9, 1.5, np.nan, [], [1, 2], ["a"], [[1], [2, 3]], {}, object(), b"", True, 1j,
    np.zeros((2, 2)), np.zeros(0),
]  # fmt: skip
UP, DOWN = (0, 0, 1), (0, 0, -1)
CALLS = {
    "load": lambda m, d, b, v: fl.load(v),
    "assets": lambda m, d, b, v: fl.load("<mujoco/>", assets=v),
    "links": lambda m, d, b, v: fl.load("box_stack", links=v),
    "Data": lambda m, d, b, v: fl.Data(v),
    "given_contacts": lambda m, d, b, v: fl.Data(m, min(v, 9) if isinstance(v, int) else v),
    "Batch": lambda m, d, b, v: fl.Batch(v, 2),
    "record_bad": lambda m, d, b, v: fl.Batch(m, 2, record_bad=min(v, 9) if isinstance(v, int) else v),
    "load_failure": lambda m, d, b, v: fl.load_failure(v),
    "dtype": lambda m, d, b, v: fl.Batch(m, 2, dtype=v),
    "step model": lambda m, d, b, v: fl.step(v, d),
    "step data": lambda m, d, b, v: fl.step(m, v),
    "ids": lambda m, d, b, v: b.step(1, ids=v),
    "reset": lambda m, d, b, v: b.reset(v),
    "keyframe": lambda m, d, b, v: b.reset(keyframe=v),
    "control": lambda m, d, b, v: b.rollout(2, control=v),
    "record": lambda m, d, b, v: b.rollout(2, record=v),
    "out": lambda m, d, b, v: b.rollout(2, out=v),
    "bind": lambda m, d, b, v: b.bind(v),
    "expand": lambda m, d, b, v: b.expand(v),
    "expanded": lambda m, d, b, v: b.expanded(v),
    "get_model": lambda m, d, b, v: b.get_model(v),
    "restore": lambda m, d, b, v: b.restore(v),
    "inverse": lambda m, d, b, v: b.inverse(v),
    "data keyframe": lambda m, d, b, v: d.reset(v),
    "body": lambda m, d, b, v: m.body(v),
    "names": lambda m, d, b, v: m.names(v),
    "point": lambda m, d, b, v: fl.ray(m, d, v, UP),
    "direction": lambda m, d, b, v: b.ray(UP, v),
    "geomgroup": lambda m, d, b, v: fl.ray(m, d, UP, DOWN, geomgroup=v),
    "bodyexclude": lambda m, d, b, v: fl.ray(m, d, UP, DOWN, bodyexclude=v),
    "cutoff": lambda m, d, b, v: fl.ray(m, d, UP, DOWN, cutoff=v),
    "geom": lambda m, d, b, v: fl.geom_distance(m, d, v, 1),
    "distmax": lambda m, d, b, v: fl.geom_distance(m, d, 0, 1, v),
    "jac": lambda m, d, b, v: fl.jac(m, d, v, 1),
    "jac_geom": lambda m, d, b, v: fl.jac_geom(m, d, v),
    "mul_m": lambda m, d, b, v: fl.mul_m(m, d, v),
    "solve_m": lambda m, d, b, v: fl.solve_m(m, d, v),
    "force": lambda m, d, b, v: fl.apply_ft(m, d, v, UP, UP, 1),
    "contact": lambda m, d, b, v: fl.contact_force(m, d, v),
    "kind": lambda m, d, b, v: fl.object_velocity(m, d, v, 1),
    "get_state": lambda m, d, b, v: fl.get_state(m, d, v),
    "set_state": lambda m, d, b, v: fl.set_state(m, d, v, 1),
    "set_keyframe": lambda m, d, b, v: fl.set_keyframe(m, d, v),
    "eps": lambda m, d, b, v: fl.transition_fd(m, d, eps=v),
    "integrate_pos": lambda m, d, b, v: fl.integrate_pos(m, v, d.qvel, 0.1),
    "integrate_pos dt": lambda m, d, b, v: fl.integrate_pos(m, d.qpos, d.qvel, v),
    "differentiate_pos": lambda m, d, b, v: fl.differentiate_pos(m, 0.1, v, d.qpos),
    "differentiate_pos dt": lambda m, d, b, v: fl.differentiate_pos(m, v, d.qpos, d.qpos),
    "tendon_path": lambda m, d, b, v: fl.tendon_path(m, d, v),
    "set_length_range": lambda m, d, b, v: fl.set_length_range(m, v),
    "read_ctrl": lambda m, d, b, v: fl.read_ctrl(m, d, v, 0.0),
    "rng": lambda m, d, b, v: fl.add_sensor_noise(m, d, v),
    "give_contacts": lambda m, d, b, v: d.give_contacts(v, UP, UP),
    "parents": lambda m, d, b, v: fl.tree.depth(v),
    "A": lambda m, d, b, v: fl.lcp.Problem(v, [1.0], [0.0], [9.0]),
    "method": lambda m, d, b, v: fl.lcp.solve(fl.lcp.Problem(np.eye(1), [1.0], [0.0], [9.0]), method=v),
}


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_are_one_clear_error(name):
    model = fl.load("arm")
    data, batch = fl.Data(model), fl.Batch(model, 3)
    for value in WRONG:
        try:
            CALLS[name](model, data, batch, value)
        except (fl.FeatherlaneError, ValueError, TypeError, IndexError) as error:
            text = str(error)
            clear = isinstance(error, fl.FeatherlaneError) or any(
                word in text for word in ("allowed", "got", "has no ")
            )
            assert clear, f"{value!r}: {type(error).__name__}: {text}"
    fl.step(model, data)
    batch.step()


@pytest.mark.parametrize("name", ["user_actuator", "con_geom", "H_colind", "warning"])
def test_indices_and_addresses_of_a_data_cannot_be_written(name):
    model = fl.load("arm")
    data = fl.Data(model)
    with pytest.raises(AttributeError, match=f"data.{name} is computed"):
        setattr(data, name, 0)
    assert not getattr(data, name).flags.writeable
    fl.step(model, data)
