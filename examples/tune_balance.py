"""Tunes gains by Ray Tune so that poles of different masses balance; each trial is a batch on one core.

Needs pip install '.[rllib]', which includes Ray Tune.
"""

import sys
from tempfile import TemporaryDirectory

import numpy as np
import ray
from ray import tune

import featherlane as fl


def fallen(gains, nworld, nstep):
    """Return the share of poles that fall, and the mean distance of the other carts from the middle [m]."""
    model = fl.bundled("cartpole")
    batch, rng = fl.Batch(model, nworld, nthread=1), np.random.default_rng(0)
    scale = rng.uniform(0.5, 4.0, nworld)  # pole masses, the same in all trials
    batch.expand("body_mass")[:, 2] *= scale
    batch.expand("body_inertia")[:, 2] *= scale[:, None]
    batch.set_const()
    batch.qpos[:] = rng.uniform(-1.0, 1.0, (nworld, 2)) * [0.3, 0.15]
    K = np.array(
        [gains["cart"], gains["pole"], gains["cart_speed"], gains["pole_speed"]]
    )

    def control(batch, step):
        return np.clip(np.concatenate([batch.qpos, batch.qvel], 1) @ K[:, None], -1, 1)

    out = batch.rollout(nstep, control)["qpos"]
    down = (np.abs(out[:, :, 1]) > 0.5).any(axis=1)
    return down.mean(), np.abs(out[~down, -1, 0]).mean() if (~down).any() else 1.75


def trial(gains, nworld, nstep):
    """Runs one trial; Tune calls it in a separate process."""
    share, drift = fallen(gains, nworld, nstep)
    return {"fallen": share, "drift": drift, "cost": share + 0.1 * drift}


def main(ntrial=60, nworld=256, nstep=500):
    space = {name: tune.uniform(0.0, most) for name, most in
             (("cart", 3.0), ("pole", 12.0), ("cart_speed", 3.0), ("pole_speed", 4.0))}  # fmt: skip
    with (
        ray.init(address="local", include_dashboard=False, log_to_driver=False),
        TemporaryDirectory() as folder,
    ):
        tuner = tune.Tuner(
            tune.with_resources(
                tune.with_parameters(trial, nworld=nworld, nstep=nstep), {"cpu": 1}
            ),
            param_space=space,
            tune_config=tune.TuneConfig(
                metric="cost", mode="min", num_samples=ntrial, reuse_actors=True
            ),
            run_config=tune.RunConfig(verbose=0, storage_path=folder),
        )
        found = tuner.fit()
    best, costs = found.get_best_result(), [result.metrics["cost"] for result in found]
    gains = ", ".join(f"{name} {value:.2f}" for name, value in best.config.items())
    print(f"{len(costs)} trials, cost {min(costs):.3f} to {max(costs):.3f}")
    print(f"best gains: {gains}")
    share, drift = fallen(best.config, 4 * nworld, nstep)
    print(
        f"{100 * (1 - share):.1f} % of {4 * nworld} poles stay up, mean distance of their carts {drift:.2f} m"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
