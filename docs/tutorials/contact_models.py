# %% [markdown]
# # Two contact models on the same states
#
# Featherlane has three contact models. This tutorial applies two of them to the same states: MuJoCo's convex (soft)
# model, and ODE's LCP model (hard contact with complementarity). The [decision guide](../decision-guide.md) helps to
# choose. [Contact models](../chapters/contact.md) derives the equations.
#
# Select a contact model, and pull the boxes with the mouse ([how it works](../browser.md)):
#
# <!-- live: box_stack -->

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

GRAVITY, MU = 9.81, 0.6
BOX = """
<mujoco>
  <option timestep=".002" gravity="{gravity}"/>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 .1" friction="{mu}"/>
    <body name="box" pos="0 0 .1"><freejoint/><geom size=".1 .1 .1" type="box" mass="1" friction="{mu}"/></body>
  </worldbody>
</mujoco>"""


def slope(degrees, contact_model):
    """Returns a model of a box on a slope; gravity is tilted instead of the ground."""
    angle = np.deg2rad(degrees)
    gravity = f"{GRAVITY * np.sin(angle)} 0 {-GRAVITY * np.cos(angle)}"
    model = fl.load(BOX.format(gravity=gravity, mu=MU))
    model.opt.contact_model = contact_model
    return model


# %% [markdown]
# ## Contact forces of one state
#
# The box penetrates level ground by 0.1 mm. It is at rest first, then slides at 1 m/s. By Coulomb's law, the normal
# force does not depend on the sliding velocity, and the friction force is $\mu$ times the normal force, opposite to the
# motion.

# %%
found = {}
for contact_model in ("convex", "lcp"):
    for slide in (0.0, 1.0):
        model = slope(0, contact_model)
        data = fl.Data(model)
        data.qpos[2], data.qvel[0] = 0.0999, slide
        fl.forward(model, data)
        normal = sum(
            fl.query.contact_force(model, data, k)[0] for k in range(data.ncon)
        )
        found[contact_model, slide] = normal, data.qfrc_constraint[0]
        print(
            f"{contact_model:>7} at {slide:g} m/s: normal {normal:5.2f} N, friction {data.qfrc_constraint[0]:6.2f} N"
        )
for normal, sideways in (found["convex", 1.0], found["lcp", 1.0]):
    assert np.isclose(sideways, -MU * normal, rtol=1e-6)
assert np.isclose(found["lcp", 0.0][0], found["lcp", 1.0][0])
assert found["convex", 1.0][0] > 5 * found["convex", 0.0][0]

# %% [markdown]
# Both models satisfy Coulomb's ratio. The LCP's normal force balances the weight and removes a fifth of the penetration
# per step (`opt.erp` = 0.2), at rest and during sliding: $m (g + 0.2\, d / h^2) = 14.8$ N. The convex model has one
# cost for all directions of a contact, so sliding also increases the normal force. The box at 1 m/s is pushed up with
# five times its weight, leaves the ground, and falls back. The mean normal force over time still equals the weight.
#
# ## Friction on a slope
#
# With $\mu = 0.6$ the friction angle is $\arctan \mu = 31°$. On a slope below it, a box should stay at rest. Above it,
# the box slides with $a = g (\sin \alpha - \mu \cos \alpha)$ and covers $a t^2 / 2$.

# %%
angles, way = np.arange(0, 46, 3), {}
for contact_model in ("convex", "lcp"):
    moved = []
    for degrees in angles:
        model = slope(degrees, contact_model)
        data = fl.Data(model)
        for _ in range(500):
            fl.step(model, data)
        moved.append(data.qpos[0])
    way[contact_model] = np.array(moved)
h, n = model.opt.timestep, 500
slide = GRAVITY * np.clip(
    np.sin(np.deg2rad(angles)) - MU * np.cos(np.deg2rad(angles)), 0, None
)
law = slide * h**2 * n * (n + 1) / 2  # a t^2 / 2 as summed by semi-implicit steps
rests = law == 0
for name, x in way.items():
    print(
        f"{name:>7}: largest creep below the friction angle {1000 * x[rests].max():.1e} mm in 1 s;"
        f" largest error above it {1000 * abs(x - law)[~rests].max():.1e} mm"
    )
assert abs(way["lcp"] - law).max() < 1e-9
assert 1e-4 < abs(way["convex"][rests]).max() < 0.02
assert abs(way["convex"] - law)[~rests].max() < 0.02 * law.max()

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
left.plot(angles, law, color="black", linewidth=3, alpha=0.3, label="Coulomb")
for name, x in way.items():
    left.plot(angles, x, "o-", markersize=3, label=name)
left.set(xlabel="slope [degrees]", ylabel="distance in 1 s [m]")
left.legend()
for name, x in way.items():
    right.semilogy(
        angles[rests][1:], 1000 * x[rests][1:], "o-", markersize=3, label=name
    )
right.set(
    xlabel="slope [degrees]", ylabel="[mm]", title="creep below the friction angle"
)
right.legend()

# %% [markdown]
# The convex model's box creeps: its friction force is that of a damper, so it requires a slip velocity. Creep is small
# for a foot during a step, but it adds up in a grasp that must hold for a minute ([accuracy of the contact
# models](../contact-benchmark.md#accuracy-of-the-contact-models)).
#
# ## Restitution
#
# A ball drops from 0.5 m. The convex model's contact is a spring and damper (`solref`), and the rebound depends on the
# damping. The LCP model has a coefficient of restitution (`geom_restitution`).

# %%
BALL = """
<mujoco>
  <option timestep=".001"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .6"><freejoint/><geom size=".1" mass="1"/></body>
  </worldbody>
</mujoco>"""
heights = {}
for name in ("convex", "convex, stiff", "lcp"):
    model = fl.load(BALL)
    if name == "lcp":
        model.opt.contact_model = "lcp"
        model.geom_restitution[:] = 0.8
    if name == "convex, stiff":
        model.geom_solref[:] = [
            -40000,
            -30,
        ]  # negative values: stiffness [1/s^2] and damping [1/s]
    data, z = fl.Data(model), []
    for _ in range(2000):
        fl.step(model, data)
        z.append(data.qpos[2])
    heights[name] = np.array(z) - 0.1
time = model.opt.timestep * np.arange(1, 2001)
landed = np.argmax(heights["lcp"] < 1e-3)
top = heights["lcp"][landed : landed + 600].max()
print(
    f"the LCP's ball rebounds to {top:.3f} m; expected 0.8^2 * 0.5 m = {0.64 * 0.5:.3f} m"
)
assert abs(top - 0.32) < 0.01

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for name, z in heights.items():
    axes.plot(time, z, label=name)
axes.set(xlabel="time [s]", ylabel="height [m]")
axes.legend()

# %% [markdown]
# Choose the LCP model for a specified restitution, exact sticking, belts and hard stops. Choose the convex model for
# smooth derivatives, inverse dynamics and a free choice of the integrator.
