"""Assignment to a field: the value is copied into the live array with broadcasting, or refused.

A number spreads over objects, worlds and the axes of a vector.  It does not spread over an axis whose entries mean
different things: 0.02 for a `solref` would be a damping ratio, too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from featherlane.errors import ModelError

# ends of names of the fields whose last axis holds numbers of different meanings
MIXED = tuple(
    "solref solimp solref_lim solimp_lim solref_fri solimp_fri solreffriction _friction range quat dynprm gainprm "
    "biasprm gear poly eq_data geom_fluid geom_aabb surfacevel cam_intrinsic sensor_interval".split()
)
FLAGS = (0, 1)


@functools.cache
def is_mixed(name: str) -> bool:
    """Whether the entries of the field's last axis mean different things."""
    return name.endswith(MIXED)


def assign(name: str, array: np.ndarray, value: Any, index: Any = ..., mixed: bool = False) -> None:
    """Copy a value into `array[index]`.

    Args:
        name: what is assigned, for the message.
        array: the field.
        value: what broadcasts to the shape there, of a kind of number that the field can hold.
        index: where.
        mixed: the last axis has to be given in full.

    Raises:
        ModelError: a shape or a kind of number that does not fit, an array that is fixed; nothing is changed then.
    """
    if not array.flags.writeable:
        raise ModelError(f"{name} cannot be set: {getattr(array, 'reason', 'it is read-only')}")
    if type(value) is np.ndarray and index is ... and value.shape == array.shape and value.dtype == array.dtype:
        array[...] = value  # the common case, in a microsecond
        return
    shape, dtype = np.shape(array[index]), array.dtype
    try:
        given = converted(value)
        fits = _holds(dtype, given) and np.broadcast_shapes(given.shape, shape) == shape
    except (TypeError, ValueError):
        given, fits = None, False
    if given is None or not fits:
        raise ModelError(f"{name}: got {described(value)}, allowed is what broadcasts to {shape} of {dtype}")
    if mixed and shape and given.shape[-1:] != shape[-1:]:
        raise ModelError(
            f"{name}: got {described(value)}, allowed are {shape[-1]} numbers (they mean different things), "
            f"or what ends with that axis and broadcasts to {shape}"
        )
    array[index] = given


def _holds(dtype: np.dtype, given: np.ndarray) -> bool:
    """Whether numbers of this kind go into the field: no fractions in whole numbers, in flags 0 and 1 alone."""
    if given.dtype.kind not in "biuf":
        return False
    if dtype.kind == "b" and given.dtype.kind in "iu":
        return bool(np.isin(given, FLAGS).all())
    if dtype.kind in "iu" and given.dtype.kind in "iu":
        return bool((given == given.astype(dtype)).all())
    return np.can_cast(given.dtype, dtype, "same_kind")


def converted(value: Any) -> np.ndarray:
    """A value as an array: the one place where what a user gives becomes an array.

    Raises:
        ValueError: rows of several lengths; a masked array, because NumPy would return the numbers under the mask.
    """
    if type(value) is not np.ndarray and _is_masked(value):
        raise ValueError("a masked array")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError("rows of several lengths") from None


def _is_masked(value: Any) -> bool:
    """Whether it is a masked array, or a list with one in it."""
    if isinstance(value, list | tuple):
        return any(map(_is_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def is_numbers(value: Any) -> bool:
    """An array of real numbers, which does not have to be converted?"""
    return type(value) is np.ndarray and value.dtype.kind in "biuf"


def regular(name: str, value: Any) -> np.ndarray:
    """A value as an array.

    Raises:
        ModelError: rows of several lengths, or a masked array.
    """
    try:
        return converted(value)
    except ValueError as error:
        raise ModelError(f"{name}: got {error}, allowed are arrays") from None


def reals(name: str, value: Any, allowed: str) -> np.ndarray:
    """A value as a new array of float64; arguments and errors are those of `numbers`."""
    return numbers(name, value, allowed).astype(np.float64)


def numbers(name: str, value: Any, allowed: str) -> np.ndarray:
    """A value as an array of real numbers of any precision; an array is given back as it is.

    Args:
        name: what was given, for the message.
        value: the value.
        allowed: what is, for the message.

    Raises:
        ModelError: it is no array of real numbers.
    """
    try:
        given = converted(value)
    except ValueError:
        given = np.zeros(0, object)
    if given.dtype.kind not in "biuf":
        what = f"{type(value).__name__} of {given.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ModelError(f"{name}: got {what}, allowed {allowed}")
    return given


def described(value: Any) -> str:
    """What was given, in short: a number as it is, else its kind and shape."""
    try:
        given = converted(value)
    except ValueError:
        return "a masked array" if _is_masked(value) else type(value).__name__
    if given.ndim:
        return f"{given.dtype} {given.shape}"
    if given.dtype.kind == "O":
        return f"object {type(value).__name__}"
    return repr(value) if given.dtype.kind in "biuf" else f"{given.dtype} {value!r}"


def number(name: str, value: Any, allowed: str = "is a number") -> float:
    """One real number, not NaN.

    Args:
        name: what was given, for the message.
        value: the value.
        allowed: what is, for the message.

    Raises:
        ModelError: it is no real number.
    """
    given = numbers(name, value, allowed)
    if given.ndim or isinstance(value, bool | np.bool_) or np.isnan(given):
        raise ModelError(f"{name}: got {described(value)}, allowed {allowed}")
    return float(given)


def flag(name: str, value: Any) -> bool:
    """A switch: True or False, or 1 or 0.

    Raises:
        ModelError: anything else, which Python would take for True or False all the same.
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in FLAGS:
        return bool(value)
    raise ModelError(f"{name}: got {described(value)}, allowed are True and False")


def encodable(name: str, text: str) -> str:
    """Text that UTF-8 can hold, as MuJoCo takes it.

    Raises:
        ModelError: it has a lone surrogate, which stands for a byte that was no text.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{name}: got {text[error.start]!a} at {error.start}, a lone surrogate; allowed is text in UTF-8"
        ) from None
    return text


def entries(name: str, value: Any, allowed: str) -> Iterator[Any]:
    """The entries of a value one by one, for there may be more than fit into memory; a string is one entry.

    Args:
        name: what was given, for the message.
        value: the value.
        allowed: what is, for the message.

    Raises:
        ModelError: it has no entries.
    """
    try:
        return iter((value,) if isinstance(value, str) else value)
    except TypeError:
        raise ModelError(f"{name}: got {type(value).__name__}, allowed {allowed}") from None
