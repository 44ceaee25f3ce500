/* Printing into arenas; floats read back to the same bits and read as floats. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../comma.h"
#include "../arena.h"
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

static const char *spelled(nvb_arena *a, double x) {
  nvb_text t = { .arena = a };
  nvb_put_double(&t, x);
  return nvb_text_get(&t);
}

static void floats(nvb_arena *a, void *arg) {
  (void)arg;
  static const struct {
    double x;
    const char *s;
  } known[] = {
    { 1, "1.0" },         { 0, "0.0" },
    { -0.0, "-0.0" },     { 0.1, "0.1" },
    { -2.5, "-2.5" },     { 1e300, "1e+300" },
    { 1e22, "1e+22" },    { 100, "1e+02" },
    { 5e-324, "5e-324" }, { 1.0 / 3, "0.3333333333333333" },
    { INFINITY, "inf" },  { -INFINITY, "-inf" },
    { NAN, "nan" },       { 123456, "123456.0" },
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) ck_assert_str_eq(spelled(a, known[i].x), known[i].s);
  uint64_t seed = 12345;
  for (int i = 0; i < 20000; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    double x, y;
    memcpy(&x, &seed, 8);
    if (isnan(x) || isinf(x)) continue;
    const char *s = spelled(a, x);
    y = nvb_read_double(s, NULL);
    ck_assert_mem_eq(&x, &y, 8);
    ck_assert_msg(strpbrk(s, ".e") != NULL, "%s reads as an integer", s);
  }
}
START_TEST(floats_read_back) { in_arena(floats, NULL, NULL); }
END_TEST

static void long_text(nvb_arena *a, void *arg) {
  nvb_text t = { .arena = a };
  ck_assert_str_eq(nvb_text_get(&t), "");
  size_t want = 0;
  for (int i = 0; i < 3000; i++) {
    nvb_print(&t, "%d,", i);
    nvb_puts(&t, "ab");
    nvb_print(&t, "%s", "");
    want += (size_t)snprintf(NULL, 0, "%d,ab", i);
    ck_assert_uint_eq(t.n, want);
    ck_assert_uint_eq(strlen(t.s), want);
  }
  ck_assert_int_eq(strncmp(t.s, "0,ab1,ab2,ab", 12), 0);
  ck_assert_str_eq(t.s + want - 7, "2999,ab");
  char *big = nvb_get(a, 100001);
  memset(big, 'z', 100000);
  nvb_print(&t, "<%s>", big); /* longer than the space that is left */
  ck_assert_uint_eq(t.n, want + 100002);
  ck_assert_int_eq(t.s[t.n - 1], '>');
  *(int *)arg = 1;
}
START_TEST(text_grows) {
  int done = 0;
  nvb_arena *a = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(a, long_text, &done), NVM_OK);
  ck_assert_int_eq(done, 1);
  nvb_arena_free(a);
}
END_TEST

START_TEST(text_without_memory_throws) {
  int done = 0, status = NVM_ERR_MEMORY;
  for (int n = 1; status == NVM_ERR_MEMORY; n++) {
    ck_assert_int_lt(n, 100);
    nvb_arena *a = nvb_arena_new();
    nvb_fail_alloc(n, 0);
    status = nvb_protect(a, long_text, &done);
    nvb_fail_alloc(0, 0);
    nvb_arena_free(a);
  }
  ck_assert_int_eq(status, NVM_OK);
}
END_TEST

START_TEST(floats_have_a_point_everywhere) {
  char *end;
  if (!comma_locale()) return;
  ck_assert_double_eq(strtod("2,5", NULL), 2.5);
  ck_assert_double_eq(nvb_read_double("2.5e1x", &end), 25);
  ck_assert_str_eq(end, "x");
  ck_assert_float_eq(nvb_read_float("0.1", &end), 0.1f);
  ck_assert_str_eq(end, "");
  in_arena(floats, NULL, NULL);
}
END_TEST

START_TEST(floats_have_a_point_where_it_is_no_byte) { /* U+066B, of two bytes */
  if (use_locale("ps_AF")) in_arena(floats, NULL, NULL);
}
END_TEST

SUITE("text", floats_have_a_point_everywhere, floats_have_a_point_where_it_is_no_byte, floats_read_back, text_grows,
      text_without_memory_throws)
