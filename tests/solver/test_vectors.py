"""Joint-space vectors: clear, copy, replace in some worlds, dot product."""

import numpy as np

from featherlane.engine.solver.vectors import clear_vector, copy_vector, dot_product, replace_vector
from oracles import uncompiled
from oracles.uncompiled import call

NV, WORLDS = 3, 2


def test_vectors_are_cleared_copied_replaced_and_multiplied(rng):
    # one number more than nv, which must not change
    x, y = rng.normal(size=(NV + 1, WORLDS)), rng.normal(size=(NV + 1, WORLDS))
    m = uncompiled.record(1, nv=NV)
    r = uncompiled.record(WORLDS, x=x.copy(), y=y.copy(), z=y.copy(), out=y.copy())
    np.testing.assert_allclose(call(dot_product, m, r.x, r.y), (x[:NV] * y[:NV]).sum(axis=0), rtol=1e-14)
    call(copy_vector, m, r.x, r.out)
    call(replace_vector, m, np.array([True, False]), r.x, r.y)
    call(clear_vector, m, r.z)
    np.testing.assert_array_equal(r.out.array, [*x[:NV], y[NV]])
    np.testing.assert_array_equal(r.y.array[:NV, 0], x[:NV, 0])
    np.testing.assert_array_equal(r.y.array[:, 1], y[:, 1])
    np.testing.assert_array_equal(r.z.array, [*np.zeros((NV, WORLDS)), y[NV]])
