"""`Dynamics`: functions with a custom VJP for rollouts and their adjoint.

A compiled program calls the engine by `jax.pure_callback`, or by an XLA handler if one is available.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from featherlane import Batch, extension
from featherlane.errors import ModelError, UnsupportedFeatureError

with extension.requiring("jax", "featherlane.integrations.jax"):
    import jax  # pyright: ignore[reportMissingImports]

    from featherlane.integrations.jax.handler import NAME, Entry, handler

Arrays = tuple[jax.Array, ...]


class Dynamics(
    extension.Bridge["jax.typing.ArrayLike"],
    who="`jax.grad` and `jax.jit` transform",
    more="Arguments and results are arrays.  `jax.vmap` calls the engine once for each batch "
    "element; forward mode is not supported.",
):
    def __init__(self, batch: Batch, nthread: int = 0, frictionloss: bool = True):
        super().__init__(batch, nthread, frictionloss)
        self._lock = threading.Lock()
        self._natives: dict[tuple[bool, int, np.dtype], Entry | None] = {}
        self._coordinates = self._dynamics.coordinates(jax.numpy)
        self._rollout = _with_adjoint(self._run, self._pull_back)

    def _one_step(self, ctrl: jax.typing.ArrayLike) -> jax.Array:
        ctrl = _array("ctrl", ctrl)
        return ctrl[:, None] if ctrl.ndim == 2 else ctrl

    def rollout(
        self,
        qpos: jax.typing.ArrayLike,
        qvel: jax.typing.ArrayLike,
        act: jax.typing.ArrayLike | None,
        control: jax.typing.ArrayLike,
        **fields: jax.typing.ArrayLike,
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        qvel, control = _array("qvel", qvel), _array("control", control)
        act = jax.numpy.zeros((self.nworld, 0), qvel.dtype) if act is None else act
        if control.ndim == 2:
            control = jax.numpy.broadcast_to(control, (self.nworld, *control.shape))
        given = {"qpos": qpos, "qvel": qvel, "act": act, "control": control, **fields}
        arrays = {name: _array(name, value) for name, value in given.items()}
        self._check(arrays, fields)
        return self._rollout(tuple(fields), *arrays.values())

    def _check(self, arrays: Mapping[str, jax.Array], fields: Iterable[str]) -> None:
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
    def _run(self, names: tuple[str, ...], *arrays: jax.Array) -> Arrays:
        """Returns the states after each step."""
        dtype, nstep = arrays[0].dtype, arrays[3].shape[1]
        shapes = tuple(jax.ShapeDtypeStruct((self.nworld, nstep, n), dtype) for n in self._dynamics.sizes)
        native = None if names else self._native(False, nstep, np.dtype(dtype))
        if native is not None:
            return tuple(_call(native, shapes, arrays))

        def host(*given: jax.Array) -> tuple[np.ndarray, ...]:
            with self._lock:
                return tuple(after.astype(dtype) for after in self._ran(names, given).after)

        return jax.pure_callback(host, shapes, *arrays, vmap_method="sequential")

    def _pull_back(self, names: tuple[str, ...], arrays: Arrays, after: jax.Array, cotangents: Arrays) -> Arrays:
        """Returns gradients by the arrays, given cotangents of the states after each step; `after`: their qpos."""
        native = None if names else self._native(True, arrays[3].shape[1], np.dtype(arrays[0].dtype))
        if native is not None:
            return self._adjoint(native, arrays, after, cotangents)
        return self._called_back(names, arrays, cotangents)

    def _called_back(self, names: tuple[str, ...], arrays: Arrays, cotangents: Arrays) -> Arrays:
        """Computes `_pull_back` in Python."""
        dtype = arrays[0].dtype
        shapes = tuple(jax.ShapeDtypeStruct(array.shape, dtype) for array in arrays)

        def host(given: Arrays, by: Arrays) -> tuple[np.ndarray, ...]:
            with self._lock:
                run = self._ran(names, given)
                *found, by_fields = self._dynamics.pull_back(run, *(np.asarray(g) for g in by))
                return tuple(g.astype(dtype) for g in (*found, *(by_fields[name] for name in run.fields)))

        return jax.pure_callback(host, shapes, arrays, cotangents, vmap_method="sequential")

    def _adjoint(self, entry: Entry, arrays: Arrays, after: jax.Array, cotangents: Arrays) -> Arrays:
        """Computes `_pull_back` without Python, except for rollouts with a step without analytic derivatives."""
        jnp, (qpos, qvel, act, control), dtype = jax.numpy, arrays, arrays[0].dtype
        nstep, (_, nv, na), nu = control.shape[1], self._dynamics.sizes, self.model.nu
        native: Any = entry.program  # of `native_adjoint`
        by_dof = jnp.concatenate([self._coordinates.to_tangent(after, cotangents[0]), *cotangents[1:]], -1)

        def in_rows(first: int, values: jax.Array) -> jax.Array:
            """Returns rows of each world that are zero except for these values."""
            more = native.nrow - first - values.shape[1]
            return jnp.pad(values, ((0, 0), (first, more), (0, 0)))

        start = [in_rows(nstep, a[:, None]) for a in (qpos, qvel, act)]
        rest = in_rows(1, control[:, ::-1]), in_rows(1, by_dof[:, ::-1])
        shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape in native.results]
        found, nreset = _call(entry, shapes, (qpos, qvel, act, *start, *rest))
        costate, by_control, served = native.split(found, 2 * nv + na, nu)
        bad = (nreset > native.nreset.astype(dtype))[:, :, None]

        def here() -> Arrays:
            spoilt = jnp.where(bad[:, 0], jnp.nan, costate)
            by_qpos = self._coordinates.from_tangent(qpos, spoilt[:, :nv])
            by_u = jnp.where(bad, jnp.nan, by_control)
            return by_qpos, spoilt[:, nv : 2 * nv], spoilt[:, 2 * nv :], by_u

        return jax.lax.cond(served, here, lambda: self._called_back((), arrays, cotangents))

    def _native(self, adjoint: bool, nstep: int, dtype: np.dtype) -> Entry | None:
        """Returns a rollout or an adjoint of this length in the handler, or None if it is not available."""
        made = handler()
        if made is None:
            return None
        key = adjoint, nstep, dtype
        with self._lock:
            if key not in self._natives:
                make = self._dynamics.native_adjoint if adjoint else self._dynamics.native_rollout
                program = make(nstep)
                self._natives[key] = None if program is None else made.add(program, dtype)
            return self._natives[key]

    def _ran(self, names: tuple[str, ...], given: Sequence[jax.Array]) -> Any:
        arrays = [np.asarray(a) for a in given]
        return self._dynamics.run(*arrays[:4], fields=dict(zip(names, arrays[4:], strict=True)))


def _call(entry: Entry, shapes: Sequence[jax.ShapeDtypeStruct], arrays: Sequence[jax.Array]) -> Sequence[jax.Array]:
    """Runs a program in the handler."""
    call = jax.ffi.ffi_call(NAME, shapes, vmap_method="sequential")
    return call(*arrays, place=np.int64(entry.place), token=np.int64(entry.token))


def _with_adjoint(run: Callable[..., Any], pull_back: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `run(names, *arrays)` with `pull_back` as its gradient."""
    function = jax.custom_vjp(run, nondiff_argnums=(0,))

    def forward(names: tuple[str, ...], *arrays: jax.Array) -> tuple[Arrays, tuple[Arrays, jax.Array]]:
        after = _once(lambda *given: run(names, *given))(*arrays)
        return after, (arrays, after[0])

    def backward(names: tuple[str, ...], kept: tuple[Arrays, jax.Array], cotangents: Arrays) -> Arrays:
        return _once(lambda given, by: pull_back(names, *given, by))(kept, cotangents)

    function.defvjp(forward, backward)
    return function


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that can be part of a gradient; differentiating it again raises an error."""
    wrapped = jax.custom_jvp(function)

    @wrapped.defjvp
    def twice(primals: Arrays, tangents: Arrays) -> NoReturn:
        raise UnsupportedFeatureError(["second derivatives of a rollout"], what="not supported")

    return wrapped


def _array(name: str, value: jax.typing.ArrayLike | None) -> jax.Array:
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
