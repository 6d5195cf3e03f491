"""Laws of rigid contact under the model lcp: sticking, Coulomb sliding, and restitution."""

import numpy as np
import pytest

import featherlane as fl
from scenes.lcp import lcp_model

G = 9.81
AT_REST = 1e-12  # m/s: rounding of a pivoting solver over 1000 steps
EXACT = 1e-9  # m/s^2: Coulomb's acceleration over 1 s
SAME = 1e-12  # m/s: one product


def cube(floor: str, pos: str, mu: float, gravity=f"0 0 {-G}", size=0.5):
    """Returns a cube of 1 kg in front of a plane."""
    return (
        f'<mujoco><option timestep=".01" gravity="{gravity}"/><worldbody>'
        f'<geom type="plane" size="99 99 1" friction="{mu} 0 0" {floor}/><body pos="{pos}"><freejoint/>'
        f'<geom type="box" size="{size} {size} {size}" mass="1" friction="{mu} 0 0"/></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize("cfm", [0.0, 1e-10])
def test_a_cube_in_a_grip_does_not_creep(cfm):
    model = lcp_model(cube('zaxis="-1 0 0"', "-.5 0 0", 1.0), cfm=cfm, contact_min_depth=1e-6)
    data = fl.Data(model)
    data.qpos[0] += 1e-9  # without erp, contacts do not open and close by rounding
    data.xfrc_applied[1, 0] = 20.0
    fastest = 0.0
    for _ in range(1000):
        fl.step(model, data)
        fastest = max(fastest, np.abs(data.qvel).max())
    assert fastest <= AT_REST + cfm * 20.0
    np.testing.assert_allclose(data.qpos[:3], [-0.5, 0, 0], atol=1e-8 + 10.0 * cfm * 20.0)


def incline(degrees: float, mu: float):
    """Returns a cube's velocity after 1 s on a slope, from rest, down and across it, and the slope's angle."""
    a = np.deg2rad(degrees)
    xml = cube(
        "", "0 0 .5", mu, gravity=f"{G * np.sin(a) * np.cos(0.3)} {G * np.sin(a) * np.sin(0.3)} {-G * np.cos(a)}"
    )
    model = lcp_model(xml, cfm=0.0)
    model.geom_fdir[0] = np.cos(0.3), np.sin(0.3), 0.0
    data = fl.Data(model)
    for _ in range(100):
        fl.step(model, data)
    return model.geom_fdir[0] @ data.qvel[:3], np.linalg.norm(data.qvel), a


def test_a_cube_on_a_slope_sticks_below_the_angle_of_friction():
    assert incline(20.0, 0.365)[1] <= AT_REST  # tan 20 deg = 0.36397


def test_a_cube_slides_down_a_slope_with_coulombs_acceleration():
    down, speed, a = incline(20.0, 0.2)
    assert down == pytest.approx(G * (np.sin(a) - 0.2 * np.cos(a)), abs=EXACT)
    assert speed == pytest.approx(down, abs=EXACT)


def test_a_cube_slides_diagonally_with_coulombs_acceleration_on_the_round_cone():
    """A pyramid holds up to sqrt(2) mu along its diagonal, and the cube stays; Coulomb gives 0.590 m/s^2."""
    a, mu, speed = np.deg2rad(25.0), 0.4, {}
    side = G * np.sin(a) / np.sqrt(2)
    model = lcp_model(cube("", "0 0 .5", mu, gravity=f"{side} {side} {-G * np.cos(a)}"), "pgs", cfm=0.0)
    for cone in ("cone", "pyramid"):
        model.opt.lcp_cone = cone
        data = fl.Data(model)
        fl.step(model, data, 100)
        speed[cone] = np.linalg.norm(data.qvel)
    seconds = 100 * model.opt.timestep
    assert speed["cone"] == pytest.approx(seconds * G * (np.sin(a) - mu * np.cos(a)), abs=1e-6)
    assert speed["pyramid"] < 1e-6
    with pytest.raises(fl.UnsupportedFeatureError):
        model.opt.lcp_cone, model.opt.lcp_solver = "cone", "dantzig"


@pytest.mark.parametrize("restitution", [0.3, 1.0])
def test_a_ball_bounces_with_its_restitution(restitution):
    model = lcp_model(
        '<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="9 9 1"/>'
        '<body pos="0 0 1"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>',
        cfm=0.0,
    )
    model.geom_restitution[1] = restitution
    model.opt.contact_max_vel = 0.1  # does not limit restitution
    data, before = fl.Data(model), 0.0
    while data.qvel[2] <= 0.0:
        before = data.qvel[2]
        fl.step(model, data)
    assert data.qvel[2] == pytest.approx(-restitution * before, abs=SAME)


@pytest.mark.parametrize(("options", "speed"), [
    ({}, 0.5605), ({"erp": 0.8}, 2.2421), ({"contact_max_vel": 0.1}, 0.1), ({"erp": 0.0}, 0.0),
])  # fmt: skip
def test_erp_separates_contacts_without_restitution(options, speed):
    """The law is documented in docs/contact.md."""
    model = lcp_model(
        '<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="9 9 1"/>'
        '<body pos="0 0 1"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>',
        **options,
    )
    data, fastest = fl.Data(model), 0.0
    for _ in range(60):
        fl.step(model, data)
        fastest = max(fastest, data.qvel[2])
    assert fastest == pytest.approx(speed, abs=1e-4)


def test_a_slow_ball_does_not_bounce():
    model = lcp_model(
        '<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="9 9 1"/>'
        '<body pos="0 0 .12"><freejoint/><geom size=".1" mass="1"/></body></worldbody></mujoco>',
        cfm=0.0,
    )
    model.geom_restitution[1], model.geom_restitution_vel[1] = 0.8, 1.0
    data = fl.Data(model)
    for _ in range(100):
        fl.step(model, data)
        assert data.qvel[2] < 0.3
    assert abs(data.qvel[2]) < 1e-6


def test_a_launched_cube_slides_without_lifting():
    model = lcp_model(cube("", "0 0 .5", 0.3), cfm=0.0)
    data = fl.Data(model)
    data.qvel[0] = 3.0
    for _ in range(90):
        fl.step(model, data)
        assert abs(data.qpos[2] - 0.5) <= SAME and np.abs(data.qvel[1:]).max() <= SAME
    assert data.qvel[0] == pytest.approx(3.0 - 0.9 * 0.3 * G, abs=EXACT)


def test_friction_can_be_a_force():
    model = lcp_model(cube("", "0 0 .5", 2.0), cfm=0.0)
    model.geom_frictionforce[1], model.geom_fdir[1] = 1, (1, 0, 0)
    data = fl.Data(model)
    data.qvel[0] = 3.0
    for _ in range(10):
        fl.step(model, data)
    # four contacts, 2 N each
    assert data.qvel[0] == pytest.approx(3.0 - 0.1 * 8.0, abs=EXACT)


def test_a_contact_with_slip_creeps_in_proportion_to_the_force():
    model = lcp_model(cube("", "0 0 .5", 2.0, gravity=f"1 0 {-G}"), cfm=1e-8)
    model.geom_slip[1], model.geom_fdir[1] = 0.02, (1, 0, 0)
    data = fl.Data(model)
    for _ in range(300):
        fl.step(model, data)
    # 1 N over four contacts
    assert data.qvel[0] == pytest.approx(0.02 / 4, rel=1e-5)


def test_a_moving_surface_transports_bodies():
    xml = cube('surfacevel=".7 0 0 0 0 0"', "0 0 .5", 0.5)
    model = lcp_model(xml, cfm=0.0)
    data = fl.Data(model)
    for _ in range(60):
        fl.step(model, data)
    assert data.qvel[0] == pytest.approx(0.7, abs=EXACT)


def test_user_contacts_have_their_own_restitution_and_motion():
    model = lcp_model(cube('contype="0" conaffinity="0"', "0 0 .5", 1.0), cfm=0.0)
    data = fl.Data(model, given_contacts=4)
    corners = np.array([[x, y, 0.0] for x in (-0.5, 0.5) for y in (-0.5, 0.5)])
    data.give_contacts(np.zeros(4), corners, [0, 0, 1.0], body=[0, 1], restitution=0.5, motion=[0, 0.2, 0.1])
    data.qvel[2] = -2.0
    fl.step(model, data)
    frame = data.contact.frame[0].reshape(3, 3)
    np.testing.assert_allclose(data.qvel[:3], frame.T @ [1.0, 0.2, 0.1], atol=SAME)
    with pytest.raises(fl.ModelError):
        data.give_contacts(np.zeros(4), corners, [0, 0, 1.0], body=[0, 1], restitution=-1.0)


# ---- a tower ---------------------------------------------------------------------------------------------------------
def tower(cfm: float, seconds: float):
    """Returns the model of ten unit cubes that touch exactly, and their displacements step by step."""
    cubes = "".join(
        f'<body pos="0 0 {k + 0.5}"><freejoint/><geom type="box" size=".5 .5 .5" mass="1" friction=".5 0 0"/></body>'
        for k in range(10)
    )
    model = lcp_model(
        f'<mujoco><worldbody><geom type="plane" size="99 99 1" friction=".5 0 0"/>{cubes}</worldbody></mujoco>',
        timestep=1 / 60,
        cfm=cfm,
        erp=0.2,
        lcp_friction="frozen",
    )
    data, moved = fl.Data(model), []
    for _ in range(round(60 * seconds)):
        fl.step(model, data)
        moved.append(data.qpos.reshape(10, 7)[:, :3] - model.qpos0.reshape(10, 7)[:, :3])
    return model, data, np.array(moved)


def check_tower(cfm: float, seconds: float):
    """It stands, and sinks by its static sag: four springs k = erp / (h cfm) below each cube."""
    model, data, moved = tower(cfm, seconds)
    load = G * np.arange(10, 0, -1) / 4.0
    sag = np.cumsum(load) * cfm * model.opt.timestep / model.opt.erp
    assert np.abs(moved[..., :2]).max() < 1e-6
    assert (moved[..., 2] >= -sag * (1 + 1e-3) - 1e-9).all()
    np.testing.assert_allclose(moved[-1, :, 2], -sag, rtol=1e-2, atol=1e-9)
    assert data.status["not_converged"] == 0


def test_a_tower_that_touches_exactly_stands():
    for cfm in (1e-10, 1e-3):
        check_tower(cfm, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize("exponent", range(-12, -2))
def test_a_tower_stands_for_20_s_at_any_cfm(exponent):
    check_tower(10.0**exponent, 20.0)


SIDEWAYS = 1e-9  # of a body's size: accumulated rounding over 20 s is 1e-13


def drawn_masses(seed: int) -> list[str]:
    return [f'mass="{mass}"' for mass in np.exp(np.random.default_rng(seed).uniform(-2, 4, 10))]


def touching_tower(shape: str, size: float, timestep: float, masses: list[str], **options):
    """Returns the model of stacked bodies that touch exactly, up to rounding."""
    sizes = " ".join([str(size)] * (3 if shape == "box" else 2))
    bodies = "".join(
        f'<body pos="0 0 {size * (2 * k + 1)}"><freejoint/><geom type="{shape}" size="{sizes}" {mass}/></body>'
        for k, mass in enumerate(masses)
    )
    model = fl.load(f'<mujoco><worldbody><geom type="plane" size="99 99 1"/>{bodies}</worldbody></mujoco>')
    model.opt.contact_model, model.opt.timestep = "lcp", timestep
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model


def check_stands(model, size: float, seconds: float):
    """Checks that nothing moved sideways, rotated or rose, and that the sag under the load is small."""
    data = fl.Data(model)
    fl.step(model, data, round(seconds / model.opt.timestep))
    moved = data.qpos.reshape(-1, 7) - model.qpos0.reshape(-1, 7)
    assert np.abs(moved[:, :2]).max() < SIDEWAYS * size and np.abs(moved[:, 3:]).max() < SIDEWAYS
    assert (moved[:, 2] < SIDEWAYS * size).all() and (moved[:, 2] > -1e-4 * size).all()
    assert not any(data.status.values())


TOWERS = [
    ("box", 0.1, 0.005, {}),
    ("box", 0.1, 0.005, {"erp": 0.8}),
    ("box", 0.005, 0.001, {"erp": 0.8}),
    ("box", 3.0, 1 / 60, {"erp": 1.0}),
    ("box", 0.07, 0.002, {"cfm": 0.0}),
    ("cylinder", 0.1, 0.01, {"erp": 0.8, "lcp_friction": "consistent"}),
]


@pytest.mark.parametrize("seconds", [2.0, pytest.param(20.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("shape", "size", "timestep", "options"), TOWERS)
def test_exactly_touching_bodies_rest(shape, size, timestep, options, seed, seconds):
    check_stands(touching_tower(shape, size, timestep, drawn_masses(seed), **options), size, seconds)


@pytest.mark.parametrize("erp", [0.2, 0.8])
def test_ten_cubes_of_equal_density_stand(erp):
    check_stands(touching_tower("box", 0.1, 0.005, ['density="500"'] * 10, erp=erp), 0.1, 20.0)


@pytest.mark.parametrize("speed", [0.0, 0.01, 5.0])
def test_a_gap_that_counts_as_touching_closes_in_one_step(speed):
    model = fl.load(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/>'
        '<body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    )
    model.opt.contact_model, model.opt.cfm = "lcp", 0.0
    data, gap = fl.Data(model), 5e-8
    data.qpos[2], data.qvel[2] = 0.1 + gap, -speed
    fl.step(model, data)
    assert data.ncon == 1
    np.testing.assert_allclose(data.qpos[2], 0.1, atol=1e-15)
    data.qpos[2], data.qvel[2] = 0.1 + gap, 0.5  # leaving bodies are not held
    fl.step(model, data)
    np.testing.assert_allclose(data.qvel[2], 0.5 - G * model.opt.timestep, rtol=1e-12)


def test_sensors_measure_the_forces_of_the_lcp():
    model = lcp_model(
        '<mujoco><option timestep=".005"/><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="2"/><site name="s" type="box" size=".2 .2 .2"/></body></worldbody>'
        '<sensor><touch site="s"/><accelerometer site="s"/></sensor></mujoco>'
    )
    data = fl.Data(model)
    for _ in range(200):
        fl.step(model, data)
    fl.forward(model, data)
    fl.stages.rne_post_constraint(model, data)
    np.testing.assert_allclose(data.sensordata, [2.0 * G, 0.0, 0.0, G], atol=1e-6)
    np.testing.assert_allclose(data.cfrc_ext[1, 3:], [0.0, 0.0, 2.0 * G], atol=1e-6)
    total = sum(fl.query.contact_force(model, data, k)[0] for k in range(data.ncon))
    assert total == pytest.approx(2.0 * G, abs=1e-6)
    np.testing.assert_allclose(data.qfrc_constraint[:3], [0.0, 0.0, 2.0 * G], atol=1e-6)


def test_damping_beyond_what_a_step_resolves_is_stable():
    model = lcp_model(
        '<mujoco><option timestep=".01"/><worldbody><body><joint name="a" axis="0 1 0" damping="50" limited="true"'
        ' range="-30 30"/><geom size=".05" pos=".3 0 0" mass=".1"/></body></worldbody></mujoco>'
    )
    data = fl.Data(model)
    data.qvel[0] = 5.0
    for _ in range(100):
        fl.step(model, data)
        assert abs(data.qvel[0]) <= 5.0
    assert abs(data.qvel[0]) < 0.01
