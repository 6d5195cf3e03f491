"""`featherlane.integrations.mjlab` with mjlab's registered tasks, and against mjlab's simulation of them.

mjlab 1.6.0 needs MuJoCo 3.11; `test_other_mujoco.py` runs this file in a separate process.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import mujoco
import numpy as np
import pytest
import torch
from mjlab.entity import EntityCfg
from mjlab.entity.variants import VARIANT_DEPENDENT_FIELDS, VariantEntityCfg, build_variant_model
from mjlab.envs import ManagerBasedRlEnv, mdp
from mjlab.envs.mdp import dr
from mjlab.envs.mdp.actions import DifferentialIKActionCfg
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg
from mjlab.managers.termination_manager import TerminationTermCfg
from mjlab.scene import Scene, SceneCfg
from mjlab.sensor import RayCastSensor
from mjlab.sim import sim as mjlab_sim
from mjlab.tasks.registry import load_env_cfg

import featherlane as fl
from featherlane.engine import libraries
from featherlane.integrations import mjlab as ours
from featherlane.integrations.mjlab.sensing import colours_by_world

ROOT = Path(__file__).parents[2]
FLAT = ("Mjlab-Velocity-Flat-Unitree-Go1", "Mjlab-Velocity-Flat-Unitree-G1")
ROUGH = ("Mjlab-Velocity-Rough-Unitree-Go1", "Mjlab-Velocity-Rough-Unitree-G1")
OTHERS = ("Mjlab-Cartpole-Balance", "Mjlab-Cartpole-Swingup", "Mjlab-Lift-Cube-Yam", "Mjlab-Tracking-Flat-Unitree-G1")
TASKS = (*FLAT, *ROUGH, *OTHERS)
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def mjlabs_simulation_is_restored():
    yield
    ours.stop()


def made(task, num_envs, seed=0, **edits):
    """Returns an environment of a registered task; `edits` are functions of its configuration."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = num_envs, seed
    for edit in edits.values():
        edit(cfg)
    return ManagerBasedRlEnv(cfg, device="cpu")


def run(env, nstep, seed=0):
    """Resets an environment, steps it with random actions, and returns observations and rewards of each step."""
    random = torch.Generator().manual_seed(seed)
    shape = env.num_envs, env.single_action_space.shape[0]
    found = [(env.reset()[0], None)]
    for _ in range(nstep):
        observation, reward, *_ = env.step(2.0 * torch.rand(shape, generator=random) - 1.0)
        found.append((observation, reward.clone()))
    return found


def write_motion(path, nframe=50):
    """Writes a motion file of the G1: it sways in its initial pose, 50 frames a second."""
    from mjlab.asset_zoo.robots import get_g1_robot_cfg

    model = get_g1_robot_cfg().build().spec.compile()
    data, dof = mujoco.MjData(model), model.nv - 6
    start, rows = model.key_qpos[0].copy(), {}
    for k in range(nframe):
        phase, rate = 2.0 * np.pi * k / 50.0, 2.0 * np.pi
        data.qpos = start
        data.qpos[7:] += 0.1 * np.sin(phase)
        data.qvel[:] = 0.0
        data.qvel[6:] = 0.1 * rate * np.cos(phase)
        mujoco.mj_forward(model, data)
        velocity = np.zeros((model.nbody, 6))
        for body in range(model.nbody):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity[body], 0)
        row = {"joint_pos": data.qpos[7:], "joint_vel": data.qvel[6:], "body_pos_w": data.xpos[1:]}
        row |= {"body_quat_w": data.xquat[1:], "body_lin_vel_w": velocity[1:, 3:], "body_ang_vel_w": velocity[1:, :3]}
        for name, value in row.items():
            rows.setdefault(name, []).append(np.array(value))
    assert dof == len(rows["joint_pos"][0])
    np.savez(path, fps=50, **{name: np.stack(values) for name, values in rows.items()})


def motion(folder):
    """Returns an edit of a configuration: the motion file of a tracking task, written into a folder."""

    def edit(cfg):
        if "motion" in cfg.commands:
            write_motion(folder / "motion.npz")
            cfg.commands["motion"].motion_file = str(folder / "motion.npz")

    return edit


def world_data(env, w):
    """Returns MuJoCo's model and data of one world, with its state, inputs and randomized fields, forward computed."""
    batch = env.sim.batch
    model = batch.get_model(w).to_mujoco()
    data = mujoco.MjData(model)
    for name in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied", "qacc_warmstart"):
        getattr(data, name)[...] = getattr(batch, name)[w]
    mujoco.mj_forward(model, data)
    return model, data


def test_importing_the_package_changes_nothing_and_imports_no_mjlab():
    code = "import sys, featherlane.integrations.mjlab as m; assert 'mjlab' not in sys.modules and not m.in_use()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=3600)


def test_use_and_stop():
    theirs = mjlab_sim.Simulation
    ours.use()
    assert ours.in_use() and mjlab_sim.Simulation is not theirs and issubclass(mjlab_sim.Simulation, theirs)
    ours.use("float64", nthread=1)
    env = made("Mjlab-Cartpole-Balance", 2)
    assert env.sim.batch.dtype == np.float64 and env.sim.batch.nthread == 1
    ours.stop()
    assert not ours.in_use() and mjlab_sim.Simulation is theirs
    run(env, 1)


def test_an_environment_outlasts_stop():
    ours.use()
    env = made(FLAT[0], 2)  # with a ray sensor
    ours.stop()
    run(env, 2)


@pytest.mark.parametrize("task, dtype", [(TASKS[0], "float64"), *((task, "float32") for task in TASKS)])
def test_a_task_runs(task, dtype, tmp_path):
    ours.use(dtype)
    found = run(made(task, 8, motion=motion(tmp_path)), 5)
    for observation, reward in found[1:]:
        assert all(torch.isfinite(each).all() and each.dtype == torch.float32 for each in observation.values())
        assert torch.isfinite(reward).all()


@pytest.mark.parametrize("task", [*FLAT, ROUGH[0]])
def test_a_step_equals_mujocos_step_of_each_randomized_world(task):

    def solve_exactly(cfg):
        cfg.sim.mujoco.tolerance, cfg.sim.mujoco.iterations = 0.0, 100

    ours.use("float64")
    env = made(task, 6, solve=solve_exactly)
    run(env, 4)
    sim = env.sim
    worlds = [world_data(env, w) for w in range(env.num_envs)]
    assert len({model.body_ipos.tobytes() for model, _ in worlds}) == env.num_envs
    sensors = sim.data.sensordata.clone()
    sim.step()
    for w, (model, data) in enumerate(worlds):
        np.testing.assert_allclose(sensors[w], data.sensordata, rtol=1e-5, atol=1e-5)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(sim.batch.qpos[w], data.qpos, rtol=0, atol=1e-10)
        np.testing.assert_allclose(sim.batch.qvel[w], data.qvel, rtol=0, atol=1e-8)


def test_tensors_share_memory_with_a_float32_batch():
    ours.use()
    env = made(FLAT[0], 3)
    sim, batch = env.sim, env.sim.batch
    for name in ("qpos", "ctrl", "xfrc_applied"):
        assert getattr(sim.data, name).data_ptr() == getattr(batch, name).ctypes.data
    for name in ("xpos", "site_xmat", "sensordata"):
        assert getattr(sim.data, name).data_ptr() == batch.bound[name].ctypes.data
    assert sim.data.site_xmat.shape[-2:] == (3, 3) and sim.model.geom_aabb.shape[-2:] == (2, 3)
    assert sim.model.body_ipos.data_ptr() == batch.expanded_fields["body_ipos"].ctypes.data
    sim.data.qpos[1, 2] = 7.0
    sim.forward()
    assert sim.data.xpos[1, env.scene["robot"].indexing.root_body_id, 2] == 7.0 == batch.qpos[1, 2]
    with pytest.raises(AttributeError, match="edit it in place"):
        sim.data.qpos = torch.zeros(3)


def test_a_float64_batch_takes_edits_and_keeps_the_digits_of_all_other_values():
    ours.use("float64")
    env = made(FLAT[0], 3)
    run(env, 2)
    sim, before = env.sim, env.sim.batch.qpos.copy()
    assert (before != before.astype(np.float32)).any()
    sim.data.qpos[1, 2] = 0.25
    sim.model.geom_friction[2, :, 0] = 0.125
    sim.forward()
    before[1, 2] = 0.25
    assert np.array_equal(sim.batch.qpos, before)
    assert (sim.batch.expanded_fields["geom_friction"][2, :, 0] == 0.125).all()
    assert sim.data.time.dtype == torch.float32 and sim.data.time[0] == np.float32(sim.batch.time[0])


def test_a_reset_sets_the_chosen_worlds_to_the_defaults():
    ours.use()
    env = made(FLAT[0], 4)
    run(env, 3)
    sim = env.sim
    kept = sim.data.qpos.clone()
    sim.reset(torch.tensor([2, 0]))
    for w in (0, 2):
        assert torch.equal(sim.data.qpos[w], torch.as_tensor(sim.mj_model.qpos0, dtype=torch.float32))
        assert not sim.data.qvel[w].any() and not sim.data.ctrl[w].any() and not sim.data.sensordata[w].any()
    assert torch.equal(sim.data.qpos[[1, 3]], kept[[1, 3]])
    sim.reset()
    assert not sim.data.qvel.any()


def test_dependent_fields_are_recomputed_for_randomized_masses():
    def randomize(cfg):
        params = {"ranges": (0.5, 2.0), "operation": "scale", "asset_cfg": SceneEntityCfg("robot", body_names=(".*",))}
        cfg.events["mass"] = EventTermCfg(func=dr.body_mass, mode="reset", params=params)

    ours.use("float64")
    env = made(FLAT[0], 4, randomize=randomize)
    env.reset()
    sim = env.sim
    masses = sim.batch.expanded_fields["body_mass"]
    assert len(np.unique(masses[:, env.scene["robot"].indexing.root_body_id])) == 4
    for w in range(4):
        model = sim.batch.get_model(w).to_mujoco()
        np.testing.assert_allclose(model.body_mass, masses[w])
        mujoco.mj_setConst(model, mujoco.MjData(model))
        for name in ("body_subtreemass", "body_invweight0", "dof_invweight0", "actuator_acc0"):
            np.testing.assert_allclose(getattr(sim.model, name)[w], getattr(model, name), rtol=1e-6, err_msg=name)
    first = masses.copy()
    env.reset(env_ids=torch.tensor([1]))
    changed = (sim.batch.expanded_fields["body_mass"] != first).any(1)
    assert changed.tolist() == [False, True, False, False]


def test_an_output_that_is_read_late_is_computed_and_changes_no_other():
    ours.use()
    env = made(FLAT[0], 3)
    run(env, 2)
    sim = env.sim
    sim.step()
    positions = sim.data.xpos.clone()
    assert "qfrc_bias" not in sim.batch.bound
    bias = sim.data.qfrc_bias.clone()
    assert torch.isfinite(bias).all() and bias.any()
    assert torch.equal(sim.data.xpos, positions)  # of the state before the step, as in mjlab
    sim.forward()
    assert torch.equal(sim.data.qfrc_bias, bias) and not torch.equal(sim.data.xpos, positions)


def test_a_world_that_becomes_non_finite_ends_its_episode():
    def detect(cfg):
        cfg.terminations["nan"] = TerminationTermCfg(func=mdp.nan_detection)

    ours.use()
    env = made(FLAT[0], 4, detect=detect)
    env.reset()
    env.sim.data.qvel[2] = 1e30
    action = torch.zeros(4, env.single_action_space.shape[0])
    observation, _, terminated, *_ = env.step(action)
    assert terminated.tolist() == [False, False, True, False]
    assert all(torch.isfinite(each).all() for each in observation.values())
    assert torch.isfinite(env.sim.data.qpos).all()


def test_rays_of_sensors_equal_mujocos():
    ours.use()
    env = made("Mjlab-Velocity-Rough-Unitree-Go1", 2)
    run(env, 2)
    sensor = next(each for each in env.scene.sensors.values() if isinstance(each, RayCastSensor))
    points, directions = sensor._ray_pnt.numpy(), sensor._ray_vec.numpy()
    exclude = sensor._ray_bodyexclude.numpy()
    groups = np.array([1 if k in (sensor.include_geom_groups or range(6)) else 0 for k in range(6)], np.uint8)
    for w in range(env.num_envs):
        model, data = world_data(env, w)
        for k in range(0, sensor.num_rays, 7):
            geom, normal = np.zeros(1, np.int32), np.zeros(3)
            ray = points[w, k].astype(float), directions[w, k].astype(float)
            distance = mujoco.mj_ray(model, data, *ray, groups, 1, exclude[k], geom, normal)
            if distance > sensor.cfg.max_distance:
                distance = -1.0
            np.testing.assert_allclose(sensor.data.distances[w, k], distance, atol=1e-4)


def test_the_jacobian_of_differential_ik_equals_mujocos():
    def edit(cfg):
        cfg.actions = {
            "ik": DifferentialIKActionCfg(
                entity_name="robot", actuator_names=("joint.*",), frame_type="site", frame_name="grasp_site"
            )
        }

    ours.use()
    env = made("Mjlab-Lift-Cube-Yam", 2, edit=edit)
    run(env, 3)
    action, sim = env.action_manager.get_term("ik"), env.sim
    sim.forward()
    action.compute_dq()
    for w in range(2):
        model, data = world_data(env, w)
        linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jacSite(model, data, linear, angular, action._frame_id)
        np.testing.assert_allclose(action._jacp_torch[w], linear, atol=1e-5)
        np.testing.assert_allclose(action._jacr_torch[w], angular, atol=1e-5)


def test_randomized_sizes_and_inertias():
    """mjlab computes bounding volumes of randomized sizes itself."""

    def randomize(cfg):
        feet = SceneEntityCfg("robot", geom_names=(".*foot.*",))
        sizes = {"ranges": (0.8, 1.2), "operation": "scale", "asset_cfg": feet}
        cfg.events["size"] = EventTermCfg(func=dr.geom_size, mode="startup", params=sizes)
        trunk = SceneEntityCfg("robot", body_names=("trunk",))
        inertia = {"alpha_range": (-0.2, 0.2), "asset_cfg": trunk}
        cfg.events["inertia"] = EventTermCfg(func=dr.pseudo_inertia, mode="startup", params=inertia)

    ours.use()
    env = made(FLAT[0], 4, randomize=randomize)
    run(env, 2)
    sim = env.sim
    for name in ("geom_size", "geom_rbound", "geom_aabb", "body_inertia", "body_subtreemass"):
        fields = getattr(sim.model, name)
        assert not torch.equal(fields[0], fields[1]), name
        assert fields.data_ptr() == sim.batch.expanded_fields[name].ctypes.data


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_environment(dtype):
    """mjlab's fields of one world are writable without `expand_model_fields`."""
    ours.use(dtype)
    env = made(FLAT[0], 1)
    run(env, 2)
    env.sim.model.body_gravcomp[0, 2] = 0.5
    env.sim.forward()
    assert env.sim.batch.expanded_fields["body_gravcomp"][0, 2] == 0.5


def test_the_nan_guard_writes_a_dump(tmp_path):
    def guard(cfg):
        cfg.sim.nan_guard.enabled, cfg.sim.nan_guard.output_dir = True, str(tmp_path)

    ours.use()
    env = made("Mjlab-Cartpole-Balance", 3, guard=guard)
    env.reset()
    env.sim.data.qvel[1] = 1e30
    env.step(torch.zeros(3, 1))
    assert any(tmp_path.rglob("*.npz"))


def test_fields_for_display_differ_by_world():
    def randomize(cfg):
        params = {"ranges": (0.0, 1.0), "asset_cfg": SceneEntityCfg("robot", geom_names=(".*",))}
        cfg.events["color"] = EventTermCfg(func=dr.geom_rgba, mode="startup", params=params)

    ours.use()
    env = made(FLAT[0], 3, randomize=randomize)
    colors = env.sim.model.geom_rgba
    assert colors.shape == (3, env.sim.mj_model.ngeom, 4) and not torch.equal(colors[0], colors[1])
    assert "geom_rgba" in env.sim.expanded_fields


# ---- variants --------------------------------------------------------------------------------------------------------
PARTS = {
    "one": ((1, 0.1, (0.0, 0.0, 0.0)),),
    "two": ((2, 0.08, (0.0, 0.0, 0.05)), (3, 0.06, (0.1, 0.0, 0.0))),
    "three": ((4, 0.12, (0.0, 0.02, 0.0)),),
}


def prop(parts):
    """Returns a function that makes the spec of a free body with meshes in different materials."""

    def make():
        spec = mujoco.MjSpec()
        body = spec.worldbody.add_body(name="prop")
        body.add_freejoint(name="free")
        for i, (seed, scale, pos) in enumerate(parts):
            points = np.random.default_rng(seed).normal(size=(20, 3))
            points *= scale / np.linalg.norm(points, axis=1, keepdims=True)
            spec.add_material(name=f"paint{i}").rgba = [0.2 * seed, 0.5, 0.2, 1.0]
            spec.add_mesh(name=f"part{i}").uservert = (points + (0.01, 0.02, 0.03)).ravel()
            kind, name = mujoco.mjtGeom.mjGEOM_MESH, f"part{i}"
            body.add_geom(name=name, type=kind, meshname=name, pos=pos, material=f"paint{i}")
        return spec

    return make


def ground():
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="floor").add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1])
    return spec


def scene_of(entity):
    """Returns a scene with an entity 0.3 m over the ground."""
    entity.init_state = EntityCfg.InitialStateCfg(pos=(0, 0, 0.3))
    return Scene(SceneCfg(num_envs=6, entities={"prop": entity, "ground": EntityCfg(spec_fn=ground)}), device="cpu")


def test_mesh_variants_are_those_of_mjlab_and_move_as_each_alone():
    ours.use("float64")
    scene = scene_of(VariantEntityCfg(variants={name: prop(parts) for name, parts in PARTS.items()}))
    info, cfg = scene.collect_variant_info(), mjlab_sim.SimulationCfg()
    sim = mjlab_sim.Simulation(6, cfg, spec=scene.spec, variant_info=info, device="cpu")
    theirs = build_variant_model(scene.spec, 6, info)
    numbers = theirs.world_to_variant["prop/"]
    assert sim.world_to_variant["prop"].tolist() == numbers.tolist()
    for name in (*VARIANT_DEPENDENT_FIELDS, "geom_dataid", "geom_matid"):
        expected = getattr(theirs.wp_model, name).numpy()
        np.testing.assert_array_equal(getattr(sim.model, name).numpy(), expected, err_msg=name)
        assert name in sim.expanded_fields
    for _ in range(100):
        sim.step()
    for k, parts in enumerate(PARTS.values()):
        alone = scene_of(EntityCfg(spec_fn=prop(parts)))
        other = mjlab_sim.Simulation(1, cfg, spec=alone.spec, device="cpu")
        for _ in range(100):
            other.step()
        for world in np.flatnonzero(numbers == k):
            assert sim.batch.qpos[world].tobytes() == other.batch.qpos[0].tobytes()


def test_a_wrong_assignment_of_variants_is_named():
    ours.use()
    variants = {name: prop(parts) for name, parts in PARTS.items()}
    scene = scene_of(VariantEntityCfg(variants=variants, assignment=lambda n: [3] * n))
    with pytest.raises(fl.ModelError, match="assignment of the entity prop"):
        mjlab_sim.Simulation(
            6, mjlab_sim.SimulationCfg(), spec=scene.spec, variant_info=scene.collect_variant_info(), device="cpu"
        )


# ---- cameras ---------------------------------------------------------------------------------------------------------
CAMERAS = ("Mjlab-Lift-Cube-Yam-Depth", "Mjlab-Lift-Cube-Yam-Rgb", "Mjlab-Multi-Cube-Seg-Yam")


def camera_sensor(env):
    """Returns the environment's camera sensor."""
    (sensor,) = env.sim._sensor_context.camera_sensors
    return sensor


@pytest.mark.parametrize("task", CAMERAS)
def test_camera_tasks_observe_the_images_of_the_batch(task):
    ours.use()
    env = made(task, 3)
    env.reset()
    for _ in range(2):
        observations, *_ = env.step(torch.zeros(3, env.action_manager.total_action_dim))
    images = observations["camera"]
    assert torch.isfinite(images).all() and float(images.std()) > 0.0
    sensor, outputs = camera_sensor(env), camera_sensor(env).cfg.data_types
    size, groups = (sensor.cfg.width, sensor.cfg.height), [g in sensor.cfg.enabled_geom_groups for g in range(6)]
    colours = colours_by_world(env.sim.model, np.asarray(env.sim.mj_model.geom_matid))
    camera = fl.Camera(
        sensor.camera_idx,
        width=size[0],
        height=size[1],
        output=outputs,
        geomgroup=groups,
        near=0.0,
        far=1e10,
        geom_rgb=colours,
    )
    found = env.sim.batch.render(camera)
    if found.rgb is not None:
        assert (sensor.data.rgb.numpy() == found.rgb).all()
    if found.depth is not None:
        depth = sensor.data.depth[..., 0].numpy()
        assert (depth == np.where(found.depth < 1e10, found.depth, 0.0)).all()
    if found.segmentation is not None:
        seen = sensor.data.segmentation.numpy()
        assert (seen[..., 0] == found.segmentation).all()
        assert ((seen[..., 1] == 5) == (seen[..., 0] >= 0)).all()


def test_randomized_colors_are_seen():
    ours.use()

    def edit(cfg):
        params = {"asset_cfg": SceneEntityCfg("cube", geom_names=".*"), "ranges": (0.0, 1.0), "operation": "abs"}
        cfg.events["color"] = EventTermCfg(func=dr.geom_rgba, mode="startup", params=params)

    env = made("Mjlab-Lift-Cube-Yam-Rgb", 2, edit=edit)
    env.reset()
    cube = np.flatnonzero(["cube" in env.sim.mj_model.geom(i).name for i in range(env.sim.mj_model.ngeom)])
    assert (env.sim.model.geom_rgba[0, cube] != env.sim.model.geom_rgba[1, cube]).any()
    env.sim.data.qpos[1] = env.sim.data.qpos[0]
    env.sim.forward()
    env.sim.sense()
    rgb = camera_sensor(env).data.rgb
    assert (rgb[0] != rgb[1]).any()


def test_depth_and_segmentation_agree_with_mujoco_warp():
    """Of equal states; pixels at edges differ, because mujoco_warp computes in float32."""
    images = []
    for use in (True, False):
        if use:
            ours.use()
        env = made("Mjlab-Multi-Cube-Seg-Yam", 2)
        env.reset()
        if images:
            env.sim.data.qpos[:] = torch.from_numpy(images[0][0])
        env.sim.forward()
        env.sim.sense()
        data = camera_sensor(env).data
        images.append((env.sim.data.qpos.numpy().copy(), data.depth.numpy().copy(), data.segmentation.numpy().copy()))
        ours.stop()
    (_, depth, seen), (_, theirs, seen_there) = images
    same = (seen == seen_there).all(-1)
    assert same.mean() > 0.98
    close = np.isclose(depth[..., 0], theirs[..., 0], rtol=1e-3, atol=1e-4)
    assert close[same].mean() > 0.99


# ---- what is refused -------------------------------------------------------------------------------------------------
def test_another_device_is_refused():
    ours.use()
    spec = mujoco.MjSpec.from_string("<mujoco/>")
    with pytest.raises(ValueError, match="device: got 'cuda:0', allowed is 'cpu'"):
        mjlab_sim.Simulation(2, mjlab_sim.SimulationCfg(), spec=spec, device="cuda:0")


def test_fields_that_mujoco_warp_alone_has_are_refused():
    ours.use()
    env = made("Mjlab-Cartpole-Balance", 2)
    for read in (lambda s: s.wp_model, lambda s: s.wp_data, lambda s: s.data.contact, lambda s: s.model.nxn_geom_pair):
        with pytest.raises(fl.UnsupportedFeatureError, match="not available"):
            read(env.sim)
    with pytest.raises(AttributeError, match="did you mean 'qpos'"):
        _ = env.sim.data.qposs
    with pytest.raises(ValueError, match=r"Fields not found in model: \['mass'\]"):
        env.sim.expand_model_fields(("mass",))
    with pytest.raises(fl.UnsupportedFeatureError, match=r"model\.geom_contype"):
        env.sim.expand_model_fields(("geom_contype",))


def test_an_unsupported_version_is_refused(monkeypatch):
    monkeypatch.setattr(libraries, "version", lambda name: "1.5.0")
    with pytest.raises(fl.errors.InstallationError, match=r"found mjlab 1\.5\.0, tried with 1\.6\.0"):
        ours.use()
    assert not ours.in_use()


@pytest.mark.parametrize("arguments", [{"dtype": "float16"}, {"nthread": -1}, {"nthread": 1.5}])
def test_wrong_arguments_of_use(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        ours.use(**arguments)


# ---- the environment variable ----------------------------------------------------------------------------------------
def imported(tmp_path, value):
    """Returns the finished process of a program that imports mjlab, with Featherlane's entry point and the variable."""
    info = tmp_path / "of_featherlane-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: of-featherlane\nVersion: 1\n")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["mjlab.tasks"]
    lines = "\n".join(f"{name} = {target}" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[mjlab.tasks]\n{lines}\n")
    code = "from mjlab.envs.manager_based_rl_env import Simulation as s; print(s.__module__, s.__dict__.get('dtype'))"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    settings = os.environ | {"PYTHONPATH": path, "FEATHERLANE_MJLAB": value}
    return subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, timeout=3600)


@pytest.mark.parametrize(
    "value, module",
    [
        ("", "mjlab.sim.sim None"),
        ("0", "mjlab.sim.sim None"),
        ("1", "featherlane.integrations.mjlab.simulation float32"),
        ("float64", "featherlane.integrations.mjlab.simulation float64"),
    ],
)
def test_the_environment_variable_switches_a_program(value, module, tmp_path):
    done = imported(tmp_path, value)
    assert module in done.stdout, done.stderr


def test_a_wrong_value_of_the_environment_variable_ends_the_program(tmp_path):
    done = imported(tmp_path, "single")
    assert done.returncode == 1 and "FEATHERLANE_MJLAB=single: dtype: got 'single'" in done.stderr


# ---- mjlab's simulation on the CPU -----------------------------------------------------------------------------------
@pytest.mark.parametrize("task", TASKS)
def test_observations_and_rewards_equal_those_of_mjlabs_simulation(task, tmp_path):
    """Both are float32: mujoco_warp's and Featherlane's roundings differ, and forces differ most."""
    theirs = run(made(task, 4, motion=motion(tmp_path)), 2)
    ours.use()
    tolerance = 0.1 if task == ROUGH[0] else 3e-3  # mujoco_warp's contacts of capsules with boxes are not MuJoCo's
    for (expected, reward), (found, our_reward) in zip(
        theirs, run(made(task, 4, motion=motion(tmp_path)), 2), strict=True
    ):
        for group in expected:
            torch.testing.assert_close(found[group], expected[group], rtol=tolerance, atol=tolerance)
        if reward is not None:
            torch.testing.assert_close(our_reward, reward, rtol=tolerance, atol=tolerance / 10.0)
