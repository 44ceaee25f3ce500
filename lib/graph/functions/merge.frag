# Merges of reductions with several states, and the parts of complex numbers.

frag make<T: real>(re: T, im: T) -> (T, T) { return re, im }

# Chan, Golub, LeVeque 1979: count, mean and sum of squared deviations of two disjoint sets. An empty set changes nothing.
frag moments<T: real>(na: T, ma: T, sa: T, nb: T, mb: T, sb: T) -> (T, T, T) {
  n = na + nb
  d = mb - ma
  m = ma * (na / n) + mb * (nb / n)   # as ma + d * nb / n, but the same either way round
  s = (sa + sb) + (d * d) * (na * nb / n)
  ea = na == 0
  eb = nb == 0
  return n, select(ea, mb, select(eb, ma, m)), select(ea, sb, select(eb, sa, s))
}

# Maxima, and sums of exponentials relative to them.
frag logsumexp<T: real>(ma: T, sa: T, mb: T, sb: T) -> (T, T) {
  m = maximum(ma, mb)
  fa = select(ma == m, 1, exp(ma - m))
  fb = select(mb == m, 1, exp(mb - m))
  return m, sa * fa + sb * fb
}
