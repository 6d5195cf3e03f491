"""Keeps the state of the last forward pass of a `Data`, so that queries notice whether derived fields are current.

A forward pass copies the positions and velocities for which it computed all fields.  A step, or another call that
writes derived fields, marks them as those of another state.  A query compares the present state with the copy.
"""

from featherlane.engine.prelude import *
from featherlane.engine.lanes import Field, Layout
from featherlane.engine.simulation.step.forward import forward_pass, step
from featherlane.engine.spatial.types import Quat, Vec3

LAST_PASS = Layout(
    "LastPass",
    (
        Field("nq", "size", doc="number of positions"),
        Field("nv", "size", doc="number of DoFs"),
        Field("nmocap", "size", doc="number of mocap bodies"),
        Field("kept", "int", (1,), doc="1: derived fields of the world belong to this state; 0: to another state"),
        Field("keeps", "int", (1,), doc="1: passes keep their state; 0: never, because a batch has the same memory"),
        Field("qpos", "real", ("nq",), "m, rad, quaternion", "position"),
        Field("qvel", "real", ("nv",), "m/s, rad/s", "velocity"),
        Field("mocap_pos", "real", ("nmocap", 3), "m", "positions of mocap bodies", rows=Vec3),
        Field("mocap_quat", "real", ("nmocap", 4), "1", "orientations of mocap bodies", rows=Quat),
    ),
)


@kernel
def has_positions(m, d, other):
    """Returns 1 if positions and mocap poses of d and of another record are equal, else 0."""
    for i in range(m.nq):
        if any_(d.qpos[i] != other.qpos[i]):
            return 0
    for i in range(3 * m.nmocap):
        if any_(flat(d.mocap_pos)[i] != flat(other.mocap_pos)[i]):
            return 0
    for i in range(4 * m.nmocap):
        if any_(flat(d.mocap_quat)[i] != flat(other.mocap_quat)[i]):
            return 0
    return 1


@kernel
def has_velocities(m, d, other):
    """Returns 1 if velocities of d and of another record are equal, else 0."""
    for i in range(m.nv):
        if any_(d.qvel[i] != other.qvel[i]):
            return 0
    return 1


@kernel
def copy_positions(m, d, other):
    """Copies positions and mocap poses of d to another record."""
    for i in range(m.nq):
        other.qpos[i] = d.qpos[i]
    for k in range(m.nmocap):
        other.mocap_pos[k], other.mocap_quat[k] = d.mocap_pos[k], d.mocap_quat[k]


@kernel
def copy_velocities(m, d, other):
    """Copies velocities of d to another record."""
    for i in range(m.nv):
        other.qvel[i] = d.qvel[i]


@stage(s=LAST_PASS)
def kept_pass(m, d, s):
    """Runs `forward_pass` and keeps its state.

    Source: MuJoCo mj_forward.
    Reads:  what `forward_pass` reads; keeps.
    Writes: what `forward_pass` writes; kept, qpos, qvel, mocap_pos, mocap_quat.
    """
    s.kept[0] = 0
    forward_pass(m, d)
    copy_positions(m, d, s)
    copy_velocities(m, d, s)
    s.kept[0] = s.keeps[0]


@stage(s=LAST_PASS)
def unkept_step(m, d, s):
    """Runs `step`; derived fields belong to the state before it from then on.

    Source: MuJoCo mj_step.
    Reads:  what `step` reads.   Writes: what `step` writes; kept.
    """
    s.kept[0] = 0
    step(m, d)


@stage(s=LAST_PASS)
def unkept_steps(m, d, s, n):
    """Runs `unkept_step` n times.

    Source: MuJoCo mj_step.
    Reads:  what `step` reads.   Writes: what `step` writes; kept.
    """
    s.kept[0] = 0
    for _ in range(n):
        step(m, d)
