# %% [markdown]
# # Inverse dynamics and control
#
# This tutorial implements two classical controllers in a few lines each. Computed torque evaluates the inverse dynamics
# of the model. A linear-quadratic regulator (LQR) uses the derivatives of a step.
#
# The servos of this arm follow waves; pull it with the mouse ([how it works](../browser.md)):
#
# <!-- live: arm -->

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

# %% [markdown]
# ## Computed torque
#
# A torque-driven arm with three joints follows a path $q_d(t)$. The equation of motion is
#
# $$ M(q)\, \ddot q + c(q, \dot q) = \tau $$
#
# Inverse dynamics evaluates the left-hand side for a given acceleration. The controller uses the reference acceleration
#
# $$ \ddot q_{ref} = \ddot q_d + K_d (\dot q_d - \dot q) + K_p (q_d - q) $$
#
# The tracking error then satisfies $\ddot e + K_d \dot e + K_p e = 0$ in every pose.

# %%
ARM = """
<mujoco>
  <option timestep=".001" integrator="implicitfast"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/><joint damping=".4"/></default>
  <worldbody>
    <body><joint name="turn" axis="0 0 1"/><geom fromto="0 0 0 0 0 .4" mass="3"/>
      <body pos="0 0 .4"><joint name="lift" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0" mass="2"/>
        <body pos=".4 0 0"><joint name="bend" axis="0 1 0"/><geom fromto="0 0 0 .4 0 0" mass="1.5"/></body></body>
    </body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="lift"/><motor joint="bend"/></actuator>
</mujoco>"""
KP, KD, SECONDS = 400.0, 40.0, 4.0


def path(t):
    """Position, velocity and acceleration of the reference path."""
    size, rate = np.array([0.9, 0.6, 0.8]), np.array([1.5, 2.0, 3.0])
    return (
        size * np.sin(rate * t),
        size * rate * np.cos(rate * t),
        -size * rate**2 * np.sin(rate * t),
    )


def track(model, law):
    """Returns the errors over time, from an initial error of 0.1 rad."""
    data, errors = fl.Data(model), []
    data.qpos, data.qvel = path(0.0)[0] + 0.1, path(0.0)[1]
    for _ in range(round(SECONDS / model.opt.timestep)):
        q, v, a = path(data.time)
        data.ctrl = law(data, q - data.qpos, v - data.qvel, a)
        fl.step(model, data)
        errors.append(path(data.time)[0] - data.qpos)
    return np.array(errors)


# %% [markdown]
# `fl.inverse` reads `qpos`, `qvel` and `qacc` of a `Data` and writes `qfrc_inverse`. The controller uses a second
# `Data`, so that the simulation is not modified. Its model may also differ: one of the three runs uses a model with a
# last link that is 20 % too light.

# %%
model = fl.load(ARM)


def computed_torque(believed):
    """Returns a control law that uses its own model."""
    inside = fl.Data(believed)

    def law(data, e, de, acceleration):
        inside.qpos, inside.qvel, inside.qacc = (
            data.qpos,
            data.qvel,
            acceleration + KD * de + KP * e,
        )
        fl.inverse(believed, inside)
        return inside.qfrc_inverse

    return law


light = fl.load(ARM)
light.body_mass[3] *= 0.8
light.body_inertia[3] *= 0.8
fl.set_const(light)
runs = {
    "computed torque": track(model, computed_torque(model)),
    "computed torque, last link 20 % too light": track(model, computed_torque(light)),
    "PD control": track(model, lambda data, e, de, a: 0.5 * (KD * de + KP * e)),
}
late = {name: np.rad2deg(abs(e[len(e) // 2 :]).max()) for name, e in runs.items()}
for name, worst in late.items():
    print(f"{name:>41}: largest error {worst:6.3f} degrees in the second half")
exact, wrong, plain = late.values()
assert exact < 0.05 < wrong < plain

# %%
time = model.opt.timestep * np.arange(1, len(runs["computed torque"]) + 1)
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for name, e in runs.items():
    axes.semilogy(time, np.maximum(np.rad2deg(abs(e).max(axis=1)), 1e-4), label=name)
axes.set(xlabel="time [s]", ylabel="largest error [degrees]")
axes.legend()

# %% [markdown]
# The error decreases as $e^{-20 t}$, since $s^2 + 40 s + 400$ has a double root at -20. It ends at the discretization
# error of the time step of 1 ms.
#
# ## Linear-quadratic regulator
#
# Near an equilibrium, $x' = A x + B u$ for small $x$ and $u$. `fl.linearize` with `method="finite_difference"` computes
# $A$ and $B$ by finite differences of whole steps; $x$ consists of the position (per DoF), the velocity and the
# activations. The gains that minimize $\sum x^T Q x + u^T R u$ follow from the Riccati equation
#
# $$ P = Q + A^T P (A - B K), \qquad K = (R + B^T P B)^{-1} B^T P A. $$

# %%
cartpole = fl.bundled("cartpole")
upright = fl.Data(cartpole)
A, B = fl.linearize(cartpole, upright, method="finite_difference")[:2]
Q, R = np.diag([1.0, 10.0, 0.1, 0.1]), np.eye(1)
P = Q
for _ in range(3000):
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    P = Q + A.T @ P @ (A - B @ K)
before, after = abs(np.linalg.eigvals(A)).max(), abs(np.linalg.eigvals(A - B @ K)).max()
print(
    f"largest |eigenvalue| without control {before:.4f}, with {after:.4f}; K = {np.round(K[0], 2)}"
)
assert after < 1 < before

# %% [markdown]
# What is the largest initial angle that the regulator recovers from? A batch simulates all angles of a grid at once.
# The control function computes the controls of all worlds. The motor force is limited (`ctrlrange`), so the linear
# control law fails beyond some angle.

# %%
low, high = cartpole.actuator_ctrlrange[0]
leans = np.linspace(-1.0, 1.0, 201)
batch = fl.Batch(cartpole, len(leans))
batch.qpos[:, 1] = leans


def regulate(batch, step):
    return np.clip(-np.hstack([batch.qpos, batch.qvel]) @ K.T, low, high)


angle = batch.rollout(round(6.0 / cartpole.opt.timestep), regulate, "qpos")["qpos"][
    :, :, 1
]
caught = abs(angle[:, -1]) < 0.01
print(f"balanced from up to {np.rad2deg(abs(leans[caught]).max()):.0f} degrees")
assert caught[abs(leans) < 0.2].all() and not caught[[0, -1]].any()

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
time = cartpole.opt.timestep * np.arange(1, angle.shape[1] + 1)
for world in range(0, len(leans), 10):
    axes.plot(
        time,
        np.rad2deg(angle[world]),
        color="C0" if caught[world] else "C1",
        linewidth=0.9,
    )
axes.set(
    xlabel="time [s]",
    ylabel="pole [degrees]",
    ylim=(-100, 100),
    title="balanced (blue) and not balanced (orange)",
)

# %% [markdown]
# `fl.linearize` also computes derivatives of sensors (`sensors=True` returns C and D) and of all worlds of a batch. Its
# default, `method="analytic"`, is faster and more accurate. `fl.inverse_derivatives` differentiates inverse dynamics.
# [balance_pole.py](../../examples/balance_pole.py) shows the effect of dry friction on the gains.
# [jacobian.py](../../examples/jacobian.py) computes inverse kinematics.
