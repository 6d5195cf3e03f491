"""Reads the instances of MuJoCo's plugins: the plugin of each and its attributes.

An MjModel stores the slot of an instance's plugin in this process, and the values of its attributes as text, in the
order in which the plugin declares them.  MuJoCo's Python module does not return a plugin's name, so it is read from
MuJoCo's library, which the module has loaded.
Source: MuJoCo mjplugin.h (mjpPlugin), mj_getPluginConfig.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from featherlane.engine.model.names import element
from featherlane.errors import ModelError

LIBRARIES = ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll")
UNKNOWN = "unknown"


class Instance(NamedTuple):
    """Describes an instance of a plugin.

    Attributes:
        plugin: the plugin's name, such as `mujoco.pid`.
        config: texts of its attributes by name, without those that are not given.
    """

    plugin: str
    config: dict[str, str]


class _Declared(ctypes.Structure):
    """The first members of mjpPlugin."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("nattribute", ctypes.c_int),
        ("attributes", ctypes.POINTER(ctypes.c_char_p)),
    )


@cache
def _registered() -> Any:
    """Returns MuJoCo's function that returns a registered plugin; None if its library is not found."""
    import mujoco

    folder = Path(mujoco.__file__).parent
    for path in (path for pattern in LIBRARIES for path in sorted(folder.glob(pattern))):
        find = ctypes.CDLL(str(path)).mjp_getPluginAtSlot
        find.restype, find.argtypes = ctypes.POINTER(_Declared), (ctypes.c_int,)
        return find
    return None


def _declared(slot: int) -> tuple[str, list[str]]:
    """Returns name and attributes of the plugin in a slot."""
    find = _registered()
    found = find(slot) if find else None
    if not found:
        return UNKNOWN, []
    plugin = found.contents
    return plugin.name.decode(), [plugin.attributes[k].decode() for k in range(plugin.nattribute)]


def instances(mj: Any) -> list[Instance]:
    """Returns the plugin instances of a compiled model, in order of their ids."""
    found = []
    for i in range(mj.nplugin):
        name, attributes = _declared(int(mj.plugin[i]))
        texts = bytes(mj.plugin_attr[mj.plugin_attradr[i] :]).split(b"\0")[: len(attributes)]
        config = {key: text.decode() for key, text in zip(attributes, texts, strict=False) if text}
        found.append(Instance(name, config))
    return found


def plugin_number(mj: Any, i: int, config: dict[str, str], key: str, default: float) -> float:
    """Returns a number of instance i.

    Raises:
        ModelError: the text is not a finite number; with the instance, the attribute and the text.
    """
    text = config.get(key, "").strip()
    if not text:
        return default
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise ModelError(f"{element(mj, 'plugin', i)}: {key} is {text!r}, allowed is a finite number")
    return number
