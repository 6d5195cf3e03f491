"""Every solver of the LCP contact model on the same states of robots and piles: time, residual, convergence.

    python benchmarks/lcp_solvers.py --write

Each world starts with a random velocity and takes 100 steps with Dantzig's method.  From there every solver takes the
same number of steps with the model's options, on one thread, in turns.  `pgs` and `apgd` solve the
problem with consistent friction limits, `dantzig` the one with frozen limits.
"""

from __future__ import annotations

import time

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl

WORLDS, SETTLE, STEPS = 8, 100, 20
MODELS = ("humanoid", "hand", "box_stack", "pile")
SOLVERS = ("dantzig", "pgs", "apgd")
COLUMNS = ("model", "solver", "step of a world [us]", "pivots, iterations", "residual, median", "largest",
           "unconverged steps")  # fmt: skip


def model_under(name: str, solver: str) -> fl.Model:
    """Returns a bundled model under the LCP contact model with one solver."""
    model = fl.bundled(name)
    model.opt.integrator, model.opt.noslip_iterations = "euler", 0
    model.opt.contact_model, model.opt.lcp_solver = "lcp", solver
    return model


def common_state(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions and velocities of all worlds after some steps with Dantzig's method."""
    batch = fl.Batch(model_under(name, "dantzig"), WORLDS, nthread=1)
    batch.qvel += 0.1 * np.random.default_rng(0).standard_normal(batch.qvel.shape)
    batch.step(SETTLE)
    return batch.qpos.copy(), batch.qvel.copy()


def run(batch: fl.Batch, state) -> tuple[float, np.ndarray, float, float]:
    """Returns (seconds of a world-step, residuals, mean number of iterations, share of unconverged steps)."""
    batch.reset()
    batch.qpos[:], batch.qvel[:] = state
    residuals, counts, seconds = [], [], 0.0
    before = int(np.sum(batch.status["not_converged"]))
    for _ in range(STEPS):
        start = time.process_time()
        batch.step()
        seconds += time.process_time() - start
        residuals.append(batch.solver_residual.copy())
        counts.append(batch.solver_niter.mean())
    failed = int(np.sum(batch.status["not_converged"])) - before
    total = STEPS * WORLDS
    return seconds / total, np.ravel(residuals), float(np.mean(counts)), failed / total


def main() -> None:
    """Prints the table, and writes it to its page if requested."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    rows = []
    for name in MODELS:
        state = common_state(name)
        batches = {solver: fl.Batch(model_under(name, solver), WORLDS, nthread=1) for solver in SOLVERS}
        found = {solver: [] for solver in SOLVERS}
        for k in range(asked.rounds + 1):
            for solver, batch in batches.items():
                result = run(batch, state)
                if k:
                    found[solver].append(result)
        for solver, results in found.items():
            _, residuals, count, failed = results[-1]
            micro = f"{1e6 * np.median([r[0] for r in results]):.3g}"
            middle, most = np.median(residuals), residuals.max()
            rows.append([name, solver, micro, f"{count:.0f}", f"{middle:.0e}", f"{most:.0e}", f"{failed:.0%}"])
    publish("lcp-solvers", f"{markdown(COLUMNS, rows)}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
