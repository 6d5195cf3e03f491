"""A world with a variant is bitwise identical to a model with this variant alone."""

from __future__ import annotations

import itertools
import pickle

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import ABSENT_GEOM
from scenes.shapes import ball

MESHES = {
    "stone": (ball(40) + (0.01, 0.02, -0.01)) * 1.2,
    "wedge": np.array([[-1, -1, -1], [2, -1, -1], [-1, 1.5, -1], [2, 1.5, -1], [-1, 0, 1.5], [2, 0, 1.5]]) * 0.07,
    "pyramid": np.array([[1, 0, 0], [-0.5, 1, 0], [-0.5, -1, 0], [0.1, 0, 1.5]]) * 0.14,
}
TOOLS = {
    "ball": '<geom name="ball" size=".09" rgba="1 0 0 1"/>',
    "crate": '<geom name="crate" type="box" size=".07 .1 .08" pos=".01 0 0" friction=".4"/>',
    "rod": '<geom name="rod" type="capsule" size=".04 .1" euler="80 0 0" density="300" margin=".01"/>',
    "can": '<geom name="can" type="cylinder" size=".07 .09" pos="0 .01 0"/>',
    "chip": '<geom name="chip" type="mesh" mesh="pyramid"/>',
}
SCENE = """<mujoco><option timestep=".004" {option}><flag {flag}/></option>
<asset>{assets}<material name="clay" rgba=".5 .2 .1 1"/></asset><worldbody>
  <geom name="floor" type="plane" size="5 5 1"/><camera name="eye" pos="0 -2 .5" xyaxes="1 0 0 0 .2 1"/>
  <site name="lamp" pos="0 0 2" zaxis="0 0 -1"/>
  <body name="thing" pos="0 0 .2"><freejoint/>
    <geom name="thing" type="mesh" mesh="{thing}" pos=".01 0 .02" euler="10 20 30"/><site name="skin" size=".3"/></body>
  <body name="tool" simple="false" pos=".05 .05 .5"><freejoint/>{tools}</body>
  <body name="rail" pos="-.1 0 .8"><joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/>
    <geom name="rail" type="mesh" mesh="{rail}" mass="1.5" condim="6" friction="1 .01 .01"/></body>
  <body name="bar" pos=".4 0 .1"><joint axis="0 1 0"/><geom type="capsule" size=".03 .3" euler="0 80 0"/></body>
</worldbody><contact>{pair}</contact>
<sensor><rangefinder site="lamp"/><touch site="skin"/><distance geom1="thing" body2="tool" cutoff="1"/>
  <fromto body1="tool" geom2="rail" cutoff="1"/><contact body1="tool" data="force dist"/></sensor></mujoco>"""
CHOICES = list(itertools.product(MESHES, TOOLS, MESHES))
GROUPS = {"thing": list(MESHES), "tool": list(TOOLS), "rail": list(MESHES)}
OUTPUTS = ("qpos", "qvel", "sensordata", "ncon")
CASES = {
    "convex": ({}, {}),
    "elliptic": ({"option": 'cone="elliptic" integrator="implicitfast"'}, {}),
    "speculative": ({"flag": 'speculative="enable"'}, {}),
    "lcp": ({}, {"contact_model": "lcp"}),
    "coulomb": ({}, {"contact_model": "coulomb"}),
    "pair": ({"pair": '<pair geom1="thing" geom2="rail" condim="3"/>'}, {"integrator": "RK4"}),
}


def text(thing: str, tools: str, rail: str, option: str = "", flag: str = "", pair: str = "") -> str:
    """Returns the scene with these meshes and geoms."""
    points = {name: " ".join(map(str, vertices.ravel())) for name, vertices in MESHES.items()}
    assets = "".join(f'<mesh name="{name}" vertex="{vertices}"/>' for name, vertices in points.items())
    return SCENE.format(**locals())


def load(case: str = "convex") -> fl.Model:
    """Returns the model with all variants."""
    model = fl.load(text("wedge", "".join(TOOLS.values()), "stone", **CASES[case][0]), variants=GROUPS)
    return set_options(model, case)


def alone(choice: tuple[str, str, str], case: str = "convex") -> fl.Model:
    """Returns the model with one variant of each group."""
    thing, tool, rail = choice
    return set_options(fl.load(text(thing, TOOLS[tool], rail, **CASES[case][0])), case)


def set_options(model: fl.Model, case: str) -> fl.Model:
    for option, value in CASES[case][1].items():
        setattr(model.opt, option, value)
    return model


def chosen(batch, seed: int = 0) -> list[tuple[str, str, str]]:
    """Gives each world random variants; returns them."""
    rng = np.random.default_rng(seed)
    choices = [CHOICES[k] for k in rng.integers(len(CHOICES), size=batch.nworld)]
    for k, (group, names) in enumerate(GROUPS.items()):
        for name in names:
            batch.set_variant(group, name, ids=[c[k] == name for c in choices])
    return choices


def start(batch, seed: int = 1) -> np.ndarray:
    """Returns random poses of the worlds."""
    rng = np.random.default_rng(seed)
    qpos = np.tile(batch.model.qpos0, (batch.nworld, 1))
    qpos[:, [3, 4, 5, 6, 10, 11, 12, 13]] = rng.normal(size=(batch.nworld, 8))
    qpos[:, [0, 1, 7, 8]] += 0.05 * rng.normal(size=(batch.nworld, 4))
    return qpos


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_variants_of_worlds_are_returned(dtype):
    batch = fl.Batch(load(), 9, dtype=dtype)
    assert (batch.get_variant("tool") == "ball").all(), "the first of the group"
    choices = chosen(batch)
    for k, group in enumerate(GROUPS):
        assert batch.get_variant(group).tolist() == [choice[k] for choice in choices]
    assert batch.get_variant("rail", ids=[4, 2]).tolist() == [choices[4][2], choices[2][2]]
    assert batch.get_variant("rail", ids=[]).tolist() == []
    with pytest.raises(fl.UnknownNameError, match="no variants of 'floor'"):
        batch.get_variant("floor")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
def test_a_world_is_bitwise_equal_to_a_model_with_its_variants_alone(case, dtype):
    batch = fl.Batch(load(case), 20, dtype=dtype)
    choices, qpos = chosen(batch), start(batch)
    batch.qpos = qpos
    together = batch.rollout(80, record=OUTPUTS)
    assert together["ncon"].max() >= 6
    for w in range(0, batch.nworld, 3):
        own = fl.Batch(alone(choices[w], case), 1, dtype=dtype)
        own.qpos = qpos[w]
        for name, rows in own.rollout(80, record=OUTPUTS).items():
            assert rows[0].tobytes() == together[name][w].tobytes(), (choices[w], name)


def test_the_model_has_the_first_variants():
    model = load()
    first = alone(("stone", "ball", "stone"))
    data, own = fl.Data(model), fl.Data(first)
    for _ in range(100):
        fl.step(model, data)
        fl.step(first, own)
    assert data.qpos.tobytes() == own.qpos.tobytes()
    assert model.variants.keys() == GROUPS.keys() and [list(g) for g in model.variants.values()] == [*GROUPS.values()]


def test_rays_images_and_distances_see_the_variant():
    batch = fl.Batch(load(), 12)
    choices, qpos = chosen(batch), start(batch)
    batch.qpos = qpos
    names = batch.model.names("geom")
    points, directions = np.array([[0.0, 0, 2], [0.05, 0.05, 2], [-0.1, 0, 2]]), np.tile([0.0, 0, -1], (3, 1))
    hits, images = (
        batch.ray(points, directions),
        batch.render("eye", width=16, height=12, output=("depth", "segmentation")),
    )
    for w, choice in enumerate(choices):
        model = alone(choice)
        own = fl.Batch(model, 1)
        own.qpos = qpos[w]
        theirs = own.ray(points, directions)
        assert theirs.distance.tobytes() == hits.distance[w].tobytes()
        assert [names[g] for g in hits.geom[w]] == [model.names("geom")[g] for g in theirs.geom[0]]
        assert own.render("eye", width=16, height=12).depth.tobytes() == images.depth[w].tobytes()
        expected = own.geom_distance("thing", choice[1])
        found = batch.geom_distance("thing", choice[1], ids=[w])
        assert (found.distance.tobytes(), found.fromto.tobytes()) == (
            expected.distance.tobytes(),
            expected.fromto.tobytes(),
        )
        absent = next(name for name in TOOLS if name != choice[1])
        assert batch.geom_distance("thing", absent, distmax=3.0, ids=[w]).distance == 3.0


def test_many_geoms_find_the_same_contacts_through_bounding_boxes():
    """Checks absent geoms in a tree of bounding boxes, and in boxes of bodies with several geoms."""

    def scene(kept, n):
        bodies = "".join(
            f'<body pos="{0.25 * (i % 6)} {0.25 * (i // 6 % 6)} {0.14 + 0.3 * (i // 36)}"><freejoint/>'
            + "".join(f'<geom name="{k}{i}" {size}/>' for k, size in kinds.items() if k in (*kept, "c"))
            + "</body>"
            for i in range(n)
        )
        return f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'

    kinds = {"a": 'size=".15"', "b": 'type="box" size=".1 .1 .14" pos=".02 0 0"', "c": 'size=".1" pos="0 0 .1"'}

    def keep(kept, n):
        def edit(spec):
            for i in range(n):
                for name in {"a", "b"} - {kept}:
                    spec.delete(spec.geom(f"{name}{i}"))

        return edit

    for n in (8, 100):
        model = fl.load(scene("ab", n), variants={"all": {kept: keep(kept, n) for kept in "ab"}})
        assert (model.ncrowd > 0) == (n == 100)
        batch = fl.Batch(model, 6)
        batch.set_variant("all", "b", ids=[1, 3, 4])
        out = batch.rollout(15, record=("qpos", "ncon"))
        for w, kept in ((0, "a"), (1, "b")):
            own = fl.Batch(fl.load(scene(kept, n)), 1).rollout(15, record=("qpos", "ncon"))
            assert all(own[name][0].tobytes() == out[name][w].tobytes() for name in own)
            assert out["ncon"][w].max() > 0


def test_mujoco_and_single_worlds_get_the_variant():
    batch = fl.Batch(load(), 6)
    choices, qpos = chosen(batch, seed=3), start(batch)
    batch.qpos = qpos
    out = batch.rollout(60, record=("qpos",))["qpos"]
    for w, (thing, tool, rail) in enumerate(choices):
        model = batch.get_model(w)
        data = fl.Data(model)
        data.qpos = qpos[w]
        mj = model.to_mujoco()
        theirs = mujoco.MjData(mj)
        theirs.qpos[:] = qpos[w]
        expected = mujoco.MjModel.from_xml_string(text(thing, TOOLS[tool], rail))
        reference = mujoco.MjData(expected)
        reference.qpos[:] = qpos[w]
        for _ in range(60):
            fl.step(model, data)
            mujoco.mj_step(mj, theirs)
            mujoco.mj_step(expected, reference)
        assert data.qpos.tobytes() == out[w, -1].tobytes()
        np.testing.assert_allclose(theirs.qpos, reference.qpos, rtol=0, atol=1e-9)
        assert mj.geom(tool).contype == 1 and all(mj.geom(name).contype == 0 for name in TOOLS if name != tool)
        assert all(mj.geom(name).rgba[3] == 0 for name in TOOLS if name != tool)
        assert mj.mesh(mj.geom("thing").dataid[0]).name == thing


def test_functions_change_sizes_colours_and_materials():
    def paint(spec):
        spec.geom("bar").material, spec.geom("bar").size = "clay", [0.05, 0.2, 0]

    def keep(spec):
        pass

    xml = text("stone", TOOLS["ball"], "stone").replace(
        '<geom type="capsule" size=".03', '<geom name="bar" type="capsule" size=".03'
    )
    batch = fl.Batch(fl.load(xml, variants={"look": {"plain": keep, "painted": paint}}), 3)
    batch.set_variant("look", "painted", ids=[1])
    bar = batch.model.geom("bar").id
    assert [batch.get_model(w).to_mujoco().geom_matid[bar] for w in range(3)] == [-1, 0, -1]
    assert batch.get_model(1).geom_size[bar, 0] == 0.05 and batch.get_model(0).geom_size[bar, 0] == 0.03
    mass = batch.expanded("body_mass")[:, -1]
    assert mass[1] > 2 * mass[0] and mass[0] == mass[2] == batch.model.body_mass[-1]


def test_inertia_is_optional():
    batch = fl.Batch(load(), 3)
    batch.set_variant("thing", "wedge", ids=[1])
    batch.set_variant("thing", "wedge", ids=[2], inertia=False)
    body = batch.model.body("thing").id
    assert batch.get_model(1).body_mass[body] != batch.model.body_mass[body]
    assert batch.get_model(2).body_mass[body] == batch.model.body_mass[body]
    assert batch.get_model(2).geom("thing").variant == batch.get_model(1).geom("thing").variant == 1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_set_const_copies_and_checkpoints_keep_the_variant(dtype):
    batch = fl.Batch(load(), 8, dtype=dtype)
    chosen(batch)
    batch.qpos = start(batch)
    other = fl.Batch(batch.model, 8, dtype=dtype)
    other.restore(pickle.loads(pickle.dumps(batch.checkpoint())))
    copies = [batch.copy(), pickle.loads(pickle.dumps(batch)), other]
    copies[0].set_const()
    expected = batch.rollout(30)["qpos"].tobytes()
    assert [copy.rollout(30)["qpos"].tobytes() for copy in copies] == [expected] * 3


def test_a_variant_can_be_replaced_during_a_run():
    """Checks caches of pairs, whose proofs belong to other meshes."""
    batch = fl.Batch(load(), 3)
    batch.qpos = start(batch)
    names = list(MESHES)
    for k in range(12):
        batch.set_variant("thing", names[k % 3])
        batch.set_variant("tool", list(TOOLS)[k % 5])
        state = batch.get_state()
        batch.step(10)
        own = fl.Batch(alone((names[k % 3], list(TOOLS)[k % 5], "stone")), 1)
        own.set_state(state[1])
        own.step(10)
        assert own.qpos.tobytes() == batch.qpos[1].tobytes()


def test_a_mixed_batch_sets_variants_of_its_models():
    model, mixed = load(), fl.MixedBatch([(load(), 2), (load(), 2)])
    mixed.set_variant("thing", "wedge", ids=[1, 2])
    wedge = model.mj_model.mesh("wedge").id
    assert [int(mixed.get_model(w).geom("thing").variant[0] == wedge) for w in range(4)] == [0, 1, 1, 0]


def test_a_distributed_batch_sets_variants():
    batch, own = fl.distributed.Batch(load(), 4, nthread=1), fl.Batch(load(), 4)
    for worlds in (batch, own):
        worlds.set_variant("thing", "wedge", ids=[1, 2])
        worlds.set_variant("tool", "can", ids=[2, 3])
    qpos = start(own)
    batch.qpos, own.qpos = qpos, qpos
    assert batch.rollout(30, record=("qpos",))["qpos"].tobytes() == own.rollout(30, record=("qpos",))["qpos"].tobytes()
    assert batch.get_model(2).real_buffer.tobytes() == own.get_model(2).real_buffer.tobytes()


def test_a_failure_is_replayed_with_the_variant_of_its_world(tmp_path):
    batch = fl.Batch(load(), 2, record_failures=5)
    batch.set_variant("thing", "pyramid", ids=[1])
    batch.mute()
    batch.step(3)
    batch.qvel[1] = 1e9
    batch.step(3)
    failure = next(f for f in batch.failures if f.world == 1)
    assert pickle.loads(pickle.dumps(failure)).replay().model.geom("thing").variant == 2
    with pytest.raises(fl.ModelError, match="has variants"):
        failure.save(tmp_path / "failure.npz")


def test_a_body_that_is_simple_in_some_variants_only():
    """Checks the structure of M; a model with `simple="false"` has the same results."""
    cube = np.array(list(itertools.product((-0.1, 0.1), repeat=3))).ravel()
    scene = """<mujoco><asset><mesh name="cube" vertex="{cube}"/><mesh name="wedge" vertex="{wedge}"/></asset>
      <worldbody><geom type="plane" size="5 5 1"/><body name="b" pos="0 0 .2" {simple}><freejoint align="false"/>
      <geom name="b" type="mesh" mesh="{mesh}"/></body></worldbody></mujoco>"""
    points = {"cube": " ".join(map(str, cube)), "wedge": " ".join(map(str, MESHES["wedge"].ravel()))}
    model = fl.load(scene.format(**points, mesh="cube", simple=""), variants={"b": ["cube", "wedge"]})
    assert fl.load(scene.format(**points, mesh="cube", simple="")).body("b").simple and not model.body("b").simple
    batch = fl.Batch(model, 2)
    batch.set_variant("b", "wedge", ids=[1])
    batch.qvel[:, 3:] = 1, 2, 3
    out = batch.rollout(100)["qpos"]
    for w, mesh in enumerate(points):
        own = fl.Batch(fl.load(scene.format(**points, mesh=mesh, simple='simple="false"')), 1)
        own.qvel[:, 3:] = 1, 2, 3
        assert own.rollout(100)["qpos"][0].tobytes() == out[w].tobytes()


# ---- wrong calls -----------------------------------------------------------------------------------------------------
def rename(spec):
    spec.geom("ball").name = "other"


def swap_type(spec):
    spec.geom("ball").type, spec.geom("ball").size = mujoco.mjtGeom.mjGEOM_BOX, [0.1, 0.1, 0.1]


def heavier(spec):
    spec.geom("ball").density = 5000


def scale(spec):
    spec.mesh("stone").scale = [2, 2, 2]


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        ({}, "got {}"),
        ({"thing": []}, "'thing': got []"),
        ({"thing": "stone"}, "'thing': got 'stone'"),
        ({"thing": ["stone", "stone"]}, "got ['stone', 'stone']"),
        ({"thinge": ["stone"]}, "no geom or body 'thinge'; did you mean 'thing'?"),
        ({"thing": ["ston"]}, "no mesh 'ston'; did you mean 'stone'?"),
        ({"tool": ["ball", "thing"]}, "no geom 'thing'"),
        ({"x": {"y": rename}}, "variant 'y' of 'x': adds or renames geom 'other'"),
        ({"x": {"y": swap_type}}, "variant 'y' of 'x': changes geom_type"),
        ({"x": {"y": scale}}, "variant 'y' of 'x': changes mesh_pos of a mesh"),
        ({"x": {"y": lambda spec: spec.delete(spec.body("rail"))}}, "variant 'y' of 'x'"),
        ({"a": {"y": heavier}, "tool": list(TOOLS)}, "'a' and 'tool' both change entry"),
    ],
)
def test_wrong_declarations_are_named(variants, words):
    with pytest.raises(fl.ModelError) as error:
        fl.load(text("stone", "".join(TOOLS.values()), "stone"), variants=variants)
    assert words in str(error.value)


def test_wrong_calls_are_named():
    batch = fl.Batch(load(), 2)
    with pytest.raises(fl.UnknownNameError, match="no variants of 'floor'; allowed are 'thing', 'tool', 'rail'"):
        batch.set_variant("floor", "stone")
    with pytest.raises(fl.UnknownNameError, match="'thing' has no variant 'ball', allowed are 'stone', 'wedge'"):
        batch.set_variant("thing", "ball")
    with pytest.raises(fl.ModelError, match="ids: got 2"):
        batch.set_variant("thing", "stone", ids=[2])
    with pytest.raises(fl.UnknownNameError, match="declare them"):
        fl.Batch(fl.bundled("humanoid"), 2).set_variant("thing", "stone")
    for model, number in ((batch.model, 0.5), (fl.bundled("humanoid"), ABSENT_GEOM)):
        other = fl.Batch(model, 2)
        other.expand("geom_variant")[0, 0] = number
        with pytest.raises(fl.ModelError, match=f"geom_variant of geom 'floor' in world 0: got {number}, allowed are"):
            other.step()


# ---- sensors of geoms that a variant lacks ---------------------------------------------------------------------------
LACKS = """<mujoco><worldbody><body name="tool" pos="0 0 1"><freejoint/><geom name="ball" size=".1"/>
<geom name="box" type="box" size=".2 .2 .2"/></body><geom name="floor" type="plane" size="1 1 1"/></worldbody>
<sensor><distance name="gap" {of} geom2="floor" cutoff="5"/></sensor></mujoco>"""


def test_a_sensor_of_a_geom_that_a_variant_lacks_is_refused_with_advice():
    message = "the variant 'box' lacks geom 'ball', to which sensor gap refers; allowed are sensors .* body 'tool'"
    with pytest.raises(fl.ModelError, match=message):
        fl.load(LACKS.format(of='geom1="ball"'), variants={"tool": ["ball", "box"]})
    batch = fl.Batch(fl.load(LACKS.format(of='body1="tool"'), variants={"tool": ["ball", "box"]}), 2)
    batch.set_variant("tool", "box", ids=[1])
    batch.bind("sensordata")
    batch.forward()
    np.testing.assert_allclose(batch.sensordata[:, 0], [0.9, 0.8], rtol=0, atol=1e-12)
