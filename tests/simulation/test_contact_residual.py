"""The residual of the nonlinear complementarity problem, against its conditions computed from MuJoCo's matrices."""

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.errors import ModelError

SCENE = """<mujoco><option timestep="{h}"/><worldbody><geom type="plane" size="9 9 1" friction="{mu} 0 0"/>
<body pos="0 0 .0999"><freejoint/><geom type="box" size=".1 .2 .1" mass="2" friction="{mu} 0 0" condim="{dim}"/>
</body><body pos="1 0 .0999"><freejoint/>
<geom type="sphere" size=".1" mass="1" friction="{mu} .01 .002" condim="{dim}"/></body>
</worldbody></mujoco>"""


def slid(mu=0.4, h=0.002, dim=3):
    model = fl.load(SCENE.format(mu=mu, h=h, dim=dim))
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    fl.step(model, data, 100)
    data.qvel[:2], data.qvel[6] = (1.0, 0.3), 0.5
    return model, data


def conditions(model, data, forces, q, v):
    """Returns the largest violation of each law [m/s, N] by velocities that MuJoCo's M and J produce from the forces.

    The laws: complementarity of normal force and normal slack, the bound of friction, friction opposite to slip.
    """
    mj = model.to_mujoco()
    d = mujoco.MjData(mj)
    d.qpos, d.qvel = q, v
    mujoco.mj_forward(mj, d)
    M, rows, h = np.zeros((model.nv, model.nv)), [], model.opt.timestep
    mujoco.mj_fullM(mj, d, M)
    total = np.zeros(model.nv)
    for contact, force in zip(data.contact, forces, strict=True):
        J, R = np.zeros((3, model.nv)), np.reshape(contact.frame, (3, 3))
        for g, sign in zip(contact.geom, (-1.0, 1.0), strict=True):
            part = np.zeros((3, model.nv))
            mujoco.mj_jac(mj, d, part, None, np.array(contact.pos), int(mj.geom_bodyid[g]))
            J += sign * R @ part
        rows.append(J)
        total += J.T @ force[:3]
    after = v + h * (np.array(d.qacc_smooth) + np.linalg.solve(M, total))
    worst = np.zeros(3)
    for contact, force, J in zip(data.contact, forces, rows, strict=True):
        i, mu = contact.efc_address, contact.friction[0]
        normal = (J @ (after - v))[0] / h - data.efc_aref[i] + force[0] / data.efc_D[i]
        slip = (J @ after)[1:] + h * force[1:3] / data.efc_D[i + 1]
        size, across = np.linalg.norm(slip), np.linalg.norm(force[1:3])
        worst[0] = max(worst[0], h * abs(normal) if force[0] > 0.0 else h * max(-normal, 0.0))
        worst[1] = max(worst[1], across - mu * force[0], 0.0)
        opposite = force[1:3] + mu * force[0] * slip / max(size, 1e-300)
        worst[2] = max(worst[2], min(np.linalg.norm(opposite), np.linalg.norm(size * mu * force[0])))
    return worst


def test_solved_steps_have_a_small_residual_in_both_units():
    model, data = slid()
    for _ in range(30):
        q, v = data.qpos.copy(), data.qvel.copy()
        fl.step(model, data)
        force, velocity = fl.query.contact_residual(model, data)
        assert force.shape == velocity.shape == (data.ncon,) and data.ncon
        forces = [fl.query.contact_force(model, data, k) for k in range(data.ncon)]
        assert (conditions(model, data, forces, q, v) < [1e-7, 1e-5, 1e-5]).all()
        assert force.max() < 1e-5 and velocity.max() < 1e-7


def test_an_unsolved_step_has_the_residual_of_its_forces():
    """Its velocity bounds the violation of each law by the velocities that MuJoCo computes from the same forces."""
    model, data = slid()
    model.opt.iterations = 0
    q, v = data.qpos.copy(), data.qvel.copy()
    fl.forward(model, data)
    force, velocity = fl.query.contact_residual(model, data)
    forces = [fl.query.contact_force(model, data, k) for k in range(data.ncon)]
    normal = conditions(model, data, forces, q, v)[0]
    assert normal > 1e-4
    assert 0.5 * normal < velocity.max() < 10.0 * normal
    # a mass between those of the bodies relates both units: they are not the same number in other units
    mass = force / velocity * model.opt.timestep
    assert ((mass > 0.1) & (mass < 4.0)).all()


@pytest.mark.parametrize("dim", [1, 4, 6])
def test_all_dimensions_have_a_residual(dim):
    model, data = slid(dim=dim)
    fl.step(model, data, 5)
    force, velocity = fl.query.contact_residual(model, data)
    assert data.ncon and force.max() < 1e-5 and velocity.max() < 1e-7
    model.opt.iterations = 0
    data.qvel[:2] = 0.5
    fl.forward(model, data)
    assert fl.query.contact_residual(model, data)[1].max() > 1e-4


def test_another_contact_model_is_refused():
    model, data = slid()
    model.opt.contact_model = "convex"
    fl.forward(model, data)
    with pytest.raises(ModelError, match="contact_residual: got the contact model 'convex', allowed is 'coulomb'"):
        fl.query.contact_residual(model, data)
