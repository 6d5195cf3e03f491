"""Folder of layers: selection of drawn layers."""

from __future__ import annotations

from featherlane.apps.viewer.panel.controls import Controls

# MuJoCo's keys, as far as it has the layer
KEYS = {
    "hulls": "H",
    "tendons": "V",
    "joints": "J",
    "joint limits": "L",
    "actuators": "U",
    "bodies": "X",
    "mass centres": "M",
    "support": "P",
    "inertias": "I",
    "contacts": "C",
    "forces": "F",
    "body names": "B",
    "islands": "N",
    "glass": "T",
}


class Layers:
    """The folder of layers."""

    def __init__(self, controls: Controls):
        self.controls, self.scene = controls, controls.page.scene
        with controls.folder("Layers"):
            for layer, groups in self.scene.layers.items():
                self._switch(layer, None, layer)
                for group in groups if len(groups) > 1 else ():
                    self._switch(layer, group, f"{layer}, group {group}")
                if layer in KEYS:
                    controls.command(f"Show or hide {layer}", KEYS[layer], lambda layer=layer: self._toggle(layer))
            cameras = controls.page.cameras
            box = controls.gui.add_dropdown("Camera", cameras.choices, initial_value=cameras.choice)
            controls.on("camera choice", box, cameras.choose)
            controls.button("camera", "Reset the camera", self._aim)

    def _switch(self, layer: str, group: int | None, label: str) -> None:
        scene, controls = self.scene, self.controls
        box = controls.gui.add_checkbox(label, scene.is_on(layer, group))

        def switch(on: bool) -> None:
            scene.switch(layer, group, on)
            controls.sync()

        controls.on(f"layer {label}", box, switch)
        controls.follows(box, lambda: scene.is_on(layer, group))

    def _toggle(self, layer: str) -> None:
        self.scene.switch(layer, None, not self.scene.is_on(layer))
        self.controls.sync()

    def _aim(self) -> None:
        camera = self.controls.server.initial_camera
        for client in self.controls.server.get_clients().values():
            client.camera.position, client.camera.look_at = camera.position, camera.look_at
