# %% [markdown]
# # Sensors
#
# This tutorial compares simulated sensors with analytic values, adds noise, and defines a sensor.
# [Features](../features.md) lists the supported sensor types; [Sensors](../sensors.md) describes how to read them.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

LENGTH, MASS, GRAVITY = 0.8, 1.5, 9.81

# %% [markdown]
# ## A pendulum with sensors
#
# The model is a heavy ball on a light rod. An inertial measurement unit (IMU) is in the ball, and a force sensor at the
# hinge. A rangefinder points from the ball along the rod, away from the hinge.

# %%
model = fl.load(f"""
<mujoco>
  <option timestep=".001" integrator="RK4"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1" pos="0 0 -2"/>
    <body name="bob" pos="0 0 0">
      <joint name="hinge" axis="0 1 0"/>
      <site name="pivot"/>
      <geom size=".05" pos="0 0 {-LENGTH}" mass="{MASS}" contype="0" conaffinity="0"/>
      <site name="unit" pos="0 0 {-LENGTH}" zaxis="0 0 -1"/>
    </body>
  </worldbody>
  <sensor>
    <jointpos name="angle" joint="hinge"/>
    <gyro name="gyro" site="unit"/>
    <accelerometer name="accelerometer" site="unit"/>
    <force name="force" site="pivot"/>
    <rangefinder name="range" site="unit"/>
  </sensor>
</mujoco>""")
data = fl.Data(model)
fl.forward(model, data)
print("hanging at rest:")
for name in ("gyro", "accelerometer", "force", "range"):
    print(f"  {name:>13} {np.round(data.sensor(name).data, 4) + 0.0}")

# %% [markdown]
# An accelerometer measures acceleration minus gravity. At rest it measures $g$ upwards. The IMU's z axis points down
# along the rod, so the value is $-9.81$ in z. The force sensor measures the force from the parent (here the world) on
# the body: $m g = 14.7$ N upwards. The rangefinder starts at the center of the ball and ignores the geoms of that body.
#
# ## Comparison with analytic values
#
# For the pendulum at the angle $\theta$ from the vertical,
#
# $$ \ddot \theta = -\frac{m l g \sin \theta}{I}, \qquad a_{along} = -(l \dot \theta^2 + g \cos \theta) $$
#
# with $I = m l^2 + \frac{2}{5} m r^2$ for a ball of radius $r$. The accelerometer measures $a_{along}$ along the rod,
# and $l \ddot \theta + g \sin \theta$ across it.

# %%
batch = fl.Batch(model, 3)
batch.qpos[:, 0] = [0.3, 1.2, 2.4]
out = batch.rollout(3000, record=("sensordata", "qpos", "qvel"))
# sensor data of a step belong to the state before it, so the first row is that of the initial state
columns = {}
for i in range(model.nsensor):
    first = model.sensor_adr[i]
    columns[model.sensor(i).name] = out["sensordata"][
        ..., first : first + model.sensor_dim[i]
    ]
angle, rate = columns["angle"][..., 0], columns["gyro"][..., 1]

inertia = MASS * LENGTH**2 + 0.4 * MASS * 0.05**2
turning = -MASS * LENGTH * GRAVITY * np.sin(angle) / inertia
along = -(LENGTH * rate**2 + GRAVITY * np.cos(angle))
across = LENGTH * turning + GRAVITY * np.sin(angle)
errors = {
    "accelerometer along the rod": abs(columns["accelerometer"][..., 2] - along).max(),
    "accelerometer across it": abs(
        abs(columns["accelerometer"][..., 0]) - abs(across)
    ).max(),
    "force at the hinge": abs(
        np.linalg.norm(columns["force"], axis=-1) - MASS * np.hypot(along, across)
    ).max(),
}
for name, error in errors.items():
    print(f"{name:>28}: largest error {error:.1e}")
assert max(errors.values()) < 1e-9
assert np.array_equal(angle[:, 1:], out["qpos"][:, :-1, 0]), (
    "sensor data belong to the state before the step"
)

# %%
time = model.opt.timestep * np.arange(3000)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for world, start in enumerate(("0.3", "1.2", "2.4")):
    left.plot(time, columns["accelerometer"][world, :, 2], label=f"from {start} rad")
    distance = columns["range"][world, :, 0]
    right.plot(time, np.where(distance < 0, np.nan, distance))
left.set(xlabel="time [s]", ylabel="along the rod [m/s^2]", title="accelerometer")
left.legend()
right.set(
    xlabel="time [s]",
    ylabel="[m]",
    ylim=(0, 5),
    title="rangefinder; no hit above the horizon",
)

# %% [markdown]
# ## Sensor noise
#
# A step adds no noise, so that it remains a function of its state. `fl.add_sensor_noise` adds noise afterwards, with
# the standard deviations `model.sensor_noise`. Sampling periods and delays are attributes of the sensor (`interval`,
# `delay`); their samples are part of the state.

# %%
model.sensor_noise[:] = 0.0
model.sensor_noise[model.sensor("accelerometer").id] = 0.2
noisy, again = out["sensordata"].copy(), out["sensordata"].copy()
for values in (noisy, again):  # in place; the same seed gives the same noise
    fl.add_sensor_noise(model, values, np.random.default_rng(0))
first = model.sensor_adr[model.sensor("accelerometer").id]
deviation = (noisy - out["sensordata"])[..., first : first + 3].std()
print(f"deviation {deviation:.3f} m/s^2 on the accelerometer, 0.2 specified")
assert abs(deviation - 0.2) < 0.01 and np.array_equal(noisy, again)

# %% [markdown]
# ## User-defined sensors
#
# A sensor of type `user` is a function. A plain Python function gets all worlds at once and reads derived fields. These
# are the fields after the step; with RK4 they belong to the last of the four stages. A kernel is evaluated together
# with the built-in sensors instead: [User callbacks](own_functions.py). The example measures the height of the ball.

# %%
own = fl.load("""
<mujoco>
  <option timestep=".001"/>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0"/>
      <geom size=".05" pos="0 0 -.8" mass="1.5" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <sensor><user name="height" dim="1" needstage="pos"/></sensor>
</mujoco>""")


def height(model, xipos):
    """Returns the height of the ball above its lowest position: (..., nbody, 3) in, (..., 1) out."""
    return xipos[..., 1, 2:] + 0.8


fl.set_user_sensor(own, "height", height, reads=("xipos",))
worlds = fl.Batch(own, 3)
worlds.qpos[:, 0] = [0.3, 1.2, 2.4]
out = worlds.rollout(100, record=("sensordata", "qpos"))
expected = 0.8 * (1 - np.cos(out["qpos"][:, :-1, 0]))
print("heights at the start:", np.round(out["sensordata"][:, 0, 0], 4), "m")
assert np.allclose(out["sensordata"][:, 1:, 0], expected, atol=1e-12)

# %% [markdown]
# ## Derivatives of sensors
#
# For filters and observers, `fl.linearize` with `sensors=True` computes $C$ and $D$ of $y = C x + D u$. The IMU's
# frame is rotated about x, so its y axis is opposite to the hinge's.

# %%
at_rest = fl.Data(model)
A, B, C, D = fl.linearize(model, at_rest, sensors=True, method="finite_difference")[:4]
print(
    "d angle / d (angle, rate) =",
    np.round(C[0], 6),
    "  d gyro_y / d rate =",
    np.round(C[2, 1], 6),
)
assert np.allclose(C[0], [1, 0], atol=1e-6) and np.isclose(C[2, 1], -1, atol=1e-6)
