# %% [markdown]
# # Reading a step
#
# [forward.py](../../src/featherlane/simulation/step/forward.py) lists what a step computes, in order. Here we call the
# same stages one after the other, on a humanoid that has fallen on the floor, and hold what each one writes against
# its formula in NumPy. At the end stands the state that `fl.step` gives, bit for bit.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

model = fl.load("humanoid")
data = fl.Data(model)
rng = np.random.default_rng(0)
for _ in range(600):  # it falls, kicking
    data.ctrl = rng.uniform(-0.3, 0.3, model.nu)
    fl.step(model, data)
whole = fl.Data(model)  # the same state, to be stepped as a whole
bits = fl.State.INTEGRATION
fl.set_state(model, whole, fl.get_state(model, data, bits), bits)
nv, h = model.nv, model.opt.timestep
print(f"t = {data.time:.2f} s, {nv} freedoms, {model.nbody} bodies")


def check(name, a, b, tolerance=1e-9):
    """Hold two arrays against each other, relative to the size of the first."""
    error = abs(np.asarray(a) - np.asarray(b)).max() / max(abs(np.asarray(a)).max(), 1e-12)
    print(f"  {name}: {error:.1e}")
    assert error < tolerance, name


# %% [markdown]
# ## Position
#
# `kinematics` goes from the root outwards: a body's frame is its parent's, moved by the body's offset and turned by
# its joints. `frames` does the same for geoms and sites, `com_pos` finds centres of mass, and the axes $S$ of all
# freedoms as spatial vectors (`cdof`), rotation first, at the centre of mass of the whole tree.

# %%
fl.stages.kinematics(model, data)
fl.stages.frames(model, data)
fl.stages.com_pos(model, data)
total = model.body_mass[1:].sum()
check("centre of mass", (model.body_mass[1:, None] * data.xipos[1:]).sum(0) / total, data.subtree_com[1])
# the velocity of a point is J qvel, and J follows from S: linear part + angular part x arm
body = model.nbody - 1
jacp, jacr = fl.jac_body_com(model, data, body)
arm, above = data.xipos[body] - data.subtree_com[1], []
i = int(model.body_dofadr[body] + model.body_dofnum[body] - 1)
while i >= 0:
    above.append(i)
    i = int(model.dof_parentid[i])
S = data.cdof[above]
check("Jacobian of the last body", jacp[:, above].T, S[:, 3:] + np.cross(S[:, :3], arm))

# %% [markdown]
# `crb` adds inertias up towards the root and projects them on the axes: the inertia matrix $M$, of which only what
# lies on one branch is stored. `factor_m` takes it apart as $M = L^T D L$ on the same pattern, from the last freedom
# up.

# %%
fl.stages.tendon(model, data)
fl.stages.crb(model, data)
fl.stages.factor_m(model, data)
fl.stages.transmission(model, data)
M = fl.full_m(model, data)
kinetic = np.zeros((nv, nv))
for b in range(1, model.nbody):
    jp, jr = fl.jac_body_com(model, data, b)
    R = data.ximat[b].reshape(3, 3)
    kinetic += model.body_mass[b] * jp.T @ jp + jr.T @ R @ np.diag(model.body_inertia[b]) @ R.T @ jr
check("M is the sum of J^T m J + J^T I J, and armature", kinetic + np.diag(model.dof_armature), M)
L, D = fl.tree.ltdl(M, model.dof_parentid)
check("L^T D L", L.T @ np.diag(D) @ L, M)
x = rng.standard_normal(nv)
check("M^-1 by the factor", np.linalg.solve(M, x), fl.solve_m(model, data, x))

# %% [markdown]
# ## Velocity
#
# Velocities outwards, then recursive Newton-Euler: `qfrc_bias` is what torques would have to give if nothing
# accelerated, $C(q, \dot q)$ with gravity in it. `passive` has springs and dampers.

# %%
fl.stages.forward_velocity(model, data)
twice = float(data.qvel @ M @ data.qvel)
moving = sum(
    model.body_mass[b] * np.sum((fl.jac_body_com(model, data, b)[0] @ data.qvel) ** 2) for b in range(1, model.nbody)
)
print(f"  kinetic energy {0.5 * twice:.4f} J, of it translations {0.5 * moving:.4f} J")
at_rest = fl.Data(model)
at_rest.qpos = data.qpos
fl.forward(model, at_rest)  # without velocity the bias is gravity alone
gravity = sum(model.body_mass[b] * 9.81 * fl.jac_body_com(model, at_rest, b)[0][2] for b in range(1, model.nbody))
check("bias at rest is J^T m g", gravity, at_rest.qfrc_bias)

# %% [markdown]
# ## Forces, and the acceleration without constraints
#
# `actuation` makes forces of controls: $\tau = J_a^T (g u + b)$ with the transmission's moments $J_a$, gains $g$ and
# biases $b$. Then $M a_0 = \tau + \tau_{passive} + J^T f_{applied} - C$.

# %%
fl.stages.actuation(model, data)
fl.stages.smooth_acceleration(model, data)
forces = data.qfrc_passive + data.qfrc_actuator + data.qfrc_applied - data.qfrc_bias
check("qfrc_smooth", forces, data.qfrc_smooth)
check("M a0", M @ data.qacc_smooth, forces)

# %% [markdown]
# ## Constraints
#
# `collision` finds the contacts, `make_constraint` makes rows of them and of limits, friction loss and equalities:
# each has a Jacobian $J$, a reference acceleration $a_{ref} = -B\, (J \dot q) - K d\, r$ and a regularisation $R$,
# all told in [Convex contact model](../chapters/convex.md).

# %%
fl.stages.collision(model, data)
fl.stages.make_constraint(model, data)
print(f"  {data.ncon} contacts, {data.nefc} rows: {data.ne} equality, {data.nf} friction loss, {data.nl} limits")
J, aref, R = data.efc_J, data.efc_aref, data.efc_R
K, B, impedance = data.efc_KBIP[:, :3].T
check("J qvel", J @ data.qvel, data.efc_vel)
check("aref", -B * data.efc_vel - K * impedance * (data.efc_pos - data.efc_margin), aref)
check("R", (1 - impedance) / impedance * data.efc_diagA, R, 1e-8)
assert data.ncon > 0

# %% [markdown]
# `solve` minimises Gauss's cost. Its solution is where the gradient vanishes: $M (a - a_0) = J^T f$ with
# $f_i = \max(0, -(J a - a_{ref})_i / R_i)$ for contacts (pyramids here) and limits.

# %%
fl.stages.solve(model, data)
f, y = data.efc_force, J @ data.qacc - aref
check("M (a - a0) = J^T f", M @ (data.qacc - data.qacc_smooth), J.T @ f, 1e-6)
one_sided = slice(data.ne + data.nf, None)
check("f", np.maximum(0, -y / R)[one_sided], f[one_sided], 1e-6)


def cost(a):
    """Gauss's cost and that of the rows."""
    rows = np.minimum(J @ a - aref, 0)[one_sided]
    return 0.5 * (a - data.qacc_smooth) @ M @ (a - data.qacc_smooth) + 0.5 * np.sum(rows**2 / R[one_sided])


assert data.ne + data.nf == 0, "else those rows cost on both sides"
least = cost(data.qacc)
worse = [cost(data.qacc + 1e-3 * rng.standard_normal(nv)) - least for _ in range(100)]
print(f"  cost {least:.4f}; a hundred steps aside cost {min(worse):.1e} to {max(worse):.1e} more")
assert min(worse) > 0

# %% [markdown]
# ## The next state
#
# Euler's integrator takes joint damping implicitly, $(M + h\, \mathrm{diag}(b))\, \Delta v = h (M a)$, and the new
# velocity for the new position. That is what `fl.step` does in one call; its bits are these.

# %%
velocity, acceleration = data.qvel.copy(), data.qacc.copy()
damped = M + h * np.diag(model.dof_damping)
fl.stages.euler(model, data)
check("new velocity", velocity + h * np.linalg.solve(damped, M @ acceleration), data.qvel)
fl.step(model, whole)
assert np.array_equal(whole.qpos, data.qpos) and np.array_equal(whole.qvel, data.qvel), "bit for bit"
print("  the stages, one by one, and the step give the same bits")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.spy(M, markersize=4)
left.set(title="entries of M", xlabel="freedom", ylabel="freedom")
right.spy(J, markersize=3, aspect="auto")
right.set(title="entries of J", xlabel="freedom", ylabel="row")
