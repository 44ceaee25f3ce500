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
frag scale_or_zero<f32>(p: f32, t: f32, zero: bool) -> f32 {
  return bits<f32>(select(zero, 0, bits<i32>(p) + (bits<i32>(t) << 23)))
}
# the same for -250 <= n <= 250, rounded once
frag scale_any<f32>(p: f32, t: f32) -> f32 {
  n = bits<i32>(t) - 0x4b400000
  h = n >> 1
  return p * bits<f32>((h + 127) << 23) * bits<f32>((n - h + 127) << 23)
}
frag exp<f32>(x: f32) -> f32 {
  fast {
    zero = x <= -104
    rare !(fabs(x) <= 87.33) & !zero
    p, t = exp_parts(x)
    return scale_or_zero(p, t, zero)
  }
  full {
    p, t = exp_parts(select(x > 90, 90, select(x < -104, -104, x)))
    return scale_any(p, t)
  }
}

# y where x is positive and finite
frag log_edges<T: real>(x: T, y: T) -> T {
  return select(x > 0, select(x < inf, y, x), select(x == 0, -inf, (x - x) * inf))
}
# x = m 2^k with m in [sqrt(1/2), sqrt(2)): m - 1, and k 2^23 as a float. For what is not positive, normal and finite
# the k so found is at least 126 in size.
frag log_parts<f32>(x: f32) -> (f32, f32) {
  a = bits<i32>(x)
  k = (a - 0x3f3504f3) & 0xff800000
  return bits<f32>(a - k) - 1, f32(k)
}
# k ln2 + log(1 + f): f + f^2 Q(f), Q of degree 8 on [sqrt(1/2) - 1, sqrt(2) - 1], relative error 2^-27.7.
# ln2 as one constant costs 0.05 ulp, since the product is exact.
frag log_sum<f32>(f: f32, k: f32) -> f32 {
  q = fma(f, fma(f, fma(f, -0x1.39bacap-4, 0x1.0951f6p-3), -0x1.0f632p-3), 0x1.224ad8p-3)
  q = fma(f, fma(f, fma(f, q, -0x1.541e8ap-3), 0x1.99a588p-3), -0x1.000450p-2)
  q = fma(f, fma(f, q, 0x1.55554ep-2), -0x1.fffff8p-2)
  return fma(k, 0x1.62e43p-24, fma(f * f, q, f))
}
# Numbers below 0, of which a whole array may have many, are not rare.
frag log<f32>(x: f32) -> f32 {
  fast {
    f, k = log_parts(x)
    below = x < 0
    rare (fabs(k) >= 0x1.f8p+29) & !below
    return select(below, nan, log_sum(f, k))
  }
  full {
    tiny = x < 0x1p-126
    f, k = log_parts(select(tiny, x * 8388608, x))
    y = log_sum(f, select(tiny, k - 192937984, k))
    return log_edges(x, y)
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
frag scale_or_zero<f64>(p: f64, t: f64, zero: bool) -> f64 {
  return bits<f64>(select(zero, 0, bits<i64>(p) + (bits<i64>(t) << 52)))
}
frag scale_any<f64>(p: f64, t: f64) -> f64 {
  n = bits<i64>(t) - 0x4338000000000000
  h = n >> 1
  return p * bits<f64>((h + 1023) << 52) * bits<f64>((n - h + 1023) << 52)
}
frag exp<f64>(x: f64) -> f64 {
  fast {
    zero = x <= -746
    rare !(fabs(x) <= 708.3) & !zero
    p, t = exp_parts(x)
    return scale_or_zero(p, t, zero)
  }
  full {
    p, t = exp_parts(select(x > 720, 720, select(x < -746, -746, x)))
    return scale_any(p, t)
  }
}

# likewise, k itself, of at least 1022
frag log_parts<f64>(x: f64) -> (f64, f64) {
  a = bits<u64>(x)
  b = a + 0x95f619980c433
  f = bits<f64>(a - (b & 0xfff0000000000000) + 0x3ff0000000000000) - 1
  return f, bits<f64>((b >> 52) | 0x4330000000000000) - 0x1.00000000003ffp52
}
frag log_series(z: f64) -> f64 {
  p = fma(z, fma(z, fma(z, 0x1.2f06e26b9a22ap-3, 0x1.39a1a5d566e24p-3), 0x1.74663efea9540p-3), 0x1.c71c520ce2449p-3)
  return fma(z, fma(z, fma(z, p, 0x1.24924941e71a4p-2), 0x1.999999997fef0p-2), 0x1.5555555555592p-1)
}
# k ln2 + log(1 + f) by s = f / (2 + f): 2 s + s^3 L(s^2), L of degree 6 on s^2 <= 0.0295, relative error 2^-59.4
frag log_sum<f64>(f: f64, k: f64) -> f64 {
  s = f / (2 + f)
  z = s * s
  h = 0.5 * f * f
  c = fma(s, fma(z, log_series(z), h), k * 0x1.abc9e3b39803fp-56)
  return fma(k, 0x1.62e42fefa39efp-1, f - (h - c))
}
frag log<f64>(x: f64) -> f64 {
  fast {
    f, k = log_parts(x)
    below = x < 0
    rare (fabs(k) >= 1022) & !below
    return select(below, nan, log_sum(f, k))
  }
  full {
    tiny = x < 0x1p-1022
    f, k = log_parts(select(tiny, x * 0x1p54, x))
    y = log_sum(f, select(tiny, k - 54, k))
    return log_edges(x, y)
  }
}

# ---- of other bases, and near 1
# 2^n 2^f, f in [-1/2, 1/2] exactly: 1 + f P(f), P of degree 5 (11), relative error 2^-27.5 (2^-59.7)
frag exp2_near(f: f32) -> f32 {
  p = fma(f, fma(f, fma(f, 0x1.4bce94p-13, 0x1.5fbdp-10), 0x1.3b21dp-7), 0x1.c6ada8p-5)
  return fma(f, fma(f, fma(f, p, 0x1.ebfbe6p-3), 0x1.62e432p-1), 1)
}
frag exp2_near(f: f64) -> f64 {
  p = fma(f, fma(f, fma(f, 0x1.f94a0d25ede7fp-36, 0x1.ebda333265d31p-32), 0x1.e4ace173c1005p-28), 0x1.b5238b9079d88p-24)
  p = fma(f, fma(f, p, 0x1.62c02a31cd9c1p-20), 0x1.ffcbfd2534a2cp-17)
  p = fma(f, fma(f, p, 0x1.430912f6d915ep-13), 0x1.5d87fe7879eafp-10)
  p = fma(f, fma(f, p, 0x1.3b2ab6fba5266p-7), 0x1.c6b08d704a1c3p-5)
  p = fma(f, fma(f, p, 0x1.ebfbdff82c58ep-3), 0x1.62e42fefa39efp-1)
  return fma(f, p, 1)
}
frag exp2<f32>(x: f32) -> f32 {
  fast {
    zero = x <= -151
    rare !(x < 128) | ((x < -126) & !zero)
    t = x + 12582912
    return scale_or_zero(exp2_near(x - (t - 12582912)), t, zero)
  }
  full {
    c = select(x > 130, 130, select(x < -151, -151, x))
    t = c + 12582912
    return scale_any(exp2_near(c - (t - 12582912)), t)
  }
}
frag exp2<f64>(x: f64) -> f64 {
  fast {
    zero = x <= -1076
    rare !(x < 1024) | ((x < -1022) & !zero)
    t = x + 0x1.8p52
    return scale_or_zero(exp2_near(x - (t - 0x1.8p52)), t, zero)
  }
  full {
    c = select(x > 1030, 1030, select(x < -1076, -1076, x))
    t = c + 0x1.8p52
    return scale_any(exp2_near(c - (t - 0x1.8p52)), t)
  }
}
# x = n log10(2) + r: e^(r ln10)
frag exp10_parts(x: f32) -> (f32, f32) {
  t = fma(x, 0x1.a934fp+1, 12582912)
  n = t - 12582912
  r = fma(n, 0x1.ec10cp-27, fma(n, -0x1.344136p-2, x))
  return exp_near(fma(r, 0x1.26bb1cp+1, r * -0x1.12aabap-25)), t
}
frag exp10_parts(x: f64) -> (f64, f64) {
  t = fma(x, 0x1.a934f0979a371p+1, 0x1.8p52)
  n = t - 0x1.8p52
  r = fma(n, 0x1.9dc1da994fd21p-59, fma(n, -0x1.34413509f79ffp-2, x))
  return exp_near(fma(r, 0x1.26bb1bbb55516p+1, r * -0x1.f48ad494ea3e9p-53)), t
}
frag exp10<f32>(x: f32) -> f32 {
  fast {
    zero = x <= -46
    rare !(x < 38.5) | ((x < -37.9) & !zero)
    p, t = exp10_parts(x)
    return scale_or_zero(p, t, zero)
  }
  full {
    p, t = exp10_parts(select(x > 39, 39, select(x < -46, -46, x)))
    return scale_any(p, t)
  }
}
frag exp10<f64>(x: f64) -> f64 {
  fast {
    zero = x <= -325
    rare !(x < 308.2) | ((x < -307.6) & !zero)
    p, t = exp10_parts(x)
    return scale_or_zero(p, t, zero)
  }
  full {
    p, t = exp10_parts(select(x > 310, 310, select(x < -325, -325, x)))
    return scale_any(p, t)
  }
}

# log(1 + x): 1 + x = 2^k (1 + f), f = x 2^-k + (2^-k - 1), which loses nothing of x. The sign is that of x, at -0 too.
frag log1p_near(x: f32) -> f32 {
  k = (bits<i32>(1 + x) - 0x3f3504f3) & 0xff800000
  s = bits<f32>(0x3f800000 - k)
  return log_sum(fma(x, s, s - 1), f32(k))
}
frag log1p_near(x: f64) -> f64 {
  b = (bits<u64>(1 + x) + 0x95f619980c433) & 0xfff0000000000000
  s = bits<f64>(0x7fe0000000000000 - b)
  return log_sum(fma(x, s, s - 1), bits<f64>((b >> 52) | 0x4330000000000000) - 0x1.00000000003ffp52)
}
frag log1p<f32>(x: f32) -> f32 {
  fast {
    rare !(x < 0x1p126) | (x == -1)
    return select(x < -1, nan, copysign(log1p_near(x), x))
  }
  full {
    ok = (x > -1) & (x < 0x1p126)
    y = copysign(log1p_near(select(ok, x, 0)), x)
    return select(ok, y, log(1 + x))
  }
}
frag log1p<f64>(x: f64) -> f64 {
  fast {
    rare !(x < 0x1p1022) | (x == -1)
    return select(x < -1, nan, copysign(log1p_near(x), x))
  }
  full {
    ok = (x > -1) & (x < 0x1p1022)
    y = copysign(log1p_near(select(ok, x, 0)), x)
    return select(ok, y, log(1 + x))
  }
}

# log(1 + f) b for b = log2(e) or log10(e) = h + l, plus k log_b(2) = kh + kl. In f32 the factor is part of the
# polynomial's first term in two parts; in f64 the logarithm itself is.
frag log_base_f32(x: f32) -> (f32, f32) {
  tiny = x < 0x1p-126
  f, k = log_parts(select(tiny, x * 8388608, x))
  return f, select(tiny, k - 192937984, k) * 0x1p-23
}
# f log2(e) + f^2 Q(f), Q of degree 8, relative error 2^-27.5; with log10(e) 2^-27.7
frag log2<f32>(x: f32) -> f32 {
  f, k = log_base_f32(x)
  q = fma(f, fma(f, fma(f, -0x1.c59108p-4, 0x1.7ed2acp-3), -0x1.878cp-3), 0x1.a2cd76p-3)
  q = fma(f, fma(f, fma(f, q, -0x1.eaa9acp-3), 0x1.277f52p-2), -0x1.715af8p-2)
  q = fma(f, fma(f, q, 0x1.ec7094p-2), -0x1.71547p-1)
  return log_edges(x, k + fma(f, 0x1.715476p+0, fma(f, 0x1.4ae0cp-26, f * f * q)))
}
frag log10<f32>(x: f32) -> f32 {
  f, k = log_base_f32(x)
  q = fma(f, fma(f, fma(f, -0x1.0a5358p-5, 0x1.c9497p-5), -0x1.d801b2p-5), 0x1.f8d29ep-5)
  q = fma(f, fma(f, fma(f, q, -0x1.276cf2p-4), 0x1.63cdep-4), -0x1.bcbf26p-4)
  q = fma(f, fma(f, q, 0x1.287a72p-3), -0x1.bcb7aap-3)
  y = fma(k, -0x1.ec10cp-27, fma(f, -0x1.5b235ep-27, f * f * q))
  return log_edges(x, fma(k, 0x1.344136p-2, fma(f, 0x1.bcb7b2p-2, y)))
}
# k and log(1 + f) in two parts
frag log_pair(x: f64) -> (f64, f64, f64) {
  tiny = x < 0x1p-1022
  f, k = log_parts(select(tiny, x * 0x1p54, x))
  s = f / (2 + f)
  z = s * s
  h = 0.5 * f * f
  a = f - h
  return select(tiny, k - 54, k), a, fma(s, fma(z, log_series(z), h), (f - a) - h - fma(0.5 * f, f, -h))
}
frag log_scaled(k: f64, kh: f64, kl: f64, a: f64, b: f64, ch: f64, cl: f64) -> f64 {
  v = a * ch
  vl = fma(a, ch, -v) + fma(a, cl, b * ch)
  w = k * kh
  y = w + v
  return y + ((fma(k, kh, -w) + k * kl) + vl + select(fabs(w) > fabs(v), (w - y) + v, (v - y) + w))
}
frag log2<f64>(x: f64) -> f64 {
  k, a, b = log_pair(x)
  return log_edges(x, log_scaled(k, 1, 0, a, b, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56))
}
frag log10<f64>(x: f64) -> f64 {
  k, a, b = log_pair(x)
  y = log_scaled(k, 0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59, a, b, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57)
  return log_edges(x, y)
}
