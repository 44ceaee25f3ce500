/* For the suites of golden plans. A plan may have no more kernels than were derived by hand and 1.05 times the
   bytes. */
#ifndef GOLDEN_H
#define GOLDEN_H
#include "lazy.h"

static const char *const machines[] = { "h200", "cpu16" };
struct pattern {
  const char *name;
  void (*write)(void);
  int kernels[2];
  double bytes;
};

/* VERBOSE=1: a line for each plan. EXPLAIN=name: the graph and the whole plan of that pattern. */
static inline void hold_to(nvb_arena *a, const nvg_graph *g, const struct pattern *p, int machine) {
  double t = now_us(), moved = 0;
  nvf_plan *f = nvf_fuse(a, g, nvb_caps_find(machines[machine]), &(nvf_options){ .fuse = 1 });
  t = now_us() - t;
  for (int i = 0; i < f->nstep; i++) moved += (double)(f->step[i].bytes_read + f->step[i].bytes_written);
  if (getenv("VERBOSE"))
    printf("%-26s %-6s %d kernels (%d), %8.3f MB (%8.3f), %3d values, planned in %6.0f us\n", p->name,
           machines[machine], f->nstep, p->kernels[machine], moved / 1e6, p->bytes / 1e6, g->n, t);
  nvb_text text = { .arena = a };
  nvf_plan_explain(&text, f);
  if (getenv("EXPLAIN") && !strcmp(getenv("EXPLAIN"), p->name))
    nvg_graph_print(&text, g), nvf_plan_print(&text, f), puts(nvb_text_get(&text));
  nvf_plan_check(a, f);
  ck_assert_msg(f->nstep <= p->kernels[machine] && moved <= 1.05 * p->bytes + 64,
                "%s on %s: %d kernels, at most %d; %.0f bytes, about %.0f\n%s", p->name, machines[machine], f->nstep,
                p->kernels[machine], moved, p->bytes, nvb_text_get(&text));
}

/* The rest of a suite with its table `patterns`. */
#define GOLDEN_SUITE(NAME)                                                                                            \
  static void plan_one(nvb_arena *a, void *arg) {                                                                     \
    const struct pattern *p = arg;                                                                                    \
    p->write();                                                                                                       \
    nvg_graph *g = graph_of(a);                                                                                       \
    for (int m = 0; m < 2; m++)                                                                                       \
      hold_to(a, g, p, m);                                                                                            \
  }                                                                                                                   \
  START_TEST(as_few_kernels_as_by_hand) { in_program(plan_one, &patterns[_i], patterns[_i].name); }                   \
  END_TEST                                                                                                            \
  SUITE(NAME, EACH(as_few_kernels_as_by_hand, patterns))
#endif
