# Exponentials and logarithms.

# ---- f32
# x = n ln2 + r, |r| <= ln2/2: e^r, and 1.5 * 2^23 + n, whose low bits are n.
# 1 + r + r^2 P(r), P of degree 4 on |r| <= 0.3476, relative error 2^-27.8
frag exp_parts<f32>(x: f32) -> (f32, f32) {
  t = fma(x, 0x1.715476p+0, 12582912)
  n = t - 12582912
  r = fma(n, 0x1.05c61p-29, fma(n, -0x1.62e43p-1, x))
  return exp_near(r), t
}
frag exp_near(r: f32) -> f32 {
  p = fma(r, fma(r, fma(r, fma(r, 0x1.6a72bp-10, 0x1.123f44p-7), 0x1.55585cp-5), 0x1.555488p-3), 0x1.fffffcp-2)
  return fma(r, fma(r, p, 1), 1)
}
# p * 2^n for n = t - 1.5 * 2^23 where the result is normal
frag scale<f32>(p: f32, t: f32) -> f32 { return bits<f32>(bits<i32>(p) + (bits<i32>(t) << 23)) }
# the same for -250 <= n <= 250, rounded once
frag scale_any<f32>(p: f32, t: f32) -> f32 {
  n = bits<i32>(t) - 0x4b400000
  h = n >> 1
  return p * bits<f32>((h + 127) << 23) * bits<f32>((n - h + 127) << 23)
}
frag exp<f32>(x: f32) -> f32 {
  fast {
    low = x < -87.33
    zero = x <= -104
    rare !(x <= 88.72) | (low & !zero)
    p, t = exp_parts(x)
    return select(zero, 0, scale(p, t))
  }
  full {
    p, t = exp_parts(select(x > 90, 90, select(x < -104, -104, x)))
    return scale_any(p, t)
  }
}

# x = m 2^k with m in [sqrt(1/2), sqrt(2)): m - 1, and k 2^23 as a float
frag log_parts<f32>(x: f32) -> (f32, f32) {
  a = bits<i32>(x)
  k = (a - 0x3f3504f3) & 0xff800000
  return bits<f32>(a - k) - 1, f32(k)
}
# k ln2 + log(1 + f): f + f^2 Q(f), Q of degree 8 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error 2^-27.7.
# ln2 as one constant costs 0.05 ulp, since the product is exact.
frag log_sum<f32>(f: f32, k: f32) -> f32 {
  q = fma(f, fma(f, fma(f, -0x1.39bacap-4, 0x1.0951f6p-3), -0x1.0f632p-3), 0x1.224ad8p-3)
  q = fma(f, fma(f, fma(f, fma(f, fma(f, q, -0x1.541e8ap-3), 0x1.99a588p-3), -0x1.000450p-2), 0x1.55554ep-2), -0x1.fffff8p-2)
  return fma(k, 0x1.62e43p-24, fma(f * f, q, f))
}
frag log<f32>(x: f32) -> f32 {
  fast {
    rare u32(bits<i32>(x) - 0x00800000) >= 0x7f000000
    f, k = log_parts(x)
    return log_sum(f, k)
  }
  full {
    tiny = x < 0x1p-126
    f, k = log_parts(select(tiny, x * 8388608, x))
    y = log_sum(f, select(tiny, k - 192937984, k))
    return select(x > 0, select(x < inf, y, x), select(x == 0, -inf, (x - x) / 0))
  }
}

# ---- f64
# As for f32; P of degree 9 on |r| <= 0.347, relative error 2^-56.2
frag exp_parts<f64>(x: f64) -> (f64, f64) {
  t = fma(x, 0x1.71547652b82fep+0, 0x1.8p52)
  n = t - 0x1.8p52
  r = fma(n, -0x1.abc9e3b39803fp-56, fma(n, -0x1.62e42fefa39efp-1, x))
  return exp_near(r), t
}
frag exp_near(r: f64) -> f64 {
  p = fma(r, fma(r, fma(r, 0x1.b012476d0b6dap-26, 0x1.28b18987e89d1p-22), 0x1.71de0c419e06dp-19), 0x1.a01996a2c1863p-16)
  p = fma(r, fma(r, fma(r, p, 0x1.a01a016baf942p-13), 0x1.6c16c1850a2fdp-10), 0x1.1111111124d86p-7)
  p = fma(r, fma(r, fma(r, p, 0x1.55555555505d0p-5), 0x1.5555555555500p-3), 0x1.000000000000ap-1)
  return fma(r, fma(r, p, 1), 1)
}
frag scale<f64>(p: f64, t: f64) -> f64 { return bits<f64>(bits<i64>(p) + (bits<i64>(t) << 52)) }
frag scale_any<f64>(p: f64, t: f64) -> f64 {
  n = bits<i64>(t) - 0x4338000000000000
  h = n >> 1
  return p * bits<f64>((h + 1023) << 52) * bits<f64>((n - h + 1023) << 52)
}
frag exp<f64>(x: f64) -> f64 {
  fast {
    low = x < -708.3
    zero = x <= -746
    rare !(x <= 709.7) | (low & !zero)
    p, t = exp_parts(x)
    return select(zero, 0, scale(p, t))
  }
  full {
    p, t = exp_parts(select(x > 720, 720, select(x < -746, -746, x)))
    return scale_any(p, t)
  }
}

frag log_parts<f64>(x: f64) -> (f64, f64) {
  a = bits<u64>(x)
  b = a + 0x95f619980c433
  f = bits<f64>(a - (b & 0xfff0000000000000) + 0x3ff0000000000000) - 1
  return f, bits<f64>((b >> 52) | 0x4330000000000000) - 0x1.00000000003ffp52
}
# k ln2 + log(1 + f) by s = f / (2 + f): 2 s + s^3 L(s^2), L of degree 6 on s^2 <= 0.0295, relative error 2^-59.4
frag log_sum<f64>(f: f64, k: f64) -> f64 {
  s = f / (2 + f)
  z = s * s
  p = fma(z, fma(z, fma(z, 0x1.2f06e26b9a22ap-3, 0x1.39a1a5d566e24p-3), 0x1.74663efea9540p-3), 0x1.c71c520ce2449p-3)
  p = fma(z, fma(z, fma(z, p, 0x1.24924941e71a4p-2), 0x1.999999997fef0p-2), 0x1.5555555555592p-1)
  h = 0.5 * f * f
  c = fma(s, fma(z, p, h), k * 0x1.abc9e3b39803fp-56)
  return fma(k, 0x1.62e42fefa39efp-1, f - (h - c))
}
frag log<f64>(x: f64) -> f64 {
  fast {
    rare bits<u64>(x) - 0x10000000000000 >= 0x7fe0000000000000
    f, k = log_parts(x)
    return log_sum(f, k)
  }
  full {
    tiny = x < 0x1p-1022
    f, k = log_parts(select(tiny, x * 0x1p54, x))
    y = log_sum(f, select(tiny, k - 54, k))
    return select(x > 0, select(x < inf, y, x), select(x == 0, -inf, (x - x) / 0))
  }
}
