"""Serializes models, kernels and functions for other processes.

Python pickles a function by the name of its module, which another machine may lack.  User kernels are serialized by
value, with their source text; plain functions as Ray does, those of the main program by value.
"""

from __future__ import annotations

import importlib
import io
import linecache
import pickle
from typing import Any

from featherlane.errors import ModelError
from featherlane.lanes import Kernel

OURS = "featherlane."


def serialize(what: str, thing: Any) -> bytes:
    """Serializes an object.

    Args:
        what: name of the object, for messages.
        thing: a model, a kernel, a function, ...

    Raises:
        ModelError: the object cannot be serialized.
    """
    cloudpickle = importlib.import_module("ray.cloudpickle")

    class Packer(cloudpickle.CloudPickler):
        def reducer_override(self, obj):  # type: ignore
            if type(obj) is Kernel and not obj.function.__module__.startswith(OURS):
                return _kernel, (obj.function, *_text(obj.function.__code__.co_filename))
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    try:
        Packer(buffer, protocol=5).dump(thing)
    except Exception as error:  # pickling can raise any error of the object's parts
        raise ModelError(
            f"{what}: {thing!r} cannot be pickled for other processes ({type(error).__name__}: "
            f"{error}); allowed are objects that can be pickled, and functions that use only such objects"
        ) from None
    return buffer.getvalue()


def unpacked(what: str, packet: bytes) -> Any:
    """Deserializes an object.

    Raises:
        ModelError: this process lacks a module that the object needs.
    """
    try:
        return pickle.loads(packet)
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"{what}: a worker lacks a module that it needs ({error}); install the module on the "
            "nodes, or ship it with connect(options={'runtime_env': {'py_modules': [...]}})"
        ) from None


def _text(file: str) -> tuple[str, str]:
    return file, "".join(linecache.getlines(file))


def _kernel(function, file: str, text: str) -> Kernel:
    """Rebuilds a kernel whose file another machine may lack or have in another version."""
    if linecache.getlines(file) != text.splitlines(keepends=True):
        # without a modification time, linecache does not look for the file on disk
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return Kernel(function)
