/* Index expressions: floors and remainders that cancel, intervals, what is proved equal and what is not. */
#include <stdlib.h>
#include "../arena.h"
#include "../suite.h"
#include "fusion/index.h"

typedef struct fixture { nvf_space *s; nvf_prod n, m, b; nvf_ix i, j, k; } fixture;

static fixture make(nvb_arena *a) { /* axes i < n, j < m, k < b */
  fixture f = { .s = nvf_space_new(a) };
  f.n = nvf_symbol(f.s, 37);
  f.m = nvf_symbol(f.s, 12);
  f.b = nvf_symbol(f.s, 8);
  f.i = nvf_ix_axis(f.s, 0, f.n);
  f.j = nvf_ix_axis(f.s, 1, f.m);
  f.k = nvf_ix_axis(f.s, 2, f.b);
  return f;
}

static void reshapes(nvb_arena *a, void *arg) {
  fixture f = make(a);
  (void)arg;
  nvf_prod dim[3] = { f.n, f.m, f.b }, two[2] = { f.n, nvf_mul(f.s, f.m, f.b) };
  nvf_ix at[3] = { f.i, f.j, f.k }, back[3], mid[2];
  nvf_ix flat = nvf_ix_linear(f.s, 3, at, dim);
  nvf_ix_unlinear(f.s, flat, 3, dim, back); /* there and back */
  ck_assert(back[0] == f.i && back[1] == f.j && back[2] == f.k);
  nvf_ix_unlinear(f.s, flat, 2, two, mid);
  ck_assert(mid[0] == f.i);
  ck_assert(mid[1] == nvf_ix_add(f.s, nvf_ix_mul(f.s, f.j, f.b, 1), f.k));
  ck_assert(nvf_ix_div(f.s, nvf_ix_add(f.s, nvf_ix_mul(f.s, f.i, f.b, 1), f.k), f.b) == f.i); /* 0 <= k < b by proof */
}

static void one_axis_taken_apart(nvb_arena *a, void *arg) {
  fixture f = make(a);
  (void)arg;
  nvf_prod all = nvf_mul(f.s, f.n, f.m);
  nvf_ix r = nvf_ix_axis(f.s, 3, all), q = nvf_ix_div(f.s, r, f.m), t = nvf_ix_mod(f.s, r, f.m);
  int64_t lo, hi;
  nvf_ix_range(f.s, t, &lo, &hi); /* r - m * floor(r / m) is seen as a remainder */
  ck_assert_int_eq(lo, 0);
  ck_assert_int_eq(hi, 11);
  nvf_ix_range(f.s, q, &lo, &hi);
  ck_assert_int_eq(hi, 36);
  ck_assert(nvf_ix_add(f.s, nvf_ix_mul(f.s, q, f.m, 1), t) == r);
  ck_assert(nvf_ix_div(f.s, q, f.b) == nvf_ix_div(f.s, r, nvf_mul(f.s, f.m, f.b))); /* floors of floors */
  ck_assert_int_eq(nvf_ix_floors(f.s, r), 0);
  nvf_ix coarse = nvf_ix_div(f.s, nvf_ix_add(f.s, nvf_ix_mul(f.s, f.i, 0, 4), nvf_ix_axis(f.s, 4, nvf_int(f.s, 4))),
                             nvf_int(f.s, 8));
  ck_assert(coarse == nvf_ix_div(f.s, f.i, nvf_int(f.s, 2))); /* (4 i + j) / 8 with j < 4 is i / 2 */
}

static void equalities(nvb_arena *a, void *arg) {
  nvf_space *s = nvf_space_new(a);
  (void)arg;
  nvf_prod x = nvf_symbol(s, 12), y = nvf_symbol(s, 12), p = nvf_symbol(s, 3), q = nvf_symbol(s, 4),
           z = nvf_symbol(s, 12);
  nvf_same(s, x, y);
  nvf_same(s, y, nvf_mul(s, p, q));
  ck_assert_int_eq(nvf_proved(s, x), nvf_mul(s, p, q));
  ck_assert_int_eq(nvf_proved(s, y), nvf_mul(s, q, p));
  ck_assert_int_eq(nvf_proved(s, z), z); /* the same value is no proof */
  ck_assert_int_eq(nvf_quot(s, nvf_proved(s, x), q), p);
  ck_assert_int_lt(nvf_quot(s, z, q), 0);
  ck_assert_int_eq(nvf_quot(s, nvf_mul(s, z, nvf_int(s, 6)), nvf_int(s, 2)), nvf_mul(s, z, nvf_int(s, 3)));
}

/* Random expressions against their values. */
static int64_t value(const nvf_space *s, nvf_ix e, const int64_t *axis) {
  int n;
  const nvf_term *t = nvf_ix_terms(s, e, &n);
  int64_t sum = 0;
  for (int i = 0; i < n; i++) {
    const nvf_atom *a = nvf_ix_atom(s, t[i].atom);
    int64_t v = 1;
    if (a->kind == NVF_AT_AXIS) v = axis[a->id];
    if (a->kind == NVF_AT_FLOOR) {
      int64_t x = value(s, a->of, axis), d = nvf_value(s, a->by);
      v = x / d - (x % d < 0);
    }
    sum += t[i].c * nvf_value(s, t[i].by) * v;
  }
  return sum;
}

static void random_values(nvb_arena *a, void *arg) {
  (void)arg;
  srand(5);
  for (int round = 0; round < 3000; round++) {
    nvf_space *s = nvf_space_new(a);
    nvf_prod p[6] = { nvf_symbol(s, 1 + rand() % 9), nvf_symbol(s, 1 + rand() % 9), nvf_int(s, 1 + rand() % 6),
                      nvf_symbol(s, 2) };
    p[4] = nvf_mul(s, p[0], p[1]);
    p[5] = nvf_mul(s, p[2], p[3]);
    nvf_ix e[12];
    int64_t at[3], want[12];
    int n = 3;
    for (int i = 0; i < 3; i++) {
      e[i] = nvf_ix_axis(s, i, p[i]);
      want[i] = at[i] = rand() % nvf_value(s, p[i]);
    }
    for (; n < 12; n++) {
      int x = rand() % n, y = rand() % n, by = rand() % 6;
      int64_t d = nvf_value(s, p[by]), c = rand() % 7 - 3, f = want[x] / d - (want[x] % d < 0);
      switch (rand() % 4) {
      case 0: e[n] = nvf_ix_add(s, e[x], nvf_ix_mul(s, e[y], p[by], c)); want[n] = want[x] + want[y] * d * c; break;
      case 1: e[n] = nvf_ix_div(s, e[x], p[by]); want[n] = f; break;
      case 2: e[n] = nvf_ix_mod(s, e[x], p[by]); want[n] = want[x] - d * f; break;
      default: e[n] = nvf_ix_add(s, e[x], nvf_ix_int(s, c)); want[n] = want[x] + c; break;
      }
      int64_t lo, hi;
      nvf_ix_range(s, e[n], &lo, &hi);
      ck_assert_int_eq(value(s, e[n], at), want[n]);
      ck_assert(lo <= want[n] && want[n] <= hi);
      /* substitution, with the same simplifications */
      nvf_ix to[64] = { nvf_ix_add(s, e[1], nvf_ix_int(s, 1)), -1, -1 };
      int64_t moved[3] = { at[1] + 1, at[1], at[2] };
      ck_assert_int_eq(value(s, nvf_ix_subst(s, e[n], to), at), value(s, e[n], moved));
    }
  }
}

/* What an index tile holds is unknown, and stays so however long the rows are that it counts. */
static void tiles(nvb_arena *a, void *arg) {
  (void)arg;
  for (int bits = 20; bits <= 40; bits++) {
    nvf_space *s = nvf_space_new(a);
    nvf_prod row = nvf_int(s, (int64_t)1 << bits), odd = nvf_symbol(s, ((int64_t)1 << bits) + 1);
    nvf_ix t = nvf_ix_tile(s, 0, nvf_int(s, 8), 1), j = nvf_ix_axis(s, 1, row);
    nvf_ix at = nvf_ix_add(s, nvf_ix_mul(s, t, row, 1), j), q = nvf_ix_div(s, at, odd);
    int64_t lo, hi;
    nvf_ix_range(s, at, &lo, &hi);
    ck_assert(lo <= -((int64_t)1 << 60) && hi >= (int64_t)1 << 60);
    ck_assert(nvf_ix_axes(s, q) == 3); /* no constant */
    ck_assert_int_eq(nvf_ix_floors(s, q), 1);
    ck_assert(nvf_ix_div(s, at, row) == t);
    nvf_ix_range(s, nvf_ix_mul(s, q, odd, 1), &lo, &hi);
    ck_assert(lo < 0 && hi > 0);
  }
}

/* ---- other values of the symbols. A fact is noted where a rewrite rests on a value, and nowhere else. */
static int serves(nvb_arena *a, const nvf_space *s, int64_t n, int64_t m, int64_t b) {
  return nvf_space_with(a, nvf_space_keep(a, s), 3, (int64_t[]){ n, m, b }) != NULL;
}

static void floors_of_other_sizes(nvb_arena *a, void *arg) {
  fixture f = make(a);
  (void)arg;
  nvf_note_facts(f.s);
  ck_assert(nvf_ix_div(f.s, nvf_ix_add(f.s, f.i, nvf_ix_int(f.s, 3)), nvf_int(f.s, 40)) == 0);
  ck_assert(serves(a, f.s, 37, 12, 8) && serves(a, f.s, 1, 900, 1)); /* (i + 3) / 40 is 0 for n <= 37 */
  ck_assert(!serves(a, f.s, 38, 12, 8));
}

static void quotients_of_other_sizes(nvb_arena *a, void *arg) {
  fixture f = make(a);
  (void)arg;
  nvf_note_facts(f.s);
  nvf_ix at = nvf_ix_add(f.s, nvf_ix_mul(f.s, f.i, f.m, 1), f.k); /* k < b <= m, as these values are */
  ck_assert(nvf_ix_div(f.s, at, f.m) == f.i);
  ck_assert(serves(a, f.s, 5, 12, 12) && serves(a, f.s, 500, 9, 8));
  ck_assert(!serves(a, f.s, 37, 12, 13));
}

static void what_symbols_prove_is_no_fact(nvb_arena *a, void *arg) {
  fixture f = make(a);
  (void)arg;
  nvf_note_facts(f.s);
  nvf_ix at = nvf_ix_add(f.s, nvf_ix_mul(f.s, f.i, f.m, 1), f.j);
  nvf_ix_div(f.s, nvf_ix_add(f.s, f.i, f.j), f.b); /* it stays a floor */
  nvf_rely(f.s, (nvf_fact){ NVF_EQUAL, f.n, f.n, 0 });
  nvf_rely(f.s, (nvf_fact){ NVF_MULTIPLE, nvf_mul(f.s, f.n, nvf_int(f.s, 8)), 0, 4 });
  ck_assert(nvf_ix_mod(f.s, at, f.m) == f.j);
  ck_assert(serves(a, f.s, 1, 1, 1) && serves(a, f.s, 999, 3, 77));
}

static void facts_of_each_kind(nvb_arena *a, void *arg) {
  static const struct {
    nvf_fact_kind kind;
    int64_t k, yes, no; /* of n = 37 and m = 12: sizes n for which the fact holds, and does not */
  } rows[] = { { NVF_AT_LEAST, 33, 33, 32 }, { NVF_AT_MOST, 40, 40, 41 }, { NVF_MULTIPLE, 37, 74, 73 } };
  (void)arg;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    fixture f = make(a);
    nvf_note_facts(f.s);
    nvf_rely(f.s, (nvf_fact){ rows[i].kind, f.n, 0, rows[i].k });
    ck_assert(serves(a, f.s, rows[i].yes, 12, 8) && !serves(a, f.s, rows[i].no, 12, 8));
  }
  fixture f = make(a);
  nvf_note_facts(f.s);
  nvf_prod parts = nvf_parts(f.s, f.n, 16), want = nvf_int(f.s, 3);
  nvf_rely(f.s, (nvf_fact){ NVF_EQUAL, parts, want, 0 }); /* 37 in parts of 16 */
  ck_assert(nvf_serves_others(f.s, 3) && serves(a, f.s, 48, 12, 8) && !serves(a, f.s, 49, 12, 8));
  nvf_rely(f.s, (nvf_fact){ .kind = NVF_THESE_SIZES });
  ck_assert(!nvf_serves_others(f.s, 3) && !serves(a, f.s, 37, 12, 8));
}

static void run(void (*fn)(nvb_arena *, void *)) { in_arena(fn, NULL, NULL); }

START_TEST(reshapes_there_and_back_cancel) { run(reshapes); }
END_TEST
START_TEST(an_axis_taken_apart_is_known_again) { run(one_axis_taken_apart); }
END_TEST
START_TEST(equality_is_proved_never_guessed) { run(equalities); }
END_TEST
START_TEST(index_tiles_stay_unknown) { run(tiles); }
END_TEST
START_TEST(values_are_kept) { run(random_values); }
END_TEST
START_TEST(a_quotient_that_is_a_number_is_a_fact) { run(floors_of_other_sizes); }
END_TEST
START_TEST(a_divisor_that_exceeds_the_rest_is_a_fact) { run(quotients_of_other_sizes); }
END_TEST
START_TEST(a_proof_by_symbols_is_no_fact) { run(what_symbols_prove_is_no_fact); }
END_TEST
START_TEST(facts_hold_or_not_of_other_sizes) { run(facts_of_each_kind); }
END_TEST

SUITE("index", reshapes_there_and_back_cancel, an_axis_taken_apart_is_known_again, equality_is_proved_never_guessed,
      index_tiles_stay_unknown, values_are_kept, a_quotient_that_is_a_number_is_a_fact,
      a_divisor_that_exceeds_the_rest_is_a_fact, a_proof_by_symbols_is_no_fact, facts_hold_or_not_of_other_sizes)
