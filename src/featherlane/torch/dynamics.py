"""`Dynamics`: autograd functions around rollouts and their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.errors import InstallationError, ModelError, UnsupportedFeatureError
from featherlane.simulation.adjoint import dynamics
from featherlane.simulation.batch.batch import Batch

try:
    import torch  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise InstallationError(f"featherlane.torch needs PyTorch: pip install 'featherlane[torch]' ({error})") from None


class Dynamics:
    """Steps and rollouts of the worlds of a batch, as functions that `torch.autograd` differentiates.

    All that is no argument (the model, time, warm starts, applied forces, mocap bodies) is as in the batch when this is
    made, at the start of every call: the same tensors give the same bits, and later edits of the batch and its model
    change nothing.  A quaternion in `qpos` of any length stands for its direction; its gradient is tangent to the
    sphere.  There are no second derivatives.

    Args:
        batch: the worlds; it stays as it is.
        nthread: threads, 0: those of the batch.
        frictionloss: with the dry friction of joints and tendons, in derivatives; steps always have it.

    Attributes:
        model: a copy of the batch's model.
        nworld: worlds.

    Raises:
        TypeError: `batch` is no Batch.
        ModelError: nthread or frictionloss out of range.
        UnsupportedFeatureError: the flag `sleep` is on.
    """

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        self._dynamics = dynamics.Dynamics(batch, nthread, frictionloss)
        self.model, self.nworld = self._dynamics.model, batch.nworld

    def step(self, qpos, qvel, act, ctrl, **fields):
        """One step of every world.

        Args:
            qpos, qvel, act: tensors (nworld, nq), (nworld, nv), (nworld, na); None for `act` where na is 0.
            ctrl: (nworld, nu).
            fields: real fields of the model, (nworld, ...) each, in place of the model's numbers (`body_mass=tensor`).

        Returns:
            (qpos, qvel, act) after the step, of the arguments' dtype.

        Raises:
            ModelError: tensors of other shapes, dtypes or devices; no such field.
        """
        control = ctrl[:, None] if isinstance(ctrl, torch.Tensor) and ctrl.ndim == 2 else ctrl
        return tuple(after[:, 0] for after in self.rollout(qpos, qvel, act, control, **fields))

    def rollout(self, qpos, qvel, act, control, **fields):
        """Steps of every world, one for each control.

        Args:
            qpos, qvel, act: as `step` takes them.
            control: (nworld, nstep, nu), or (nstep, nu) for all worlds.
            fields: as `step` takes them.

        Returns:
            (qpos, qvel, act) after each step, (nworld, nstep, nq), (nworld, nstep, nv), (nworld, nstep, na).

        Raises:
            ModelError: tensors of other shapes, dtypes or devices; no such field.
        """
        if act is None and isinstance(qvel, torch.Tensor):
            act = qvel.new_zeros((self.nworld, 0))
        if isinstance(control, torch.Tensor) and control.ndim == 2:
            control = control.expand(self.nworld, *control.shape)
        given = {"qpos": qpos, "qvel": qvel, "act": act, "control": control, **fields}
        _check(given)
        return _Rollout.apply(self._dynamics, tuple(fields), *given.values())


class _Rollout(torch.autograd.Function):
    """(qpos, qvel, act, control, fields) -> the states after each step."""

    @staticmethod
    def forward(ctx: Any, worlds: dynamics.Dynamics, names: tuple[str, ...], *tensors):
        state, fields = [t.numpy() for t in tensors[:4]], [t.numpy() for t in tensors[4:]]
        ctx.worlds, ctx.dtype = worlds, tensors[0].dtype
        ctx.run = worlds.run(*state, fields=dict(zip(names, fields, strict=True)))
        return tuple(torch.from_numpy(after).to(ctx.dtype, copy=True) for after in ctx.run.after)

    @staticmethod
    def backward(ctx: Any, *cotangents):
        return None, None, *_Adjoint.apply(ctx.worlds, ctx.run, ctx.dtype, *cotangents)


class _Adjoint(torch.autograd.Function):
    """Cotangents of the states after each step -> gradients by what the rollout was given."""

    @staticmethod
    def forward(ctx: Any, worlds: dynamics.Dynamics, run: dynamics.Run, dtype, *cotangents):
        by_qpos, by_qvel, by_act, by_control, by_fields = worlds.pull_back(run, *(g.numpy() for g in cotangents))
        gradients = [by_qpos, by_qvel, by_act, by_control, *(by_fields[name] for name in run.fields)]
        return tuple(torch.from_numpy(np.ascontiguousarray(g)).to(dtype) for g in gradients)

    @staticmethod
    def backward(ctx: Any, *cotangents):
        raise UnsupportedFeatureError(["second derivatives (create_graph=True) of a rollout"], what="not computed")


def _check(given: dict[str, Any]) -> None:
    """Tensors of one precision, on the CPU."""
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            raise ModelError(f"{name}: got {type(value).__name__}, allowed is a torch.Tensor")
        if value.dtype not in (torch.float64, torch.float32) or value.layout != torch.strided:
            raise ModelError(f"{name}: got {value.layout} of {value.dtype}, allowed are float64 and float32, dense")
        if value.device.type != "cpu":
            raise ModelError(f"{name}: got a tensor on {value.device}, allowed are tensors on the CPU: {name}.cpu()")
    kinds = {value.dtype for value in given.values()}
    if len(kinds) > 1:
        raise ModelError(f"got tensors of {' and '.join(sorted(map(str, kinds)))}, allowed is one dtype for all")
