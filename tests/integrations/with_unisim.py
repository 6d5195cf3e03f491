"""`featherlane.integrations.unisim` next to UniSim's own backend `mujoco`: the same scene, the same calls.

`test_other_mujoco.py` runs this file in a separate process, because unisim-core 2.2 needs MuJoCo 3.11.
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import unisim
from unisim import conformance
from unisim.dr.types import (
    RESET_TERM_SPECS,
    FixedVariantLayout,
    FixedVariantPlan,
    ModelSourceDescriptor,
    TensorResetRandomizationPayload,
)
from unisim.entities import EntityInitialState, EntityStatePatch, SceneEntitySpec, SceneResetRequest
from unisim.errors import BackendError
from unisim.ray_query import (
    RayCollisionDescription,
    RayMeshDescription,
    RaySceneDescription,
    RayTraceFilter,
    RayTraceOutputs,
)
from unisim.scene import SceneCfg

from featherlane.engine import libraries
from featherlane.integrations import unisim as ours
from pages import blocks
from scenes.unisim_scenes import ROBOT

CLOSE = 1e-8
N = 6


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    return SceneCfg(model_file=str(path), default_keyframe_name="home")


def pair(scene, n=N, sim_dt=0.004, materialize=True, **options):
    """Returns UniSim's backend and Featherlane's, in float64."""
    given = {"scene": scene, "num_envs": n, "sim_dt": sim_dt, "np_dtype": np.float64, "base_name": "base"} | options
    made = unisim.create_backend("mujoco", **given), ours.create_backend(**given)
    for backend in made if materialize else ():
        backend.materialize()
    return made


def close(backends, tolerance=CLOSE):
    """Compares states and sensors."""
    theirs, own = backends
    np.testing.assert_allclose(own.get_physics_state(), theirs.get_physics_state(), rtol=tolerance, atol=tolerance)
    size = np.abs(theirs._sensor_data).max(0, initial=1.0)
    assert (np.abs(own._sensor_data - theirs._sensor_data) <= tolerance * size).all()


def start(backends, rng):
    """Sets both to the same states near the keyframe."""
    qpos = np.tile(backends[0].get_keyframe_qpos("home"), (N, 1))
    qpos[:, 7:] += rng.normal(0, 0.1, qpos[:, 7:].shape)
    qvel = rng.normal(0, 0.2, (N, backends[0].nv))
    for backend in backends:
        backend._host_set_state(np.arange(N), qpos, qvel)


def walk(backends, rng, nstep=10, substeps=4):
    for _ in range(nstep):
        control = rng.uniform(-0.5, 0.5, (N, backends[0].num_actuators))
        for backend in backends:
            backend._host_step(control, substeps)


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks.run((Path(__file__).parents[2] / "docs" / "integrations" / "unisim.md").read_text(), tmp_path)


# ---- the contract ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("tracked", [False, True])
def test_the_backend_conforms(scene, dtype, tracked):
    backend = ours.create_backend(
        scene=scene, num_envs=3, sim_dt=0.004, base_name="base", body_state_required=tracked, dtype=dtype
    )
    conformance.assert_backend_conformance(backend)
    conformance.assert_packed_reset_conformance(backend)
    conformance.assert_physics_state_playback_conformance(backend)
    conformance.assert_reset_randomization_conformance(backend)


def test_unisim_makes_its_own_backend_outside_of_use(scene):
    before = unisim.create_backend("mujoco", scene=scene, num_envs=1, sim_dt=0.004)
    with ours.use("float32"):
        within = unisim.create_backend("mujoco", scene=scene, num_envs=1, sim_dt=0.004)
    after = unisim.create_backend("mujoco", scene=scene, num_envs=1, sim_dt=0.004)
    assert isinstance(within, ours.FeatherlaneBackend)
    assert type(after) is type(before) and not isinstance(after, ours.FeatherlaneBackend)


def test_both_declare_the_same_except_for_sizes(scene):
    """MuJoCo 3.11 does not recompute bounding volumes, so a larger geom would miss contacts."""
    theirs, own = (backend.get_dr_capabilities() for backend in pair(scene))
    assert theirs.supported_reset_terms - own.supported_reset_terms == {"geom_size"}
    assert own.supported_device_reset_terms == own.supported_reset_terms
    assert theirs.supported_interval_terms == own.supported_interval_terms
    assert own.supports_fixed_variants
    assert theirs.supported_fixed_variant_layouts == own.supported_fixed_variant_layouts


def test_sizes_of_geoms_are_refused_in_the_way_of_unisim(scene):
    backend = pair(scene)[1]
    sizes = torch.as_tensor(np.tile(backend.model.geom_size, (1, 1, 1)))
    qpos = torch.as_tensor(backend.get_keyframe_qpos("home")[None], dtype=torch.float32)
    with pytest.raises(NotImplementedError, match="geom_size"):
        payload = TensorResetRandomizationPayload(geom_size=sizes)
        backend.set_state_tensor(torch.zeros(1, dtype=torch.int64), qpos, torch.zeros(1, backend.nv), payload)


# ---- physics ---------------------------------------------------------------------------------------------------------
def test_worlds_move_as_under_mujoco(scene, rng):
    backends = pair(scene)
    close(backends)
    start(backends, rng)
    close(backends)
    for _ in range(10):
        walk(backends, rng)
        close(backends)


def test_float32_states_are_rounded_and_not_fed_back(scene, rng):
    """A float32 view must not round the float64 state that the next step starts from."""
    backends = pair(scene, np_dtype=np.float32)
    start(backends, rng)
    walk(backends, rng, 30)
    for backend in backends:
        assert backend.get_physics_state().dtype == np.float32
    close(backends, 1e-6)


def test_a_reset_repeats_an_episode_bit_for_bit(scene, rng):
    backend = pair(scene)[1]
    start((backend,), rng)
    state, controls = backend.get_physics_state(), rng.uniform(-1, 1, (30, N, 2))

    def episode():
        for control in controls:
            backend._host_step(control, 2)
        return backend.get_physics_state()

    first = episode()
    backend._host_set_state(np.arange(N), state[:, 1 : 1 + backend.nq], state[:, 1 + backend.nq :])
    np.testing.assert_array_equal(episode()[:, 1:], first[:, 1:])


def test_a_partial_reset_leaves_the_other_worlds(scene, rng):
    backends = pair(scene)
    start(backends, rng)
    walk(backends, rng)
    for backend in backends:
        backend._host_reset(np.array([1, 4], np.int32))
    close(backends)
    walk(backends, rng)
    close(backends)


@pytest.mark.parametrize("term", sorted(spec.name for spec in RESET_TERM_SPECS if spec.name != "geom_size"))
def test_randomization_at_a_reset(scene, rng, term):
    backends = pair(scene)
    start(backends, rng)
    rows = np.array([0, 2, 5])
    default = np.asarray(backends[0].get_reset_term_default(term))
    table = default if term.startswith("base_") else default[rows] if len(default) == N else np.tile(default, (3, 1))
    if term.startswith("base_"):
        values = rng.uniform(0.0, 0.05, (3, *default.shape))
    elif term == "body_iquat":
        values = table + rng.normal(0, 0.1, table.shape)
        values /= np.linalg.norm(values, axis=-1, keepdims=True)
    else:
        values = table * rng.uniform(0.8, 1.2, table.shape)
    if term == "geom_solimp":
        values = np.clip(values, 0.01, 0.99)
        values[..., 4] = 2.0
    given = torch.as_tensor(np.ascontiguousarray(values))
    qpos = torch.as_tensor(np.tile(backends[0].get_keyframe_qpos("home"), (3, 1)), dtype=torch.float32)
    for backend in backends:
        payload = TensorResetRandomizationPayload(**{term: given})
        backend.set_state_tensor(torch.as_tensor(rows), qpos, torch.zeros(3, backend.nv), payload)
    np.testing.assert_allclose(*(b.get_reset_term_default(term) for b in backends), rtol=1e-12, atol=1e-12)
    close(backends)
    walk(backends, rng, 20)
    close(backends)


@pytest.mark.parametrize("name", ["body_force", "body_torque", "body_linear_velocity_delta", "push"])
def test_randomization_between_steps(scene, rng, name):
    from unisim.dr.types import IntervalRandomizationPlan, IntervalTermOp

    backends = pair(scene, push_body_name="base")
    start(backends, rng)
    walk(backends, rng)
    values = rng.normal(0, 5.0, (N, 3) if name == "push" else (N, 1, 3))
    ids = None if name == "push" else torch.as_tensor(backends[0].get_body_ids(["base"]))
    for backend in backends:
        backend.apply_interval_randomization(
            IntervalRandomizationPlan(ops=(IntervalTermOp(name, torch.as_tensor(values), ids),))
        )
    walk(backends, rng)
    close(backends)


# ---- bodies, callbacks, queries --------------------------------------------------------------------------------------
def test_tracked_bodies_are_those_of_the_new_state(scene, rng):
    backends = pair(scene, body_state_required=True)
    start(backends, rng)
    walk(backends, rng)
    ids = backends[0].get_body_ids(["base", "rear"])
    for reference, found in zip(*(b._host_get_body_state_w(ids) for b in backends), strict=True):
        np.testing.assert_allclose(found, reference, rtol=CLOSE, atol=CLOSE)
    np.testing.assert_allclose(
        backends[1]._host_get_body_pos_w(ids)[:, 0], backends[1]._host_get_base_pos(), atol=1e-12
    )
    close(backends)


def test_a_control_callback_before_each_substep(scene, rng):
    backends = pair(scene, body_state_required=True)
    seen = {backend: [] for backend in backends}
    body = backends[0].get_body_ids(["front"])

    def control(backend, given):
        pose = backend._host_get_body_pos_w(body)
        seen[backend].append(np.concatenate([pose[:, 0], backend._qpos_view], axis=1))
        force = np.zeros((N, 1, 3))
        force[:, 0, 2] = 3.0 * pose[:, 0, 0]
        return unisim.PreStepControlOutput(ctrl=given - 0.1 * backend._dof_vel_view, body_ids=body, force=force)

    start(backends, rng)
    for backend in backends:
        backend.set_pre_step_control(control)
    walk(backends, rng)
    close(backends)
    np.testing.assert_allclose(seen[backends[1]], seen[backends[0]], rtol=CLOSE, atol=CLOSE)


def test_an_error_in_a_control_callback_stops_after_the_last_substep(scene, rng):
    backends, calls = pair(scene), []

    def control(backend, given):
        calls.append(backend)
        if calls.count(backend) == 3:
            raise ArithmeticError("stop")
        return given

    start(backends, rng)
    for backend in backends:
        backend.set_pre_step_control(control)
        with pytest.raises(ArithmeticError, match="stop"):
            backend._host_step(np.full((N, 2), 0.2), 4)
    close(backends)


def test_jacobians_of_a_site(scene, rng):
    backends = pair(scene)
    start(backends, rng)
    walk(backends, rng)
    for backend in backends:
        backend._pool.forward()
    site = backends[0].get_site_ids(["toe"])[0]
    found = [backend.get_site_jacobian_w(site, np.arange(backend.nv)) for backend in backends]
    for reference, own in zip(*found, strict=True):
        np.testing.assert_allclose(own, reference, rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("alignment", ["world", "yaw"])
def test_heights_of_a_tilted_height_field(tmp_path, rng, alignment):
    path = tmp_path / "field.xml"
    heights = " ".join(f"{x:.3f}" for x in rng.uniform(0, 1, 63))
    path.write_text(f"""<mujoco>
      <asset><hfield name="field" nrow="9" ncol="7" size="1 1.5 .5 .1" elevation="{heights}"/></asset>
      <worldbody>
        <geom name="field" type="hfield" hfield="field" pos=".3 -.2 .1" euler="10 20 70"/>
        <body name="base" pos="0 0 1"><freejoint/><geom size=".1"/></body>
      </worldbody></mujoco>""")
    backends = pair(SceneCfg(model_file=str(path)))
    qpos = rng.normal(0, 0.4, (N, 7)) + [0, 0, 2, 0, 0, 0, 0]
    qpos[:, 3:] /= np.linalg.norm(qpos[:, 3:], axis=1, keepdims=True)
    offsets, found = rng.uniform(-1.5, 1.5, (20, 2)), []
    for backend in backends:
        given = {"offsets": offsets, "frame_body_id": backend.get_body_ids(["base"])[0], "alignment": alignment}
        scanner = backend.bind_height_scanner(hfield_geom_id=backend.get_geom_id("field"), **given)
        backend._host_set_state(np.arange(N), qpos, np.zeros((N, 6)))
        found.append(scanner.scan())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)


# ---- tensors ---------------------------------------------------------------------------------------------------------
def test_packed_tensor_transfers(scene, rng):
    backends = pair(scene, np_dtype=np.float32, body_state_required=True)
    start(backends, rng)
    spec = unisim.TensorIOSpec(("qpos", "qvel"), ("gyro", "contact"), ("rear",), ("pos_w", "quat_w"))
    plans = [backend.bind_host_bridge_io(spec) for backend in backends]
    for _ in range(5):
        control = torch.as_tensor(rng.uniform(-0.5, 0.5, (N, 2)), dtype=torch.float32)
        for plan in plans:
            plan.write_control(control)
            plan.step(4)
        read = [plan.read_state_sensors() for plan in plans]
        for name in read[0]:
            torch.testing.assert_close(read[1][name], read[0][name], rtol=1e-5, atol=1e-5)


def test_a_masked_reset_with_full_refresh(scene, rng):
    backends = pair(scene, np_dtype=np.float32)
    start(backends, rng)
    walk(backends, rng)
    mask = torch.tensor([True, False, False, True, False, False])
    qpos = torch.as_tensor(np.tile(backends[0].get_keyframe_qpos("home"), (N, 1)), dtype=torch.float32)
    for backend in backends:
        backend.set_state_tensor_mask(mask, qpos, torch.zeros(N, backend.nv), full_refresh=True)
    close(backends, 1e-5)


# ---- entities --------------------------------------------------------------------------------------------------------
def entities(tmp_path):
    """Returns a scene of a fixed arm, a ball and a moving plate."""
    sources = {
        "arm": """<body name="link"><geom type="box" size=".05 .05 .05"/><body name="tip" pos="0 0 .2">
            <joint name="hinge" axis="0 1 0" damping=".1"/>
            <geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/></body></body>""",
        "ball": """<body name="ball"><freejoint/><geom size=".06" mass=".3"/></body>""",
        "plate": """<body name="plate"><geom type="box" size=".3 .3 .02"/></body>""",
    }
    motor = '<actuator><motor name="motor" joint="hinge"/></actuator>'
    paths = {}
    for name, body in sources.items():
        paths[name] = tmp_path / f"{name}.xml"
        text = f"<mujoco model='{name}'><worldbody>{body}</worldbody>{motor if name == 'arm' else ''}</mujoco>"
        paths[name].write_text(text)

    def entity(name, mode, kind, position):
        state = EntityInitialState(position=position)
        return SceneEntitySpec(
            name, ModelSourceDescriptor(str(paths[name])), kind=kind, root_mode=mode, initial_state=state
        )

    return SceneCfg(
        entity_assets=(
            entity("arm", "fixed", "articulation", (0.0, 0.0, 0.5)),
            entity("ball", "floating", "rigid", (0.2, 0.0, 0.8)),
            entity("plate", "kinematic", "rigid", (0.2, 0.0, 0.1)),
        )
    )


def test_a_scene_of_entities_with_a_kinematic_plate(tmp_path, rng):
    backends = pair(entities(tmp_path), base_name=None)
    for _ in range(3):
        walk(backends, rng)
        close(backends)
        poses = np.tile([0.2, 0.0, 0.15, 1.0, 0.0, 0.0, 0.0], (2, 1)) + rng.normal(0, 0.02, (2, 1)) * np.eye(7)[2]
        for backend in backends:
            binding = backend.bind_mocap_pose("plate/plate")
            binding.write(np.array([1, 3]), poses)
        close(backends)
    patch = EntityStatePatch("ball", root_pose=np.tile([0.1, 0.1, 0.6, 1.0, 0.0, 0.0, 0.0], (2, 1)))
    for backend in backends:
        backend.reset_entities(SceneResetRequest((0, 2), (patch,)))
    walk(backends, rng)
    close(backends)


# ---- variants --------------------------------------------------------------------------------------------------------
MESHES = """<asset>
  <mesh name="{name}" vertex="{vertices}" inertia="convex"/> <mesh name="fin" vertex="0 0 0 .2 0 0 0 .02 0 0 0 .1"/>
</asset>"""
WEDGE, STONE = "0 0 0 .2 0 0 0 .2 0 0 0 .2", ".1 0 0 -.1 .1 0 -.1 -.1 0 0 0 .15 0 0 -.1"


def variants(tmp_path, layout):
    """Returns a scene of robots with two payloads.

    With a uniform layout their meshes differ, and one robot lacks a fin.  With the same layout, UniSim's own backend
    refuses different meshes, because the compiler removes unused ones.
    """
    files, uniform = [], layout is FixedVariantLayout.UNIFORM_PUBLIC_LAYOUT
    for k, (name, vertices) in enumerate((("wedge", WEDGE), ("stone", STONE))):
        shape = f'type="mesh" mesh="{name}"' if uniform else f'type="box" size=".1 .1 {0.1 + 0.05 * k}"'
        payload = f'<geom name="payload" {shape} pos="0 0 {0.1 + 0.02 * k}" mass="{1 + k}"/>'
        fin = '<geom name="fin" type="mesh" mesh="fin"/>' if uniform and not k else ""
        tail = f'<body name="tail" pos="-.3 0 .1"><geom name="tip" size=".04" mass=".1"/>{fin}</body>'
        text = ROBOT.replace('size=".2 .1 .05" mass="4"', f'size=".2 .1 {0.05 + 0.02 * k}" mass="{4 + k}"')
        text = text.replace('<body name="front"', payload + '<body name="front"', 1)
        text = text.replace("    </body>\n  </worldbody>", f"{tail}</body></worldbody>", 1)
        if uniform:
            text = text.replace("<worldbody>", MESHES.format(name=name, vertices=vertices) + "<worldbody>", 1)
        files.append(tmp_path / f"{name}.xml")
        files[-1].write_text(text)
    sources = tuple(ModelSourceDescriptor(str(file)) for file in files)
    plan = FixedVariantPlan(np.arange(N) % 2, sources, layout)
    return SceneCfg(str(files[0]), default_keyframe_name="home", fixed_variant_plan=plan)


@pytest.mark.parametrize("layout", FixedVariantLayout)
def test_fixed_variants_move_as_under_mujoco(tmp_path, layout, rng):
    backends = pair(variants(tmp_path, layout))
    start(backends, rng)
    close(backends)
    for _ in range(4):  # at 0.83 s a step of UniSim's executor differs from mj_step by 1.5, and Featherlane by 4e-14
        walk(backends, rng)
        close(backends)
    states = backends[1].get_physics_state()
    assert np.abs(states[0] - states[1]).max() > 1e-3
    for term in ("body_mass", "geom_size", "kp"):
        if term in backends[1].get_dr_capabilities().supported_reset_terms:
            expected, found = (backend.get_reset_term_default(term) for backend in backends)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    for backend in backends:
        backend._host_reset(np.array([1, 2]))
    close(backends)


def test_a_world_of_a_variant_is_bitwise_equal_to_the_model_of_the_variant(tmp_path, rng):
    scene = variants(tmp_path, FixedVariantLayout.SAME_LAYOUT)
    both = ours.create_backend(scene=scene, num_envs=N, sim_dt=0.004, base_name="base")
    both.materialize()
    for k, source in enumerate(scene.fixed_variant_plan.variants):
        alone = ours.create_backend(scene=SceneCfg(source.model_file), num_envs=1, sim_dt=0.004, base_name="base")
        alone.materialize()
        worlds, lone = both.executor().batch, alone.executor().batch
        worlds.reset()
        worlds.step(60)
        lone.reset()
        lone.step(60)
        np.testing.assert_array_equal(worlds.qpos[k], lone.qpos[0])


# ---- rays ------------------------------------------------------------------------------------------------------------
def rays_of(kinds, rng, nray=200):
    """Returns a scene, its meshes, poses of its bodies, and rays towards it."""
    turns = lambda *shape: (q := rng.normal(size=(*shape, 4))) / np.linalg.norm(q, axis=-1, keepdims=True)  # noqa: E731
    n, bodies = len(kinds), rng.permutation(len(kinds)) % 4
    sizes, places = rng.uniform(0.1, 0.4, (n, 3)), rng.uniform(-1, 1, (n, 3))
    scene = RaySceneDescription(4, kinds, sizes, places, turns(n), bodies)
    points = np.array([(0, 0, 0), (0.6, 0, 0), (0, 0.6, 0), (0, 0, 0.6)])
    mesh = RayMeshDescription("mesh", points, np.array([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]))
    numbers = np.array([0 if kind == "mesh" else -1 for kind in kinds])
    collision = RayCollisionDescription(scene, meshes=(mesh,), geom_mesh_ids=numbers)
    # from outside: within a capsule the reference returns the inner side of a cap
    origin = turns(N, nray)[..., :3]
    origin *= 4.0 / np.linalg.norm(origin, axis=-1, keepdims=True)
    direction = rng.uniform(-1, 1, (N, nray, 3)) - origin
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    return collision, (rng.uniform(-0.5, 0.5, (N, 4, 3)), turns(N, 4)), (origin, direction)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_ray_caster_conforms(dtype):
    unisim.assert_ray_caster_conformance(ours.FeatherlaneRayCaster(3, 5, dtype=dtype))


def test_rays_agree_with_unisims_reference(rng):
    """The reference computes in float64, but stores vertices of meshes in float32."""
    kinds = ("box", "sphere", "capsule", "cylinder", "ellipsoid", "mesh", "box")
    collision, poses, (origin, direction) = rays_of(kinds, rng)
    casters = [kind(N, 200, collision=collision) for kind in (ours.FeatherlaneRayCaster, unisim.FakeRayCaster)]
    for caster in casters:
        caster.materialize(collision.scene)
        caster.update_pose(*poses)
    wanted = RayTraceOutputs(True, True, True, True)
    for rows, options in (
        (slice(None), {}),
        ([2, 0], {"env_ids": [2, 0]}),
        (slice(None), {"ray_filter": RayTraceFilter(allowed_geom_ids=(0, 2, 5))}),
    ):
        given = origin[rows], direction[rows], 6.0
        found, expected = (caster.trace(*given, outputs=wanted, **options) for caster in casters)
        assert 0.1 < expected.hit.mean() < 0.9
        for name in ("hit", "geom_id", "body_id"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        np.testing.assert_allclose(found.distance, expected.distance, atol=1e-7)
        for name in ("hit_point", "normal"):
            rows_of = [getattr(result, name)[expected.hit] for result in (found, expected)]
            np.testing.assert_allclose(*rows_of, atol=1e-6)


def test_wrong_use_of_a_ray_caster_is_refused(rng):
    collision, poses, (origin, direction) = rays_of(("mesh", "box"), rng, 2)
    with pytest.raises(unisim.UnsupportedCapabilityError, match="collision"):
        ours.FeatherlaneRayCaster(N, 2).materialize(collision.scene)
    caster = ours.FeatherlaneRayCaster(N, 2, collision=collision)
    caster.materialize(collision.scene)
    with pytest.raises(ValueError, match="body_pos"):
        caster.update_pose(poses[0][:1], poses[1])
    with pytest.raises(ValueError, match="body_quat"):
        caster.update_pose(poses[0], 2 * poses[1])
    caster.close()
    with pytest.raises(BackendError, match="closed"):
        caster.trace(origin, direction, 5.0)


# ---- refused ---------------------------------------------------------------------------------------------------------
FLEX = """<flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1"/>"""
USER = """<sensor><user name="touch" dim="1"/></sensor>"""


@pytest.mark.parametrize("within, behind, name", [(FLEX, "", "cloth"), ("", USER, "touch")])
def test_an_unsupported_feature_is_reported_before_anything_is_built(tmp_path, within, behind, name):
    path = tmp_path / "scene.xml"
    path.write_text(f"""<mujoco><worldbody><body name="base"><joint name="a"/><geom name="ball" size=".1"/></body>
      {within}</worldbody><actuator><motor joint="a"/></actuator>{behind}</mujoco>""")
    with pytest.raises(unisim.UnsupportedCapabilityError, match=name):
        ours.create_backend(scene=SceneCfg(model_file=str(path)), num_envs=2, sim_dt=0.004)


def test_an_unsupported_feature_of_a_variant_is_reported(scene, tmp_path):
    files = [tmp_path / f"{k}.xml" for k in range(2)]
    for k, file in enumerate(files):
        file.write_text(f"""<mujoco><worldbody><body name="base"><joint name="a"/><geom name="ball" size=".1"/>
          <geom name="dot" size=".1" contype="{k}"/></body></worldbody>
          <actuator><motor joint="a"/></actuator></mujoco>""")
    plan = FixedVariantPlan(np.array([0, 1]), tuple(ModelSourceDescriptor(str(file)) for file in files))
    with pytest.raises(unisim.UnsupportedCapabilityError, match="contype"):
        ours.create_backend(scene=SceneCfg(str(files[0]), fixed_variant_plan=plan), num_envs=2, sim_dt=0.004)


def test_an_unknown_version_is_an_error_that_names_the_versions(monkeypatch):
    monkeypatch.setattr(libraries, "version", lambda name: "3.0.0")
    monkeypatch.delitem(sys.modules, "featherlane.integrations.unisim")
    with pytest.raises(ImportError, match=r"unisim-core>=2\.2,<2\.3; found unisim-core 3\.0\.0, tried with 2\.2"):
        importlib.import_module("featherlane.integrations.unisim")
