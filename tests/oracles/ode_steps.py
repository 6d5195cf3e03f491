"""Repeats steps recorded from ODE: one free body for each of ODE's bodies, its joints as links.

A record's states are set one after the other in the worlds of a batch, with the contacts given to ODE,
sorted as its rows: the contacts of one body come in reverse.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import featherlane as fl
from oracles.naive import matrix

FOLDER = Path(__file__).parents[1] / "data" / "ode"
# bits of dSurfaceParameters.mode
BOUNCE, SOFT_ERP, SOFT_CFM, FDIR1 = 4, 8, 0x10, 2
MOTION1, MOTION2, MOTION_N, SLIP1, SLIP2 = 0x20, 0x40, 0x80, 0x100, 0x200
LOW, HIGH, VELOCITY, FORCE = 0, 1, 2, 5  # dParam
ENDLESS = 1e9  # replaces an infinite coefficient of friction
OPTIONS = {"misc_maxvel_mindepth": {"contact_max_vel": 0.1, "contact_min_depth": 0.01}}


def load(name: str) -> dict[str, np.ndarray]:
    """Loads one record."""
    return dict(np.load(FOLDER / f"{name}.npz"))


def scene(record, name: str = "") -> fl.Model:
    """Returns the model of a record, with ODE's step settings."""
    bodies = "".join(
        f'<body pos="{_text(pos)}" quat="{_text(quat)}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="{float(mass)!r}" diaginertia="{_text(inertia)}"/></body>'
        for pos, quat, mass, inertia in zip(
            record["start_pos"], record["start_quat"], record["mass"], record["inertia_diag"], strict=True
        )
    )
    option = f'<option timestep="{float(record["h"])!r}" gravity="{_text(record["gravity"])}"/>'
    model = fl.load(f"<mujoco>{option}<worldbody>{bodies}</worldbody></mujoco>", links=_links(record))
    model.opt.contact_model, model.opt.gyroscopic, model.opt.rotation = "lcp", "implicit", "infinitesimal"
    model.opt.erp, model.opt.cfm = float(record["erp"]), float(record["cfm"])
    for option, value in OPTIONS.get(name, {}).items():
        setattr(model.opt, option, value)
    return model


def _text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _links(record) -> list[fl.Link]:
    """Returns the joints of a record."""
    if "joint_type" not in record:
        return []
    given = dict(zip(record.get("param_id", ()), record.get("param_val", ()), strict=True))
    more = {}
    if LOW in given or HIGH in given:
        more["range"] = given.get(LOW, -np.inf), given.get(HIGH, np.inf)
    if FORCE in given:
        more |= {"motor_vel": given[VELOCITY], "motor_force": given[FORCE]}
    rows = zip(*(record[f"joint_{what}"] for what in ("type", "bodies", "anchor", "axis")), strict=True)
    return [
        fl.Link(
            str(kind),
            int(bodies[0]) + 1,
            int(bodies[1]) + 1 if bodies[1] >= 0 else None,
            anchor=anchor if kind in ("ball", "hinge") else None,
            axis=axis if kind in ("hinge", "slider") else None,
            **more,
        )
        for kind, bodies, anchor, axis in rows
    ]


def start(batch: fl.Batch, record) -> None:
    """Sets every world of the batch to the start of one step of the record, with its contacts."""
    n, nbody = record["pos"].shape[:2]
    turned = np.array([[matrix(q).T @ w for q, w in zip(*both, strict=True)] for both in _pairs(record)])
    batch.qpos = np.concatenate([record["pos"], record["quat"]], axis=2).reshape(n, 7 * nbody)
    batch.qvel = np.concatenate([record["lvel"], turned], axis=2).reshape(n, 6 * nbody)
    if "contacts" in record:
        give_contacts(batch, record)


def _pairs(record):
    return zip(record["quat"], record["avel"], strict=True)


def room(record) -> int:
    """Returns the largest number of contacts in a step."""
    return int(np.diff(record["contact_ptr"]).max()) if "contacts" in record else 0


def give_contacts(batch: fl.Batch, record) -> None:
    """Gives the batch the recorded contacts of each step, sorted as ODE's rows."""
    first, count = record["contact_ptr"][:-1], np.diff(record["contact_ptr"])
    n, most = len(count), room(record)
    rows = (first + count)[:, None] - 1 - np.arange(most)  # reverse
    rows = np.where(np.arange(most) < count[:, None], rows, first.clip(max=len(record["contacts"]) - 1)[:, None])
    contacts = record["contacts"][rows]
    body, normal = contacts[..., :2].astype(int) + 1, contacts[..., 5:8]
    swapped = body[..., :1] == 0  # ODE's first body is never the world
    normal, body = np.where(swapped, -normal, normal), np.where(swapped, body[..., ::-1], body)
    tangent = record["contact_fdir"][rows] if int(record["surf_mode"]) & FDIR1 else plane_space(normal)
    frame = np.concatenate([normal, tangent, np.cross(normal, tangent)], axis=-1)
    batch.give_contacts(
        -contacts[..., 8],
        contacts[..., 2:5],
        frame.reshape(n, most, 9),
        body=body[..., ::-1],  # here the normal points into the second body
        count=count,
        **surface(record),
    )


def surface(record) -> dict:
    """Returns the parameters of all contacts of a record."""
    mode = int(record["surf_mode"])

    def number(name, bit, without=0.0):
        return float(record[f"surf_{name}"]) if mode & bit else without

    mu = min(float(record["surf_mu"]), ENDLESS)
    return {
        "dim": 3,
        "friction": (mu, mu, 0, 0, 0),
        "erp": number("soft_erp", SOFT_ERP, -1.0),
        "cfm": number("soft_cfm", SOFT_CFM, -1.0),
        "restitution": number("bounce", BOUNCE),
        "restitution_vel": number("bounce_vel", BOUNCE),
        "slip": (number("slip1", SLIP1), number("slip2", SLIP2)),
        "motion": (number("motionN", MOTION_N), number("motion1", MOTION1), number("motion2", MOTION2)),
    }


def plane_space(n: np.ndarray) -> np.ndarray:
    """Returns the first of two directions orthogonal to unit vectors, as ODE chooses them."""
    zero = np.zeros_like(n[..., 0])
    steep = np.stack([zero, -n[..., 2], n[..., 1]], axis=-1)
    flat = np.stack([-n[..., 1], n[..., 0], zero], axis=-1)
    p = np.where(np.abs(n[..., 2:]) > np.sqrt(0.5), steep, flat)
    return p / np.linalg.norm(p, axis=-1, keepdims=True)


def errors(batch: fl.Batch, record) -> dict[str, np.ndarray]:
    """Returns each world's distance from ODE's next state: the largest difference of each kind, (worlds,)."""
    n, nbody = record["pos"].shape[:2]
    qpos, qvel = batch.qpos.reshape(n, nbody, 7), batch.qvel.reshape(n, nbody, 6)
    turning = [
        [matrix(q) @ w for q, w in zip(*both, strict=True)] for both in zip(qpos[..., 3:], qvel[..., 3:], strict=True)
    ]
    found = {"pos": qpos[..., :3], "quat": qpos[..., 3:], "lvel": qvel[..., :3], "avel": np.array(turning)}
    return {name: np.abs(value - record[f"next_{name}"]).max(axis=(1, 2)) for name, value in found.items()}
