"""Adds sensor noise.  A step computes none; the user adds it to computed values."""

from __future__ import annotations

import numpy as np

from featherlane.engine.model.enums import (
    DATATYPE_AXIS,
    DATATYPE_POSITIVE,
    DATATYPE_QUATERNION,
    RAYDATA_DIST,
    SENS_RANGEFINDER,
)
from featherlane.engine.model.model import Model, check_model
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.engine.simulation.batch.one_world import checked_worlds
from featherlane.engine.simulation.world.data import Data, ready
from featherlane.engine.spatial.rotation import cross, exp_so3, product
from featherlane.errors import ModelError

KINDS = {DATATYPE_POSITIVE: "positive", DATATYPE_AXIS: "axis", DATATYPE_QUATERNION: "quaternion"}


def add_sensor_noise(
    model: Model, sensordata: Data | Batch | np.ndarray, rng: np.random.Generator | int | None = None
) -> None:
    """Adds normally distributed noise to sensor values in place, with the standard deviation `model.sensor_noise`.

    Values of the types real and positive get additive noise; positive ones are then clipped at 0.  An axis or a
    quaternion is rotated by a random rotation vector [rad], which preserves its length.  A distance of -1 (a ray
    without a hit) does not change.  The same generator state or seed and the same shape give the same noise.

    Args:
        model: the model.
        sensordata: a `Data` or a batch, whose `sensordata` keeps the noise until the next step.  Or an array
            (..., nsensordata), such as a recording of `rollout`.
        rng: random number generator, a seed for a new one, or None for an unpredictable one.

    Raises:
        ModelError: an array of another length or dtype; the model is not the batch's.
        UnsupportedFeatureError: the model has a sensor that is not computed.

    Source: MuJoCo's documentation, XML reference, sensor: the attribute noise, which MuJoCo itself does not use.

    Note:
        In a batch whose worlds differ in `sensor_noise` (`expand`), each world's value is used.  The generator samples
        the noise of all worlds, so the noise of a world depends on the number of worlds.  In an environment, define
        `Task.observation_noise`, which gets a generator for each world.
    """
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ModelError(f"rng: got {rng!r}, allowed is a generator or a seed ({error})") from None
    check_model(model)
    values, deviation = _target(model, sensordata)
    for i in range(model.nsensor):
        a, n = int(model.sensor_adr[i]), int(model.sensor_dim[i])
        _disturb(values[..., a : a + n], _kind(model, i), deviation[..., i, None], rng)


def _target(model: Model, sensordata: Data | Batch | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the array to change, and the deviations (..., nsensor)."""
    if isinstance(sensordata, Data):
        return ready(model, sensordata).sensordata, model.sensor_noise
    if isinstance(sensordata, Batch):
        checked_worlds(model, sensordata)
        own = sensordata.expanded("sensor_noise")
        return sensordata.writable("sensordata"), model.sensor_noise if own is None else own
    allowed = f"allowed is a Data, a Batch or a writable array of reals (..., {model.nsensordata})"
    if not isinstance(sensordata, np.ndarray):
        raise ModelError(f"sensordata: got {type(sensordata).__name__}, {allowed}")
    if sensordata.shape[-1:] != (model.nsensordata,) or sensordata.dtype.kind != "f" or not sensordata.flags.writeable:
        raise ModelError(f"sensordata: got {sensordata.dtype} {sensordata.shape}, {allowed}")
    return sensordata, model.sensor_noise


def _kind(model: Model, i: int) -> str:
    """Returns how noise acts on sensor i."""
    if model.sensor_type[i] == SENS_RANGEFINDER and model.sensor_intprm[i, 0] == RAYDATA_DIST:
        return "distance"
    return KINDS.get(int(model.sensor_datatype[i]), "real")


def _disturb(values: np.ndarray, kind: str, deviation: np.ndarray, rng: np.random.Generator) -> None:
    """Adds noise to the values (..., n) of one sensor."""
    if kind in ("axis", "quaternion"):
        turn = deviation * rng.standard_normal((*values.shape[:-1], 3))
        values[...] = _turned_axis(values, turn) if kind == "axis" else product(values, exp_so3(turn))
        return
    noisy = values + deviation * rng.standard_normal(values.shape)
    if kind == "positive":
        noisy = np.where(deviation > 0.0, np.maximum(noisy, 0.0), values)
    if kind == "distance":
        noisy = np.where(values < 0.0, values, np.maximum(noisy, 0.0))
    values[...] = noisy


def _turned_axis(axis: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Returns axes (..., 3) after rotations, by Rodrigues' formula."""
    angle = np.linalg.norm(turn, axis=-1, keepdims=True)
    sine, versine = np.sinc(angle / np.pi), 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    once = cross(turn, axis)
    return axis + sine * once + versine * cross(turn, once)
