"""Moves the cameras of all visitors: to a camera of the model, or along with the selected body."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane import Model
from featherlane.apps.viewer.frame import Frame
from featherlane.apps.viewer.markup import labels

FREE, TRACK = "free", "follow the selected body"


class Cameras:
    """The cameras of a page."""

    def __init__(self, server, model: Model):
        self.server, self.model, self.choice = server, model, FREE
        self.choices = (FREE, TRACK, *labels(model.names("camera")))
        self._before: dict[int, tuple[Any, ...]] = {}

    @property
    def fields(self) -> tuple[str, ...]:
        """Returns the fields of a frame that the choice needs."""
        return () if self.choice in (FREE, TRACK) else ("cam_xpos", "cam_xmat")

    def choose(self, choice: str) -> None:
        """Selects a camera; the free one is as it was before."""
        self.choice = choice
        for number, client in self.server.get_clients().items():
            camera = client.camera
            if self.fields:
                self._before.setdefault(number, (camera.position, camera.look_at, camera.up_direction, camera.fov))
            elif number in self._before:
                self._look(client, *self._before.pop(number))

    def move(self, frame: Frame, place: int, body: int, offset: np.ndarray) -> None:
        """Moves the visitors' cameras; the selected world has this place in the frame and is drawn at `offset` [m]."""
        if self.choice == FREE:
            return
        clients = list(self.server.get_clients().values())
        if self.choice == TRACK:
            target = frame.pos[place, body] + offset
            for client in clients if np.isfinite(target).all() else ():
                # a visitor may turn and zoom: only the point that the camera looks at is set
                self._look(client, target + client.camera.position - client.camera.look_at, target)
            return
        k = self.choices.index(self.choice) - 2
        position = frame.fields["cam_xpos"][place, k] + offset
        axes = frame.fields["cam_xmat"][place, k].reshape(3, 3)
        for client in clients if k < self.model.ncam and np.isfinite(position).all() else ():
            fov = np.radians(float(self.model.cam_fovy[k]))
            self._look(client, position, position - axes[:, 2], axes[:, 1], fov)

    def described(self, offset: np.ndarray, body: int) -> int | dict[str, Any]:
        """Returns the chosen camera, or that of the first visitor, in a world drawn at `offset`; for `fl.Camera`."""
        clients = list(self.server.get_clients().values())
        if self.fields or not clients:
            return self.choices.index(self.choice) - 2 if self.fields else -1
        camera = clients[0].camera
        ahead = camera.look_at - camera.position
        distance = float(np.linalg.norm(ahead))
        azimuth, elevation = np.degrees((np.arctan2(ahead[1], ahead[0]), np.arcsin(ahead[2] / distance))).tolist()
        found = {
            "distance": distance,
            "azimuth": azimuth,
            "elevation": elevation,
            "fovy": float(np.degrees(camera.fov)),
        }
        return found | ({"trackbodyid": body} if self.choice == TRACK else {"lookat": camera.look_at - offset})

    def _look(self, client, position, look_at, up=None, fov=None) -> None:
        """Sets a visitor's camera; equal values are not sent."""
        camera = client.camera
        if np.allclose(camera.position, position, atol=1e-6) and np.allclose(camera.look_at, look_at, atol=1e-6):
            return
        with client.atomic():
            camera.position, camera.look_at = tuple(position), tuple(look_at)
            if up is not None and fov is not None:
                camera.up_direction, camera.fov = tuple(up), fov
