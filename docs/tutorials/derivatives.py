# %% [markdown]
# # System identification and trajectory optimization by derivatives
#
# `fl.linearize` computes the derivatives of the next state with respect to the state, the controls and the model
# parameters,
#
# $$ dx' = A\, dx + B\, du + P\, dp, $$
#
# including contact. This tutorial uses them for the gradient of a motion, for system identification, and for trajectory
# optimization. The last section shows cases in which derivatives are not useful. [Derivatives](../derivatives.md) has
# the formulas.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

# %% [markdown]
# ## Gradient of a motion
#
# A cube slides along a rail and hits a puck, which slides on. Both have dry friction.

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
    """Returns positions and velocities (n, STEPS + 1, 2) of n worlds, one initial speed of the cube each."""
    batch = fl.Batch(model, len(speeds))
    batch.qvel[:, 0] = speeds
    start = {name: getattr(batch, name)[:, None].copy() for name in ("qpos", "qvel")}
    out = batch.rollout(STEPS, record=("qpos", "qvel"))
    return [np.concatenate([start[name], out[name]], axis=1) for name in start]


# %% [markdown]
# The derivative of a motion is the product of the derivatives of its steps, $dx_T = A_{T-1} \cdots A_1 A_0\, dx_0$. One
# call computes all of them: the states of the motion are stored as the worlds of a batch, and differentiated in
# parallel.


# %%
def derivatives(model, qpos, qvel, **options):
    """Returns the derivatives of each step of a motion, (STEPS + 1, nq) and (STEPS + 1, nv)."""
    path = fl.Batch(model, len(qpos) - 1)
    path.qpos[:], path.qvel[:] = qpos[:-1], qvel[:-1]
    return fl.linearize(model, path, **options)


def slope(model, speed):
    """Returns the puck's position after a second [m], and its derivative with respect to the cube's initial speed."""
    qpos, qvel = shove(model, [speed])
    moved = np.array([0.0, 0.0, 1.0, 0.0])  # d(x, x, v, v) / d(speed of the cube)
    for A in derivatives(model, qpos[0], qvel[0]).A:
        moved = A @ moved
    return qpos[0, -1, 1], moved[1]


distance, exact = slope(model, 3.0)
low, high = shove(model, [3.0 - 1e-5, 3.0 + 1e-5])[0][:, -1, 1]
print(
    f"position {distance:.3f} m; derivative {exact:.6f}, by finite differences {(high - low) / 2e-5:.6f}"
)
assert abs(exact - (high - low) / 2e-5) < 1e-5

# %% [markdown]
# This forward product is the derivative of all states with respect to one number. The gradient of one number with
# respect to the initial state, all controls and all model parameters is a backward product. `fl.rollout_gradient`
# computes it for many worlds at once.

# %%
batch = fl.Batch(model, 2)
batch.qvel[:, 0] = 3.0, 2.5
backwards = fl.rollout_gradient(
    model,
    batch,
    np.zeros((STEPS, 0)),
    loss_gradient=np.tile([0.0, 1.0, 0.0, 0.0], (2, 1)),
)
print("gradient with respect to the speed, at 3 and 2.5 m/s:", backwards.state[:, 2])
assert abs(backwards.state[0, 2] - exact) < 1e-9

# %% [markdown]
# ## System identification
#
# The positions of cube and puck are recorded with a noise of 0.1 mm. Estimate the mass of the puck and the friction of
# both. The sensitivity of the motion to the parameters $p$ follows $dx' = A\, dx + P\, dp$. A Gauss-Newton step is the
# least-squares solution for the residual. The logarithms of the parameters are estimated, so that the parameters stay
# positive.

# %%
UNKNOWN = [
    ("body_mass", 2, 0.2),
    ("dof_frictionloss", 0, 1.2),
    ("dof_frictionloss", 1, 2.5),
]  # field, index, first guess
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
    J, error = (
        moved[:, :2].reshape(-1, len(UNKNOWN)) * numbers,
        (recorded - qpos).ravel(),
    )
    print(
        f"iteration {step}: {np.round(numbers, 4)}, RMS error {1000 * np.sqrt(np.mean(error**2)):.2f} mm"
    )
    change = np.linalg.lstsq(J, error)[0]
    numbers = numbers * np.exp(np.clip(change, -0.5, 0.5))
    if abs(change).max() < 1e-4:
        break
assert abs(numbers / true - 1).max() < 0.01

# %% [markdown]
# With more parameters, and contacts that begin and end, Gauss-Newton steps can be too long.
# [identify.py](../../examples/identify.py) tries many step lengths in parallel.

# %% [markdown]
# ## Trajectory optimization
#
# A pendulum with a weak motor should swing up. The controls $u_t$ minimize the error at the end and the control effort.
# Differential dynamic programming (DDP) applies Riccati's recursion backwards along the $A_t$ and $B_t$ of the current
# motion. It returns the change of the controls $k_t$ and the feedback gains $K_t$,
#
# $$ u_t \leftarrow u_t + \alpha k_t + K_t (x_t^{new} - x_t). $$
#
# A line search tries 16 values of $\alpha$ in parallel.

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
    """Returns states (T + 1, 16, 2), controls (T, 16, 1) and costs (16,), one for each alpha."""
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
    return (
        states,
        controls,
        (
            np.einsum("ni,ij,nj->n", off, END, off)
            + EFFORT * (controls**2).sum(axis=(0, 2))
        )
        / 2,
    )


def gains(A, B, x, u):
    """Returns k and K of all steps by Riccati's recursion from the end."""
    k, K, slope, curve = np.zeros((T, 1)), np.zeros((T, 1, 2)), END @ (x[T] - GOAL), END
    for t in reversed(range(T)):
        damped = curve + 1e-2 * np.eye(
            2
        )  # keeps the new motion close, so that A and B stay valid
        by_u = EFFORT * u[t] + B[t].T @ slope
        hold = np.linalg.inv(EFFORT * np.eye(1) + B[t].T @ damped @ B[t])
        k[t], K[t] = -hold @ by_u, -hold @ B[t].T @ damped @ A[t]
        closed = A[t] + B[t] @ K[t]
        slope = (
            closed.T @ slope
            + K[t].T @ (EFFORT * u[t])
            + (closed.T @ curve @ B[t] + EFFORT * K[t].T) @ k[t]
        )
        curve = closed.T @ curve @ closed + EFFORT * K[t].T @ K[t]
    return k, K


states, controls, costs = swing(
    0.1 * np.ones((T, 1)), np.zeros((T, 1)), np.zeros((T, 1, 2)), np.zeros((T, 2))
)
history = []
for _ in range(60):
    best = costs.argmin()
    x, u = states[:, best], controls[:, best]
    history.append((costs[best], x))
    path = fl.Batch(pendulum, T)
    path.qpos[:], path.qvel[:], path.ctrl[:] = x[:-1, :1], x[:-1, 1:], u
    step = fl.linearize(pendulum, path)
    states, controls, costs = swing(u, *gains(step.A, step.B, x, u), x)
    if costs.min() > history[-1][0] * (1 - 1e-3):
        break
off = np.round(x[T] - GOAL, 3)
print(
    f"{len(history)} iterations: cost {history[0][0]:.0f} to {history[-1][0]:.3f}, final error {off}"
)
assert abs(x[T] - GOAL).max() < 0.1

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for round_, (_, x) in enumerate(history):
    late = round_ / max(len(history) - 1, 1)
    axes.plot(
        0.02 * np.arange(T + 1),
        np.rad2deg(x[:, 0]),
        color=plt.cm.viridis_r(late),
        linewidth=0.8 + late,
    )
axes.axhline(180, color="0.6", linestyle="--", linewidth=0.8)
axes.set(
    xlabel="time [s]",
    ylabel="angle [degrees]",
    title="iterations; later ones are darker",
)

# %% [markdown]
# The motor cannot lift the pendulum directly, so the first iterations learn to swing back first.
# [swing_up.py](../../examples/swing_up.py) applies the same algorithm to two links and tries all regularizations in
# parallel. [hop.py](../../examples/hop.py) hops, with unplanned contacts. The regulator of a [humanoid on one
# leg](../../examples/balance_humanoid.py) is the same recursion at an equilibrium.
#
# ## Zero gradients and random smoothing
#
# This section returns to the cube and the puck. If the cube is too slow to reach the puck, the derivative is exactly
# zero. It is correct, but gives no direction to an optimizer. Two methods help.
#
# *Forces before contact*: with a `margin`, and a `solimp` that starts small and increases over its width, the puck
# feels the cube at a distance. The model differs, so a few iterations with the true model must follow.
#
# *Random smoothing*: the mean over many random motions has a nonzero gradient if some of them hit the puck. It is the
# covariance of results and random inputs, so it needs neither derivatives nor a changed model. It is noisy and requires
# a batch of rollouts.

# %%
SLOW, SPREAD = 1.6, 0.3
far = fl.load(RAIL.format(reach=0.5))
draws = np.random.default_rng(1).normal(size=256)
places = shove(model, SLOW + SPREAD * draws)[0][:, -1, 1]
smooth = np.mean((places - places.mean()) * draws) / SPREAD
print(
    f"derivative at {SLOW} m/s: {slope(model, SLOW)[1]}, with margin {slope(far, SLOW)[1]:.3f}, smoothed {smooth:.3f}"
)
assert slope(model, SLOW)[1] == 0.0 and slope(far, SLOW)[1] > 0.01 and smooth > 0.01

# %% [markdown]
# *Hard contact* can have a misleading gradient. With the contact model `lcp`, a collision ends within one step, and the
# derivatives do not contain the time of the collision within that step. If a collision moves to an earlier step, the
# motion jumps, and the derivatives do not contain the jump. A shorter time step does not help. Contact that lasts
# several steps, here 40 ms, has no such jumps.

# %%
hard = fl.load(RAIL.format(reach=0.03))
hard.opt.contact_model, hard.opt.contact_max_vel = "lcp", 0.02
figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
speeds = np.linspace(1.5, 3.5, 201)
for panel, kind, title in zip(
    axes, (model, hard, far), ("soft", "hard: lcp", "margin of 0.5 m"), strict=True
):
    panel.plot(speeds, shove(kind, speeds)[0][:, -1, 1])
    for speed in np.linspace(1.63, 3.37, 8):
        distance, by_speed = slope(kind, speed)
        panel.plot(
            speed + np.array([-0.1, 0.1]),
            distance + by_speed * np.array([-0.1, 0.1]),
            "C1",
            linewidth=2.5,
        )
    panel.set(title=title, xlabel="speed of the cube [m/s]")
axes[0].set_ylabel("position of the puck [m]")
fast = speeds > 3.0
for kind, name in ((model, "soft"), (hard, "hard")):
    mean = np.polyfit(speeds[fast], shove(kind, speeds[fast])[0][:, -1, 1], 1)[0]
    print(
        f"{name}: mean slope from 3 to 3.5 m/s {mean:.2f}, derivative at 3.3 m/s {slope(kind, 3.3)[1]:.2f}"
    )
    assert abs(slope(kind, 3.3)[1] / mean - 1) < 0.15 or kind is hard

# %% [markdown]
# [throw_cube.py](../../examples/throw_cube.py) optimizes a throw with landing, sliding and impact for both contact
# models, from an initial throw with zero gradient. [Smoothed gradients](../derivatives.md#smoothed-gradients) compares
# the methods. The result's `switching` measures the distance to the beginning or end of a contact. If it is tiny, the
# derivatives hold on one side only.
