"""Motions with known solutions: closed forms, and ordinary differential equations solved by SciPy to 1e-13."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import ellipj, ellipk

import featherlane as fl

FREE = '<mujoco><option timestep="0.002" gravity="0 0 {g}"/><worldbody>{body}</worldbody></mujoco>'
G = 9.81
ORACLE = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-13}


class Motion(NamedTuple):
    """A model, its initial state and its state at the end.

    Attributes:
        xml: the model.
        qpos, qvel: the initial state.
        duration: [s].
        exact: of a time [s]: qpos and qvel.
    """

    xml: str
    qpos: np.ndarray
    qvel: np.ndarray
    duration: float
    exact: Callable[[float], tuple[np.ndarray, np.ndarray]]

    def start(self, integrator: str) -> fl.Data:
        """Returns a world in the initial state."""
        model = fl.load(self.xml)
        model.opt.integrator = integrator
        data = fl.Data(model)
        data.qpos, data.qvel = self.qpos, self.qvel
        return data

    def error(self, data: fl.Data) -> float:
        """Returns the largest error of the state: positions in the tangent space, and velocities."""
        qpos, qvel = self.exact(data.time)
        dq = fl.differentiate_pos(data.model, 1.0, qpos, data.qpos)
        return float(max(np.abs(dq).max(), np.abs(data.qvel - qvel).max()))


# ---- a pendulum, released at rest: Jacobi's elliptic functions -------------------------------------------------------
MASS, LENGTH, INERTIA, RELEASE = 1.5, 0.8, 0.05, 2.5
PENDULUM = f"""<body><joint axis="0 1 0"/>
<inertial pos="0 0 -{LENGTH}" mass="{MASS}" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/></body>"""


def pendulum(t: float) -> tuple[np.ndarray, np.ndarray]:
    """sin(angle / 2) = k cd(w t), k = sin(release / 2), w^2 = m g l / J."""
    w, k = np.sqrt(MASS * G * LENGTH / (INERTIA + MASS * LENGTH**2)), np.sin(RELEASE / 2)
    sn, cn, dn, _ = ellipj(w * t % (4 * ellipk(k * k)), k * k)
    half = np.arcsin(k * cn / dn)
    return np.array([2 * half]), np.array([-2 * k * w * (1 - k * k) * sn / dn**2 / np.cos(half)])


# ---- a mass on a spring with a damper --------------------------------------------------------------------------------
SPRING = """<body><joint type="slide" stiffness="40" damping="0.8"/>
<inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body>"""


def spring(t: float) -> tuple[np.ndarray, np.ndarray]:
    """x = exp(-c t) (x0 cos w t + (v0 + c x0) / w sin w t)."""
    c, x0, v0 = 0.8 / 4, 0.3, 1.0
    w = np.sqrt(20.0 - c * c)
    b = (v0 + c * x0) / w
    s, k, e = np.sin(w * t), np.cos(w * t), np.exp(-c * t)
    x = e * (x0 * k + b * s)
    return np.array([x]), np.array([-c * x + e * w * (b * k - x0 * s)])


# ---- free bodies -----------------------------------------------------------------------------------------------------
def free_body(inertia: np.ndarray) -> str:
    return f'<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="{" ".join(map(str, inertia))}"/></body>'


def rotation(vector: np.ndarray) -> np.ndarray:
    """Returns the quaternion of a rotation vector."""
    angle = np.linalg.norm(vector)
    return np.append(np.cos(angle / 2), 0.5 * np.sinc(angle / (2 * np.pi)) * vector)


def times(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Returns Hamilton's product."""
    vector = p[0] * q[1:] + q[0] * p[1:] + np.cross(p[1:], q[1:])
    return np.append(p[0] * q[0] - p[1:] @ q[1:], vector)


def turned(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Returns a vector, rotated."""
    return times(times(q, np.append(0.0, v)), q * (1, -1, -1, -1))[1:]


TOP, TOP_SPIN, TOP_TURN = np.array([0.2, 0.2, 0.32]), np.array([1.0, 0.5, 6.0]), rotation(np.array([0.4, -0.3, 0.2]))
DRIFT = np.array([0.3, -0.2, 0.1])  # m/s


def top(t: float) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric top precesses: q = exp(L t / I1) q0 exp(-W t e3), W = (I3 - I1) w3 / I1, L the angular momentum."""
    L = turned(TOP_TURN, TOP * TOP_SPIN)
    W = (TOP[2] - TOP[0]) / TOP[0] * TOP_SPIN[2]
    turn = times(times(rotation(L * t / TOP[0]), TOP_TURN), rotation(np.array([0.0, 0.0, -W * t])))
    s, c = np.sin(W * t), np.cos(W * t)
    spin = np.array([c * TOP_SPIN[0] - s * TOP_SPIN[1], s * TOP_SPIN[0] + c * TOP_SPIN[1], TOP_SPIN[2]])
    return np.concatenate([DRIFT * t, turn]), np.concatenate([DRIFT, spin])


NUT, NUT_SPIN = np.array([0.1, 0.2, 0.25]), np.array([0.3, 5.0, 0.2])


def nut(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Dzhanibekov's nut: Euler's equations about the axis of the intermediate inertia, which flips."""

    def rate(_, y):
        w = y[4:]
        return np.concatenate([0.5 * times(y[:4], np.append(0.0, w)), np.cross(NUT * w, w) / NUT])

    y = solve_ivp(rate, (0.0, t), np.concatenate([[1.0, 0.0, 0.0, 0.0], NUT_SPIN]), **ORACLE).y[:, -1]
    return np.concatenate([np.zeros(3), y[:4] / np.linalg.norm(y[:4])]), np.concatenate([np.zeros(3), y[4:]])


# ---- a double pendulum -----------------------------------------------------------------------------------------------
M1, M2, L1, C1, C2, I1, I2 = 1.0, 0.7, 0.9, 0.5, 0.4, 0.06, 0.04
DOUBLE = f"""<body><joint axis="0 1 0"/><inertial pos="0 0 -{C1}" mass="{M1}" diaginertia="{I1} {I1} {I1}"/>
<body pos="0 0 -{L1}"><joint axis="0 1 0"/>
<inertial pos="0 0 -{C2}" mass="{M2}" diaginertia="{I2} {I2} {I2}"/></body></body>"""
DOUBLE_ANGLES = np.array([1.2, 0.6])


def double_pendulum(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Lagrange's equations in the angles a, b to the vertical; the second joint measures b - a."""
    J1, J2, c = I1 + M1 * C1**2 + M2 * L1**2, I2 + M2 * C2**2, M2 * L1 * C2

    def rate(_, y):
        a, b, u, v = y
        s, k = np.sin(a - b), np.cos(a - b)
        right = [-c * s * v * v - (M1 * C1 + M2 * L1) * G * np.sin(a), c * s * u * u - M2 * C2 * G * np.sin(b)]
        return np.concatenate([[u, v], np.linalg.solve([[J1, c * k], [c * k, J2]], right)])

    start = np.array([DOUBLE_ANGLES[0], DOUBLE_ANGLES.sum(), 0.0, 0.0])
    a, b, u, v = solve_ivp(rate, (0.0, t), start, **ORACLE).y[:, -1]
    return np.array([a, b - a]), np.array([u, v - u])


def motion(body: str, exact: Callable, duration: float, gravity: float = 0.0) -> Motion:
    """Returns a motion that starts where its solution does."""
    return Motion(FREE.format(g=-gravity, body=body), *exact(0.0), duration, exact)


def at_start(exact: Callable, qpos: np.ndarray, qvel: np.ndarray) -> Callable:
    """Returns a solution that is known at time 0, where SciPy has nothing to integrate."""
    return lambda t: exact(t) if t > 0.0 else (qpos, qvel)


NUT_START = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), np.concatenate([np.zeros(3), NUT_SPIN])
MOTIONS = {
    "pendulum": motion(PENDULUM, pendulum, 2.0, G),
    "spring": motion(SPRING, spring, 2.0),
    "top": motion(free_body(TOP), top, 2.0),
    "nut": motion(free_body(NUT), at_start(nut, *NUT_START), 2.0),
    "double pendulum": motion(DOUBLE, at_start(double_pendulum, DOUBLE_ANGLES, np.zeros(2)), 2.0, G),
}

# ---- a bouncing ball -------------------------------------------------------------------------------------------------
STIFFNESS, DAMPING, IMPEDANCE, RADIUS, DROP = 40000.0, 20.0, 0.95, 0.05, 0.5
BALL = f"""<mujoco><option timestep="0.002" gravity="0 0 -{G}"/>
<default><geom condim="1" solref="-{STIFFNESS} -{DAMPING}" solimp="{IMPEDANCE} {IMPEDANCE} 0.001"/></default>
<worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 {DROP}"><freejoint/><geom size="{RADIUS}"/></body></worldbody></mujoco>"""


def ball(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Two bounces in 1.1 s: x'' = -(1 - d) g - k r - b v in contact, as MuJoCo's chapter Computation, and no pull."""

    def rate(_, y):
        r, v = y[0] - RADIUS, y[1]
        pushed = -(1 - IMPEDANCE) * G - STIFFNESS * r - DAMPING * v
        return [v, max(-G, pushed) if r < 0.0 else -G]

    x, v = solve_ivp(rate, (0.0, t), [DROP, 0.0], max_step=1e-3, **ORACLE).y[:, -1]
    return np.array([0.0, 0.0, x, 1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, v, 0.0, 0.0, 0.0])


BOUNCE = Motion(BALL, np.array([0.0, 0.0, DROP, 1.0, 0.0, 0.0, 0.0]), np.zeros(6), 1.1, ball)
