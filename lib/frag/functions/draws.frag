# Random numbers by rejection. Element i takes attempt after attempt, each with the 128 bits of a counter of its own,
# until one is accepted, so its counters do not depend on other elements; there is an end after 15 or 31 attempts.

frag two_words<f32>(a: u64, b: u64, c: u64, d: u64) -> (u32, u32) { return u32(a), u32(b) }
frag two_words<f64>(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) { return b << 32 | low(a), d << 32 | low(c) }
# exp x that is not beyond the normal numbers
frag exp_inside<T: real>(x: T) -> T {
  p, t = exp_parts(x)
  return scale<T>(p, t)
}

# ---- the gamma distribution, by Marsaglia and Tsang (2000): d (1 + c z)^3 for a normal z, d = shape - 1/3 and
# c = 1 / sqrt(9 d), accepted with the probability exp(bound). More than 0.95 of the attempts are. For shapes below 1 it
# is that of the shape + 1 times exp(-e), e exponential over the shape. Returns d (1 + c z)^3 and e; 15 attempts fail
# with a probability below 2^-64, and give d.
frag gamma_attempt<T: real>(z: T, u: T, d: T, c: T) -> (T, bool) {
  y = c * z
  w = y * (3 + y * (3 + y))
  inside = w > -1
  v = select(inside, w, 1)
  bound = 0.5 * z * z + d * (log1p_near(v) - v)
  return d * (1 + w), inside && log_inside(u) < bound
}
frag gamma_center<T: real>(shape: T) -> T { return select(shape < 1, shape + 1, shape) - 0x1.5555555555555p-2 }
frag gamma_excess<T: real>(key: i64, at: i64, stream: i64, shape: T) -> T {
  for k in 1 carry (e = T(0), done = shape >= 1) until done {
    a, b, c, d = philox(at, stream, key)
    v, w = two_words<T>(a, b, c, d)
    e = -log_inside(first_bits(v)) / shape
  }
  return e
}
frag gamma_parts<T: real>(key: i64, at: i64, stream: i64, shape: T, limit: T) -> (T, T) {
  center = gamma_center(shape)
  scale = 1 / sqrt(9 * center)
  e = gamma_excess(key, at + 15, stream, shape)
  fast {
    for k in 15 carry (x = center, odd = false, done = false) until done {
      a, b, c, d = philox(at + i64(k), stream, key)
      v, u = two_words<T>(a, b, c, d)
      t = half_tails(v)
      w = -log_inside(t * (2 - t))
      z = with_sign_of(tails_near(t, w), v)
      odd = odd || !(w < limit)
      y, done = gamma_attempt(z, first_bits(u), center, scale)
      x = select(done, y, x)
    }
    rare odd
    return x, e
  }
  full {
    for k in 15 carry (x = center, done = false) until done {
      a, b, c, d = philox(at + i64(k), stream, key)
      v, u = two_words<T>(a, b, c, d)
      y, done = gamma_attempt(normal(v), first_bits(u), center, scale)
      x = select(done, y, x)
    }
    return x, e
  }
}
frag gamma_parts(key: i64, at: i64, stream: i64, shape: f32) -> (f32, f32) {
  x, e = gamma_parts(key, at, stream, shape, 12)
  return x, e
}
frag gamma_parts(key: i64, at: i64, stream: i64, shape: f64) -> (f64, f64) {
  x, e = gamma_parts(key, at, stream, shape, 9)
  return x, e
}
frag random_gamma<T: real>(i: i64, key: i64, at: i64, stream: i64, shape: T) -> T {
  x, e = gamma_parts(key, at + (i << 4), stream, shape)
  return x * exp(-e)
}

# x / (x + y) for numbers x, y of gamma distributions of the shapes a and b. Below 2^-100 its numbers are 0 and 1 for
# any b / a, so both are multiplied until their exponentials are finite; the lesser exponential becomes 1.
frag random_beta<T: real>(i: i64, key: i64, at: i64, stream: i64, a: T, b: T) -> T {
  most = select(a > b, a, b)
  times = select(most < 0x1p-100, 0x1p-100 / most, 1)
  x, e = gamma_parts(key, at + (i << 5), stream, a * times)
  y, f = gamma_parts(key, at + (i << 5) + 16, stream, b * times)
  least = select(e < f, e, f)
  x = x * exp(least - e)
  y = y * exp(least - f)
  return x / (x + y)
}

# ---- masses of discrete distributions, by Loader's saddle-point expansion: k! is k^k exp(-k) sqrt(2 pi k) exp(rest)
table factorial_rests: f64 = { 0, 0x1.4c071bcda0a5bp-4, 0x1.52a9b923ea649p-5, 0x1.c579a268d80b3p-6,
  0x1.54a2662fd78a9p-6, 0x1.10b4e513fcbedp-6, 0x1.c6b167bebdf36p-7, 0x1.85d4d612e4a86p-7, 0x1.552805e7b3076p-7 }
frag factorial_rest(k: f64) -> f64 {
  small = k >= 0 && k < 9
  return select(small, factorial_rests[i32(select(small, k, 0))], stirling_rest(select(small, 9, k)))
}
# k log(k / mean) + mean - k, whose k - mean is `off`
frag deviance(k: f64, off: f64, mean: f64) -> f64 {
  x = select(k < 1, 0, off / mean)
  return select(k < 1, mean, mean * ((1 + x) * log1p_near(x) - x))
}
# the k in sqrt(2 pi k), for which there is 1 if k is 0
frag under_root(k: f64) -> f64 { return select(k < 1, 0x1.45f306dc9c883p-3, k) }
# Hormann's transformed rejection (1993): an attempt at k from the two words of a counter, with the uniform number that
# accepts it, and the density of the hat there. sure: accepted without a look at the mass.
frag transformed(u: u64, v: u64, a: f64, b: f64, c: f64, sure: f64) -> (f64, f64, bool) {
  x = first_bits(u) - 0.5
  s = 0.5 - fabs(x)
  y = first_bits(v)
  k = floor((2 * a / s + b) * x + c)
  return k, y / (a / (s * s) + b), s >= 0.07 && y <= sure
}
frag whole(k: f64) -> i64 {
  inside = k >= 0 && k < 0x1p63
  return select(inside, i64(select(inside, k, 0)), -1)
}

# ---- the Poisson distribution: below a mean of 10 by its distribution function, above by rejection, which accepts 0.7
# of the attempts or more
frag poisson_small(u: f64, mean: f64, small: bool) -> f64 {
  p = exp_inside(-select(small, mean, 0))
  for j in 80 carry (k = f64(0), p = p, rest = u - p, done = !small || u <= p) until done {
    k = k + 1
    p = p * (mean / k)
    done = rest <= p
    rest = rest - p
  }
  return k
}
frag poisson_large(key: i64, at: i64, stream: i64, mean: f64, small: bool) -> f64 {
  r = sqrt(mean)
  b = 0.931 + 2.53 * r
  a = 0.02483 * b - 0.059
  hat = 1.1239 + 1.1328 / (b - 3.4)
  sure = 0.9277 - 3.6224 / (b - 2)
  for j in 31 carry (k = floor(mean), done = small) until done {
    c0, c1, c2, c3 = philox(at + i64(j), stream, key)
    u, v = two_words<f64>(c0, c1, c2, c3)
    n, y, done = transformed(u, v, a, b, mean + 0.43, sure)
    inside = n >= 0
    m = select(inside, n, 0)
    mass = -deviance(m, m - mean, mean) - factorial_rest(m)
    done = done || inside && log_inside(y * hat * sqrt(0x1.921fb54442d18p+2 * under_root(m))) <= mass
    k = select(done, n, k)
  }
  return k
}
frag random_poisson(i: i64, key: i64, at: i64, stream: i64, mean: f64) -> i64 {
  from = at + (i << 5)
  small = mean < 10
  a, b, c, d = philox(from + 31, stream, key)
  u, v = two_words<f64>(a, b, c, d)
  few = poisson_small(first_bits(u), mean, small)
  many = poisson_large(key, from, stream, select(small, 10, mean), small)
  return whole(select(mean >= 0, select(small, few, many), -1))
}

# ---- the binomial distribution of n and p <= 1/2, likewise by n p
frag binomial_small(u: f64, n: f64, p: f64, small: bool) -> f64 {
  m = exp_inside(select(small, n * log1p_near(-p), 0))
  odds = p / (1 - p)
  for j in 80 carry (k = f64(0), m = m, rest = u - m, done = !small || u <= m) until done {
    m = m * (odds * ((n - k) / (k + 1)))
    k = k + 1
    done = rest <= m || k >= n
    rest = rest - m
  }
  return k
}
# minus the logarithm of the mass at k, without what does not depend on k, and without the roots
frag binomial_deviance(n: f64, k: f64, mean: f64, other: f64) -> f64 {
  off = k - mean
  return deviance(k, off, mean) + deviance(n - k, -off, other) + factorial_rest(k) + factorial_rest(n - k)
}
frag binomial_large(key: i64, at: i64, stream: i64, n: f64, p: f64, small: bool) -> f64 {
  mean = n * p
  other = n * (1 - p)
  r = sqrt(mean * (1 - p))
  b = 1.15 + 2.53 * r
  a = 0.0248 * b + (0.01 * p - 0.0873)
  hat = (2.83 + 5.1 / b) * r
  sure = 0.92 - 4.2 / b
  mode = floor((n + 1) * p)
  most = binomial_deviance(n, mode, mean, other)
  root = 1 / (under_root(mode) * under_root(n - mode))
  for j in 31 carry (k = mode, done = small) until done {
    c0, c1, c2, c3 = philox(at + i64(j), stream, key)
    u, v = two_words<f64>(c0, c1, c2, c3)
    x, y, done = transformed(u, v, a, b, mean + 0.5, sure)
    inside = x >= 0 && x <= n
    x = select(inside, x, mode)
    mass = most - binomial_deviance(n, x, mean, other)
    level = y * hat * sqrt(under_root(x) * under_root(n - x) * root)
    done = inside && (done || log_inside(level) <= mass)
    k = select(done, x, k)
  }
  return k
}
frag random_binomial(i: i64, key: i64, at: i64, stream: i64, n: i64, p: f64) -> i64 {
  from = at + (i << 5)
  count = f64(n)
  flipped = p > 0.5
  q = select(flipped, 1 - p, p)
  small = count * q < 10
  a, b, c, d = philox(from + 31, stream, key)
  u, v = two_words<f64>(a, b, c, d)
  few = binomial_small(first_bits(u), count, q, small)
  many = binomial_large(key, from, stream, select(small, 20, count), select(small, 0.5, q), small)
  k = whole(select(small, few, many))
  known = n >= 0 && p >= 0 && p <= 1 && k >= 0
  return select(known, select(flipped, n - k, k), -1)
}

# ---- the von Mises distribution of the concentration kappa, by Best and Fisher (1979): an angle of a wrapped Cauchy
# distribution, accepted with the ratio of the densities; more than 0.65 of the attempts are. Its hat has the parameter
# s = 1 + excess; with the tangent q of half the angle of a random point of the circle, the cosine w of the attempt is
# such that 1 - w = 2 excess q^2 / (excess (1 + q^2) + 2), and tan(angle / 2) = q sqrt(excess / (excess + 2)).
frag vonmises_excess<T: real>(kappa: T) -> T {
  root = select(kappa > 0x1p40, 2 * kappa, sqrt(1 + 4 * kappa * kappa))
  r = sqrt(1 + root)
  below = r + 0x1.6a09e667f3bcdp+0
  rho = 2 * kappa * r / (below * (root + 1))
  rest = (r * (1 + 1 / (root + 2 * kappa)) + 0x1.6a09e667f3bcdp+0 * (root + 1)) / (below * (root + 1))
  return rest * rest / (2 * rho)
}
frag tan_quarter<T: real>(u: T) -> T {
  low = u < 0.5
  x = select(low, u, 1 - u) * 0x1.921fb54442d18p+0
  q = fma(x * x * x, tan_poly(x * x), x)
  return select(low, q, 1 / q)
}
frag random_vonmises<T: real>(i: i64, key: i64, at: i64, stream: i64, kappa: T) -> T {
  k = select(kappa < 0x1p-27, 0x1p-27, kappa)
  excess = vonmises_excess(k)
  for j in 63 carry (x = T(0), done = false) until done {
    a, b, c, d = philox(at + (i << 6) + i64(j), stream, key)
    u, v = two_words<T>(a, b, c, d)
    q = tan_quarter(first_bits(u))
    y = k * (excess + 2 * excess * q * q / (excess * (1 + q * q) + 2))
    done = log_inside(y / first_bits(v)) + 1 - y >= 0
    x = select(done, select((a & 1) == 0, q, -q), x)
  }
  return 2 * atan(x * sqrt(excess / (excess + 2)))
}

# ---- the zeta distribution, by rejection from floor(y^(-1 / (a - 1))) (Devroye, 1986, X.6.1), y so that no number is
# 2^63 or more; more than 0.69 of the attempts are accepted
frag random_zipf(i: i64, key: i64, at: i64, stream: i64, a: f64) -> i64 {
  known = a > 1
  e = select(known && a < 1000, a - 1, 999)
  least = expm1_normal(select(e < 16, -e * 0x1.5d589f2fe5107p+5, -0x1.5d589f2fe5107p+9))
  b = exp_inside(e * 0x1.62e42fefa39efp-1)
  for j in 63 carry (k = f64(1), done = !(a < 1000)) until done {
    c0, c1, c2, c3 = philox(at + (i << 6) + i64(j), stream, key)
    u, v = two_words<f64>(c0, c1, c2, c3)
    x = floor(exp_inside(log1p_near(first_bits(u) * least) / -e))
    inside = x >= 1 && x < 0x1p63
    x = select(inside, x, 1)
    t = e * log1p_near(1 / x)
    done = inside && first_bits(v) * x * expm1_normal(t) * b <= exp_inside(t) * expm1_normal(e * 0x1.62e42fefa39efp-1)
    k = select(done, x, k)
  }
  return select(known, whole(k), -1)
}

# ---- the hypergeometric distribution: of n, g are of one kind and s are taken, s <= g <= n / 2. Below a mean of 10 by
# its distribution function, above by the ratio of uniform numbers (Stadlober, 1989), which accepts 0.5 or more.
frag hypergeometric_small(u: f64, n: f64, g: f64, s: f64, small: bool) -> f64 {
  m = n - g
  left = select(m <= s, 0, s / m)
  rests = (factorial_rest(m) - factorial_rest(m - s)) + (factorial_rest(n - s) - factorial_rest(n))
  root = under_root(m) / under_root(m - s) * (under_root(n - s) / under_root(n))
  w = s * log1p_near(-g / n) + ((n - s) * log1p_near(-s / n) - (m - s) * log1p_near(-left)) + rests
  p = exp_inside(select(small, w, 0)) * sqrt(root)
  for j in 80 carry (k = f64(0), p = p, rest = u - p, done = !small || u <= p) until done {
    p = p * ((g - k) / (k + 1) * ((s - k) / (m - s + k + 1)))
    k = k + 1
    done = rest <= p || k >= s
    rest = rest - p
  }
  return k
}
# minus the logarithm of the mass at k, without what does not depend on k, and without the roots: by three masses of
# binomial distributions of the probability s / n
frag hypergeometric_deviance(n: f64, g: f64, s: f64, k: f64) -> f64 {
  p, q = s / n, (n - s) / n
  return binomial_deviance(g, k, g * p, g * q) + binomial_deviance(n - g, s - k, (n - g) * p, (n - g) * q)
}
frag hypergeometric_roots(n: f64, g: f64, s: f64, k: f64) -> f64 {
  return under_root(k) * under_root(g - k) * (under_root(s - k) * under_root(n - g - s + k))
}
frag hypergeometric_large(key: i64, at: i64, stream: i64, n: f64, g: f64, s: f64, small: bool) -> f64 {
  mean = g * (s / n)
  h = 0x1.b72cd3f331398p+0 * sqrt(mean * ((n - g) / n) * ((n - s) / (n - 1)) + 0.5) + 0x1.cc3ebd3bc711ap-1
  mode = floor((s + 1) * ((g + 1) / (n + 2)))
  most = hypergeometric_deviance(n, g, s, mode)
  roots = hypergeometric_roots(n, g, s, mode)
  for j in 63 carry (k = mode, done = small) until done {
    c0, c1, c2, c3 = philox(at + i64(j), stream, key)
    u, v = two_words<f64>(c0, c1, c2, c3)
    y = first_bits(u)
    x = floor(mean + 0.5 + h * (first_bits(v) - 0.5) / y)
    inside = x >= 0 && x <= s
    x = select(inside, x, mode)
    level = y * y * sqrt(hypergeometric_roots(n, g, s, x) / roots)
    done = inside && log_inside(level) <= most - hypergeometric_deviance(n, g, s, x)
    k = select(done, x, k)
  }
  return k
}
frag random_hypergeometric(i: i64, key: i64, at: i64, stream: i64, good: i64, bad: i64, sample: i64) -> i64 {
  from = at + (i << 6)
  known = good >= 0 && bad >= 0 && sample >= 0 && good < 0x10000000000000 && bad < 0x10000000000000
  known = known && sample <= good + bad
  a, b, t = f64(select(known, good, 1)), f64(select(known, bad, 1)), f64(select(known, sample, 1))
  n = a + b
  least = select(a < b, a, b)
  half = select(t + t > n, n - t, t)
  g = select(least < half, half, least)
  s = select(least < half, least, half)
  some = n > 0
  n = select(some, n, 2)
  small = g * (s / n) < 10
  c0, c1, c2, c3 = philox(from + 63, stream, key)
  u, v = two_words<f64>(c0, c1, c2, c3)
  few = hypergeometric_small(first_bits(u), n, select(some, g, 1), s, small)
  n, g, s = select(small, 200, n), select(small, 100, g), select(small, 50, s)
  many = hypergeometric_large(key, from, stream, n, g, s, small)
  k = select(small, few, many)
  k = select(a > b, half - k, k)
  k = select(half < t, a - k, k)
  return select(known, whole(k), -1)
}
