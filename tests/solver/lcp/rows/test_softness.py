"""ERP and CFM: ODE's spring and damper, and those of MuJoCo's soft row."""

from types import SimpleNamespace

import numpy as np
import pytest

from featherlane.engine.constraint.impedance import impedance, reference
from featherlane.engine.model.enums import BY_ERP, BY_SOLREF
from featherlane.engine.solver.lcp.rows import softness

H = 0.004
SOLIMP = (0.9, 0.95, 0.01, 0.5, 2.0)


def model(way):
    return SimpleNamespace(
        opt_softness=way, opt_timestep=[np.float64(H)], opt_erp=[np.float64(0.2)], opt_cfm=[np.float64(1e-6)],
        opt_disableflags=0, opt_integrator=0, shape=(), dtype=np.dtype(np.float64), width=1,
    )  # fmt: skip


def test_an_own_parameter_applies_if_it_is_not_negative():
    own = softness.own_or_model_value(np.array([-1.0, 0.0, 0.7]), np.float64(0.2))
    assert own.tolist() == [0.2, 0.0, 0.7]


def test_parameters_come_from_the_row_or_the_model():
    m = model(BY_ERP)
    for erp, cfm, expected in ((-1.0, -1.0, (0.2, 1e-6)), (0.5, -1.0, (0.5, 1e-6)), (-1.0, 0.0, (0.2, 0.0))):
        assert softness.softness(m, np.float64(erp), np.float64(cfm), (0.02, 1.0), SOLIMP, 0.0, 1.0) == expected
    assert softness.loss_cfm(m, (0.02, 1.0), SOLIMP, 9.0) == 1e-6


@pytest.mark.parametrize("solref", [(0.02, 1.0), (0.05, 0.4), (-800.0, -30.0)])
@pytest.mark.parametrize("r", [-0.003, 0.02])
def test_solref_gives_the_spring_and_the_damper_of_mujocos_row(solref, r):
    """x = -(B v + K d r) / R at the end of the step: J v' + cfm x = -erp / h r holds for any v'."""
    R, solref = 0.3, tuple(map(np.float64, solref))
    erp, cfm = softness.softness_of_reference(model(BY_SOLREF), solref, SOLIMP, r, R)
    K, B = reference(solref, SOLIMP, 2 * H)
    d = impedance(SOLIMP, r)
    for v in (-1.0, 0.0, 0.4):
        x = -(B * v + K * d * (r + H * v)) / R
        np.testing.assert_allclose(v + cfm * x, -erp / H * r)
    # ODE manual: spring k = erp / (h cfm), damper (1 - erp) / cfm
    np.testing.assert_allclose([erp / (H * cfm), (1 - erp) / cfm], [K * d / R, B / R])


def test_rows_by_solref_have_r_from_their_inertia():
    m, solref = model(BY_SOLREF), (np.float64(0.02), np.float64(1.0))
    found = softness.softness(m, 0.5, 0.5, solref, SOLIMP, 0.001, np.float64(4.0))
    assert found == softness.softness_of_reference(m, solref, SOLIMP, 0.001, 0.25)
    _, B = reference(solref, SOLIMP, 2 * H)
    np.testing.assert_allclose(softness.loss_cfm(m, solref, SOLIMP, np.float64(4.0)), 1.0 / (4.0 * B))
    assert np.isfinite(softness.softness(m, 0.5, 0.5, solref, SOLIMP, 0.001, np.float64(0.0))).all()
