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
  return u32(select((i & 2) == 0, select((i & 1) == 0, a, b), select((i & 1) == 0, c, d)))
}
frag random64(i: i64, key: i64, at: i64, stream: i64) -> u64 {
  a, b, c, d = philox(at + (i >> 1), stream, key)
  return select((i & 1) == 0, b << 32 | low(a), d << 32 | low(c))
}

# Numbers in [0, 1): the first 24 and 53 bits
frag unit(x: u32) -> f32 { return f32(bits<i32>(x >> 8)) * 0x1p-24 }
# Both halves as floats by their bits: few processors convert integers of 64 bits.
frag unit(x: u64) -> f64 {
  high = bits<f64>((x >> 43) | 0x4530000000000000) - 0x1.00000001p84
  return (high + bits<f64>(low(x >> 11) | 0x4330000000000000)) * 0x1p-53
}
