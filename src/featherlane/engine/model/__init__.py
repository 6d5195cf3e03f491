"""The model: everything that is constant during a simulation.  Loads, names, edits and checks it."""

from featherlane.engine.model.bundle import bundled_names
from featherlane.engine.model.fields import MODEL
from featherlane.engine.model.length_range import set_length_range
from featherlane.engine.model.link import Link
from featherlane.engine.model.load import bundled, load
from featherlane.engine.model.model import Model
from featherlane.engine.model.set_const import Constants

__all__ = ["MODEL", "Constants", "Link", "Model", "bundled", "bundled_names", "load", "set_length_range"]
