"""Lists the sites and geoms, except colliding geoms, whose frames a step needs: those of tendons and transmissions.

A tendon reads positions of sites, the frames of its wrapping geoms and the positions of their side sites.  A
slider-crank reads the axis of its slider.  A site transmission (position or orientation) reads the frames of the site
and of its reference.
"""

from __future__ import annotations

import numpy as np

from featherlane.engine.lanes.layout import Declare, size
from featherlane.engine.model.derived import derived
from featherlane.engine.model.enums import TRN_SITE, TRN_SLIDERCRANK, TRN_SO3, WRAP_CYLINDER, WRAP_SITE, WRAP_SPHERE

_field = Declare()


@derived(
    size("nstepsite", "number of sites whose frames a step needs"),
    size("nstepgeom", "number of geoms whose frames a step needs"),
    _field.int("step_site", "nstepsite", "1", "sites whose frames a step needs, ascending"),
    _field.int("step_site_turned", "nstepsite", "1", "1: position and orientation of these sites; 0: position only"),
    _field.int("step_geom", "nstepgeom", "1", "geoms whose frames a step needs, ascending"),
    _field.int("wrap_sideid", "nwrap", "1", "side site of a wrapping geom, -1: none (compiled wrap_prm)"),
)
def step_frames(mj) -> dict[str, np.ndarray]:
    """Returns the sites and geoms whose frames tendons and transmissions read."""
    around = np.isin(mj.wrap_type, (WRAP_SPHERE, WRAP_CYLINDER))
    side = np.where(around, np.rint(mj.wrap_prm).astype(int), -1)
    through = mj.wrap_objid[mj.wrap_type == WRAP_SITE]
    crank = mj.actuator_trnid[mj.actuator_trntype == TRN_SLIDERCRANK]
    posed = mj.actuator_trntype == TRN_SITE
    oriented = (mj.actuator_trntype == TRN_SO3) & (mj.actuator_trnid[:, 1] >= 0)  # not a ball joint
    frames = mj.actuator_trnid[posed | oriented]
    turned = {int(site) for site in (*crank[:, 1], *frames.ravel()) if site >= 0}
    sites = sorted(turned | {int(site) for site in (*side, *through, *crank[:, 0]) if site >= 0})
    return {
        "step_site": np.array(sites, int),
        "step_site_turned": np.array([site in turned for site in sites], int),
        "step_geom": np.unique(mj.wrap_objid[around]),
        "wrap_sideid": side,
    }
