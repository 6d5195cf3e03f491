"""Walker2d-v5: a planar two-legged robot walks along x."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from featherlane.environments.gymnasium_v5.planar_walker import PlanarWalker, side_view


@dataclass(kw_only=True)
class Walker2d(PlanarWalker):
    """Rewards walking forward with the torso's height and angle within range."""

    xml_file: str = "walker2d_v5.xml"
    default_camera_config: Mapping[str, Any] | None = field(default_factory=lambda: side_view(4.0))
    healthy_z_range: tuple[float, float] = (0.8, 2.0)
    healthy_angle_range: tuple[float, float] = (-1.0, 1.0)

    name = "Walker2d-v5"
