"""An XLA handler: rollouts of worlds from within a compiled program, without Python.

XLA passes a handler one call frame with the addresses of arguments, results and attributes.  This handler is written
in LLVM IR, which is compiled at first use.  It runs a `featherlane.extension.Program`: copies of arguments into the
rows of worlds, calls of compiled loops over tiles, copies of recorded states into the results.  Python prepares a table
of these copies and calls; compiled programs refer to it by its place in a registry and by a token.  A program that
outlives its table, or comes from another process, raises an error.

    registry entry   lock, token, table
    table            numbers of calls, of copies in and of copies out; then the calls, then the copies
    call             function, its records (the fourth is optional), number of tiles
    copy             destination, source, argument or result that replaces one of them (-1: none), count, kind

Source: XLA, xla/ffi/api/c_api.h (version 0; `header.py` reads its structs).
"""

from __future__ import annotations

import ctypes
import functools
import secrets
import sys
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np

from featherlane.extension import Program, compile_llvm
from featherlane.integrations.jax.header import Header

NAME, RETIRE = "featherlane_rollout", "featherlane_retire"
ENTRIES, HEAD, CALL, COPY = 4096, 3, 6, 5  # size of the registry; integers of a table's head, a call, a copy
BYTES, WIDEN, NARROW = 0, 1, 2  # kinds of copies: unchanged, float32 to float64, float64 to float32
GONE = b"featherlane: the Dynamics that this program was made with is gone"
FRAME, ERROR = "XLA_FFI_CallFrame", "XLA_FFI_Error_Create_Args"
FIELDS = {  # whose offsets the handler needs: struct, field, fields of nested structs
    "arguments": (FRAME, "args", "args"),
    "results": (FRAME, "rets", "rets"),
    "attributes": (FRAME, "attrs", "attrs"),
    "extension": (FRAME, "extension_start"),
    "api": (FRAME, "api"),
    "data": ("XLA_FFI_Buffer", "data"),
    "value": ("XLA_FFI_Scalar", "value"),
    "create": ("XLA_FFI_Api", "XLA_FFI_Error_Create"),
    "metadata": ("XLA_FFI_Metadata_Extension", "metadata"),
    "major": ("XLA_FFI_Metadata", "api_version", "major_version"),
    "minor": ("XLA_FFI_Metadata", "api_version", "minor_version"),
    "traits": ("XLA_FFI_Metadata", "traits"),
}

LOCK = """
declare i32 @sched_yield()

define internal void @lock(ptr %entry) {
  br label %try
try:
  %seen = cmpxchg ptr %entry, i64 0, i64 1 acquire monotonic
  %taken = extractvalue { i64, i1 } %seen, 1
  br i1 %taken, label %mine, label %wait
wait:
  %ignored = call i32 @sched_yield()
  br label %try
mine:
  ret void
}
"""
TAKE_OUT = """
define void @featherlane_retire(ptr %entry) {
  call void @lock(ptr %entry)
  %token = getelementptr i8, ptr %entry, i64 8
  store i64 0, ptr %token
  store atomic i64 0, ptr %entry release, align 8
  ret void
}
"""
TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal i64 @number(ptr %base, i64 %byte) alwaysinline {{
  %p = getelementptr i8, ptr %base, i64 %byte
  %x = load i64, ptr %p
  ret i64 %x
}}

define internal ptr @pointer(ptr %base, i64 %byte) alwaysinline {{
  %p = getelementptr i8, ptr %base, i64 %byte
  %x = load ptr, ptr %p
  ret ptr %x
}}

define internal i64 @attribute(ptr %frame, i64 %k) alwaysinline {{
  %attributes = call ptr @pointer(ptr %frame, i64 {attributes})
  %at = mul i64 %k, 8
  %scalar = call ptr @pointer(ptr %attributes, i64 %at)
  %value = call ptr @pointer(ptr %scalar, i64 {value})
  %x = load i64, ptr %value
  ret i64 %x
}}

; where the buffer number k of the list at byte `list` of the call frame lies; `other` where k is negative
define internal ptr @buffer(ptr %frame, i64 %list, i64 %k, ptr %other) {{
  %none = icmp slt i64 %k, 0
  br i1 %none, label %own, label %given
own:
  ret ptr %other
given:
  %buffers = call ptr @pointer(ptr %frame, i64 %list)
  %at = mul i64 %k, 8
  %buffer = call ptr @pointer(ptr %buffers, i64 %at)
  %data = call ptr @pointer(ptr %buffer, i64 {data})
  ret ptr %data
}}

define internal void @copy(ptr %to, ptr %from, i64 %n, i64 %kind) {{
  switch i64 %kind, label %bytes [ i64 {widen}, label %widen  i64 {narrow}, label %narrow ]
bytes:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  ret void
widen:
  %i = phi i64 [ 0, %0 ], [ %i1, %widen ]
  %wf = getelementptr float, ptr %from, i64 %i
  %wt = getelementptr double, ptr %to, i64 %i
  %wx = load float, ptr %wf
  %wy = fpext float %wx to double
  store double %wy, ptr %wt
  %i1 = add i64 %i, 1
  %wm = icmp slt i64 %i1, %n
  br i1 %wm, label %widen, label %done
narrow:
  %j = phi i64 [ 0, %0 ], [ %j1, %narrow ]
  %nf = getelementptr double, ptr %from, i64 %j
  %nt = getelementptr float, ptr %to, i64 %j
  %nx = load double, ptr %nf
  %ny = fptrunc double %nx to float
  store float %ny, ptr %nt
  %j1 = add i64 %j, 1
  %nm = icmp slt i64 %j1, %n
  br i1 %nm, label %narrow, label %done
done:
  ret void
}}

; n copies; buffers of the call frame are sources where `list` is that of the arguments, else destinations
define internal void @copies(ptr %frame, i64 %list, ptr %first, i64 %n) {{
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %next, label %done
next:
  %k = phi i64 [ 0, %0 ], [ %k1, %next ]
  %byte = mul i64 %k, {copy}
  %c = getelementptr i8, ptr %first, i64 %byte
  %to = call ptr @pointer(ptr %c, i64 0)
  %from = call ptr @pointer(ptr %c, i64 8)
  %index = call i64 @number(ptr %c, i64 16)
  %count = call i64 @number(ptr %c, i64 24)
  %kind = call i64 @number(ptr %c, i64 32)
  %arguments = icmp eq i64 %list, {arguments}
  %source.index = select i1 %arguments, i64 %index, i64 -1
  %target.index = select i1 %arguments, i64 -1, i64 %index
  %source = call ptr @buffer(ptr %frame, i64 %list, i64 %source.index, ptr %from)
  %target = call ptr @buffer(ptr %frame, i64 %list, i64 %target.index, ptr %to)
  call void @copy(ptr %target, ptr %source, i64 %count, i64 %kind)
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}

; n calls of loops over tiles, one or more
define internal void @calls(ptr %first, i64 %n) {{
  br label %next
next:
  %k = phi i64 [ 0, %0 ], [ %k1, %done ]
  %byte = mul i64 %k, {call}
  %c = getelementptr i8, ptr %first, i64 %byte
  %function = call ptr @pointer(ptr %c, i64 0)
  %m = call ptr @pointer(ptr %c, i64 8)
  %d = call ptr @pointer(ptr %c, i64 16)
  %b = call ptr @pointer(ptr %c, i64 24)
  %t = call ptr @pointer(ptr %c, i64 32)
  %ntile = call i64 @number(ptr %c, i64 40)
  %three = icmp eq ptr %t, null
  br i1 %three, label %short, label %long
short:
  call void %function(ptr %m, ptr %d, ptr %b, i64 0, i64 0, i64 %ntile)
  br label %done
long:
  call void %function(ptr %m, ptr %d, ptr %b, ptr %t, i64 0, i64 0, i64 %ntile)
  br label %done
done:
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %n
  br i1 %more, label %next, label %end
end:
  ret void
}}

define ptr @{name}(ptr %frame) {{
  %extension = call ptr @pointer(ptr %frame, i64 {extension})
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %call, label %query
query:  ; XLA asks which version this was written for
  %metadata = call ptr @pointer(ptr %extension, i64 {metadata})
  %major = getelementptr i8, ptr %metadata, i64 {major}
  %minor = getelementptr i8, ptr %metadata, i64 {minor}
  %traits = getelementptr i8, ptr %metadata, i64 {traits}
  store i32 {version[0]}, ptr %major
  store i32 {version[1]}, ptr %minor
  store i32 0, ptr %traits
  ret ptr null
call:
  %place = call i64 @attribute(ptr %frame, i64 0)
  %token = call i64 @attribute(ptr %frame, i64 1)
  %known = icmp ult i64 %place, {entries}
  br i1 %known, label %enter, label %unknown
enter:
  %byte = mul i64 %place, 24
  %base = inttoptr i64 {registry} to ptr
  %entry = getelementptr i8, ptr %base, i64 %byte
  call void @lock(ptr %entry)
  %expected = call i64 @number(ptr %entry, i64 8)
  %same = icmp eq i64 %expected, %token
  br i1 %same, label %run, label %leave
run:
  %table = call ptr @pointer(ptr %entry, i64 16)
  %ncall = call i64 @number(ptr %table, i64 0)
  %nin = call i64 @number(ptr %table, i64 8)
  %nout = call i64 @number(ptr %table, i64 16)
  %calls = getelementptr i8, ptr %table, i64 {head}
  %over = mul i64 %ncall, {call}
  %in = getelementptr i8, ptr %calls, i64 %over
  call void @copies(ptr %frame, i64 {arguments}, ptr %in, i64 %nin)
  call void @calls(ptr %calls, i64 %ncall)
  %after = mul i64 %nin, {copy}
  %out = getelementptr i8, ptr %in, i64 %after
  call void @copies(ptr %frame, i64 {results}, ptr %out, i64 %nout)
  store atomic i64 0, ptr %entry release, align 8
  ret ptr null
leave:
  store atomic i64 0, ptr %entry release, align 8
  br label %unknown
unknown:
  %error = inttoptr i64 {error} to ptr
  %api = call ptr @pointer(ptr %frame, i64 {api})
  %create = call ptr @pointer(ptr %api, i64 {create})
  %made = call ptr %create(ptr %error)
  ret ptr %made
}}
"""


@dataclass(frozen=True, eq=False)
class Entry:
    """A table of the registry, which exists as long as this object.

    Attributes:
        place, token: reference of compiled programs to the table.
        program: what it runs.
    """

    place: int
    token: int
    program: Program


class Handler:
    """The handler in this process, and the registry of its tables.

    Args:
        header: XLA's interface.

    Raises:
        ImportError: no compiler is installed.
        UnknownNameError: the header lacks a struct or field.
    """

    def __init__(self, header: Header):
        self.registry = np.zeros((ENTRIES, 3), np.int64)
        self._free, self._lock = list(range(ENTRIES - 1, -1, -1)), threading.Lock()
        self._message, kind = ctypes.create_string_buffer(GONE), header.struct(ERROR)
        code = header.number("XLA_FFI_Error_Code_FAILED_PRECONDITION")
        size = header.offset(ERROR, "errc") + ctypes.sizeof(ctypes.c_int)
        self._error = kind(struct_size=size, message=ctypes.addressof(self._message), errc=code)
        text = TEXT.format(
            name=NAME, entries=ENTRIES, registry=self.registry.ctypes.data, error=ctypes.addressof(self._error),
            version=version(header), head=8 * HEAD, call=8 * CALL, copy=8 * COPY, widen=WIDEN, narrow=NARROW,
            **{name: header.offset(*path) for name, path in FIELDS.items()},
        )  # fmt: skip
        self.address = compile_llvm(NAME, LOCK + text)
        self._retire = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compile_llvm(RETIRE, LOCK + TAKE_OUT))

    def add(self, program: Program, dtype: np.dtype) -> Entry | None:
        """Registers a program; None if it needs Python, or if the registry is full.

        Args:
            program: the program.
            dtype: dtype of the arguments and results of compiled programs, float64 or float32.
        """
        if program.calls is None:
            return None
        copies = [_row(copy, dtype) for copy in (*program.before, *program.after)]
        head = len(program.calls), len(program.before), len(program.after)
        table = np.array([*head, *np.ravel(program.calls), *np.ravel(copies)], np.int64)
        with self._lock:
            if not self._free:
                return None
            place = self._free.pop()
        entry = Entry(place, secrets.randbits(62) | 1, program)
        self.registry[place, 2] = table.ctypes.data
        self.registry[place, 1] = entry.token
        weakref.finalize(entry, self._remove, place, (table, program)).atexit = False
        return entry

    def _remove(self, place: int, _alive: Any) -> None:
        """Removes a table once no compiled program uses it."""
        self._retire(self.registry[place].ctypes.data)
        with self._lock:
            self._free.append(place)


def _row(copy: tuple[np.ndarray | None, np.ndarray | None, int], dtype: np.dtype) -> Sequence[int]:
    """Returns a copy of the table; a buffer has another dtype than our memory if `dtype` has."""
    target, source, index = copy
    ours = source if target is None else target
    assert ours is not None and ours.flags.c_contiguous
    if index < 0 or dtype == ours.dtype:
        kind, n = BYTES, ours.nbytes
    else:
        wide = (dtype if target is None else ours.dtype) == np.float64
        kind, n = WIDEN if wide else NARROW, ours.size
    return [*(0 if a is None else a.ctypes.data for a in (target, source)), index, n, kind]


@functools.cache
def handler() -> Handler | None:
    """Returns the handler, registered with JAX; None without a compiler, or for another version of the interface."""
    if sys.platform == "win32":
        return None  # `sched_yield` is a POSIX function
    try:
        header = Header(jax.ffi.include_dir())
        made = Handler(header) if version(header)[0] == 0 else None
    except (ImportError, OSError, LookupError):
        return None
    if made is not None:
        jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(made.address), platform="cpu")
    return made


def version(header: Header) -> tuple[int, int]:
    """Returns (major, minor) of the interface."""
    return header.number("XLA_FFI_API_MAJOR"), header.number("XLA_FFI_API_MINOR")
