"""Models with signed distance fields: one shape on a mocap body, and one on a free body."""

from __future__ import annotations

import numpy as np

PLUGINS = {
    "torus": {"radius1": 0.35, "radius2": 0.15},
    "bowl": {"height": 0.1, "radius": 0.5, "thickness": 0.05},
    "bolt": {"radius": 0.26},
    "nut": {"radius": 0.26},
    "gear": {"diameter": 1, "teeth": 12, "thickness": 0.2},
}
# an L-shaped prism: corners of its cross section, counterclockwise
CORNERS = ((0, 0), (0.4, 0), (0.4, 0.2), (0.2, 0.2), (0.2, 0.4), (0, 0.4))
LOWER = ((0, 2, 1), (0, 3, 2), (0, 5, 3), (3, 5, 4))
SHAPES = {
    "plane": 'type="plane" size="1 1 1"',
    "sphere": 'type="sphere" size="0.2"',
    "capsule": 'type="capsule" size="0.12 0.2"',
    "ellipsoid": 'type="ellipsoid" size="0.25 0.2 0.12"',
    "cylinder": 'type="cylinder" size="0.2 0.15"',
    "box": 'type="box" size="0.12 0.2 0.25"',
    "mesh": 'type="mesh" mesh="angle"',
    "octree": 'type="sdf" mesh="solid"',
}


def angle() -> tuple[str, str]:
    """Returns vertices and faces of the L-shaped prism, as text."""
    n = len(CORNERS)
    vertices = [(x, y, z) for z in (-0.1, 0.1) for x, y in CORNERS]
    upper = [(a + n, c + n, b + n) for a, b, c in LOWER]
    ring = [(k, (k + 1) % n) for k in range(n)]
    sides = [face for a, b in ring for face in ((a, b, b + n), (a, b + n, a + n))]
    faces = [*LOWER, *upper, *sides]
    return tuple(" ".join(f"{x:g}" for row in rows for x in row) for rows in (vertices, faces))


def geom(name: str, attributes: str = "") -> str:
    """Returns the MJCF of a geom: a plugin, or one of SHAPES."""
    if name in PLUGINS:
        return f'<geom type="sdf" mesh="{name}" {attributes}><plugin instance="{name}"/></geom>'
    return f"<geom {SHAPES[name]} {attributes}/>"


def assets(names: set[str]) -> str:
    """Returns the MJCF of the plugins and meshes that these shapes need."""
    used = [name for name in PLUGINS if name in names]
    config = {name: "".join(f'<config key="{k}" value="{x}"/>' for k, x in PLUGINS[name].items()) for name in used}
    plugins = "".join(
        f'<plugin plugin="mujoco.sdf.{name}"><instance name="{name}">{config[name]}</instance></plugin>'
        for name in used
    )
    vertices, faces = angle()
    meshes = "".join(f'<mesh name="{name}"><plugin instance="{name}"/></mesh>' for name in used)
    prisms = "".join(
        f'<mesh name="{name}" vertex="{vertices}" face="{faces}"/>'
        for name, shape in (("angle", "mesh"), ("solid", "octree"))
        if shape in names
    )
    return f"<extension>{plugins}</extension><asset>{meshes}{prisms}</asset>"


def scene(first: str, second: str, option: str = "", worldbody: str = "") -> str:
    """Returns the MJCF of two shapes that may touch."""
    return f"""<mujoco><option {option}/>{assets({first, second})}<worldbody>{worldbody}
<body mocap="true">{geom(first)}</body><body><freejoint/>{geom(second, 'density="500"')}</body></worldbody></mujoco>"""


def heap(*names: str, option: str = "") -> str:
    """Returns the MJCF of free bodies of these shapes one above the other, so that neighbours overlap, over a plane."""
    bodies = "".join(f'<body pos=".1 .05 {0.1 + 0.2 * k}"><freejoint/>{geom(x)}</body>' for k, x in enumerate(names))
    option = f'<option sdf_initpoints="9" {option}/>'
    return f"<mujoco>{option}{assets(set(names))}<worldbody>{geom('plane')}{bodies}</worldbody></mujoco>"


def rows(contact) -> np.ndarray:
    """Returns geoms, distance, position and normal of each contact, (n, 9)."""
    widths = {"geom": 2, "dist": 1, "pos": 3, "frame": 9}
    geom, dist, pos, frame = (np.reshape(getattr(contact, name), (-1, n)) for name, n in widths.items())
    return np.concatenate([geom, dist, pos, frame[:, :3]], axis=1)
