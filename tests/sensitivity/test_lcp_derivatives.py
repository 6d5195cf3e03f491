"""Derivatives under the contact model lcp: the linear system of its free rows, against differences of steps."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from sampling import pairwise
from sensitivity.test_transition import relative

CONTACT = 1e-6
AWAY = 1e-4  # distance to the next switch
# a gap change of e requires an acceleration of e / h^2: differences must be short, or they cross a switch
SHORT = (1e-6, 1e-7, 2e-8)
SLIDING = """<mujoco><option timestep="0.005"/><default><geom friction="0.5"/></default><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.0999"><freejoint/><geom size="0.1" mass="1"/></body></worldbody></mujoco>"""
BOXES = """<mujoco><option timestep="0.005"/><default><geom friction="0.2"/></default><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.0999"><freejoint/><geom type="box" size="0.1 0.08 0.1" mass="1"/></body>
  <body pos="0.03 0.02 0.31"><freejoint/><geom size="0.11" mass="0.7" friction="0.4"/></body></worldbody></mujoco>"""
ROUND = SLIDING.replace('friction="0.5"', 'friction="0.3 0.01 0.01" condim="6"')
ARM = """<mujoco><option timestep="0.004"/><default><geom friction="0.4"/></default><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 0.12"><joint name="a" axis="0 1 0" damping="0.1" range="-1 2" limited="true"/>
    <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
    <body pos="0.3 0 0"><joint name="b" axis="0 1 0" damping="0.1" frictionloss="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 -0.1" size="0.03"/>
      <body pos="0.3 0 -0.1"><joint type="ball" damping="0.02"/><geom type="box" size="0.05 0.03 0.04"/></body></body>
  </body></worldbody><actuator><motor joint="a"/><position joint="b" kp="5"/>
    <general joint="b" dyntype="filter" dynprm="0.05"/></actuator></mujoco>"""
SLIDES = '<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>'
SCENES = {"sliding": SLIDING, "boxes": BOXES, "round": ROUND, "arm": ARM}


def hard(xml: str, solver="dantzig", friction="frozen", **options):
    """Returns the model under the LCP, slightly soft, with its iterative solvers at their highest accuracy."""
    model = fl.load(resolve_name(xml))
    model.opt.contact_model, model.opt.lcp_solver, model.opt.lcp_friction = "lcp", solver, friction
    model.opt.cfm = 1e-4
    if solver != "dantzig":
        model.opt.lcp_iterations, model.opt.lcp_tolerance = 20000, 0.0
    for name, value in options.items():
        setattr(model.opt, name, value)
    return model


def pushed(model, rng) -> fl.Data:
    data = fl.Data(model)
    data.qvel = rng.normal(size=model.nv) * 0.3
    data.ctrl = rng.uniform(-0.3, 0.3, model.nu)
    return data


def error(found, model, data) -> float:
    """Returns A and B by Richardson extrapolation of differences of steps, the best of three lengths."""
    best = np.inf
    for eps in SHORT:
        coarse, fine = (fl.linearize(model, data, eps=e, method="finite_difference")[:2] for e in (2 * eps, eps))
        pairs = zip(found[:2], coarse, fine, strict=True)
        best = min(best, max(relative(ours, (4.0 * half - one) / 3.0) for ours, one, half in pairs))
    return best


def extrapolated(model, data, eps: float) -> np.ndarray:
    coarse, fine = (fl.linearize(model, data, eps=e, method="finite_difference").A for e in (2 * eps, eps))
    return (4.0 * fine - coarse) / 3.0


def follow(model, data, steps: int, enough: int) -> None:
    """Compares the derivatives of some states with contacts, away from switches, with differences, along a motion."""
    held = 0
    for _ in range(60):
        fl.step(model, data, steps)
        found = fl.linearize(model, data)
        assert np.isfinite(found.switching)
        if data.ncon and found.switching > AWAY:
            assert error(found, model, data) < CONTACT
            held += 1
        if held == enough:
            break
    assert held == enough, "too few states away from switches"


# ---- against differences of steps ------------------------------------------------------------------------------------
@pytest.mark.parametrize("friction", ["frozen", "consistent"])
@pytest.mark.parametrize("scene", SCENES)
def test_steps_with_hard_contacts_have_their_derivatives(scene, friction, rng):
    """Covers sticking, slipping and rolling, a limit, friction loss, torsion, constant and updated friction limits."""
    model = hard(SCENES[scene], friction=friction)
    follow(model, pushed(model, rng), 4, 4)


@pytest.mark.parametrize(
    ("scene", "cone", "solver"), pairwise(("sliding", "boxes"), ("pyramid", "cone"), ("pgs", "apgd"))
)
def test_iterative_solvers_have_the_derivatives_of_their_steps(scene, cone, solver, rng):
    model = hard(SCENES[scene], solver, lcp_cone=cone)
    follow(model, pushed(model, rng), 8, 4)


def test_rolling_and_spinning_friction_on_a_cone_has_derivatives(rng):
    model = hard(ROUND, "pgs", lcp_cone="cone")
    follow(model, pushed(model, rng), 8, 4)


@pytest.mark.parametrize("friction", ["frozen", "consistent"])
def test_a_humanoid_that_falls_has_derivatives(friction):
    model = hard("humanoid", friction=friction)
    data = fl.Data(model)
    data.ctrl = np.linspace(-0.3, 0.3, model.nu)
    follow(model, data, 30, 3)


FEATURES = {
    "restitution": (BOXES, {}, {"geom_restitution": 0.6}),
    "slip": (SLIDING, {}, {"geom_slip": 1e-3}),
    "largest speed": (BOXES, {"contact_max_vel": 1e-4}, {}),
    "minimal depth": (BOXES, {"contact_min_depth": 1e-3}, {}),
    "solref": (BOXES, {"softness": "solref"}, {}),
    "surface": (BOXES, {}, {"geom_surfacevel": [0.2, 0.1, 0.0, 0.0, 0.0, 0.5]}),
    "direction of friction": (BOXES, {}, {"geom_fdir": [1.0, 2.0, 0.0]}),
    "friction is a force": (BOXES, {}, {"geom_frictionforce": 1}),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_contact_row_parameters_have_derivatives(feature, rng):
    xml, options, fields = FEATURES[feature]
    model = hard(xml, **options)
    for name, value in fields.items():
        getattr(model, name)[...] = value
    follow(model, pushed(model, rng), 8, 4)


# ---- laws ------------------------------------------------------------------------------------------------------------
def test_sliding_friction_does_not_depend_on_speed():
    """v' = v - mu g h, so A has a 1 there; a sideways force from the floor slows it by mu times that force."""
    model = hard(SLIDING.replace("<freejoint/>", SLIDES))
    data, h, mu = fl.Data(model), model.opt.timestep, 0.5
    data.qvel[0] = 3.0
    fl.step(model, data, 100)
    A = fl.linearize(model, data).A
    assert A[2, 2] == pytest.approx(1.0, abs=1e-9)
    assert A[2, 1] == pytest.approx(-mu * (A[3, 1]), rel=1e-6)  # slowed by mu times the upward force
    assert A[3, 1] == pytest.approx(-model.opt.erp / h / (1.0 + 1e-4 / h), rel=1e-6)


def test_resting_contacts_have_one_sided_derivatives():
    """A ball touches the floor, depth 0 up to rounding: raised it falls; lowered, a fraction ERP is corrected.

    A difference of steps lies between the two.
    """
    model = hard(SLIDING, cfm=0.0)
    data = fl.Data(model)
    fl.step(model, data, 800)
    found, h = fl.linearize(model, data), model.opt.timestep
    assert abs(data.qpos[2] - 0.1) < 1e-9
    assert found.A[6 + 2, 2] == pytest.approx(-model.opt.erp / h, rel=1e-6)
    assert found.switching < 1e-3


@pytest.mark.parametrize("friction", ["frozen", "consistent"])
def test_a_grip_holds_within_its_force(friction):
    """A force presses a cube to a wall and friction holds it; with a smaller force it slips, at the predicted rate."""
    model = hard(
        """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 1" zaxis="1 0 0" friction="0.5"/>
        <body pos="0.1 0 0"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
        <geom size="0.1" mass="1" friction="0.5"/></body></worldbody></mujoco>""",
        friction=friction,
        cfm=1e-6,
    )
    data = fl.Data(model)
    data.qfrc_applied = [-10.0, 0.0]
    fl.step(model, data, 200)
    found = fl.acceleration_derivatives(model, data)
    # pressed by one newton more, friction grows by mu newtons
    assert found.DaDtau[1, 0] == pytest.approx(-0.5, rel=1e-3)
    data.qfrc_applied[0], data.qvel[:] = -30.0, 0.0
    fl.step(model, data, 5)
    found = fl.acceleration_derivatives(model, data)
    assert abs(found.DaDtau[1, 0]) < 1e-6 and found.DaDtau[1, 1] < 1e-3


def test_force_and_control_derivatives_agree(rng):
    """Compares DaDtau with differences of forward dynamics by applied forces."""
    model = hard(ARM)
    data = pushed(model, rng)
    fl.step(model, data, 40)
    found, eps, qacc = fl.acceleration_derivatives(model, data), 1e-6, []
    for i in range(model.nv):
        for sign in (1.0, -1.0):
            data.qfrc_applied = 0.0
            data.qfrc_applied[i] = sign * eps
            fl.forward(model, data)
            qacc.append(data.qacc.copy())
    expected = (np.array(qacc[::2]) - np.array(qacc[1::2])).T / (2 * eps)
    assert found.switching > AWAY
    assert relative(found.DaDtau, expected) < CONTACT


def test_a_step_without_rows_equals_that_of_the_convex_model():
    """Tested without damping, which the two methods treat differently."""
    xml = ARM.replace('pos="0 0 0.12"', 'pos="0 0 2"').replace('damping="0.1"', "").replace('damping="0.02"', "")
    xml = xml.replace('frictionloss="0.1"', "")
    model, data = hard(xml), None
    data = fl.Data(model)
    data.qvel = np.linspace(-1, 1, model.nv)
    ours = fl.linearize(model, data)
    model.opt.contact_model = "convex"
    assert relative(ours.A, fl.linearize(model, data).A) < 1e-8
    assert relative(ours.B, fl.linearize(model, data).B) < 1e-8


@pytest.mark.parametrize("offset", [(0.02, 0.01), (0.0, 0.0), (0.02, 0.0)])
def test_a_box_on_a_box_has_the_derivatives_of_its_steps(offset):
    """Covers oblique boxes, edge along edge, and corner on corner; shifts decide which box has the contact point."""
    stacked = BOXES.replace('<geom size="0.11" mass="0.7" friction="0.4"/>', '<geom type="box" size="0.1 0.08 0.05"/>')
    model = hard(stacked)
    data = fl.Data(model)
    data.qpos[2], data.qpos[7:10] = 0.1, (*offset, 0.25)
    data.qvel[6] = 0.0 if 0.0 in offset else 0.3
    fl.step(model, data, 60)
    found = fl.linearize(model, data)
    assert data.ncon == 8 and found.switching > AWAY
    columns = slice(None) if any(offset) else [2, 5, 8, 11, *range(12, 24)]
    errors = [relative(found.A[:, columns], extrapolated(model, data, eps)[:, columns]) for eps in SHORT]
    assert min(errors) < CONTACT


def test_a_standing_cylinder_has_the_derivatives_of_its_present_points():
    """Without tilt the derivatives match steps; tilted, its contact jumps between points of the rim: a switch."""
    model = hard(SLIDING.replace('<geom size="0.1" mass="1"/>', '<geom type="cylinder" size="0.1 0.1" mass="1"/>'))
    data = fl.Data(model)
    fl.step(model, data, 100)
    found, columns = fl.linearize(model, data), [0, 1, 2, *range(5, 12)]
    assert data.ncon == 3 and found.switching <= 1e-6 and np.isfinite(found.A).all()
    errors = [relative(found.A[:, columns], extrapolated(model, data, eps)[:, columns]) for eps in SHORT]
    assert min(errors) < CONTACT


# ---- switches --------------------------------------------------------------------------------------------------------
def test_switching_decreases_at_the_onset_of_slip():
    model = hard(SLIDING.replace("<freejoint/>", SLIDES))
    data, near = fl.Data(model), []
    fl.step(model, data, 300)
    for push in np.linspace(0.0, 8.0, 33):
        data.qvel[0], data.qfrc_applied[0] = 0.0, push
        near.append(float(fl.linearize(model, data).switching))
    least = int(np.argmin(near))
    assert near[least] < 0.05 * near[0]
    assert abs(least * 0.25 - 0.5 * 9.81) < 0.5  # where push = mu m g
    assert near[0] > 0.05 and near[-1] > 10 * near[least]


def test_switching_of_an_open_contact_is_its_gap():
    model = hard("""<mujoco><option gravity="0 0 0"/><worldbody><geom type="plane" size="1 1 1"/>
        <body pos="0 0 0.1"><joint type="slide" axis="0 0 1"/><geom size="0.1" gap="0.01"/></body>
        </worldbody></mujoco>""")
    data, found = fl.Data(model), []
    for gap in (0.02, 0.006, 0.0001):
        data.qpos = gap
        found.append(fl.linearize(model, data).switching)
    assert found[0] == 1.0
    assert found[1:] == pytest.approx([0.006, 0.0001], rel=1e-6)


# ---- batches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name, options", [("humanoid", {}), ("arm", {"friction": "consistent"}), ("boxes", {})])
def test_derivatives_do_not_depend_on_other_worlds(name, options, rng):
    """Results are bitwise identical alone, in a batch, in another order and with any number of threads."""
    model = hard(SCENES.get(name, name), **options)
    batch = fl.Batch(model, 11, nthread=1)
    batch.qvel[:] += rng.normal(size=batch.qvel.shape) * 0.1
    batch.ctrl[:] = rng.uniform(-0.3, 0.3, batch.ctrl.shape)
    batch.step(60)
    found, many = fl.linearize(model, batch, nthread=1), fl.linearize(model, batch, nthread=2)
    assert np.isfinite(found.switching).all()
    order = rng.permutation(11)
    other = fl.Batch(model, 11, nthread=1)
    for field in ("qpos", "qvel", "ctrl", "act"):
        getattr(other, field)[:] = getattr(batch, field)[order]
    turned = fl.linearize(model, other)
    data = fl.Data(model)
    for a, b, c in ((found.A, many.A, turned.A), (found.B, many.B, turned.B)):
        assert a.tobytes() == b.tobytes() and a[order].tobytes() == c.tobytes()
    for w in (0, 7):
        for field in ("qpos", "qvel", "ctrl", "act"):
            setattr(data, field, getattr(batch, field)[w])
        alone = fl.linearize(model, data)
        assert alone.A.tobytes() == found.A[w].tobytes() and alone.switching == found.switching[w]


def test_a_batch_uses_gaps_and_models_per_world(rng):
    """Memory kept from an earlier call detects a changed model, and worlds with per-world values."""
    model = hard(BOXES)
    batch = fl.Batch(model, 3)
    batch.expand("geom_friction")[:, :, 0] = [[0.2], [0.5], [0.8]]
    batch.qvel[:] = rng.normal(size=batch.qvel.shape)
    batch.step(30)
    first = fl.linearize(model, batch)
    again = fl.linearize(model, batch)
    assert first.A.tobytes() == again.A.tobytes()
    for w, mu in enumerate((0.2, 0.5, 0.8)):
        one = hard(BOXES)
        one.geom_friction[:, 0] = mu
        data = fl.Data(one)
        data.qpos, data.qvel = batch.qpos[w], batch.qvel[w]
        assert fl.linearize(one, data).A.tobytes() == first.A[w].tobytes()
