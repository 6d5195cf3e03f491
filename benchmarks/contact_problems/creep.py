"""Friction of a grasp and of a sliding cube.

The grasp is that of google-deepmind/mujoco issue 3328: two pads of 200 g on damped slides press a capsule of 45 g with
position actuators, 2 mm past first contact.  Its length and the actuators' gain are not in the part of the issue that
is public in our copy; 50 mm and 20 kN/m reproduce the published 154.99 um/s and 1.4 um/s with MuJoCo.
The cube is that of Genesis pull request 3126: 0.1 m, mu 0.5, launched at 6 m/s along the floor.
"""

from __future__ import annotations

from report import markdown

from contact_problems.engines import ENGINES, RIGID, Run

GRASP = """
<mujoco>
  <option timestep="0.002" cone="{cone}" impratio="{impratio}" noslip_iterations="{noslip}"/>
  <default><geom friction="0.7 0.005 0.0001" condim="{condim}" solref="{solref}"/></default>
  <worldbody>
    <body pos="-0.0125 0 0">
      <joint name="left" type="slide" axis="1 0 0" damping="100"/><geom type="box" size=".008 .03 .02" mass="0.2"/>
    </body>
    <body pos="0.0125 0 0">
      <joint name="right" type="slide" axis="1 0 0" damping="100"/><geom type="box" size=".008 .03 .02" mass="0.2"/>
    </body>
    <body><freejoint/><geom type="capsule" size=".004 .05" euler="90 0 0" mass="0.045"/></body>
  </worldbody>
  <actuator><position joint="left" kp="20000"/><position joint="right" kp="20000"/></actuator>
</mujoco>
"""
TARGET = 0.0005 + 0.002  # displacement of each pad [m]: the gap, and 2 mm
HEIGHT = 4  # qpos of the capsule's height
SETTLE, TIME = 0.5, 2.0  # [s]
PLAIN = {"cone": "elliptic", "impratio": 10, "noslip": 0, "condim": 3, "solref": "0.02 1"}
CASES = {
    "elliptic, impratio 10": {},
    "elliptic, impratio 1": {"impratio": 1},
    "pyramidal, impratio 1": {"cone": "pyramidal", "impratio": 1},
    "elliptic, 10 noslip iterations": {"noslip": 10},
    "elliptic, condim 4": {"condim": 4},
    "elliptic, condim 6": {"condim": 6},
    "elliptic, solref 0.004 1": {"solref": "0.004 1"},
}
CUBE = """
<mujoco>
  <option timestep="{timestep}" cone="elliptic"/>
  <default><geom friction="0.5 0.005 0.0001"/></default>
  <worldbody>
    <geom type="plane" size="9 9 1"/><body pos="0 0 .05"><freejoint/><geom type="box" size=".05 .05 .05"/></body>
  </worldbody>
</mujoco>
"""
SPEED, DECELERATION = 6.0, 0.5 * 9.81
STEPS = (0.01, 0.005, 0.002, 0.001)


def creep(engine: str, case: dict, seconds: float = TIME) -> float:
    """Returns how fast the grasped capsule sinks [um/s]."""
    settings = PLAIN | case
    if engine in RIGID:
        settings |= {"noslip": 0}
    run = Run(GRASP.format(**settings), engine)
    run.data.ctrl[:] = TARGET, -TARGET
    run.step(SETTLE)
    start = run.data.qpos[HEIGHT]
    run.step(seconds)
    return 1e6 * float(start - run.data.qpos[HEIGHT]) / seconds


def launch(engine: str, timestep: float) -> tuple[float, float, float]:
    """Launches the cube at rest.

    Returns:
        The lift [m], the stopping distance over v^2 / (2 mu g) minus 1, and the same for the distance of exact friction
        with this step size, v^2 / (2 mu g) - v h / 2: semi-implicit Euler decelerates before it moves.
    """
    run = Run(CUBE.format(timestep=timestep), engine)
    run.step(1.0)
    x, z = run.data.qpos[0], run.data.qpos[2]
    run.data.qvel[:] = SPEED, 0.0, 0.0, 0.0, 0.0, 0.0
    lift = 0.0
    for _ in range(round(2.0 / timestep)):
        run.step()
        lift = max(lift, float(run.data.qpos[2] - z))
    distance, exact = float(run.data.qpos[0] - x), 0.5 * SPEED**2 / DECELERATION
    return lift, distance / exact - 1.0, distance / (exact - 0.5 * SPEED * timestep) - 1.0


def text() -> str:
    """Returns the tables of all engines."""
    grasp = [[name, *(f"{creep(engine, case):.3g}" for engine in ENGINES)] for name, case in CASES.items()]
    cube = []
    for timestep in STEPS:
        for engine in ENGINES:
            lift, error, discrete = launch(engine, timestep)
            errors = f"{100 * error:.2f}", f"{100 * discrete:.4f}"
            cube.append([f"{1e3 * timestep:g}", engine, f"{1e3 * lift:.3g}", *errors])
    columns = "step size [ms]", "engine", "lift [mm]", "stopping distance [%]", "of semi-implicit Euler [%]"
    return f"{markdown(('creep [um/s]', *ENGINES), grasp)}\n\n{markdown(columns, cube)}"
