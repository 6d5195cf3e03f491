"""Per-world fields act as in a separate model, for any values in the shared model."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import featherlane as fl
from featherlane import distributed as fd
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.in_use import DECIDING
from featherlane.engine.model.set_const import DEPENDENT_REALS
from sampling import every
from scenes import expandable

# meshes and materials by world are set by `set_variant`
NOT_SAMPLED = ("geom_variant", "geom_material")
REALS = [field.name for field in MODEL.fields if field.kind == "real" and field.name not in NOT_SAMPLED]
OUTPUTS = ("qpos", "qvel", "act", "plastic", "history", "sensordata", "qacc", "qfrc_passive", "qfrc_actuator")
CONTACT_LCP = {"contact_model": "lcp"}
EPS = 1e-7
SMALL = 1e-4  # relative, of differences over EPS
NSTEP = 3
# fields that change no output of so few steps: search limits, sleep, impacts within a step, bounds of the broad phase
NOWHERE = (
    r"opt_(ls|sleep|ccd)_tolerance|stat_meaninertia|dof_length|geom_aabb|geom_rgba|pair_gap|actuator_length0"
    r"|sensor_noise"
)
WITHOUT_EFFECT = {
    "convex": rf"{NOWHERE}|opt_(lcp_\w+|erp|cfm|contact_\w+)|jnt_(motor|stop)_\w+|eq_(erp|cfm)"
    r"|geom_(erp|cfm|restitution\w*|slip|fdir|friction_static|stribeck_vel)",
    "lcp": rf"{NOWHERE}|opt_(impratio|tolerance|noslip_tolerance|o_\w+)|\w+_sol\w+|\w+_invweight0|jnt_motor_fudge",
}


def moved(batch) -> dict[str, np.ndarray]:
    """Returns state and outputs after some steps from the batch's default state."""
    model = batch.model
    outputs = {name: batch.bind(name) for name in OUTPUTS}
    batch.reset()
    batch.qvel, batch.ctrl = 2.0 * np.cos(np.arange(model.nv)), 0.4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fl.NonFiniteWarning)  # these must be equal, too
        batch.step(NSTEP)
    return outputs


def edit(model, name, value) -> None:
    """Sets a field and recomputes the fields derived from it."""
    getattr(model, name)[...] = value
    if name not in DEPENDENT_REALS:
        fl.set_const(model)


@pytest.mark.parametrize(
    ("name", "contact_model"),
    every(2, [(name, ("convex", "lcp")[(k + n) % 2]) for n, name in enumerate(REALS) for k in range(2)]),
)
def test_a_world_moves_as_a_model_with_its_field(name, contact_model):
    model = expandable.load(name, contact_model)
    values = expandable.two_values(model, name)
    alone = []
    for value in values:
        edit(model, name, value)
        alone.append(moved(fl.Batch(model, 1)))
    acts = any(not np.array_equal(alone[0][output], alone[1][output]) for output in OUTPUTS)
    assert acts == (re.fullmatch(WITHOUT_EFFECT[contact_model], name) is None)
    for shared in values:
        edit(model, name, shared)
        batch = fl.Batch(model, 2)
        batch.expand(name)[:] = values
        if name not in DEPENDENT_REALS:
            batch.set_const()
        together = moved(batch)
        for world, expected in enumerate(alone):
            for output, rows in expected.items():
                np.testing.assert_array_equal(together[output][world], rows[0], err_msg=f"{output} of world {world}")


# ---- fields whose zeros decide which terms are computed --------------------------------------------------------------
def simple(contact_model: str, **options) -> fl.Model:
    """Returns a model in which all these fields are 0."""
    model = fl.load(expandable.SIMPLE)
    model.opt.contact_model = contact_model
    for option, value in options.items():
        setattr(model.opt, option, value)
    return model


def some(model, name: str) -> np.ndarray:
    """Returns values of a field, half of them zero."""
    rng = np.random.default_rng(3)
    values = rng.uniform(0.0, 0.1, getattr(model, name).shape)
    return values * (rng.random(values.shape) < 0.5)


@pytest.mark.parametrize("options", [{}, {"integrator": "implicitfast"}, {"integrator": "RK4"}, CONTACT_LCP])
@pytest.mark.parametrize("name", DECIDING)
def test_an_expanded_world_is_bitwise_equal_to_a_single_world(name, options):
    model = simple(**{"contact_model": "convex"} | options)
    zero, one = np.zeros_like(getattr(model, name)), np.ones_like(getattr(model, name))
    worlds = [zero, 0.02 * one, some(model, name)]
    worlds += [-0.02 * one] if name != "actuator_armature" else []
    batch = fl.Batch(model, len(worlds))
    batch.expand(name)[:] = worlds
    batch.set_const()
    together = moved(batch)
    for w, value in enumerate(worlds):
        edit(model, name, value)
        own = batch.get_model(w)
        assert own.size_values() == model.size_values() and np.array_equal(own.int_buffer, model.int_buffer)
        for output, rows in moved(fl.Batch(model, 1)).items():
            assert together[output][w].tobytes() == rows[0].tobytes(), (output, w)
        edit(model, name, zero)


@pytest.mark.parametrize("contact_model", ("convex", "lcp"))
@pytest.mark.parametrize("name", DECIDING)
def test_derivatives_by_a_zero_field(name, contact_model):
    model = simple(contact_model)
    batch, ends = fl.Batch(model, 1), []
    rate = -0.1 if name == "geom_surfacevel" else 0.1  # surface velocity acts on carried bodies; adhesion on separation
    batch.qvel, batch.ctrl = (0.01, rate, 0.3, 0.01, rate, 0.4), 0.3
    entry = (0 if name.startswith("geom") else -1), *[0] * (getattr(model, name).ndim - 1)
    found = fl.linearize(model, batch, parameters=(name,)).P[name][(0, slice(model.nv, None), *entry)]
    for value in (EPS, 0.0):
        points = fl.Batch(model, 1)
        points.qvel, points.ctrl = batch.qvel, batch.ctrl
        points.expand(name)[(0, *entry)] = value
        points.set_const()
        points.step()
        ends.append(points.qvel[0])
    expected = (ends[0] - ends[1]) / EPS
    assert np.abs(expected).max() > 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=SMALL * np.abs(expected).max())


@pytest.mark.parametrize("contact_model", ("convex", "lcp"))
@pytest.mark.parametrize("name", DECIDING)
def test_derivatives_use_expanded_fields(name, contact_model):
    model = simple(contact_model)
    batch = fl.Batch(model, 2)
    batch.qvel = np.linspace(0.1, 0.5, model.nv)
    batch.expand(name)[1] = some(model, name)
    batch.set_const()
    found = fl.linearize(model, batch)
    for w in range(2):
        own = batch.get_model(w)
        data = fl.Data(own)
        data.qvel = batch.qvel[w]
        alone = fl.linearize(own, data)
        np.testing.assert_allclose(found.A[w], alone.A, rtol=0, atol=SMALL * np.abs(alone.A).max())
        np.testing.assert_allclose(found.B[w], alone.B, rtol=0, atol=SMALL * np.abs(alone.B).max())


@pytest.mark.parametrize("name", DECIDING)
def test_a_sweep_from_zero_has_the_results_of_separate_models(name):
    model, values = simple("convex"), [0.0, 0.3]
    entries = [f"{name}[:, {k}]" for k in range(2)] if getattr(model, name).ndim > 1 else [f"{name}[:]"]
    path = " + ".join(entries)
    result = {"first": "final qpos[0]", "second": "final qpos[3]", "third": "final qvel[2]", "fourth": "final qvel[5]"}
    found = fd.sweep(model, {path: values}, {"nstep": 9, "control": "random"}, reduce=result, seed=2, progress=False)
    for k, value in enumerate(values):
        separate = simple("convex")
        at = np.arange(2) if getattr(model, name).ndim > 1 else slice(None)
        getattr(separate, name)[..., at] = value
        fl.set_const(separate)
        alone = fd.sweep(
            separate, {path: values}, {"nstep": 9, "control": "random"}, reduce=result, seed=2, progress=False
        )
        for column in result:
            assert found.results[column][k] == alone.results[column][k]
    assert any(np.ptp(found.results[column]) > 0.0 for column in result)


def test_the_mujoco_model_of_a_world_has_its_features():
    model = simple("convex")
    batch = fl.Batch(model, 2)
    batch.expand("body_gravcomp")[1] = 1.0
    assert [batch.get_model(w).to_mujoco().ngravcomp for w in range(2)] == [0, model.nbody]


def test_user_contacts_can_pull_if_any_world_has_adhesive_geoms():
    model = simple("convex")
    batch = fl.Batch(model, 2, given_contacts=1)
    contact = {"dist": [0.0], "pos": [[0.0, 0, 0]], "frame": [[0, 0, 1]], "body": [[0, 1]], "adhesion": [3.0]}
    with pytest.raises(fl.ModelError, match="adhesion"):
        batch.give_contacts(**contact)
    batch.expand("geom_adhesion")[1] = 0.1
    batch.give_contacts(**contact)


def test_control_derivatives_use_the_range_of_their_world():
    model = fl.bundled("cartpole")
    batch = fl.Batch(model, 2)
    batch.ctrl = 1.5  # out of the model's range
    batch.expand("actuator_ctrlrange")[:] = np.reshape([[-1.0, 0.5], [-1.0, 2.0]], (2, 1, 2))
    for found in (fl.linearize(model, batch, method="finite_difference"), fl.linearize(model, batch)):
        assert not found.B[0].any() and found.B[1].any()


def test_constants_of_cameras_and_dofs_follow():
    model = expandable.load("cam_pos", "convex")
    model.cam_pos[0, 0] += 0.5
    model.qpos0[2] += 0.25
    fl.set_const(model)
    expected = model.mj_model
    for name in ("cam_pos0", "cam_poscom0", "cam_mat0", "dof_length"):
        np.testing.assert_array_equal(np.ravel(getattr(model, name)), np.ravel(getattr(expected, name)), err_msg=name)


def test_user_sensors_are_cut_off_by_their_world():
    xml = """<mujoco><worldbody><body><joint type="slide" axis="1 0 0"/><geom size=".1"/></body></worldbody>
      <sensor><user name="sum" dim="1" datatype="real" needstage="vel"/></sensor></mujoco>"""
    model = fl.load(xml)
    fl.set_user_sensor(model, "sum", lambda model, v: v[..., 1, :1] + 1.0, reads=("subtree_linvel",))
    batch = fl.Batch(model, 3)
    batch.expand("sensor_cutoff")[:, 0] = 0.0, 0.5, 0.25
    batch.bind("sensordata")
    batch.step()
    np.testing.assert_array_equal(batch.sensordata[:, 0], [1.0, 0.5, 0.25])


def test_compiled_activation_settings_are_kept():
    xml = """<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      <actuator><pid joint="j" kp="2" kv="1" slewmax="3"/></actuator></mujoco>"""
    batch = fl.Batch(fl.load(xml), 2)
    slew = batch.expand("actuator_dynprm")
    slew[1, 0, 1] = 2.0
    batch.step()
    slew[1, 0, 1] = 0.0
    with pytest.raises(fl.ModelError):
        batch.step()


def test_infinite_parameters_have_no_derivative():
    model = simple("lcp")
    assert np.isinf(model.opt_contact_max_vel[0])
    found = fl.linearize(model, fl.Data(model), parameters=("opt.contact_max_vel",))
    assert not found.P["opt_contact_max_vel"].any()


@pytest.mark.parametrize("nworld", [1, 9])
def test_a_field_can_be_expanded_after_a_step(nworld):
    """The workspaces of earlier steps share the model's values and must not be used."""
    model = fl.bundled("humanoid")
    batches = [fl.Batch(model, nworld, nthread=1) for _ in range(2)]
    batches[1].expand("body_mass")
    masses, before = np.linspace(1.0, 2.0, nworld)[:, None] * model.body_mass * 1.5, model.body_mass.copy()
    for batch in batches:
        batch.step(2)
        batch.expand("body_mass")[:] = masses
        batch.step(3)
    assert np.array_equal(batches[0].qpos, batches[1].qpos)
    assert np.array_equal(model.body_mass, before)


def test_batches_of_models_of_equal_sizes_share_expanded_fields():
    """As the native batches of `integrations.mujoco_batch` do, whose models differ in integers."""
    models = [fl.bundled("humanoid") for _ in range(2)]
    models[1].opt.iterations = 50
    first, second = (fl.Batch(model, 3, nthread=1) for model in models)
    for batch in (first, second):
        batch.step()
    masses = first.expand("body_mass")
    second.arrays.share_expanded(first.arrays)
    masses *= np.linspace(1.0, 2.0, 3)[:, None]
    first.set_const()
    second.arrays.share_expanded(first.arrays)
    for batch in (first, second):
        batch.step(5)
    np.testing.assert_array_equal(first.qpos, second.qpos)
    assert len(np.unique(first.qpos[:, 2])) == 3
