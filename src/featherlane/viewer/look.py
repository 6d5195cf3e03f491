"""Colours of geoms, sites and tendons, as MuJoCo's files give them: their own, else their material's."""

from __future__ import annotations

import numpy as np

UNSET = (0.5, 0.5, 0.5, 1.0)  # a colour that a material replaces


def colours(mj_model, kind: str) -> np.ndarray:
    """Colours (n, 4) of all elements of a kind: "geom", "site" or "tendon".

    Source: MuJoCo's XML reference, `rgba` of a geom: other than its default it takes the place of the material's.
    """
    own, material = getattr(mj_model, f"{kind}_rgba"), getattr(mj_model, f"{kind}_matid")
    out = np.array(own, float)
    unset = (material >= 0) & (own == np.array(UNSET, np.float32)).all(1)
    out[unset] = mj_model.mat_rgba[material[unset]]
    return out
