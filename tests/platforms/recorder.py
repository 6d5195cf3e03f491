"""Records calls of compiled stages, with all memory before and after, for `replay.c` on another system.

A file holds little-endian int64 words: the number of calls, then for each call
    name (64 bytes), number of records, number of integer arguments, these arguments, number of memory blocks
    each block: its size [bytes], its first address modulo 64
    each record: number of words, the words, number of addresses in it, then (word, block, offset) of each
    each block before the call: the number of its cache lines that are not zero, then (number, 64 bytes) of each
    pointers before the call: their number, then (block, offset, block that it points to, offset) of each
    each block after the call: the same of the lines that changed
    pointers after the call
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from featherlane.engine.lanes.kernel import symbol
from featherlane.engine.lanes.record import FAULT_WORDS, LINE, Record, address
from featherlane.engine.lanes.runtime import Library

NAME = 64  # bytes of a name


def _words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _arrays(record: Record) -> Iterator[tuple[int, np.ndarray]]:
    """Returns (word of the address in the record's table, array) for the arrays of a record."""
    for k, field in enumerate(record.layout.fields):
        if field.kind != "size" and record.arrays[field.name].size:
            yield FAULT_WORDS + 2 * k, record.arrays[field.name]


def _blocks(records: tuple[Record, ...]) -> list[tuple[int, np.ndarray]]:
    """Returns (first address, bytes) of disjoint memory blocks that contain all arrays; arrays may overlap."""
    spans = sorted({(address(a), address(a) + a.nbytes) for r in records for _, a in _arrays(r)})
    merged: list[list[int]] = []
    for first, end in spans:
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([first, end])
    kept = [np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * (b - a)).from_address(a)) for a, b in merged]
    return [(a, block) for (a, _), block in zip(merged, kept, strict=True)]


def _relocations(record: Record, blocks) -> list[int]:
    """Returns (word, block, offset) of each address in a record's table, in one list."""
    found = []
    for word, array in _arrays(record):
        start = int(record.table[word])
        (k,) = [k for k, (first, block) in enumerate(blocks) if first <= start < first + block.size]
        found += [word, k, start - blocks[k][0]]
        assert start == address(array)
    return found


def _pointers(records: tuple[Record, ...], blocks) -> bytes:
    """Returns the words of fields with the role `pointer` that hold an address within the blocks."""
    found = []
    for record in records:
        for array in map(record.arrays.__getitem__, record.layout.of("pointer")):
            for i, word in enumerate(array.tolist()):
                places = [
                    (k, at - first)
                    for at in (address(array) + 8 * i, word)
                    for k, (first, block) in enumerate(blocks)
                    if first <= at < first + block.size
                ]
                found += [n for place in places for n in place] if len(places) == 2 else []
    return _words(len(found) // 4, *found)


def _lines(block: np.ndarray) -> np.ndarray:
    """Returns a copy of a block, as rows of a cache line each; the last one is filled with zeros."""
    return np.concatenate([block, np.zeros(-block.size % LINE, np.uint8)]).view(np.int64).reshape(-1, LINE // 8)


def _changes(before, after: np.ndarray) -> bytes:
    """Returns the rows of `after` that differ from `before`."""
    (rows,) = np.nonzero((after != before).any(1))
    return _words(len(rows)) + np.column_stack([rows, after[rows]]).astype("<i8").tobytes()


def _call(name: str, records: tuple[Record, ...], numbers: tuple[int, ...], run: Callable) -> bytes:
    """Runs a stage; returns its part of the file."""
    blocks = _blocks(records)
    text = name.encode().ljust(NAME, b"\0") + _words(len(records), len(numbers), *numbers, len(blocks))
    text += b"".join(_words(block.size, first % LINE) for first, block in blocks)
    for record in records:
        places = _relocations(record, blocks)
        text += _words(record.table.size) + record.table.astype("<i8").tobytes() + _words(len(places) // 3, *places)
    before, pointers = [_lines(block) for _, block in blocks], _pointers(records, blocks)
    run(*numbers)
    after = [_lines(block) for _, block in blocks]
    text += b"".join(_changes(0, lines) for lines in before) + pointers
    return text + b"".join(_changes(b, a) for b, a in zip(before, after, strict=True)) + _pointers(records, blocks)


def file_of(calls) -> bytes:
    """Runs stages, each a tuple of `_call`'s arguments; returns the file's content."""
    parts = [_call(*call) for call in calls]
    return _words(len(parts)) + b"".join(parts)


@contextlib.contextmanager
def recording(path: Path) -> Iterator[list[str]]:
    """Writes all calls of stages within the context into a file; returns their names."""
    bound, names, parts = Library.bind, [], []

    def bind(self, stage, *records, **options):
        run = bound(self, stage, *records, **options)
        name = symbol(stage, "f64" if records[0].dtype == np.float64 else "f32", records[0].width, False)

        def recorded(*numbers):
            names.append(name)
            parts.append(_call(name, records, numbers, run))

        return recorded

    with mock.patch.object(Library, "bind", bind):
        yield names
    path.write_bytes(_words(len(parts)) + b"".join(parts))
