"""Draws the pictures of the chapters into docs/images: `python docs/images/chapters.py [NAME...]`; half a minute.

Everything drawn is computed: patterns from the model, curves from solves, forces from the rows' own functions.
Needs `pip install '.[jit,plot]'`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import featherlane as fl

IMAGES = Path(__file__).parent
BLUE, ORANGE, GREEN, GREY = "#1f77b4", "#ff7f0e", "#2ca02c", "#888888"


# ---- sparsity --------------------------------------------------------------------------------------------------------
def filled(pattern: np.ndarray) -> np.ndarray:
    """The lower triangle of the Cholesky factor of a matrix with this pattern, eliminated from the first row on."""
    A = pattern.copy()
    for k in range(len(A)):
        below = np.flatnonzero(A[k + 1 :, k]) + k + 1
        A[np.ix_(below, below)] = True
    return np.tril(A)


def dof_positions(parents: np.ndarray) -> np.ndarray:
    """Returns (n, 2), where each DoF is drawn: leaves side by side, parents above the middle of their children."""
    children = [np.flatnonzero(parents == i) for i in range(len(parents))]
    x, leaves = np.zeros(len(parents)), 0
    for i in reversed(range(len(parents))):
        if len(children[i]) == 0:
            x[i], leaves = -leaves, leaves + 1
        else:
            x[i] = x[children[i]].mean()
    return np.column_stack([x, -fl.tree.depth(parents)])


def sparsity():
    """The humanoid's expanded tree, the entries of M and L, and those of a dense order's factor."""
    model = fl.bundled("humanoid")
    parents = model.dof_parentid
    pattern, place = fl.tree.sparsity(parents), dof_positions(parents)
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 4.2), layout="constrained", gridspec_kw={"width_ratios": [0.75, 1, 1]}
    )
    for i, parent in enumerate(parents):
        if parent >= 0:
            axes[0].plot(*place[[i, parent]].T, color=GREY, zorder=1)
    axes[0].scatter(*place.T, s=130, color="white", edgecolor=BLUE, zorder=2)
    for i, (x, y) in enumerate(place):
        axes[0].text(x, y, str(i + 1), fontsize=7, ha="center", va="center", zorder=3)
    axes[0].set(title="expanded tree", xticks=[], yticks=[], ylabel="depth, from the root down")
    shown = np.zeros(pattern.shape)
    shown[pattern] = 1
    shown[np.tril(pattern)] = 2
    axes[1].imshow(shown, cmap=ListedColormap(["white", "#c6dcec", BLUE]))
    axes[1].set(title=f"M, and L of $M = L^T D L$ (dark): {np.tril(pattern).sum()} entries")
    factor = filled(pattern)
    shown = factor * 2.0
    shown[factor & ~pattern] = 3
    axes[2].imshow(shown, cmap=ListedColormap(["white", "white", BLUE, ORANGE]), vmin=0, vmax=3)
    axes[2].set(title=f"Cholesky from the root: {factor.sum()} entries")
    for ax in axes[1:]:
        ticks = [0, 5, 8, 11, 14, 20, 26]
        ax.set(xticks=ticks, yticks=ticks, xticklabels=[t + 1 for t in ticks], yticklabels=[t + 1 for t in ticks])
    return figure


# ---- the convex problem ----------------------------------------------------------------------------------------------
def impedance():
    """d(r) for MuJoCo's default solimp and for others, and the force of a row over its error."""
    from featherlane.engine.constraint.impedance import impedance as d

    r = np.linspace(0, 0.0015, 400)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
    for solimp in (
        (0.9, 0.95, 0.001, 0.5, 2),
        (0.2, 0.95, 0.001, 0.5, 2),
        (0.2, 0.95, 0.001, 0.5, 1),
        (0, 1, 1e-3, 0.3, 4),
    ):
        y = d(tuple(np.full(r.shape, float(v)) for v in solimp), r)
        left.plot(1000 * r, y, label=f"{solimp[0]:g} {solimp[1]:g} {solimp[2]:g} {solimp[3]:g} {solimp[4]:g}")
        right.plot(1000 * r, np.clip(y, 1e-4, 0.9999) / (1 - np.clip(y, 1e-4, 0.9999)))
    left.set(xlabel="|r - margin| [mm]", ylabel="impedance d", title="solimp: dmin dmax width midpoint power")
    left.legend(fontsize=8)
    right.set(xlabel="|r - margin| [mm]", ylabel="d / (1 - d) = A D", yscale="log", title="stiffness of the row")
    return figure


def cones():
    """The zones of an elliptic contact, and the forces that each cone may have."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    mu = 0.7
    D = 1.0
    Dt, E = D / mu**2, D / (1 + mu**2)
    T, y = np.meshgrid(np.linspace(0, 2, 300), np.linspace(-2, 2, 300))
    parts, sticks = y >= T, D * y + Dt * T <= 0
    cost = np.where(parts, 0, np.where(sticks, 0.5 * (D * y**2 + Dt * T**2), 0.5 * E * (T - y) ** 2))
    zone = np.where(parts, 0, np.where(sticks, 2, 1))
    left.contourf(T, y, zone, levels=[-0.5, 0.5, 1.5, 2.5], colors=["white", "#fde3c8", "#c6dcec"])
    lines = left.contour(T, y, cost, levels=[0.1, 0.4, 0.9, 1.6, 2.5], colors="0.35", linewidths=0.9)
    left.clabel(lines, fmt="%g", fontsize=7)
    left.plot([0, 2], [0, 2], color="0.1", linewidth=1.4)
    left.plot([0, 2 * D / Dt], [0, -2], color="0.1", linewidth=1.4)
    for x, at, name, color in (
        (0.25, 1.4, "separated: no force", "0.1"),
        (0.75, -0.05, "slipping: on the cone", "#a04a00"),
        (0.1, -1.75, "sticking", BLUE),
    ):
        left.text(x, at, name, color=color, fontsize=9, bbox={"color": "white", "alpha": 0.75, "pad": 1.5})
    left.set(xlabel="$T$ (tangential)", ylabel="$y_0$ (normal)", title="zones and lines of equal cost", ylim=(-2, 2))
    angle = np.linspace(0, 2 * np.pi, 200)
    right.fill([1, 1, -1, -1], [1, -1, -1, 1], color=GREEN, alpha=0.15)
    right.fill(np.cos(angle), np.sin(angle), color="white")
    right.fill(np.cos(angle), np.sin(angle), color=BLUE, alpha=0.2)
    right.fill([1, 0, -1, 0], [0, 1, 0, -1], color="white")
    right.fill([1, 0, -1, 0], [0, 1, 0, -1], color=ORANGE, alpha=0.3)
    right.plot(
        [1, 1, -1, -1, 1],
        [1, -1, -1, 1, 1],
        color=GREEN,
        linewidth=2,
        linestyle="-.",
        label="LCP: $|f_i| \\leq \\mu f_n$",
    )
    right.plot(np.cos(angle), np.sin(angle), color=BLUE, linewidth=2, label="elliptic: $|f_t| \\leq \\mu f_n$")
    right.plot(
        [1, 0, -1, 0, 1],
        [0, 1, 0, -1, 0],
        "--",
        color="#b35900",
        linewidth=2,
        label="pyramidal: edges $n \\pm \\mu t_i$",
    )
    right.set(
        xlabel="$f_1 / \\mu f_n$",
        ylabel="$f_2 / \\mu f_n$",
        title="friction forces for one normal force",
        aspect="equal",
        xlim=(-1.15, 1.15),
        ylim=(-1.15, 1.15),
        xticks=[-1, 0, 1],
        yticks=[-1, 0, 1],
    )
    right.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
    return figure


def convergence():
    """Cost above its minimum by iteration, of each solver on one state of the humanoid, for both cones; cold starts."""
    model, rng = fl.bundled("humanoid"), np.random.default_rng(0)
    data = fl.Data(model)
    for _ in range(600):  # it falls, kicking
        data.ctrl = rng.uniform(-0.3, 0.3, model.nu)
        fl.step(model, data)
    data.record_solver = True
    model.opt.tolerance, model.opt.iterations, model.opt.disableflags = 0.0, 200, "warmstart"
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for ax, cone in zip(axes, ("pyramidal", "elliptic"), strict=True):
        model.opt.cone, curves = cone, {}
        for solver in ("Newton", "CG", "PGS"):
            model.opt.solver = solver
            fl.forward(model, data)
            curves[solver] = data.solver_history.cost
        best = min(cost.min() for cost in curves.values())
        for solver, cost in curves.items():
            above = np.maximum((cost - best) / abs(best), 1e-16)
            end = np.argmax(above <= 1e-15) + 1 if (above <= 1e-15).any() else len(above)
            ax.semilogy(above[:end], ".-", markersize=4, label=solver)
        ax.set(xlabel="iteration", title=f"{cone}: {data.ncon} contacts, {data.nefc} rows", ylim=(1e-16, None))
    axes[0].set_ylabel("cost above its minimum, relative")
    axes[0].legend()
    return figure


# ---- the LCP ---------------------------------------------------------------------------------------------------------
def tower_problem(cfm: float):
    """The LCP of ten boxes that stand on each other and are pushed: rows normal, tangent, tangent of each contact."""
    model = fl.bundled("box_stack")
    model.opt.cone = "elliptic"
    data = fl.Data(model)
    for _ in range(500):
        fl.step(model, data)
    data.qfrc_applied[0] = 3.0
    fl.forward(model, data)
    J, h, mu = data.efc_J, model.opt.timestep, 0.7
    n = len(J)
    normal = np.arange(n) // 3 * 3
    findex = np.where(np.arange(n) % 3 == 0, -1, normal)
    lo, hi = np.where(findex < 0, 0.0, -mu), np.where(findex < 0, np.inf, mu)
    b = -J @ (data.qvel / h + data.qacc_smooth)
    return fl.lcp.Problem.from_jacobian(J, np.linalg.inv(fl.query.full_m(model, data)), cfm / h, b, lo, hi, findex)


def sweeps():
    """Residual of the LCP by iterations."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained", sharey=True)
    for ax, cfm in zip(axes, (1e-3, 1e-7), strict=True):
        problem = tower_problem(cfm)
        counts = np.unique(np.geomspace(1, 3000, 40).astype(int))
        for method in ("pgs", "apgd"):
            residual = [fl.lcp.solve(problem, method=method, iterations=int(k), tolerance=0.0).residual for k in counts]
            ax.loglog(counts, residual, ".-", markersize=4, label=method)
        exact = fl.lcp.solve(problem)
        ax.plot(exact.iterations, max(exact.residual, 1e-16), "*", markersize=12, color=GREEN, label="dantzig (pivots)")
        ax.set(xlabel="iterations", title=f"{len(exact.x)} rows, CFM {cfm:g}", ylim=(1e-17, 2))
    axes[0].set_ylabel("residual")
    axes[0].legend()
    return figure


def gyroscopic():
    """Kinetic energy of a free spinning body by each torque."""
    figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
    text = """<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body><freejoint/>
      <geom type="box" size=".3 .1 .02" mass="1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    for mode in ("explicit", "implicit"):
        model = fl.load(text)
        model.opt.gyroscopic = mode
        batch = fl.Batch(model, 1)
        batch.qvel[0, 3:] = [0.2, 5.0, 0.1]
        w = batch.rollout(500, record="qvel")["qvel"][0, :, 3:]
        energy = 0.5 * (model.body_inertia[1] * w**2).sum(1)
        ax.plot(0.01 * np.arange(1, 501), energy / energy[0], label=mode)
    ax.set(xlabel="time [s]", ylabel="energy / initial energy", title="freely tumbling plate, time step 10 ms")
    ax.legend()
    return figure


# ---- float32 ---------------------------------------------------------------------------------------------------------
def drift():
    """Difference over time of float32 from float64, and of float64 from float64 with a state perturbed by one ulp."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    for ax, (name, seconds) in zip(
        axes, (("double_pendulum", 12.0), ("quadruped", 3.0), ("humanoid", 3.0)), strict=True
    ):
        model, world = fl.bundled(name), 16
        model.dof_damping[:] *= name != "double_pendulum"
        rng = np.random.default_rng(0)
        start = (2.5 if name == "double_pendulum" else 0.3) * rng.standard_normal((world, model.nv)).astype(np.float32)
        qpos = fl.integrate_pos(model, np.tile(model.qpos0, (world, 1)), start, 1.0).astype(np.float32)
        nstep, runs = round(seconds / model.opt.timestep), {}
        for label, dtype, perturbed in (
            ("a", "float64", 0),
            ("float64, perturbed by one ulp", "float64", 1),
            ("float32", "float32", 0),
        ):
            batch = fl.Batch(model, world, dtype=dtype)
            batch.qpos[:] = qpos
            if perturbed:
                batch.qpos[:, -1] = np.nextafter(batch.qpos[:, -1], 10)
            runs[label] = batch.rollout(nstep, record="qpos")["qpos"].astype(float)
        exact = runs.pop("a")
        time = model.opt.timestep * np.arange(1, nstep + 1)
        for (label, run), color in zip(runs.items(), (GREY, BLUE), strict=True):
            apart = np.median(abs(run - exact).max(-1), axis=0)
            ax.semilogy(time, np.maximum(apart, 1e-17), label=label, color=color)
        ax.set(title=name, xlabel="time [s]", ylim=(1e-17, 10))
    axes[0].set_ylabel("largest difference in qpos, median")
    axes[0].legend(fontsize=8)
    return figure


PICTURES = {f.__name__: f for f in (sparsity, impedance, cones, convergence, sweeps, gyroscopic, drift)}


def main(names):
    """Draw the pictures of these names, or all."""
    for name in names or PICTURES:
        figure = PICTURES[name]()
        figure.savefig(IMAGES / f"{name}.png", dpi=90, pil_kwargs={"optimize": True})
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
