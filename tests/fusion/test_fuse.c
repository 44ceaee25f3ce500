/* Plans of small graphs: fused, and one kernel a value, against an evaluator that knows no plan, bit for bit. */
#include "fusion/planner.h"
#include "oracle.h"

typedef void (*builder_fn)(maker *m);

static const int64_t *dims(const int64_t *d) { return d; }
#define DIMS(...) dims((int64_t[]){ __VA_ARGS__ })

static int row_keep(maker *m, const char *op, int x, int axis) { return m_red(m, op, x, axis, 1); }

static void chain(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(37, 53), NULL), y = m_leaf(m, NVM_F32, 2, DIMS(37, 53), NULL);
  int z = m_leaf(m, NVM_F32, 2, DIMS(37, 53), NULL);
  m_out(m, m_2(m, "add", m_2(m, "multiply", x, y), m_2(m, "subtract", m_const(m, 2.5f), z)));
}
static void broadcast(maker *m) {
  int x = m_leaf(m, NVM_F32, 3, DIMS(5, 7, 33), NULL), y = m_leaf(m, NVM_F32, 1, DIMS(33), NULL);
  int z = m_leaf(m, NVM_F32, 3, DIMS(5, 1, 1), NULL);
  m_out(m, m_2(m, "add", m_2(m, "multiply", x, y), z));
}
static void transposed(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(45, 45), NULL);
  int t = m_view(m, NVG_VPERMUTE, x, 2, DIMS(45, 45), 2, DIMS(1, 0));
  m_out(m, m_2(m, "add", x, t));
}
static void softmax(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(19, 1037), NULL);
  int e = m_1(m, "exp", m_2(m, "subtract", x, row_keep(m, "maximum", x, 1)));
  m_out(m, m_2(m, "divide", e, row_keep(m, "add", e, 1)));
}
static void short_rows(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(1901, 3), NULL);
  int e = m_1(m, "exp", m_2(m, "subtract", x, row_keep(m, "maximum", x, 1)));
  m_out(m, m_2(m, "divide", e, row_keep(m, "add", e, 1)));
  m_out(m, row_keep(m, "add", x, 1));
}
static void columns(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(301, 77), NULL);
  m_out(m, row_keep(m, "add", x, 0));
  m_out(m, row_keep(m, "maximum", x, 0));
}
static void long_columns(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(3001, 70), NULL);
  int d = m_2(m, "subtract", x, m_2(m, "divide", m_red(m, "add", x, 0, 1), m_const(m, 3001)));
  m_out(m, m_2(m, "divide", d, m_red(m, "maximum", d, 0, 1)));
}
static void full_sum(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(517, 402), NULL);
  m_out(m, m_red(m, "add", x, 0, 2));
  m_out(m, m_red(m, "maximum", m_1(m, "exp", x), 0, 2));
}
static void scaled_by_sum(maker *m) {
  int x = m_leaf(m, NVM_F32, 1, DIMS(200000), NULL);
  m_out(m, m_2(m, "divide", x, m_red(m, "add", x, 0, 1)));
}
static void batch_norm(maker *m) {
  int x = m_leaf(m, NVM_F32, 4, DIMS(6, 5, 7, 9), NULL);
  int s = m_red(m, "add", m_red(m, "add", x, 2, 2), 0, 1);
  m_out(m, m_2(m, "subtract", x, m_2(m, "divide", s, m_const(m, 378))));
}
static void mixed(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(611, 412), NULL);
  m_out(m, m_red(m, "add", x, 0, 1));
  m_out(m, m_red(m, "add", x, 1, 1));
  m_out(m, m_red(m, "maximum", x, 0, 2));
}
static void stencil(maker *m) {
  int x = m_leaf(m, NVM_F32, 1, DIMS(5000), NULL), sum = -1;
  for (int i = 0; i < 3; i++) {
    int s = m_view(m, NVG_VSLICE, x, 1, DIMS(4998), 2, DIMS(i, 1));
    sum = sum < 0 ? s : m_2(m, "add", sum, s);
  }
  m_out(m, sum);
}
static void padded(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(33, 47), NULL);
  int in[2] = { x, m_const(m, 0) };
  int q = m_add(m, (nvg_val){ .kind = NVG_VPAD, .dtype = NVM_F32, .name = "pad" }, 2, DIMS(35, 49), 2, in, 2,
                DIMS(1, 1)),
      sum = -1;
  for (int i = 0; i < 4; i++) {
    int s = m_view(m, NVG_VSLICE, q, 2, DIMS(33, 47), 4, DIMS(i < 2 ? 2 * i : 1, 1, i < 2 ? 1 : 2 * (i - 2), 1));
    sum = sum < 0 ? s : m_2(m, "add", sum, s);
  }
  m_out(m, m_2(m, "subtract", sum, m_2(m, "multiply", m_const(m, 4), x)));
}
static void rolled(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(33, 47), NULL);
  int r = m_view(m, NVG_VROLL, x, 2, DIMS(33, 47), 2, DIMS(0, 1)),
      c = m_view(m, NVG_VROLL, x, 2, DIMS(33, 47), 2, DIMS(1, 46));
  m_out(m, m_2(m, "add", r, m_2(m, "add", c, x)));
}
static void joined(maker *m) {
  int a = m_leaf(m, NVM_F32, 1, DIMS(300), NULL), b = m_leaf(m, NVM_F32, 1, DIMS(157), NULL);
  int in[2] = { m_1(m, "exp", a), m_1(m, "abs", b) };
  m_out(m, m_add(m, (nvg_val){ .kind = NVG_VCONCAT, .dtype = NVM_F32, .name = "concat" }, 1, DIMS(457), 2, in, 1,
                 DIMS(0)));
}
static void interleaved(maker *m) {
  int a = m_leaf(m, NVM_F32, 1, DIMS(300), NULL), b = m_leaf(m, NVM_F32, 1, DIMS(300), NULL), in[2] = { a, b };
  int c =
      m_add(m, (nvg_val){ .kind = NVG_VCONCAT, .dtype = NVM_F32, .name = "concat" }, 1, DIMS(600), 2, in, 1, DIMS(0));
  int r = m_view(m, NVG_VPERMUTE, m_reshape(m, c, 2, DIMS(2, 300)), 2, DIMS(300, 2), 2, DIMS(1, 0));
  m_out(m, m_1(m, "exp", m_reshape(m, r, 1, DIMS(600))));
}
static void upsampled(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(17, 31), NULL);
  int y = m_expand(m, m_reshape(m, x, 4, DIMS(17, 1, 31, 1)), 4, DIMS(17, 2, 31, 2));
  m_out(m, m_1(m, "negative", m_reshape(m, y, 2, DIMS(34, 62))));
}
static void flipped(maker *m) {
  int x = m_leaf(m, NVM_F32, 1, DIMS(777), NULL);
  m_out(m, m_2(m, "add", x, m_view(m, NVG_VSLICE, x, 1, DIMS(777), 2, DIMS(776, -1))));
}
static void scalars(maker *m) {
  int x = m_leaf(m, NVM_F32, 0, NULL, NULL), y = m_leaf(m, NVM_F32, 0, NULL, NULL);
  m_out(m, m_1(m, "exp", m_2(m, "add", x, y)));
  m_out(m, m_const(m, 3));
}
static void empty(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(0, 5), NULL);
  m_out(m, m_red(m, "add", m_1(m, "exp", x), 0, 1));
  m_out(m, m_1(m, "exp", x));
}
static void complex_product(maker *m) {
  int x = m_leaf(m, NVM_C64, 2, DIMS(13, 57), NULL), y = m_leaf(m, NVM_C64, 1, DIMS(57), NULL);
  nvg_fragset *f = nvg_fragset_new(m->a);
  nvm_dtype t[4] = { NVM_F32, NVM_F32, NVM_F32, NVM_F32 };
  nvg_fragset_parse(f, "frag product<T: real>(a: T, b: T, c: T, d: T) -> (T, T) { return a*c - b*d, a*d + b*c }",
                    "test");
  int in[2] = { x, m_expand(m, y, 2, DIMS(13, 57)) };
  m_out(m,
        m_add(m,
              (nvg_val){
                  .kind = NVG_VMAP, .dtype = NVM_C64, .frag = nvg_fragset_find(f, "product", t, 4), .name = "product" },
              2, DIMS(13, 57), 2, in, 0, NULL));
}
static void gathered(maker *m) {
  int x = m_leaf(m, NVM_F32, 1, DIMS(7), NULL), i = m_leaf(m, NVM_I64, 1, DIMS(513), NULL), in[2] = { x, i };
  nvg_val gather = { .kind = NVG_VGATHER, .dtype = NVM_F32, .name = "take" };
  int g = m_add(m, gather, 1, DIMS(513), 2, in, 2, DIMS(0, 0));
  m_out(m, m_1(m, "exp", g));
}
static void strided(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(40, 50), DIMS(1, 40)), y = m_leaf(m, NVM_F32, 2, DIMS(40, 50), DIMS(-50, 1));
  int z = m_leaf(m, NVM_F32, 2, DIMS(40, 50), DIMS(0, 2));
  m_out(m, m_2(m, "add", x, m_2(m, "multiply", y, z)));
}
static void copies(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(40, 50), NULL), t = m_view(m, NVG_VPERMUTE, x, 2, DIMS(50, 40), 2, DIMS(1, 0));
  m_out(m, x);
  m_out(m, t);
  m_out(m, t);
}
static void outer_softmax(maker *m) {
  int s[2];
  for (int i = 0; i < 2; i++) {
    int x = m_leaf(m, NVM_F32, 1, DIMS(321), NULL),
        e = m_1(m, "exp", m_2(m, "subtract", x, m_red(m, "maximum", x, 0, 1)));
    s[i] = m_2(m, "divide", e, m_red(m, "add", e, 0, 1));
  }
  m_out(m, m_2(m, "multiply", m_reshape(m, s[0], 2, DIMS(321, 1)), s[1]));
}
static void scanned_rows(maker *m) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(37, 2500), NULL);
  m_out(m, m_1(m, "exp", m_2(m, "multiply", m_scan(m, m_1(m, "abs", x), 1), m_const(m, -0.01f))));
}
static void scanned_columns(maker *m) { m_out(m, m_scan(m, m_leaf(m, NVM_F32, 2, DIMS(1100, 70), NULL), 0)); }
static void scanned_both_ways(maker *m) {
  m_out(m, m_scan(m, m_scan(m, m_leaf(m, NVM_F32, 2, DIMS(33, 1030), NULL), 1), 0));
}
static void scanned_line(maker *m) {
  int s = m_scan(m, m_leaf(m, NVM_F32, 1, DIMS(3001), NULL), 0);
  m_out(m, m_2(m, "subtract", s, m_view(m, NVG_VSLICE, s, 1, DIMS(3001), 2, DIMS(3000, -1))));
}
static void gain(maker *m) { /* of a pixel, for its three channels */
  int x = m_leaf(m, NVM_F32, 2, DIMS(9000, 3), NULL), l = m_leaf(m, NVM_F32, 1, DIMS(9000), NULL);
  m_out(m, m_2(m, "multiply", x, m_reshape(m, m_1(m, "exp", l), 2, DIMS(9000, 1))));
}
static int step_of_bodies(maker *m, int x) { /* 60 places in 3 dimensions, weights by their distances */
  int d = m_2(m, "subtract", m_reshape(m, x, 3, DIMS(1, 60, 3)), m_reshape(m, x, 3, DIMS(60, 1, 3)));
  int w = m_1(m, "exp", m_1(m, "negative", row_keep(m, "add", m_2(m, "multiply", d, d), 2)));
  int f = m_reshape(m, row_keep(m, "add", m_2(m, "multiply", d, w), 1), 2, DIMS(60, 3));
  return m_2(m, "add", x, f);
}
static void bodies(maker *m) {
  m_out(m, step_of_bodies(m, step_of_bodies(m, m_leaf(m, NVM_F32, 2, DIMS(60, 3), NULL))));
}
/* Sums and scans of one table, together more of them than a set of 64 holds. */
static void folds(maker *m, int sums, int scans) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(3, 40), NULL), row = row_keep(m, "add", x, 1), all = x;
  for (int i = 1; i < sums; i++)
    row = m_2(m, "add", row, row_keep(m, "add", m_2(m, "multiply", x, m_const(m, 1 + (float)i)), 1));
  for (int i = 0; i < scans; i++)
    all = m_2(m, "add", all, m_scan(m, m_2(m, "multiply", x, m_const(m, 2 + (float)i)), 1));
  m_out(m, row);
  m_out(m, all);
}
static void many_sums(maker *m) { folds(m, 70, 9); }
static void many_scans(maker *m) { folds(m, 55, 14); }

static const struct {
  const char *name;
  builder_fn make;
  int kernels;
} cases[] = {
  { "chain", chain, 1 },
  { "broadcast", broadcast, 1 },
  { "transposed", transposed, 1 },
  { "softmax", softmax, 1 },
  { "short rows", short_rows, 1 },
  { "columns", columns, 1 },
  { "long columns", long_columns, 9 },
  { "full sum", full_sum, 2 },
  { "scaled by sum", scaled_by_sum, 2 },
  { "batch norm", batch_norm, 1 },
  { "mixed", mixed, 2 },
  { "stencil", stencil, 1 },
  { "padded", padded, 1 },
  { "rolled", rolled, 1 },
  { "joined", joined, 1 },
  { "interleaved", interleaved, 1 },
  { "upsampled", upsampled, 1 },
  { "flipped", flipped, 1 },
  { "scalars", scalars, 1 },
  { "empty", empty, 1 },
  { "complex", complex_product, 1 },
  { "gathered", gathered, 1 },
  { "strided", strided, 1 },
  { "copies", copies, 1 },
  { "outer of softmaxes", outer_softmax, 2 },
  { "scanned rows", scanned_rows, 1 },
  { "scanned columns", scanned_columns, 1 },
  { "scanned both ways", scanned_both_ways, 2 },
  { "scanned line", scanned_line, 2 },
  { "gain", gain, 1 },
  { "bodies", bodies, 9 },
  { "many sums", many_sums, 99 },
  { "many scans", many_scans, 99 },
};

static void run_case(nvb_arena *a, void *arg) {
  int i = *(int *)arg, verbose = getenv("VERBOSE") != NULL;
  static const char *const machines[] = { "cpu16", "h200" };
  for (int machine = 0; machine < 2; machine++)
    for (int fuse = 1; fuse >= 0; fuse--) {
      maker m = { .a = a };
      cases[i].make(&m);
      nvg_graph *g = m_graph(&m);
      char **data = random_leaves(&m, g, 7);
      value *want = evaluate(&m, g, data);
      nvf_plan *p = nvf_fuse(a, g, nvb_caps_find(machines[machine]), &(nvf_options){ .fuse = fuse });
      nvb_text t = { .arena = a };
      if (verbose)
        nvf_plan_print(&t, p), nvf_plan_explain(&t, p),
            printf("---- %s, fuse %d\n%s", cases[i].name, fuse, nvb_text_get(&t));
      nvf_plan_check(a, p);
      char **out = run_plan(&m, p, data);
      for (int o = 0; o < g->nout; o++)
        ck_assert_msg(differ(g, o, want, out[o]) == 0, "%s, fuse %d: output %d differs in %d elements", cases[i].name,
                      fuse, o, (int)differ(g, o, want, out[o]));
      ck_assert_msg(!fuse || p->nstep <= cases[i].kernels, "%s: %d kernels", cases[i].name, p->nstep);
    }
}

START_TEST(same_bits) { in_arena(run_case, &_i, cases[_i].name); }
END_TEST

/* An output takes a donated leaf's memory where nothing of it is read elsewhere or later. */
static nvf_plan *donated(maker *m, void (*make)(maker *), int aligned) {
  make(m);
  for (int i = 0; i < m->leaf.n; i++) m->leaf.at[i].donated = 1, m->leaf.at[i].align16 = aligned;
  return nvf_fuse(m->a, m_graph(m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
}
static const nvf_buf *output(const nvf_plan *p, int o) {
  for (int i = 0; i < p->nbuf; i++)
    if (p->buf[i].kind == NVF_BOUT && p->buf[i].id == o) return &p->buf[i];
  return NULL;
}
static void donations(nvb_arena *a, void *arg) {
  (void)arg;
  struct {
    builder_fn make;
    int takes;
  } c[] = { { chain, 1 },  { transposed, 0 }, { softmax, 1 },       { stencil, 0 },
            { rolled, 0 }, { columns, 0 },    { scaled_by_sum, 1 }, { flipped, 0 } };
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    maker m = { .a = a };
    nvf_plan *p = donated(&m, c[i].make, 1);
    ck_assert_msg((output(p, 0)->donor >= 0) == c[i].takes, "case %d: donor %d", (int)i, output(p, 0)->donor);
    for (int s = 0; s < p->nstep && c[i].takes; s++) /* what overlaps is not called unique */
      for (int j = 0; j < p->step[s].k->nparam; j++) {
        const nvf_param *q = &p->step[s].k->param[j];
        const nvf_buf *b = q->kind == NVF_BUFFER ? &p->buf[p->step[s].bind[j].buf] : NULL;
        ck_assert(!b || b->kind != NVF_BOUT || !q->unique || p->nstep > 1);
      }
    ck_assert_int_lt(output(donated(&(maker){ .a = a }, c[i].make, 0), 0)->donor, 0); /* stores may be wide */
  }
}
START_TEST(donated_memory) { in_arena(donations, NULL, NULL); }
END_TEST

/* What a schedule is told changes no bit, and is what the kernel does where there is something to tell. */
static void told(nvb_arena *a, void *arg) {
  static const int32_t block[] = { 1, 16, 48, 512, 65536 };
  maker m = { .a = a };
  (*(const builder_fn *)arg)(&m);
  nvg_graph *g = m_graph(&m);
  char **data = random_leaves(&m, g, 5);
  const nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  char **want = run_plan(&m, p, data);
  for (int i = 0; i < 5; i++) {
    nvf_knobs k = { 0 };
    nvf_knob_set(&k, NVF_KBLOCK, block[i]);
    nvf_knob_set(&k, NVF_KCHUNKS, i + 1);
    nvf_knob_set(&k, NVF_KSTREAM, i & 1);
    nvf_plan q = *told_plan(p, &k);
    for (int j = 0; j < p->nstep; j++) {
      ck_assert_int_le((q.step[j].blocks + q.step[j].grain - 1) / q.step[j].grain, i + 1);
      ck_assert_str_eq(q.step[j].hero, p->step[j].hero);
      ck_assert_str_eq(q.step[j].what, p->step[j].what);
      ck_assert_int_eq(q.step[j].bytes_read, p->step[j].bytes_read);
    }
    nvf_plan_check(a, &q);
    char **got = run_plan(&m, &q, data);
    for (int o = 0; o < g->nout; o++)
      ck_assert(!memcmp(got[o], want[o], (size_t)(g->v[g->out[o]].size * nvg_size(g->v[g->out[o]].dtype))));
    nvb_text t = { .arena = a };
    nvf_knobs_print(&t, &k);
    nvf_knobs back;
    ck_assert(nvf_knobs_read(&back, nvb_text_get(&t)) && !memcmp(&back, &k, sizeof k));
  }
}
START_TEST(told_schedules) { in_arena(told, &cases[_i].make, cases[_i].name); }
END_TEST
START_TEST(knobs_as_text) {
  nvf_knobs k;
  ck_assert(nvf_knobs_read(&k, "") && !k.set);
  ck_assert(nvf_knobs_read(&k, "block=64 warps=8") && k.value[NVF_KWARPS] == 8 &&
            k.set == (1u << NVF_KBLOCK | 1u << NVF_KWARPS));
  static const char *const bad[] = { "block",           "block=",          "block=x",           "block=-1", "blocks=3",
                                     "block=1 block=2", "block=1,warps=2", "block=99999999999", "=3" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ck_assert(!nvf_knobs_read(&k, bad[i]));
}
END_TEST

/* An index out of range is found, and only where it is used. */
static void out_of_range(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  gathered(&m);
  nvg_graph *g = m_graph(&m);
  char **data = random_leaves(&m, g, 3);
  ((int64_t *)data[1])[100] = *(int64_t *)arg;
  run_plan(&m, nvf_fuse(a, g, nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 }), data);
}
START_TEST(indices_are_checked) {
  int64_t index[] = { 6, 7, -1 };
  for (int i = 0; i < 3; i++) {
    nvb_arena *a = nvb_arena_new();
    ck_assert_int_eq(nvb_protect(a, out_of_range, &index[i]), i ? NVM_ERR_INDEX : NVM_OK);
    nvb_arena_free(a);
  }
}
END_TEST

/* What explain prints names the steps, the bytes and every edge that was not fused. */
/* Each temporary lies at the lowest place that those before it leave free while it is alive. */
static int disturbs(const nvf_buf *o, const nvf_buf *b, int64_t at) {
  return o->kind == NVF_BTEMP && o->last >= b->first && b->last >= o->first &&
         at < o->offset + (o->bytes + 63) / 64 * 64 && o->offset < at + b->bytes;
}
static void placed(nvb_arena *a, void *arg) {
  (void)arg;
  nvf_buf buf[120];
  for (int round = 0; round < 200; round++) {
    nvf_plan p = { .arena = a, .nbuf = 1 + round % 120, .buf = buf };
    int64_t end = 0;
    for (int i = 0; i < p.nbuf; i++) {
      int first = i / 3 + rand() % 5, kind = rand() % 4 ? NVF_BTEMP : NVF_BLEAF;
      buf[i] = (nvf_buf){ .kind = kind, .bytes = rand() % 500, .first = first, .last = first + rand() % 9 };
    }
    nvf_place_temporaries(&p);
    for (int i = 0; i < p.nbuf; i++) {
      int64_t at = 0;
      for (int j = 0; j < i; j++)
        if (disturbs(&buf[j], &buf[i], at)) at = buf[j].offset + (buf[j].bytes + 63) / 64 * 64, j = -1;
      if (buf[i].kind != NVF_BTEMP) continue;
      ck_assert_int_eq(buf[i].offset, at);
      end = at + (buf[i].bytes + 63) / 64 * 64 > end ? at + (buf[i].bytes + 63) / 64 * 64 : end;
    }
    ck_assert_int_eq(p.temp_bytes, end);
  }
}
START_TEST(temporaries_lie_low) { in_arena(placed, NULL, NULL); }
END_TEST

static void explained(nvb_arena *a, void *arg) {
  (void)arg;
  maker m = { .a = a };
  scaled_by_sum(&m);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  nvb_text t = { .arena = a };
  nvf_plan_explain(&t, p);
  ck_assert_ptr_nonnull(strstr(nvb_text_get(&t), "2 kernels, 2.4 MB moved"));
  ck_assert_ptr_nonnull(strstr(nvb_text_get(&t), "not fused: 1 and 2: together "));
  nvf_veto v = { 0, "spills" };
  nvf_plan *q = nvf_fuse(a, m_graph(&m), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1, .nveto = 1, .veto = &v });
  ck_assert_int_ge(q->nstep, 2);
  nvf_plan_check(a, q);
}
/* What is longer than a tile may be still has a kernel: sums are cut, scans are walked. */
static void long_lines(nvb_arena *a, void *arg) {
  static const int64_t lengths[] = { 1 << 25, (1 << 25) + 1, (int64_t)1 << 28, ((int64_t)1 << 28) + 1,
                                     (int64_t)1 << 33 };
  (void)arg;
  for (int i = 0; i < 5; i++) {
    maker m = { .a = a };
    int x = m_leaf(&m, NVM_F32, 1, &lengths[i], (int64_t[1]){ 0 });
    m_out(&m, m_scan(&m, x, 0));
    m_out(&m, m_red(&m, "maximum", m_1(&m, "exp", x), 0, 1));
    for (int fuse = 0; fuse < 2; fuse++)
      for (int gpu = 0; gpu < 2; gpu++)
        nvf_plan_check(a,
                       nvf_fuse(a, m_graph(&m), nvb_caps_find(gpu ? "h200" : "cpu16"), &(nvf_options){ .fuse = fuse }));
  }
}
START_TEST(long_lines_have_kernels) { in_arena(long_lines, NULL, NULL); }
END_TEST
/* The mean of a large array, and what the elements beside it are: a little more, or much. */
static int steps_with_mean(nvb_arena *a, const nvb_caps *caps, int powers) {
  maker m = { .a = a };
  int x = m_leaf(&m, NVM_F32, 1, DIMS(2000000), NULL), y = m_2(&m, "subtract", x, m_red(&m, "add", x, 0, 1));
  for (int i = 0; i < powers; i++) y = m_2(&m, "pow", y, x);
  m_out(&m, y);
  return nvf_fuse(a, m_graph(&m), caps, &(nvf_options){ .fuse = 1 })->nstep;
}
/* One thread: much work beside a sum along the same axis would keep its accumulators in memory. */
static void sums_in_memory(nvb_arena *a, void *arg) {
  nvb_caps one = *nvb_caps_find("cpu16");
  (void)arg;
  one.cores = 1, one.width = 8;
  one.rate /= 16, one.l2_bandwidth /= 16, one.bandwidth = one.core_bandwidth;
  ck_assert_int_eq(steps_with_mean(a, &one, 0), 1);
  ck_assert_int_eq(steps_with_mean(a, &one, 2), 2);
}
START_TEST(sums_stay_in_registers) { in_arena(sums_in_memory, NULL, NULL); }
END_TEST
/* One thread: what has no axis of the lanes in it goes element by element, which one kernel of one block would do to
   all weights. What differs by pixel alone is computed once for all its channels. */
static void lanes_count(nvb_arena *a, void *arg) {
  nvb_caps one = *nvb_caps_find("cpu16");
  maker m = { .a = a }, g = { .a = a };
  (void)arg;
  one.cores = 1;
  one.rate /= 16, one.l2_bandwidth /= 16, one.bandwidth = one.core_bandwidth;
  bodies(&m);
  ck_assert_int_gt(nvf_fuse(a, m_graph(&m), &one, &(nvf_options){ .fuse = 1 })->nstep, 1);
  gain(&g);
  nvf_plan *p = nvf_fuse(a, m_graph(&g), nvb_caps_find("cpu16"), &(nvf_options){ .fuse = 1 });
  ck_assert_int_eq(p->nstep, 1);
  ck_assert_int_eq(p->step[0].blocks, (9000 + 4095) / 4096);
}
START_TEST(lanes_have_a_price) { in_arena(lanes_count, NULL, NULL); }
END_TEST
/* Which axis of rows of numbers that are reduced by columns has the lanes, where vectors have 8: of few columns the
   rows, if there are many. In partials what is read by column stays in the cache from one column to the next, and the
   lanes of a chunk's order do not have accumulators in all chunks at once. */
static void columns_have_lanes(nvb_arena *a, void *arg) {
  static const struct sums {
    int64_t rows, columns;
    int kernels;
    const char *layout;
  } sums[] = {
    { 30000, 3, 1, "j: I64 I8 i16 l8" }, { 20000, 6, 1, "j: I64 I8 i16 l8" }, { 1000000, 4, 2, "k: I32 I8 i16 l8" },
    { 400000, 8, 2, "j: l8" },           { 400000, 10, 2, "j: i2 l8" },       { 100, 3, 1, "i: l8" },
  };
  nvb_caps narrow = *nvb_caps_find("cpu16");
  (void)arg;
  narrow.width = 8, narrow.cores = 1;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    maker m = { .a = a };
    int x = m_leaf(&m, NVM_F32, 2, (int64_t[]){ sums[i].rows, sums[i].columns }, NULL);
    m_out(&m, m_red(&m, "add", m_1(&m, "exp", x), 0, 1));
    nvf_plan *p = nvf_fuse(a, m_graph(&m), &narrow, &(nvf_options){ .fuse = 1 });
    nvb_text t = { .arena = a };
    for (int s = 0; s < p->nstep; s++) nvf_schedule_print(&t, p->step[s].k, p->step[s].s, "cpu");
    ck_assert_int_eq(p->nstep, sums[i].kernels);
    ck_assert_msg(strstr(nvb_text_get(&t), sums[i].layout) != NULL, "%s\n%s", sums[i].layout, nvb_text_get(&t));
  }
}
START_TEST(few_columns_leave_the_lanes_to_rows) { in_arena(columns_have_lanes, NULL, NULL); }
END_TEST
/* Lanes of elementwise kernels where vectors have 8: two vectors where operations wait for each other, four for
   conditions. */
static void work_has_several_vectors(nvb_arena *a, void *arg) {
  static const struct maps {
    const char *op;
    nvm_dtype type;
    const char *layout;
  } maps[] = {
    { "exp", NVM_F32, "i: I512 l8" },       { "tanh", NVM_F32, "i: I256 l16" },    { "tanh", NVM_F64, "i: I512 l8" },
    { "isfinite", NVM_F32, "i: I128 l32" }, { "isfinite", NVM_F64, "i: I512 l8" },
  };
  nvb_caps narrow = *nvb_caps_find("cpu16");
  (void)arg;
  narrow.width = 8;
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
    maker m = { .a = a };
    m_out(&m, m_1(&m, maps[i].op, m_leaf(&m, maps[i].type, 1, (int64_t[]){ 100000 }, NULL)));
    nvf_plan *p = nvf_fuse(a, m_graph(&m), &narrow, &(nvf_options){ .fuse = 1 });
    nvb_text t = { .arena = a };
    nvf_schedule_print(&t, p->step[0].k, p->step[0].s, "cpu");
    ck_assert_msg(strstr(nvb_text_get(&t), maps[i].layout) != NULL, "%s\n%s", maps[i].layout, nvb_text_get(&t));
  }
}
START_TEST(vectors_at_once) { in_arena(work_has_several_vectors, NULL, NULL); }
END_TEST
START_TEST(plans_explain_themselves) { in_arena(explained, NULL, NULL); }
END_TEST

SUITE("fuse", EACH(same_bits, cases), EACH(told_schedules, cases), knobs_as_text, donated_memory, indices_are_checked,
      long_lines_have_kernels, lanes_have_a_price, few_columns_leave_the_lanes_to_rows, vectors_at_once,
      sums_stay_in_registers, temporaries_lie_low, plans_explain_themselves)
