"""Cache of Featherlane models for `mujoco.MjModel` objects."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from featherlane import Model, load
from featherlane.integrations.edits import Memory

KEPT = 16  # largest number of models in the cache


class Loaded(NamedTuple):
    """Holds the model of an MjModel, and the values with which it was loaded."""

    memory: Memory
    values: Any
    model: Model


class LoadedModels:
    """Loads an MjModel once for each content: an edited model is loaded again, an equal copy is found in the cache.

    Edits of the vertices of meshes, and of fields that only the renderer reads, are not detected.
    """

    def __init__(self) -> None:
        self._by_content: OrderedDict[bytes, Model] = OrderedDict()
        self._cache: WeakKeyDictionary[Any, Loaded] = WeakKeyDictionary()

    def of(self, models: list) -> list[Model]:
        """Returns the model of each MjModel.

        Raises:
            ModelError, UnsupportedFeatureError: as `featherlane.load`.
        """
        found = {id(model): self._of(model) for model in {id(model): model for model in models}.values()}
        return [found[id(model)] for model in models]

    def _of(self, model: Any) -> Model:
        entry = self._cache.get(model)
        memory = Memory(model) if entry is None else entry.memory
        values = memory.values()
        if entry is not None and entry.values == values:
            return entry.model
        loaded = self._of_content(model)
        self._cache[model] = Loaded(memory, values, loaded)
        return loaded

    def _of_content(self, model: Any) -> Model:
        """Returns a model that was loaded with equal content, or loads one."""
        content = np.zeros((mujoco.mj_sizeModel(model), 1), np.uint8)
        mujoco.mj_saveModel(model, None, content)
        key = hashlib.blake2b(content.data, digest_size=16).digest()
        loaded = self._by_content.pop(key, None) or load(model)
        self._by_content[key] = loaded
        while len(self._by_content) > KEPT:
            self._by_content.popitem(last=False)
        return loaded
