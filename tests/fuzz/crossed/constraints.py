"""Features that are constraints: contacts of all pairs, limits, friction loss, equalities, their parameters."""

from __future__ import annotations

import numpy as np

from bits.models import SIZES as GROUNDS
from fuzz.crossed.forces import set_some
from fuzz.crossed.scene import HALF, SIZES, Random, Scene

SOLREFS = ("0.02 1", "0.05 0.7", "-300 -20", "0.001 1", "0.3 2", "-1000 0")
SOLIMPS = (
    *("0.9 0.95 0.001 0.5 2", "0.8 0.95 0.02 0.3 3", "0.9 0.95 0", "0.5 0.99 0.5 0.7 1.5", "0 0.95 0.01 0.5 1"),
    *("0.99 0.2 0.03 0.5 2", "0.9 0.9 0.1 0 2", "0.3 0.9 0.02 1 4"),
)


# ---- contacts --------------------------------------------------------------------------------------------------------
def ground(scene: Scene, draw: Random) -> None:
    scene.add("worldbody", '<geom name="ground" type="plane" size="9 9 1" pos="0 0 .05"/>')
    _low(scene, draw)


def box_ground(scene: Scene, draw: Random) -> None:
    scene.add("worldbody", f'<geom name="table" type="box" size="3 3 .1" pos="0 0 0" euler="{draw(-5, 5, 3)}"/>')
    _low(scene, draw)


def rough_ground(scene: Scene, draw: Random) -> None:
    elevation = " ".join(draw(0, 1) for _ in range(35))
    scene.asset("hills", f'<hfield name="hills" nrow="5" ncol="7" size="4 4 .2 .2" elevation="{elevation}"/>')
    scene.add("worldbody", f'<geom name="hills" {GROUNDS["hfield"]}/>')
    _low(scene, draw)


def _low(scene: Scene, draw: Random) -> None:
    """Moves some trees down onto the ground."""
    for body in draw.some(scene.root.find("worldbody").findall("body")):
        x, y, _ = body.get("pos", "0 0 0").split()
        body.set("pos", f"{x} {y} {draw(0.1, 0.25)}")


def pair_of_shapes(scene: Scene, draw: Random) -> None:
    """Adds a free shape that overlaps a static one slightly, upright or turned."""
    low, high = draw.among(SIZES), draw.among(SIZES)
    scene.meshes()
    scene.trees += 1
    deep = draw.among(("0.002", "0.01", "1e-8"))
    z = HALF[low] + HALF[high] - float(deep)
    turn = f'euler="{draw(-90, 90, 3)}"' if draw.chance(0.5) else ""
    name = scene.name("b")
    scene.add(
        "worldbody",
        f'<geom name="s{name}" {SIZES[low]} pos="{0.6 * scene.trees} 0 0"/>'
        f'<body name="{name}" pos="{0.6 * scene.trees} {draw(0, 0.02)} {z:.17g}" {turn}>'
        f'<joint name="{scene.name("j")}" type="free"/><geom name="g{name}" {SIZES[high]} mass="1"/>'
        f'<site name="{name}a" pos="0 0 .1" size=".1"/></body>',
    )


def tiny_overlap(scene: Scene, draw: Random) -> None:
    """Adds a cube, as mesh or box, that overlaps another one by 1e-8."""
    scene.meshes()
    scene.trees += 1
    shapes = ['type="mesh" mesh="cube"', draw.among(('type="mesh" mesh="cube"', 'type="box" size=".1 .1 .1"'))]
    low, high = shapes if draw.chance(0.5) else reversed(shapes)
    name, x = scene.name("b"), 0.6 * scene.trees
    scene.add(
        "worldbody",
        f'<geom name="s{name}" {low} pos="{x} 0 0"/><body name="{name}" pos="{x} 0 {0.2 - 1e-8:.17g}">'
        f'<joint name="{scene.name("j")}" type="free"/><geom name="g{name}" {high} mass="1"/></body>',
    )


def heap(scene: Scene, draw: Random) -> None:
    """Adds four to eight free bodies on a floor and on each other."""
    x = 0.6 * (scene.trees + 1)
    scene.trees += 2
    scene.add("worldbody", f'<geom name="{scene.name("floor")}" type="box" size=".5 .5 .1" pos="{x} 0 -.1"/>')
    for k in range(draw.among((4, 8))):
        name, kind = scene.name("b"), draw.among(("box", "sphere", "capsule"))
        scene.add(
            "worldbody",
            f'<body name="{name}" pos="{x + float(draw(-0.1, 0.1)):.4g} {draw(-0.1, 0.1)} {0.1 + 0.13 * k:.4g}">'
            f'<joint name="{scene.name("j")}" type="free"/><geom name="g{name}" {SIZES[kind]} mass="1"/></body>',
        )


def self_contact(scene: Scene, draw: Random) -> None:
    """Lets bodies of a tree touch: spheres at grandchildren that overlap their grandparents."""
    for body in draw.some(scene.all("body"), 0.3):
        for child in body.findall("body"):
            for grandchild in child.findall("body"):
                for one, pos in ((body, "0 0 0"), (grandchild, "0 0 0")):
                    scene.add(one, f'<geom name="{scene.name("k")}" size=".3" pos="{pos}" mass=".1"/>')
                return


def crowd(scene: Scene, draw: Random) -> None:
    """Adds a block of touching boxes: more than 1,024 contacts."""
    for i in range(125):
        x, y, z = i % 5, i // 5 % 5, i // 25
        scene.add(
            "worldbody",
            f'<body name="{scene.name("b")}" pos="{10 + x * 0.999} {y * 0.999} {z * 0.999}"><freejoint/>'
            '<geom type="box" size=".5 .5 .5" density="200"/></body>',
        )
    scene.steps = 1


def pairs(scene: Scene, draw: Random) -> None:
    """Adds explicit pairs with separate parameters, and excludes."""
    shapes, movable = [g.get("name") for g in scene.shapes()], scene.movable()
    for _ in range(2):
        a, b = draw.among(movable), draw.among(shapes)
        if a and a != b:
            scene.add(
                "contact",
                f'<pair geom1="{a}" geom2="{b}" condim="{draw.among((1, 3, 4, 6))}" margin="{draw(0, 0.02)}"'
                f' gap="{draw(0, 0.01)}" friction="{draw(0, 1, 2)} .01 .001 .001" solref="{draw.among(SOLREFS)}"'
                f' solreffriction="{draw.among(SOLREFS)}" adhesion="{draw(0, 2)}"/>',
            )
    bodies = scene.names("body")
    if len(bodies) > 1:
        scene.add("contact", f'<exclude body1="{bodies[0]}" body2="{bodies[-1]}"/>')


def dimensions(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.shapes(), condim=lambda: draw.among(("1", "3", "4", "6")), friction=lambda: draw(0, 1, 3))


def margins(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.shapes(), margin=lambda: draw(0, 0.05), gap=lambda: draw(0, 0.03))


def mixing(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.shapes(), solmix=lambda: draw(0, 2), priority=lambda: draw.among(("0", "0", "1")))


def references(scene: Scene, draw: Random) -> None:
    """Sets solref and solimp of geoms, limits, friction losses and equalities."""
    ref, imp = lambda: draw.among(SOLREFS), lambda: draw.among(SOLIMPS)
    set_some(draw, scene.shapes(), 0.5, solref=ref, solimp=imp)
    for element in (*scene.joints("hinge", "slide", "ball"), *scene.tendons()):
        for what in ("limit", "friction" if element.tag == "joint" or element.get("frictionloss") else "limit"):
            element.set(f"solref{what}", ref())
            element.set(f"solimp{what}", imp())
    set_some(draw, scene.section("equality"), 0.7, solref=ref, solimp=imp)


def override(scene: Scene, draw: Random) -> None:
    scene.flag(override="enable")
    scene.option(o_margin=draw(0, 0.03), o_solref=draw.among(SOLREFS), o_solimp=draw.among(SOLIMPS))
    scene.option(o_friction=draw(0.1, 1, 5))


def elliptic(scene: Scene, draw: Random) -> None:
    scene.option(cone="elliptic", impratio=draw.among((1, 10, 0.5)))


def impratio(scene: Scene, draw: Random) -> None:
    scene.option(impratio=draw(0.3, 20))


# ---- limits and friction losses --------------------------------------------------------------------------------------
def limits(scene: Scene, draw: Random) -> None:
    """Sets ranges, some of which are violated at the start, with margins."""
    for joint in draw.some(scene.joints("hinge", "slide", "ball")):
        degrees = 30 if joint.get("type", "hinge") == "hinge" else 0.1
        low, high = float(draw(-1, 0.1)) * degrees, float(draw(0.11, 1)) * degrees
        joint.set("range", f"0 {draw(1, 40)}" if joint.get("type") == "ball" else f"{low:.4g} {high:.4g}")
        joint.set("margin", draw.among(("0", draw(0, 0.1))))


def tendon_limits(scene: Scene, draw: Random) -> None:
    for tendon in draw.some(scene.tendons()):
        low = float(draw(-0.2, 0.4))
        tendon.set("range", f"{low:.4g} {low + float(draw(0.01, 0.8)):.4g}")
        tendon.set("margin", draw.among(("0", draw(0, 0.1))))


def friction_loss(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.joints(), frictionloss=lambda: draw(0, 2))


def tendon_friction(scene: Scene, draw: Random) -> None:
    set_some(draw, scene.tendons(), frictionloss=lambda: draw(0, 2))


# ---- equalities ------------------------------------------------------------------------------------------------------
def _attributes(draw: Random) -> str:
    text = f'solref="{draw.among(SOLREFS)}"' if draw.chance(0.4) else ""
    return text + (' active="false"' if draw.chance(0.15) else "")


def connect(scene: Scene, draw: Random) -> None:
    a, b = draw.among(scene.names("body")), draw.among(scene.names("body"))
    other = f'body2="{b}"' if b != a and draw.chance(0.6) else ""
    if a:
        scene.add("equality", f'<connect body1="{a}" {other} anchor="{draw(-0.2, 0.2, 3)}" {_attributes(draw)}/>')


def weld(scene: Scene, draw: Random) -> None:
    a, b = draw.among(scene.names("body")), draw.among(scene.names("body"))
    other = f'body2="{b}"' if b != a and draw.chance(0.6) else ""
    if a:
        scale = f'torquescale="{draw(0.2, 2)}" anchor="{draw(-0.1, 0.1, 3)}"'
        scene.add("equality", f'<weld body1="{a}" {other} {scale} {_attributes(draw)}/>')


def site_equalities(scene: Scene, draw: Random) -> None:
    names = scene.names("site")
    a, b = draw.among(names), draw.among(names)
    if a and a != b:
        kind = draw.among(("connect", "weld"))
        scene.add("equality", f'<{kind} site1="{a}" site2="{b}" {_attributes(draw)}/>')


def joint_equality(scene: Scene, draw: Random) -> None:
    names = scene.scalar()
    a, b = draw.among(names), draw.among(names)
    other = f'joint2="{b}"' if a != b else ""
    if a:
        scene.add("equality", f'<joint joint1="{a}" {other} polycoef="{draw(-0.5, 0.5, 5)}" {_attributes(draw)}/>')


def tendon_equality(scene: Scene, draw: Random) -> None:
    names = [t.get("name") for t in scene.tendons()]
    a, b = draw.among(names), draw.among(names)
    other = f'tendon2="{b}"' if a != b else ""
    if a:
        scene.add("equality", f'<tendon tendon1="{a}" {other} polycoef="{draw(-0.5, 0.5, 5)}" {_attributes(draw)}/>')


def still_equality(scene: Scene, draw: Random) -> None:
    """Adds an equality whose Jacobian is zero: between bodies that cannot move."""
    a, b = scene.name("still"), scene.name("still")
    scene.add("worldbody", f'<body name="{a}" pos="0 2 0"/><body name="{b}" pos="0 2.1 0"/>')
    scene.add("equality", draw.among((f'<connect body1="{a}" body2="{b}" anchor=".1 0 0"/>', f'<weld body1="{a}"/>')))


def toggled(scene: Scene, draw: Random) -> None:
    """Switches equalities on and off between steps."""
    seed = int(draw.rng.integers(1 << 31))

    def toggle(mj, inputs, k):
        inputs["eq_active"][:] = np.random.default_rng([seed, k]).random(mj.neq) < 0.6

    scene.drives.append(toggle)


CONTACTS = {f.__name__: f for f in (ground, box_ground, rough_ground, pair_of_shapes, heap, self_contact, tiny_overlap)}
RARE = {"crowd": crowd}
OF_CONTACTS = {f.__name__: f for f in (pairs, dimensions, margins, mixing, override, elliptic, impratio)}
LIMITS = {f.__name__: f for f in (limits, friction_loss, references)}
OF_TENDONS = {f.__name__: f for f in (tendon_limits, tendon_friction, tendon_equality)}
EQUALITIES = {f.__name__: f for f in (connect, weld, site_equalities, joint_equality, still_equality, toggled)}
