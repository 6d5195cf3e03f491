"""mjlab on Featherlane: mjlab's registered tasks and environments run on a `featherlane.Batch` on the CPU.

    import featherlane.integrations.mjlab
    featherlane.integrations.mjlab.use()
    env = ManagerBasedRlEnv(load_env_cfg("Mjlab-Velocity-Flat-Unitree-G1"), device="cpu")   # unchanged

Or set the environment variable FEATHERLANE_MJLAB to `float32` or `float64` and start any program that imports mjlab.
Importing this package changes nothing and does not import mjlab.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from featherlane.errors import ArgumentError
from featherlane.extension import required, requiring, whole_argument

VARIABLE = "FEATHERLANE_MJLAB"
MOST_THREADS = 1024
# where mjlab looks up what is replaced: module, attribute; modules of the second list only if they are loaded already
SIMULATION = ("mjlab.sim.sim", "mjlab.sim", "mjlab.envs.manager_based_rl_env")
SIMULATION_IF_LOADED = ("mjlab.scripts.csv_to_npz", "mjlab.viewer.viser.viewer")

_replaced: list[tuple[Any, str, Any]] = []  # object, attribute, mjlab's value


def use(dtype: str = "float32", nthread: int = 0) -> None:
    """Runs all mjlab environments that are created from now on on Featherlane.

    Args:
        dtype: precision of the physics.  "float32": mjlab's tensors share memory with the batch.  "float64": mjlab
            reads and writes float32 tensors, which are copied from and to the batch; the state keeps float64 digits
            where mjlab does not write to it.
        nthread: threads of each simulation, 0 for one for each core.

    Raises:
        InstallationError: mjlab is missing or of a version that is not supported.
        ArgumentError: an unknown dtype; nthread out of range.

    Source: mjlab.sim.Simulation, mjlab.sensor.SensorContext.
    """
    if dtype not in ("float32", "float64"):
        raise ArgumentError(f"dtype: got {dtype!r}, allowed are 'float32', 'float64'")
    nthread = whole_argument("nthread", nthread, 0, MOST_THREADS)
    required("mjlab", "featherlane.integrations.mjlab")
    stop()
    with requiring("mjlab", "featherlane.integrations.mjlab"):
        from featherlane.integrations.mjlab.sensing import ImageSensorContext, frame_jacobian, rays
        from featherlane.integrations.mjlab.simulation import Simulation

    settings = {"dtype": dtype, "nthread": nthread, "__module__": Simulation.__module__, "__doc__": Simulation.__doc__}
    replace_simulation(type("Simulation", (Simulation,), settings))
    # these call mjlab's functions for mjlab's simulations; they stay, because environments outlast `stop`
    scene: Any = importlib.import_module("mjlab.scene.scene")
    sensor: Any = importlib.import_module("mjlab.sensor.raycast_sensor")
    ik: Any = importlib.import_module("mjlab.envs.mdp.actions.differential_ik")
    scene.SensorContext, sensor.rays = ImageSensorContext, rays
    ik.DifferentialIKAction._compute_jacobian = frame_jacobian


def replace_simulation(chosen: type) -> None:
    """Makes mjlab create simulations of a subclass of `Simulation`, after `use`.

    Args:
        chosen: the class.
    """
    for name in (*SIMULATION, *(n for n in SIMULATION_IF_LOADED if n in sys.modules)):
        _replace(importlib.import_module(name), "Simulation", chosen)


def stop() -> None:
    """Gives environments that are created from now on mjlab's simulation again; the others stay on Featherlane."""
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def in_use() -> bool:
    """Returns whether environments that are created now run on Featherlane."""
    return bool(_replaced)


def _replace(owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of mjlab and remembers its value."""
    _replaced.append((owner, name, getattr(owner, name)))
    setattr(owner, name, value)
