# Integers: bits, shifts and division, defined for every operand. x / 0 and x % 0 are 0, MIN / -1 is MIN, MIN % -1 is 0.

frag bitwise_and<T: int>(a: T, b: T) -> T { return a & b }
frag bitwise_or<T: int>(a: T, b: T) -> T { return a | b }
frag bitwise_xor<T: int>(a: T, b: T) -> T { return a ^ b }
frag bitwise_invert<T: int>(x: T) -> T { return ~x }
frag bitwise_and<bool>(a: bool, b: bool) -> bool { return a & b }
frag bitwise_or<bool>(a: bool, b: bool) -> bool { return a | b }
frag bitwise_xor<bool>(a: bool, b: bool) -> bool { return a ^ b }
frag bitwise_invert<bool>(x: bool) -> bool { return ~x }

# A product and a sum, which wrap
frag multiply_add<T: int>(a: T, b: T, c: T) -> T { return a * b + c }

# An amount of the width or more, or below 0, gives 0; a signed right shift then gives the sign. clz(0) is the width.
frag bitwise_left_shift<T: int>(a: T, n: T) -> T {
  ok = (n >= 0) & (n < clz(n ^ n))
  return select(ok, a << select(ok, n, 0), 0)
}
frag bitwise_right_shift<T: uint>(a: T, n: T) -> T {
  ok = n < clz(n ^ n)
  return select(ok, a >> select(ok, n, 0), 0)
}
frag bitwise_right_shift<T: sint>(a: T, n: T) -> T {
  w = clz(n ^ n)
  ok = (n >= 0) & (n < w)
  return a >> select(ok, n, w - 1)
}

# Truncated quotient and remainder with the guards that DIV and REM ask for
frag divrem<T: uint>(a: T, b: T) -> (T, T) {
  z = b == 0
  d = select(z, 1, b)
  q = a / d
  return select(z, 0, q), select(z, 0, a - q * d)
}
frag divrem<T: sint>(a: T, b: T) -> (T, T) {
  z = b == 0
  m = b == -1
  d = select(z | m, 1, b)
  q = a / d
  return select(z, 0, select(m, -a, q)), select(z, 0, a - q * d)
}
frag floor_divide<T: uint>(a: T, b: T) -> T {
  q, r = divrem(a, b)
  return q
}
frag remainder<T: uint>(a: T, b: T) -> T {
  q, r = divrem(a, b)
  return r
}
frag floor_divide<T: sint>(a: T, b: T) -> T {
  q, r = divrem(a, b)
  return select((r != 0) & ((r ^ b) < 0), q - 1, q)
}
frag remainder<T: sint>(a: T, b: T) -> T {
  q, r = divrem(a, b)
  return select((r != 0) & ((r ^ b) < 0), r + b, r)
}
frag fmod<T: int>(a: T, b: T) -> T {
  q, r = divrem(a, b)
  return r
}

# a to the power of b by squaring, wrapping. A negative exponent gives 0.
frag pow<T: int>(a: T, b: T) -> T {
  for k in 64 carry (y = (a ^ a) + 1, p = a, n = b) {
    y = select((n & 1) == 1, y * p, y)
    p = p * p
    n = n >> 1
  }
  return select(b < 0, 0, y)
}
