/* Implements in integer code what the C language or an old CPU lacks: fused multiply-add, f16, rounding to integers,
   high halves of products. All of it is exact, and none of it calls libm. */
#ifndef NVM_FRAG_SOFT_H
#define NVM_FRAG_SOFT_H
#include <stdint.h>
#include <string.h>

#define NVG_SOFT static inline __attribute__((always_inline, unused))

NVG_SOFT uint32_t bits_f32(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
NVG_SOFT float f32_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
NVG_SOFT uint64_t bits_f64(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}
NVG_SOFT double f64_bits(uint64_t u) {
  double x;
  memcpy(&x, &u, 8);
  return x;
}

/* ---- rounding to integers: adding and subtracting 2^23 (2^52 for double) rounds smaller numbers to nearest even */
#define NVG_ROUNDINGS(T, U, big, sign, to, from)                                                        \
  NVG_SOFT T rint_##T(T x) {                                                                            \
    T m = from(to(x) & ~sign), r = (m + big) - big;                                                     \
    return m < big ? from(to(r) | (to(x) & sign)) : x;                                                  \
  }                                                                                                     \
  NVG_SOFT T floor_##T(T x) { T r = rint_##T(x), s = r > x ? r - 1 : r; return from(to(s) | (to(x) & sign)); } \
  NVG_SOFT T ceil_##T(T x) { T r = rint_##T(x), s = r < x ? r + 1 : r; return from(to(s) | (to(x) & sign)); }  \
  NVG_SOFT T trunc_##T(T x) { return from(to(floor_##T(from(to(x) & ~sign))) | (to(x) & sign)); }
NVG_ROUNDINGS(float, uint32_t, 0x1p23f, 0x80000000u, bits_f32, f32_bits)
NVG_ROUNDINGS(double, uint64_t, 0x1p52, 0x8000000000000000u, bits_f64, f64_bits)

/* ---- f16 */
NVG_SOFT float f32_of_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, m = (uint32_t)(h & 0x7fff) << 13;
  uint32_t normal = m + 0x38000000u, special = m + 0x70000000u;    /* exponent + 112; inf and NaN + 224 */
  uint32_t small = bits_f32(f32_bits(m + 0x38800000u) - 0x1p-14f); /* subnormals: 2^-14 (1 + f) - 2^-14 */
  uint32_t r = m >= 0x0f800000u ? special : normal;
  return f32_bits((m < 0x00800000u ? small : r) | sign);
}

NVG_SOFT uint16_t f16_of_f32(float x) {
  uint32_t u = bits_f32(x), m = u & 0x7fffffff;
  uint32_t normal = (m + 0xc8000fffu + (m >> 13 & 1)) >> 13; /* exponent - 112, to nearest even */
  uint32_t small = bits_f32(f32_bits(m < 0x38800000u ? m : 0) + 0.5f) - 0x3f000000u; /* ulp of 0.5 is 2^-24 */
  uint32_t special = m > 0x7f800000u ? 0x7e00 | (m >> 13 & 0x3ff) : 0x7c00;
  uint32_t r = m >= 0x477ff000u ? special : m < 0x38800000u ? small : normal;
  return (uint16_t)(r | (u >> 16 & 0x8000));
}

/* ---- fma. f32: the product is exact in f64 and the sum is rounded to odd there, so only the final rounding counts */
NVG_SOFT float soft_fmaf(float a, float b, float c) {
  double p = (double)a * b, s = p + c, v = s - p, err = (p - (s - v)) + (c - v);
  uint64_t u = bits_f64(s), finite = (u & 0x7ff0000000000000u) != 0x7ff0000000000000u;
  int toward = (err > 0) == (s > 0); /* the exact sum is farther from 0 than s */
  uint64_t odd = u & 1 || err == 0 || !finite ? u : toward ? u + 1 : u - 1;
  return (float)f64_bits(odd);
}

/* f64: in integers. x = m * 2^e with m < 2^53; the 106-bit product keeps its exponent, and c is aligned to it. */
__extension__ typedef unsigned __int128 soft_u128;
__extension__ typedef __int128 soft_i128;
typedef struct soft_num { uint64_t m; int e; uint64_t sign; } soft_num;
NVG_SOFT soft_num soft_open(double x) {
  uint64_t u = bits_f64(x), m = u & 0xfffffffffffffu;
  int e = (int)(u >> 52 & 0x7ff);
  if (e) m |= 1ull << 52;
  else if (m) {
    int up = __builtin_clzll(m) - 11;
    m <<= up, e = 1 - up;
  }
  return (soft_num){ m, e - 1075, u >> 63 };
}

/* Rounds s * 2^e (s != 0) to a double; `sticky`: nonzero bits were cut off below s. */
NVG_SOFT double soft_close(soft_u128 s, int e, int sticky, uint64_t sign) {
  uint64_t hi = (uint64_t)(s >> 64), lo = (uint64_t)s;
  int top = hi ? 127 - __builtin_clzll(hi) : 63 - __builtin_clzll(lo);
  int cut = top - 52;                   /* bits to drop for 53 */
  if (e + cut < -1074) cut = -1074 - e; /* subnormal: fewer are kept */
  uint64_t m;
  if (cut > 127) m = 0, sticky = 1, cut = 128;
  else if (cut > 0) {
    soft_u128 rest = s & (((soft_u128)1 << cut) - 1), half = (soft_u128)1 << (cut - 1);
    m = (uint64_t)(s >> cut);
    if (rest > half || (rest == half && (sticky || (m & 1)))) m++;
  } else m = (uint64_t)(s << -cut);
  if (m >> 53) m >>= 1, cut++;
  int exponent = e + cut + 1075;
  if (exponent >= 0x7ff) return f64_bits(sign << 63 | 0x7ff0000000000000u);
  uint64_t u = m >> 52 ? (uint64_t)exponent << 52 | (m & 0xfffffffffffffu) : m;
  return f64_bits(sign << 63 | u);
}

static __attribute__((unused, noinline)) double soft_fma(double a, double b, double c) {
  const uint64_t inf = 0x7ff0000000000000u;
  if ((bits_f64(a) & inf) == inf || (bits_f64(b) & inf) == inf || (bits_f64(c) & inf) == inf || a == 0 || b == 0) {
    if ((bits_f64(a) & inf) != inf && (bits_f64(b) & inf) != inf && (bits_f64(c) & inf) == inf)
      return c; /* the product is finite, so the sum is c */
    return a * b + c;
  }
  soft_num x = soft_open(a), y = soft_open(b), z = soft_open(c);
  soft_u128 p = (soft_u128)x.m * y.m << 20, q = (soft_u128)z.m << 73; /* both below 2^126 */
  int pe = x.e + y.e - 20, qe = z.e - 73;
  uint64_t ps = x.sign ^ y.sign, qs = z.sign;
  if (!q) return soft_close(p, pe, 0, ps);
  /* the top bit of p is 124 or 125, that of q 125 */
  int ptop = 127 - __builtin_clzll((uint64_t)(p >> 64)) + pe, qtop = 125 + qe;
  if (qtop > ptop || (qtop == ptop && qe > pe)) {
    soft_u128 t = p;
    p = q, q = t;
    int te = pe;
    pe = qe, qe = te;
    uint64_t ts = ps;
    ps = qs, qs = ts;
  }
  /* Shifts q to p's exponent. pe >= qe, because the top bit of p * 2^pe is not the lower one and the top bit of p is
     124 or 125. */
  int shift = pe - qe, sticky = 0;
  if (shift > 127) sticky = 1, q = 0;
  else if (shift) sticky = (q & (((soft_u128)1 << shift) - 1)) != 0, q >>= shift;
  if (ps == qs) return soft_close(p + q, pe, sticky, ps);
  if (p == q && !sticky) return 0.0;
  if (p < q) return soft_close(q - p, pe, sticky, qs);
  return soft_close(p - q - (unsigned)sticky, pe, sticky, ps); /* the bits that were cut off q are subtracted too */
}

NVG_SOFT uint64_t mulhi_u64(uint64_t a, uint64_t b) { return (uint64_t)((soft_u128)a * b >> 64); }
NVG_SOFT int64_t mulhi_i64(int64_t a, int64_t b) { return (int64_t)((soft_i128)a * b >> 64); }
NVG_SOFT uint32_t mulhi_u32(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
NVG_SOFT int32_t mulhi_i32(int32_t a, int32_t b) { return (int32_t)((int64_t)a * b >> 32); }

/* leading zeros; the width at 0 */
NVG_SOFT uint64_t clz_u64(uint64_t x) { return x ? (uint64_t)__builtin_clzll(x) : 64; }
NVG_SOFT uint32_t clz_u32(uint32_t x) { return x ? (uint32_t)__builtin_clz(x) : 32; }
NVG_SOFT uint16_t clz_u16(uint16_t x) { return (uint16_t)(clz_u32(x) - 16); }
NVG_SOFT uint8_t clz_u8(uint8_t x) { return (uint8_t)(clz_u32(x) - 24); }
#endif
