"""The integrator `discrete`: the step map and its inverse, stiff springs and servos, rows in the metric, parity."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.simulation.step.forward import step
from featherlane.engine.simulation.tile import capacity
from featherlane.engine.simulation.tile.workspace import Workspace
from oracles import smooth

PARITY = 1e-10  # relative: rounding gives 1e-12 here; MuJoCo finds qacc_smooth by iteration if servos couple dofs
UNDONE = 1e-9  # relative: inverse after forward, with the tightest solution
EXACT = 1e-12
EXACT_DIAGONAL = 1 << 5  # the flag diagexact
# every kind of row; springs, dampers and servos on every kind of joint; free bodies with and without contact
SCENE = """
<mujoco><option timestep=".005" cone="{cone}" solver="{solver}" tolerance="0" iterations="100" ls_iterations="100"
  jacobian="dense"/><worldbody><geom type="plane" size="5 5 1" friction=".8 .01 .01"/>
  <body pos="0 0 .5">
    <joint name="a" axis="0 1 0" damping="2" stiffness="30 3 2" range="-100 100"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0">
      <joint name="b" axis="0 1 .2" damping="1 .1" range="-30 30" frictionloss=".3"/>
      <geom type="capsule" size=".05" fromto="0 0 0 .3 .1 0" condim="{condim}"/>
      <body name="tip" pos=".3 .1 0">
        <joint name="ball" type="ball" damping=".1" stiffness="1 .5" range="0 40"/>
        <geom type="box" size=".08 .06 .05" condim="{condim}" solref=".004 1"/>
      </body>
    </body>
  </body>
  <body pos="0 1 .08"><freejoint/><geom type="box" size=".1 .05 .03" condim="{condim}" solref=".02 .2"/></body>
  <body name="held" pos="0 1 .25"><joint name="free" type="free" damping=".1" stiffness="2"/>
    <geom type="sphere" size=".1" pos=".01 0 0" condim="{condim}" solref="-4000 -30"/></body>
  <body pos="1 1 .8"><freejoint/><geom type="box" size=".1 .05 .03"/></body>
</worldbody>
<equality><connect body1="tip" body2="held" anchor=".1 0 0" active="{active}" solref=".01 1"/></equality>
<actuator><position joint="a" kp="80" kv="3"/><velocity joint="b" kv="2"/>
  <position joint="ball" kp="4" kv=".3" gear="1 2 0"/><motor joint="free" gear="1 0 0 0 .1 0"/></actuator></mujoco>
"""
# a spring and a servo with h^2 k / I = 1000, beyond any explicit step, on a pendulum that hits its limit
STIFF = """
<mujoco><option timestep=".01" gravity="0 0 -9.81"/><worldbody><body>
  <joint name="a" axis="0 1 0" stiffness="{spring}" limited="true" range="-180 180"/>
  <geom type="sphere" size=".05" pos=".1 0 0" mass="1"/>
</body></worldbody><actuator><position joint="a" kp="{servo}"/></actuator></mujoco>
"""
# rates of both signs: terms that would not dissipate are dropped one by one
SIGNS = """
<mujoco><option timestep=".01"/><default><geom contype="0" conaffinity="0"/></default><worldbody><body>
  <joint name="a" axis="0 1 0" damping="-.4 .1 .2" stiffness="-3 30 2"/><geom size=".05" fromto="0 0 0 .3 0 0" type="capsule"/>
  <body pos=".3 0 0"><joint name="b" axis="0 1 .2" damping="1 -2" stiffness="3 -30" actuatorfrcrange="-5 5"/>
    <geom size=".05" fromto="0 0 0 .3 .1 0" type="capsule"/>
    <body pos=".3 .1 0"><joint name="c" type="ball" damping=".1" stiffness="1 -5 2"/>
      <geom type="box" size=".08 .06 .05" pos=".05 0 0"/></body></body></body>
</worldbody><actuator>
  <general joint="a" gaintype="affine" gainprm="1 20 3" biastype="affine" biasprm="1 -10 1"/>
  <general joint="b" gainprm="20" biastype="affine" biasprm="0 -20 2" forcerange="-10 10"/>
  <damper joint="b" kv="3" ctrlrange="0 2"/>
  <general joint="c" gear="0 1 1" biastype="affine" biasprm="0 -3 -1" gaintype="affine" gainprm="1 -4 -4"/>
</actuator></mujoco>
"""  # noqa: E501
INPUTS = ("qpos", "qvel", "ctrl", "qacc_warmstart")


def scene(cone="pyramidal", condim=3, solver="Newton", active="true"):
    model = fl.load(SCENE.format(cone=cone, condim=condim, solver=solver, active=active))
    model.opt.integrator = "discrete"
    return model


def states(mj, count, gap=20):
    """Returns states along a motion under random controls; every second one is rotated and lifted a little."""
    data, rng, found = mujoco.MjData(mj), np.random.default_rng(0), []
    for k in range(count):
        for _ in range(gap):
            data.ctrl[:] = rng.uniform(-1, 1, mj.nu)
            mujoco.mj_step(mj, data)
        found.append({name: getattr(data, name).copy() for name in INPUTS})
        if k % 2:
            found[-1]["qvel"][-18:] += 0.3 * rng.standard_normal(18)
    return found


def enter(data, state):
    for name, value in state.items():
        getattr(data, name)[...] = value


# ---- laws -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("spring", "servo"), [(1e5, 0), (0, 1e5)], ids=["spring", "servo"])
@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")  # of implicitfast
def test_stiffness_beyond_every_explicit_step_is_stable(spring, servo):
    model = fl.load(STIFF.format(spring=spring, servo=servo))
    reached = {}
    for integrator in ("implicitfast", "discrete"):
        model.opt.integrator, data = integrator, fl.Data(model)
        data.qpos = 0.3
        fl.step(model, data, 200)
        reached[integrator] = abs(data.qpos[0] - 9.81 * 0.1 / 1e5), data.status["non_finite"]
    assert reached["discrete"][0] < 1e-9  # at rest in the balance of spring and weight
    assert reached["implicitfast"][0] > 1e-3 or reached["implicitfast"][1]


def test_a_spring_is_stepped_by_backward_euler():
    """v' = (v - h w^2 x) / (1 + h^2 w^2), x' = x + h v'."""
    model = fl.load(STIFF.format(spring=50, servo=0))
    model.opt.integrator, model.opt.gravity = "discrete", (0, 0, 0)
    data, h = fl.Data(model), model.opt.timestep
    data.qpos, data.qvel = 0.2, -1.0
    fl.forward(model, data)
    omega2, x, v = 50 / data.M[0], 0.2, -1.0
    for _ in range(20):
        fl.step(model, data)
        v = (v - h * omega2 * x) / (1 + h * h * omega2)
        x += h * v
        np.testing.assert_allclose((data.qpos[0], data.qvel[0]), (x, v), rtol=1e-12, atol=1e-14)


def test_the_acceleration_is_the_change_of_velocity():
    model = scene()
    data = fl.Data(model)
    for _ in range(30):
        velocity = data.qvel.copy()
        fl.step(model, data)
        np.testing.assert_allclose(velocity + model.opt.timestep * data.qacc, data.qvel, rtol=0, atol=1e-13)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_inverse_undoes_the_step(cone):
    model = scene(cone)
    mj, data = model.to_mujoco(), fl.Data(model)
    for state in states(mj, 3):
        enter(data, state)
        fl.forward(model, data)
        kept = data.qfrc_constraint.copy()
        fl.inverse(model, data)
        assert smooth.relative(data.qfrc_inverse, data.qfrc_actuator) < UNDONE
        assert smooth.relative(data.qfrc_constraint, kept) < UNDONE


def test_outputs_belong_to_the_current_state():
    """M and the smooth force are unchanged afterwards, though the solve modifies them."""
    model, shown = scene(), []
    (state,) = states(model.to_mujoco(), 1)
    for integrator in ("euler", "discrete"):
        model.opt.integrator, data = integrator, fl.Data(model)
        enter(data, state)
        fl.forward(model, data)
        shown.append([data.M.copy(), data.qLD.copy(), data.qfrc_smooth.copy()])
    for x, y in zip(*shown, strict=True):
        np.testing.assert_array_equal(x, y)


# ---- MuJoCo ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cone", "condim", "active", "flag", "density"),
    [
        ("pyramidal", 3, "true", 0, 0.0),
        ("elliptic", 6, "false", 0, 0.0),
        ("pyramidal", 4, "false", EXACT_DIAGONAL, 0.0),
        ("pyramidal", 4, "false", EXACT_DIAGONAL, 300.0),
        ("elliptic", 3, "true", 0, 300.0),
    ],
)
def test_rows_and_steps_equal_mujoco(cone, condim, active, flag, density):
    model = scene(cone, condim, active=active)
    model.opt.enableflags, model.opt.density = flag, density
    mj = model.to_mujoco()
    data, other, rows = fl.Data(model), mujoco.MjData(mj), 0
    for state in states(mj, 6):
        enter(data, state)
        enter(other, state)
        fl.forward(model, data)
        mujoco.mj_forward(mj, other)
        rows += other.nefc
        for name in ("qacc_smooth", "efc_D", "efc_aref", "qacc", "qfrc_constraint"):
            assert smooth.relative(getattr(data, name), getattr(other, name)) < PARITY, name
        fl.step(model, data)
        mujoco.mj_step(mj, other)
        assert smooth.relative(data.qvel, other.qvel) < PARITY
        assert smooth.relative(data.qpos, other.qpos) < PARITY
    assert rows > 60


@pytest.mark.parametrize("disabled", [0, 1 << 5, 1 << 6, 1 << 11], ids=["all", "no spring", "no damper", "no servo"])
def test_non_dissipative_derivatives_are_omitted(rng, disabled):
    model = fl.load(SIGNS)
    model.opt.integrator, model.opt.disableflags = "discrete", disabled
    mj = model.to_mujoco()
    data, other = fl.Data(model), mujoco.MjData(mj)
    last = model.M_rowadr + model.M_rownnz - 1
    for _ in range(20):
        state = smooth.random_state(model, rng)
        state["qvel"], state["ctrl"] = 2 * state["qvel"], 2 * rng.standard_normal(model.nu)
        enter(data, state)
        enter(other, state)
        fl.forward(model, data)
        mujoco.mj_forward(mj, other)
        np.testing.assert_allclose(data.Mhat[last] - data.M[last], other.efm_sdiag, rtol=0, atol=EXACT)
        assert smooth.relative(data.qacc, other.qacc) < PARITY


@pytest.mark.parametrize("refsafe", [True, False])
def test_references_of_every_form_equal_mujoco(refsafe):
    """Covers springs that the step does and does not resolve, direct ones (negative solref), and impedances near 1."""
    forms = [(".02 1", ".9 .95 .001"), (".004 .5", ".9 .95 .001"), (".0102 1", ".5 .6 .01"), ("-9000 -10", ".5 .6 .01")]
    forms += [("-20000 0", ".9 .95 .001"), (".0004 1", ".99 .9999 .001"), (".02 -1", ".9 .95 .001")]
    forms += [(".002 2", ".9995 .9995 .001"), (".002 1", ".9997 .9997 .001")]
    for solref, solimp in forms:
        text = SCENE.format(cone="elliptic", condim=3, solver="Newton", active="true").replace(
            'jacobian="dense"/>', f'jacobian="dense"/><default><geom solref="{solref}" solimp="{solimp}"/>'
            f'<joint solreflimit="{solref}" solimplimit="{solimp}" solreffriction="{solref}"/></default>'
        )  # fmt: skip
        model = fl.load(text)
        model.opt.integrator, model.opt.timestep = "discrete", 0.01
        model.opt.disableflags = 0 if refsafe else 1 << 12
        mj = model.to_mujoco()
        data, other = fl.Data(model), mujoco.MjData(mj)
        state = {"qpos": mj.qpos0.copy(), "qvel": np.linspace(-1, 1, mj.nv)}
        state["qpos"][:2] = 1.8, -0.7
        state["qpos"][8] = 0.02
        enter(data, state)
        enter(other, state)
        fl.forward(model, data)
        mujoco.mj_forward(mj, other)
        assert other.nefc > 5
        for name in ("efc_D", "efc_aref", "efc_KBIP", "efc_diagA"):
            assert smooth.relative(getattr(data, name), getattr(other, name)) < 1e-11, (solref, solimp, name)


# ---- tiles and refusals ---------------------------------------------------------------------------------------------
def test_a_world_is_bitwise_equal_in_any_batch():
    model = scene()
    met = states(model.to_mujoco(), 8)
    tile, alone = Workspace(model, 8), Workspace(model, 1)
    for k, state in enumerate(met):
        smooth.fill(tile, k, **state)
    tile.run(step)
    for k, state in enumerate(met):
        alone.reset()
        smooth.fill(alone, 0, **state)
        alone.run(step)
        for name in ("qpos", "qvel", "qacc"):
            assert alone.arrays[name][:, 0].tobytes() == tile.arrays[name][:, k].tobytes(), name


def together(model, qpos, qvel, nstep):
    """Returns the contact slots that eight worlds need together, step by step."""
    tile, found = Workspace(model, 8), []
    tile.view("qpos")[...], tile.view("qvel")[...] = qpos.T, qvel.T
    for _ in range(nstep):
        tile.run(step)
        found.append(int(tile.view("ncon_slot")[0]))
    return np.array(found)


def test_a_split_tile_marks_touched_bodies(monkeypatch):
    """Free bodies in the air rotate with gyroscopic derivatives, those on the ground without, in every sub-batch."""
    body = '<body pos="{} 0 .06"><freejoint/><geom type="box" size=".1 .05 .03"/></body>'
    bodies = "".join(body.format(k) for k in range(3))
    model = fl.load(f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>')
    model.opt.integrator, rng = "discrete", np.random.default_rng(4)
    start = np.tile(model.qpos0, (16, 1))
    start[:, [2, 9, 16]] += rng.uniform(-0.04, 0.2, (16, 3))
    spin, results = 5 * rng.standard_normal((16, model.nv)), []
    slots = together(model, start[:8], spin[:8], 10)
    for split in (False, True):
        if split:
            limit = int(results[0]["ncon"].max())
            assert slots.max() > limit  # together eight worlds have more
            monkeypatch.setattr(capacity, "CONTACT_LIMIT", limit)
        batch = fl.Batch(model, 16, nthread=1)
        batch.qpos, batch.qvel = start, spin
        results.append(batch.rollout(10, record=("qvel", "qacc", "ncon")))
    roomy, tight = results
    for name in roomy:
        assert roomy[name].tobytes() == tight[name].tobytes(), name


def test_the_metric_has_actuators_on_simple_bodies(rng):
    """M stores a simple body as its diagonal; an actuator on several of its dofs couples them."""
    model = fl.load(smooth.XML)
    model.opt.integrator, model.opt.tolerance, model.opt.iterations = "discrete", 0.0, 200
    data, oracle = fl.Data(model), model.to_mujoco()
    reference = mujoco.MjData(oracle)
    for _ in range(4):
        state = smooth.random_state(model, rng)
        for field, value in state.items():
            setattr(data, field, value)
            getattr(reference, field)[:] = value
        fl.forward(model, data)
        mujoco.mj_forward(oracle, reference)
        np.testing.assert_allclose(data.qacc, reference.qacc, rtol=1e-9, atol=1e-9)
