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

# exp(z^2) erfc(z) for z in [0, 27.5]: t P(t), t = 1 / (1 + 0.35 z), P of degree 22, relative error 2^-55.4
frag erfcx_near(z: f64) -> f64 {
  t = 1 / fma(z, 0x1.6666666666666p-2, 1)
  p = fma(t, fma(t, fma(t, -0x1.741287ae3c166p-9, 0x1.0cab627e48146p-5), -0x1.6312f6a9eb533p-3), 0x1.1abf56edbf696p-1)
  p = fma(t, fma(t, fma(t, p, -0x1.2c6f55ac79725p+0), 0x1.bd66648430287p+0), -0x1.d476ebb71fe25p+0)
  p = fma(t, fma(t, fma(t, p, 0x1.5df6e80c3149dp+0), -0x1.6d90f0228ce57p-1), 0x1.d5120151c1eeap-3)
  p = fma(t, fma(t, fma(t, p, 0x1.04d632224fb79p-7), -0x1.b2ea4e9d94383p-5), 0x1.89f54f4754bb5p-6)
  p = fma(t, fma(t, fma(t, p, -0x1.b4cecdda79f5dp-6), -0x1.ade1099f4621dp-14), 0x1.fc7b463e51e35p-7)
  p = fma(t, fma(t, fma(t, p, 0x1.9059be2fcf782p-5), 0x1.66d7285fa83d8p-4), 0x1.04589fc573287p-3)
  p = fma(t, fma(t, fma(t, p, 0x1.4a19a8029fd6bp-3), 0x1.7ba414050e876p-3), 0x1.94693d63f7f7ap-3)
  return t * fma(t, p, 0x1.94693d6c575cap-3)
}
# exp(-(s + l)) as a mantissa and its exponent, |l| below half a unit of s
frag exp_minus(s: f64, l: f64) -> (f64, f64) {
  t = fma(s, -0x1.71547652b82fep+0, 0x1.8p52)
  n = t - 0x1.8p52
  r = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, -s))
  return exp_near(r - l), t
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
  p, t = exp_minus(s, fma(z, z, -s))
  return scale_any(p * erfcx_near(z), t)
}
frag erf(x: f64) -> f64 {
  return select(fabs(x) < 0.85, erf_near(x), copysign(1 - erfc_upper(x), x))
}
frag erfc(x: f64) -> f64 {
  e = erfc_upper(x)
  return select(fabs(x) < 0.5, 1 - erf_near(x), select(x < 0, 2 - e, e))
}
frag erfc(x: f32) -> f32 { return f32(erfc(f64(x))) }

# The normal distribution's tail Phi(-h) for h in [0, 14.5] as a mantissa and its exponent: exp(-h^2 / 2) t P(t),
# t = 1 / (1 + h / 4), P of degree 9, relative error 2^-26.7
frag normal_tail(h: f32) -> (f32, f32) {
  s = h * h
  l = fma(h, h, -s)
  t = fma(s, -0x1.715476p-1, 12582912)
  n = t - 12582912
  r = fma(n, 0x1.05c61p-29, fma(n, -0x1.62e43p-1, -0.5 * s))
  e = exp_near(fma(l, -0.5, r))
  u = 1 / fma(h, 0.25, 1)
  p = fma(u, fma(u, fma(u, 0x1.14bed2p-6, -0x1.0853400p-4), 0x1.c9b314p-5), 0x1.7298200p-6)
  p = fma(u, fma(u, fma(u, p, 0x1.2276820p-6), 0x1.5777f2p-4), 0x1.2b0e28p-4)
  p = fma(u, fma(u, fma(u, p, 0x1.864cdep-4), 0x1.97a3c6p-4), 0x1.988f9cp-4)
  return e * (u * p), t
}
frag normal_tail(h: f64) -> (f64, f64) {
  s = h * h
  p, t = exp_minus(0.5 * s, 0.5 * fma(h, h, -s))
  return 0.5 * p * erfcx_near(h * 0x1.6a09e667f3bcdp-1), t
}
# x Phi(x)
frag gelu(x: f32) -> f32 {
  h = fabs(x)
  p, t = normal_tail(select(h > 15, 15, h))
  q = scale_any(select(x < 0, x, 1) * p, t)
  return select(x < 0, select(x == -inf, -0.0, q), fma(-x, q, x))
}
frag gelu(x: f64) -> f64 {
  h = fabs(x)
  p, t = normal_tail(select(h > 39, 39, h))
  q = scale_any(select(x < 0, x, 1) * p, t)
  return select(x < 0, select(x == -inf, -0.0, q), fma(-x, q, x))
}

frag sigmoid<T: real>(x: T) -> T {
  e = exp(-fabs(x))
  return select(x < 0, e, 1) / (1 + e)
}
