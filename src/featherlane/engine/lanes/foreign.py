"""Machine code of functions that front ends write in LLVM IR."""

from __future__ import annotations

from typing import Any

from featherlane.engine.lanes import processor

_engines: list[Any] = []  # one, which owns the machine code


def compile_llvm(symbol: str, text: str) -> int:
    """Compiles a function in LLVM IR for this processor, and returns its address; it stays in memory.

    Args:
        symbol: name of the function, which no earlier call has compiled.
        text: LLVM IR without a target; it may call functions of libc.

    Raises:
        ImportError: no compiler is installed.
        RuntimeError: invalid LLVM IR, or a call of an unknown function.
    """
    from featherlane.engine.lanes import toolchain  # loads LLVM
    from featherlane.engine.lanes.engine import Engine

    if not _engines:
        _engines.append(Engine())
    _engines[0].load({symbol: toolchain.emit(text, processor.cpu_level())}, [])
    return _engines[0][symbol]
