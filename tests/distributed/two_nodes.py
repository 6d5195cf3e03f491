"""Two nodes of a cluster on this machine, one of which is lost, or runs something else.

    python two_nodes.py lost
    python two_nodes.py other PYTHONPATH

A program of its own, because a process is in one cluster.
"""

import contextlib
import sys

import numpy as np
import ray
from ray.cluster_utils import Cluster

import featherlane as fl

SMALL = {"num_cpus": 1, "object_store_memory": 100 << 20}


def lost(cluster, node) -> None:
    """A node is lost between two calls: what it had is stepped again on the other."""
    model = fl.load("humanoid")
    with fl.distributed.Batch(model, 48, cluster.address, checkpoint_every=20) as batch:
        print("threads", batch.threads)
        batch.step(30)
        cluster.remove_node(node, allow_graceful=False)
        batch.step(30)
        print("losses", sum(batch.losses))
        local = fl.Batch(model, 48)
        local.step(60)
        print("equal", np.array_equal(batch.qpos, local.qpos))


def other(cluster, node) -> None:
    """A node has other kernels."""
    try:
        fl.distributed.connect(cluster.address)
    except fl.InstallationError as error:
        print("refused", error)


if __name__ == "__main__":
    what = sys.argv[1]
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **SMALL})
    changed = {"env_vars": {"PYTHONPATH": sys.argv[2]}} if what == "other" else {}
    try:
        found = cluster.add_node(**SMALL, **changed)
        {"lost": lost, "other": other}[what](cluster, found)
    finally:
        with contextlib.suppress(Exception):
            ray.shutdown()
        cluster.shutdown()
