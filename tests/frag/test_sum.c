/* Sums whose elements come a few at a time, against the tree of docs/how-it-works/numerics.md section 4. */
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "frag/dtype.h"
#include "frag/impl.h"
#include "frag/sum.h"

enum { MOST = 40000 };
static double input[MOST], got[MOST], want[MOST], part[MOST];
static float input_f32[MOST], got_f32[MOST];

static double add(nvm_dtype t, double a, double b) { return t == NVM_F32 ? (double)((float)a + (float)b) : a + b; }
/* Merges x[0], x[step], ... pairwise, the first two, then the next two, then the pairs. */
static double merge(nvm_dtype t, double *x, int64_t n) {
  for (; n > 1; n = (n + 1) / 2)
    for (int64_t k = 0; k < (n + 1) / 2; k++) x[k] = 2 * k + 1 < n ? add(t, x[2 * k], x[2 * k + 1]) : x[2 * k];
  return x[0];
}
static double sum_of(nvm_dtype t, const double *x, int64_t len, int64_t step, int chunk, int lanes) {
  int64_t chunks = 0;
  for (int64_t c = 0; c < len; c += chunk, chunks++) {
    double lane[128];
    int64_t n = len - c < chunk ? len - c : chunk;
    for (int64_t i = 0; i < n; i++) lane[i % lanes] = add(t, i < lanes ? 0 : lane[i % lanes], x[(c + i) * step]);
    part[chunks] = merge(t, lane, n < lanes ? n : lanes);
  }
  return merge(t, part, chunks);
}

static double factor[MOST];
static float factor_f32[MOST];
typedef struct shape { int64_t rows, len, inner; int chunk, lanes; } shape;
static void check_pieces(nvm_dtype t, const shape *s, int64_t piece, int products) {
  int64_t n = s->rows * s->len * s->inner, m = s->rows * s->inner;
  size_t size = (size_t)nvg_size(t);
  const char *x = t == NVM_F32 ? (const char *)input_f32 : (const char *)input;
  const char *y = t == NVM_F32 ? (const char *)factor_f32 : (const char *)factor;
  char *out = t == NVM_F32 ? (char *)got_f32 : (char *)got;
  char *memory = aligned_alloc(64, (size_t)nvg_sum_bytes(t, s->len, s->inner, s->chunk, s->lanes));
  nvg_sum sum;
  nvg_sum_start(&sum, t, s->len, s->inner, s->chunk, s->lanes, memory, out);
  for (int64_t at = 0; at < n; at += piece) {
    const char *by = products ? y + (size_t)at * size : NULL;
    nvg_sum_add(&sum, x + (size_t)at * size, by, piece < n - at ? piece : n - at);
  }
  free(memory);
  ck_assert_ptr_eq(sum.out, out + (size_t)m * size);
  for (int64_t i = 0; i < m; i++)
    ck_assert_msg((t == NVM_F32 ? (double)got_f32[i] : got[i]) == want[i], "sum %lld of %lld x %lld x %lld by %lld",
                  (long long)i, (long long)s->rows, (long long)s->len, (long long)s->inner, (long long)piece);
}
static void check_shape(nvm_dtype t, const shape *s, int products) {
  static const int64_t pieces[] = { 1, 3, 64, 300, 1024, MOST };
  static double term[MOST];
  for (int64_t i = 0; i < MOST; i++)
    term[i] = !products ? input[i] : t == NVM_F32 ? (double)(input_f32[i] * factor_f32[i]) : input[i] * factor[i];
  for (int64_t i = 0; i < s->rows * s->inner; i++)
    want[i] = sum_of(t, term + i / s->inner * s->len * s->inner + i % s->inner, s->len, s->inner, s->chunk, s->lanes);
  for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) check_pieces(t, s, pieces[k], products);
}

START_TEST(integers_wrap) {
  static const nvm_dtype types[] = { NVM_I32, NVM_U32, NVM_I64, NVM_U64 };
  char memory[1 << 14] __attribute__((aligned(64)));
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    uint64_t x[300], y[300], sum = 0, out = 0, mask = nvg_size(types[k]) == 8 ? ~0ull : 0xffffffffu;
    uint32_t x32[300], y32[300];
    for (int i = 0; i < 300; i++) {
      sum += (x[i] = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1)) * (y[i] = (uint64_t)i * 0xd1b54a32d192ed03ull);
      x32[i] = (uint32_t)x[i], y32[i] = (uint32_t)y[i];
    }
    nvg_sum s;
    ck_assert_int_le(nvg_sum_bytes(types[k], 300, 1, 1024, 128), (int64_t)sizeof memory);
    nvg_sum_start(&s, types[k], 300, 1, 1024, 128, memory, (char *)&out);
    nvg_sum_add(&s, mask == ~0ull ? (void *)x : x32, mask == ~0ull ? (void *)y : y32, 300);
    ck_assert_uint_eq(out, sum & mask);
  }
}
END_TEST

START_TEST(pieces_make_no_difference) {
  static const shape shapes[] = {
    { 1, 1, 1, 1024, 128 },    { 7, 1, 3, 1024, 128 },     { 50, 20, 1, 1024, 128 },  { 50, 21, 1, 1024, 128 },
    { 9, 127, 1, 1024, 128 },  { 3, 128, 1, 1024, 128 },   { 3, 129, 2, 1024, 128 },  { 2, 1024, 1, 1024, 128 },
    { 1, 1025, 1, 1024, 128 }, { 1, 12345, 1, 1024, 128 }, { 2, 3333, 3, 1024, 128 }, { 5, 300, 15, 1024, 128 },
    { 1, 1, 16, 64, 1 },       { 3, 64, 16, 64, 1 },       { 2, 65, 40, 64, 1 },      { 1, 1000, 33, 64, 1 },
    { 2, 7, 2000, 64, 1 },
  };
  srand(5);
  for (int i = 0; i < MOST; i++)
    input_f32[i] = (float)(input[i] = (double)(rand() % 20001 - 10000) / (1 + rand() % 999));
  for (int i = 0; i < MOST; i++) factor_f32[i] = (float)(factor[i] = (double)(rand() % 2001 - 1000) / 77);
  for (int variant = 1; variant <= nvg_step_variants(); variant++) {
    nvg_step_limit(variant);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
      for (int products = 0; products < 2; products++) {
        check_shape(NVM_F64, &shapes[k], products);
        check_shape(NVM_F32, &shapes[k], products);
      }
    }
  }
  nvg_step_limit(0);
}
END_TEST

/* rows that lie side by side in vectors, and those left over */
START_TEST(short_rows_of_all_lengths) {
  uint64_t x[15 * 9], y[15 * 9], out[15];
  uint32_t x32[15 * 9], y32[15 * 9], out32[15];
  char memory[1 << 14] __attribute__((aligned(64)));
  for (int i = 0; i < MOST; i++) input_f32[i] = (float)(input[i] = (double)(i * 7919 % 20001 - 10000) / (1 + i % 999));
  for (int i = 0; i < MOST; i++) factor_f32[i] = (float)(factor[i] = (double)((int64_t)i * 104729 % 2001 - 1000) / 77);
  for (int i = 0; i < 15 * 9; i++) {
    x32[i] = (uint32_t)(x[i] = 0x9e3779b97f4a7c15ull * (uint64_t)(i + 1));
    y32[i] = (uint32_t)(y[i] = 0xd1b54a32d192ed03ull * (uint64_t)i);
  }
  for (int variant = 1; variant <= nvg_step_variants(); variant++) {
    nvg_step_limit(variant);
    for (int64_t rows = 1; rows <= 15; rows++)
      for (int64_t len = 2; len <= 9; len++) {
        shape s = { rows, len, 1, 1024, 128 };
        for (int k = 0; k < 4; k++) check_shape(k & 1 ? NVM_F64 : NVM_F32, &s, k >> 1);
        nvg_sum sum;
        nvg_sum_start(&sum, NVM_U64, len, 1, 1024, 128, memory, (char *)out);
        nvg_sum_add(&sum, x, y, rows * len);
        nvg_sum_start(&sum, NVM_I32, len, 1, 1024, 128, memory, (char *)out32);
        nvg_sum_add(&sum, x32, y32, rows * len);
        for (int64_t r = 0; r < rows; r++) {
          uint64_t all = 0;
          for (int64_t k = 0; k < len; k++) all += x[r * len + k] * y[r * len + k];
          ck_assert_uint_eq(out[r], all);
          ck_assert_uint_eq(out32[r], (uint32_t)all);
        }
      }
  }
  nvg_step_limit(0);
}
END_TEST

SUITE("frag_sum", integers_wrap, pieces_make_no_difference, short_rows_of_all_lengths)
