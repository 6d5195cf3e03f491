"""Rejects models of MuJoCo before 4.0 that MuJoCo 4.0 does not compile, or stores in another format; by name.

Bodies that MuJoCo before 3.11 would merge wrongly are kept.

All computations assume a model as compiled by MuJoCo 4.0.  Some models accepted by older versions would cause reads
beyond the end of an array.

Source: changelog of MuJoCo, 3.12 (inputs of DC motors), 3.14 (histories), 3.16 (bounding volumes) and 4.0 (what the
    compiler rejects).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane.engine.model.enums import BOX, CAPSULE, CYLINDER, ELLIPSOID, GAIN_DCMOTOR, SPHERE
from featherlane.engine.model.names import element
from featherlane.engine.model.reader import SPLIT, mujoco_module, version_numbers
from featherlane.errors import ModelError

MERGES = (3, 11)  # since this version `fusestatic` merges inertias of bodies with another orientation or position
SERVOS = (3, 12)  # since this version actuator_ctrlspec has the inputs of a DC motor, which were in its gain parameters
HISTORIES = (3, 14)  # since this version a history has a value for each control of an actuator
VOLUMES = (3, 16)  # since this version mj_setConst computes bounding spheres and boxes


def merges_wrongly(spec) -> bool:
    """Returns whether this MuJoCo merges bodies with `fusestatic`, and misplaces the inertia of one.

    MuJoCo before 3.11 composes the frames of a body and of its inertia in the wrong order.
    """
    if version_numbers(mujoco_module().__version__) >= MERGES or not spec.compiler.fusestatic:
        return False
    bodies = [(body, False) for body in spec.worldbody.bodies]
    while bodies:
        body, carried = bodies.pop()
        static = not len(body.joints) and not body.mocap
        if carried and static and (body.mass > 0 if body.explicitinertial else len(body.geoms)):
            return True
        bodies += [(child, carried or not static) for child in body.bodies]
    return False


def check_compiled(mj) -> None:
    """Raises an error for everything that the newest MuJoCo would not compile.

    Raises:
        ModelError: with the element's name, the given value and the allowed values; lists all.
    """
    wrong = refused(mj)
    if wrong:
        version = mujoco_module().__version__
        raise ModelError(
            f"compiled by MuJoCo {version}; MuJoCo 4.0 rejects or computes differently:\n  " + "\n  ".join(wrong)
        )


def refused(mj) -> list[str]:
    """Returns everything that the newest MuJoCo would not compile, each with its element's name."""
    version = version_numbers(mujoco_module().__version__)
    if version >= SPLIT:
        return []
    histories = _histories(mj) if version < HISTORIES else ()
    return [*_hfields(mj), *_tendons(mj), *histories, *(_dcmotors(mj) if version < SERVOS else ())]


def update_bounding_volumes(mj, sizes: np.ndarray) -> None:
    """Computes the bounding spheres and boxes of edited geoms of an MjModel, as MuJoCo's mj_setConst since 3.16.

    Sizes of planes, meshes and height fields have no effect.

    Args:
        sizes: (ngeom, 3) sizes for which its volumes were computed [m].

    Raises:
        ModelError: an edited geom has ellipsoid fluid forces, whose coefficients this MuJoCo does not recompute.
    """
    version = mujoco_module().__version__
    if version_numbers(version) >= VOLUMES:
        return
    for i in np.flatnonzero((mj.geom_size != sizes).any(1)):
        kind, (a, b, c) = int(mj.geom_type[i]), mj.geom_size[i]
        half = {
            SPHERE: (a, a, a),
            CAPSULE: (a, a, a + b),
            ELLIPSOID: (a, b, c),
            CYLINDER: (a, a, b),
            BOX: (a, b, c),
        }.get(kind)
        if half is None:
            continue
        if mj.geom_fluid[i].any():
            raise ModelError(
                f"set_const: got an edited geom_size of {element(mj, 'geom', i)} with fluidshape, which requires "
                f"MuJoCo 3.16 or newer, this is {version}"
            )
        mj.geom_aabb[i] = (0.0, 0.0, 0.0, *half)
        radius = {CYLINDER: np.sqrt(a * a + b * b), BOX: np.sqrt(a * a + b * b + c * c)}
        mj.geom_rbound[i] = radius.get(kind, max(half))


def _hfields(mj) -> Iterator[str]:
    for i in np.flatnonzero((mj.hfield_nrow < 2) | (mj.hfield_ncol < 2)):
        given = f"{mj.hfield_nrow[i]} x {mj.hfield_ncol[i]}"
        yield f"{element(mj, 'hfield', i)}: {given} samples, allowed are at least 2 x 2"


def _tendons(mj) -> Iterator[str]:
    """Checks tendons: distinct slides and hinges if fixed, pulleys with a divisor if spatial, armature at least 0."""
    wrap = mujoco_module().mjtWrap
    for i in range(mj.ntendon):
        path = slice(mj.tendon_adr[i], mj.tendon_adr[i] + mj.tendon_num[i])
        kinds, objects = mj.wrap_type[path], mj.wrap_objid[path]
        joints = objects[kinds == int(wrap.mjWRAP_JOINT)]
        if (mj.jnt_type[joints] < int(mujoco_module().mjtJoint.mjJNT_SLIDE)).any():
            yield f"{element(mj, 'tendon', i)}: got a ball or free joint, allowed are slides and hinges"
        if len(set(joints)) < len(joints):
            yield f"{element(mj, 'tendon', i)}: got a joint twice, allowed are distinct joints"
        if (mj.wrap_prm[path][kinds == int(wrap.mjWRAP_PULLEY)] <= 0).any():
            yield f"{element(mj, 'tendon', i)}: got a divisor <= 0 of a pulley, allowed are numbers > 0"
        if mj.tendon_armature[i] < 0:
            yield f"{element(mj, 'tendon', i)}: armature is {mj.tendon_armature[i]:g}, allowed is >= 0"


def _dcmotors(mj) -> Iterator[str]:
    for i in np.flatnonzero((mj.actuator_gaintype == GAIN_DCMOTOR) & (mj.actuator_gainprm[:, 8] != 0)):
        kind = {1: "position", 2: "velocity"}.get(int(mj.actuator_gainprm[i, 8]), "unknown")
        yield f"{element(mj, 'actuator', i)}: {kind} input of a DC motor, allowed before 3.12 is voltage"


def _histories(mj) -> Iterator[str]:
    for i in np.flatnonzero((mj.actuator_history[:, 0] > 0) & (mj.actuator_ctrlnum > 1)):
        yield f"{element(mj, 'actuator', i)}: got a history of several controls, allowed is a history of one control"
