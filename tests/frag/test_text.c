/* Fragment text: what is accepted, what it means, where faults are reported, and that print and parse are inverse. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "frag/impl.h"

static nvb_arena *arena;
static nvg_fragset *set;

static void open_set(nvb_arena *a, void *arg) {
  (void)arg;
  set = nvg_fragset_new(a);
}
static void setup(void) {
  arena = nvb_arena_new();
  ck_assert_int_eq(nvb_protect(arena, open_set, NULL), NVM_OK);
}
static void teardown(void) { nvb_arena_free(arena); }

static void parse(nvb_arena *a, void *text) {
  (void)a;
  nvg_fragset_parse(set, text, "t");
}
static void must_parse(const char *text) {
  if (nvb_protect(arena, parse, (void *)text)) ck_abort_msg("%s", nvb_message());
}
static void must_fail(const char *text, const char *message) {
  ck_assert_int_eq(nvb_protect(arena, parse, (void *)text), NVM_ERR_VALUE);
  ck_assert_str_eq(nvb_message(), message);
}

static void fails(const char *text, const char *message) { /* alone in a set */
  ck_assert_int_eq(nvb_protect(arena, open_set, NULL), NVM_OK);
  must_fail(text, message);
}

typedef struct wanted { const char *name; const nvm_dtype *t; int n; const nvg_frag *f; } wanted;
static void find_in(nvb_arena *a, void *arg) {
  wanted *w = arg;
  w->f = nvg_fragset_find(set, w->name, w->t, w->n);
  if (w->f) nvg_frag_check(a, w->f);
}
static const nvg_frag *find(const char *name, int n, nvm_dtype t0, nvm_dtype t1) {
  nvm_dtype t[2] = { t0, t1 };
  wanted w = { name, t, n, NULL };
  if (nvb_protect(arena, find_in, &w)) ck_abort_msg("%s", nvb_message());
  return w.f;
}
static float f32_at(const char *name, float x, int full) {
  const nvg_frag *f = find(name, 1, NVM_F32, 0);
  ck_assert_ptr_nonnull(f);
  float y;
  nvg_frag_run(f, (const void *[]){ &x }, (void *[]){ &y }, 1, full);
  return y;
}
static int64_t int_at(const char *name, nvm_dtype t, int64_t x, int64_t y) {
  const nvg_frag *f = find(name, 2, t, t);
  ck_assert_ptr_nonnull(f);
  int64_t r = 0;
  nvg_frag_run(f, (const void *[]){ &x, &y }, (void *[]){ &r }, 1, 1);
  return r;
}

START_TEST(errors_say_where) {
  fails("frag f(x: f32) -> f32 {\n  return x +\n}", "t:3:1: an expression is missing");
  fails("frag f(x: f32) -> f32 { return y }", "t:1:34: y has no value here");
  fails("frag f(x: f32) -> i32 { return x }", "t:1:34: result 1 is f32, declared i32");
  fails("frag f(x: f32, y: f64) -> f32 { return x + y }", "t:1:46: + does not take (f32, f64)");
  fails("frag f(x: i32) -> i32 { return x + 1.5 }", "t:1:40: the literal does not fit i32");
  fails("frag f(x: u8) -> u8 { return x + 256 }", "t:1:38: the literal does not fit u8");
  fails("frag f(x: u8) -> u8 { return x + -1 }", "t:1:37: the literal does not fit u8");
  fails("frag f(x: i8) -> i8 { return x + -129 }", "t:1:39: the literal does not fit i8");
  fails("frag f(x: f32) -> f32 { y = x }", "t:1:31: return is missing");
  fails("frag f(x: f32) -> bool { return x < 1 < 2 }", "t:1:39: comparisons do not chain: use && and parentheses");
  fails("frag f(x: f32) -> f32 { return x", "t:1:25: '}' is missing");
  fails("frag f(x: f33) -> f32 { return x }", "t:1:11: a type is missing");
  fails("frag f<T: reel>(x: T) -> T { return x }",
        "t:1:15: unknown class (bool, int, sint, uint, real, half, num, any)");
  fails("frag f(x: f32) -> f32 { rare x < 0; return x }", "t:1:30: rare belongs into a fast block, outside loops");
  fails("frag f(x: f32) -> f32 { return nothing(x) }", "t:1:43: [nothing] no definition takes (f32)");
  fails("frag f(x: f32) -> f32 { return f(x) }", "t:1:6: f calls itself");
  fails("frag f(x: f32) -> f32 { a, b = x; return a }", "t:1:33: 2 names for 1 values");
  fails("frag f(x: f32) -> f32 { for k in 0 carry (a = x) { } return a }",
        "t:1:36: the number of iterations is a constant from 1 to 2^20");
  fails("frag f(x: f32) -> f32 { y = x for k in 2 carry (a = x) { y = a } return y }",
        "t:1:64: y is changed in a loop that does not carry it");
  fails("frag f(x: f32) -> f32 { for k in 2 carry (a = x) { a = x < 1 } return a }",
        "t:1:64: a changes its type in the loop");
  fails("frag f(x: f32) -> f32 { for k in 2 carry (a = x) until b { } return a }",
        "t:1:58: a loop ends by a bool that it carries");
  fails("frag f(x: f32) -> f32 { for k in 2 carry (a = x) until a { } return a }",
        "t:1:58: a loop ends by a bool that it carries");
  fails("frag f(x: f32) -> f32 { for k in 2 carry (a = 0) { } return a }",
        "t:1:48: the literal needs a type, as in f32(1)");
  fails("frag f(i: i32) -> f32 { return tab[i] }", "t:1:35: no table tab above");
  fails("table a: float32x = { 1 }\nfrag f(i: i32) -> f32 { return a[i] }",
        "t:1:19: a table holds integers, f32 or f64");
  fails("frag f(x: f32) -> f32 { return x + 1.2.3 }", "t:1:36: not a number");
  fails("frag f(x: f32) -> f32 { return x + 1e }", "t:1:36: not a number");
  fails("frag f(x: i32) -> i32 { return x + 0x }", "t:1:36: not a number");
  fails("table a: f32 = { 1, x }\nfrag f(i: i32) -> f32 { return a[i] }", "t:1:21: a number is missing");
  fails("frag f(return: f32) -> f32 { x = 1; return = x return x }", "t:1:44: an expression is missing");
  fails("frag f<f16>(x: f32) -> f32 { return y }\nfrag f<f32>(x: f32) -> f32 { return x }",
        "t:1:39: y has no value here");
  fails("hello", "t:1:1: frag or table is missing");
}
END_TEST

START_TEST(nesting_is_bounded) {
  static char deep[20000];
  strcpy(deep, "frag f(x: f32) -> f32 { return ");
  for (int i = 0; i < 5000; i++) strcat(deep, "-(");
  strcat(deep, "x }");
  fails(deep, "t:1:288: expressions are nested too deeply");
}
END_TEST

START_TEST(lookups_fail_with_types) {
  nvm_dtype t[2] = { NVM_F32, NVM_I64 };
  ck_assert_ptr_null(nvg_frag_find("no_such_function", t, 2));
  ck_assert_int_eq(nvb_status(), NVM_ERR_TYPE);
  ck_assert_str_eq(nvb_message(), "[no_such_function] no definition takes (f32, i64)");
}
END_TEST

START_TEST(operators_and_literals) {
  must_parse("frag p(a: i32, b: i32) -> i32 { return a + b * 2 << 1 | 1 }\n"
             "frag q(a: i32, b: i32) -> i32 { return select(a < b && !(b == 3), -a, ~b) }\n"
             "frag r(a: u8, b: u8) -> u8 { return (a - b) / 3 ^ 0xf0 & a }\n"
             "frag s(a: i64, b: i64) -> i64 { return a >> 3 - 2 * 1 }\n"
             "frag t(a: u64, b: u64) -> u64 { return mulhi(a, b) + clz(a) + rem(b, 7) }\n"
             "frag u(x: f32) -> f32 { return 1 / x + 0.1 }\n"
             "frag v(x: f32) -> f32 { return select(x > 0, inf, -f32(nan)) }\n"
             "frag w(a: i32, b: i32) -> i32 { return a & 0xff800000 }\n"
             "frag m(a: i32, b: i32) -> i32 { return highest(i32) + i32(1) + width(i64) - lowest(i32) }");
  ck_assert_int_eq((int32_t)int_at("p", NVM_I32, 5, 7), ((5 + 7 * 2) << 1) | 1);
  ck_assert_int_eq((int32_t)int_at("q", NVM_I32, 5, 7), -5);
  ck_assert_int_eq((int32_t)int_at("q", NVM_I32, 1, 3), ~3);
  ck_assert_int_eq((uint8_t)int_at("r", NVM_U8, 3, 5), (uint8_t)(254 / 3) ^ (0xf0 & 3));
  ck_assert_int_eq(int_at("s", NVM_I64, -100, 0), -50);
  ck_assert_int_eq(int_at("t", NVM_U64, 1, 8), 63 + 1);
  ck_assert(f32_at("u", 3, 0) == 1 / 3.0f + 0.1f);
  ck_assert(f32_at("v", 3, 0) == INFINITY && isnan(f32_at("v", -3, 0)));
  ck_assert_int_eq((int32_t)int_at("w", NVM_I32, -1, 0), (int32_t)0xff800000);
  ck_assert_int_eq((int32_t)int_at("m", NVM_I32, 0, 0), 64);
}
END_TEST

START_TEST(literals_round_once) {
  /* through f64, this decimal would round to an even f32 first */
  must_parse("frag f(x: f32) -> f32 { return x * 1.00000017881393432617187499 }");
  ck_assert(f32_at("f", 1, 0) == 0x1.000002p0f);
  must_parse("frag g(x: f32) -> f32 { return x * 0x1.8p3 + 16777217 }");
  ck_assert(f32_at("g", 0, 0) == 16777216.0f && f32_at("g", 1, 0) == 16777228.0f);
}
END_TEST

START_TEST(the_most_specific_definition_wins) {
  must_parse("frag k<T: any>(x: T, y: T) -> i32 { return 1 }\n"
             "frag k<T: num>(x: T, y: T) -> i32 { return 2 }\n"
             "frag k<T: int>(x: T, y: T) -> i32 { return 3 }\n"
             "frag k<T: sint>(x: T, y: T) -> i32 { return 4 }\n"
             "frag k(x: i8, y: i8) -> i32 { return 5 }\n"
             "frag k(x: bool, y: i8) -> i32 { return 6 }");
  ck_assert_int_eq((int32_t)int_at("k", NVM_BOOL, 0, 0), 1);
  ck_assert_int_eq((int32_t)int_at("k", NVM_F32, 0, 0), 2);
  ck_assert_int_eq((int32_t)int_at("k", NVM_U16, 0, 0), 3);
  ck_assert_int_eq((int32_t)int_at("k", NVM_I16, 0, 0), 4);
  ck_assert_int_eq((int32_t)int_at("k", NVM_I8, 0, 0), 5);
  ck_assert_ptr_nonnull(find("k", 2, NVM_BOOL, NVM_I8));
  ck_assert_ptr_null(find("k", 2, NVM_BOOL, NVM_I16));
}
END_TEST

START_TEST(types_as_arguments) {
  must_parse("frag conv<U: int, T: real>(x: T) -> U { return U(x) }\n"
             "frag two(x: f32, y: f32) -> i32 { return i32(conv<i16>(x)) + i32(conv<u8, f32>(y)) }\n"
             "frag turn<T: uint>(x: T, y: T) -> signed<T> { return bits<signed<T>>(x) - signed<T>(1) }\n"
             "frag turned(x: u16, y: u16) -> i16 { return turn(x, 0) }");
  float x = -3.5f, y = 200.25f;
  int32_t r;
  nvg_frag_run(find("two", 2, NVM_F32, NVM_F32), (const void *[]){ &x, &y }, (void *[]){ &r }, 1, 0);
  ck_assert_int_eq(r, 197);
  ck_assert_int_eq((int16_t)int_at("turned", NVM_U16, 0, 0), -1);
  ck_assert_ptr_null(find("conv", 1, NVM_F32, 0)); /* U is not known */
}
END_TEST

START_TEST(several_results) {
  must_parse("frag swap<T: any>(a: T, b: T) -> (T, T) { return b, a }\n"
             "frag f(a: i32, b: i32) -> i32 { a, b = swap(a, b)\n c, d = a * 10, b\n return c + d }\n"
             "frag g(a: i32, b: i32) -> (i32, i32) { return swap(a, b) }");
  ck_assert_int_eq((int32_t)int_at("f", NVM_I32, 3, 4), 43);
  int32_t a = 1, b = 2, p, q;
  nvg_frag_run(find("g", 2, NVM_I32, NVM_I32), (const void *[]){ &a, &b }, (void *[]){ &p, &q }, 1, 0);
  ck_assert(p == 2 && q == 1);
  must_fail("frag h(a: i32, b: i32) -> i32 { return swap(a, b) + 1 }", "t:1:55: one value is wanted, the call gives 2");
}
END_TEST

START_TEST(loops) {
  must_parse(
      "frag fib(n: i32, b: i32) -> i32 { x = n; for k in 10 carry (x = x, b = b) { x, b = b, x + b } return x }\n"
      "frag tri(n: i32, b: i32) -> i32 { for i in 4 carry (s = n) { for j in 3 carry (s = s, q = i) { s = s + q * j; q "
      "= q + 1 } } return s + b }\n"
      "frag twice(x: i32, y: i32) -> i32 { return fib(x, y) + tri(x, y) + fib(x, y) }");
  int a = 0, b = 1, s = 7;
  for (int k = 0; k < 10; k++) {
    int t = a + b;
    a = b, b = t;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0, q = i; j < 3; j++) s += q * j, q++;
  ck_assert_int_eq((int32_t)int_at("fib", NVM_I32, 0, 1), a);
  ck_assert_int_eq((int32_t)int_at("tri", NVM_I32, 7, 5), s + 5);
  ck_assert_int_eq((int32_t)int_at("twice", NVM_I32, 0, 1), 2 * a + (s - 7) + 1);
}
END_TEST

/* Each element takes as many iterations as it needs, beside others that need none or all of them, and in nests. */
START_TEST(loops_end_early) {
  must_parse("frag halvings(x: i32, most: i32) -> i32 { for k in 40 carry (x = x, n = 0 * x, over = x <= 1) until over "
             "{ x = x / 2; n = n + 1; over = x <= 1 || n >= most } return 100 * n + x }\n"
             "frag nested(x: i32, y: i32) -> i32 { for i in 5 carry (s = x, over = x < 0) until over "
             "{ for j in 3 carry (t = s, done = s > 9) until done { t = t + y; done = t > 9 } s = t; over = s > 20 } "
             "return s }\n"
             "frag both(x: i32, y: i32) -> i32 { return halvings(x, y) + nested(x, y) }");
  enum { N = 200 };
  int32_t x[N], y[N], got[3][N];
  static const char *const name[] = { "halvings", "nested", "both" };
  for (int i = 0; i < N; i++) x[i] = i % 3 ? i % 7 - 3 : 1 << i % 30, y[i] = i % 5 + 1;
  for (int k = 0; k < 3; k++)
    nvg_frag_run(find(name[k], 2, NVM_I32, NVM_I32), (const void *[]){ x, y }, (void *[]){ got[k] }, N, 1);
  for (int i = 0; i < N; i++) {
    int h = x[i], n = 0, s = x[i];
    while (h > 1 && n < 40 && (!n || n < y[i])) h /= 2, n++;
    for (int j = 0; j < 5 && (j ? s <= 20 : s >= 0); j++)
      for (int t = 0; t < 3 && s <= 9; t++) s += y[i];
    ck_assert_int_eq(got[0][i], 100 * n + h);
    ck_assert_int_eq(got[1][i], s);
    ck_assert_int_eq(got[2][i], 100 * n + h + s);
  }
}
END_TEST

/* "for k in 2 carry (a = a) {" n times and as often "}" */
static void put_loops(char *text, int n, const char *inside) {
  for (int i = 0; i < n; i++) strcat(text, " for k in 1048576 carry (a = a) {");
  strcat(text, inside);
  for (int i = 0; i < n; i++) strcat(text, " }");
}

START_TEST(loops_nest_in_calls_too) {
  char text[4000] = "frag in(x: f32) -> f32 { a = x";
  put_loops(text, 10, " a = a + x");
  strcat(text, " return a }\nfrag out(x: f32) -> f32 { a = x");
  put_loops(text, 6, " a = in(a)");
  strcat(text, " return a }");
  must_parse(text);
  const nvg_frag *f = find("out", 1, NVM_F32, 0);
  ck_assert_int_eq(f->cost, 1 << 30); /* and no more, however often it runs */
  text[0] = 0;
  strcat(text, "frag deeper(x: f32) -> f32 { a = x");
  put_loops(text, 7, " a = in(a)");
  strcat(text, " return a }");
  must_fail(text, "t:1:277: loops are nested too deeply");
}
END_TEST

START_TEST(tables) {
  must_parse("table sq: u16 = { 0, 1, 4,\n 9, 0xffff }\ntable fl: f64 = { -1.5, inf, 0x1p-3 }\n"
             "frag f(i: i32, j: i32) -> i32 { return i32(sq[i]) + i32(sq[u8(j)]) }\n"
             "table sq: u16 = { 7 }\n"
             "frag g(i: i32, j: i32) -> i32 { return i32(sq[0]) + select(fl[i] < 0, -1, i32(1)) }");
  ck_assert_int_eq((int32_t)int_at("f", NVM_I32, 3, 4), 9 + 65535);
  ck_assert_int_eq((int32_t)int_at("g", NVM_I32, 0, 0), 6);
  ck_assert_int_eq((int32_t)int_at("g", NVM_I32, 1, 0), 8);
  ck_assert_int_eq(find("f", 2, NVM_I32, NVM_I32)->ntable, 1);
}
END_TEST

START_TEST(rare_goes_up_to_the_callers) {
  must_parse(
      "frag low(x: f32) -> f32 { fast { rare x < 0; return x } full { return select(x < 0, 10, x) } }\n"
      "frag high(x: f32) -> f32 { y = x + 1; fast { rare x > 100; return y } full { return select(x > 100, 20, y) } }\n"
      "frag both(x: f32) -> f32 { return low(x) + high(x) }\n"
      "frag loop(x: f32) -> f32 { for k in 3 carry (s = f32(0)) { s = s + low(x) } return s }\n"
      "frag never(x: f32) -> f32 { fast { rare 1 < i32(0); return x } full { return -x } }");
  const nvg_frag *f = find("both", 1, NVM_F32, 0);
  ck_assert_int_ge(f->rare, 0);
  ck_assert_int_lt(f->full->rare, 0);
  float x[5] = { -1, 0, 50, 100, 101 }, y[5];
  uint8_t rare[5];
  nvg_frag_flags(f, (const void *[]){ x }, rare, 5);
  ck_assert(rare[0] && !rare[1] && !rare[2] && !rare[3] && rare[4]);
  nvg_frag_run(f, (const void *[]){ x }, (void *[]){ y }, 5, 1);
  ck_assert(y[0] == 10 && y[2] == 101 && y[4] == 121);
  nvg_frag_run(f, (const void *[]){ x }, (void *[]){ y }, 5, 0);
  ck_assert(y[0] == -1 && y[2] == 101 && y[4] == 203);
  ck_assert_int_lt(find("loop", 1, NVM_F32, 0)->rare, 0);
  ck_assert(f32_at("loop", -1, 0) == 30);
  ck_assert_int_lt(find("never", 1, NVM_F32, 0)->rare, 0);
  ck_assert(f32_at("never", 2, 1) == 2);
}
END_TEST

START_TEST(what_a_nan_leads_to) {
  nvb_arena *a = nvb_arena_new();
  must_parse("frag kept(x: f32, y: f32) -> f32 { return select(x < y, 1, fma(x, y, 2)) }\n"
             "frag lost(x: f32, y: f32) -> f32 { return select(x > y, 1, y) }\n"
             "frag flag(x: f32) -> f32 { fast { rare !(x < 5); return 3 } full { return select(x < 5, 3, x) } }\n"
             "frag sign(x: f32) -> f32 { fast { rare bits<i32>(x) > 0x7f800000; return 3 } full { return 3 } }");
  ck_assert_int_eq(nvg_frag_of_nan(a, find("kept", 2, NVM_F32, NVM_F32), 0), NVG_NAN_KEPT);
  ck_assert_int_eq(nvg_frag_of_nan(a, find("kept", 2, NVM_F32, NVM_F32), 1), NVG_NAN_KEPT);
  ck_assert_int_eq(nvg_frag_of_nan(a, find("lost", 2, NVM_F32, NVM_F32), 0), NVG_NAN_UNSEEN);
  ck_assert_int_eq(nvg_frag_of_nan(a, find("lost", 2, NVM_F32, NVM_F32), 1), NVG_NAN_KEPT);
  ck_assert_int_eq(nvg_frag_of_nan(a, find("flag", 1, NVM_F32, 0), 0), NVG_NAN_SLOW_PATH);
  ck_assert_int_eq(nvg_frag_of_nan(a, find("sign", 1, NVM_F32, 0), 0), NVG_NAN_UNSEEN); /* not of a negative one */
  static const char *const sure[] = { "log", "exp", "sin" };
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(nvg_frag_of_nan(a, nvg_frag_find(sure[i], (nvm_dtype[]){ NVM_F32 }, 1), 0), NVG_NAN_SLOW_PATH);
  nvb_arena_free(a);
}
END_TEST

START_TEST(equal_functions_have_equal_hashes) {
  must_parse("frag a(x: f32) -> f32 { return (x + 1) * (x + 1) - 0.5 * x }\n"
             "frag b(y: f32) -> f32 { half = f32(0.5); unused = y / 3; t = y + 1 return t * t - half * y }\n"
             "frag c(x: f32) -> f32 { return (x + 1) * (x + 1) - 0.25 * x }\n"
             "frag d(x: f64) -> f64 { return (x + 1) * (x + 1) - 0.5 * x }\n"
             "frag e(x: f32) -> f32 { return a(x) }");
  const nvg_frag *a = find("a", 1, NVM_F32, 0);
  ck_assert(nvb_hash_eq(a->hash, find("b", 1, NVM_F32, 0)->hash));
  ck_assert(nvb_hash_eq(a->hash, find("e", 1, NVM_F32, 0)->hash));
  ck_assert(!nvb_hash_eq(a->hash, find("c", 1, NVM_F32, 0)->hash));
  ck_assert(!nvb_hash_eq(a->hash, find("d", 1, NVM_F64, 0)->hash));
  ck_assert_int_eq(a->ninst, 1 + 2 + 4);
  ck_assert_int_eq(a->cost, 4);
}
END_TEST

START_TEST(other_items_are_skipped) {
  must_parse("kernel k(x: f32[]) { grid (b = 3) { y = load(x, {b}) } }\nfrag f(x: f32) -> f32 { return x + 1 }\n"
             "schedule cpu { L = \"r: i1 { }\"; # }\n }");
  ck_assert(f32_at("f", 1, 0) == 2);
}
END_TEST

START_TEST(the_manual_has_every_primitive) {
  static char page[1 << 16];
  const char *root = getenv("NVM_SOURCE");
  char path[1024], row[64];
  snprintf(path, sizeof path, "%s/docs/how-it-works/fragments.md", root ? root : ".");
  FILE *f = fopen(path, "rb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_gt(fread(page, 1, sizeof page - 1, f), 1000);
  fclose(f);
  for (int p = 0; p < NVG_NPRIMS; p++) {
    snprintf(row, sizeof row, "| %s |", nvg_prims[p].id);
    ck_assert_msg(strstr(page, row) != NULL, "docs/how-it-works/fragments.md lacks %s", nvg_prims[p].id);
  }
}
END_TEST

/* ---- the library */
typedef struct trip { nvg_fragset *lib; int k, type, count; } trip;
static void same_again(nvb_arena *a, const nvg_frag *f) {
  nvg_fragset *fresh = nvg_library_set(a);
  nvb_text t = { .arena = a };
  int *param = NVB_NEWN(a, int, f->nparam + 1);
  nvg_frag_print(&t, f);
  nvg_fragset_add(fresh, nvb_text_get(&t), "printed");
  for (int i = 0; i < f->nparam; i++) param[i] = f->inst[i].type;
  nvg_frag_query q = { .name = f->name, .len = (int)strlen(f->name), .param = param, .nparam = f->nparam };
  const nvg_frag *g = nvg_fragset_query(fresh, &q);
  ck_assert_ptr_nonnull(g);
  if (!nvb_hash_eq(f->hash, g->hash)) {
    nvb_text u = { .arena = a };
    nvg_frag_print(&u, g);
    ck_abort_msg("%s\n---- is read as\n%s", nvb_text_get(&t), nvb_text_get(&u));
  }
}
typedef struct asked { nvg_fragset *s; nvg_frag_query *q; const nvg_frag *f; } asked;
static void ask(nvb_arena *a, void *arg) {
  asked *r = arg;
  (void)a;
  r->f = nvg_fragset_query(r->s, r->q);
}
static void whole_library(nvb_arena *a, void *arg) {
  trip *w = arg;
  nvg_frag_query q;
  w->lib = nvg_library_set(a);
  for (const nvg_text *t = nvg_frag_texts; t->name; t++) nvg_fragset_add(w->lib, t->text, t->name);
  for (int more = 1, k = 0; more; k++)
    for (int type = NVM_BOOL; type < NVM_C64; type++) {
      int got = nvg_fragset_instance(w->lib, k, type, &q);
      more = got != 0;
      if (got <= 0) continue;
      asked r = { w->lib, &q, NULL };
      int status = nvb_protect(a, ask, &r);
      const nvg_frag *f = r.f;
      if (status && strstr(nvb_message(), "does not fit")) { /* a helper of wide types alone */
        nvg_fragset_forget_calls(w->lib);
        continue;
      }
      if (status) nvb_throw(a, status, "%s", nvb_message());
      if (!f) ck_abort_msg("%.*s is found by no call", q.len, q.name);
      nvg_frag_check(a, f);
      same_again(a, f);
      w->count++;
    }
}
START_TEST(every_library_fragment_reads_back) {
  trip w = { 0 };
  if (nvb_protect(arena, whole_library, &w)) ck_abort_msg("%s", nvb_message());
  ck_assert_int_gt(w.count, 500);
}
END_TEST

static void reads_back(const char *name, int n, nvm_dtype t0, nvm_dtype t1) {
  const nvg_frag *f = find(name, n, t0, t1);
  ck_assert_ptr_nonnull(f);
  int status = nvb_protect(arena, (void (*)(nvb_arena *, void *))same_again, (void *)f);
  ck_assert_msg(status == NVM_OK, "%s", nvb_message());
}

START_TEST(printed_forms_read_back) {
  must_parse("table t: i32 = { 1, -2, 3 }\ntable u: f32 = { 0.1, -inf, 1e-45 }\n"
             "frag f(x: f32, i: i32) -> (f32, bool, i32) {\n  fast { rare x < 0; return x / 3 + u[i], false, t[1] }\n"
             "  full { for k in 3 carry (a = x, b = i, c = true) { a, b = f32(b) + bits<f32>(u32(0x7fc12345)), t[b] - "
             "k } return a - 1e-40, c, b } }\n"
             "frag h(x: f32) -> f32 { for k in 9 carry (y = x, over = x < 1) until over { y = y / 2; over = y < 1 } "
             "return y }\n"
             "frag g(x: f32) -> (f16, bf16, f8e4) { return f16(f32(1.5)), bits<bf16>(u16(0x7fc1)), bits<f8e4>(u8(9)) "
             "}");
  reads_back("f", 2, NVM_F32, NVM_I32);
  reads_back("g", 1, NVM_F32, 0);
  reads_back("h", 1, NVM_F32, 0);
}
END_TEST

START_TEST(out_of_memory_is_clean) {
  const char *text = "table t: i32 = { 1, 2 }\nfrag f<T: real>(x: T) -> T { for k in 3 carry (x = x) { x = x * 2 + "
                     "T(t[k]) } return x }\n"
                     "frag g(x: f32) -> f32 { return f(x) + f(x + 1) }";
  int n = 1;
  for (;; n++) {
    nvb_arena *a = nvb_arena_new();
    ck_assert_int_eq(nvb_protect(a, open_set, NULL), NVM_OK);
    nvb_fail_alloc(n, 1);
    int status = nvb_protect(a, parse, (void *)text);
    nvb_fail_alloc(0, 0);
    nvb_arena_free(a);
    if (status == NVM_OK) break;
    ck_assert_int_eq(status, NVM_ERR_MEMORY);
  }
}
END_TEST

SUITE_WITH("frag_text", setup, teardown, errors_say_where, nesting_is_bounded, lookups_fail_with_types,
           operators_and_literals, literals_round_once, the_most_specific_definition_wins, types_as_arguments,
           several_results, loops, loops_end_early, loops_nest_in_calls_too, tables, rare_goes_up_to_the_callers,
           what_a_nan_leads_to, equal_functions_have_equal_hashes, other_items_are_skipped,
           the_manual_has_every_primitive, every_library_fragment_reads_back, printed_forms_read_back,
           out_of_memory_is_clean)
