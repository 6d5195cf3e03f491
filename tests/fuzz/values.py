"""Values that hypothesis samples in place of valid arguments: other types, shapes, dtypes, values, or almost valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from hypothesis import strategies as st

import featherlane as fl

NUMBERS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, 1e11, 2.0**31, 2.0**63, 0.5, 3.0)
WHOLE = (0, 1, 2, -1, -2, 3, 7, 100, 10**6, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30, -(2**31) - 1)


class Odd:
    """Raises a different error in each of its conversions."""

    TEXTS = ("no float", "no index", "no length")

    def __float__(self):
        raise TypeError("no float")

    def __index__(self):
        raise ValueError("no index")

    def __len__(self):
        raise RuntimeError("no length")

    def __repr__(self):
        return "Odd()"


SHAPES = ((), (0,), (1,), (3,), (4,), (7,), (1, 3), (3, 1), (2, 3), (0, 3), (3, 3), (3, 14), (2, 2, 2))


@st.composite
def arrays(draw):
    """Returns arrays of any dtype and shape, some read-only, strided, in Fortran's order or of the other byte order."""
    dtype = draw(st.sampled_from("f8 f4 f2 i4 i8 u1 i1 u8 b c16 >f8 >i4 O U3 S2 M8[s] m8[s] V4".split()))
    shape = draw(
        st.sampled_from([(), (0,), (1,), (3,), (4,), (7,), (1, 3), (3, 1), (2, 3), (0, 3), (3, 3), (3, 14), (2, 2, 2)])
    )
    if dtype == "O":
        array = np.empty(shape, object)
        array.fill(draw(st.sampled_from((None, "x", 1.0, [], {}))))
    elif dtype in ("f8", "f4", "f2", ">f8"):
        array = np.full(shape, draw(st.sampled_from(NUMBERS[:8] + NUMBERS[13:]))).astype(dtype)
    elif dtype in ("i4", "i8", "u1", "i1", "u8", ">i4", "b", "c16"):
        array = np.full(shape, draw(st.integers(0, 5))).astype(dtype)
    else:
        array = np.zeros(shape, dtype)
    return draw(
        st.sampled_from((lambda a: a, readonly, np.asfortranarray, lambda a: a.T, lambda a: a[::2] if a.ndim else a))
    )(array)


def readonly(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def generator():
    yield 1.0


OBJECTS = (
    None, "", "x", "\0", "é" * 50, "qpos", "body_mass", "home", "elbow", "hand", b"", b"x", bytearray(b"1"), (), [], {},
    set(), frozenset({1}), [1], [1, 2], [1, 2, 3], [[1], [2, 3]], ["a"], [None], [[]], {0: 1}, range(3), range(0),
    True, False, 1j, object(), Odd(), object, float, len, Ellipsis, NotImplemented, slice(1), memoryview(b"123"),
    np.float32(1), np.int8(1), np.bool_(True), np.str_("x"), np.nan, np.inf, lambda *arguments: None,
    np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]), lambda *arguments: 1 / 0, np.zeros(3), np.eye(3),
    np.random.default_rng(0),
)  # fmt: skip
OTHERS: dict[str, Callable[[Any], Any]] = {
    "model": lambda w: fl.bundled("pendulum"),
    "data": lambda w: fl.Data(fl.bundled("pendulum")),
    "batch": lambda w: w.b,
    "mj_model": lambda w: w.m.mj_model,
    "mj_data": lambda w: mujoco.MjData(w.m.mj_model),
    "generator": lambda w: generator(),
    "iterator": lambda w: iter([1.0]),
    "huge": lambda w: np.broadcast_to(np.float64(1), (1 << 40,)),
}


@dataclass(frozen=True)
class Other:
    """Returns values that are created per call: another model, an iterator."""

    name: str


SIMPLE = st.one_of(
    st.sampled_from(NUMBERS), st.sampled_from(WHOLE), st.integers(-5, 20), st.floats(), st.text(max_size=4),
    st.sampled_from(OBJECTS), arrays(), st.sampled_from(tuple(map(Other, OTHERS))),
    st.lists(st.sampled_from((0, 1, -1, 2, "x", None, np.nan, [1])), max_size=4),
)  # fmt: skip


def wrong_value(draw, world: Any, valid: Any) -> Any:
    """Returns replacements of a valid argument: almost the same, or arbitrary."""
    try:
        array = np.asarray(valid)
    except ValueError:
        array = np.zeros(0, object)
    if isinstance(valid, str) and draw(st.booleans()):
        words = (valid.upper(), valid + " ", valid[:-1], valid.encode(), [valid], [valid, valid], np.str_(valid))
        return draw(st.sampled_from(words))
    if array.dtype.kind in "biuf" and draw(st.booleans()):
        return _nearly(draw, array)
    value = draw(SIMPLE)
    return OTHERS[value.name](world) if isinstance(value, Other) else value


def _nearly(draw, array: np.ndarray) -> Any:
    """Returns a valid array with one fault."""
    kind = draw(st.sampled_from(("number", "shape", "dtype", "memory", "whole")))
    if kind == "whole":
        return (
            draw(st.sampled_from(NUMBERS + WHOLE))
            if array.ndim == 0
            else np.full(array.shape, draw(st.sampled_from(NUMBERS)))
        )
    if kind == "number":
        changed = np.array(array, dtype=float)
        if changed.size:
            changed.ravel()[draw(st.integers(0, changed.size - 1))] = draw(st.sampled_from(NUMBERS))
        return changed if array.ndim else float(changed)
    if kind == "shape":
        return draw(st.sampled_from(RESHAPED))(array)
    if kind == "dtype":
        with np.errstate(all="ignore"):
            return array.astype(draw(st.sampled_from("f4 f2 i4 u1 b c16 >f8 O U8".split())))
    return draw(st.sampled_from(STORED))(array)


RESHAPED = (
    lambda a: a[None],
    lambda a: a[..., None],
    lambda a: a[:-1] if a.ndim else a,
    lambda a: np.repeat(np.atleast_1d(a), 2, 0),
    lambda a: a.T,
    np.ravel,
)
STORED = (
    readonly,
    np.asfortranarray,
    lambda a: np.repeat(a, 2, -1)[..., ::2] if a.ndim else a,
    lambda a: a.tolist(),
    lambda a: tuple(a.ravel()),
)
