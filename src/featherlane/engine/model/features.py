"""Lists the features of a model that are not computed: one line per element whose absence would change the motion.

Everything else loads: cameras, lights, skins, sensors, user data, geoms that cannot collide.  All other parts of a
MuJoCo model are either computed or cannot change the motion:

- options: magnetic affects only sensors, jacobian only storage, ccd_* only MuJoCo's algorithm for convex
  shapes;
- enable flags: energy and sleep are computed, fwdinv records statistics, invdiscrete changes the result of inverse
  dynamics and not the motion, ipc affects only flexes;
- disable flags: sensor, midphase, nativeccd and island change how MuJoCo computes, not the solution; multiccd is
  computed;
- histories of sensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import mujoco
import numpy as np

from featherlane.engine.model.actuators import PID
from featherlane.engine.model.enums import EQ_TENDON, HFIELD, MESH, PLANE, SDF, TRN_SO3
from featherlane.engine.model.mujoco_arrays import read_field
from featherlane.engine.model.names import element
from featherlane.engine.model.option import clashes, tendon_equalities
from featherlane.engine.model.pair import NO_FUNCTION
from featherlane.engine.model.plugins import instances
from featherlane.engine.model.sensor import SENSORS
from featherlane.engine.model.shapes import visible_geoms
from featherlane.engine.model.signed_distance import NO_FIELD, field_kind, field_problems
from featherlane.engine.model.taxels import TOUCH_GRID
from featherlane.errors import UnsupportedFeatureError

# user callbacks that mj_step calls
CALLBACKS = ("passive", "control", "contactfilter", "act_dyn", "act_gain", "act_bias")


def unsupported(mj: mujoco.MjModel, cand: dict[str, np.ndarray]) -> list[str]:
    """Returns every feature that would change the motion and is not computed, with its element's name or `#id`.

    Args:
        cand: its `candidates`.

    Returns:
        Lines such as `equality 'pull': flex`; empty if the whole motion is computed.
    """
    found = list(_callbacks())
    if mj.nv:
        found += [f"{element(mj, 'flex', i)}: deformable body" for i in range(mj.nflex)]
        found += [*_equalities(mj), *_actuators(mj), *_plugins(mj)]
    options = {name: read_field(mj, f"opt_{name}") for name in ("integrator", "disableflags", "enableflags")}
    found += clashes(options | {"tendon_equalities": tendon_equalities(mj.eq_type)})
    found += field_problems(mj, cand)
    found += _shapes(mj, cand)
    return found


def sensor_problem(mj: mujoco.MjModel, i: int) -> str:
    """Returns the reason why sensor i is not computed; empty if it is."""
    kind = mujoco.mjtSensor(int(mj.sensor_type[i]))
    word = _word(mujoco.mjtSensor, kind)
    if int(kind) not in SENSORS:  # user sensors without a function
        return word
    if kind == mujoco.mjtSensor.mjSENS_PLUGIN:
        name = instances(mj)[mj.sensor_plugin[i]].plugin
        return "" if name == TOUCH_GRID else f"{word} {name}"
    if kind == mujoco.mjtSensor.mjSENS_INSIDESITE and mj.sensor_intprm[i, 0]:
        return f"{word} enclosed"
    problem = _geometry_problem(mj, i, kind)
    return f"{word}, {problem}" if problem else ""


def _geometry_problem(mj: mujoco.MjModel, i: int, kind: int) -> str:
    """Returns a site or geom of the sensor whose shape does not support it; empty if there is none."""
    mesh, sensors, site = mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtSensor, int(mujoco.mjtObj.mjOBJ_SITE)
    obj, ref = int(mj.sensor_objid[i]), int(mj.sensor_refid[i])
    if kind == sensors.mjSENS_TOUCH and mj.site_type[obj] == mesh:
        return "with a mesh site"
    sites = [ref] if kind == sensors.mjSENS_INSIDESITE else []
    if kind == sensors.mjSENS_CONTACT and mj.sensor_objtype[i] == site:
        sites = [obj]
    if any(mj.site_type[s] == mesh and mj.mesh_graphadr[read_field(mj, "site_dataid")[s]] < 0 for s in sites):
        return "with a site whose mesh has no convex hull"
    if kind in (sensors.mjSENS_GEOMDIST, sensors.mjSENS_GEOMNORMAL, sensors.mjSENS_GEOMFROMTO):
        for geom in _geoms(mj, mj.sensor_objtype[i], obj):
            for other in _geoms(mj, mj.sensor_reftype[i], ref):
                problem = _distance_problem(mj, geom, other)
                if problem:
                    return problem
    if kind == sensors.mjSENS_RANGEFINDER:
        body = mj.site_bodyid[obj] if mj.sensor_objtype[i] == site else mj.cam_bodyid[obj]
        seen = np.flatnonzero(visible_geoms(mj)["geom_visible"] & (mj.geom_bodyid != body))
        return ", ".join(_without_field(mj, seen))
    return ""


def _distance_problem(mj: mujoco.MjModel, geom: int, other: int) -> str:
    """Returns the reason why the distance of two geoms is not computed; empty if it is."""
    kinds, plugins = {int(mj.geom_type[g]) for g in (geom, other)}, instances(mj)
    for g in (geom, other):
        if SDF in kinds and PLANE not in kinds:
            if mj.geom_type[g] != HFIELD and field_kind(mj, g, plugins) == NO_FIELD:
                return f"{element(mj, 'geom', g)}: no signed distance field"
        elif mj.geom_type[g] in (MESH, SDF) and mj.mesh_graphadr[mj.geom_dataid[g]] < 0:
            return f"{element(mj, 'geom', g)}: its mesh has no convex hull"
    return ""


def _without_field(mj: mujoco.MjModel, geoms: Iterable[int]) -> Iterator[str]:
    """Yields the SDF geoms among these whose field is not supported, with their names."""
    plugins = instances(mj)
    for geom in geoms:
        if mj.geom_type[geom] == SDF and field_kind(mj, geom, plugins) == NO_FIELD:
            yield f"{element(mj, 'geom', geom)}: sdf"


def refuse_rays(model: Any, geoms: Iterable[int]) -> None:
    """Raises an error if rays would have to hit unsupported geoms.

    Raises:
        UnsupportedFeatureError: with the name of each of these geoms.
    """
    lost = list(_without_field(model.mj_model, geoms))
    if lost:
        raise UnsupportedFeatureError(
            lost, what="rays against these geoms are not supported; exclude them with geomgroup"
        )


def _geoms(mj: mujoco.MjModel, kind: int, ident: int) -> range:
    """Returns the geoms of a sensor's object: the geom itself, or those of a body."""
    if kind == int(mujoco.mjtObj.mjOBJ_BODY):
        return range(mj.body_geomadr[ident], mj.body_geomadr[ident] + mj.body_geomnum[ident])
    return range(ident, ident + 1)


def sensor_support(mj: mujoco.MjModel) -> list[bool]:
    """Returns per sensor whether its value is computed; reading sensordata raises if one is not."""
    return [not sensor_problem(mj, i) for i in range(mj.nsensor)]


def refused_kinds() -> dict[str, set[str]]:
    """Returns the unsupported kinds of actuators and sensors, by group, for the table of features."""
    kinds = mujoco.mjtSensor.__members__.values()
    sensors = {_word(mujoco.mjtSensor, kind) for kind in kinds if int(kind) not in SENSORS}
    return {"transmission": {"undefined"}, "sensor": sensors}


def unsupported_sensors(model: Any) -> dict[int, str]:
    """Returns, by sensor, why its value is not computed; without user sensors that have a function."""
    problems = ((i, sensor_problem(model.mj_model, i)) for i in range(model.nsensor) if i not in model.user_sensors)
    return {i: problem for i, problem in problems if problem}


def refuse_sensors(model: Any, sensors: Iterable[int] | None = None) -> None:
    """Raises an error if the results of sensors (all of them, or the given ones) are not computed.

    Raises:
        UnsupportedFeatureError: with the name and kind of each of these sensors.
    """
    lost = [
        f"{element(model.mj_model, 'sensor', i)}: {problem}"
        for i, problem in unsupported_sensors(model).items()
        if sensors is None or i in sensors
    ]
    if lost:
        raise UnsupportedFeatureError(lost, what="these sensors are not supported")


def _word(enum: type, value: int) -> str:
    """Returns the last part of an enum's name in MJCF's spelling: mjEQ_CONNECT -> connect."""
    return enum(int(value)).name.split("_", 1)[1].lower()


def _callbacks() -> Iterator[str]:
    """Yields the user callbacks that are installed in this process."""
    for name in CALLBACKS:
        if getattr(mujoco, f"get_mjcb_{name}")() is not None:
            yield f"callback mjcb_{name}: installed in this process"


def _equalities(mj: mujoco.MjModel) -> Iterator[str]:
    """Yields the equalities of flexes, also inactive ones: they can be activated between steps."""
    for i in range(mj.neq):
        if mj.eq_type[i] > EQ_TENDON:
            yield f"{element(mj, 'equality', i)}: {_word(mujoco.mjtEq, mj.eq_type[i])}"


def _actuators(mj: mujoco.MjModel) -> Iterator[str]:
    plugins = [instance.plugin for instance in instances(mj)]
    for i in range(mj.nactuator):
        wrong = ["undefined trntype"] if mj.actuator_trntype[i] > TRN_SO3 else []
        if mj.actuator_plugin[i] >= 0 and plugins[mj.actuator_plugin[i]] != PID:
            wrong.append(f"plugin {plugins[mj.actuator_plugin[i]]}")
        if wrong:
            yield f"{element(mj, 'actuator', i)}: {', '.join(wrong)}"


def _plugins(mj: mujoco.MjModel) -> Iterator[str]:
    """Yields plugins on bodies, and instances that no element uses (passive forces); sensor plugins only measure."""
    names = [instance.plugin for instance in instances(mj)]
    bodies = np.flatnonzero(mj.body_plugin >= 0)
    yield from (f"{element(mj, 'body', i)}: plugin {names[mj.body_plugin[i]]}" for i in bodies)
    used = {*mj.body_plugin, *mj.geom_plugin, *mj.actuator_plugin, *mj.sensor_plugin}
    yield from (f"{element(mj, 'plugin', i)}: plugin {names[i]}" for i in range(mj.nplugin) if i not in used)


def _shapes(mj: mujoco.MjModel, cand: dict[str, np.ndarray]) -> Iterator[str]:
    """Yields geoms that may collide with an unsupported shape: one line per geom, with the other types."""
    odd = cand["cand_function"] == NO_FUNCTION
    geom1, geom2 = cand["cand_geom1"][odd], cand["cand_geom2"][odd]

    # the unsupported shape is the geom of higher type, except for height fields
    hfield = mj.geom_type[geom1] == HFIELD
    culprit, other = np.where(hfield, geom1, geom2), np.where(hfield, geom2, geom1)
    for geom in np.unique(culprit):
        types = np.unique(mj.geom_type[other[culprit == geom]])
        others = ", ".join(_word(mujoco.mjtGeom, kind) for kind in types)
        yield f"{element(mj, 'geom', geom)}: collision of {_word(mujoco.mjtGeom, mj.geom_type[geom])} with {others}"
