"""Work and precision of `fl.integrate`, compared with fixed time steps: evaluations of the acceleration, and the error.

The motions have known solutions (tests/scenes/known_motions.py).  The work of a method with fixed steps is interpolated
to the error of `fl.integrate`.
"""

from __future__ import annotations

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl

from scenes.known_motions import BOUNCE, MOTIONS  # isort: skip  on the path since `report`

ACCURACIES = 1e-2, 1e-4, 1e-6, 1e-8
FIXED = {"rk4": 4, "euler": 1, "implicitfast": 1, "discrete": 1}  # accelerations of a time step
HALVINGS = 18  # of the duration, at most


class Curve:
    """Errors of fixed time steps of a motion, by their work.

    Args:
        start: returns a world in the initial state.
        error: returns the error of a world at the end.
        duration: of the motion [s].
        each: accelerations of a step.
    """

    def __init__(self, start, error, duration: float, each: int):
        self.work, self.errors = [], []
        for k in range(4, HALVINGS + 1):
            data = start()
            data.model.opt.timestep = duration / 2**k
            data.step(2**k)
            self.work.append(each * 2**k)
            self.errors.append(error(data) if data.nreset == 0 and np.isfinite(data.qpos).all() else np.inf)

    def for_error(self, error: float) -> str:
        """Returns the work from which on the error is not exceeded."""
        above = np.flatnonzero(~(np.array(self.errors) <= error))
        k = above[-1] + 1 if above.size else 0
        if k == len(self.work):
            return f"> {self.work[-1]:,}"
        if k == 0 or not np.isfinite(self.errors[k - 1]):
            return f"{self.work[k]:,}"
        low, high = np.log(self.errors[k]), np.log(self.errors[k - 1])
        part = (np.log(error) - low) / (high - low)
        return f"{round(self.work[k] * 2.0**-part):,}"


def smooth() -> str:
    """Returns the table of smooth motions."""
    rows = []
    for name, motion in MOTIONS.items():
        curves = {
            scheme: Curve(lambda s=scheme, m=motion: m.start(s), motion.error, motion.duration, FIXED[scheme])
            for scheme in ("rk4", "euler", "implicitfast")
        }
        for accuracy in ACCURACIES:
            data = motion.start("rk4")
            done = fl.integrate(data.model, data, motion.duration, accuracy=accuracy)
            error = motion.error(data)
            fixed = [curve.for_error(error) for curve in curves.values()]
            steps = f"{int(done.accepted)} + {int(done.rejected)}"
            row = [name, f"{accuracy:.0e}", f"{error:.1e}", f"{error / accuracy:.3f}", steps]
            rows.append([*row, f"{4 * int(done.evaluations):,}", *fixed])
    head = "motion,accuracy,error,error / accuracy,accepted + rejected,integrate,fixed RK4,fixed Euler"
    head += ",fixed implicitfast"
    return markdown(head.split(","), rows)


def first_order() -> str:
    """Returns the table of integrators of order 1."""
    rows = []
    for name, motion in MOTIONS.items():
        for scheme in ("euler", "discrete"):
            curve = Curve(lambda s=scheme, m=motion: m.start(s), motion.error, motion.duration, 1)
            for accuracy in (1e-2, 1e-4):
                data = motion.start(scheme)
                done = fl.integrate(data.model, data, motion.duration, accuracy=accuracy)
                error = motion.error(data)
                row = [f"{name}, {scheme}", f"{accuracy:.0e}", f"{error:.1e}", f"{error / accuracy:.3f}"]
                rows.append([*row, f"{int(done.evaluations):,}", curve.for_error(error)])
    return markdown("motion,accuracy,error,error / accuracy,integrate,fixed steps".split(","), rows)


def bounce() -> str:
    """Returns the table of the bouncing ball: error of its height after two bounces."""

    start, height = BOUNCE.start, BOUNCE.exact(BOUNCE.duration)[0][2]
    error = lambda data: abs(data.qpos[2] - height)  # noqa: E731
    rows = []
    for scheme in ("rk4", "discrete", "implicitfast"):
        curve = Curve(lambda s=scheme: start(s), error, BOUNCE.duration, FIXED[scheme])
        for tau in (1.0, 0.0):
            for accuracy in (1e-2, 1e-3, 1e-4, 1e-5):
                data = start(scheme)
                done = fl.integrate(data.model, data, BOUNCE.duration, accuracy=accuracy, velocity_time=tau)
                row = [f"{scheme}, velocity_time {tau:g}", f"{accuracy:.0e}", f"{error(data):.1e}"]
                row += [f"{done.smallest_step:.0e}", f"{done.largest_step:.0e}"]
                rows.append([*row, f"{FIXED[scheme] * int(done.evaluations):,}", curve.for_error(error(data))])
    head = "integrator,accuracy,error [m],smallest step [s],largest step [s],integrate,fixed steps"
    return markdown(head.split(","), rows)


def main() -> None:
    write = arguments(__doc__ or "").parse_args().write
    publish("integrate-smooth", f"{smooth()}\n\n{origin()}", write)
    publish("integrate-euler", f"{first_order()}\n\n{origin()}", write)
    publish("integrate-bounce", f"{bounce()}\n\n{origin()}", write)


if __name__ == "__main__":
    main()
