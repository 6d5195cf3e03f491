"""Random calls of `integrations.mujoco_batch.Batch` give the results of `mujoco.batch.Batch`."""

import mujoco
import numpy as np
import pytest

from integrations.test_mujoco_batch import NSIM, SCENE, close, ours, theirs, variants
from sampling import every

CALLS = 25
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
RECORD = ("qpos", FULL, "xpos", "ncon", "sensordata")
OUTPUTS = ("xpos", "cvel", "qacc", "ncon", "sensordata", "site_xpos", "actuator_force", "qfrc_constraint")
REALS = ("body_mass", "geom_friction", "opt.gravity", "jnt_range", "dof_damping", "actuator_gear", "key_ctrl")
INTEGERS = {"geom_contype": (0, 1), "geom_condim": (1, 3, 4, 6), "jnt_limited": (0, 1), "opt.cone": (0, 1)}


class Calls:
    """Makes the same calls of both batches, and compares."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.model = mujoco.MjModel.from_xml_string(SCENE)
        nthread, persistent = int(self.rng.integers(1, 3)), bool(self.rng.integers(2))
        self.pair = [library.Batch(self.model, NSIM, nthread, persistent) for library in (ours, theirs)]
        self.bound = {}

    def make(self):
        """Makes one call."""
        self.ids = None if self.rng.random() < 0.4 else np.flatnonzero(self.rng.random(NSIM) < 0.5)
        self.n = NSIM if self.ids is None else len(self.ids)
        name = str(self.rng.choice([each for each in dir(self) if each.startswith("call_")]))
        getattr(self, name)()
        close(self.pair[0].state, self.pair[1].state, 1e-6)
        close(self.pair[0].warning[..., 1] > 0, self.pair[1].warning[..., 1] > 0)
        if name in ("call_step", "call_forward"):
            ran = slice(None) if self.ids is None else self.ids
            for pair in self.bound.values():
                close(pair[0][ran], pair[1][ran], 1e-6)

    def both(self, do, *refused):
        """Calls a function of each batch; both raise one of these errors, or none does."""
        results, failed = [], []
        for batch in self.pair:
            try:
                results.append(do(batch))
            except refused:
                failed.append(batch)
        assert len(failed) in (0, 2)
        return results

    def call_step(self):
        nstep, stage = int(self.rng.integers(1, 4)), int(self.rng.choice([0, 1, 2, 3]))
        self.both(lambda batch: batch.step(self.ids, nstep, stage))

    def call_forward(self):
        self.both(lambda batch: batch.forward(self.ids))

    def call_reset(self):
        keyframe, stage = self.rng.integers(-1, 1, self.n), int(self.rng.choice([0, 3]))
        self.both(lambda batch: batch.reset(self.ids, keyframe, stage))

    def call_bind(self):
        name = str(self.rng.choice(OUTPUTS))
        self.bound[name] = self.both(lambda batch: batch.bind(name))

    def call_write(self):
        name = str(self.rng.choice(["ctrl", "qvel", "mocap_pos", "eq_active", "xfrc_applied"]))
        value = self.rng.normal(0, 0.3, getattr(self.pair[1], name).shape)
        self.both(lambda batch: setattr(batch, name, value > 0 if name == "eq_active" else value))

    def call_write_a_bad_value(self):
        """Only once in a simulation: after a second reset MuJoCo's counter is 1 again, and its rollout goes on."""
        sim = self.rng.integers(NSIM)
        if not self.pair[1].warning[sim].any():
            self.both(lambda batch: batch.qvel.__setitem__((sim, 0), np.nan))

    def call_expand(self):
        name, factor = str(self.rng.choice(REALS)), self.rng.uniform(0.8, 1.2, NSIM)

        def do(batch):
            rows = batch.expand(name)
            rows *= factor.reshape(-1, *[1] * (rows.ndim - 1))

        self.both(do, mujoco.FatalError)

    def call_expand_integers(self):
        name, sim = str(self.rng.choice(list(INTEGERS))), self.rng.integers(NSIM)
        value = self.rng.choice(INTEGERS[name])
        self.both(lambda batch: batch.expand(name).__setitem__(sim, value), mujoco.FatalError)

    def call_named(self):
        value = self.rng.uniform(0.5, 1.5)

        def do(batch):
            batch.joint("elbow").qpos = 0.1 * value
            batch.body("arm").mass = value
            return batch.geom("stone").size

        close(*(self.both(do, ValueError) or (0, 0)))

    def call_set_const(self):
        self.both(lambda batch: batch.set_const(self.ids), mujoco.FatalError)

    def call_set_models(self):
        models = [None, variants(), variants()[0]][self.rng.integers(3)]
        self.both(lambda batch: batch.set_models(models), mujoco.FatalError)

    def call_rollout(self):
        nstep = int(self.rng.integers(1, 5))
        control = self.rng.normal(0, 0.3, (self.n, nstep, 1)) if self.rng.random() < 0.7 else None
        found, reference = self.both(lambda batch: batch.rollout(nstep, control, record=RECORD, ids=self.ids))
        for item in RECORD:
            close(found[item], reference[item], 1e-6)

    def call_jac(self):
        body, point = self.rng.integers(0, self.model.nbody, self.n), self.rng.normal(0, 1, (self.n, 3))
        for pair in zip(*self.both(lambda batch: batch.jac(body, point, self.ids)), strict=True):
            close(*pair, 1e-6)

    def call_ray(self):
        point, direction = self.rng.normal(0, 1, (2, self.n, 4, 3))
        exclude, group = self.rng.integers(-1, self.model.nbody, (self.n, 4)), self.rng.integers(0, 2, 6)
        how = {"geomgroup": group, "bodyexclude": exclude, "ids": self.ids, "normal": True}
        for pair in zip(*self.both(lambda batch: batch.ray(point, direction, **how)), strict=True):
            close(*pair, 1e-6)


@pytest.mark.parametrize("seed", every(15, range(60)))
def test_random_calls_give_mujocos_results(seed):
    calls = Calls(seed)
    for _ in range(CALLS):
        calls.make()
