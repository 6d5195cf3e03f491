"""Implicit differentiation: exact for linear systems, equal to differences of whole steps otherwise."""

import pickle

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.enums import Disable
from featherlane.tools.sensitivity.systems import served
from featherlane.tools.sensitivity.worlds import implicit_worlds, passes
from featherlane.tools.sensitivity.worlds.displaced_worlds import OwnWorlds
from featherlane.tools.sensitivity.worlds.parameters import Parameters
from scenes.states import kicked
from sensitivity.test_transition import carts, exact, relative

LINEAR = 1e-8  # rounding of forces of order 30 over 2e-7
SMOOTH = 1e-8
CONTACT = 1e-6
ROUNDING = 5e-8  # error of the differences of steps used as reference
INTEGRATORS = ["euler", "implicitfast", "implicit", "discrete"]
# every joint, a tendon, a spring, an actuator with a rate and one with an activation
JOINTS = """<mujoco><option timestep="0.004"/><default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body pos="0 0 1"><freejoint/><geom size="0.1 0.05 0.2" type="box"/>
    <body pos="0.2 0 0"><joint name="ball" type="ball" damping="0.05" stiffness="0.3"/>
      <geom type="capsule" fromto="0 0 0 0.2 0 0.1" size="0.03"/>
      <body pos="0.2 0 0.1"><joint name="hinge" axis="0 1 1" damping="0.1" armature="0.01" stiffness="1"/>
        <geom type="capsule" fromto="0 0 0 0 0.2 0" size="0.03"/><site name="tip" pos="0 0.2 0"/></body></body>
    <body pos="-0.2 0 0"><joint name="slide" type="slide" axis="1 0 1" damping="0.5"/><geom size="0.05"/>
      <site name="end"/></body></body>
  <body pos="0 1 1"><freejoint/><geom size="0.1 0.2 0.05" type="ellipsoid"/></body></worldbody>
  <tendon><spatial name="rope" stiffness="3" damping="0.2"><site site="tip"/><site site="end"/></spatial></tendon>
  <actuator><motor joint="hinge"/><position joint="slide" kp="4" kv="0.3"/><motor tendon="rope" gear="0.5"/>
    <general joint="hinge" dyntype="filter" dynprm="0.05" gainprm="2"/></actuator></mujoco>"""


def close(found, data, model, tolerance) -> None:
    """A and B against Richardson's extrapolation of differences of steps, which is none of the theorem's."""
    coarse, fine = (fl.linearize(model, data, eps=eps, method="finite_difference")[:2] for eps in (2e-6, 1e-6))
    for ours, one, half in zip(found[:2], coarse, fine, strict=True):
        assert relative(ours, (4.0 * half - one) / 3.0) < tolerance


# ---- laws ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("damp", ["enable", "disable"])
def test_a_linear_system_has_its_matrices(damp):
    model, A, B = carts(damp)
    data = fl.Data(model)
    data.qpos, data.qvel, data.ctrl = [0.2, -0.1], [0.3, 0.5], [0.4, -0.2]
    found = fl.linearize(model, data)
    assert np.abs(found.A - A).max() < LINEAR
    assert np.abs(found.B - B).max() < LINEAR
    assert found.C is None and found.D is None and found.switching == 1.0


@pytest.mark.parametrize("u, moves", [(1.0, True), (-1.0, True), (1.5, False)])
def test_control_differences_stay_in_the_range(u, moves):
    model, _, B = carts()
    data = fl.Data(model)
    data.ctrl = [u, 7.0]
    found = fl.linearize(model, data).B
    assert np.abs(found[:, 1] - B[:, 1]).max() < LINEAR
    assert np.abs(found[:, 0] - (B[:, 0] if moves else 0.0)).max() < LINEAR


@pytest.mark.parametrize("rotation", ["finite", "infinitesimal"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_all_joints_have_the_derivatives_of_their_steps(integrator, rotation, rng):
    """Covers smooth models with springs, tendons and activations; uncoupled free bodies rotate by themselves."""
    model = exact(fl.load(JOINTS))
    model.opt.integrator, model.opt.rotation = integrator, rotation
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.ctrl, data.act = rng.uniform(-1, 1, model.nu), 0.3
    data.xfrc_applied[2] = rng.normal(size=6)
    close(fl.linearize(model, data), data, model, ROUNDING)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", ["humanoid", "quadruped"])
def test_contacts_have_the_derivatives_of_their_steps(name, integrator, cone):
    model = exact(fl.bundled(name))
    model.opt.integrator, model.opt.cone = integrator, cone
    data = fl.Data(model)
    data.ctrl = np.linspace(-0.4, 0.4, model.nu)
    for _ in range(40):
        fl.step(model, data, 10)
        found = fl.linearize(model, data)
        if data.ncon and found.switching > 1e-3:
            break
    else:
        pytest.fail("no state away from switches")
    close(found, data, model, CONTACT)


@pytest.mark.parametrize("name, steps", [("rope", 50), ("chain", 150), ("slider_crank", 100), ("arm", 100)])
def test_other_models_have_the_derivatives_of_their_steps(name, steps):
    """Covers recursion instead of a matrix, contacts that couple branches, and equality constraints."""
    model = exact(fl.bundled(name))
    data = fl.Data(model)
    fl.step(model, data, steps)
    close(fl.linearize(model, data), data, model, CONTACT)


def test_steps_outside_implicit_differentiation_use_finite_differences():
    model = carts()[0]
    model.opt.noslip_iterations, model.opt.cone = 3, "elliptic"
    data = fl.Data(model)
    found, steps = fl.linearize(model, data), fl.linearize(model, data, method="finite_difference")
    assert found.A.tobytes() == steps.A.tobytes() and found.B.tobytes() == steps.B.tobytes()
    assert np.isnan(found.switching)


def test_force_derivatives_of_accelerations_are_the_inverse_mass_matrix(rng):
    """Tested without contacts; the step follows from the acceleration's derivatives by Euler's rule."""
    model = exact(fl.load(JOINTS))
    model.opt.disableflags = "eulerdamp"
    data = fl.Data(model)
    data.qpos, data.qvel = kicked(model, rng)
    data.ctrl = rng.uniform(-1, 1, model.nu)
    fl.forward(model, data)
    found, step, nv, h = (
        fl.acceleration_derivatives(model, data),
        fl.linearize(model, data),
        model.nv,
        model.opt.timestep,
    )
    assert relative(found.DaDtau @ fl.query.full_m(model, data), np.eye(nv)) < 1e-10
    velocity = slice(nv, 2 * nv)
    assert relative(h * found.DaDq, step.A[velocity, :nv]) < 1e-12
    assert relative(np.eye(nv) + h * found.DaDv, step.A[velocity, velocity]) < 1e-12
    assert relative(h * found.DaDact, step.A[velocity, 2 * nv :]) < 1e-12
    assert relative(h * found.DaDu, step.B[velocity]) < 1e-12


def test_forces_balanced_by_contacts_have_small_derivatives():
    """A box at rest that is pushed down accelerates less because of its contacts' stiffness."""
    model = fl.load("""<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.0995"><freejoint/>
        <geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>""")
    data = fl.Data(model)
    fl.step(model, data, 300)
    found = fl.acceleration_derivatives(model, data)
    free = 1.0 / model.body_mass[1]
    assert 0.0 < found.DaDtau[2, 2] < 0.2 * free


# ---- switches --------------------------------------------------------------------------------------------------------
def test_switching_of_an_open_contact_is_its_gap():
    model = fl.load("""<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1" gap="0.01"/></body>
        </worldbody></mujoco>""")
    data, found = fl.Data(model), []
    for gap in (0.02, 0.006, 0.0001):
        data.qpos = gap
        found.append(fl.linearize(model, data).switching)
    assert found[0] == 1.0
    assert found[1:] == pytest.approx([0.006, 0.0001], rel=1e-6)


def test_switching_is_zero_at_separation():
    """A ball is lifted from the floor: the force at separation is its weight."""
    model = exact(
        fl.load("""<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.0999">
        <joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>""")
    )
    data, near = fl.Data(model), []
    fl.step(model, data, 500)
    fl.forward(model, data)
    lift = np.linspace(0.0, 1.0, 21) * 9.81
    for data.qfrc_applied in lift[:, None]:
        near.append(float(fl.linearize(model, data).switching))
    assert near[0] > 0.3
    assert np.all(np.diff(near) < 0.0)


# gaps 5e-7 beyond and within the margins of a slide's, a hinge's, a ball's and a tendon's limit; no forces
MARGIN = """<mujoco><option gravity="0 0 0"/><compiler angle="radian"/><worldbody>
  <body><joint type="{type}" axis="1 0 0" {limit}/><geom size="0.1"/></body></worldbody>
  <tendon>{tendon}</tendon></mujoco>"""
LIMIT, FIXED = 'limited="true" margin="0.1" range="{}"', '<fixed {}><joint joint="x" coef="1"/></fixed>'
MARGINS = {
    "slide": MARGIN.format(type="slide", limit=LIMIT.format("-0.5 0.5"), tendon=""),
    "hinge": MARGIN.format(type="hinge", limit=LIMIT.format("-0.5 0.5"), tendon=""),
    "ball": MARGIN.format(type="ball", limit=LIMIT.format("0 0.5"), tendon=""),
    "tendon": MARGIN.format(type="slide", limit='name="x"', tendon=FIXED.format(LIMIT.format("-0.5 0.5"))),
}


@pytest.mark.parametrize("name", MARGINS)
@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("contact_model", ["convex", "lcp"])
def test_switching_is_the_distance_from_the_margin_of_a_limit(name, side, contact_model):
    """It is divided by 1 mm or 1 mrad, at most 1.  If the limit acts, its force is also close to 0."""
    model = fl.load(MARGINS[name])
    model.opt.contact_model = contact_model
    data, found = fl.Data(model), []
    for gap in (-0.05, -5e-7, 5e-7, 3e-4, 0.05):
        q = side * (0.4 - gap)
        data.qpos = [np.cos(0.5 * q), np.sin(0.5 * q), 0.0, 0.0] if name == "ball" else q
        found.append(float(fl.linearize(model, data).switching))
    assert found[2:] == pytest.approx([5e-4, 0.3, 1.0], rel=1e-6)
    assert 2e-5 < found[1] <= 5.00001e-4
    assert found[0] > 0.01
    model.opt.disableflags = "limit"
    data.qpos = data.qpos * 0.0 + (np.eye(model.nq)[0] if name == "ball" else side * (0.4 - 5e-7))
    assert fl.linearize(model, data).switching == 1.0


@pytest.mark.parametrize("share", [0.9, 1.1])
def test_switching_is_small_if_slow_dry_friction_is_near_its_bound(share):
    """The accelerations of the row are small, too, so that a velocity of 1e-6 m/s changes sticking and sliding."""
    model = exact(
        fl.load("""<mujoco><option gravity="0 0 0"/><worldbody><body><joint type="slide" axis="1 0 0"
        frictionloss="0.001"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>""")
    )
    data = fl.Data(model)
    data.qfrc_applied = 0.001 * share
    found = fl.linearize(model, data)
    near, far = (fl.linearize(model, data, eps=e, method="finite_difference").A for e in (1e-8, 1e-5))
    assert relative(found.A, near) < 1e-6
    assert relative(found.A, far) > 1e-2
    assert found.switching < 1e-4


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_switching_is_small_for_a_contact_that_slides_at_depth_zero(cone):
    """No joint moves the normal, whose row is only the depth of 1e-12 m; the friction rows end with the contact."""
    model = fl.load("""<mujoco><option integrator="discrete"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.099999999999"><joint type="slide" axis="1 0 0"/><geom size="0.1" mass="1" condim="3"/></body>
        </worldbody></mujoco>""")
    model.opt.cone = cone
    data = fl.Data(model)
    data.qvel = 0.1
    fl.forward(model, data)
    assert data.ncon == 1 and -2e-12 < data.con_dist[0] < 0.0
    assert fl.linearize(model, data).switching < 1e-6


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_switching_decreases_at_the_onset_of_slip(cone):
    """A box is pushed along: at the change from sticking to slipping the distance passes through 0."""
    model = exact(
        fl.load("""<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.0999">
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1" condim="3"
        friction="0.5"/></body></worldbody></mujoco>""")
    )
    model.opt.cone = cone
    data, near = fl.Data(model), []
    fl.step(model, data, 500)
    for push in np.linspace(0, 12, 60):
        data.qvel, data.qfrc_applied = 0.0, [push, 0.0]
        near.append(float(fl.linearize(model, data).switching))
    assert min(near[5:]) < 0.3 * near[0]


# ---- batches ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["humanoid", "quadruped_elliptic", "box_stack"])
def test_derivatives_do_not_depend_on_other_worlds(name, rng):
    """Results are bitwise identical alone, in a batch, in another order and with any number of threads."""
    model = fl.bundled(name)
    batch = fl.Batch(model, 11, nthread=1)
    batch.qvel[:] += rng.normal(size=batch.qvel.shape) * 0.1
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    batch.step(60)
    found = fl.linearize(model, batch, nthread=1)
    many = fl.linearize(model, batch, nthread=2)
    acceleration = fl.acceleration_derivatives(model, batch)
    for one, two in zip(found, many, strict=True):
        assert one is None or isinstance(one, dict) or one.tobytes() == two.tobytes()
    for w in (0, 7, 10):
        data = batch.get_data(w)
        for nthread in (1, 2):
            alone = fl.linearize(model, data, nthread=nthread)
            for one, all_ in zip(alone, found, strict=True):
                assert one is None or isinstance(one, dict) or one.tobytes() == all_[w].tobytes()
        for one, all_ in zip(fl.acceleration_derivatives(model, data), acceleration, strict=True):
            assert one.tobytes() == all_[w].tobytes()


def test_a_pile_does_not_fit_its_tile():
    """Worlds that exceed a tile's capacity together are processed one by one."""
    model = fl.bundled("pyramid")
    batch = fl.Batch(model, 3, nthread=1)
    batch.qpos[1, 2] += 0.5
    batch.step(20)
    found = fl.linearize(model, batch)
    for w in range(3):
        alone = fl.linearize(model, batch.get_data(w))
        assert alone.A.tobytes() == found.A[w].tobytes() and alone.switching == found.switching[w]


def test_models_can_differ_by_world(rng):
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, 9, nthread=1)
    batch.expand("body_mass")[:] *= np.linspace(0.8, 1.2, 9)[:, None]
    batch.set_const()
    batch.step(50)
    found, steps = fl.linearize(model, batch), fl.linearize(model, batch, method="finite_difference")
    assert relative(found.B, steps.B) < 1e-7
    assert np.abs(found.B[0] - found.B[8]).max() > 1e-3 * np.abs(found.B[0]).max()


@pytest.mark.parametrize("by_formulas", [True, False])
def test_expanded_values_reach_each_world_in_every_tile(by_formulas, rng, monkeypatch):
    """Of the step, of joints, contacts and motors: more worlds than fit into a tile."""
    for module in (served, implicit_worlds):
        monkeypatch.setattr(module, "serves", lambda *_: by_formulas)
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 19, nthread=1)
    for name in ("opt.timestep", "dof_damping", "jnt_stiffness", "actuator_gainprm", "geom_friction", "jnt_solref"):
        rows = batch.expand(name)
        rows[:] *= rng.uniform(0.5, 1.0, (19, *[1] * (rows.ndim - 1)))
    batch.expand("opt.gravity")[:] *= rng.uniform(0.5, 1.0, (19, 1))
    batch.set_const()
    batch.qvel[:] = rng.normal(size=batch.qvel.shape) * 0.1
    batch.step(80)
    found = fl.linearize(model, batch)
    for w in (3, 11, 18):
        data = batch.get_data(w)
        alone = fl.linearize(data.model, data)
        for name in ("A", "B", "switching"):
            assert getattr(alone, name).tobytes() == getattr(found, name)[w].tobytes(), name


def test_a_non_finite_world_affects_no_other():
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 5, nthread=1)
    batch.step(30)
    before = fl.linearize(model, batch)
    batch.qvel[2] = np.nan
    after = fl.linearize(model, batch)
    for w in (0, 1, 3, 4):
        assert after.A[w].tobytes() == before.A[w].tobytes()
    assert not np.isfinite(after.A[2]).all()


def test_derivatives_do_not_change_the_worlds(rng):
    model = fl.bundled("quadruped")
    data, batch = fl.Data(model), fl.Batch(model, 3, nthread=1)
    fl.step(model, data, 50)
    batch.step(50)
    before = pickle.dumps(data)
    rows = batch.checkpoint()
    first = fl.linearize(model, data)
    fl.acceleration_derivatives(model, data)
    fl.linearize(model, batch)
    assert pickle.dumps(data) == before
    for name, a in batch.checkpoint().items():
        assert a.tobytes() == rows[name].tobytes(), name
    assert first.A.tobytes() == fl.linearize(model, data).A.tobytes()


def test_models_without_dofs_or_controls():
    model = fl.load("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    found = fl.linearize(model, fl.Data(model))
    assert found.A.shape == (0, 0) and found.B.shape == (0, 0)
    assert fl.acceleration_derivatives(model, fl.Data(model)).DaDq.shape == (0, 0)
    model = fl.load("<mujoco><worldbody><body><joint/><geom size='0.1' pos='0.3 0 0'/></body></worldbody></mujoco>")
    found = fl.linearize(model, fl.Batch(model, 2))
    assert found.A.shape == (2, 2, 2) and found.B.shape == (2, 2, 0)


def test_invalid_arguments_are_named():
    model, _, _ = carts()
    data = fl.Data(model)
    with pytest.raises(fl.ModelError):
        fl.linearize(fl.bundled("pendulum"), fl.Batch(model, 2, nthread=1))
    with pytest.raises(fl.ModelError, match="nthread"):
        fl.linearize(model, data, nthread=-1)
    with pytest.raises(fl.ModelError, match="sensors"):
        fl.linearize(model, data, sensors=3)
    model.opt.noslip_iterations, model.opt.cone = 3, "elliptic"
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.acceleration_derivatives(model, data)
    model.opt.noslip_iterations, model.opt.enableflags = 0, "sleep"
    with pytest.raises(fl.UnsupportedFeatureError):
        fl.linearize(model, data)


# ---- parameters ------------------------------------------------------------------------------------------------------
NAMES = ("body_mass", "geom_friction", "dof_damping", "actuator_gainprm", "opt.gravity")


def steps_by(model, data, name, entry, eps):
    """Returns dx'/dp of velocities by central differences of whole steps."""
    ends = []
    for sign in (1.0, -1.0):
        batch = fl.Batch(model, 1, nthread=1)
        fl.set_state(model, batch, fl.get_state(model, data, fl.State.INTEGRATION), fl.State.INTEGRATION)
        batch.expand(name)[(0, *entry)] += sign * eps
        batch.set_const()
        batch.step()
        ends.append(batch.qvel[0].copy())
    return (ends[0] - ends[1]) / (2 * eps)


@pytest.mark.parametrize("name", ["quadruped", "arm"])
def test_parameter_derivatives_of_the_next_state(name):
    """Covers masses with all derived parameters, friction, gains and gravity."""
    model = exact(fl.bundled(name))
    data = fl.Data(model)
    data.ctrl = np.linspace(-0.3, 0.3, model.nu)
    data.qvel[:] = 0.2
    fl.step(model, data, 60)
    found, plain, nv = fl.linearize(model, data, parameters=NAMES), fl.linearize(model, data), model.nv
    assert found.A.tobytes() == plain.A.tobytes() and found.B.tobytes() == plain.B.tobytes()
    assert set(found.P) == {name.replace("opt.", "opt_") for name in NAMES} and plain.P == {}
    entries = {"body_mass": (2,), "geom_friction": (0, 0), "dof_damping": (nv - 1,), "actuator_gainprm": (1, 0)}
    for field, entry in (*entries.items(), ("opt_gravity", (2,))):
        P = found.P[field]
        assert P.shape == (2 * nv + model.na, *np.shape(getattr(model, field)))
        expected = steps_by(model, data, field, entry, 1e-5)
        assert np.abs(P[nv : 2 * nv][(slice(None), *entry)] - expected).max() < 1e-5 * (np.abs(expected).max() + 1e-3)
        assert np.abs(P[:nv] - model.opt.timestep * P[nv : 2 * nv])[:nv].max() < 1.0


@pytest.mark.parametrize(
    "option",
    [{"integrator": "Euler", "contact_model": "lcp"}, {"integrator": "RK4"}, {"noslip_iterations": 3}],
    ids=("lcp", "rk4", "noslip"),
)
def test_parameter_derivatives_by_finite_differences_without_implicit_differentiation(option):
    """Uses differences of steps; several worlds get the same results as separately, in a batch or as a `Data`."""
    model = exact(fl.bundled("quadruped"))
    for name, value in option.items():
        setattr(model.opt, name, value)
    batch = fl.Batch(model, 3, nthread=1)
    batch.expand("body_mass")[:] *= np.linspace(0.9, 1.1, 3)[:, None]
    batch.set_const()
    batch.step(50)
    found, plain = fl.linearize(model, batch, parameters=NAMES), fl.linearize(model, batch)
    assert found.A.tobytes() == plain.A.tobytes() and found.switching.tobytes() == plain.switching.tobytes()
    nv, data = model.nv, fl.Data(model)
    fl.step(model, data, 50)
    alone = fl.linearize(model, data, parameters=NAMES).P
    for field, entry in {
        "body_mass": (2,),
        "geom_friction": (0, 0),
        "actuator_gainprm": (1, 0),
        "opt_gravity": (2,),
    }.items():
        assert found.P[field].shape == (3, 2 * nv, *np.shape(getattr(model, field)))
        expected = steps_by(model, data, field, entry, 1e-5)
        for P in (alone[field], found.P[field][1]):
            column = P[nv:][(slice(None), *entry)]
            assert np.abs(column - expected).max() < 1e-4 * (np.abs(expected).max() + 1e-3)


def test_parameter_derivatives_by_differences_and_implicit_differentiation_agree():
    """Covers motion with and without dry friction, positions by dof, and more worlds than fit into one pass."""
    model = exact(fl.bundled("humanoid"))
    model.dof_frictionloss[6:] = 0.05
    batch, names = fl.Batch(model, 130, nthread=1), ["body_mass", "dof_damping"]
    batch.qvel[:] = 0.1 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
    for frictionloss in (True, False):
        asked = Parameters(model, names)
        worlds = OwnWorlds(model, batch, 2 * asked.n, 1, 0 if frictionloss else int(Disable.FRICTIONLOSS))
        worlds.load(batch)
        ours = asked.rates_of_steps(worlds).swapaxes(1, 2)
        theirs = fl.linearize(model, batch, parameters=names, frictionloss=frictionloss).P
        for name, part in asked.parts(ours).items():
            assert np.abs(part - theirs[name]).max() < 1e-6 * np.abs(theirs[name]).max()


def test_parameter_derivatives_of_a_batch_equal_single_worlds():
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 5, nthread=1)
    batch.expand("body_mass")[:] *= np.linspace(0.9, 1.1, 5)[:, None]
    batch.set_const()
    batch.step(40)
    found = fl.linearize(model, batch, parameters=["body_mass"], nthread=1)
    assert found.P["body_mass"].shape == (5, 36, model.nbody)
    alone = fl.linearize(model, batch, parameters=["body_mass"], nthread=2)
    assert alone.P["body_mass"].tobytes() == found.P["body_mass"].tobytes()


@pytest.mark.parametrize("contact_model", ["convex", "coulomb", "lcp"])
def test_parameter_derivatives_do_not_depend_on_earlier_calls(contact_model):
    """Calls with other states, worlds, fields of worlds and models reuse memory; a new model has none."""

    def new() -> tuple[fl.Model, fl.Batch]:
        model = fl.bundled("quadruped")
        model.opt.integrator = "euler"
        model.opt.contact_model = contact_model
        model.dof_damping[:] *= 1.5
        batch = fl.Batch(model, 5)
        batch.expand("geom_friction")[:] *= np.linspace(0.9, 1.1, 5)[:, None, None]
        batch.step(40)
        return model, batch

    names = ("body_mass", "geom_friction", "dof_damping")
    model, batch = new()
    used = fl.bundled("quadruped")
    used.opt.integrator = "euler"
    used.opt.contact_model = contact_model
    fl.linearize(used, fl.Batch(used, 5), parameters=names)
    other = fl.Batch(used, 5)
    other.expand("geom_friction")[:] *= 3.0
    other.step(20)
    fl.linearize(used, other, parameters=names)
    fl.linearize(used, other, parameters=names, frictionloss=False)
    fl.linearize(used, fl.Data(used), parameters=names[:1])
    used.dof_damping[:] *= 1.5
    other.expand("geom_friction")[:] = batch.expand("geom_friction")
    other.reset()
    other.step(40)
    expected = fl.linearize(model, batch, parameters=names)
    found = fl.linearize(used, other, parameters=names)
    for name in names:
        assert found.P[name].tobytes() == expected.P[name].tobytes()
    assert np.abs(found.P["body_mass"]).max() > 0.0 and found.A.tobytes() == expected.A.tobytes()


def test_entries_of_parameters_are_columns_of_their_fields():
    """Selects by name, number and range; duplicate selections are returned twice."""
    model = fl.bundled("quadruped")
    batch = fl.Batch(model, 3, nthread=1)
    batch.step(40)
    body, geom = model.names("body")[2], next(name for name in model.names("geom") if name)
    g, names = model.names("geom").index(geom), (f"body_mass[{body}]", f"geom_friction[{geom}, 0:2]", "opt.gravity[2]")
    whole = fl.linearize(model, batch, parameters=("body_mass", "geom_friction", "opt.gravity")).P
    some = fl.linearize(model, batch, parameters=(*names, "body_mass[2:4]")).P
    assert list(some) == [*names, "body_mass[2:4]"]
    for name, expected in (
        (names[0], whole["body_mass"][..., 2]),
        (names[1], whole["geom_friction"][..., g, :2]),
        (names[2], whole["opt_gravity"][..., 2]),
        ("body_mass[2:4]", whole["body_mass"][..., 2:4]),
    ):
        assert some[name].shape == expected.shape and some[name].tobytes() == expected.tobytes()


def test_unknown_parameter_names_suggest_near_ones():
    model = fl.bundled("quadruped")
    with pytest.raises(fl.UnknownNameError):
        fl.linearize(model, fl.Data(model), parameters=["body_mass[tronk]"])
    with pytest.raises(fl.ModelError):
        fl.linearize(model, fl.Data(model), parameters=["body_mass[99]"])


@pytest.mark.parametrize(
    "given",
    [
        *("body_mass", ["body_masses"], ["opt.timestep"], [3], 5, ["geom_type"], ["qpos0"] * 2),
        *(["body_mass["], ["body_mass[0, 0]"], ["opt.timestep[0]"], ["body_mass[3:3]"], ["opt.gravity[x]"]),
        *(["opt.gravity[0]"] * 2, np.array(""), np.array(["body_masses"]), np.array(0.0)),
    ],
)
def test_invalid_parameters_are_named(given):
    model, _, _ = carts()
    with pytest.raises(fl.ModelError, match="parameters"):
        fl.linearize(model, fl.Data(model), parameters=given)


def test_a_batch_in_several_passes_computes_all_accelerations(monkeypatch, rng):
    """A pass holds a limited number of worlds; each pass once discarded the accelerations of the one before."""
    monkeypatch.setattr(passes, "REALS", 1)
    monkeypatch.setattr(passes, "LEAST", 2)
    model = fl.bundled("arm")
    batch = fl.Batch(model, 5)
    batch.qvel[:] = rng.normal(size=batch.qvel.shape)
    together = fl.acceleration_derivatives(model, batch)
    for w in range(5):
        alone = fl.acceleration_derivatives(model, batch.get_data(w))
        for one, every in zip(alone, together, strict=True):
            assert one.tobytes() == every[w].tobytes()
