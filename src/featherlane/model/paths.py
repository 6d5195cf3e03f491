"""Which sites and geoms a step needs the frames of, beside the geoms that collide: those of tendons and transmissions.

A tendon reads positions of sites, the frames of the geoms that it goes round and the positions of their side sites; a
slider-crank the axis of its slider; a transmission of a site, or of its orientation, the frames of it and of its
reference.
"""

from __future__ import annotations

import mujoco
import numpy as np

GEOMS = (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER))


def path_ints(mj) -> dict[str, np.ndarray]:
    """`step_site`, `step_site_turned` (nstepsite,), `step_geom` (nstepgeom,) and `wrap_sideid` (nwrap,) of a model."""
    around = np.isin(mj.wrap_type, GEOMS)
    side = np.where(around, np.rint(mj.wrap_prm).astype(int), -1)
    through = mj.wrap_objid[mj.wrap_type == int(mujoco.mjtWrap.mjWRAP_SITE)]
    crank = mj.actuator_trnid[mj.actuator_trntype == int(mujoco.mjtTrn.mjTRN_SLIDERCRANK)]
    posed = mj.actuator_trntype == int(mujoco.mjtTrn.mjTRN_SITE)
    oriented = (mj.actuator_trntype == int(mujoco.mjtTrn.mjTRN_SO3)) & (mj.actuator_trnid[:, 1] >= 0)  # no ball joint
    frames = mj.actuator_trnid[posed | oriented]
    turned = {int(site) for site in (*crank[:, 1], *frames.ravel()) if site >= 0}
    sites = sorted(turned | {int(site) for site in (*side, *through, *crank[:, 0]) if site >= 0})
    return {
        "step_site": np.array(sites, int),
        "step_site_turned": np.array([site in turned for site in sites], int),
        "step_geom": np.unique(mj.wrap_objid[around]),
        "wrap_sideid": side,
    }
