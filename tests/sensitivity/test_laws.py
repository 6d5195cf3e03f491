"""Force laws that have hand-written derivatives: `jvp` of the force, or of the cost, is the oracle.

Kernels run uncompiled, on many worlds at once.  con_y is a dictionary here: the values of contact 0 along its basis,
and along its turns.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.dynamics.actuator import rate
from featherlane.engine.dynamics.actuator.dcmotor import mechanical_force
from featherlane.engine.dynamics.actuator.gain import gain_force
from featherlane.engine.dynamics.body import force_laws
from featherlane.engine.dynamics.passive import fluid, fluid_derivative
from featherlane.engine.lanes import jvp, kernel, seed, split_tangents
from featherlane.engine.lanes.record import python_record
from featherlane.engine.lanes.values import Row
from featherlane.engine.model.enums import BIAS_DCMOTOR
from featherlane.engine.simulation.world.data import ready
from featherlane.engine.solver.rows import cone, coulomb, laws, pyramid
from featherlane.engine.solver.rows.rows import ANGULAR
from featherlane.engine.spatial.types import Vec3
from featherlane.engine.spatial.vector import norm3
from scenes import actuators, fluids

N = 2000  # worlds
CLOSE = 1e-13  # relative to the largest term: a rounding error for each of about 20 operations, with cancellation
BASIS = [(0, 0), (0, 1), (0, 2), ((ANGULAR, 0), 0), ((ANGULAR, 0), 1), ((ANGULAR, 0), 2)]  # n, t_1, t_2, axes
UNITS = [Vec3(*(1.0 if i == j else 0.0 for j in range(3))) for i in range(3)]


def values(x):
    return np.asarray(x, float).view(Row)


def sample(rng):
    """Returns con_y of a contact of dimension 6, near and far from the borders of the cone's zones."""
    y = {0: rng.normal(size=(3, N)), (ANGULAR, 0): rng.normal(size=(3, N))}
    y[0][0] *= rng.choice([0.1, 1.0, 5.0], N)
    return {k: Vec3(*map(values, v)) for k, v in y.items()}


@pytest.fixture
def contact(rng):
    """Returns a record with one contact of dimension 6, its y and a direction z."""
    D, mu = rng.uniform(0.5, 2.0, (2, N))
    fields = {"D": values(D), "Dt": values(D / mu**2), "slip": values(D / (1.0 + mu**2)), "dim": 6}
    d = SimpleNamespace(contact=[SimpleNamespace(**fields)], **{f"con_{k}": [x] for k, x in fields.items()})
    d.primal = SimpleNamespace(con_y=sample(rng), con_z=sample(rng))
    return d


def seeded(y, z):
    """Returns con_y with the tangent z."""
    return {k: seed(y[k], z[k]) for k in y}


def dots(x, y):
    """Returns the product of two vectors over the friction directions."""
    return sum(x[k][i] * y[k][i] for k, i in BASIS[1:])


def forces(law, d, y):
    """Returns the forces of a cone law along all directions, and the cost."""
    normal, s, cost = law(d, 0, y)
    return [normal, *(s * y[k][i] for k, i in BASIS[1:])], cost


def weighted(weights, y, z):
    """Returns W z with the weights ((w, e, q, b), 1 / T) of `convex_weights`."""
    (w, e, q, b), inverse_T = weights
    t = {k: inverse_T * y[k] for k in y}
    along = dots(t, z)
    normal = w * z[0][0] - e * along
    return [normal, *(q * along * t[k][i] - e * z[0][0] * t[k][i] + b * z[k][i] for k, i in BASIS[1:])]


def records(model, data):
    """Returns the records (m, d) of a world, for uncompiled kernels, after a forward pass."""
    fl.forward(model, data)
    workspace = ready(model, data).workspace
    return python_record(workspace.rows.record), python_record(workspace.record)


def close(found, expected):
    """Asserts that two vectors agree."""
    found, expected = (np.array([x + np.zeros(N) for x in y]) for y in (found, expected))
    scale = 1.0 + np.abs(expected).max(axis=0)
    assert (np.abs(found - expected) / scale).max() < CLOSE


# ---- contacts --------------------------------------------------------------------------------------------------------
def test_force_of_the_elliptic_cone_is_minus_the_derivative_of_its_cost(contact):
    d, y = contact, contact.primal.con_y
    f, _ = forces(cone.convex_cone_force, d, y)
    for n, (k, i) in enumerate(BASIS):
        unit = {key: Vec3(*(1.0 if (key, j) == (k, i) else 0.0 for j in range(3))) for key in y}
        _, slope = split_tangents(cone.convex_cone_force(d, 0, seeded(y, unit))[2], 1)
        close([-slope], [f[n]])


def test_hessian_of_the_elliptic_cone_is_the_derivative_of_its_force(contact):
    d, y, z = contact, contact.primal.con_y, contact.primal.con_z
    _, df = split_tangents(tuple(forces(cone.convex_cone_force, d, seeded(y, z))[0]), 1)
    close(weighted(cone.convex_weights(d, 0), y, z), [-x for x in df])


def test_hessian_of_coulombs_law_and_its_slip_rate_are_the_derivative_of_its_force(contact):
    d, y, z = contact, contact.primal.con_y, contact.primal.con_z
    _, df = split_tangents(tuple(forces(coulomb.coulomb_force, d, seeded(y, z))[0]), 1)
    _, rate = coulomb.slip_rate(d, 0)
    found = weighted(coulomb.coulomb_weights(d, 0), y, z)
    moved = [found[0], *(x - rate * z[0][0] * y[k][i] for x, (k, i) in zip(found[1:], BASIS[1:], strict=True))]
    close(moved, [-x for x in df])


@pytest.mark.parametrize("name", ["convex_slope", "tresca_slope", "model_slope"])
def test_second_derivative_along_a_line_is_that_of_the_first(contact, rng, name):
    d = contact
    d.coulomb = SimpleNamespace(zone=sample(rng))
    slope = getattr(cone if name == "convex_slope" else coulomb, name)
    a = values(rng.uniform(-1.0, 1.0, N))
    (_, h), (dg, _) = split_tangents(slope(d, 0, seed(a, 1.0), 0.0, 0.0), 1)
    across = d.primal.con_z
    # |t . v| of the linear model's slip direction t may exceed |v| in a sample; the solver's t has length 1
    square = dots(across, across) - dots(d.coulomb.zone, across) ** 2
    inside = (square > 0.0) | (name != "model_slope")
    close([np.where(inside, h, 0.0)], [np.where(inside, dg, 0.0)])


def test_slope_of_the_elliptic_cone_is_the_derivative_of_its_cost(contact, rng):
    d, y, z = contact, contact.primal.con_y, contact.primal.con_z
    a = values(rng.uniform(-1.0, 1.0, N))
    moved = {k: y[k] + a * z[k] for k in y}
    _, slope = split_tangents(cone.convex_cone_force(d, 0, seeded(moved, z))[2], 1)
    close([cone.convex_slope(d, 0, a, 0.0, 0.0)[0]], [slope])


def test_force_of_the_pyramid_is_minus_the_derivative_of_its_cost(contact):
    D, y = contact.con_D[0], contact.primal.con_y[0]
    f, _ = pyramid.pyramid_force(D, y)
    g, m, _ = pyramid.edge_pair_force(D, y[0], y[1])
    for i, unit in enumerate(UNITS):
        moved = seed(y, unit)
        close([-split_tangents(pyramid.pyramid_force(D, moved)[1], 1)[1]], [f[i]])
        if i < 2:
            close([-split_tangents(pyramid.edge_pair_force(D, moved[0], moved[1])[2], 1)[1]], [(g, m)[i]])
    force, _ = laws.one_sided_force(D, y[0])
    close([-split_tangents(laws.one_sided_force(D, seed(y[0], 1.0))[1], 1)[1]], [force])


# ---- springs and dampers ---------------------------------------------------------------------------------------------
@pytest.fixture
def coefficients(rng):
    return tuple(map(values, rng.normal(size=(3, N))))


def test_rates_of_implicit_integrators_are_derivatives_of_springs_and_dampers(coefficients, rng):
    x = values(rng.normal(size=N))
    _, spring = split_tangents(force_laws.spring_law(coefficients, seed(x, 1.0)), 1)
    _, damper = split_tangents(force_laws.damper_law(coefficients, seed(x, 1.0)), 1)
    close([force_laws.implicit_rate(coefficients, x)], [-spring])
    close([force_laws.implicit_rate(coefficients, abs(x))], [-damper])


def test_force_of_a_spring_is_minus_the_derivative_of_its_energy(coefficients, rng):
    x, dx = (Vec3(*map(values, rng.normal(size=(3, N)))) for _ in range(2))
    _, slope = split_tangents(force_laws.spring_energy(coefficients, seed(x[0], 1.0)), 1)
    close([force_laws.spring_law(coefficients, x[0])], [-slope])
    _, slope = split_tangents(force_laws.spring_energy(coefficients, norm3(seed(x, dx))), 1)
    force = force_laws.vector_spring_law(coefficients, x)
    close([force.x * dx.x + force.y * dx.y + force.z * dx.z], [-slope])


# ---- fluids ----------------------------------------------------------------------------------------------------------
def test_rates_of_fluid_forces_are_derivatives_of_the_forces(rng):
    model = fl.load(fluids.scene("water", "Euler", fluids.ELLIPSOIDS))
    m, _ = records(model, fl.Data(model))
    shapes = [g for g in range(model.ngeom) if m.geom_fluid[g].scale.item() > 0.0]
    for g in shapes:
        w, u = (Vec3(*map(values, rng.normal(size=(3, 1)))) for _ in range(2))
        r = fluid.semi_axes(m, g)
        lift = fluid_derivative._lift_rates(m, None, g, r, w, u)
        torque, drag = fluid_derivative._torque_rate(m, g, r, w), fluid_derivative._drag_rate(m, g, r, u)
        by_w, by_u = (torque + lift[0], lift[2]), (lift[1], drag + lift[3])
        for k, unit in enumerate(UNITS):
            for rates, law in (
                (by_w, fluid._ellipsoid_force(m, g, seed(w, unit), u)),
                (by_u, fluid._ellipsoid_force(m, g, w, seed(u, unit))),
            ):
                _, slopes = split_tangents(law, 1)
                found, expected = (
                    np.array([float(np.ravel(part)[0]) for x in y for part in x]) for y in (columns(rates, k), slopes)
                )
                np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE * (1.0 + np.abs(expected).max()))
    assert shapes


def columns(rates, k):
    """Returns column k of each matrix."""
    return [A.columns[k] for A in rates]


def test_rates_of_boxes_in_a_fluid_are_derivatives_of_their_resistance(rng):
    m = SimpleNamespace(opt_viscosity=[0.3], opt_density=[800.0])
    box, w, u, dw, du = (Vec3(*map(values, rng.uniform(-1.0, 1.0, (3, N)))) for _ in range(5))
    found = fluid_derivative._box_rates(m, box, w, u)
    for slope, viscous, drag, v, dv in zip(
        found, fluid.box_resistance(m, box), fluid.box_drag(m, box), (w, u), (dw, du), strict=True
    ):
        _, slopes = split_tangents(fluid._resistance(viscous, drag, seed(v, dv)), 1)
        close([slope[i] * dv[i] for i in range(3)], list(slopes))


# ---- actuators -------------------------------------------------------------------------------------------------------
# others have terms that MuJoCo's slopes omit: bounds of voltage and current, the change of act_dot
KINDS = ("motor", "position", "affine", "integrator", "filter", "filterexact", "damper", "cylinder", "pid-velocity")
KINDS += ("muscle", "muscle-scaled", "muscle-static", "muscle-gain", "muscle-bias")
KINDS += ("dcmotor", "dcmotor-hot", "dcmotor-servo", "dcmotor-hot-servo")


@kernel
def whole_force(m, d, i):
    """Returns the force of actuator i before any limit, with the cogging of a motor."""
    force = gain_force(m, d, i)
    return force + (mechanical_force(m, d, i) if m.actuator_biastype[i] == BIAS_DCMOTOR else 0.0)


def test_slopes_of_actuators_are_derivatives_of_their_forces(rng):
    by_length_and_velocity = jvp(whole_force, "actuator_length", "actuator_velocity")
    joint = 'joint="hinge" gear="0.8"'
    model = fl.load(actuators.scene("".join(actuators.ACTUATORS[kind].format(j=joint) for kind in KINDS)))
    for _ in range(5):
        data = fl.Data(model)
        data.qpos, data.qvel = model.qpos0 + 0.3 * rng.normal(size=model.nq), 0.5 * rng.normal(size=model.nv)
        data.ctrl, data.act = 0.5 * rng.uniform(size=model.nu), 0.5 * rng.uniform(size=model.na)
        m, d = records(model, data)
        for i, kind in enumerate(KINDS):
            _, by_length, by_velocity = by_length_and_velocity(m, d, i)
            pairs = zip(rate._slopes(m, d, i), (by_length, by_velocity), strict=True)
            found, expected = np.array([[float(np.ravel(x)[0]) for x in pair] for pair in pairs]).T
            np.testing.assert_allclose(found, expected, rtol=CLOSE, atol=CLOSE, err_msg=kind)
