"""Assigns to a field: copies the value into the live array with broadcasting, or raises an error.

A number broadcasts over objects, worlds and the axes of a vector, but not over an axis whose entries have different
meanings: 0.02 for a `solref` would also set the damping ratio.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from featherlane.errors import ModelError

# suffixes of fields whose last axis holds entries of different meanings
MIXED = tuple(
    "solref solimp solref_lim solimp_lim solref_fri solimp_fri solreffriction _friction range quat dynprm gainprm "
    "biasprm gear poly eq_data geom_fluid geom_aabb surfacevel cam_intrinsic sensor_interval".split()
)
FLAGS = (0, 1)


@functools.cache
def is_mixed(name: str) -> bool:
    """Returns whether the entries of the field's last axis have different meanings."""
    return name.endswith(MIXED)


def assign(name: str, array: np.ndarray, value: Any, index: Any = ..., mixed: bool = False) -> None:
    """Copies a value into `array[index]`.

    Args:
        name: name of the field in error messages.
        array: the field.
        value: broadcasts to the shape of `array[index]`; its number type must fit the field.
        index: index of the entries.
        mixed: the last axis must be given in full.

    Raises:
        ModelError: the shape or number type does not fit, or the array is fixed; nothing is changed then.
    """
    if not array.flags.writeable:
        raise ModelError(f"{name} cannot be set: {getattr(array, 'reason', 'it is read-only')}")
    if type(value) is np.ndarray and index is ... and value.shape == array.shape and value.dtype == array.dtype:
        array[...] = value  # the common case, takes 1 us
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
            f"{name}: got {described(value)}, allowed are {shape[-1]} numbers (they have different "
            f"meanings), or an array that has this last axis and broadcasts to {shape}"
        )
    array[index] = given


def _holds(dtype: np.dtype, given: np.ndarray) -> bool:
    """Returns whether the field can hold this number type: no fractions in integers, only 0 and 1 in flags."""
    if given.dtype.kind not in "biuf":
        return False
    if dtype.kind == "b" and given.dtype.kind in "iu":
        return bool(np.isin(given, FLAGS).all())
    if dtype.kind in "iu" and given.dtype.kind in "iu":
        return bool((given == given.astype(dtype)).all())
    return np.can_cast(given.dtype, dtype, "same_kind")


def converted(value: Any) -> np.ndarray:
    """Converts a value to an array; all user values are converted here.

    Raises:
        ValueError: rows differ in length, or the array is masked (NumPy would return the numbers under the mask).
    """
    if type(value) is not np.ndarray and _is_masked(value):
        raise ValueError("a masked array")
    try:
        return np.asarray(value)
    except ValueError:
        raise ValueError("rows of different lengths") from None


def _is_masked(value: Any) -> bool:
    """Returns whether the value is a masked array, or a list that contains one."""
    if isinstance(value, list | tuple):
        return any(map(_is_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def regular(name: str, value: Any) -> np.ndarray:
    """Returns a value as an array.

    Raises:
        ModelError: rows differ in length, or the array is masked.
    """
    try:
        return converted(value)
    except ValueError as error:
        raise ModelError(f"{name}: got {error}, allowed are arrays") from None


def reals(name: str, value: Any, allowed: str) -> np.ndarray:
    """Returns a value as a new array of float64; arguments and errors are those of `as_real_array`."""
    return as_real_array(name, value, allowed).astype(np.float64)


def as_real_array(name: str, value: Any, allowed: str, where: str = "") -> np.ndarray:
    """Returns a value as an array of real numbers of any precision; an array is returned unchanged.

    Args:
        name: the value's name in error messages.
        allowed: text of the allowed values, for the message.
        where: addition to the message, such as " in step 3".

    Raises:
        ModelError: the value is not an array of real numbers.
    """
    try:
        given = converted(value)
    except ValueError:
        given = np.zeros(0, object)
    if given.dtype.kind not in "biuf":
        what = f"{type(value).__name__} of {given.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ModelError(f"{name}: got {what}{where}, allowed {allowed}")
    return given


def broadcast_reals(name: str, value: Any, shape: tuple[int, ...], where: str = "") -> np.ndarray:
    """Returns a value as an array of real numbers of that shape; a read-only view of what broadcasts to it.

    Args:
        name, where: as for `as_real_array`.

    Raises:
        ModelError: the value is not an array of real numbers, or does not broadcast.
    """
    allowed = f"is what broadcasts to {shape}"
    given = as_real_array(name, value, allowed, where)
    try:
        return np.broadcast_to(given, shape)
    except ValueError:
        raise ModelError(f"{name}: got shape {given.shape}{where}, allowed {allowed}") from None


def described(value: Any) -> str:
    """Describes a value briefly: a number as it is, otherwise its type and shape."""
    try:
        given = converted(value)
    except ValueError:
        return "a masked array" if _is_masked(value) else type(value).__name__
    if given.ndim:
        return f"{given.dtype} {given.shape}"
    if given.dtype.kind == "O":
        return f"object {type(value).__name__}"
    return repr(value) if given.dtype.kind in "biuf" else f"{given.dtype} {value!r}"


def check_finite(name: str, values: np.ndarray, infinite: bool = False) -> None:
    """Raises an error that names the first entry that is not finite.

    Args:
        name: the array's name in error messages.
        infinite: whether infinite entries are allowed.

    Raises:
        ModelError: an entry is not finite, or is NaN.
    """
    wrong = np.argwhere(np.isnan(values) if infinite else ~np.isfinite(values))
    if len(wrong):
        at = tuple(wrong[0].tolist())
        raise ModelError(f"{name}: got {values[at]} at {at}, allowed are {'numbers' if infinite else 'finite numbers'}")


def real_number(name: str, value: Any, allowed: str = "is a number") -> float:
    """Returns one real number, not NaN.

    Args:
        name: the value's name in error messages.
        allowed: text of the allowed values, for the message.

    Raises:
        ModelError: the value is not a real number.
    """
    given = as_real_array(name, value, allowed)
    if given.ndim or isinstance(value, bool | np.bool_) or np.isnan(given):
        raise ModelError(f"{name}: got {described(value)}, allowed {allowed}")
    return float(given)


def number_in_range(name: str, value: Any, low: float, high: float, whole: bool) -> float:
    """Returns a number from `low` to `high`; an int if it must be whole.

    Raises:
        ModelError: any other value.
    """
    allowed = f"is a {'whole ' if whole else ''}number from {low} to {high}"
    number = real_number(name, value, allowed)
    if not low <= number <= high or (whole and number != int(number)):
        raise ModelError(f"{name}: got {number:g}, allowed {allowed}")
    return int(number) if whole else number


def flag(name: str, value: Any) -> bool:
    """Returns a boolean, given as True or False, or 1 or 0.

    Raises:
        ModelError: any other value, even if Python would convert it to a boolean.
    """
    if value is True or value is False:
        return value
    if isinstance(value, int | np.bool_ | np.integer) and value in FLAGS:
        return bool(value)
    raise ModelError(f"{name}: got {described(value)}, allowed are True and False")


def encodable(name: str, text: str) -> str:
    """Returns text that can be encoded in UTF-8, which MuJoCo requires.

    Raises:
        ModelError: the text has a lone surrogate, which stands for an undecodable byte.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{name}: got {text[error.start]!a} at position {error.start}, allowed is text that can be encoded as UTF-8"
        ) from None
    return text


def value_entries(name: str, value: Any, allowed: str) -> Iterator[Any]:
    """Yields the entries of a value one by one, so that they need not fit into memory; a string is one entry.

    Args:
        name: the value's name in error messages.
        allowed: text of the allowed values, for the message.

    Raises:
        ModelError: the value is not iterable.
    """
    try:
        return iter((value,) if isinstance(value, str) else value)
    except TypeError:
        raise ModelError(f"{name}: got {type(value).__name__}, allowed {allowed}") from None
