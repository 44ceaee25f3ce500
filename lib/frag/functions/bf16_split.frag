# A float32 as bfloat16 terms, of which products are made (numerics.md section 4). The first is x to nearest, but what
# is finite stays finite and what is not 0 does not become 0: an infinity times it is what it is times x. Each further
# one is to nearest what the terms before it leave; all differences are exact. Infinities and NaN are a first term
# alone: the others are 0, and so is what stands for the first one (finite) wherever it meets another than a first one.
frag bf16.round(x: f32, most: u32) -> f32 { # to nearest, of 8 bits; `most`: the bits of the greatest result
  b = bits<u32>(x)
  m = b & 0x7fffffff
  r = (m + 0x7fff + ((m >> 16) & 1)) & 0xffff0000
  return bits<f32>(select(r > most, most, r) | (b & 0x80000000))
}
frag bf16.near(x: f32) -> f32 {
  y = bf16.round(x, 0x7f7f0000)
  y = select((y == 0) & (x != 0), bits<f32>(bits<u32>(y) | 0x10000), y)
  return select(fabs(x) < inf, y, select(x == x, x, nan))
}
frag bf16.known(x: f32) -> f32 { return select(fabs(x) < inf, bf16.near(x), 0) }
frag bf16.rest(x: f32) -> f32 { return select(fabs(x) < inf, x - bf16.near(x), 0) }
frag bf16.next(rest: f32) -> f32 { return bf16.round(rest, 0x7b7f0000) } # below 2^120: with a first one it is finite
frag bf16.top(x: f32) -> bf16 { return bits<bf16>(u16(bits<u32>(x) >> 16)) }

frag bf16.first(x: f32) -> bf16 { return bf16.top(bf16.near(x)) }
frag bf16.finite(x: f32) -> bf16 { return bf16.top(bf16.known(x)) }
frag bf16.second(x: f32) -> bf16 { return bf16.top(bf16.next(bf16.rest(x))) }
frag bf16.third(x: f32) -> bf16 {
  y = bf16.rest(x)
  return bf16.top(bf16.next(y - bf16.next(y)))
}
