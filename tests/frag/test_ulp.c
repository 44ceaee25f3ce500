/* Every function of the library against MPFR: its error stays below its bound, its special values are right, and the
   fast form, where it does not flag, gives the bits of the full form. test_frag_ulp N [-w] [NAME...] prints the
   tables of docs/how-it-works/numerics.md from N samples instead, or the rows of these functions; -w: with the worst
   cases. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "ulp.h"

enum { SAMPLES = ONE_IN > 1 ? 2048 : 12288, PAIRS = ONE_IN > 1 ? 512 : 2048 };

static void hold(nvm_dtype t) {
  for (int i = 0; i < ulp_nfunctions; i++) {
    const ulp_function *f = &ulp_functions[i];
    ulp_result r;
    ck_assert_msg(ulp_measure(f, t, SAMPLES, 0x9e3779b97f4a7c15u, &r), "%s: no fragment", f->name);
    ck_assert_msg(!r.edge, "%s(%a, %a) is %a, not %a; %ld such", f->name, r.edge_at[0], r.edge_at[1], r.edge_got,
                  r.edge_want, r.edge);
    ck_assert_msg(r.max <= f->bound[t == NVM_F64], "%s(%a, %a) = %a: %.3f ulp", f->name, r.at[0], r.at[1], r.got,
                  r.max);
    ck_assert_msg(!r.differ, "%s: the two forms differ at %ld of %d", f->name, r.differ, SAMPLES);
  }
}

static void hold_complex(nvm_dtype t) {
  for (int i = 0; i < ulp_npairs; i++) {
    const ulp_pair *f = &ulp_pairs[i];
    ulp_result r;
    ck_assert_msg(ulp_measure_complex(f, t, PAIRS, 0x9e3779b97f4a7c15u, &r), "%s: no fragment", f->name);
    ck_assert_msg(r.max <= f->bound[t == NVM_F64], "%s(%a, %a; %a, %a) part %d = %a: %.3f ulp", f->name, r.at[0],
                  r.at[1], r.edge_at[0], r.edge_at[1], r.part, r.got, r.max);
    ck_assert_msg(!r.differ, "%s: the two forms differ at %ld of %d", f->name, r.differ, PAIRS);
  }
}

START_TEST(f32) { hold(NVM_F32); }
END_TEST
START_TEST(f64) { hold(NVM_F64); }
END_TEST
START_TEST(c64) { hold_complex(NVM_F32); }
END_TEST
START_TEST(c128) { hold_complex(NVM_F64); }
END_TEST

/* hypot of f32 where its three roundings add up, both squares and their sum just above a power of two, and of operands
   that differ by up to 2^24, at every exponent; f64 holds the squares, and rounds their sum far below an ulp. */
static void hold_hypot(const nvg_frag *f, int exponent, int apart, uint64_t *seed) {
  enum { BLOCK = 256 };
  float x[2][BLOCK], fast[BLOCK], full[BLOCK];
  uint8_t rare[BLOCK] = { 0 };
  const void *in[2] = { x[0], x[1] };
  for (int i = 0; i < BLOCK; i++)
    for (int k = 0; k < 2; k++) {
      *seed = *seed * 6364136223846793005u + 1442695040888963407u;
      x[k][i] = (float)ldexp(1 + (double)(*seed >> 40) * 0x1p-31, exponent - k * apart) * (*seed >> 39 & 1 ? 1 : -1);
    }
  nvg_frag_run(f, in, (void *const[]){ fast }, BLOCK, 0);
  nvg_frag_run(f, in, (void *const[]){ full }, BLOCK, 1);
  nvg_frag_flags(f, in, rare, BLOCK);
  for (int i = 0; i < BLOCK; i++) {
    double a = x[0][i], b = x[1][i], want = sqrt(a * a + b * b);
    int e = ilogb(want) < -126 ? -126 : ilogb(want);
    ck_assert_msg(rare[i] || fast[i] == full[i], "hypot(%a, %a): %a, %a", a, b, (double)fast[i], (double)full[i]);
    ck_assert_msg(fabs(full[i] - want) <= ldexp(1.21, e - 23) || (want >= 0x1.fffffep127 && full[i] >= 0x1.fffffep127),
                  "hypot(%a, %a) = %a", a, b, (double)full[i]);
  }
}

START_TEST(hypot_at_every_exponent) {
  const nvg_frag *f = nvg_frag_find("hypot", (const nvm_dtype[]){ NVM_F32, NVM_F32 }, 2);
  uint64_t seed = 1;
  for (int exponent = -149; exponent <= 127; exponent++)
    for (int apart = 0; apart <= 24; apart += apart ? 3 : 1) hold_hypot(f, exponent, apart, &seed);
}
END_TEST

static void print_worst(const char *type, const ulp_result *r) {
  printf("    %s: %a at %a, %a; %ld edges (%a, %a: %a, not %a); %ld differ\n", type, r->got, r->at[0], r->at[1],
         r->edge, r->edge_at[0], r->edge_at[1], r->edge_got, r->edge_want, r->differ);
}

static void print_row(const char *name, const ulp_result *a, const ulp_result *b, int worst) {
  printf("| %s | %.2f | %.2f |%s\n", name, a->max, b->max, a->edge || b->edge || a->differ || b->differ ? " <-" : "");
  if (worst) print_worst("f32", a), print_worst("f64", b);
}

/* Whether the name is among those that were asked for, which end with NULL; none were: all are. */
static int is_asked_for(char *const *names, const char *name) {
  int found = !*names;
  for (; *names; names++) found |= strcmp(*names, name) == 0;
  return found;
}

/* Returns the number of rows. */
static int print_tables(int n, int worst, char *const *names) {
  ulp_result a, b;
  int rows = 0;
  for (int i = 0; i < ulp_nfunctions; i++)
    if (is_asked_for(names, ulp_functions[i].name) && ulp_measure(&ulp_functions[i], NVM_F32, n, 1, &a) &&
        ulp_measure(&ulp_functions[i], NVM_F64, n, 1, &b))
      print_row(ulp_functions[i].name, &a, &b, worst), rows++;
  for (int i = 0; i < ulp_npairs; i++)
    if (is_asked_for(names, ulp_pairs[i].name) && ulp_measure_complex(&ulp_pairs[i], NVM_F32, n, 1, &a) &&
        ulp_measure_complex(&ulp_pairs[i], NVM_F64, n, 1, &b))
      print_row(ulp_pairs[i].name, &a, &b, worst), rows++;
  return rows;
}

int main(int argc, char **argv) {
  if (argc < 2) return RUN_SUITE("ulp", f32, f64, c64, c128, hypot_at_every_exponent);
  int worst = argc > 2 && strcmp(argv[2], "-w") == 0;
  return !print_tables(atoi(argv[1]), worst, argv + 2 + worst);
}
