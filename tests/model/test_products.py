"""Values computed when a model is loaded are identical on every processor."""

import ast
from pathlib import Path

import numpy as np
import pytest

from featherlane.engine import model as models
from featherlane.engine.model.ordered_sums import cholesky, heights_along, matrix_product, turned_back
from oracles.naive import rotation

FOLDER = Path(models.__file__).parent
MODULES = sorted(FOLDER.rglob("*.py"))
PRODUCTS = {"dot", "matmul", "inner", "vdot", "tensordot", "vecdot", "matvec"}  # NumPy products that BLAS computes


def products(source: str) -> list[int]:
    """Returns lines with a matrix product."""
    return sorted(
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(getattr(node, "op", None), ast.MatMult)
        or (isinstance(node, ast.Attribute) and node.attr in PRODUCTS)
    )


def test_no_stored_value_comes_from_a_blas_product(subtests):
    for path in MODULES:
        with subtests.test(path=str(path)):
            assert not products(path.read_text())


def test_products_are_found():
    assert products("a = 1\nb = R @ x\nR @= S\nnp.dot(R, x)\nR.dot(x)\nx * y") == [2, 3, 4, 5]


def test_heights_are_sums_from_the_first_coordinate_to_the_last(rng):
    points, directions = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    for i, p in enumerate(points):
        for j, u in enumerate(directions):
            assert heights_along(points, directions)[i, j] == (p[0] * u[0] + p[1] * u[1]) + p[2] * u[2]


def test_inverse_rotation_is_the_transpose_times_a_vector(rng):
    R, x = rotation(np.array([0.6, 0.0, 0.8]), 0.7), rng.normal(size=3)
    np.testing.assert_allclose(turned_back(R, x), R.T @ x, rtol=1e-14)


def test_matrix_product_is_summed_in_order(rng):
    A, B = rng.normal(size=(3, 2, 5)), rng.normal(size=(5, 4))  # B is shared by the products
    C = matrix_product(A, B)
    np.testing.assert_allclose(C, A @ B, rtol=1e-13, atol=1e-14)
    for k, i, j in np.ndindex(C.shape):
        terms = [float(a) * float(b) for a, b in zip(A[k, i], B[:, j], strict=True)]
        assert C[k, i, j] == (((terms[0] + terms[1]) + terms[2]) + terms[3]) + terms[4]


def test_cholesky_factors_give_the_matrix(rng):
    half = rng.normal(size=(4, 6, 8))
    A = half @ half.swapaxes(1, 2)
    np.testing.assert_allclose(cholesky(A), np.linalg.cholesky(A), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("pivot", [0.0, -1.0, np.nan])
def test_cholesky_refuses_a_matrix_that_is_not_positive_definite(pivot):
    A = np.stack([np.eye(3), np.diag([1.0, 1.0, pivot])])
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(A)
