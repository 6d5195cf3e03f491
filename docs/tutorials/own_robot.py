# %% [markdown]
# # Your own robot
#
# This tutorial models a desk lamp with three joints in MJCF, and makes it nod. The first version has two frequent
# modelling mistakes.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

# %% [markdown]
# ## The model
#
# MJCF is MuJoCo's XML format. Bodies are nested, and each has a frame in its parent's frame. Joints move a body. Geoms
# define its shape and, by their density, its mass. `<default>` sets attributes for all elements that follow. `fl.load`
# takes MJCF text, a path, a URDF file, a `mujoco.MjModel` or a `mujoco.MjSpec`; `fl.bundled` loads a bundled model.

# %%
LAMP = """
<mujoco model="lamp">
  <option timestep="0.002"/>
  <default>
    <geom type="capsule" size="0.015" density="1200"/>
    <joint axis="0 1 0" damping="0.05" armature="0.002"/>
    <position kp="{kp}" kv="{kv}" ctrlrange="-2.5 2.5"/>
  </default>
  <worldbody>
    <geom name="desk" type="plane" size="1 1 .1"/>
    <body name="foot" pos="0 0 0.02">
      <freejoint/>
      <geom name="foot" type="cylinder" size="0.12 0.02" density="4000"/>
      <body name="lower" pos="0 0 0.02">
        <joint name="shoulder" range="-60 60"/>
        <geom fromto="0 0 0.02 0 0 0.3"/>
        <body name="upper" pos="0 0 0.3">
          <joint name="elbow" range="-150 10"/>
          <geom fromto="0 0 0 0 0 0.25"/>
          <body name="head" pos="0 0 0.25">
            <joint name="wrist" range="-120 120"/>
            <geom type="cylinder" size="0.05 0.03"/>
            <site name="bulb" pos="0 0 0.03"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="shoulder" joint="shoulder"/>
    <position name="elbow" joint="elbow"/>
    <position name="wrist" joint="wrist"/>
  </actuator>
</mujoco>"""

model = fl.load(LAMP.format(kp=5000, kv=0))
print(
    f"{model.nbody} bodies, {model.nq} coordinates, {model.nv} DoFs, {model.nu} actuators"
)
for body in range(1, model.nbody):
    print(f"  {model.body(body).name:6} {model.body_mass[body]:6.3f} kg")
assert (model.nq, model.nv, model.nu) == (10, 9, 3)

# %% [markdown]
# A free joint has seven coordinates (position and quaternion) and six DoFs, so `nq` is one more than `nv`.
# `featherlane inspect lamp.xml` prints the same as a table, with the body tree and the supported features.
#
# ## Check the model
#
# `fl.diagnose` checks a model for implausible parameters before the first step. `featherlane diagnose` is the same
# check as a command.

# %%
findings = fl.diagnose(model)
for finding in findings:
    print(finding)
assert {finding.check for finding in findings if finding.severity == "error"} == {
    "step-unstable"
}

# %% [markdown]
# The first mistake is the stiffness. `kp` of 5000 N m/rad on an inertia of 0.0025 kg m² is a spring with
# $\omega = \sqrt{k / I} = 1400$ rad/s. With a time step $h = 2$ ms, $h \omega = 2.8$, and an explicit spring is stable
# up to 2. The simulation therefore diverges:

# %%
data = fl.Data(model)
data.ctrl = [0.5, -1.2, 0.9]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", fl.NonFiniteWarning)
    for _ in range(500):
        fl.step(model, data)
        if caught:
            break
print(str(caught[0].message)[:60], "...")
assert data.status["non_finite"] == 1

# %% [markdown]
# The second mistake is `kv="0"`: a servo without damping oscillates. The lamp needs a lower stiffness, and damping near
# the critical value $2 \sqrt{k I}$, which the check computes:

# %%
model = fl.load(LAMP.format(kp=20, kv=1.5))
findings = fl.diagnose(model)
print(findings or "no findings")
assert not [finding for finding in findings if finding.severity != "note"]

# %% [markdown]
# ## Simulate it
#
# The lamp moves to a pose, then nods. Fields are live arrays with MuJoCo's names. Elements are accessible by name.

# %%
data, nod = fl.Data(model), []
pose = np.array([0.5, -1.2, 0.9])
for _ in range(2000):
    data.ctrl = pose * min(1.0, data.time) + [
        0.0,
        0.0,
        0.3 * np.sin(6 * data.time) * (data.time > 2),
    ]
    fl.step(model, data)
    nod.append([data.time, *data.qpos[-3:], *data.ctrl])
nod = np.array(nod)
print(
    "the bulb is at",
    np.round(data.site("bulb").xpos, 3),
    "m, the foot at",
    np.round(data.body("foot").xpos, 4),
)
print(
    f"{data.ncon} contacts, {data.solver_niter} iterations, residual {data.solver_residual:.0e}, status {data.status}"
)
assert not any(data.status.values())
assert abs(data.body("foot").xpos[:2]).max() < 1e-3, "the foot does not move"

# %% [markdown]
# As a check, the mean contact force from the desk must equal the lamp's weight.

# %%
force, weight = 0.0, model.body_mass.sum() * 9.81
for _ in range(1047):  # two periods of the nod, 2 pi / 6 s each
    data.ctrl = pose + [0.0, 0.0, 0.3 * np.sin(6 * data.time)]
    fl.step(model, data)
    force += sum(
        fl.query.contact_force(model, data, k)[0] for k in range(data.ncon)
    )  # along the normal
print(f"mean contact force {force / 1047:.2f} N, weight {weight:.2f} N")
assert abs(force / 1047 - weight) < 0.01 * weight

# %%
names = [model.joint(j).name for j in range(1, 4)]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for k, name in enumerate(names):
    left.plot(nod[:, 0], np.rad2deg(nod[:, 1 + k]), color=f"C{k}", label=name)
    left.plot(
        nod[:, 0], np.rad2deg(nod[:, 4 + k]), color=f"C{k}", linestyle=":", linewidth=1
    )
left.set(
    xlabel="time [s]", ylabel="[degrees]", title="joint angles and targets (dotted)"
)
left.legend()
for time in (0.02, 0.5, 1.0, 4.0):
    fl.reset_data(model, data)
    for _ in range(round(time / model.opt.timestep)):
        data.ctrl = pose * min(1.0, data.time)
        fl.step(model, data)
    x, _, z = np.vstack([data.xpos[1:], data.site("bulb").xpos]).T
    right.plot(x, z, "o-", label=f"{time:g} s")
right.set(
    xlabel="x [m]", ylabel="z [m]", title="the lamp", aspect="equal", xlim=(-0.3, 0.6)
)
right.legend(loc="upper right")

# %% [markdown]
# The elbow is three degrees off: the servo is a spring of 20 N m/rad, and it deflects under the weight. A higher `kp`
# reduces the error, within the stability limit of $h \omega$. [Computed torque](control.py) compensates gravity.
#
# Next: [a thousand worlds](thousand_worlds.py), [sensors](sensors.py), or the other [model
# checks](../diagnostics.md#model-checks-featherlane-diagnose). `featherlane simulate lamp.xml --video lamp.mp4` records
# a video.
