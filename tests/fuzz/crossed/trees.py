"""Features that are trees: lone free bodies, simple bodies, chains, long chains, mocap bodies."""

from __future__ import annotations

from fuzz.crossed.scene import SIZES, Random, Scene

CLOSED = ("sphere", "capsule", "box")
EVERY = tuple(SIZES)


def place(scene: Scene, draw: Random, height: str | None = None) -> str:
    """Returns the position of the next tree."""
    scene.trees += 1
    return f"{0.6 * scene.trees} {draw(-0.1, 0.1)} {height or draw(0.1, 1)}"


def geom(scene: Scene, draw: Random, name: str, kinds=CLOSED, more: str = "") -> str:
    kind = draw.among(kinds)
    if kind in ("mesh", "cube"):
        scene.meshes()
    return f'<geom name="{name}" {SIZES[kind]} mass="{draw(0.3, 3)}" {more}/>'


def sites(draw: Random, name: str) -> str:
    first = f'<site name="{name}a" pos="{draw(-0.2, 0.2, 3)}" euler="{draw(-90, 90, 3)}" size=".1"/>'
    return f'{first}<site name="{name}b" pos="0 0 .12"/>'


def body(scene: Scene, draw: Random, inner: str, pos: str | None = None, kinds=CLOSED, more: str = "", shift="") -> str:
    """Returns a body with joints `inner`, a geom and two sites."""
    name = scene.name("b")
    turn = f'euler="{draw(-40, 40, 3)}"' if draw.chance(0.7) else ""
    if inner and "free" not in inner and draw.chance(0.85):
        # without it, bodies with the centre of mass on their joint have rows of D = 1e15, in which rounding errors act
        shift = f'pos="{draw(0.02, 0.1, 3)}" {shift}'
    return (
        f'<body name="{name}" pos="{pos or draw(-0.3, 0.3, 3)}" {turn} {more}>{inner}'
        f"{geom(scene, draw, f'g{name}', kinds, shift)}{sites(draw, name)}</body>"
    )


def joint(scene: Scene, draw: Random, kind: str, more: str = "") -> str:
    axis = "" if kind in ("ball", "free") else f'axis="{draw(-1, 1, 2)} 1"'
    pos = "" if kind in ("slide", "free") or draw.chance(0.5) else f'pos="{draw(-0.1, 0.1, 3)}"'
    return f'<joint name="{scene.name("j")}" type="{kind}" {axis} {pos} {more}/>'


# ---- free bodies -----------------------------------------------------------------------------------------------------
def lone(scene: Scene, draw: Random) -> None:
    """Adds a free body whose frame is its centre of mass."""
    scene.add("worldbody", body(scene, draw, joint(scene, draw, "free"), place(scene, draw)))


def lone_shape(scene: Scene, draw: Random) -> None:
    """Adds a free body of any shape."""
    scene.add("worldbody", body(scene, draw, joint(scene, draw, "free"), place(scene, draw), EVERY))


def off_centre(scene: Scene, draw: Random) -> None:
    """Adds a free body whose frame is off its centre of mass, or turned against its principal axes."""
    shift = f'pos="{draw(-0.1, 0.1, 3)}" euler="{draw(-90, 90, 3)}"'
    scene.add("worldbody", body(scene, draw, joint(scene, draw, "free"), place(scene, draw), shift=shift))


def several_parts(scene: Scene, draw: Random) -> None:
    """Adds a free body with a fixed child body."""
    top = scene.add("worldbody", body(scene, draw, joint(scene, draw, "free"), place(scene, draw)))
    scene.add(top, body(scene, draw, ""))


def twins(scene: Scene, draw: Random) -> None:
    """Adds three equal free boxes in a row that touch or nearly touch."""
    gap = draw.among((-0.001, 0.0, 0.01))
    x = place(scene, draw).split()
    for k in range(3):
        name = scene.name("b")
        scene.add(
            "worldbody",
            f'<body name="{name}" pos="{x[0]} {(0.2 + gap) * k:.4f} .1"><joint name="{scene.name("j")}" type="free"/>'
            f'<geom name="g{name}" type="box" size=".1 .1 .1" mass="1"/><site name="{name}a" pos=".1 0 0" size=".05"/>'
            "</body>",
        )


def floating(scene: Scene, draw: Random) -> None:
    """Adds a free body with children."""
    top = scene.add("worldbody", body(scene, draw, joint(scene, draw, "free"), place(scene, draw)))
    for _ in range(draw.among((1, 2))):
        scene.add(top, body(scene, draw, joint(scene, draw, draw.among(("hinge", "slide", "ball")))))


# ---- fixed bases -----------------------------------------------------------------------------------------------------
def _single(kind: str):
    def add(scene: Scene, draw: Random) -> None:
        scene.add("worldbody", body(scene, draw, joint(scene, draw, kind), place(scene, draw)))

    add.__name__ = kind
    add.__doc__ = f"Adds a body on a {kind} joint."
    return add


hinge, slide, ball = (_single(kind) for kind in ("hinge", "slide", "ball"))


def simple(scene: Scene, draw: Random) -> None:
    """Adds a body on two or three slides along its axes: a diagonal M."""
    axes = ("1 0 0", "0 1 0", "0 0 1")[: draw.among((2, 3))]
    joints = "".join(f'<joint name="{scene.name("j")}" type="slide" axis="{axis}"/>' for axis in axes)
    name = scene.name("b")
    scene.add(
        "worldbody",
        f'<body name="{name}" pos="{place(scene, draw)}">{joints}{geom(scene, draw, f"g{name}")}'
        f"{sites(draw, name)}</body>",
    )


def stacked(scene: Scene, draw: Random) -> None:
    """Adds a body on several joints."""
    kinds = draw.among((("hinge", "hinge"), ("slide", "hinge"), ("hinge", "slide", "hinge"), ("slide", "ball")))
    joints = "".join(joint(scene, draw, kind) for kind in kinds)
    scene.add("worldbody", body(scene, draw, joints, place(scene, draw)))


def planar(scene: Scene, draw: Random) -> None:
    """Adds a body on two slides and a hinge in a plane."""
    joints = "".join(
        f'<joint name="{scene.name("j")}" type="{kind}" axis="{axis}"/>'
        for kind, axis in (("slide", "1 0 0"), ("slide", "0 0 1"), ("hinge", "0 1 0"))
    )
    scene.add("worldbody", body(scene, draw, joints, place(scene, draw)))


def chain(scene: Scene, draw: Random) -> None:
    """Adds a chain of two to five bodies."""
    _chain(scene, draw, int(draw.among((2, 3, 5))), ("hinge", "slide", "ball", "hinge"))


def long_chain(scene: Scene, draw: Random) -> None:
    """Adds a chain that is long enough for the articulated recursion."""
    _chain(scene, draw, int(draw.among((16, 24, 40))), ("hinge", "hinge", "ball"), free=draw.chance(0.4))


def _chain(scene: Scene, draw: Random, length: int, kinds, free: bool = False) -> None:
    parent, pos = "worldbody", place(scene, draw)
    for k in range(length):
        kind = "free" if free and k == 0 else draw.among(kinds)
        parent = scene.add(parent, body(scene, draw, joint(scene, draw, kind), pos))
        pos = f"{draw(0.1, 0.25)} {draw(-0.1, 0.1, 2)}"


def branches(scene: Scene, draw: Random) -> None:
    """Adds a tree with branches."""
    top = scene.add(
        "worldbody", body(scene, draw, joint(scene, draw, draw.among(("hinge", "free"))), place(scene, draw))
    )
    for _ in range(3):
        limb = scene.add(top, body(scene, draw, joint(scene, draw, draw.among(("hinge", "ball", "slide")))))
        if draw.chance(0.6):
            scene.add(limb, body(scene, draw, joint(scene, draw, "hinge")))


def mocap(scene: Scene, draw: Random) -> None:
    """Adds a mocap body that moves, maybe with a pendulum on it."""
    name = scene.name("m")
    inner = body(scene, draw, joint(scene, draw, "hinge")) if draw.chance(0.5) else ""
    scene.add(
        "worldbody",
        f'<body name="{name}" mocap="true" pos="{place(scene, draw)}">{geom(scene, draw, f"g{name}")}'
        f"{sites(draw, name)}{inner}</body>",
    )

    def move(mj, inputs, k):
        if mj.nmocap:
            inputs["mocap_pos"][:, 2] += 0.002

    scene.drives.append(move)


def singular(scene: Scene, draw: Random) -> None:
    """Adds two hinges about the same axis: a singular inertia."""
    joints = "".join(f'<joint name="{scene.name("j")}" axis="0 1 0"/>' for _ in range(2))
    scene.add("worldbody", body(scene, draw, joints, place(scene, draw)))


TREES = {
    f.__name__: f
    for f in (
        *(lone, lone_shape, off_centre, several_parts, twins, floating, hinge, slide, ball, simple, stacked, planar),
        *(chain, long_chain, branches, mocap, singular),
    )
}
