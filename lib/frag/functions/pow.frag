# Powers of real numbers, and the logarithm of the gamma function.

# log |x| in two parts, for 0 < |x| < inf, with some 64 bits: log((1 + s) / (1 - s)) = 2 s + s^3 (2/3 + s^2 T(s^2)), T
# of degree 7 on s^2 <= 0.0295, relative error of the whole 2^-66
frag log_two(x: f64) -> (f64, f64) {
  tiny = x < 0x1p-1022
  f, n = log_parts(select(tiny, x * 0x1p54, x))
  k = select(tiny, n - 54, n)
  d = 2 + f
  r = 1 / d
  s = f * r
  sl = (fma(-s, d, f) - s * ((2 - d) + f)) * r
  z = s * s
  zl = fma(s, s, -z) + 2 * s * sl
  p = fma(z, fma(z, fma(z, 0x1.eb1396200999ap-4, 0x1.de3324d17af80p-4), 0x1.1120b7826cdfep-3), 0x1.3b1362a97982cp-3)
  p = fma(z, fma(z, p, 0x1.745d1832821e4p-3), 0x1.c71c71c580056p-3)
  p = z * fma(z, fma(z, p, 0x1.2492492493038p-2), 0x1.9999999999996p-2)
  c = 0x1.5555555555555p-1 + p
  cl = (0x1.5555555555555p-1 - c) + p + 0x1.5555555555555p-55
  w = s * z
  wl = fma(s, z, -w) + (s * zl + sl * z)
  u = w * c
  ul = fma(w, c, -u) + (w * cl + wl * c)
  h = 2 * s + u
  hl = ((2 * s - h) + u) + (2 * sl + ul)
  e = k * 0x1.62e42fefa39efp-1
  el = fma(k, 0x1.62e42fefa39efp-1, -e) + k * 0x1.abc9e3b39803fp-56
  y = e + h
  return y, ((e - y) + h) + (el + hl)
}
# x^y as (e + f) 2^n, n in t, for 0 < x < inf; |n| <= 1155
frag power_parts(x: f64, y: f64) -> (f64, f64) {
  h, l = log_two(x)
  p = y * h
  q = fma(y, h, -p) + y * l
  far = !(fabs(p) < 800)
  e, f, t = exp_minus(select(far, select(p > 0, -800, select(p < 0, f64(800), p)), -p), select(far, 0, -q))
  return e + f, t
}
# log2 x in two parts, for x = (1 + f) 2^(k 2^-23): s (2 log2(e) + (2/3) log2(e) s^2 + s^4 T(s^2)), s = f / (2 + f),
# T of degree 2 on s^2 <= 0.0295, relative error of the whole 2^-36.8; both constants, s and s^2 in two parts
frag log2_two(f: f32, k: f32) -> (f32, f32) {
  d = 2 + f
  r = 1 / d
  s = f * r
  sl = fma(-s, f - (d - 2), fma(-s, d, f)) * r
  z = s * s
  zl = fma(s + s, sl, fma(s, s, -z))
  p = fma(z, fma(z, fma(z, fma(z, 0x1.59f5a2p-2, 0x1.a5bb98p-2), 0x1.27770ep-1), -0x1.e2fe02p-28), 0x1.4ae0cp-25)
  w = z * 0x1.ec709ep-1
  wl = fma(z, 0x1.ec709ep-1, -w) + fma(zl, 0x1.ec709ep-1, p)
  g = 0x1.715476p+1 + w
  gl = ((0x1.715476p+1 - g) + w) + wl
  h = s * g
  hl = fma(sl, g, fma(s, gl, fma(s, g, -h)))
  e = k * 0x1p-23
  y = e + h
  return y, ((e - y) + h) + hl
}
# y log2 x in two parts
frag log2_times(f: f32, k: f32, y: f32) -> (f32, f32) {
  h, l = log2_two(f, k)
  p = y * h
  return p, fma(y, l, fma(y, h, -p))
}
# 2^(p + q) for |p| <= 250 and a small q, but for the factor 2^n in t
frag exp2_parts(p: f32, q: f32) -> (f32, f32) {
  t = p + 12582912
  return exp2_near((p - (t - 12582912)) + q), t
}
# z = |x|^y with its sign; a negative x has a power only for whole y
frag pow_signed<T: real>(x: T, y: T, z: T, below: bool) -> T {
  whole = rint(y) == y
  odd = whole & (rint(0.5 * y) != 0.5 * y)
  return select(odd, copysign(z, x), select(below & !whole, nan, z))
}
# 0^y, which is common: pictures and activations are full of zeros
frag pow_of_zero<T: real>(y: T) -> T { return select(y < 0, inf, select(y > 0, T(0), 1)) }
# The cases of C's pow: x^0 and 1^y are 1 even with NaN
frag pow_edges<T: real>(x: T, y: T, z: T) -> T {
  a = fabs(x)
  z = select((a == 0) | (a == inf), select((a == 0) == (y < 0), inf, z - z), z)
  z = select(fabs(y) == inf, select(a == 1, 1, select((a > 1) == (y > 0), inf, z - z)), z)
  z = select((x != x) | (y != y), x + y, pow_signed(x, y, z, (x < 0) & (a < inf)))
  return select((x == 1) | (y == 0), 1, z)
}
frag pow<f32>(x: f32, y: f32) -> f32 {
  fast {
    a = fabs(x)
    f, k = log_parts(a)
    p, q = log2_times(f, k, y)
    none = p <= -151
    rare ((a != 0) & ((fabs(k) >= 0x1.f8p+29) | !((fabs(p) < 126) | none))) | !(fabs(y) < inf)
    e, t = exp2_parts(p, q)
    return pow_signed(x, y, select(a == 0, pow_of_zero(y), scale_or_zero(e, t, none)), x < 0)
  }
  full {
    a = fabs(x)
    ok = (a > 0) & (a < inf) & (fabs(y) < inf)
    tiny = ok & (a < 0x1p-126)
    f, k = log_parts(select(ok, select(tiny, a * 8388608, a), 1))
    p, q = log2_times(f, select(tiny, k - 192937984, k), select(ok, y, 1))
    far = fabs(p) >= 200
    e, t = exp2_parts(select(far, select(p > 0, f32(200), -200), p), select(far, 0, q))
    return pow_edges(x, y, scale_any(e, t))
  }
}
frag pow<f64>(x: f64, y: f64) -> f64 {
  fast {
    a = fabs(x)
    zero = a == 0
    e, t = power_parts(select(zero, 1, a), y)
    rare !(((a >= 0x1p-1022) | zero) & (a < inf) & (fabs(t - 0x1.8p52) < 1020))
    return pow_signed(x, y, select(zero, pow_of_zero(y), scale(e, t)), x < 0)
  }
  full {
    a = fabs(x)
    ok = (a > 0) & (a < inf) & (fabs(y) < inf)
    e, t = power_parts(select(ok, a, 1), select(ok, y, 1))
    return pow_edges(x, y, scale_any(e, t))
  }
}

# ---- log |gamma(x)|
# lgamma(2 + t) = t A(t) on [-0.71, 0.5], A of degree 21, relative error 2^-54. What is not in [1.3, 2.5] gets there by
# gamma(x + 1) = x gamma(x); from 8.5 on Stirling's series, whose coefficients are Bernoulli's numbers.
frag lgamma_near(t: f64) -> f64 {
  p = fma(t, fma(t, 0x1.1f4ed73bfe4bdp-24, 0x1.23e99d20f51e7p-25), 0x1.31b23b7b9bc79p-27)
  p = fma(t, fma(t, p, -0x1.7175ef9aa239ap-23), 0x1.c8a3923f9abfdp-23)
  p = fma(t, fma(t, p, -0x1.bb6962c5d5154p-22), 0x1.026926c2bec14p-20)
  p = fma(t, fma(t, p, -0x1.130749fb00393p-19), 0x1.2560b0b824411p-18)
  p = fma(t, fma(t, p, -0x1.3caee83a0f302p-17), 0x1.581094d9684a0p-16)
  p = fma(t, fma(t, p, -0x1.78deb046cd6e1p-15), 0x1.a1279ccdeb1a3p-14)
  p = fma(t, fma(t, p, -0x1.d3fd4b46902fdp-13), 0x1.0b36afafe6415p-11)
  p = fma(t, fma(t, p, -0x1.38ac5c2d2180ep-10), 0x1.7add6ead5a8e4p-9)
  p = fma(t, fma(t, p, -0x1.e404fc218e52dp-8), 0x1.51322ac7d8766p-6)
  return t * fma(t, fma(t, fma(t, p, -0x1.13e001a557608p-4), 0x1.4a34cc4a60fa6p-2), 0x1.b0ee6072093cep-2)
}
frag stirling_rest(x: f64) -> f64 {
  r = 1 / x
  s = r * r
  p = fma(s, fma(s, 0x1.a41a41a41a41ap-8, -0x1.f6ab0d9993c7dp-10), 0x1.b951e2b18ff23p-11)
  p = fma(s, p, -0x1.3813813813814p-11)
  return r * fma(s, fma(s, fma(s, p, 0x1.a01a01a01a01ap-11), -0x1.6c16c16c16c17p-9), 0x1.5555555555555p-4)
}
frag stirling(x: f64) -> f64 {
  p = stirling_rest(x)
  h, l = log_two(x)
  m = x - 0.5
  a = m * h
  b = a - x
  e = fma(m, h, -a) + m * l + ((a - b) - x)
  return b + (e + (p + 0x1.d67f1c864beb5p-1))
}
frag lgamma_upper(x: f64) -> f64 {
  big = x >= 8.5
  low = select(big, 3, x)
  for k in 6 carry (p = x - x + 1, y = low) {
    m = y > 2.5
    y = select(m, y - 1, y)
    p = select(m, p * y, p)
  }
  one = low < 1.3
  two = low < 0.3
  p = select(one, select(two, low * (low + 1), low), p)
  t = select(two, low, select(one, low - 1, y - 2))
  l = log(p)
  z = lgamma_near(t) + select(one, -l, l)
  return select(big, stirling(select(big, x, 9)), z)
}
frag lgamma(x: f64) -> f64 {
  a = fabs(x)
  r = a - 2 * rint(0.5 * a)
  f = fabs(r)
  s = sin_half(select(f > 0.5, 1 - f, f) * 0x1.921fb54442d18p+1)
  left = x < 0
  u = lgamma_upper(select(left, a + 1, select(a < 0x1p1000, a, 9)))
  small = log(a)
  y = select(left, log(0x1.921fb54442d18p+1 / s) - u, u)
  y = select(a < 0x1p-60, -small, select(a > 0x1p1000, a * (select(a < inf, small, a) - 1), y))
  return select((a == 0) | (a == inf) | (left & (rint(a) == a)), inf, select(x == x, y, x))
}
frag lgamma(x: f32) -> f32 { return f32(lgamma(f64(x))) }
