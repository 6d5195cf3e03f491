"""Small URDF robots: a biped and a quadruped of boxes, and an arm whose gripper has a mimic joint."""

from __future__ import annotations

LIMIT = '<limit lower="{0}" upper="{1}" effort="{2}" velocity="{3}"/>'


def link(name: str, size: tuple[float, float, float], mass: float, z: float = 0.0) -> str:
    """Returns a box [m] with its inertia, at a height in the link's frame."""
    a, b, c = (side**2 * mass / 12.0 for side in size)
    origin = f'<origin xyz="0 0 {z}"/>'
    return (
        f'<link name="{name}"><inertial>{origin}<mass value="{mass}"/><inertia ixx="{b + c}" iyy="{a + c}" '
        f'izz="{a + b}" ixy="0" ixz="0" iyz="0"/></inertial><collision>{origin}<geometry>'
        f'<box size="{size[0]} {size[1]} {size[2]}"/></geometry></collision></link>'
    )


def joint(
    name: str, ends: str, place: str, axis: str = "0 1 0", limit: tuple = (-2, 2, 80, 10), kind="revolute"
) -> str:
    """Returns a joint between two links, `parent child`, with lower, upper, effort and velocity limit."""
    parent, child = ends.split()
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{place}"/>'
        f'<axis xyz="{axis}"/>{LIMIT.format(*limit)}</joint>'
    )


def robot(*parts: str) -> str:
    """Returns the URDF of links and joints."""
    return f'<robot name="robot">{"".join(parts)}</robot>'


def biped() -> str:
    """Returns two legs with hip, knee and ankle below a trunk; its soles are 0.87 m below the trunk's frame."""
    parts = [link("trunk", (0.15, 0.3, 0.3), 10.0, 0.2)]
    for side, y in (("left", 0.1), ("right", -0.1)):
        parts += [
            link(f"{side}_thigh", (0.08, 0.08, 0.4), 2.0, -0.2),
            link(f"{side}_shank", (0.07, 0.07, 0.4), 1.5, -0.2),
            link(f"{side}_foot", (0.24, 0.1, 0.04), 1.0, -0.05),
            joint(f"{side}_hip", f"trunk {side}_thigh", f"0 {y} 0"),
            joint(f"{side}_knee", f"{side}_thigh {side}_shank", "0 0 -0.4", limit=(0, 2.5, 80, 10)),
            joint(f"{side}_ankle", f"{side}_shank {side}_foot", "0 0 -0.4"),
        ]
    return robot(*parts)


def quadruped() -> str:
    """Returns four legs with hip and knee below a trunk; its soles are 0.42 m below the trunk's frame."""
    parts = [link("trunk", (0.5, 0.2, 0.1), 8.0)]
    for name, x, y in (("fl", 0.2, 0.15), ("fr", 0.2, -0.15), ("hl", -0.2, 0.15), ("hr", -0.2, -0.15)):
        parts += [
            link(f"{name}_thigh", (0.04, 0.04, 0.2), 0.8, -0.1),
            link(f"{name}_shank", (0.03, 0.03, 0.22), 0.2, -0.11),
            joint(f"{name}_hip", f"trunk {name}_thigh", f"{x} {y} 0", limit=(-1.5, 1.5, 25, 20)),
            joint(f"{name}_knee", f"{name}_thigh {name}_shank", "0 0 -0.2", limit=(-2.6, 0, 25, 20)),
        ]
    return robot(*parts)


def arm() -> str:
    """Returns an arm on a pedestal with a gripper, whose right finger follows the left one."""
    finger = joint("right_finger", "hand right", "0 -0.02 0.1", "0 -1 0", (0, 0.04, 20, 0.2), "prismatic")
    return robot(
        link("pedestal", (0.2, 0.2, 0.3), 5.0, 0.15),
        link("upper", (0.08, 0.08, 0.4), 2.0, 0.15),
        link("lower", (0.06, 0.06, 0.3), 1.0, 0.15),
        link("hand", (0.05, 0.15, 0.08), 0.3, 0.04),
        link("left", (0.02, 0.01, 0.06), 0.02, 0.03),
        link("right", (0.02, 0.01, 0.06), 0.02, 0.03),
        joint("turn", "pedestal upper", "0 0 0.3", "0 0 1", kind="continuous"),
        joint("elbow", "upper lower", "0 0 0.35", limit=(-2, -0.2, 40, 3)),
        joint("wrist", "lower hand", "0 0 0.3", limit=(-1, 1, 0, 0)),
        joint("left_finger", "hand left", "0 0.02 0.1", "0 1 0", (0, 0.04, 20, 0.2), "prismatic"),
        finger.replace("</joint>", '<mimic joint="left_finger" multiplier="0.5" offset="0.01"/></joint>'),
    )
