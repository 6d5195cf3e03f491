"""Swings up a cart-pole by MPPI: each plan is a weighted mean of controls that are sampled around the last plan.

With `from mujoco import rollout` in place of the import below, the same program samples with MuJoCo.

Source: Williams et al., Model predictive path integral control using covariance variable importance sampling, 2015.
"""

import sys
import time

import mujoco
import numpy as np

import featherlane as fl
from featherlane.integrations import (
    mujoco_rollout as rollout,
)  # instead of: from mujoco import rollout

FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
# standard deviation of the samples [control range]; cost with the weight e^-1
SPREAD, TEMPERATURE = (0.5, 0.01)


def cost(model, state, control):
    """Return costs (nsample,) of rollouts: states (nsample, nstep, nstate) and controls (nsample, nstep, nu).

    A state is time, positions, velocities.  The pole stands at a hinge angle of 0 and hangs at pi.
    """
    cart, angle, velocity = state[..., 1], state[..., 2], state[..., 1 + model.nq :]
    per_step = (
        (1.0 - np.cos(angle))
        + 0.1 * cart**2
        + 0.01 * (velocity**2).sum(-1)
        + 0.001 * (control**2).sum(-1)
    )
    return per_step.mean(-1) + 2.0 * (1.0 - np.cos(angle[:, -1]))


class Mppi:
    """Plans controls from nsample rollouts of nstep steps of the model with nthread threads."""

    def __init__(self, model, nsample=64, nstep=120, nthread=2):
        self.model, self.pool = model, rollout.Rollout(nthread=nthread)
        self.data = [mujoco.MjData(model) for _ in range(nthread)]
        self.plan, self.shape = np.zeros((nstep, model.nu)), (nsample, nstep, model.nu)
        self.low, self.high = model.actuator_ctrlrange.T
        self.rng = np.random.default_rng(0)

    def control(self, data):
        """Return the first control of a new plan, (nu,), from the state of an MjData."""
        start = np.zeros(mujoco.mj_stateSize(self.model, FULL))
        mujoco.mj_getState(self.model, data, start, FULL)
        noise = (
            SPREAD
            * (self.high - self.low)
            * self.rng.standard_normal(self.shape).cumsum(1)
            / 8.0
        )
        noise[0] = 0.0  # one sample is the last plan
        samples = np.clip(self.plan + noise, self.low, self.high)
        state, _ = self.pool.rollout(self.model, self.data, start, samples)
        costs = cost(self.model, state, samples)
        weights = np.exp(-(costs - costs.min()) / TEMPERATURE)
        self.plan = np.tensordot(weights / weights.sum(), samples, 1)
        first, self.plan = self.plan[0], np.concatenate([self.plan[1:], self.plan[-1:]])
        return first


def main(nstep=200, nsample=64):
    model = fl.bundled("cartpole").mj_model
    data, controller = mujoco.MjData(model), Mppi(model, nsample)
    data.qpos[1] = np.pi  # the pole hangs
    start = time.perf_counter()
    for _ in range(nstep):
        data.ctrl[:] = controller.control(data)
        mujoco.mj_step(model, data)
    seconds = time.perf_counter() - start
    print(
        f"after {data.time:.1f} s: cart at {data.qpos[0]:.2f} m, pole {np.cos(data.qpos[1]):.2f} upright"
    )
    print(f"{nstep / seconds:.0f} plans per second of {nsample} rollouts each")
    return data


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
