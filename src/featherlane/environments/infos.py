"""Infos of a vector environment: arrays with a value of each world, and a mask `_name` of the worlds that have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def add_infos(values: Mapping[str, np.ndarray], mask: np.ndarray, infos: dict[str, Any]) -> dict[str, Any]:
    """Adds values of the masked worlds to infos, in the format of Gymnasium's vector environments."""
    number = np.count_nonzero(mask)
    for name, value in values.items() if number else ():
        value = np.asarray(value)
        if number == len(mask) and name not in infos:
            infos[name], infos[f"_{name}"] = value.copy(), mask.copy()
            continue
        rows = infos.setdefault(name, np.zeros(value.shape, value.dtype))
        rows[mask] = value[mask]
        infos[f"_{name}"] = infos.get(f"_{name}", False) | mask
    return infos


def part_of(infos: dict[str, Any], mask: np.ndarray) -> dict[str, Any]:
    """Returns the infos of the masked worlds."""
    part = {}
    for name, value in infos.items():
        present = infos[name if name[:1] == "_" else f"_{name}"] & mask
        if present.any():
            part[name] = (
                present if name[:1] == "_" else np.where(present.reshape(-1, *[1] * (value.ndim - 1)), value, 0)
            )
            part[name] = part[name].astype(value.dtype, copy=False)
    return part
