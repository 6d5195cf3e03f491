"""Object code into this process: linked in memory, where stages find their constants and each other.

Code reaches its constants by an offset of 32 bits.  LLVM's JITLink takes one range of memory for an object and reaches
all else by whole addresses.  Its RuntimeDyld takes memory section by section, and ends the process where large arrays
have come between: it serves Windows alone, where llvmlite has no JITLink.
"""

from __future__ import annotations

import itertools
import sys

import llvmlite.binding as llvm


class Engine:
    """Objects that are loaded, and the addresses of what they export."""

    def __init__(self):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")
        self._names = map("featherlane{}".format, itertools.count())  # a name is never used again
        self._held = []  # their memory goes with these
        self._addresses: dict[str, int] = {}

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._addresses

    def __getitem__(self, symbol: str) -> int:
        return self._addresses[symbol]

    def load(self, objects: dict[str, bytes], called: list[str]) -> None:
        """Objects by the symbol that each exports; they may call each other, libc, libm, and what was loaded before.

        Args:
            objects: symbol -> object code.
            called: symbols loaded before that these objects may call.

        Raises:
            RuntimeError: an object is broken, or calls what is not there.
        """
        if not objects:
            return
        linker = llvm.JITLibraryBuilder().add_current_process()
        for symbol, code in objects.items():
            linker.add_object_img(code).export_symbol(symbol)
        for symbol in called:
            linker.import_symbol(symbol, self._addresses[symbol])
        found = linker.link(self._jit, next(self._names))
        self._held.append(found)
        self._addresses.update((symbol, found[symbol]) for symbol in objects)
