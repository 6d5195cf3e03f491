"""`Dynamics`: autograd functions for rollouts and their adjoint."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from featherlane import extension
from featherlane.errors import ModelError, UnsupportedFeatureError

with extension.requiring("torch", "featherlane.integrations.torch"):
    import torch  # pyright: ignore[reportMissingImports]


class Dynamics(
    extension.Bridge[torch.Tensor],
    who="`torch.autograd` differentiates",
    more="Arguments and results are tensors on the CPU.",
):
    def _one_step(self, ctrl: torch.Tensor) -> torch.Tensor:
        return ctrl[:, None] if isinstance(ctrl, torch.Tensor) and ctrl.ndim == 2 else ctrl

    def rollout(
        self,
        qpos: torch.Tensor,
        qvel: torch.Tensor,
        act: torch.Tensor | None,
        control: torch.Tensor,
        **fields: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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
    def forward(ctx: Any, worlds: Any, names: tuple[str, ...], *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arrays, ctx.worlds, ctx.dtype = [t.numpy() for t in tensors], worlds, tensors[0].dtype
        ctx.run = worlds.run(*arrays[:4], fields=dict(zip(names, arrays[4:], strict=True)))
        return tuple(torch.from_numpy(after).to(ctx.dtype, copy=True) for after in ctx.run.after)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return None, None, *_Adjoint.apply(ctx.worlds, ctx.run, ctx.dtype, *cotangents)


class _Adjoint(torch.autograd.Function):
    """Computes cotangents of the states after each step -> gradients by the inputs of the rollout."""

    @staticmethod
    def forward(
        ctx: Any, worlds: Any, run: Any, dtype: torch.dtype, *cotangents: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        *gradients, by_fields = worlds.pull_back(run, *(g.numpy() for g in cotangents))
        gradients += [by_fields[name] for name in run.fields]
        return tuple(torch.from_numpy(np.ascontiguousarray(g)).to(dtype) for g in gradients)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> NoReturn:
        raise UnsupportedFeatureError(["second derivatives (create_graph=True) of a rollout"], what="not supported")


def _check(given: dict[str, Any]) -> None:
    """Checks for tensors of one precision on the CPU."""
    for name, value in given.items():
        extension.instance(name, value, torch.Tensor, "a torch.Tensor")
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
