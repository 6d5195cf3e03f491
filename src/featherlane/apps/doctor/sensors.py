"""Checks for sensors without information."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane import enums
from featherlane.apps.doctor.examined_model import ExaminedModel
from featherlane.apps.doctor.finding import NOTE, WARNING, Sign
from featherlane.apps.doctor.registry import check

VELOCITIES = (
    enums.SENS_VELOCIMETER,
    enums.SENS_GYRO,
    enums.SENS_FRAMELINVEL,
    enums.SENS_FRAMEANGVEL,
    enums.SENS_FRAMEANGACC,
)
DISTANCES = (enums.SENS_GEOMDIST, enums.SENS_GEOMNORMAL, enums.SENS_GEOMFROMTO)
OWNERS = {enums.OBJ_GEOM: "geom_bodyid", enums.OBJ_SITE: "site_bodyid", enums.OBJ_CAMERA: "cam_bodyid"}


@check("sensor-idle", WARNING, "the value of the sensor is always zero")
def idle_sensors(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds touch sensors on bodies without colliding geoms, velocity sensors on fixed bodies, and distance sensors
    whose cutoff of 0 detects overlap only."""
    for i in range(examined.model.nsensor):
        reason = _idle_reason(examined, i)
        if reason:
            yield Sign("sensor", i, *reason)


def _idle_reason(examined: ExaminedModel, i: int) -> tuple[str, str] | None:
    """Returns (observation, advice) for a sensor without information."""
    m = examined.model
    kind, obj = int(m.sensor_type[i]), int(m.sensor_objid[i])
    if kind == enums.SENS_TOUCH and not _touchable(examined)[m.site_bodyid[obj]]:
        body = examined.label("body", int(m.site_bodyid[obj]))
        return (
            f"touch sensor on {body}, which has no colliding geom",
            "attach its site to the body with the colliding geoms",
        )
    if kind in VELOCITIES and m.sensor_refid[i] < 0 and _stands(examined, i):
        return "velocity of a body that cannot move", "attach it to a body with joints"
    if kind in DISTANCES and m.sensor_cutoff[i] == 0:
        return "cutoff is 0, so only overlaps are measured", "set cutoff to the longest distance of interest [m]"
    return None


def _touchable(examined: ExaminedModel) -> np.ndarray:
    """Returns (nbody,) whether a geom of the body, or of a body counted by its touch sensors, is in a pair."""
    m, found = examined.model, np.zeros(examined.model.nbody, bool)
    found[m.geom_bodyid[np.unique(examined.pairs)]] = True
    return found


def _stands(examined: ExaminedModel, i: int) -> bool:
    """Returns whether the sensor's object is on a body that neither DoFs nor a mocap pose move."""
    m = examined.model
    kind, obj = int(m.sensor_objtype[i]), int(m.sensor_objid[i])
    body = int(getattr(m, OWNERS[kind])[obj]) if kind in OWNERS else obj
    return not examined.moving[body] and m.body_mocapid[m.body_weldid[body]] < 0


@check(
    "sensor-not-computed", NOTE, "reading sensordata raises an error that names the sensor; the motion is not affected"
)
def unsupported_sensors(examined: ExaminedModel) -> Iterator[Sign]:
    """Finds unsupported sensors: plugins except the touch grid, and user sensors without a function."""
    for i, problem in examined.original.unsupported_sensors.items():
        advice = "remove the sensor, or replace it by a user-defined function with fl.set_user_sensor"
        yield Sign("sensor", i, problem, advice)
