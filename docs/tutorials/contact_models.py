# %% [markdown]
# # One state, two contact models
#
# A step asks what forces the contacts give. Featherlane has two answers: MuJoCo's, soft and convex, and ODE's, hard
# and complementary. Here both are asked about the same states. [Contact models and solvers](../contact.md) says which
# to choose, the chapters [on the convex problem](../chapters/convex.md) and [on the LCP](../chapters/lcp.md) what they
# solve.

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
    """A box on a slope: gravity is turned in place of the ground."""
    angle = np.deg2rad(degrees)
    gravity = f"{GRAVITY * np.sin(angle)} 0 {-GRAVITY * np.cos(angle)}"
    model = fl.load(BOX.format(gravity=gravity, mu=MU))
    model.opt.contact_model = contact_model
    return model


# %% [markdown]
# ## The forces of one state
#
# The box lies 0.1 mm deep in level ground, first at rest, then sliding at 1 m/s. Coulomb says: the normal force does
# not ask how fast the box slides, and friction is $\mu$ times it, against the motion.

# %%
found = {}
for contact_model in ("convex", "lcp"):
    for slide in (0.0, 1.0):
        model = slope(0, contact_model)
        data = fl.Data(model)
        data.qpos[2], data.qvel[0] = 0.0999, slide
        fl.forward(model, data)
        normal = sum(fl.contact_force(model, data, k)[0] for k in range(data.ncon))
        found[contact_model, slide] = normal, data.qfrc_constraint[0]
        print(f"{contact_model:>7} at {slide:g} m/s: normal {normal:5.2f} N, friction {data.qfrc_constraint[0]:6.2f} N")
for normal, sideways in (found["convex", 1.0], found["lcp", 1.0]):
    assert np.isclose(sideways, -MU * normal, rtol=1e-6)
assert np.isclose(found["lcp", 0.0][0], found["lcp", 1.0][0])
assert found["convex", 1.0][0] > 5 * found["convex", 0.0][0]

# %% [markdown]
# Both keep Coulomb's ratio. The LCP's normal force is the weight and what it takes to remove a fifth of the depth in
# the step (`opt.erp` = 0.2), sliding or not: $m (g + 0.2\, d / h^2) = 14.8$ N. The convex model has one cost for all
# directions of a contact, and there sliding also presses: the box at 1 m/s is pushed up with five times its weight,
# leaves the ground, and falls back. In the mean over time the ground still carries the weight, no more; in a single
# step it need not.
#
# ## On a slope
#
# With $\mu = 0.6$ the angle of friction is $\arctan \mu = 31°$. Below it a box should stand still, above it slide with
# $a = g (\sin \alpha - \mu \cos \alpha)$, and have gone $a t^2 / 2$.

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
slide = GRAVITY * np.clip(np.sin(np.deg2rad(angles)) - MU * np.cos(np.deg2rad(angles)), 0, None)
law = slide * h**2 * n * (n + 1) / 2  # the sum that semi-implicit steps make of a t^2 / 2
rests = law == 0
for name, x in way.items():
    print(
        f"{name:>7}: should rest, and crept at most {1000 * x[rests].max():.1e} mm in 1 s;"
        f" should slide, and was at most {1000 * abs(x - law)[~rests].max():.1e} mm off"
    )
assert abs(way["lcp"] - law).max() < 1e-9
assert 1e-4 < abs(way["convex"][rests]).max() < 0.02
assert abs(way["convex"] - law)[~rests].max() < 0.02 * law.max()

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
left.plot(angles, law, color="black", linewidth=3, alpha=0.3, label="Coulomb")
for name, x in way.items():
    left.plot(angles, x, "o-", markersize=3, label=name)
left.set(xlabel="slope [degrees]", ylabel="way in 1 s [m]")
left.legend()
for name, x in way.items():
    right.semilogy(angles[rests][1:], 1000 * x[rests][1:], "o-", markersize=3, label=name)
right.set(xlabel="slope [degrees]", ylabel="[mm]", title="way of what should stand still")
right.legend()

# %% [markdown]
# The convex model's box creeps: its friction is a damper, which gives a force along the slope only where something
# slips. A fraction of a millimetre in a second is little for a foot that steps; in a grip that shall hold for a minute
# it adds up ([measured](../contact.md#accuracy-of-the-contact-models)).
#
# ## Falling
#
# A ball drops from half a metre. The convex model's contact is a spring and damper of `solref`, whose rebound is what
# the damping leaves; the LCP is told the part of the speed that comes back.

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
        model.geom_solref[:] = [-40000, -30]  # stiffness [1/s^2] and damping [1/s] themselves
    data, z = fl.Data(model), []
    for _ in range(2000):
        fl.step(model, data)
        z.append(data.qpos[2])
    heights[name] = np.array(z) - 0.1
time = model.opt.timestep * np.arange(1, 2001)
landed = np.argmax(heights["lcp"] < 1e-3)
top = heights["lcp"][landed : landed + 600].max()
print(f"the LCP's ball rises to {top:.3f} m; 0.8^2 of 0.5 m is {0.64 * 0.5:.3f} m")
assert abs(top - 0.32) < 0.01

# %%
figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
for name, z in heights.items():
    axes.plot(time, z, label=name)
axes.set(xlabel="time [s]", ylabel="height [m]")
axes.legend()

# %% [markdown]
# Stated restitution, exact sticking, belts and hard stops speak for the LCP; a smooth answer that has a derivative, an
# inverse and any integrator, for the convex model.
