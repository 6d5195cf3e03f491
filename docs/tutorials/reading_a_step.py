# %% [markdown]
# # The stages of a step
#
# [forward.py](../../src/featherlane/engine/simulation/step/forward.py) lists the stages of a step in order. This
# tutorial calls the same stages one after the other, for a humanoid that has fallen on the floor. It compares the
# output of each stage with its formula in NumPy. The final state is bitwise identical to that of `fl.step`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

model = fl.bundled("humanoid")
data = fl.Data(model)
rng = np.random.default_rng(0)
for _ in range(600):  # the humanoid falls under random controls
    data.ctrl = rng.uniform(-0.3, 0.3, model.nu)
    fl.step(model, data)
whole = fl.Data(model)  # a copy of the state for fl.step
bits = fl.State.INTEGRATION
fl.set_state(model, whole, fl.get_state(model, data, bits), bits)
nv, h = model.nv, model.opt.timestep
print(f"t = {data.time:.2f} s, {nv} DoFs, {model.nbody} bodies")


def check(name, a, b, tolerance=1e-9):
    """Compares two arrays, relative to the largest entry of the first."""
    error = abs(np.asarray(a) - np.asarray(b)).max() / max(
        abs(np.asarray(a)).max(), 1e-12
    )
    print(f"  {name}: {error:.1e}")
    assert error < tolerance, name


# %% [markdown]
# ## Position
#
# `kinematics` goes from the root outwards. A body's frame is its parent's frame, translated by the body's offset and
# moved by its joints. `frames` does the same for geoms and sites. `com_pos` computes the centers of mass, and the
# motion axes $S$ of all DoFs as spatial vectors (`cdof`). Their rotation comes first, and their reference point is the
# center of mass of the kinematic tree.

# %%
fl.stages.kinematics(model, data)
fl.stages.frames(model, data)
fl.stages.com_pos(model, data)
total = model.body_mass[1:].sum()
check(
    "centre of mass",
    (model.body_mass[1:, None] * data.xipos[1:]).sum(0) / total,
    data.subtree_com[1],
)
# the velocity of a point is J qvel, and J follows from S: linear part + angular part x arm
body = model.nbody - 1
jacp, jacr = fl.query.jac_body_com(model, data, body)
arm, above = data.xipos[body] - data.subtree_com[1], []
i = int(model.body_dofadr[body] + model.body_dofnum[body] - 1)
while i >= 0:
    above.append(i)
    i = int(model.dof_parentid[i])
S = data.cdof[above]
check("Jacobian of the last body", jacp[:, above].T, S[:, 3:] + np.cross(S[:, :3], arm))

# %% [markdown]
# `crb` accumulates inertias towards the root and projects them on the axes. The result is the mass matrix $M$; only
# entries of DoFs on a common branch are stored. `factor_m` computes $M = L^T D L$ on the same sparsity pattern, from
# the last DoF to the first.

# %%
fl.stages.tendon(model, data)
fl.stages.crb(model, data)
fl.stages.factor_m(model, data)
fl.stages.transmission(model, data)
M = fl.query.full_m(model, data)
kinetic = np.zeros((nv, nv))
for b in range(1, model.nbody):
    jp, jr = fl.query.jac_body_com(model, data, b)
    R = data.ximat[b].reshape(3, 3)
    kinetic += (
        model.body_mass[b] * jp.T @ jp
        + jr.T @ R @ np.diag(model.body_inertia[b]) @ R.T @ jr
    )
check(
    "M = sum of J^T m J + J^T I J, plus armature",
    kinetic + np.diag(model.dof_armature),
    M,
)
L, D = fl.tree.ltdl(M, model.dof_parentid)
check("L^T D L", L.T @ np.diag(D) @ L, M)
x = rng.standard_normal(nv)
check("M^-1 by the factor", np.linalg.solve(M, x), fl.query.solve_m(model, data, x))

# %% [markdown]
# ## Velocity
#
# Velocities are propagated outwards, followed by recursive Newton-Euler. `qfrc_bias` is the generalized force for zero
# acceleration, $C(q, \dot q)$, which includes gravity. `passive` computes springs and dampers.

# %%
fl.stages.forward_velocity(model, data)
twice = float(data.qvel @ M @ data.qvel)
moving = sum(
    model.body_mass[b]
    * np.sum((fl.query.jac_body_com(model, data, b)[0] @ data.qvel) ** 2)
    for b in range(1, model.nbody)
)
print(f"  kinetic energy {0.5 * twice:.4f} J, translational part {0.5 * moving:.4f} J")
at_rest = fl.Data(model)
at_rest.qpos = data.qpos
fl.forward(model, at_rest)  # at zero velocity the bias is gravity only
gravity = sum(
    model.body_mass[b] * 9.81 * fl.query.jac_body_com(model, at_rest, b)[0][2]
    for b in range(1, model.nbody)
)
check("bias at rest is J^T m g", gravity, at_rest.qfrc_bias)

# %% [markdown]
# ## Forces and unconstrained acceleration
#
# `actuation` computes generalized forces from controls: $\tau = J_a^T (g u + b)$ with the transmission's moments $J_a$,
# gains $g$ and biases $b$. Then $M a_0 = \tau + \tau_{passive} + J^T f_{applied} - C$.

# %%
fl.stages.actuation(model, data)
fl.stages.smooth_acceleration(model, data)
forces = data.qfrc_passive + data.qfrc_actuator + data.qfrc_applied - data.qfrc_bias
check("qfrc_smooth", forces, data.qfrc_smooth)
check("M a0", M @ data.qacc_smooth, forces)

# %% [markdown]
# ## Constraints
#
# `collision` finds the contacts. `make_constraint` makes constraint rows of contacts, limits, friction loss and
# equalities. Each row has a Jacobian $J$, a reference acceleration $a_{ref} = -B\, (J \dot q) - K d\, r$ and a
# regularization $R$. [Convex contact model](../chapters/contact.md#convex-contact-model) describes them.

# %%
fl.stages.collision(model, data)
fl.stages.make_constraint(model, data)
print(
    f"  {data.ncon} contacts, {data.nefc} rows: {data.ne} equality, {data.nf} friction loss, {data.nl} limits"
)
J, aref, R = data.efc_J, data.efc_aref, data.efc_R
K, B, impedance = data.efc_KBIP[:, :3].T
check("J qvel", J @ data.qvel, data.efc_vel)
check(
    "aref", -B * data.efc_vel - K * impedance * (data.efc_pos - data.efc_margin), aref
)
check("R", (1 - impedance) / impedance * data.efc_diagA, R, 1e-8)
assert data.ncon > 0

# %% [markdown]
# `solve` minimizes Gauss's cost. At the solution the gradient vanishes: $M (a - a_0) = J^T f$, with
# $f_i = \max(0, -(J a - a_{ref})_i / R_i)$ for contacts (here with pyramidal cones) and limits.

# %%
fl.stages.solve(model, data)
f, y = data.efc_force, J @ data.qacc - aref
check("M (a - a0) = J^T f", M @ (data.qacc - data.qacc_smooth), J.T @ f, 1e-6)
one_sided = slice(data.ne + data.nf, None)
check("f", np.maximum(0, -y / R)[one_sided], f[one_sided], 1e-6)


def cost(a):
    """Returns Gauss's cost plus the cost of the rows."""
    rows = np.minimum(J @ a - aref, 0)[one_sided]
    return 0.5 * (a - data.qacc_smooth) @ M @ (a - data.qacc_smooth) + 0.5 * np.sum(
        rows**2 / R[one_sided]
    )


assert data.ne + data.nf == 0, "equality and friction rows would cost on both sides"
least = cost(data.qacc)
worse = [cost(data.qacc + 1e-3 * rng.standard_normal(nv)) - least for _ in range(100)]
print(
    f"  cost {least:.4f}; 100 random perturbations increase it by {min(worse):.1e} to {max(worse):.1e}"
)
assert min(worse) > 0

# %% [markdown]
# ## Integration
#
# The Euler integrator treats joint damping implicitly, $(M + h\, \mathrm{diag}(b))\, \Delta v = h (M a)$. It computes
# the new position from the new velocity. `fl.step` does all of this in one call, with a bitwise identical result.

# %%
velocity, acceleration = data.qvel.copy(), data.qacc.copy()
damped = M + h * np.diag(model.dof_damping)
fl.stages.euler(model, data)
check(
    "new velocity", velocity + h * np.linalg.solve(damped, M @ acceleration), data.qvel
)
fl.step(model, whole)
assert np.array_equal(whole.qpos, data.qpos) and np.array_equal(
    whole.qvel, data.qvel
), "bitwise identical"
print("  the stages and fl.step are bitwise identical")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.spy(M, markersize=4)
left.set(title="nonzero entries of M", xlabel="DoF", ylabel="DoF")
right.spy(J, markersize=3, aspect="auto")
right.set(title="nonzero entries of J", xlabel="DoF", ylabel="row")
