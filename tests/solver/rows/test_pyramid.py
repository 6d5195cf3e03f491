"""The pyramidal cone: all of its values follow from edges n + t_i and n - t_i with non-negative forces."""

import numpy as np
import pytest

from featherlane.engine.solver.rows.pyramid import (
    add_push_slope,
    angular_edges_force,
    angular_edges_slope,
    angular_edges_switch,
    angular_edges_weights,
    edge_pair_force,
    pyramid_force,
    pyramid_weights,
    smallest_edge,
)
from oracles.uncompiled import call, record

WORLDS = 200
ROUNDING = 1e-13  # relative to values near 1


def edge_matrix(dirs):
    """Returns the rows n + t_i, n - t_i in (n, t_1, ..)."""
    return np.array([[1.0, *(s * np.eye(dirs)[i])] for i in range(dirs) for s in (1.0, -1.0)])


def pushing(E, D, y):
    """Returns (forces along the basis, cost) of edges with non-negative forces, from the definition."""
    x = np.minimum(E @ y, 0.0)
    return E.T @ (-D * x), 0.5 * D * (x * x).sum(0)


def contact(dim, rng):
    """Returns slot 1 of two, its rotational y at the end; y of rotations that a dimension lacks are 0."""
    y, z = rng.normal(size=(2, 12, WORLDS))
    y[9 + dim - 3 :] = z[9 + dim - 3 :] = 0.0
    return record(
        WORLDS, nconmax=2, con_dim=[9, dim], con_D=rng.uniform(1, 4, (2, WORLDS)), primal={"con_y": y, "con_z": z}
    )


def turning(array, dim):
    """Returns n and the rotations of slot 1."""
    return array[[3, *range(9, 9 + dim - 3)]]


def close(a, b):
    np.testing.assert_allclose(np.array(a), b, rtol=0, atol=20 * ROUNDING)


def test_a_push_has_the_slopes_of_its_cost(rng):
    x, v, g, h = rng.normal(size=(4, WORLDS))
    close(call(add_push_slope, x, v, g, h), [g + np.minimum(x, 0) * v, h + (x < 0) * v * v])


def test_four_edges_of_two_tangents(rng):
    D, y = rng.uniform(1, 4, WORLDS), rng.normal(size=(3, WORLDS))
    (f, c), (F, C) = call(pyramid_force, D, y), pushing(edge_matrix(2), D, y)
    close(f, F)
    close(c, C)
    f, t, c = call(edge_pair_force, D, y[0], y[1])
    F, C = pushing(edge_matrix(1), D, y[:2])
    close([f, t], F)
    close(c, C)
    E = edge_matrix(2)
    W = np.einsum("ea,ew,eb->abw", E, D * (E @ y < 0), E)
    close(call(pyramid_weights, D, y), [W[0, 0], W[0, 1], W[1, 1], W[0, 2], W[2, 2]])


@pytest.mark.parametrize("dim", [4, 6])
def test_edges_of_torsional_and_rolling_friction(dim, rng):
    d, E, n = contact(dim, rng), edge_matrix(dim - 3), dim - 3
    y, z, D = turning(d.primal.con_y.array, dim), turning(d.primal.con_z.array, dim), d.con_D.array[1]
    f, t, c = call(angular_edges_force, d, 1, d.primal.con_y)
    F, C = pushing(E, D, y)
    close([f, *t[:n]], F)
    assert not np.any(t[n:])
    close(c, C)

    a, x, v = 0.7, E @ (y + 0.7 * z), E @ z
    close(call(angular_edges_slope, d, 1, a), [(np.minimum(x, 0) * v).sum(0), ((x < 0) * v * v).sum(0)])
    np.testing.assert_array_equal(call(angular_edges_switch, d, 1, a), ((E @ y < 0) != (x < 0)).sum(0))

    W = np.einsum("ea,ew,eb->abw", E, D * (E @ y < 0), E)
    between, own = call(angular_edges_weights, d, 1)
    close(between[:n], W[0, 1:])
    close(own[:n], W[range(1, dim - 2), range(1, dim - 2)])
    assert not np.any([*between[n:], *own[n:]])
    close(sum(own), W[0, 0])


@pytest.mark.parametrize("dim", [3, 4, 6])
def test_the_minimum_edge_shows_whether_any_pushes(dim, rng):
    d = contact(dim, rng)
    y = d.primal.con_y.array[[3, 4, 5, 9, 10, 11][:dim]]
    close(call(smallest_edge, d, 1), (edge_matrix(dim - 1) @ y).min(0))
