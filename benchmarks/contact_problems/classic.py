"""Textbook problems with an analytic or conserved measure.

- Painleve's rod: a rod slides on its lower end, leaning so that friction presses the end into the floor.  With mu above
  4/3 the equations of the rigid rod have no solution or two (Painleve 1895; Stewart, SIAM Review 42, 2000).
- Rattleback: the ellipsoid of Kane and Levinson (1982), with a larger product of inertia.  Its spin reverses while it
  rolls, energy is conserved.
- Dzhanibekov's nut: a free body spins about its middle axis.  Energy and angular momentum are conserved.
- Dominoes: energy can only fall, and the speed of the wave converges with the step size.
- Stack: ten cubes of 1 kg with one of 10 kg on top; the floor carries the weight.
- Four-bar: three hinges in space and a `connect`, of which one row is redundant.  Energy is conserved, the loop closed.
"""

from __future__ import annotations

import functools
import math

import mujoco
import numpy as np
from report import markdown

from contact_problems.engines import ENGINES, Run

GRAVITY = 9.81
HALF, TILT, SLIP, TIP = (
    0.5,
    math.radians(60.0),
    -2.0,
    1e-4,
)  # half length [m], angle, speed [m/s], radius [m]


# ---- Painleve's rod --------------------------------------------------------------------------------------------------
def rod_scene(mu: float, timestep: float) -> str:
    """A slender rod of 1 kg in the plane y = 0 whose lower end is a small sphere on the floor."""
    inertia = HALF**2 / 3.0
    end = f"{-HALF * math.cos(TILT)} 0 {-HALF * math.sin(TILT)}"
    return f"""
    <mujoco><option timestep="{timestep}" cone="elliptic"/><worldbody>
      <geom type="plane" size="9 9 1" friction="{mu} 0 0"/>
      <body pos="0 0 {HALF * math.sin(TILT) + TIP}">
        <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 -1 0"/>
        <inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/>
        <geom type="sphere" size="{TIP}" pos="{end}" friction="{mu} 0 0"/>
      </body></worldbody></mujoco>"""


def rod_angle(mu: float, seconds: float, steps: int = 2000) -> float:
    """Returns the turn of the rigid rod while its end slides [rad], by RK4.

    N (1 + 3 c^2 - 3 mu s c) = m (g - l s w^2), w' = -3 N (c - mu s) / (m l), with s, c of the angle to the floor.
    """

    def rate(state):
        angle, w = state
        s, c = math.sin(angle), math.cos(angle)
        normal = (GRAVITY - HALF * s * w * w) / (1.0 + 3.0 * c * c - 3.0 * mu * s * c)
        return np.array([w, -3.0 * normal * (c - mu * s) / HALF])

    return rk4(rate, np.array([TILT, 0.0]), seconds, steps)[-1, 0] - TILT


def rk4(rate, state: np.ndarray, seconds: float, steps: int) -> np.ndarray:
    """Returns the states (steps + 1, n) of y' = rate(y)."""
    h, states = seconds / steps, [state]
    for _ in range(steps):
        a = rate(state)
        b = rate(state + 0.5 * h * a)
        c = rate(state + 0.5 * h * b)
        state = state + h / 6.0 * (a + 2.0 * b + 2.0 * c + rate(state + h * c))
        states.append(state)
    return np.array(states)


def rod(engine: str, mu: float, timestep: float, seconds: float = 0.1) -> dict[str, float]:
    """Returns the turn of the rod [rad], the largest rise of its energy [J] and its unconverged steps."""
    run = Run(rod_scene(mu, timestep), engine)
    run.data.qvel[0] = SLIP
    start = highest = run.energy()
    for _ in range(round(seconds / timestep)):
        run.step()
        highest = max(highest, run.energy())
    turn = float(run.data.qpos[2])
    return {"turn": turn, "rise": highest - start, "unconverged": run.unconverged()}


# ---- rattleback ------------------------------------------------------------------------------------------------------
AXES, SINK, SPIN = np.array([0.2, 0.03, 0.02]), 0.01, -5.0  # [m], the centre of mass below the ellipsoid's [m], [rad/s]
INERTIA = np.array([[0.002, -0.002, 0.0], [-0.002, 0.016, 0.0], [0.0, 0.0, 0.017]])  # of 1 kg about the centre of mass
LEAN = math.radians(0.5)


def rattleback_scene(timestep: float) -> str:
    """The ellipsoid leans a little about its long axis; its contact is as stiff as the step size allows."""
    full = " ".join(map(str, (*np.diag(INERTIA), INERTIA[0, 1], INERTIA[0, 2], INERTIA[1, 2])))
    friction, axes = 'friction="2 0 0" solref="0.0001 1" solimp=".99 .99 .001"', " ".join(map(str, AXES))
    return f"""
    <mujoco><option timestep="{timestep}" cone="elliptic" impratio="100"/><worldbody>
      <geom type="plane" size="9 9 1" {friction}/>
      <body pos="0 0 {AXES[2] - SINK}" euler="{math.degrees(LEAN)} 0 0"><freejoint/>
        <inertial pos="0 0 0" mass="1" fullinertia="{full}"/>
        <geom type="ellipsoid" size="{axes}" pos="0 0 {SINK}" {friction}/>
      </body></worldbody></mujoco>"""


def rolling_rate(state: np.ndarray) -> np.ndarray:
    """Derivative of (up, omega), in the body's frame, of the ellipsoid that rolls without slip.

    (I + m (r.r - r r^T)) w' = -w x I w + m r x (r' x w + w x (r x w)) + m g r x n, with r from the centre of mass to
    the contact and n up.
    """
    n, w = state[:3], state[3:]
    square, turned = AXES**2, np.cross(state[:3], state[3:])
    length = math.sqrt(n @ (square * n))
    r = np.array([0.0, 0.0, SINK]) - square * n / length
    dr = -square * turned / length + square * n * (n @ (square * turned)) / length**3
    about = INERTIA + (r @ r) * np.eye(3) - np.outer(r, r)
    torque = -np.cross(w, INERTIA @ w) + np.cross(r, np.cross(dr, w) + np.cross(w, np.cross(r, w)))
    return np.concatenate([turned, np.linalg.solve(about, torque + GRAVITY * np.cross(r, n))])


def reversal(times: np.ndarray, spin: np.ndarray) -> float:
    """Returns when the spin changes its sign [s], infinite if it does not."""
    found = np.flatnonzero(spin * np.sign(spin[0]) < 0.0)
    return float(times[found[0]]) if len(found) else math.inf


def rattleback(engine: str, timestep: float, seconds: float = 4.0) -> dict[str, float]:
    """Returns when the spin reverses [s] and the relative change of the energy of motion by then."""
    run = Run(rattleback_scene(timestep), engine)
    run.step(timestep)
    run.data.qvel[:] = 0.0
    run.data.qvel[5] = SPIN
    energy = run.energy()
    spin = []
    for _ in range(round(seconds / timestep)):
        run.step()
        spin.append(float(run.measure().xmat[1].reshape(3, 3)[2] @ run.data.qvel[3:6]))
        if spin[-1] > 0.0:
            break
    motion = 0.5 * INERTIA[2, 2] * SPIN**2
    times = timestep * np.arange(1, len(spin) + 1)
    return {"reversal": reversal(times, np.array(spin)), "change": float(run.energy() - energy) / motion}


@functools.cache
def rattleback_reference(seconds: float = 4.0, steps: int = 2000) -> float:
    """Returns when the rolling ellipsoid's spin reverses [s]."""
    up = np.array([0.0, math.sin(LEAN), math.cos(LEAN)])
    states = rk4(rolling_rate, np.r_[up, 0.0, 0.0, SPIN], seconds, steps)
    return reversal(np.linspace(0.0, seconds, steps + 1), np.einsum("ki,ki->k", states[:, :3], states[:, 3:]))


# ---- Dzhanibekov's nut -----------------------------------------------------------------------------------------------
def nut(engine: str, timestep: float, seconds: float = 20.0) -> dict[str, float]:
    """Returns the largest relative changes of energy and angular momentum."""
    text = f"""
    <mujoco><option timestep="{timestep}" gravity="0 0 0"/><worldbody><body><freejoint/>
      <inertial pos="0 0 0" mass="1" diaginertia="1 2 3"/><geom size=".1"/></body></worldbody></mujoco>"""
    run = Run(text, engine)
    run.data.qvel[3:] = 0.01, 5.0, 0.01
    measured = []
    for _ in range(round(seconds / timestep) + 1):
        d = run.measure()
        mujoco.mj_subtreeVel(run.mj, d)
        measured.append([run.energy(), np.linalg.norm(d.subtree_angmom[0])])
        run.step()
    energy, momentum = np.abs(np.array(measured) / measured[0] - 1.0).max(0)
    return {"energy": float(energy), "momentum": float(momentum)}


# ---- dominoes --------------------------------------------------------------------------------------------------------
DOMINOES, PITCH, PUSH = 20, 0.025, 8.0  # [m], [rad/s]


def row_of_dominoes(engine: str, timestep: float) -> Run:
    """Returns the row at rest, with its first domino pushed about its lower edge."""
    body = '<body pos="{x} 0 .025"><freejoint/><geom type="box" size=".004 .0125 .025" mass=".01"/></body>'
    bodies = "".join(body.format(x=PITCH * k) for k in range(DOMINOES))
    text = f"""
    <mujoco><option timestep="{timestep}" cone="elliptic"/><default><geom friction=".3 0 0"/></default>
      <worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>"""
    run = Run(text, engine)
    run.step(0.1)
    run.data.qvel[[0, 4]] = 0.025 * PUSH, PUSH
    return run


def dominoes(engine: str, timestep: float, seconds: float = 1.0) -> dict[str, float]:
    """Returns the speed of the wave [m/s], the largest rise of the energy in a step [J] and the fallen dominoes."""
    run = row_of_dominoes(engine, timestep)
    energy, rise, when = run.energy(), 0.0, np.full(DOMINOES, math.inf)
    for k in range(round(seconds / timestep)):
        run.step()
        now = run.energy()
        energy, rise = now, max(rise, now - energy)
        tilted = run.measured.xmat[1:, 8] < math.cos(math.radians(30.0))
        when[tilted & np.isinf(when)] = (k + 1) * timestep
    ends = when[5], when[-5]
    speed = (DOMINOES - 10) * PITCH / (ends[1] - ends[0]) if math.isfinite(ends[1]) else 0.0
    fallen = int(np.isfinite(when).sum())
    return {"speed": speed, "rise": rise, "fallen": fallen, "unconverged": run.unconverged()}


# ---- stack of mass ratio 10:1 ----------------------------------------------------------------------------------------
CUBES = 10


def stack(engine: str, timestep: float, seconds: float = 5.0) -> dict[str, float]:
    """Returns the deepest penetration, the drop and the sideways shift of the top [mm]."""
    cube = '<body pos="0 0 {z}"><freejoint/><geom type="box" size=".05 .05 .05" mass="{mass}"/></body>'
    cubes = "".join(cube.format(z=0.05 + 0.1 * k, mass=10 if k == CUBES else 1) for k in range(CUBES + 1))
    text = f"""
    <mujoco><option timestep="{timestep}" cone="elliptic"/>
      <worldbody><geom type="plane" size="9 9 1"/>{cubes}</worldbody></mujoco>"""
    run = Run(text, engine)
    run.step(seconds)
    top = run.data.qpos[-7:-4]
    return {
        "penetration": 1e3 * run.penetration(),
        "drop": 1e3 * float(0.05 + 0.1 * CUBES - top[2]),
        "shift": 1e3 * float(np.hypot(top[0], top[1])),
        "unconverged": run.unconverged(),
    }


# ---- four-bar --------------------------------------------------------------------------------------------------------
def four_bar(engine: str, timestep: float, seconds: float = 5.0) -> dict[str, float]:
    """Returns the change of the energy over the largest kinetic energy, and the largest gap of the loop [mm]."""
    # crank 1, coupler 3, rocker 2.5, ground 2.5 m: the crank turns fully
    crank, coupler, rocker, ground = 1.0, 3.0, 2.5, 2.5
    reach = math.hypot(ground, crank)
    corner = math.acos((reach**2 + coupler**2 - rocker**2) / (2.0 * reach * coupler)) - math.atan2(crank, ground)
    bend = math.degrees(corner) - 90.0  # the crank stands upright
    end = coupler * math.cos(corner), crank + coupler * math.sin(corner)
    swing = math.degrees(math.atan2(end[1], end[0] - ground))
    link = '<geom type="capsule" fromto="0 0 0 {length} 0 0" size=".05" mass="1" contype="0" conaffinity="0"/>'
    hinge = '<joint type="hinge" axis="0 -1 0"/>'
    text = f"""
    <mujoco><option timestep="{timestep}"/><worldbody>
      <body euler="0 -90 0">{hinge}{link.format(length=crank)}
        <body pos="{crank} 0 0" euler="0 {-bend} 0">{hinge}
          {link.format(length=coupler)}<site name="a" pos="{coupler} 0 0"/></body>
      </body>
      <body pos="{ground} 0 0" euler="0 {-swing} 0">{hinge}
        {link.format(length=rocker)}<site name="b" pos="{rocker} 0 0"/></body>
    </worldbody><equality><connect site1="a" site2="b"/></equality></mujoco>"""
    run = Run(text, engine)
    first = run.energy()
    gap = change = fastest = 0.0
    for _ in range(round(seconds / timestep)):
        run.step()
        change = max(change, abs(run.energy() - first))
        fastest = max(fastest, float(run.measured.energy[1]))
        gap = max(gap, float(np.linalg.norm(run.measured.site_xpos[0] - run.measured.site_xpos[1])))
    return {"change": change / fastest, "gap": 1e3 * gap}


# ---- tables ----------------------------------------------------------------------------------------------------------
STEPS = (0.004, 0.002, 0.001)
PARADOX = 2.0  # mu


def measures(engine: str, timestep: float) -> dict[str, str]:
    """Returns all measures of an engine at a step size."""
    exact, time = rod_angle(0.5, 0.1), rattleback_reference()
    rod_found, paradox = rod(engine, 0.5, timestep), rod(engine, PARADOX, timestep)
    spun, free, row = rattleback(engine, timestep), nut(engine, timestep), dominoes(engine, timestep)
    tower, loop = stack(engine, timestep), four_bar(engine, timestep)
    return {
        "rod, mu 0.5: error of the turn [%]": f"{100 * abs(rod_found['turn'] / exact - 1.0):.3g}",
        "rod, mu 2: rise of energy [J]": f"{paradox['rise']:.3g}",
        "rod, mu 2: unconverged steps": f"{paradox['unconverged']}",
        "rattleback: error of the reversal [%]": f"{100 * abs(spun['reversal'] / time - 1.0):.3g}",
        "rattleback: lost energy [%]": f"{-100 * spun['change']:.3g}",
        "nut: change of energy [%]": f"{100 * free['energy']:.3g}",
        "nut: change of angular momentum [%]": f"{100 * free['momentum']:.3g}",
        "dominoes: speed of the wave [m/s]": f"{row['speed']:.3f}",
        "dominoes: largest rise of energy in a step [uJ]": f"{1e6 * row['rise']:.3g}",
        "dominoes: unconverged steps": f"{row['unconverged']}",
        "stack: penetration [mm]": f"{tower['penetration']:.3g}",
        "stack: drop of the top [mm]": f"{tower['drop']:.3g}",
        "stack: sideways shift [mm]": f"{tower['shift']:.3g}",
        "four-bar: change of energy [%]": f"{100 * loop['change']:.3g}",
        "four-bar: gap [mm]": f"{loop['gap']:.3g}",
    }


def text(steps: tuple[float, ...] = STEPS) -> str:
    """Returns the table of all engines and step sizes."""
    rows = []
    for timestep in steps:
        found = {engine: measures(engine, timestep) for engine in ENGINES}
        for name in found[next(iter(ENGINES))]:
            rows.append([name, f"{1e3 * timestep:g}", *(found[engine][name] for engine in ENGINES)])
    rows.sort(key=lambda row: row[0])  # stable: step sizes stay in their order
    return markdown(("measure", "step size [ms]", *ENGINES), rows)


HISTORY = ("MuJoCo", "lcp", "coulomb")


def history(timestep: float = 0.002, every: float = 0.05, samples: int = 20) -> str:
    """Returns energy, penetration, slip and residual of the dominoes over time."""
    rows = []
    for engine in HISTORY:
        run = row_of_dominoes(engine, timestep)
        first = run.energy()
        for k in range(samples):
            run.step(every)
            lost, deep = 1e3 * (first - run.energy()), 1e3 * run.penetration()
            cells = f"{lost:.4g}", f"{deep:.3g}", f"{run.slip():.3g}", f"{run.residual():.1e}"
            rows.append([engine, f"{(k + 1) * every:.2f}", *cells])
    columns = "engine", "time [s]", "lost energy [mJ]", "penetration [mm]", "slip [m/s]", "residual"
    return markdown(columns, rows)
