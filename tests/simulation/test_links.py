"""Laws of links: errors decay, momentum is conserved, loops move as trees do, stops stop, motors hold their speed."""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from oracles.naive import matrix
from scenes.states import kicked

EXACT = 1e-11  # relative, for results that a step solves exactly: some hundred rounding errors
NONE = 0.0  # CFM: rows are rigid

ISOTROPIC = """
<mujoco>
  <option timestep="0.01" gravity="0 0 0"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body name="a" pos="0 0 0"><freejoint/><geom size=".1" mass="1"/></body>
    <body name="b" pos="1 0 0" euler="10 0 40"><freejoint/><geom size=".2" mass="2"/></body>
    <body name="c" pos="1 1 0" euler="0 50 0"><freejoint/><geom size=".1" mass="3"/></body>
    <body name="d" pos="1 1 1"><freejoint/><geom size=".2" mass="1"/></body>
    <body name="e" pos="0 1 1" euler="0 0 70"><freejoint/><geom size=".2" mass="2"/></body>
  </worldbody>
</mujoco>
"""
LINKS = (
    fl.Link("ball", "a", "b", anchor=(0.4, 0.1, 0)),
    fl.Link("hinge", "b", "c", anchor=(1, 0.5, 0.2), axis=(1, 2, 2)),
    fl.Link("slider", "c", "d", axis=(0, 0.6, 0.8)),
    fl.Link("fixed", "e", "d"),
)


def rigid(xml, *links):
    """Returns a model with these links, rigid."""
    model = fl.load(xml, links=links)
    model.opt.contact_model, model.opt.cfm, model.opt.gyroscopic = "lcp", NONE, "off"
    return model


def momentum(model, data):
    """Returns linear and angular momentum about the origin."""
    n = model.nbody - 1
    mass, x = model.body_mass[1:, None], data.qpos.reshape(n, 7)
    v = data.qvel.reshape(n, 6)
    spin = [matrix(q) @ (I * w) for q, I, w in zip(x[:, 3:], model.body_inertia[1:], v[:, 3:], strict=True)]
    return np.concatenate([(mass * v[:, :3]).sum(0), np.cross(x[:, :3], mass * v[:, :3]).sum(0) + np.sum(spin, 0)])


def test_links_conserve_total_momentum(rng):
    model = rigid(ISOTROPIC, *LINKS)
    data = fl.Data(model)
    data.qvel = rng.normal(size=model.nv)
    before = momentum(model, data)
    fl.step(model, data)
    np.testing.assert_allclose(momentum(model, data), before, rtol=0, atol=EXACT * 10)


def test_linked_bodies_move_along_free_directions_only(rng):
    """After a step, velocities agree in the directions that a link constrains."""
    model = rigid(ISOTROPIC, *LINKS)
    data = fl.Data(model)
    data.qvel = rng.normal(size=model.nv)
    fl.forward(model, data)
    v = (data.qvel + model.opt.timestep * data.qacc).reshape(-1, 6)
    w = np.array([matrix(q) @ u for q, u in zip(data.qpos.reshape(-1, 7)[:, 3:], v[:, 3:], strict=True)])
    x = data.xpos[1:]

    def at(body, point):
        return v[body, :3] + np.cross(w[body], np.asarray(point) - x[body])

    for first, second, point in ((0, 1, (0.4, 0.1, 0)), (1, 2, (1, 0.5, 0.2)), (4, 3, x[3])):
        np.testing.assert_allclose(at(first, point), at(second, point), atol=EXACT * 10)
    np.testing.assert_allclose(np.cross(w[1] - w[2], (1, 2, 2)), 0, atol=EXACT * 10)
    np.testing.assert_allclose(w[2], w[3], atol=EXACT * 10)
    np.testing.assert_allclose(w[4], w[3], atol=EXACT * 10)
    middle = 0.5 * (x[2] + x[3])
    np.testing.assert_allclose(np.cross(at(2, middle) - at(3, middle), (0, 0.6, 0.8)), 0, atol=EXACT * 10)


def test_forces_on_both_bodies_are_the_constraint_forces(rng):
    """Links close loops between two arms: J^T x equals link_force's effect on the bodies, in a state without errors."""
    arm = """<body name="{0}1" pos="{1} 0 1"><joint axis="0 1 0"/><joint axis="1 0 1" pos="0 .1 0"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/>
      <body name="{0}2" pos=".3 0 .1"><joint type="ball"/><geom type="box" size=".1 .2 .05" pos=".05 0 0"/></body>
    </body>"""
    xml = f"""<mujoco><option timestep="0.01"/><default><geom contype="0" conaffinity="0"/></default>
      <worldbody>{arm.format("l", 0)}{arm.format("r", 1)}</worldbody></mujoco>"""
    for link in (
        fl.Link("ball", "l2", "r2", anchor=(0.6, 0, 1)),
        fl.Link("hinge", "l2", "r2", anchor=(0.6, 0, 1), axis=(1, 2, 3), motor_vel=1.0, motor_force=2.0),
        fl.Link("slider", "l2", "r1", axis=(1, 0, 1), motor_vel=1.0, motor_force=2.0),
        fl.Link("fixed", "l1", "l2"),
        fl.Link("hinge", "l2", "l1", anchor=(0.3, 0, 1.1), axis=(1, 2, 3)),
    ):
        model = rigid(xml, link)
        model.opt.cfm = 1e-6  # some rows of links within one arm are redundant
        data = fl.Data(model)
        data.qvel = rng.normal(size=model.nv)
        fl.forward(model, data)
        force, torque = data.link_force[0, :3], data.link_force[0, 3:]
        a, b = model.link_body[0]
        expected = np.zeros(model.nv)
        expected += fl.query.apply_ft(model, data, force, torque, data.xipos[a], a)
        expected += fl.query.apply_ft(model, data, -force, -torque, data.xipos[a], b)
        scale = max(1.0, np.abs(data.qfrc_constraint).max())
        np.testing.assert_allclose(data.qfrc_constraint, expected, atol=EXACT * 10 * scale)


def test_links_within_a_tree_include_dofs_of_both_bodies(rng):
    """The error's rate is -erp / h times the error, in an out-of-place state whose root moves both bodies."""
    arm = """<body name="{0}" pos="{1} 0 0"><joint axis="0 1 0"/><joint axis="1 0 1" pos="0 .1 0"/><joint type="slide"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0"/></body>"""
    base = f'<body><freejoint/><geom type="box" size=".2 .1 .1"/>{arm.format("l", 0)}{arm.format("r", 0.3)}</body>'
    model = rigid(f"<mujoco><worldbody>{base}</worldbody></mujoco>", fl.Link("ball", "l", "r", anchor=(0.3, 0.1, 0)))
    model.opt.disableflags = fl.enums.Disable.CONTACT
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    fl.forward(model, data)
    v = data.qvel + model.opt.timestep * data.qacc
    points, rates = [], []
    for side, body in enumerate(model.link_body[0]):
        points.append(data.xpos[body] + data.xmat[body].reshape(3, 3) @ model.link_anchor[0, side])
        rates.append(fl.query.jac(model, data, points[-1], int(body))[0] @ v)
    expected = -0.2 / model.opt.timestep * (points[0] - points[1])
    np.testing.assert_allclose(rates[0] - rates[1], expected, rtol=0, atol=EXACT * 100 * np.abs(expected).max())
    force, torque = data.link_force[0, :3], data.link_force[0, 3:]
    np.testing.assert_allclose(torque, np.cross(points[0] - data.xipos[model.link_body[0, 0]], force), rtol=1e-9)


def test_an_error_decays_by_its_erp():
    model = rigid(ISOTROPIC, fl.Link("ball", "b", anchor=(1, 0, 0), erp=0.3))
    data = fl.Data(model)
    start = np.array([1.1, -0.2, 0.3])
    data.qpos[7:10] = start
    for k in range(1, 6):
        fl.step(model, data)
        np.testing.assert_allclose(data.qpos[7:10] - (1, 0, 0), (start - (1, 0, 0)) * 0.7**k, rtol=0, atol=EXACT)


@pytest.mark.parametrize("kind", ["ball", "hinge", "slider", "fixed"])
@pytest.mark.parametrize("second", ["c", None])
def test_shifted_bodies_return_at_the_rate_of_their_erp(kind, second, rng):
    axis = {"axis": (0, 0.6, 0.8)} if kind in ("hinge", "slider") else {}
    anchor = {"anchor": (1, 0.4, 0)} if kind in ("ball", "hinge") else {}
    model = rigid(ISOTROPIC, fl.Link(kind, "b", second, erp=0.25, **anchor, **axis))
    data = fl.Data(model)
    shift = 1e-4 * rng.normal(size=3)
    data.qpos[7:10] += shift
    a, b = model.link_body[0]

    def error():
        """Returns the offset between the anchors on the first and second body, across the axis of a slider."""
        fl.stages.kinematics(model, data)
        R = data.xmat.reshape(-1, 3, 3)
        if kind in ("ball", "hinge"):
            first, second = (data.xpos[body] + R[body] @ model.link_anchor[0, side] for side, body in enumerate((a, b)))
            return first - second
        frame = b if kind == "slider" else (a if b else 0)
        r = data.xipos[a] - data.xipos[b] - R[frame] @ model.link_offset[0]
        u = R[a] @ model.link_axis[0, 0]
        return r - (r @ u) * u

    before = error()
    fl.step(model, data)
    assert np.abs(before).max() > 1e-5
    np.testing.assert_allclose(error(), 0.75 * before, rtol=0, atol=1e-3 * np.abs(before).max())


@pytest.mark.parametrize("kind", ["hinge", "slider", "fixed"])
def test_rotated_bodies_return_at_the_rate_of_their_erp(kind):
    axis = {} if kind == "fixed" else {"axis": (0, 0, 1)}
    anchor = {"anchor": (1, 0, 0)} if kind == "hinge" else {}
    model = rigid(ISOTROPIC, fl.Link(kind, "b", "c", erp=0.25, **anchor, **axis))
    data = fl.Data(model)
    turn = 1e-4  # rad: errors of the second order are below 1e-8 of it
    half = np.array([np.cos(turn / 2), np.sin(turn / 2), 0, 0])
    quat = data.qpos[10:14].copy()
    fl.stages.kinematics(model, data)

    def product(a, b):
        return np.concatenate([[a[0] * b[0] - a[1:] @ b[1:]], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])])

    data.qpos[10:14] = product(half, quat)
    anchor_was = data.qpos[7:10].copy()
    fl.step(model, data)
    first, second = (matrix(data.qpos[a : a + 4]) for a in (10, 17))
    rest = matrix(model.link_quat[0])
    left = first @ rest @ second.T  # rotation of the first relative to the second
    error = 0.5 * np.array([left[2, 1] - left[1, 2], left[0, 2] - left[2, 0], left[1, 0] - left[0, 1]])
    assert abs(error[0] - 0.75 * turn) < 1e-4 * turn
    assert np.abs(data.qpos[7:10] - anchor_was).max() < 1e-3


PENDULUM = """
<mujoco>
  <option timestep="{h}"/>
  <worldbody>
    <body name="rod" pos="0 0 1">{joint}<geom type="capsule" size=".05" fromto="0 0 0 .5 .1 0" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def swing(h, joint, *links):
    """Returns the position of the rod's com after 0.5 s."""
    model = rigid(PENDULUM.format(h=h, joint=joint), *links)
    model.opt.gyroscopic = "implicit"
    data = fl.Data(model)
    fl.step(model, data, round(0.5 / h))
    fl.forward(model, data)
    return data.xipos[1].copy(), data


def test_a_linked_body_moves_as_a_jointed_one():
    link, apart = fl.Link("hinge", "rod", anchor=(0, 0, 1), axis=(0, 1, 0)), []
    for h in (0.01, 0.005, 0.0025):
        (linked, data), (jointed, tree) = swing(h, "<freejoint/>", link), swing(h, '<joint axis="0 1 0"/>')
        apart.append(np.abs(linked - jointed).max())
        assert abs(data.link_position[0] - tree.qpos[0]) < 2 * h
    assert apart[0] < 0.01
    assert 1.7 < apart[0] / apart[1] < 2.3
    assert 1.7 < apart[1] / apart[2] < 2.3


@pytest.mark.parametrize("angle", [-3.0, -1.0, 0.0, 0.4, 3.1])
def test_positions_equal_those_of_joints(angle):
    xml = """<mujoco><worldbody><body name="a" pos="0 0 1" euler="20 0 30"><joint axis="1 2 2" pos=".1 0 0"/>
      <geom size=".1"/><body name="b" pos=".3 0 0"><joint type="slide" axis="0 3 4"/><geom size=".1" pos=".1 0 0"/>
      </body></body></worldbody></mujoco>"""
    model = fl.load(xml)
    data = fl.Data(model)
    fl.stages.kinematics(model, data)
    hinge = fl.Link("hinge", "a", anchor=data.xanchor[0], axis=data.xaxis[0])
    model = fl.load(xml, links=[hinge, fl.Link("slider", "b", "a", axis=data.xaxis[1])])
    data = fl.Data(model)
    data.qpos = angle, 0.7 * angle
    fl.forward(model, data)
    np.testing.assert_allclose(data.link_position, data.qpos, atol=1e-13)


# ---- stops and motors -----------------------------------------------------------------------------------------------
CART = """
<mujoco>
  <option timestep="0.01" gravity="{gravity} 0 0"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody><body name="cart">{joint}<geom size=".1" mass="2"/></body></worldbody>
</mujoco>
"""
SLIDE = '<joint name="slide" type="slide" axis="1 0 0" {range}/>'


def cart(as_link: bool, gravity=0.0, **what):
    """Returns a body on a slider along x, as a link or as a joint of the tree."""
    if as_link:
        return rigid(
            CART.format(joint="<freejoint/>", gravity=gravity), fl.Link("slider", "cart", axis=(1, 0, 0), **what)
        )
    stops = what.pop("range", None)
    limits = f'limited="true" range="{stops[0]} {stops[1]}"' if stops else ""
    model = rigid(CART.format(joint=SLIDE.format(range=limits), gravity=gravity))
    for name, value in what.items():
        getattr(model, f"jnt_{name}")[0] = value
    return model


@pytest.mark.parametrize("as_link", [True, False])
def test_a_motor_holds_its_speed_up_to_its_force(as_link):
    model = cart(as_link, gravity=-3.0, motor_vel=0.5, motor_force=10.0)
    data = fl.Data(model)
    fl.step(model, data, 60)  # 2 m/s^2 until it has its speed
    assert abs(data.qvel[0] - 0.5) < EXACT
    model.opt.gravity = -8.0, 0, 0
    fl.forward(model, data)
    assert abs(data.qacc[0] - (10.0 / 2.0 - 8.0)) < EXACT


@pytest.mark.parametrize("as_link", [True, False])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_stop_restores_a_fraction_of_the_velocity(as_link, side):
    model = cart(as_link, range=(-0.5, 0.5), stop_bounce=0.6)
    data = fl.Data(model)
    data.qpos[0], data.qvel[0] = side * 0.501, side * 2.0
    fl.step(model, data)
    assert abs(data.qvel[0] + side * 1.2) < EXACT


@pytest.mark.parametrize("as_link", [True, False])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_stop_pushes_back_by_its_erp(as_link, side):
    model = cart(as_link, range=(-0.5, 0.5), stop_erp=0.4)
    data = fl.Data(model)
    data.qpos[0] = side * 0.6
    fl.step(model, data)
    assert abs(data.qpos[0] - side * 0.56) < EXACT
    data.qpos[0], data.qvel[0] = side * 0.6, -side * 10.0  # it leaves by itself
    fl.step(model, data)
    assert abs(data.qvel[0] + side * 10.0) < EXACT


@pytest.mark.parametrize("as_link", [True, False])
@pytest.mark.parametrize(
    ("velocity", "side", "force"),
    [(1.0, 1, 6.0), (-1.0, -1, -6.0), (0.0, 1, 6.0), (0.0, -1, -6.0), (-1.0, 1, -1.5), (1.0, -1, 1.5)],
)
def test_a_motor_at_a_stop_is_a_force(as_link, velocity, side, force):
    """The motor drives into the stop with full force, and away from it with a fraction of it while in contact."""
    model = cart(as_link, range=(-0.5, 0.5), motor_vel=velocity, motor_force=6.0, motor_fudge=0.25)
    data = fl.Data(model)
    data.qpos[0] = side * 0.501
    fl.forward(model, data)
    assert abs(data.qfrc_smooth[0] - force) < EXACT
    stopped = -side * 0.2 * 0.001 / 0.01 / 0.01  # the stop moves it by erp of the depth
    assert abs(data.qacc[0] - (min if side > 0 else max)(force / 2.0, stopped)) < EXACT * 100


@pytest.mark.parametrize("as_link", [True, False])
@pytest.mark.parametrize(
    ("what", "start", "sought"),
    [
        ({"motor_vel": 0.5, "motor_force": 1e3, "motor_cfm": 0.01}, 0.0, 0.5),
        ({"range": (-0.5, 0.5), "stop_erp": 0.3, "stop_cfm": 0.02}, -0.6, 3.0),
    ],
)
def test_a_soft_row_deflects_in_proportion_to_its_force(as_link, what, start, sought):
    model = cart(as_link, gravity=-3.0, **what)
    data = fl.Data(model)
    data.qpos[0] = start
    fl.forward(model, data)
    softness = what.get("motor_cfm", what.get("stop_cfm"))
    force, velocity = data.qfrc_constraint[0], data.qvel[0] + 0.01 * data.qacc[0]
    assert abs(velocity - (sought - softness * force)) < EXACT * 10
    assert not as_link or data.link_force[0, 0] == pytest.approx(force, rel=EXACT)


def test_a_soft_link_deflects_in_proportion_to_its_force(rng):
    model = rigid(ISOTROPIC, fl.Link("ball", "b", anchor=(1, 0, 0), cfm=0.1))
    data = fl.Data(model)
    data.xfrc_applied[2, :3] = rng.normal(size=3)
    fl.step(model, data)
    np.testing.assert_allclose(data.qvel[6:9], -0.1 * data.link_force[0, :3], rtol=0, atol=EXACT)


@pytest.mark.parametrize("kind", ["hinge", "slider"])
def test_a_motor_at_a_stop_pushes_both_bodies(kind):
    axis, anchor = (0, 0.6, 0.8), {"anchor": (1, 0.4, 0)} if kind == "hinge" else {}
    link = fl.Link(kind, "b", "c", axis=axis, range=(0, 1), motor_vel=-1.0, motor_force=5.0, **anchor)
    model = rigid(ISOTROPIC, link)
    data = fl.Data(model)
    fl.forward(model, data)
    push, zero, middle = -5.0 * np.array(axis), np.zeros(3), 0.5 * (data.xipos[2] + data.xipos[3])
    force, torque = (zero, push) if kind == "hinge" else (push, zero)
    expected = fl.query.apply_ft(model, data, force, torque, middle, 2) + fl.query.apply_ft(
        model, data, -force, -torque, middle, 3
    )
    np.testing.assert_allclose(data.qfrc_smooth, expected, rtol=0, atol=EXACT)


@pytest.mark.parametrize("as_link", [True, False])
def test_between_stops_at_one_place_there_is_no_motor(as_link):
    model = cart(as_link, range=(0.0, 0.0) if as_link else (0.0, 1e-300), motor_vel=1.0, motor_force=100.0)
    if not as_link:
        model.jnt_range[0] = 0.0, 0.0
    data = fl.Data(model)
    data.qpos[0] = 0.001
    fl.step(model, data, 100)
    assert abs(data.qpos[0]) < 1e-6


def test_a_motor_that_drives_into_its_stop_rests_there():
    model = cart(True, range=(-0.5, 0.5), motor_vel=1.0, motor_force=5.0)
    data = fl.Data(model)
    fl.step(model, data, 300)
    assert abs(data.link_position[0] - 0.5) < 1e-6


def test_motors_differ_by_world():
    batch = fl.Batch(cart(True, motor_force=1e4), nworld=8)
    batch.expand("link_motor_vel")[:, 0] = np.arange(8.0)
    batch.step()
    np.testing.assert_allclose(batch.qvel[:, 0], np.arange(8.0), atol=EXACT * 10)


# ---- worlds, islands, flags -----------------------------------------------------------------------------------------
def test_links_join_islands():
    model = fl.load(ISOTROPIC, links=[fl.Link("ball", "a", "c", anchor=(0, 0, 0)), fl.Link("fixed", "e")])
    data = fl.Data(model)
    fl.forward(model, data)
    fl.stages.islands(model, data)
    np.testing.assert_array_equal(data.tree_island, [0, -1, 0, -1, 1])


def test_flags_switch_links_and_stops_off():
    model = cart(True, gravity=-3.0, range=(-0.5, 0.5), motor_vel=1.0, motor_force=2.0)
    data = fl.Data(model)
    data.qpos[0], data.qvel[1] = 0.6, 1.0
    for flags, acceleration in ((0, None), (1 << 3, -3.0 + 1.0), (1 << 1, -3.0), (1 << 0, -3.0)):
        model.opt.disableflags = flags
        fl.forward(model, data)
        if acceleration is not None:
            assert abs(data.qacc[0] - acceleration) < EXACT
        assert (abs(data.qvel[1] + 0.01 * data.qacc[1]) < EXACT) == (flags in (0, 1 << 3))


def test_worlds_are_equal_in_any_batch(rng):
    model = fl.load(ISOTROPIC, links=[*LINKS, fl.Link("slider", "a", "e", axis=(0, 0, 1), range=(-0.1, 0.1))])
    batch, data = fl.Batch(model, nworld=8), fl.Data(model)
    for world in range(8):
        batch.qpos[world], batch.qvel[world] = kicked(model, rng)
    data.qpos, data.qvel = batch.qpos[3], batch.qvel[3]
    batch.step(2)
    fl.step(model, data, 2)
    assert batch.qpos[3].tobytes() == data.qpos.tobytes()
