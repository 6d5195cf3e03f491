# %% [markdown]
# # User-defined actuators, sensors and controllers
#
# Python functions can define actuators with their own dynamics, sensors, and controllers within the step. [User
# callbacks](../callbacks.md) has the rules. [Kernel language](../kernel-language.md) lists the Python that kernels
# support.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl
from featherlane.lanes import fmax, fmin, pow_

# %% [markdown]
# ## A pneumatic cylinder
#
# A piston of area $A$ lifts a load by compressed air. Compression is adiabatic: $p = p_0 (n / (1 + x / l))^{\gamma}$.
# Here $n$ is the amount of air relative to that of the cylinder at rest. A valve adds or removes air at a rate
# proportional to the control. The activation of the actuator is $n - 1$, and its force is $A (p - p_0)$.

# %%
LIFT = """
<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody>
    <body name="load"><joint name="rod" type="slide" axis="0 0 1" damping="300"/><geom size=".1" mass="20"/></body>
  </worldbody>
  <actuator>  <!-- dynprm: rate of the valve [1/s]; gainprm: area [m^2], pressure outside [Pa], length [m] -->
    <general name="cylinder" joint="rod" ctrlrange="-1 1" dyntype="user" dynprm="0.4" actdim="1" gaintype="user"
             gainprm="0.002 1e5 0.3"/>
  </actuator>
  <sensor><user name="pressure" dim="1" needstage="acc"/></sensor>
</mujoco>"""
GAMMA = 1.4


@fl.kernel
def valve(m, d, i):
    """Returns n' = rate u, the rate of the amount of air."""
    return m.actuator_dynprm[i][0] * d.actuator_input[m.actuator_ctrladr[i]]


@fl.kernel
def over_pressure(m, d, i):
    """Returns p - p0 [Pa] of cylinder i; the volume is at least 1 % of that at rest, the amount of air at least 0."""
    x, n = d.actuator_length[m.actuator_outadr[i]], d.act[m.actuator_actadr[i]] + 1.0
    room = fmax(1.0 + x / m.actuator_gainprm[i][2], 0.01)
    return m.actuator_gainprm[i][1] * (pow_(fmax(n, 0.0) / room, GAMMA) - 1.0)


@fl.kernel
def piston(m, d, i):
    """Returns the force on the rod [N]."""
    return m.actuator_gainprm[i][0] * over_pressure(m, d, i)


# %% [markdown]
# An actuator's force is `gain * act + bias` (without `actearly`). A force that is not proportional to the activation is
# therefore defined by `bias=piston` and a gain of 0. Registration evaluates the functions at `qpos0`, and compiles them
# for single worlds and for tiles in both precisions. Errors name the element and the line.


# %%
@fl.kernel
def nothing(m, d, i):
    """Returns the gain 0: no force proportional to the activation."""
    return 0.0


model = fl.load(LIFT.replace('gaintype="user"', 'gaintype="user" biastype="user"'))
fl.set_user_actuator(model, "cylinder", activation=valve, gain=nothing, bias=piston)

batch = fl.Batch(model, 5)
batch.ctrl[:, 0] = np.linspace(0.2, 1.0, 5)
filled = batch.rollout(1000, record=("qpos", "act"))["qpos"][:, :, 0]
batch.ctrl[:] = 0.0
held = batch.rollout(4000, record=("qpos", "actuator_force"))
weight = 20 * 9.81
print(
    "air added:",
    np.round(batch.act[:, 0], 3),
    " positions",
    np.round(batch.qpos[:, 0], 4),
    "m",
)
print(
    "forces [N]:",
    np.round(held["actuator_force"][:, -1, 0], 3),
    " weight",
    round(weight, 3),
)
assert np.allclose(batch.act[:, 0], 0.4 * np.linspace(0.2, 1.0, 5)), (
    "rate x valve x one second"
)
assert np.allclose(held["actuator_force"][:, -1, 0], weight, rtol=1e-5), (
    "it holds the load"
)

# equilibrium: A p0 ((n / (1 + x / l))^gamma - 1) = m g, solved for x
expected = 0.3 * ((1 + batch.act[:, 0]) / (1 + weight / 0.002 / 1e5) ** (1 / GAMMA) - 1)
assert np.allclose(batch.qpos[:, 0], expected, atol=1e-5)

# %%
time = model.opt.timestep * np.arange(1, 5001)
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for valve_opening, x in zip(
    np.linspace(0.2, 1.0, 5), np.hstack([filled, held["qpos"][:, :, 0]]), strict=True
):
    axes.plot(time, 1000 * x, label=f"valve {valve_opening:.1f}")
axes.set(xlabel="time [s]", ylabel="rod [mm]", title="valve open for 1 s, then closed")
axes.legend(loc="center right")

# %% [markdown]
# ## Sensor and controller kernels
#
# A kernel can also be a sensor, and it can call other kernels such as `over_pressure`. A controller `f(m, d)` writes
# `d.ctrl` in each step, after positions and velocities are computed and before forces are. Both are compiled into the
# step, so a rollout of thousands of worlds never returns to Python.


# %%
@fl.kernel
def pressure(m, d, i):
    """Returns the over-pressure in the first cylinder [bar]."""
    return 1e-5 * over_pressure(m, d, 0)


@fl.kernel
def level(m, d):
    """Holds the rod at 50 mm by PD control."""
    d.ctrl[0] = fmin(fmax(25.0 * (0.05 - d.qpos[0]) - 2.0 * d.qvel[0], -1.0), 1.0)


fl.set_user_sensor(model, "pressure", pressure)
batch = fl.Batch(model, 64)
batch.expand("body_mass")[:, 1] = np.linspace(5, 60, 64)
batch.set_const()
out = batch.rollout(12000, control=level, record=("sensordata", "qpos"))
bar = out["sensordata"][:, -1, 0]
rest = batch.expanded("body_mass")[:, 1] * 9.81 / 0.002 * 1e-5
print(
    f"loads of 5 to 60 kg are held at {1000 * batch.qpos.min():.2f} to {1000 * batch.qpos.max():.2f} mm"
)
assert np.allclose(bar, rest, rtol=1e-3), "the pressure balances each load"
assert abs(batch.qpos - 0.05).max() < 1e-3

# %% [markdown]
# ## Plain Python functions
#
# If speed does not matter, an actuator can be any Python function, including NumPy. It is written in the same form as a
# kernel, and called world by world in each step. Sensors and controllers in plain Python get all worlds at once.


# %%
def slow_piston(m, d, i):
    """Returns the same force in plain Python, for one world at a time."""
    x, n = d.actuator_length[m.actuator_outadr[i]], d.act[m.actuator_actadr[i]] + 1.0
    return 0.002 * 1e5 * ((max(n, 0.0) / max(1.0 + x / 0.3, 0.01)) ** GAMMA - 1.0)


plain = fl.load(LIFT.replace('gaintype="user"', 'gaintype="user" biastype="user"'))
fl.set_user_actuator(
    plain, "cylinder", activation=valve, gain=nothing, bias=slow_piston
)
one, other = fl.Data(model), fl.Data(plain)
for _ in range(300):
    one.ctrl = other.ctrl = 0.7
    fl.step(model, one)
    fl.step(plain, other)
print(
    f"difference of compiled and plain Python after 300 steps: {abs(one.qpos - other.qpos).max():.1e} m"
)
assert abs(one.qpos - other.qpos).max() < 1e-12

# %% [markdown]
# ## Errors of kernels
#
# Python that kernels do not support raises an error at registration, which names the violated rule:


# %%
@fl.kernel
def branches(m, d, i):
    """Branches on a value that differs by world, which kernels do not support."""
    if d.actuator_length[i] > 0.0:
        return 1.0
    return 0.0


try:
    fl.set_user_actuator(
        model, "cylinder", activation=valve, gain=branches, bias=piston
    )
except fl.ModelError as error:
    print(str(error).splitlines()[0][:160], "...")
else:
    raise AssertionError("a branch on a value was accepted")
