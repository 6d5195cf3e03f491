"""Time and residual of a step of a pile, for each contact model and solver; a minute.

    python benchmarks/pile_solvers.py --write

The bundled `pyramid` of 55 boxes is one island.  Each variant takes steps from the same state at rest; the variants
take turns, step by step, and the processor time of each step is measured.
"""

from __future__ import annotations

import statistics
import time
import warnings

from report import arguments, markdown, origin, publish

import featherlane as fl

SETTLING, WARM = 1000, 2  # steps until the pile is at rest; steps of each variant before the measurement
COLUMNS = ("contact model, solver", "iterations", "time of a step [ms]", "residual, median", "not converged")
VARIANTS = [
    ("convex", "newton", 100),
    ("lcp", "dantzig", 100),
    *(("lcp", solver, iterations) for iterations in (100, 1000) for solver in ("pgs", "apgd")),
]
NAMES = {"newton": "Newton", "dantzig": "Dantzig", "pgs": "PGS", "apgd": "APGD"}


def made(settled: fl.Data, contact_model: str, solver: str, iterations: int) -> fl.Data:
    """Returns the pile at rest with a solver."""
    model = fl.bundled("pyramid")
    model.opt.contact_model = contact_model
    if contact_model == "lcp":
        model.opt.lcp_solver, model.opt.lcp_iterations = solver, iterations
    else:
        model.opt.solver, model.opt.iterations = solver, iterations
    data = fl.Data(model)
    data.qpos, data.qvel = settled.qpos, settled.qvel
    return data


def measured(steps: int) -> list[tuple[str, ...]]:
    """Returns the row of each variant."""
    settled = fl.Data(fl.bundled("pyramid"))
    settled.step(SETTLING)
    piles = {variant: made(settled, *variant) for variant in VARIANTS}
    times: dict[tuple, list[float]] = {variant: [] for variant in VARIANTS}
    residuals: dict[tuple, list[float]] = {variant: [] for variant in VARIANTS}
    for k in range(-WARM, steps):
        for variant, data in piles.items():
            if k == 0:
                data.reset()
                data.qpos, data.qvel = settled.qpos, settled.qvel
            start = time.process_time()
            data.step()
            spent = time.process_time() - start
            if k >= 0:
                times[variant].append(spent)
                residuals[variant].append(float(data.solver_residual))
    rows = []
    for (contact_model, solver, iterations), data in piles.items():
        variant = contact_model, solver, iterations
        iterative = contact_model == "lcp" and solver in ("pgs", "apgd")
        rows.append(
            (
                f"`{contact_model}`, {NAMES[solver]}",
                str(iterations) if iterative else "",
                f"{1000 * statistics.median(times[variant]):.3g}",
                f"{statistics.median(residuals[variant]):.0e}",
                f"{data.status['not_converged']} of {steps}",
            )
        )
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int, default=40, help="steps of each variant")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = measured(options.steps)
    publish("pile-solvers", f"{markdown(COLUMNS, rows)}\n\n{origin()}", options.write)


if __name__ == "__main__":
    main()
