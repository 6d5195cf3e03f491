"""In-memory linking of object code into this process, with addresses of constants and of other stages resolved.

Code addresses its constants by 32-bit offsets.  LLVM's JITLink allocates one memory range per object and uses full
addresses for everything else.  LLVM's RuntimeDyld allocates each section separately, and aborts the process if large
arrays lie between them; it is used on Windows only, where llvmlite has no JITLink.
"""

from __future__ import annotations

import itertools
import sys

import llvmlite.binding as llvm


class Engine:
    """Holds loaded objects and the addresses of their exported symbols."""

    def __init__(self):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")
        self._names = map("featherlane{}".format, itertools.count())  # a name is never reused
        self._held = []  # owners of the objects' memory
        self._addresses: dict[str, int] = {}

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._addresses

    def __getitem__(self, symbol: str) -> int:
        return self._addresses[symbol]

    def load(self, objects: dict[str, bytes], called: list[str]) -> None:
        """Loads objects by their exported symbols; they may call each other, libc, libm, and objects loaded earlier.

        Args:
            objects: symbol -> object code.
            called: symbols loaded earlier that these objects may call.

        Raises:
            RuntimeError: an object is corrupt, or calls an unknown symbol.
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
