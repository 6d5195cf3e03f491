"""What MuJoCo before 4.0 compiles and 4.0 refuses, or lays out in another way: refused here, by name.

Everything that is computed takes a model to be as MuJoCo 4.0 compiles it; some of what older versions let pass would
be read beyond the end of an array.

Source: changelog of MuJoCo, 3.14 (histories), 3.16 (bounding volumes) and 4.0 (what the compiler rejects).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from featherlane.errors import ModelError
from featherlane.model.names import element
from featherlane.model.reader import SPLIT, mujoco_module, numbers

HISTORIES = (3, 14)  # from here on a history has a value for each control of an actuator
VOLUMES = (3, 16)  # from here on mj_setConst computes bounding spheres and boxes


def check_compiled(mj) -> None:
    """Refuse what the newest MuJoCo would not have compiled.

    Raises:
        ModelError: with the element's name, what was given and what is allowed; lists all.
    """
    wrong = refused(mj)
    if wrong:
        version = mujoco_module().__version__
        raise ModelError(f"compiled by MuJoCo {version}; 4.0 refuses or does otherwise:\n  " + "\n  ".join(wrong))


def refused(mj) -> list[str]:
    """What the newest MuJoCo would not have compiled, each with its element's name."""
    version = numbers(mujoco_module().__version__)
    if version >= SPLIT:
        return []
    return [*_hfields(mj), *_tendons(mj), *(_histories(mj) if version < HISTORIES else ())]


def check_edited_sizes(edited: bool) -> None:
    """Refuse to recompute what depends on the sizes of geoms where MuJoCo does not.

    Raises:
        ModelError: sizes were edited, and this MuJoCo leaves bounding spheres and boxes as they are.
    """
    version = mujoco_module().__version__
    if edited and numbers(version) < VOLUMES:
        raise ModelError(
            f"set_const: geom_size was edited, and MuJoCo {version} does not compute bounding volumes anew; 3.16 does"
        )


def _hfields(mj) -> Iterator[str]:
    for i in np.flatnonzero((mj.hfield_nrow < 2) | (mj.hfield_ncol < 2)):
        given = f"{mj.hfield_nrow[i]} x {mj.hfield_ncol[i]}"
        yield f"{element(mj, 'hfield', i)}: {given} samples, allowed are 2 x 2 or more"


def _tendons(mj) -> Iterator[str]:
    """Fixed ones want distinct slides and hinges, spatial ones pulleys with a divisor, all no negative armature."""
    wrap = mujoco_module().mjtWrap
    for i in range(mj.ntendon):
        path = slice(mj.tendon_adr[i], mj.tendon_adr[i] + mj.tendon_num[i])
        kinds, objects = mj.wrap_type[path], mj.wrap_objid[path]
        joints = objects[kinds == int(wrap.mjWRAP_JOINT)]
        if (mj.jnt_type[joints] < int(mujoco_module().mjtJoint.mjJNT_SLIDE)).any():
            yield f"{element(mj, 'tendon', i)}: a ball or free joint, allowed are slides and hinges"
        if len(set(joints)) < len(joints):
            yield f"{element(mj, 'tendon', i)}: a joint twice, allowed is once"
        if (mj.wrap_prm[path][kinds == int(wrap.mjWRAP_PULLEY)] <= 0).any():
            yield f"{element(mj, 'tendon', i)}: divisor of a pulley, allowed is > 0"
        if mj.tendon_armature[i] < 0:
            yield f"{element(mj, 'tendon', i)}: armature is {mj.tendon_armature[i]:g}, allowed is >= 0"


def _histories(mj) -> Iterator[str]:
    for i in np.flatnonzero((mj.actuator_history[:, 0] > 0) & (mj.actuator_ctrlnum > 1)):
        yield f"{element(mj, 'actuator', i)}: history of several controls, of which it has room for one"
