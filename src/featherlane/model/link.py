"""Links: joints between any two bodies, beside the kinematic tree, as ODE has them in maximal coordinates."""

from __future__ import annotations

import numpy as np

from featherlane.model.fields import LINKS


def link_fields(mj_model, links) -> dict[str, np.ndarray]:
    """The fields `link_*` of a model, one row for each link."""
    sizes = {"nlink": len(links)}
    return {field.name: np.zeros(field.dims(sizes)) for field in LINKS}
