"""The model: everything that is constant during a simulation.  Loads, names, edits and checks it."""

from featherlane.model.bundle import bundled_names
from featherlane.model.fields import MODEL
from featherlane.model.length_range import set_length_range
from featherlane.model.link import Link
from featherlane.model.load import bundled, load
from featherlane.model.model import Model
from featherlane.model.set_const import Constants, set_const

__all__ = ["MODEL", "Constants", "Link", "Model", "bundled", "bundled_names", "load", "set_const", "set_length_range"]
