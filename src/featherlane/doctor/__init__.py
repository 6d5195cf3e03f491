"""A look at a model as an experienced colleague would take it: what cannot be, what blows up, what does nothing.

    for finding in featherlane.diagnose(featherlane.load("robot.xml")):
        print(finding)

A check is a small function of a `Patient` (patient.py) whose docstring states the physics and the threshold; it stands
in one registry (registry.py), in the file of its subject, and yields a `Sign` for each element that shows it.  Sick are
models at their start: in qpos0 and in each keyframe, with the controls that stand there.
"""

from featherlane.doctor.diagnose import diagnose
from featherlane.doctor.finding import ERROR, NOTE, SEVERITIES, WARNING, Finding

__all__ = ["ERROR", "NOTE", "SEVERITIES", "WARNING", "Finding", "diagnose"]
