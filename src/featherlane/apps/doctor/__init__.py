"""Diagnoses a model: invalid parameters, instabilities, elements without effect, slow settings.

    for finding in featherlane.diagnose(featherlane.load("robot.xml")):
        print(finding)

A check is a small function of an `ExaminedModel` (examined_model.py) whose docstring states the physics and the
threshold.  It is registered (registry.py) in the module of its subject and yields a `Sign` for each affected element.
Models are checked in qpos0 and in each keyframe, with the controls of that state.
"""

from featherlane.apps.doctor.diagnose import diagnose
from featherlane.apps.doctor.finding import ERROR, NOTE, SEVERITIES, WARNING, Finding

__all__ = ["ERROR", "NOTE", "SEVERITIES", "WARNING", "Finding", "diagnose"]
