# %% [markdown]
# # Inverse dynamics and control
#
# Two classics, each in a few lines: computed torque, which asks the model for the torques of a motion, and a
# linear-quadratic regulator, which asks it for the derivatives of a step.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

# %% [markdown]
# ## Computed torque
#
# An arm of three joints, driven by torques, shall follow a path $q_d(t)$. The equation of motion is
#
# $$ M(q)\, \ddot q + c(q, \dot q) = \tau $$
#
# and inverse dynamics evaluates its left side for any acceleration. So we ask for the torque of
#
# $$ \ddot q_{ref} = \ddot q_d + K_d (\dot q_d - \dot q) + K_p (q_d - q) $$
#
# and what remains of the error obeys $\ddot e + K_d \dot e + K_p e = 0$, whatever the pose.

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
    """Position, velocity and acceleration of what is asked for."""
    size, rate = np.array([0.9, 0.6, 0.8]), np.array([1.5, 2.0, 3.0])
    return size * np.sin(rate * t), size * rate * np.cos(rate * t), -size * rate**2 * np.sin(rate * t)


def track(model, law):
    """Errors over time, from a start that is off by a tenth of a radian."""
    data, errors = fl.Data(model), []
    data.qpos, data.qvel = path(0.0)[0] + 0.1, path(0.0)[1]
    for _ in range(round(SECONDS / model.opt.timestep)):
        q, v, a = path(data.time)
        data.ctrl = law(data, q - data.qpos, v - data.qvel, a)
        fl.step(model, data)
        errors.append(path(data.time)[0] - data.qpos)
    return np.array(errors)


# %% [markdown]
# `fl.inverse` reads `qpos`, `qvel` and `qacc` of a data and writes `qfrc_inverse`. It runs on a data of its own, a
# second one, so that nothing of the simulation is touched. That model may be another one: here also one that believes
# the last link to be a fifth lighter than it is.

# %%
model = fl.load(ARM)


def computed_torque(believed):
    """A control law with a model of its own."""
    inside = fl.Data(believed)

    def law(data, e, de, acceleration):
        inside.qpos, inside.qvel, inside.qacc = data.qpos, data.qvel, acceleration + KD * de + KP * e
        fl.inverse(believed, inside)
        return inside.qfrc_inverse

    return law


light = fl.load(ARM)
light.body_mass[3] *= 0.8
light.body_inertia[3] *= 0.8
fl.set_const(light)
runs = {
    "computed torque": track(model, computed_torque(model)),
    "with a last link too light by a fifth": track(model, computed_torque(light)),
    "springs and dampers alone": track(model, lambda data, e, de, a: 0.5 * (KD * de + KP * e)),
}
late = {name: np.rad2deg(abs(e[len(e) // 2 :]).max()) for name, e in runs.items()}
for name, worst in late.items():
    print(f"{name:>36}: at most {worst:6.3f} degrees off in the second half")
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
# The error falls as $e^{-20 t}$, a double root of $s^2 + 40 s + 400$, down to what a step of a millisecond leaves.
#
# ## A linear-quadratic regulator
#
# About a state that stays, $x' = A x + B u$ for small $x$ and $u$. `fl.transition_fd` gives both, by differences of
# whole steps: $x$ is the position (by freedoms), the velocity and the activations. The gains that minimise
# $\sum x^T Q x + u^T R u$ follow from the Riccati equation
#
# $$ P = Q + A^T P (A - B K), \qquad K = (R + B^T P B)^{-1} B^T P A. $$

# %%
cartpole = fl.load("cartpole")
upright = fl.Data(cartpole)
A, B = fl.transition_fd(cartpole, upright)
Q, R = np.diag([1.0, 10.0, 0.1, 0.1]), np.eye(1)
P = Q
for _ in range(3000):
    K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    P = Q + A.T @ P @ (A - B @ K)
before, after = abs(np.linalg.eigvals(A)).max(), abs(np.linalg.eigvals(A - B @ K)).max()
print(f"largest |eigenvalue| without control {before:.4f}, with {after:.4f}; K = {np.round(K[0], 2)}")
assert after < 1 < before

# %% [markdown]
# How far may the pole lean at the start? A batch tries all of a grid at once; the control is a function of all its
# worlds. The motor is limited (`ctrlrange`), so the linear law fails from some angle on.

# %%
low, high = cartpole.actuator_ctrlrange[0]
leans = np.linspace(-1.0, 1.0, 201)
batch = fl.Batch(cartpole, len(leans))
batch.qpos[:, 1] = leans


def regulate(batch, step):
    return np.clip(-np.hstack([batch.qpos, batch.qvel]) @ K.T, low, high)


angle = batch.rollout(round(6.0 / cartpole.opt.timestep), regulate, "qpos")["qpos"][:, :, 1]
caught = abs(angle[:, -1]) < 0.01
print(f"caught from at most {np.rad2deg(abs(leans[caught]).max()):.0f} degrees")
assert caught[abs(leans) < 0.2].all() and not caught[[0, -1]].any()

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
time = cartpole.opt.timestep * np.arange(1, angle.shape[1] + 1)
for world in range(0, len(leans), 10):
    axes.plot(time, np.rad2deg(angle[world]), color="C0" if caught[world] else "C1", linewidth=0.9)
axes.set(xlabel="time [s]", ylabel="pole [degrees]", ylim=(-100, 100), title="caught, and not caught (orange)")

# %% [markdown]
# More: derivatives of sensors (`sensors=True` gives C and D), of a step of several time steps, of all worlds of a
# batch, and of inverse dynamics, `fl.inverse_fd`. [balance_pole.py](../../examples/balance_pole.py) shows what dry
# friction does to gains, and [jacobian.py](../../examples/jacobian.py) inverse kinematics.
