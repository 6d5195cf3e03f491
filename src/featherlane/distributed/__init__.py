"""Simulates worlds on several machines with Ray, and runs parameter sweeps.

    batch = fl.distributed.Batch(model, 100_000, nodes="10.0.0.1:6379")   worlds of one model on a cluster
    cluster = fl.distributed.connect("10.0.0.1:6379")                     a cluster, or Ray on this machine
    result = fl.distributed.sweep(model, parameters, rollout, reduce)     parameter sweeps and Monte Carlo

`sweep` and a `Batch` with `nodes=None` do not need Ray.  Otherwise Ray is imported on demand; install it with
`pip install 'featherlane[distributed]'`.
"""

from featherlane.distributed.batch import Batch
from featherlane.distributed.cluster import Cluster, connect
from featherlane.distributed.sweeps.result import Sweep, load_sweep
from featherlane.distributed.sweeps.run import SweepInterrupted, sweep
from featherlane.distributed.sweeps.values import Source, choice, drawn, grid, log_uniform, normal, uniform, values
from featherlane.extension import Histogram

__all__ = [  # noqa: RUF022  in groups
    # distributed batches
    "Batch",
    # clusters and results
    "Cluster",
    "Histogram",
    "connect",
    # parameter sweeps
    "Sweep",
    "SweepInterrupted",
    "load_sweep",
    "sweep",
    # parameter values
    "Source",
    "choice",
    "drawn",
    "grid",
    "log_uniform",
    "normal",
    "uniform",
    "values",
]
