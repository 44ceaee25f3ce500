# Sine and cosine. x = k pi + r with |r| <= pi/2 and one odd polynomial; the cosine is the sine a quarter turn later,
# so nothing is selected. The fast forms subtract k pi in three parts; the full forms take |x| beyond that from the
# bits of 1/(2 pi): the phase of x as a fraction of a turn in 64 (f32) or 128 (f64) bits.

# 1/(2 pi) after a word of zeros, most significant first
table turn32: u32 = {
  0, 0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea, 0xf7aef158
}
table turn64: u64 = {
  0, 0x28be60db9391054a, 0x7f09d5f47d4d3770, 0x36d8a5664f10e410, 0x7f9458eaf7aef158, 0x6dc91b8e909374b8,
  0x01924bba82746487, 0x3f877ac72c4a69cf, 0xba208d7d4baed121, 0x3a671c09ad17df90, 0x4e64758e60d4ce7d,
  0x272117e2ef7e4a0e, 0xc7fe25fff7816603, 0xfbcbc462d6829b47, 0xdb4d9fb3c9f2c26d, 0xd3d18fd9a797fa8b,
  0x5d49eeb1faf97c5e, 0xcf41ce7de294a4ba, 0x9afed7ec47e35742, 0x1580cc11bf1edaea, 0xfc33ef0826bd0d87
}

# |x| / (2 pi) modulo 1, times 2^64, for 2^-8 <= |x| < inf
frag phase<f32>(x: f32) -> u64 {
  b = bits<i32>(x) & 0x7fffffff
  m = u64((b & 0x7fffff) | 0x800000)
  e = (b >> 23) - 118
  o = select(e < 0, 0, e)
  i = o >> 5
  s = u64(o & 31)
  a0 = u64(turn32[i])
  a1 = u64(turn32[i + 1])
  a2 = u64(turn32[i + 2])
  a3 = u64(turn32[i + 3])
  w0 = ((((a0 << 32) | a1) << s) >> 32) & 0xffffffff
  w1 = ((((a1 << 32) | a2) << s) >> 32) & 0xffffffff
  w2 = ((((a2 << 32) | a3) << s) >> 32) & 0xffffffff
  return ((m * w0) << 32) + m * w1 + ((m * w2) >> 32)
}
# A phase's distance from the nearest half turn in radians, and the parity of the half turns
frag half_turns<f32>(p: u64) -> (f32, i32) {
  n = (p + 0x4000000000000000) >> 63
  r = f64(bits<i64>(p - (n << 63))) * 0x1.921fb54442d18p-62
  return f32(r), i32(n)
}

# sin(z) on |z| <= pi/2 + 0.004: z + z^3 P(z^2), degree 3 in z^2, relative error 2^-27; never above 1
frag sin_half<f32>(z: f32) -> f32 {
  s = z * z
  p = fma(s, fma(s, fma(s, 0x1.5db894p-19, -0x1.9f7072p-13), 0x1.110ed8p-7), -0x1.55554cp-3)
  return fma(s * z, p, z)
}
# x - h pi, for a multiple h of 1/2. With |x - h pi| < 2 the first difference is exact where it matters. The parts of
# pi are cut, not rounded, so that all have its sign and -0 stays -0.
frag minus_pi<f32>(x: f32, h: f32) -> f32 {
  return fma(h, -0x1.846988p-47, fma(h, -0x1.4442d0p-23, fma(h, -0x1.921fb4p+1, x)))
}
frag minus_pi<f64>(x: f64, h: f64) -> f64 {
  return fma(h, -0x1.c1cd129024e08p-106, fma(h, -0x1.1a62633145c06p-53, fma(h, -0x1.921fb54442d18p+1, x)))
}
# (-1)^n sin(r). The sum above turns -0 to 0; signed puts the sign back, which only the sine needs.
frag turned<f32>(r: f32, n: i32) -> f32 { return bits<f32>(bits<i32>(r) + (n << 31)) }
frag turned<f64>(r: f64, n: i64) -> f64 { return bits<f64>(bits<i64>(r) + (n << 63)) }
frag sin_signed<f32>(z: f32) -> f32 { return bits<f32>(bits<u32>(sin_half(z)) | (bits<u32>(z) & 0x80000000)) }
frag sin_signed<f64>(z: f64) -> f64 { return bits<f64>(bits<u64>(sin_half(z)) | (bits<u64>(z) & 0x8000000000000000)) }
frag sin_near<f32>(x: f32) -> (f32, i32) {
  t = fma(x, 0x1.45f306p-2, 12582912)
  return minus_pi(x, t - 12582912), bits<i32>(t)
}
frag cos_near<f32>(x: f32) -> (f32, i32) {
  t = fma(x, 0x1.45f306p-2, 0.5) + 12582912
  return minus_pi(x, (t - 12582912) - 0.5), bits<i32>(t)
}

frag sin<f32>(x: f32) -> f32 {
  fast {
    rare !(fabs(x) <= 1e5)
    r, n = sin_near(x)
    return sin_signed(turned(r, n))
  }
  full {
    r, n = sin_near(x)
    q, k = half_turns(phase(x))
    far = !(fabs(x) <= 1e5)
    q = select(x < 0, -q, q)
    y = sin_signed(turned(select(far, q, r), select(far, k, n)))
    return select(fabs(x) < inf, y, x - x)
  }
}
frag cos<f32>(x: f32) -> f32 {
  fast {
    rare !(fabs(x) <= 1e5)
    r, n = cos_near(x)
    return sin_half(turned(r, n))
  }
  full {
    r, n = cos_near(x)
    q, k = half_turns(phase(x) + 0x4000000000000000)
    far = !(fabs(x) <= 1e5)
    y = sin_half(turned(select(far, q, r), select(far, k, n)))
    return select(fabs(x) < inf, y, x - x)
  }
}

# ---- f64
# |x| / (2 pi) modulo 1, times 2^128, in two words, for 2^-12 <= |x| < inf
frag phase<f64>(x: f64) -> (u64, u64) {
  b = bits<i64>(x) & 0x7fffffffffffffff
  m = bits<u64>((b & 0xfffffffffffff) | 0x10000000000000)
  e = i32(b >> 52) - 1011
  o = select(e < 0, 0, e)
  i = o >> 6
  s = u64(o & 63)
  a0 = turn64[i]
  a1 = turn64[i + 1]
  a2 = turn64[i + 2]
  a3 = turn64[i + 3]
  c = 63 - s
  w0 = (a0 << s) | ((a1 >> 1) >> c)
  w1 = (a1 << s) | ((a2 >> 1) >> c)
  w2 = (a2 << s) | ((a3 >> 1) >> c)
  lo = m * w1 + mulhi(m, w2)
  c1 = select(lo < m * w1, u64(1), 0)
  return m * w0 + mulhi(m, w1) + c1, lo
}
# d 2^64 + lo parts of a turn, cut into 2^128, in radians
frag radians(d: i64, lo: u64) -> (f64, f64) {
  h = f64(d >> 32)
  g = f64(d & 0xffffffff)
  a = fma(h, 0x1p32, g)
  b = fma(f64(lo >> 11), 0x1p-53, fma(h, 0x1p32, -a) + g)
  r = a * 0x1.921fb54442d18p-62
  l = fma(b, 0x1.921fb54442d18p-62, fma(a, 0x1.921fb54442d18p-62, -r) + a * 0x1.1a62633145c06p-116)
  u = r + l
  return u, (r - u) + l
}
frag half_turns<f64>(hi: u64, lo: u64) -> (f64, i64) {
  n = (hi + 0x4000000000000000) >> 63
  r, l = radians(bits<i64>(hi - (n << 63)), lo)
  return r, bits<i64>(n)
}

# sin(z) on |z| <= pi/2 + 1e-5: z + z^3 P(z^2), degree 7 in z^2, relative error 2^-60
frag sin_half<f64>(z: f64) -> f64 {
  s = z * z
  p = fma(s, fma(s, 0x1.87e89b109705bp-49, -0x1.ae410ff4df5e2p-41), 0x1.6123c4f2bb341p-33)
  p = fma(s, p, -0x1.ae6454baca2b3p-26)
  p = fma(s, fma(s, p, 0x1.71de3a5279688p-19), -0x1.a01a01a014aa1p-13)
  p = fma(s, fma(s, p, 0x1.11111111110c8p-7), -0x1.5555555555555p-3)
  return fma(s * z, p, z)
}
frag sin_near<f64>(x: f64) -> (f64, i64) {
  t = fma(x, 0x1.45f306dc9c883p-2, 0x1.8p52)
  return minus_pi(x, t - 0x1.8p52), bits<i64>(t)
}
frag cos_near<f64>(x: f64) -> (f64, i64) {
  t = fma(x, 0x1.45f306dc9c883p-2, 0.5) + 0x1.8p52
  return minus_pi(x, (t - 0x1.8p52) - 0.5), bits<i64>(t)
}
frag sin<f64>(x: f64) -> f64 {
  fast {
    rare !(fabs(x) <= 1e9)
    r, n = sin_near(x)
    return sin_signed(turned(r, n))
  }
  full {
    r, n = sin_near(x)
    hi, lo = phase(x)
    q, k = half_turns(hi, lo)
    far = !(fabs(x) <= 1e9)
    q = select(x < 0, -q, q)
    y = sin_signed(turned(select(far, q, r), select(far, k, n)))
    return select(fabs(x) < inf, y, x - x)
  }
}
frag cos<f64>(x: f64) -> f64 {
  fast {
    rare !(fabs(x) <= 1e9)
    r, n = cos_near(x)
    return sin_half(turned(r, n))
  }
  full {
    r, n = cos_near(x)
    hi, lo = phase(x)
    q, k = half_turns(hi + 0x4000000000000000, lo)
    far = !(fabs(x) <= 1e9)
    y = sin_half(turned(select(far, q, r), select(far, k, n)))
    return select(fabs(x) < inf, y, x - x)
  }
}

# ---- tangent: x = k pi/2 + r, |r| <= pi/4: tan r for even k, -1 / tan r for odd
# r + r^3 P(r^2), P of degree 5 (13) on |r| <= pi/4 + 0.002, relative error 2^-25.7 (2^-55.7)
frag tan_poly(s: f32) -> f32 {
  p = fma(s, fma(s, fma(s, 0x1.358a58p-7, 0x1.8ba056p-9), 0x1.9147b0p-6), 0x1.b56816p-5)
  return fma(s, fma(s, p, 0x1.112ec2p-3), 0x1.5554dap-2)
}
frag tan_poly(s: f64) -> f64 {
  p = fma(s, fma(s, 0x1.6502e1f021ba4p-16, -0x1.86893aef4ffafp-15), 0x1.83cbda3b6c5e9p-14)
  p = fma(s, fma(s, p, -0x1.ef7cb3a22da85p-16), 0x1.22cd2668917f3p-13)
  p = fma(s, fma(s, p, 0x1.d0494cd25bd1dp-13), 0x1.38271c931b251p-11)
  p = fma(s, fma(s, p, 0x1.7d56522fd0391p-10), 0x1.d6d998fd88fe9p-9)
  p = fma(s, fma(s, p, 0x1.226e0fa7a3230p-7), 0x1.664f49c06ac5fp-6)
  return fma(s, fma(s, fma(s, p, 0x1.ba1ba1b3eb50dp-5), 0x1.1111111118d8cp-3), 0x1.55555555554e8p-2)
}
# r + l in two parts, so that the reciprocal is rounded once
frag tan_half<T: real>(r: T, l: T, odd: bool) -> T {
  s = r * r
  c = fma(s * r, tan_poly(s), l)
  t = r + c
  e = (r - t) + c
  q = -1 / t
  return select(odd, q + q * fma(q, e, fma(q, t, 1)), t)
}
frag tan_near(x: f32) -> (f32, f32, bool) {
  t = fma(x, 0x1.45f306p-1, 12582912)
  h = t - 12582912
  a = fma(h, -0x1.921fb4p+0, x)
  b = h * -0x1.4442d0p-24
  r = a + b
  l = fma(h, -0x1.846988p-48, fma(h, -0x1.4442d0p-24, -b) + ((a - r) + b))
  u = r + l
  return u, (r - u) + l, (bits<i32>(t) & 1) == 1
}
frag tan_near(x: f64) -> (f64, f64, bool) {
  t = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p52)
  h = t - 0x1.8p52
  a = fma(h, -0x1.921fb54442d18p+0, x)
  b = h * -0x1.1a62633145c06p-54
  r = a + b
  l = fma(h, -0x1.c1cd129024e08p-107, fma(h, -0x1.1a62633145c06p-54, -b) + ((a - r) + b))
  u = r + l
  return u, (r - u) + l, (bits<i64>(t) & 1) == 1
}
frag quarter_turns(p: u64) -> (f32, f32, bool) {
  n = (p + 0x2000000000000000) >> 62
  r = f64(bits<i64>(p - (n << 62))) * 0x1.921fb54442d18p-62
  h = f32(r)
  return h, f32(r - f64(h)), (n & 1) == 1
}
frag quarter_turns(hi: u64, lo: u64) -> (f64, f64, bool) {
  n = (hi + 0x2000000000000000) >> 62
  r, l = radians(bits<i64>(hi - (n << 62)), lo)
  return r, l, (n & 1) == 1
}
frag tan<f32>(x: f32) -> f32 {
  fast {
    rare !(fabs(x) <= 1e5)
    r, l, odd = tan_near(x)
    return select(x == 0, x, tan_half(r, l, odd))
  }
  full {
    r, l, odd = tan_near(x)
    near = select(x == 0, x, tan_half(r, l, odd))
    r, l, odd = quarter_turns(phase(x))
    far = tan_half(r, l, odd)
    return select(fabs(x) <= 1e5, near, select(fabs(x) < inf, select(x < 0, -far, far), x - x))
  }
}
frag tan<f64>(x: f64) -> f64 {
  fast {
    rare !(fabs(x) <= 1e9)
    r, l, odd = tan_near(x)
    return select(x == 0, x, tan_half(r, l, odd))
  }
  full {
    r, l, odd = tan_near(x)
    near = select(x == 0, x, tan_half(r, l, odd))
    hi, lo = phase(x)
    r, l, odd = quarter_turns(hi, lo)
    far = tan_half(r, l, odd)
    return select(fabs(x) <= 1e9, near, select(fabs(x) < inf, select(x < 0, -far, far), x - x))
  }
}

# ---- roots of unity
# For 0 <= m <= n: the nearest multiple q of a quarter to m / n, and d with m / n = q / 4 + d / 4n, |d| <= n / 2
frag quarters(m: i64, n: i64) -> (i64, i64) {
  e = 8 * m
  q = select(e < n, i64(0), select(e < 3 * n, 1, select(e < 5 * n, 2, select(e < 7 * n, i64(3), 4))))
  return q, 4 * m - q * n
}
# r times exp(2 pi i m / n), for 0 <= m <= n < 2^59; the angle is exact but for one division, so its error is some 2^-24
# (2^-53) of itself
frag root_of_unity<T: real>(r: T, m: i64, n: i64) -> (T, T) {
  q, d = quarters(m, n)
  z = T(d) / T(n) * 0x1.921fb54442d18p+0
  s = sin_half(z)
  h = sin_half(0.5 * z)
  c = fma(-2 * h, h, 1)
  odd = (q & 1) != 0
  a = select(odd, s, c)
  b = select(odd, c, s)
  return r * select((q == 1) | (q == 2), -a, a), r * select((q == 2) | (q == 3), -b, b)
}
