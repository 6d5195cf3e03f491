"""Compiles the same code for other machines: objects for other processors, threads of a GPU.  None of them is run."""

import re

import llvmlite.binding as llvm
import pytest

from featherlane.engine.lanes import toolchain
from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.simulation.tile.library import RECORDS, stages

LINUX = toolchain.Target("aarch64-unknown-linux-gnu", "generic")
MACOS = toolchain.Target("arm64-apple-macosx13.0.0", "apple-m1")
GPU = toolchain.Target("nvptx64-nvidia-cuda", "sm_80")
HEADS = {LINUX: b"\x7fELF", MACOS: b"\xcf\xfa\xed\xfe"}
AARCH64 = 183  # e_machine of ELF
SOME = ["kinematics", "crb", "solve_m"]


@pytest.fixture(scope="module", autouse=True)
def every_target():
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def text(name: str, width: int) -> str:
    return toolchain.lower([stages()[name]], RECORDS, "f64", width)


def check_object(name: str, target: toolchain.Target, width: int):
    code = toolchain.emit_for(text(name, width), target)
    assert code.startswith(HEADS[target])
    if target is LINUX:
        assert int.from_bytes(code[18:20], "little") == AARCH64
    assert symbol(stages()[name], "f64", width, False).encode() in code


def check_ptx(name: str):
    machine, module = toolchain.optimised(text(name, 1), GPU)
    ptx = machine.emit_assembly(module)
    assert ".target sm_80" in ptx
    assert re.search(rf"\.func .*{symbol(stages()[name], 'f64', 1, False)}\(", ptx)


@pytest.mark.parametrize("target", HEADS, ids=lambda t: t.triple)
@pytest.mark.parametrize("name", SOME)
def test_a_stage_becomes_an_object_for_another_machine(name, target):
    check_object(name, target, 8)


@pytest.mark.parametrize("name", SOME)
def test_a_stage_becomes_ptx(name):
    check_ptx(name)


@pytest.mark.parametrize("base, width, name", [("f64", 8, "v8f64"), ("f32", 16, "v16f32")])
def test_a_processor_without_fused_multiply_add_calls_libm_in_one_place(base, width, name):
    """Written out at each use, these calls would be most of the machine code."""
    sources = toolchain.lower([stages()["kinematics"]], RECORDS, base, width)
    uses = []
    for cpu in ("x86-64", "x86-64-v3"):
        _, module = toolchain.optimised(sources, toolchain.Target("x86_64-unknown-linux-gnu", cpu, "+avx"))
        uses.append(len(re.findall(rf"call .*@llvm\.fma\.{name}\(", str(module))))
    assert uses[0] == 1 and uses[1] > 20


@pytest.mark.slow
@pytest.mark.parametrize("target", HEADS, ids=lambda t: t.triple)
def test_every_stage_becomes_an_object_for_another_machine(target):
    for name in stages():
        check_object(name, target, 8)


@pytest.mark.slow
def test_every_stage_becomes_ptx():
    for name in stages():
        check_ptx(name)
