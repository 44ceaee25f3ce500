# Inverse trigonometric and hyperbolic functions.

# ---- arc tangent: x + x^3 P(x^2), in f32 on |x| <= 1, P of degree 8, relative error 2^-28.3; in f64 on
# |x| <= tan(pi/8), P of degree 10, 2^-58.9
frag atan_poly(s: f32) -> f32 {
  p = fma(s, fma(s, fma(s, -0x1.d461dep-10, 0x1.6489e4p-7), -0x1.fdb6dep-6), 0x1.da37e8p-5)
  p = fma(s, fma(s, fma(s, p, -0x1.580a5ep-4), 0x1.c08c52p-4), -0x1.242086p-3)
  return fma(s, fma(s, p, 0x1.9991e4p-3), -0x1.55553ep-2)
}
frag atan_poly(s: f64) -> f64 {
  p = fma(s, fma(s, fma(s, -0x1.24b166bf1d188p-6, 0x1.3784a3ca005a1p-5), -0x1.9cb3ec991f089p-5), 0x1.df089fd11f963p-5)
  p = fma(s, fma(s, p, -0x1.10eb44c33e81bp-4), 0x1.3b110f05f39e6p-4)
  p = fma(s, fma(s, p, -0x1.745cf84b8f01dp-4), 0x1.c71c70e104eaap-4)
  return fma(s, fma(s, fma(s, p, -0x1.24924922a0606p-3), 0x1.999999999564dp-3), -0x1.555555555553cp-2)
}
# the angle of the point (x, y) in the first quadrant, both finite or one infinite, not both 0
frag first_quadrant(y: f32, x: f32) -> f32 {
  swap = y > x
  b = select(swap, y, x)
  a = select(swap, x, y)
  q = a / b
  l = fma(-q, b, a) / b
  l = select(fabs(l) < 1, l, 0)
  s = q * q
  t = fma(s * q, atan_poly(s), l)
  u = q + t
  h = (0x1.921fb6p+0 - q) + (((0x1.921fb6p+0 - (0x1.921fb6p+0 - q)) - q) - t - 0x1.777a5cp-25)
  return select(swap, h, u)
}
# In f64 the quotient is reduced by tan(pi/4): atan q = pi/4 + atan((q - 1) / (q + 1)) above tan(pi/8)
frag first_quadrant(y: f64, x: f64) -> f64 {
  swap = y > x
  b = select(swap, y, x)
  a = select(swap, x, y)
  q = a / b
  big = q > 0x1.a827999fcef32p-2
  m = (a - b) / (a + b)
  r = select(big, m, q)
  c = select(big, a - b, a)
  d = select(big, a + b, b)
  dl = select(big, select(d < inf, b - (d - a), 0), 0)
  cl = select(big, select(d < inf, a - (c + b), 0), 0)
  l = (fma(-r, d, c) + (cl - r * dl)) / d
  l = select(fabs(l) < 1, l, 0)
  s = r * r
  t = fma(s * r, atan_poly(s), l)
  base = select(big, 0x1.921fb54442d18p-1, f64(0))
  basel = select(big, 0x1.1a62633145c07p-55, f64(0))
  u = base + r
  v = select(big, (base - u) + r, 0) + (t + basel)
  w = u + v
  e = (u - w) + v
  h = 0x1.921fb54442d18p+0 - w
  return select(swap, h + (((0x1.921fb54442d18p+0 - h) - w) + (0x1.1a62633145c07p-54 - e)), w)
}
frag atan<T: real>(x: T) -> T {
  a = fabs(x)
  return copysign(select(a < inf, first_quadrant(a, 1), select(x == x, 0x1.921fb54442d18p+0, x)), x)
}
# Both infinite count as both 1; both 0 as (0, 1).
frag atan2_upper<T: real>(y: T, x: T, pi: T, pil: T) -> T {
  ax = fabs(x)
  ay = fabs(y)
  both = (ax == inf) & (ay == inf)
  none = (ax == 0) & (ay == 0)
  v = select(both, 1, ay)
  u = select(both | none, 1, ax)
  z = first_quadrant(v, u)
  h = pi - z
  return select(x != x, x, select(y != y, y, select(signed_below(x), h + (((pi - h) - z) + pil), z)))
}
frag signed_below(x: f32) -> bool { return bits<i32>(x) < 0 }
frag signed_below(x: f64) -> bool { return bits<i64>(x) < 0 }
# f32 in f64: one quotient, atan q = q + q^3 P(q^2) on [0, 1], P of degree 10, relative error 2^-34
frag atan2(y: f32, x: f32) -> f32 {
  v = fabs(y)
  u = fabs(x)
  swap = v > u
  same = v == u
  q = f64(select(same, select(v == 0, v, 1), select(swap, u, v))) / f64(select(same, 1, select(swap, v, u)))
  s = q * q
  p = fma(s, fma(s, fma(s, -0x1.6dec3d6176292p-11, 0x1.42d9295331a76p-8), -0x1.0b0c0335e69eep-6), 0x1.1a6c93f92f5b4p-5)
  p = fma(s, fma(s, fma(s, p, -0x1.be97c837d235dp-5), 0x1.295898006cdd9p-4), -0x1.700b1cb9025c2p-4)
  p = fma(s, fma(s, fma(s, p, 0x1.c66e4b0b06977p-4), -0x1.248a2c92b6b9dp-3), 0x1.999937f075ee0p-3)
  p = fma(s, p, -0x1.555554873915dp-2)
  z = fma(q * s, p, q)
  z = select(swap, 0x1.921fb54442d18p+0 - z, z)
  return copysign(f32(select(signed_below(x), 0x1.921fb54442d18p+1 - z, z)), y)
}
frag atan2(y: f64, x: f64) -> f64 { return copysign(atan2_upper(y, x, 0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53), y) }

# ---- arc sine and cosine
# asin on |x| <= 1/2: x + x^3 P(x^2), P of degree 4 (11), relative error 2^-27.6 (2^-55.6).
# Above, with z = (1 - |x|) / 2: acos |x| = 2 asin sqrt(z), asin |x| = pi/2 - that; the root in two parts.
frag asin_poly(s: f32) -> f32 {
  return fma(s, fma(s, fma(s, fma(s, 0x1.597e84p-5, 0x1.8c23f4p-6), 0x1.747cf4p-5), 0x1.330204p-4), 0x1.5555c8p-3)
}
frag asin_poly(s: f64) -> f64 {
  p = fma(s, fma(s, fma(s, 0x1.05803bd37397ep-5, -0x1.0a026533c737bp-6), 0x1.400d8fcebcddfp-6), 0x1.abb2817afad4ap-8)
  p = fma(s, fma(s, p, 0x1.8ec588ac3b4f3p-7), 0x1.c6fd772fa6d4ap-7)
  p = fma(s, fma(s, p, 0x1.1c6be48b4b765p-6), 0x1.6e89f418371e2p-6)
  p = fma(s, fma(s, p, 0x1.f1c72c3a5b037p-6), 0x1.6db6db42770b5p-5)
  return fma(s, fma(s, p, 0x1.333333336e840p-4), 0x1.5555555555390p-3)
}
frag asin_of<T: real>(x: T, pio2: T, pio2l: T) -> T {
  a = fabs(x)
  z = fma(a, -0.5, 0.5)
  r = sqrt(z)
  rl = select(r > 0, fma(-r, r, z) / (2 * r), 0)
  small = fma(a * a * a, asin_poly(a * a), a)
  w = fma(r * z, asin_poly(z), rl)
  h = pio2 - 2 * r
  big = h + (((pio2 - h) - 2 * r) + (pio2l - 2 * w))
  return copysign(select(a < 0.5, small, big), x)
}
frag acos_of<T: real>(x: T, pio2: T, pio2l: T) -> T {
  a = fabs(x)
  z = fma(a, -0.5, 0.5)
  r = sqrt(z)
  rl = select(r > 0, fma(-r, r, z) / (2 * r), 0)
  t = x * x * x * asin_poly(x * x)
  h = pio2 - x
  small = h + (((pio2 - h) - x) + (pio2l - t))
  w = fma(r * z, asin_poly(z), rl)
  up = 2 * (r + w)
  g = 2 * pio2 - 2 * r
  down = g + (((2 * pio2 - g) - 2 * r) + (2 * pio2l - 2 * w))
  return select(a < 0.5, small, select(x < 0, down, up))
}
frag asin(x: f32) -> f32 { return asin_of(x, 0x1.921fb6p+0, -0x1.777a5cp-25) }
frag asin(x: f64) -> f64 { return asin_of(x, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54) }
frag acos(x: f32) -> f32 { return acos_of(x, 0x1.921fb6p+0, -0x1.777a5cp-25) }
frag acos(x: f64) -> f64 { return acos_of(x, 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54) }

# ---- inverse hyperbolic functions: log(1 + a + b) = log1p(a) + b / (1 + a)
frag log1p_pair<T: real>(a: T, b: T) -> T { return log1p_near(a) + b / (1 + a) }
# a + b = x + x^2 / (1 + r), r = sqrt(1 + x^2), for 0 <= x <= 2^28. 1 + a is x + r, and its reciprocal r - x as long as
# b / (1 + a) matters.
frag asinh_near<T: real>(x: T) -> T {
  s = x * x
  sl = fma(x, x, -s)
  w = 1 + s
  wl = select(s > 1, (s - w) + 1, (1 - w) + s) + sl
  r = sqrt(w)
  d = 1 + r
  e = 1 / d
  q = s * e
  a = x + q
  rl = (fma(-r, r, w) + wl) / (2 * r)
  ql = (fma(-q, d, s) + (sl - q * (((r - d) + 1) + rl))) * e
  return fma(((x - a) + q) + ql, select(x < 256, r - x, 0), log1p_near(a))
}
frag asinh<T: real>(x: T) -> T {
  fast {
    h = fabs(x)
    rare !(h <= 268435456)
    return copysign(asinh_near(h), x)
  }
  full {
    h = fabs(x)
    big = h > 268435456
    y = asinh_near(select(big, 1, h))
    return copysign(select(big, log(select(big, h, 1)) + 0x1.62e42fefa39efp-1, y), x)
  }
}
# a + b = t + sqrt(t (t + 2)), t = x - 1
frag acosh<T: real>(x: T) -> T {
  big = x > 268435456
  t = select(big, 1, x) - 1
  u = fma(t, t, 2 * t)
  ul = fma(t, t, 2 * t - u)
  r = sqrt(u)
  a = t + r
  y = log1p_pair(a, ((r - a) + t) + select(u > 0, (fma(-r, r, u) + ul) / (2 * r), 0))
  return select(x < 1, (x - x) * inf, select(big, log(select(big, x, 1)) + 0x1.62e42fefa39efp-1, select(x == 1, 0, y)))
}
# (1/2) log(1 + a + b), a + b = 2 |x| / (1 - |x|)
frag atanh<T: real>(x: T) -> T {
  h = fabs(x)
  ok = h < 1
  c = select(ok, h, 0)
  d = 1 - c
  q = 2 * c / d
  y = log1p_pair(q, (fma(-q, d, 2 * c) - q * ((1 - d) - c)) / d) * 0.5
  return select(ok, copysign(y, x), select(h == 1, x * inf, (x - x) * inf))
}
