"""Small dense systems, several worlds at once: the solution, and pivots that are too small."""

import numpy as np
import pytest

from dynamics.test_tree_factor import WIDTH, views
from featherlane.engine.dynamics.sparse.packed_factor import packed_factor, solve_packed, triangle_index
from featherlane.engine.lanes import kernel

EXACT = 1e-14  # relative, times the condition number


@kernel
def entry(A, shift, i, j, diagonal):
    """Returns entry (i, j) of A + shift I, stored as a packed triangle."""
    a = A[triangle_index(i, j)]
    return a + shift if diagonal else a


factor = packed_factor(entry)


def packed(matrix):
    """Returns the lower triangle of matrices (n, n, WIDTH)."""
    n = len(matrix)
    out = np.empty((n * (n + 1) // 2, WIDTH))
    for i in range(n):
        for j in range(i + 1):
            out[triangle_index.function(i, j)] = matrix[i, j]
    return out


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 8, 11])
def test_the_solution_satisfies_the_system(n, rng):
    B, b = rng.normal(size=(n, n, WIDTH)), rng.normal(size=(n, WIDTH))
    A = np.einsum("ikw,jkw->ijw", B, B) + 0.1 * np.eye(n)[..., None]
    x = b.copy()
    A[range(n), range(n)] -= 0.5
    source, L, column = views(packed(A), np.empty((n * (n + 1) // 2, WIDTH)), x)
    A[range(n), range(n)] += 0.5
    factor.function(source, 0.5, L, n, 0.0)
    solve_packed.function(L, n, column)
    for lane in range(WIDTH):
        M = A[..., lane]
        size = np.abs(x[:, lane]).max(initial=1.0)
        np.testing.assert_allclose(
            x[:, lane], np.linalg.solve(M, b[:, lane]), atol=EXACT * size * (np.linalg.cond(M) if n else 1.0)
        )


def test_a_direction_without_stiffness_gets_no_solution(rng):
    A, x = np.zeros((2, 2, WIDTH)), np.ones((2, WIDTH))
    A[0, 0] = 2.0
    source, L, column = views(packed(A), np.empty((3, WIDTH)), x)
    factor.function(source, 0.0, L, 2, 1e-12)
    solve_packed.function(L, 2, column)
    np.testing.assert_array_equal(x, np.array([[0.5], [0.0]]) * np.ones(WIDTH))
