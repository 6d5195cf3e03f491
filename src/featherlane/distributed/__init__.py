"""Worlds on many machines, by Ray (`pip install 'featherlane[distributed]'`), which is imported when it is needed.

cluster = fl.distributed.connect("10.0.0.1:6379")   a cluster, or a Ray on this machine
fl.distributed.sweep(model, parameters, ...)        parameter sweeps and Monte Carlo, in a table; without Ray, too
"""

from featherlane.distributed.cluster import Cluster, connect
from featherlane.distributed.sweep_result import Sweep, load_sweep
from featherlane.distributed.sweep_run import SweepInterrupted, sweep
from featherlane.distributed.sweep_values import choice, drawn, grid, log_uniform, normal, uniform, values

__all__ = [
    "Cluster",
    "Sweep",
    "SweepInterrupted",
    "choice",
    "connect",
    "drawn",
    "grid",
    "load_sweep",
    "log_uniform",
    "normal",
    "sweep",
    "uniform",
    "values",
]
