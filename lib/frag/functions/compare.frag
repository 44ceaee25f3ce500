# Comparison, logic, classification and choice; the merges of the reductions that choose.

frag equal<T: any>(a: T, b: T) -> bool { return a == b }
frag not_equal<T: any>(a: T, b: T) -> bool { return a != b }
frag less<T: num>(a: T, b: T) -> bool { return a < b }
frag less_equal<T: num>(a: T, b: T) -> bool { return a <= b }
frag greater<T: num>(a: T, b: T) -> bool { return a > b }
frag greater_equal<T: num>(a: T, b: T) -> bool { return a >= b }
frag less<bool>(a: bool, b: bool) -> bool { return ~a & b }
frag less_equal<bool>(a: bool, b: bool) -> bool { return ~a | b }
frag greater<bool>(a: bool, b: bool) -> bool { return a & ~b }
frag greater_equal<bool>(a: bool, b: bool) -> bool { return a | ~b }

frag logical_and<bool>(a: bool, b: bool) -> bool { return a & b }
frag logical_or<bool>(a: bool, b: bool) -> bool { return a | b }
frag logical_xor<bool>(a: bool, b: bool) -> bool { return a ^ b }
frag logical_not<bool>(x: bool) -> bool { return ~x }
frag logical_and<T: num>(a: T, b: T) -> bool { return (a != 0) & (b != 0) }
frag logical_or<T: num>(a: T, b: T) -> bool { return (a != 0) | (b != 0) }
frag logical_xor<T: num>(a: T, b: T) -> bool { return (a != 0) ^ (b != 0) }
frag logical_not<T: num>(x: T) -> bool { return x == 0 }

frag isnan<T: real>(x: T) -> bool { return x != x }
frag isinf<T: real>(x: T) -> bool { return fabs(x) == inf }
frag isfinite<T: real>(x: T) -> bool { return fabs(x) < inf }
frag isnan<T: int>(x: T) -> bool { return x != x }
frag isinf<T: int>(x: T) -> bool { return x != x }
frag isfinite<T: int>(x: T) -> bool { return x == x }
frag signbit<f32>(x: f32) -> bool { return bits<i32>(x) < 0 }
frag signbit<f64>(x: f64) -> bool { return bits<i64>(x) < 0 }

frag where<T: any>(c: bool, a: T, b: T) -> T { return select(c, a, b) }
frag where<T: half>(c: bool, a: T, b: T) -> T { # as stored
  return bits<T>(select(c, bits<unsigned<T>>(a), bits<unsigned<T>>(b)))
}

# NaN wins and -0 < +0: equal values have equal bits but for the sign of zero. The inner choice is one instruction.
frag maximum<f32>(a: f32, b: f32) -> f32 {
  e = bits<f32>(bits<u32>(a) & bits<u32>(b))
  return select(a != a, a, select(a == b, e, select(a > b, a, b)))
}
frag minimum<f32>(a: f32, b: f32) -> f32 {
  e = bits<f32>(bits<u32>(a) | bits<u32>(b))
  return select(a != a, a, select(a == b, e, select(a < b, a, b)))
}
frag maximum<f64>(a: f64, b: f64) -> f64 {
  e = bits<f64>(bits<u64>(a) & bits<u64>(b))
  return select(a != a, a, select(a == b, e, select(a > b, a, b)))
}
frag minimum<f64>(a: f64, b: f64) -> f64 {
  e = bits<f64>(bits<u64>(a) | bits<u64>(b))
  return select(a != a, a, select(a == b, e, select(a < b, a, b)))
}
frag maximum<T: int>(a: T, b: T) -> T { return select(a > b, a, b) }
frag minimum<T: int>(a: T, b: T) -> T { return select(a < b, a, b) }
frag maximum<bool>(a: bool, b: bool) -> bool { return a | b }
frag minimum<bool>(a: bool, b: bool) -> bool { return a & b }

# Merges of (value, index): NaN wins, of equals the lower index; zeros are equal.
frag argmax<T: real, I: sint>(a: T, i: I, b: T, j: I) -> (T, I) {
  na = a != a
  nb = b != b
  first = (a > b) | (na & ~nb) | (((a == b) | (na & nb)) & (i <= j))
  return select(first, a, b), select(first, i, j)
}
frag argmin<T: real, I: sint>(a: T, i: I, b: T, j: I) -> (T, I) {
  na = a != a
  nb = b != b
  first = (a < b) | (na & ~nb) | (((a == b) | (na & nb)) & (i <= j))
  return select(first, a, b), select(first, i, j)
}
frag argmax<T: int, I: sint>(a: T, i: I, b: T, j: I) -> (T, I) {
  first = (a > b) | ((a == b) & (i <= j))
  return select(first, a, b), select(first, i, j)
}
frag argmin<T: int, I: sint>(a: T, i: I, b: T, j: I) -> (T, I) {
  first = (a < b) | ((a == b) & (i <= j))
  return select(first, a, b), select(first, i, j)
}
frag argmax<I: sint>(a: bool, i: I, b: bool, j: I) -> (bool, I) {
  first = (a & ~b) | ((a == b) & (i <= j))
  return select(first, a, b), select(first, i, j)
}
frag argmin<I: sint>(a: bool, i: I, b: bool, j: I) -> (bool, I) {
  first = (~a & b) | ((a == b) & (i <= j))
  return select(first, a, b), select(first, i, j)
}

# What the code for a CPU needs to know of a merge to look for the element that decides: beside a there is nothing to
# be done with b; the value of the two that is kept (as it compares); nothing after a changes anything.
frag keeps.argmax<T: real>(a: T, b: T) -> bool { return a >= b }
frag keeps.argmin<T: real>(a: T, b: T) -> bool { return a <= b }
frag keeps.argmax<T: int>(a: T, b: T) -> bool { return a >= b }
frag keeps.argmin<T: int>(a: T, b: T) -> bool { return a <= b }
frag keeps.argmax<bool>(a: bool, b: bool) -> bool { return a | ~b }
frag keeps.argmin<bool>(a: bool, b: bool) -> bool { return ~a | b }
frag keeps.logical_or<bool>(a: bool, b: bool) -> bool { return a | ~b }
frag keeps.logical_and<bool>(a: bool, b: bool) -> bool { return ~a | b }
frag best.argmax<T: real>(a: T, b: T) -> T { return maximum(a, b) }
frag best.argmin<T: real>(a: T, b: T) -> T { return minimum(a, b) }
frag best.argmax<T: int>(a: T, b: T) -> T { return maximum(a, b) }
frag best.argmin<T: int>(a: T, b: T) -> T { return minimum(a, b) }
frag best.argmax<bool>(a: bool, b: bool) -> bool { return a | b }
frag best.argmin<bool>(a: bool, b: bool) -> bool { return a & b }
frag best.logical_or<bool>(a: bool, b: bool) -> bool { return a | b }
frag best.logical_and<bool>(a: bool, b: bool) -> bool { return a & b }
frag ends.argmax<T: real>(a: T) -> bool { return a != a }
frag ends.argmin<T: real>(a: T) -> bool { return a != a }
frag ends.argmax<bool>(a: bool) -> bool { return a }
frag ends.argmin<bool>(a: bool) -> bool { return ~a }
frag ends.logical_or<bool>(a: bool) -> bool { return a }
frag ends.logical_and<bool>(a: bool) -> bool { return ~a }
