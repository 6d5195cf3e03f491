"""Contacts before forces, in models in which some act through contacts: actuators on bodies, adhesive geoms.

A tile whose slots do not fit goes part by part here, too, and each part leaves what its worlds take from their
contacts.  The contacts themselves are found once more when the rows are made, for slots hold one part at a time.
"""

from featherlane.prelude import *
from featherlane.collision.collision import collision
from featherlane.dynamics.actuator.adhesion import adhesive_pull, contact_transmission
from featherlane.simulation.step.halves import by_halves
from featherlane.simulation.step.wake import find_contacts


@kernel
def forces_need_contacts(m):
    """Do forces depend on contacts?"""
    return m.nadhesion + m.flg_adhesion > 0


@kernel
def _take_from_contacts(m, d):
    """What forces take from the contacts that stand in the slots."""
    if m.nadhesion:
        contact_transmission(m, d)
    if m.flg_adhesion:
        adhesive_pull(m, d)


@by_halves
def _take_from_parts(m, d, _purpose):
    """What forces take from the contacts of one part."""
    collision(m, d)
    if d.con_overflow[0] == 0:
        _take_from_contacts(m, d)


@kernel
def _take_in_parts(m, d):
    """The same of a tile that does not fit; the overflow stands, for the rows have to go by parts as well."""
    full = d.warning[CONTACTS_FULL]
    _take_from_parts(m, d, 0)
    # contacts that were dropped are counted when the rows are made
    d.warning[CONTACTS_FULL] = full
    d.con_overflow[0] = 1


@stage
def early_contacts(m, d):
    """Contacts of the tile, where waking has not found them already, and what forces take from them.

    Reads:  the frames, con_fresh.
    Writes: con_* and ncon of `collision`, what `contact_transmission` and `adhesive_pull` write; active, lane_active,
            which are put back.
    """
    find_contacts(m, d)
    if d.con_overflow[0] == 0:
        _take_from_contacts(m, d)
    else:
        _take_in_parts(m, d)
