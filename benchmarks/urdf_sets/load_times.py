"""Times `featherlane.load` of a robot of 30 links with hulls, with meshes in several formats."""

from __future__ import annotations

import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import featherlane as fl
from featherlane.engine.model.enums import MESH

LINKS, RINGS, ROUNDS = 30, 16, 3
COLUMNS = ("meshes", "triangles", "vertices of the hull", "load [s of CPU time]", "relative to STL")
SUFFIXES = (".stl", ".dae")
LINK = """<link name="l{k}"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="m{k}{suffix}"/></geometry></collision></link>"""
JOINT = """<joint name="j{k}" type="revolute"><parent link="l{before}"/><child link="l{k}"/><origin xyz="0.3 0 0"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""


def robot(folder: Path, suffix: str) -> Path:
    """Writes a chain of links with meshes of a format, which differ in size; returns the URDF file."""
    import trimesh

    for k in range(LINKS):
        mesh = trimesh.creation.uv_sphere(0.1, count=[RINGS, RINGS]).subdivide()  # four triangles in each face
        mesh.apply_scale([1.0, 0.6 + 0.01 * k, 0.5])
        mesh.export(folder / f"m{k}{suffix}")
    links = [LINK.format(k=k, suffix=suffix) for k in range(LINKS)]
    joints = [JOINT.format(k=k, before=k - 1) for k in range(1, LINKS)]
    path = folder / f"robot{suffix}.urdf"
    path.write_text(f'<robot name="chain">{"".join(links + joints)}</robot>')
    return path


def load_time(path: Path) -> tuple[float, Any]:
    """Returns the median CPU time to load a file [s], after a first load, and the model."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fl.load(path)
        times.append(time.process_time() - start)
    assert model.njnt == LINKS - 1 and np.count_nonzero(model.geom_type == MESH) == LINKS
    return statistics.median(times[1:]), model


def time_rows(folder: Path) -> tuple[tuple[str, ...], list[list[object]]]:
    """Returns the columns and rows of the table."""
    rows, first = [], 0.0
    for suffix in SUFFIXES:
        seconds, model = load_time(robot(folder, suffix))
        first = first or seconds
        sizes = model.mj_model.nmeshface // model.mj_model.nmesh, int(np.median(model.hull_vertnum))
        rows.append([suffix, *sizes, f"{seconds:.2f}", f"{seconds / first:.2f}"])
    return COLUMNS, rows
