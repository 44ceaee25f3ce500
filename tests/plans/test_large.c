/* Graphs that are larger than a search may look at in full, or than a kernel may hold: they still plan, soon and into
   few kernels; what a kernel may not hold is cut with a reason, and so is one that was refused. */
#include "base/mem.h"
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
  for (int i = 0; i < 14; i++) x = concat(x, ex(x), 0);
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
  for (int i = 0; i < 200; i++) s = add(s, X(5000));
  out(s);
}
static void deep(void) {
  N x = X(5000);
  for (int i = 0; i < 250; i++) x = add(mul(x, w(1.5)), w(i));
  out(x);
}
static void hundred(void) {
  N s = X(100000);
  for (int i = 1; i < 100; i++) s = add(s, X(100000));
  out(s);
}
static void seventy(void) { /* results of one array: no edge is between their kernels */
  N x = X(100000);
  for (int i = 0; i < 70; i++) out(add(mul(x, w(i + 0.5)), w(1)));
}
static void scalars(void) { /* 600 literals, 8 bytes each, are more than the launch of a GPU takes */
  N x = X(100000);
  for (int i = 0; i < 600; i++) x = add(x, w(i + 0.5));
  out(x);
}
/* Chains whose index or conditions grow with each link, or the planner's stack with their length */
static void shorter(void) {
  N x = X(100000);
  for (int64_t i = 0, n = 100000; i < 200; i++) {
    n -= 1 + i % 7;
    x = ab(slice(x, 1 + i % 7, n, 1));
  }
  out(x);
}
static void longer(void) {
  N x = X(1000);
  for (int i = 0; i < 200; i++) x = ng(pad(x, 1 + i % 5));
  out(x);
}
static void around(void) {
  N x = X(1000);
  for (int i = 0; i < 150; i++) x = ng(roll(x, 1 + i, 0));
  out(x);
}
static void views_alone(void) {
  N x = X(1000);
  for (int64_t i = 0; i < 150; i++) x = slice(roll(x, 1 + i, 0), 1, 999 - i, 1);
  out(x);
}
static void rotations(void) { /* an element of each is read at every other place */
  N x = X(16);
  for (int i = 0; i < 300; i++) x = concat(slice(x, 1, 15, 1), slice(x, 0, 1, 1), 0);
  out(x);
}
static void writes(void) { /* to parts that overlap */
  N x = X(16);
  for (int64_t i = 0; i < 120; i++) {
    nvg_attr at[3] = { { .name = "start", .kind = 'I', .is = (int64_t[]){ i % 4 }, .n = 1 },
                       { .name = "count", .kind = 'I', .is = (int64_t[]){ 3 }, .n = 1 },
                       { .name = "step", .kind = 'I', .is = (int64_t[]){ 1 }, .n = 1 } };
    x = apply(NVG_OP_SLICE_UPDATE, 2, (N[]){ x, add(slice(x, i % 4, 3, 1), w(1)) }, 3, at);
  }
  out(x);
}
static void longest(void) {
  N x = X(1000);
  for (int i = 0; i < 8000; i++) x = i % 2 ? ab(x) : ng(x);
  out(x);
}
static void pieces(void) { /* more than a kernel may have buffers */
  N x[200];
  for (int i = 0; i < 200; i++) x[i] = X(100 + i);
  out(apply(NVG_OP_CONCAT, 200, x, 1, &(nvg_attr){ .name = "axis", .kind = 'i', .i = 0 }));
}
static void states(void) { /* of a loop, all of them wanted */
  N x = X(1000), at[300];
  for (int i = 0; i < 300; i++) at[i] = x = add(mul(x, w(0.99)), w(1));
  out(apply(NVG_OP_STACK, 300, at, 1, &(nvg_attr){ .name = "axis", .kind = 'i', .i = 0 }));
}
static N running_sum(N x) {
  return apply(NVG_OP_CUMULATIVE_SUM, 1, &x, 1, &(nvg_attr){ .name = "axis", .kind = 'i', .i = 0 });
}
static void shifted_scan(void) {
  N s = running_sum(X(100000));
  out(sub(slice(s, 1, 99999, 1), slice(s, 0, 99999, 1)));
}
static void gathered(void) {
  N x = ex(X(100000)), i = leaf_of(NVM_I64, SHAPE(1000));
  nvg_attr axis = { .name = "axis", .kind = 'i', .i = 0 };
  out(apply(NVG_OP_TAKE, 2, (N[]){ x, i }, 1, &axis));
}
static void separated(void) { /* over the first and the last axis: one inside the other */
  out(reds(NVG_OP_SUM, ex(X(64, 100, 80)), 0, 2, (int64_t[]){ 0, 2 }));
}
static void softmax(void) {
  N x = X(4096, 1000), e = ex(sub(x, max_(x, 1, 1)));
  out(dvd(e, sum(e, 1, 1)));
}
static void layernorm_backward(void) {
  N x = X(8192, 768), g = X(8192, 768), v = X(768), n = w(768);
  N m = dvd(sum(x, 1, 1), n), d = sub(x, m), r = dvd(w(1), sq(add(dvd(sum(mul(d, d), 1, 1), n), w(1e-5)))),
    h = mul(d, r), q = mul(g, v);
  out(mul(r, sub(sub(q, dvd(sum(q, 1, 1), n)), mul(h, dvd(sum(mul(q, h), 1, 1), n)))));
  out(sum(mul(g, h), 0, 0));
  out(sum(g, 0, 0));
}

/* Of a search, for each value; statements of a kernel, of so many operations one after the other and as many that are
   done again elsewhere; the blocks of at most 1 MB of its arenas. */
enum { WORK = 4000, STATEMENTS = 2100, BLOCKS = 64 };

/* steps: on a CPU; cut: what explain says of some edge on a GPU */
static const struct {
  const char *name;
  void (*write)(void);
  int steps;
  const char *cut;
} cases[] = {
  { "crowd", crowd, 10, NULL },
  { "optimizer", optimizer, 1, NULL },
  { "doublings", doublings, 7, NULL },
  { "stencils", stencils, 12, NULL },
  { "wide", wide, 5, NULL },
  { "deep", deep, 2, NULL },
  { "layernorm backward", layernorm_backward, 3, NULL },
  { "sum of 100 arrays", hundred, 2, "more buffers than a kernel may have" },
  { "70 results", seventy, 2, "not fused: 1 and 2: more buffers than a kernel may have" },
  { "600 literals", scalars, 12, "more arguments than a launch may have" },
  { "a scan at a shift", shifted_scan, 2, "read at other coordinates than it is made" },
  { "a gather of what is computed", gathered, 2, "read at other coordinates than it is made" },
  { "separated axes", separated, 1, NULL },
  { "shorter and shorter", shorter, 4, "an index of too many terms" },
  { "longer and longer", longer, 4, "an index of too many terms" },
  { "around and around", around, 150, NULL },
  { "views alone", views_alone, 20, NULL },
  { "rotations", rotations, 96, NULL },
  { "writes", writes, 60, NULL },
  { "the longest", longest, 170, "a large graph is divided between them" },
  { "pieces", pieces, 7, "read at other coordinates than it is made" },
  { "states", states, 54, NULL },
};

static void cut_on_a_gpu(nvb_arena *a, const nvg_graph *g, const char *name, const char *why) {
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  nvb_text text = { .arena = a };
  nvf_plan_explain(&text, p);
  nvf_plan_check(a, p);
  ck_assert_msg(strstr(nvb_text_get(&text), why) != NULL, "%s: not '%s'\n%s", name, why, nvb_text_get(&text));
  for (int s = 0; s < p->nstep; s++) {
    int buffers = 0;
    for (int j = 0; j < p->step[s].k->nparam; j++) buffers += p->step[s].k->param[j].kind == NVF_BUFFER;
    ck_assert_int_le(buffers, 64);
    ck_assert_int_le(p->step[s].k->nparam, 4096 / 8);
  }
}

/* An element of many pieces is found in few steps, in each between few of them. */
static void few_choices(const nvf_plan *p, const char *name) {
  for (int s = 0; s < p->nstep; s++)
    for (int j = 0; j < p->step[s].k->npart; j++) {
      const nvf_block *b = &p->step[s].k->part[j].body;
      int tests = 0, stores = 0;
      for (int i = 0; i < b->n; i++) {
        tests += b->s[i]->op == NVF_TEST;
        stores += b->s[i]->op == NVF_STORE;
      }
      ck_assert_msg(tests < NVG_CONCAT_MOST * stores, "%s: step %d chooses %d times for %d values", name, s + 1, tests,
                    stores);
    }
}

static void plan_one(nvb_arena *a, void *arg) {
  int i = *(int *)arg;
  cases[i].write();
  int64_t blocks = nvb_live_blocks();
  nvg_graph *g = graph_of(a);
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  if (getenv("VERBOSE"))
    printf("%-20s %4d values, %3d steps, work %lld, %lld blocks\n", cases[i].name, g->n, p->nstep, (long long)p->work,
           (long long)(nvb_live_blocks() - blocks));
  ck_assert_msg(nvb_live_blocks() - blocks < BLOCKS, "%s: %lld MB", cases[i].name,
                (long long)(nvb_live_blocks() - blocks));
  nvf_plan_check(a, p);
  if (cases[i].cut) cut_on_a_gpu(a, g, cases[i].name, cases[i].cut);
  ck_assert_msg(p->nstep <= cases[i].steps, "%s: %d steps, at most %d", cases[i].name, p->nstep, cases[i].steps);
  ck_assert_msg(p->work < WORK * g->n, "%s: %lld for %d values", cases[i].name, (long long)p->work, g->n);
  for (int s = 0; s < p->nstep; s++)
    ck_assert_msg(p->step[s].k->nstmt <= STATEMENTS, "%s: %d statements", cases[i].name, p->step[s].k->nstmt);
  if (cases[i].write == pieces || cases[i].write == states) few_choices(p, cases[i].name);
}

START_TEST(plans_of_large_graphs) { in_program(plan_one, &_i, cases[_i].name); }
END_TEST

/* However long a chain is, each value takes a search so much work. */
static N map_link(N x) { return ab(ng(x)); }
static N softmax_link(N x) {
  N e = ex(sub(x, max_(x, 1, 1)));
  return dvd(e, sum(e, 1, 1));
}
static N new_link(N x) { return add(x, X(512, 256)); }
static void lengths(nvb_arena *a, void *arg) {
  static const struct {
    N (*link)(N);
    int n, steps;
  } chains[] = { { map_link, 8000, 340 }, { softmax_link, 400, 160 }, { new_link, 2000, 60 } };
  N x = X(512, 256);
  for (int i = 0; i < chains[*(int *)arg].n; i++) x = chains[*(int *)arg].link(x);
  out(x);
  nvg_graph *g = graph_of(a);
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  ck_assert_int_le(p->nstep, chains[*(int *)arg].steps);
  ck_assert_msg(p->work < WORK * g->n, "%lld for %d values", (long long)p->work, g->n);
}
START_TEST(work_is_in_proportion) { in_program(lengths, &_i, NULL); }
END_TEST

/* Values that have an operand in common fill kernel after kernel: twice as many are twice the work. */
static void crowds(nvb_arena *a, void *arg) {
  int64_t *work = arg;
  N x = X(1000);
  for (int64_t i = 1; i <= work[1]; i++) out(ng(roll(x, i, 0)));
  nvf_plan *p = nvf_fuse(a, graph_of(a), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  ck_assert_int_le(p->nstep, work[1] / 40);
  work[0] = p->work;
}
START_TEST(crowds_are_linear) {
  int64_t half[2] = { 0, 400 }, all[2] = { 0, 800 };
  in_program(crowds, half, "400 rolls of one array");
  in_program(crowds, all, "800 rolls of one array");
  ck_assert_msg(all[0] < 2.5 * (double)half[0], "%lld for 400, %lld for 800", (long long)half[0], (long long)all[0]);
}
END_TEST

/* Nearest centres, and how many points each has: the distances are the work, and both units are to share them. */
static void nearest(nvb_arena *a, void *arg) {
  (void)arg;
  nvb_caps two = *nvb_caps_find("cpu16");
  two.cores = 2;
  two.width = 8;
  N d = sub(reshape(X(10000, 8), 10000, 1, 8), reshape(X(16, 8), 1, 16, 8));
  N best = red(NVG_OP_ARGMIN, sum(mul(d, d), 2, 0), 1, 1);
  out(best);
  out(sum(where(eq(best, leaf_of(NVM_I64, SHAPE(1, 16))), w(1), w(0)), 0, 0));
  nvf_plan *p = nvf_fuse(a, graph_of(a), &two, &(nvf_options){ .fuse = 1 });
  int longest = 0;
  for (int s = 1; s < p->nstep; s++) longest = p->step[s].flops > p->step[longest].flops ? s : longest;
  ck_assert_int_ge(p->step[longest].blocks, two.cores);
}
START_TEST(units_share_what_is_long) { in_program(nearest, NULL, NULL); }
END_TEST

/* The kernel of a softmax is refused: its hero is cut, and the rest goes on together. Refused to the end: node by
   node. */
static void veto(nvb_arena *a, void *arg) {
  (void)arg;
  softmax();
  nvg_graph *g = graph_of(a);
  const nvb_caps *caps = nvb_caps_find("cpu16");
  nvf_veto v[NVF_VETOES] = { { 0, "it spills" }, { 0, "it spills again" }, { 0, "it spills for ever" } };
  int steps[NVF_VETOES + 1];
  for (int n = 0; n <= NVF_VETOES; n++) {
    nvf_plan *p = nvf_fuse(a, g, caps, &(nvf_options){ .fuse = 1, .nveto = n, .veto = v });
    nvb_text text = { .arena = a };
    nvf_plan_explain(&text, p);
    nvf_plan_check(a, p);
    steps[n] = p->nstep;
    if (n == 1) ck_assert_msg(strstr(nvb_text_get(&text), "refused: it spills") != NULL, "%s", nvb_text_get(&text));
  }
  int apart = nvf_fuse(a, g, caps, &(nvf_options){ .fuse = 0 })->nstep;
  ck_assert_int_eq(steps[0], 1);
  ck_assert_int_eq(steps[1], 2);
  ck_assert_int_le(steps[1], steps[2]);
  ck_assert_int_lt(steps[2], apart);
  ck_assert_int_eq(steps[NVF_VETOES], apart);
}
START_TEST(vetoes_cut) { in_program(veto, NULL, NULL); }
END_TEST

SUITE("large", EACH(plans_of_large_graphs, cases), LOOP(work_is_in_proportion, 3), crowds_are_linear,
      units_share_what_is_long, vetoes_cut)
