# The error function, the normal distribution and the activations made of them.

# u + u g, u = 1.76 v = x + x P(x^2), for erf(x) = F(v) = v (15 - 10 v^2 + 3 v^4) / 8, which is flat at 1: what u is off
# by is lost as erf nears 1. P of degree 7 on [0, 3.92], from where on the result is 1, relative error 2^-27.5 of the
# result. g, of u^2 - 1, is not 0 at 0, so that -0 stays -0.
frag erf(x: f32) -> f32 {
  b = select(x > 0x1.f5c29p+1, 0x1.f5c29p+1, x)
  c = select(b < -0x1.f5c29p+1, -0x1.f5c29p+1, b)
  s = c * c
  p = fma(s, fma(s, fma(s, -0x1.8392cap-33, 0x1.f09054p-27), -0x1.52c772p-21), 0x1.44f81cp-16)
  p = fma(s, fma(s, fma(s, p, -0x1.d2b37ap-12), 0x1.f5b4d4p-8), -0x1.8fb73p-4)
  u = fma(c, fma(s, p, 0x1.fbef98p-5), c)
  t = fma(u, u, -1)
  g = fma(t, fma(t, 0x1.66fef6p-6, -0x1.781382p-3), -0x1.24f36p-3)
  return fma(u, g, u)
}

# exp(z^2) erfc(z) at z + zl, z in [0, 27.5], in two parts: t P(t - 0.25), t = 1 / (1 + 0.35 z), P of degree 22,
# relative error 2^-54.7. R' = 2 z R - 2 / sqrt(pi) makes good that t is rounded.
frag erfcx_near(z: f64, zl: f64) -> (f64, f64) {
  w = fma(z, 0x1.6666666666666p-2, 1)
  t = 1 / w
  d = fma(fma(z, 0x1.6666666666666p-2, 1 - w), t, fma(w, t, -1)) * w * 0x1.6db6db6db6db7p+1 + zl
  y = t - 0.25
  p = fma(y, fma(y, -0x1.c90a1da9b1fd3p-9, 0x1.5ead37f620950p-6), -0x1.befc78df63f5bp-5)
  p = fma(y, fma(y, p, 0x1.1afacbe0527dap-4), -0x1.124c7ba8fcb81p-5)
  p = fma(y, fma(y, p, -0x1.da4d4e8f33344p-7), 0x1.87d2da6103e5ep-7)
  p = fma(y, fma(y, p, 0x1.1f1a208490cfap-6), -0x1.66c07d176a69bp-8)
  p = fma(y, fma(y, p, -0x1.57331a0a14c6ap-6), -0x1.1742fcf134317p-8)
  p = fma(y, fma(y, p, 0x1.81bad3d6970bdp-6), 0x1.6c837a5676b03p-6)
  p = fma(y, fma(y, p, -0x1.f34934cbb042ep-7), -0x1.a0c2021b5c722p-5)
  p = fma(y, fma(y, p, -0x1.291c2b9fb5595p-5), 0x1.77a470d0ef5e3p-5)
  p = fma(y, fma(y, p, 0x1.5c0f3a832d284p-3), 0x1.2700c9cda71d4p-2)
  g = fma(y, fma(y, fma(y, p, 0x1.709d4c34d436ep-2), 0x1.7ba541c7edeccp-2), 0x1.524488261d327p-2)
  p = fma(y, g, 0x1.0bcf0e3fabfa6p-2)
  r = t * p
  return r, fma(d, fma(2 * z, r, -0x1.20dd750429b6dp+0), fma(t, fma(y, g, 0x1.0bcf0e3fabfa6p-2 - p), fma(t, p, -r)))
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
  p = fma(s, fma(s, 0x1.6d0bc16ad63e4p-27, -0x1.50b1e9e0da901p-23), 0x1.b82277cb91d39p-20)
  p = fma(s, p, -0x1.f4b04807030a1p-17)
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
  r, q = erfcx_near(z, 0)
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

# x Phi(x), where the tail Phi(-h) of the normal distribution is exp(-h^2 / 2) R(h), R = u P(u - 0.5),
# u = 1 / (1 + h / 4), P of degree 9 on h <= 12.6, relative error 2^-25.7. R' = h R - 1 / sqrt(2 pi) makes good that u
# is rounded.
frag gelu_near(x: f32) -> f32 {
  a = fabs(x)
  h = select(a > 12.5, 12.5, a)
  s = h * h
  e, f, t = exp_minus(0.5 * s, 0.5 * fma(h, h, -s))
  w = fma(h, 0.25, 1)
  u = 1 / w
  y = u - 0.5
  p = fma(y, fma(y, fma(y, 0x1.fcb99ap-7, 0x1.aa51d2p-7), -0x1.9e4c58p-5), -0x1.cda1acp-5)
  p = fma(y, fma(y, fma(y, p, 0x1.ed9e14p-5), 0x1.eed5eap-3), 0x1.7dff7ap-2)
  g = fma(y, fma(y, p, 0x1.8c6d9cp-2), 0x1.373e3ap-2)
  p = fma(y, g, 0x1.82b4bcp-3)
  d = fma(fma(h, 0.25, 1 - w), u, fma(w, u, -1)) * w
  c = u * p
  l = fma(4 * d, fma(h, c, -0x1.988454p-2), fma(u, fma(y, g, 0x1.82b4bcp-3 - p), fma(u, p, -c)))
  k = power(t)
  m = e * c
  n = (fma(e, c, -m) + fma(e, l, f * c)) * k
  m = m * k
  r = fma(-h, m, select(x < 0, -0.0, x))
  return copysign(r + (select(x < 0, fma(-h, m, -r), 0) - h * n), x)
}
frag gelu<f32>(x: f32) -> f32 {
  fast {
    gone = x < -14.4
    rare !(x >= -12) & !gone
    return gelu_near(select(gone, -0.0, x))
  }
  full { return select(x >= -12, gelu_near(x), f32(gelu(f64(x)))) }
}
frag gelu<f64>(x: f64) -> f64 {
  a = fabs(x)
  h = select(a > 39, 39, a)
  s = h * h
  e, f, t = exp_minus(0.5 * s, 0.5 * fma(h, h, -s))
  z = h * 0x1.6a09e667f3bcdp-1
  r, l = erfcx_near(z, fma(h, 0x1.6a09e667f3bcdp-1, -z) + h * -0x1.bdd3413b26456p-55)
  q = 0.5 * product(e, f, r, l)
  g = -0.5 * h * e
  n = product(g, fma(-0.5 * h, e, -g) - 0.5 * h * f, r, l)
  y = select(x < -0.5, scale_any(n, t), fma(-h, scale_any(q, t), select(x < 0, -0.0, x)))
  return select(x == x, y, x)
}

frag sigmoid<T: real>(x: T) -> T {
  e = exp(-fabs(x))
  n = select(x < 0, e, 1)
  return fma(-n, e / (1 + e), n)
}
frag relu<T: num>(x: T) -> T { return select(x <= 0, 0, x) }
frag power<f32>(t: f32) -> f32 { return bits<f32>((bits<i32>(t) << 23) + 0x3f800000) }
frag power<f64>(t: f64) -> f64 { return bits<f64>((bits<i64>(t) << 52) + 0x3ff0000000000000) }
# x / (1 + e^-v) for a v of the sign of x, h = |x|, e^-|v| = (e + f) 2^n; for negative x it is x e^v / (1 + e^v)
frag logistic<T: real>(x: T, h: T, e: T, f: T, t: T) -> T {
  a = e * power(t)
  b = f * power(t)
  w = 1 + a
  r = 1 / w
  n = select(x < 0, h * a, h)
  l = select(x < 0, fma(h, a, -n) + h * b, 0)
  q = n * r
  return copysign(fma(r, (fma(-q, w, n) - q * (((1 - w) + a) + b)) + l, q), x)
}
frag silu_near<T: real>(x: T) -> T {
  h = fabs(select(x > 86, 86, x))
  e, f, t = exp_minus(h, 0)
  return select(x > 86, x, logistic(x, h, e, f, t))
}
frag silu<f32>(x: f32) -> f32 {
  fast {
    gone = x < -110
    rare !(x >= -86) & !gone
    return silu_near(select(gone, -0.0, x))
  }
  full { return select(x >= -86, silu_near(x), f32(silu(f64(x)))) }
}
frag silu<f64>(x: f64) -> f64 {
  c = select(x < -760, -760, x)
  p, t = exp_parts(c)
  return select(x >= -86, silu_near(x), scale_any(c * p, t))
}
frag softplus<T: real>(x: T) -> T {
  y = log1p_near(exp(-fabs(x)))
  return select(x > 0, x + y, y)
}
frag log_sigmoid<T: real>(x: T) -> T { return -softplus(-x) }
# x / (1 + e^-v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3) = x (a + b x^2) in two parts
frag gelu_tanh_exp<T: real>(c: T, a: T, al: T, b: T, bl: T) -> (T, T, T) {
  s = c * c
  p = b * s
  v = p + a
  vl = select(p > a, (p - v) + a, (a - v) + p) + (fma(b, s, -p) + fma(b, fma(c, c, -s), fma(bl, s, al)))
  w = c * v
  e, f, t = exp_minus(w, fma(c, v, -w) + c * vl)
  return e, f, t
}
frag gelu_tanh_near(x: f32) -> f32 {
  h = fabs(x)
  c = select(h > 9.9, 9.9, h)
  e, f, t = gelu_tanh_exp(c, 0x1.988454p+0, -0x1.857936p-25, 0x1.2444f2p-4, 0x1.49b16ap-29)
  return select(x > 9.9, x, logistic(x, c, e, f, t))
}
frag gelu_tanh<f32>(x: f32) -> f32 {
  fast {
    gone = x < -10.9
    rare !(x >= -9.9) & !gone
    return gelu_tanh_near(select(gone, -0.0, x))
  }
  full { return select(x >= -9.9, gelu_tanh_near(x), f32(gelu_tanh(f64(x)))) }
}
frag gelu_tanh<f64>(x: f64) -> f64 {
  h = fabs(x)
  c = select(h > 22.5, 22.5, h)
  e, f, t = gelu_tanh_exp(c, 0x1.9884533d43651p+0, -0x1.cbc0d30ebfd15p-54, 0x1.2444f2a4d8b4bp-4, -0x1.6c843a29d1c7p-61)
  y = select(h > 20, -scale_any(product(c, 0, e, f), t), logistic(x, c, e, f, select(h > 20, 0x1.8p52, t)))
  return select(x > 20, x, y)
}

# sin(pi x) / (pi x)
frag sinc(x: f64) -> f64 {
  a = fabs(x)
  r = a - 2 * rint(0.5 * a)
  z = select(r > 0.5, 1 - r, select(r < -0.5, -1 - r, r))
  u = z * 0x1.921fb54442d18p+1
  l = fma(z, 0x1.921fb54442d18p+1, -u) + z * 0x1.1a62633145c07p-53
  y = sin_half(u)
  y = fma(l, sqrt(1 - y * y), y)
  d = a * 0x1.921fb54442d18p+1
  q = y / d
  q = q - q * ((fma(a, 0x1.921fb54442d18p+1, -d) + a * 0x1.1a62633145c07p-53) / d)
  return select(a == 0, 1, select(a >= 0x1p53, 0, q))
}
frag sinc(x: f32) -> f32 { return f32(sinc(f64(x))) }

# Cube roots by w = m^(-1/3), without a quotient. The bits over -3 start within 3.5 %: d = 1 - m w^3 is at most 0.103, a
# step of order 5 leaves 5e-6 of it, in f64 one of order 3 4e-17; then a Newton step for y = m w^2 on an exact residual.
frag cbrt_step<T: real>(m: T, w: T) -> T {
  d = fma(-(m * w), w * w, 1)
  p = fma(d, fma(d, 0x1.26fabb85cb534p-3, 0x1.61f9add3c0ca4p-3), 0x1.c71c71c71c71cp-3)
  return fma(w * d, fma(d, p, 0x1.5555555555555p-2), w)
}
frag cbrt_finish<T: real>(m: T, w: T) -> T {
  q = w * w
  y = m * q
  s = y * y
  return fma(fma(-s, y, m) - fma(y, y, -s) * y, q * 0x1.5555555555555p-2, y)
}
# The scales keep the residual of small numbers exact.
frag cbrt(x: f32) -> f32 {
  a = fabs(x)
  tiny = a < 0x1p-80
  m = a * select(tiny, 0x1p48, f32(1))
  w = bits<f32>(i32(fma(f32(bits<i32>(m)), -0x1.555556p-2, 0x1.5288p+30)))
  y = cbrt_finish(m, cbrt_step(m, w)) * select(tiny, 0x1p-16, f32(1))
  return select((a > 0) & (a < inf), copysign(y, x), x)
}
frag cbrt(x: f64) -> f64 {
  a = fabs(x)
  tiny = a < 0x1p-900
  m = a * select(tiny, 0x1p120, f64(1))
  w = bits<f64>(0x553ee80000000000 - (bits<u64>(m) >> 32) * 0x55555555)
  w = cbrt_step(m, w)
  d = fma(-(m * w), w * w, 1)
  w = fma(w * d, fma(d, 0x1.c71c71c71c71cp-3, 0x1.5555555555555p-2), w)
  y = cbrt_finish(m, w) * select(tiny, 0x1p-40, f64(1))
  return select((a > 0) & (a < inf), copysign(y, x), x)
}
