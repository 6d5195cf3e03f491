# %% [markdown]
# # A thousand worlds: domain randomization
#
# A quadruped stands on its feet and is pushed sideways. How strong may the push be if mass, friction and motor strength
# are uncertain? This tutorial simulates 1024 robots with different parameters in one batch.

# %%
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

WORLDS, SECONDS = 1024, 1.5
model = fl.bundled("quadruped")
batch = fl.Batch(model, WORLDS)
print(
    f"{WORLDS} worlds of {model.nv} DoFs: qpos is {batch.qpos.shape}, qvel {batch.qvel.shape}"
)

# %% [markdown]
# ## Randomize the parameters
#
# `batch.expand(name)` gives a model field one row per world, without compiling anything. `set_const` recomputes the
# fields that depend on masses (`body_invweight0`, ...).

# %%
rng = np.random.default_rng(0)
scale = rng.uniform(0.6, 1.6, (WORLDS, 1))
batch.expand("body_mass")[:] *= scale
batch.expand("body_inertia")[:] *= scale[:, :, None]
friction = rng.uniform(0.2, 1.2, WORLDS)
batch.expand("geom_friction")[:, :, 0] = friction[:, None]
strength = rng.uniform(0.7, 1.3, (WORLDS, 1))
batch.expand("actuator_gainprm")[:, :, 0] *= strength
batch.expand("actuator_biasprm")[:, :, 1] *= strength
batch.set_const()

# %% [markdown]
# ## Equal initial state, different pushes
#
# All robots stand for a moment, then get a lateral velocity. The rollout runs compiled, on all cores. It records the
# named fields as arrays `(worlds, steps, ...)`.

# %%
batch.reset(keyframe="home")
batch.step(200)
kick = rng.uniform(0.0, 3.0, WORLDS)
batch.qvel[:, 1] += kick
kicked = batch.checkpoint()
steps = round(SECONDS / model.opt.timestep)
out = batch.rollout(steps, record=("qpos", "xmat"))
upright = out["xmat"].reshape(WORLDS, steps, model.nbody, 3, 3)[
    :, -1, 1, 2, 2
]  # cosine of the trunk's tilt
fallen = upright < 0.7
unsolved = batch.status["not_converged"].sum()
print(f"{fallen.sum()} of {WORLDS} robots fell; {unsolved} solves did not converge")
assert 0.02 * WORLDS < fallen.sum() < 0.98 * WORLDS
assert batch.nreset.sum() == 0

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.scatter(kick[~fallen], friction[~fallen], s=5, label="upright")
left.scatter(kick[fallen], friction[fallen], s=5, label="fell")
left.set(
    xlabel="lateral velocity [m/s]",
    ylabel="friction",
    title="falls by push and friction",
)
left.legend(loc="upper left")
time = model.opt.timestep * np.arange(1, steps + 1)
for world in np.argsort(kick)[:: WORLDS // 24]:
    right.plot(
        time,
        out["qpos"][world, :, 2],
        color="C1" if fallen[world] else "C0",
        linewidth=0.8,
    )
right.set(xlabel="time [s]", ylabel="height of the trunk [m]", title="every 42nd world")

# %% [markdown]
# With low friction the feet slide and the robot stays upright. With high friction it trips. The share of falls grows
# with the velocity:

# %%
edges = np.linspace(0.0, 3.0, 7)
share = [fallen[(kick >= low) & (kick < high)].mean() for low, high in pairwise(edges)]
for (low, high), part in zip(pairwise(edges), share, strict=True):
    print(f"push of {low:.1f} to {high:.1f} m/s: {part:6.1%} fall")
assert share[0] < 0.05 < share[-1]

# %% [markdown]
# ## Reproduce one world alone
#
# A world's result is bitwise identical alone and in a batch of a thousand. Any world of a batch can therefore be
# extracted with its model and stepped alone, for example in a debugger.

# %%
world = int(np.argmax(np.where(fallen, -kick, -np.inf)))  # fell at the lowest velocity
batch.restore(kicked)
alone = batch.get_data(world)
robot = alone.model
for _ in range(steps):
    fl.step(robot, alone)
assert np.array_equal(alone.qpos, out["qpos"][world, -1]), "bitwise identical"
print(
    f"world {world}: push {kick[world]:.2f} m/s, {robot.body_mass.sum():.1f} kg, friction {friction[world]:.2f}"
)
print("alone and in the batch: bitwise identical after", steps, "steps")

# %% [markdown]
# The result is the same for any order of the worlds and any number of threads:
# [Determinism](../chapters/determinism.md). [Robot tasks](../tasks.md#domain-randomization) lists parameters to
# randomize for sim-to-real transfer. [Reinforcement learning](../training.md) trains policies on such worlds.
