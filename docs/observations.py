"""Finds which quantity each element of an observation is.

The arrays that a task reads are filled with random numbers. An element of the
observation that equals an entry of an array in every world, or a function of it, is
that quantity. `DESCRIBED` has the elements that are functions of several entries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

NWORLD, SPREAD = 24, 30.0  # worlds; standard deviation, beyond all bounds of clipping
DIGITS = 1e-11  # greatest difference of equal numbers, relative
FREE, BALL, SLIDE, HINGE = range(4)  # types of joints
XYZ, TURN = "xyz", "wxyz"


class Element(NamedTuple):
    """An element of an observation."""

    quantity: str
    unit: str


# by part of the observation, or by task and part
DESCRIBED: dict[str, list[Element]] = {
    "velocity": [
        Element(f"velocity of the trunk along {k} of its frame", "m/s") for k in XYZ
    ],
    "down": [
        Element(f"{k} of the unit vector downwards in the frame of the trunk", "1")
        for k in XYZ
    ],
    "ground": [
        Element(
            f"height of the trunk above the ground at ({x:g}, {y:g}) m, "
            "minus the height at rest",
            "m",
        )
        for y in (-0.3, 0.0, 0.3)
        for x in (-0.4, -0.1, 0.2, 0.5, 0.8)
    ],
    "to_aim": [Element(f"pushing position minus `grip`, {k}", "m") for k in XYZ],
    "spin": [
        Element(f"angular velocity of the ball about {k} of the world", "rad/s")
        for k in XYZ
    ],
    "to_target": [
        Element(f"target minus nose, along {k} of the head's frame", "m") for k in "xy"
    ],
    "target": [
        Element(f"position of the target in the frame of the mouth, {k}", "m")
        for k in XYZ
    ],
    "extremities": [
        Element(f"{limb} minus torso, along {k} of the torso's frame", "m")
        for limb in ("left hand", "left foot", "right hand", "right foot")
        for k in XYZ
    ],
    "dist_to_target": [Element("distance of the tip from the target's surface", "m")],
}
COMMANDS = [
    Element("commanded forward velocity", "m/s"),
    Element("commanded sideways velocity", "m/s"),
    Element("commanded angular velocity about z", "rad/s"),
]
SENSOR_UNITS = {
    "TOUCH": "N",
    "ACCELEROMETER": "m/s²",
    "VELOCIMETER": "m/s",
    "GYRO": "rad/s",
    "FORCE": "N",
    "TORQUE": "N m",
    "JOINTPOS": "rad",
    "JOINTVEL": "rad/s",
    "FRAMEPOS": "m",
    "FRAMELINVEL": "m/s",
    "SUBTREELINVEL": "m/s",
}
INERTIA = [f"{part} of the inertia" for part in ("xx", "yy", "zz", "xy", "xz", "yz")]
INERTIA = [(part, "kg m²") for part in INERTIA]
INERTIA += [(f"first moment of mass {k}", "kg m") for k in XYZ] + [("mass", "kg")]
WRENCH = [(f"contact torque {k}", "N m") for k in XYZ]
WRENCH += [(f"contact force {k}", "N") for k in XYZ]
TWIST = [(f"angular velocity {k}", "rad/s") for k in XYZ]
TWIST += [(f"linear velocity {k}", "m/s") for k in XYZ]
PLACE, AXES = (
    [(f"position {k}", "m") for k in XYZ],
    [(f"rotation matrix {a}{b}", "1") for a in XYZ for b in XYZ],
)
QUATERNION = [(f"quaternion {k}", "1") for k in TURN]
OF_BODIES = {
    "cinert": ("body", INERTIA),
    "cvel": ("body", TWIST),
    "cfrc_ext": ("body", WRENCH),
    "xpos": ("body", PLACE),
    "xipos": ("body", [(f"centre of mass {k}", "m") for k in XYZ]),
    "xquat": ("body", QUATERNION),
    "xmat": ("body", AXES),
    "geom_xpos": ("geom", PLACE),
    "geom_xmat": ("geom", AXES),
    "site_xpos": ("site", PLACE),
    "site_xmat": ("site", AXES),
}


def name(model, kind: str, number: int) -> str:
    """Returns the name of an element of the model, or its number."""
    found = getattr(model, kind)(number).name
    return f"`{found}`" if found else f"{kind} {number}"


def of_joints(model, velocity: bool) -> list[Element]:
    """Returns the quantity of each entry of qpos or of qvel."""
    found: list[Element] = []
    what, angle = (
        ("velocity", "angular velocity") if velocity else ("position", "angle")
    )
    unit, turn = ("m/s", "rad/s") if velocity else ("m", "rad")
    for j in range(model.njnt):
        joint, kind = name(model, "joint", j), int(model.jnt_type[j])
        if kind == FREE:
            found += [Element(f"{what} {k} of {joint}", unit) for k in XYZ]
        if kind in (FREE, BALL):
            axes = XYZ if velocity else TURN
            turned = (
                "angular velocity {} of {}, in its frame"
                if velocity
                else "quaternion {} of {}"
            )
            found += [
                Element(turned.format(k, joint), turn if velocity else "1")
                for k in axes
            ]
        if kind in (SLIDE, HINGE):
            found.append(
                Element(
                    f"{what if kind == SLIDE else angle} of {joint}",
                    unit if kind == SLIDE else turn,
                )
            )
    return found


def of_forces(model, what: str) -> list[Element]:
    """Returns the quantity of each generalized force."""
    unit = {"m/s": "N", "rad/s": "N m"}
    return [
        Element(f"{what} of {speed.quantity.partition(' of ')[2]}", unit[speed.unit])
        for speed in of_joints(model, velocity=True)
    ]


def of_sensors(model) -> list[Element]:
    """Returns the quantity of each entry of sensordata."""
    import mujoco

    found = []
    for k in range(model.nsensor):
        kind = mujoco.mjtSensor(model.mj_model.sensor_type[k]).name.removeprefix(
            "mjSENS_"
        )
        size = int(model.sensor_dim[k])
        ends = [f" {axis}" for axis in XYZ] if size == 3 else [""] * size
        sensor, unit = name(model, "sensor", k), SENSOR_UNITS.get(kind, "")
        found += [Element(f"sensor {sensor}{end}", unit) for end in ends]
    return found


def of_field(model, field: str) -> list[Element]:
    """Returns the quantity of each entry of a field of the batch."""
    if field in OF_BODIES:
        kind, parts = OF_BODIES[field]
        count = getattr(model, f"n{kind}")
        return [
            Element(
                f"{part} of {kind} {name(model, kind, k)}".replace(
                    f"{kind} {kind} ", f"{kind} "
                ),
                unit,
            )
            for k in range(count)
            for part, unit in parts
        ]
    simple = {
        "qpos": lambda: of_joints(model, velocity=False),
        "qvel": lambda: of_joints(model, velocity=True),
        "sensordata": lambda: of_sensors(model),
        "qfrc_actuator": lambda: of_forces(model, "actuator force"),
        "qfrc_constraint": lambda: of_forces(model, "constraint force"),
        "ctrl": lambda: [
            Element(f"control of {name(model, 'actuator', k)}", "")
            for k in range(model.nu)
        ],
        "mocap_pos": lambda: [
            Element(f"position {k} of body {name(model, 'body', b)}", "m")
            for b in np.flatnonzero(np.asarray(model.mj_model.body_mocapid) >= 0)
            for k in XYZ
        ],
    }
    return simple[field]() if field in simple else []


def filled(env, random) -> tuple[np.ndarray, list[Element]]:
    """Fills the arrays that a task reads; returns their entries (n, k) with quantities."""
    worlds, task, model = env.batch, env.task, env.batch.model
    columns: list[np.ndarray] = []
    elements: list[Element] = []

    def fill(array: np.ndarray, found: list[Element]) -> None:
        array[:] = random.normal(0.0, SPREAD, array.shape)
        columns.append(array.reshape(NWORLD, -1))
        elements.extend(found)
        assert columns[-1].shape[1] == len(found), found

    worlds.time[:] = 1.0  # contact forces of initial states are observed as zero
    for field in ("qpos", "qvel", "ctrl", "mocap_pos"):
        array = getattr(worlds, field)
        if array.size:
            fill(array, of_field(model, field))
    for field in dict.fromkeys(task.fields):
        if found := of_field(model, field):
            fill(worlds.writable(field), found)
    if hasattr(task, "action"):
        fill(
            task.action,
            [
                Element(f"last action of {name(model, 'actuator', k)}", "1")
                for k in range(model.nu)
            ],
        )
    if hasattr(task, "command"):
        fill(task.command, COMMANDS)
    if hasattr(task, "phase"):
        fill(task.phase, [Element("phase of the gait", "rad")])
        task.strides_on[:] = True  # the clock runs
    return np.concatenate(columns, axis=1), elements


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns which columns of a and b (n, k) are equal in all worlds, (k,)."""
    near = np.abs(a - b) <= DIGITS * (1.0 + np.abs(b))
    return (near | (np.isnan(a) & np.isnan(b))).all(axis=0)


def match(
    seen: np.ndarray, entries: np.ndarray, elements: list[Element]
) -> Element | None:
    """Returns the quantity of an element of the observation (n,) that is a function of at most two entries."""
    if np.nanmin(seen) == np.nanmax(seen):
        return None  # a constant is equal to every constant
    low, high = np.nanmin(seen), np.nanmax(seen)
    column = seen[:, None]
    with np.errstate(invalid="ignore"):
        functions = {
            "{}": entries,
            "sine of the {}": np.sin(entries),
            "cosine of the {}": np.cos(entries),
            "log(1 + {})": np.log1p(entries),
            f"{{}}, clipped to [{low:g}, {high:g}]": np.clip(entries, low, high),
        }
    for shown, values in functions.items():
        (at,) = np.nonzero(same(values, column))
        if len(at) == 1:
            quantity, unit = elements[at[0]]
            return Element(
                shown.format(quantity),
                "1" if " of the {}" in shown or "log" in shown else unit,
            )
    offset = column - entries
    (at,) = np.nonzero(np.ptp(offset, axis=0) < DIGITS * SPREAD)
    if len(at) == 1:
        value = float(-offset[0, at[0]])
        return Element(
            f"{elements[at[0]].quantity} {'-' if value > 0 else '+'} {abs(value):.4g}",
            elements[at[0]].unit,
        )
    difference = entries[0][:, None] - entries[0][None, :]
    pairs = np.argwhere(np.abs(difference - seen[0]) <= DIGITS * SPREAD)
    for i, j in pairs:
        if i != j and same(entries[:, [i]] - entries[:, [j]], column)[0]:
            return Element(
                f"{elements[i].quantity} minus {elements[j].quantity}",
                elements[i].unit or elements[j].unit,
            )
    return None


def observed(env) -> list[tuple[str, Element]]:
    """Returns the part and the quantity of each element of the observation of an environment with NWORLD worlds.

    Raises:
        LookupError: an element that is a function of several entries and is not described.
    """
    task: Any = env.task
    random = np.random.default_rng(0)
    entries, elements = filled(env, random)
    rows: list[tuple[str, Element]] = []
    with np.errstate(invalid="ignore"):
        parts = task.observation(env.batch)
    for part, values in parts.items():
        columns = np.asarray(values, float).reshape(NWORLD, -1)
        for k in range(columns.shape[1]):
            found = match(columns[:, k], entries, elements)
            if found is None:
                described = DESCRIBED.get(part, [])
                if len(described) != columns.shape[1]:
                    raise LookupError(
                        f"{task.name}: describe element {k} of {part!r} in docs/observations.py"
                    )
                found = described[k]
            rows.append((part, found))
    return rows
