"""Checks and compiles user callbacks.

A function is written once, over values: numbers of one world, or vectors of W worlds.  With the decorator
`featherlane.kernel` it is compiled into a separate stage, which the engine's stages call by its address.  Without the
decorator it is plain Python and is called world by world.  Code that breaks a rule of the kernel language raises an
error with its line before anything runs, compiled or not.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Kernel, Layout, Stage, cache, processor
from featherlane.engine.lanes.record import FUNCTION
from featherlane.engine.lanes.runtime import mode
from featherlane.engine.simulation.tile.library import library
from featherlane.engine.simulation.user.roles import CONTROL, Role
from featherlane.errors import InstallationError, ModelError

CHECKED: Any = FUNCTION  # every index is checked against its field: a user's mistake must not crash the process
ADDRESSED = (scalars, doubles, call, record_at)  # they take addresses, which cannot be checked
NO_NUMBERS = Layout("NoNumbers", ())
ALLOWED = "numbers, tuples of numbers, other kernels and functions of featherlane.lanes that take no addresses"


class UserFunction:
    """Holds a user callback in a role, for one element of a model.

    Args:
        role: the role.
        label: the element and the role, for messages.
        function: as the user wrote it.
        element: the element's number.
        number: number of values that it returns.
        own: layout of the record p of a control's own numbers; without fields: the function takes no p.

    Attributes:
        in_step: whether it is called within a step.

    Raises:
        ModelError: the function has other parameters, or breaks a rule of the kernel language.
    """

    in_step = True

    def __init__(self, role: Role, label: str, function: Any, element: int, number: int, own: Layout = NO_NUMBERS):
        self.role, self.label, self.function, self.element, self.number = role, label, function, element, number
        self.own = own
        if not callable(function) or isinstance(function, Stage):
            raise ModelError(f"{label}: got {type(function).__name__}, allowed is a function")
        _check_parameters(label, function, self.parameters)
        if isinstance(function, Kernel):
            self._check_language()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Returns the names of its parameters."""
        return (*self.role.parameters, "p") if self.own.fields else self.role.parameters

    @property
    def is_compiled(self) -> bool:
        """Returns whether it is a kernel."""
        return isinstance(self.function, Kernel)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "stage"}

    @functools.cached_property
    def stage(self) -> Stage:
        """The function as a separate stage, which writes its result."""
        return _stage(self.function, self.role, self.number, self.own)

    @functools.cached_property
    def fields(self) -> frozenset[str]:
        """Fields of the tile that it may read or set: those named in a kernel, all of its role for plain Python."""
        if not self.is_compiled:
            return self.role.reads
        named = {name for k in self.function.contained() for name in k.names}
        return frozenset(named & (self.role.reads | set(self.role.sets)))

    def sets(self) -> list[str]:
        """Returns the fields of the tile that it sets, or may set."""
        return [name for name in self.role.sets if name in self.fields]

    def place(self, model) -> slice:
        """Returns the rows of `role.result` that it writes."""
        start = int(getattr(model, self.role.address)[self.element]) if self.role.address else 0
        return slice(start, start + self.number)

    def compiled_address(self, dtype, width: int) -> int:
        """Returns the address of the compiled function, for tiles of that width and precision."""
        return address_of(self.stage, dtype, width)

    def check_compiled(self) -> None:
        """Compiles for one world and for whole tiles, in both precisions.

        Raises:
            ModelError: the function cannot be compiled.
            InstallationError: no compiler is installed.
        """
        if mode() == "python":
            return
        if mode() == "prebuilt":
            raise ModelError(
                f"{self.label}: a user-defined kernel is not allowed with FEATHERLANE_MODE=prebuilt, "
                f"because it has to be compiled; use auto"
            )
        try:
            importlib.import_module("llvmlite.binding")
        except ImportError:
            raise InstallationError(
                f"{self.label}: the kernel {self.name} requires llvmlite, which is not installed; "
                f"install it with pip install 'featherlane[jit]', or remove the decorator: a plain "
                f"Python function is called once for each world"
            ) from None
        for base, width in processor.compiled_variants():
            self._compile(base, width)

    def _check_language(self) -> None:
        """Raises an error for code outside of the kernel language, before anything is called or compiled."""
        from featherlane.engine.lanes.compiler.program import Program
        from featherlane.engine.lanes.compiler.rules import KernelLanguageError
        from featherlane.engine.lanes.compiler.types import Access

        refuse_addresses(self.label, self.function)
        own, role = tuple(f.name for f in self.own.fields), self.role
        try:
            program = Program(library().records | {"p": (self.own, False)}, "f64", processor.WIDTHS["f64"])
            program.check(self.function, self.parameters, Access(role.reads.union(own), (*role.sets, *own)))
        except KernelLanguageError as error:
            raise ModelError(f"{self.label}: {self.name} cannot be compiled: {error}") from None

    def _compile(self, base: str, width: int) -> None:
        """Compiles into the cache, if the cache lacks it."""
        from featherlane.engine.lanes import toolchain
        from featherlane.engine.lanes.compiler.rules import KernelLanguageError

        records = library().records
        name = cache.key(self.stage, records, base, width, processor.cpu_level(), CHECKED)
        if cache.has_object(name):
            return
        try:
            text = toolchain.lower((self.stage,), records, base, width, CHECKED, alone=True)
        except KernelLanguageError as error:
            raise ModelError(f"{self.label}: {self.name} cannot be compiled: {error}") from None
        how = toolchain.effort((self.stage,), width)
        cache.write_object(name, toolchain.emit(text, processor.cpu_level(), how))


def address_of(stage: Stage, dtype, width: int) -> int:
    """Returns the address of a stage that is compiled with checked indices, for tiles of that width and precision."""
    compiled: Any = library().function(stage, processor.base_of(dtype), width, checked=CHECKED)
    return ctypes.cast(compiled, ctypes.c_void_p).value or 0


# ---- checks ----------------------------------------------------------------------------------------------------------
def _check_parameters(label: str, function: Any, names: tuple[str, ...]) -> None:
    allowed = f"allowed is {getattr(function, '__name__', 'f')}({', '.join(names)})"
    try:
        signature = inspect.signature(function.function if isinstance(function, Kernel) else function)
    except (TypeError, ValueError):
        raise ModelError(f"{label}: the parameters of {function!r} cannot be read, {allowed}") from None
    plain = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(plain) != len(signature.parameters) or len(plain) != len(names):
        raise ModelError(f"{label}: got a function with the parameters {signature}, {allowed}")
    if any(p.default is not p.empty for p in plain):
        raise ModelError(f"{label}: got a function with a default argument, {allowed}")


def refuse_addresses(label: str, function: Kernel) -> None:
    """Raises an error for calls of stages and of functions that take addresses."""
    for k in function.contained():
        for name, value in k.references():
            if isinstance(value, Stage) or any(value is f for f in ADDRESSED):
                what = "the stage " if isinstance(value, Stage) else "the address-based function "
                raise ModelError(f"{label}: {k.function.__name__} calls {what}{name}, allowed are {ALLOWED}")


# ---- stages ----------------------------------------------------------------------------------------------------------
@kernel
def _store_number(rows, a, x):
    """Writes a number to row a."""
    rows[a] = x


@kernel
def _store_tuple(rows, a, x):
    """Writes a tuple of numbers to the rows from a on; they may have several types."""
    for part in x:
        rows[a] = part
        a += 1


def _calling(function: Kernel, role: str, store: Kernel, takes_numbers: bool) -> Callable:
    """Returns the stage's function for a role."""

    def activation(m, d, i):
        store(d.act_dot, m.actuator_actadr[i], function(m, d, i))

    def term(m, d, i):
        store(d.user_term, 0, function(m, d, i))

    def sensor(m, d, i):
        store(d.sensor_now, m.sensor_adr[i], function(m, d, i))

    def control(m, d, p):
        function(m, d)

    def control_with_numbers(m, d, p):
        function(m, d, p)

    def lcp_solver(m, d, i):
        store(d.lcp.niter, 0, function(d, i))

    own: dict[str, Callable] = {"activation": activation, "sensor": sensor, "lcp_solver": lcp_solver}
    own["control"] = control_with_numbers if takes_numbers else control
    return own.get(role, term)


_stages: dict[tuple[str, str], Stage] = {}  # by name and signature of its own numbers


def _stage(function: Kernel, role: Role, number: int, own: Layout) -> Stage:
    """Returns the function's stage; its name depends on all its parts, so equal functions share one stage."""
    calling = _calling(function, role.name, _store_tuple if number > 1 else _store_number, bool(own.fields))
    made = Stage(calling, {"p": own} if role is CONTROL else None)
    made.name = calling.__name__ = f"user_{role.name}_{made.code_hash()[:24]}"
    return _stages.setdefault((made.name, own.signature()), made)
