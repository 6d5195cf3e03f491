"""Hard contact problems: the state stays finite, and a step either solves its equations or is counted."""

import math

import numpy as np
import pytest

import featherlane as fl

# every contact model with each of its solvers
VARIANTS = {
    "convex newton": {"solver": "newton"},
    "convex cg": {"solver": "cg"},
    "convex pgs": {"solver": "pgs"},
    "coulomb": {"contact_model": "coulomb"},
    "lcp dantzig consistent": {"contact_model": "lcp", "lcp_friction": "consistent"},
    **{f"lcp {s}": {"contact_model": "lcp", "lcp_solver": s} for s in "dantzig pgs apgd".split()},
}
HALF, TIP, MU = 0.5, 0.01, 2.0  # half length and radius of the end [m], friction
STEPS = 100
FAST = 1e3  # [m/s, rad/s] far above the speeds of the scenes, far below an explosion
# of the LCP: a step with a larger residual must be counted (`lcp_tolerance` is 1e-8, that of the exact solvers 1e-10)
RESIDUAL = 1e-7


def painleve(angle: float) -> str:
    """Returns a slender rod whose lower end touches the floor at an angle [rad]."""
    s, c = math.sin(angle), math.cos(angle)
    assert 1.0 + 3.0 * c * c - 3.0 * MU * s * c < 0.0  # a normal force presses the sliding end deeper
    inertia = HALF**2 / 3.0
    return f"""<mujoco><option timestep="0.001" cone="elliptic"/><worldbody>
      <geom type="plane" size="9 9 1" friction="{MU} 0 0"/><body pos="0 0 {HALF * s + TIP}">
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 -1 0"/>
        <inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/>
        <geom type="sphere" size="{TIP}" pos="{-HALF * c} 0 {-HALF * s}" friction="{MU} 0 0"/>
      </body></worldbody></mujoco>"""


# a body that two rigid constraints hold in two places
CONTRADICTION = """<mujoco><option timestep="0.002"/><worldbody>
  <body name="a" pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody>
<equality><connect body1="a" anchor="0 0 0"/><connect body1="a" anchor="0 0 0"/></equality></mujoco>"""
# a box between two walls that are closer to each other than its size
JAMMED = """<mujoco><option timestep="0.002"/><worldbody>
  <geom type="box" size=".1 1 1" pos="-.19 0 0"/><geom type="box" size=".1 1 1" pos=".19 0 0"/>
  <body><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


def stepped(model, options, prepare, dtype="float64"):
    """Steps a batch of one world; checks after each step that it is finite, and solved or counted."""
    for name, value in options.items():
        setattr(model.opt, name, value)
    batch = fl.Batch(model, 1, dtype=dtype)
    prepare(batch)
    counted = 0
    for _ in range(STEPS):
        batch.step()
        now = int(batch.status["not_converged"][0])
        assert np.isfinite(batch.qpos).all() and np.abs(batch.qvel).max() < FAST
        if model.opt.contact_model == "lcp" and dtype == "float64":
            assert now > counted or batch.solver_residual[0] <= RESIDUAL
        counted = now
    assert batch.status["non_finite"][0] == 0 and batch.nreset[0] == 0
    return batch, counted


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_paradox_of_painleve_ends_with_a_status_and_a_finite_state(variant, dtype):
    def slide(batch):
        batch.qvel[0] = [-3.0, 0.0, 0.0]

    _, counted = stepped(fl.load(painleve(math.radians(50.0))), VARIANTS[variant], slide, dtype)
    if variant == "coulomb":
        assert counted == 0  # the end stops: a step has a solution for every friction coefficient


@pytest.mark.parametrize("variant", ["convex newton", "coulomb", "lcp dantzig"])
def test_error_controlled_integration_of_the_paradox_ends(variant):
    model = fl.load(painleve(math.radians(50.0)))
    for name, value in VARIANTS[variant].items():
        setattr(model.opt, name, value)
    data = fl.Data(model)
    data.qvel[0] = -3.0
    result = fl.integrate(model, data, until=0.05, accuracy=1e-2, min_step=1e-4)
    assert result.status in (fl.results.IntegrationStatus.REACHED, fl.results.IntegrationStatus.FORCED)
    assert data.time == 0.05 and np.isfinite(data.qpos).all() and np.abs(data.qvel).max() < FAST


@pytest.mark.parametrize("variant", VARIANTS)
def test_contradicting_constraints_end_with_a_status_and_a_finite_state(variant):
    model = fl.load(CONTRADICTION)
    model.eq_data[1, 3:6] = [0.3, 0.0, 1.0]  # 0.3 m from the first anchor
    model.opt.cfm = 0.0
    _, counted = stepped(model, VARIANTS[variant], lambda batch: None)
    if variant.startswith("lcp"):
        assert counted > 0  # no force satisfies both


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_jammed_box_ends_with_a_status_and_a_finite_state(variant):
    stepped(fl.load(JAMMED), VARIANTS[variant], lambda batch: None)


@pytest.mark.filterwarnings("ignore::featherlane.NonFiniteWarning")
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name.startswith("lcp")])
def test_a_jammed_box_without_cfm_is_counted(variant):
    """The rigid contacts contradict each other, so forces may grow without limit, and the world may be reset."""
    model = fl.load(JAMMED)
    model.opt.cfm = 0.0
    for name, value in VARIANTS[variant].items():
        setattr(model.opt, name, value)
    batch = fl.Batch(model, 1)
    for _ in range(STEPS):
        batch.step()
        assert np.isfinite(batch.qpos).all() and np.isfinite(batch.qvel).all()
    assert batch.status["not_converged"][0] > 0 and batch.nreset[0] == batch.status["non_finite"][0]
