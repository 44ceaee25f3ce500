/* Every function of the library against MPFR: its error stays below its bound, its special values are right, and the fast
   form, where it does not flag, gives the bits of the full form. `test_graph_ulp N` prints the table of docs/numerics.md from N samples. */
#include <stdio.h>
#include <stdlib.h>
#include "suite.h"
#include "ulp.h"

enum { SAMPLES = 24 * 1024 };

static void hold(nvm_dtype t) {
  for (int i = 0; i < ulp_nfunctions; i++) {
    const ulp_function *f = &ulp_functions[i];
    ulp_result r;
    ck_assert_msg(ulp_measure(f, t, SAMPLES, 0x9e3779b97f4a7c15u, &r), "%s: no fragment", f->name);
    ck_assert_msg(!r.edge, "%s(%a, %a) is %a, not %a; %ld such", f->name, r.edge_at[0], r.edge_at[1], r.edge_got, r.edge_want, r.edge);
    ck_assert_msg(r.max <= f->bound[t == NVM_F64], "%s(%a, %a) = %a: %.3f ulp", f->name, r.at[0], r.at[1], r.got, r.max);
    ck_assert_msg(!r.differ, "%s: the two forms differ at %ld of %d", f->name, r.differ, SAMPLES);
  }
}

START_TEST(f32) { hold(NVM_F32); } END_TEST
START_TEST(f64) { hold(NVM_F64); } END_TEST

static int run(void) {
  const TTest *const tests[] = { f32, f64 };
  return run_suite("ulp", tests, 2);
}

int main(int argc, char **argv) {
  if (argc < 2) return run();
  for (int i = 0; i < ulp_nfunctions; i++) {
    ulp_result a, b;
    if (!ulp_measure(&ulp_functions[i], NVM_F32, atoi(argv[1]), 1, &a) || !ulp_measure(&ulp_functions[i], NVM_F64, atoi(argv[1]), 1, &b)) continue;
    printf("| %s | %.2f | %.2f |%s\n", ulp_functions[i].name, a.max, b.max, a.edge || b.edge || a.differ || b.differ ? " <-" : "");
    if (argc > 2) printf("    f32 at %a %a got %a edges %ld (%a %a: %a not %a) differ %ld\n    f64 at %a %a got %a edges %ld (%a %a: %a not %a) differ %ld\n",
      a.at[0], a.at[1], a.got, a.edge, a.edge_at[0], a.edge_at[1], a.edge_got, a.edge_want, a.differ,
      b.at[0], b.at[1], b.got, b.edge, b.edge_at[0], b.edge_at[1], b.edge_got, b.edge_want, b.differ);
  }
  return 0;
}
