"""Features that are forces: springs, dampers, tendons, actuators, fluids, gravity compensation, applied forces."""

from __future__ import annotations

import numpy as np

from fuzz.crossed.scene import Random, Scene
from scenes.actuators import ACTUATORS, OTHERS


def set_some(draw: Random, elements, part: float = 0.6, **values) -> None:
    """Sets attributes of some elements; a value may be a function without arguments."""
    for element in draw.some(elements, part):
        for name, value in values.items():
            element.set(name, value() if callable(value) else value)


# ---- joints ----------------------------------------------------------------------------------------------------------
def joint_springs(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), stiffness=lambda: draw(0, 20))
    set_some(draw, scene.joints("hinge", "slide"), springref=lambda: draw(-0.3, 0.3))


def polynomial_springs(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), stiffness=lambda: draw(0, 20, 3))


def plastic_springs(scene: Scene, draw: Random) -> None:
    for joint in draw.some(scene.joints("hinge", "slide", "ball")):
        joint.set("stiffness", draw(1, 20))
        joint.set("springyield", draw(0, 0.3))


def joint_damping(scene: Scene, draw: Random) -> None:
    high = draw.among((0.5, 5, 500))
    set_some(draw, scene.joints(), damping=lambda: draw(0, high))


def polynomial_damping(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), damping=lambda: draw(0, 2, 3))


def spring_dampers(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints("hinge", "slide"), springdamper=lambda: f"{draw(0.05, 1)} {draw(0.2, 1.5)}")


def armature(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), armature=lambda: draw(0, 0.5))


def negative_damping(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), damping=lambda: draw(-0.05, 0))


# ---- tendons ---------------------------------------------------------------------------------------------------------
def fixed_tendon(scene: Scene, draw: Random) -> None:
    names = draw.some(scene.scalar())[:4]
    if names:
        terms = "".join(f'<joint joint="{j}" coef="{draw(-1, 1)}"/>' for j in names)
        scene.add("tendon", f'<fixed name="{scene.name("t")}">{terms}</fixed>')


def _world_site(scene: Scene, draw: Random) -> str:
    name = scene.name("w")
    scene.add("worldbody", f'<site name="{name}" pos="{draw(-0.5, 2)} {draw(-0.5, 0.5)} {draw(0.2, 1.5)}"/>')
    return name


def straight_tendon(scene: Scene, draw: Random) -> None:
    ends = [draw.among(scene.names("site")), _world_site(scene, draw)]
    if draw.chance(0.5):
        ends.insert(0, draw.among([s for s in scene.names("site") if s not in ends] or [ends[0]]))
    path = "".join(f'<site site="{s}"/>' for s in dict.fromkeys(ends) if s)
    scene.add("tendon", f'<spatial name="{scene.name("t")}">{path}</spatial>')


def pulley_tendon(scene: Scene, draw: Random) -> None:
    a, b, w, v = (
        draw.among(scene.names("site")),
        draw.among(scene.names("site")),
        _world_site(scene, draw),
        _world_site(scene, draw),
    )
    if a and b:
        second = f'<pulley divisor="{draw.among((2, 3))}"/><site site="{v}"/><site site="{b}"/>'
        path = f'<site site="{w}"/><site site="{a}"/>{second}'
        scene.add("tendon", f'<spatial name="{scene.name("t")}">{path}</spatial>')


def _wrapper(scene: Scene, draw: Random, size: str = ".07") -> tuple[str, str]:
    """Adds a wrapping geom to the world or a body; returns its name and that of a side site."""
    parent = draw.among(["worldbody", *scene.all("body")])
    name, side = scene.name("r"), scene.name("s")
    kind = draw.among((f'type="sphere" size="{size}"', f'type="cylinder" size="{size} .3"'))
    pos = f"{draw(-0.1, 1.2)} 0 {draw(0.4, 1)}" if parent == "worldbody" else draw(-0.1, 0.1, 3)
    far = draw.among((0.2, 0.02))
    scene.add(
        parent,
        f'<geom name="{name}" {kind} pos="{pos}" euler="{draw(-90, 90, 3)}" contype="0" conaffinity="0" mass="0.01"/>'
        f'<site name="{side}" pos="{" ".join(f"{float(x) + far:.4g}" for x in pos.split())}"/>',
    )
    return name, side


def wrapped_tendon(scene: Scene, draw: Random) -> None:
    wrap, side = _wrapper(scene, draw)
    a = draw.among([s for s in scene.names("site") if s != side])
    if a:
        around = f'sidesite="{side}"' if draw.chance(0.5) else ""
        path = f'<site site="{_world_site(scene, draw)}"/><geom geom="{wrap}" {around}/><site site="{a}"/>'
        scene.add("tendon", f'<spatial name="{scene.name("t")}">{path}</spatial>')


def winch(scene: Scene, draw: Random) -> None:
    """Adds a tendon that ends on the surface of its wrapping cylinder or sphere, or slightly outside of it."""
    parent = draw.among(scene.all("body"))
    if parent is None:
        return
    name, end, r = scene.name("r"), scene.name("e"), draw.among((0.05, 0.1, 0.07))
    angle, out = draw.rng.uniform(0, 2 * np.pi), draw.among((1.0, 1.0 + 1e-9, 1.0 + 1e-6))
    if out == 1.0:
        scene.ends.append(end)
    kind = draw.among((f'type="sphere" size="{r}"', f'type="cylinder" size="{r} .05"'))
    scene.add(
        parent,
        f'<geom name="{name}" {kind} contype="0" conaffinity="0" mass="0.1"/>'
        f'<site name="{end}" pos="{out * r * np.cos(angle):.17g} {out * r * np.sin(angle):.17g} 0"/>',
    )
    path = f'<site site="{end}"/><geom geom="{name}"/><site site="{_world_site(scene, draw)}"/>'
    scene.add("tendon", f'<spatial name="{scene.name("t")}">{path}</spatial>')


def tendon_springs(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.tendons(), stiffness=lambda: draw(0, 50, draw.among((1, 1, 3))))
    set_some(draw, scene.tendons(), 0.4, springlength=lambda: draw.among(("0.1", "0 0.3", "0.2 0.9")))


def tendon_damping(scene: Scene, draw: Random) -> None:
    high = draw.among((0.5, 10, 1500))
    set_some(draw, scene.tendons(), damping=lambda: draw(0, high, draw.among((1, 1, 3))))


def tendon_plastic(scene: Scene, draw: Random) -> None:
    for tendon in scene.tendons():
        tendon.set("stiffness", draw(1, 50))
        tendon.set("springyield", draw(0, 0.3))


def tendon_armature(scene: Scene, draw: Random) -> None:
    straight = [t for t in scene.tendons() if t.find("geom") is None]
    set_some(draw, straight, armature=lambda: draw(0, 0.5))


# ---- actuators -------------------------------------------------------------------------------------------------------
def _transmission(scene: Scene, draw: Random) -> str:
    """Returns the attributes of a random transmission with one scalar control; empty if there is none."""
    sites, options = scene.names("site"), []
    options += [f'joint="{j}"' for j in scene.scalar()] + [f'jointinparent="{j}"' for j in scene.scalar()]
    options += [f'tendon="{t.get("name")}"' for t in scene.tendons() if t.get("name")]
    options += [f'{key}="{j.get("name")}"' for j in scene.joints("ball", "free") for key in ("joint", "jointinparent")]
    if sites:
        options += [f'site="{draw.among(sites)}"', f'site="{sites[0]}" refsite="{draw.among(sites)}"']
        options += [f'cranksite="{sites[0]}" slidersite="{draw.among(sites)}" cranklength="{draw(0.2, 1.5)}"']
    chosen = draw.among(options) or ""
    size = 6 if "site=" in chosen or "free" in chosen else 1
    if "crank" in chosen:
        size = 1
    joint = next((j for j in scene.joints() if f'"{j.get("name")}"' in chosen), None)
    if joint is not None:
        size = {"ball": 3, "free": 6}.get(joint.get("type", "hinge"), 1)
    return f'{chosen} gear="{draw(-2, 2, size)}"' if chosen else ""


def actuator(scene: Scene, draw: Random) -> None:
    """Adds one to three actuators of any kind on any transmission."""
    for _ in range(draw.among((1, 2, 3))):
        where = _transmission(scene, draw)
        if where:
            text = ACTUATORS[draw.among(ACTUATORS)].format(j=where)
            name = scene.name("u")
            scene.add("actuator", text).set("name", name)
    _controls(scene, draw)


def ball_servo(scene: Scene, draw: Random) -> None:
    balls = [j.get("name") for j in scene.joints("ball")]
    kinds = [kind for kind in OTHERS if kind.startswith(("ball", "orientation"))]
    if balls:
        scene.add("actuator", OTHERS[draw.among(kinds)].replace('"ball"', f'"{draw.among(balls)}"'))
        _controls(scene, draw)


def adhesion_actuator(scene: Scene, draw: Random) -> None:
    body = draw.among(scene.names("body"))
    if body:
        scene.add(
            "actuator", f'<adhesion name="{scene.name("u")}" body="{body}" ctrlrange="0 1" gain="{draw(1, 20)}"/>'
        )
        _controls(scene, draw)


def instant_filter(scene: Scene, draw: Random) -> None:
    """Adds a filterexact actuator of time constant 0."""
    where = _transmission(scene, draw)
    if where:
        scene.add("actuator", f'<general {where} dyntype="filterexact" dynprm="0" gainprm="3"/>').set(
            "name", scene.name("u")
        )
        _controls(scene, draw)


def damped_actuator(scene: Scene, draw: Random) -> None:
    """Adds actuators with damping and armature."""
    for joint in draw.some(scene.scalar()):
        scene.add(
            "actuator",
            f'<motor name="{scene.name("u")}" joint="{joint}" armature="{draw(0, 0.1)}" damping="{draw(0, 2, 3)}"/>',
        )
    _controls(scene, draw)


def actuator_limits(scene: Scene, draw: Random) -> None:
    """Limits the actuator forces of joints and tendons."""
    set_some(draw, scene.joints("hinge", "slide"), actuatorfrcrange=lambda: f"{draw(-1, 0)} {draw(0, 1)}")
    set_some(draw, scene.tendons(), actuatorfrcrange=lambda: f"{draw(-1, 0)} {draw(0, 1)}", actuatorfrclimited="true")


def _controls(scene: Scene, draw: Random) -> None:
    seed, size = int(draw.rng.integers(1 << 31)), draw.among((1.0, 1.0, 5.0))

    def drive(mj, inputs, k):
        inputs["ctrl"][:] = size * np.random.default_rng([seed, k]).uniform(-1, 1, mj.nu)

    scene.drives.append(drive)


# ---- bodies ----------------------------------------------------------------------------------------------------------
def fluid_boxes(scene: Scene, draw: Random) -> None:
    scene.option(density=draw(0, 800), viscosity=draw(0, 0.5), wind=draw(-1, 1, 3))


def fluid_ellipsoids(scene: Scene, draw: Random) -> None:
    scene.option(density=draw(0, 800), viscosity=draw(0, 0.5), wind=draw(-1, 1, 3))
    set_some(draw, scene.shapes(), fluidshape="ellipsoid", fluidcoef=lambda: draw(0, 1.5, 5))


def gravity_compensation(scene: Scene, draw: Random) -> None:
    set_some(draw, [b for b in scene.all("body") if b.get("mocap") is None], gravcomp=lambda: draw(-0.5, 1.5))
    set_some(draw, scene.joints("hinge", "slide", "ball"), 0.7, actuatorgravcomp="true")


def adhesive_geoms(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.shapes(), adhesion=lambda: draw(0, 5))


def moving_surfaces(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.shapes(), surfacevel=lambda: draw(-0.5, 0.5, 6))


def no_gravity(scene: Scene, draw: Random) -> None:
    scene.option(gravity="0 0 0")


def tilted_gravity(scene: Scene, draw: Random) -> None:
    scene.option(gravity=draw(-9, 9, 3))


def applied_forces(scene: Scene, draw: Random) -> None:
    seed = int(draw.rng.integers(1 << 31))

    def push(mj, inputs, k):
        rng = np.random.default_rng([seed, k])
        inputs["qfrc_applied"][:] = rng.uniform(-1, 1, mj.nv)
        inputs["xfrc_applied"][1:] = rng.uniform(-1, 1, (mj.nbody - 1, 6))

    scene.drives.append(push)


FORCES = {
    f.__name__: f
    for f in (
        *(joint_springs, polynomial_springs, plastic_springs, joint_damping, polynomial_damping, spring_dampers),
        *(armature, negative_damping, actuator_limits, fluid_boxes, fluid_ellipsoids, gravity_compensation),
        *(adhesive_geoms, moving_surfaces, no_gravity, tilted_gravity, applied_forces),
    )
}
TENDONS = {f.__name__: f for f in (fixed_tendon, straight_tendon, pulley_tendon, wrapped_tendon, winch)}
OF_TENDONS = {f.__name__: f for f in (tendon_springs, tendon_damping, tendon_plastic, tendon_armature)}
ACTUATION = {f.__name__: f for f in (actuator, ball_servo, adhesion_actuator, instant_filter, damped_actuator)}
