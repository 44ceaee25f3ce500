# Hyperbolic functions and expm1, by e^x - 1 = 2^n (e^r - 1) + (2^n - 1).

# e^r - 1 on |r| <= 0.3476: r + r^2 Q(r), Q of degree 4 (10), relative error 2^-26 (2^-61.6)
frag expm1_near(r: f32) -> f32 {
  q = fma(r, fma(r, fma(r, fma(r, 0x1.6b9e88p-10, 0x1.122dcep-7), 0x1.5556dcp-5), 0x1.5554a8p-3), 0x1.fffffep-2)
  return fma(r * r, q, r)
}
frag expm1_near(r: f64) -> f64 {
  q = fma(r, fma(r, fma(r, 0x1.1f3a34a21e25bp-29, 0x1.af5d597467280p-26), 0x1.27e4f7de27c65p-22), 0x1.71ddf90fb4cc9p-19)
  q = fma(r, fma(r, fma(r, fma(r, q, 0x1.a01a019eb408fp-16), 0x1.a01a01afa9851p-13), 0x1.6c16c16c1672ep-10), 0x1.111111110f6f4p-7)
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

# -e / (e + 2) with e = exp(-2 |x|) - 1, which is 1 from 9.02 (19.1) on
frag tanh(x: f32) -> f32 {
  a = fabs(x)
  e = expm1_normal(-2 * select(a > 9.5, 9.5, a))
  return copysign(e / (e + 2), x)
}
frag tanh(x: f64) -> f64 {
  a = fabs(x)
  e = expm1_normal(-2 * select(a > 20, 20, a))
  return copysign(e / (e + 2), x)
}
