"""Which way costates are taken back through the steps of a trajectory: by products alone, or by derivatives."""

from __future__ import annotations

from featherlane.sensitivity.adjoint.jacobians import JacobianSteps
from featherlane.sensitivity.adjoint.product_worlds import ProductSteps, by_products
from featherlane.sensitivity.adjoint.sweep import Steps
from featherlane.sensitivity.adjoint.trajectory import Trajectory
from featherlane.sensitivity.derivative.moved import in_use_of


def steps_of(trajectory: Trajectory, parameters: tuple[str, ...], nthread: int, frictionloss: bool) -> Steps:
    """What serves a trajectory and others like it; the model decides, and fields by which to differentiate."""
    if parameters or not by_products(trajectory.model, in_use_of(trajectory.worlds)):
        return JacobianSteps(trajectory, parameters, nthread, frictionloss)
    return ProductSteps(trajectory, nthread, frictionloss)
