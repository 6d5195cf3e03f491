"""Compiles stages to machine code: LLVM IR by our front end, then LLVM's optimiser and code generator for a processor.

    lower      stages and their record types -> LLVM IR (unoptimised), the same for every processor
    emit       LLVM IR -> object code for a target

The wheel's build (the stages of a package together, linked: `build.py`) and the just-in-time compiler (one stage, this
machine's level, loaded as an object) use the same steps.  Imported only for compiling.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import llvmlite.binding as llvm

from featherlane.engine.lanes.compiler.program import Program
from featherlane.engine.lanes.kernel import Stage, variant
from featherlane.engine.lanes.processor import NATIVE, TRIPLES, host, level_features, split_target

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
OPTIONS = (  # LLVM options: half the compile time; instructions grow by less than 1 % a step, by up to 5 % a transition
    "-memdep-block-number-limit=10",  # blocks searched for the dependency of a load; the default is 200
    "-enable-module-inliner",  # inlines first, then optimises each function once instead of once in each caller
    "-enable-load-pre=false",  # no partial-redundancy elimination of loads
    "-unroll-runtime=false",  # no unrolling of loops with an unknown count: saves a fifth of the machine code
    # passes that change less than 0.1 % of the instructions and take a tenth of the optimiser's time
    "-opt-disable=adce,aggressive-instcombine,bdce,called-value-propagation,constraint-elimination,infer-alignment,"
    "libcalls-shrinkwrap,loop-deletion,loop-distribute,loop-instsimplify,loop-load-elim,loop-sink,memcpyopt,"
    "mldst-motion,speculative-execution,vector-combine",
)
for option in OPTIONS:
    llvm.set_option("featherlane", option)


class Effort(NamedTuple):
    """Optimisation settings."""

    level: int  # of LLVM's pipeline
    inlining: int  # LLVM's inline threshold: functions above this cost are called, not inlined
    vectors: bool  # combine equal operations of one world into vectors?


TILE = Effort(level=3, inlining=250, vectors=False)  # operations on worlds are vectors already
ONE_WORLD = Effort(level=3, inlining=450, vectors=True)  # a call costs as much as a tile's, but its work is less
DERIVATIVE = Effort(level=1, inlining=100, vectors=True)  # two fifths less compile time, 1 to 3 % more instructions
DERIVATIVE_OF_ONE = Effort(level=1, inlining=225, vectors=True)  # with 100 a transition of one world takes 3 % longer


class Target(NamedTuple):
    """A processor and a system to emit code for, in LLVM's names."""

    triple: str
    cpu: str
    features: str = ""

    def machine(self):
        """Creates LLVM's target machine.

        Raises:
            RuntimeError: LLVM has no such target.
        """
        target = llvm.Target.from_triple(self.triple)
        return target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="default"
        )


def compile_target(name: str) -> Target:
    """Returns the target of a CPU level, of `native` (this exact processor), or of a level of another system.

    Args:
        name: a level of `processor.LEVELS`, `native`, or what `processor.target_name` returns.
    """
    if name == NATIVE:
        return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    level, place = split_target(name)
    if place == host():
        return Target(llvm.get_process_triple(), *level_features(level))
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return Target(TRIPLES[place], *level_features(level))


_programs: dict[tuple, tuple] = {}  # (records, base, width, checked) -> (the records, their program)


def program(records, base: str, width: int, checked: bool) -> Program:
    """Returns the functions written so far in one variant: kernels that stages share are written once per process."""
    key = id(records), base, width, checked
    if key not in _programs:
        _programs[key] = records, Program(records, base, width, checked)
    return _programs[key][1]


def lower(stages: Sequence[Stage], records, base: str, width: int, checked: bool = False, alone: bool = False) -> str:
    """Returns LLVM IR of stages, each a C function fl_<name>_<base>x<width>(record pointers and int64 ...) -> int32.

    Args:
        stages: stages that exist in one variant.
        records: parameter name -> (layout, is it constant while a stage runs).
        base, width: precision and worlds in a tile.
        checked: with bounds checks?
        alone: read the kernels again, because they, or numbers that they name, may have changed.

    Raises:
        KernelLanguageError: a kernel breaks a rule of its language.
    """
    form = (*variant(stages[0], base, width), checked)
    return (Program(records, *form) if alone else program(records, *form)).module(stages)


def effort(stages: Sequence[Stage], width: int) -> Effort:
    """Returns the optimisation settings for stages that are compiled together."""
    if all(s.is_derivative for s in stages):
        return DERIVATIVE_OF_ONE if width == 1 else DERIVATIVE
    return ONE_WORLD if width == 1 else TILE


@functools.cache
def _head(target: Target) -> str:
    return f'target triple = "{target.triple}"\ntarget datalayout = "{target.machine().target_data}"\n'


def emit(text: str, level: str, effort: Effort = TILE) -> bytes:
    """Returns object code of LLVM IR for this system and a CPU level."""
    return emit_for(text, compile_target(level), effort)


def emit_for(text: str, target: Target, effort: Effort = TILE) -> bytes:
    """Returns object code of LLVM IR for any target that LLVM supports."""
    machine, module = optimised(text, target, effort)
    return machine.emit_object(module)


def outlined(text: str) -> str:
    """Returns LLVM IR that calls one function for all fused multiply-adds of vectors.

    For a processor without the instruction, LLVM writes a call of libm for each world at each use: most of the code.
    """
    for kind, name in re.findall(r"^declare (<.+?>) @llvm\.(fma\.v\w+)\(", text, re.MULTILINE):
        text = text.replace(f"call {kind} @llvm.{name}(", f"call {kind} @{name}(")
        operands = ", ".join(f"{kind} %{x}" for x in "xyz")
        text += (
            f"define internal {kind} @{name}({operands}) noinline nounwind willreturn memory(none) {{\n"
            f"  %r = call {kind} @llvm.{name}({operands})\n  ret {kind} %r\n}}\n"
        )
    return text


def optimised(text: str, target: Target, effort: Effort = TILE):
    """Returns (target machine, module) after a few passes and LLVM's pipeline, without reordering of arithmetic."""
    llvm.set_option("featherlane", f"-inline-threshold={effort.inlining}")  # the module inliner reads no tuning option
    if target.cpu == "x86-64" or "-fma" in target.features.split(","):
        text = outlined(text)
    # a separate context, so that LLVM's data for a module is freed with it
    machine, module = target.machine(), llvm.parse_assembly(_head(target) + text, llvm.create_context())
    for level in (0, effort.level):
        options = llvm.create_pipeline_tuning_options()
        options.speed_level, options.loop_vectorization = level, False
        options.slp_vectorization = level > 0 and effort.vectors
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if level == 0:
            passes.add_sroa_pass()
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
    return machine, module
