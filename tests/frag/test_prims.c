/* Every primitive on edge values of every type it takes, in every variant of the loops that this CPU runs, against
   plain C written another way (128-bit integers, libm). */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "frag/impl.h"

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;
enum { MAXV = 64, MOST = 1 << 12 };

/* ---- values as 64 bits */
static int bytes(int t) { return nvg_size((nvm_dtype)t); }
static int is_float(int t) { return t == NVM_F32 || t == NVM_F64; }
static int is_signed(int t) { return nvg_class_of((nvm_dtype)t) == NVG_SIGNED; }
static double real(int t, uint64_t u) {
  float f;
  double d;
  memcpy(&f, &u, 4);
  memcpy(&d, &u, 8);
  return t == NVM_F32 ? (double)f : d;
}
static uint64_t bits(int t, double x) {
  float f = (float)x;
  uint64_t u = 0;
  if (t == NVM_F32) memcpy(&u, &f, 4);
  else memcpy(&u, &x, 8);
  return u;
}
static i128 whole(int t, uint64_t u) {
  int s = 64 - bytes(t) * 8;
  return is_signed(t) ? (i128)((int64_t)(u << s) >> s) : (i128)u;
}
static uint64_t cut(int t, i128 x) { return (uint64_t)x & nvg_mask((nvm_dtype)t); }
static int nan_of(int t, uint64_t u) { return is_float(t) && isnan(real(t, u)); }

static int edges(int t, uint64_t *v) {
  static const double fs[] = { 0,
                               1,
                               0.5,
                               1.5,
                               2.5,
                               3,
                               7.75,
                               1e-3,
                               1234567.5,
                               8388607.5,
                               8388608,
                               16777217,
                               4503599627370495.5,
                               9007199254740993.0,
                               0x1p-126,
                               0x1p-149,
                               0x1.8p-140,
                               0x1p-1022,
                               0x1p-1074,
                               0x1.fffffep127,
                               0x1.fffffffffffffp1023,
                               1e10,
                               1e-30,
                               INFINITY };
  static const int64_t is[] = { 0,
                                1,
                                2,
                                3,
                                5,
                                7,
                                10,
                                63,
                                100,
                                127,
                                128,
                                255,
                                256,
                                1000,
                                32767,
                                32768,
                                65535,
                                65536,
                                0x12345678,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x100000000,
                                0x123456789abcdef0,
                                0x7fffffffffffffff };
  int n = 0;
  if (t == NVM_BOOL) return v[0] = 0, v[1] = 1, 2;
  if (is_float(t)) {
    for (unsigned i = 0; i < sizeof fs / sizeof *fs; i++) v[n++] = bits(t, fs[i]), v[n++] = bits(t, -fs[i]);
    v[n++] = bits(t, NAN);
    return n;
  }
  for (unsigned i = 0; i < sizeof is / sizeof *is; i++) v[n++] = cut(t, is[i]), v[n++] = cut(t, -(i128)is[i]);
  v[n++] = cut(t, (i128)1 << (bytes(t) * 8 - 1));
  return n;
}

/* ---- what each primitive means; 0: the operands are outside its domain */
static int int_model(int p, int t, const uint64_t *v, uint64_t *r) {
  i128 x = whole(t, v[0]), y = whole(t, v[1]);
  int width = bytes(t) * 8;
  switch (p) {
  case NVG_ADD: *r = cut(t, x + y); return 1;
  case NVG_SUB: *r = cut(t, x - y); return 1;
  case NVG_MUL: *r = cut(t, (i128)((u128)x * (u128)y)); return 1;
  case NVG_DIV: case NVG_REM:
    if (y == 0 || (y == -1 && x == -((i128)1 << (width - 1)))) return 0;
    *r = cut(t, p == NVG_DIV ? x / y : x % y);
    return 1;
  case NVG_NEG: *r = cut(t, -x); return 1;
  case NVG_MULHI:
    *r = is_signed(t) ? cut(t, (x * y) >> width) : cut(t, (i128)(((u128)x * (u128)y) >> width));
    return 1;
  case NVG_AND: *r = v[0] & v[1]; return 1;
  case NVG_OR: *r = v[0] | v[1]; return 1;
  case NVG_XOR: *r = v[0] ^ v[1]; return 1;
  case NVG_NOT: *r = ~v[0] & nvg_mask((nvm_dtype)t); return 1;
  case NVG_SHL:
    if (y < 0 || y >= width) return 0;
    *r = cut(t, (i128)((u128)x << (int)y));
    return 1;
  case NVG_SHR:
    if (y < 0 || y >= width) return 0;
    *r = cut(t, x >> (int)y);
    return 1;
  case NVG_CLZ: {
    uint64_t n = 0;
    while (n < (uint64_t)width && !(v[0] >> (width - 1 - (int)n) & 1)) n++;
    *r = n;
    return 1;
  }
  case NVG_EQ: *r = x == y; return 1;
  case NVG_NE: *r = x != y; return 1;
  case NVG_LT: *r = x < y; return 1;
  case NVG_LE: *r = x <= y; return 1;
  case NVG_GT: *r = x > y; return 1;
  case NVG_GE: *r = x >= y; return 1;
  default: return -1;
  }
}

static double narrow(int t, double exact32, double exact64) { return t == NVM_F32 ? exact32 : exact64; }
static int float_model(int p, int t, const uint64_t *v, uint64_t *r) {
  double x = real(t, v[0]), y = real(t, v[1]), z = real(t, v[2]);
  float xf = (float)x, yf = (float)y, zf = (float)z;
  uint64_t sign = 1ull << (bytes(t) * 8 - 1);
  switch (p) {
  case NVG_ADD: *r = bits(t, narrow(t, xf + yf, x + y)); return 1;
  case NVG_SUB: *r = bits(t, narrow(t, xf - yf, x - y)); return 1;
  case NVG_MUL: *r = bits(t, narrow(t, xf * yf, x * y)); return 1;
  case NVG_DIV: *r = bits(t, narrow(t, xf / yf, x / y)); return 1;
  case NVG_NEG: *r = v[0] ^ sign; return 1;
  case NVG_ABS: *r = v[0] & ~sign; return 1;
  case NVG_FMA: *r = bits(t, narrow(t, fmaf(xf, yf, zf), fma(x, y, z))); return 1;
  case NVG_SQRT: *r = bits(t, narrow(t, sqrtf(xf), sqrt(x))); return 1;
  case NVG_SQRT_INSIDE:
    *r = bits(t, narrow(t, sqrtf(xf), sqrt(x)));
    return x >= 0x1p-100 && x <= 0x1p100;
  case NVG_RINT: *r = bits(t, rint(x)); return 1;
  case NVG_FLOOR: *r = bits(t, floor(x)); return 1;
  case NVG_CEIL: *r = bits(t, ceil(x)); return 1;
  case NVG_TRUNC: *r = bits(t, trunc(x)); return 1;
  case NVG_EQ: *r = x == y; return 1;
  case NVG_NE: *r = x != y; return 1;
  case NVG_LT: *r = x < y; return 1;
  case NVG_LE: *r = x <= y; return 1;
  case NVG_GT: *r = x > y; return 1;
  case NVG_GE: *r = x >= y; return 1;
  default: return -1;
  }
}

static uint64_t f16_bits(float x) { /* by search: the nearest f16, ties to even */
  uint64_t best = 0, sign = signbit(x) ? 0x8000 : 0;
  double m = fabs((double)x), least = INFINITY;
  if (isnan(x)) return 0x7e00;
  if (m >= 65520) return sign | 0x7c00;
  for (uint64_t h = 0; h < 0x7c00; h++) {
    double v = h < 0x400 ? (double)h * 0x1p-24 : ldexp(1024 + (double)(h & 0x3ff), (int)(h >> 10) - 25),
           d = fabs(v - m);
    if (d < least || (d == least && !(h & 1))) least = d, best = h;
  }
  return sign | best;
}

static int cvt_model(int from, int to, uint64_t v, uint64_t *r) {
  if (to == NVM_F16) {
    *r = f16_bits((float)real(from, v));
    return 1;
  }
  if (is_float(from) && is_float(to)) {
    *r = bits(to, real(from, v));
    return 1;
  }
  if (is_float(from)) {
    double x = trunc(real(from, v)), end = ldexp(1, bytes(to) * 8 - is_signed(to));
    if (!(x < end) || !(x >= (is_signed(to) ? -end : 0))) return 0;
    *r = cut(to, (i128)x);
    return 1;
  }
  i128 x = whole(from, v);
  if (to == NVM_F32) *r = bits(to, (double)(is_signed(from) ? (float)(int64_t)x : (float)(uint64_t)x));
  else if (to == NVM_F64) *r = bits(to, is_signed(from) ? (double)(int64_t)x : (double)(uint64_t)x);
  else *r = cut(to, x);
  return 1;
}

static int model(int p, int from, int to, const uint64_t *v, uint64_t *r) {
  if (p == NVG_CVT) return cvt_model(from, to, v[0], r);
  if (p == NVG_BITS) return *r = v[0], 1;
  if (p == NVG_SEL) return *r = v[0] ? v[1] : v[2], 1;
  if (from == NVM_BOOL) {
    if (p == NVG_NOT) return *r = !v[0], 1;
    return int_model(p, NVM_U8, v, r);
  }
  return is_float(from) ? float_model(p, from, v, r) : int_model(p, from, v, r);
}

/* ---- one primitive on one set of types: every tuple of edge values, in chunks */
static uint64_t tuple[3][MOST], want[MOST];
static char in[3][MOST * 8], out[MOST * 8];

static void flush(int p, int to, int from, int n, int variant) {
  if (!n) return;
  for (int k = 0; k < 3; k++) {
    int size = p == NVG_SEL && k == 0 ? 1 : bytes(from);
    for (int i = 0; i < (n + NVG_GROUP - 1) / NVG_GROUP * NVG_GROUP; i++)
      memcpy(in[k] + i * size, &tuple[k][i < n ? i : n - 1], (size_t)size);
  }
  nvg_step(&(nvg_step_args){ .prim = (nvg_prim)p,
                             .type = (nvm_dtype)to,
                             .from = (nvm_dtype)from,
                             .n = (n + NVG_GROUP - 1) / NVG_GROUP * NVG_GROUP,
                             .out = out,
                             .x = in[0],
                             .y = in[1],
                             .z = in[2] });
  for (int i = 0; i < n; i++) {
    uint64_t got = 0;
    memcpy(&got, out + i * bytes(to), (size_t)bytes(to));
    if (got == want[i] || (nan_of(to, got) && nan_of(to, want[i])) ||
        (to == NVM_F16 && (got & 0x7fff) > 0x7c00 && (want[i] & 0x7fff) > 0x7c00))
      continue;
    ck_abort_msg("variant %d: %s %s -> %s of %llx %llx %llx: got %llx, want %llx", variant, nvg_prims[p].id,
                 nvg_dtype_short((nvm_dtype)from), nvg_dtype_short((nvm_dtype)to), (unsigned long long)tuple[0][i],
                 (unsigned long long)tuple[1][i], (unsigned long long)tuple[2][i], (unsigned long long)got,
                 (unsigned long long)want[i]);
  }
}

static int try_types(int p, int from, int to, int variant) {
  uint64_t v[3][MAXV] = { { 0 } }, x[3];
  int count[3] = { 1, 1, 1 }, n = 0, total = 0, arity = nvg_prims[p].n;
  for (int k = 0; k < arity; k++) count[k] = edges(p == NVG_SEL && k == 0 ? NVM_BOOL : from, v[k]);
  for (int i = 0; i < count[0]; i++)
    for (int j = 0; j < count[1]; j++)
      for (int k = 0; k < count[2]; k++) {
        x[0] = v[0][i], x[1] = v[1][j], x[2] = v[2][k];
        int known = model(p, from, to, x, &want[n]);
        if (known < 0) ck_abort_msg("%s has no model", nvg_prims[p].id);
        if (!known) continue;
        for (int q = 0; q < 3; q++) tuple[q][n] = x[q];
        total++;
        if (++n == MOST) flush(p, to, from, n, variant), n = 0;
      }
  flush(p, to, from, n, variant);
  return total;
}

START_TEST(every_primitive_every_type) {
  int variants = nvg_step_variants(), seen[NVG_NPRIMS] = { 0 };
  for (int variant = 1; variant <= variants; variant++) {
    nvg_step_limit(variant);
    for (int p = NVG_ADD; p < NVG_TABLE; p++)
      for (int from = NVM_BOOL; from <= NVM_F64; from++)
        for (int to = NVM_BOOL; to <= NVM_F64; to++) {
          int t[3] = { p == NVG_SEL ? NVM_BOOL : from, from, from };
          if (from == NVM_F16 || from == NVM_BF16 || to == NVM_BF16 || nvg_prim_type((nvg_prim)p, t, to) != to)
            continue;
          seen[p] += try_types(p, from, to, variant);
        }
  }
  nvg_step_limit(0);
  for (int p = NVG_ADD; p < NVG_TABLE; p++) ck_assert_msg(seen[p] > 0, "%s was not tried", nvg_prims[p].id);
}
END_TEST

START_TEST(f16_to_f32_is_exact) {
  for (int variant = 1; variant <= nvg_step_variants(); variant++) {
    static uint16_t h[1 << 16];
    static float f[1 << 16];
    nvg_step_limit(variant);
    for (int i = 0; i < 1 << 16; i++) h[i] = (uint16_t)i;
    nvg_step(&(nvg_step_args){ .prim = NVG_CVT, .type = NVM_F32, .from = NVM_F16, .n = 1 << 16, .out = f, .x = h });
    for (int i = 0; i < 1 << 16; i++) {
      int e = i >> 10 & 31, m = i & 0x3ff;
      double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
      if (i & 0x8000) v = -v;
      ck_assert_msg(isnan(v) ? isnan(f[i]) : f[i] == v && !signbit(f[i]) == !signbit(v), "f16 %04x gives %a", i,
                    (double)f[i]);
    }
  }
  nvg_step_limit(0);
}
END_TEST

/* The nearest multiple of the f16 unit at the size of x */
static int wrong_f16(const float *f, const uint16_t *h, const float *back, int n) {
  int bad = 0;
  for (int i = 0; i < n; i++) {
    float m = fabsf(f[i]);
    uint32_t u, unit, per;
    memcpy(&u, &m, 4);
    unit = u < 0x38800000 ? 0x33800000 : (u & 0x7f800000) - (10u << 23);
    per = 0x7f000000 - unit; /* 1 / unit */
    double ulp = real(NVM_F32, unit), q = (double)m * real(NVM_F32, per), r = (q + 0x1p52) - 0x1p52;
    int finite = r * ulp < 65536, ok = finite ? (double)fabsf(back[i]) == r * ulp : (h[i] & 0x7fff) == 0x7c00;
    bad += !ok | ((h[i] >> 15) != (signbit(f[i]) != 0));
  }
  return bad;
}
static void ck_f16(uint32_t lo, uint32_t step) { /* of N floats from the bits lo on */
  enum { N = 1 << 14 };
  static float f[N], back[N];
  static uint16_t h[N];
  for (uint32_t i = 0; i < N; i++) {
    uint32_t u = lo + i * step;
    memcpy(&f[i], &u, 4);
  }
  nvg_step(&(nvg_step_args){ .prim = NVG_CVT, .type = NVM_F16, .from = NVM_F32, .n = N, .out = h, .x = f });
  nvg_step(&(nvg_step_args){ .prim = NVG_CVT, .type = NVM_F32, .from = NVM_F16, .n = N, .out = back, .x = h });
  int nans = 0, bad = 0;
  for (int i = 0; i < N; i++) nans += isnan(f[i]) != 0, bad += isnan(f[i]) && (h[i] & 0x7fff) <= 0x7c00;
  if (!nans) bad = wrong_f16(f, h, back, N);
  ck_assert_msg(!bad, "%d wrong from %x on, by %u", bad, lo, step);
}
/* All f32 that differ from a number of 11 bits or from the middle of two such numbers by at most one unit, 16,384
   numbers in a row in every 16th place up to the least that is infinite, and every 257th f32 */
START_TEST(f32_to_f16_rounds_to_even) {
  for (uint32_t near = 0; near < 3; near++)
    for (uint64_t lo = 0; lo < 1ull << 32; lo += 0x1000ull << 14) ck_f16((uint32_t)lo + near - 1, 0x1000);
  for (uint64_t lo = 0; lo < 0x47900000; lo += 16 << 14) ck_f16((uint32_t)lo, 1);
  for (uint64_t lo = 0; lo < 1ull << 32; lo += 257 << 14) ck_f16((uint32_t)lo, 257);
}
END_TEST

/* ---- fma in software (variant 1) against libm's, which is exact */
static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next(void) { return state ^= state << 13, state ^= state >> 7, state ^= state << 17; }
static double hard(int t) { /* few significant bits or many, exponents that meet */
  int mant = t == NVM_F32 ? 23 : 52;
  uint64_t m = next() & ((1ull << mant) - 1);
  switch (next() % 4) {
  case 0: m &= next() & next(); break;
  case 1: m |= next() | next(); m &= (1ull << mant) - 1; break;
  case 2: m = m >> (next() % (unsigned)mant) << (next() % 8) & ((1ull << mant) - 1); break;
  default: break;
  }
  int range = next() % 3 ? 30 : t == NVM_F32 ? 149 : 1074;
  double x = ldexp(1 + ldexp((double)m, -mant), (int)(next() % (uint64_t)(2 * range)) - range);
  if (next() % 8 == 0) x = ldexp(x, next() % 2 ? -range : 0);
  x = next() & 1 ? -x : x;
  return t == NVM_F32 ? (double)(float)x : x;
}
START_TEST(software_fma_is_exact) {
  for (int pass = 0; pass < 800; pass++) {
    int t = pass & 1 ? NVM_F32 : NVM_F64;
    for (int i = 0; i < MOST; i++) {
      double x = hard(t), y = hard(t), z = hard(t), p = t == NVM_F32 ? (double)((float)x * (float)y) : x * y;
      if (next() % 3 == 0) z = -p;                                 /* cancels to the rounding of the product */
      if (next() % 5 == 0) z = ldexp(p, (int)(next() % 120) - 60); /* ties and sticky bits */
      if (next() % 9 == 0) z = nextafter(-p, next() & 1 ? INFINITY : 0);
      if (t == NVM_F32) z = (double)(float)z;
      tuple[0][i] = bits(t, x), tuple[1][i] = bits(t, y), tuple[2][i] = bits(t, z);
      want[i] = t == NVM_F32 ? bits(t, (double)fmaf((float)x, (float)y, (float)z)) : bits(t, fma(x, y, z));
    }
    nvg_step_limit(1);
    flush(NVG_FMA, t, t, MOST, 1);
    nvg_step_limit(0);
    flush(NVG_FMA, t, t, MOST, 0);
  }
}
END_TEST

/* ---- blocks, tails, loops and work memory of a whole fragment */
typedef struct made { const nvg_frag *f; } made;
static void build(nvb_arena *a, void *arg) {
  nvg_fragset *s = nvg_fragset_new(a);
  nvm_dtype t[3] = { NVM_F32, NVM_I16, NVM_BOOL };
  nvg_fragset_parse(s,
                    "table t: f32 = { 0.5, 2 }\nfrag f(x: f32, i: i16, b: bool) -> (f64, i16) {\n"
                    "  y = select(b, x, -x)\n  for k in 3 carry (y = y, q = f64(1)) { y = y * t[i & 1] + f32(k); q = q "
                    "* 2 + f64(y) }\n  return q, i + i16(3) }",
                    "t");
  ((made *)arg)->f = nvg_fragset_find(s, "f", t, 3);
}
START_TEST(any_length_gives_the_same) {
  static float x[1000];
  static int16_t i[1000], j[1001];
  static uint8_t b[1000];
  static double q[1001];
  nvb_arena *a = nvb_arena_new();
  made m = { 0 };
  if (nvb_protect(a, build, &m)) ck_abort_msg("%s", nvb_message());
  for (int k = 0; k < 1000; k++) x[k] = 0.1f * (float)k, i[k] = (int16_t)(k * 7), b[k] = k % 3 == 0;
  for (int n = 0; n <= 1000; n += n < 70 ? 1 : 111) {
    q[n] = 77, j[n] = 77;
    nvg_frag_run(m.f, (const void *[]){ x, i, b }, (void *[]){ q, j }, n, n & 1);
    ck_assert(q[n] == 77 && j[n] == 77);
    for (int k = 0; k < n; k++) {
      float y = b[k] ? x[k] : -x[k];
      double w = 1;
      for (int r = 0; r < 3; r++) y = y * (i[k] & 1 ? 2.0f : 0.5f) + (float)r, w = w * 2 + (double)y;
      ck_assert(q[k] == w && j[k] == (int16_t)(i[k] + 3));
    }
  }
  nvb_arena_free(a);
}
END_TEST

SUITE("frag_prims", every_primitive_every_type, f16_to_f32_is_exact, f32_to_f16_rounds_to_even, software_fma_is_exact,
      any_length_gives_the_same)
