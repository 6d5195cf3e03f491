"""Frictional contact problems of FCLib and Siconos: exact cone solvers, residuals and performance profiles.

FCLib's HDF5 files (group `fclib_local` or `fclib_global`) need h5py; files `.dat` are Siconos' text format.  The files
are not part of the project.  Problems are brought to the local form

    u = W r + q,   K* contains (u_n + mu |u_t|, u_t), orthogonal to r in K: |r_t| <= mu r_n
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from report import markdown

import featherlane as fl

MOST_ROWS = 1500  # larger problems are listed and left out: dense factorizations
ASYMMETRY = 1e-2  # of the largest entry: W is made symmetric


class Unreadable(Exception):
    """A file that holds no problem in a known format; the message states what it has."""


@dataclass(frozen=True)
class Local:
    """u = W r + q with coefficients mu.

    Attributes:
        W: (n, n).
        q: (n,).
        mu: (nc,).
        space: 2 or 3, rows of a contact: the normal first.
    """

    W: np.ndarray
    q: np.ndarray
    mu: np.ndarray
    space: int


def read(path: Path) -> Local:
    """Reads a problem.

    Raises:
        Unreadable: an unknown format, another kind of problem, inconsistent sizes, or more than MOST_ROWS rows.
    """
    problem = read_hdf5(path) if path.suffix == ".hdf5" else read_text(path)
    n = len(problem.q)
    if problem.W.shape != (n, n) or len(problem.mu) * problem.space != n or not n:
        raise Unreadable(f"W {problem.W.shape}, q {n}, {len(problem.mu)} contacts in {problem.space} dimensions")
    if not (np.isfinite(problem.W).all() and np.isfinite(problem.q).all() and np.isfinite(problem.mu).all()):
        raise Unreadable("it has numbers that are not finite")
    gap = np.abs(problem.W - problem.W.T).max() / max(np.abs(problem.W).max(), 1e-300)
    if gap > ASYMMETRY:
        raise Unreadable(f"W is not symmetric: the asymmetry is {gap:.1e} of its largest entry")
    return Local(0.5 * (problem.W + problem.W.T), problem.q, problem.mu, problem.space)


def check_rows(n: int) -> None:
    """Raises an error for problems that are too large."""
    if n > MOST_ROWS:
        raise Unreadable(f"it has {n} rows; the limit is {MOST_ROWS}")


# ---- FCLib -----------------------------------------------------------------------------------------------------------
def read_hdf5(path: Path) -> Local:
    """Reads FCLib's local or global problem."""
    import h5py  # optional: only for these files

    try:
        with h5py.File(path, "r") as file:
            if "fclib_local" in file:
                return _local(file["fclib_local"])
            if "fclib_global" in file:
                return _global(file["fclib_global"])
            raise Unreadable(f"unsupported groups: {', '.join(file)} (supported: fclib_local, fclib_global)")
    except (OSError, KeyError, IndexError) as error:
        raise Unreadable(str(error).splitlines()[0]) from error


def _numbers(group, name: str) -> np.ndarray:
    return np.asarray(group[name]).ravel()


def _matrix(group) -> np.ndarray:
    """A dense matrix from triplets (nz >= 0), compressed columns (-1) or compressed rows (-2)."""
    m, n, nz = (int(_numbers(group, name)[0]) for name in ("m", "n", "nz"))
    check_rows(max(m, n))
    p, i, x = _numbers(group, "p").astype(int), _numbers(group, "i").astype(int), _numbers(group, "x")
    dense = np.zeros((m, n))
    if nz >= 0:  # fclib.h has rows in p; files that were written from CSparse's structure have them in i
        rows, columns = (p, i) if p.max(initial=0) < m and i.max(initial=0) < n else (i, p)
        np.add.at(dense, (rows[:nz], columns[:nz]), x[:nz])
    else:
        along = np.repeat(np.arange(len(p) - 1), np.diff(p))
        count = len(along)
        np.add.at(dense, (i[:count], along) if nz == -1 else (along, i[:count]), x[:count])
    return dense


def _local(group) -> Local:
    """W, q without the multipliers of equalities: V^T r + R l + s = 0, u = W r + V l + q."""
    W, q, mu = _matrix(group["W"]), _numbers(group["vectors"], "q"), _numbers(group["vectors"], "mu")
    if "V" in group:
        V, R, s = _matrix(group["V"]), _matrix(group["R"]), _numbers(group["vectors"], "s")
        W, q = W - V @ np.linalg.solve(R, V.T), q - V @ np.linalg.solve(R, s)
    return Local(W, q, mu, int(_numbers(group, "spacedim")[0]))


def _global(group) -> Local:
    """W = H^T M^-1 H and q = w + H^T M^-1 f, with equalities G^T v + b = 0 eliminated."""
    M, H = _matrix(group["M"]), _matrix(group["H"])
    vectors = group["vectors"]
    f, w, mu = (_numbers(vectors, name) for name in ("f", "w", "mu"))
    moved, free = np.linalg.solve(M, H), np.linalg.solve(M, f)
    if "G" in group:
        G, b = _matrix(group["G"]), _numbers(vectors, "b")
        held = np.linalg.solve(M, G)
        inverse = np.linalg.pinv(G.T @ held)
        moved, free = moved - held @ (inverse @ (G.T @ moved)), free - held @ (inverse @ (G.T @ free + b))
    return Local(H.T @ moved, w + H.T @ free, mu, int(_numbers(group, "spacedim")[0]))


# ---- Siconos' text ---------------------------------------------------------------------------------------------------
def read_text(path: Path) -> Local:
    """Reads a local problem: dimension, contacts, W (dense, or blocks), q, mu."""
    try:
        words = iter(path.read_text().split())
        space, contacts, storage, m, n = (int(next(words)) for _ in range(5))
    except (ValueError, StopIteration) as error:
        raise Unreadable("the file does not begin with the sizes of a problem") from error
    if path.name.startswith(("GFC", "gfc")):
        raise Unreadable("global problem in text format; only local problems are supported in this format")
    if storage not in (0, 1):
        raise Unreadable(f"unsupported storage {storage} of W (supported: 0 dense, 1 blocks)")
    check_rows(max(m, n))
    try:
        W = _dense(words) if storage == 0 else _blocks(words, m)
        q, mu = (np.array([float(next(words)) for _ in range(k)]) for k in (m, contacts))
    except (ValueError, StopIteration, IndexError) as error:
        raise Unreadable("it ends within its matrices") from error
    return Local(W, q, mu, space)


def _dense(words) -> np.ndarray:
    m, n = int(next(words)), int(next(words))
    return np.array([float(next(words)) for _ in range(m * n)]).reshape(n, m).T


def _blocks(words, size: int) -> np.ndarray:
    """Blocks in compressed rows, each stored by columns; the ends of the blocks are cumulative."""
    count, rows, columns = (int(next(words)) for _ in range(3))
    ends = [[0, *(int(next(words)) for _ in range(k))] for k in (rows, columns)]
    filled = int(next(words)), int(next(words))
    starts, place = ([int(next(words)) for _ in range(k)] for k in filled)
    dense = np.zeros((size, size))
    for row in range(rows):
        for k in range(starts[row], starts[row + 1]):
            if int(next(words)) != k or k >= count:
                raise ValueError
            (r0, r1), (c0, c1) = ends[0][row : row + 2], ends[1][place[k] : place[k] + 2]
            block = np.array([float(next(words)) for _ in range((r1 - r0) * (c1 - c0))])
            dense[r0:r1, c0:c1] = block.reshape(c1 - c0, r1 - r0).T
    return dense


# ---- solvers ---------------------------------------------------------------------------------------------------------
TOLERANCES = {"1e-4": 1e-4, "1e-8": 1e-8}
SWEEPS = 2000
SAMPLE, SEED = 200, 0
SOLVERS = {
    "solve_cone": lambda problem, tolerance: fl.lcp.solve_cone(problem, tolerance=tolerance),
    "pgs": lambda problem, tolerance: sweep(problem, tolerance, "pgs"),
    "apgd": lambda problem, tolerance: sweep(problem, tolerance, "apgd"),
}
FACTORS = (1, 2, 5, 10, 30, 100, 1000)


def sweep(problem: fl.lcp.Problem, tolerance: float, method: str) -> fl.lcp.Solution:
    """An iterative method of `fl.lcp` on cones."""
    return fl.lcp.solve(problem, method=method, friction="cone", tolerance=tolerance, iterations=SWEEPS)


def boxed(local: Local) -> fl.lcp.Problem:
    """The problem in the form of `fl.lcp`: A x = b + w with b = -q."""
    rows = np.arange(len(local.q))
    findex = np.where(rows % local.space == 0, -1, rows // local.space * local.space)
    mu = np.repeat(local.mu, local.space)
    hi = np.where(findex < 0, np.inf, mu)
    return fl.lcp.Problem(local.W, -local.q, lo=np.where(findex < 0, 0.0, -mu), hi=hi, findex=findex)


def attempt(local: Local) -> list[tuple[float, float]]:
    """Returns (residual, processor time) of each solver at each tolerance; an infinite residual for an error."""
    problem, found = boxed(local), []
    for solve in SOLVERS.values():
        for tolerance in TOLERANCES.values():
            start = time.process_time()
            try:
                residual = solve(problem, tolerance).residual
            except fl.lcp.ProblemError:
                residual = np.inf
            found.append((residual, time.process_time() - start))
    return found


def profile(times: np.ndarray) -> np.ndarray:
    """Returns the share of problems that each solver solves within each of FACTORS times the fastest time.

    Args:
        times: (problems, solvers), infinite where a solver failed.

    Source: Dolan and More, Mathematical Programming 91 (2002).
    """
    fastest = times.min(1, keepdims=True)
    ratios = np.where(np.isfinite(times), times / np.where(np.isfinite(fastest), fastest, 1.0), np.inf)
    return np.array([(ratios <= factor).mean(0) for factor in FACTORS])


def chosen(folder: Path) -> list[Path]:
    """Returns at most SAMPLE files of a folder and its subfolders, sampled with SEED."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".hdf5", ".dat"))
    order = np.random.default_rng(SEED).permutation(len(files))[:SAMPLE]
    return [files[k] for k in sorted(order)]


def text(folder: Path) -> str:
    """Returns the tables of all readable problems of a folder, and the list of all others.

    Raises:
        FileNotFoundError: the folder holds no readable problem.
    """
    files = chosen(folder)
    left, found, rows = [], [], []
    for path in files:
        try:
            local = read(path)
        except Unreadable as reason:
            left.append(f"{path.name}: {reason}")
            continue
        found.append(attempt(local))
        rows.append(len(local.q))
    if not found:
        raise FileNotFoundError(f"{folder}: no readable problem in {len(files)} files .hdf5 and .dat")
    return f"{tables(np.array(found), np.array(rows))}\n\n{listing(files, left)}"


def tables(found: np.ndarray, rows: np.ndarray) -> str:
    """Returns the summary and the profiles of (problems, solvers * tolerances, 2)."""
    summary, times = [], []
    for k, solver in enumerate(SOLVERS):
        part = found[:, k * len(TOLERANCES) : (k + 1) * len(TOLERANCES)]
        solved = [part[:, i, 0] <= tolerance for i, tolerance in enumerate(TOLERANCES.values())]
        times += [np.where(ok, part[:, i, 1], np.inf) for i, ok in enumerate(solved)]
        shares = [f"{100 * ok.mean():.1f}" for ok in solved]
        worst, middle = part[:, -1, 0].max(), 1e3 * np.median(part[:, -1, 1])
        summary.append([solver, *shares, f"{worst:.1e}", f"{middle:.3g}", f"{1e3 * part[:, -1, 1].max():.3g}"])
    columns = (
        *("solver", *(f"solved to {tolerance} [%]" for tolerance in TOLERANCES)),
        *("largest residual", "median time [ms]", "largest time [ms]"),
    )
    curves = []
    for i in range(len(TOLERANCES)):
        curves.append(profile(np.stack(times[i :: len(TOLERANCES)], 1)))
    lines = [
        [str(factor), *(f"{100 * curve[j, k]:.0f}" for curve in curves for k in range(len(SOLVERS)))]
        for j, factor in enumerate(FACTORS)
    ]
    heads = [f"{solver}, {tolerance} [%]" for tolerance in TOLERANCES for solver in SOLVERS]
    size = f"{len(rows)} problems with {rows.min()} to {rows.max()} rows."
    return f"{size}\n\n{markdown(columns, summary)}\n\n{markdown(('time / fastest', *heads), lines)}"


def listing(files: list[Path], left: list[str]) -> str:
    """Returns the sentence about files that were not read."""
    said = f"{len(left)} of {len(files)} files were not read"
    return f"{said}:\n\n" + "\n".join(f"- {line}" for line in left) if left else f"{said}."
