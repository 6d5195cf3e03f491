"""Featherlane models of `mujoco.MjModel` objects, kept from call to call."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import mujoco
import numpy as np

from featherlane.model import Model, load

KEPT = 16  # models


class LoadedModels:
    """Loads an MjModel once for each content: an edit of a field leads to another model, an equal copy to the same."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[bytes, Model] = OrderedDict()

    def of(self, model: Any) -> Model:
        """The model of an MjModel.

        Raises:
            ModelError, UnsupportedFeatureError: as `featherlane.load`.
        """
        content = content_of(model)
        if content in self._loaded:
            self._loaded.move_to_end(content)
            return self._loaded[content]
        loaded = self._loaded[content] = load(model)
        while len(self._loaded) > KEPT:
            self._loaded.popitem(last=False)
        return loaded


def content_of(model: Any) -> bytes:
    """All that an MjModel holds, as bytes."""
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()
