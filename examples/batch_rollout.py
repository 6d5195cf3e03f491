"""Rolls out many worlds with random controls, and prints the speed and statistics of the trajectories."""

import sys
import time

import numpy as np

import featherlane as fl


def main(nworld=1024, nstep=200):
    model = fl.bundled("humanoid")
    batch = fl.Batch(model, nworld)  # all cores; dtype="float32" is faster
    batch.reset(keyframe="squat")
    rng = np.random.default_rng(0)
    control = rng.uniform(-0.3, 0.3, (nworld, nstep, model.nu))

    batch.step()  # kernels are loaded with the first call
    start = time.perf_counter()
    out = batch.rollout(nstep, control=control, record=("qpos", "subtree_com", "ncon"))
    seconds = time.perf_counter() - start

    height = out["subtree_com"][:, :, 1, 2]  # of the whole body, (nworld, nstep)
    print(
        f"{nworld * nstep / seconds:,.0f} world-steps per second on {batch.nthread} threads"
    )
    print(
        f"height of the centre of mass: {height[:, 0].mean():.2f} m, at the end {height[:, -1].mean():.2f} m"
    )
    print(f"contacts at the end: {out['ncon'][:, -1].mean():.1f} on average")
    print({name: int(counts.sum()) for name, counts in batch.status.items()})


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
