"""The limit of a worker's losses, by a clock of the test."""

from itertools import pairwise

import pytest

from featherlane.distributed import restarts
from featherlane.distributed.restarts import MOST, WINDOW, Restarts


@pytest.fixture
def clock(monkeypatch):
    """Replaces the clock: a list with the time, which a test sets."""
    now = [0.0]
    monkeypatch.setattr(restarts.time, "monotonic", lambda: now[0])
    return now


def test_restarts_wait_twice_as_long_each_time_and_end(clock):
    own = Restarts()
    pauses = [own.lost() for _ in range(MOST)]
    assert pauses[0] == 0.0 and all(b == 2 * a for a, b in pairwise(pauses[1:])) and sum(pauses) > WINDOW
    assert own.is_second_half
    assert own.lost() is None
    assert own.lost() == 0.0  # after the error the batch continues


def test_successful_replies_reset_the_restart_limit(clock):
    """With one loss a second and an answer after each, the pauses alone keep losses below the limit."""
    own = Restarts()
    for _ in range(1000):
        pause = own.lost()
        assert pause is not None
        clock[0] += 1.0 + pause
        own.answered()


def test_a_request_that_slowly_kills_workers_raises(clock):
    own = Restarts()
    for _ in range(MOST):
        assert own.lost() is not None
        clock[0] += 2 * WINDOW  # without an answer
    assert own.lost() is None
