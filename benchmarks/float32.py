"""What float32 costs in digits: the same states in both precisions, one pass and a hundred steps; ten seconds.

    python benchmarks/float32.py --write

No number is a time.  A state of float64 is rounded to float32 first, so that both precisions begin from the same.
"""

from __future__ import annotations

import numpy as np
from report import arguments, markdown, origin, publish

import featherlane as fl

WORLDS, SETTLE, STEPS = 64, 200, 100
MODELS = ("pendulum", "double_pendulum", "arm", "quadruped", "humanoid", "hand", "slider_crank", "box_stack", "rope")
STATE = ("qpos", "qvel", "act", "ctrl", "qacc_warmstart")
COLUMNS = [
    "model",
    "DoFs",
    "contacts",
    "condition number of M",
    "qfrc_bias",
    "qacc_smooth",
    "force residual",
    "qacc",
    "qfrc_constraint",
    "difference after 100 steps",
    "not converged",
]


def settled(model: fl.Model) -> fl.Batch:
    """Worlds after SETTLE steps under random controls, from the first keyframe if there is one."""
    batch, random = fl.Batch(model, WORLDS), np.random.default_rng(0)
    if model.nkey:
        batch.reset(keyframe=0)
    for _ in range(SETTLE // 20):
        if model.nu:
            batch.ctrl = random.uniform(-0.5, 0.5, (WORLDS, model.nu))
        batch.step(20)
    return batch


def both(model: fl.Model) -> tuple[fl.Batch, fl.Batch]:
    """Batches in float64 and float32, in the same states."""
    start = settled(model)
    single, double = fl.Batch(model, WORLDS, dtype="float32"), fl.Batch(model, WORLDS)
    for name in STATE:
        getattr(single, name)[:] = getattr(start, name)
        getattr(double, name)[:] = getattr(single, name)
    return double, single


def condition(model: fl.Model) -> float:
    """Of the joint-space inertia at qpos0, scaled to a unit diagonal."""
    data = fl.Data(model)
    data.forward()
    M = fl.query.full_m(model, data)
    scale = 1 / np.sqrt(np.diag(M))
    return float(np.linalg.cond(scale[:, None] * M * scale))


def force_error(model: fl.Model, batch: fl.Batch) -> float:
    """|M a - f| / |f| of accelerations a and forces f without constraints, median over a few worlds."""
    errors = []
    for world in range(8):
        M = fl.query.full_m(model, batch.get_data(world))
        a, f = batch.qacc_smooth[world].astype(float), batch.qfrc_smooth[world].astype(float)
        errors.append(np.linalg.norm(M @ a - f) / np.linalg.norm(f))
    return float(np.median(errors))


def row(name: str) -> list[object]:
    """The table's row of one model: medians over worlds."""
    model = fl.bundled(name)
    double, single = both(model)
    fields = ("qfrc_bias", "qacc_smooth", "qacc", "qfrc_constraint")
    for batch in (double, single):
        for field in (*fields, "qfrc_smooth"):
            batch.bind(field)
        batch.forward()
    exact = {field: np.array(getattr(double, field)) for field in fields}
    free = np.linalg.norm(exact["qacc_smooth"], axis=1)
    errors = []
    for field in fields:
        size = np.linalg.norm(exact[field], axis=1)
        if field == "qacc":  # what rests accelerates by a difference of larger numbers
            size = np.maximum(size, free)
        error = np.linalg.norm(exact[field] - getattr(single, field), axis=1)
        errors.append(np.median(error[size > 0] / size[size > 0]) if (size > 0).any() else None)
    errors.insert(2, force_error(model, single))
    contacts = double.ncon.mean()
    for batch in (double, single):
        batch.step(STEPS)
    apart = np.median(abs(double.qpos - single.qpos.astype(float)).max(axis=1))
    shown = ["" if error is None else f"{error:.0e}" for error in errors]
    unconverged = int(single.status["not_converged"].sum())
    return [name, model.nv, f"{contacts:.1f}", f"{condition(model):.1e}", *shown, f"{apart:.0e}", unconverged]


def main():
    """Print the table, and write it into its page."""
    asked = arguments(__doc__).parse_args()
    table = markdown(COLUMNS, [row(name) for name in MODELS])
    publish("float32", f"{table}\n\n{origin()}", asked.write)


if __name__ == "__main__":
    main()
