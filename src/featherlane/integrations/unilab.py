"""Tasks of UniLab 1.5 on Featherlane, registered next to UniLab's own.

For each task with UniLab's backend `mujoco`, for example `Go2JoystickFlat`, this module registers the same task with
Featherlane's physics as `FeatherlaneGo2JoystickFlat`, and in float32 as `Featherlane32Go2JoystickFlat`.  UniLab imports
it through its entry point group `unilab.tasks`, in every process that makes environments:

    train --algo ppo --task go2_joystick_flat --sim mujoco training.task_name=FeatherlaneGo2JoystickFlat

Source: UniLab 1.5.2, unilab.base.registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

# pyright: reportMissingImports=false
from featherlane.extension import private, requiring

with requiring("unilab", "featherlane.integrations.unilab"):
    import unilab.tasks
    from unilab.base import registry

PREFIXES = {"Featherlane": "float64", "Featherlane32": "float32"}
__unilab_registry_modules__ = ()  # importing this module registers the tasks


@dataclass(frozen=True)
class Factory:
    """Makes environments of a task with Featherlane's physics.

    Attributes:
        make: UniLab's factory for the backend `mujoco`.
        dtype: float64 or float32, of the state and of all arithmetic.
    """

    make: Any
    dtype: str

    def __call__(self, cfg: Any, *, num_envs: int = 1, backend_type: str = "mujoco") -> Any:
        """Returns an environment with `num_envs` worlds.

        Raises:
            InstallationError: an unsupported version of unisim-core.
            unisim.UnsupportedCapabilityError: the scene has a feature that Featherlane does not support.
        """
        from featherlane.integrations.unisim import use

        with use(self.dtype):
            return self.make(cfg, num_envs=num_envs, backend_type=backend_type)


def register() -> list[str]:
    """Registers all known tasks with the backend `mujoco`, and returns the new names.

    Call it again after registering more tasks.
    """
    for module in unilab.tasks.__unilab_registry_modules__:
        import_module(module)
    added = []
    for name, meta in tuple(private("unilab", registry, "_envs").items()):
        if name.startswith(tuple(PREFIXES)) or not meta.supports_sim_backend("mujoco"):
            continue
        for prefix, dtype in PREFIXES.items():
            if not registry.contains(prefix + name):
                registry.register_env_config(prefix + name, meta.env_cfg_factory)
                factory = Factory(meta.env_factory_dict["mujoco"], dtype)
                registry.register_env(prefix + name, factory, sim_backend="mujoco")
                added.append(prefix + name)
    return added


register()
