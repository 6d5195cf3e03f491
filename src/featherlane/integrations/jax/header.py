"""Reads structs and constants of XLA's interface for foreign functions from its C header, which JAX contains."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

from featherlane.errors import UnknownNameError

FILE = "xla/ffi/api/c_api.h"
PLAIN = {"int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "uint32_t": ctypes.c_uint32}
FUNCTION = "_XLA_FFI_API_STRUCT_FIELD"  # the macro that declares a pointer to a function


class Header:
    """The header of an installed JAX.

    Args:
        folder: the folder of headers, `jax.ffi.include_dir()`.

    Raises:
        OSError: the folder has no such header.
    """

    def __init__(self, folder: str):
        self._text = re.sub(r"//.*", "", (Path(folder) / FILE).read_text())
        self._structs: dict[str, type[ctypes.Structure]] = {}
        self._inner: dict[Any, dict[str, Any]] = {}  # types of the fields of each struct

    def number(self, name: str) -> int:
        """Returns the value of a macro or of an enumerator.

        Raises:
            UnknownNameError: the header has no such name.
        """
        found = re.search(rf"\b{name}(?: =)? (\d+)", self._text)
        if found is None:
            raise UnknownNameError(f"{FILE} has no {name}")
        return int(found[1])

    def struct(self, name: str) -> type[ctypes.Structure]:
        """Returns a struct with the layout that C gives it on this machine.

        Raises:
            UnknownNameError: the header has no such struct, or it has a field of an unknown type.
        """
        if name not in self._structs:
            found = re.search(rf"\bstruct {name} \{{([^{{}}]*)\}}", self._text)
            if found is None:
                raise UnknownNameError(f"{FILE} has no {name}")
            fields = [self._field(" ".join(each.split())) for each in found[1].split(";") if each.strip()]
            self._structs[name] = made = type(name, (ctypes.Structure,), {"_fields_": fields})
            self._inner[made] = dict(fields)
        return self._structs[name]

    def offset(self, struct: str, *path: str) -> int:
        """Returns the offset of a field [bytes]; `path` leads through nested structs.

        Raises:
            UnknownNameError: there is no such struct or field.
        """
        kind: Any = self.struct(struct)
        offset = 0
        for name in path:
            inner = self._inner[kind][name]
            kind, offset = inner, offset + getattr(kind, name).offset
        return offset

    def _field(self, declaration: str) -> tuple[str, type]:
        """Returns name and type of a field from its declaration."""
        if declaration.startswith(FUNCTION):
            return declaration.removeprefix(FUNCTION).strip("()"), ctypes.c_void_p
        kind, _, name = declaration.rpartition(" ")
        if kind.endswith("*"):
            return name, ctypes.c_void_p
        if kind in PLAIN:
            return name, PLAIN[kind]
        if re.search(rf"\}} {kind};", self._text) and f"struct {kind} " not in self._text:
            return name, ctypes.c_int  # an enumeration
        alias = re.search(rf"typedef (\w+) {kind};", self._text)
        return name, PLAIN[alias[1]] if alias else self.struct(kind)
