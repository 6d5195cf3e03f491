# %% [markdown]
# # A thousand worlds
#
# A quadruped stands on its feet and is kicked. How hard may the kick be if we do not know its mass, its friction and
# how strong its motors are? We ask a thousand of them, each another robot, in one batch.

# %%
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

WORLDS, SECONDS = 1024, 1.5
model = fl.load("quadruped")
batch = fl.Batch(model, WORLDS)
print(f"{WORLDS} worlds of {model.nv} freedoms: qpos is {batch.qpos.shape}, qvel {batch.qvel.shape}")

# %% [markdown]
# ## Every world a robot of its own
#
# `batch.expand(name)` gives a field of the model a row for each world; nothing is compiled for it. What follows from
# masses (`body_invweight0`, ...) is made anew by `set_const`.

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
# ## The same start, a thousand kicks
#
# All stand for a moment, and then get a velocity to the side. The rollout runs compiled, on all cores, and records
# what we name, as arrays `(worlds, steps, ...)`.

# %%
batch.reset(keyframe="home")
batch.step(200)
kick = rng.uniform(0.0, 3.0, WORLDS)
batch.qvel[:, 1] += kick
kicked = batch.checkpoint()
steps = round(SECONDS / model.opt.timestep)
out = batch.rollout(steps, record=("qpos", "xmat"))
upright = out["xmat"].reshape(WORLDS, steps, model.nbody, 3, 3)[:, -1, 1, 2, 2]  # cosine of the trunk's tilt
fallen = upright < 0.7
unsolved = batch.status["not_converged"].sum()
print(f"{fallen.sum()} of {WORLDS} lie on their side or back; {unsolved} solves did not converge")
assert 0.02 * WORLDS < fallen.sum() < 0.98 * WORLDS
assert batch.nbad.sum() == 0

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.scatter(kick[~fallen], friction[~fallen], s=5, label="stands")
left.scatter(kick[fallen], friction[fallen], s=5, label="fell")
left.set(xlabel="kick [m/s]", ylabel="friction", title="who falls")
left.legend(loc="upper left")
time = model.opt.timestep * np.arange(1, steps + 1)
for world in np.argsort(kick)[:: WORLDS // 24]:
    right.plot(time, out["qpos"][world, :, 2], color="C1" if fallen[world] else "C0", linewidth=0.8)
right.set(xlabel="time [s]", ylabel="height of the trunk [m]", title="one world in 42")

# %% [markdown]
# A kick of up to 3 m/s: with little friction the feet slide and the robot stays up; where they stick it trips. The
# harder the kick, the more fall:

# %%
edges = np.linspace(0.0, 3.0, 7)
share = [fallen[(kick >= low) & (kick < high)].mean() for low, high in pairwise(edges)]
for (low, high), part in zip(pairwise(edges), share, strict=True):
    print(f"kick {low:.1f} to {high:.1f} m/s: {part:6.1%} fall")
assert share[0] < 0.05 < share[-1]

# %% [markdown]
# ## One world out of the batch
#
# A world's bits depend on nothing but the world: alone it moves exactly as it did among a thousand. So what is seen in
# a batch can be taken out, with its model, and looked at step by step.

# %%
world = int(np.argmax(np.where(fallen, -kick, -np.inf)))  # the one that fell at the softest kick
batch.restore(kicked)
alone, robot = batch.get_data(world), batch.get_model(world)
for _ in range(steps):
    fl.step(robot, alone)
assert np.array_equal(alone.qpos, out["qpos"][world, -1]), "bit for bit"
print(f"world {world}: kicked at {kick[world]:.2f} m/s, {robot.body_mass.sum():.1f} kg, friction {friction[world]:.2f}")
print("alone and in the batch: the same to the last bit, after", steps, "steps")

# %% [markdown]
# The same in any order and company, with any number of threads: [Determinism](../chapters/determinism.md). What to
# draw for a policy that shall work outside is told in [Tasks](../tasks.md), how worlds are trained on in
# [Reinforcement learning](../training.md).
