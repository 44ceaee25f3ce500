# Hyperbolic functions and expm1, by e^x - 1 = 2^n (e^r - 1) + (2^n - 1).

# e^r - 1 on |r| <= 0.3476: r + r^2 Q(r), Q of degree 4 (10), relative error 2^-26 (2^-61.6)
frag expm1_near(r: f32) -> f32 {
  q = fma(r, fma(r, fma(r, fma(r, 0x1.6b9e88p-10, 0x1.122dcep-7), 0x1.5556dcp-5), 0x1.5554a8p-3), 0x1.fffffep-2)
  return fma(r * r, q, r)
}
frag expm1_near(r: f64) -> f64 {
  q = fma(r, fma(r, fma(r, 0x1.1f3a34a21e25bp-29, 0x1.af5d597467280p-26), 0x1.27e4f7de27c65p-22), 0x1.71ddf90fb4cc9p-19)
  q = fma(r, fma(r, q, 0x1.a01a019eb408fp-16), 0x1.a01a01afa9851p-13)
  q = fma(r, fma(r, q, 0x1.6c16c16c1672ep-10), 0x1.111111110f6f4p-7)
  return fma(r * r, fma(r, fma(r, fma(r, q, 0x1.5555555555559p-5), 0x1.5555555555559p-3), 0.5), r)
}
# x within the range where 2^n is a normal number
frag expm1_normal(x: f32) -> f32 {
  t = fma(x, 0x1.715476p+0, 12582912)
  n = t - 12582912
  p = expm1_near(fma(n, 0x1.05c61p-29, fma(n, -0x1.62e43p-1, x)))
  s = bits<f32>((bits<i32>(t) << 23) + 0x3f800000)
  return fma(s, p, s - 1)
}
frag expm1_normal(x: f64) -> f64 {
  t = fma(x, 0x1.71547652b82fep+0, 0x1.8p52)
  n = t - 0x1.8p52
  p = expm1_near(fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x)))
  s = bits<f64>((bits<i64>(t) << 52) + 0x3ff0000000000000)
  return fma(s, p, s - 1)
}

# expm1 has the sign of x, also at -0. Below -40 it is -1; above, it is exp where 2^n would overflow.
frag expm1<f32>(x: f32) -> f32 {
  fast {
    rare !(x <= 88)
    return copysign(expm1_normal(select(x < -40, -40, x)), x)
  }
  full {
    y = copysign(expm1_normal(select(x < -40, -40, select(x > 88, 88, x))), x)
    return select(x > 88, exp(x), y)
  }
}
frag expm1<f64>(x: f64) -> f64 {
  fast {
    rare !(x <= 709)
    return copysign(expm1_normal(select(x < -40, -40, x)), x)
  }
  full {
    y = copysign(expm1_normal(select(x < -40, -40, select(x > 709, 709, x))), x)
    return select(x > 709, exp(x), y)
  }
}

# f32: |x| = n ln2/2 + u, v = tanh(u) = u + u^3 P(u^2), P of degree 2 on |u| <= 0.205, relative error 2^-30.6, s = 2^n:
# ((s - 1) + (s + 1) v) / ((s + 1) + (s - 1) v), which is v where n = 0; from tanh = 1/2 on 1 - (2 - 2 v) /
# ((s + 1) + (s - 1) v), which is 1 from 9.02 on. n is rint(2.73 |x|), not 2.885 |x|, so that 1 lasts until there,
# 0.5493; u then grows with |x|, but meets a v that matters ever less. The low bits of the number that rounds to n are
# the exponent of s.
frag tanh<f32>(x: f32) -> f32 {
  a = fabs(x)
  c = select(a > 9.5, 9.5, a)
  t = fma(c, 2.73, 12583039)
  u = fma(t - 12583039, -0x1.62e43p-2, c)
  w = u * u
  v = fma(w * u, fma(w, fma(w, -0x1.abf8e2p-5, 0x1.10fb3p-3), -0x1.555542p-2), u)
  s = bits<f32>(bits<i32>(t) << 23)
  big = a >= 0.54931
  y = select(big, fma(2, v, -2), fma(s + 1, v, s - 1)) / fma(s - 1, v, s + 1)
  return copysign(select(big, y + 1, y), x)
}
# f64: |x| < 0.6: x + x^3 P(x^2), P of degree 10, relative error 2^-57.7; else 1 - 2 / (exp(2 |x|) + 1), which is 1 from
# 19.1 on
frag tanh<f64>(x: f64) -> f64 {
  s = x * x
  p = fma(s, fma(s, -0x1.201fcaca7c987p-16, 0x1.4ca10b6cc5b8ep-14), -0x1.e329d279ae7dap-13)
  p = fma(s, p, 0x1.33dabeb05ff63p-11)
  p = fma(s, fma(s, fma(s, p, -0x1.7d79cf4c6244ep-10), 0x1.d6d0c578e8b9cp-9), -0x1.226e22902f4c9p-7)
  p = fma(s, fma(s, fma(s, p, 0x1.664f47f0199b2p-6), -0x1.ba1ba1b7816c9p-5), 0x1.111111110e1d2p-3)
  small = fma(s * x, fma(s, p, -0x1.5555555555530p-2), x)
  a = fabs(x)
  e, t = exp_parts(2 * select(a > 20, 20, a))
  return copysign(select(a >= 0.6, 1 - 2 / (scale(e, t) + 1), small), x)
}

# |x| < 1: x + x^3 P(x^2), P of degree 3 (6), relative error 2^-31.6 (2^-61.4). Elsewhere (e^a - e^-a) / 2 and
# (e^a + e^-a) / 2 with h = e^a / 2 taken at n - 1, so that it overflows only with the result; e^-a = 1 / (2 h) / 2.
frag half_exp<f32>(a: f32) -> f32 {
  p, t = exp_parts(select(a > 91, 91, a))
  return scale_any(p, t - 1)
}
frag half_exp<f64>(a: f64) -> f64 {
  p, t = exp_parts(select(a > 712, 712, a))
  return scale_any(p, t - 1)
}
frag sinh<f32>(x: f32) -> f32 {
  s = x * x
  p = fma(s, fma(s, fma(s, 0x1.756c1ep-19, 0x1.a022bcp-13), 0x1.1110e0p-7), 0x1.555556p-3)
  a = fabs(x)
  h = half_exp(a)
  return copysign(select(a < 1, fma(s * a, p, a), h - 0.25 / h), x)
}
frag sinh<f64>(x: f64) -> f64 {
  s = x * x
  p = fma(s, fma(s, fma(s, 0x1.b5ce9177864c6p-41, 0x1.6116e91bcefb9p-33), 0x1.ae6470019d9d2p-26), 0x1.71de3a3b03e59p-19)
  p = fma(s, fma(s, fma(s, p, 0x1.a01a01a037269p-13), 0x1.111111111101ep-7), 0x1.5555555555556p-3)
  a = fabs(x)
  h = half_exp(a)
  return copysign(select(a < 1, fma(s * a, p, a), h - 0.25 / h), x)
}
frag cosh<T: real>(x: T) -> T {
  h = half_exp(fabs(x))
  return h + 0.25 / h
}
