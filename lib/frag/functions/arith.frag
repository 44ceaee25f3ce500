# Arithmetic of real types: the correctly rounded operations, rounding to integers, sign and order of magnitude.
# Integer arithmetic that needs guards is in int.frag.

frag add<T: num>(a: T, b: T) -> T { return a + b }
frag subtract<T: num>(a: T, b: T) -> T { return a - b }
frag multiply<T: num>(a: T, b: T) -> T { return a * b }
frag divide<T: real>(a: T, b: T) -> T { return a / b }
frag fma<T: real>(a: T, b: T, c: T) -> T { return fma(a, b, c) }
frag negative<T: num>(x: T) -> T { return -x }
frag positive<T: num>(x: T) -> T { return x }
frag square<T: num>(x: T) -> T { return x * x }
frag reciprocal<T: real>(x: T) -> T { return 1 / x }
frag sqrt<T: real>(x: T) -> T { return sqrt(x) }
frag rsqrt<T: real>(x: T) -> T { return 1 / sqrt(x) }
frag abs<T: real>(x: T) -> T { return fabs(x) }
frag abs<T: sint>(x: T) -> T { return select(x < 0, -x, x) }
frag abs<T: uint>(x: T) -> T { return x }
frag sign<T: real>(x: T) -> T { return select(x > 0, 1, select(x < 0, -1, select(x == 0, 0, x))) }
frag sign<T: sint>(x: T) -> T { return select(x > 0, 1, select(x < 0, -1, x)) }
frag sign<T: uint>(x: T) -> T { return select(x > 0, 1, x) }

frag floor<T: real>(x: T) -> T { return floor(x) }
frag ceil<T: real>(x: T) -> T { return ceil(x) }
frag trunc<T: real>(x: T) -> T { return trunc(x) }
frag round<T: real>(x: T) -> T { return rint(x) }
frag floor<T: int>(x: T) -> T { return x }
frag ceil<T: int>(x: T) -> T { return x }
frag trunc<T: int>(x: T) -> T { return x }
frag round<T: int>(x: T) -> T { return x }

frag real<T: any>(x: T) -> T { return x }
frag conj<T: any>(x: T) -> T { return x }
frag imag<T: real>(x: T) -> T { return select(x == x, 0, 0 * x) }
frag imag<T: int>(x: T) -> T { return x ^ x }

# the magnitude of a with the sign bit of b
frag copysign<f32>(a: f32, b: f32) -> f32 {
  return bits<f32>((bits<u32>(a) & 0x7fffffff) | (bits<u32>(b) & 0x80000000))
}
frag copysign<f64>(a: f64, b: f64) -> f64 {
  return bits<f64>((bits<u64>(a) & 0x7fffffffffffffff) | (bits<u64>(b) & 0x8000000000000000))
}

# a / b for many a beside one b, so that all that is made of b alone leaves the loop. With r = 1 / b rounded to nearest
# and q = a r, q + (a - q b) r rounds to a / b (Markstein) where the remainder is exact: b is normal and neither r nor
# the quotient is nearly subnormal, nor a. A zero takes its sign from q.
frag divide_by<f32>(a: f32, b: f32) -> f32 {
  fast {
    d = fabs(b)
    r = 1 / select((d > 0) & (d < 0x1p-126), copysign(0x1p-126, b), b)
    low = 0x1p-100 * fabs(r)
    least = select((d >= 0x1p-126) & (d <= 0x1p126), select(low > 0x1p-124, low, 0x1p-124), nan)
    q = a * r
    some = a != 0
    y = select(some, fma(fma(-q, b, a), r, q), q)
    rare some & !(fabs(y) >= least)
    return y
  }
  full { return a / b }
}
frag divide_by<f64>(a: f64, b: f64) -> f64 {
  fast {
    d = fabs(b)
    r = 1 / select((d > 0) & (d < 0x1p-1022), copysign(0x1p-1022, b), b)
    low = 0x1p-967 * fabs(r)
    least = select((d >= 0x1p-1022) & (d <= 0x1p1022), select(low > 0x1p-1020, low, 0x1p-1020), nan)
    q = a * r
    some = a != 0
    y = select(some, fma(fma(-q, b, a), r, q), q)
    rare some & !(fabs(y) >= least)
    return y
  }
  full { return a / b }
}

# The next value from a towards b. Bits of one sign are ordered as integers; from 0 the step is the smallest subnormal.
frag nextafter<f32>(a: f32, b: f32) -> f32 {
  i = bits<i32>(a)
  away = (a < b) == (a > 0)
  y = bits<f32>(select(away, i + 1, i - 1))
  y = select(a == 0, bits<f32>((bits<i32>(b) & 0x80000000) | 1), y)
  return select(a == b, b, select((a == a) & (b == b), y, a + b))
}
frag nextafter<f64>(a: f64, b: f64) -> f64 {
  i = bits<i64>(a)
  away = (a < b) == (a > 0)
  y = bits<f64>(select(away, i + 1, i - 1))
  y = select(a == 0, bits<f64>((bits<i64>(b) & 0x8000000000000000) | 1), y)
  return select(a == b, b, select((a == a) & (b == b), y, a + b))
}

# sqrt(a^2 + b^2); an infinity wins over NaN. Three roundings in f32: below 1.21 ulp, exact where the squares and their
# sum are, or one operand is zero. Where that sum may have lost bits to underflow, or has overflowed, a power of two
# scales both; zeros need none.
frag hypot(a: f32, b: f32) -> f32 {
  w = a * a + b * b
  fast {
    rare ((w < 0x1p-100) | !(w < inf)) & (((bits<u32>(a) | bits<u32>(b)) & 0x7fffffff) != 0)
    return sqrt(w)
  }
  full {
    tiny = w < 0x1p-100
    big = !(w < inf)
    k = select(big, 0x1p-68, select(tiny, 0x1p100, f32(1)))
    x = a * k
    y = b * k
    r = sqrt(x * x + y * y) * select(big, 0x1p68, select(tiny, 0x1p-100, f32(1)))
    return select((fabs(a) == inf) | (fabs(b) == inf), inf, r)
  }
}
frag hypot(a: f64, b: f64) -> f64 {
  x = fabs(a)
  y = fabs(b)
  big = (x > 0x1p500) | (y > 0x1p500)
  tiny = (x < 0x1p-500) & (y < 0x1p-500)
  k = select(big, 0x1p-600, select(tiny, 0x1p600, f64(1)))
  u = select(x > y, x, y) * k
  v = select(x > y, y, x) * k
  s = u * u
  q = v * v
  w = s + q
  r = sqrt(w)
  r = r + select(w > 0, (fma(-r, r, w) + (((s - w) + q) + fma(u, u, -s) + fma(v, v, -q))) / (2 * r), 0)
  r = r * select(big, 0x1p600, select(tiny, 0x1p-600, f64(1)))
  return select((x == inf) | (y == inf), inf, select((x != x) | (y != y), a + b, r))
}

# C's fmod: a - trunc(a / b) b exactly. Where the quotient has fewer bits than a float it is one step; the loop takes 22
# (50) bits of the quotient at a time, from the top, with b scaled by powers of 2.
frag fmod_step<T: real>(r: T, b: T) -> T {
  q = trunc(r / b)
  y = fma(-q, b, r)
  return select(y < 0, y + b, y)
}
frag fmod<f32>(a: f32, b: f32) -> f32 {
  fast {
    x = fabs(a)
    d = fabs(b)
    rare !((d >= 0x1p-126) & (d < inf) & (x <= d * 0x1p22))
    return copysign(fmod_step(x, d), a)
  }
  full { return f32(fmod_wide(f64(a), f64(b))) }
}
frag fmod_wide(a: f64, b: f64) -> f64 {
  d = fabs(b)
  for k in 6 carry (r = fabs(a)) {
    s = d * bits<f64>(i64(1273 - 50 * k) << 52)
    r = select(r >= s, fmod_step(r, s), r)
  }
  return select((d > 0) & (fabs(a) < inf), select(d < inf, copysign(r, a), a), (a - a) * inf)
}
frag fmod<f64>(a: f64, b: f64) -> f64 {
  fast {
    x = fabs(a)
    d = fabs(b)
    rare !((d >= 0x1p-1022) & (d < inf) & (x <= d * 0x1p50))
    return copysign(fmod_step(x, d), a)
  }
  full {
    d = fabs(b)
    for k in 42 carry (r = fabs(a)) {
      e = 50 * (41 - k)
      f = bits<f64>(i64((e >> 2) + 1023) << 52)
      s = d * f * f * f * f * bits<f64>(i64((e & 3) + 1023) << 52)
      r = select(r >= s, fmod_step(r, s), r)
    }
    ok = (d > 0) & (fabs(a) < inf) & (d == d)
    return select(ok, select(d < inf, copysign(r, a), a), (a - a) * inf + b)
  }
}

# The array API's remainder and floor division: the sign of the divisor, exact infinities.
frag remainder<T: real>(a: T, b: T) -> T {
  r = fmod(a, b)
  y = select(r == 0, copysign(r, b), select((r < 0) != (b < 0), r + b, r))
  return select((fabs(r) > 0) & (fabs(b) == inf), select((a < 0) != (b < 0), b, a), y)
}
# floor((a - remainder) / b), whose quotient is an integer but for its rounding
frag floor_divide<T: real>(a: T, b: T) -> T {
  r = fmod(a, b)
  q = (a - r) / b
  n = rint(q)
  n = select((r != 0) & ((r < 0) != (b < 0)), n - 1, n)
  z = select(n == 0, copysign(n, a / b), n)
  tiny = (fabs(b) == inf) & (fabs(a) < inf)
  edge = (b == 0) | (fabs(a) == inf)
  return select(edge, select(fabs(b) < inf, a / b, (a - a) * inf), select(tiny, a / b, z))
}

# log(e^a + e^b). What cancels against the greater operand is lost: the error is bounded relative to max(|a|, |b|, 1).
frag logaddexp<f64>(a: f64, b: f64) -> f64 {
  m = select(a > b, a, b)
  d = fabs(a - b)
  return select(a == b, a + 0x1.62e42fefa39efp-1, select(d < inf, m + log1p_near(exp(-d)), select(d == d, m, a + b)))
}
frag logaddexp<f32>(a: f32, b: f32) -> f32 { return f32(logaddexp(f64(a), f64(b))) }
