"""Random LCPs of every kind against every method: no crash, no hang, no NaN, and no false `SOLVED`.

    python tests/fuzz lcp 1_000_000 [seed [processes]]

prints a table; each line below it names a problem by its seed, and `problem(seed)` recreates it.  A few lines of NumPy,
`far_from_a_solution`, check each solution that a method reports as solved.
"""

from __future__ import annotations

import faulthandler
import itertools
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from featherlane import lcp
from scenes.lcp_problems import degenerate_problem, known_problem, stack_problem

EPS = np.finfo(float).eps
SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 9, 12, 13, 16, 17, 24, 33, 61)
LARGE = (96, 150, 240)  # one in RARE problems
RARE = 200
TOLERANCE = {"dantzig": 1e-10, "lemke": 1e-10, "pgs": 1e-8, "apgd": 1e-8}  # times their residual
WAYS = (
    ("dantzig", {"start": "block"}),
    ("dantzig", {"start": "rows"}),
    ("dantzig", {"friction": "consistent", "start": "block"}),
    ("dantzig", {"friction": "consistent", "start": "rows"}),
    ("lemke", {"iterations": 2000}),
    ("pgs", {"iterations": 200}),
    ("pgs", {"iterations": 200, "order": "quickstep", "relaxation": 1.3}),
    ("pgs", {"iterations": 200, "friction": "cone"}),
    ("apgd", {"iterations": 200}),
    ("apgd", {"iterations": 200, "friction": "cone"}),
)
BATCH = 11  # problems of one: a tile and a part
HANG = 60  # seconds of one chunk
NO_LENGTH = 1e-140  # across a cone: squares of smaller values underflow


# ---- problems --------------------------------------------------------------------------------------------------------
def gram(rng, n, rank):
    """Returns A = J J^T of that rank."""
    J = rng.standard_normal((n, rank))
    return J @ J.T


def matrix(rng, n):
    """Returns (kind, A): definite, of low rank, with doubled and zero rows, zero, badly scaled, hardly or very soft."""
    kind = rng.choice("definite low doubled zero none scaled stiff soft whole indefinite huge".split())
    A = gram(rng, n, n + 2)
    if kind == "low":
        A = gram(rng, n, max(n // 3, 1))
    elif kind == "doubled":
        same = rng.integers(0, max(n, 1), n)
        A = A[np.ix_(same, same)]
    elif kind == "zero":
        keep = rng.random(n) < 0.6
        A = A * keep * keep[:, None]
    elif kind == "none":
        A = np.zeros((n, n))
    elif kind == "scaled":
        scale = 10.0 ** rng.uniform(-12, 12, n)
        A = A * scale * scale[:, None]
    elif kind == "stiff":
        A = gram(rng, n, max(n // 2, 1)) + 10.0 ** rng.uniform(-18, -6) * np.eye(n)
    elif kind == "soft":
        A = gram(rng, n, max(n // 2, 1)) + 10.0 ** rng.uniform(6, 18) * np.eye(n)
    elif kind == "whole":
        J = rng.integers(-1, 2, (n, max(n // 2, 1))).astype(float)
        A = J @ J.T
    elif kind == "indefinite":
        A = rng.standard_normal((n, n))
    elif kind == "huge":
        A = A * 10.0 ** rng.choice([-300, -150, 100, 150, 300])
    return str(kind), 0.5 * (A + A.T)


def right_side(rng, A):
    """Returns b: random, in the range of A, zero, integers, tiny or huge."""
    n, kind = len(A), rng.integers(6)
    b = rng.standard_normal(n)
    if kind == 1:
        b = A @ b
    elif kind == 2:
        b = np.zeros(n)
    elif kind == 3:
        b = rng.integers(-2, 3, n).astype(float)
    elif kind == 4:
        b = b * 10.0 ** rng.uniform(-60, 150)
    elif kind == 5:
        b = b * np.sqrt(np.abs(np.diagonal(A)))
    return np.where(np.isfinite(b), b, 0.0)


def box(rng, n):
    """Returns (lo, hi): none, one-sided, tiny, huge, both zero."""
    size = 10.0 ** rng.choice([0.0, 0.0, -12.0, 12.0, 300.0], n)
    lo, hi = -rng.random(n) * size, rng.random(n) * size
    lo[rng.random(n) < 0.4], hi[rng.random(n) < 0.2] = 0.0, 0.0
    lo[rng.random(n) < 0.2], hi[rng.random(n) < 0.4] = -np.inf, np.inf
    return lo, hi


def frictions(rng, lo, hi):
    """Returns (lo, hi, findex, add): some rows depend on others, with mu 0, 1, 1e12 or infinite, and other bounds."""
    n = len(lo)
    findex, add = np.full(n, -1), np.zeros(n)
    for i in range(1, n):
        if findex[i - 1] < 0 or rng.random() < 0.6:
            normal = i - 1 if findex[i - 1] < 0 else findex[i - 1]
            if rng.random() < 0.6:
                findex[i], hi[i] = normal, rng.choice([0.0, 0.5, 1.0, 1e12, np.inf], p=[0.1, 0.5, 0.2, 0.1, 0.1])
                add[i] = rng.choice([0.0, 1e-3, 1.0, 1e12], p=[0.7, 0.1, 0.1, 0.1])
    for i in np.unique(findex[findex >= 0]):
        if rng.random() < 0.9:
            lo[i], hi[i] = 0.0, np.inf
    return lo, hi, findex, add


def problem(seed):
    """Returns (kind, the problem) of that seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice(LARGE if rng.random() < 1 / RARE else SIZES))
    special = rng.random()
    if special < 0.05 and n:
        return "known", known_problem(rng, n)[0]
    if special < 0.1 and n:
        return "degenerate", degenerate_problem(rng, n)
    if special < 0.15:
        push = rng.standard_normal(6 * (1 + n // 20)) * 10.0 ** rng.uniform(-3, 3)
        cfm, mu = 10.0 ** rng.uniform(-20, 3) * rng.integers(0, 2), rng.choice([0.0, 0.5, 10.0, np.inf])
        return "tower", stack_problem(1 + n // 20, cfm, mu, push)
    kind, A = matrix(rng, n)
    b, (lo, hi), findex, add = right_side(rng, A), box(rng, n), None, None
    if rng.random() < 0.5:
        lo, hi, findex, add = frictions(rng, lo, hi)
        kind += ", friction"
    return kind, lcp.Problem(A, b, lo=lo, hi=hi, findex=findex, add=add)


# ---- independent checks ----------------------------------------------------------------------------------------------
def far_from_a_solution(problem, x, lower, upper, tolerance):
    """Returns the violation of lower <= x <= upper and complementarity, over the tolerance, in its worst row.

    The tolerance is the one that the method documents, in the units of x relative to the largest of |x| and |b| / a,
    a = max A_ii, plus the rounding error of a sum of n products.
    """
    A, b, n = problem.matrix, problem.b, problem.n
    if not n:
        return 0.0
    with np.errstate(all="ignore"):
        w, a = A @ x - b, np.diagonal(A).max()
        a = a if a > 0.0 else 1.0
        rounding = 4.0 * (n + 2) * EPS * (np.abs(A) @ np.abs(x) + np.abs(b))
        slack = 2.0 * tolerance * max(np.abs(x).max(), np.abs(b).max() / a)
        room = slack + 4.0 * EPS * np.abs(x)
        outside = np.maximum(lower - x, x - upper) / np.maximum(room, 1e-300)
        # w >= 0 if x could only increase, <= 0 if it could only decrease, 0 if both
        force = np.maximum(a * max(slack, 1e-300) + rounding, 1e-300)
        pushed = np.where(x > lower + room, w, 0.0) / force
        pulled = np.where(x < upper - room, -w, 0.0) / force
        worst = np.max([outside, pushed, pulled])
    return float(np.inf if np.isnan(worst) else worst)


def out_of_disc(problem, x, tolerance):
    """Returns the excess of a friction row over its limit, over the tolerance: a disc lies in a pyramid's box."""
    if not problem.n:
        return 0.0
    with np.errstate(all="ignore"):
        a = np.diagonal(problem.matrix).max()
        slack = 2.0 * tolerance * max(np.abs(x).max(), np.abs(problem.b).max() / (a if a > 0.0 else 1.0))
        rows = problem.findex >= 0
        outside = (np.abs(x) - problem.bounds(x)[1])[rows] / (slack + NO_LENGTH)
    return float(outside.max(initial=0.0))


@dataclass
class Report:
    """Collects the results: statuses by method, the slowest problems, and all violations."""

    problems: int = 0
    statuses: Counter = field(default_factory=Counter)
    kinds: Counter = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other):
        self.problems += other.problems
        self.seconds += other.seconds
        self.statuses.update(other.statuses)
        self.kinds.update(other.kinds)
        self.faults += other.faults

    def __str__(self):
        lines = [f"{self.problems:,} problems, {self.seconds:.0f} s, {len(self.faults)} faults"]
        names = sorted({name for name, _ in self.statuses})
        lines.append(f"{'':44}" + "".join(f"{status.name:>12}" for status in lcp.Status))
        lines += [f"{n:44}" + "".join(f"{self.statuses[n, s]:12,}" for s in lcp.Status) for n in names]
        return "\n".join([*lines, *self.faults[:50]])


def label(method, options):
    return " ".join([method, *(str(value) for value in options.values())])


def judge(report, name, seed, kind, given, found):
    """Checks a solution of its problem."""
    method = name.split()[0]
    report.statuses[name, found.status] += 1
    where = f"{name}, seed {seed} ({kind}, n = {given.n})"
    if not (np.isfinite(found.x).all() and found.x.shape == (given.n,)):
        report.faults.append(f"{where}: x is not finite")
        return
    if found.status == lcp.Status.SOLVED:
        if np.isnan(found.residual) or not np.isfinite(found.w).all():
            report.faults.append(f"{where}: SOLVED with residual {found.residual}, w {np.abs(found.w).max()}")
        if "cone" in name:
            far = out_of_disc(given, found.x, TOLERANCE[method])
        else:
            far = far_from_a_solution(given, found.x, found.lower, found.upper, TOLERANCE[method])
        if far > 1.0:
            report.faults.append(f"{where}: SOLVED, but {far:.1e} times as far as allowed, residual {found.residual}")
    elif not found.residual >= 0.0:
        report.faults.append(f"{where}: {found.status.name} with residual {found.residual}")


def try_problem(report, seed, ways=WAYS):
    """Solves one problem by every method."""
    kind, given = problem(seed)
    report.problems += 1
    report.kinds[kind] += 1
    start = None
    rng = np.random.default_rng([seed, 1])
    if rng.random() < 0.3:
        start = rng.standard_normal(given.n) * 10.0 ** rng.uniform(-12, 12)
    for method, options in ways:
        name = label(method, options)
        try:
            solver = lcp.Solver(given.n, method, **options) if method in ("pgs", "apgd") and start is not None else None
            found = solver.solve(given, start) if solver else lcp.solve(given, method=method, **options)
        except lcp.ProblemError as error:
            # bounds and friction, which a standard LCP does not have
            if "standard LCP" not in str(error):
                report.faults.append(f"{name}, seed {seed} ({kind}): {error}")
            continue
        except Exception:
            report.faults.append(f"{name}, seed {seed} ({kind}): {traceback.format_exc().splitlines()[-1]}")
            continue
        judge(report, name, seed, kind, given, found)


def try_batch(report, seed, count=BATCH):
    """Solves many problems of one structure: each is bitwise identical to it alone, and is checked."""
    rng = np.random.default_rng([seed, 2])
    n = int(rng.choice(SIZES[1:]))
    made = [matrix(rng, n) for _ in range(count)]
    A = np.array([a for _, a in made])
    b = np.array([right_side(rng, a) for a in A])
    lo, hi, findex, add = frictions(rng, *box(rng, n))
    report.problems += count
    for method, options in WAYS:
        if method == "lemke" or options.get("start") == "rows":
            continue
        name = "batch " + label(method, options)
        every = lcp.solve_batch(A, b, lo=lo, hi=hi, findex=findex, add=add, method=method, threads=1, **options)
        few = lcp.solve_batch(A[3:5], b[3:5], lo=lo, hi=hi, findex=findex, add=add, method=method, **options)
        if not np.array_equal(every.x[3:5], few.x, equal_nan=True) or (every.status[3:5] != few.status).any():
            report.faults.append(f"{name}, seed {seed}: depends on the other worlds")
        for k in range(count):
            status = lcp.Status(int(every.status[k]))
            numbers = (getattr(every, what)[k] for what in ("x", "w", "iterations", "residual", "lower", "upper"))
            x, w, iterations, residual, lower, upper = numbers
            found = lcp.Solution(x, w, status, iterations, residual, lower, upper)
            judge(
                report,
                name.removeprefix("batch "),
                f"{seed}, batch {k}",
                made[k][0],
                problem_of(A, b, lo, hi, findex, add, k),
                found,
            )


def problem_of(A, b, lo, hi, findex, add, k):
    """Returns problem k of a batch."""
    return lcp.Problem(A[k], b[k], lo=lo, hi=hi, findex=findex, add=add)


def try_many(seeds) -> Report:
    """Runs a chunk of seeds; if it hangs, the process prints the place, and ends."""
    report, start = Report(), time.perf_counter()
    faulthandler.dump_traceback_later(HANG + len(seeds), exit=True)
    for seed in seeds:
        try_problem(report, seed)
        if seed % 10 == 0:
            try_batch(report, seed)
    faulthandler.cancel_dump_traceback_later()
    report.seconds = time.perf_counter() - start
    return report


def fuzz(count, seed=0, processes=1, say=lambda line: None) -> Report:
    """Runs about that many problems: a tenth of the seeds adds a batch of eleven."""
    total, chunk = Report(), 100
    seeds = range(seed, seed + count * 10 // 21)
    chunks = [seeds[k : k + chunk] for k in range(0, len(seeds), chunk)]
    if processes == 1:
        results = map(try_many, chunks)
        for k, report in enumerate(results):
            total.add(report)
            if k % 20 == 0:
                say(f"{total.problems:,} problems, {len(total.faults)} faults")
        return total
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for k, report in enumerate(pool.imap_unordered(try_many, chunks)):
            total.add(report)
            if k % 20 == 0:
                say(f"{total.problems:,} problems, {len(total.faults)} faults")
    return total


def main(arguments: list[str]) -> int:
    given = [int(word.replace("_", "")) for word in arguments]
    report = fuzz(*itertools.chain(given[:1] or [10_000], given[1:]), say=lambda line: print(line, file=sys.stderr))
    print(report)
    return len(report.faults) > 0
