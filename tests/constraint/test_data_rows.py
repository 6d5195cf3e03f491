"""`data.efc_*`: compiled rows of one world equal naive ones, and are copies."""

import numpy as np
import pytest

import featherlane as fl
from featherlane.engine.model.bundle import resolve_name
from oracles.efc import efc
from scenes.constraints import CONTACTS, JOINTS

COLUMNS = "J type id pos margin frictionloss diagA KBIP D R vel aref force state".split()
COMPILED = 1e-11  # sums with and without FMA, and 1 / (1 - impedance) at 0.9999


@pytest.mark.parametrize("solver", ["Newton", "PGS", "noslip"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("source", ["humanoid", "hand", "stacks", JOINTS, CONTACTS])
def test_rows_of_a_data_equal_the_naive_ones(source, cone, solver):
    model = fl.load(resolve_name(source))
    model.opt.cone, model.opt.solver = cone, "PGS" if solver == "PGS" else "Newton"
    model.opt.noslip_iterations = 3 if solver == "noslip" else 0
    data = fl.Data(model)
    for _ in range(2):
        fl.step(model, data, 40)
        data.forward()
        rows = efc(model, data.workspace.arrays)
        for name in COLUMNS:
            found, expected = getattr(data, f"efc_{name}"), getattr(rows, name)
            assert found.shape == expected.shape and found.dtype == expected.dtype
            np.testing.assert_allclose(
                found, expected, rtol=COMPILED, atol=COMPILED * max(1.0, np.abs(expected).max(initial=0))
            )
        assert (data.nefc, data.ne, data.nf, data.nl) == (rows.nefc, rows.ne, rows.nf, rows.nl)
        np.testing.assert_array_equal(data.contact.efc_address, rows.contact_efc_address)
        np.testing.assert_array_equal(data.contact_slots(), rows.contact_slot)


def test_arrays_of_rows_are_copies():
    model = fl.bundled("humanoid")
    data = fl.Data(model)
    fl.step(model, data, 100)
    first = data.efc_J
    with pytest.raises(ValueError, match="read-only"):
        first[...] = 7.0
    assert first is not data.efc_J and data.efc_force is not data.efc_force
