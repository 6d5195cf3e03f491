"""What values mean when compiled: Numba types for one world's value, for W worlds' values and for their masks.

    Real(base)        one world's value: a float or double whose literals are weak (float32 code stays float32)
    Lane(W, base)     W worlds' values: one LLVM vector <W x base>
    Mask(W, base)     a comparison of values: <W x i1>, or i1 at W = 1, where it serves as a boolean too

No fast-math flag is set anywhere: a fused multiply-add is written `fma`.  So the same source gives the same bits at
every width, on every CPU level, ahead of time and just in time.  Imported only when something is compiled.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typeconv import Conversion
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, lower_cast, models, register_model

from . import values

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


def machine_type(base):
    """The LLVM type of one element."""
    return {"float64": ir.DoubleType(), "float32": ir.FloatType(), "int32": I32, "int64": I64}[base.name]


# ---- types ---------------------------------------------------------------------------------------------------------
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


@register_model(Value)
class _ValueModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, machine_type(t.base) if t.W == 1 else ir.VectorType(machine_type(t.base), t.W))


@register_model(Mask)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm, t):
        super().__init__(dmm, t, I1 if t.W == 1 else ir.VectorType(I1, t.W))


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
    if fromty.base != toty.base:
        t = machine_type(toty.base)
        t = t if fromty.W == 1 else ir.VectorType(t, fromty.W)
        val = builder.fptrunc(val, t) if toty.base == types.float32 else builder.fpext(val, t)
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
        if len({a.base for a in found}) > 1:
            return None  # a scalar in a tile of other precision: real(d, x) converts it
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
def typed_function(name, n):
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

    @typed_function(name, n)
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


@typed_function("where", 3)
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

    @typed_function(_name, 1)
    def _reduce_type(args):
        return signature(types.boolean, args[0]) if isinstance(args[0], (Mask, types.Boolean)) else None

    @lower_builtin(getattr(values, _name), Mask)
    def _reduce_lanes(context, builder, sig, args, symbol=_symbol, word=_word):
        bits = _as_bits(builder, args[0])
        return builder.icmp_unsigned(symbol, bits, ir.Constant(bits.type, word))

    lower_builtin(getattr(values, _name), types.Boolean)(lambda context, builder, sig, args: args[0])


@typed_function("not_", 1)
def _not_type(args):
    return signature(args[0], args[0]) if isinstance(args[0], (Mask, types.Boolean)) else None


lower_builtin(values.not_, Mask)(lambda context, builder, sig, args: builder.not_(args[0]))


@lower_builtin(values.not_, types.Boolean)
def _not_bool(context, builder, sig, args):
    return builder.xor(args[0], ir.Constant(args[0].type, 1))


@typed_function("whole", 1)
def _whole_type(args):
    return signature(types.int64, args[0]) if isinstance(args[0], Value) and args[0].W == 1 else None


@lower_builtin(values.whole, Value)
def _whole(context, builder, sig, args):
    return builder.fptosi(args[0], I64)


@typed_function("has", 2)
def _has_type(args):
    return signature(types.boolean, args[0], types.int64) if isinstance(args[0], (Mask, types.Boolean)) else None


@lower_builtin(values.has, Mask, types.int64)
def _has_lane(context, builder, sig, args):
    mask, k = args
    if not isinstance(mask.type, ir.VectorType):
        return mask
    bits = _as_bits(builder, mask)
    return builder.trunc(builder.lshr(builder.zext(bits, I64), k), I1)


@lower_builtin(values.has, types.Boolean, types.int64)
def _has_bool(context, builder, sig, args):
    return args[0]


# ---- the bits of a value ---------------------------------------------------------------------------------
def _int_like(t, bits):
    return ir.VectorType(ir.IntType(bits), t.count) if isinstance(t, ir.VectorType) else ir.IntType(bits)


def _constant(t, x):
    return ir.Constant(t, [x] * t.count) if isinstance(t, ir.VectorType) else ir.Constant(t, x)


def _format(base):
    """(bits, bits of the significand, exponent bias)"""
    return (64, 52, 1023) if base == types.float64 else (32, 23, 127)


@typed_function("split_exponent", 1)
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


@typed_function("scale_exponent", 2)
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
