"""The Krylov method for Newton directions under the contact model coulomb.

`test_coulomb.py` checks its results: a direction that it does not solve accurately leaves a larger residual.
"""

import numpy as np

import featherlane as fl
from featherlane.engine.solver.primal.krylov import VECTORS


def test_the_vectors_fit_their_fields():
    assert fl.Data.layout["krylov.p"].shape == fl.Data.layout["krylov.q"].shape == (VECTORS, "nv")


def test_a_sliding_body_converges_in_a_few_iterations():
    """Newton's method converges superlinearly only with accurate directions."""
    model = fl.load("""<mujoco><worldbody><geom type="plane" size="9 9 .1"/>
        <body pos="0 0 .0999"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>""")
    model.opt.contact_model = "coulomb"
    data = fl.Data(model)
    data.qvel[:2] = 1.0, 0.3
    iterations = []
    for _ in range(30):
        fl.step(model, data)
        iterations.append(int(data.solver_niter))
    assert np.median(iterations) <= 5 and not data.status["not_converged"]
