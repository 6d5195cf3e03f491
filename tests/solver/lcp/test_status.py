"""The status of a solver: the names that users read match the numbers that kernels write."""

from featherlane.lcp import Status
from featherlane.solver.lcp import status
from featherlane.solver.lcp.rows.rows import FULL


def test_words_are_numbers():
    assert [s.name for s in Status] == ["SOLVED", "ITERATIONS", "INFEASIBLE", "UNSETTLED", "INACCURATE"]
    assert [int(s) for s in Status] == list(range(5)) == [getattr(status, s.name) for s in Status]


def test_solved_is_the_least_so_that_the_worst_of_many_is_the_largest():
    assert min(Status) == Status.SOLVED == 0 and not Status.SOLVED
    assert FULL not in list(Status)


def test_the_largest_size_is_finite_and_its_square_root_has_room():
    assert 0.0 < status.LARGEST < float("inf") and float("inf") > status.LARGEST * 1e8
