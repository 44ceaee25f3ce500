/* Graphs that are larger than a search may look at in full, or than a kernel may hold: they still plan, soon and into few
   kernels. */
#include "lazy.h"

static void crowd(void) { /* 60 row sums and 60 column sums of one array */
  N x = X(4096, 512), s = NULL;
  for (int i = 0; i < 60; i++) {
    N t = add(mul(x, sum(mul(x, w(i)), 1, 1)), sum(add(x, w(i)), 0, 1));
    s = s ? add(s, t) : t;
  }
  out(s);
}
static void optimizer(void) { /* tensors that have nothing in common */
  for (int i = 0; i < 5; i++) {
    int64_t n = 1000 + 37 * i;
    N p = X(n), g = X(n), m = add(mul(w(0.9), X(n)), mul(w(0.1), g));
    out(sub(p, mul(w(1e-3), m)));
    out(m);
  }
}
static void doublings(void) { /* each half asks for all that is below it */
  N x = X(16);
  for (int i = 0; i < 14; i++)
    x = concat(x, ex(x), 0);
  out(x);
}
static void stencils(void) {
  N x = X(100000);
  for (int64_t i = 0, n = 100000 - 2; i < 30; i++, n -= 2)
    x = add(slice(x, 0, n, 1), add(slice(x, 1, n, 1), slice(x, 2, n, 1)));
  out(x);
}
static void wide(void) { /* more operands than a kernel may have buffers */
  N s = X(5000);
  for (int i = 0; i < 200; i++)
    s = add(s, X(5000));
  out(s);
}
static void deep(void) {
  N x = X(5000);
  for (int i = 0; i < 250; i++)
    x = add(mul(x, w(1.5)), w(i));
  out(x);
}
static void layernorm_backward(void) {
  N x = X(8192, 768), g = X(8192, 768), v = X(768), n = w(768);
  N m = dvd(sum(x, 1, 1), n), d = sub(x, m), r = dvd(w(1), sq(add(dvd(sum(mul(d, d), 1, 1), n), w(1e-5)))), h = mul(d, r), q = mul(g, v);
  out(mul(r, sub(sub(q, dvd(sum(q, 1, 1), n)), mul(h, dvd(sum(mul(q, h), 1, 1), n)))));
  out(sum(mul(g, h), 0, 0));
  out(sum(g, 0, 0));
}

static const struct { const char *name; void (*write)(void); int steps; double ms; } cases[] = {
  { "crowd", crowd, 10, 2000 }, { "optimizer", optimizer, 1, 200 }, { "doublings", doublings, 6, 2000 },
  { "stencils", stencils, 12, 2000 }, { "wide", wide, 5, 500 }, { "deep", deep, 1, 300 }, { "layernorm backward", layernorm_backward, 3, 300 },
};

static void plan_one(nvb_arena *a, void *arg) {
  int i = *(int *)arg;
  cases[i].write();
  nvg_graph *g = graph_of(a);
  double t = now_us();
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  t = (now_us() - t) / 1000;
  if (getenv("VERBOSE"))
    printf("%-20s %4d values, %3d steps, planned in %.1f ms\n", cases[i].name, g->n, p->nstep, t);
  nvf_plan_check(a, p);
  ck_assert_msg(p->nstep <= cases[i].steps, "%s: %d steps, at most %d", cases[i].name, p->nstep, cases[i].steps);
  ck_assert_msg(t <= cases[i].ms, "%s: planned in %.0f ms, at most %.0f", cases[i].name, t, cases[i].ms);
}

START_TEST(plans_of_large_graphs) {
  static program program;
  nvb_arena *a = nvb_arena_new();
  P = &program;
  P->nkeep = P->nout = 0;
  int rc = nvb_protect(a, plan_one, &_i);
  ck_assert_msg(rc == NVM_OK, "%s: %s", cases[_i].name, nvb_message());
  forget();
  nvb_arena_free(a);
}
END_TEST

int main(void) {
  Suite *s = suite_create("large");
  TCase *t = tcase_create("plans");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, plans_of_large_graphs, 0, (int)(sizeof cases / sizeof *cases));
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_NORMAL);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
