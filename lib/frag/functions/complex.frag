# Complex functions, c.<name>: each operand and result as its real and its imaginary part. The f32 forms of the
# functions that are more than arithmetic go through f64. Special values are those of C's annex G, which the array API
# follows.

frag c.add<T: real>(a: T, b: T, c: T, d: T) -> (T, T) { return a + c, b + d }
frag c.subtract<T: real>(a: T, b: T, c: T, d: T) -> (T, T) { return a - c, b - d }
frag c.multiply<T: real>(a: T, b: T, c: T, d: T) -> (T, T) { return a * c - b * d, a * d + b * c }
frag c.square<T: real>(a: T, b: T) -> (T, T) { return a * a - b * b, a * b + b * a }
frag c.negative<T: real>(a: T, b: T) -> (T, T) { return -a, -b }
frag c.conj<T: real>(a: T, b: T) -> (T, T) { return a, -b }
frag make<T: real>(a: T, b: T) -> (T, T) { return a, b }
frag c.real<T: real>(a: T, b: T) -> T { return a }
frag c.imag<T: real>(a: T, b: T) -> T { return b }
frag c.abs<T: real>(a: T, b: T) -> T { return hypot(a, b) }
frag c.round<T: real>(a: T, b: T) -> (T, T) { return rint(a), rint(b) }
frag c.equal<T: real>(a: T, b: T, c: T, d: T) -> bool { return (a == c) & (b == d) }
frag c.not_equal<T: real>(a: T, b: T, c: T, d: T) -> bool { return (a != c) | (b != d) }
frag c.isnan<T: real>(a: T, b: T) -> bool { return (a != a) | (b != b) }
frag c.isinf<T: real>(a: T, b: T) -> bool { return (fabs(a) == inf) | (fabs(b) == inf) }
frag c.isfinite<T: real>(a: T, b: T) -> bool { return (fabs(a) < inf) & (fabs(b) < inf) }
frag c.where<T: real>(m: bool, a: T, b: T, c: T, d: T) -> (T, T) { return select(m, a, c), select(m, b, d) }
frag c.logical_not<T: real>(a: T, b: T) -> bool { return (a == 0) & (b == 0) }
frag c.logical_and<T: real>(a: T, b: T, c: T, d: T) -> bool { return ((a != 0) | (b != 0)) & ((c != 0) | (d != 0)) }
frag c.logical_or<T: real>(a: T, b: T, c: T, d: T) -> bool { return (a != 0) | (b != 0) | (c != 0) | (d != 0) }
frag c.logical_xor<T: real>(a: T, b: T, c: T, d: T) -> bool { return ((a != 0) | (b != 0)) ^ ((c != 0) | (d != 0)) }

# Smith's division: by the greater part of the divisor first
frag smith<T: real>(a: T, b: T, c: T, d: T) -> (T, T) {
  flip = fabs(c) < fabs(d)
  p = select(flip, d, c)
  q = select(flip, c, d)
  r = q / p
  n = p + q * r
  x = select(flip, a * r + b, a + b * r)
  y = select(flip, b * r - a, b - a * r)
  return x / n, y / n
}
frag greater_part<T: real>(a: T, b: T) -> T { return select(fabs(a) < fabs(b), fabs(b), fabs(a)) }
# the power of two that takes m from beyond `most` or below `least` into the range where no sum above overflows and no
# product is subnormal beside what it is added to
frag part_scale<T: real>(m: T, least: T, most: T, up: T, down: T) -> T {
  return select(m > most, down, select(m < least, up, 1))
}
frag smith_scaled<T: real>(a: T, b: T, c: T, d: T, least: T, most: T, up: T, down: T) -> (T, T) {
  s = part_scale(greater_part(a, b), least, most, up, down)
  t = part_scale(greater_part(c, d), least, most, up, down)
  x, y = smith(a * s, b * s, c * t, d * t)
  k = t / s
  zero = (c == 0) & (d == 0)
  return select(zero, a / fabs(c), x * k), select(zero, b / fabs(c), y * k)
}
frag smith_rare<T: real>(a: T, b: T, c: T, d: T, least: T, most: T) -> bool {
  m = greater_part(a, b)
  n = greater_part(c, d)
  return (m > most) | (n > most) | ((m < least) & (m != 0)) | (n < least)
}
frag c.divide<f64>(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
  fast {
    rare smith_rare(a, b, c, d, 0x1p-900, 0x1p1000)
    x, y = smith(a, b, c, d)
    return x, y
  }
  full {
    x, y = smith_scaled(a, b, c, d, 0x1p-900, 0x1p1000, 0x1p200, 0x1p-100)
    return x, y
  }
}
frag c.divide<f32>(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) {
  fast {
    rare smith_rare(a, b, c, d, 0x1p-90, 0x1p120)
    x, y = smith(a, b, c, d)
    return x, y
  }
  full {
    x, y = smith_scaled(a, b, c, d, 0x1p-90, 0x1p120, 0x1p60, 0x1p-20)
    return x, y
  }
}
frag c.reciprocal<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.divide(select(a == a, 1, a), 0 * select(fabs(a) < inf, a, 0), a, b)
  return r, i
}
# z / |z|, with the signs of its parts; +0 of a zero. An infinite part counts as 1 and the other as 0 unless infinite
# too. The factor keeps |z| from overflow and among the normal numbers.
frag c.sign(a: f64, b: f64) -> (f64, f64) {
  p = fabs(a) == inf
  q = fabs(b) == inf
  any = p | q
  x = select(any, select(p, f64(1), 0), fabs(a))
  y = select(any, select(q, f64(1), 0), fabs(b))
  k = select((x > 0x1p1000) | (y > 0x1p1000), 0.25, select((x < 0x1p-900) & (y < 0x1p-900), 0x1p120, f64(1)))
  h = hypot(x * k, y * k)
  zero = h == 0
  d = select(zero, 1, h)
  bad = (a != a) | (b != b)
  r = select(zero, 0, copysign(x * k / d, a))
  i = select(zero, 0, copysign(y * k / d, b))
  return select(bad, a + b, r), select(bad, a + b, i)
}

# copysign where b may be NaN, whose sign says nothing: as of 0
frag sign_like<T: real>(a: T, b: T) -> T { return copysign(a, select(b == b, b, 0)) }

frag c.sqrt(a: f64, b: f64) -> (f64, f64) {
  x = fabs(a)
  y = fabs(b)
  big = (x > 0x1p1000) | (y > 0x1p1000)
  tiny = (x < 0x1p-900) & (y < 0x1p-900)
  k = select(big, 0x1p-4, select(tiny, 0x1p120, f64(1)))
  u = x * k
  v = y * k
  w = sqrt(0.5 * (hypot(u, v) + u))
  h = select(w == 0, v, v / (2 * w))
  s = select(big, 4, select(tiny, 0x1p-60, f64(1)))
  left = a < 0
  r = select(left, h, w) * s
  i = select(left, w, h) * s
  r = select(x == inf, select(left, select(b == b, 0, b), x), r)
  i = select(x == inf, select(left, x, select(b == b, 0, b)), i)
  return select(y == inf, y, r), select(y == inf, b, select(i == i, sign_like(i, b), i))
}

# e^a (cos b, sin b) as p (c, s) 2^n, p 2^n = e^a, which overflows or vanishes only with the result; 2^64 keeps a
# subnormal sine from being rounded before it is scaled up
frag exp_turned(a: f64, b: f64, p: f64, t: f64, c: f64, s: f64) -> (f64, f64) {
  up = a > 0
  k = select(up, 0x1p64, f64(1))
  u = t - select(up, 64, f64(0))
  r = scale_any(p * (c * k), u)
  i = scale_any(p * (s * k), u)
  fine = fabs(b) < inf
  r = select(a == inf, select(fine, copysign(a, r), a), select((a == -inf) & !fine, 0, r))
  i = select((a == inf) & fine, copysign(a, i), select((a == -inf) & !fine, 0, i))
  return r, select(b == 0, b, i)
}
frag exp_far_parts(a: f64) -> (f64, f64) {
  p, t = exp_parts(select(a > 1460, 1460, select(a < -800, -800, a)))
  return p, t
}
frag c.exp(a: f64, b: f64) -> (f64, f64) {
  p, t = exp_far_parts(a)
  r, i = exp_turned(a, b, p, t, cos(b), sin(b))
  return r, i
}
frag two_sum<T: real>(a: T, b: T) -> (T, T) {
  s = a + b
  t = s - a
  return s, (a - (s - t)) + (b - t)
}
# w + x^2 + y^2 in two parts; what cancels leaves exact terms
frag sum_of_squares(w: f64, x: f64, y: f64) -> (f64, f64) {
  s = x * x
  q = y * y
  h, hl = two_sum(w, s)
  u, ul = two_sum(h, q)
  a, al = two_sum(fma(x, x, -s), fma(y, y, -q))
  b, bl = two_sum(hl, ul)
  c, cl = two_sum(a, b)
  z, zl = two_sum(u, c)
  l = zl + (al + bl + cl)
  r = z + l
  return r, (z - r) + l
}
# log |z|, near 1 from x^2 + y^2 - 1
frag log_abs(a: f64, b: f64) -> f64 {
  x = fabs(a)
  y = fabs(b)
  m = greater_part(x, y)
  w = x * x + y * y
  near = (w > 0.5) & (w < 3)
  z, l = sum_of_squares(-1, select(near, x, 1), select(near, y, 0))
  k = select(m > 0x1p500, 0x1p-600, select(m < 0x1p-500, 0x1p600, f64(1)))
  e = select(m > 0x1p500, 0x1.9fe3682cd3be4p+8, select(m < 0x1p-500, -0x1.9fe3682cd3be4p+8, f64(0)))
  far = log(hypot(x * k, y * k)) + e
  return select((x == inf) | (y == inf), inf, select(near, 0.5 * log1p_pair(z, l), far))
}
frag c.log(a: f64, b: f64) -> (f64, f64) { return log_abs(a, b), atan2(b, a) }
frag c.log2(a: f64, b: f64) -> (f64, f64) {
  return log_abs(a, b) * 0x1.71547652b82fep+0, atan2(b, a) * 0x1.71547652b82fep+0
}
frag c.log10(a: f64, b: f64) -> (f64, f64) {
  return log_abs(a, b) * 0x1.bcb7b1526e50ep-2, atan2(b, a) * 0x1.bcb7b1526e50ep-2
}
# log |1 + z| = log1p(2 a + a^2 + b^2) / 2
frag c.log1p(a: f64, b: f64) -> (f64, f64) {
  near = (fabs(a) < 1.5) & (fabs(b) < 1.5) & (2 * a + a * a + b * b > -0.5)
  x = select(near, a, 0)
  z, l = sum_of_squares(2 * x, x, select(near, b, 0))
  return select(near, 0.5 * log1p_pair(z, l), log_abs(1 + a, b)), atan2(b, 1 + a)
}
# The real part of the value at zero is +0, whatever the signs there (array API).
frag c.expm1(a: f64, b: f64) -> (f64, f64) {
  e, i = c.exp(a, b)
  s = sin(0.5 * b)
  r = fma(expm1(a), cos(b), -2 * s * s)
  r = select((fabs(a) < 1) & (fabs(b) < inf), r, e - 1)
  return select(b == 0, expm1(a) + 0, r), i
}

# sinh z = sinh a cos b + i cosh a sin b, cosh z = cosh a cos b + i sinh a sin b; beyond 700 through e^|a| / 2 as above
frag c.sinh(a: f64, b: f64) -> (f64, f64) {
  p, t = exp_far_parts(fabs(a))
  big = fabs(a) > 700
  c = cos(b)
  s = sin(b)
  r = select(big, copysign(1, a) * scale_any(p * (c * 0x1p64), t - 65), sinh(a) * c)
  i = select(big, scale_any(p * (s * 0x1p64), t - 65), cosh(a) * s)
  fine = fabs(b) < inf
  whole = fabs(a) == inf
  r = select(whole, select(fine, select(c < 0, -a, a), a), r)
  i = select(whole & fine, copysign(inf, s), i)
  return select((a == 0) & !fine, a, r), select(b == 0, b, i)
}
frag c.cosh(a: f64, b: f64) -> (f64, f64) {
  p, t = exp_far_parts(fabs(a))
  big = fabs(a) > 700
  c = cos(b)
  s = sin(b)
  r = select(big, scale_any(p * (c * 0x1p64), t - 65), cosh(a) * c)
  i = select(big, copysign(1, a) * scale_any(p * (s * 0x1p64), t - 65), sinh(a) * s)
  fine = fabs(b) < inf
  whole = fabs(a) == inf
  r = select(whole, select(fine, copysign(inf, c), fabs(a)), r)
  i = select(whole & fine, select(s < 0, -a, a), i)
  zero = ((a == 0) & !fine) | (b == 0)
  return r, select(zero, sign_like(0, a) * sign_like(1, b), i)
}
# With t = tan b, k = 1 + t^2, s = sinh a: (k s sqrt(1 + s^2) + i t) / (1 + k s^2);
# from 22 on +-1 and 4 sin b cos b e^(-2 |a|)
frag c.tanh(a: f64, b: f64) -> (f64, f64) {
  x = fabs(a)
  far = x > 22
  fine = fabs(b) < inf
  t = tan(b)
  k = 1 + t * t
  s = sinh(select(far, 1, a))
  d = 1 + k * s * s
  r = select(far, copysign(1, a), k * s * sqrt(1 + s * s) / d)
  i = select(far, 4 * sin(b) * cos(b) * exp(-2 * x), t / d)
  i = select(x == inf, sign_like(0, b), i)
  r = select(fine | (x == inf) | (x == 0), select(fine | (x == inf), r, a), b - b)
  return r, select(b == 0, b, i)
}
frag c.sin<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.sinh(-b, a)
  return i, -r
}
frag c.cos<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.cosh(-b, a)
  return r, i
}
frag c.tan<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.tanh(-b, a)
  return i, -r
}

# Kahan's forms by sqrt(1 - z) and sqrt(1 + z); beyond 2^100 by log(2 |z|)
frag far_log(a: f64, b: f64) -> f64 { return log_abs(a, b) + 0x1.62e42fefa39efp-1 }
frag c.asin(a: f64, b: f64) -> (f64, f64) {
  far = !((fabs(a) < 0x1p100) & (fabs(b) < 0x1p100))
  x = select(far, 1, a)
  y = select(far, 1, b)
  p, q = c.sqrt(1 - x, -y)
  u, v = c.sqrt(1 + x, y)
  r = select(far, atan2(a, fabs(b)), atan2(x, p * u - q * v))
  i = asinh(p * v - q * u)
  i = sign_like(select(far, far_log(a, b), i), b)
  return select(a == 0, a, r), select((b == 0) & (fabs(a) <= 1), b, i)
}
frag c.acos(a: f64, b: f64) -> (f64, f64) {
  far = !((fabs(a) < 0x1p100) & (fabs(b) < 0x1p100))
  x = select(far, 1, a)
  y = select(far, 1, b)
  p, q = c.sqrt(1 - x, -y)
  u, v = c.sqrt(1 + x, y)
  r = select(far, atan2(fabs(b), a), 2 * atan2(p, u))
  i = select(far, far_log(a, b), asinh(u * q - v * p))
  return select((a == 0) & (b != b), 0x1.921fb54442d18p+0, r), -sign_like(i, b)
}
frag c.acosh<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.acos(a, b)
  return fabs(i), select(r == r, sign_like(r, b), r)
}
frag c.asinh<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.asin(-b, a)
  return i, -r
}
frag c.atanh(a: f64, b: f64) -> (f64, f64) {
  x = fabs(a)
  y = fabs(b)
  far = !((x < 0x1p100) & (y < 0x1p100))
  u = select(far, 2, x)
  v = select(far, 2, y)
  d = (1 - u) * (1 - u) + v * v
  pole = d < 0x1p-900
  r = 0.25 * log1p(4 * u / select(pole, 1, d))
  r = select(pole, 0.5 * (0x1.62e42fefa39efp-1 - log_abs(1 - u, v)), r)
  i = 0.5 * atan2(2 * v, (1 - u) * (1 + u) - v * v)
  h = hypot(x * 0x1p-200, y * 0x1p-200)
  r = select(far, select((x == inf) | (y == inf), 0, (x * 0x1p-200) / h / h * 0x1p-200), r)
  i = select(far, select(y == y, 0x1.921fb54442d18p+0, y), i)
  r = select((x != x) & (y != inf), x, select(x == 0, 0, r))
  i = select((x != x) & (y != inf), x, i)
  r = select((y != y) & (x != 0) & (x != inf), y, r)
  r = select((x == 1) & (y == 0), inf, r)
  return sign_like(r, a), select(i == i, copysign(select((y == 0) & (x <= 1), 0, i), b), i)
}
frag c.atan<T: real>(a: T, b: T) -> (T, T) {
  r, i = c.atanh(-b, a)
  return i, -r
}
# log |z| in two parts for finite z other than 0: with some 60 bits, so that a power near the ends of the range, whose
# logarithm is 700, keeps its own
frag log_abs_two(a: f64, b: f64) -> (f64, f64) {
  big = (fabs(a) > 0x1p500) | (fabs(b) > 0x1p500)
  tiny = (fabs(a) < 0x1p-400) & (fabs(b) < 0x1p-400)
  k = select(big, 0x1p-600, select(tiny, 0x1p600, f64(1)))
  n = select(big, f64(600), select(tiny, -600, f64(0)))
  x = a * k
  y = b * k
  s = x * x
  q = y * y
  w = s + q
  wl = select(s > q, (s - w) + q, (q - w) + s) + (fma(x, x, -s) + fma(y, y, -q))
  h, l = log_two(w)
  e = n * 0x1.62e42fefa39efp-1
  el = fma(n, 0x1.62e42fefa39efp-1, -e) + n * 0x1.abc9e3b39803fp-56
  h = 0.5 * h
  r = e + h
  return r, select(fabs(e) > fabs(h), (e - r) + h, (h - r) + e) + (el + 0.5 * (l + wl / w))
}
# exp(w log z), the exponent in two parts; 0 to a power of positive real part is 0, z^0 is 1
frag c.pow(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
  zero = (a == 0) & (b == 0)
  ok = !zero & (fabs(a) < inf) & (fabs(b) < inf)
  h, l = log_abs_two(select(ok, a, 1), select(ok, b, 0))
  h = select(ok, h, log_abs(a, b))
  g = atan2(b, a)
  u = c * h
  v = d * g
  x = u - v
  xl = (select(fabs(u) > fabs(v), (u - x) - v, u - (v + x)) + (fma(c, h, -u) - fma(d, g, -v))) + c * l
  u = c * g
  v = d * h
  y = u + v
  yl = (select(fabs(u) > fabs(v), (u - y) + v, (v - y) + u) + (fma(c, g, -u) + fma(d, h, -v))) + d * l
  p, t = exp_far_parts(x)
  p = fma(p, select(ok & (fabs(xl) < 1), xl, 0), p)
  e = cos(y)
  f = sin(y)
  k = select(ok & (fabs(yl) < 1), yl, 0)
  r, i = exp_turned(x, y, p, t, fma(-k, f, e), fma(k, e, f))
  one = (c == 0) & (d == 0)
  none = zero & (c > 0)
  return select(one, 1, select(none, 0, r)), select(one, 0, select(none, 0, i))
}

# Powers whose exponents are written out. Between two factors a square keeps what a^2 - b^2 loses; equal parts are told
# apart from infinite ones, of which it is NaN.
frag c.power2<T: real>(a: T, b: T) -> (T, T) {
  return select(fabs(a) == fabs(b), a - a, (a - b) * (a + b)), 2 * (a * b)
}
# a power of two near the greater part, so that no product of two parts is infinite before the power itself is
frag power_unit(a: f64, b: f64) -> f64 {
  m = select(fabs(a) > fabs(b), fabs(a), fabs(b))
  return select((m > 0x1p200) & (m < inf), 0.5 * bits<f64>(bits<i64>(m) & 0x7ff0000000000000), 1)
}
frag c.power3(a: f64, b: f64) -> (f64, f64) {
  s = power_unit(a, b)
  x = a / s
  y = b / s
  r, i = c.power2(x, y)
  r, i = c.multiply(r, i, x, y)
  return r * s * s * s, i * s * s * s
}
frag c.power4(a: f64, b: f64) -> (f64, f64) {
  s = power_unit(a, b)
  r, i = c.power2(a / s, b / s)
  r, i = c.power2(r, i)
  return r * s * s * s * s, i * s * s * s * s
}

frag c.sign(a: f32, b: f32) -> (f32, f32) { r, i = c.sign(f64(a), f64(b)); return f32(r), f32(i) }
frag c.sqrt(a: f32, b: f32) -> (f32, f32) { r, i = c.sqrt(f64(a), f64(b)); return f32(r), f32(i) }
frag c.exp(a: f32, b: f32) -> (f32, f32) { r, i = c.exp(f64(a), f64(b)); return f32(r), f32(i) }
frag c.log(a: f32, b: f32) -> (f32, f32) { r, i = c.log(f64(a), f64(b)); return f32(r), f32(i) }
frag c.log2(a: f32, b: f32) -> (f32, f32) { r, i = c.log2(f64(a), f64(b)); return f32(r), f32(i) }
frag c.log10(a: f32, b: f32) -> (f32, f32) { r, i = c.log10(f64(a), f64(b)); return f32(r), f32(i) }
frag c.log1p(a: f32, b: f32) -> (f32, f32) { r, i = c.log1p(f64(a), f64(b)); return f32(r), f32(i) }
frag c.expm1(a: f32, b: f32) -> (f32, f32) { r, i = c.expm1(f64(a), f64(b)); return f32(r), f32(i) }
frag c.sinh(a: f32, b: f32) -> (f32, f32) { r, i = c.sinh(f64(a), f64(b)); return f32(r), f32(i) }
frag c.cosh(a: f32, b: f32) -> (f32, f32) { r, i = c.cosh(f64(a), f64(b)); return f32(r), f32(i) }
frag c.tanh(a: f32, b: f32) -> (f32, f32) { r, i = c.tanh(f64(a), f64(b)); return f32(r), f32(i) }
frag c.asin(a: f32, b: f32) -> (f32, f32) { r, i = c.asin(f64(a), f64(b)); return f32(r), f32(i) }
frag c.acos(a: f32, b: f32) -> (f32, f32) { r, i = c.acos(f64(a), f64(b)); return f32(r), f32(i) }
frag c.atanh(a: f32, b: f32) -> (f32, f32) { r, i = c.atanh(f64(a), f64(b)); return f32(r), f32(i) }
frag c.power3(a: f32, b: f32) -> (f32, f32) { r, i = c.power3(f64(a), f64(b)); return f32(r), f32(i) }
frag c.power4(a: f32, b: f32) -> (f32, f32) { r, i = c.power4(f64(a), f64(b)); return f32(r), f32(i) }
frag c.pow(a: f32, b: f32, c: f32, d: f32) -> (f32, f32) {
  r, i = c.pow(f64(a), f64(b), f64(c), f64(d))
  return f32(r), f32(i)
}
