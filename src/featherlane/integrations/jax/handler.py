"""An XLA handler: rollouts of worlds from within a compiled program, without Python.

XLA passes a handler one call frame with the addresses of arguments, results and attributes.  This handler is written
in LLVM IR, which the engine's compiler compiles at first use.  It copies arguments into the rows of worlds, calls the
compiled loop over tiles, and copies the recorded states into the results.  Python prepares a table of these copies and
calls; programs refer to it by its place in a registry and by a token.  A program that outlives its table, or comes from
another process, raises an error.

    registry entry   lock, token, table
    table            numbers of calls, of copies in and of copies out; then the calls, then the copies
    call             function, its records (the fourth is optional), number of tiles
    copy             destination, source, argument or result that replaces one of them (-1: none), count, kind

Source: XLA, xla/ffi/api/c_api.h (its structs, version 0).
"""

from __future__ import annotations

import ctypes
import functools
import re
import secrets
import sys
import threading
import weakref
from pathlib import Path

import numpy as np

from featherlane.engine.lanes import processor

NAME, RETIRE = "featherlane_rollout", "featherlane_retire"
ENTRIES, HEAD, CALL, COPY = 4096, 3, 6, 5  # size of the registry; integers of a table's head, a call, a copy
BYTES, WIDEN, NARROW = 0, 1, 2  # kinds of copies: unchanged, float32 to float64, float64 to float32
FAILED_PRECONDITION = 9  # XLA_FFI_Error_Code
GONE = b"featherlane: the Dynamics that this program was made with is gone\0"
OFFSETS = {  # byte offsets of fields in XLA's structs
    "arguments": 72, "results": 112, "attributes": 160, "extension": 8, "api": 16,  # XLA_FFI_CallFrame
    "data": 24, "value": 8, "create": 48,  # XLA_FFI_Buffer, XLA_FFI_Scalar, XLA_FFI_Error_Create of XLA_FFI_Api
    "metadata": 24, "version": 24,  # XLA_FFI_Metadata_Extension, major_version of XLA_FFI_Metadata
}  # fmt: skip

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
@gone = private constant [{length} x i8] c"{gone}"
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
  %version = getelementptr i8, ptr %metadata, i64 {version}
  store [3 x i32] [ i32 {major}, i32 {minor}, i32 0 ], ptr %version  ; and no traits
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
  %error = alloca {{ i64, ptr, ptr, i32 }}
  store {{ i64, ptr, ptr, i32 }} {{ i64 28, ptr null, ptr @gone, i32 {failed} }}, ptr %error
  %api = call ptr @pointer(ptr %frame, i64 {api})
  %create = call ptr @pointer(ptr %api, i64 {create})
  %made = call ptr %create(ptr %error)
  ret ptr %made
}}
"""


class Handler:
    """The handler in this process, and the registry of its tables.

    Args:
        major, minor: version of XLA's interface.
    """

    def __init__(self, major: int, minor: int):
        from featherlane.engine.lanes import toolchain  # loads LLVM
        from featherlane.engine.lanes.engine import Engine

        self.registry = np.zeros((ENTRIES, 3), np.int64)
        self._free, self._lock = list(range(ENTRIES - 1, -1, -1)), threading.Lock()
        text = TEXT.format(
            name=NAME, major=major, minor=minor, entries=ENTRIES, registry=self.registry.ctypes.data,
            head=8 * HEAD, call=8 * CALL, copy=8 * COPY, widen=WIDEN, narrow=NARROW,
            length=len(GONE), gone=GONE[:-1].decode() + "\\00",
            failed=FAILED_PRECONDITION, **OFFSETS,
        )  # fmt: skip
        self._engine, level = Engine(), processor.cpu_level()
        for symbol, body in ((NAME, text), (RETIRE, TAKE_OUT)):
            self._engine.load({symbol: toolchain.emit(LOCK + body, level)}, [])
        self.address = self._engine[NAME]
        self._retire = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._engine[RETIRE])

    def add(self, owner, table: np.ndarray, alive) -> tuple[int, int]:
        """Registers a table and returns its (place, token); place -1 if the registry is full.

        Args:
            owner: object with whose deletion the table is removed.
            table: integers, as above.
            alive: owner of the memory at the table's addresses.
        """
        with self._lock:
            if not self._free:
                return -1, 0
            place = self._free.pop()
        token = secrets.randbits(62) | 1
        self.registry[place, 2] = table.ctypes.data
        self.registry[place, 1] = token
        weakref.finalize(owner, self._remove, place, (table, alive)).atexit = False
        return place, token

    def _remove(self, place: int, _alive) -> None:
        """Removes a table once no program uses it."""
        self._retire(self.registry[place].ctypes.data)
        with self._lock:
            self._free.append(place)


@functools.cache
def handler() -> Handler | None:
    """Returns the handler, registered with JAX; None without a compiler, or for another version of the interface."""
    import jax  # pyright: ignore[reportMissingImports]

    if sys.platform == "win32":
        return None  # `sched_yield` is a POSIX function
    try:
        version = _version(Path(jax.ffi.include_dir()))
        made = Handler(*version) if version and version[0] == 0 else None
    except (ImportError, OSError):
        return None
    if made is not None:
        jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(made.address), platform="cpu")
    return made


def _version(folder: Path) -> tuple[int, int] | None:
    """Returns (major, minor) of the interface, from JAX's header."""
    text = (folder / "xla/ffi/api/c_api.h").read_text()
    numbers = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
    major, minor = (int(found[1]) if found else -1 for found in numbers)
    return (major, minor) if minor >= 0 else None
