# The error function, the normal distribution and the activations made of them.

# 2^f on |f| <= 0.501, degree 6, relative error 2^-27.5
frag exp2_near(f: f32) -> f32 {
  p = fma(f, fma(f, fma(f, 0x1.4bce94p-13, 0x1.5fbdp-10), 0x1.3b21dp-7), 0x1.c6ada8p-5)
  return fma(f, fma(f, fma(f, p, 0x1.ebfbe6p-3), 0x1.62e432p-1), 1)
}

# |x| < 0.9: x + x P(x^2), P of degree 5, relative error 2^-25.9; else 1 - 2^-g, g = -log2(erfc) of degree 6
# on [0.9, 4], absolute error 2^-29 of the result, which is 1 from 3.92 on
frag erf(x: f32) -> f32 {
  s = x * x
  p = fma(s, fma(s, fma(s, -0x1.3ac5c2p-11, 0x1.476886p-8), -0x1.b69390p-6), 0x1.ce1b0ep-4)
  small = fma(x, fma(s, fma(s, p, -0x1.8126eap-2), 0x1.06eba6p-3), x)
  a = fabs(x)
  c = select(a > 4, 4, a)
  g = fma(c, fma(c, fma(c, -0x1.2bde6cp-12, 0x1.21d6b6p-8), -0x1.07bbc8p-5), 0x1.339e4p-3)
  g = fma(c, fma(c, fma(c, g, 0x1.d6823cp-1), 0x1.a0877ep+0), 0x1.f797a0p-13)
  t = 12582912 - g
  e = scale(exp2_near((12582912 - t) - g), t)
  return select(a >= 0.9, copysign(1 - e, x), small)
}

# exp(z^2) erfc(z) for z in [0, 27.5]: t P(t - 0.59375), t = 1 / (1 + 0.35 z), P of degree 22, relative error 2^-54.3.
# R' = 2 z R - 2 / sqrt(pi) makes good that t is rounded.
frag erfcx_near(z: f64) -> (f64, f64) {
  w = fma(z, 0x1.6666666666666p-2, 1)
  t = 1 / w
  d = fma(fma(z, 0x1.6666666666666p-2, 1 - w), t, fma(w, t, -1)) * w * 0x1.6db6db6db6db7p+1
  y = t - 0.59375
  p = fma(y, fma(y, -0x1.3c147d3d9b997p-9, -0x1.e50e731a4581fp-9), 0x1.193d189914e1ap-8)
  p = fma(y, fma(y, fma(y, fma(y, p, 0x1.854cab20526c7p-8), -0x1.d570eff250bfdp-8), -0x1.084eea241fafap-8), 0x1.72b40c0be5157p-7)
  p = fma(y, fma(y, fma(y, fma(y, p, -0x1.a205382eb9aa8p-10), -0x1.f8ea41e07a6c2p-7), 0x1.60ca52b55b819p-7), 0x1.3fba80c9c0cd1p-6)
  p = fma(y, fma(y, fma(y, fma(y, p, -0x1.99915bc7c1cebp-6), -0x1.c19ca577c99ccp-6), 0x1.913f9082b4ceep-5), 0x1.c344324387a72p-5)
  p = fma(y, fma(y, fma(y, fma(y, p, -0x1.6765ae994099ep-4), -0x1.587c646d598b0p-3), 0x1.1fbab0e88a428p-4), 0x1.1f9d3bd7cc27ep-1)
  p = fma(y, fma(y, fma(y, fma(y, p, 0x1.ecec089522f18p-1), 0x1.04d0614e8180fp+0), 0x1.8b5a43ddaff20p-1), 0x1.c0ebf6f8db0dbp-2)
  r = t * p
  return r, fma(d, fma(2 * z, r, -0x1.20dd750429b6dp+0), fma(t, p, -r))
}
# exp(-(s + l)) as a mantissa in two parts and its exponent, |l| below half a unit of s
frag exp_minus(s: f64, l: f64) -> (f64, f64, f64) {
  t = fma(s, -0x1.71547652b82fep+0, 0x1.8p52)
  n = t - 0x1.8p52
  h = fma(n, -0x1.62e42fefa39efp-1, -s)
  c = fma(n, -0x1.abc9e3b39803fp-56, -l)
  r = h + c
  z = expm1_near(r)
  e = 1 + z
  return e, fma((h - r) + c, e, (1 - e) + z), t
}
frag exp_minus(s: f32, l: f32) -> (f32, f32, f32) {
  t = fma(s, -0x1.715476p+0, 12582912)
  n = t - 12582912
  h = fma(n, -0x1.62e43p-1, -s)
  c = fma(n, 0x1.05c61p-29, -l)
  r = h + c
  z = expm1_near(r)
  e = 1 + z
  return e, fma((h - r) + c, e, (1 - e) + z), t
}
# (a + b) (c + d) rounded nearly once
frag product<T: real>(a: T, b: T, c: T, d: T) -> T {
  y = a * c
  return y + (fma(a, c, -y) + fma(a, d, b * c))
}
# x + x P(x^2) on |x| < 0.85, P of degree 10, relative error 2^-56
frag erf_near(x: f64) -> f64 {
  s = x * x
  p = fma(s, fma(s, fma(s, 0x1.6d0bc16ad63e4p-27, -0x1.50b1e9e0da901p-23), 0x1.b82277cb91d39p-20), -0x1.f4b04807030a1p-17)
  p = fma(s, fma(s, fma(s, p, 0x1.f9a17d908267bp-14), -0x1.c02da69cea31bp-11), 0x1.565bcccaeb608p-8)
  p = fma(s, fma(s, fma(s, p, -0x1.b82ce310fa685p-6), 0x1.ce2f21a03e050p-4), -0x1.812746b03798dp-2)
  return fma(x, fma(s, p, 0x1.06eba8214db68p-3), x)
}
# erfc(|x|), 0 from 27.3 on
frag erfc_upper(x: f64) -> f64 {
  a = fabs(x)
  z = select(a > 27.5, 27.5, a)
  s = z * z
  e, f, t = exp_minus(s, fma(z, z, -s))
  r, q = erfcx_near(z)
  return scale_any(product(e, f, r, q), t)
}
frag erf(x: f64) -> f64 {
  return select(fabs(x) < 0.85, erf_near(x), copysign(1 - erfc_upper(x), x))
}
frag erfc(x: f64) -> f64 {
  e = erfc_upper(x)
  return select(fabs(x) < 0.5, 1 - erf_near(x), select(x < 0, 2 - e, e))
}
frag erfc(x: f32) -> f32 { return f32(erfc(f64(x))) }

# x Phi(x), where the tail Phi(-h) of the normal distribution is exp(-h^2 / 2) R(h), R = t P(t), t = 1 / (1 + h / 4), P of
# degree 9 on h <= 14.5, relative error 2^-26.7. The rounding of t is made good by R' = h R - 1 / sqrt(2 pi).
frag gelu_near(x: f32) -> f32 {
  a = fabs(x)
  h = select(a > 12.5, 12.5, a)
  s = h * h
  e, f, t = exp_minus(0.5 * s, 0.5 * fma(h, h, -s))
  w = fma(h, 0.25, 1)
  u = 1 / w
  p = fma(u, fma(u, fma(u, 0x1.14bed2p-6, -0x1.0853400p-4), 0x1.c9b314p-5), 0x1.7298200p-6)
  p = fma(u, fma(u, fma(u, p, 0x1.2276820p-6), 0x1.5777f2p-4), 0x1.2b0e28p-4)
  g = fma(u, fma(u, p, 0x1.864cdep-4), 0x1.97a3c6p-4)
  p = fma(u, g, 0x1.988f9cp-4)
  d = fma(fma(h, 0.25, 1 - w), u, fma(w, u, -1)) * w
  c = u * p
  l = fma(4 * d, fma(h, c, -0x1.988454p-2), fma(u, fma(u, g, 0x1.988f9cp-4 - p), fma(u, p, -c)))
  return fma(-h, scale(product(e, f, c, l), t), select(x < 0, -0.0, x))
}
frag gelu<f32>(x: f32) -> f32 {
  fast {
    rare !(x >= -12)
    return gelu_near(x)
  }
  full { return select(x >= -12, gelu_near(x), f32(gelu(f64(x)))) }
}
frag gelu<f64>(x: f64) -> f64 {
  a = fabs(x)
  h = select(a > 39, 39, a)
  s = h * h
  e, f, t = exp_minus(0.5 * s, 0.5 * fma(h, h, -s))
  r, l = erfcx_near(h * 0x1.6a09e667f3bcdp-1)
  q = 0.5 * product(e, f, r, l)
  y = select(x < 0, scale_any(-h * q, t), fma(-h, scale_any(q, t), x))
  return select(x == x, y, x)
}

frag sigmoid<T: real>(x: T) -> T {
  e = exp(-fabs(x))
  n = select(x < 0, e, 1)
  return fma(-n, e / (1 + e), n)
}
