"""Inverse kinematics of 4096 targets, next to loops in Python over MuJoCo, one thread; three minutes.

    python benchmarks/ik.py --write

The loop has the same method, in NumPy over MuJoCo (tests/oracles/ik.py).  mink (`pip install mink daqp`) is measured if
it is installed: quadratic programs with the limits of joints, full steps, until the errors are below the tolerance.
Targets are poses in random positions within the limits; all solvers start in the middle of the limits and stop after
100 iterations.  The rounds of all sides alternate; times are medians of processor time.
"""

from __future__ import annotations

import importlib.util
import time

from report import arguments, markdown, origin, publish, source_of

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl
from featherlane.results import IkStatus
from oracles.ik import SiteIk

TARGETS, LOOP, ROUNDS, MOST = 4096, 64, 5, 100
TOLERANCE = 1e-4  # of success, for all [m, rad]
MODELS = {
    "bundled/arm": "hand",
    "robosuite/robots/panda/robot": "right_hand",
}  # model: body that the site `tool` is on
RESTARTS = 10


def scene(name: str) -> fl.Model:
    """Returns the model with a site `tool`."""
    spec = mujoco.MjSpec.from_file(source_of(name))
    spec.body(MODELS[name]).add_site(name="tool", pos=[0, 0, 0.1])
    return fl.load(spec)


class Comparison:
    """Holds a model, its targets and the solvers.

    Args:
        name: of the model.
    """

    def __init__(self, name: str):
        self.model = scene(name)
        self.mj, rng = self.model.mj_model, np.random.default_rng(0)
        self.site, data = self.mj.site("tool").id, mujoco.MjData(self.mj)
        low, high = self.mj.jnt_range.T
        self.start = 0.5 * (low + high)
        self.position, self.quat = np.zeros((TARGETS, 3)), np.zeros((TARGETS, 4))
        for k in range(TARGETS):
            data.qpos[:] = rng.uniform(low, high)
            mujoco.mj_kinematics(self.mj, data)
            self.position[k] = data.site_xpos[self.site]
            mujoco.mju_mat2Quat(self.quat[k], data.site_xmat[self.site])
        self.loop = SiteIk(self.mj, self.site)
        self.batches = {
            dtype: fl.Batch(self.model, TARGETS, nthread=1, dtype=dtype) for dtype in ("float64", "float32")
        }
        for batch in self.batches.values():
            batch.qpos = self.start

    def ours(self, dtype: str, restarts: int = 0) -> tuple[float, np.ndarray]:
        """Returns the share of targets reached, and the errors (n, 2)."""
        target = fl.IkTarget(("site", "tool"), position=self.position, orientation=self.quat)
        found = fl.ik(self.batches[dtype], target, restarts=restarts, max_iterations=MOST, tolerance=TOLERANCE)
        return float(np.mean(found.status == IkStatus.REACHED)), np.c_[found.position_error, found.orientation_error]

    def in_numpy(self) -> tuple[float, np.ndarray]:
        """As `ours`, for the first targets, in a loop."""
        solve = (self.loop.solve(self.start, self.position[k], self.quat[k], TOLERANCE, MOST) for k in range(LOOP))
        errors = np.array([(np.linalg.norm(e[:3]), np.linalg.norm(e[3:])) for _, e, _, _ in solve])
        return float(np.mean((errors <= TOLERANCE).all(axis=1))), errors

    def with_mink(self) -> tuple[float, np.ndarray]:
        """As `in_numpy`, with mink."""
        import mink

        state, errors = mink.Configuration(self.mj), np.zeros((LOOP, 2))
        task, limits = mink.FrameTask("tool", "site", 1.0, 1.0, lm_damping=1e-3), [mink.ConfigurationLimit(self.mj)]
        for k in range(LOOP):
            state.update(self.start)
            task.set_target(mink.SE3(np.r_[self.quat[k], self.position[k]]))
            for _ in range(MOST):
                velocity = mink.solve_ik(state, [task], 1.0, "daqp", damping=1e-6, limits=limits)
                state.integrate_inplace(velocity, 1.0)
                error = task.compute_error(state)
                errors[k] = np.linalg.norm(error[:3]), np.linalg.norm(error[3:])
                if errors[k].max() <= TOLERANCE:
                    break
        return float(np.mean((errors <= TOLERANCE).all(axis=1))), errors


def measured(name: str) -> list[list[str]]:
    """Returns the rows of a model."""
    sides = Comparison(name)
    calls = {
        "fl.ik, float64": (lambda: sides.ours("float64"), TARGETS),
        "fl.ik, float32": (lambda: sides.ours("float32"), TARGETS),
        f"fl.ik, float64, {RESTARTS} restarts": (lambda: sides.ours("float64", RESTARTS), TARGETS),
        "loop over MuJoCo": (sides.in_numpy, LOOP),
    }
    if importlib.util.find_spec("mink"):
        calls["mink"] = (sides.with_mink, LOOP)
    results, times = {key: call() for key, (call, _) in calls.items()}, {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, (call, n) in calls.items():
            start = time.process_time()
            call()
            times[key].append((time.process_time() - start) / n)
    typical = {key: float(np.median(values)) for key, values in times.items()}
    loop, rows = typical["loop over MuJoCo"], []
    for key, (share, errors) in results.items():
        first = np.mean((errors[:LOOP] <= TOLERANCE).all(axis=1))
        reached = errors[(errors <= TOLERANCE).all(axis=1)]
        place, turn = np.median(reached, axis=0)
        every = f"{100 * share:.1f} %" if len(errors) == TARGETS else ""
        cells = [f"{1e6 * typical[key]:.1f}", f"{loop / typical[key]:.1f}", every, f"{100 * first:.1f} %"]
        rows.append(
            [f"{name.split('/')[-1 if 'bundled' in name else -2]}, {key}", *cells, f"{place:.0e}", f"{turn:.0e}"]
        )
    return rows


def main() -> None:
    asked = arguments(__doc__ or "").parse_args()
    columns = ("model, solver", "time [us/target]", "speed-up over the loop", f"reached of {TARGETS}")
    columns += (f"reached of the first {LOOP}", "median position error [m]", "median orientation error [rad]")
    table = markdown(columns, [row for name in MODELS for row in measured(name)])
    publish("ik", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
