"""Derivatives by formulas equal those of the general path, the differenced residual, on all kinds of forces.

The models are random trees (fuzz/trees.py): their joints, contacts, tendons, actuators and equalities differ from seed
to seed.  Formulas run in two paths: `DirectWorlds` for a world or a batch, `ImplicitWorlds` for fields that differ by
world.
"""

from __future__ import annotations

import numpy as np
import pytest

import featherlane as fl
from featherlane.tools.sensitivity.systems.convex import CONVEX_STAGES
from featherlane.tools.sensitivity.systems.served import serves
from featherlane.tools.sensitivity.worlds.direct_worlds import direct_rates
from featherlane.tools.sensitivity.worlds.implicit_worlds import ImplicitWorlds
from fuzz.derivatives import LIGHT, build, copies, state

# relative error of residuals that are differenced over 2e-7; Coulomb's friction is stiff
GENERAL = {"convex": 2e-5, "coulomb": 5e-4}
AWAY = 1e-2  # distance from switches
CASES = 24


def general(model, data) -> np.ndarray | None:
    """Returns (A, B) without formulas; None if implicit differentiation does not apply."""
    worlds = ImplicitWorlds(model, data, CONVEX_STAGES, False, 1, 0, by_formulas=False)
    worlds.load(data)
    out, _, _, left = worlds.rates()
    return None if len(left) else out[0].T


def jumps(model, data) -> bool:
    """Returns whether the step is discontinuous at the state, as where a tendon leaves its wrapping geom."""
    near, far = (fl.linearize(model, data, method="finite_difference", eps=eps).A for eps in (1e-7, 1e-6))
    return not np.abs(near - far).max() < 1e-2 * np.abs(far).max()


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")  # some trees are unstable
@pytest.mark.parametrize("contact_model", ["convex", "coulomb"])
@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "implicit"])
def test_all_paths_agree_on_random_trees(integrator, contact_model):
    compared = 0
    for case in range(CASES):
        tree, rng = build(1000, case)
        tree.options |= {"integrator": integrator, "contact_model": contact_model, "noslip_iterations": 0}
        tree.options |= {"tolerance": 1e-14 if contact_model == "coulomb" else 0.0}
        try:
            model = tree.load()
            data = state(model, rng)
            found = fl.linearize(model, data)
        except (fl.ModelError, fl.UnsupportedFeatureError):
            continue
        far = found.switching > AWAY and model.dof_invweight0.max() < LIGHT
        if not serves(model) or not far or data.status["non_finite"]:
            continue
        values, batch = np.concatenate([found.A, found.B], 1), copies(model, data, 2)
        batch.expand("geom_friction")
        assert fl.linearize(model, batch).A[0].tobytes() == found.A.tobytes()
        direct = direct_rates(model, data, CONVEX_STAGES.whole, False, 1, 0)
        assert direct is None or direct[0].tobytes() == found.A.tobytes()
        other = general(model, data)
        if other is None or jumps(model, data):
            continue
        scale = np.maximum(np.abs(other).max(0), 1e-3 * np.abs(other).max())
        assert (np.abs(values - other).max(0) < GENERAL[contact_model] * scale).all(), f"case {case}"
        compared += 1
    assert compared > CASES // 5
