"""Folder of layers: selection of drawn layers and of the camera."""

from __future__ import annotations

from featherlane.apps.viewer.panel.controls import Controls

# MuJoCo's keys, as far as it has the layer
KEYS = {
    "hulls": "H", "tendons": "V", "joints": "J", "joint limits": "L", "actuators": "U", "bodies": "X",
    "mass centres": "M", "support": "P", "inertias": "I", "contacts": "C", "forces": "F", "body names": "B",
    "islands": "N", "glass": "T",
}  # fmt: skip


def layers(controls: Controls) -> None:
    """Creates the folder of layers."""
    scene, cameras, server = controls.page.scene, controls.page.cameras, controls.server

    def switch(layer: str, group: int | None, on: bool) -> None:
        scene.switch(layer, group, on)
        controls.sync()

    def add(layer: str, group: int | None, label: str) -> None:
        box = controls.gui.add_checkbox(label, scene.is_on(layer, group))
        controls.on(f"layer {label}", box, lambda on: switch(layer, group, on))
        controls.follows(box, lambda: scene.is_on(layer, group))

    def aim() -> None:
        for client in server.get_clients().values():
            client.camera.position = server.initial_camera.position
            client.camera.look_at = server.initial_camera.look_at

    with controls.folder("Layers"):
        for layer, groups in scene.layers.items():
            add(layer, None, layer)
            for group in groups if len(groups) > 1 else ():
                add(layer, group, f"{layer}, group {group}")
            if layer in KEYS:
                toggle = lambda layer=layer: switch(layer, None, not scene.is_on(layer))  # noqa: E731
                controls.command(f"Show or hide {layer}", KEYS[layer], toggle)
        controls.dropdown("camera choice", "Camera", cameras.choices, cameras.choice, cameras.choose)
        controls.button("camera", "Reset the camera", aim)
