"""Records whole steps, and single stages in both precisions, of a humanoid that touches the ground.

`python tests/platforms/recorded_stages.py FOLDER` writes FOLDER/steps.bin and FOLDER/stages.bin.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import featherlane as fl
from featherlane.engine.lanes.kernel import Stage, symbol, variant
from featherlane.engine.lanes.runtime import Library
from featherlane.engine.simulation.tile.library import library, stages

STAGES = """kinematics com_pos crb factor_m com_vel subtree_vel energy rne_vel passive_vel tendon solve_m islands
pgs""".split()
TILES = (("f64", 8), ("f32", 16))
LOWER = 0.35  # m: the humanoid's feet are in the ground
STEPS = 3


def wanted() -> dict[str, list[tuple[Stage, tuple[str, int]]]]:
    """Returns the recorded stages, each in its variants, by the name of the recording."""
    every = stages()
    single = [(every[name], v) for name in STAGES for v in TILES]
    return {"steps": [(every["unkept_step"], ("f64", 1))], "stages": single}


def objects(calls, level: str) -> dict[str, bytes]:
    """Returns object code of stages and of those that they call, by symbol, for a CPU level of another system."""
    found = {}
    for stage, form in calls:
        for each in library().required(stage):
            own = variant(each, *form)
            name = symbol(each, *own, False)
            if name not in found:
                found[name] = library().object_code(each, *own, cpu=level)
    return found


def record_steps(folder: Path) -> None:
    """Writes the recording of steps."""
    from recorder import recording

    model, rng = fl.bundled("humanoid"), np.random.default_rng(1)
    with recording(folder / "steps.bin"):
        data = fl.Data(model)
        data.qpos[2] -= LOWER
        for _ in range(STEPS):
            data.ctrl = rng.uniform(-1, 1, model.nu)
            fl.step(model, data)
        assert data.ncon and not data.nreset


def record(folder: Path) -> None:
    """Writes both recordings."""
    from recorder import recording

    record_steps(folder)
    model, rng = fl.bundled("humanoid"), np.random.default_rng(1)
    records = {base: records_of_a_tile(model, base, width, rng) for base, width in TILES}
    with recording(folder / "stages.bin"):
        for stage, (base, _) in wanted()["stages"]:
            library().bind(stage, *records[base])()


def write(file: Path, name: str, records, run) -> None:
    """Writes a recording of one call: the symbol `name` with these records, whose results `run` computes."""
    from recorder import file_of

    file.write_bytes(file_of([(name, records, (), run)]))


def records_of_a_tile(model: fl.Model, base: str, width: int, rng: np.random.Generator):
    """Returns the records (m, d) of worlds after a step."""
    bound, found = Library.bind, []

    def bind(self, stage, *records, **options):
        found.append(records)
        return bound(self, stage, *records, **options)

    Library.bind = bind
    try:
        batch = fl.Batch(model, width, nthread=1, dtype=f"float{base[1:]}")
        batch.qpos[:, 2] -= LOWER
        batch.qvel[:] = rng.uniform(-1, 1, batch.qvel.shape)
        batch.step()
    finally:
        Library.bind = bound
    assert batch.ncon.all()
    (records,) = [r[:2] for r in found if [x.layout.name for x in r[:2]] == [x[0].name for x in layouts()]]
    return records


def layouts():
    """Returns the layouts of m and d."""
    return library().records["m"], library().records["d"]


if __name__ == "__main__":
    record(Path(sys.argv[1]))
