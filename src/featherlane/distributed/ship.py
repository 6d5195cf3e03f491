"""Things on their way to other processes: models, kernels, functions.

Python pickles a function by the name of its module, which another machine need not have.  A kernel of the user travels
whole, with the text that it is compiled from; plain functions as Ray ships them, those of the main program whole.
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


def packed(what: str, thing: Any) -> bytes:
    """A thing as bytes.

    Args:
        what: its name, for messages.
        thing: a model, a kernel, a function, ...

    Raises:
        ModelError: it cannot be shipped.
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
    except Exception as error:  # whatever the parts of a thing raise when they are pickled
        raise ModelError(
            f"{what}: {thing!r} cannot be shipped to other processes ({type(error).__name__}: {error}); allowed is "
            "what can be pickled, and functions of nothing else"
        ) from None
    return buffer.getvalue()


def unpacked(what: str, packet: bytes) -> Any:
    """What was packed.

    Raises:
        ModelError: this process lacks something that it needs.
    """
    try:
        return pickle.loads(packet)
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"{what}: it was shipped to a process that lacks what it needs ({error}); install that on the nodes, or "
            "ship it with connect(options={'runtime_env': {'py_modules': [...]}})"
        ) from None


def _text(file: str) -> tuple[str, str]:
    return file, "".join(linecache.getlines(file))


def _kernel(function, file: str, text: str) -> Kernel:
    """A kernel whose file another machine may lack, or have in another version."""
    if linecache.getlines(file) != text.splitlines(keepends=True):
        # without a time of change it is not looked for on the disk again
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    return Kernel(function)
