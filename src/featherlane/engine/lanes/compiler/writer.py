"""Writes the LLVM IR of one function: registers, labels, variables, conversions."""

from __future__ import annotations

from typing import NamedTuple

from featherlane.engine.lanes.compiler.rules import UnknownYetError, broken
from featherlane.engine.lanes.compiler.types import (
    BITS,
    BOOL,
    INT,
    NOTHING,
    REAL,
    Dual,
    Mask,
    Number,
    Tuple,
    Type,
    Value,
    common_type,
    literal,
    real_literal,
    tuple_of,
    value,
)


class Thing:
    """The result of an expression: a type, its registers or literals, and its value if it is a constant."""

    __slots__ = ("constant", "operands", "type")

    def __init__(self, type: Type, operands, constant=None):
        self.type, self.operands, self.constant = type, operands, constant

    @property
    def operand(self) -> str:
        """The single operand of a number, a value or a mask."""
        return self.operands[0]

    @property
    def is_known(self) -> bool:
        """Whether it is a number that is known when the kernel is compiled."""
        return self.constant is not None and isinstance(self.type, Number)

    @property
    def known_int(self) -> int | None:
        """Its int, if that is known when the kernel is compiled."""
        return self.constant if self.type is INT else None


class Stored(NamedTuple):
    """A variable in memory, or a part of one: its type, and (pointer, LLVM type) of each operand."""

    type: Type
    memory: list[tuple[str, str]]

    def part(self, k: int) -> Stored:
        """Returns part k of a tuple."""
        start = sum(len(t.operands) for t in self.type.items[:k])
        return Stored(self.type.items[k], self.memory[start : start + len(self.type.items[k].operands)])


NO_THING = Thing(NOTHING, ())


class Writer:
    """Writes the LLVM IR of one function.

    A pass writes the whole text with the variable types found so far; if a type changes during the pass, another pass
    is needed (`unsettled`).  A variable with a single binding is represented by the bound thing; any other has its
    memory, which LLVM turns into registers.

    Attributes:
        source: source of the kernel.
        program: program that the function belongs to.
        variables: type by web, kept between passes.
        returns: type of the result, kept between passes; None until a return is written.
        lines: the text.
        called: functions of the program that it calls.
        declared: declarations that it needs.
        reached: whether the next line is reachable.
    """

    def __init__(self, source, program):
        self.source, self.program = source, program
        self.variables: dict[int, Type] = {}
        self.returns: Type | None = None
        self.start()

    def start(self) -> None:
        """Begins a pass."""
        self.lines: list[str] = []
        self.called: dict[str, object] = {}
        self.declared: set[str] = set()
        self.reached, self.unsettled = True, False
        self.loops: list[tuple[str, str]] = []  # labels of the enclosing loops for `break` and `continue`
        self._bound: dict[int, Thing] = {}  # variables bound once
        self._memory: dict[object, list[tuple[str, str]]] = {}  # web -> (pointer, LLVM type) of each operand
        self._registers = self._labels = 0

    # ---- lines ------------------------------------------------------------------------------------------------
    def write(self, line: str) -> None:
        self.lines.append("  " + line)

    def register(self, code: str) -> str:
        """Writes an instruction and returns a new register for its result."""
        self._registers += 1
        name = f"%t{self._registers}"
        self.lines.append(f"  {name} = {code}")
        return name

    def label(self) -> str:
        self._labels += 1
        return f"b{self._labels}"

    def place(self, label: str) -> None:
        """Continues under a label."""
        self.jump(label)
        self.lines.append(f"{label}:")
        self.reached = True

    def jump(self, label: str) -> None:
        if self.reached:
            self.write(f"br label %{label}")
        self.reached = False

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.write(f"br i1 {condition}, label %{yes}, label %{no}")
        self.reached = False

    def broken(self, node, rule: str):
        """Returns the error for a rule that this kernel breaks."""
        return broken(self.source, node, rule)

    # ---- things -----------------------------------------------------------------------------------------------
    def constant(self, x, node) -> Thing:
        """Returns a Python number, or a tuple of numbers, as a thing.

        Raises:
            KernelLanguageError: anything else.
        """
        if isinstance(x, bool):
            return Thing(BOOL, (literal(x, BOOL),), x)
        if isinstance(x, int):
            if not -(1 << 63) <= x < 1 << 63:
                raise self.broken(node, f"{x} does not fit into an int of 64 bits")
            return Thing(INT, (str(int(x)),), int(x))
        if isinstance(x, float):
            return Thing(REAL, (real_literal(x, "double"),), float(x))
        if isinstance(x, tuple):
            kind = type(x) if hasattr(x, "_fields") else None
            return self.tuple([self.constant(part, node) for part in x], x, kind)
        raise self.broken(
            node, f"a {type(x).__name__} cannot be a constant of a kernel, allowed are numbers and tuples of numbers"
        )

    def tuple(self, parts: list[Thing], constant=None, kind: type | None = None) -> Thing:
        if constant is None and all(p.constant is not None for p in parts):
            constant = tuple(p.constant for p in parts)
        operands = [o for p in parts for o in p.operands]
        return Thing(tuple_of(tuple(p.type for p in parts), kind), operands, constant)

    def parts(self, thing: Thing) -> list[Thing]:
        """Returns the parts of a tuple."""
        out, start = [], 0
        constants = thing.constant or [None] * len(thing.type.items)
        for t, c in zip(thing.type.items, constants, strict=True):
            end = start + len(t.operands)
            out.append(Thing(t, thing.operands[start:end], c))
            start = end
        return out

    def convert(self, thing: Thing, t: Type, node) -> Thing:
        """Converts a thing to another type, if the language converts implicitly.

        Raises:
            KernelLanguageError: the language does not convert these types implicitly.
        """
        if thing.type is t:
            return thing
        out = _converted(self, thing, t, node)
        if out is None:
            raise self.broken(node, f"got {thing.type.description}, needed is {t.description}{_advice(thing.type, t)}")
        return out

    def index(self, thing: Thing, node) -> str:
        """Returns the int that indexes a row.

        Raises:
            KernelLanguageError: not an int.
        """
        if isinstance(thing.type, Value):
            raise self.broken(
                node,
                f"{thing.type.description} cannot be an index, because worlds would need different rows; "
                f"gather(table, x) takes a separate index in each world",
            )
        return self.convert(thing, INT, node).operand

    def truth(self, thing: Thing, node) -> str:
        """Returns the condition of a branch.

        Raises:
            KernelLanguageError: the worlds of a tile could take different branches.
        """
        t = thing.type
        if t is BOOL or (isinstance(t, Mask) and t.width == 1):
            return thing.operand
        if t is INT:
            return self.register(f"icmp ne i64 {thing.operand}, 0")
        if isinstance(t, (Mask, Value)):
            raise self.broken(
                node,
                f"{t.description} cannot decide a branch, because W worlds could take different "
                f"branches.  Select with where(mask, a, b), "
                "combine masks with & and |, negate with not_(mask), or use any_(mask), all_(mask)",
            )
        raise self.broken(
            node, f"{t.description} cannot decide a branch; an int, a comparison of ints or any_(mask) can"
        )

    # ---- variables --------------------------------------------------------------------------------------------
    def bind(self, name: str, web, thing: Thing, node) -> None:
        """Assigns a value to a variable."""
        if thing.type is NOTHING:
            raise self.broken(node, f"{name} gets no value, because the called function returns none")
        if web in self.source.webs.bound_once:
            self._bound[web] = thing
            return
        problem = f"{name} changes its type: it is {{}} on another path, and {{}} here"
        self.variables[web] = t = self._common(self.variables.get(web), thing.type, node, problem)
        thing = self.convert(thing, t, node)
        for (pointer, llvm), operand in zip(self._allocate(web, t), thing.operands, strict=True):
            self.write(f"store {llvm} {operand}, ptr {pointer}")

    def read(self, name: str, web) -> Thing:
        """Returns the value of a variable.

        Raises:
            UnknownYetError: only a later line determines its type.
        """
        if web in self._bound:
            return self._bound[web]
        t = self.variables.get(web)
        if t is None:
            self.unsettled = True
            raise UnknownYetError(name)
        return self.loaded(Stored(t, self._allocate(web, t)))

    def stored(self, web) -> Stored | None:
        """Returns the location of a variable that is in memory and whose type is known, else None."""
        t = None if web in self._bound else self.variables.get(web)
        return None if t is None else Stored(t, self._allocate(web, t))

    def loaded(self, place: Stored) -> Thing:
        """Loads a stored thing."""
        return Thing(place.type, [self.register(f"load {llvm}, ptr {pointer}") for pointer, llvm in place.memory])

    def _common(self, old: Type | None, new: Type, node, problem: str) -> Type:
        """Returns the type that takes both; another pass is needed if it was used with another type."""
        if old is None:
            return new
        t = common_type(old, new)
        if t is None:
            raise self.broken(node, problem.format(old.description, new.description) + _advice_on_kinds(old, new))
        self.unsettled |= t is not old
        return t

    def _allocate(self, web, t: Type) -> list[tuple[str, str]]:
        """Returns the memory of a variable, allocated in the function's first lines."""
        # a variable that gets tangents in this pass has more operands; the pass is then repeated
        if web not in self._memory or len(self._memory[web]) != len(t.operands):
            self._memory[web] = [(f"%v{len(self._memory)}.{k}", llvm) for k, llvm in enumerate(t.operands)]
        return self._memory[web]

    def slot(self, name: str, t: Type) -> list[tuple[str, str]]:
        """Returns memory for a thing without a name in the kernel, such as a loop counter."""
        return self._allocate(f"{name}{self.label()}", t)

    def allocations(self) -> list[str]:
        """Returns the lines that allocate the variables' memory; variables that may be read unbound are set to zero."""
        lines = []
        for web, memory in self._memory.items():
            for pointer, llvm in memory:
                lines.append(f"  {pointer} = alloca {llvm}")
                if web in self.source.webs.maybe_unbound:
                    lines.append(f"  store {llvm} zeroinitializer, ptr {pointer}")
        return lines

    # ---- results ----------------------------------------------------------------------------------------------
    def give(self, thing: Thing, node) -> None:
        """Writes a return."""
        self.returns = t = self._common(self.returns, thing.type, node, "one return has {}, another has {}")
        operands = self.convert(thing, t, node).operands
        if not operands:
            self.write("ret void")
        elif len(operands) == 1:
            self.write(f"ret {t.operands[0]} {operands[0]}")
        else:
            kind, whole = result_type(t), "poison"
            for k, (llvm, operand) in enumerate(zip(t.operands, operands, strict=True)):
                whole = self.register(f"insertvalue {kind} {whole}, {llvm} {operand}, {k}")
            self.write(f"ret {kind} {whole}")
        self.reached = False


def result_type(t: Type) -> str:
    """Returns the LLVM type of a function's result."""
    if not t.operands:
        return "void"
    return t.operands[0] if len(t.operands) == 1 else "{" + ", ".join(t.operands) + "}"


# ---- conversions ---------------------------------------------------------------------------------------------------
def _converted(w: Writer, thing: Thing, t: Type, node) -> Thing | None:
    s = thing.type
    if isinstance(t, Tuple) and isinstance(s, Tuple) and len(t.items) == len(s.items):
        if t.row and s.row and t.row is not s.row:
            return None
        return w.tuple([w.convert(p, u, node) for p, u in zip(w.parts(thing), t.items, strict=True)], kind=t.kind)
    if isinstance(t, Dual):
        return _as_dual(w, thing, t, node)
    if isinstance(t, Number):
        return _as_number(w, thing, t)
    if isinstance(t, Value):
        return _as_value(w, thing, t)
    if isinstance(t, Mask) and isinstance(s, Mask) and s.width == t.width:
        return Thing(t, thing.operands)  # of two precisions
    if isinstance(t, Mask) and (s is BOOL or (isinstance(s, Mask) and s.width == 1)):
        if thing.constant is not None:
            return Thing(t, (literal(thing.constant, t),))
        return Thing(t, (splat(w, thing.operand, "i1", t),))
    return None


def _as_number(w: Writer, thing: Thing, t: Number) -> Thing | None:
    s, x = thing.type, thing.constant
    truth = s is BOOL or (isinstance(s, Mask) and s.width == 1)
    if t is BOOL:
        return Thing(BOOL, thing.operands) if truth else None
    if x is not None and isinstance(s, Number) and (t is REAL or s is BOOL):
        return w.constant(float(x) if t is REAL else int(x), None)
    if truth:
        thing = Thing(INT, (w.register(f"zext i1 {thing.operand} to i64"),))
    if t is INT:
        return thing if truth else None
    if truth or s is INT:
        return Thing(REAL, (w.register(f"sitofp i64 {thing.operand} to double"),))
    return None


def _as_value(w: Writer, thing: Thing, t: Value) -> Thing | None:
    s, x = thing.type, thing.operands[0] if thing.operands else ""
    if isinstance(s, Number):
        if thing.constant is not None:
            return Thing(t, (literal(thing.constant, t),))
        if s is BOOL:
            x = w.register(f"zext i1 {x} to i64")
        if s is REAL:
            x = w.register(f"fptrunc double {x} to float") if t.base == "float" else x
        else:
            x = w.register(f"sitofp i64 {x} to {t.base}")
        return Thing(t, (splat(w, x, t.base, t),))
    if not isinstance(s, Value) or s.width not in (1, t.width):
        return None
    if s.base != t.base:
        u = value(s.width, t.base)
        x = w.register(f"{'fptrunc' if BITS[t.base] < BITS[s.base] else 'fpext'} {s.llvm} {x} to {u.llvm}")
    return Thing(t, (splat(w, x, t.base, t) if s.width < t.width else x,))


def _as_dual(w: Writer, thing: Thing, t: Dual, node) -> Thing | None:
    """Converts a number, or a value with fewer active tangents."""
    s, given = thing.type, list(thing.operands)
    if isinstance(s, Dual):
        values = [w.convert(Thing(s.primal, (x,)), t.primal, node).operand for x in given]
        active = s.active
    elif isinstance(s, (Number, Value)):
        values, active = [w.convert(thing, t.primal, node).operand], (False,) * len(t.active)
    else:
        return None
    rest, zero = iter(values[1:]), literal(0.0, t.primal)
    parts = [next(rest) if has else zero for has, wanted in zip(active, t.active, strict=True) if wanted]
    return Thing(t, [values[0], *parts])


def splat(w: Writer, x: str, element: str, t: Value | Mask) -> str:
    """Copies one world's number or truth value to every lane."""
    if t.width == 1:
        return x
    first = w.register(f"insertelement {t.llvm} poison, {element} {x}, i32 0")
    return w.register(f"shufflevector {t.llvm} {first}, {t.llvm} poison, <{t.width} x i32> zeroinitializer")


# ---- advice --------------------------------------------------------------------------------------------------------
def _advice(given: Type, needed: Type) -> str:
    if isinstance(given, Value) and needed is INT:
        return ": an int is shared by all worlds; whole(x) converts one world's number"
    if isinstance(given, (Value, Mask)) and isinstance(needed, (Value, Mask)) and given.width > needed.width:
        return ": W numbers cannot become one"
    if isinstance(given, Dual):
        return "; split_tangents(x, n) returns its value and its tangents"
    if isinstance(given, (Mask, Number)) and isinstance(needed, Value):
        return "; where(mask, 1.0, 0.0) converts a mask to a value"
    if given is REAL and needed is INT:
        return ": an int is computed from ints"
    return ""


def _advice_on_kinds(a: Type, b: Type) -> str:
    kinds = {INT if t is BOOL else REAL if isinstance(t, (Value, Dual)) else t for t in (a, b)}
    if kinds == {INT, REAL}:
        return ".  Start a sum with 0.0, not with 0"
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return ".  A tuple keeps its length and the types of its elements"
    return ".  Use two names"
