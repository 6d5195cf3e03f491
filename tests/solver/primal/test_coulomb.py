"""The contact model coulomb: Signorini's conditions and Coulomb's law, against a solver that shares no code."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.solver.primal.coulomb import FIRST, IMPATIENT, STIFFER
from featherlane.errors import ModelError

BOX = """<mujoco><option timestep="{h}"/><worldbody>
<geom type="plane" size="9 9 .1" euler="{tilt} 0 0"/><body
 euler="{tilt} 0 0" pos="0 0 {z}"><freejoint/><geom type="box" size=".1 .1 .1" mass="1" friction="{mu}"/></body>
</worldbody></mujoco>"""
ROBOTS = [("quadruped_elliptic", 0.8), ("humanoid", 0.6), ("hand", 0.7)]


def box(mu, tilt=0.0, h=0.002, contact_model="coulomb"):
    model = fl.load(BOX.format(mu=mu, tilt=tilt, h=h, z=0.1 / np.cos(np.radians(tilt)) + 1e-4))
    model.opt.contact_model = contact_model
    model.geom_friction[:, 0] = mu
    return model, fl.Data(model)


@pytest.mark.parametrize(("mu", "h"), [(0.2, 0.002), (0.4, 0.01)])
def test_a_sliding_box_stops_at_the_analytic_distance_and_is_not_lifted(mu, h):
    model, data = box(mu, h=h)
    fl.step(model, data, round(1.0 / h))
    x, z, v, fall = data.qpos[0], data.qpos[2], 2.0, mu * 9.81 * h
    data.qvel[0], highest = v, z
    while data.qvel[0] > 1e-6:
        fl.step(model, data)
        highest = max(highest, data.qpos[2])
    # semi-implicit Euler: the velocity falls by mu g h before the position moves; 0.2 and 2 % less than v^2 / (2 mu g)
    exact = h * np.maximum(v - fall * np.arange(1, v / fall), 0.0).sum()
    assert data.qpos[0] - x == pytest.approx(exact, rel=3e-4)
    assert highest - z < 5e-6
    assert not data.status["not_converged"]


def test_a_box_on_a_slope_does_not_creep():
    speed = {}
    for contact_model in ("convex", "coulomb"):
        model, data = box(1.0, tilt=20, contact_model=contact_model)
        fl.step(model, data, 1000)
        at = data.qpos.copy()
        fl.step(model, data, 1000)
        speed[contact_model] = np.linalg.norm(data.qpos[:3] - at[:3]) / (1000 * model.opt.timestep)
    assert speed["coulomb"] < 1e-6 < speed["convex"]  # m/s


def states(name, mu, n=6):
    """Yields models and data in contact, with controls."""
    mj = fl.bundled(name).to_mujoco()
    mj.geom_condim[:], mj.geom_friction[:, 0] = 3, mu
    model = fl.load(mj)
    model.opt.contact_model = "coulomb"
    data, rng = fl.Data(model), np.random.default_rng(0)
    if model.nkey:
        data.reset(keyframe=0)
    for _ in range(n):
        data.ctrl = rng.uniform(-0.3, 0.3, model.nu)
        fl.step(model, data, 60)
        fl.forward(model, data)
        yield model, data


def solution(model, data):
    """Returns qacc by projected Gauss-Seidel on the forces of the dual problem, dense; and the contacts."""
    J, M, D, kind = np.reshape(data.efc_J, (-1, model.nv)), fl.query.full_m(model, data), data.efc_D, data.efc_type
    x0, inverse = J @ data.qacc_smooth - data.efc_aref, J @ np.linalg.solve(M, J.T)
    contact = data.contact
    first = {int(i): float(mu[0]) for i, mu in zip(contact.efc_address, contact.friction, strict=True) if i >= 0}
    for i in first:  # friction rows: the velocity at the end of the step is 0, at 1 / STICK of the inverse mass
        assert np.allclose(data.efc_aref[i + 1 : i + 3], -data.efc_vel[i + 1 : i + 3] / model.opt.timestep)
    f, step = np.zeros(len(D)), 1.0 / (np.diag(inverse) + 1.0 / D)
    for _ in range(20000):
        old, i = f.copy(), 0
        while i < len(D):
            f[i] -= step[i] * (x0[i] + inverse[i] @ f + f[i] / D[i])
            if kind[i] in (1, 2):
                f[i] = np.clip(f[i], -data.efc_frictionloss[i], data.efc_frictionloss[i])
            elif kind[i] > 0:
                f[i] = max(f[i], 0.0)
            if i in first:
                t = slice(i + 1, i + 3)
                f[t] -= step[t].min() * (x0[t] + inverse[t] @ f + f[t] / D[t])
                f[t] *= min(1.0, first[i] * f[i] / max(np.linalg.norm(f[t]), 1e-300))
            i += 3 if i in first else 1
        if np.abs(f - old).max() < 1e-12 * max(np.abs(f).max(), 1.0):
            break
    return data.qacc_smooth + np.linalg.solve(M, J.T @ f), len(first)


@pytest.mark.parametrize(("name", "mu"), ROBOTS[:2])  # on the hand's ten contacts Gauss-Seidel does not converge
def test_accelerations_are_those_of_projected_gauss_seidel(name, mu):
    contacts = 0
    for model, data in states(name, mu):
        expected, n = solution(model, data)
        contacts += n
        scale = max(np.abs(expected).max(), np.abs(data.qacc_smooth).max())
        assert np.abs(data.qacc - expected).max() < 1e-6 * scale
    assert contacts > 0


def assert_law_holds(model, data):
    """Checks the equation of motion with forces of the law at qacc; returns the number of slipping contacts."""
    slips, J = 0, np.reshape(data.efc_J, (-1, model.nv))
    x = J @ data.qacc - data.efc_aref
    f = -data.efc_D * x
    bounded = np.isin(data.efc_type, (1, 2))
    f[bounded] = np.clip(f[bounded], -data.efc_frictionloss[bounded], data.efc_frictionloss[bounded])
    f[data.efc_type > 2] = np.maximum(f[data.efc_type > 2], 0.0)
    for i, mu in zip(data.contact.efc_address, data.contact.friction[:, 0], strict=True):
        stick = -data.efc_D[i + 1 : i + 3] * x[i + 1 : i + 3]
        size = np.linalg.norm(stick)
        f[i + 1 : i + 3] = stick * min(1.0, mu * f[i] / size) if size else stick
        slips += size > mu * f[i] > 0
    left = fl.query.full_m(model, data) @ (data.qacc - data.qacc_smooth) - J.T @ f
    assert np.abs(left).max() < 1e-6 * max(np.abs(data.qfrc_constraint).max(), 1.0)
    np.testing.assert_allclose(data.efc_force, f, atol=1e-6 * max(np.abs(f).max(), 1.0))
    return slips


@pytest.mark.parametrize(("name", "mu"), ROBOTS)
def test_forces_of_the_law_balance_the_equation_of_motion(name, mu):
    assert sum(assert_law_holds(model, data) for model, data in states(name, mu)) > 0


ROD = """<mujoco><option timestep=".002"/><worldbody><geom type="plane" size="9 9 1" friction="2 0 0"/>
<body pos="0 0 .43311"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint axis="0 -1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia=".0833 .0833 .0833"/>
<geom type="sphere" size="1e-4" pos="-.25 0 -.43301" friction="2 0 0"/></body></worldbody></mujoco>"""


def test_the_end_of_painleves_rod_stops_within_a_step():
    """No force lets the rigid rod slide on; a larger one stops it, and energy falls."""
    model = fl.load(ROD)
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    data.qvel[0] = -2.0
    fl.forward(model, data)
    assert assert_law_holds(model, data) == 0 < data.ncon
    assert data.solver_niter > np.log(1.0 / FIRST) / np.log(STIFFER)  # one for each proximal problem
    fl.step(model, data)
    assert abs(data.qvel[0] + 0.43311 * data.qvel[2]) < 1e-4  # m/s, of the lower end
    assert data.qvel @ fl.query.full_m(model, data) @ data.qvel < 2.0**2
    assert not data.status["not_converged"]


def heap(bodies):
    """Returns a model of boxes and capsules that fall on each other."""
    rng, text = np.random.default_rng(0), ""
    for i in range(bodies):
        kind, size = (("box", ".05 .04 .03"), ("capsule", ".03 .05"))[i % 2]
        place, turn = [*rng.uniform(-0.05, 0.05, 2), 0.06 + 0.07 * i], rng.normal(size=4)
        at = " ".join(map(str, place)), " ".join(map(str, turn / np.linalg.norm(turn)))
        text += f'<body pos="{at[0]}" quat="{at[1]}"><freejoint/><geom type="{kind}" size="{size}"/></body>'
    model = fl.load(f"""<mujoco><default><geom friction=".9 0 0"/></default><worldbody>
        <geom type="plane" size="9 9 1"/>{text}</worldbody></mujoco>""")
    model.opt.contact_model = "coulomb"
    return model


def test_heaps_are_solved():
    """Many contacts of one body share a load; some of these steps need proximal problems."""
    model, hard = heap(10), 0
    data = fl.Data(model)
    for _ in range(200):
        fl.step(model, data)
        if data.solver_niter > 2 * IMPATIENT:
            hard += 1
            fl.forward(model, data)
            assert_law_holds(model, data)
    assert hard > 5
    assert not data.status["not_converged"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_worlds_with_proximal_problems_are_bitwise_identical_in_any_batch(dtype):
    model = fl.load(ROD)
    model.opt.contact_model = "coulomb"
    speeds = -np.linspace(0.5, 3.0, 11)
    batch = fl.Batch(model, 11, nthread=2, dtype=dtype)
    batch.qvel[:, 0] = speeds
    alone = [fl.Batch(model, 1, nthread=1, dtype=dtype) for _ in range(3)]
    for b, w in zip(alone, (0, 5, 10), strict=True):
        b.qvel[0, 0] = speeds[w]
    most = 0
    for _ in range(20):
        batch.step()
        for b, w in zip(alone, (0, 5, 10), strict=True):
            b.step()
            most = max(most, int(b.solver_niter[0]))
            assert b.qpos[0].tobytes() == batch.qpos[w].tobytes()
            assert b.solver_niter[0] == batch.solver_niter[w]
    assert most > 2 * IMPATIENT


def test_an_unsolved_world_ends_with_a_status_and_a_finite_state():
    model = heap(6)
    model.opt.iterations = 2
    data = fl.Data(model)
    fl.step(model, data, 100)
    assert data.status["not_converged"] and data.nreset == 0
    assert np.abs(data.qvel).max() < 100.0  # m/s, rad/s; forces of a bad iterate would throw the bodies away


def test_directions_with_moving_bounds_save_iterations():
    """The solves take 137 iterations, and 308 if the sign of N is wrong, because other steps then correct it."""
    total = 0
    for name, mu in ROBOTS:
        for model, data in states(name, mu):
            cold = fl.Data(model)
            cold.qpos, cold.qvel, cold.act, cold.ctrl = data.qpos, data.qvel, data.act, data.ctrl
            fl.forward(model, cold)
            total += cold.solver_niter
    assert total < 200


@pytest.mark.parametrize("condim", [3, 4, 6])
def test_friction_is_opposite_to_slip_and_bounded_by_the_normal_force(condim):
    mj = box(0.5)[0].to_mujoco()
    mj.geom_condim[:] = condim
    model = fl.load(mj)
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    fl.step(model, data, 300)
    data.qvel[:] = [1.0, -0.4, 0.0, 0.3, 0.0, 1.5]
    slid = 0
    for _ in range(40):
        fl.step(model, data)
        for k in range(data.ncon):
            force, friction = fl.query.contact_force(model, data, k), data.contact.friction[k]
            scaled = np.linalg.norm(force[1:condim] / friction[: condim - 1])
            assert scaled <= force[0] * (1 + 1e-9)
            slid += scaled > force[0] * (1 - 1e-9) > 0
    assert slid > 20


def test_friction_is_not_stiffer_if_the_center_of_mass_lies_on_the_hinge():
    """MuJoCo's approximate inverse mass of such a body is 0; friction was 1e21 times as stiff as the body."""
    model = fl.load("""<mujoco><worldbody><geom type="plane" size="9 9 1" friction="1 0 0"/><body pos="0 0 .05">
        <joint axis="0 1 0"/><geom type="box" size=".1 .02 .01" euler="0 24 0"/></body></worldbody></mujoco>""")
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    data.qfrc_applied[0] = 0.1
    fl.step(model, data, 100)
    fl.forward(model, data)
    J, M = np.reshape(data.efc_J, (-1, model.nv)), fl.query.full_m(model, data)
    stiffness = data.efc_D * np.einsum("ri,ij,rj->r", J, np.linalg.inv(M), J)
    assert model.body_invweight0[1, 0] < 1e-15 and data.ncon == 2
    assert 1e4 < stiffness[1:3].max() < 1e7
    assert not data.status["not_converged"]


def test_inverse_dynamics_returns_the_applied_forces():
    model, data = box(0.5)
    fl.step(model, data, 300)
    data.qvel[0], data.qfrc_applied[:] = 0.7, [1.0, 2.0, -3.0, 0.1, 0.2, 0.3]
    fl.forward(model, data)
    fl.inverse(model, data)
    np.testing.assert_allclose(data.qfrc_inverse, data.qfrc_applied, atol=1e-6)


@pytest.mark.parametrize("name", ["quadruped_elliptic", "hand"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_world_is_bitwise_identical_in_any_batch(name, dtype):
    model, rng = fl.bundled(name), np.random.default_rng(1)
    model.opt.contact_model = "coulomb"
    controls = rng.uniform(-0.5, 0.5, (23, model.nu))
    batch = fl.Batch(model, 23, nthread=2, dtype=dtype)
    batch.ctrl[:] = controls
    batch.step(150)
    for w in (0, 7, 22):
        alone = fl.Batch(model, 1, nthread=1, dtype=dtype)
        alone.ctrl[0] = controls[w]
        alone.step(150)
        assert alone.qpos[0].tobytes() == batch.qpos[w].tobytes()
        assert alone.solver_niter[0] == batch.solver_niter[w]
    assert batch.ncon.any()


def test_the_option_cone_has_no_effect():
    ends = []
    for cone in ("pyramidal", "elliptic"):
        model = fl.bundled("quadruped")
        model.opt.cone, model.opt.contact_model = cone, "coulomb"
        data = fl.Data(model)
        fl.step(model, data, 200)
        ends.append(data.qpos.tobytes())
    assert ends[0] == ends[1] and data.ncon


def test_options_that_exclude_each_other_are_refused():
    model = fl.bundled("pendulum")
    model.opt.contact_model = "coulomb"
    for name, value in (("solver", "cg"), ("integrator", "rk4"), ("noslip_iterations", 3)):
        with pytest.raises(ModelError, match="contact_model 'coulomb'"):
            setattr(model.opt, name, value)
