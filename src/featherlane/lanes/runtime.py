"""From a stage to something that runs: prebuilt, just in time, bounds-checked, or plain Python.

FEATHERLANE_MODE chooses: `auto` (prebuilt where it fits, else just in time), `prebuilt`, `jit`, `checked`, `python`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from . import cache, processor
from .kernel import Stage
from .layout import layout_hash
from .record import Record, python_record

MODES = ("auto", "prebuilt", "jit", "checked", "python")
PREBUILT = Path(__file__).parent / "prebuilt"


class KernelError(RuntimeError):
    """Kernels cannot be had: no prebuilt object fits and there is no compiler."""


def mode() -> str:
    """The mode asked for by FEATHERLANE_MODE.

    Raises:
        ValueError: an unknown mode.
    """
    given = os.environ.get("FEATHERLANE_MODE", "auto")
    if given not in MODES:
        raise ValueError(f"FEATHERLANE_MODE is {given!r}; allowed are {', '.join(MODES)}")
    return given


class Library:
    """Stages and the records they work on.

    Args:
        records: parameter name -> (layout, is it constant while a stage runs).
        stages: every stage that may be asked for.
    """

    def __init__(self, records, stages):
        self.records = records
        self.stages = {s.name: s for s in stages}
        self._loaded: dict[tuple, Callable] = {}  # (stage, base, width, checked) -> C function
        self._engines = []  # what keeps just-in-time code alive
        self._noticed = False

    def layout_hash(self) -> str:
        """Hash of all record layouts; a prebuilt object carries the one it was made for."""
        return layout_hash(*(layout for layout, _ in self.records.values()))

    def bind(self, stage: Stage, *records: Record) -> Callable[..., None]:
        """A function of the stage's whole-number arguments that runs it on these records.

        Raises:
            KernelError: no compiled form can be had.
        """
        first, chosen = records[0], mode()
        if chosen == "python":
            return lambda *numbers: stage(*[python_record(r) for r in records], *numbers)
        checked = chosen == "checked"
        function = self.function(stage, processor.base_of(first.dtype), first.width, checked)
        addresses = [r.address for r in records]
        if not checked:
            return functools.partial(function, *addresses)

        def run(*numbers):
            function(*addresses, *numbers)
            for r in records:
                r.check_faults(stage.name)

        return run

    def function(self, stage: Stage, base: str, width: int, checked: bool = False) -> Callable:
        """The C function of a stage, loaded or compiled now."""
        found = self._loaded.get((stage.name, base, width, checked))
        if found is None:
            found = None if checked else self._prebuilt_function(stage, base, width)
            found = found or self._compile(stage, base, width, checked)
            self._loaded[stage.name, base, width, checked] = found
        return found

    # ---- ahead of time ---------------------------------------------------------------------------------
    @functools.cached_property
    def _prebuilt(self):
        """(shared object, None), or (None, why not)."""
        if mode() in ("jit", "checked"):
            return None, f"FEATHERLANE_MODE is {mode()}"
        path = PREBUILT / f"{processor.cpu_level()}.so"
        if not path.exists():
            return None, f"no prebuilt kernels for {processor.cpu_level()} in this installation"
        so = ctypes.CDLL(str(path))
        found = ctypes.c_char * 17
        if found.in_dll(so, "featherlane_layout").value.decode() != self.layout_hash():
            return None, f"{path.name} was built for other record layouts (stale)"
        return so, None

    def _prebuilt_function(self, stage, base, width):
        so, why = self._prebuilt
        name = f"fl_{stage.name}_{base}x{width}"
        function = getattr(so, name, None) if so else None
        if function is None and mode() == "prebuilt":
            raise KernelError(f"FEATHERLANE_MODE is prebuilt, but {why or f'{name} is not in the prebuilt object'}")
        return self._typed(function, stage) if function else None

    def _typed(self, function, stage):
        function.argtypes = [ctypes.c_void_p if p in self.records else ctypes.c_int64 for p in stage.parameters]
        function.restype = ctypes.c_int32
        return function

    def configuration(self) -> dict[str, str]:
        """What is in use: mode, CPU level, object, cache."""
        so, why = (None, None) if mode() == "python" else self._prebuilt
        form = "uncompiled" if mode() == "python" else "ahead of time" if so else "just in time"
        return {
            "kernels": form + (f" ({why})" if why else ""),
            "mode": mode(),
            "cpu": processor.cpu_level(),
            "object": so._name if so else str(cache.directory()),
            "widths": f"float64 {processor.tile_width(np.float64)}, float32 {processor.tile_width(np.float32)}",
        }

    # ---- just in time ----------------------------------------------------------------------------------
    def required(self, stage: Stage) -> list[Stage]:
        """The stage and every stage that it calls, callees first."""
        order: dict[str, Stage] = {}

        def visit(s):
            for callee in s.calls().values():
                if callee.name not in order:
                    visit(callee)
            order[s.name] = s

        visit(stage)
        return list(order.values())

    def object_code(self, stage: Stage, base: str, width: int, cpu: str, checked: bool = False) -> bytes:
        """A stage's object code, from the cache or compiled now."""
        name = cache.key(stage, self.records, base, width, cpu, checked)
        code = cache.read(name)
        if code is None:
            from . import toolchain

            code = toolchain.emit(toolchain.lower(stage, self.records, base, width, checked), cpu)
            cache.write(name, code)
        return code

    def _compile(self, stage, base, width, checked):
        try:
            import llvmlite.binding as llvm
        except ImportError as e:
            raise KernelError(
                f"kernel {stage.name} (float{base[1:]}, {width} worlds) has to be compiled: {self._prebuilt[1] or 'it is not prebuilt'}. "
                "Install the compiler with: pip install 'featherlane[jit]'"
            ) from e
        needed = [s for s in self.required(stage) if (s.name, base, width, checked) not in self._loaded]
        cpu = processor.cpu_level()
        missing = [s for s in needed if cache.read(cache.key(s, self.records, base, width, cpu, checked)) is None]
        if missing and not self._noticed:
            self._noticed = True
            print(f"featherlane: compiling kernels just in time, kept in {cache.directory()}", file=sys.stderr)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        for s in needed:
            code = self.object_code(s, base, width, cpu, checked)
            machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(jit=True)
            engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            name = f"fl_{s.name}_{base}x{width}"
            pointer = engine.get_function_address(name)
            llvm.add_symbol(name, pointer)
            self._engines.append(engine)
            prototype = ctypes.CFUNCTYPE(
                ctypes.c_int32, *[ctypes.c_void_p if p in self.records else ctypes.c_int64 for p in s.parameters]
            )
            self._loaded[s.name, base, width, checked] = prototype(pointer)
        return self._loaded[stage.name, base, width, checked]
