# %% [markdown]
# # A double pendulum: rigid-body dynamics in NumPy
#
# This tutorial computes the dynamics of a double pendulum with Featherstone's spatial vectors in NumPy: recursive
# Newton-Euler, composite rigid bodies and the articulated-body algorithm. Then it compares the results with the
# engine's. [Kinematics and dynamics](../chapters/dynamics.md) has the equations and the kernels that implement them.

# %%
import matplotlib.pyplot as plt
import numpy as np

import featherlane as fl

LENGTH, MASS, GRAVITY = 0.5, 2.0, 9.81  # of each rod [m], [kg]; [m/s^2]
ABOUT_COM = (
    np.diag([1.0, 1.0, 0.0]) * MASS * LENGTH**2 / 12
)  # inertia of a thin rod along z [kg m^2]

# %% [markdown]
# ## Spatial vectors
#
# A motion is $\hat v = (\omega, v)$: the angular velocity of a body, and the linear velocity of its point at the
# frame's origin. A force is $\hat f = (n, f)$: the moment about that point, and the force. Moving the frame by $r$ and
# rotating it by $E$ transforms motions by
#
# $$ X = \begin{pmatrix} E & 0 \\ -E\, r\times & E \end{pmatrix}, \qquad
#    r\times = \begin{pmatrix} 0 & -r_3 & r_2 \\ r_3 & 0 & -r_1 \\ -r_2 & r_1 & 0 \end{pmatrix} $$
#
# and forces, in the opposite direction, by $X^T$. The matrix $\hat v \times$ is the time derivative of a motion in a
# frame that moves with $\hat v$. For forces it is $\hat v \times^* = -(\hat v \times)^T$.


# %%
def skew(r):
    """The matrix of r x."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


def transform(E, r):
    """X, from the parent's frame to one at r, turned by E."""
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = E
    X[3:, :3] = -E @ skew(r)
    return X


def cross_motion(v):
    """The matrix of v x on motions; on forces it is -cross_motion(v).T."""
    C = np.zeros((6, 6))
    C[:3, :3] = C[3:, 3:] = skew(v[:3])
    C[3:, :3] = skew(v[3:])
    return C


# the inertia of a rod in its body's frame: the centre of mass is at c = (0, 0, -l / 2), below the hinge
c = skew([0.0, 0.0, -LENGTH / 2])
I = np.block([[ABOUT_COM + MASS * c @ c.T, MASS * c], [MASS * c.T, MASS * np.eye(3)]])
S = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])  # both hinges turn about y
PARENT = [-1, 0]
OFFSET = [
    np.zeros(3),
    np.array([0.0, 0.0, -LENGTH]),
]  # of each hinge in its parent's frame
G = np.array(
    [0.0, 0.0, 0.0, 0.0, 0.0, GRAVITY]
)  # gravity is an upward acceleration of the base


def turn(q):
    """E of a rotation of the frame by q about y: coordinates of the parent to those of the body."""
    return np.array([[np.cos(q), 0, -np.sin(q)], [0, 1, 0], [np.sin(q), 0, np.cos(q)]])


# %% [markdown]
# ## Inverse dynamics: recursive Newton-Euler
#
# Velocities and accelerations are propagated outwards from the base, forces inwards from the tips:
#
# $$ v_i = X_i v_{\lambda(i)} + S \dot q_i, \qquad a_i = X_i a_{\lambda(i)} + S \ddot q_i + v_i \times S \dot q_i $$
#
# $$ f_i = I a_i + v_i \times^* I v_i + \sum_{j: \lambda(j) = i} X_j^T f_j, \qquad \tau_i = S^T f_i $$


# %%
def rnea(q, qd, qdd):
    """Joint torques that give the accelerations qdd."""
    n = len(q)
    X = [transform(turn(q[i]), OFFSET[i]) for i in range(n)]
    v, a, f = [None] * n, [None] * n, [None] * n
    for i in range(n):
        before, a_before = (
            (np.zeros(6), G) if PARENT[i] < 0 else (v[PARENT[i]], a[PARENT[i]])
        )
        v[i] = X[i] @ before + S * qd[i]
        a[i] = X[i] @ a_before + S * qdd[i] + cross_motion(v[i]) @ S * qd[i]
        f[i] = I @ a[i] - cross_motion(v[i]).T @ I @ v[i]
    tau = np.zeros(n)
    for i in reversed(range(n)):
        tau[i] = S @ f[i]
        if PARENT[i] >= 0:
            f[PARENT[i]] = f[PARENT[i]] + X[i].T @ f[i]
    return tau


# %% [markdown]
# ## Mass matrix: composite rigid bodies
#
# The composite inertia of hinge $i$ is that of all bodies beyond it, as if welded together:
# $I^c_i = I + \sum_j X_j^T I^c_j X_j$. A unit acceleration of hinge $i$ requires the force $I^c_i S$. Its component at
# each hinge towards the base is an entry of the mass matrix: $H_{ij} = S^T X_{ij}^T I^c_i S$.


# %%
def crba(q):
    """The joint-space inertia matrix H."""
    n = len(q)
    X = [transform(turn(q[i]), OFFSET[i]) for i in range(n)]
    composite, H = [I.copy() for _ in range(n)], np.zeros((n, n))
    for i in reversed(range(n)):
        if PARENT[i] >= 0:
            composite[PARENT[i]] += X[i].T @ composite[i] @ X[i]
        f, j = composite[i] @ S, i
        H[i, i] = S @ f
        while PARENT[j] >= 0:
            f, j = X[j].T @ f, PARENT[j]
            H[i, j] = H[j, i] = S @ f
    return H


# %% [markdown]
# ## Forward dynamics: articulated bodies
#
# From the tips inwards, each body gets an articulated inertia $I^A$: its apparent inertia if the hinges beyond it move
# freely:
#
# $$ U = I^A S, \quad D = S^T U, \quad u = \tau - S^T p^A, \qquad
#    I^A_{\lambda} \leftarrow I^A_{\lambda} + X^T \left( I^A - U D^{-1} U^T \right) X $$
#
# Then the accelerations follow outwards, $\ddot q = D^{-1} (u - U^T a')$. The algorithm takes $O(n)$ operations and
# does not form the mass matrix $H$.


# %%
def aba(q, qd, tau):
    """Accelerations under the torques tau."""
    n = len(q)
    X = [transform(turn(q[i]), OFFSET[i]) for i in range(n)]
    v, bias, IA, pA = [None] * n, [None] * n, [I.copy() for _ in range(n)], [None] * n
    U, D, u = [None] * n, np.zeros(n), np.zeros(n)
    for i in range(n):
        v[i] = S * qd[i] + (0.0 if PARENT[i] < 0 else X[i] @ v[PARENT[i]])
        bias[i] = cross_motion(v[i]) @ S * qd[i]
        pA[i] = -cross_motion(v[i]).T @ I @ v[i]
    for i in reversed(range(n)):
        U[i] = IA[i] @ S
        D[i], u[i] = S @ U[i], tau[i] - S @ pA[i]
        if PARENT[i] >= 0:
            Ia = IA[i] - np.outer(U[i], U[i]) / D[i]
            pa = pA[i] + Ia @ bias[i] + U[i] * u[i] / D[i]
            IA[PARENT[i]] += X[i].T @ Ia @ X[i]
            pA[PARENT[i]] = pA[PARENT[i]] + X[i].T @ pa
    qdd, a = np.zeros(n), [None] * n
    for i in range(n):
        a[i] = X[i] @ (G if PARENT[i] < 0 else a[PARENT[i]]) + bias[i]
        qdd[i] = (u[i] - U[i] @ a[i]) / D[i]
        a[i] = a[i] + S * qdd[i]
    return qdd


# %% [markdown]
# ## Comparison with the engine
#
# The same model in MJCF, without contacts. MuJoCo's integrator `Euler` computes the new position from the new velocity.
# This is the semi-implicit rule $\dot q' = \dot q + h \ddot q$, $q' = q + h \dot q'$.

# %%
ROD = f"""<geom type="capsule" size=".02" fromto="0 0 0 0 0 {-LENGTH}" mass="0" contype="0" conaffinity="0"/>
  <inertial pos="0 0 {-LENGTH / 2}" mass="{MASS}" diaginertia="{ABOUT_COM[0, 0]} {ABOUT_COM[1, 1]} 1e-12"/>"""
model = fl.load(f"""
<mujoco>
  <option timestep=".001" gravity="0 0 {-GRAVITY}"><flag contact="disable"/></option>
  <compiler balanceinertia="false" boundinertia="0"/>
  <worldbody>
    <body name="upper"><joint name="shoulder" axis="0 1 0"/>{ROD}
      <body name="lower" pos="0 0 {-LENGTH}"><joint name="elbow" axis="0 1 0"/>{ROD}</body>
    </body>
  </worldbody>
</mujoco>""")
data = fl.Data(model)
q, qd, tau = np.array([0.7, -1.1]), np.array([2.0, 3.0]), np.array([0.3, -0.2])
data.qpos, data.qvel, data.qfrc_applied = q, qd, tau
fl.forward(model, data)

errors = {
    "bias C(q, v)": abs(rnea(q, qd, np.zeros(2)) - data.qfrc_bias).max(),
    "inertia H(q)": abs(crba(q) - fl.query.full_m(model, data)).max(),
    "acceleration": abs(aba(q, qd, tau) - data.qacc).max(),
    "RNEA of ABA": abs(rnea(q, qd, aba(q, qd, tau)) - tau).max(),
}
for name, error in errors.items():
    print(f"{name:>15}: largest difference {error:.1e}")
assert max(errors.values()) < 1e-9

# %% [markdown]
# The rods are thin and have no inertia about their own axes. MuJoCo requires a positive value, so the model has
# $10^{-12}$ kg m² there. These hinges never rotate a rod about its axis, so the value has no effect.
#
# ## Simulate two seconds
#
# A double pendulum that is released from a high position is chaotic: differences grow exponentially. The two
# implementations round differently, so they diverge eventually. After two seconds they still agree to $10^{-10}$ rad.

# %%
steps, h = 2000, model.opt.timestep
start = np.array([2.4, 0.4])
by_hand, q, qd = np.zeros((steps, 2)), start.copy(), np.zeros(2)
for k in range(steps):
    qd = qd + h * aba(q, qd, np.zeros(2))
    q = q + h * qd
    by_hand[k] = q

batch = fl.Batch(model, 1)
batch.qpos = start
by_engine = batch.rollout(steps, record="qpos")
difference = abs(by_engine["qpos"][0] - by_hand).max(axis=1)
print(
    f"after {steps * h:g} s: difference {difference[-1]:.1e} rad, angles {np.round(by_hand[-1], 3)} rad"
)
assert difference[-1] < 1e-10

# %%
time = h * np.arange(1, steps + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(time, np.rad2deg(by_hand), label=["shoulder", "elbow"])
left.set(xlabel="time [s]", ylabel="angle [degrees]", title="NumPy")
left.legend()
right.semilogy(time, np.maximum(difference, 1e-17), color="tab:red")
right.set(
    xlabel="time [s]", ylabel="[rad]", title="difference between NumPy and engine"
)

# %% [markdown]
# ## Differences in the engine
#
# - The engine expresses all vectors of a kinematic tree at one point, the tree's center of mass, in world axes. $X$ is
#   then the identity between bodies, and its products disappear.
# - A joint has up to six axes. `model.dof_parentid` is the parent of each DoF, as `PARENT` is here.
# - The engine factors $H$ on the sparsity pattern of the tree, or uses articulated bodies for long trees:
#   [Sparsity](../chapters/sparsity.md).
