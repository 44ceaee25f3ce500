/* What the library's functions promise beyond accuracy: integers defined everywhere, casts that saturate and round
   once, the order of NaN and signed zeros, the special values of complex functions (as the C library has them),
   merges. */
#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "frag/dtype.h"
#include "base/err.h"
#include "frag/frag.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "../suite.h"

static const nvg_frag *find(const char *name, int n, const nvm_dtype *t) {
  const nvg_frag *f = nvg_frag_find(name, t, n);
  ck_assert_msg(f != NULL, "%s is missing", name);
  return f;
}

/* one element: up to six parameters and three results of 8 bytes each */
static void apply(const nvg_frag *f, const uint64_t *in, uint64_t *out) {
  const void *from[6];
  void *to[3];
  for (int i = 0; i < f->nparam; i++) from[i] = &in[i];
  for (int i = 0; i < f->nresult; i++) to[i] = &out[i], out[i] = 0;
  nvg_frag_run(f, from, to, 1, 1);
}
static uint64_t of_f32(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static uint64_t of_f64(double x) {
  uint64_t u;
  memcpy(&u, &x, 8);
  return u;
}
static float to_f32(uint64_t u) {
  uint32_t v = (uint32_t)u;
  float x;
  memcpy(&x, &v, 4);
  return x;
}
static double to_f64(uint64_t u) {
  double x;
  memcpy(&x, &u, 8);
  return x;
}
static double real(nvm_dtype t, uint64_t u) { return t == NVM_F32 ? (double)to_f32(u) : to_f64(u); }
static uint64_t bits(nvm_dtype t, double x) { return t == NVM_F32 ? of_f32((float)x) : of_f64(x); }

/* ---- integers */
static uint64_t cut(nvm_dtype t, uint64_t x) { return nvg_size(t) == 8 ? x : x & ((1ull << nvg_size(t) * 8) - 1); }
static __int128_t whole(nvm_dtype t, uint64_t u) {
  int s = 64 - nvg_size(t) * 8;
  return nvg_class_of(t) == NVG_SIGNED ? (__int128_t)((int64_t)(u << s) >> s) : (__int128_t)cut(t, u);
}
static __int128_t floor_div(__int128_t a, __int128_t b) {
  if (!b) return 0;
  __int128_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
static __int128_t shift(nvm_dtype t, __int128_t a, __int128_t n, int left) {
  int width = nvg_size(t) * 8, out = n < 0 || n >= width;
  if (left) return out ? 0 : (__int128_t)((__uint128_t)a << (int)n);
  return out ? (a < 0 ? -1 : 0) : a >> (int)n;
}
static __int128_t power(__int128_t a, __int128_t b) {
  __uint128_t r = 1;
  for (__int128_t i = b < 1000 ? b : 0; i > 0; i--) r *= (__uint128_t)a;
  return b < 0 ? 0 : (__int128_t)r;
}

START_TEST(integers) {
  static const uint64_t v[] = { 0,
                                1,
                                2,
                                3,
                                7,
                                8,
                                15,
                                16,
                                31,
                                63,
                                64,
                                100,
                                127,
                                128,
                                200,
                                255,
                                32767,
                                32768,
                                0x7fffffff,
                                0x80000000,
                                0xffffffff,
                                0x7fffffffffffffff,
                                0x8000000000000000,
                                0xffffffffffffffff,
                                0xfffffffffffffff9,
                                0xffffffffffffff80,
                                0x123456789abcdef };
  static const char *const names[] = {
    "floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "pow", "fmod", "add", "multiply",
    "maximum",      "minimum"
  };
  for (nvm_dtype t = NVM_I8; t <= NVM_U64; t++)
    for (unsigned o = 0; o < sizeof names / sizeof *names; o++) {
      const nvg_frag *f = find(names[o], 2, (nvm_dtype[]){ t, t });
      for (unsigned i = 0; i < sizeof v / sizeof *v; i++)
        for (unsigned j = 0; j < sizeof v / sizeof *v; j++) {
          uint64_t in[2] = { cut(t, v[i]), cut(t, v[j]) }, out[1];
          __int128_t a = whole(t, v[i]), b = whole(t, v[j]), want = 0;
          if (o == 4 && b >= 1000) continue;
          switch (o) {
          case 0: want = floor_div(a, b); break;
          case 1: want = b ? a - floor_div(a, b) * b : 0; break;
          case 2: case 3: want = shift(t, a, b, o == 2); break;
          case 4: want = power(a, b); break;
          case 5: want = b ? a % b : 0; break;
          case 6: want = a + b; break;
          case 7: want = (__int128_t)((__uint128_t)a * (__uint128_t)b); break;
          case 8: want = a > b ? a : b; break;
          default: want = a < b ? a : b;
          }
          apply(f, in, out);
          ck_assert_msg(out[0] == cut(t, (uint64_t)want), "%s<%s>(%lld, %lld) = %llx", names[o], nvg_dtype_name(t),
                        (long long)a, (long long)b, (unsigned long long)out[0]);
        }
      const nvg_frag *g = find("abs", 1, (nvm_dtype[]){ t });
      for (unsigned i = 0; i < sizeof v / sizeof *v; i++) {
        uint64_t in = cut(t, v[i]), out;
        __int128_t a = whole(t, v[i]);
        apply(g, &in, &out);
        ck_assert(out == cut(t, (uint64_t)(a < 0 ? -a : a)));
      }
    }
}
END_TEST

/* ---- casts */
static const double floats[] = { 0,
                                 0.5,
                                 1,
                                 1.5,
                                 2.5,
                                 126.9,
                                 127,
                                 127.5,
                                 128,
                                 128.9,
                                 129,
                                 255,
                                 255.9,
                                 256,
                                 32767.5,
                                 32768,
                                 65504,
                                 65519,
                                 65520,
                                 65535.9,
                                 65536,
                                 2147483520,
                                 2147483647.5,
                                 2147483648,
                                 4294967295.5,
                                 4294967296,
                                 0x1p62,
                                 0x1.fffffep62,
                                 0x1.fffffffffffffp62,
                                 0x1p63,
                                 0x1.fffffffffffffp63,
                                 0x1p64,
                                 1e30,
                                 1e300,
                                 0x1p-24,
                                 0x1.8p-25,
                                 0x1p-25,
                                 0x1.000001p-25,
                                 0x1.0000000000001p-25,
                                 0x1.002p0,
                                 0x1.006p0,
                                 0x1.00200001p0,
                                 0x1.001fffffffffp0,
                                 0x1.01p0,
                                 0x1.03p0,
                                 0x1.0100000001p0,
                                 0x1.00ffffffffp0,
                                 0x1.01000000000001p0,
                                 0x1p-133,
                                 0x1p-134,
                                 0x1.8p-134,
                                 0x1.fffffep127,
                                 0x1.ffp127,
                                 0x1.feffffp127,
                                 INFINITY,
                                 NAN };

static uint64_t saturated(nvm_dtype t, double x) {
  int w = nvg_size(t) * 8, sign = nvg_class_of(t) == NVG_SIGNED;
  double end = ldexp(1, sign ? w - 1 : w), y = trunc(x);
  if (isnan(x)) return 0;
  if (y >= end) return cut(t, sign ? (1ull << (w - 1)) - 1 : ~0ull);
  if (y < (sign ? -end : 0)) return sign ? cut(t, 1ull << (w - 1)) : 0;
  return cut(t, y < 0 ? (uint64_t)(int64_t)y : (uint64_t)y);
}
START_TEST(float_to_integer) {
  for (nvm_dtype s = NVM_F32; s <= NVM_F64; s++)
    for (nvm_dtype t = NVM_I8; t <= NVM_U64; t++) {
      const nvg_frag *f = nvg_frag_cast(s, t);
      ck_assert(f != NULL);
      for (unsigned i = 0; i < sizeof floats / sizeof *floats; i++)
        for (int sign = -1; sign < 2; sign += 2) {
          uint64_t in = bits(s, sign * floats[i]), out;
          apply(f, &in, &out);
          ck_assert_msg(out == saturated(t, real(s, in)), "%s(%a) = %llx", nvg_dtype_name(t), real(s, in),
                        (unsigned long long)out);
        }
    }
}
END_TEST

/* to a format of `digits` significant bits, least exponent `least` and greatest value `top`, by exact scaling */
static double rounded(double x, int digits, int least, double top) {
  int e;
  if (!isfinite(x) || x == 0) return x;
  frexp(x, &e);
  double u = ldexp(1, (e < least ? least : e) - digits), y = nearbyint(x / u) * u;
  return fabs(y) > top ? copysign(INFINITY, x) : y;
}
static double half_value(nvm_dtype t, uint64_t u) {
  uint64_t out, in = u;
  apply(nvg_frag_cast(t, NVM_F64), &in, &out);
  return to_f64(out);
}
static void narrow(nvm_dtype t, int digits, int least, double top) {
  static const nvm_dtype from[] = { NVM_F32, NVM_F64 };
  uint64_t s = 88172645463325252u;
  for (int k = 0; k < 2; k++) {
    const nvg_frag *f = nvg_frag_cast(from[k], t);
    ck_assert(f != NULL);
    for (int i = 0; i < 20000; i++) {
      s = s * 6364136223846793005u + 1442695040888963407u;
      double x =
          i < (int)(sizeof floats / sizeof *floats) ? floats[i] : ldexp((double)(int64_t)s, (int)(s >> 7) % 50 - 90);
      if (i % 3 == 0 && isfinite(x)) { /* near a tie */
        int e;
        frexp(x, &e);
        x = rounded(x, digits, least, INFINITY) + ldexp(i % 2 ? 1 : 1 + 0x1p-40, e - digits - 1);
      }
      uint64_t in = bits(from[k], s & 1 ? x : -x), out;
      apply(f, &in, &out);
      double want = rounded(real(from[k], in), digits, least, top), got = half_value(t, out);
      ck_assert_msg((isnan(got) && isnan(want)) || (got == want && !signbit(got) == !signbit(want)),
                    "%s(%a) = %a, not %a", nvg_dtype_name(t), real(from[k], in), got, want);
    }
  }
}
START_TEST(halves) {
  narrow(NVM_F16, 11, -13, 65504);
  narrow(NVM_BF16, 8, -125, 0x1.fep127);
  const nvg_frag *f = nvg_frag_cast(NVM_I64, NVM_BF16), *g = nvg_frag_cast(NVM_U64, NVM_BF16);
  for (int sh = 8; sh < 63; sh++)
    for (int64_t d = -1; d < 2; d++)
      for (int sign = -1; sign < 2; sign += 2) {
        int64_t x = sign * (((0x101ll << (sh - 8)) | (1ll << sh)) + d);
        uint64_t in = (uint64_t)x, out;
        apply(f, &in, &out);
        long double u = ldexpl(1, (sh - 7) > 0 ? sh - 7 : 0), q = nearbyintl((long double)x / u) * u;
        ck_assert_msg((long double)half_value(NVM_BF16, out) == q, "bf16(%lld) = %a", (long long)x,
                      half_value(NVM_BF16, out));
        if (x < 0) continue;
        apply(g, &in, &out);
        ck_assert((long double)half_value(NVM_BF16, out) == q);
      }
}
END_TEST

START_TEST(every_cast) {
  for (nvm_dtype a = NVM_BOOL; a < NVM_NDTYPES; a++)
    for (nvm_dtype b = NVM_BOOL; b < NVM_NDTYPES; b++) {
      if (nvg_parts(a) == 2 || nvg_parts(b) == 2) continue;
      uint64_t in = nvg_class_of(a) == NVG_FLOAT ? nvg_float_bits(a, 1) : 1, out = 0;
      const nvg_frag *f = nvg_frag_cast(a, b);
      ck_assert_msg(f != NULL, "no cast from %s to %s", nvg_dtype_name(a), nvg_dtype_name(b));
      apply(f, &in, &out);
      uint64_t one = nvg_class_of(b) == NVG_FLOAT ? nvg_float_bits(b, 1) : 1;
      ck_assert_msg(out == one, "%s(%s 1)", nvg_dtype_name(b), nvg_dtype_name(a));
    }
}
END_TEST

/* ---- order */
static void same(const char *name, nvm_dtype t, double a, double b, double want) {
  uint64_t in[2] = { bits(t, a), bits(t, b) }, out;
  apply(find(name, 2, (nvm_dtype[]){ t, t }), in, &out);
  double got = real(t, out);
  ck_assert_msg(isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want), "%s(%g, %g) = %g, not %g",
                name, a, b, got, want);
}
START_TEST(order) {
  for (nvm_dtype t = NVM_F32; t <= NVM_F64; t++) {
    same("maximum", t, -0.0, 0.0, 0.0), same("maximum", t, 0.0, -0.0, 0.0), same("minimum", t, 0.0, -0.0, -0.0),
        same("minimum", t, -0.0, 0.0, -0.0);
    same("maximum", t, NAN, 1, NAN), same("maximum", t, 1, NAN, NAN), same("minimum", t, NAN, -INFINITY, NAN),
        same("minimum", t, 1, NAN, NAN);
    same("maximum", t, -INFINITY, INFINITY, INFINITY), same("maximum", t, -3, -2, -2), same("minimum", t, -3, -2, -3);
    same("copysign", t, 3, -0.0, -3), same("copysign", t, -INFINITY, 1, INFINITY);
    same("nextafter", t, 0, 1, t == NVM_F32 ? 0x1p-149 : 0x1p-1074), same("nextafter", t, 1, 1, 1),
        same("nextafter", t, 0, -0.0, -0.0);
    same("nextafter", t, 1, INFINITY, t == NVM_F32 ? 0x1.000002p0 : 0x1.0000000000001p0),
        same("nextafter", t, 1, NAN, NAN);
    same("nextafter", t, -1, 0, t == NVM_F32 ? -0x1.fffffep-1 : -0x1.fffffffffffffp-1),
        same("nextafter", t, INFINITY, 0, t == NVM_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023);
  }
}
END_TEST

/* the array API's tables */
START_TEST(division) {
  static const struct {
    double a, b, q, r;
  } v[] = { { 7, 2, 3, 1 },
            { -7, 2, -4, 1 },
            { 7, -2, -4, -1 },
            { -7, -2, 3, -1 },
            { 6, 3, 2, 0 },
            { -6, 3, -2, 0 },
            { 6, -3, -2, -0.0 },
            { 0.0, 3, 0, 0 },
            { -0.0, 3, -0.0, 0 },
            { 0.0, -3, -0.0, -0.0 },
            { -0.0, -3, 0, -0.0 },
            { 0, 0, NAN, NAN },
            { 1, 0, INFINITY, NAN },
            { -1, 0, -INFINITY, NAN },
            { 1, -0.0, -INFINITY, NAN },
            { -1, -0.0, INFINITY, NAN },
            { INFINITY, 2, INFINITY, NAN },
            { INFINITY, -2, -INFINITY, NAN },
            { -INFINITY, 2, -INFINITY, NAN },
            { -INFINITY, -2, INFINITY, NAN },
            { INFINITY, INFINITY, NAN, NAN },
            { 3, INFINITY, 0, 3 },
            { 3, -INFINITY, -0.0, -INFINITY },
            { -3, INFINITY, -0.0, INFINITY },
            { -3, -INFINITY, 0, -3 },
            { 0.0, INFINITY, 0, 0 },
            { -0.0, INFINITY, -0.0, 0 },
            { NAN, 1, NAN, NAN },
            { 1, NAN, NAN, NAN },
            { 0x1p100, 3, 0x1.5555555555555p98, 1 },
            { 0.5, 1, 0, 0.5 },
            { -0.5, 1, -1, 0.5 },
            { 1, 0.1f, 9, 0 } };
  for (nvm_dtype t = NVM_F32; t <= NVM_F64; t++)
    for (unsigned i = 0; i < sizeof v / sizeof *v; i++) {
      if (v[i].b != 0.1f) same("remainder", t, v[i].a, v[i].b, v[i].r);
      same("floor_divide", t, v[i].a, v[i].b, t == NVM_F32 ? (float)v[i].q : v[i].q);
    }
}
END_TEST

START_TEST(arg_merges) {
  static const struct {
    double a, b;
    int64_t i, j, max, min;
  } v[] = { { 1, 2, 0, 1, 1, 0 },   { 2, 2, 5, 3, 3, 3 },     { NAN, 2, 7, 3, 7, 7 },
            { 2, NAN, 7, 9, 9, 9 }, { NAN, NAN, 7, 3, 3, 3 }, { -0.0, 0.0, 4, 9, 4, 4 } };
  for (nvm_dtype t = NVM_F32; t <= NVM_F64; t++)
    for (unsigned i = 0; i < sizeof v / sizeof *v; i++) {
      uint64_t in[4] = { bits(t, v[i].a), (uint64_t)v[i].i, bits(t, v[i].b), (uint64_t)v[i].j }, out[2];
      const nvm_dtype types[4] = { t, NVM_I64, t, NVM_I64 };
      apply(find("argmax", 4, types), in, out);
      ck_assert(out[1] == (uint64_t)v[i].max);
      apply(find("argmin", 4, types), in, out);
      ck_assert(out[1] == (uint64_t)v[i].min);
    }
}
END_TEST

START_TEST(merged_maxima) {
  const nvm_dtype t[4] = { NVM_F64, NVM_F64, NVM_F64, NVM_F64 };
  uint64_t in[4] = { of_f64(-INFINITY), of_f64(0), of_f64(3), of_f64(2) }, out[2];
  apply(find("logsumexp", 4, t), in, out);
  ck_assert(to_f64(out[0]) == 3 && to_f64(out[1]) == 2);
}
END_TEST

/* ---- complex functions against the C library: kind and sign of every result, and values to a few ulp */
static int kind(double x) { return isnan(x) ? 1 : isinf(x) ? 2 : x == 0 ? 3 : 0; }
static void complex_like(const char *name, double complex (*ref)(double complex)) {
  static const double v[] = { 0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 1e-5, 1e10, INFINITY, -INFINITY, NAN };
  enum { N = sizeof v / sizeof *v };
  const nvg_frag *f = find(name, 2, (nvm_dtype[]){ NVM_F64, NVM_F64 }),
                 *g = find(name, 2, (nvm_dtype[]){ NVM_F32, NVM_F32 });
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      uint64_t in[2] = { of_f64(v[i]), of_f64(v[j]) }, out[2], small[2] = { of_f32((float)v[i]), of_f32((float)v[j]) },
               low[2];
      double complex w = ref(CMPLX(v[i], v[j]));
      int finite = isfinite(v[i]) && isfinite(v[j]);
      apply(f, in, out);
      apply(g, small, low);
      for (int k = 0; k < 2; k++) {
        double want = k ? cimag(w) : creal(w), got = to_f64(out[k]), got32 = (double)to_f32(low[k]);
        int ok = kind(got) == kind(want) && (kind(want) || fabs(got - want) <= 8e-16 * fabs(want)) &&
                 (!finite || isnan(want) || !signbit(got) == !signbit(want));
        ck_assert_msg(ok, "%s(%g, %g) part %d is %g, not %g", name, v[i], v[j], k, got, want);
        if (v[i] != 1e10 && v[j] != 1e10 && v[i] != 1e-5 && v[j] != 1e-5)
          ck_assert_msg(kind(got32) == kind(want) && (kind(want) || fabs(got32 - want) <= 1e-6 * fabs(want)),
                        "%s<f32>(%g, %g)", name, v[i], v[j]);
      }
    }
}
START_TEST(complex_functions) {
  complex_like("c.sqrt", csqrt), complex_like("c.exp", cexp), complex_like("c.log", clog),
      complex_like("c.sinh", csinh), complex_like("c.cosh", ccosh);
  complex_like("c.tanh", ctanh), complex_like("c.asinh", casinh), complex_like("c.acosh", cacosh),
      complex_like("c.atanh", catanh), complex_like("c.asin", casin);
  complex_like("c.acos", cacos), complex_like("c.atan", catan), complex_like("c.sin", csin),
      complex_like("c.cos", ccos), complex_like("c.tan", ctan);
}
END_TEST

/* random values against long double, by component */
static void complex_near(const char *name, long double complex (*ref)(long double complex), double bound) {
  const nvg_frag *f = find(name, 2, (nvm_dtype[]){ NVM_F64, NVM_F64 });
  uint64_t s = 88172645463325252u;
  for (int i = 0; i < 3000; i++) {
    double z[2];
    uint64_t in[2], out[2];
    for (int k = 0; k < 2; k++) {
      s = s * 6364136223846793005u + 1442695040888963407u;
      z[k] = ldexp((double)(int64_t)s, i % 2 ? -62 : (int)((s >> 5) % 18) - 77);
      in[k] = of_f64(z[k]);
    }
    long double complex w = ref(CMPLXL(z[0], z[1]));
    apply(f, in, out);
    for (int k = 0; k < 2; k++) {
      long double want = k ? cimagl(w) : creall(w);
      int e;
      frexpl(want, &e);
      double error = (double)fabsl(((long double)to_f64(out[k]) - want) / ldexpl(1, e - 53));
      ck_assert_msg(error <= bound, "%s(%a, %a) part %d: %.2f ulp", name, z[0], z[1], k, error);
    }
  }
}
static long double complex log1p_of(long double complex z) {
  long double x = creall(z), y = cimagl(z);
  int near = fabsl(x) < 1.5L && fabsl(y) < 1.5L && x * (2 + x) + y * y > -0.5L;
  return CMPLXL(near ? 0.5L * log1pl(x * (2 + x) + y * y) : logl(hypotl(1 + x, y)), atan2l(y, 1 + x));
}
START_TEST(complex_accuracy) {
  complex_near("c.sqrt", csqrtl, 4), complex_near("c.exp", cexpl, 4), complex_near("c.log", clogl, 4);
  complex_near("c.log1p", log1p_of, 4);
  complex_near("c.sinh", csinhl, 4), complex_near("c.cosh", ccoshl, 4), complex_near("c.tanh", ctanhl, 5);
  complex_near("c.sin", csinl, 4), complex_near("c.cos", ccosl, 4), complex_near("c.tan", ctanl, 5);
  complex_near("c.asin", casinl, 5), complex_near("c.acos", cacosl, 5), complex_near("c.atan", catanl, 4);
  complex_near("c.asinh", casinhl, 5), complex_near("c.acosh", cacoshl, 5), complex_near("c.atanh", catanhl, 4);
}
END_TEST

START_TEST(complex_arithmetic) {
  const nvm_dtype t[4] = { NVM_F64, NVM_F64, NVM_F64, NVM_F64 };
  double a = 1.1, b = -2.3, c = 0.7, d = 5.9;
  uint64_t in[4] = { of_f64(a), of_f64(b), of_f64(c), of_f64(d) }, out[2];
  apply(find("c.multiply", 4, t), in, out);
  volatile double ac = a * c, bd = b * d, ad = a * d, bc = b * c;
  ck_assert(to_f64(out[0]) == ac - bd && to_f64(out[1]) == ad + bc);
  apply(find("c.divide", 4, t), in, out);
  double complex q = CMPLX(a, b) / CMPLX(c, d);
  ck_assert(fabs(to_f64(out[0]) - creal(q)) < 1e-15 && fabs(to_f64(out[1]) - cimag(q)) < 1e-15);
  apply(find("c.pow", 4, t), in, out);
  q = cpow(CMPLX(a, b), CMPLX(c, d));
  ck_assert(cabs(CMPLX(to_f64(out[0]), to_f64(out[1])) - q) < 1e-13 * cabs(q));
  apply(find("c.abs", 2, t), in, out);
  ck_assert(to_f64(out[0]) == hypot(a, b));
  apply(find("c.sign", 2, t), in, out);
  ck_assert(fabs(to_f64(out[0]) - a / hypot(a, b)) < 1e-15 && fabs(to_f64(out[1]) - b / hypot(a, b)) < 1e-15);
}
END_TEST

/* ---- both forms */
START_TEST(forms_agree) {
  static const char *const names[] = { "exp",  "log",     "sin",  "cos",   "tan",   "tanh",
                                       "gelu", "sigmoid", "silu", "expm1", "log1p", "exp2" };
  enum { BLOCK = 4096 };
  static uint32_t x[BLOCK], fast[BLOCK], full[BLOCK];
  static uint8_t rare[BLOCK];
  for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
    const nvg_frag *f = find(names[k], 1, (nvm_dtype[]){ NVM_F32 });
    for (uint64_t at = 0; at < 1u << 20; at += BLOCK) { /* a step that is odd meets all low bits */
      for (int i = 0; i < BLOCK; i++) x[i] = (uint32_t)((at + (uint64_t)i) * 4097);
      const void *in[1] = { x };
      nvg_frag_run(f, in, (void *const[]){ fast }, BLOCK, 0);
      nvg_frag_run(f, in, (void *const[]){ full }, BLOCK, 1);
      memset(rare, 0, sizeof rare);
      if (f->rare >= 0) nvg_frag_flags(f, in, rare, BLOCK);
      for (int i = 0; i < BLOCK; i++) {
        int nan = isnan(to_f32(fast[i])) && isnan(to_f32(full[i]));
        ck_assert_msg(rare[i] || nan || fast[i] == full[i], "%s(%08x): %08x, %08x", names[k], x[i], fast[i], full[i]);
        if (!strcmp(names[k], "sin") || !strcmp(names[k], "cos") || !strcmp(names[k], "tanh"))
          ck_assert_msg(!(fabsf(to_f32(full[i])) > 1), "%s(%08x) is above 1", names[k], x[i]);
      }
    }
  }
}
END_TEST

START_TEST(exact_points) {
  static const struct {
    const char *name;
    double x, y;
  } v[] = { { "exp", 0, 1 },         { "exp2", 10, 1024 },     { "exp2", -3, 0.125 },   { "log", 1, 0 },
            { "log2", 8, 3 },        { "log2", 0x1p-20, -20 }, { "log10", 1, 0 },       { "cos", 0, 1 },
            { "cosh", 0, 1 },        { "cbrt", 27, 3 },        { "sigmoid", 0, 0.5 },   { "tan", -0.0, -0.0 },
            { "sin", -0.0, -0.0 },   { "tanh", -0.0, -0.0 },   { "expm1", -0.0, -0.0 }, { "log1p", -0.0, -0.0 },
            { "asinh", -0.0, -0.0 }, { "atanh", -0.0, -0.0 },  { "erf", -0.0, -0.0 },   { "gelu", -0.0, -0.0 },
            { "silu", -0.0, -0.0 },  { "cbrt", -0.0, -0.0 },   { "relu", -2, 0 },       { "relu", 2, 2 },
            { "sign", -0.0, 0 },     { "sign", -7, -1 },       { "round", 2.5, 2 },     { "round", -0.5, -0.0 },
            { "trunc", -1.5, -1 } };
  for (nvm_dtype t = NVM_F32; t <= NVM_F64; t++)
    for (unsigned i = 0; i < sizeof v / sizeof *v; i++) {
      uint64_t in = bits(t, v[i].x), out;
      apply(find(v[i].name, 1, (nvm_dtype[]){ t }), &in, &out);
      ck_assert_msg(out == bits(t, v[i].y), "%s(%g) = %a", v[i].name, v[i].x, real(t, out));
    }
}
END_TEST

/* Powers of whole numbers by whole exponents that f32 holds, also of these times a power of two, and square roots of
   squares have no other number within half an ulp of what pow computes. */
START_TEST(whole_powers_are_exact) {
  const nvg_frag *f = find("pow", 2, (nvm_dtype[]){ NVM_F32, NVM_F32 });
  for (int n = 2; n <= 24; n++)
    for (double a = 1, y; (y = pow(a, n)) <= 0x1p24; a++)
      for (int by = -4; by <= 4; by += 4) {
        uint64_t in[2] = { of_f32((float)ldexp(a, by)), of_f32((float)n) }, out;
        apply(f, in, &out);
        ck_assert_msg(to_f32(out) == (float)ldexp(y, by * n), "%g ** %d = %a", ldexp(a, by), n, (double)to_f32(out));
        if (n > 2) continue;
        apply(f, (uint64_t[]){ of_f32((float)ldexp(y, 2 * by)), of_f32(0.5F) }, &out);
        ck_assert_msg(to_f32(out) == (float)ldexp(a, by), "%g ** 0.5 = %a", ldexp(y, 2 * by), (double)to_f32(out));
      }
}
END_TEST

/* ---- NaN made by arithmetic has one sign on a CPU and another on a GPU: nothing but NaN may come of that sign. Each
   function in both forms as it is, with every NaN on the way made positive, and negative. */
enum { SAMPLES = 1 << 12, MOST_PARAMS = 8 };
typedef struct signs { const nvg_frag *f, *by_sign[2]; } signs;

static int may_be_nan(const nvg_inst *x) {
  static const uint8_t prims[] = { NVG_ADD,         NVG_SUB,  NVG_MUL,   NVG_DIV,  NVG_FMA,   NVG_SQRT,
                                   NVG_SQRT_INSIDE, NVG_RINT, NVG_FLOOR, NVG_CEIL, NVG_TRUNC, NVG_CVT };
  return (x->type == NVM_F32 || x->type == NVM_F64) && memchr(prims, x->prim, sizeof prims);
}
static const nvg_frag *with_sign(nvb_arena *a, const nvg_frag *f, unsigned negative) {
  nvb_text text = { .arena = a }, t = { .arena = a };
  const nvg_inst *body = f->inst;
  nvm_dtype types[MOST_PARAMS];
  nvg_frag_print(&text, f);
  for (const char *line = nvb_text_get(&text), *end; *line; line = end) {
    int v = -1, at = 0;
    end = strchr(line, '\n') + 1;
    nvb_print(&t, "%.*s", (int)(end - line), line);
    if (!strncmp(line, "  } full", 8)) body = f->full->inst;
    sscanf(line, " v%d = %n", &v, &at);
    if (at && may_be_nan(&body[v]))
      nvb_print(&t,
                body[v].type == NVM_F32 ? "v%d = select(v%d == v%d, v%d, bits<f32>(u32(0x%x)))\n"
                                        : "v%d = select(v%d == v%d, v%d, bits<f64>(u64(0x%x00000000)))\n",
                v, v, v, v, 0x7ff80000u | negative << 31);
  }
  for (int i = 0; i < f->nparam; i++) types[i] = (nvm_dtype)f->inst[i].type;
  nvg_fragset *set = nvg_fragset_new(a);
  nvg_fragset_parse(set, nvb_text_get(&t), f->name);
  return nvg_fragset_find(set, f->name, types, f->nparam);
}
static void make_signs(nvb_arena *a, void *arg) {
  signs *s = arg;
  for (unsigned k = 0; k < 2; k++) s->by_sign[k] = with_sign(a, s->f, k);
}

/* Parameter i of sample e; NaN with this sign. */
static uint64_t sample(nvm_dtype t, int i, int e, int negative) {
  static const double v[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 1e-5, 40, -1e10, 1e30, 1e-40, INFINITY, -INFINITY, NAN
  };
  uint64_t h = ((uint64_t)e + 1) * 0x9e3779b97f4a7c15u;
  double x = v[i < 3 ? e >> 4 * i & 15 : (int)(h >> (8 + 7 * i) & 15)];
  if (t != NVM_F32 && t != NVM_F64) return t == NVM_BOOL ? (uint64_t)e & 1 : h >> 60;
  return bits(t, isnan(x) ? copysign(x, negative ? -1 : 1) : x);
}
static void run_samples(const nvg_frag *f, int full, int negative, uint8_t *(*out)) {
  static uint64_t in[MOST_PARAMS][SAMPLES];
  const void *from[MOST_PARAMS];
  void *to[MOST_PARAMS];
  for (int i = 0; i < f->nparam; i++) {
    nvm_dtype t = (nvm_dtype)f->inst[i].type;
    size_t size = (size_t)nvg_size(t);
    for (int e = 0; e < SAMPLES; e++) {
      uint64_t x = sample(t, i, e, negative);
      memcpy((char *)in[i] + size * (size_t)e, &x, size);
    }
    from[i] = in[i];
  }
  for (int i = 0; i < f->nresult; i++) to[i] = out[i];
  nvg_frag_run(f, from, to, SAMPLES, full);
  if (!full) nvg_frag_flags(f, from, out[f->nresult], SAMPLES);
}
static int nan_in(nvm_dtype t, const uint8_t *p) {
  uint64_t u = 0;
  memcpy(&u, p, (size_t)nvg_size(t));
  return t == NVM_F16 || t == NVM_BF16 ? isnan(half_value(t, u)) : (t == NVM_F32 || t == NVM_F64) && isnan(real(t, u));
}
static void compare_samples(const nvg_frag *f, int full, uint8_t *const *a, uint8_t *const *b) {
  for (int k = 0; k < f->nresult; k++) {
    nvm_dtype t = (nvm_dtype)f->inst[f->result[k]].type;
    size_t size = (size_t)nvg_size(t);
    for (size_t e = 0; e < SAMPLES; e++) {
      const uint8_t *p = a[k] + size * e, *q = b[k] + size * e;
      if (!memcmp(p, q, size) || (nan_in(t, p) && nan_in(t, q)) || (!full && (a[f->nresult][e] | b[f->nresult][e])))
        continue;
      char at[256] = "";
      for (int i = 0, n = 0; i < f->nparam; i++)
        n += snprintf(at + n, sizeof at - (size_t)n, i ? ", %g" : "%g",
                      real((nvm_dtype)f->inst[i].type, sample((nvm_dtype)f->inst[i].type, i, (int)e, 0)));
      ck_abort_msg("%s<%s>(%s), result %d depends on the sign of a NaN", f->name,
                   nvg_dtype_name((nvm_dtype)f->inst[0].type), at, k);
    }
  }
}
static void sign_is_nothing(const nvg_frag *f) {
  static uint8_t memory[2][MOST_PARAMS][8 * SAMPLES];
  uint8_t *out[2][MOST_PARAMS];
  for (int i = 0; i < 2 * MOST_PARAMS; i++)
    out[i / MOST_PARAMS][i % MOST_PARAMS] = memory[i / MOST_PARAMS][i % MOST_PARAMS];
  signs s = { .f = f };
  nvb_arena *a = nvb_arena_new();
  ck_assert_msg(!nvb_protect(a, make_signs, &s), "%s: %s", f->name, nvb_message());
  for (int full = f->rare < 0; full < 2; full++) {
    run_samples(f, full, 0, out[0]);
    for (int k = 0; k < 2; k++) {
      run_samples(s.by_sign[k], full, k, out[1]);
      compare_samples(f, full, out[0], out[1]);
    }
  }
  nvb_arena_free(a);
}
START_TEST(sign_of_nan) {
  static const nvm_dtype types[] = { NVM_F32, NVM_F64, NVM_C64, NVM_C128 };
  int tried = 0;
  for (int op = 0; op < NVG_NOPS; op++)
    for (int k = 0; k < 4; k++) {
      const nvg_frag *f = nvg_ops[op].kind == NVG_KMAP ? nvg_map_frag((nvg_op)op, types[k]) : NULL;
      if (!f || op == NVG_OP_COPYSIGN || op == NVG_OP_SIGNBIT) continue; /* which are about it */
      sign_is_nothing(f);
      tried++;
    }
  ck_assert(tried > 150);
  for (nvm_dtype t = NVM_F32; t <= NVM_F64; t++)
    for (nvm_dtype to = NVM_BOOL; to < NVM_C64; to++) sign_is_nothing(nvg_frag_cast(t, to));
  sign_is_nothing(find("logsumexp", 4, (nvm_dtype[]){ NVM_F64, NVM_F64, NVM_F64, NVM_F64 }));
}
END_TEST

/* On a GPU a quotient that is no number is done again with all of its function: one by 0 always is. */
static void no_quotient_by_zero(const nvg_frag *f) {
  for (int i = 0; i < f->ninst; i++) {
    const nvg_inst *x = &f->inst[i], *by = x->b < 0 ? x : &f->inst[x->b];
    ck_assert_msg(x->prim != NVG_DIV || nvg_class_of(x->type) != NVG_FLOAT || by->prim != NVG_CONST ||
                      nvg_bits_float(x->type, by->imm) != 0,
                  "%s divides by the constant 0", f->name);
  }
}
START_TEST(no_quotients_by_zero) {
  static const nvm_dtype types[] = { NVM_F32, NVM_F64, NVM_C64, NVM_C128 };
  for (int op = 0; op < NVG_NOPS; op++)
    for (int k = 0; k < 4; k++) {
      const nvg_frag *f = nvg_ops[op].kind == NVG_KMAP ? nvg_map_frag((nvg_op)op, types[k]) : NULL;
      if (f) no_quotient_by_zero(f);
      if (f && f->rare >= 0) no_quotient_by_zero(f->full);
    }
}
END_TEST

/* ---- bfloat16 terms of float32 (numerics.md section 4) */
static float piece(const nvg_frag *f, float x) {
  uint64_t in = of_f32(x), out;
  apply(f, &in, &out);
  return to_f32(out << 16);
}
static void take_apart(uint32_t u) {
  static const nvg_frag *f[4];
  const nvm_dtype t = NVM_F32;
  static const char *const name[] = { "bf16.first", "bf16.finite", "bf16.second", "bf16.third" };
  for (int i = 0; i < 4 && !f[i]; i++) f[i] = find(name[i], 1, &t);
  float x = to_f32(u), p[4];
  for (int i = 0; i < 4; i++) p[i] = piece(f[i], x);
  double left = (double)x - (double)p[0], tiny = 0x1p-134, size = fabs((double)x);
  if (!isfinite(x)) {
    ck_assert_msg(isnan(x) ? isnan(p[0]) : p[0] == x, "%a: its first piece is %a", (double)x, (double)p[0]);
    ck_assert_msg(p[1] == 0 && p[2] == 0 && p[3] == 0, "%a: pieces %a, %a, %a", (double)x, (double)p[1], (double)p[2],
                  (double)p[3]);
    return;
  }
  ck_assert_msg(p[1] == p[0] && isfinite(p[0]) && (p[0] == 0) == (x == 0) && signbit(p[0]) == signbit(x),
                "%a: its first piece is %a", (double)x, (double)p[0]);
  /* of 8 bits each, to nearest: 2^-9 of the next power of two; next to the end of the range, and of zero, twice that */
  int edge = size < tiny || size > 0x1.fep127;
  ck_assert_msg(fabs(left) <= fmax(0x1p-8 * size, tiny) * (edge ? 2 : 1), "%a: %a is left", (double)x, left);
  left -= (double)p[2];
  ck_assert_msg(isfinite(p[0] + p[2]), "%a: the first two pieces are %a", (double)x, (double)p[0] + (double)p[2]);
  double most = fmax(0x1.01p-17 * size, tiny) * (size >= 0x1p128 - 0x1p111 ? 2 : 1);
  ck_assert_msg(fabs(left) <= most, "%a: %a is left of two", (double)x, left);
  left -= (double)p[3];
  ck_assert_msg(fabs(left) <= (size >= 0x1p-110 ? 0 : tiny), "%a: %a is left of three", (double)x, left);
}
START_TEST(pieces_of_a_float) {
  static const uint32_t end[] = { 0,          1,          0x7fff,     0x8000,     0x8001,     0xffff,     0x10000,
                                  0x18000,    0x3f7fffff, 0x3f800000, 0x3f808000, 0x7f7effff, 0x7f7f0000, 0x7f7f7fff,
                                  0x7f7f8000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7f80ffff, 0x7fc00000, 0x7fffffff };
  for (size_t i = 0; i < sizeof end / sizeof *end; i++) take_apart(end[i]), take_apart(end[i] | 0x80000000u);
  for (uint64_t u = 0; u < 1ull << 32; u += 4093) take_apart((uint32_t)u);
}
END_TEST

/* Words that do not decide alone: the next counter's word is asked for, where it carries and where it does not. */
START_TEST(integers_of_two_words) {
  static const nvm_dtype i64[] = { NVM_I64, NVM_I64, NVM_I64, NVM_I64, NVM_I64, NVM_I64 };
  static const uint64_t ns[] = { 3, 1000, UINT32_MAX, 1ull << 32, (1ull << 40) + 3, 1ull << 63, UINT64_MAX };
  const nvg_frag *below = find("random_below", 6, i64), *word = find("random64", 4, i64);
  const uint64_t key = 0x123456789abcdef0, at = 77, stream = 5;
  int carries[2] = { 0, 0 };
  for (unsigned k = 0; k < sizeof ns / sizeof *ns; k++)
    for (uint64_t i = 0; i < 200; i++) {
      /* the last x whose product is below a multiple of 2^64, or one a little before it */
      uint64_t n = ns[k], j = (i >> 1) % (n < 50 ? n : 50) + 1, y, r;
      uint64_t x = (uint64_t)((((__uint128_t)j << 64) - 1) / n) - (i & 1 ? i % 3 : 0);
      apply(word, (uint64_t[]){ i & 1, key, at + (i | 1), stream }, &y);
      apply(below, (uint64_t[]){ x, i, key, at, stream, n }, &r);
      __uint128_t p = (__uint128_t)x * n, sum = p + ((__uint128_t)y * n >> 64);
      ck_assert_uint_eq(r, (uint64_t)(sum >> 64));
      carries[sum >> 64 != p >> 64]++;
    }
  ck_assert(carries[0] > 100 && carries[1] > 100);
}
END_TEST

SUITE("functions", integers, float_to_integer, halves, every_cast, order, division, arg_merges, merged_maxima,
      complex_functions, complex_accuracy, complex_arithmetic, forms_agree, exact_points, whole_powers_are_exact,
      sign_of_nan, no_quotients_by_zero, pieces_of_a_float, integers_of_two_words)
