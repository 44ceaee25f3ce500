# Random numbers. Every draw is a function of a key and a counter alone: Philox 4x32-10 of Salmon, Moraes, Dror and Shaw
# (2011) makes four words of a counter of four words and a key of two.

# A word is the lower half of a u64, for that is what processors multiply; the upper half of a word between rounds is
# anything.
frag low(x: u64) -> u64 { return x & 0xffffffff }
frag philox_round(a: u64, b: u64, c: u64, d: u64, k: u64, l: u64) -> (u64, u64, u64, u64) {
  p = low(a) * 0xd2511f53
  q = low(c) * 0xcd9e8d57
  return (q >> 32) ^ (b ^ k), q, (p >> 32) ^ (d ^ l), p
}
frag philox_two(a: u64, b: u64, c: u64, d: u64, k: u64, l: u64) -> (u64, u64, u64, u64, u64, u64) {
  m, n = k + 0x9e3779b9, l + 0xbb67ae85
  a, b, c, d = philox_round(a, b, c, d, k, l)
  a, b, c, d = philox_round(a, b, c, d, m, n)
  return a, b, c, d, m + 0x9e3779b9, n + 0xbb67ae85
}
frag philox(counter: i64, stream: i64, key: i64) -> (u64, u64, u64, u64) {
  a, c, k = bits<u64>(counter), bits<u64>(stream), bits<u64>(key)
  a, b, c, d, k, l = philox_two(a, a >> 32, c, c >> 32, k, k >> 32)
  a, b, c, d, k, l = philox_two(a, b, c, d, k, l)
  a, b, c, d, k, l = philox_two(a, b, c, d, k, l)
  a, b, c, d, k, l = philox_two(a, b, c, d, k, l)
  a, b, c, d, k, l = philox_two(a, b, c, d, k, l)
  return a, b, c, d
}

# Word i of those that the counters from `at` on give, of 32 and of 64 bits. Elements that share a counter compute the
# same words.
frag random32(i: i64, key: i64, at: i64, stream: i64) -> u32 {
  a, b, c, d = philox(at + (i >> 2), stream, key)
  x, y = select((i & 1) == 0, u32(a), u32(b)), select((i & 1) == 0, u32(c), u32(d))
  return select((i & 2) == 0, x, y)
}
frag random64(i: i64, key: i64, at: i64, stream: i64) -> u64 {
  a, b, c, d = philox(at + (i >> 1), stream, key)
  return select((i & 1) == 0, b << 32 | low(a), d << 32 | low(c))
}

# floor((x 2^64 + y) n / 2^128): 0 ... n - 1, each with a probability that is off by less than 2^-64 of itself. n = 0
# stands for 2^64. Words x are those of one counter for two elements. Those of the next counter, y, decide only where
# x n is within n of the next multiple of 2^64; below 2^32 the product has 96 bits. What the rare cases need is carried
# by loops, because a compiler moves what does not change out of them.
frag random_first64(i: i64, key: i64, at: i64, stream: i64) -> i64 {
  a, b, c, d = philox(at + (i >> 1 << 1), stream, key)
  return bits<i64>(select((i & 1) == 0, b << 32 | low(a), d << 32 | low(c)))
}
frag random_below(x: i64, i: i64, key: i64, at: i64, stream: i64, n: i64) -> u64 {
  x = bits<u64>(x)
  l = low(bits<u64>(n))
  t = (x >> 32) * l + (low(x) * l >> 32)
  known = n > 0 && n <= 0xffffffff && low(t) != 0xffffffff
  for k in 1 carry (r = t >> 32, sure = known, m = bits<u64>(n), done = known) until done {
    r = select(n == 0, x, mulhi(x, m))
    sure = x * m <= -m
    m = u64(0)
  }
  for k in 1 carry (r = r, m = bits<u64>(n), next = at + (i | 1), done = sure) until done {
    a, b, c, d = philox(next, stream, key)
    rest = mulhi(select((i & 1) == 0, b << 32 | low(a), d << 32 | low(c)), m)
    r = r + select(x * m + rest < rest, u64(1), 0)
    m, next = u64(0), at
  }
  return r
}

# Numbers in [0, 1): the first 24 and 53 bits
frag unit(x: u32) -> f32 { return f32(bits<i32>(x >> 8)) * 0x1p-24 }
# 52 bits below the 1 of a float, from which 1 is taken, or the number before it where the last bit is 1
frag unit(x: u64) -> f64 {
  one = bits<f64>(0x3ff0000000000000 - ((x >> 11) & 1))
  return bits<f64>((x >> 12) | 0x3ff0000000000000) - one
}

# ---- the normal distribution. normal_tails(t) = sqrt(2) erfcinv(t), the distance from 0 beyond which the two tails
# hold t; 0 <= t <= 2, infinite where t < 2^-61. With w = -log(t (2 - t)) it is (1 - t) g(w), and sqrt(w) times a smooth
# function of 1 / sqrt(w) where w is large; of random bits 3 in a million (f32) and 6 in 100,000 (f64) are so far out.
# g(w) = sqrt(pi / 2) + w h(w), h of degree 15 on [0, 12], relative error 2^-27.5; of degree 28 on [0, 9], 2^-56.6.
# Even and odd terms of h are two chains. Returns g(w) - t g(w).
frag tails_near(t: f32, w: f32) -> f32 {
  u = w - 4.5
  s = u * u
  p = fma(s, fma(s, fma(s, -0x1.96247ap-54, -0x1.5ea72cp-44), 0x1.1ba1f2p-38), 0x1.aacf02p-32)
  p = fma(s, fma(s, fma(s, p, -0x1.65247ep-25), 0x1.def964p-26), 0x1.a80d78p-13)
  p = fma(s, p, -0x1.9d0c6ap-8)
  q = fma(s, fma(s, fma(s, 0x1.3eb74ap-48, 0x1.e837eap-42), -0x1.542a1ep-34), 0x1.efbf8p-30)
  q = fma(s, fma(s, fma(s, q, 0x1.28b8e4p-22), -0x1.3eb0b2p-16), -0x1.df9ef4p-11)
  g = fma(w, fma(u, fma(u, q, p), 0x1.5d22c6p-2), 0x1.40d932p+0)
  return fma(-t, g, g)
}
frag tails_near(t: f64, w: f64) -> f64 {
  u = w - 4
  s = u * u
  p, q = fma(s, 0x1.7780ce13ae176p-85, -0x1.66a24df513feep-78), fma(s, -0x1.2905a001afe87p-89, -0x1.9804dc56557fdp-85)
  p, q = fma(s, p, 0x1.31479afacfafcp-73), fma(s, q, 0x1.5dad786a0976fp-75)
  p, q = fma(s, p, 0x1.02458728013b8p-66), fma(s, q, -0x1.e0c4f0296eca2p-69)
  p, q = fma(s, p, -0x1.88a0ebf679cf4p-60), fma(s, q, 0x1.741bb7d6fdb82p-64)
  p, q = fma(s, p, 0x1.d25a4d47ae5d4p-56), fma(s, q, 0x1.c5e055bef9c72p-58)
  p, q = fma(s, p, 0x1.ccdbb8b5a39ddp-49), fma(s, q, -0x1.456b3632e38ffp-51)
  p, q = fma(s, p, -0x1.12fd2c4385339p-42), fma(s, q, 0x1.e1ccf6de319b8p-48)
  p, q = fma(s, p, 0x1.e9573dd82e1fbp-41), fma(s, q, 0x1.cc78c0a58f6b6p-40)
  p, q = fma(s, p, 0x1.c9103eadcfe25p-31), fma(s, q, -0x1.cda548bb8e37dp-34)
  p, q = fma(s, p, -0x1.7dd16c3280910p-25), fma(s, q, -0x1.85e3cfd624e39p-31)
  p, q = fma(s, p, -0x1.13599734d44bap-20), fma(s, q, 0x1.cc0dbd38be313p-22)
  p, q = fma(s, p, 0x1.f63644d966089p-13), fma(s, q, -0x1.2b4895db39c8fp-16)
  p, q = fma(s, p, -0x1.568999fd8f420p-8), fma(s, q, -0x1.46b95b60b18d3p-10)
  g = fma(w, fma(u, fma(u, q, p), 0x1.6019fc0c2fde5p-2), 0x1.40d931ff62706p+0)
  return fma(-t, g, g)
}
# The distance is r (sqrt(2) + k), r = sqrt(w), k by 1 / r: from 0.154 to 1 / sqrt(12), of degree 7, relative error of
# the distance 2^-32.5; to 1/3, of degree 20, 2^-56.4.
frag tails_far(r: f32) -> f32 {
  u = 1 / r - 0.22
  p = fma(u, fma(u, fma(u, 0x1.21f4d6p+3, -0x1.555f6p+2), 0x1.05ca72p+1), -0x1.7bb146p+0)
  p = fma(u, fma(u, fma(u, p, 0x1.e3e5acp-1), 0x1.26463cp-5), -0x1.23aeb4p-2)
  return fma(r, 0x1.6a09e6p+0, r * fma(u, p, -0x1.8a7f2cp-5))
}
frag tails_far(r: f64) -> f64 {
  u = 1 / r - 0.25
  p = fma(u, fma(u, -0x1.891fe40e60875p+35, -0x1.84c142451758dp+32), 0x1.81f6bed837731p+31)
  p = fma(u, fma(u, p, 0x1.4079615d286cbp+28), -0x1.bc53f4dbc2970p+26)
  p = fma(u, fma(u, p, -0x1.0e4d8904c689fp+23), 0x1.a046d65bf6b8ap+21)
  p = fma(u, fma(u, p, 0x1.9699d4d78fc4fp+17), -0x1.6c955b0b01bf7p+16)
  p = fma(u, fma(u, p, -0x1.9d068b09b08abp+12), 0x1.034042970e44dp+11)
  p = fma(u, fma(u, p, 0x1.7c3572acc2e4bp+8), -0x1.5a5b944dfeeb5p+5)
  p = fma(u, fma(u, p, -0x1.9297a85d403f1p+2), -0x1.1c3c6a08c6bf8p+2)
  p = fma(u, fma(u, p, 0x1.451033141047cp+0), -0x1.3cb72e46042dcp+0)
  p = fma(u, fma(u, p, 0x1.90dcc681ce49bp-1), 0x1.d0bedd32b3819p-4)
  return fma(r, 0x1.6a09e667f3bcdp+0, r * fma(u, fma(u, p, -0x1.1f04c5704f1a4p-2), -0x1.d0094bf8691d1p-5))
}
frag normal_edges<T: real>(s: T, v: T, z: T) -> T {
  return select(s < 0x1p-60, select(s >= 0, copysign(inf, v), nan), z)
}
frag normal_tails<T: real>(t: T, limit: T) -> T {
  s = t * (2 - t)
  w = -log(s)
  z = tails_near(t, w)
  fast {
    rare !(w < limit)
    return z
  }
  full {
    far = copysign(tails_far(sqrt(w)), 1 - t)
    return normal_edges(s, 1 - t, select(w < limit, z, far))
  }
}
frag normal_tails(t: f32) -> f32 { return normal_tails(t, 12) }
frag normal_tails(t: f64) -> f64 { return normal_tails(t, 9) }

# Half a unit more than 31 bits, in (0, 1], and than 52 bits, in (0, 1): those of f64 are exact.
frag inside_unit(x: u32) -> f32 { return fma(f32(bits<i32>(x)), 0x1p-31, 0x1p-32) }
frag inside_unit(x: u64) -> f64 { return bits<f64>(x | 0x3ff0000000000000) - 0x1.fffffffffffffp-1 }

# log x for x > 0 that is not beyond the normal numbers
frag log_inside<T: real>(x: T) -> T {
  f, k = log_parts(x)
  return log_sum(f, k)
}

# Both tails of half a unit more than the last bits, with the sign of the first. No t is 0.
frag half_tails(x: u32) -> f32 { return inside_unit(x & 0x7fffffff) }
frag half_tails(x: u64) -> f64 { return inside_unit((x << 1) >> 12) }
frag with_sign_of(z: f32, x: u32) -> f32 { return bits<f32>(bits<u32>(z) ^ (x & 0x80000000)) }
frag with_sign_of(z: f64, x: u64) -> f64 { return bits<f64>(bits<u64>(z) ^ (x & 0x8000000000000000)) }
# normal_tails(t) for the t of half_tails, which have no edges
frag tails_inside<T: real>(t: T, limit: T) -> T {
  w = -log_inside(t * (2 - t))
  z = tails_near(t, w)
  fast {
    rare !(w < limit)
    return z
  }
  full { return select(w < limit, z, tails_far(sqrt(w))) }
}
frag normal(x: u32) -> f32 { return with_sign_of(tails_inside(half_tails(x), 12), x) }
frag normal(x: u64) -> f64 { return with_sign_of(tails_inside(half_tails(x), 9), x) }
# The exponential distribution: minus the logarithm of half a unit more than the first bits
frag first_bits(x: u32) -> f32 { return inside_unit(x >> 1) }
frag first_bits(x: u64) -> f64 { return inside_unit(x >> 12) }
frag exponential(x: u32) -> f32 { return -log_inside(first_bits(x)) }
frag exponential(x: u64) -> f64 { return -log_inside(first_bits(x)) }

# ---- pairs of normal numbers, by Box and Muller (1958): one word makes the distance from (0, 0), sqrt(-2 log u), and
# one the direction. The first bit of the distance's word turns both by half a circle, and the last of the direction's
# exchanges the two; the other bits are an angle around the first axis, in quarters of pi. It takes half the operations
# of the inverse distribution function, of which neighbours share nothing. No u is 0 or 1: -log u is from 2^-53 to 37.
frag below_one(x: u32) -> f32 { return fma(f32(bits<i32>(x & 0x7fffffff)), 0x1.fffffep-32, 0x1p-32) }
frag below_one(x: u64) -> f64 { return half_tails(x) }
frag direction(x: u32) -> f32 { return f32(bits<i32>(x)) * 0x1p-31 }
frag direction(x: u64) -> f64 { return bits<f64>((x >> 12) | 0x4000000000000000) - 3 }
# sqrt(2) cos(t pi / 4) and sqrt(2) sin(t pi / 4) for |t| <= 1, the latter t + t p: by polynomials of t^2 of degree 4
# and 3, relative error 2^-25.8; of degree 7 and 6, 2^-56.8.
frag sides(t: f32) -> (f32, f32) {
  s = t * t
  c = fma(s, fma(s, fma(s, 0x1.2917ccp-18, -0x1.e1f8d6p-12), 0x1.6f55fp-6), -0x1.bea5a2p-2)
  p = fma(s, fma(s, fma(s, -0x1.aa7ad4p-15, 0x1.cd8e5p-9), -0x1.d3ba3ep-4), 0x1.c5831ap-4)
  return fma(s, c, 0x1.6a09e6p+0), fma(t, p, t)
}
frag sides(t: f64) -> (f64, f64) {
  s = t * t
  c = fma(s, fma(s, -0x1.33476b42cb2a7p-41, 0x1.65a79a35db731p-33), -0x1.2afa99b5c174fp-25)
  c = fma(s, fma(s, fma(s, c, 0x1.54cb8f4d1aa97p-18), -0x1.e36ab0c135630p-12), 0x1.6f5a49b297e00p-6)
  p = fma(s, fma(s, 0x1.562546c9dd9a2p-37, -0x1.5588762a35a29p-29), 0x1.dbd6f63f609d5p-22)
  p = fma(s, fma(s, fma(s, p, -0x1.b1e9f347782fcp-15), 0x1.cda106381d266p-9), -0x1.d3ba5c1c5f45bp-4)
  p = fma(s, p, 0x1.c5831add62e42p-4)
  return 1.5 + fma(s, fma(s, c, -0x1.bea5b6072b262p-2), -0x1.5f619980c4337p-4), fma(t, p, t)
}
# The number i of the pair that two words make
frag normal_of(i: i64, x: u32, y: u32) -> f32 {
  r = with_sign_of(sqrt_inside(-log_inside(below_one(x))), x)
  c, s = sides(direction(y))
  kept = (y & 1) == 0
  return select((i & 1) == 0, r * select(kept, c, s), r * select(kept, s, c))
}
frag normal_of(i: i64, x: u64, y: u64) -> f64 {
  r = with_sign_of(sqrt_inside(-log_inside(below_one(x))), x)
  c, s = sides(direction(y))
  kept = (y & 1) == 0
  return select((i & 1) == 0, r * select(kept, c, s), r * select(kept, s, c))
}
frag random_normal32(i: i64, key: i64, at: i64, stream: i64) -> f32 {
  a, b, c, d = philox(at + (i >> 2), stream, key)
  first = ((i >> 1) & 1) == 0
  return normal_of(i, select(first, u32(a), u32(c)), select(first, u32(b), u32(d)))
}
frag random_normal64(i: i64, key: i64, at: i64, stream: i64) -> f64 {
  a, b, c, d = philox(at + (i >> 1), stream, key)
  return normal_of(i, b << 32 | low(a), d << 32 | low(c))
}
