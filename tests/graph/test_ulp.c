/* Every function of the library against MPFR: its error stays below its bound, its special values are right, and the
   fast form, where it does not flag, gives the bits of the full form. With an argument N it prints the table of
   docs/numerics.md from N samples instead, with a second one the worst cases too. */
#include <stdio.h>
#include <stdlib.h>
#include "../suite.h"
#include "ulp.h"

enum { SAMPLES = 12 * 1024 };

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

START_TEST(f32) { hold(NVM_F32); } END_TEST
START_TEST(f64) { hold(NVM_F64); } END_TEST

static void print_worst(const char *type, const ulp_result *r) {
  printf("    %s: %a at %a, %a; %ld edges (%a, %a: %a, not %a); %ld differ\n", type, r->got, r->at[0], r->at[1],
    r->edge, r->edge_at[0], r->edge_at[1], r->edge_got, r->edge_want, r->differ);
}

int main(int argc, char **argv) {
  if (argc < 2) return RUN_SUITE("ulp", f32, f64);
  for (int i = 0; i < ulp_nfunctions; i++) {
    ulp_result a, b;
    if (!ulp_measure(&ulp_functions[i], NVM_F32, atoi(argv[1]), 1, &a) || !ulp_measure(&ulp_functions[i], NVM_F64,
      atoi(argv[1]), 1, &b)) continue;
    printf("| %s | %.2f | %.2f |%s\n", ulp_functions[i].name, a.max, b.max, a.edge || b.edge || a.differ ||
      b.differ ? " <-" : "");
    if (argc > 2) print_worst("f32", &a), print_worst("f64", &b);
  }
  return 0;
}
