"""A Ray for the tests of this folder, started once and ended with them."""

import os

import pytest

from featherlane.distributed import connect


@pytest.fixture(scope="session")
def cluster():
    """Six cores for work, as many as this machine may have or not, and a small store; skips where there is no Ray."""
    ray = pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # tests tell nobody that they run
    with connect(cores=6, options={"object_store_memory": 200 << 20, "log_to_driver": False}) as found:
        yield found
    assert not ray.is_initialized()
