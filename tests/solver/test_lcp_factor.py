"""L D L^T of the rows between their bounds: after any rows came and went it is that of the rows that are there."""

import numpy as np
import pytest

from featherlane.lanes import Record, allocate
from featherlane.lanes.record import python_record
from featherlane.solver.lcp.fields import LCP_SIZES, PROBLEM
from featherlane.solver.lcp.pivot import active_set, factor, many_rows, places

SAME = 1e-10  # the condition of A is about 100
N = 21


@pytest.fixture
def record(rng):
    """(record, A) of a problem of N rows whose diagonal is 1, so that places hold it unscaled."""
    width = -(-N // 8) * 8
    sizes = dict.fromkeys((f.name for f in LCP_SIZES), 0) | {"nlcpone": width, "nlcppair": width * width}
    arrays = allocate(PROBLEM, sizes, 1, np.float64)
    M = rng.standard_normal((N, N + 10))
    A = M @ M.T
    A /= np.sqrt(np.outer(A.diagonal(), A.diagonal()))
    np.fill_diagonal(A, 1.0)
    arrays["one_n"][0], arrays["one_findex"][:N] = N, -1
    arrays["one_A"].reshape(width, width)[:N, :N] = A
    r1 = python_record(Record(PROBLEM, sizes, arrays, 1, np.float64))
    for prepare in (places.order_rows, places.load_places, factor.clear_matrix, places.solve_nothing):
        prepare(r1)
    return r1, A, arrays


def add(r1, p):
    if r1.one_count[0] == factor.eights_of_row(r1) * 8:
        factor.refactor(r1)
    factor.gather_row(r1, p, r1.one_turn)
    factor.reduce_forward(r1, r1.one_turn)
    factor.append_row(r1, p, r1.one_turn, factor.pivot_of(r1, p, r1.one_turn))
    r1.one_state[p] = places.BETWEEN


def solution(r1, arrays, b):
    """x of the factor's rows, by place."""
    arrays["place_w"][:N] = -b
    factor.gather_error(r1)
    factor.reduce_forward(r1, r1.one_turn)
    factor.expand_backward(r1, r1.one_turn, r1.one_y)
    x, members = np.zeros(N), arrays["one_factor"][: r1.one_count[0]]
    x[members[members >= 0]] = arrays["one_y"][: r1.one_count[0]][members >= 0]
    return x


def test_any_rows_come_and_go(record, rng):
    r1, A, arrays = record
    inside: list[int] = []
    for _ in range(200):
        outside = [p for p in range(N) if p not in inside]
        if outside and (len(inside) < 3 or rng.random() < 0.55):
            inside.append(int(rng.choice(outside)))
            add(r1, inside[-1])
        else:
            factor.remove_row(r1, inside.pop(int(rng.integers(len(inside)))))
        b, expected = rng.standard_normal(N), np.zeros(N)
        expected[inside] = np.linalg.solve(A[np.ix_(inside, inside)], b[inside])
        np.testing.assert_allclose(solution(r1, arrays, b), expected, atol=SAME)


@pytest.mark.parametrize("before", [0, 1, 5, 8, 11])
def test_many_rows_come_at_once(before, record, rng):
    """Also behind a gap, and with rows that depend on others among them: these wait."""
    r1, A, arrays = record
    order = [int(p) for p in rng.permutation(N)]
    for p in order[:before]:
        add(r1, p)
    if before > 3:
        factor.remove_row(r1, order.pop(1))
        before -= 1
    twin, other = order[-2], order[before]
    arrays["place_A"].reshape(-1, 24)[twin, :N] = A[twin] = A[other]
    arrays["place_A"].reshape(-1, 24)[:N, twin] = A[:, twin] = A[:, other]
    comes = order[before:]
    arrays["one_factor"][r1.one_count[0] : r1.one_count[0] + len(comes)] = comes
    many_rows.put_all_between(r1, len(comes))
    inside = [p for p in order if p != twin]
    assert arrays["one_state"][twin] == places.WAITING
    assert (arrays["one_state"][inside] == places.BETWEEN).all()
    b, expected = rng.standard_normal(N), np.zeros(N)
    expected[inside] = np.linalg.solve(A[np.ix_(inside, inside)], b[inside])
    np.testing.assert_allclose(solution(r1, arrays, b), expected, atol=SAME)


def test_the_pivot_is_what_the_others_leave_of_a_row(record):
    r1, A, _ = record
    inside = [3, 17, 5, 0, 11, 8, 19, 2, 14]
    for p in inside:
        add(r1, p)
    factor.gather_row(r1, 7, r1.one_turn)
    factor.reduce_forward(r1, r1.one_turn)
    rest = A[7, 7] - A[7, inside] @ np.linalg.solve(A[np.ix_(inside, inside)], A[inside, 7])
    np.testing.assert_allclose(factor.pivot_of(r1, 7, r1.one_turn), rest, atol=SAME)


def test_places_scale_by_powers_of_two():
    for a in (1.0, 3.9e-7, 5e12, 2.0**-401, 0.0):
        s = places.scale_of(np.float64(a))
        assert np.frexp(s)[0] == 0.5
        assert a == 0.0 or 0.5 <= s * s * a < 2.0


def test_the_active_set_ends_at_the_minimum_from_anywhere_inside(record, rng):
    r1, A, arrays = record
    b = 3.0 * rng.standard_normal(N)
    arrays["place_b"][:N], arrays["place_lo"][:N], arrays["place_hi"][:N] = b, -0.5, 0.7
    for p in range(N):
        active_set.to_bound(r1, p, bool(rng.random() < 0.5))
        if p % 3 == 0:  # given up somewhere between
            r1.one_state[p], r1.place_x[p] = places.WAITING, 0.1
    assert active_set.improve(r1, 10 * N, 1.0) < 10 * N
    x = arrays["place_x"][:N]
    np.testing.assert_allclose(x, np.clip(x - (A @ x - b), -0.5, 0.7), atol=SAME)
