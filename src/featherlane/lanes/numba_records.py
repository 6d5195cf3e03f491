"""What records mean when compiled: Numba types for views and records, and for kernels and stages as names in code.

    View              a pointer to rows; the index is an int, the element a value (or an int)
    Struct            a record: one pointer to a table of (address, length) pairs

In the checked form a View also carries its length and where to report: an index out of range is recorded in the
record's fault words and replaced by 0.  Imported only when something is compiled.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import lower_builtin, lower_getattr_generic, models, register_model, typeof_impl

from . import values
from .kernel import Kernel, Stage, symbol
from .layout import Layout, layout_hash
from .numba_values import I32, I64, Value, machine_type, typed_function
from .record import FAULT_WORDS

POINTER = ir.IntType(8).as_pointer()
SHARED_TYPES = {"int": types.int32, "long": types.int64, "scalar": types.float64}
FLOATS = {"f64": types.float64, "f32": types.float32}
JIT_OPTIONS = {"error_model": "numpy", "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


# ---- types ---------------------------------------------------------------------------------------------------------
class View(types.Type):
    """Rows of a field: `elem` is what an index gives, `W` the worlds in a row."""

    def __init__(self, base, W, const, checked):
        self.base, self.W, self.const, self.checked = base, W, const, checked
        super().__init__(f"View({base},{W},{const},{checked})")

    @property
    def elem(self):
        return types.int64 if isinstance(self.base, types.Integer) else Value(self.W, self.base)

    @property
    def row(self):
        t = machine_type(self.base)
        return t if self.W == 1 else ir.VectorType(t, self.W)


class Struct(types.Type):
    """A record of a layout; `const` marks the model, which never changes while a stage runs.

    Where it is `shared`, only what all worlds of a tile share is in view, whatever their number and precision.
    """

    def __init__(self, layout: Layout, W, base, const, checked, shared=False):
        self.layout, self.W, self.base, self.const, self.checked = layout, W, base, const, checked
        self.shared = shared
        super().__init__(f"Struct({layout.name},{W},{base},{const},{checked},{shared},{layout_hash(layout)})")

    def field(self, name):
        f = self.layout[name]
        if f.kind == "size":
            return types.int64
        if f.kind == "real" and self.shared:
            return None
        base = SHARED_TYPES.get(f.kind, self.base)
        return View(base, self.W if f.kind == "real" else 1, self.const, self.checked)


@register_model(View)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        # checked: address of the rows, length, number of the field, address of the fault words
        super().__init__(dmm, t, ir.LiteralStructType([POINTER, I64, I64, POINTER]) if t.checked else POINTER)


@register_model(Struct)
class _StructModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, POINTER)


# ---- records ---------------------------------------------------------------------------------------------
@infer_getattr
class _StructAttribute(AttributeTemplate):
    key = Struct

    def generic_resolve(self, t, attr):
        return t.field(attr) if attr in t.layout else None


def _invariant(builder, load):
    load.set_metadata("invariant.load", builder.module.add_metadata([]))
    return load


def _word(builder, table, k):
    """Word k of a table of int64: it never changes while a stage runs."""
    p = builder.gep(builder.bitcast(table, I64.as_pointer()), [ir.Constant(I64, k)])
    return _invariant(builder, builder.load(p))


@lower_getattr_generic(Struct)
def _struct_field(context, builder, t, table, attr):
    k = t.layout.index[attr]
    word = _word(builder, table, FAULT_WORDS + 2 * k)
    if t.layout[attr].kind == "size":
        return word
    pointer = builder.inttoptr(word, POINTER)
    if not t.checked:
        return pointer
    length = _word(builder, table, FAULT_WORDS + 2 * k + 1)
    view = ir.Constant(ir.LiteralStructType([POINTER, I64, I64, POINTER]), ir.Undefined)
    for i, part in enumerate((pointer, length, ir.Constant(I64, k), table)):
        view = builder.insert_value(view, part, i)
    return view


@infer_global(operator.getitem)
class _ViewGet(AbstractTemplate):
    def generic(self, args, kws):
        if isinstance(args[0], View) and isinstance(args[1], types.Integer):
            return signature(args[0].elem, args[0], types.intp)
        return None


@infer_global(operator.setitem)
class _ViewSet(AbstractTemplate):
    def generic(self, args, kws):
        view, index, x = args
        if not isinstance(view, View) or not isinstance(index, types.Integer) or view.const:
            return None
        if isinstance(view.elem, types.Integer) and not isinstance(x, (types.Integer, types.Boolean)):
            return None
        return signature(types.none, view, types.intp, view.elem)


def _check(builder, view, index):
    """The index, or 0 with the fault recorded where it is out of range."""
    length, k, table = (builder.extract_value(view, i) for i in (1, 2, 3))
    bad = builder.icmp_unsigned(">=", index, length)
    with builder.if_then(bad, likely=False):
        words = builder.bitcast(table, I64.as_pointer())
        seen = builder.load(words)
        builder.store(builder.add(seen, ir.Constant(I64, 1)), words)
        with builder.if_then(builder.icmp_unsigned("==", seen, ir.Constant(I64, 0))):
            for i, x in enumerate((k, index, length)):
                builder.store(x, builder.gep(words, [ir.Constant(I64, i + 1)]))
    return builder.select(bad, ir.Constant(I64, 0), index)


def _element(builder, t, view, index):
    pointer = view
    if t.checked:
        pointer, index = builder.extract_value(view, 0), _check(builder, view, index)
    return builder.gep(builder.bitcast(pointer, t.row.as_pointer()), [index])


def _align(t):
    return min((4 if t.base in (types.float32, types.int32) else 8) * t.W, 64)


@lower_builtin(operator.getitem, View, types.intp)
def _view_get(context, builder, sig, args):
    t = sig.args[0]
    x = builder.load(_element(builder, t, *args))
    x.align = _align(t)
    if t.const and not t.checked:
        _invariant(builder, x)
    return builder.sext(x, I64) if t.base == types.int32 else x


@lower_builtin(operator.setitem, View, types.intp, types.Any)
def _view_set(context, builder, sig, args):
    t = sig.args[0]
    x = builder.trunc(args[2], I32) if t.base == types.int32 else args[2]
    builder.store(x, _element(builder, t, args[0], args[1])).align = _align(t)


# ---- functions of records ----------------------------------------------------------------------------------
@typed_function("eights", 1)
def _eights_type(args):
    t = args[0]
    if isinstance(t, View) and t.W == 1 and t.base == types.float64:
        return signature(View(t.base, 8, t.const, t.checked), t)
    return None


@lower_builtin(values.eights, View)
def _eights(context, builder, sig, args):
    if not sig.args[0].checked:
        return args[0]
    length = builder.lshr(builder.extract_value(args[0], 1), ir.Constant(I64, 3))
    return builder.insert_value(args[0], length, 1)


@typed_function("real", 2)
def _real_type(args):
    t = Value(args[0].W, args[0].base)
    return signature(t, args[0], t)


lower_builtin(values.real, Struct, Value)(lambda context, builder, sig, args: args[1])


@typed_function("width", 1)
def _width_type(args):
    return signature(types.int64, args[0])


lower_builtin(values.width, Struct)(lambda context, builder, sig, args: ir.Constant(I64, sig.args[0].W))


@typed_function("single_precision", 1)
def _single_type(args):
    return signature(types.boolean, args[0])


@lower_builtin(values.single_precision, types.Float)
def _single_number(context, builder, sig, args):
    return context.get_constant(types.boolean, False)


@lower_builtin(values.single_precision, Struct)
@lower_builtin(values.single_precision, Value)
def _single_precision(context, builder, sig, args):
    return context.get_constant(types.boolean, sig.args[0].base == types.float32)


@typed_function("lane_index", 1)
def _lane_index_type(args):
    return signature(Value(args[0].W, args[0].base), args[0])


@lower_builtin(values.lane_index, Struct)
def _lane_index(context, builder, sig, args):
    t = context.get_value_type(sig.return_type)
    return ir.Constant(t, [float(k) for k in range(t.count)]) if isinstance(t, ir.VectorType) else ir.Constant(t, 0.0)


@typed_function("scalars", 2)
def _scalars_type(args):
    if isinstance(args[0], Struct) and isinstance(args[1], types.Integer):
        return signature(View(args[0].base, 1, False, False), args[0], types.int64)
    return None


@lower_builtin(values.scalars, Struct, types.Integer)
def _scalars(context, builder, sig, args):
    return builder.inttoptr(args[1], POINTER)


@typed_function("call", 4)
def _call_type(args):
    function, m, d, i = args
    if isinstance(m, Struct) and isinstance(d, Struct) and all(isinstance(a, types.Integer) for a in (function, i)):
        return signature(types.none, types.int64, m, d, types.int64)
    return None


@lower_builtin(values.call, types.int64, Struct, Struct, types.int64)
def _call_address(context, builder, sig, args):
    ft = ir.FunctionType(I32, [POINTER, POINTER, I64])
    builder.call(builder.inttoptr(args[0], ft.as_pointer()), args[1:])
    return context.get_dummy_value()


def _gather_type(args):
    view, index = args
    if not (isinstance(view, View) and isinstance(index, Value)):
        return None
    return signature(Value(index.W, index.base), view, index)


@typed_function("read_lane", 3)
def _read_lane_type(args):
    view, i, k = args
    if isinstance(view, View) and isinstance(i, types.Integer) and isinstance(k, types.Integer):
        return signature(Value(1, types.float64), view, types.int64, types.int64)
    return None


def _lane_pointer(builder, t, view, i, k):
    p = _element(builder, t, view, i)
    return p if t.W == 1 else builder.gep(builder.bitcast(p, machine_type(t.base).as_pointer()), [k])


@lower_builtin(values.read_lane, View, types.int64, types.int64)
def _read_lane(context, builder, sig, args):
    t = sig.args[0]
    x = builder.load(_lane_pointer(builder, t, *args))
    return x if t.base == types.float64 else builder.fpext(x, ir.DoubleType())


@typed_function("write_lane", 4)
def _write_lane_type(args):
    view, i, k, _ = args
    if isinstance(view, View) and not view.const and isinstance(i, types.Integer) and isinstance(k, types.Integer):
        return signature(types.none, view, types.int64, types.int64, Value(1, types.float64))
    return None


@lower_builtin(values.write_lane, View, types.int64, types.int64, Value)
def _write_lane(context, builder, sig, args):
    t = sig.args[0]
    x = args[3] if t.base == types.float64 else builder.fptrunc(args[3], ir.FloatType())
    builder.store(x, _lane_pointer(builder, t, *args[:3]))
    return context.get_dummy_value()


for _name in ("gather", "gather_rows"):
    typed_function(_name, 2)(_gather_type)

    @lower_builtin(getattr(values, _name), View, Value)
    def _gather(context, builder, sig, args, rows=_name == "gather_rows"):
        t, W = sig.args[0], sig.args[1].W
        out = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        for lane in range(W):
            x = args[1] if W == 1 else builder.extract_element(args[1], ir.Constant(I32, lane))
            p = _element(builder, t, args[0], builder.fptosi(x, I64))
            if rows and t.W > 1:
                p = builder.gep(builder.bitcast(p, machine_type(t.base).as_pointer()), [ir.Constant(I64, lane)])
            x = builder.load(p)
            if t.base != sig.return_type.base:
                x = builder.fptrunc(x, machine_type(sig.return_type.base))
            out = x if W == 1 else builder.insert_element(out, x, ir.Constant(I32, lane))
        return out


# ---- kernels and stages as global names of compiled code -----------------------------------------------------
@typeof_impl.register(Kernel)
def _typeof_kernel(kernel, c):
    if "dispatcher" not in kernel.numba:
        kernel.numba["dispatcher"] = njit(**JIT_OPTIONS)(kernel.function)
    return types.Dispatcher(kernel.numba["dispatcher"])


@typeof_impl.register(Stage)
def _typeof_stage(stage, c):
    """A call of a stage from compiled code: its symbol, found by the linker."""
    if "function" not in stage.numba:

        class _Template(AbstractTemplate):
            key = stage

            def generic(self, args, kws):
                if len(args) != len(stage.parameters):
                    return None
                return signature(types.none, *[a if isinstance(a, Struct) else types.int64 for a in args])

        @lower_builtin(stage, *[types.Any] * len(stage.parameters))
        def _call(context, builder, sig, args):
            first = sig.args[0]
            base = "f64" if first.base == types.float64 else "f32"
            name = symbol(stage, base, first.W, first.checked)
            ft = ir.FunctionType(I32, [context.get_value_type(t) for t in sig.args])
            builder.call(cgutils.get_or_insert_function(builder.module, ft, name), args)
            return context.get_dummy_value()

        stage.numba["function"] = types.Function(_Template)
    return stage.numba["function"]
