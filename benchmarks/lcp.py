"""One boxed LCP after another against ODE: `dantzig` and ODE's dxSolveLCP on contact problems; half a minute.

    python benchmarks/lcp.py --write

Towers of unit cubes with 4 contacts each, pushed at random, friction in pyramids, limits frozen on both sides.  Both
sides are called through ctypes on memory of one problem, into which the next is copied before each call; the copies are
timed apart and taken off.  ODE is the shared object in the wheel of dartpy.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np
from dart import folder
from report import arguments, markdown, origin, publish

import featherlane as fl

# `dart` put the tests on the path
from scenes.lcp_problems import stack_problem

BOXES = (1, 2, 4, 8, 16)  # 12 rows each
SOFTNESS = {"1e-5": 1e-5, "1e-10": 1e-10}
PROBLEMS = 20
COLUMNS = ("rows", "CFM", "pivots", "ODE [us]", "ours [us]", "speed-up", "our residual", "ODE's residual")
SYMBOL = "_Z10dxSolveLCPP22dxWorldProcessMemArenajPdS1_S1_jS1_Pi"


class Ode:
    """dxSolveLCP with its memory."""

    def __init__(self, n: int):
        (file,) = (folder() / "dartpy.libs").glob("libode*")
        self.solve = getattr(ctypes.CDLL(str(file)), SYMBOL)
        pointer = ctypes.c_void_p
        kinds = [pointer, ctypes.c_uint, pointer, pointer, pointer, ctypes.c_uint, pointer, pointer]
        self.solve.argtypes, self.solve.restype = kinds, None
        self.room = np.zeros(64 * n * n + 100_000)
        start, end = self.room.ctypes.data, self.room.ctypes.data + self.room.nbytes
        self.fresh = np.array([start, start, end, start, 0], np.uint64)
        self.arena, self.n, self.skip = self.fresh.copy(), n, -(-n // 4) * 4
        self.A, self.bx, self.w = np.zeros((n, self.skip)), np.zeros((n, 2)), np.zeros(n)
        self.limits, self.findex = np.zeros((n, 2)), np.zeros(n, np.int32)
        self.mine = self.A, self.bx, self.limits, self.findex, self.arena
        arrays = self.A, self.bx, self.w, self.limits, self.findex
        A, bx, w, limits, findex = (array.ctypes.data for array in arrays)
        self.arguments = self.arena.ctypes.data, n, A, bx, w, 0, limits, findex

    def form(self, problem):
        """The problem as ODE wants it."""
        A = np.zeros((self.n, self.skip))
        A[:, : self.n] = problem.matrix
        bx = np.stack([problem.b, np.zeros(self.n)], 1)
        return A, bx, np.stack([problem.lo, problem.hi], 1), problem.findex.astype(np.int32), self.fresh

    def load(self, form) -> None:
        """Copy it to where ODE works."""
        for target, source in zip(self.mine, form, strict=True):
            np.copyto(target, source)

    def run(self) -> None:
        """Solve what was loaded."""
        self.solve(*self.arguments)


class Ours:
    """`dantzig` with its memory."""

    def __init__(self, n: int):
        self.solver = fl.lcp.Solver(n)
        arrays = self.solver.arrays
        self.mine = [arrays[f"one.{name}"] for name in ("A", "b", "lo", "hi", "findex")]

    def form(self, problem):
        """(solution, the problem as the kernel wants it)."""
        return self.solver.solve(problem), [array.copy() for array in self.mine]

    def load(self, form) -> None:
        """Copy it to where the kernel works."""
        for target, source in zip(self.mine, form, strict=True):
            np.copyto(target, source)

    def run(self) -> None:
        """Solve what was loaded."""
        self.solver.run(*self.solver.numbers)


def seconds(side, forms, inner: int) -> float:
    """Mean processor time of a solution, the copies taken off: others on the machine do not count."""
    clock = time.process_time
    start = clock()
    for _ in range(inner):
        for form in forms:
            side.load(form)
    middle = clock()
    for _ in range(inner):
        for form in forms:
            side.load(form)
            side.run()
    return (clock() - middle - (middle - start)) / (inner * len(forms))


def race(boxes: int, cfm: float, rounds: int) -> list:
    """(pivots, ODE's times, our times, our worst residual, theirs), times in seconds."""
    rng = np.random.default_rng(boxes)
    problems = [stack_problem(boxes, cfm, push=2.0 * rng.standard_normal(6 * boxes)) for _ in range(PROBLEMS)]
    theirs, ours = Ode(12 * boxes), Ours(12 * boxes)
    solutions, mine = zip(*[ours.form(problem) for problem in problems], strict=True)
    forms = [theirs.form(problem) for problem in problems]
    residuals = []
    for problem, form, solution in zip(problems, forms, solutions, strict=True):
        theirs.load(form)
        theirs.run()
        bounds = solution.lower, solution.upper
        residuals.append((problem.residual(solution.x, bounds), problem.residual(theirs.bx[:, 1].copy(), bounds)))
    inner = max(1, 40_000 // (12 * boxes) ** 2)
    times = [(seconds(theirs, forms, inner), seconds(ours, mine, inner)) for _ in range(rounds)]
    return [np.mean([s.iterations for s in solutions]), *np.array(times).T, *np.max(residuals, 0)]


def main() -> None:
    """Prints the table; `--write` also writes it into its page."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="measured rounds of each race")
    asked = parser.parse_args()
    rows = []
    for boxes in BOXES:
        for name, cfm in SOFTNESS.items():
            pivots, theirs, ours, mine, other = race(boxes, cfm, asked.rounds)
            micro = (f"{1e6 * np.median(side):.3g}" for side in (theirs, ours))
            factor = f"{np.median(theirs / ours):.2f}"
            rows.append([str(12 * boxes), name, f"{pivots:.0f}", *micro, factor, f"{mine:.0e}", f"{other:.0e}"])
    publish("lcp", f"{markdown(COLUMNS, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
