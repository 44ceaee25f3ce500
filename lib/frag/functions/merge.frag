# Merges of reduction states that are more than one value (those of arg-reductions are in compare.frag).
# Every merge gives the same bits either way round.

# (max, sum of exp(x - max)); (-inf, 0) is the identity
frag logsumexp<T: real>(m: T, s: T, n: T, t: T) -> (T, T) {
  k = maximum(m, n)
  z = select(fabs(k) == inf, 0, k)
  a = select(m == k, 1, exp(m - z))
  b = select(n == k, 1, exp(n - z))
  return k, s * a + t * b
}
# Products of a reduction. A complex 1 is no identity of c.multiply (it spoils infinities and signs of zeros), so that
# an exact 1 is skipped.
frag prod<T: num>(a: T, b: T) -> T { return a * b }
frag c.prod<T: real>(a: T, b: T, c: T, d: T) -> (T, T) {
  left = a == 1 && b == 0 && 1 / b > 0
  right = c == 1 && d == 0 && 1 / d > 0
  return select(left, c, select(right, a, a * c - b * d)), select(left, d, select(right, b, a * d + b * c))
}
