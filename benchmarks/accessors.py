"""What it costs to read contacts, constraint rows, Jacobians and single worlds, next to MuJoCo; a minute.

    python benchmarks/accessors.py --write

Both sides give the same numbers of the same state, in arrays of the caller's: MuJoCo's fields are copied, its Jacobians
go into new arrays.  MuJoCo's rows come from `mj_makeConstraint`, which its step calls; those of a `Data` are made when
they are read.  The rounds of both sides alternate; a time is the least of all rounds.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable

from report import arguments, markdown, origin, publish

import mujoco  # isort: skip  (the tests' oracle)
import numpy as np

import featherlane as fl

CONTACT = "dist pos frame includemargin friction solref solreffriction solimp dim geom exclude efc_address".split()
COLUMNS = "J type id pos margin frictionloss diagA KBIP D R vel aref force state".split()
MODELS = ("humanoid", "quadruped")
STEPS, ROUNDS, SECONDS = 300, 9, 0.01  # before the state, of each case, of a round


class Pair:
    """A model in one state, here and in MuJoCo."""

    def __init__(self, name: str):
        self.model = fl.bundled(name)
        self.data = fl.Data(self.model)
        fl.step(self.model, self.data, STEPS)
        self.data.forward()
        self.batch = fl.Batch(self.model, 4, nthread=1)
        self.batch.step()
        self.mj = self.model.to_mujoco()
        self.theirs = mujoco.MjData(self.mj)
        self.theirs.qpos[:], self.theirs.qvel[:] = self.data.qpos, self.data.qvel
        mujoco.mj_forward(self.mj, self.theirs)
        self.body = self.mj.nbody - 1

    def jacobians(self, function: Callable, i: int) -> tuple[np.ndarray, np.ndarray]:
        """MuJoCo's Jacobians of an element, in new arrays."""
        p, r = np.empty((3, self.mj.nv)), np.empty((3, self.mj.nv))
        function(self.mj, self.theirs, p, r, i)
        return p, r

    def subtree(self) -> np.ndarray:
        """MuJoCo's Jacobian of the whole model's centre of mass."""
        p = np.empty((3, self.mj.nv))
        mujoco.mj_jacSubtreeCom(self.mj, self.theirs, p, 1)
        return p

    def world(self) -> mujoco.MjData:
        """Returns a separate MuJoCo model and its data after mj_forward."""
        model = copy.copy(self.mj)
        data = mujoco.MjData(model)
        data.qpos[:], data.qvel[:] = self.theirs.qpos, self.theirs.qvel
        mujoco.mj_forward(model, data)
        return data

    def rows(self, names: list[str]) -> list[np.ndarray]:
        """MuJoCo's rows, made on request."""
        mujoco.mj_makeConstraint(self.mj, self.theirs)
        return [getattr(self.theirs, f"efc_{name}").copy() for name in names]

    def contacts(self) -> list[np.ndarray]:
        """All fields of MuJoCo's contacts."""
        contact = self.theirs.contact
        return [getattr(contact, name).copy() for name in CONTACT]

    def cases(self) -> dict[str, tuple[Callable, Callable]]:
        """Ours and MuJoCo's of each accessor."""
        m, d, body = self.model, self.data, self.body
        return {
            "`batch.get_data`": (lambda: self.batch.get_data(3), self.world),
            "`data.contact`": (lambda: d.contact, self.contacts),
            "`data.efc_J`": (lambda: d.efc_J, lambda: self.rows(["J"])),
            "`data.efc_force`": (lambda: d.efc_force, lambda: self.rows(["force"])),
            "all `data.efc_*`": (
                lambda: [getattr(d, f"efc_{name}") for name in COLUMNS],
                lambda: [self.rows([name]) for name in COLUMNS],
            ),
            "`fl.query.jac_body`": (
                lambda: fl.query.jac_body(m, d, body),
                lambda: self.jacobians(mujoco.mj_jacBody, body),
            ),
            "`fl.query.jac_geom`": (lambda: fl.query.jac_geom(m, d, 1), lambda: self.jacobians(mujoco.mj_jacGeom, 1)),
            "`fl.query.jac_subtree_com`": (lambda: fl.query.jac_subtree_com(m, d, 1), self.subtree),
        }


def seconds(call: Callable, count: int) -> float:
    """Time of one of several calls."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count


def compared(ours: Callable, theirs: Callable) -> tuple[float, float]:
    """Least times [s] of both, in alternating rounds."""
    counts = [max(1, int(SECONDS / max(min(seconds(call, 1) for _ in range(3)), 1e-6))) for call in (ours, theirs)]
    rounds = [[seconds(call, n) for call, n in zip((ours, theirs), counts, strict=True)] for _ in range(ROUNDS)]
    first, second = np.min(rounds, axis=0)
    return float(first), float(second)


def main() -> None:
    asked = arguments(__doc__).parse_args()
    rows = []
    for name in MODELS:
        pair = Pair(name)
        for case, calls in pair.cases().items():
            ours, theirs = compared(*calls)
            rows.append([f"{case}, {name}", f"{1e6 * ours:.1f}", f"{1e6 * theirs:.1f}", f"{ours / theirs:.1f}"])
    table = markdown(("", "Featherlane [us]", "MuJoCo [us]", "ratio"), rows)
    publish("accessors", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
