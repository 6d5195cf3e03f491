"""Identifies masses, damping and friction from a recorded motion: Gauss-Newton with derivatives through contact.

An arm pushes a puck over a table with known torques.  The recording has its joint angles and the position of the puck,
with noise.
"""

import numpy as np

import featherlane as fl

ROBOT = """<mujoco><option timestep="0.01" integrator="implicitfast" cone="elliptic"/>
  <default><joint axis="0 0 1"/><geom type="capsule" size="0.03" condim="1" contype="0" conaffinity="0"/>
    <default class="foot"><geom type="sphere" size="0.02" mass="0" contype="1"/></default></default>
  <worldbody>
    <geom name="table" type="plane" size="2 2 0.1" condim="3" friction="0.4" priority="1" conaffinity="1"/>
    <body name="upper" pos="0 0 0.1"><joint name="shoulder" damping="3"/><geom fromto="0 0 0 0.3 0 0" mass="1"/>
      <body name="fore" pos="0.3 0 0"><joint name="elbow" damping="1.5"/>
        <geom fromto="0 0 0 0.3 0 0" mass="0.8" contype="2"/></body></body>
    <body name="puck" pos="0.45 0.11 0.1">
      <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/><joint type="slide"/><joint/>
      <geom type="cylinder" size="0.08 0.08" mass="1" conaffinity="2"/><geom class="foot" pos="0.06 0 -0.08"/>
      <geom class="foot" pos="-0.03 0.05 -0.08"/><geom class="foot" pos="-0.03 -0.05 -0.08"/></body>
  </worldbody><actuator><motor joint="shoulder"/><motor joint="elbow"/></actuator></mujoco>"""
STEPS, NOISE = 100, 2e-4  # m and rad
UNKNOWN = {  # unknown: field, index, initial guess
    "mass of the forearm [kg]": ("body_mass", (2,), 1.3),
    "mass of the puck [kg]": ("body_mass", (3,), 0.5),
    "damping of the shoulder [N m s]": ("dof_damping", (0,), 1.5),
    "damping of the elbow [N m s]": ("dof_damping", (1,), 3.0),
    "friction of the table": ("geom_friction", (0, 0), 0.6),
}
FIELDS = sorted({field for field, *_ in UNKNOWN.values()})
# relative dampings of the Gauss-Newton step, tried in one batch
DAMPINGS = 10.0 ** np.arange(-6, 1.5, 0.5)


def motions(model, control, candidates):
    """Return positions and velocities (n, STEPS + 1, nq) of worlds with the parameters (n, unknowns)."""
    batch = fl.Batch(model, len(candidates))
    for k, (field, at, _) in enumerate(UNKNOWN.values()):
        batch.expand(field)[(..., *at)] = candidates[:, k]
    batch.set_const()
    start = {name: getattr(batch, name)[:, None].copy() for name in ("qpos", "qvel")}
    out = batch.rollout(STEPS, control, ("qpos", "qvel"))
    return [np.concatenate([start[name], out[name]], axis=1) for name in start]


def sensitivity(model, control, candidate):
    """Return positions (STEPS + 1, nq) and their derivatives by the unknowns (STEPS + 1, nv, unknowns)."""
    qpos, qvel = (a[0] for a in motions(model, control, candidate[None]))
    path = fl.Batch(model, STEPS)  # each step is a world
    path.qpos[:], path.qvel[:], path.ctrl[:] = qpos[:-1], qvel[:-1], control
    for k, (field, at, _) in enumerate(UNKNOWN.values()):
        path.expand(field)[(..., *at)] = candidate[k]
    path.set_const()
    step = fl.linearize(model, path, parameters=FIELDS)
    P = np.stack(
        [step.P[field][(..., *at)] for field, at, _ in UNKNOWN.values()], axis=-1
    )
    moved = np.zeros((STEPS + 1, 2 * model.nv, len(UNKNOWN)))
    for t in range(STEPS):
        moved[t + 1] = step.A[t] @ moved[t] + P[t]
    return qpos, moved[:, : model.nv]


def main():
    model = fl.load(ROBOT)
    t = model.opt.timestep * np.arange(STEPS)
    control = np.stack([4.0 + 1.5 * np.sin(6 * t), 1.0 + np.sin(9 * t)], axis=1)
    true = np.array([getattr(model, field)[at] for field, at, _ in UNKNOWN.values()])
    recorded = motions(model, control, true[None])[0][0]
    recorded = recorded + np.random.default_rng(0).normal(0.0, NOISE, recorded.shape)

    guess = np.array([first for *_, first in UNKNOWN.values()])
    rounds = 0
    while True:
        rounds += 1
        qpos, moved = sensitivity(model, control, guess)
        # in logarithms, so that parameters stay positive
        error, J = ((recorded - qpos).ravel(), moved.reshape(-1, len(guess)) * guess)
        normal = J.T @ J
        steps = [
            np.linalg.solve(normal + d * np.diag(np.diag(normal)), J.T @ error)
            for d in DAMPINGS
        ]
        candidates = guess * np.exp(np.clip(steps, -1.0, 1.0))
        errors = ((motions(model, control, candidates)[0] - recorded) ** 2).sum(
            axis=(1, 2)
        )
        if errors.min() > (1 - 1e-4) * error @ error:
            break
        guess = candidates[errors.argmin()]
    deviation = guess * np.sqrt(np.diag(np.linalg.inv(normal)) * np.mean(error**2))
    print(
        f"after {rounds} iterations: residual {np.sqrt(np.mean(error**2)):.1e} (m, rad), noise {NOISE:.0e}"
    )
    for name, right, found, sigma in zip(UNKNOWN, true, guess, deviation, strict=True):
        print(f"{name:>32}: {found:.4f} +- {sigma:.4f}, true {right:g}")
    assert abs(guess / true - 1.0).max() < 0.01
    return (
        model,
        recorded,
        motions(
            model, control, np.array([[first for *_, first in UNKNOWN.values()], guess])
        )[0],
    )


if __name__ == "__main__":
    main()
