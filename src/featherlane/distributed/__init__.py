"""Worlds on many machines, by Ray (`pip install 'featherlane[distributed]'`), which is imported when it is needed.

cluster = fl.distributed.connect("10.0.0.1:6379")   a cluster, or a Ray on this machine
"""

from featherlane.distributed.cluster import Cluster, connect

__all__ = ["Cluster", "connect"]
