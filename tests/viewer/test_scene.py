"""Drawing on a real server: poses, layers, sent and unsent messages, drags."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.apps.viewer.frame import LAYERS, Frame
from featherlane.apps.viewer.scene import Scene
from featherlane.engine.model.enums import CAPSULE, PLANE, SPHERE
from featherlane.engine.spatial.rotation import to_world
from featherlane.errors import ModelError
from featherlane.extension import batch_of

viser = pytest.importorskip("viser")

SENT = 1e-5  # poses are sent as float32, of worlds that are drawn up to some 10 m away
MIXED = """
<mujoco>
  <option><flag sleep="enable"/></option>
  <asset>
    <texture name="checks" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0" rgb2="0 0 1"/>
    <texture name="cube" type="cube" builtin="flat" width="8" height="48" rgb1="0.2 0.4 0.6"/>
    <material name="checks" texture="checks" texrepeat="2 3"/><material name="cube" texture="cube"/>
    <material name="glass" rgba="1 1 1 .4"/>
    <mesh name="wedge" vertex="0 0 0 .2 0 0 0 .2 0 0 0 .2"/>
    <hfield name="hill" nrow="3" ncol="3" size="1 1 .2 .1" elevation="0 0 0 0 1 0 0 0 0"/>
  </asset>
  <worldbody>
    <geom type="plane" size="4 4 .1" material="checks"/><geom type="plane" size="0 0 .1" euler="90 0 0" pos="0 5 0"/>
    <geom type="hfield" hfield="hill" pos="2 0 0" group="1"/>
    <body pos="0 0 1"><freejoint/>
      <geom name="ball" type="sphere" size=".1" material="cube"/>
      <geom name="egg" type="ellipsoid" size=".1 .2 .3" pos="0 1 0" material="glass"/>
      <geom name="can" type="cylinder" size=".1 .2" pos="0 2 0" euler="30 0 0"/>
      <geom name="box" type="box" size=".1 .2 .3" pos="0 3 0" material="checks"/>
      <geom name="pill" type="capsule" size=".1 .2" pos="1 0 0" euler="0 40 10"/>
      <geom name="wedge" type="mesh" mesh="wedge" pos="1 1 0" euler="0 0 50" group="2"/>
      <geom name="ghost" size=".1" rgba="1 1 1 0"/>
      <site name="s" size=".05" pos="0 0 .5" rgba="1 0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def server():
    """Starts a server for this machine only."""
    made = viser.ViserServer(host="127.0.0.1", port=8765, verbose=False)
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def clean(server):
    yield
    server.scene.reset()


def handles(server):
    """Returns nodes with many poses, and labels, by name."""
    found = server.scene._handle_from_node_name  # viser's public API finds nodes only by name
    return {
        name: handle
        for name, handle in found.items()
        if hasattr(handle, "batched_positions") or hasattr(handle, "text")
    }


def visible(server):
    return {name for name, handle in handles(server).items() if handle.visible}


def messages(server, act):
    """Returns the messages that an action sends to browsers: viser has no public hook for them."""
    queued, queue = [], server._websock_server.queue_message
    server._websock_server.queue_message = lambda message: (queued.append(message), queue(message))
    try:
        act()
    finally:
        server._websock_server.queue_message = queue
    return queued


def sent(server, act):
    """Returns updates of nodes that an action sends: (node, property)."""
    return [(message.name, key) for message in messages(server, act) for key in getattr(message, "updates", ())]


def corner_of(file):
    """Returns the largest x and y of the first mesh in a GLB file."""
    length = int.from_bytes(file[12:16], "little")
    document = json.loads(file[20 : 20 + length])
    positions = document["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
    return document["accessors"][positions]["max"][:2]


def shown(server, model, source, worlds=None, nworld=1, on=()):
    scene = Scene(server, model, nworld)
    for layer in on:
        scene.switch(layer, None, True)
    scene.show(Frame.of(batch_of(source), worlds, scene.drawn_layers))
    return scene


def places(server):
    """Returns the positions of all geoms, (k, 3)."""
    found = [handle.batched_positions for name, handle in handles(server).items() if name.startswith("/geoms")]
    return np.concatenate(found)


# ---- solids ------------------------------------------------------------------------------------------------
def test_every_geom_is_drawn_at_its_pose(server):
    model = fl.load(MIXED)
    data = fl.Data(model)
    data.qpos[:] = (0.3, 0.2, 1.4, 0.6, 0.0, 0.8, 0.0)
    fl.forward(model, data)
    shown(server, model, data)
    drawn = places(server)
    for g in range(1, model.ngeom):
        if g == model.geom("ghost").id:
            continue
        nearest = np.abs(drawn - data.geom_xpos[g]).max(1).min()
        assert nearest < SENT, model.geom(g).name


def test_each_world_is_drawn_with_its_variant(server):
    def other(spec):
        spec.delete(spec.geom("can"))
        spec.geom("ball").pos, spec.geom("ball").rgba = (0, 0, 1), (1, 0, 0, 1)
        spec.geom("wedge").meshname = "slab"

    def same(spec):
        pass

    scene = MIXED.replace("<hfield", '<mesh name="slab" vertex="0 0 0 .4 0 0 0 .1 0 0 0 .3"/><hfield')
    model = fl.load(scene, variants={"look": {"first": same, "second": other}})
    batch = fl.Batch(model, 3)
    batch.set_variant("look", "second", ids=[1])
    page = shown(server, model, batch, nworld=3)
    offsets = page.spread(np.arange(3))
    drawn = places(server)
    for world in range(3):
        own, data = batch.get_model(world), batch.get_data(world)
        for name in ("ball", "can", "wedge"):
            g = own.geom(name).id
            distance = np.abs(drawn - offsets[world] - data.geom_xpos[g]).max(1).min()
            assert (distance < SENT) == (name != "can" or world != 1), (world, name)
    meshes = [h for name, h in handles(server).items() if name.startswith("/geoms/2")]
    on_page = np.array([(np.abs(h.batched_positions[:, 2]) < 1e3).sum() for h in meshes])
    assert sorted(on_page) == [1, 2]  # of two meshes


def test_orientations_equal_those_of_geoms(server):
    model = fl.load(MIXED)
    data = fl.Data(model)
    data.qpos[3:] = (0.5, 0.5, -0.5, 0.5)
    fl.forward(model, data)
    shown(server, model, data)
    for name in ("can", "box", "wedge"):
        g = model.geom(name).id
        for handle in handles(server).values():
            for at, quat in zip(handle.batched_positions, handle.batched_wxyzs, strict=True):
                if np.abs(at - data.geom_xpos[g]).max() < SENT:
                    axes = to_world(quat, np.eye(3)).T
                    assert np.abs(axes - data.geom_xmat[g].reshape(3, 3)).max() < SENT
                    break
            else:
                continue
            break
        else:
            pytest.fail(f"{name} is not drawn")


def test_sizes_and_colours_equal_those_of_geoms(server):
    model = fl.load(MIXED)
    shown(server, model, fl.Data(model))
    named = {name: h for name, h in handles(server).items() if name.startswith("/geoms")}
    scales = np.concatenate([h.batched_scales for h in named.values()])
    for size in ((0.1, 0.1, 0.1), (0.1, 0.2, 0.3), (0.1, 0.1, 0.2)):
        assert np.abs(scales - size).max(1).min() < 1e-6
    colours = np.concatenate([h.batched_colors for h in named.values() if hasattr(h, "batched_colors")])
    mean = (5 * np.array((0.2, 0.4, 0.6)) + 0.5) / 6  # of the sides of a cube, of which one has the second colour
    light = ((mean + 0.055) / 1.055) ** 2.4
    assert np.abs(colours - 255 * light).max(1).min() < 1
    clear = [h.batched_opacities for h in named.values() if getattr(h, "batched_opacities", None) is not None]
    assert [o.tolist() for o in clear] == [[pytest.approx(0.4)]]


def test_fully_transparent_geoms_are_not_drawn(server):
    model = fl.load('<mujoco><worldbody><geom size=".1" rgba="1 1 1 0"/></worldbody></mujoco>')
    scene = shown(server, model, fl.Data(model))
    assert "geoms" not in scene.layers
    assert not handles(server)


def test_one_mesh_is_drawn_for_each_distinct_shape(server):
    model = fl.bundled("pile")  # 64 balls, 4 walls
    batch = fl.Batch(model, 5)
    shown(server, model, batch, nworld=5)
    named = handles(server)
    assert sorted(len(h.batched_positions) for h in named.values()) == [4 * 5, 64 * 5]


def test_capsules_of_equal_proportions_share_a_mesh(server):
    model = fl.bundled("chain")  # 100 alike
    shown(server, model, fl.Batch(model, 3), nworld=3)
    assert [len(h.batched_positions) for h in handles(server).values()] == [300]
    server.scene.reset()
    model = fl.bundled("arm")
    shown(server, model, fl.Data(model))
    capsules = model.geom_size[model.geom_type == CAPSULE]
    tall = {round(float(h.vertices[:, 2].max()), 4) for h in handles(server).values() if len(h.batched_positions)}
    assert tall >= {round(float(1 + b / a), 4) for a, b, _ in capsules}
    assert len(places(server)) == (model.geom_type == SPHERE).sum() + len(capsules)


def test_worlds_stand_in_a_grid_and_do_not_touch(server):
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 7)
    scene = shown(server, model, batch, nworld=7)
    offsets = scene.spread(np.arange(7))
    assert offsets.shape == (7, 3) and np.abs(offsets.mean(0)).max() < scene.extents.max()
    apart = np.linalg.norm(offsets[:, None] - offsets, axis=2) + 1e9 * np.eye(7)
    assert apart.min() > scene.extents[:2].max()
    data = batch.get_data(4)
    moving = data.geom_xpos[model.geom_type != PLANE]
    drawn = places(server)
    for at in moving + offsets[4]:
        assert np.abs(drawn - at).max(1).min() < SENT
    assert scene.spread([3]).tolist() == [[0, 0, 0]]
    assert scene.spread([]).shape == (0, 3)


def test_the_number_of_drawn_worlds_can_change(server):
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 50)
    scene = shown(server, model, batch, nworld=50)
    for worlds in ([4], [4, 30], np.arange(50), []):
        scene.show(Frame.of(batch, worlds, scene.drawn_layers))
        counts = {len(h.batched_positions) for name, h in handles(server).items() if name in visible(server)}
        assert all(count % max(len(worlds), 1) == 0 for count in counts) and (counts or not len(worlds))


# ---- messages ----------------------------------------------------------------------------------------------
def test_static_shapes_are_sent_once(server):
    model = fl.load(MIXED)
    data = fl.Data(model)
    scene = shown(server, model, data, on=[name for name in LAYERS if name not in ("tendons", "glass")])
    again = sent(server, lambda: scene.show(Frame.of(batch_of(data), None, scene.drawn_layers)))
    assert again == []
    data.qpos[2] += 0.1
    moved = sent(server, lambda: scene.show(Frame.of(batch_of(data), None, scene.drawn_layers)))
    assert {key for _, key in moved} == {"batched_positions"}  # it did not rotate
    drawn = {name for name, _ in moved}
    hill = next(name for name, h in handles(server).items() if h.batched_positions.tolist() == [[2, 0, 0]])
    assert drawn and hill not in drawn


def test_hidden_groups_are_not_sent(server):
    model = fl.load(MIXED)
    data = fl.Data(model)
    scene = shown(server, model, data)
    scene.switch("geoms", 0, False)
    data.qpos[2] += 0.1
    moved = sent(server, lambda: scene.show(Frame.of(batch_of(data), None, scene.drawn_layers)))
    assert moved and not any(name.startswith("/geoms/0") for name, _ in moved)
    scene.switch("geoms", 0, True)
    assert np.abs(places(server)[:, 2] - 1.1).min() < SENT


# ---- layers ------------------------------------------------------------------------------------------------
def test_layers_are_switched_by_group(server):
    model = fl.load(MIXED)
    scene = shown(server, model, fl.Data(model))
    assert scene.layers["geoms"] == (0, 1, 2) and scene.layers["hulls"] == (2,) and scene.layers["sites"] == (0,)
    assert "tendons" not in scene.layers
    assert scene.drawn_layers == {"geoms", "sites", "sleep"}
    assert any(name.startswith("/geoms/2") for name in visible(server))
    scene.switch("geoms", 2, False)
    assert not any(name.startswith("/geoms/2") for name in visible(server))
    assert scene.is_on("geoms") and not scene.is_on("geoms", 2)
    scene.switch("hulls", None, True)
    assert any(name.startswith("/hulls/2") for name in visible(server))
    scene.switch("geoms", None, False)
    assert not any(name.startswith("/geoms") for name in visible(server)) and not scene.is_on("geoms")


def test_groups_above_2_are_hidden_at_first(server):
    model = fl.load('<mujoco><worldbody><geom size=".1" group="3"/><geom size=".2"/></worldbody></mujoco>')
    scene = shown(server, model, fl.Data(model))
    assert scene.is_on("geoms", 0) and not scene.is_on("geoms", 3)
    assert len(visible(server)) == 1


@pytest.mark.parametrize(
    "layer", [name for name in LAYERS if name not in ("geoms", "sites", "sleep", "islands", "glass")]
)
def test_each_layer_can_be_shown_and_hidden(server, layer):
    model = fl.bundled("slider_crank" if layer != "hulls" else "hand")
    if layer in ("contacts", "forces", "support"):
        model = fl.bundled("box_stack")
    if layer in ("joint limits", "site names"):
        model = fl.bundled("humanoid")
    if layer == "tendons":
        model = fl.load(
            '<mujoco><worldbody><site name="a"/><body><joint/><geom size=".1" pos="1 0 0"/><site name="b" pos="1 0 1"/>'
            '</body></worldbody><tendon><spatial><site site="a"/><site site="b"/></spatial></tendon></mujoco>'
        )
    data = fl.Data(model)
    for _ in range(20):
        fl.step(model, data)
    scene = Scene(server, model)
    scene.switch(layer, None, False)
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    before = visible(server)
    scene.switch(layer, None, True)
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    own = visible(server) - before
    assert own and all(name.startswith("/" + layer.replace(" ", "_")) for name in own)
    scene.switch(layer, None, False)
    assert visible(server) == before


def test_marks_appear_and_disappear_with_their_objects(server):
    model = fl.load('<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 1"><freejoint/>'
                    '<geom size=".1"/></body></worldbody></mujoco>')  # fmt: skip
    data = fl.Data(model)
    scene = shown(server, model, data, on=["contacts", "forces"])
    assert not any("contacts" in name for name in visible(server))
    data.qpos[2] = 0.0999
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    assert {"/contacts/cylinder", "/forces/cone", "/forces/tube"} <= visible(server)
    assert handles(server)["/contacts/cylinder"].batched_positions.shape == (1, 3)
    data.qpos[2] = 1
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    assert not any("contacts" in name or "forces" in name for name in visible(server))


def test_sleeping_trees_are_grey_and_islands_have_colors(server):
    model = fl.load(MIXED)
    model.opt.gravity = 0.0, 0.0, 0.0
    data = fl.Data(model)
    scene = shown(server, model, data)
    own = {name: h.batched_colors.copy() for name, h in handles(server).items() if hasattr(h, "batched_colors")}
    for _ in range(50):
        fl.step(model, data)
    assert (data.tree_asleep >= 0).all()
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    grey = [h.batched_colors for name, h in handles(server).items() if name in own and "/geoms/0" in name]
    assert len({tuple(c) for colours in grey for c in colours.reshape(-1, 3)}) <= 2  # and the fixed plane
    assert not any("textured" in name for name in handles(server))  # textured geoms are grey, too
    scene.switch("sleep", None, False)
    now = handles(server)
    assert all(np.array_equal(colours, now[name].batched_colors) for name, colours in own.items())
    assert any("textured" in name for name in now)


def test_drags_report_world_and_body(server):
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 6)
    scene, told = shown(server, model, batch, [1, 3, 5], 6), []
    scene.held = lambda world, body, drag: told.append((world, body, drag))
    offsets = scene.spread([1, 3, 5])
    frame = Frame.of(batch, [1, 3, 5])
    foot = model.body("foot_fl").id if "foot_fl" in model.names("body") else model.nbody - 1
    for handle in handles(server).values():
        for pose in range(len(handle.batched_positions)):
            where = {"start_position": (1, 2, 3), "end_position": (4, 5, 6)}
            event = SimpleNamespace(instance_index=pose, phase="start", **where)
            # viser has no public call for a visitor's drag
            asyncio.run(handle._impl.drag_cb[0].callback(event))
            world, body, drag = told[-1]
            assert drag == ("start", (1, 2, 3), (4, 5, 6))
            place = [1, 3, 5].index(world)
            home = frame.pos[place, body] + offsets[place]
            assert np.linalg.norm(handle.batched_positions[pose] - home) < 0.5 * scene.extents.max()
    assert {world for world, *_ in told} == {1, 3, 5} and (3, foot) in {where[:2] for where in told}


def test_edits_of_sizes_offsets_and_heights_are_drawn(server):
    model = fl.load(MIXED)
    data = fl.Data(model)
    scene = shown(server, model, data)
    model.geom_pos[model.geom("wedge").id] = (7, 8, 9)
    model.hfield_data[:] = 0.5
    scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))
    assert np.abs(places(server) - data.qpos[:3] - (7, 8, 9)).max(1).min() < SENT
    hill = next(h for h in handles(server).values() if h.batched_positions.tolist() == [[2, 0, 0]])
    assert hill.vertices[:, 2].max() == pytest.approx(0.1)
    assert sent(server, lambda: scene.show(Frame.of(batch_of(data), None, scene.drawn_layers))) == []


def test_moving_geoms_become_transparent_and_static_ones_do_not(server):
    model = fl.load(MIXED)
    scene = shown(server, model, fl.Data(model), on=["glass"])
    now = handles(server)
    still = {name for name, h in now.items() if h.batched_positions.tolist() in ([[2, 0, 0]], [[0, 5, 0]])}
    assert len(still) == 2 and not any("textured" in name for name in now)
    assert {name for name, h in now.items() if h.opacity is None} == still
    scene.switch("glass", None, False)
    assert all(getattr(h, "opacity", None) is None for h in handles(server).values())
    assert any("textured" in name for name in handles(server))


def test_the_ground_reaches_under_all_worlds(server):
    model = fl.load(MIXED)
    batch = fl.Batch(model, 30)
    scene = shown(server, model, batch, [0], 30)
    plane = server.scene.get_handle_by_name("/ground/0")
    alone = plane.glb_data
    scene.show(Frame.of(batch, None, scene.drawn_layers))
    plane = server.scene.get_handle_by_name("/ground/0")
    corner = np.abs(scene.spread(np.arange(30))).max(0)[:2] + 4
    assert alone != plane.glb_data and corner_of(plane.glb_data) == pytest.approx(corner)
    scene.switch("geoms", 0, False)
    assert server.scene.get_handle_by_name("/ground/0") is None


def test_a_ground_of_one_colour_has_a_grid(server):
    model = fl.load(
        '<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 .5" rgba="1 0 0 1"/></worldbody></mujoco>'
    )
    scene = shown(server, model, fl.Data(model))
    grid = server.scene.get_handle_by_name("/ground/0")
    assert grid.infinite_grid and grid.plane_color == (255, 0, 0) and tuple(grid.position) == (0, 0, 0.5)
    model.geom_pos[0, 2] = 1
    scene.show(Frame.of(fl.Batch(model, 1), None, scene.drawn_layers))
    assert tuple(server.scene.get_handle_by_name("/ground/0").position) == (0, 0, 1)


def test_models_without_shapes_are_empty_pages(server):
    for text in ("<mujoco/>", "<mujoco><worldbody><body><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
                 "</body></worldbody></mujoco>"):  # fmt: skip
        model = fl.load(text)
        scene = shown(server, model, fl.Data(model))
        for name in scene.layers:
            scene.switch(name, None, True)
        scene.show(Frame.of(fl.Batch(model, 1), None, scene.drawn_layers))


def test_a_non_finite_world_is_not_drawn(server):
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 3)
    scene = shown(server, model, batch, nworld=3)
    batch.qpos[1] = np.nan
    scene.show(Frame.of(batch, None, scene.drawn_layers))
    assert all(np.isfinite(h.batched_positions).all() for h in handles(server).values())


def test_no_external_resource_is_loaded(server):
    queued = messages(server, lambda: Scene(server, fl.bundled("humanoid")))
    (sky,) = (message for message in queued if type(message).__name__ == "EnvironmentMapMessage")
    images = [vars(sky)[name] for name in ("hdri", "hdri_data") if name in vars(sky)]  # before viser 1.1.1, and after
    assert images == [None]


def test_wrong_calls_are_reported(server):
    model = fl.bundled("humanoid")
    scene = Scene(server, model)
    with pytest.raises(ModelError):
        scene.switch("geom", 0, True)
    with pytest.raises(ModelError):
        scene.switch("geoms", 7, True)
    with pytest.raises(ModelError):
        scene.switch("contacts", 0, True)
    with pytest.raises(ModelError):
        Scene(server, model, 0)
    with pytest.raises(fl.errors.ArgumentTypeError):
        Scene(server, None)
