"""Cache of Featherlane models for `mujoco.MjModel` objects."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from featherlane.model import Model, load

KEPT = 16  # largest number of models in the cache


class LoadedModels:
    """Loads an MjModel once for each content: an edited model is loaded again, an equal copy is found in the cache."""

    def __init__(self) -> None:
        self._by_content: OrderedDict[bytes, Model] = OrderedDict()
        self._cache: WeakKeyDictionary[Any, tuple[np.ndarray, Model]] = WeakKeyDictionary()
        self._buffer = np.zeros(0, np.uint8)

    def of(self, models: list) -> list[Model]:
        """Returns the model of each MjModel.

        Raises:
            ModelError, UnsupportedFeatureError: as `featherlane.load`.
        """
        found = {id(model): self._of(model) for model in {id(model): model for model in models}.values()}
        return [found[id(model)] for model in models]

    def _of(self, model: Any) -> Model:
        size = mujoco.mj_sizeModel(model)
        if self._buffer.size != size:
            self._buffer = np.empty(size, np.uint8)
        mujoco.mj_saveModel(model, None, self._buffer)
        entry = self._cache.get(model)
        if entry is not None and np.array_equal(entry[0], self._buffer):
            return entry[1]
        content = self._buffer.tobytes()
        loaded = self._by_content.pop(content, None) or load(model)
        self._by_content[content] = loaded
        while len(self._by_content) > KEPT:
            self._by_content.popitem(last=False)
        self._cache[model] = np.frombuffer(content, np.uint8), loaded
        return loaded
