"""Starts two nodes of a cluster on this machine, one of which is lost, or has different software.

    python two_nodes.py lost
    python two_nodes.py other PYTHONPATH
    python two_nodes.py older LEVEL

It is a separate program, because a process is in one cluster.
"""

import contextlib
import sys

import numpy as np
import ray
from ray.cluster_utils import Cluster

import featherlane as fl

SMALL = {"num_cpus": 1, "object_store_memory": 100 << 20}


def lost(cluster, node) -> None:
    """Loses a node between two calls, and adds another one: the worlds continue from a checkpoint."""
    model = fl.bundled("humanoid")
    with fl.distributed.Batch(model, 48, cluster.address, timeout=120) as batch:
        print("threads", batch.threads)
        batch.step(30)
        kept = batch.checkpoint()
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(**SMALL)
        try:
            batch.step(30)
        except fl.errors.WorkerLostError as error:
            print("lost", error)
            batch.restore(kept)
            batch.step(30)
        local = fl.Batch(model, 48)
        local.step(60)
        print("equal", np.array_equal(batch.qpos, local.qpos))


def older(cluster, node) -> None:
    """Gives a node another CPU level: the results are bitwise identical."""
    model = fl.bundled("pendulum")
    with fl.distributed.Batch(model, 48, cluster.address) as batch:
        print(
            "levels", sorted(batch.call(lambda b: __import__("featherlane.engine.lanes").lanes.processor.cpu_level()))
        )
        batch.qvel = np.linspace(-3, 3, 48)[:, None]
        batch.step(200)
        local = fl.Batch(model, 48)
        local.qvel = np.linspace(-3, 3, 48)[:, None]
        local.step(200)
        print("equal", np.array_equal(batch.qpos, local.qpos))


def other(cluster, node) -> None:
    """Gives a node other kernels."""
    try:
        fl.distributed.connect(cluster.address)
    except fl.InstallationError as error:
        print("refused", error)


if __name__ == "__main__":
    what = sys.argv[1]
    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **SMALL})
    name = {"other": "PYTHONPATH", "older": "FEATHERLANE_CPU"}.get(what)
    changed = {"env_vars": {name: sys.argv[2]}} if name else {}
    try:
        found = cluster.add_node(**SMALL, **changed)
        {"lost": lost, "other": other, "older": older}[what](cluster, found)
    finally:
        with contextlib.suppress(Exception):
            ray.shutdown()
        cluster.shutdown()
