; Fused multiply-add for WebAssembly, which has no exact one: the rounded value of x y + z.
; Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums, IEEE Trans. Computers 57 (2008), algorithm 5.
; Beyond the paper: operands are scaled where a term could overflow or underflow, and subnormal results round once.

; Error of the rounded sum s = x + y (Knuth).
define internal double @fma_error(double %x, double %y, double %s) alwaysinline {
  %t = fsub double %s, %x   %u = fsub double %s, %t   %v = fsub double %x, %u   %w = fsub double %y, %t
  %e = fadd double %v, %w   ret double %e
}

; x + y, rounded to odd: an inexact sum whose last bit is 0 becomes its neighbor on the side of the exact sum.
define internal double @fma_odd(double %x, double %y) alwaysinline {
  %s = fadd double %x, %y   %e = call double @fma_error(double %x, double %y, double %s)
  %bits = bitcast double %s to i64   %last = and i64 %bits, 1   %even = icmp eq i64 %last, 0
  %inexact = fcmp one double %e, 0.0   %moves = and i1 %even, %inexact   %up = fcmp ogt double %e, 0.0
  %positive = fcmp ogt double %s, 0.0   %away = icmp eq i1 %up, %positive   %by = select i1 %away, i64 1, i64 -1
  %move = select i1 %moves, i64 %by, i64 0   %moved = add i64 %bits, %move   %r = bitcast i64 %moved to double
  ret double %r
}

; x y + z as a sum of the returned pair; the second is rounded to odd.
define internal {double, double} @fma_pair(double %x, double %y, double %z) alwaysinline {
  %p = fmul double %x, %y   %xc = fmul double %x, 134217729.0   %xd = fsub double %xc, %x   %xh = fsub double %xc, %xd
  %xl = fsub double %x, %xh   %yc = fmul double %y, 134217729.0   %yd = fsub double %yc, %y
  %yh = fsub double %yc, %yd   %yl = fsub double %y, %yh   %hh = fmul double %xh, %yh   %e0 = fsub double %p, %hh
  %lh = fmul double %xl, %yh   %e1 = fsub double %e0, %lh   %hl = fmul double %xh, %yl   %e2 = fsub double %e1, %hl
  %ll = fmul double %xl, %yl   %e = fsub double %ll, %e2   %s = fadd double %z, %e
  %sl = call double @fma_error(double %z, double %e, double %s)   %v = fadd double %p, %s
  %vl = call double @fma_error(double %p, double %s, double %v)   %low = call double @fma_odd(double %sl, double %vl)
  %r0 = insertvalue {double, double} poison, double %v, 0   %r1 = insertvalue {double, double} %r0, double %low, 1
  ret {double, double} %r1
}

define internal i64 @fma_exponent(double %x) alwaysinline {
  %bits = bitcast double %x to i64   %high = lshr i64 %bits, 52   %e = and i64 %high, 2047   ret i64 %e
}

define internal double @fma_power(i64 %e) alwaysinline {
  %biased = add i64 %e, 1023   %bits = shl i64 %biased, 52   %r = bitcast i64 %bits to double   ret double %r
}

; (m, e) with x = m 2^e and 1 <= |m| < 2, for a finite x that is not zero.
define internal {double, i64} @fma_split(double %x) alwaysinline {
  %e0 = call i64 @fma_exponent(double %x)   %subnormal = icmp eq i64 %e0, 0
  %larger = fmul double %x, 0x43F0000000000000   %y = select i1 %subnormal, double %larger, double %x
  %offset = select i1 %subnormal, i64 -1087, i64 -1023   %e1 = call i64 @fma_exponent(double %y)
  %e = add i64 %e1, %offset   %bits = bitcast double %y to i64   %rest = and i64 %bits, -9218868437227405313
  %unit = or i64 %rest, 4607182418800017408   %m = bitcast i64 %unit to double
  %r0 = insertvalue {double, i64} poison, double %m, 0   %r1 = insertvalue {double, i64} %r0, i64 %e, 1
  ret {double, i64} %r1
}

; Operands whose exponents are not in the range of @fma_exact.
define internal double @fma_scaled(double %x, double %y, double %z) noinline {
  %product = fmul double %x, %y   %plain = fadd double %product, %z   %ex = call i64 @fma_exponent(double %x)
  %ey = call i64 @fma_exponent(double %y)   %ez = call i64 @fma_exponent(double %z)   %x0 = fcmp oeq double %x, 0.0
  %y0 = fcmp oeq double %y, 0.0   %xbad = icmp eq i64 %ex, 2047   %ybad = icmp eq i64 %ey, 2047
  %any0 = or i1 %x0, %y0   %anybad = or i1 %xbad, %ybad   %trivial = or i1 %any0, %anybad
  br i1 %trivial, label %one, label %factors
one:
  ret double %plain
factors:
  %zbad = icmp eq i64 %ez, 2047   br i1 %zbad, label %last, label %finite
last:  ; infinite or NaN
  %twice = fadd double %z, %z   ret double %twice
finite:  ; the product of finite numbers is not zero, even if it underflows: it gives the sign
  %z0 = fcmp oeq double %z, 0.0   br i1 %z0, label %alone, label %scale
alone:
  ret double %product
scale:
  %xs = call {double, i64} @fma_split(double %x)   %ys = call {double, i64} @fma_split(double %y)
  %zs = call {double, i64} @fma_split(double %z)   %xm = extractvalue {double, i64} %xs, 0
  %ym = extractvalue {double, i64} %ys, 0   %zm = extractvalue {double, i64} %zs, 0
  %xe = extractvalue {double, i64} %xs, 1   %ye = extractvalue {double, i64} %ys, 1
  %ze = extractvalue {double, i64} %zs, 1   %e = add i64 %xe, %ye   %d = sub i64 %ze, %e
  %dominates = icmp sgt i64 %d, 57  ; the product is below an eighth of z's last bit
  br i1 %dominates, label %same, label %sum
same:
  ret double %z
sum:
  %small = icmp slt i64 %d, -120  ; below the last bit of the exact product only the sign of z matters
  %shift = select i1 %small, i64 -120, i64 %d   %power = call double @fma_power(i64 %shift)
  %zn = fmul double %zm, %power   %pair = call {double, double} @fma_pair(double %xm, double %ym, double %zn)
  %v = extractvalue {double, double} %pair, 0   %low = extractvalue {double, double} %pair, 1
  %r = fadd double %v, %low   %zero = fcmp oeq double %r, 0.0   br i1 %zero, label %cancelled, label %nonzero
cancelled:
  ret double 0.0
nonzero:
  %re = call i64 @fma_exponent(double %r)   %total = add i64 %re, %e
  %normal = icmp sgt i64 %total, 0  ; re - 1023 + e >= -1022
  br i1 %normal, label %rescale, label %subnormal
subnormal:  ; rounds to multiples of 2^-1074: the last bit of 2^-1022 + |x y + z|
  %be = sub i64 -1022, %e   %magic = call double @fma_power(i64 %be)
  %big = call double @llvm.copysign.f64(double %magic, double %r)   %bs = fadd double %big, %v
  %bl = call double @fma_error(double %big, double %v, double %bs)
  %odd = call double @fma_odd(double %bl, double %low)   %rounded = fadd double %bs, %odd
  %difference = fsub double %rounded, %big   %signed = call double @llvm.copysign.f64(double %difference, double %r)
  br label %rescale
rescale:
  %value = phi double [%r, %nonzero], [%signed, %subnormal]   %half = ashr i64 %e, 1   %rest = sub i64 %e, %half
  %f0 = call double @fma_power(i64 %half)   %f1 = call double @fma_power(i64 %rest)   %g0 = fmul double %value, %f0
  %g1 = fmul double %g0, %f1   ret double %g1
}

define internal double @fma_exact(double %x, double %y, double %z) noinline {
  %ex = call i64 @fma_exponent(double %x)   %ey = call i64 @fma_exponent(double %y)
  %ez = call i64 @fma_exponent(double %z)   %dx = sub i64 %ex, 543   %dy = sub i64 %ey, 543   %dz = sub i64 %ez, 143
  %ox = icmp ugt i64 %dx, 960   %oy = icmp ugt i64 %dy, 960   %oz = icmp ugt i64 %dz, 1800   %oxy = or i1 %ox, %oy
  %outside = or i1 %oxy, %oz   br i1 %outside, label %slow, label %fast
fast:
  %pair = call {double, double} @fma_pair(double %x, double %y, double %z)
  %v = extractvalue {double, double} %pair, 0   %low = extractvalue {double, double} %pair, 1
  %r = fadd double %v, %low   ret double %r
slow:
  %s = call double @fma_scaled(double %x, double %y, double %z)   ret double %s
}

; The instruction of relaxed SIMD: fused, or rounded twice, as the processor has it.
declare <2 x double> @llvm.wasm.relaxed.madd.v2f64(<2 x double>, <2 x double>, <2 x double>)
define internal double @fma_relaxed(double %x, double %y, double %z) alwaysinline {
  %a = insertelement <2 x double> poison, double %x, i32 0   %b = insertelement <2 x double> poison, double %y, i32 0
  %c = insertelement <2 x double> poison, double %z, i32 0
  %s = call <2 x double> @llvm.wasm.relaxed.madd.v2f64(<2 x double> %a, <2 x double> %b, <2 x double> %c)
  %r = extractelement <2 x double> %s, i32 0   ret double %r
}
