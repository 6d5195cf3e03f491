"""Concave meshes divided into convex parts: the shape, the mass, contacts, pairs, the cache, and errors by name."""

from __future__ import annotations

import pickle
import sys

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model import decomposition

coacd = pytest.importorskip("coacd")

# a channel along y with walls of 0.2, 2 wide and 1 high outside
PROFILE = ((-1, 0), (1, 0), (1, 1), (0.8, 1), (0.8, 0.2), (-0.8, 0.2), (-0.8, 1), (-1, 1))
QUADS = ((0, 1, 4, 5), (1, 2, 3, 4), (7, 0, 5, 6))  # of a cap
VOLUME = 2 * (2 * 0.2 + 2 * 0.2 * 0.8)


def channel() -> tuple[np.ndarray, np.ndarray]:
    """Returns vertices and faces of a closed channel of length 2."""
    n = len(PROFILE)
    vertices = np.array([(x, y, z) for y in (-1.0, 1.0) for x, z in PROFILE])
    caps = [(a, b, c) for a, b, c, _ in QUADS] + [(a, c, d) for a, _, c, d in QUADS]
    faces = caps + [(a + n, c + n, b + n) for a, b, c in caps]
    for k in range(n):
        j = (k + 1) % n
        faces += [(k, k + n, j + n), (k, j + n, j)]
    return vertices, np.array(faces)


def text(vertices, faces) -> str:
    return f'vertex="{" ".join(map(repr, vertices.ravel().tolist()))}" face="{" ".join(map(str, faces.ravel()))}"'


SCENE = """<mujoco><compiler autolimits="true"/><option timestep=".002"/>
<asset><mesh name="channel" scale=".1 .1 .1" {mesh}/><mesh name="block" scale=".1 .1 .1" {block}/></asset><worldbody>
<geom name="floor" type="plane" size="0 0 1"/>
<body name="trough" pos="0 0 {height}" quat=".9 0 0 .3">{joint}<geom name="wall" type="mesh" mesh="channel"
  friction=".7" condim="4"/></body>
<body name="ball" pos=".01 0 .3"><freejoint/><geom name="ball" size=".03"/></body>
<body name="brick" pos="1 0 .3"><freejoint/><geom name="brick" type="mesh" mesh="block"/></body>
</worldbody>{more}</mujoco>"""
BLOCK = np.array([(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def mujoco_faces() -> np.ndarray:
    """Returns the triangles of `BLOCK`."""
    spec = mujoco.MjSpec()
    spec.add_mesh(name="block", uservert=BLOCK.ravel().tolist())
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="block")
    mj = spec.compile()
    corners = mj.mesh_vert[:, None] * np.abs(BLOCK).max() / np.abs(mj.mesh_vert).max()
    return np.abs(corners - BLOCK).sum(-1).argmin(1)[mj.mesh_face]


def scene(height=0.0, joint="", more="", mesh="") -> str:
    corners = " ".join(map(repr, BLOCK.ravel().tolist()))
    mesh = mesh or text(*channel())
    return SCENE.format(mesh=mesh, block=f'vertex="{corners}"', height=height, joint=joint, more=more)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    """Computes the parts once for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setattr(decomposition, "directory", lambda: folder / "kernels")
        yield


def test_parts_fill_the_mesh_and_convex_meshes_are_unchanged():
    model = fl.load(scene(), convex_decomposition="coacd")
    (found,) = model.decompositions
    assert (found.mesh, found.geoms, found.watertight, found.cached) == ("channel", ("wall",), True, False)
    assert len(found.parts) == len(found.part_volumes) >= 3
    assert found.volume == pytest.approx(VOLUME / 1000) and found.part_volumes.sum() == pytest.approx(
        VOLUME / 1000, 0.02
    )
    assert not model.geom("wall").contype and model.geom("brick").contype == 1
    geoms = [model.geom(f"wall_part{k}").id for k in range(len(found.parts))]
    assert (model.geom_condim[geoms] == 4).all() and (model.geom_friction[geoms, 0] == 0.7).all()
    assert pickle.loads(pickle.dumps(model)).decompositions[0].parts == found.parts


def test_points_of_the_parts_are_those_of_the_mesh():
    """In world axes, with the mesh's scale and a turned body: each vertex of a part is within the mesh's box."""
    model = fl.load(scene(height=0.2), convex_decomposition="coacd")
    mj = model.to_mujoco()
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)

    def points(geom):
        mesh = mj.geom_dataid[geom]
        vertices = mj.mesh_vert[mj.mesh_vertadr[mesh] : mj.mesh_vertadr[mesh] + mj.mesh_vertnum[mesh]]
        return vertices @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]

    names = [f"wall_part{k}" for k in range(len(model.decompositions[0].parts))]
    parts = np.concatenate([points(mj.geom(name).id) for name in names])
    for corner in points(mj.geom("wall").id):
        assert np.linalg.norm(parts - corner, axis=1).min() < 1e-3  # CoACD rounds, and cuts near the corners


def test_a_ball_falls_into_the_channel_and_rests_on_its_hull_without_parts():
    heights = {}
    for method in (None, "coacd"):
        model = fl.load(scene(), convex_decomposition=method)
        data = fl.Data(model)
        fl.step(model, data, 600)
        heights[method] = data.body("ball").xpos[2] - 0.03
    assert heights[None] == pytest.approx(0.1, abs=1e-3)
    assert heights["coacd"] == pytest.approx(0.02, abs=1e-3)


def test_mass_and_motion_are_those_of_the_mesh_and_of_mujoco():
    model = fl.load(scene(0.4, "<freejoint/>"), convex_decomposition="coacd")
    whole = fl.load(scene(0.4, "<freejoint/>"))
    assert np.allclose(model.body_mass, whole.body_mass) and np.allclose(model.body_inertia, whole.body_inertia)
    assert np.allclose(model.body_ipos, whole.body_ipos, atol=1e-12)
    mj = model.to_mujoco()
    data, expected = fl.Data(model), mujoco.MjData(mj)
    for _ in range(20):
        fl.step(model, data)
        mujoco.mj_step(mj, expected)
    np.testing.assert_allclose(data.qpos, expected.qpos, rtol=0, atol=1e-9)


def test_rays_hit_the_mesh():
    model = fl.load(scene(), convex_decomposition="coacd")
    data = fl.Data(model)
    fl.forward(model, data)
    hit = fl.query.ray(model, data, [0.0, 0.05, 0.2], [0.0, 0.0, -1.0])
    assert hit.geom == model.geom("wall").id and hit.distance == pytest.approx(0.18)


def test_parts_are_read_from_the_cache(tmp_path, monkeypatch):
    halves = [(BLOCK * 0.05 + [x, 0.0, 0.05], mujoco_faces()) for x in (-0.05, 0.05)]
    calls = []
    monkeypatch.setattr(coacd, "run_coacd", lambda *_, **options: calls.append(options) or halves)
    monkeypatch.setattr(decomposition, "directory", lambda: tmp_path / "kernels")
    first = fl.load(scene(), convex_decomposition="coacd")
    (file,) = (tmp_path / "decompositions").iterdir()
    again = fl.load(scene(), convex_decomposition="coacd")
    assert again.decompositions[0].cached and len(calls) == 1
    assert np.array_equal(again.decompositions[0].part_volumes, first.decompositions[0].part_volumes)
    fl.load(scene(), convex_decomposition={"threshold": 0.2})
    assert len(calls) == 2 and calls[1]["threshold"] == 0.2
    for number, content in enumerate((b"", b"broken", file.read_bytes()[:100]), 3):
        file.write_bytes(content)
        assert not fl.load(scene(), convex_decomposition="coacd").decompositions[0].cached
        assert len(calls) == number


def test_an_unwritable_cache_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "decompositions").write_text("a file")
    monkeypatch.setattr(coacd, "run_coacd", lambda *_, **__: [(BLOCK, mujoco_faces()), (BLOCK + 3.0, mujoco_faces())])
    monkeypatch.setattr(decomposition, "directory", lambda: tmp_path / "kernels")
    assert len(fl.load(scene(), convex_decomposition="coacd").decompositions[0].parts) == 2


@pytest.mark.slow
def test_options_limit_the_parts():
    assert len(fl.load(scene(), convex_decomposition={"max_convex_hull": 2}).decompositions[0].parts) <= 2


def test_a_specification_is_unchanged():
    spec = mujoco.MjSpec.from_string(scene())
    model = fl.load(spec, convex_decomposition="coacd")
    assert len(model.decompositions) == 1 and len(spec.geoms) == 4 and spec.geom("wall").contype == 1
    assert not fl.load(spec).decompositions


def test_contact_pairs_are_those_of_the_parts():
    more = '<contact><pair geom1="ball" geom2="wall" condim="1" margin=".001"/></contact>'
    model = fl.load(scene(more=more), convex_decomposition="coacd")
    mj = model.to_mujoco()
    parts = len(model.decompositions[0].parts)
    assert mj.npair == parts and (mj.pair_dim == 1).all() and (mj.pair_margin == 0.001).all()
    assert {mj.geom(g).name for g in mj.pair_geom2} | {mj.geom(g).name for g in mj.pair_geom1} == {
        "ball",
        *(f"wall_part{k}" for k in range(parts)),
    }


@pytest.mark.parametrize("kind", ['contact geom1="wall"', 'distance geom1="wall" geom2="ball"'])
def test_sensors_of_a_divided_geom_are_refused(kind):
    more = f'<sensor><{kind} name="felt"/></sensor>'
    fl.load(scene(more=more))
    with pytest.raises(fl.UnsupportedFeatureError, match=r"sensor 'felt': .* of geom 'wall'"):
        fl.load(scene(more=more), convex_decomposition="coacd")


@pytest.mark.parametrize(
    "given, words",
    [
        ("vhacd", "got 'vhacd', allowed are coacd"),
        ({"threshold": 0.0}, "threshold: got 0, allowed is a number from 0.01 to 1"),
        ({"max_convex_hull": 1.5}, "max_convex_hull: got 1.5, allowed is a whole number"),
        ({"treshold": 0.1}, "got 'treshold'.*did you mean"),
        (3, "got 3"),
    ],
)
def test_wrong_options_are_refused(given, words):
    with pytest.raises(fl.ModelError, match=words):
        fl.load(scene(), convex_decomposition=given)


def test_a_compiled_model_is_refused():
    with pytest.raises(fl.ModelError, match="convex_decomposition: got an MjModel"):
        fl.load(mujoco.MjModel.from_xml_string(scene()), convex_decomposition="coacd")


def test_a_flat_mesh_is_refused_by_name():
    """MuJoCo accepts it as a shell, without volume."""
    vertices, faces = channel()
    sheet = text(vertices, faces[:6])
    mesh = sheet + ' inertia="shell"'
    with pytest.raises(fl.ModelError, match="mesh 'channel': it is degenerate"):
        fl.load(scene(mesh=mesh), convex_decomposition="coacd")


def test_an_open_mesh_is_refused_and_repaired_on_request(monkeypatch):
    vertices, faces = channel()
    mesh = text(vertices, faces[1:]) + ' inertia="shell"'
    with pytest.raises(fl.ModelError, match="mesh 'channel': it is not watertight"):
        fl.load(scene(mesh=mesh), convex_decomposition="coacd")
    monkeypatch.setattr(coacd, "run_coacd", lambda *_, **__: [(BLOCK, mujoco_faces()), (BLOCK + 3.0, mujoco_faces())])
    (found,) = fl.load(scene(mesh=mesh), convex_decomposition={"repair": True}).decompositions
    assert not found.watertight and len(found.parts) == 2


def test_a_missing_library_is_reported_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "coacd", None)
    with pytest.raises(fl.InstallationError, match=r"pip install 'featherlane\[coacd\]'"):
        fl.load(scene(), convex_decomposition="coacd")
