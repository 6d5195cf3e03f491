"""`Dynamics`: autograd functions for rollouts and their adjoint."""

from __future__ import annotations

from typing import Any

import numpy as np

from featherlane.engine.libraries import requiring
from featherlane.engine.model.arguments import instance
from featherlane.errors import ModelError, UnsupportedFeatureError
from featherlane.tools.sensitivity.adjoint import dynamics
from featherlane.tools.sensitivity.adjoint.bridge import Bridge, about

with requiring("torch", "featherlane.integrations.torch"):
    import torch  # pyright: ignore[reportMissingImports]


class Dynamics(Bridge):
    __doc__ = about("`torch.autograd` differentiates", "Arguments and results are tensors on the CPU.")

    def _one_step(self, ctrl):
        return ctrl[:, None] if isinstance(ctrl, torch.Tensor) and ctrl.ndim == 2 else ctrl

    def rollout(self, qpos, qvel, act, control, **fields):
        if act is None and isinstance(qvel, torch.Tensor):
            act = qvel.new_zeros((self.nworld, 0))
        if isinstance(control, torch.Tensor) and control.ndim == 2:
            control = control.expand(self.nworld, *control.shape)
        given = {"qpos": qpos, "qvel": qvel, "act": act, "control": control, **fields}
        _check(given)
        return _Rollout.apply(self._dynamics, tuple(fields), *given.values())


class _Rollout(torch.autograd.Function):
    """Computes (qpos, qvel, act, control, fields) -> the states after each step."""

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
    """Computes cotangents of the states after each step -> gradients by the inputs of the rollout."""

    @staticmethod
    def forward(ctx: Any, worlds: dynamics.Dynamics, run: dynamics.Run, dtype, *cotangents):
        by_qpos, by_qvel, by_act, by_control, by_fields = worlds.pull_back(run, *(g.numpy() for g in cotangents))
        gradients = [by_qpos, by_qvel, by_act, by_control, *(by_fields[name] for name in run.fields)]
        return tuple(torch.from_numpy(np.ascontiguousarray(g)).to(dtype) for g in gradients)

    @staticmethod
    def backward(ctx: Any, *cotangents):
        raise UnsupportedFeatureError(["second derivatives (create_graph=True) of a rollout"], what="not supported")


def _check(given: dict[str, Any]) -> None:
    """Checks for tensors of one precision on the CPU."""
    for name, value in given.items():
        instance(name, value, torch.Tensor, "a torch.Tensor")
        if value.dtype not in (torch.float64, torch.float32) or value.layout != torch.strided:
            raise ModelError(
                f"{name}: got a {value.layout} tensor of {value.dtype}, allowed are dense tensors of "
                f"float64 and float32"
            )
        if value.device.type != "cpu":
            raise ModelError(f"{name}: got a tensor on {value.device}, allowed are tensors on the CPU: {name}.cpu()")
    kinds = {value.dtype for value in given.values()}
    if len(kinds) > 1:
        raise ModelError(f"got tensors of {' and '.join(sorted(map(str, kinds)))}, allowed is one dtype for all")
