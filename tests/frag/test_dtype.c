/* Promotion against NumPy 2's own table, names, and the roundings of constants. */
#include <math.h>
#include <string.h>
#include "../suite.h"
#include "frag/dtype.h"

/* numpy.result_type (2.4) of every pair in this order, one letter a result; then of Python's True, 1, 1.0, 1j with
   each. */
static const nvm_dtype order[] = { NVM_BOOL, NVM_I8,  NVM_I16, NVM_I32, NVM_I64, NVM_U8,  NVM_U16,
                                   NVM_U32,  NVM_U64, NVM_F16, NVM_F32, NVM_F64, NVM_C64, NVM_C128 };
enum { N = sizeof order / sizeof *order };
static const char letters[] = "b12345678hfdcz";
static const char *const numpy[] = { "b12345678hfdcz", "11234234dhfdcz", "22234234dffdcz", "33334334ddddzz",
                                     "44444444ddddzz", "522345678hfdcz", "633346678ffdcz", "744447778dddzz",
                                     "8dddd8888dddzz", "hhfddhfddhfdcz", "fffddffddffdcz", "ddddddddddddzz",
                                     "ccczzcczzcczcz", "zzzzzzzzzzzzzz" };
static const char *const weak[] = { "b12345678hfdcz", "412345678hfdcz", "dddddddddhfdcz", "zzzzzzzzzcczcz" };
static const nvg_class weak_class[] = { NVG_BOOLEAN, NVG_SIGNED, NVG_FLOAT, NVG_COMPLEX };

START_TEST(promotes_as_numpy) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      nvm_dtype want = order[strchr(letters, numpy[i][j]) - letters];
      ck_assert_msg(nvg_promote(order[i], order[j]) == want, "%s with %s", nvg_dtype_name(order[i]),
                    nvg_dtype_name(order[j]));
    }
  for (int k = 0; k < 4; k++)
    for (int j = 0; j < N; j++)
      ck_assert_msg(nvg_promote_weak(order[j], weak_class[k], NVM_F64) == order[strchr(letters, weak[k][j]) - letters],
                    "weak class %d with %s", k, nvg_dtype_name(order[j]));
  ck_assert_int_eq(nvg_promote_weak(NVM_I32, NVG_FLOAT, NVM_F32), NVM_F32);
}
END_TEST

START_TEST(promotion_is_a_semilattice_with_bfloat16) {
  ck_assert_int_eq(nvg_promote(NVM_F16, NVM_BF16), NVM_F32);
  ck_assert_int_eq(nvg_promote(NVM_BF16, NVM_I8), NVM_BF16);
  ck_assert_int_eq(nvg_promote(NVM_BF16, NVM_I16), NVM_F32);
  ck_assert_int_eq(nvg_promote(NVM_F8E4, NVM_F8E5), NVM_F16);
  ck_assert_int_eq(nvg_promote(NVM_F8E4, NVM_BF16), NVM_BF16);
  ck_assert_int_eq(nvg_promote(NVM_I8, NVM_F8E5), NVM_F32);
  for (nvm_dtype a = 0; a < NVM_NDTYPES; a++)
    for (nvm_dtype b = 0; b < NVM_NDTYPES; b++) {
      nvm_dtype p = nvg_promote(a, b);
      ck_assert_int_eq(p, nvg_promote(b, a));
      ck_assert_int_eq(p, nvg_promote(p, a));
      ck_assert_int_eq(p, nvg_promote(p, b));
    }
}
END_TEST

START_TEST(names_lead_back) {
  for (nvm_dtype t = 0; t < NVM_NDTYPES; t++) {
    ck_assert_int_eq(nvg_dtype_find(nvg_dtype_name(t)), t);
    ck_assert_int_eq(nvg_dtype_find(nvg_dtype_short(t)), t);
    ck_assert_int_eq(nvg_size(t), nvg_parts(t) * nvg_size(nvg_real_of(t)));
  }
  ck_assert_int_eq(nvg_dtype_find("float128"), -1);
}
END_TEST

START_TEST(embedding_keeps_every_value) {
  for (nvm_dtype a = 0; a < NVM_NDTYPES; a++)
    for (nvm_dtype b = 0; b < NVM_NDTYPES; b++) {
      if (nvg_class_of(a) > NVG_UNSIGNED || nvg_class_of(b) > NVG_FLOAT || b == NVM_BOOL) continue;
      int64_t low = nvg_class_of(a) == NVG_SIGNED ? INT64_MIN >> (64 - 8 * nvg_size(a)) : 0;
      uint64_t high = a == NVM_BOOL ? 1 : (UINT64_MAX >> (64 - 8 * nvg_size(a))) >> (nvg_class_of(a) == NVG_SIGNED);
      int fits;
      if (nvg_class_of(b) == NVG_FLOAT)
        fits = high <= 1ull << (b == NVM_F64    ? 53
                                : b == NVM_F32  ? 24
                                : b == NVM_F16  ? 11
                                : b == NVM_BF16 ? 8
                                : b == NVM_F8E4 ? 4
                                                : 3);
      else {
        int64_t lo = nvg_class_of(b) == NVG_SIGNED ? INT64_MIN >> (64 - 8 * nvg_size(b)) : 0;
        uint64_t hi = (UINT64_MAX >> (64 - 8 * nvg_size(b))) >> (nvg_class_of(b) == NVG_SIGNED);
        fits = low >= lo && high <= hi;
      }
      ck_assert_msg(nvg_embeds(a, b) == fits, "%s in %s", nvg_dtype_name(a), nvg_dtype_name(b));
    }
}
END_TEST

START_TEST(half_bits_round_to_nearest_even) {
  for (uint32_t b = 0; b < 65536; b++)
    for (int k = 0; k < 2; k++) {
      nvm_dtype t = k ? NVM_BF16 : NVM_F16;
      double x = nvg_bits_float(t, b), y = nvg_bits_float(t, (b + 1) & 0xffff);
      if (isnan(x)) continue;
      ck_assert_uint_eq(nvg_float_bits(t, x), b); /* what fits is kept */
      if (isinf(x) || isinf(y) || isnan(y) || ((b ^ (b + 1)) & 0x8000)) continue;
      double mid = x + (y - x) / 2; /* exact in double */
      ck_assert_uint_eq(nvg_float_bits(t, mid), b & 1 ? b + 1 : b);
      ck_assert_uint_eq(nvg_float_bits(t, nextafter(mid, x)), b);
      ck_assert_uint_eq(nvg_float_bits(t, nextafter(mid, y)), b + 1);
    }
  ck_assert_uint_eq(nvg_float_bits(NVM_F16, 65520), 0x7c00);
  ck_assert_uint_eq(nvg_float_bits(NVM_F16, 65519.999), 0x7bff);
  ck_assert_uint_eq(nvg_float_bits(NVM_BF16, -INFINITY), 0xff80);
  ck_assert(isnan(nvg_bits_float(NVM_F16, nvg_float_bits(NVM_F16, NAN))));
  for (uint32_t b = 0; b < 0x7c00; b++) { /* against the compiler's conversion */
    __extension__ _Float16 h;
    uint16_t bits = (uint16_t)b;
    memcpy(&h, &bits, 2);
    ck_assert(nvg_bits_float(NVM_F16, b) == (double)(float)h);
  }
}
END_TEST

START_TEST(eight_bits_round_to_nearest_even_and_saturate) {
  static const struct {
    nvm_dtype t;
    uint64_t most;
    double value, least;
  } of[] = { { NVM_F8E4, 0x7e, 448, 0x1p-9 }, { NVM_F8E5, 0x7b, 57344, 0x1p-16 } };
  for (int k = 0; k < 2; k++) {
    nvm_dtype t = of[k].t;
    ck_assert_double_eq(nvg_bits_float(t, of[k].most), of[k].value);
    ck_assert_double_eq(nvg_bits_float(t, 1), of[k].least);
    for (uint64_t b = 0; b < of[k].most; b++) {
      double x = nvg_bits_float(t, b), y = nvg_bits_float(t, b + 1), mid = x + (y - x) / 2;
      ck_assert_double_lt(x, y);
      ck_assert_double_eq(nvg_bits_float(t, b | 0x80), -x);
      ck_assert_uint_eq(nvg_float_bits(t, x), b);
      ck_assert_uint_eq(nvg_float_bits(t, mid), b & 1 ? b + 1 : b);
      ck_assert_uint_eq(nvg_float_bits(t, nextafter(mid, x)), b);
      ck_assert_uint_eq(nvg_float_bits(t, -nextafter(mid, y)), (b + 1) | 0x80);
    }
    ck_assert_uint_eq(nvg_float_bits(t, 1e9), of[k].most);
    ck_assert_uint_eq(nvg_float_bits(t, -INFINITY), of[k].most | 0x80);
    ck_assert(isnan(nvg_bits_float(t, nvg_float_bits(t, NAN))));
  }
  ck_assert(isinf(nvg_bits_float(NVM_F8E5, 0x7c)));
  ck_assert(isnan(nvg_bits_float(NVM_F8E4, 0xff)));
}
END_TEST

START_TEST(integer_bits) {
  ck_assert_uint_eq(nvg_int_bits(NVM_I8, -1), 0xff);
  ck_assert_int_eq(nvg_bits_int(NVM_I8, 0xff), -1);
  ck_assert_int_eq(nvg_bits_int(NVM_U8, 0xff), 255);
  ck_assert_uint_eq(nvg_int_bits(NVM_BOOL, 12), 1);
  ck_assert_int_eq(nvg_bits_int(NVM_I64, nvg_int_bits(NVM_I64, INT64_MIN)), INT64_MIN);
}
END_TEST

SUITE("frag_dtype", promotes_as_numpy, promotion_is_a_semilattice_with_bfloat16, names_lead_back,
      embedding_keeps_every_value, half_bits_round_to_nearest_even, eight_bits_round_to_nearest_even_and_saturate,
      integer_bits)
