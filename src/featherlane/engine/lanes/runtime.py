"""Makes stages runnable: prebuilt, just in time, bounds-checked, or plain Python.

FEATHERLANE_MODE selects: `auto` (prebuilt if available, else just in time), `prebuilt`, `jit`, `checked`, `python`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from featherlane.engine.lanes import cache, choice, processor
from featherlane.engine.lanes.kernel import Stage, symbol, variant
from featherlane.engine.lanes.layout import layout_hash
from featherlane.engine.lanes.record import Record, python_record
from featherlane.errors import ArgumentError, FeatherlaneError

MODES = ("auto", "prebuilt", "jit", "checked", "python")
PREBUILT = Path(__file__).parent / "prebuilt"
SUFFIX = ".dll" if sys.platform == "win32" else ".so"
UNCONVERTED = ctypes.CFUNCTYPE(None)  # type of functions whose arguments ctypes does not convert
LAYOUT_SYMBOL = "featherlane_layout"  # string in a prebuilt object: hash of the layouts it was built for


def mode() -> str:
    """Returns the mode of FEATHERLANE_MODE.

    Raises:
        ValueError: an unknown mode.
    """
    given = os.environ.get("FEATHERLANE_MODE") or "auto"
    if given not in MODES:
        raise ArgumentError(f"FEATHERLANE_MODE: got {given!r}, allowed are {', '.join(MODES)}")
    return given


def _argument(number: int):
    """Returns an address or an int as an argument of 64 bits that needs no conversion."""
    return ctypes.byref(ctypes.c_char.from_address(number & (1 << 64) - 1))


class KernelError(FeatherlaneError, RuntimeError):
    """Raised if kernels are unavailable: no matching prebuilt object and no compiler: docs/errors.md#kernelerror."""


class Library:
    """Runnable stages for one set of record layouts.

    Args:
        records: parameter name -> (layout, is it constant while a stage runs); `x1` is the record `x` for a stage that
            processes one world at a time.
    """

    def __init__(self, records):
        self.records = records
        self._loaded: dict[tuple, Callable] = {}  # (stage, base, width, checked) -> C function
        self._named: dict[str, Stage] = {}
        self._engine = None  # just-in-time code, in which stages call each other
        self._lock = threading.RLock()
        self._noticed = False

    def layout_hash(self) -> str:
        """Returns the hash of all record layouts; a prebuilt object contains the one it was built for."""
        return layout_hash(*(layout for p, (layout, _) in self.records.items() if not p.endswith("1")))

    def bind(
        self, stage: Stage, *records: Record, numbers: tuple[int, ...] | None = None, check: int = False
    ) -> Callable[..., None]:
        """Returns a function of the stage's integer arguments that runs it on these records.

        Args:
            stage: the stage.
            records: its records.
            numbers: all its integer arguments.  They are converted once, and the returned function takes none.
            check: check the bounds of every index, in each mode; `record.FUNCTION` for a user's code.

        Raises:
            KernelError: no compiled form is available.
            ValueError: the records are not the stage's, or differ in width or precision.
        """
        self._check_records(stage, records)
        first, chosen = records[0], mode()
        if chosen == "python":
            return lambda *more: stage(*[python_record(r) for r in records], *(numbers or more))
        checked = check or chosen == "checked"
        function = self.function(stage, processor.base_of(first.dtype), first.width, checked=checked)
        addresses = [r.address for r in records]
        if not checked:
            run = functools.partial(function, *addresses)
            if numbers is not None or len(records) == len(stage.arguments):
                code = ctypes.cast(function, ctypes.c_void_p).value or 0
                run = functools.partial(UNCONVERTED(code), *map(_argument, (*addresses, *(numbers or ()))))
            run.alive = function, records  # the function holds addresses only, so this keeps their owners alive
            return run

        def run(*more):
            function(*addresses, *(numbers or more))
            for r in records:
                r.check_faults(stage.name)

        return run

    def _check_records(self, stage, records):
        layouts = stage.layouts(self.records)
        needed = [record[0] for record in layouts if record]
        if not needed or not all(layouts[: len(needed)]):
            raise ArgumentError(f"stage {stage.signature()}: its first parameters must be records")
        if [r.layout for r in records] != needed:
            given, names = (", ".join(layout.name for layout in each) for each in ([r.layout for r in records], needed))
            raise ArgumentError(f"stage {stage.name}: got records ({given}), allowed are ({names})")
        if len({(r.width, r.dtype) for r in records}) > 1:
            given = ", ".join(f"{r.dtype} x {r.width}" for r in records)
            raise ArgumentError(
                f"stage {stage.name}: got records {given}, allowed are records of one precision and width"
            )

    def function(self, stage: Stage, base: str, width: int, *, checked: bool = False) -> Callable:
        """Returns the C function of a stage, loaded or compiled now."""
        choice.mark_loaded()
        base, width = variant(stage, base, width)
        key = stage.name, base, width, checked
        if self._named.setdefault(stage.name, stage) is not stage:
            raise KernelError(f"two stages have the name {stage.name}: {stage} and {self._named[stage.name]}")
        if key not in self._loaded:  # loaded functions need no lock: an interrupted call could not release it
            with self._lock:
                if key not in self._loaded:
                    found = None if checked else self._prebuilt_function(stage, base, width)
                    self._loaded[key] = found or self._compile(stage, base, width, checked=checked)
        return self._loaded[key]

    # ---- ahead of time ---------------------------------------------------------------------------------
    @functools.cached_property
    def _prebuilt(self):
        """(shared object, None), or (None, reason)."""
        if mode() in ("jit", "checked"):
            return None, f"FEATHERLANE_MODE is {mode()}"
        if choice.is_extended():
            return None, "a table of kernels was extended by another package"
        best = processor.cpu_level()
        fitting = [best] if os.environ.get("FEATHERLANE_CPU") else processor.levels()
        path = next((p for p in (PREBUILT / f"{level}{SUFFIX}" for level in fitting) if p.exists()), None)
        if path is None:
            return None, f"no prebuilt kernels for {best} in this installation"
        try:
            so = ctypes.CDLL(str(path))
            found = (ctypes.c_char * 17).in_dll(so, LAYOUT_SYMBOL).value.decode()
        except (OSError, ValueError) as e:
            return None, f"{path.name} cannot be loaded: {e}"
        if found != self.layout_hash():
            return None, f"{path.name} was built for other record layouts"
        return so, None

    def prebuilt_object(self, level: str) -> bytes | None:
        """Returns the prebuilt object of a CPU level, if the installation has one with these layouts and kernels."""
        path = PREBUILT / f"{level}{SUFFIX}"
        if mode() in ("jit", "checked") or choice.is_extended() or not path.exists():
            return None
        content = path.read_bytes()
        return content if self.layout_hash().encode() in content else None

    def _prebuilt_function(self, stage, base, width):
        so, why = self._prebuilt
        name = symbol(stage, base, width, False)
        function = getattr(so, name, None) if so else None
        if function is None and mode() == "prebuilt":
            raise KernelError(f"FEATHERLANE_MODE is prebuilt, but {why or f'{name} is not in the prebuilt object'}")
        if function:
            function.argtypes, function.restype = self._kinds(stage), None
        return function

    def _kinds(self, stage):
        return [ctypes.c_void_p if record else ctypes.c_int64 for record in stage.layouts(self.records)]

    def configuration(self) -> dict[str, str]:
        """Returns the configuration in use, as text: kernels, mode, cpu, widths, layout, object, cache."""
        so, why = (None, None) if mode() == "python" else self._prebuilt
        form = "uncompiled" if mode() == "python" else "ahead of time" if so else "just in time"
        return {
            "kernels": form + (f" ({why})" if why else ""),
            "mode": mode(),
            "cpu": processor.cpu_level(),
            "widths": f"float64 {processor.tile_width(np.float64)}, float32 {processor.tile_width(np.float32)}",
            "layout": self.layout_hash(),
            "object": so._name if so else "none",
            "cache": str(cache.directory()),
        }

    # ---- just in time ----------------------------------------------------------------------------------
    def required(self, stage: Stage) -> list[Stage]:
        """Returns the stage and every stage that it calls, callees first."""
        order: dict[str, Stage] = {}
        seen = set()

        def visit(s):
            seen.add(s.name)  # before its callees: a field with a stage's name looks like a call (d.crb in crb)
            for callee in s.calls().values():
                if callee.name not in seen:
                    visit(callee)
            order[s.name] = s

        visit(stage)
        return list(order.values())

    def object_code(self, stage: Stage, base: str, width: int, *, cpu: str, checked: bool = False) -> bytes:
        """Returns a stage's object code, from the cache or compiled now."""
        name = cache.key(stage, self.records, base, width, cpu, checked)
        code = cache.read_object(name)
        if code is None:
            from featherlane.engine.lanes import toolchain

            self._notice()
            text = toolchain.lower((stage,), self.records, base, width, checked=checked)
            code = toolchain.emit(text, cpu, toolchain.effort((stage,), width))
            cache.write_object(name, code)
        return code

    def _compile(self, stage, base, width, checked):
        try:
            from featherlane.engine.lanes.engine import Engine

            self._engine = self._engine or Engine()
            needed = {symbol(s, base, width, checked): s for s in self.required(stage)}
            loaded = [name for name in needed if name in self._engine]
            cpu = processor.cpu_level()
            new = {
                name: self.object_code(s, base, width, cpu=cpu, checked=checked)
                for name, s in needed.items()
                if name not in loaded
            }
        except ImportError as e:
            raise KernelError(
                f"kernel {stage.name} (float{base[1:]}, {width} worlds) has to be compiled: "
                f"{self._prebuilt[1] or 'it is not prebuilt'}. "
                "Install the compiler with: pip install 'featherlane[jit]'"
            ) from e
        self._engine.load(new, loaded)
        function = ctypes.CFUNCTYPE(None, *self._kinds(stage))(self._engine[symbol(stage, base, width, checked)])
        function.engine = self._engine
        return function

    def _notice(self):
        """Reports once that kernels are being compiled, which takes a while."""
        if not self._noticed:
            self._noticed = True
            print(f"featherlane: compiling kernels just in time; cache folder: {cache.directory()}", file=sys.stderr)
