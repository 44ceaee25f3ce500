# Conversions: cast<to>(x: from). Floats round once, to nearest even; float to integer truncates and saturates, NaN
# gives 0.

frag saturate<T: real, U: sint>(x: T, zero: U) -> U {
  min = ~zero << (clz(zero) - 1)
  end = -T(min)
  t = trunc(x)
  ok = (t >= -end) & (t < end)
  return select(ok, U(select(ok, t, 0)), select(x != x, zero, select(x < 0, min, ~min)))
}
frag saturate<T: real, U: uint>(x: T, zero: U) -> U {
  end = 2 * T((zero + 1) << (clz(zero) - 1))
  t = trunc(x)
  ok = (t >= 0) & (t < end)
  return select(ok, U(select(ok, t, 0)), select(x > 0, ~zero, zero))
}
# rounded to odd: to nearest, then a wrong last bit 0 moves towards x. A further rounding to half the bits is then
# right.
frag odd_f32(x: f64) -> f32 {
  y = f32(x)
  b = bits<u32>(y)
  d = f64(y)
  over = fabs(d) > fabs(x)
  return select((d == x) | (x != x), y, bits<f32>(select(over, b - 1, b) | 1))
}
# the low 11 bits of what has more than 40 become one sticky bit, so that f64 holds it exactly
frag sticky<T: int>(x: T) -> f64 {
  low = x & 2047
  return f64(select(low != 0, x - low + 1024, x))
}
frag large<T: sint>(x: T) -> bool { return select(x < 0, ~x, x) >> 40 != 0 }
frag large<T: uint>(x: T) -> bool { return x >> 40 != 0 }
frag to_bf16(x: f32) -> bf16 {
  b = bits<u32>(x)
  r = (b + 0x7fff + ((b >> 16) & 1)) >> 16
  return bits<bf16>(u16(select(x == x, r, (b >> 16) | 0x40)))
}
frag from_bf16(x: bf16) -> f32 { return bits<f32>(u32(bits<u16>(x)) << 16) }

frag cast<bool>(x: bool) -> bool { return x }
frag cast<bool>(x: i8) -> bool { return x != 0 }
frag cast<bool>(x: i16) -> bool { return x != 0 }
frag cast<bool>(x: i32) -> bool { return x != 0 }
frag cast<bool>(x: i64) -> bool { return x != 0 }
frag cast<bool>(x: u8) -> bool { return x != 0 }
frag cast<bool>(x: u16) -> bool { return x != 0 }
frag cast<bool>(x: u32) -> bool { return x != 0 }
frag cast<bool>(x: u64) -> bool { return x != 0 }
frag cast<bool>(x: f16) -> bool { return bits<u16>(x) << 1 != 0 }
frag cast<bool>(x: bf16) -> bool { return bits<u16>(x) << 1 != 0 }
frag cast<bool>(x: f32) -> bool { return x != 0 }
frag cast<bool>(x: f64) -> bool { return x != 0 }

frag cast<U: num>(x: bool) -> U { return U(x) }
frag cast<U: num>(x: i8) -> U { return U(x) }
frag cast<U: num>(x: i16) -> U { return U(x) }
frag cast<U: num>(x: i32) -> U { return U(x) }
frag cast<U: num>(x: i64) -> U { return U(x) }
frag cast<U: num>(x: u8) -> U { return U(x) }
frag cast<U: num>(x: u16) -> U { return U(x) }
frag cast<U: num>(x: u32) -> U { return U(x) }
frag cast<U: num>(x: u64) -> U { return U(x) }

frag cast<U: int>(x: f32) -> U { return saturate(x, U(0)) }
frag cast<U: int>(x: f64) -> U { return saturate(x, U(0)) }
frag cast<U: int>(x: f16) -> U { return saturate(f32(x), U(0)) }
frag cast<U: int>(x: bf16) -> U { return saturate(from_bf16(x), U(0)) }
frag cast<f32>(x: f32) -> f32 { return x }
frag cast<f64>(x: f64) -> f64 { return x }
frag cast<f32>(x: f64) -> f32 { return f32(x) }
frag cast<f64>(x: f32) -> f64 { return f64(x) }
frag cast<f32>(x: f16) -> f32 { return f32(x) }
frag cast<f64>(x: f16) -> f64 { return f64(f32(x)) }
frag cast<f32>(x: bf16) -> f32 { return from_bf16(x) }
frag cast<f64>(x: bf16) -> f64 { return f64(from_bf16(x)) }

# An integer above 2^24 is infinite in f16, so the rounding to f32 does not count.
frag cast<f16>(x: f16) -> f16 { return x }
frag cast<f16>(x: bf16) -> f16 { return f16(from_bf16(x)) }
frag cast<f16>(x: f32) -> f16 { return f16(x) }
frag cast<f16>(x: f64) -> f16 { return f16(odd_f32(x)) }
frag cast<f16>(x: bool) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: i8) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: i16) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: i32) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: i64) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: u8) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: u16) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: u32) -> f16 { return f16(f32(x)) }
frag cast<f16>(x: u64) -> f16 { return f16(f32(x)) }

frag cast<bf16>(x: bf16) -> bf16 { return x }
frag cast<bf16>(x: f16) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: f32) -> bf16 { return to_bf16(x) }
frag cast<bf16>(x: f64) -> bf16 { return to_bf16(odd_f32(x)) }
frag cast<bf16>(x: bool) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: i8) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: i16) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: i32) -> bf16 { return to_bf16(odd_f32(f64(x))) }
frag cast<bf16>(x: i64) -> bf16 { return to_bf16(odd_f32(select(large(x), sticky(x), f64(x)))) }
frag cast<bf16>(x: u8) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: u16) -> bf16 { return to_bf16(f32(x)) }
frag cast<bf16>(x: u32) -> bf16 { return to_bf16(odd_f32(f64(x))) }
frag cast<bf16>(x: u64) -> bf16 { return to_bf16(odd_f32(select(large(x), sticky(x), f64(x)))) }

# Floats of 8 bits: e4m3 has no infinities and one NaN, e5m2 is the upper half of f16. What is beyond the greatest
# number becomes it, infinities too.
frag to_f8e4(x: f32) -> f8e4 {
  b = bits<u32>(x)
  m = b & 0x7fffffff
  normal = ((m + 0x7ffff + ((m >> 20) & 1)) >> 20) - 960
  small = bits<u32>(bits<f32>(select(m < 0x3c800000, m, 0)) + 16384) - 0x46800000   # an ulp of 2^14 is 2^-9
  r = select(m < 0x3c800000, small, select(m < 0x43e00000, normal, 0x7e))
  return bits<f8e4>(u8(select(x == x, r, 0x7f) | ((b >> 24) & 0x80)))
}
frag to_f8e5(x: f32) -> f8e5 {
  b = bits<u32>(x)
  m = b & 0x7fffffff
  normal = ((m + 0xfffff + ((m >> 21) & 1)) >> 21) - 448
  small = bits<u32>(bits<f32>(select(m < 0x38800000, m, 0)) + 128) - 0x43000000     # an ulp of 2^7 is 2^-16
  r = select(m < 0x38800000, small, select(m < 0x47600000, normal, 0x7b))
  return bits<f8e5>(u8(select(x == x, r, 0x7f) | ((b >> 24) & 0x80)))
}
frag from_f8e4(x: f8e4) -> f32 {
  b = u32(bits<u8>(x))
  m = b & 0x7f
  small = bits<u32>(f32(m) * 0x1p-9)
  r = select(m == 0x7f, 0x7fc00000, select(m < 8, small, (m << 20) + 0x3c000000))
  return bits<f32>(r | ((b & 0x80) << 24))
}
frag from_f8e5(x: f8e5) -> f16 { return bits<f16>(u16(bits<u8>(x)) << 8) }

frag cast<bool>(x: f8e4) -> bool { return bits<u8>(x) << 1 != 0 }
frag cast<U: int>(x: f8e4) -> U { return saturate(from_f8e4(x), U(0)) }
frag cast<f32>(x: f8e4) -> f32 { return from_f8e4(x) }
frag cast<f64>(x: f8e4) -> f64 { return f64(from_f8e4(x)) }
frag cast<bf16>(x: f8e4) -> bf16 { return to_bf16(from_f8e4(x)) }
frag cast<f16>(x: f8e4) -> f16 { return f16(from_f8e4(x)) }
frag cast<f8e4>(x: f8e4) -> f8e4 { return x }
frag cast<f8e4>(x: f8e5) -> f8e4 { return to_f8e4(f32(from_f8e5(x))) }
frag cast<f8e4>(x: f16) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: bf16) -> f8e4 { return to_f8e4(from_bf16(x)) }
frag cast<f8e4>(x: f32) -> f8e4 { return to_f8e4(x) }
frag cast<f8e4>(x: f64) -> f8e4 { return to_f8e4(odd_f32(x)) }
frag cast<f8e4>(x: bool) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: i8) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: i16) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: i32) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: i64) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: u8) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: u16) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: u32) -> f8e4 { return to_f8e4(f32(x)) }
frag cast<f8e4>(x: u64) -> f8e4 { return to_f8e4(f32(x)) }

frag cast<bool>(x: f8e5) -> bool { return bits<u8>(x) << 1 != 0 }
frag cast<U: int>(x: f8e5) -> U { return saturate(f32(from_f8e5(x)), U(0)) }
frag cast<f32>(x: f8e5) -> f32 { return f32(from_f8e5(x)) }
frag cast<f64>(x: f8e5) -> f64 { return f64(f32(from_f8e5(x))) }
frag cast<bf16>(x: f8e5) -> bf16 { return to_bf16(f32(from_f8e5(x))) }
frag cast<f16>(x: f8e5) -> f16 { return from_f8e5(x) }
frag cast<f8e5>(x: f8e5) -> f8e5 { return x }
frag cast<f8e5>(x: f8e4) -> f8e5 { return to_f8e5(from_f8e4(x)) }
frag cast<f8e5>(x: f16) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: bf16) -> f8e5 { return to_f8e5(from_bf16(x)) }
frag cast<f8e5>(x: f32) -> f8e5 { return to_f8e5(x) }
frag cast<f8e5>(x: f64) -> f8e5 { return to_f8e5(odd_f32(x)) }
frag cast<f8e5>(x: bool) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: i8) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: i16) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: i32) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: i64) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: u8) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: u16) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: u32) -> f8e5 { return to_f8e5(f32(x)) }
frag cast<f8e5>(x: u64) -> f8e5 { return to_f8e5(f32(x)) }
