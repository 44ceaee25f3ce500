/* Schedules for a GPU: the bits of a value-by-value evaluation whatever the places are, hints that keep their promise,
   and the places that the rules are there for. */
#include "codegen/cuda/cuda.h"
#include "fusion/planner.h"
#include "hints.h"

static const int64_t *dims(const int64_t *d) { return d; }
#define DIMS(...) dims((int64_t[]){ __VA_ARGS__ })

/* ---- programs over sizes */
static int softmax_of(maker *m, int x, int axis) {
  int e = m_1(m, "exp", m_2(m, "subtract", x, m_red(m, "maximum", x, axis, 1)));
  return m_2(m, "divide", e, m_red(m, "add", e, axis, 1));
}
static void rows(maker *m, const int64_t *n) { m_out(m, softmax_of(m, m_leaf(m, NVM_F32, 2, n, NULL), 1)); }
static void columns(maker *m, const int64_t *n) { m_out(m, softmax_of(m, m_leaf(m, NVM_F32, 2, n, NULL), 0)); }
static void two_rows(maker *m, const int64_t *n) { /* both have to be kept */
  int y = m_leaf(m, NVM_F32, 2, n, NULL), g = m_leaf(m, NVM_F32, 2, n, NULL);
  m_out(m, m_2(m, "multiply", y, m_2(m, "subtract", g, m_red(m, "add", m_2(m, "multiply", g, y), 1, 1))));
}
static void wide_rows(maker *m, const int64_t *n) { m_out(m, softmax_of(m, m_leaf(m, NVM_F64, 2, n, NULL), 1)); }
static void gathered_rows(maker *m, const int64_t *n) { /* an index out of range has to be an error */
  int in[] = { m_leaf(m, NVM_F32, 1, DIMS(60000), NULL), m_leaf(m, NVM_I64, 2, n, NULL) };
  nvg_val gather = { .kind = NVG_VGATHER, .dtype = NVM_F32, .name = "take" };
  m_out(m, softmax_of(m, m_add(m, gather, 2, n, 2, in, 2, DIMS(0, 0)), 1));
}
static void expensive_rows(maker *m, const int64_t *n) { /* few items a thread */
  m_out(m, softmax_of(m, m_1(m, "tanh", m_1(m, "tanh", m_leaf(m, NVM_F32, 2, n, NULL))), 1));
}
static void wide_total(maker *m, const int64_t *n) { m_out(m, m_red(m, "add", m_leaf(m, NVM_F64, 2, n, NULL), 0, 2)); }
static void column_sums(maker *m, const int64_t *n) { m_out(m, m_red(m, "add", m_leaf(m, NVM_F32, 2, n, NULL), 0, 1)); }
static void row_sums(maker *m, const int64_t *n) { m_out(m, m_red(m, "add", m_leaf(m, NVM_F32, 2, n, NULL), 1, 1)); }
static void wide_row_sums(maker *m, const int64_t *n) {
  m_out(m, m_red(m, "add", m_leaf(m, NVM_F64, 2, n, NULL), 1, 1));
}
static void dear_row_sums(maker *m, const int64_t *n) {
  m_out(m, m_red(m, "add", m_1(m, "tanh", m_leaf(m, NVM_F32, 2, n, NULL)), 1, 1));
}
static void sums(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 2, n, NULL);
  m_out(m, m_red(m, "add", x, 0, 1));
  m_out(m, m_red(m, "add", x, 1, 1));
  m_out(m, m_red(m, "maximum", x, 0, 2));
}
static void wide_sums(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F64, 2, n, NULL);
  m_out(m, m_2(m, "add", m_2(m, "multiply", x, x), x));
}
static void expensive(maker *m, const int64_t *n) {
  int x[3];
  for (int i = 0; i < 3; i++) x[i] = m_1(m, "tanh", m_leaf(m, NVM_F32, 2, n, NULL));
  m_out(m, m_2(m, "add", m_2(m, "add", x[0], x[1]), x[2]));
}
static void outer(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 2, DIMS(n[0], 1), NULL), y = m_leaf(m, NVM_F32, 2, DIMS(1, n[1]), NULL);
  m_out(m, m_2(m, "multiply", y, x));
}
static void transposed(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 2, n, NULL), y = m_leaf(m, NVM_F32, 2, DIMS(n[1], n[0]), NULL);
  int t = m_view(m, NVG_VPERMUTE, x, 2, DIMS(n[1], n[0]), 2, DIMS(1, 0));
  m_out(m, m_2(m, "add", t, y));
}
static void permuted(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F64, 3, DIMS(n[0], 3, n[1]), NULL);
  m_out(m, m_1(m, "negative", m_view(m, NVG_VPERMUTE, x, 3, DIMS(n[1], 3, n[0]), 3, DIMS(2, 1, 0))));
}
static void permuted_pairs(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_C64, 2, n, NULL);
  m_out(m, m_view(m, NVG_VPERMUTE, x, 2, DIMS(n[1], n[0]), 2, DIMS(1, 0)));
}
static void scans(maker *m, const int64_t *n) { m_out(m, m_scan(m, m_1(m, "abs", m_leaf(m, NVM_F32, 2, n, NULL)), 1)); }
static void scanned_columns(maker *m, const int64_t *n) { m_out(m, m_scan(m, m_leaf(m, NVM_F32, 2, n, NULL), 0)); }
static void two_scans(maker *m, const int64_t *n) { /* the one that waits for a reduction is met first */
  int x = m_leaf(m, NVM_F32, 2, n, NULL), w = m_leaf(m, NVM_F32, 2, DIMS(n[0], 7), NULL);
  m_out(m, m_scan_of(m, "add", m_2(m, "multiply", x, m_red(m, "maximum", w, 1, 1)), 1));
  m_out(m, m_scan_of(m, "prod", x, 1));
}
static void biased(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 2, n, NULL), b = m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL),
      w = m_leaf(m, NVM_F32, 0, NULL, NULL);
  m->leaf.at[2].weak_const = 1 + NVG_FLOAT; /* a launch argument, not memory */
  m_out(m, m_2(m, "multiply", m_1(m, "exp", m_2(m, "add", x, b)), w));
}
static void centred(maker *m, const int64_t *n) { /* what every block along the rows computes again */
  int x = m_leaf(m, NVM_F32, 2, n, NULL);
  int d = m_2(m, "subtract", x, m_2(m, "divide", m_red(m, "add", x, 0, 1), m_const(m, (float)n[0])));
  m_out(m, m_2(m, "divide", d, m_red(m, "maximum", d, 0, 2)));
}
static int transformed(maker *m, int x, nvg_dft kind, const int64_t *n) {
  nvg_val t = { .kind = NVG_VROUTINE, .op = NVG_OP_DFT, .dtype = NVM_C64, .name = "dft" };
  return m_add(m, t, 2, n, 1, &x, 2, DIMS(kind, n[1]));
}
static void spectra(maker *m, const int64_t *n) {
  m_out(m, transformed(m, m_leaf(m, NVM_C64, 2, n, NULL), NVG_DFT_FORWARD, n));
}
static void filtered(maker *m, const int64_t *n) {
  int x = transformed(m, m_leaf(m, NVM_C64, 2, n, NULL), NVG_DFT_FORWARD, n);
  m_out(m, transformed(m, x, NVG_DFT_INVERSE, n));
}
static void shifted(maker *m, const int64_t *n) {
  int x = m_leaf(m, NVM_F32, 2, n, NULL), sum = -1;
  for (int i = 0; i < 5; i++) {
    int s = m_view(m, NVG_VSLICE, x, 2, DIMS(n[0], n[1] - 4), 4, DIMS(0, 1, i, 1));
    sum = sum < 0 ? s : m_2(m, "add", sum, s);
  }
  m_out(m, sum);
}

static void joined(maker *m, const int64_t *n) { /* three functions of one array, side by side, and something else */
  int x = m_leaf(m, NVM_F32, 2, n, NULL), e = m_1(m, "tanh", x), y[3] = { m_1(m, "exp", e), m_1(m, "negative", e), e };
  nvg_val c = { .kind = NVG_VCONCAT, .dtype = NVM_F32, .name = "concat" };
  m_out(m, m_add(m, c, 2, DIMS(n[0], 3 * n[1]), 3, y, 1, DIMS(1)));
  m_out(m, m_1(m, "exp2", x));
}

static const struct {
  const char *name;
  void (*make)(maker *, const int64_t *);
} programs[] = {
  { "rows", rows },
  { "columns", columns },
  { "two rows", two_rows },
  { "sums", sums },
  { "transposed", transposed },
  { "permuted", permuted },
  { "permuted pairs", permuted_pairs },
  { "scans", scans },
  { "two scans", two_scans },
  { "scanned columns", scanned_columns },
  { "expensive rows", expensive_rows },
  { "wide rows", wide_rows },
  { "biased", biased },
  { "centred", centred },
  { "shifted", shifted },
  { "wide sums", wide_sums },
  { "joined", joined },
};
static const int64_t sizes[][2] = { { 3, 7 },    { 100, 20 }, { 33, 128 },  { 17, 130 },  { 9, 1001 },  { 5, 1024 },
                                    { 130, 68 }, { 64, 64 },  { 3, 4096 },  { 2, 9000 },  { 1, 33000 }, { 2100, 36 },
                                    { 1030, 5 }, { 70, 516 }, { 1, 19500 }, { 1, 150000 } };
enum { PROGRAMS = sizeof programs / sizeof *programs, SIZES = sizeof sizes / sizeof *sizes };

typedef struct trial { int program; const int64_t *size; int aligned; } trial;
static void try_one(nvb_arena *a, void *arg) {
  static const char *const machines[] = { "h200", "a100" };
  static const int told[][3] = { { 1, 8, 0 }, { 3, 1, 1000 }, { 16, 2, 5 } };
  const trial *t = arg;
  maker m = { .a = a };
  programs[t->program].make(&m, t->size);
  for (int i = 0; i < m.leaf.n; i++) m.leaf.at[i].align16 = t->aligned;
  nvg_graph *g = m_graph(&m);
  char **data = random_leaves(&m, g, 5);
  value *want = evaluate(&m, g, data);
  for (int i = 0; i < 3; i++) { /* two machines, and a GPU of two SMs: its blocks are never few */
    const nvb_caps *known = nvb_caps_find(machines[i % 2]);
    if (!known) continue;
    nvb_caps caps = *known;
    caps.cores = i == 2 ? 2 : caps.cores;
    nvf_plan *p = nvf_fuse(a, g, &caps, &(nvf_options){ .fuse = 1 });
    nvf_plan_check(a, p);
    hold_hints(a, p);
    char **out = run_plan(&m, p, data);
    for (int o = 0; o < g->nout; o++)
      ck_assert_msg(differ(g, o, want, out[o]) == 0, "%s of %d x %d: output %d differs in %d elements",
                    programs[t->program].name, (int)t->size[0], (int)t->size[1], o, (int)differ(g, o, want, out[o]));
    nvf_knobs k = { 0 };
    nvf_knob_set(&k, NVF_KWARPS, told[i][0]);
    nvf_knob_set(&k, NVF_KITEMS, told[i][1]);
    nvf_knob_set(&k, NVF_KPREFETCH, told[i][2]);
    const nvf_plan *q = told_plan(p, &k);
    nvf_plan_check(a, q);
    hold_hints(a, q);
    for (int j = 0; j < p->nstep + q->nstep; j++) { /* they can be spelled */
      const nvf_step *step = j < p->nstep ? &p->step[j] : &q->step[j - p->nstep];
      nvc_cuda_kernel spelled;
      nvc_cuda_emit(a, &spelled, step->k, step->s, &(nvc_cuda_target){ .arch = caps.cluster > 1 ? 90 : 80 });
    }
    out = run_plan(&m, q, data);
    for (int o = 0; o < g->nout; o++)
      ck_assert_msg(differ(g, o, want, out[o]) == 0, "%s of %d x %d with %d warps, %d items: output %d differs",
                    programs[t->program].name, (int)t->size[0], (int)t->size[1], told[i][0], told[i][1], o);
  }
}

START_TEST(same_bits_in_any_place) {
  for (int i = _i % ONE_IN; i < SIZES; i += ONE_IN) {
    nvb_arena *a = nvb_arena_new();
    trial t = { _i, sizes[i], i % 3 != 1 };
    int rc = nvb_protect(a, try_one, &t);
    ck_assert_msg(rc == NVM_OK, "%s of %d x %d: %s", programs[_i].name, (int)sizes[i][0], (int)sizes[i][1],
                  nvb_message());
    nvb_arena_free(a);
  }
}
END_TEST

/* ---- places: the layout of the first load (or statement) of a kernel */
typedef struct place { void (*make)(maker *, const int64_t *); int64_t size[2]; int aligned; const char *layout;
  int vec;
} place;
static const place places[] = {
  { rows, { 32768, 1000 }, 1, "i: w4; j: i8 l32 i4", 4 }, /* several rows a block, each in the registers of a warp */
  { rows, { 32768, 1001 }, 1, "i: w4; j: i8 i4 l32", 0 }, /* unaligned: the same reduction order, other digits */
  { rows, { 32768, 1000 }, 0, "i: w4; j: i8 l32 i4", 0 }, /* the output is aligned */
  { rows, { 16384, 8192 }, 1, "j: w8 i8 l32 i4", 4 },     /* one row a block */
  { rows, { 13421, 5000 }, 1, "j: w5 i8 l32 i4", 4 },     /* eighths of a power of two */
  { rows, { 1342, 50000 }, 1, "j: c7 w7 i8 l32 i4", 4 },  /* one row a cluster */
  { rows, { 335, 200000 }, 1, "j: c16 w13 i8 l32 i4", 4 },
  { rows, { 223, 300000 }, 1, "j: I4 c16 w7 I2 i4 l32 i4", 4 },      /* in iterations */
  { gathered_rows, { 1342, 50000 }, 1, "j: c8 w7 i8 w2 l32 i2", 0 }, /* nobody leaves where a check fails */
  { wide_rows, { 8192, 8192 }, 1, "j: c2 w4 i8 w2 l32 i2", 2 },
  { wide_rows, { 1342, 50000 }, 1, "j: c8 w7 i8 w2 l32 i2", 2 },
  { wide_rows, { 335, 200000 }, 1, "j: I2 c16 w7 I2 i4 w2 l32 i2", 2 },
  { rows, { 2 << 20, 33 }, 1, "i: i2 w4 l4; j: i5 l8", 0 },
  { rows, { 65536, 20 }, 1, "i: i4 w4 l4; j: l8 i4", 4 }, /* several rows a warp */
  { rows, { 1 << 20, 3 }, 1, "i: i4 w4 l32; j: i4", 0 },  /* rows of a thread */
  { row_sums, { 1342, 50000 }, 1, "j: I8 w8 i8 l32 i4", 4 },
  { wide_row_sums, { 1342, 50000 }, 1, "j: I8 w8 i8 w2 l32 i2", 2 },
  { wide_row_sums, { 13421, 5000 }, 1, "j: w5 i8 w2 l32 i2", 2 }, /* no second round of a few warps */
  { columns, { 16384, 1024 }, 1, NULL, 0 },
  { transposed, { 4096, 4096 }, 1, "i: l16@1 i4; j: i4 w8@1 l2@16", 4 },
  { biased, { 4096, 4096 }, 1, "i: i2; j: w4 l32 i4", 4 }, /* two vectors of an operand in flight */
  { wide_sums, { 4096, 4096 }, 1, "i: i2 w4 l32 i2", 2 },  /* 16 bytes of f64 are two elements */
  { wide_sums, { 64, 64 }, 1, "i: w8 l32", 0 },            /* few elements: each has a thread */
  { biased, { 64, 64 }, 1, "j: w2 l32", 0 },
  { expensive, { 4096, 4096 }, 1, "i: i2 w4 l32 i4", 4 },
  { outer, { 4096, 4096 }, 1, "i: i4", 4 },   /* it stores, next to alone */
  { wide_total, { 1, 3300000 }, 1, NULL, 0 }, /* 806 partial sums for the next kernel */
  { column_sums, { 48, 20000 }, 1, NULL, 0 }, /* no piece is less than all rows */
  /* transforms: no thread has more than the points of the largest radix, and all of them have some */
  { spectra, { 4096, 256 }, 1, "i: w4 l2; j_0: i16; j_1: l16", 1 },
  { filtered, { 4096, 512 }, 1, "i: w4 l2; j_0: i16; j_1: l16 i2", 2 },
  { filtered, { 4096, 105 }, 1, "i: w4 l4; j_0: i7; j_1: i3 l5", 1 },
  { filtered, { 4096, 1000 }, 1, "i: l3; j_0: i10; j_1: w10; j_2: l10", 1 },
  { filtered, { 4096, 1536 }, 1, "i: w2; j_0: i8; j_1: i3 w2 l4; j_2: l8", 1 },
  { filtered, { 4096, 2048 }, 1, "j_0: i16; j_1: w4 l2; j_2: l16", 1 },
  { filtered, { 4096, 8192 }, 1, "j_0: i16; j_1: i2 w8 l2; j_2: l16", 1 },
  { filtered, { 3, 2048 }, 1, "j_0: i16; j_1: w4 l2; j_2: l16", 1 },
  { spectra, { 2, 64 }, 1, "i: l2; j_0: i8; j_1: l8", 1 },
};

static void place_one(nvb_arena *a, void *arg) {
  const place *q = arg;
  maker m = { .a = a };
  q->make(&m, q->size);
  for (int i = 0; i < m.leaf.n; i++) m.leaf.at[i].align16 = q->aligned;
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  const nvf_step *s = &p->step[0];
  const nvf_typed *t = nvf_kernel_check(a, s->k, s->s);
  for (int i = 1; i < p->nstep; i++) nvf_kernel_check(a, p->step[i].k, p->step[i].s);
  hold_hints(a, p);
  for (int i = 0; i < s->k->part[0].body.n && q->layout; i++) {
    const nvf_stmt *st = s->k->part[0].body.s[i];
    const nvf_bind *b = st->op == NVF_LOAD ? &s->bind[st->buf] : NULL;
    if (!b || p->buf[b->buf].kind != NVF_BLEAF || p->buf[b->buf].id) continue;
    nvb_text text = { .arena = a };
    nvf_layout_print(&text, s->k, t->stmt[st->id]);
    ck_assert_str_eq(nvb_text_get(&text), q->layout);
    ck_assert_int_eq(hint_of(s, st->id, NVF_HINT_VEC), q->vec);
    return;
  }
  ck_assert_ptr_null(q->layout);
}

START_TEST(places_follow_the_rules) { in_arena(place_one, &places[_i], NULL); }
END_TEST

/* ---- hints of the first load, which is a kernel's first statement */
typedef struct hinted { void (*make)(maker *, const int64_t *); int64_t size[2];
  int min_blocks, prefetch, stream, bulk;
} hinted;
static const hinted hints[] = {
  { rows, { 13421, 5000 }, 0, 264, 0, 0 },
  { rows, { 335, 200000 }, 0, 8, 0, 0 }, /* large ones not so far ahead */
  { rows, { 32768, 1000 }, 0, 264, 0, 0 },
  { rows, { 2 << 20, 33 }, 0, 0, 0, 0 },
  { wide_rows, { 13421, 5000 }, 3, 132, 0, 0 },
  { wide_rows, { 1342, 50000 }, 2, 16, 0, 0 },
  { row_sums, { 1342, 50000 }, 5, 0, 0, 0 },
  { row_sums, { 335, 200000 }, 0, 0, 0, 0 }, /* a few would wait */
  { wide_row_sums, { 13421, 5000 }, 4, 0, 0, 0 },
  { wide_row_sums, { 1342, 50000 }, 2, 0, 0, 0 },
  { dear_row_sums, { 1342, 50000 }, 0, 0, 0, 0 },
  { column_sums, { 65536, 4096 }, 0, 0, 1, 0 },
  { column_sums, { 4096, 512 }, 0, 0, 0, 0 }, /* the cache may have it again */
  { filtered, { 65536, 64 }, 0, 0, 0, 0 },
  { filtered, { 65536, 256 }, 7, 264, 0, 0 },
  { filtered, { 8192, 1024 }, 4, 264, 0, 0 },
  { filtered, { 8192, 2048 }, 7, 264, 0, 0 },
  { filtered, { 8192, 4096 }, 3, 264, 0, 1 },
  { spectra, { 8192, 4096 }, 3, 0, 0, 0 }, /* its loads do not wait for a second transform */
  { filtered, { 8192, 5120 }, 3, 264, 0, 1 },
  { filtered, { 4096, 8192 }, 2, 132, 0, 1 },
  { filtered, { 2048, 16384 }, 1, 0, 0, 0 },
  { spectra, { 2048, 16384 }, 1, 132, 0, 0 },
};

static void hint_one(nvb_arena *a, void *arg) {
  const hinted *q = arg;
  maker m = { .a = a };
  q->make(&m, q->size);
  m.leaf.at[0].align16 = 1;
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  const nvf_step *s = &p->step[0];
  ck_assert_int_eq(s->k->part[0].body.s[0]->op, NVF_LOAD);
  ck_assert_int_eq(hint_of(s, 0, NVF_HINT_MIN_BLOCKS), q->min_blocks);
  ck_assert_int_eq(hint_of(s, 0, NVF_HINT_PREFETCH), q->prefetch);
  ck_assert_int_eq(hint_of(s, 0, NVF_HINT_STREAM), q->stream);
  ck_assert_int_eq(hint_of(s, 0, NVF_HINT_BULK), q->bulk);
}

START_TEST(hints_follow_the_rules) { in_arena(hint_one, &hints[_i], NULL); }
END_TEST

/* ---- what is joined of functions of one array is stored by each of them, which reads it once */
static void join_one(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  int n[NVF_NOPS] = { 0 };
  joined(&m, arg);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  const nvf_block *b = &p->step[0].k->part[0].body;
  ck_assert_int_eq(p->nstep, 1);
  for (int i = 0; i < b->n; i++) n[b->s[i]->op]++;
  ck_assert_int_eq(n[NVF_LOAD], 1);
  ck_assert_int_eq(n[NVF_MAP], 4);
  ck_assert_int_eq(n[NVF_STORE], 4);
  ck_assert_int_eq(p->step[0].bytes_written, 4 * 4 * 4096 * 4096);
}
START_TEST(joined_values_are_computed_once) { in_arena(join_one, DIMS(4096, 4096), NULL); }
END_TEST

/* ---- what a launch cannot take is cut, with the reason */
static void many_numbers(maker *m) {
  int x = m_leaf(m, NVM_F32, 1, DIMS(3000), NULL);
  for (int i = 0; i < 700; i++) x = m_2(m, i % 2 ? "add" : "multiply", x, m_const(m, 1 + (float)i / 4096));
  m_out(m, x);
}
static void shares(maker *m) { /* of a running sum in the whole of a long line */
  int x = m_1(m, "abs", m_leaf(m, NVM_F32, 1, DIMS(40000), NULL));
  m_out(m, m_scan(m, x, 0));
  m_out(m, m_red(m, "add", x, 0, 1));
}

static void cut_one(nvb_arena *a, void *arg) {
  static void (*const make[])(maker *) = { many_numbers, shares };
  maker m = { .a = a };
  make[*(int *)arg](&m);
  nvg_graph *g = m_graph(&m);
  char **data = random_leaves(&m, g, 3);
  value *want = evaluate(&m, g, data);
  nvf_plan *p = nvf_fuse(a, g, nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  nvf_plan_check(a, p);
  ck_assert_int_ge(p->nstep + p->step[0].k->npart, 3);
  for (int i = 0; i < p->nstep; i++)
    ck_assert_int_le(p->step[i].k->nparam, 512 - 2); /* 4 KB, and the two that an emitter adds */
  char **out = run_plan(&m, p, data);
  for (int o = 0; o < g->nout; o++) ck_assert_int_eq(differ(g, o, want, out[o]), 0);
}

/* Numbers that are given with each call are arguments of a GPU's launch and no buffers: 100 go in. */
static void given_numbers(nvb_arena *a, void *arg) {
  (void)arg;
  maker m = { .a = a };
  int x = m_leaf(&m, NVM_F32, 1, (int64_t[]){ 5000 }, NULL);
  for (int i = 1; i <= 100; i++) {
    int w = m_leaf(&m, NVM_F32, 0, NULL, NULL);
    m.leaf.at[i].weak_const = 1 + NVG_FLOAT;
    x = m_2(&m, i % 2 ? "add" : "multiply", x, w);
  }
  m_out(&m, x);
  nvf_plan *p = nvf_fuse(a, m_graph(&m), nvb_caps_find("h200"), &(nvf_options){ .fuse = 1 });
  nvf_plan_check(a, p);
  ck_assert_int_eq(p->nstep, 1);
  int many[3] = { 0 };
  for (int i = 0; i < p->step[0].k->nparam; i++) many[p->step[0].k->param[i].kind]++;
  ck_assert(many[NVF_SCALAR] == 100 && many[NVF_BUFFER] == 2);
}
START_TEST(given_numbers_are_no_buffers) { in_arena(given_numbers, NULL, NULL); }
END_TEST

/* Tiles of attention fit on chip, so that heads may be longer where there is more of it. */
START_TEST(heads_of_attention_fit) {
  static const struct {
    const char *device;
    int64_t head;
  } most[] = { { "h200", 256 }, { "b200", 256 }, { "a100", 192 }, { "rtx4090", 128 }, { "rtx5090", 128 } };
  for (size_t i = 0; i < sizeof most / sizeof *most; i++)
    ck_assert_int_eq(nvf_attention_head(nvb_caps_find(most[i].device), 256), most[i].head);
}
END_TEST

START_TEST(what_no_launch_takes_is_cut) { in_arena(cut_one, &_i, NULL); }
END_TEST

SUITE("gpu", EACH(same_bits_in_any_place, programs), EACH(places_follow_the_rules, places),
      EACH(hints_follow_the_rules, hints), joined_values_are_computed_once, LOOP(what_no_launch_takes_is_cut, 2),
      given_numbers_are_no_buffers, heads_of_attention_fit)
