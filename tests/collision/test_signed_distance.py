"""Signed distance fields: values against MuJoCo's functions, contacts against MuJoCo, convergence against samples."""

from __future__ import annotations

import ctypes
import functools
import warnings
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.collision.signed_distance import signed_distance
from featherlane.engine.model import signed_distance as model_fields
from featherlane.engine.model.candidates import candidates
from featherlane.engine.model.plugins import Instance
from featherlane.engine.spatial.types import Vec3
from featherlane.errors import ModelError, UnsupportedFeatureError
from oracles.uncompiled import call, typed
from scenes.poses import random_quat
from scenes.signed_distance import PLUGINS, rows, scene

VALUE = 1e-13  # m: rounding
SLOPE = 2e-5  # MuJoCo's differences over 1e-8 m, near edges of a field
CONTACT = 1e-5  # m: those differences, after the steps of a descent
OTHERS = 0.02  # of the contacts: a trial at the edge of a field, where a rounding error decides its slope
FEW = 10
# every shape, every plugin, both sides; models with plugins take 0.1 to 0.5 s to compile
PAIRS = (
    ("torus", "sphere"),
    ("octree", "capsule"),
    ("octree", "ellipsoid"),
    ("octree", "cylinder"),
    ("plane", "octree"),
    ("octree", "mesh"),
    ("octree", "octree"),
    ("bolt", "nut"),
)
MORE = (
    ("gear", "gear"),
    ("bowl", "sphere"),
    ("bowl", "octree"),
    ("torus", "octree"),
    ("torus", "mesh"),
    ("nut", "capsule"),
    ("gear", "cylinder"),
    ("plane", "torus"),
)


@functools.cache
def compiled(first: str, second: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(scene(first, second, 'sdf_initpoints="12" gravity="0 0 0"'))


# ---- values and gradients ------------------------------------------------------------------------------------------
class MujocoField(ctypes.Structure):
    """MuJoCo's mjSDF of one geom."""

    _fields_ = (
        ("plugin", ctypes.POINTER(ctypes.c_void_p)),
        ("id", ctypes.POINTER(ctypes.c_int)),
        ("type", ctypes.c_int),
        ("relpos", ctypes.c_void_p),
        ("relmat", ctypes.c_void_p),
        ("geomtype", ctypes.POINTER(ctypes.c_int)),
    )


def mujoco_field(mj, data, geom: int, points):
    """Returns value and gradient by MuJoCo's functions mjc_distance and mjc_gradient."""
    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
    library.mjp_getPluginAtSlot.restype = ctypes.c_void_p
    library.mjc_distance.restype = ctypes.c_double
    kind, instance = int(mj.geom_type[geom]), int(mj.geom_plugin[geom])
    plugin = library.mjp_getPluginAtSlot(int(mj.plugin[instance])) if instance >= 0 else None
    number = instance if instance >= 0 else int(mj.geom_dataid[geom]) if kind == mujoco.mjtGeom.mjGEOM_SDF else geom
    field = MujocoField(ctypes.pointer(ctypes.c_void_p(plugin)), ctypes.pointer(ctypes.c_int(number)), 0)
    field.geomtype = ctypes.pointer(ctypes.c_int(kind))
    records = [ctypes.c_void_p(mj._address), ctypes.c_void_p(data._address), ctypes.byref(field)]
    values, slopes = np.zeros(len(points)), np.zeros((len(points), 3))
    for k, point in enumerate(points):
        x = ctypes.c_void_p(point.ctypes.data)
        values[k] = library.mjc_distance(*records, x)
        library.mjc_gradient(*records, ctypes.c_void_p(slopes[k].ctypes.data), x)
    return values, slopes


def our_field(mj, geom: int, points, exact: int = 0):
    """Returns value and gradient of the kernel, uncompiled."""
    found = model_fields.signed_distances(mj, candidates(mj))
    tables = ("sdf_param", "mesh_octbox", "octree_child", "octree_coeff")
    record = SimpleNamespace(width=1, shape=(1,), dtype=np.dtype(float), mesh_octree=found["mesh_octree"])
    record.__dict__.update((name, typed(np.asarray(found[name], float).ravel(), name)) for name in tables)
    kind, address = (int(found[name][geom]) for name in ("geom_field", "geom_fieldadr"))
    size, p = Vec3(*mj.geom_size[geom]), Vec3(*points.T)
    value, slope = call(signed_distance, record, kind, address, size, p, exact)
    return value, np.stack([np.broadcast_to(x, value.shape) for x in slope], axis=1)


def sampled(mj, geom: int, n: int) -> np.ndarray:
    """Returns points in and around the bounding box of a geom."""
    half = np.minimum(mj.geom_aabb[geom, 3:], 1.0)
    centre = np.where(mj.geom_aabb[geom, 3:] < 1e9, mj.geom_aabb[geom, :3], 0.0)
    return centre + np.random.default_rng(geom).uniform(-1.6, 1.6, (n, 3)) * half


FIELDS = (("torus", "sphere"), ("bowl", "box"), ("bolt", "nut"), ("gear", "cylinder"), ("octree", "capsule"))


@pytest.mark.parametrize("pair", [*FIELDS, ("plane", "octree"), ("octree", "ellipsoid")], ids="-".join)
def test_fields_are_those_of_mujoco(pair):
    mj = compiled(*pair)
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    for geom in range(2):
        points = sampled(mj, geom, 300)
        (value, slope), (truth, differences) = our_field(mj, geom, points), mujoco_field(mj, data, geom, points)
        np.testing.assert_allclose(value, truth, atol=VALUE)
        np.testing.assert_allclose(slope, differences, atol=SLOPE)


@pytest.mark.parametrize("pair", FIELDS, ids="-".join)
def test_gradients_are_derivatives(pair):
    mj, step = compiled(*pair), 1e-6
    for geom in range(2):
        points = sampled(mj, geom, 200)
        _, slope = our_field(mj, geom, points, exact=1)
        sides = [[our_field(mj, geom, points + s * step * e, exact=1)[0] for s in (1, -1)] for e in np.eye(3)]
        error = np.abs(slope - np.stack([(a - b) / (2 * step) for a, b in sides], axis=1)).max(axis=1)
        assert np.mean(error < 1e-8) > 0.97  # the others have an edge of the field within a step


# ---- contacts --------------------------------------------------------------------------------------------------------
def poses(first: str, n: int, seed: int):
    """Returns n poses of the free body that mostly overlap the first one."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal((n, 3))
    direction *= rng.uniform(0.1, 0.45, (n, 1)) / np.linalg.norm(direction, axis=1, keepdims=True)
    if first == "plane":
        direction[:, 2] = rng.uniform(0.0, 0.2, n)
    return np.concatenate([direction, random_quat(rng, n)], axis=1)


def compare(first: str, second: str, n: int, seed: int) -> int:
    """Compares contacts of n poses with MuJoCo's; returns their number."""
    mj = compiled(first, second)
    model, truth = fl.load(mj), mujoco.MjData(mj)
    data, count, others = fl.Data(model), 0, 0
    for qpos in poses(first, n, seed):
        truth.qpos[:] = data.qpos[:] = qpos
        mujoco.mj_forward(mj, truth)
        fl.forward(model, data)
        ours, theirs = rows(data.contact), rows(truth.contact)
        assert ours.shape == theirs.shape
        others += np.count_nonzero(np.abs(ours - theirs).max(axis=1, initial=0.0) > CONTACT)
        count += len(ours)
    assert others <= max(2, OTHERS * count)
    return count


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_contacts_are_those_of_mujoco(pair):
    assert compare(*pair, FEW, seed=3) > 5


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS + MORE, ids="-".join)
def test_contacts_are_those_of_mujoco_in_many_poses(pair):
    assert compare(*pair, 60, seed=4) > 30


def test_a_step_is_that_of_mujoco():
    mj = mujoco.MjModel.from_xml_string(scene("plane", "octree", 'sdf_initpoints="12"'))
    model, truth = fl.load(mj), mujoco.MjData(mj)
    data = fl.Data(model)
    truth.qpos[:] = 0.05, 0.1, 0.11, 0.9, 0.1, 0.2, -0.1
    for _ in range(100):
        data.qpos[:], data.qvel[:] = truth.qpos, truth.qvel
        data.qacc_warmstart[:] = truth.qacc_warmstart
        mujoco.mj_step(mj, truth)
        fl.step(model, data)
        np.testing.assert_allclose(data.qvel, truth.qvel, atol=1e-8)
    assert truth.ncon > 0


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tolerance", [0.0, 1e-7])
def test_a_batch_has_the_contacts_of_each_world(dtype, tolerance):
    model = fl.load(compiled("octree", "mesh"))
    model.opt.sdf_tolerance = tolerance
    batch, alone = fl.Batch(model, nworld=19, dtype=dtype), fl.Batch(model, nworld=1, dtype=dtype)
    batch.qpos[:] = poses("octree", 19, seed=5)
    batch.step(nstep=3)
    for k, qpos in enumerate(poses("octree", 19, seed=5)):
        alone.reset()
        alone.qpos[0] = qpos
        alone.step(nstep=3)
        np.testing.assert_array_equal(alone.qpos[0], batch.qpos[k])


@pytest.mark.parametrize("flags", ["", 'sleep="enable"'])
@pytest.mark.parametrize("pair, fits, initpoints", [(("mesh", "octree"), 1, 40), (("octree", "octree"), 40, 400)])
def test_dropped_contacts_are_counted_once_and_the_pair_is_named(pair, fits, initpoints, flags):
    """MuJoCo drops them, too, and its cap of 50 includes points of a mesh that are found twice."""
    mj = mujoco.MjModel.from_xml_string(scene(*pair).replace("<option />", f"<option><flag {flags}/></option>"))
    mj.opt.sdf_initpoints = fits
    model, theirs = fl.load(mj), mujoco.MjData(mj)
    theirs.qpos[:3] = 0.05, 0.03, 0.02
    for number, full in ((fits, 0), (initpoints, 1)):
        model.opt.sdf_initpoints = mj.opt.sdf_initpoints = number
        mujoco.mj_forward(mj, theirs)
        data, batch = fl.Data(model), fl.Batch(model, 9)
        data.qpos[:] = batch.qpos[::2] = theirs.qpos
        batch.qpos[1::2, 2] = 2.0
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            fl.forward(model, data)
            batch.forward()
        assert data.ncon == theirs.ncon and data.status["contacts_full"] == full
        np.testing.assert_array_equal(batch.status["contacts_full"], full * (1 - np.arange(9) % 2))
        assert len(met) == 2 * full
        assert all("contacts of geom #0 and geom #1 than the 50 of one pair" in str(one.message) for one in met)


def test_starting_points_and_iterations_can_be_edited():
    model = fl.load(compiled("octree", "sphere"))
    data = fl.Data(model)
    data.qpos[:3] = 0.1, 0.1, 0.2
    counts = []
    for points, iterations in ((12, 10), (3, 10), (0, 10), (12, 0)):
        model.opt.sdf_initpoints, model.opt.sdf_iterations = points, iterations
        fl.forward(model, data)
        counts.append(len(data.contact.dist))
    assert counts[0] > 3 >= counts[1] > 0 and counts[2] == 0 and counts[3] <= counts[0]


# ---- converged minimization ------------------------------------------------------------------------------------------
def converged(first: str, second: str, tolerance: float = 1e-8):
    model = fl.load(compiled(first, second))
    model.opt.sdf_tolerance = tolerance
    return model, fl.Data(model)


def test_a_sphere_and_a_torus_have_their_signed_distance():
    model, data = converged("torus", "sphere")
    ring, tube, ball = 0.35, 0.15, model.geom_size[1, 0]
    rng, found = np.random.default_rng(1), 0
    for _ in range(20):
        angle, out, up = rng.uniform(0, 2 * np.pi), rng.uniform(-0.2, 0.3), rng.uniform(0.1, 0.3)
        x = np.array([(ring + out) * np.cos(angle), (ring + out) * np.sin(angle), up])
        data.qpos[:3] = x
        fl.forward(model, data)
        gap = np.hypot(out, up) - tube - ball
        assert len(data.contact.dist) == (gap < 0)
        if gap < 0:
            found += 1
            assert abs(data.contact.dist[0] - gap) < 1e-12
            normal = np.array([out * np.cos(angle), out * np.sin(angle), up]) / np.hypot(out, up)
            np.testing.assert_allclose(np.ravel(data.contact.frame)[:3], -normal, atol=1e-6)
    assert found > 5


def depth_in_both(mj, data, points) -> np.ndarray:
    """Returns max(A, B) of the two fields at points of the world."""
    local = [(points - data.geom_xpos[g]) @ data.geom_xmat[g].reshape(3, 3) for g in range(2)]
    return np.max([our_field(mj, g, local[g], exact=1)[0] for g in range(2)], axis=0)


@pytest.mark.parametrize("pair", [("torus", "octree"), ("octree", "capsule"), ("octree", "octree")], ids="-".join)
def test_a_converged_point_is_the_deepest_of_dense_samples(pair):
    """No sample near a contact is deeper in both solids, nor any sample deeper than the deepest contact."""
    model, data = converged(*pair)
    mj, checked = compiled(*pair), 0
    for qpos in poses(pair[0], 8, seed=6):
        data.qpos[:] = qpos
        fl.forward(model, data)
        if len(data.contact.dist) == 0:
            continue
        rng = np.random.default_rng(0)
        points = np.asarray(data.contact.pos)
        at = depth_in_both(mj, data, points)
        k = int(np.argmin(at))
        near = np.concatenate([points[k] + rng.normal(size=(4000, 3)) * size for size in (1e-2, 1e-3, 1e-4)])
        assert at[k] <= depth_in_both(mj, data, near).min() + 1e-5
        checked += 1
    assert checked > 1


# ---- derivatives and contact models ---------------------------------------------------------------------------------
def test_derivatives_are_those_of_differences():
    model = fl.load(scene("octree", "mesh", 'sdf_initpoints="12"'))
    data = fl.Data(model)
    data.qpos[:], data.qvel[:] = (-0.1, 0.1, 0.19, 1, 0.1, 0.2, 0), 0.1
    data.qpos[3:] /= np.linalg.norm(data.qpos[3:])
    fl.forward(model, data)
    assert len(data.contact.dist) > 3
    exact = fl.linearize(model, data).A
    differences = fl.linearize(model, data, method="finite_difference", eps=1e-6).A
    np.testing.assert_allclose(exact, differences, atol=1e-6 * np.abs(exact).max())
    model.opt.sdf_tolerance = 1e-6
    with pytest.raises(UnsupportedFeatureError, match="sdf_tolerance"):
        fl.linearize(model, data)


@pytest.mark.parametrize("contact_model", ["lcp", "coulomb"])
def test_a_prism_rests_on_a_prism_under_every_contact_model(contact_model):
    model = fl.load(scene("octree", "octree", 'sdf_initpoints="20" timestep="0.002"'))
    model.opt.contact_model = contact_model
    data = fl.Data(model)
    data.qpos[:3] = 0.02, 0.01, 0.2
    for _ in range(200):
        fl.step(model, data)
    assert abs(data.qpos[2] - 0.2) < 0.01 and np.abs(data.qvel).max() < 0.1


# ---- errors ----------------------------------------------------------------------------------------------------------
def test_a_mesh_that_is_not_watertight_is_an_error():
    text = """<mujoco><asset><mesh name="open" inertia="shell" vertex="0 0 0 1 0 0 0 1 0 0 0 1"
      face="0 2 1 0 1 3 0 3 2"/></asset><worldbody><geom size="1"/>
      <body><freejoint/><geom name="tent" type="sdf" mesh="open" mass="1"/></body></worldbody></mujoco>"""
    with pytest.raises(ModelError, match="geom 'tent': mesh 'open' has 3 open edges, allowed is a watertight mesh"):
        fl.load(text)
    fl.load(text.replace('mass="1"', 'mass="1" contype="0" conaffinity="0"'))


def test_other_plugins_are_named(monkeypatch):
    mj = compiled("torus", "sphere")
    monkeypatch.setattr(model_fields, "instances", lambda mj: [Instance("their.sdf.teapot", {})])
    with pytest.raises(UnsupportedFeatureError, match=r"geom #0.*their\.sdf\.teapot"):
        fl.load(mj)


def test_height_fields_are_named():
    text = scene("sphere", "octree", worldbody='<geom name="hills" type="hfield" hfield="h"/>')
    asset = '<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>'
    with pytest.raises(UnsupportedFeatureError, match="geom 'hills': collision of hfield with sdf"):
        fl.load(text.replace("<asset>", asset))


@pytest.mark.parametrize(
    "plugin, numbers",
    [("bowl", {"height": 2, "radius": 1, "thickness": 0.1}), ("gear", {"diameter": 1, "teeth": 0})],
)
def test_attributes_that_define_no_solid_are_errors(plugin, numbers):
    instance = Instance(f"mujoco.sdf.{plugin}", {key: str(x) for key, x in numbers.items()})
    mj = compiled(*next(pair for pair in FIELDS if plugin in pair))
    with pytest.raises(ModelError, match=f"plugin '{plugin}': .*allowed"):
        model_fields._parameters(mj, 0, instance)


def test_every_plugin_is_in_the_scenes():
    assert {f"mujoco.sdf.{name}" for name in PLUGINS} == set(model_fields.PLUGINS)


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf])
def test_the_tolerance_is_checked(value):
    model = fl.load(compiled("octree", "sphere"))
    with pytest.raises(ModelError, match="sdf_tolerance"):
        model.opt.sdf_tolerance = value
