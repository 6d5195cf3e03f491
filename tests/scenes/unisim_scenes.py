"""Scenes for tests of UniSim: a robot, and UniLab's scenes, whose hosted visual meshes are tetrahedra here."""

import re
import shutil
import struct
from importlib.resources import files
from pathlib import Path

import numpy as np

CORNERS = 0.05 * np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
FACES = (0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)
ROBOT = """<mujoco>
  <option timestep=".004" tolerance="0"/>
  <default><geom friction=".8 .02 .001" solref=".02 1"/></default>
  <worldbody>
    <geom name="floor" type="plane" size="9 9 .1"/>
    <body name="base" pos="0 0 .4">
      <freejoint/>
      <geom name="trunk" type="box" size=".2 .1 .05" mass="4"/>
      <site name="imu" pos="0 0 .02"/>
      <body name="front" pos=".2 0 0">
        <joint name="front" axis="0 1 0" damping=".2" armature=".01" frictionloss=".05" range="-90 90"/>
        <geom name="front" type="capsule" fromto="0 0 0 .05 0 -.3" size=".03" mass=".4"/>
        <site name="toe" pos=".05 0 -.3"/>
      </body>
      <body name="rear" pos="-.2 0 0">
        <joint name="rear" axis="0 1 0" damping=".2" armature=".01" range="-90 90"/>
        <geom name="rear" type="capsule" fromto="0 0 0 -.05 0 -.3" size=".03" mass=".4"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="front" joint="front" kp="30" kv="1"/>
    <position name="rear" joint="rear" kp="30" kv="1"/>
  </actuator>
  <sensor>
    <gyro name="gyro" site="imu"/> <velocimeter name="speed" site="imu"/> <accelerometer name="acc" site="imu"/>
    <framezaxis name="up" objtype="site" objname="imu"/> <jointvel name="front_vel" joint="front"/>
    <actuatorfrc name="torque" actuator="rear"/>
    <contact name="contact" geom1="floor" geom2="front" data="found force"/>
  </sensor>
  <keyframe><key name="home" qpos="0 0 .38 1 0 0 0 .1 -.2"/></keyframe>
</mujoco>"""


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
