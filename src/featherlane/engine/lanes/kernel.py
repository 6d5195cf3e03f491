"""`@kernel` and `@stage`: Python functions that can be compiled.

A kernel is a function over values; a stage is a kernel that is compiled alone, under its own C symbol, and takes
records and integers only.  Called from Python, both run uncompiled on NumPy rows.  In compiled code a kernel is inlined
and a stage is called by its symbol: compile time grows linearly, and each stage can be cached alone.

The names of a stage's parameters determine their types.  A name with a layout in the library of stages (`m`, `d`, ...)
or in the stage's decorator (`@stage(p=LAYOUT)`) is a record; any other name is an int64.  A name that ends in `1`
(`m1`, `d1`) is the same record restricted to what all worlds of a tile share: ints and scalars, in float64.  It also
restricts a record that is passed to a kernel.  A stage with only such records processes one world at a time and may
branch; it is compiled once, for all widths and precisions.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, overload

from featherlane.engine.lanes.layout import Layout, layout_hash
from featherlane.engine.lanes.rows import used_operators
from featherlane.engine.lanes.tangents import Dual, chained, primal
from featherlane.errors import ArgumentTypeError

SCALAR = "f64", 1  # the only variant of a scalar stage
DERIVATIVES = "featherlane.tools.sensitivity."  # package whose stages no step runs
BINARY_OP = dis.opmap["BINARY_OP"]
SIGNS = {4: "@", 17: "@", 0: "+", 13: "+", 10: "-", 23: "-", 5: "*", 18: "*", 11: "/", 24: "/"}  # by its argument


class Kernel:
    """A function over values, inlined into the stages that use it.

    Attributes:
        rule: its derivative rule (derivative.py); None: its code is differentiated.
        origin: the `kernel_factory` that returned it, and its arguments; None: the kernel is a name of its module.
    """

    rule: Kernel | None = None
    origin: tuple[Callable[..., Kernel], tuple[Any, ...]] | None = None

    def __init__(self, function):
        if not isinstance(function, types.FunctionType):
            raise ArgumentTypeError(f"kernel: got {type(function).__name__}, allowed is a function written in Python")
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args, **keywords):
        if self.rule is not None and any(isinstance(a, Dual) for a in (*args, *keywords.values())):
            args = (*args, *(keywords[name] for name in self.arguments[len(args) :]))
            x = [primal(a) for a in args]
            result = self.function(*x)
            return chained(result, self.rule(result, *x), args)
        return self.function(*args, **keywords)

    def __reduce__(self):
        return self.origin or self.function.__qualname__  # by name, as Python pickles functions

    def __repr__(self):
        return f"<{type(self).__name__.lower()} {self.function.__module__}.{self.function.__qualname__}>"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @functools.cached_property
    def names(self) -> set[str]:
        """Names in the code: of globals, record fields and module members."""
        return _names(self.function.__code__)

    @functools.cached_property
    def _written(self) -> bytes:
        """The code as bytes, for a hash."""
        return repr(bytecode(self.function.__code__)).encode()

    def references(self) -> list:
        """Returns (name, object) for each global, closure variable, member of a module and operator of rows."""
        code, found = self.function.__code__, []
        scope = dict(zip(code.co_freevars, (c.cell_contents for c in self.function.__closure__ or ()), strict=True))
        for name in sorted(self.names | scope.keys()):
            value = scope.get(name, self.function.__globals__.get(name))
            if isinstance(value, types.ModuleType):
                found += _members(name, value, self.names)
            elif value is not None:
                found.append((name, value))
        if self.rule is not None:
            found.append(("derivative rule", self.rule))
        return found + used_operators(_signs(code) | (self.names & {"dot"}), self.names)

    def contained(self) -> list[Kernel]:
        """Returns this kernel and every kernel inlined into it; stages are called, not contained."""
        found, todo = {}, [self]
        while todo:
            k = todo.pop()
            if id(k) not in found:
                found[id(k)] = k
                todo += [v for _, v in k.references() if isinstance(v, Kernel) and not isinstance(v, Stage)]
        return list(found.values())

    def code_hash(self) -> str:
        """Returns a hash of all Python code that the compiled form depends on: bytecode and constants.

        It uses bytecode, not source text: editing a file does not change what a running process compiles.
        """
        found = {}

        def digest(k) -> str:
            if id(k) not in found:
                found[id(k)] = ""  # in case a kernel calls itself
                h = hashlib.sha256(k._written)
                for name, value in k.references():
                    if isinstance(value, Stage):
                        h.update(f"{name}:{value.signature()}\n".encode())
                    elif isinstance(value, Kernel):
                        h.update(f"{name}:{digest(value)}\n".encode())
                    elif isinstance(value, (bool, int, float, str, tuple)):
                        h.update(f"{name}={value!r}\n".encode())
                    elif is_named_tuple(value):
                        h.update(f"{name}={value._fields}\n".encode())
                found[id(k)] = h.hexdigest()
            return found[id(k)]

        return digest(self)


class Stage(Kernel):
    """A kernel with its own C symbol: f(m, d), or more records and integers.

    Attributes:
        name: name of the function.
        parameters: names of its parameters.
        records: parameter name -> layout of a record that is not in the library.
    """

    def __init__(self, function, records: Mapping[str, Layout] | None = None):
        super().__init__(function)
        self.name = function.__name__
        self.parameters = tuple(inspect.signature(function).parameters)
        self.records = dict(records or {})

    def layouts(self, records) -> list[tuple[Layout, bool] | None]:
        """Returns (layout, is it constant while the stage runs) of each parameter; None for an integer.

        Args:
            records: records of the library, by name.
        """
        own = {name: (layout, False) for name, layout in self.records.items()}
        return [own.get(name) or records.get(name) for name in self.parameters]

    def __call__(self, *args, **keywords):
        if self.is_scalar:
            args, keywords = map(_one_world, args), {name: _one_world(x) for name, x in keywords.items()}
        return self.function(*args, **keywords)

    def signature(self) -> str:
        return f"{self.name}({','.join(self.parameters)})"

    @property
    def is_scalar(self) -> bool:
        """Whether the stage reads only what all worlds of a tile share."""
        return self.parameters[0].endswith("1")

    @property
    def is_derivative(self) -> bool:
        """Whether it runs for derivatives only; it is optimised less: these stages are a third of all kernel code."""
        return self.function.__module__.startswith(DERIVATIVES)

    def calls(self) -> dict[str, Stage]:
        """Returns the stages that this stage calls directly, by name."""
        return {v.name: v for k in self.contained() for _, v in k.references() if isinstance(v, Stage)}


def is_named_tuple(value) -> bool:
    """Is it a NamedTuple, a class of which kernels make tuples whose parts have names?"""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def _one_world(argument):
    """Returns a record as an uncompiled scalar stage needs it, one world wide in float64; integers unchanged."""
    if isinstance(argument, types.SimpleNamespace):
        return types.SimpleNamespace(**vars(argument) | {"width": 1, "shape": (), "dtype": float})
    return argument


def kernel(function: Callable[..., Any]) -> Kernel:
    """Decorates a function over values, which is inlined at its calls."""
    return Kernel(function)


def kernel_factory(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """Decorates a function of hashable arguments that returns a kernel: equal arguments return the same kernel.

    A pickle of the kernel holds the name of the function, and the arguments.
    """

    @functools.cache
    @functools.wraps(make)
    def made(*arguments: Any) -> Kernel:
        found = make(*arguments)
        found.origin = made, arguments
        return found

    return made


@overload
def stage(function: Callable, /) -> Stage: ...


@overload
def stage(**records: Layout) -> Callable[[Callable], Stage]: ...


def stage(function: Callable | None = None, /, **records: Layout):
    """Decorates a pass over records, compiled alone and called by its symbol; `@stage(p=LAYOUT)` adds record types."""
    if function is None:
        return lambda f: Stage(f, records)
    return Stage(function, records)


def bytecode(code) -> tuple:
    """Returns a function's code without its docstring, file and line numbers."""
    constants = [bytecode(c) if inspect.iscode(c) else c for c in code.co_consts]
    if code.co_flags & inspect.CO_OPTIMIZED and constants and isinstance(constants[0], str):
        constants[0] = None  # the docstring
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount


def variant(stage: Stage, base: str, width: int) -> tuple[str, int]:
    """Returns the precision and width that a stage is compiled for, given the requested ones."""
    return SCALAR if stage.is_scalar else (base, width)


def symbol(stage: Stage, base: str, width: int, checked: bool) -> str:
    """Returns the C name of a stage: fl_crb_f64x8, or fl_crb_f64x8_checked; a scalar stage has one for all widths.

    For a stage with records outside the library, the name has their layout hash; a prebuilt object has the others'.
    """
    base, width = variant(stage, base, width)
    own = f"_{layout_hash(*stage.records.values())[:8]}" if stage.records else ""
    return f"fl_{stage.name}_{base}x{width}{'_checked' if checked else ''}{own}"


def _members(name: str, module: types.ModuleType, attributes: set[str], seen: tuple = ()) -> list:
    """Returns (name, object) for each attribute of a module, and of the modules in it, that code names."""
    found = []
    for a in sorted(attributes):
        value = getattr(module, a, None)
        if isinstance(value, types.ModuleType):
            if value not in seen:
                found += _members(f"{name}.{a}", value, attributes, (*seen, module))
        elif value is not None:
            found.append((f"{name}.{a}", value))
    return found


def _signs(code) -> set[str]:
    """Returns the signs of the arithmetic operators in code."""
    steps = zip(code.co_code[::2], code.co_code[1::2], strict=True)
    signs = {SIGNS[argument] for step, argument in steps if step == BINARY_OP and argument in SIGNS}
    return signs.union(*(_signs(c) for c in code.co_consts if inspect.iscode(c)))


def _names(code) -> set[str]:
    """Returns names of globals and attributes.  A field with a kernel's name counts as a use, which is harmless."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if inspect.iscode(c)))
