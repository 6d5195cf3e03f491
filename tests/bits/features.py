"""Motions with every kind of element and option, each for the recorded bits of `bits_scenes.py`."""

from __future__ import annotations

import itertools

import featherlane as fl
from bits.models import ADHESIVE, BELTS, CHAIN, MECHANISM, SPECIAL, YIELDING, crowd, heap, rafts, shapes, tree
from bits.motion import FEW, OUTPUTS, Motion, loading, symmetric
from scenes import actuators, equalities, fluids, sensors, tactile, tendons, user_functions
from scenes import sleep as sleeping
from scenes.held import FINGERS
from scenes.signed_distance import heap as heap_of_fields

INTEGRATORS = ("Euler", "RK4", "implicit", "implicitfast", "discrete")
CONES = ("pyramidal", "elliptic")
# outputs that a step computes on demand: a fixed list, because the hashes cover these
ALL = tuple(
    "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat subtree_com cdof cinert crb M "
    "qLD qLDiagInv cam_xpos cam_xmat ten_length ten_J actuator_length actuator_moment energy cvel cdof_dot "
    "ten_velocity actuator_velocity qfrc_bias qfrc_spring qfrc_damper qfrc_gravcomp qfrc_fluid qfrc_adhesion "
    "qfrc_passive subtree_linvel subtree_angmom actuator_force act_dot actuator_input actuator_rate "
    "tendon_actuatorfrc badctrl qfrc_actuator qfrc_smooth qacc_smooth".split()
)
AT_REST = {"position": 1e-4, "velocity": 0.0}


# ---- user inputs and callbacks ---------------------------------------------------------------------------------------
def push(i, world):
    """Changes applied forces."""
    world.qfrc_applied[i % len(world.qfrc_applied)] = 0.5 * (i % 3) - 0.5
    world.xfrc_applied[1 + i % 2, 2] = 2.0 * (i % 5)


def lead(i, world):
    """Moves and rotates a mocap body."""
    world.mocap_pos[0, 0] += 0.01
    world.mocap_quat[0] = 0.8, 0.6 * (-1) ** (i // 7), 0.0, 0.0


def switch(i, world):
    """Switches equalities, in some worlds earlier than in others."""
    world.eq_active[i % len(world.eq_active)] = (i // 5 + int(world.qpos[0] > 0.0)) % 2


def give(i, world):
    """Gives contacts in addition to the detected ones, then instead of them."""
    if i in (0, 8):
        frame = [[0, 0, 1, 1, 0, 0, 0, 1, 0], [0.6, 0, 0.8, 0.8, 0, -0.6, 0, 1, 0]]
        what = {"body": [[0, 2], [1, 3]], "dim": [3, 4], "friction": [0.7, 0.6, 0.02, 0.01, 0.01]}
        world.give_contacts([-0.01, -0.005], [[0, 0, 0.2], [0.1, 0, 0.25]], frame, replace=i == 8, **what)
    if i == 14:
        world.clear_given_contacts()


def own_models(batch, rng):
    """Sets masses, frictions, gains, gravity and time steps of each world."""
    n = batch.nworld
    batch.expand("body_mass")[:] *= 1.0 + 0.2 * symmetric(rng, n, 1)
    batch.expand("body_inertia")[:] *= 1.0 + 0.2 * symmetric(rng, n, 1, 1)
    batch.set_const()
    for name in ("geom_friction", "opt.gravity", "opt.timestep", "dof_damping", "actuator_gainprm"):
        rows = batch.expand(name)
        rows[:] *= 1.0 + 0.1 * symmetric(rng, n, *([1] * (rows.ndim - 1)))


def spoil(i, world):
    """Makes some worlds non-finite, which are then reset."""
    if i == 5 and world.qpos[0] > 0.0:
        world.qvel[0] = 1e12


@fl.kernel
def steer(m, d):
    """Sets controls by position and height, and a push."""
    d.ctrl[0] = -2.0 * d.qpos[0] - 0.3 * d.qvel[0]
    d.ctrl[1] = 0.5 * d.xipos[1].z - fl.lanes.exp(-d.time[0])
    d.qfrc_applied[m.nv - 1] = 0.1 * d.qvel[1]


@fl.kernel
def measured(m, d, i):
    """Returns a position, a velocity and an energy."""
    return d.xpos[1].z, d.qvel[0], d.energy[1]


def user_actuators() -> fl.Model:
    """Returns a model with user callbacks for activation, gain and bias."""
    return user_functions.loaded(user_functions.user_scene("all"))


def user_sensor() -> fl.Model:
    """Returns a model with a user-defined sensor."""
    xml = tree(3).replace("</sensor>", '<user name="mine" dim="3" needstage="acc" cutoff="2"/></sensor>')
    model = fl.load(xml)
    fl.set_user_sensor(model, "mine", measured)
    return model


def touchless(integrator: str = "Euler") -> str:
    """Returns a model with all kinds of actuators on one row of joints."""
    kinds = [kind for name, kind in actuators.ACTUATORS.items() if "group" not in name]
    on = ('joint="hinge" gear=".1"', 'joint="slide" gear="-.2"')
    text = "".join(kind.format(j=joint) for kind, joint in itertools.product(kinds, on))
    return actuators.scene(text + "".join(actuators.OTHERS.values()), integrator)


# ---- motions ---------------------------------------------------------------------------------------------------------
def elements() -> dict[str, Motion]:
    """Returns motions by element: actuators, tendons, equalities, fluids, plastic springs, adhesion, belts, sensors."""
    out = {}
    for integrator in INTEGRATORS:
        out[f"actuators {integrator}"] = Motion(loading(touchless(integrator)), 20)
        out[f"mechanism {integrator}"] = Motion(loading(MECHANISM.replace("Euler", integrator)), 20, position=0.1)
        option = f'<option integrator="{integrator}" timestep=".005"/>'
        every = 'stiffness="3 1" damping=".3" frictionloss=".1" limited="true" range="0 .8"'
        straight = dict.fromkeys(("muscle", "over", "three", "sum", "four"), 'armature=".02"')  # not if one wraps
        text = tendons.scene(option, every=every, **straight)
        out[f"tendons {integrator}"] = Motion(loading(text), 15, position=0.1)
        out[f"yielding {integrator}"] = Motion(loading(YIELDING.replace("Euler", integrator)), 30, position=0.5)
        out[f"special {integrator}"] = Motion(loading(SPECIAL.replace("Euler", integrator)), 20, position=0.01)
        for medium, shape in (("water", fluids.ELLIPSOIDS), ("oil", fluids.BOXES)):
            out[f"{medium} {integrator}"] = Motion(loading(fluids.scene(medium, integrator, shape)), 15)
    out["equalities"] = Motion(loading(equalities.EQUALITIES), 20, position=0.05)
    out["equalities switched"] = Motion(loading(equalities.EQUALITIES), 20, position=0.05, user=switch)
    out["welded"] = Motion(loading(equalities.WELDED), 30, position=0.05, user=lead)
    for cone in CONES:
        out[f"adhesive {cone}"] = Motion(loading(ADHESIVE.replace("pyramidal", cone)), 20, position=0.005)
        out[f"jammed {cone}"] = Motion(loading(FINGERS.format(cone=cone)), 30, position=0.02)
        out[f"belts {cone}"] = Motion(loading(BELTS.replace("pyramidal", cone)), 20, position=0.01)
    everything = "".join(sensors.GROUPS.values())
    for shape in sensors.SITES:
        out[f"sensors {shape}"] = Motion(loading(sensors.scene(everything, shape)), 6, position=0.05)
    grid = tactile.GRID.format(cutoff="", more='<config key="nchannel" value="6"/>')
    out["sensors tactile"] = Motion(loading(tactile.scene("box", grid)), 6, position=0.05)
    out["sensors sampled"] = Motion(loading(SAMPLED), 30)
    return out


SAMPLED = """<mujoco><option timestep="0.01"/><worldbody><body><joint name="h"/><joint name="s" type="slide"/>
<geom size=".1" pos=".1 .2 .3"/><site name="t" pos=".1 .2 .3"/></body></worldbody><sensor>
<jointpos joint="h" delay=".025" nsample="5"/><gyro site="t" delay=".025" nsample="5" interp="linear"/>
<velocimeter site="t" delay=".033" nsample="8" interp="cubic"/><jointvel joint="h" interval=".03" nsample="3"/>
<jointvel joint="s" interval=".035 -.012" nsample="4" interp="linear"/><clock delay=".02" nsample="4"/>
<accelerometer site="t" interval=".025" delay=".04" nsample="6" interp="cubic"/></sensor></mujoco>"""


def uses() -> dict[str, Motion]:
    """Returns motions with user inputs: forces, mocap, given contacts, per-world models, kernels; outputs, capacity."""
    fast = {"integrator": "implicitfast", "forward_dynamics": "aba"}
    out = {
        "pushed": Motion(loading("quadruped"), 20, position=0.1, user=push),
        "led": Motion(loading(tree(4)), 20, user=lead),
        "given contacts": Motion(loading(heap()), 20, position=0.03, user=give, given=4),
        "given contacts elliptic": Motion(loading(heap('cone="elliptic"')), 20, position=0.03, user=give, given=4),
        "own models": Motion(loading("humanoid"), 20, position=0.1, drop=0.5, expand=own_models),
        "own models implicit": Motion(loading("quadruped", integrator="implicit"), 20, expand=own_models),
        "user actuators": Motion(user_actuators, 20),
        "user sensor": Motion(user_sensor, 10),
        "control kernel": Motion(loading(tree(3)), 20, control=steer),
        "everything shown": Motion(loading(tree(1)), 10, outputs=(*OUTPUTS, *ALL)),
        "everything shown, a mechanism": Motion(loading(MECHANISM), 10, outputs=(*OUTPUTS, *ALL)),
        "few slots": Motion(loading(heap()), 20, position=0.1, slots=17),
        "few slots, implicit": Motion(loading(heap('integrator="implicitfast"')), 20, position=0.1, slots=17),
        "few slots, adhesion": Motion(loading(ADHESIVE), 20, position=0.05, slots=11),
        "too few slots": Motion(loading(heap()), 10, position=0.1, slots=4),
        "signed distance fields": Motion(loading(heap_of_fields("octree", "capsule", "octree", "mesh", "box")), 10),
        "signed distance fields, converged": Motion(
            loading(heap_of_fields("octree", "ellipsoid", "octree", "mesh"), sdf_tolerance=1e-6), 4, worlds=FEW
        ),
        "signed distance plugins": Motion(loading(heap_of_fields("bolt", "nut", "gear", "cylinder")), 3, worlds=FEW),
        "reset": Motion(loading("humanoid", timestep=0.1), 30, velocity=30.0),
        "spoiled": Motion(loading(tree(1)), 10, user=spoil),
        "spoiled, histories": Motion(loading(touchless()), 10, position=0.1, user=spoil),
        "spoiled, samples": Motion(loading(SAMPLED), 10, user=spoil),
        "crowd": Motion(loading(crowd(160)), 4, position=0.02, worlds=FEW),
        "long chain": Motion(loading(CHAIN), 20, position=0.05),
        "long chain by articulated bodies": Motion(loading(CHAIN, forward_dynamics="aba"), 20, position=0.05),
        "long chain by articulated bodies, bent": Motion(loading(CHAIN, forward_dynamics="aba"), 5, position=0.5),
        "long chain implicitfast": Motion(loading(CHAIN, **fast), 10, position=0.05),
        "humanoid implicitfast by articulated bodies": Motion(loading("humanoid", **fast), 10, position=0.1),
        "humanoid in water": Motion(loading("humanoid", **fast, density=500.0), 10, position=0.1),
        "bodies of many geoms": Motion(loading(rafts(4, 30)), 20, position=0.05),
        "humanoid by its factor": Motion(loading("humanoid", forward_dynamics="crb"), 10, position=0.1),
        "humanoid by articulated bodies": Motion(loading("humanoid", forward_dynamics="aba"), 10, position=0.1),
    }
    for flags in ("override", "fwdinv", "diagexact", "energy"):
        out[f"flag {flags}"] = Motion(loading(heap(flag=f'{flags}="enable"')), 10, position=0.03)
        out[f"flag {flags}, discrete"] = Motion(
            loading(heap('integrator="discrete" cone="elliptic"', f'{flags}="enable"')), 10, position=0.03
        )
    for flags in "warmstart eulerdamp refsafe spring damper gravity clampctrl contact limit frictionloss".split():
        out[f"without {flags}"] = Motion(loading(tree(1, flag=f'{flags}="disable"')), 10)
    for gyroscopic in ("implicit", "off"):
        model = loading(shapes("plane"), gyroscopic=gyroscopic)
        out[f"gyroscopic {gyroscopic}"] = Motion(model, 10, position=0.02, velocity=5.0)
    out["rotation infinitesimal"] = Motion(loading(tree(1), rotation="infinitesimal"), 10)
    return out


def sleep() -> dict[str, Motion]:
    """Returns motions of trees that fall asleep and wake."""
    scenes = sleeping.SCENES
    out = {f"sleep {n}": Motion(loading(xml), steps, **AT_REST, user=u) for n, (xml, steps, u) in scenes.items()}
    stack, dozing = scenes["stack"][0], crowd(160, 'sleep="enable"')
    out["sleep, spoiled"] = Motion(loading(stack), 20, **AT_REST, user=spoil)
    out["sleep, given contacts"] = Motion(loading(stack), 20, **AT_REST, user=give, given=4)
    for kind, clock in {"clock": "<clock/>", "late clock": '<clock/><clock delay=".02" nsample="4"/>'}.items():
        text = sleeping.scene(sleeping.STACK, f"<sensor>{clock}<e_kinetic/></sensor>")
        # full tiles, in which every world is asleep
        out[f"sleep, {kind}"] = Motion(loading(text), 70, **AT_REST, worlds={"float64": 8, "float32": 16})
    out["sleep in a crowd"] = Motion(loading(dozing), 3, **AT_REST, worlds=FEW)
    return out
