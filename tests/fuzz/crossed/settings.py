"""Features that are settings: integrators, solvers, flags, sensors, states, edits of the compiled model."""

from __future__ import annotations

import mujoco
import numpy as np

import featherlane as fl
from fuzz.crossed.scene import Edit, Random, Scene
from scenes.sensors import CONTACT_FIELDS

# ---- integrators and solvers -----------------------------------------------------------------------------------------
INTEGRATORS = ("Euler", "implicit", "implicitfast", "RK4", "discrete")
SOLVERS = ("Newton", "Newton", "CG", "PGS")
DISABLED = (
    "constraint equality frictionloss limit contact spring damper gravity clampctrl warmstart filterparent actuation"
    " refsafe sensor midphase nativeccd eulerdamp island multiccd"
).split()
ENABLED = "energy fwdinv invdiscrete sleep diagexact speculative".split()


def _option(name: str, value: str):
    def set_option(scene: Scene, draw: Random) -> None:
        scene.option(**{name: value})

    return set_option


def noslip(scene: Scene, draw: Random) -> None:
    scene.option(noslip_iterations=draw.among((1, 3, 10)))


def timestep(scene: Scene, draw: Random) -> None:
    scene.option(timestep=draw.among((0.0005, 0.005, 0.01)))


def group_disabled(scene: Scene, draw: Random) -> None:
    scene.option(actuatorgroupdisable="3")


def all_groups_disabled(scene: Scene, draw: Random) -> None:
    """Sets every bit of `disableactuator`."""

    def disable(model):
        model.opt.disableactuator = -1

    scene.calls.append(disable)


def _flag(name: str, value: str):
    def set_flag(scene: Scene, draw: Random) -> None:
        scene.flag(**{name: value})

    return set_flag


SETTINGS = {f"integrator_{name}": _option("integrator", name) for name in INTEGRATORS[1:]}
SOLVING = {f"solver_{name}": _option("solver", name) for name in SOLVERS[2:]} | {
    f.__name__: f for f in (noslip, timestep, group_disabled, all_groups_disabled)
}


def ipc(scene: Scene, draw: Random) -> None:
    scene.option(integrator="discrete")
    scene.flag(ipc="enable")


FLAGS = (
    {"ipc": ipc}
    | {f"no_{name}": _flag(name, "disable") for name in DISABLED}
    | {f"flag_{name}": _flag(name, "enable") for name in ENABLED}
)

# ---- sensors ---------------------------------------------------------------------------------------------------------
FRAMES = "framepos framequat framexaxis frameyaxis framezaxis framelinvel frameangvel framelinacc frameangacc".split()
AT_SITES = "accelerometer velocimeter gyro force torque magnetometer rangefinder touch".split()


def sensors(scene: Scene, draw: Random) -> None:
    """Adds sensors of all kinds."""
    scene.option(magnetic=draw(-1, 1, 3))
    kinds = (_of_sites, _of_frames, _of_bodies, _of_joints, _of_tendons, _of_actuators, _of_geoms, _of_contacts)
    for kind in draw.some(kinds, 0.5):
        for text in kind(scene, draw):
            element = scene.add("sensor", text)
            if draw.chance(0.15) and not element.tag.endswith(("axis", "quat")):
                element.set("cutoff", draw(0.01, 2))
            if draw.chance(0.1):
                element.attrib |= {"delay": draw(0.003, 0.02), "nsample": "5", "interp": draw.among(("zoh", "linear"))}
            elif draw.chance(0.05):
                element.attrib |= {"interval": draw(0.003, 0.01), "nsample": "2"}


def _of_sites(scene, draw):
    sites = scene.names("site")
    return [f'<{kind} site="{draw.among(sites)}"/>' for kind in draw.some(AT_SITES)] if sites else []


def _of_frames(scene, draw):
    on = [
        (kind, n)
        for kind, tag in (("body", "body"), ("xbody", "body"), ("geom", "geom"), ("site", "site"))
        for n in scene.names(tag)
    ]
    out = []
    for kind in draw.some(FRAMES) if on else ():
        (a, b), (c, d) = draw.among(on), draw.among(on)
        of = f'reftype="{c}" refname="{d}"' if draw.chance(0.5) and "acc" not in kind else ""
        out.append(f'<{kind} objtype="{a}" objname="{b}" {of}/>')
    return out


def _of_bodies(scene, draw):
    body = draw.among(["world", *scene.names("body")])
    return [f'<{kind} body="{body}"/>' for kind in ("subtreecom", "subtreelinvel", "subtreeangmom")] + [
        "<e_potential/>",
        "<e_kinetic/>",
        "<clock/>",
    ]


def _of_joints(scene, draw):
    out = [
        f'<{kind} joint="{j}"/>' for j in scene.scalar()[:3] for kind in ("jointpos", "jointvel", "jointactuatorfrc")
    ]
    balls = [j.get("name") for j in scene.joints("ball")][:2]
    out += [f'<{kind} joint="{j}"/>' for j in balls for kind in ("ballquat", "ballangvel")]
    limited = [j.get("name") for j in scene.joints("hinge", "slide", "ball") if j.get("range")][:3]
    return out + [f'<jointlimit{what} joint="{j}"/>' for j in limited for what in ("pos", "vel", "frc")]


def _of_tendons(scene, draw):
    out = []
    for tendon in scene.tendons():
        out += [f'<{kind} tendon="{tendon.get("name")}"/>' for kind in ("tendonpos", "tendonvel", "tendonactuatorfrc")]
        if tendon.get("range"):
            out += [f'<tendonlimit{what} tendon="{tendon.get("name")}"/>' for what in ("pos", "vel", "frc")]
    return out


def _of_actuators(scene, draw):
    names = [u.get("name") for u in scene.section("actuator") if u.get("name")]
    return [f'<actuator{what} actuator="{name}"/>' for name in names for what in ("pos", "vel", "frc")]


def _of_geoms(scene, draw):
    names = [g.get("name") for g in scene.shapes() if g.get("type", "sphere") in ("sphere", "capsule", "box")]
    a, b = draw.among(names), draw.among(names)
    if not a or a == b:
        return []
    return [f'<{kind} geom1="{a}" geom2="{b}" cutoff="{draw(0.1, 3)}"/>' for kind in ("distance", "normal", "fromto")]


def _of_contacts(scene, draw):
    names = [g.get("name") for g in scene.shapes()]
    of = f'geom1="{draw.among(names)}"' if names and draw.chance(0.5) else ""
    reduce = draw.among(("none", "mindist", "maxforce", "netforce"))
    fields = CONTACT_FIELDS if reduce != "netforce" else "found force torque dist pos normal tangent"
    return [f'<contact {of} reduce="{reduce}" num="{1 if reduce == "netforce" else 3}" data="{fields}"/>']


# ---- states ----------------------------------------------------------------------------------------------------------
def zero_quaternion(scene: Scene, draw: Random) -> None:
    _quaternions(scene, 0.0)


def long_quaternion(scene: Scene, draw: Random) -> None:
    _quaternions(scene, 1.7)


def _quaternions(scene: Scene, factor: float) -> None:
    def change(mj, data):
        for joint in range(mj.njnt):
            first = mj.jnt_qposadr[joint] + 3 * (mj.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE)
            if mj.jnt_type[joint] <= int(mujoco.mjtJoint.mjJNT_BALL):
                data.qpos[first : first + 4] *= factor

    scene.starts.append(change)


def fast(scene: Scene, draw: Random) -> None:
    def change(mj, data):
        data.qvel[:] *= 10

    scene.starts.append(change)


def at_rest(scene: Scene, draw: Random) -> None:
    def change(mj, data):
        mujoco.mj_resetData(mj, data)

    scene.starts.append(change)


def activated(scene: Scene, draw: Random) -> None:
    seed = int(draw.rng.integers(1 << 31))

    def change(mj, data):
        data.act[:] = np.random.default_rng(seed).uniform(0, 1, mj.na)

    scene.starts.append(change)


def bad_control(scene: Scene, draw: Random) -> None:
    def drive(mj, inputs, k):
        if mj.nu and k == 1:
            inputs["ctrl"][0] = np.nan

    scene.drives.append(drive)


def long_run(scene: Scene, draw: Random) -> None:
    scene.steps = 30


STATES = {f.__name__: f for f in (zero_quaternion, long_quaternion, fast, at_rest, activated, bad_control, long_run)}

# ---- edits -----------------------------------------------------------------------------------------------------------
EDITED = (
    "body_mass body_inertia body_ipos body_iquat body_pos body_quat body_gravcomp dof_damping dof_armature"
    " jnt_pos jnt_axis dof_frictionloss jnt_stiffness jnt_range jnt_margin qpos_spring geom_friction geom_solref"
    " geom_solimp geom_margin geom_gap geom_adhesion geom_surfacevel geom_pos geom_quat geom_solmix site_pos"
    " site_quat tendon_damping tendon_stiffness tendon_range tendon_armature tendon_frictionloss"
    " tendon_lengthspring actuator_gear actuator_gainprm actuator_biasprm actuator_ctrlrange actuator_forcerange"
    " eq_data eq_solref eq_solimp opt_gravity opt_timestep opt_wind opt_density opt_viscosity opt_impratio"
    " dof_solref jnt_solref dof_invweight0 body_invweight0 actuator_damping actuator_armature geom_fluid"
    " jnt_actfrcrange dof_dampingpoly jnt_stiffnesspoly"
).split()
OPTIONAL = ("frictionloss", "armature", "damping", "stiffness", "gravcomp", "adhesion", "surfacevel", "margin")


def _edit(name: str):
    def add(scene: Scene, draw: Random) -> None:
        seed = int(draw.rng.integers(1 << 31))
        scene.edits.append(Edit(name, lambda value: _changed(name, value, np.random.default_rng(seed))))

    return add


def _changed(name: str, value: np.ndarray, rng) -> np.ndarray:
    """Returns a valid other value of a field."""
    if name.endswith("axis") or "quat" in name:
        out = value + 0.2 * rng.standard_normal(value.shape)
        return out / np.linalg.norm(out, axis=-1, keepdims=True)
    if name in ("body_ipos", "body_pos", "geom_pos", "site_pos", "jnt_pos", "opt_gravity", "opt_wind"):
        return value + 0.05 * rng.standard_normal(value.shape)
    if name.endswith(OPTIONAL) and rng.random() < 0.5:
        return np.abs(value) + 0.1 * rng.random(value.shape)
    if name == "body_inertia":
        return value * (1 + 0.2 * rng.random())
    return value * (1 + 0.3 * rng.random(value.shape))


EDITS = {f"edit_{name}": _edit(name) for name in EDITED}


def get(model, name: str) -> np.ndarray:
    """Returns a field of an MjModel or a model of ours."""
    if not name.startswith("opt_"):
        return np.array(getattr(model, name))
    return np.array(getattr(model.opt, name[4:]))


def put(model, name: str, value: np.ndarray) -> None:
    """Sets a field of an MjModel or a model of ours."""
    if not name.startswith("opt_"):
        getattr(model, name)[...] = value
    elif np.ndim(value):
        getattr(model.opt, name[4:])[...] = value
    else:
        setattr(model.opt, name[4:], float(value))


def is_ours(model) -> bool:
    return isinstance(model, fl.Model)
