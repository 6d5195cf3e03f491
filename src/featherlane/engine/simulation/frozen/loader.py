"""Loads the C library that reads frozen worlds (featherlane.c), from the wheel or compiled now."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np

from featherlane.engine.lanes import cache, processor
from featherlane.engine.lanes.link import link_loader
from featherlane.engine.lanes.runtime import PREBUILT, KernelError
from featherlane.errors import ModelError

SOURCE = Path(__file__).with_name("featherlane.c")
LIBRARY = "libfeatherlane.so"  # in the folder of the prebuilt kernels
MOST_AXES, TEXT = 4, 256
DTYPES = (np.float64, np.int32, np.int64)  # by fl_type
World, Text, Int, Long = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64


class Field(ctypes.Structure):
    """The structure fl_field."""

    _fields_ = (
        ("name", Text),
        ("unit", Text),
        ("type", Int),
        ("ndim", Int),
        ("shape", Long * MOST_AXES),
        ("count", Long),
        ("writable", Int),
        ("whole", Int),
        ("values", ctypes.c_void_p),
    )

    def array(self, owner: Opened) -> np.ndarray:
        """Returns the field's live memory in its shape, which keeps the file open."""
        dtype, shape = np.dtype(DTYPES[self.type]), tuple(self.shape[: self.ndim])
        if not self.count:
            return np.zeros(shape, dtype)
        content = (ctypes.c_char * (self.count * dtype.itemsize)).from_address(self.values)
        content.owner = owner
        return np.frombuffer(content, dtype).reshape(shape)


CONTACT = np.dtype(  # the structure fl_contact
    [("dist", "f8"), ("pos", "f8", 3), ("frame", "f8", 9), ("includemargin", "f8"), ("friction", "f8", 5)]
    + [("force", "f8", 6), ("dim", "i4"), ("geom", "i4", 2)],
    align=True,
)
FIELD = ctypes.POINTER(Field)
FUNCTIONS = {  # name -> (result, arguments)
    "fl_open": (World, [Text, Text, ctypes.c_void_p, ctypes.c_size_t]),
    "fl_open_batch": (World, [Text, Text, Long, ctypes.c_void_p, ctypes.c_size_t]),
    "fl_close": (None, [World]),
    "fl_step": (Int, [World, Long]),
    "fl_forward": (Int, [World]),
    "fl_reset": (None, [World]),
    "fl_reset_world": (None, [World, Long]),
    "fl_query": (Int, [World, Text, ctypes.POINTER(Long)]),
    "fl_find": (Int, [World, Text, FIELD]),
    "fl_find_constant": (Int, [World, Text, FIELD]),
    "fl_size": (Long, [World, Text]),
    "fl_id": (Int, [World, Text, Text]),
    "fl_state_size": (Long, [World]),
    "fl_get_state": (None, [World, ctypes.c_void_p]),
    "fl_set_state": (None, [World, ctypes.c_void_p]),
    "fl_contact_count": (Int, [World]),
    "fl_contact_at": (Int, [World, Int, ctypes.c_void_p]),
    "fl_self_test": (Int, [World]),
    "fl_hash": (Text, [World]),
    "fl_target": (Text, [World]),
    "fl_version": (Text, [World]),
}


def _compiled() -> bytes:
    """Returns the library, from the cache or compiled now."""
    digest = hashlib.sha256(b"".join(SOURCE.with_suffix(end).read_bytes() for end in (".c", ".h"))).hexdigest()
    name = f"loader-{digest[:20]}-{processor.host()[1]}.o"
    code = cache.read_object(name)
    if code is None:
        with tempfile.TemporaryDirectory() as folder:
            link_loader(SOURCE, Path(folder, LIBRARY))
            code = Path(folder, LIBRARY).read_bytes()
        cache.write_object(name, code)
    return code


@functools.cache
def loader() -> ctypes.CDLL:
    """Returns the library.

    Raises:
        KernelError: the system is not Linux.
        RuntimeError: the installation lacks the library, and there is no C compiler.
    """
    system, architecture = processor.host()
    if system != "linux" or architecture not in ("x86_64", "aarch64"):
        raise KernelError(f"frozen worlds run on Linux on x86-64 and AArch64, got {system} on {architecture}")
    if (PREBUILT / LIBRARY).exists():
        library = ctypes.CDLL(str(PREBUILT / LIBRARY))
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, LIBRARY)
            path.write_bytes(_compiled())
            library = ctypes.CDLL(str(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Opened:
    """An open file, which is closed after the last world or array that refers to it.

    Attributes:
        address: the C library's pointer.
    """

    def __init__(self, path: Path, trust: str | None, nworld: int):
        error, self.address = ctypes.create_string_buffer(TEXT), None
        name, trusted = os.fsencode(path), trust.encode() if trust else None
        if nworld:
            self.address = loader().fl_open_batch(name, trusted, nworld, error, TEXT)
        else:
            self.address = loader().fl_open(name, trusted, error, TEXT)
        if not self.address:
            raise ModelError(f"{path}: {error.value.decode(errors='replace')}")

    def __del__(self) -> None:
        if self.address:
            loader().fl_close(self.address)
