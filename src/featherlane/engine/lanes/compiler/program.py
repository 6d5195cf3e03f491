"""All functions of one precision and width: a kernel is written once per combination of argument types.

A constant that a kernel branches on is part of the combination.  The branch not taken is then not compiled, so it may
contain code that is invalid for these types.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from featherlane.engine.lanes.compiler.rules import KernelLanguageError, broken
from featherlane.engine.lanes.compiler.source import Source, kernel_source
from featherlane.engine.lanes.compiler.statements import block
from featherlane.engine.lanes.compiler.types import BOOL, INT, LLVM_BASES, NOTHING, Access, Record, Type
from featherlane.engine.lanes.compiler.writer import NO_THING, Thing, Writer, result_type
from featherlane.engine.lanes.kernel import Kernel, Stage, symbol, variant

MOST_PASSES = 16
SMALL = 60  # functions of up to this many lines are always inlined


class Function:
    """A kernel written for one combination of arguments.

    Attributes:
        symbol: name in the LLVM IR.
        returns: type of the result.
        result: LLVM type of the result.
        text: definition.
        called: functions that it calls.
        declared: declarations that it needs.
    """

    def __init__(self, name: str, types: list[Type], writer: Writer):
        self.symbol, self.returns = name, writer.returns
        self.result = result_type(self.returns)
        self.called, self.declared = list(writer.called.values()), writer.declared
        parameters = ", ".join(f"{llvm} %p{k}" for k, llvm in enumerate(o for t in types for o in t.operands))
        inlined = " alwaysinline" if len(writer.lines) <= SMALL else ""
        lines = "\n".join(writer.allocations() + writer.lines)
        self.text = f"define internal {self.result} @{name}({parameters}){inlined} {{\nentry:\n{lines}\n}}\n"


class Program:
    """Functions by kernel and argument types, shared by all stages of a precision and width.

    Args:
        records: parameter name -> (layout, is it constant while a stage runs).
        base, width: precision (`f64`, `f32`) and worlds in a tile.
        checked: whether to add bounds checks.
    """

    def __init__(self, records, base: str, width: int, checked: bool = False):
        self.base, self.width, self.checked = base, width, checked
        self._records, self._types = records, {}
        self._access: Access | None = None
        self._functions: dict[tuple, Function] = {}
        self._writing: list[Kernel] = []  # call stack of kernels, from the stage to the one being written

    def module(self, stages: Iterable[Stage]) -> str:
        """Returns LLVM IR of stages and of all their kernels; a kernel that several stages contain is defined once.

        A stage is a C function of addresses and int64 that returns 0.

        Raises:
            KernelLanguageError: a kernel breaks a rule.
        """
        definitions: dict[str, str] = {}  # symbol of a stage -> its definition
        parts: dict[str, Function] = {}
        for stage in stages:
            types = self._parameters(
                stage.parameters, stage.layouts(self._records), *variant(stage, self.base, self.width)
            )
            top = self._alone(stage, types)
            if top.returns is not NOTHING:
                raise broken(kernel_source(stage), None, f"a stage returns no value, got {top.returns.description}")
            name = symbol(stage, self.base, self.width, self.checked)
            definitions[name] = _definition(name, types, top)
            todo = [top]
            while todo:
                f = todo.pop()
                if f.symbol not in parts:
                    parts[f.symbol] = f
                    todo += f.called
        declared = {line for f in parts.values() for line in f.declared}
        declared = sorted(line for line in declared if line.partition("@")[2].partition("(")[0] not in definitions)
        texts = [*definitions.values(), *(f.text for f in parts.values())]
        return "\n".join([*texts, *declared]) + "\n\n!0 = !{}\n"

    def check(self, kernel: Kernel, parameters: tuple[str, ...], access: Access) -> None:
        """Checks a user callback by writing it, for parameters with the names of stage parameters.

        Args:
            kernel: the callback.
            parameters: names of its parameters.
            access: allowed access to records that are not constant.

        Raises:
            KernelLanguageError: it breaks a rule, or accesses a forbidden field, on any branch.
        """
        self._access = access
        self._alone(kernel, self._parameters(parameters, map(self._records.get, parameters), self.base, self.width))

    def _alone(self, kernel: Kernel, types: list[Type]) -> Function:
        """Writes a kernel that no other kernel here calls."""
        try:
            return self._written(kernel, [Thing(t, [""] * len(t.operands)) for t in types], None, None)
        except RecursionError:
            code = kernel.function.__code__
            here = code.co_name, code.co_filename, code.co_firstlineno, "", ""
            raise KernelLanguageError(*here, "nested too deeply: assign parts of the expression to names") from None

    def function(self, kernel: Kernel, arguments: list[Thing], caller: Writer, node) -> Function:
        """Returns a kernel's function for the arguments of a call.

        Raises:
            KernelLanguageError: it is recursive, takes other arguments, or breaks a rule.
        """
        source = kernel_source(kernel)
        if len(arguments) != len(source.parameters):
            raise caller.broken(
                node, f"{source.name} takes ({', '.join(source.parameters)}), got {len(arguments)} arguments"
            )
        return self._written(kernel, arguments, caller, node)

    def _parameters(self, names: tuple[str, ...], layouts, base: str, width: int) -> list[Type]:
        """Returns the types of a stage's parameters: one object per record and variant, or an int."""
        types = []
        for name, record in zip(names, layouts, strict=True):
            if record is None:
                types.append(INT)
                continue
            layout, constant = record
            form = width, LLVM_BASES[base], constant, self.checked, name.endswith("1")
            key = id(layout), *form
            if key not in self._types:
                access = self._access
                if access and constant:
                    access = Access(frozenset(layout.index))
                self._types[key] = Record(layout, *form, access)
            types.append(self._types[key])
        return types

    def _written(self, kernel: Kernel, arguments: list[Thing], caller: Writer | None, node) -> Function:
        source = kernel_source(kernel)
        types = [
            a.type.of_one_world if isinstance(a.type, Record) and name.endswith("1") else a.type
            for name, a in zip(source.parameters, arguments, strict=True)
        ]
        known = [k for k in sorted(source.switches) if arguments[k].constant is not None and types[k] in (INT, BOOL)]
        constants = tuple((k, arguments[k].constant) for k in known)
        key = kernel, tuple(types), constants
        if key not in self._functions:
            if kernel in self._writing:
                raise caller.broken(
                    node, f"{source.name} calls itself; recursion is not allowed in a kernel, write a loop"
                )
            self._writing.append(kernel)
            try:
                self._functions[key] = self._write(source, types, dict(constants))
            finally:
                self._writing.pop()
        return self._functions[key]

    def _write(self, source: Source, types: list[Type], constants: dict[int, object]) -> Function:
        writer, known = Writer(source, self), None
        for _ in range(MOST_PASSES):
            writer.start()
            _parameters(writer, types, constants)
            block(writer, source.body)
            if writer.reached and not writer.unsettled:
                writer.give(NO_THING, None)  # falling off the end returns nothing
            if not writer.unsettled:
                return Function(_name(source, types, constants), types, writer)
            found = dict(writer.variables), writer.returns
            if found == known:
                break
            known = found
        raise broken(source, None, "a name is used before it is assigned")


def _definition(name: str, types: list[Type], top: Function) -> str:
    """Defines a stage's C function.  Other stages of its module call it, so it is compiled once and not inlined."""
    arguments = ", ".join(f"{t.operands[0]} %a{k}" for k, t in enumerate(types))
    return f"define i32 @{name}({arguments}) noinline {{\n  call void @{top.symbol}({arguments})\n  ret i32 0\n}}\n"


def _parameters(writer: Writer, types: list[Type], constants: dict[int, object]) -> None:
    """Binds the parameters to the arguments of the call."""
    start = 0
    for k, (name, t) in enumerate(zip(writer.source.parameters, types, strict=True)):
        operands = [f"%p{start + j}" for j in range(len(t.operands))]
        thing = writer.constant(constants[k], None) if k in constants else Thing(t, operands)
        writer.bind(name, writer.source.webs.of_parameter(name), thing, None)
        start += len(t.operands)


def _name(source: Source, types: list[Type], constants: dict[int, object]) -> str:
    """Returns a symbol that depends only on the function, so that equal sources give equal objects."""
    kernel = source.kernel
    f = kernel.function
    unlike = kernel.code_hash() if f.__closure__ or f.__name__ == "<lambda>" else ""
    what = f"{f.__module__} {f.__qualname__} {source.first_line} {unlike} {constants} {' '.join(t.key for t in types)}"
    return f"{'lambda' if f.__name__ == '<lambda>' else f.__name__}.{hashlib.sha256(what.encode()).hexdigest()[:12]}"
