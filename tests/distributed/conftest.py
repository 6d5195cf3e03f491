"""A Ray for the tests of this folder, started once and ended with them."""

import os

import pytest

from featherlane.distributed import connect


@pytest.fixture(scope="module")
def cluster():
    """Six cores for work, as many as this machine may have or not, and a small store; skips where there is no Ray."""
    pytest.importorskip("ray")
    # Ray's own processes tell of every worker that is killed
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    with connect(cores=6, options={"object_store_memory": 200 << 20, "log_to_driver": False}) as found:
        yield found
