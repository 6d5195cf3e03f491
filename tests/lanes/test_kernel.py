"""What a kernel names, read from its bytecode."""

import dis
import inspect

from featherlane.lanes.kernel import _names
from featherlane.simulation.tile.library import stages


def named(code):
    """The same from `dis`, which describes each instruction of the Python that runs."""
    loaded = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_ATTR", "LOAD_METHOD")}
    for c in filter(inspect.iscode, code.co_consts):
        inner = named(c)
        loaded, attributes = loaded | inner[0], attributes | inner[1]
    return loaded, attributes


def test_the_names_of_every_kernel_are_those_of_its_instructions():
    kernels = {id(k): k for s in stages().values() for k in s.contained()}
    assert len(kernels) > 500
    for k in kernels.values():
        assert _names(k.function.__code__) == named(k.function.__code__), k


def test_names_beyond_the_first_256_are_found():
    lines = "\n".join(f"    a{k}.b{k}" for k in range(300))
    scope = {}
    exec(f"def many():\n{lines}\n", scope)
    assert _names(scope["many"].__code__) == ({f"a{k}" for k in range(300)}, {f"b{k}" for k in range(300)})
