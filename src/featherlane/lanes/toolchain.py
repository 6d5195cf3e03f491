"""From stages to machine code: Numba's front end once, then our own optimiser run and code generation for one CPU.

    lower      a stage and its record types -> raw LLVM IR (typing and lowering; nothing optimised, nothing emitted)
    emit       raw IR -> object code for a CPU level

The same steps serve the wheel's build (every stage, every level, then linked: `build.py`) and the just-in-time path
(one stage, this machine's level, loaded as an object).  Source: Numba's ahead-of-time hooks (`AOTCodeLibrary`), which
are private: Numba is pinned.  Imported only when something is compiled.
"""

from __future__ import annotations

import contextlib

import llvmlite.binding as llvm
from numba import njit, types
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from .kernel import Stage, symbol, variant
from .numba_records import FLOATS, JIT_OPTIONS, Struct

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()


class _RawLibrary(AOTCodeLibrary):
    """A code library that is never optimised and never becomes machine code."""

    def _optimize_functions(self, module):
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        pass

    def get_pointer_to_function(self, name):
        return 0


class _RawCodegen(AOTCPUCodegen):
    _library_class = _RawLibrary

    def set_env(self, name, env):
        pass


_context = None


def _raw_context():
    """One target context for all stages of this process, so that a kernel is typed and lowered once for each width."""
    global _context
    if _context is None:
        _context = cpu_target.target_context.subtarget(_internal_codegen=_RawCodegen("featherlane"), aot_mode=True)
    return _context


@contextlib.contextmanager
def _target(context):
    """Dispatchers, helpers included, compile into `context` inside this block."""
    old = cpu_target.target_context
    cpu_target.__dict__["_toplevel_target_context"] = context
    try:
        yield
    finally:
        cpu_target.__dict__["_toplevel_target_context"] = old


def argument_types(stage: Stage, records, base: str, width: int, checked: bool):
    """Numba types of a stage's parameters; `records` maps a parameter's name to (layout, const)."""
    base, width = variant(stage, base, width)
    return tuple(
        Struct(records[p][0], width, FLOATS[base], records[p][1], checked, p.endswith("1"))
        if p in records
        else types.int64
        for p in stage.parameters
    )


def lower(stage: Stage, records, base: str, width: int, checked: bool = False) -> str:
    """Raw LLVM IR of one stage as a C function fl_<name>_<base>x<width>(record pointers and int64 ...) -> int32."""
    context = _raw_context()
    args = argument_types(stage, records, base, width, checked)
    name = symbol(stage, base, width, checked)
    head = f'target triple = "{llvm.get_process_triple()}"\ntarget datalayout = "{context.codegen()._data_layout}"\n'
    merged = llvm.parse_assembly(head)
    with _target(context), global_compiler_lock:
        dispatcher = njit(**JIT_OPTIONS)(stage.function)
        dispatcher.compile(args)
        compiled = dispatcher.overloads[args]
        function = f'@"{compiled.fndesc.llvm_func_name}"'
        kinds = ["ptr" if isinstance(t, Struct) else "i64" for t in args]
        parameters = ", ".join(f"{t} %a{k}" for k, t in enumerate(kinds))
        # the C function first: a linkonce definition is linked in only where something refers to it
        merged.link_in(
            llvm.parse_assembly(
                head
                + f"""declare i32 {function}(ptr, ptr, {", ".join(kinds)})
define i32 @{name}({parameters}) {{
  %r = alloca ptr
  %e = alloca ptr
  %s = call i32 {function}(ptr %r, ptr %e, {parameters})
  ret i32 %s
}}"""
            )
        )
        merged.link_in(compiled.library._get_module_for_linking(), preserve=True)
    for f in merged.functions:
        if not f.is_declaration and f.name != name:
            f.linkage = "internal"
    for g in list(merged.global_variables):
        if not g.is_declaration:
            g.linkage = "internal"
    merged.verify()
    return str(merged)


def machine(cpu: str):
    """A target machine for a CPU level (x86-64-v3, x86-64-v4) or "native"."""
    features = ""
    if cpu == "native":
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    elif cpu == "x86-64-v4":
        features = "-prefer-256-bit"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="default")


def emit(ir_text: str, cpu: str) -> bytes:
    """Object code of raw IR for one CPU: a cheap pass, then the full pipeline without reordering of arithmetic."""
    tm, module = machine(cpu), llvm.parse_assembly(ir_text)
    for level in (0, 3):
        options = llvm.create_pipeline_tuning_options()
        options.speed_level, options.slp_vectorization, options.loop_vectorization = level, False, False
        builder = llvm.create_pass_builder(tm, options)
        passes = builder.getModulePassManager()
        if level == 0:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
    return tm.emit_object(module)
