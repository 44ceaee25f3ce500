/* The library of fragments: casts of every pair of types, lack of memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "frag/impl.h"

START_TEST(every_cast_is_there) {
  for (int from = NVM_BOOL; from < NVM_C64; from++)
    for (int to = NVM_BOOL; to < NVM_C64; to++) {
      const nvg_frag *f = nvg_frag_cast((nvm_dtype)from, (nvm_dtype)to);
      ck_assert_msg(f != NULL, "%s to %s: %s", nvg_dtype_short((nvm_dtype)from), nvg_dtype_short((nvm_dtype)to),
                    nvb_message());
      ck_assert_int_eq(f->inst[0].type, from);
      ck_assert_int_eq(f->inst[f->result[0]].type, to);
      if (from == to) ck_assert_int_eq(f->result[0], 0);
      ck_assert_ptr_eq(f, nvg_frag_cast((nvm_dtype)from, (nvm_dtype)to));
    }
  ck_assert_ptr_null(nvg_frag_cast(NVM_C64, NVM_F32));
  ck_assert_int_eq(nvb_status(), NVM_ERR_TYPE);
}
END_TEST

START_TEST(elements_share_counters) {
  static const struct {
    const char *name;
    int nparam, shared;
  } of[] = { { "random32", 4, 4 },        { "random64", 4, 2 },        { "random_first64", 4, 2 },
             { "random_normal32", 4, 4 }, { "random_normal64", 4, 2 }, { "random_below", 6, 1 } };
  static const nvm_dtype i64[] = { NVM_I64, NVM_I64, NVM_I64, NVM_I64, NVM_I64, NVM_I64 };
  for (int i = 0; i < 6; i++) {
    const nvg_frag *f = nvg_frag_find(of[i].name, i64, of[i].nparam);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(nvg_frag_shared(f), of[i].shared);
  }
}
END_TEST

/* What a double is as an integer: truncated, saturated, NaN gives 0. */
static int64_t clipped(double x, nvm_dtype to) {
  int width = nvg_size(to) * 8, sign = nvg_class_of(to) == NVG_SIGNED;
  double end = ldexp(1, width - sign);
  if (isnan(x)) return 0;
  if (x >= end) return (int64_t)(nvg_mask(to) >> sign);
  if (x < (sign ? -end : 0)) return sign ? -(int64_t)(nvg_mask(to) >> 1) - 1 : 0;
  return sign || x < 0x1p63 ? (int64_t)x : (int64_t)(uint64_t)x;
}
START_TEST(floats_to_integers_saturate) {
  static const double xs[] = { 0,
                               0.9,
                               -0.9,
                               1.5,
                               -1.5,
                               127,
                               127.9,
                               128,
                               -128,
                               -128.9,
                               -129,
                               255.5,
                               256,
                               32767.5,
                               65535.5,
                               65536,
                               2147483520.0,
                               2147483647.0,
                               2147483648.0,
                               -2147483648.0,
                               -2147483904.0,
                               4294967040.0,
                               4294967295.0,
                               4294967296.0,
                               0x1p62,
                               0x1p63,
                               -0x1p63,
                               0x1.fffffep63,
                               0x1p64,
                               1e30,
                               -1e30,
                               5e-324,
                               INFINITY,
                               -INFINITY,
                               NAN };
  for (int from = NVM_F32; from <= NVM_F64; from++)
    for (int to = NVM_I8; to <= NVM_U64; to++)
      for (unsigned i = 0; i < sizeof xs / sizeof *xs; i++) {
        float f = (float)xs[i];
        double x = from == NVM_F32 ? (double)f : xs[i];
        uint64_t got = 0;
        nvg_frag_run(nvg_frag_cast((nvm_dtype)from, (nvm_dtype)to),
                     (const void *[]){ from == NVM_F32 ? (void *)&f : (void *)&x }, (void *[]){ &got }, 1, 1);
        uint64_t want = (uint64_t)clipped(x, (nvm_dtype)to) & nvg_mask((nvm_dtype)to);
        ck_assert_msg(got == want, "%a to %s: %llx, not %llx", x, nvg_dtype_short((nvm_dtype)to),
                      (unsigned long long)got, (unsigned long long)want);
      }
}
END_TEST

static float bf16(uint16_t h) {
  uint32_t u = (uint32_t)h << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}

START_TEST(bf16_is_the_upper_half) {
  static uint16_t h[1 << 16], again[1 << 16];
  static float f[1 << 16];
  for (int i = 0; i < 1 << 16; i++) h[i] = (uint16_t)i;
  nvg_frag_run(nvg_frag_cast(NVM_BF16, NVM_F32), (const void *[]){ h }, (void *[]){ f }, 1 << 16, 1);
  nvg_frag_run(nvg_frag_cast(NVM_F32, NVM_BF16), (const void *[]){ f }, (void *[]){ again }, 1 << 16, 1);
  for (int i = 0; i < 1 << 16; i++) {
    float want = bf16(h[i]);
    ck_assert(isnan(want) ? isnan(f[i]) && isnan(bf16(again[i])) : f[i] == want && again[i] == h[i]);
  }
}
END_TEST

/* every f32 from 0 to infinity (under a sanitizer every 31st 65,536 of them): the nearest bf16, ties to even */
START_TEST(f32_to_bf16_rounds_to_even) {
  enum { N = 1 << 16, STEP = ONE_IN > 1 ? 31 * N : N };
  static uint32_t u[N];
  static uint16_t h[N];
  const nvg_frag *f = nvg_frag_cast(NVM_F32, NVM_BF16);
  for (uint64_t lo = 0; lo <= 0x7f800000; lo += STEP) {
    int n = lo == 0x7f800000 ? 1 : N, bad = 0;
    for (int i = 0; i < n; i++) u[i] = (uint32_t)lo + (uint32_t)i;
    nvg_frag_run(f, (const void *[]){ u }, (void *[]){ h }, n, 1);
    for (int i = 0; i < n; i++) { /* the bits of a float are in order, so is their rounding */
      uint32_t down = u[i] >> 16, rest = u[i] & 0xffff;
      bad += h[i] != down + (rest > 0x8000 || (rest == 0x8000 && (down & 1)));
    }
    ck_assert_msg(!bad, "%d wrong from %llx on", bad, (unsigned long long)lo);
  }
}
END_TEST

/* f64 to f16: around every half-way point, where a way through f32 would round twice */
START_TEST(f64_to_f16_rounds_once) {
  const nvg_frag *f = nvg_frag_cast(NVM_F64, NVM_F16);
  for (int i = 0; i < 0x7bff; i++) {
    double lo = i < 0x400 ? ldexp(i, -24) : ldexp(1024 + (i & 0x3ff), (i >> 10) - 25), hi;
    hi = i + 1 < 0x400 ? ldexp(i + 1, -24) : ldexp(1024 + ((i + 1) & 0x3ff), ((i + 1) >> 10) - 25);
    double mid = (lo + hi) / 2, x[5] = { mid, nextafter(mid, 0), nextafter(mid, INFINITY), lo, mid * (1 + 0x1p-40) };
    int want[5] = { i & 1 ? i + 1 : i, i, i + 1, i, i + 1 };
    uint16_t h[5];
    nvg_frag_run(f, (const void *[]){ x }, (void *[]){ h }, 5, 1);
    for (int k = 0; k < 5; k++)
      ck_assert_msg(h[k] == want[k], "%a gives %04x, not %04x", x[k], h[k], (unsigned)want[k]);
  }
}
END_TEST

/* All numbers of 8 bits lead back, and every 31st 65,536 of all f32 round as nvg_float_bits does. */
START_TEST(eight_bits) {
  enum { N = 1 << 16, STEP = 31 * N };
  static uint32_t u[N];
  static uint8_t h[N];
  for (int k = 0; k < 2; k++) {
    nvm_dtype t = k ? NVM_F8E5 : NVM_F8E4, wide[] = { NVM_F16, NVM_BF16, NVM_F32, NVM_F64 };
    for (int w = 0; w < 4; w++)
      for (int b = 0; b < 256; b++) {
        uint64_t in = (uint64_t)b, out = 0, back = 0;
        nvg_frag_run(nvg_frag_cast(t, wide[w]), (const void *[]){ &in }, (void *[]){ &out }, 1, 1);
        nvg_frag_run(nvg_frag_cast(wide[w], t), (const void *[]){ &out }, (void *[]){ &back }, 1, 1);
        double want = nvg_bits_float(t, in), got = nvg_bits_float(wide[w], out);
        ck_assert_msg(isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want), "%s %02x gives %a",
                      nvg_dtype_name(t), b, got);
        ck_assert_msg(isnan(want)   ? isnan(nvg_bits_float(t, back))
                      : isinf(want) ? back == nvg_float_bits(t, want)
                                    : back == in,
                      "%s %02x, back as %02x", nvg_dtype_name(t), b, (unsigned)back);
      }
    for (uint64_t lo = 0; lo < 1ull << 32; lo += STEP) {
      int bad = 0;
      for (int i = 0; i < N; i++) u[i] = (uint32_t)lo + (uint32_t)i;
      nvg_frag_run(nvg_frag_cast(NVM_F32, t), (const void *[]){ u }, (void *[]){ h }, N, 1);
      for (int i = 0; i < N; i++) {
        float x;
        memcpy(&x, &u[i], 4);
        bad += isnan(x) ? !isnan(nvg_bits_float(t, h[i])) : h[i] != nvg_float_bits(t, x);
      }
      ck_assert_msg(!bad, "%s: %d wrong from %llx on", nvg_dtype_name(t), bad, (unsigned long long)lo);
    }
    /* a way from f64 through f32 would round twice: next to every half-way point */
    for (uint64_t b = 0; b < nvg_float_bits(t, 1e30); b++) {
      double x = nvg_bits_float(t, b), mid = x + (nvg_bits_float(t, b + 1) - x) / 2,
             all[3] = { mid, nextafter(mid, 0), nextafter(mid, 1e30) };
      nvg_frag_run(nvg_frag_cast(NVM_F64, t), (const void *[]){ all }, (void *[]){ h }, 3, 1);
      for (int i = 0; i < 3; i++) ck_assert_uint_eq(h[i], nvg_float_bits(t, all[i]));
    }
    for (int64_t v = -70000; v < 70000; v += 7) {
      nvg_frag_run(nvg_frag_cast(NVM_I64, t), (const void *[]){ &v }, (void *[]){ h }, 1, 1);
      ck_assert_uint_eq(h[0], nvg_float_bits(t, (double)v));
    }
  }
}
END_TEST

START_TEST(integers_become_halves) {
  for (int from = NVM_I32; from <= NVM_U64; from++) {
    if (nvg_size((nvm_dtype)from) < 4) continue;
    for (int e = 0; e < nvg_size((nvm_dtype)from) * 8 - 1; e++)
      for (int d = -2; d <= 2; d++)
        for (int tie = 0; tie < 2; tie++) { /* near 2^e and near half-way between two bf16 */
          uint64_t v = (1ull << e) + (tie && e > 8 ? 1ull << (e - 8) : 0) + (uint64_t)(int64_t)d;
          uint16_t h;
          v &= nvg_mask((nvm_dtype)from) >> 1;
          nvg_frag_run(nvg_frag_cast((nvm_dtype)from, NVM_BF16), (const void *[]){ &v }, (void *[]){ &h }, 1, 1);
          long double err = fabsl((long double)bf16(h) - (long double)v),
                      up = fabsl((long double)bf16((uint16_t)(h + 1)) - (long double)v);
          long double down = h ? fabsl((long double)bf16((uint16_t)(h - 1)) - (long double)v) : 1e30L;
          ck_assert_msg((err < up || (err == up && !(h & 1))) && (err < down || (err == down && !(h & 1))),
                        "%llu gives %a", (unsigned long long)v, (double)bf16(h));
        }
  }
}
END_TEST

/* Each request for memory fails in its turn, from the index on; what is found in the end is whole. */
START_TEST(out_of_memory_leaves_the_library_whole) {
  nvm_dtype t[1] = { NVM_F64 };
  const nvg_frag *f = NULL;
  int failures = 0;
  for (int n = 1;; n++) {
    nvb_fail_alloc(n, 1);
    f = nvg_frag_find("sin", t, 1);
    nvb_fail_alloc(0, 0);
    if (f) break;
    ck_assert_int_eq(nvb_status(), NVM_ERR_MEMORY);
    failures++;
  }
  ck_assert_int_gt(failures, 2);
  double x = 0.5, y;
  nvg_frag_run(f, (const void *[]){ &x }, (void *[]){ &y }, 1, 1);
  ck_assert(fabs(y - sin(0.5)) < 1e-15);
  ck_assert_ptr_eq(f, nvg_frag_find("sin", t, 1));
}
END_TEST

/* Arrays are full of zeros and ones: they are computed where all others are, unless the result is no number. */
static void check_common(const char *name, const double *x, const double *y, int n, int finite_only) {
  double out;
  float xf, yf, outf;
  for (int i = 0; i < n; i++)
    for (int wide = 0; wide < 2; wide++) {
      nvm_dtype t = wide ? NVM_F64 : NVM_F32;
      const nvg_frag *f = nvg_frag_find(name, (nvm_dtype[]){ t, t }, y ? 2 : 1);
      ck_assert_msg(f != NULL, "%s: %s", name, nvb_message());
      xf = (float)x[i];
      yf = y ? (float)y[i] : 0;
      const void *in[2] = { wide ? (const void *)&x[i] : &xf, wide ? (const void *)(y + i) : &yf };
      uint8_t rare = 0;
      nvg_frag_run(f, in, (void *[]){ wide ? (void *)&out : &outf }, 1, 1);
      if (f->rare >= 0) nvg_frag_flags(f, in, &rare, 1);
      ck_assert_msg(!rare || (finite_only && !isfinite(wide ? out : (double)outf)), "%s of %s: %g, %g is rare", name,
                    nvg_dtype_short(t), x[i], y ? y[i] : 0);
    }
}
START_TEST(zeros_and_ones_are_not_rare) {
  static const double x[] = { 0, -0.0, 1, -1, 0.5 }, base[] = { 0, 0, 0, -0.0, -0.0, 0, 1, -1 };
  static const double power[] = { 2.4, -1.5, 0, 3, -3, 1, 2.4, 3 };
  static const char *const names[] = { "sin",  "cos",   "tan",   "exp",   "expm1", "log",  "log1p",
                                       "log2", "log10", "cbrt",  "tanh",  "sinh",  "cosh", "asin",
                                       "acos", "atan",  "asinh", "acosh", "atanh", "erf",  "erfc" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_common(names[i], x, NULL, 5, 1);
  check_common("pow", base, power, 8, 0);
}
END_TEST

/* Asks a set that knows the index for every function that another has read, and compares what both find. */
static void index_twice(nvb_arena *a, void *arg) {
  int *count = arg, of_index = 0;
  nvg_fragset *read = nvg_library_set(a), *known = nvg_library_set(a);
  for (const nvg_text *t = nvg_frag_texts; t->name; t++) nvg_fragset_add(read, t->text, t->name);
  nvg_fragset_add_library(known);
  for (int got; (got = nvg_fragset_instance(read, *count, NVM_F64, &(nvg_frag_query){ 0 })); ++*count) {
    nvg_frag_query q = { 0 };
    nvg_fragset_instance(read, *count, NVM_F64, &q);
    nvg_frag_query same = q;
    ck_assert_int_eq(nvg_fragset_defines(known, &same), nvg_fragset_defines(read, &q));
    const nvg_frag *f = got > 0 ? nvg_fragset_query(read, &q) : NULL, *g = f ? nvg_fragset_query(known, &same) : NULL;
    ck_assert_msg(!f || (g && nvb_hash_eq(f->hash, g->hash)), "%.*s", q.len, q.name);
  }
  while (nvg_fragset_instance(known, of_index, NVM_F64, &(nvg_frag_query){ 0 })) of_index++;
  ck_assert_int_eq(of_index, *count); /* no more than asked for, each once */
}
START_TEST(the_index_is_that_of_the_texts) {
  int count = 0;
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, index_twice, &count), NVM_OK);
  ck_assert_int_gt(count, 400);
  nvb_arena_free(a);
}
END_TEST

/* Whether a function is defined is known without compiling it, which takes memory. */
static void ask_for_power(nvb_arena *a, void *arg) {
  enum { LITTLE = 100000 };
  int param[4] = { NVM_F64, NVM_F64, NVM_F64, NVM_F64 };
  nvg_frag_query power = { .name = "c.pow", .len = 5, .param = param, .nparam = 4 };
  nvg_fragset *s = nvg_library_set(a);
  (void)arg;
  nvg_fragset_add_library(s);
  size_t before = nvb_arena_bytes(a);
  ck_assert_int_eq(nvg_fragset_defines(s, &power), 1);
  ck_assert_uint_lt(nvb_arena_bytes(a), before + LITTLE);
  ck_assert_ptr_nonnull(nvg_fragset_query(s, &power));
  ck_assert_uint_gt(nvb_arena_bytes(a), before + LITTLE);
  power.nparam = 3;
  ck_assert_int_eq(nvg_fragset_defines(s, &power), 0);
}
START_TEST(what_is_defined_is_not_compiled) {
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, ask_for_power, NULL), NVM_OK);
  nvb_arena_free(a);
  ck_assert_int_eq(nvg_frag_defined("c.pow", (nvm_dtype[]){ NVM_F64, NVM_F64, NVM_F64, NVM_F64 }, 4), 1);
  ck_assert_int_eq(nvg_frag_defined("pow", (nvm_dtype[]){ NVM_F64 }, 1), 0);
  ck_assert_int_eq(nvb_status(), NVM_ERR_TYPE);
}
END_TEST

SUITE("frag_library", what_is_defined_is_not_compiled, the_index_is_that_of_the_texts, every_cast_is_there,
      floats_to_integers_saturate, bf16_is_the_upper_half, f32_to_bf16_rounds_to_even, f64_to_f16_rounds_once,
      eight_bits, integers_become_halves, out_of_memory_leaves_the_library_whole, zeros_and_ones_are_not_rare,
      elements_share_counters)
