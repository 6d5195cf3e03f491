"""Finds contacts before forces, in models with forces that depend on contacts: actuators on bodies, adhesive geoms.

If the contact slots of a tile overflow, its parts are processed one after the other, and each part stores the values
that forces need from its contacts.  `make_rows` needs the contacts again later: slots hold one part at a time.
m.nadhesion is the number of adhesion actuators on bodies; m.flg_adhesion is 1 with adhesive geoms or pairs.
"""

from featherlane.engine.prelude import *
from featherlane.engine.collision.collision import collision
from featherlane.engine.dynamics.actuator.adhesion import adhesive_pull, contact_transmission
from featherlane.engine.simulation.step.tile_parts import by_halves
from featherlane.engine.simulation.step.wake import find_contacts


@kernel
def forces_need_contacts(m):
    """Returns whether forces depend on contacts: adhesion actuators on bodies, or adhesive geoms."""
    return m.nadhesion + m.flg_adhesion > 0


@kernel
def _store_contact_inputs(m, d):
    """Computes what forces need from the contacts in the slots.

    These are the moments of adhesion actuators, and the forces of adhesive geoms.
    """
    if m.nadhesion:
        contact_transmission(m, d)
    if m.flg_adhesion:
        adhesive_pull(m, d)


@by_halves
def _store_inputs_of_part(m, d, _purpose):
    """Finds the contacts of the worlds of one part, and computes what forces need from them if they fit."""
    collision(m, d)
    if d.con_overflow[0] == 0:
        _store_contact_inputs(m, d)


@stage
def early_contacts(m, d):
    """Finds the contacts of the tile, unless waking has found them, and computes what forces need from them.

    Reads:  the frames, con_fresh.
    Writes: con_* and ncon of `collision`, what `contact_transmission` and `adhesive_pull` write; warning; active,
            lane_active, which are restored.
    """
    find_contacts(m, d)
    if d.con_overflow[0] == 0:
        _store_contact_inputs(m, d)
    else:
        _store_inputs_of_part(m, d, 0)  # part by part; the last argument is unused
        d.con_overflow[0] = 1  # stays set, because the rows are made in parts as well
