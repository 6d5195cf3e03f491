"""The ways to solve with the Hessian: each against the way it replaces, and what a second vector costs; a minute.

    python benchmarks/hessian.py --write

One tile after a while of motion; assembly and solution in a loop inside one call, the two ways in turns, the least time
of the rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl
from featherlane.engine.lanes import stage
from featherlane.engine.model.enums import CRB
from featherlane.engine.simulation.step.forward import forward
from featherlane.engine.simulation.tile.workspace import Workspace
from featherlane.engine.solver.hessian import capacity
from featherlane.engine.solver.hessian.entries.pattern import APART, BLOCKS, ORDERED, PATHS, TREE
from featherlane.engine.solver.hessian.equation import (
    assemble_hessian,
    factor_hessian,
    keep_factor,
    solve_first,
    substitute,
)

REPEATS = 20
WIDTHS = (1, 8)
NAMES = {TREE: "tree", APART: "apart", PATHS: "paths", BLOCKS: "blocks", ORDERED: "ordered"}
NEVER = 10**9

# model, steps before, its name in the table, what makes it go another way: (a limit of room, its value) or an option
CASES = (
    ("chain", 100, "chain of 100 ball joints", ("forward_dynamics", "crb")),
    ("quadruped", 100, "quadruped", None),
    ("humanoid", 400, "humanoid in self-contact", ("PATH_DOFS", 0)),
    ("box_stack", 200, "stack of ten boxes", None),
    ("stacks", 100, "64 boxes in stacks", None),
    ("pile", 400, "pile of 64 balls", ("MANY_TREES", NEVER)),
)
COLUMNS = (
    "model",
    "worlds",
    "DoFs",
    "method",
    "alternative",
    "alternative / method",
    "assembly",
    "factorization",
    "further solve",
)


@stage
def assemblies(m, d):
    """H, again and again."""
    for _ in range(REPEATS):
        assemble_hessian(m, d)


@stage
def solutions(m, d):
    """Computes H, its factor and one solution, as in a step."""
    for _ in range(REPEATS):
        assemble_hessian(m, d)
        solve_first(m, d)


@stage
def factors(m, d):
    """H and its factor, kept."""
    for _ in range(REPEATS):
        assemble_hessian(m, d)
        keep_factor(m, d)


@stage
def substitutions(m, d):
    """Another vector."""
    for _ in range(REPEATS):
        substitute(m, d, d.qvec)


def settled(source: str, width: int, nstep: int, other: tuple[str, object] | None) -> Workspace:
    """A tile after nstep steps, its rows where the solver ended; on the other way where that is given."""
    model, room = fl.bundled(source), {}
    if other and other[0] == "forward_dynamics":
        model.opt.forward_dynamics = other[1]
    elif other:
        room = {other[0]: getattr(capacity, other[0])}
        setattr(capacity, *other)
    batch = fl.Batch(fl.bundled(source), width, nthread=1)
    batch.qvel[:] = 0.1 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
    batch.step(nstep)
    tile = Workspace(model, width)
    for name, value in room.items():
        setattr(capacity, name, value)
    for name in ("qpos", "qvel", "qacc_warmstart"):
        value = getattr(batch, name)
        tile.arrays[name][: value.shape[1]] = value.T
    tile.run(forward)
    tile.arrays["primal.live"][...] = 1.0
    tile.run(factor_hessian)
    if tile.arrays["con_overflow"][0]:
        raise ValueError(f"{source}: worlds of this tile need different ways")
    return tile


def way(tile: Workspace) -> str:
    """The way that most of the tile's worlds go."""
    recursion = tile.model.opt_forward_dynamics != CRB and tile.model.articulated_pays
    alone = tile.arrays["hessian.coupled"][0, : tile.width] == 0
    return "recursion" if recursion and alone.mean() > 0.5 else NAMES[int(tile.arrays["hessian.pattern"][0])]


def timed(run: Callable[[], None]) -> float:
    """Seconds of one call, this process's own."""
    start = time.process_time()
    run()
    return time.process_time() - start


def measure(tiles: list[Workspace], rounds: int) -> list[dict[str, float]]:
    """The least time [s] of assembly, first solution, factor and further vector on each tile."""
    best: list[dict[str, float]] = [{} for _ in tiles]
    for _ in range(rounds):
        for tile, found in zip(tiles, best, strict=True):
            for work in (assemblies, solutions, factors, substitutions):
                found[work.name] = min(found.get(work.name, np.inf), timed(tile.bound(work)))
    return best


def row(source: str, nstep: int, label: str, other: tuple[str, object] | None, width: int, rounds: int) -> list[str]:
    """One line: the way against the other one, its parts against its first solution."""
    tiles = [settled(source, width, nstep, given) for given in ((None, other) if other else (None,))]
    first, *rest = measure(tiles, rounds)
    whole, assembly = first["solutions"], first["assemblies"]
    solution = whole - assembly
    return [
        label,
        str(width),
        str(tiles[0].model.nv),
        way(tiles[0]),
        way(tiles[1]) if rest else "",
        f"{rest[0]['solutions'] / whole:.2f}" if rest else "",
        f"{assembly / solution:.2f}",
        f"{(first['factors'] - assembly) / solution:.2f}",
        f"{first['substitutions'] / solution:.2f}",
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="measured rounds")
    asked = parser.parse_args()
    rows = [row(*case, width, asked.rounds) for case in CASES for width in WIDTHS]
    note = (
        "The *first solve* factors H and solves for one right-hand side. `alternative / method` compares the time of "
        "the assembly and the first solve: the time of the alternative method is divided by that of the chosen "
        "method. The last three columns are times of the chosen method, divided by the time of its first solve. "
        "`factorization` factors H without a right-hand side. `further solve` uses the stored factor for one "
        "right-hand side."
    )
    publish("hessian", f"{markdown(COLUMNS, rows)}\n\n{note}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
