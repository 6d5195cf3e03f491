"""Ray for the tests of this folder, started once and stopped after them."""

import os

import pytest

from featherlane.distributed import connect


@pytest.fixture(scope="session")
def cluster():
    """Starts Ray with six worker cores, whatever the machine has, and a small store; skips if Ray is not installed."""
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # tests send no usage statistics
    # a worker of a busy machine starts in more than the default of 30 s
    with connect(cores=6, timeout=180.0, options={"object_store_memory": 200 << 20, "log_to_driver": False}) as found:
        yield found
    assert not ray.is_initialized()
