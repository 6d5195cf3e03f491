"""Compiles the kernels of a frozen world to WebAssembly, and makes a module of LLVM's relocatable object.

An object of LLVM is a valid module already, without exports: references in it have the values that they have if the
object is the only one, with its constants at address 0.  So no linker is needed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from featherlane.engine.lanes import cache
from featherlane.engine.lanes.kernel import Stage, symbol, variant
from featherlane.engine.lanes.runtime import KernelError, Library

LEVEL, PLACE = "wasm32", ("wasm", "wasm32")  # a target of `freeze`, its system and architecture
FMA = Path(__file__).with_name("fma.ll")
FEATURES = {  # of the modules by their multiply-add; a loader takes the first whose results are exact on its processor
    "relaxed": "+simd128,+relaxed-simd,+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext",
    "exact": "+bulk-memory,+bulk-memory-opt,+nontrapping-fptoint,+sign-ext",
}
CUSTOM, EXPORT, DATA = 0, 7, 11  # sections; those up to exports stand in the order of their numbers
SYMBOL_TABLE, FUNCTION, CONSTANT, SECTION = 8, 0, 1, 3  # part of the section "linking", and kinds of its symbols
WEAK, LOCAL, UNDEFINED, NAMED = 1, 2, 0x10, 0x40  # flags of a symbol
ADDRESSES = {3, 4, 5}  # relocations by addresses of constants
FINAL = ADDRESSES | {0, 6, 7, 20}  # and by indices of functions, types, globals, and the table of functions
MOST_CONSTANTS = 1 << 20  # bytes; the stack follows


def modules(library: Library, stages: Iterable[Stage], form: tuple[str, int]) -> dict[str, bytes]:
    """Returns the modules with stages and all that they call, compressed by gzip, by name: `relaxed` and `exact`.

    The first has the fused multiply-add of relaxed SIMD, which a processor may round twice; the second emulates it.
    Both export the stages and `fl_fma`, which shows what multiply-add a processor has.

    Raises:
        KernelError: the compiler is not installed, or its object needs more than a memory and a stack.
    """
    stages, needed = tuple(stages), {s.name: s for stage in stages for s in library.required(stage)}
    group, text, found = tuple(needed.values()), "", {}
    key = cache.group_key(group, library.records, *form, LEVEL).removesuffix(".o")
    for kind, features in FEATURES.items():
        digest = hashlib.sha256(FMA.read_bytes() + features.encode()).hexdigest()[:16]
        code = cache.read_object(f"{key}-{digest}.o")
        if code is None:
            text = text or _lowered(library, group, stages, form)
            code = _compiled(text, kind)
            cache.write_object(f"{key}-{digest}.o", code)
        found[kind] = gzip.compress(linked(code, {"layout": library.layout_hash()}), mtime=0)
    return found


def _lowered(library: Library, group: tuple[Stage, ...], stages: tuple[Stage, ...], form: tuple[str, int]) -> str:
    """Returns LLVM IR that exports `stages` only."""
    try:
        from featherlane.engine.lanes import toolchain
    except ImportError as error:
        raise KernelError(
            "kernels for wasm32 have to be compiled. Install the compiler with: pip install 'featherlane[jit]'"
        ) from error
    kept = {symbol(s, *variant(s, *form), False) for s in stages}
    text = toolchain.lower(group, library.records, *form)
    return re.sub(
        r"^define i32 @(\w+)\(",
        lambda m: m[0] if m[1] in kept else f"define internal i32 @{m[1]}(",
        text,
        flags=re.MULTILINE,
    )


def with_fma(text: str, kind: str) -> str:
    """Returns LLVM IR that calls a function of fma.ll for each fused multiply-add, and defines fl_fma."""
    name, more = f"fma_{kind}", ""
    for width in sorted(set(re.findall(r"@llvm\.fma\.v(\d+)f64\(", text)), key=int):
        vector = f"<{width} x double>"
        text = text.replace(f"call {vector} @llvm.fma.v{width}f64(", f"call {vector} @fma_v{width}(")
        more += f"define internal {vector} @fma_v{width}({vector} %x, {vector} %y, {vector} %z) noinline {{\n"
        for i in range(int(width)):
            more += "".join(f"  %{v}{i} = extractelement {vector} %{v}, i32 {i}\n" for v in "xyz")
            more += f"  %f{i} = call double @{name}(double %x{i}, double %y{i}, double %z{i})\n"
            more += f"  %r{i} = insertelement {vector} {f'%r{i - 1}' if i else 'poison'}, double %f{i}, i32 {i}\n"
        more += f"  ret {vector} %r{int(width) - 1}\n}}\n"
    text = text.replace("call double @llvm.fma.f64(", f"call double @{name}(")
    more += "define double @fl_fma(double %x, double %y, double %z) {\n"
    more += f"  %r = call double @{name}(double %x, double %y, double %z)\n  ret double %r\n}}\n"
    if "@llvm.copysign.f64(double, double)" not in text:
        more += "declare double @llvm.copysign.f64(double, double)\n"
    return text + more + FMA.read_text(encoding="utf-8")


def _compiled(text: str, kind: str) -> bytes:
    """Returns LLVM's relocatable object."""
    from featherlane.engine.lanes import toolchain

    class Target(toolchain.Target):
        """WebAssembly, whose memory begins at 0: no code is independent of its position."""

        def machine(self):
            target = toolchain.llvm.Target.from_triple(self.triple)
            return target.create_target_machine(cpu=self.cpu, features=self.features, opt=3, reloc="static")

    toolchain.llvm.initialize_all_targets()
    toolchain.llvm.initialize_all_asmprinters()
    target = Target("wasm32-unknown-unknown", "generic", FEATURES[kind])
    return toolchain.emit_for(with_fma(text, kind), target, toolchain.ONE_WORLD)


# ---- an object as a module -------------------------------------------------------------------------------------------
def linked(code: bytes, properties: dict[str, str]) -> bytes:
    """Returns a module that exports the defined global functions of a relocatable object.

    It imports a memory, a stack pointer and a table.  Its custom section `featherlane` has the properties as JSON.

    Raises:
        KernelError: the object has references whose values are not final, calls functions of others, exports none, or
            has too many constants.
    """
    exports, kept, reader = {}, [], _Reader(code, 8)  # behind the magic number and the version
    while reader.at < len(code):
        kind, content = reader.number(), reader.part()
        if kind != CUSTOM:
            kept.append((kind, content))
            continue
        section = _Reader(content)
        name = section.part().decode()
        if name == "linking":
            exports = _functions(section)
        elif name.startswith("reloc."):
            _check_relocations(section)
    if not exports or any(kind == DATA and len(content) > MOST_CONSTANTS for kind, content in kept):
        raise KernelError("the WebAssembly object exports no function, or has too many constants; report this")
    entries = b"".join(_sized(name.encode()) + bytes([FUNCTION]) + _number(k) for name, k in exports.items())
    at = next(k for k, (kind, _) in enumerate(kept) if kind > EXPORT)
    kept.insert(at, (EXPORT, _number(len(exports)) + entries))
    kept.append((CUSTOM, _sized(b"featherlane") + json.dumps(properties).encode()))
    return code[:8] + b"".join(bytes([kind]) + _sized(content) for kind, content in kept)


class _Reader:
    """Reads numbers and texts in turn."""

    def __init__(self, content: bytes, at: int = 0):
        self.content, self.at = content, at

    def number(self) -> int:
        """Reads an unsigned LEB128 number."""
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def part(self) -> bytes:
        """Reads a number, and as many bytes."""
        length = self.number()
        self.at += length
        return self.content[self.at - length : self.at]


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _sized(content: bytes) -> bytes:
    return _number(len(content)) + content


def _functions(section: _Reader) -> dict[str, int]:
    """Returns the global functions of a symbol table by name, with their indices."""
    found = {}
    section.number()  # version
    while section.at < len(section.content):
        part, table = section.number(), _Reader(section.part())
        for _ in range(table.number() if part == SYMBOL_TABLE else 0):
            kind, flags = table.number(), table.number()
            index = table.number() if kind != CONSTANT else 0
            is_named = kind == CONSTANT or flags & NAMED or (kind != SECTION and not flags & UNDEFINED)
            name = table.part().decode() if is_named else ""
            for _ in range(3 if kind == CONSTANT and not flags & UNDEFINED else 0):
                table.number()  # its segment, place and size
            if kind == FUNCTION and flags & UNDEFINED:
                raise KernelError("the WebAssembly object calls a function of another module; report this")
            if kind == FUNCTION and not flags & (WEAK | LOCAL):
                found[name] = index
    return found


def _check_relocations(section: _Reader) -> None:
    section.number()  # the section that they belong to
    for _ in range(section.number()):
        kind, _, _ = section.number(), section.number(), section.number()  # its place, its index
        if kind not in FINAL:
            raise KernelError(f"the WebAssembly object has a relocation {kind}, allowed are {FINAL}; report this")
        if kind in ADDRESSES:
            section.number()  # an offset
