"""Six tasks of SimBenchmark (Hwangbo, Kang et al., leggedrobotics/SimBenchmark), built from its description.

Errors are those of SimBenchmark: means over all steps of a squared error, in SI units.

- rolling: a box of 10 kg pushed by 150 N along the floor, 25 balls of 1 kg on it; error of the velocities of box and
  ball against the closed solution, mu 0.4 below and 0.8 above the box.
- bouncing: 49 balls of 10 kg dropped from 5 m without friction, restitution 1; error of the energy.
- 666: 216 balls of 10 kg fall into a heap without friction, restitution 0; sum of squared penetrations.
- elastic 666: the same with restitution 1, from 1.1 m; error of the energy.
- ANYmal PD: the robot stands on a floor with mu 0.8, joint torques 40 (q0 - q) - v.  SimBenchmark reports its time
  only; we also report its creep.
- ANYmal momentum: without gravity, a ball of 10 kg hits the robot at 5 m/s without friction; error of the momentum.

Errors of the contact positions are not corrected (ERP 0), as in SimBenchmark.  Restitution is `geom_restitution` of the
contact models `lcp` and `coulomb`.  MuJoCo and `convex` have no coefficient; their elastic contacts are springs without
a damper (`solref`).  ANYmal has the masses, axes and diagonal inertias of SimBenchmark's model, with spheres as feet.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from report import markdown

from contact_problems.engines import MUJOCO, Run

GRAVITY = 9.81
# options by engine
VARIANTS = {
    MUJOCO: (MUJOCO, {}),
    "convex": ("convex", {}),
    "lcp dantzig": ("lcp", {"erp": 0.0}),
    "lcp pgs, cone": ("lcp", {"erp": 0.0, "lcp_solver": "pgs", "lcp_cone": "cone"}),
    "coulomb": ("coulomb", {}),
}
RK4 = {"convex, rk4": ("convex", {"integrator": "rk4"})}  # only of the momentum, as in SimBenchmark
RATE = 1000.0  # angular frequency of a contact without damper [1/s]; unstable at step sizes above 2 / RATE
SAMPLES = 1000  # most states at which an error is computed
# best published errors at the step size [s], with engine and seconds of the whole run on a Core i7-7700HQ (2018)
PUBLISHED = {
    ("rolling", 0.001): ("5.7e-09", "Bullet", "0.56"),
    ("bouncing", 0.001): ("0.0186", "RaiSim", "0.24"),
    ("bouncing", 0.01): ("186", "RaiSim", "0.025"),
    ("666", 0.001): ("0.000135", "RaiSim", "1.5"),
    ("666", 0.01): ("0.0153", "RaiSim", "0.17"),
    ("elastic 666", 0.001): ("8.37", "RaiSim", "0.66"),
    ("ANYmal momentum", 0.001): ("1.3e-27", "ODE QuickStep", "1.8"),
    ("ANYmal momentum", 0.01): ("4.0e-28", "ODE QuickStep", "0.18"),
    ("ANYmal PD", 0.005): ("", "RaiSim", "0.41"),
}


@dataclass
class Result:
    """Outcome of a task.

    Attributes:
        error: SimBenchmark's measure, a mean of squares.
        seconds: processor time of all steps.
        note: further facts.
    """

    error: float
    seconds: float
    note: str = ""


def record(run: Run, seconds: float, measure) -> tuple[list, float]:
    """Returns (values of `measure` before steps, the processor time of the steps alone)."""
    steps = round(seconds / run.timestep)
    stride, values, spent = max(1, steps // SAMPLES), [], 0.0
    for k in range(steps):
        if k % stride == 0:
            values.append(measure(k * run.timestep))
        start = time.process_time()
        run.step()
        spent += time.process_time() - start
    return values, spent


def world(timestep: float, bodies: str, contact: str, more: str = "") -> str:
    """A floor and bodies with common contact parameters."""
    return (
        f'<mujoco><option timestep="{timestep}" cone="elliptic" {more}/><default><geom {contact}/></default>'
        f'<worldbody><geom name="floor" type="plane" size="99 99 1"/>{bodies}</worldbody></mujoco>'
    )


def start(text: str, variant: str) -> Run:
    """A run of a variant."""
    engine, options = (VARIANTS | RK4)[variant]
    return Run(text, engine, **options)


# ---- rolling ---------------------------------------------------------------------------------------------------------
FORCE, BOX, BALL, BALLS, BELOW, ABOVE = 150.0, 10.0, 1.0, 25, 0.4, 0.8
ALONG = np.array([0.5, np.sqrt(0.75), 0.0])  # direction of the force


def rolling(variant: str, timestep: float, seconds: float = 4.0) -> Result:
    """The closed solution has a = (F - f - n g) / M for the box and g / m for a ball that rolls."""
    balls = "".join(
        f'<body pos="{2 * i} {2 * j} 1.5"><freejoint/><geom size=".5" mass="{BALL}" friction="{ABOVE} 0 0"/></body>'
        for i in range(-2, 3)
        for j in range(-2, 3)
    )
    box = f'<body pos="0 0 .5"><freejoint/><geom type="box" size="10 10 .5" mass="{BOX}"/></body>'
    run = start(world(timestep, box + balls, f'friction="{BELOW} 0 0"'), variant)
    run.data.xfrc_applied[1, :3] = FORCE * ALONG
    friction = BELOW * (BOX + BALLS * BALL) * GRAVITY
    push = (FORCE - friction) / BOX / (3.5 / BALL + BALLS / BOX)
    exact = np.array([(FORCE - friction - BALLS * push) / BOX, push / BALL])[:, None] * ALONG

    def error(t):
        box, ball = run.data.qvel[:3], run.data.qvel[6:9]
        return np.sum((np.stack([box, ball]) - exact * t) ** 2)

    values, spent = record(run, seconds, error)
    return Result(float(np.mean(values)), spent)


# ---- balls without friction ------------------------------------------------------------------------------------------
def elastic(variant: str, timestep: float, bodies: str, seconds: float) -> Result:
    """The mean squared change of the energy with restitution 1, as a coefficient or by springs without dampers."""
    coefficient = VARIANTS[variant][0] in ("lcp", "coulomb")
    if not coefficient and timestep > 2.0 / RATE:
        return Result(float("nan"), float("nan"), "not run: its undamped contacts are unstable at this step size")
    spring = "" if coefficient else f'solref="{-(RATE**2)} 0"'
    run = start(world(timestep, bodies, f'condim="1" {spring}'), variant)
    if coefficient:
        run.model.geom_restitution[:] = 1.0
    first = run.energy()
    values, spent = record(run, seconds, lambda t: (run.energy() - first) ** 2)
    return Result(float(np.mean(values)), spent)


def bouncing(variant: str, timestep: float, seconds: float = 20.0) -> Result:
    """Each ball bounces 10 times in 20 s if it loses no energy."""
    balls = "".join(
        f'<body pos="{2 * i} {2 * j} 5"><freejoint/><geom size=".1" mass="10"/></body>'
        for i in range(7)
        for j in range(7)
    )
    return elastic(variant, timestep, balls, seconds)


def cube_of_balls(height: float) -> str:
    """6 x 6 x 6 balls 0.21 m apart, each moved by up to 1 mm."""
    place = 0.21 * np.stack(np.meshgrid(*[np.arange(6)] * 3, indexing="ij"), -1).reshape(-1, 3)
    place += 0.001 * np.random.default_rng(42).uniform(size=place.shape) + (0.0, 0.0, height)
    return "".join(
        f'<body pos="{x} {y} {z}"><freejoint/><geom size=".1" mass="10"/></body>' for x, y, z in place.tolist()
    )


def heap(variant: str, timestep: float, seconds: float = 10.0) -> Result:
    """The sum over pairs of balls, and of balls with the floor, of squared penetrations."""
    run = start(world(timestep, cube_of_balls(0.101), 'condim="1"'), variant)
    upper = np.triu_indices(216, 1)

    def error(t):
        p = run.data.qpos.reshape(-1, 7)[:, :3]
        square = np.sum(p * p, 1)
        apart = np.sqrt(np.maximum(square[:, None] + square - 2.0 * p @ p.T, 0.0))[upper]
        return np.sum(np.maximum(0.2 - apart, 0.0) ** 2) + np.sum(np.maximum(0.1 - p[:, 2], 0.0) ** 2)

    values, spent = record(run, seconds, error)
    return Result(float(np.mean(values)), spent)


def elastic_heap(variant: str, timestep: float, seconds: float = 10.0) -> Result:
    """The cube of balls falls 1 m and scatters."""
    return elastic(variant, timestep, cube_of_balls(1.101), seconds)


# ---- ANYmal ----------------------------------------------------------------------------------------------------------
POSE = np.array([[0.03, 0.4, -0.8], [-0.03, 0.4, -0.8], [0.03, -0.4, 0.8], [-0.03, -0.4, 0.8]])  # LF, RF, LH, RH [rad]
KP, KD, HEIGHT = 40.0, 1.0, 0.54


def anymal(height: float) -> tuple[str, str]:
    """Returns the robot with a free base, and position servos on its 12 joints."""
    legs, servos = [], []
    for k, (x, y) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
        servos += [
            f'<general joint="{k}{j}" gainprm="{KP}" biastype="affine" biasprm="0 {-KP} {-KD}"/>' for j in range(3)
        ]
        legs.append(f"""
        <body pos="{0.2629 * x} {0.115 * y} 0"><joint name="{k}0" axis="1 0 0"/>
          <inertial pos="{0.0542 * x} {-0.0136 * y} 0" mass="1.1064" diaginertia=".00123 .00099 .00142"/>
          <body pos="{0.0585 * x} {0.0315 * y} 0"><joint name="{k}1" axis="0 1 0"/>
            <inertial pos="{0.0008 * x} {0.0545 * y} -.1975" mass="1.51" diaginertia=".01476 .01442 .00178"/>
            <body pos="0 {0.111 * y} -.25"><joint name="{k}2" axis="0 1 0"/>
              <inertial pos="{0.0102 * x} {-0.0095 * y} -.1566" mass=".5103" diaginertia=".0105 .0107 .0006"/>
              <geom size=".03" pos="0 {-0.016 * y} -.31"/>
            </body></body></body>""")
    body = f"""<body pos="0 0 {height}"><freejoint/>
      <inertial pos="0 0 0" mass="21.39" diaginertia=".268 .884 .829"/>
      <geom type="box" size=".2655 .116 .13" pos="0 0 .08"/>{"".join(legs)}</body>"""
    return body, f"<actuator>{''.join(servos)}</actuator>"


def standing(variant: str, timestep: float, seconds: float = 250.0) -> Result:
    """The robot stands up and stands; its creep is measured over the second half."""
    body, servos = anymal(HEIGHT)
    text = world(timestep, body, 'friction="0.8 0 0"').replace("</mujoco>", servos + "</mujoco>")
    run = start(text, variant)
    run.data.qpos[7:] = run.data.ctrl[:] = POSE.ravel()
    _, first = record(run, 0.5 * seconds, lambda t: None)
    place = run.data.qpos[:3].copy()
    _, second = record(run, 0.5 * seconds, lambda t: None)
    moved = np.linalg.norm(run.data.qpos[:3] - place) / (0.5 * seconds)
    feet = int(np.sum(run.measure().contact.dist < 1e-3))
    return Result(float("nan"), first + second, f"creep {1e6 * moved:.3g} um/s, {feet} feet on the floor")


def momentum(variant: str, timestep: float, seconds: float = 10.0) -> Result:
    """The total momentum stays that of the ball before it hits."""
    body, _ = anymal(2.0)
    ball = '<body pos="0 -5 2"><freejoint/><geom size=".2" mass="10"/></body>'
    run = start(world(timestep, body + ball, 'condim="1"', 'gravity="0 0 0"'), variant)
    run.data.qpos[7:19] = POSE.ravel()
    run.data.qvel[19] = 5.0
    values, spent = record(run, seconds, lambda t: np.sum((run.momentum() - (0.0, 50.0, 0.0)) ** 2))
    return Result(float(np.mean(values)), spent)


TASKS = {
    "rolling": (rolling, (0.001,)),
    "bouncing": (bouncing, (0.01, 0.001)),
    "666": (heap, (0.01, 0.001)),
    "elastic 666": (elastic_heap, (0.001,)),
    "ANYmal PD": (standing, (0.005,)),
    "ANYmal momentum": (momentum, (0.01, 0.001)),
}


def number(value: float) -> str:
    """A number, or nothing."""
    return "" if np.isnan(value) else f"{value:.3g}"


def text() -> str:
    """Returns the table of all tasks, step sizes and engines."""
    rows = []
    for task, (run, steps) in TASKS.items():
        for timestep in steps:
            for variant in [*VARIANTS, *(RK4 if run is momentum else ())]:
                found = run(variant, timestep)
                rows.append(
                    [task, f"{1e3 * timestep:g}", variant, number(found.error), number(found.seconds), found.note]
                )
            error, engine, seconds = PUBLISHED[task, timestep]
            rows.append([task, f"{1e3 * timestep:g}", f"best published: {engine}", error, seconds, ""])
    return markdown(("task", "step size [ms]", "engine", "error", "time [s]", "note"), rows)
