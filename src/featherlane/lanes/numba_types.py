"""What kernels mean when compiled: Numba types for values, masks, views and records, and their LLVM code.

    Real(base)        one world's value: a float or double whose literals are weak (float32 code stays float32)
    Lane(W, base)     W worlds' values: one LLVM vector <W x base>
    Mask(W, base)     a comparison of values: <W x i1>, or i1 at W = 1, where it serves as a boolean too
    View              a pointer to rows; the index is an int, the element a value (or an int)
    Struct            a record: one pointer to a table of (address, length) pairs

No fast-math flag is set anywhere: a fused multiply-add is written `fma`.  So the same source gives the same bits at
every width, on every CPU level, ahead of time and just in time.

In the checked form a View also carries its length and where to report: an index out of range is recorded in the
record's fault words and replaced by 0.  Imported only when something is compiled.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import lower_builtin, lower_cast, lower_getattr_generic, models, register_model, typeof_impl

from . import values
from .kernel import Kernel, Stage, symbol
from .layout import Layout, layout_hash

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = I8.as_pointer()
FLOATS = {"f64": types.float64, "f32": types.float32}
JIT_OPTIONS = {"error_model": "numpy", "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
FAULT_WORDS = 4  # before the first field of a table: faults seen, field, index, length of the first one


def _ir(base):
    return {"float64": ir.DoubleType(), "float32": ir.FloatType(), "int32": I32, "int64": I64}[base.name]


# ---- types -----------------------------------------------------------------------------------------
class Value(types.Type):
    """A real number of one world, or of each of W worlds.  Plain numbers convert to it, never the other way."""

    def __init__(self, W, base):
        self.W, self.base = W, base
        super().__init__(f"Real({base})" if W == 1 else f"Lane({W},{base})")

    def can_convert_from(self, ctx, other):
        if isinstance(other, (types.Float, types.Integer)) or (
            isinstance(other, Value) and other.W == 1 and self.W > 1
        ):
            return Conversion.safe
        return None

    def unify(self, ctx, other):
        if isinstance(other, (types.Float, types.Integer)):
            return self
        if isinstance(other, Value) and other.base == self.base:
            return self if self.W >= other.W else other
        return None


class Mask(types.Type):
    """A comparison of values; it keeps their base, so that where(mask, 1.0, 0.0) is a value of that base too."""

    def __init__(self, W, base):
        self.W, self.base = W, base
        super().__init__(f"Mask({W},{base})")

    def can_convert_from(self, ctx, other):
        if isinstance(other, types.Boolean) or (isinstance(other, Mask) and other.W == 1 and self.W > 1):
            return Conversion.safe
        return None

    def can_convert_to(self, ctx, other):
        return Conversion.safe if self.W == 1 and isinstance(other, types.Boolean) else None

    def unify(self, ctx, other):
        if isinstance(other, types.Boolean):
            return self
        if isinstance(other, Mask) and other.base == self.base:
            return self if self.W >= other.W else other
        return None


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
        t = _ir(self.base)
        return t if self.W == 1 else ir.VectorType(t, self.W)


class Struct(types.Type):
    """A record of a layout; `const` marks the model, which never changes while a stage runs."""

    def __init__(self, layout: Layout, W, base, const, checked):
        self.layout, self.W, self.base, self.const, self.checked = layout, W, base, const, checked
        super().__init__(f"Struct({layout.name},{W},{base},{const},{checked},{layout_hash(layout)})")

    def field(self, name):
        f = self.layout[name]
        if f.kind == "size":
            return types.int64
        base = {"int": types.int32, "long": types.int64}.get(f.kind, self.base)
        return View(base, self.W if f.kind == "real" else 1, self.const, self.checked)


@register_model(Value)
class _ValueModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, _ir(t.base) if t.W == 1 else ir.VectorType(_ir(t.base), t.W))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, I1 if t.W == 1 else ir.VectorType(I1, t.W))


@register_model(View)
class _ViewModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        # checked: address of the rows, length, number of the field, address of the fault words
        super().__init__(dmm, t, ir.LiteralStructType([POINTER, I64, I64, POINTER]) if t.checked else POINTER)


@register_model(Struct)
class _StructModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, POINTER)


# ---- casts -----------------------------------------------------------------------------------------
def _splat(builder, x, W):
    vt = ir.VectorType(x.type, W)
    v = builder.insert_element(ir.Constant(vt, ir.Undefined), x, ir.Constant(I32, 0))
    return builder.shuffle_vector(v, ir.Constant(vt, ir.Undefined), ir.Constant(ir.VectorType(I32, W), [0] * W))


@lower_cast(types.Float, Value)
@lower_cast(types.Integer, Value)
def _number_to_value(context, builder, fromty, toty, val):
    x = context.cast(builder, val, fromty, toty.base)
    return x if toty.W == 1 else _splat(builder, x, toty.W)


@lower_cast(Value, Value)
def _value_to_value(context, builder, fromty, toty, val):
    return val if fromty.W == toty.W else _splat(builder, val, toty.W)


@lower_cast(types.Boolean, Mask)
def _bool_to_mask(context, builder, fromty, toty, val):
    bit = builder.trunc(val, I1) if val.type != I1 else val
    return bit if toty.W == 1 else _splat(builder, bit, toty.W)


@lower_cast(Mask, Mask)
def _mask_to_mask(context, builder, fromty, toty, val):
    return val if fromty.W == toty.W else _splat(builder, val, toty.W)


@lower_cast(Mask, types.Boolean)
def _mask_to_bool(context, builder, fromty, toty, val):
    return val


# ---- operators -------------------------------------------------------------------------------------
def _common(args):
    """The value type that the arguments share, or None where there is none."""
    found = [a for a in args if isinstance(a, Value)]
    if found and all(isinstance(a, (Value, types.Float, types.Integer)) for a in args):
        return max(found, key=lambda a: a.W)
    return None


def _arithmetic(ops, emit, n=2):
    for op in ops:

        @infer_global(op)
        class _Template(AbstractTemplate):
            def generic(self, args, kws):
                t = _common(args)
                return signature(t, *[t] * n) if t is not None and len(args) == n else None

        lower_builtin(op, *[Value] * n)(lambda context, builder, sig, args: emit(builder, *args))


_arithmetic([operator.add, operator.iadd], lambda b, x, y: b.fadd(x, y))
_arithmetic([operator.sub, operator.isub], lambda b, x, y: b.fsub(x, y))
_arithmetic([operator.mul, operator.imul], lambda b, x, y: b.fmul(x, y))
_arithmetic([operator.truediv, operator.itruediv], lambda b, x, y: b.fdiv(x, y))
_arithmetic([operator.neg], lambda b, x: b.fneg(x), 1)


def _compare(op, symbol):
    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            t = _common(args)
            return signature(Mask(t.W, t.base), t, t) if t is not None else None

    emit = "fcmp_unordered" if symbol == "!=" else "fcmp_ordered"
    lower_builtin(op, Value, Value)(lambda context, builder, sig, args: getattr(builder, emit)(symbol, *args))


for _op, _symbol in zip(
    (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    ("<", "<=", ">", ">=", "==", "!="),
    strict=True,
):
    _compare(_op, _symbol)


def _logic(op, emit):
    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            masks = [a for a in args if isinstance(a, Mask)]
            if masks and all(isinstance(a, (Mask, types.Boolean)) for a in args):
                t = max(masks, key=lambda a: a.W)
                return signature(t, t, t)
            return None

    lower_builtin(op, Mask, Mask)(lambda context, builder, sig, args: emit(builder, *args))


_logic(operator.and_, lambda b, x, y: b.and_(x, y))
_logic(operator.or_, lambda b, x, y: b.or_(x, y))
_logic(operator.iand, lambda b, x, y: b.and_(x, y))
_logic(operator.ior, lambda b, x, y: b.or_(x, y))


def _truth(op, emit):
    """What Python asks of a condition: a mask of one world has an answer, a mask of many has none."""

    @infer_global(op)
    class _Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 1 and isinstance(args[0], Mask) and args[0].W == 1:
                return signature(types.boolean, args[0])
            return None

    lower_builtin(op, Mask)(lambda context, builder, sig, args: emit(builder, args[0]))


_truth(bool, lambda b, x: x)
_truth(operator.truth, lambda b, x: x)
_truth(operator.not_, lambda b, x: b.not_(x))


# ---- functions of values -----------------------------------------------------------------------------
def _function(name, n):
    """Decorator: type (from the argument types) and code of one function of `values`."""

    def decorate(typer):
        f = getattr(values, name)

        @infer_global(f)
        class _Template(AbstractTemplate):
            def generic(self, args, kws):
                return typer(args) if len(args) == n else None

        return typer

    return decorate


def _map(name, n, emit):
    """A function from n values to one of the same type; plain numbers alone stay double."""

    @_function(name, n)
    def typer(args):
        t = _common(args)
        if t is None and all(isinstance(a, (types.Float, types.Integer)) for a in args):
            t = types.float64
        return signature(t, *[t] * n) if t is not None else None

    for kind in (Value, types.Float):
        lower_builtin(getattr(values, name), *[kind] * n)(lambda context, builder, sig, args: emit(builder, *args))


def _suffix(t):
    if isinstance(t, ir.VectorType):
        return f"v{t.count}{_suffix(t.element)}"
    return {"double": "f64", "float": "f32"}[str(t)]


def _llvm(name):
    def emit(builder, *args):
        t = args[0].type
        ft = ir.FunctionType(t, [t] * len(args))
        return builder.call(cgutils.get_or_insert_function(builder.module, ft, f"llvm.{name}.{_suffix(t)}"), args)

    return emit


_map("sqrt", 1, _llvm("sqrt"))
_map("fabs", 1, _llvm("fabs"))
_map("copysign", 2, _llvm("copysign"))
_map("floor", 1, _llvm("floor"))
_map("rint", 1, _llvm("rint"))
_map("fma", 3, _llvm("fma"))
# a compare and a select, not llvm.minnum: one instruction, and signed zeros and NaN the same on every target
_map("fmin", 2, lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))
_map("fmax", 2, lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))


def _emit_clip(b, x, lo, hi):
    x = b.select(b.fcmp_ordered(">", x, lo), x, lo)
    return b.select(b.fcmp_ordered("<", x, hi), x, hi)


_map("clip", 3, _emit_clip)


@_function("where", 3)
def _where_type(args):
    mask, a, b = args
    masks = [x for x in args if isinstance(x, Mask)]
    if all(isinstance(x, (Mask, types.Boolean)) for x in args):
        t = max(masks, key=lambda x: x.W, default=types.boolean)
        return signature(t, t, t, t)
    t = _common((a, b))
    if t is None and not all(isinstance(x, (types.Float, types.Integer)) for x in (a, b)):
        return None
    if isinstance(mask, Mask):
        t = Value(max(mask.W, t.W if t else 1), mask.base)
        return signature(t, Mask(t.W, t.base), t, t)
    t = t or types.float64
    return signature(t, mask, t, t) if isinstance(mask, types.Boolean) else None


@lower_builtin(values.where, Mask, types.Any, types.Any)
def _where_lanes(context, builder, sig, args):
    return builder.select(*args)


@lower_builtin(values.where, types.Boolean, types.Any, types.Any)
def _where_bool(context, builder, sig, args):
    return builder.select(builder.trunc(args[0], I1) if args[0].type != I1 else args[0], args[1], args[2])


def _as_bits(builder, mask):
    return builder.bitcast(mask, ir.IntType(mask.type.count)) if isinstance(mask.type, ir.VectorType) else mask


for _name, _symbol, _word in (("any_", "!=", 0), ("all_", "==", -1)):

    @_function(_name, 1)
    def _reduce_type(args):
        return signature(types.boolean, args[0]) if isinstance(args[0], (Mask, types.Boolean)) else None

    @lower_builtin(getattr(values, _name), Mask)
    def _reduce_lanes(context, builder, sig, args, symbol=_symbol, word=_word):
        bits = _as_bits(builder, args[0])
        return builder.icmp_unsigned(symbol, bits, ir.Constant(bits.type, word))

    lower_builtin(getattr(values, _name), types.Boolean)(lambda context, builder, sig, args: args[0])


@_function("not_", 1)
def _not_type(args):
    return signature(args[0], args[0]) if isinstance(args[0], (Mask, types.Boolean)) else None


lower_builtin(values.not_, Mask)(lambda context, builder, sig, args: builder.not_(args[0]))


@lower_builtin(values.not_, types.Boolean)
def _not_bool(context, builder, sig, args):
    return builder.xor(args[0], ir.Constant(args[0].type, 1))


# ---- the bits of a value ---------------------------------------------------------------------------------
def _int_like(t, bits):
    return ir.VectorType(ir.IntType(bits), t.count) if isinstance(t, ir.VectorType) else ir.IntType(bits)


def _constant(t, x):
    return ir.Constant(t, [x] * t.count) if isinstance(t, ir.VectorType) else ir.Constant(t, x)


def _format(base):
    """(bits, bits of the significand, exponent bias)"""
    return (64, 52, 1023) if base == types.float64 else (32, 23, 127)


@_function("split_exponent", 1)
def _split_type(args):
    t = args[0]
    return signature(types.UniTuple(t, 2), t) if isinstance(t, Value) else None


@lower_builtin(values.split_exponent, Value)
def _split_exponent(context, builder, sig, args):
    (x,), t = args, args[0].type
    bits, low, bias = _format(sig.args[0].base)
    it = _int_like(t, bits)
    w = builder.bitcast(x, it)
    e = builder.sub(builder.lshr(w, _constant(it, low)), _constant(it, bias))
    f = builder.or_(builder.and_(w, _constant(it, (1 << low) - 1)), _constant(it, bias << low))
    return context.make_tuple(builder, sig.return_type, [builder.bitcast(f, t), builder.sitofp(e, t)])


@_function("scale_exponent", 2)
def _scale_type(args):
    t = _common(args)
    return signature(t, t, t) if t is not None else None


@lower_builtin(values.scale_exponent, Value, Value)
def _scale_exponent(context, builder, sig, args):
    t = args[0].type
    bits, low, bias = _format(sig.return_type.base)
    it = _int_like(t, bits)
    e = builder.add(builder.fptosi(args[1], it), _constant(it, bias))
    return builder.fmul(args[0], builder.bitcast(builder.shl(e, _constant(it, low)), t))


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
@_function("real", 2)
def _real_type(args):
    t = Value(args[0].W, args[0].base)
    return signature(t, args[0], t)


lower_builtin(values.real, Struct, Value)(lambda context, builder, sig, args: args[1])


@_function("width", 1)
def _width_type(args):
    return signature(types.int64, args[0])


lower_builtin(values.width, Struct)(lambda context, builder, sig, args: ir.Constant(I64, sig.args[0].W))


@_function("single_precision", 1)
def _single_type(args):
    return signature(types.boolean, args[0])


@lower_builtin(values.single_precision, types.Float)
def _single_number(context, builder, sig, args):
    return context.get_constant(types.boolean, False)


@lower_builtin(values.single_precision, Struct)
@lower_builtin(values.single_precision, Value)
def _single_precision(context, builder, sig, args):
    return context.get_constant(types.boolean, sig.args[0].base == types.float32)


@_function("lane_index", 1)
def _lane_index_type(args):
    return signature(Value(args[0].W, args[0].base), args[0])


@lower_builtin(values.lane_index, Struct)
def _lane_index(context, builder, sig, args):
    t = context.get_value_type(sig.return_type)
    return ir.Constant(t, [float(k) for k in range(t.count)]) if isinstance(t, ir.VectorType) else ir.Constant(t, 0.0)


@_function("scalars", 2)
def _scalars_type(args):
    if isinstance(args[0], Struct) and isinstance(args[1], types.Integer):
        return signature(View(args[0].base, 1, False, False), args[0], types.int64)
    return None


@lower_builtin(values.scalars, Struct, types.Integer)
def _scalars(context, builder, sig, args):
    return builder.inttoptr(args[1], POINTER)


def _gather_type(args):
    view, index = args
    if not (isinstance(view, View) and isinstance(index, Value)):
        return None
    return signature(Value(index.W, view.base), view, index)


for _name in ("gather", "gather_rows"):
    _function(_name, 2)(_gather_type)

    @lower_builtin(getattr(values, _name), View, Value)
    def _gather(context, builder, sig, args, rows=_name == "gather_rows"):
        t, W = sig.args[0], sig.args[1].W
        out = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        for lane in range(W):
            x = args[1] if W == 1 else builder.extract_element(args[1], ir.Constant(I32, lane))
            p = _element(builder, t, args[0], builder.fptosi(x, I64))
            if rows and t.W > 1:
                p = builder.gep(builder.bitcast(p, _ir(t.base).as_pointer()), [ir.Constant(I64, lane)])
            x = builder.load(p)
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
            name = symbol(stage.name, base, first.W, first.checked)
            ft = ir.FunctionType(I32, [context.get_value_type(t) for t in sig.args])
            builder.call(cgutils.get_or_insert_function(builder.module, ft, name), args)
            return context.get_dummy_value()

        stage.numba["function"] = types.Function(_Template)
    return stage.numba["function"]
