"""Every value in `model/enums.py` equals MuJoCo's of that name; others are listed as ours, or found through MJCF."""

from __future__ import annotations

import mujoco
import pytest

from featherlane.engine.model import enums
from featherlane.engine.model.joint import COORDINATES, DOFS, NAMES

CLASSES = {
    enums.Integrator: ("mjtIntegrator", "mjINT_"),
    enums.Cone: ("mjtCone", "mjCONE_"),
    enums.Solver: ("mjtSolver", "mjSOL_"),
    enums.Disable: ("mjtDisableBit", "mjDSBL_"),
    enums.Enable: ("mjtEnableBit", "mjENBL_"),
    enums.State: ("mjtState", "mjSTATE_"),
}
# prefix here -> MuJoCo's prefix, if they differ
PREFIXES = {
    "": ("JNT_", "GEOM_", "CNSTR_", "CONE_", "SOL_", "INT_"),
    "DISABLE_": ("DSBL_",),
    "ENABLE_": ("ENBL_",),
    "STATE_": ("CNSTRSTATE_",),
}
BITS = ("mjtConDataField", "mjtRayDataField")  # enumerations whose value k is stored as 1 << k
OWN = frozenset(  # Featherlane's own
    "AUTO CRB ABA CONVEX LCP COULOMB DANTZIG LCP_PGS APGD REGISTERED"
    " FROZEN CONSISTENT PYRAMID CONE BY_ERP BY_SOLREF"
    " GYRO_EXPLICIT GYRO_IMPLICIT GYRO_OFF FINITE INFINITESIMAL ABSENT_GEOM METRIC SLEW INTEGRAL TEMPERATURE BRISTLE"
    " CURRENT PID_PLUGIN".split()
)
INMJCF = ("REDUCE_", "INTERP_")  # values whose names occur in MJCF only
NUMBERS = {name: value for name, value in vars(enums).items() if name.isupper() and isinstance(value, int)}
MODEL = """<mujoco><worldbody><body><joint name="j"/><geom name="g" size=".1"/></body></worldbody>
  <actuator><motor joint="j" nsample="4" delay=".01" interp="{interp}"/></actuator>
  <sensor><contact geom1="g" data="found" reduce="{reduce}"/></sensor></mujoco>"""
JOINTS = """<mujoco><worldbody><body>{joint}<geom size=".1"/></body></worldbody></mujoco>"""


def members():
    """Yields (name without mj, value) of every enumeration member, and of MuJoCo's other constants."""
    for kind in (name for name in dir(mujoco) if name.startswith("mjt")):
        for name, value in getattr(getattr(mujoco, kind), "__members__", {}).items():
            yield name.removeprefix("mj"), 1 << int(value) if kind in BITS else int(value)
    for name in dir(mujoco):
        if name.startswith("mj") and isinstance(getattr(mujoco, name), int):
            yield name.removeprefix("mj"), getattr(mujoco, name)


def mujocos(name: str) -> list[int]:
    """Returns MuJoCo's value for this name of ours: none, or one number."""
    known = dict(members())
    names = [name] + [
        new + name.removeprefix(old) for old, news in PREFIXES.items() if name.startswith(old) for new in news
    ]
    return [known[n] for n in names if n in known]


def test_enum_values_equal_mujoco_or_are_additional(subtests):
    for name in sorted(NUMBERS):
        with subtests.test(name=name):
            if name not in OWN and not name.startswith(INMJCF):
                assert mujocos(name) == [NUMBERS[name]]


def test_additional_enum_values_do_not_clash_with_mujoco():
    assert not [name for name in OWN if name not in NUMBERS or mujocos(name)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_option_enums_contain_all_values_of_mujoco(kind):
    theirs, prefix = CLASSES[kind]
    named = {n: int(v) for n, v in getattr(mujoco, theirs).__members__.items() if n.startswith(prefix)}
    assert {prefix + name: int(value) for name, value in kind.__members__.items()} == named


@pytest.mark.parametrize("name", sorted(name for name in NUMBERS if name.startswith(INMJCF)))
def test_enum_values_equal_compiled_mjcf_names(name):
    attribute, value = name.lower().split("_")
    mj = mujoco.MjModel.from_xml_string(MODEL.format(**{"interp": "zoh", "reduce": "none"} | {attribute: value}))
    compiled = {"interp": mj.actuator_history[0, 1], "reduce": mj.sensor_intprm[0, 1]}
    assert compiled[attribute] == NUMBERS[name]


@pytest.mark.parametrize("kind", mujoco.mjtJoint.__members__.values(), ids=lambda kind: kind.name)
def test_joints_have_mujocos_coordinates_and_dofs(kind):
    mj = mujoco.MjModel.from_xml_string(JOINTS.format(joint=f'<joint type="{NAMES[int(kind)]}"/>'))
    assert (mj.jnt_type[0], mj.nq, mj.nv) == (int(kind), COORDINATES[int(kind)], DOFS[int(kind)])
