"""The status of a solver: the names that users read match the numbers that kernels write."""

from featherlane.engine.solver.lcp import status
from featherlane.engine.solver.lcp.rows.rows import FULL
from featherlane.lcp import Status


def test_status_names_are_numbers():
    assert [s.name for s in Status] == ["SOLVED", "ITERATIONS", "INFEASIBLE", "UNSETTLED", "INACCURATE"]
    assert [int(s) for s in Status] == list(range(5)) == [getattr(status, s.name) for s in Status]


def test_status_numbers_increase_with_severity():
    assert min(Status) == Status.SOLVED == 0 and not Status.SOLVED
    assert FULL not in list(Status)


def test_the_largest_size_and_its_square_are_finite():
    assert 0.0 < status.LARGEST < float("inf") and float("inf") > status.LARGEST * 1e8
