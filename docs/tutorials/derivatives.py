# %% [markdown]
# # Control and identification by derivatives
#
# `fl.transition` gives how the next state moves with the present one, with the controls and with the model's numbers,
#
# $$ dx' = A\, dx + B\, du + P\, dp, $$
#
# through contact. This page makes four things of it: the derivative of a whole motion, a model from a recorded
# motion, a motion from a cost, and a look at where derivatives say nothing. [Derivatives](../derivatives.md) has the
# formulas.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

# %% [markdown]
# ## A motion is a batch
#
# A cube slides along a rail and hits a puck, which slides on. Both rub.

# %%
RAIL = """
<mujoco>
  <option timestep="0.0025"/>
  <default><joint type="slide" axis="1 0 0"/><geom type="box" size="0.1 0.1 0.1" condim="1"/></default>
  <worldbody>
    <body name="cube"><joint frictionloss="2"/><geom name="cube" mass="1"/></body>
    <body name="puck" pos="1 0 0"><joint frictionloss="1"/><geom name="puck" mass="0.5"/></body>
  </worldbody>
  <contact><pair geom1="cube" geom2="puck" solref="0.04 1" margin="{reach}" solimp="0.01 0.9 {reach}"/></contact>
</mujoco>"""
STEPS = 400
model = fl.load(RAIL.format(reach=0.03))


def shove(model, speeds):
    """Positions and velocities (n, STEPS + 1, 2) of worlds whose cube starts with a speed each."""
    batch = fl.Batch(model, len(speeds))
    batch.qvel[:, 0] = speeds
    start = {name: getattr(batch, name)[:, None].copy() for name in ("qpos", "qvel")}
    out = batch.rollout(STEPS, record=("qpos", "qvel"))
    return [np.concatenate([start[name], out[name]], axis=1) for name in start]


# %% [markdown]
# The derivative of the motion is the product of the derivatives of its steps, $dx_T = A_{T-1} \cdots A_1 A_0\, dx_0$.
# All of them come from one call: the states of the motion are the worlds of a batch, which are no motion any more and
# may be taken side by side.


# %%
def derivatives(model, qpos, qvel, **asked):
    """Of each step of a motion, (STEPS + 1, nq) and (STEPS + 1, nv)."""
    path = fl.Batch(model, len(qpos) - 1)
    path.qpos[:], path.qvel[:] = qpos[:-1], qvel[:-1]
    return fl.transition(model, path, **asked)


def slope(model, speed):
    """How far the puck goes in a second [m], by the speed of the cube: the value and its derivative."""
    qpos, qvel = shove(model, [speed])
    moved = np.array([0.0, 0.0, 1.0, 0.0])  # of the state (x, x, v, v) by the cube's speed
    for A in derivatives(model, qpos[0], qvel[0]).A:
        moved = A @ moved
    return qpos[0, -1, 1], moved[1]


distance, exact = slope(model, 3.0)
low, high = shove(model, [3.0 - 1e-5, 3.0 + 1e-5])[0][:, -1, 1]
print(f"the puck goes {distance:.3f} m; by the speed {exact:.6f}, by differences of motions {(high - low) / 2e-5:.6f}")
assert abs(exact - (high - low) / 2e-5) < 1e-5

# %% [markdown]
# That asked how all moves with one number. How one number moves with all, with the start, with every control and with
# the model, is a product from the other end: `fl.rollout_gradient`, for many worlds at once.

# %%
batch = fl.Batch(model, 2)
batch.qvel[:, 0] = 3.0, 2.5
backwards = fl.rollout_gradient(model, batch, np.zeros((STEPS, 0)), np.tile([0.0, 1.0, 0.0, 0.0], (2, 1)))
print("backwards, by the speed, from 3 and from 2.5 m/s:", backwards.state[:, 2])
assert abs(backwards.state[0, 2] - exact) < 1e-9

# %% [markdown]
# ## A model from a motion
#
# Somebody shoves a cube and writes down where cube and puck are, to a tenth of a millimetre. How heavy is the puck,
# and how do the two rub? Along the motion the dependence on the numbers $p$ grows by $dx' = A\, dx + P\, dp$, and
# Gauss and Newton's step is the least-squares solution of what is missing. The logarithms of the numbers move, so
# that they stay positive.

# %%
UNKNOWN = [("body_mass", 2, 0.2), ("dof_frictionloss", 0, 1.2), ("dof_frictionloss", 1, 2.5)]  # and a first guess
true = np.array([getattr(model, field)[i] for field, i, _ in UNKNOWN])
recorded = shove(model, [3.0])[0][0]
recorded = recorded + np.random.default_rng(0).normal(0.0, 1e-4, recorded.shape)

found = fl.load(RAIL.format(reach=0.03))
numbers = np.array([guess for *_, guess in UNKNOWN])
for step in range(12):
    for (field, i, _), number in zip(UNKNOWN, numbers, strict=True):
        getattr(found, field)[i] = number
    fl.set_const(found)
    qpos, qvel = (rows[0] for rows in shove(found, [3.0]))
    rates = derivatives(found, qpos, qvel, parameters=["body_mass", "dof_frictionloss"])
    P = np.stack([rates.P[field][:, :, i] for field, i, _ in UNKNOWN], axis=-1)
    moved = np.zeros((STEPS + 1, 4, len(UNKNOWN)))
    for t in range(STEPS):
        moved[t + 1] = rates.A[t] @ moved[t] + P[t]
    J, error = moved[:, :2].reshape(-1, len(UNKNOWN)) * numbers, (recorded - qpos).ravel()
    print(f"round {step}: {np.round(numbers, 4)}, off by {1000 * np.sqrt(np.mean(error**2)):.2f} mm")
    change = np.linalg.lstsq(J, error)[0]
    numbers = numbers * np.exp(np.clip(change, -0.5, 0.5))
    if abs(change).max() < 1e-4:
        break
assert abs(numbers / true - 1).max() < 0.01

# %% [markdown]
# With more unknown numbers, and contacts that come and go, a step may be too long:
# [identify.py](../../examples/identify.py) tries many side by side.

# %% [markdown]
# ## A motion from a cost
#
# A pendulum with a motor that is too weak to lift it shall stand up: controls $u_t$ that minimise what it is off at
# the end, and their own effort. Differential dynamic programming does for a motion what a regulator does for a point:
# Riccati's recursion, from the end to the start, along the $A_t$ and $B_t$ of the motion at hand, gives a change of
# the controls $k_t$ and the gains $K_t$ that keep what follows on course,
#
# $$ u_t \leftarrow u_t + \alpha k_t + K_t (x_t^{new} - x_t). $$
#
# How far to go, $\alpha$, is tried in 16 worlds at once.

# %%
PENDULUM = """
<mujoco>
  <option timestep="0.02" integrator="implicitfast"/>
  <worldbody><body><joint name="swing" axis="0 1 0" damping="0.02"/>
    <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="1"/></body></worldbody>
  <actuator><motor joint="swing" ctrlrange="-1 1"/></actuator>
</mujoco>"""
pendulum, T = fl.load(PENDULUM), 150
GOAL, END, EFFORT = np.array([np.pi, 0.0]), np.diag([100.0, 10.0]), 0.05
ALPHA = 0.7 ** np.arange(16)[:, None]


def swing(u, k, K, x):
    """States (T + 1, 16, 2), controls (T, 16, 1) and costs (16,) with each alpha."""
    batch, states, controls = (
        fl.Batch(pendulum, len(ALPHA)),
        np.zeros((T + 1, len(ALPHA), 2)),
        np.zeros((T, len(ALPHA), 1)),
    )
    for t in range(T):
        wanted = u[t] + ALPHA * k[t] + (states[t] - x[t]) @ K[t].T
        batch.ctrl = controls[t] = np.clip(wanted, *pendulum.actuator_ctrlrange.T)
        batch.step()
        states[t + 1] = np.hstack([batch.qpos, batch.qvel])
    off = states[T] - GOAL
    return states, controls, (np.einsum("ni,ij,nj->n", off, END, off) + EFFORT * (controls**2).sum(axis=(0, 2))) / 2


def gains(A, B, x, u):
    """k and K of all steps: Riccati's recursion from the end."""
    k, K, slope, curve = np.zeros((T, 1)), np.zeros((T, 1, 2)), END @ (x[T] - GOAL), END
    for t in reversed(range(T)):
        damped = curve + 1e-2 * np.eye(2)  # keeps the new motion near, where A and B are right
        by_u = EFFORT * u[t] + B[t].T @ slope
        hold = np.linalg.inv(EFFORT * np.eye(1) + B[t].T @ damped @ B[t])
        k[t], K[t] = -hold @ by_u, -hold @ B[t].T @ damped @ A[t]
        closed = A[t] + B[t] @ K[t]
        slope = closed.T @ slope + K[t].T @ (EFFORT * u[t]) + (closed.T @ curve @ B[t] + EFFORT * K[t].T) @ k[t]
        curve = closed.T @ curve @ closed + EFFORT * K[t].T @ K[t]
    return k, K


states, controls, costs = swing(0.1 * np.ones((T, 1)), np.zeros((T, 1)), np.zeros((T, 1, 2)), np.zeros((T, 2)))
history = []
for _ in range(60):
    best = costs.argmin()
    x, u = states[:, best], controls[:, best]
    history.append((costs[best], x))
    path = fl.Batch(pendulum, T)
    path.qpos[:], path.qvel[:], path.ctrl[:] = x[:-1, :1], x[:-1, 1:], u
    step = fl.transition(pendulum, path)
    states, controls, costs = swing(u, *gains(step.A, step.B, x, u), x)
    if costs.min() > history[-1][0] * (1 - 1e-3):
        break
off = np.round(x[T] - GOAL, 3)
print(f"{len(history)} rounds: cost {history[0][0]:.0f} to {history[-1][0]:.3f}, at the end {off} off")
assert abs(x[T] - GOAL).max() < 0.1

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for round_, (_, x) in enumerate(history):
    late = round_ / max(len(history) - 1, 1)
    axes.plot(0.02 * np.arange(T + 1), np.rad2deg(x[:, 0]), color=plt.cm.viridis_r(late), linewidth=0.8 + late)
axes.axhline(180, color="0.6", linestyle="--", linewidth=0.8)
axes.set(xlabel="time [s]", ylabel="angle [degrees]", title="from round to round, later is darker")

# %% [markdown]
# The motor alone holds the pendulum no higher than at a slant: the first rounds learn to swing back first. The same
# with two links, and all dampings tried besides, is [swing_up.py](../../examples/swing_up.py);
# [hop.py](../../examples/hop.py) hops by it, with contacts that nobody planned; and a regulator about a pose, for a
# [humanoid on one leg](../../examples/balance_humanoid.py), is the same recursion at a point.
#
# ## Where derivatives say nothing
#
# Back to the rail. A cube that is too slow never gets to the puck, and the derivative is zero: not small, zero. It is
# right, and no help to who wants the puck to move. Two things help.
#
# *Forces before touch*: with a `margin`, and a `solimp` that begins small and grows over its width, the puck feels
# the cube from a distance on. That is another model; one goes back to the true one in a few rounds.
#
# *Motions at random*: the mean of many motions around the one at hand has a slope where some of them hit. It needs no
# derivative, for it is a covariance of results with what was drawn, and no change of the model. It is noisy, and it
# costs a batch.

# %%
SLOW, SPREAD = 1.6, 0.3
far = fl.load(RAIL.format(reach=0.5))
draws = np.random.default_rng(1).normal(size=256)
places = shove(model, SLOW + SPREAD * draws)[0][:, -1, 1]
smooth = np.mean((places - places.mean()) * draws) / SPREAD
print(
    f"slopes at {SLOW} m/s: {slope(model, SLOW)[1]}, felt from afar {slope(far, SLOW)[1]:.3f}, of the mean {smooth:.3f}"
)
assert slope(model, SLOW)[1] == 0.0 and slope(far, SLOW)[1] > 0.01 and smooth > 0.01

# %% [markdown]
# *Hard contact* has a slope that may mislead. Under the contact model `lcp` a collision is over in one step, so when
# within that step it happens leaves no trace in the derivatives: they are those of the motion that collides in that
# very step. What comes of colliding a step earlier is a jump, and no part of them. A shorter time step does not help:
# with a quarter of it they say the same. Contact that is spread over some steps, as here over 40 ms, has no such jumps.

# %%
hard = fl.load(RAIL.format(reach=0.03))
hard.opt.contact_model, hard.opt.contact_max_vel = "lcp", 0.02
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
speeds = np.linspace(1.5, 3.5, 201)
for panel, kind, title in zip(axes, (model, hard, far), ("soft", "hard: lcp", "felt from 0.5 m on"), strict=True):
    panel.plot(speeds, shove(kind, speeds)[0][:, -1, 1])
    for speed in np.linspace(1.63, 3.37, 8):
        distance, by_speed = slope(kind, speed)
        panel.plot(speed + np.array([-0.1, 0.1]), distance + by_speed * np.array([-0.1, 0.1]), "C1", linewidth=2.5)
    panel.set(title=title, xlabel="speed of the cube [m/s]")
axes[0].set_ylabel("the puck goes [m]")
fast = speeds > 3.0
for kind, name in ((model, "soft"), (hard, "hard")):
    mean = np.polyfit(speeds[fast], shove(kind, speeds[fast])[0][:, -1, 1], 1)[0]
    print(f"{name}: from 3 to 3.5 m/s the slope is {mean:.2f} on the whole, at 3.3 m/s {slope(kind, 3.3)[1]:.2f}")
    assert abs(slope(kind, 3.3)[1] / mean - 1) < 0.15 or kind is hard

# %% [markdown]
# [throw_cube.py](../../examples/throw_cube.py) throws, lands, slides and hits under both contact models, and gets to
# its mark from a throw without a gradient both ways; [Gradients of rollouts](../derivatives.md#smoothed-gradients)
# has more on what helps when. `switching`, which comes with A and B, says how near a contact is to begin or to end:
# where it is tiny, what the derivatives say holds to one side only.
