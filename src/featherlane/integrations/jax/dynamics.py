"""`Dynamics`: functions with a custom VJP for rollouts and their adjoint.

A compiled program calls the engine by `jax.pure_callback`, or by an XLA handler if one is available.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from featherlane.engine.libraries import requiring
from featherlane.engine.simulation.batch.batch import Batch
from featherlane.errors import ModelError, UnsupportedFeatureError
from featherlane.integrations.jax.handler import NAME, handler
from featherlane.integrations.jax.native import NativeAdjoint, NativeRollout, split_adjoint_results
from featherlane.tools.sensitivity.adjoint import dynamics
from featherlane.tools.sensitivity.adjoint.bridge import Bridge, about
from featherlane.tools.sensitivity.adjoint.cotangent import Coordinates

with requiring("jax", "featherlane.integrations.jax"):
    import jax  # pyright: ignore[reportMissingImports]


class Dynamics(Bridge):
    __doc__ = about(
        "`jax.grad` and `jax.jit` transform",
        "Arguments and results are arrays.  `jax.vmap` calls the engine once for each batch "
        "element; forward mode is not supported.",
    )

    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        super().__init__(batch, nthread, frictionloss)
        self._lock = threading.Lock()
        self._natives: dict[tuple[type, int, np.dtype], Any] = {}
        self._coordinates = Coordinates(self.model, jax.numpy)
        self._rollout = _with_adjoint(self._run, self._pull_back)

    def _one_step(self, ctrl):
        ctrl = _array("ctrl", ctrl)
        return ctrl[:, None] if ctrl.ndim == 2 else ctrl

    def rollout(self, qpos, qvel, act, control, **fields):
        qvel, control = _array("qvel", qvel), _array("control", control)
        act = jax.numpy.zeros((self.nworld, 0), qvel.dtype) if act is None else act
        if control.ndim == 2:
            control = jax.numpy.broadcast_to(control, (self.nworld, *control.shape))
        given = {"qpos": qpos, "qvel": qvel, "act": act, "control": control, **fields}
        arrays = {name: _array(name, value) for name, value in given.items()}
        self._check(arrays, fields)
        return self._rollout(tuple(fields), *arrays.values())

    def _check(self, arrays: dict[str, Any], fields) -> None:
        """Checks for one dtype and matching shapes, while a program is traced."""
        dtypes = {np.dtype(array.dtype) for array in arrays.values()}
        if len(dtypes) > 1:
            raise ModelError(
                f"got arrays of {' and '.join(sorted(d.name for d in dtypes))}, allowed is one dtype for all"
            )
        nstep = arrays["control"].shape[1] if arrays["control"].ndim == 3 else 0
        if nstep == 0:
            shape = arrays["control"].shape
            raise ModelError(f"control: got shape {shape}, allowed is (nworld, nstep, nu) with at least one step")
        shapes = self._dynamics.shapes(nstep) | dict(
            zip(fields, self._dynamics.field_shapes(fields).values(), strict=True)
        )
        for name, array in arrays.items():
            if array.shape != shapes[name]:
                raise ModelError(f"{name}: got shape {array.shape}, allowed is {shapes[name]}")

    # ---- on the host -------------------------------------------------------------------------------------------------
    def _run(self, names: tuple[str, ...], *arrays):
        """Returns the states after each step."""
        dtype, nstep = arrays[0].dtype, arrays[3].shape[1]
        shapes = tuple(jax.ShapeDtypeStruct((self.nworld, nstep, n), dtype) for n in self._dynamics.sizes)
        native = None if names else self._native(NativeRollout, nstep, np.dtype(dtype))
        if native is not None:
            call = jax.ffi.ffi_call(NAME, shapes, vmap_method="sequential")
            return tuple(call(*arrays, place=np.int64(native.place), token=np.int64(native.token)))

        def host(*given):
            with self._lock:
                return tuple(after.astype(dtype) for after in self._ran(names, given).after)

        return jax.pure_callback(host, shapes, *arrays, vmap_method="sequential")

    def _pull_back(self, names: tuple[str, ...], arrays, after, cotangents):
        """Returns gradients by the arrays, given cotangents of the states after each step; `after`: their qpos."""
        dtype = arrays[0].dtype
        native = None
        with self._lock:
            serves = not names and NativeAdjoint.serves(self._dynamics)
        if serves:
            native = self._native(NativeAdjoint, arrays[3].shape[1], np.dtype(dtype))
        if native is not None:
            return self._adjoint(native, arrays, after, cotangents)
        return self._called_back(names, arrays, cotangents)

    def _called_back(self, names: tuple[str, ...], arrays, cotangents):
        """Computes `_pull_back` in Python."""
        dtype = arrays[0].dtype
        shapes = tuple(jax.ShapeDtypeStruct(array.shape, dtype) for array in arrays)

        def host(given, by):
            with self._lock:
                run = self._ran(names, given)
                *found, by_fields = self._dynamics.pull_back(run, *(np.asarray(g) for g in by))
                return tuple(g.astype(dtype) for g in (*found, *(by_fields[name] for name in run.fields)))

        return jax.pure_callback(host, shapes, arrays, cotangents, vmap_method="sequential")

    def _adjoint(self, native: NativeAdjoint, arrays, after, cotangents):
        """Computes `_pull_back` without Python, except for rollouts with a step without analytic derivatives."""
        jnp, (qpos, qvel, act, control), dtype = jax.numpy, arrays, arrays[0].dtype
        nstep, (_, nv, na), nu = control.shape[1], self._dynamics.sizes, self.model.nu
        by_dof = jnp.concatenate([self._coordinates.to_tangent(after, cotangents[0]), *cotangents[1:]], -1)

        def in_rows(first: int, values):
            """Returns rows of each world that are zero except for these values."""
            more = native.nrow - first - values.shape[1]
            return jnp.pad(values, ((0, 0), (first, more), (0, 0)))

        start = [in_rows(nstep, a[:, None]) for a in (qpos, qvel, act)]
        rest = in_rows(1, control[:, ::-1]), in_rows(1, by_dof[:, ::-1])
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape in native.results]
        call = jax.ffi.ffi_call(NAME, shapes, vmap_method="sequential")
        place, token = np.int64(native.place), np.int64(native.token)
        found, nreset = call(qpos, qvel, act, *start, *rest, place=place, token=token)
        costate, by_control, served = split_adjoint_results(found, 2 * nv + na, nu)
        bad = (nreset > native.nreset.astype(dtype))[:, :, None]

        def here():
            spoilt = jnp.where(bad[:, 0], jnp.nan, costate)
            by_qpos = self._coordinates.from_tangent(qpos, spoilt[:, :nv])
            by_u = jnp.where(bad, jnp.nan, by_control)
            return by_qpos, spoilt[:, nv : 2 * nv], spoilt[:, 2 * nv :], by_u

        return jax.lax.cond(served, here, lambda: self._called_back((), arrays, cotangents))

    def _native(self, kind: type, nstep: int, dtype: np.dtype) -> Any:
        """Returns a `NativeRollout` or `NativeAdjoint` of this length, or None if it is not available."""
        made = handler()
        if made is None:
            return None
        with self._lock:
            key = kind, nstep, dtype
            if key not in self._natives:
                self._natives[key] = kind(self._dynamics, nstep, dtype, made)
            found = self._natives[key]
        return found if found.place >= 0 else None

    def _ran(self, names: tuple[str, ...], given) -> dynamics.Run:
        state, fields = [np.asarray(a) for a in given[:4]], [np.asarray(a) for a in given[4:]]
        return self._dynamics.run(*state, fields=dict(zip(names, fields, strict=True)))


def _with_adjoint(run, pull_back):
    """Returns `run(names, *arrays)` with `pull_back` as its gradient."""
    function = jax.custom_vjp(run, nondiff_argnums=(0,))

    def forward(names, *arrays):
        after = _once(lambda *given: run(names, *given))(*arrays)
        return after, (arrays, after[0])

    def backward(names, kept, cotangents):
        return _once(lambda given, by: pull_back(names, *given, by))(kept, cotangents)

    function.defvjp(forward, backward)
    return function


def _once(function):
    """Returns a function that can be part of a gradient; differentiating it again raises an error."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp
    def twice(primals, tangents):
        raise UnsupportedFeatureError(["second derivatives of a rollout"], what="not supported")

    return wrapped


def _array(name: str, value):
    """Returns a JAX array of float64 or float32 numbers."""
    if isinstance(value, str) or value is None:
        raise ModelError(f"{name}: got {type(value).__name__}, allowed is an array")
    try:
        array = jax.numpy.asarray(value)
    except (TypeError, ValueError):
        raise ModelError(f"{name}: got {type(value).__name__}, allowed is an array") from None
    if array.dtype not in (np.float64, np.float32):
        raise ModelError(f"{name}: got {array.dtype}, allowed are float64 and float32")
    return array
