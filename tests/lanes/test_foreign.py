"""Functions in LLVM IR."""

import ctypes

import pytest

from featherlane.extension import compile_llvm

pytest.importorskip("llvmlite")
TEXT = "define double @{name}(double %x) {{\n  %y = fmul double %x, {factor}\n  ret double %y\n}}"


def test_compiled_functions_can_be_called():
    for name, factor in (("test_twice", 2.0), ("test_half", 0.5)):
        address = compile_llvm(name, TEXT.format(name=name, factor=factor))
        assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(3.0) == 3.0 * factor


def test_invalid_code_is_an_error():
    with pytest.raises(RuntimeError):
        compile_llvm("test_wrong", "define double @test_wrong() { ret }")
