"""Scenes of UniLab without its hosted meshes: each mesh, which is only visual, is a tetrahedron."""

import re
import shutil
import struct
from importlib.resources import files
from pathlib import Path

import numpy as np

CORNERS = 0.05 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
FACES = (0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)


def mesh(path: Path) -> None:
    """Writes a tetrahedron as OBJ or STL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".obj":
        lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in FACES]
        path.write_text("\n".join(lines))
        return
    faces = [struct.pack("<12fH", 0, 0, 0, *CORNERS[list(face)].ravel(), 0) for face in FACES]
    path.write_bytes(bytes(80) + struct.pack("<I", len(faces)) + b"".join(faces))


def copied(robot: str, folder: Path, tolerance: float | None = None) -> Path:
    """Returns the flat scene of a robot (`go2`, `g1`) as copied into a folder, with a solver tolerance or UniLab's."""
    source = Path(str(files("unilab"))) / "assets" / "robots" / robot
    folder.mkdir()
    for path in source.glob("*.xml"):
        shutil.copy(path, folder)
        for name in re.findall(r'<mesh [^>]*file="([^"]+)"', path.read_text()):
            mesh(folder / "assets" / name)
    scene = folder / "scene_flat.xml"
    if tolerance is not None:
        option = f'<option tolerance="{tolerance}"/>\n  <statistic'
        scene.write_text(scene.read_text().replace("<statistic", option, 1))
    return scene
