"""Sets the lights of a page: a sky and a sun with shadows, without external resources."""

from __future__ import annotations

SKY, EARTH, SUN = (225, 235, 255), (150, 145, 140), (255, 250, 240)  # their colours
UP, SUNWARDS = (0.0, 0.0, 1.0), (-1.0, -2.0, 4.0)


def illuminate(server) -> None:
    """Adds lights to the page, in place of viser's lights and its panorama."""
    scene = server.scene
    scene.configure_environment_map(hdri=None)
    scene.configure_default_lights(enabled=False)
    scene.add_light_hemisphere("/light/sky", sky_color=SKY, ground_color=EARTH, intensity=2.0, position=UP)
    scene.add_light_directional("/light/sun", color=SUN, intensity=2.6, cast_shadow=True, position=SUNWARDS)
