"""Parent arrays: conventions, expansion to DoFs, and the sets and the pattern that they define.

Convention: 0-based, root = -1, every parent before its children (Featherstone's regular numbering, shifted by one).
Source: Featherstone, Rigid Body Dynamics Algorithms, sec. 4.1 (connectivity), sec. 6.4-6.5, table 6.4 (expansion).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from featherlane.errors import ArgumentError

IntArray = NDArray[np.intp]


def _integers(values: ArrayLike, name: str) -> IntArray:
    """Returns a one-dimensional integer array, or raises a ValueError that names the argument."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{name} has rows of different lengths, allowed is a one-dimensional array") from None
    if array.ndim != 1:
        raise ArgumentError(f"{name} has shape {array.shape}, allowed is a one-dimensional array")
    if array.size and array.dtype.kind not in "iu":
        raise ArgumentError(f"{name} has dtype {array.dtype}, allowed are integers")
    return array.astype(np.intp)


def check_parents(parents: ArrayLike) -> IntArray:
    """Checks a parent array and returns it as a new integer array.

    Args:
        parents: (n,) integers, parents[i] in -1 ... i - 1; -1 is the root (the fixed base).

    Raises:
        ValueError: not one-dimensional, not integers, or a parent that does not come before its child.
    """
    array = _integers(parents, "parents")
    wrong = np.flatnonzero((array < -1) | (array >= np.arange(array.size)))
    if wrong.size:
        i = int(wrong[0])
        hint = "; the array looks 1-based: use from_book" if array[i] == i and array.min() >= 0 else ""
        allowed = "-1 (root)" if i == 0 else f"-1 (root) or 0 to {i - 1}"
        raise ArgumentError(
            f"parents[{i}] is {array[i]}, allowed is {allowed}, because a parent precedes its children{hint}"
        )
    return array


def from_book(parents: ArrayLike) -> IntArray:
    """Converts a 1-based parent array (root = 0), as printed in the book, to this module's convention, (n,).

    Raises:
        ValueError: an entry outside 0 ... i - 1, counted from 1 as in the book.
    """
    array = _integers(parents, "parents")
    wrong = np.flatnonzero((array < 0) | (array > np.arange(array.size)))
    if wrong.size:
        i = int(wrong[0])
        raise ArgumentError(f"parent of {i + 1} is {array[i]}, allowed in the 1-based form (root 0) are 0 to {i}")
    return array - 1


def to_book(parents: ArrayLike) -> IntArray:
    """Converts a parent array to the book's convention, the inverse of `from_book`: 1-based (n,) with root 0.

    Raises:
        ValueError: an invalid parent.
    """
    return check_parents(parents) + 1


def expand_parents(parents: ArrayLike, dofs: ArrayLike) -> IntArray:
    """Returns the parent array of the DoFs: a joint of n_i DoFs becomes a chain of n_i.

    Args:
        parents: (nbody,) parent array of the bodies, the base left out. From a MuJoCo model: `body_parentid[1:] - 1`.
        dofs: (nbody,) number of DoFs n_i of each body's joint. From a MuJoCo model: `body_dofnum[1:]`.

    Returns:
        (sum of dofs,) expanded parent array; for a MuJoCo model its `dof_parentid`.

    Raises:
        ValueError: different lengths, a negative number of DoFs, or an invalid parent.

    Source: Featherstone, sec. 6.5, table 6.4. Differs: n_i = 0 (a welded body) is allowed; its children attach to the
    last DoF above it.
    """
    parents, counts = check_parents(parents), _integers(dofs, "dofs")
    if counts.size != parents.size:
        raise ArgumentError(
            f"dofs has {counts.size} entries, allowed are {parents.size}, one for each entry of parents"
        )
    if counts.size and counts.min() < 0:
        i = int(np.argmax(counts < 0))
        raise ArgumentError(f"dofs[{i}] is {counts[i]}, allowed are numbers >= 0")
    expanded = np.arange(-1, counts.sum() - 1, dtype=np.intp)
    # last[i]: the last DoF on the path from the base to body i; last[-1] is the base
    last = np.full(parents.size + 1, -1, dtype=np.intp)
    first = 0
    for i, (parent, count) in enumerate(zip(parents, counts, strict=True)):
        last[i] = last[parent]
        if count:
            expanded[first] = last[parent]
            last[i] = first + count - 1
        first += count
    return expanded


def ancestors(parents: IntArray) -> list[IntArray]:
    """Returns each DoF's proper ancestors, nearest first: lambda(i), lambda(lambda(i)), ...; trusts `parents`."""
    paths: list[IntArray] = []
    for parent in parents:
        above = paths[parent] if parent >= 0 else parents[:0]
        paths.append(np.concatenate((parents[:0] if parent < 0 else [parent], above)).astype(np.intp))
    return paths


def depth(parents: ArrayLike) -> IntArray:
    """Returns depths d_i, (n,): the number of DoFs on the path from the base to i, including i; 1 at the base.

    Raises:
        ValueError: an invalid parent.
    """
    parents = check_parents(parents)
    depths = np.zeros(parents.size + 1, dtype=np.intp)
    # depths[-1] = 0 is the base
    for i, parent in enumerate(parents):
        depths[i] = depths[parent] + 1
    return depths[:-1]


def support(parents: ArrayLike) -> list[IntArray]:
    """Returns supports kappa(i), n arrays (d_i,): the DoFs on the path from the base to i, in ascending order, i last.

    Raises:
        ValueError: an invalid parent.
    """
    return [np.append(path[::-1], i) for i, path in enumerate(ancestors(check_parents(parents)))]


def subtree(parents: ArrayLike) -> list[IntArray]:
    """Returns subtrees nu(i), n arrays (size,): i and all its descendants, in ascending order.

    Raises:
        ValueError: an invalid parent.
    """
    pattern = np.tril(sparsity(parents))
    return [np.flatnonzero(column) for column in pattern.T]


def sparsity(parents: ArrayLike) -> NDArray[np.bool_]:
    """Returns the pattern (n, n) of branch-induced sparsity: True if i supports j, j supports i, or i = j.

    Raises:
        ValueError: an invalid parent.

    Source: Featherstone, sec. 6.4: H_ij = 0 whenever i and j lie on different branches.
    """
    parents = check_parents(parents)
    pattern = np.eye(parents.size, dtype=bool)
    # a row is its parent's row plus its diagonal entry
    for i, parent in enumerate(parents):
        if parent >= 0:
            pattern[i, :i] = pattern[parent, :i]
    return pattern | pattern.T


def check_sparsity(H: ArrayLike, parents: ArrayLike, tolerance: float = 1e-12) -> None:
    """Checks that a matrix is symmetric and has the tree's pattern; the other functions do not check this.

    Args:
        H: (..., n, n) matrix.
        parents: (n,) parent array.
        tolerance: threshold for zero, relative to the largest entry of H.

    Raises:
        ValueError: a wrong shape, an entry off the pattern or an asymmetry; names the entry.
    """
    parents = check_parents(parents)
    H = square_array(H, parents.size, "H")
    if not H.size:
        return
    bound = tolerance * np.abs(H).max()
    for kind, error in (
        ("outside of the tree's sparsity pattern", H * ~sparsity(parents)),
        ("asymmetry", H - np.swapaxes(H, -1, -2)),
    ):
        worst = np.unravel_index(np.argmax(np.abs(error)), error.shape)
        if not np.abs(error[worst]) <= bound:
            entry = ", ".join(map(str, worst))
            raise ArgumentError(f"H[{entry}]: {kind} by {error[worst]}, allowed is at most {bound}")


def square_array(H: ArrayLike, n: int, name: str) -> np.ndarray:
    """Returns a real array (..., n, n); integers become float64, other real types (also `object`) stay."""
    array = real_array(H, name)
    if array.ndim < 2 or array.shape[-2:] != (n, n):
        raise ArgumentError(
            f"{name} has shape {array.shape}, allowed is (..., {n}, {n}), because parents has {n} entries"
        )
    return array


def real_array(values: ArrayLike, name: str) -> np.ndarray:
    """Returns a real array; integers and booleans become float64."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{name} has rows of different lengths, allowed is an array of real numbers") from None
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind not in "fO":
        raise ArgumentError(f"{name} has dtype {array.dtype}, allowed are real numbers")
    return array
