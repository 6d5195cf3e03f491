"""`@kernel` and `@stage`: plain functions that know what they are made of.

A kernel is a function over values; a stage is a kernel that is compiled alone, under a C symbol of its own, and that
takes records (and whole numbers) only.  Called from Python, both run uncompiled on NumPy rows.  Inside compiled code a
kernel is inlined, and a stage is called by its symbol: compile time grows linearly, and each stage can be cached alone.

A stage's parameters are named for what they are: a name that the library of stages gives a layout (`m`, `d`, ...) is a
record, and so is a name to which the stage itself gives one (`@stage(p=LAYOUT)`); any other is an int64.  A name with
`1` behind it (`m1`, `d1`) is the same record with only what all worlds of a tile share in view: ints and scalars.  A
stage of such records alone works on one world at a time and branches freely; it is compiled once, for all widths and
precisions.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Mapping
from typing import overload

from featherlane.errors import ArgumentTypeError
from featherlane.lanes.layout import Layout, layout_hash

SCALAR = "f64", 1  # the one variant of a scalar stage
DERIVATIVES = "featherlane.sensitivity."  # the package that no step runs


class Kernel:
    """A function over values, inlined into the stages that use it."""

    def __init__(self, function):
        if not isinstance(function, types.FunctionType):
            raise ArgumentTypeError(f"kernel: got {type(function).__name__}, allowed is a function written in Python")
        self.function = function
        functools.update_wrapper(self, function)

    def __call__(self, *args, **keywords):
        return self.function(*args, **keywords)

    def __reduce__(self):
        return self.function.__qualname__  # by name, as Python pickles functions

    def __repr__(self):
        return f"<{type(self).__name__.lower()} {self.function.__module__}.{self.function.__qualname__}>"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of its parameters, in their order."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @functools.cached_property
    def names(self) -> set[str]:
        """Names that the code has: of globals, of fields of records, of members of modules."""
        return _names(self.function.__code__)

    @functools.cached_property
    def _written(self) -> bytes:
        """What the code does, for a hash."""
        return repr(bytecode(self.function.__code__)).encode()

    def references(self) -> list:
        """(name, object) for each global, closure variable or module attribute that the source names."""
        code, found = self.function.__code__, []
        scope = dict(zip(code.co_freevars, (c.cell_contents for c in self.function.__closure__ or ()), strict=True))
        for name in sorted(self.names | scope.keys()):
            value = scope.get(name, self.function.__globals__.get(name))
            if isinstance(value, types.ModuleType):
                found += _members(name, value, self.names)
            elif value is not None:
                found.append((name, value))
        return found

    def contained(self) -> list[Kernel]:
        """This kernel and every kernel it is made of; stages are called, not contained."""
        found, todo = {}, [self]
        while todo:
            k = todo.pop()
            if id(k) not in found:
                found[id(k)] = k
                todo += [v for _, v in k.references() if isinstance(v, Kernel) and not isinstance(v, Stage)]
        return list(found.values())

    def code_hash(self) -> str:
        """Hash of everything written in Python that the compiled form depends on: bytecode and constants.

        Bytecode, not source text: a file that is edited while a process runs does not change what the process compiles.
        """
        found = {}

        def digest(k) -> str:
            if id(k) not in found:
                found[id(k)] = ""  # a kernel that calls itself
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
    """A kernel with a C symbol of its own: f(m, d), or more records and whole numbers.

    Attributes:
        name: of the function.
        parameters: names of its parameters.
        records: parameter name -> layout of a record that the library does not know.
    """

    def __init__(self, function, records: Mapping[str, Layout] | None = None):
        super().__init__(function)
        self.name = function.__name__
        self.parameters = tuple(inspect.signature(function).parameters)
        self.records = dict(records or {})

    def layouts(self, records) -> list[tuple[Layout, bool] | None]:
        """(layout, is it constant while the stage runs) of each parameter; None for a whole number.

        Args:
            records: those of the library, by name.
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
        """Does it see only what all worlds of a tile share?"""
        return self.parameters[0].endswith("1")

    @property
    def is_derivative(self) -> bool:
        """Is it run for derivatives only?  It is optimised less: a third of all kernels' text is of such stages."""
        return self.function.__module__.startswith(DERIVATIVES)

    def calls(self) -> dict[str, Stage]:
        """The stages that this stage calls itself, by name."""
        return {v.name: v for k in self.contained() for _, v in k.references() if isinstance(v, Stage)}


def is_named_tuple(value) -> bool:
    """Is it a NamedTuple, a class of which kernels make tuples whose parts have names?"""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def _one_world(argument):
    """A record as a scalar stage sees it uncompiled, one world wide in float64; a whole number as it is."""
    if isinstance(argument, types.SimpleNamespace):
        return types.SimpleNamespace(**vars(argument) | {"width": 1, "shape": (), "dtype": float})
    return argument


def kernel(function) -> Kernel:
    """Decorator: a function over values, inlined where it is used."""
    return Kernel(function)


@overload
def stage(function: Callable, /) -> Stage: ...


@overload
def stage(**records: Layout) -> Callable[[Callable], Stage]: ...


def stage(function: Callable | None = None, /, **records: Layout):
    """Decorator: a pass over records, compiled alone and called by its symbol; `@stage(p=LAYOUT)` names its own."""
    if function is None:
        return lambda f: Stage(f, records)
    return Stage(function, records)


def bytecode(code) -> tuple:
    """What a function does, without its docstring, file and line numbers."""
    constants = [bytecode(c) if inspect.iscode(c) else c for c in code.co_consts]
    if code.co_flags & inspect.CO_OPTIMIZED and constants and isinstance(constants[0], str):
        constants[0] = None  # the docstring
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount


def variant(stage: Stage, base: str, width: int) -> tuple[str, int]:
    """The precision and width that a stage is compiled for where these are asked for."""
    return SCALAR if stage.is_scalar else (base, width)


def symbol(stage: Stage, base: str, width: int, checked: bool) -> str:
    """The C name of a stage: fl_crb_f64x8, or fl_crb_f64x8_checked; a scalar stage has one for all widths.

    A stage with records of its own has the hash of their layouts in it, as a prebuilt object has that of all others.
    """
    base, width = variant(stage, base, width)
    own = f"_{layout_hash(*stage.records.values())[:8]}" if stage.records else ""
    return f"fl_{stage.name}_{base}x{width}{'_checked' if checked else ''}{own}"


def _members(name: str, module: types.ModuleType, attributes: set[str], seen: tuple = ()) -> list:
    """(name, object) for each attribute of a module, and of the modules in it, that code names."""
    found = []
    for a in sorted(attributes):
        value = getattr(module, a, None)
        if isinstance(value, types.ModuleType):
            if value not in seen:
                found += _members(f"{name}.{a}", value, attributes, (*seen, module))
        elif value is not None:
            found.append((f"{name}.{a}", value))
    return found


def _names(code) -> set[str]:
    """Names of globals and attributes.  A field with the name of a kernel counts as a use of it, which does no harm."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if inspect.iscode(c)))
