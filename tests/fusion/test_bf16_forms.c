/* Products of float32 as products of bfloat16 terms: the bound that numerics.md says, for any layout of the operands
   and any place; infinities, NaN, the greatest numbers and the smallest; what is shared, and which plan is taken. */
#include "oracle.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static const struct {
  nvm_precision p;
  int n;
  double adds;
} ways[] = { { NVM_PRECISION_BF16X3, 3, 0x1p-15 }, { NVM_PRECISION_BF16X9, 6, 0x1p-24 } };

static int f32(maker *m, int64_t p, int64_t q) { return m_leaf(m, NVM_F32, 2, DIMS(p, q), NULL); }

/* ---- programs over m, n, k */
static void plain(maker *m, const int64_t *n) { m_out(m, m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]))); }
static void left_turned(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_turn(m, f32(m, n[2], n[0])), f32(m, n[2], n[1])));
}
static void both_turned(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_turn(m, f32(m, n[2], n[0])), m_turn(m, f32(m, n[1], n[2]))));
}
static void strided(maker *m, const int64_t *n) { /* every other column, rows from the last to the first */
  int x = m_leaf(m, NVM_F32, 2, DIMS(n[0], n[2]), DIMS(-2 * n[2] - 3, 2));
  m_out(m, m_product(m, x, m_leaf(m, NVM_F32, 2, DIMS(n[2], n[1]), DIMS(1, n[2] + 1))));
}
static void batched(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL),
                     m_turn(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[1], n[2]), NULL))));
}
static void spread_weights(maker *m, const int64_t *n) { /* one matrix for all batches */
  int w = m_expand(m, f32(m, n[2], n[1]), 3, DIMS(3, n[2], n[1]));
  m_out(m, m_product(m, m_leaf(m, NVM_F32, 3, DIMS(3, n[0], n[2]), NULL), w));
}
static void of_rows(maker *m, const int64_t *n) { /* (b, s, k) as rows of one matrix */
  int x = m_reshape(m, m_leaf(m, NVM_F32, 3, DIMS(2, n[0], n[2]), NULL), 2, DIMS(2 * n[0], n[2]));
  m_out(m, m_product(m, x, f32(m, n[2], n[1])));
}
static void of_heads(maker *m, const int64_t *n) { /* two dimensions that are summed over */
  int x = m_reshape(m, m_leaf(m, NVM_F32, 3, DIMS(n[0], n[2], 2), NULL), 2, DIMS(n[0], 2 * n[2]));
  m_out(m, m_product(m, x, m_reshape(m, m_leaf(m, NVM_F32, 3, DIMS(n[2], 2, n[1]), NULL), 2, DIMS(2 * n[2], n[1]))));
}
static void of_a_map(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_1(m, "exp2", m_1(m, "tanh", f32(m, n[0], n[2]))), f32(m, n[2], n[1])));
}
static void with_itself(maker *m, const int64_t *n) {
  int x = f32(m, n[0], n[2]);
  m_out(m, m_product(m, x, m_turn(m, x)));
}
static void three(maker *m, const int64_t *n) { /* of one matrix */
  int x = f32(m, n[0], n[2]);
  for (int i = 0; i < 3; i++) m_out(m, m_product(m, x, f32(m, n[2], n[1])));
}
static void of_one_number(maker *m, const int64_t *n) {
  nvg_val c = { .kind = NVG_VCONST, .dtype = NVM_F32, .name = "const" };
  int x = m_add(m, c, 0, NULL, 0, NULL, 1, DIMS((int64_t)nvg_float_bits(NVM_F32, 0.3)));
  m_out(m, m_product(m, m_expand(m, x, 2, DIMS(n[0], n[2])), f32(m, n[2], n[1])));
}

static const struct program {
  const char *name;
  void (*make)(maker *, const int64_t *);
} programs[] = {
  { "plain", plain },
  { "left turned", left_turned },
  { "both turned", both_turned },
  { "strided", strided },
  { "batched", batched },
  { "spread weights", spread_weights },
  { "of rows", of_rows },
  { "of heads", of_heads },
  { "of a map", of_a_map },
  { "with itself", with_itself },
  { "three", three },
  { "of one number", of_one_number },
};
static const int64_t sizes[][3] = { { 2, 2, 2 }, { 5, 33, 7 }, { 64, 64, 64 }, { 17, 20, 130 }, { 40, 72, 200 } };
enum { PROGRAMS = sizeof programs / sizeof *programs, SIZES = sizeof sizes / sizeof *sizes };

/* The graph with all its GEMMs of this precision, and with all of them split. */
static nvg_graph *with_precision(maker *m, nvm_precision p) {
  nvg_graph *g = m_graph(m);
  for (int i = 0; i < g->n; i++)
    if (g->v[i].kind == NVG_VCALL) g->v[i].attr = nvb_dup(m->a, DIMS(NVM_F32, p), 2 * sizeof(int64_t));
  return g;
}
static nvg_graph *in_pieces(nvb_arena *a, const nvg_graph *g) {
  uint8_t *which = nvb_get(a, (size_t)g->n + 1);
  for (int i = 0; i < g->n; i++) which[i] = nvg_bf16_terms(g, &g->v[i]) > 0;
  nvg_graph *q = nvg_split_bf16(a, g, which);
  nvg_graph_check(a, q);
  return q;
}

/* Floats of all 24 bits, over some powers of two. */
static void fill(const nvg_graph *g, char *const *data) {
  for (int i = 0; i < g->nleaf; i++) {
    const nvg_leaf *l = &g->leaf[i];
    int64_t n = 1, c[NVM_MAX_RANK];
    for (int d = 0; d < l->rank; d++) n *= l->shape[d];
    for (int64_t j = 0; j < n; j++) {
      int64_t at = 0;
      float x = ldexpf((float)(rand() % (1 << 24) - (1 << 23)), rand() % 12 - 30);
      unravel(j, l->rank, l->shape, c);
      for (int d = 0; d < l->rank; d++) at += c[d] * l->stride[d];
      memcpy(data[i] + at * 4, &x, 4);
    }
  }
}

/* What an element of a product is, and the sum of its absolute terms, of the operands as an evaluation has them. */
static double exactly(const nvg_graph *g, const nvg_val *v, const value *val, int64_t i, double *size) {
  int64_t m = v->shape[v->rank - 2], n = v->shape[v->rank - 1], k = g->v[v->in[0]].shape[v->rank - 1];
  double sum = *size = 0;
  for (int64_t j = 0; j < k; j++) {
    double t = product_at(&val[v->in[0]], 0, NVM_F32, (i / n) * k + j) *
               product_at(&val[v->in[1]], 0, NVM_F32, (i / (m * n) * k + j) * n + i % n);
    sum += t, *size += fabs(t);
  }
  return sum;
}

typedef struct trial { const struct program *p; const int64_t *size; int way; } trial;
static void try_one(nvb_arena *a, void *arg) {
  static const char *const machines[] = { "h200", "a100", "cpu16" };
  const trial *t = arg;
  maker m = { .a = a };
  srand(11);
  t->p->make(&m, t->size);
  const nvg_graph *g = with_precision(&m, ways[t->way].p), *q = in_pieces(a, g);
  char **data = random_leaves(&m, g, 5);
  fill(g, data);
  value *val = evaluate(&m, g, data);
  for (int i = 0; i < 6; i++) {
    nvf_plan *p = nvf_fuse(a, q, nvb_caps_find(machines[i % 3]), &(nvf_options){ .fuse = i < 3 });
    nvf_plan_check(a, p);
    char **out = run_plan(&m, p, data);
    for (int o = 0; o < g->nout; o++) {
      const nvg_val *v = &g->v[g->out[o]];
      double terms = ways[t->way].n * (double)g->v[v->in[0]].shape[v->rank - 1], size;
      for (int64_t j = 0; j < v->size; j++) {
        double off = fabs((double)((float *)out[o])[j] - exactly(g, v, val, j, &size));
        ck_assert_msg(off <= (ways[t->way].adds + (terms + 1) * 0x1p-24) * size,
                      "%s of %d x %d x %d in %d pieces on %s: element %d is %g of %g off", t->p->name, (int)t->size[0],
                      (int)t->size[1], (int)t->size[2], ways[t->way].n, machines[i % 3], (int)j, off, size);
      }
    }
  }
}

START_TEST(as_exact_as_is_said) {
  for (int i = _i % ONE_IN; i < 2 * SIZES; i += ONE_IN)
    in_arena(try_one, &(trial){ &programs[_i], sizes[i / 2], i % 2 }, programs[_i].name);
}
END_TEST

/* ---- what follows: of small whole numbers, which one term holds, the bits of the graph as it is */
static int biased(maker *m, const int64_t *n) {
  return m_2(m, "add", m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1])), m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL));
}
static void gelu(maker *m, const int64_t *n) { m_out(m, m_1(m, "gelu_tanh", biased(m, n))); }
static void residual(maker *m, const int64_t *n) {
  m_out(m, m_2(m, "add", m_1(m, "relu", biased(m, n)), f32(m, n[0], n[1])));
}
static void of_rows_and_columns(maker *m, const int64_t *n) {
  int d = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]));
  m_out(m, m_red(m, "maximum", d, 1, 1));
  m_out(m, m_red(m, "add", d, 0, 1));
}
static void gated(maker *m, const int64_t *n) {
  int x = f32(m, n[0], n[2]), d = m_product(m, x, f32(m, n[2], n[1]));
  m_out(m, m_2(m, "multiply", m_1(m, "tanh", d), m_product(m, x, f32(m, n[2], n[1]))));
}
static void chain(maker *m, const int64_t *n) {
  m_out(m, m_product(m, m_1(m, "relu", biased(m, n)), f32(m, n[1], n[0])));
}
static const struct program followed[] = { { "gelu", gelu },
                                           { "residual", residual },
                                           { "gated", gated },
                                           { "of rows and columns", of_rows_and_columns },
                                           { "chain", chain } };

static void follow_one(nvb_arena *a, void *arg) {
  static const char *const machines[] = { "h200", "a100", "cpu16" };
  const trial *t = arg;
  maker m = { .a = a };
  t->p->make(&m, t->size);
  const nvg_graph *g = with_precision(&m, ways[t->way].p), *q = in_pieces(a, g);
  char **data = random_leaves(&m, g, 5);
  for (int i = 0; i < g->nleaf; i++) {
    int64_t n = g->leaf[i].shape[0] * (g->leaf[i].rank > 1 ? g->leaf[i].shape[1] : 1);
    for (int64_t j = 0; j < n; j++) ((float *)data[i])[j] = (float)(rand() % 9 - 4);
  }
  value *want = evaluate(&m, g, data);
  for (int i = 0; i < 3; i++) {
    nvf_plan *p = nvf_fuse(a, q, nvb_caps_find(machines[i]), &(nvf_options){ .fuse = 1 });
    nvf_plan_check(a, p);
    char **out = run_plan(&m, p, data);
    for (int o = 0; o < g->nout; o++)
      ck_assert_msg(!differ(g, o, want, out[o]), "%s on %s: output %d", t->p->name, machines[i], o);
  }
}
START_TEST(followed_by_anything) {
  for (int i = _i % ONE_IN; i < 2 * SIZES; i += ONE_IN)
    in_arena(follow_one, &(trial){ &followed[_i], sizes[i / 2], i % 2 }, followed[_i].name);
}
END_TEST

/* ---- special values: each times each, and 0 times 0 beside it */
static const float special[] = { 0,
                                 -0.0f,
                                 1,
                                 -1.5f,
                                 INFINITY,
                                 -INFINITY,
                                 NAN,
                                 0x1.fffffep127f,
                                 -0x1.fffffep127f,
                                 0x1.fep127f,
                                 0x1.ff01p127f,
                                 0x1.018p100f,
                                 -0x1.ff8p60f,
                                 0x1.234566p40f,
                                 0x1.8181p-3f,
                                 0x1p-126f,
                                 0x1.fffffcp-127f,
                                 0x1p-133f,
                                 -0x1p-134f,
                                 0x1.8p-134f,
                                 0x1p-149f,
                                 -0x1p-149f,
                                 0x1.3579bep-112f };
enum { SPECIALS = sizeof special / sizeof *special };

static void hold_pair(float x, float y, float got, double adds) {
  double xy = (double)x * (double)y, size = fabs(xy);
  if (isnan(xy)) ck_assert_msg(isnan(got), "%a * %a is %a", (double)x, (double)y, (double)got);
  else if (isinf(x) || isinf(y) || (size >= 0x1p128 && size < 0x1p135))
    ck_assert_msg((double)got == (xy < 0 ? -INFINITY : INFINITY), "%a * %a is %a", (double)x, (double)y, (double)got);
  else if (size >= 0x1p135) /* it may be NaN */
    ck_assert_msg(!isfinite(got), "%a * %a is %a", (double)x, (double)y, (double)got);
  else { /* an operand is off by 2^-134 at least, sums of terms are rounded, and what is below 2^-126 has fewer bits */
    double tiny = 0x1.01p-134 * ((fabs((double)x) < 0x1p-110 ? fabs((double)y) : 0) +
                                 (fabs((double)y) < 0x1p-110 ? fabs((double)x) : 0));
    double off = fabs((double)got - xy), most = (adds + 0x1p-22) * size + tiny + 0x1p-147;
    ck_assert_msg(off <= most, "%a * %a is %a: %a off, at most %a", (double)x, (double)y, (double)got, off, most);
  }
}

static void try_specials(nvb_arena *a, void *arg) {
  static const char *const machines[] = { "h200", "cpu16" };
  int way = *(int *)arg;
  maker m = { .a = a };
  int left = f32(&m, SPECIALS, 2);
  m_out(&m, m_product(&m, left, f32(&m, 2, SPECIALS)));
  const nvg_graph *g = with_precision(&m, ways[way].p), *q = in_pieces(a, g);
  char **data = random_leaves(&m, g, 5);
  float *x = (float *)data[0], *y = (float *)data[1];
  for (int i = 0; i < SPECIALS; i++) x[2 * i] = y[i] = special[i], x[2 * i + 1] = y[SPECIALS + i] = 0;
  for (int i = 0; i < 2; i++) {
    char **out = run_plan(&m, nvf_fuse(a, q, nvb_caps_find(machines[i]), &(nvf_options){ .fuse = 1 }), data);
    for (int j = 0; j < SPECIALS * SPECIALS; j++)
      hold_pair(special[j / SPECIALS], special[j % SPECIALS], ((float *)out[0])[j], ways[way].adds);
  }
}
START_TEST(special_values) { in_arena(try_specials, &_i, NULL); }
END_TEST

/* ---- plans */
static int maps(const nvg_graph *g) {
  int n = 0;
  for (int i = 0; i < g->n; i++) n += g->v[i].kind == NVG_VMAP;
  return n;
}

static void try_shared(nvb_arena *a, void *arg) {
  maker m = { .a = a };
  three(&m, DIMS(64, 64, 64));
  /* three terms of each of four matrices, in two orders: of x once */
  ck_assert_int_eq(maps(in_pieces(a, with_precision(&m, NVM_PRECISION_BF16X3))), 12);
  m = (maker){ .a = a };
  with_itself(&m, DIMS(64, 64, 64));
  ck_assert_int_eq(maps(in_pieces(a, with_precision(&m, NVM_PRECISION_BF16X9))), 4);
  ck_assert_ptr_null(arg);
}
START_TEST(what_is_multiplied_twice_is_taken_apart_once) { in_arena(try_shared, NULL, NULL); }
END_TEST

/* terms: some product is of them. Kernels by hand: one for each operand (small ones share a launch), one for the
   product with all that follows it. */
static void small_and_large(maker *m, const int64_t *n) {
  plain(m, n);
  plain(m, DIMS(40, 40, 40));
}
static void with_tail(maker *m, const int64_t *n) {
  int p = m_product(m, f32(m, n[0], n[2]), f32(m, n[2], n[1]));
  m_out(m, m_1(m, "gelu_tanh", m_2(m, "add", p, m_leaf(m, NVM_F32, 1, DIMS(n[1]), NULL))));
}
static const struct taken {
  const char *device;
  void (*make)(maker *, const int64_t *);
  int64_t size[3];
  nvm_precision p;
  int pieces, kernels;
  const char *says;
} taken[] = {
  { "h200", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 1, 3, "1 of 1 are, " },
  { "h200", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X9, 1, 3, "1 of 1 are, " },
  { "h200", plain, { 4096, 4096, 4096 }, NVM_PRECISION_TF32, 0, 1, NULL },
  { "h200", plain, { 64, 64, 64 }, NVM_PRECISION_BF16X3, 0, 1, "0 of 1 are, " },
  { "a100", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X9, 1, 3, "1 of 1 are, " },
  { "b200", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 1, 3, "1 of 1 are, " },
  { "rtx4090", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 0, 1, "take longer here" },
  { "cpu16", plain, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 0, 1, "take longer here" },
  { "h200", small_and_large, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X9, 1, 4, "1 of 2 are, " },
  { "h200", three, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 1, 7, "3 of 3 are, " },
  { "h200", with_tail, { 4096, 4096, 4096 }, NVM_PRECISION_BF16X3, 1, 3, "1 of 1 are, " },
  { "h200", spread_weights, { 2048, 4096, 4096 }, NVM_PRECISION_BF16X3, 1, 3, "1 of 1 are, " },
};

static void take_one(nvb_arena *a, void *arg) {
  const struct taken *t = arg;
  maker m = { .a = a };
  nvb_text text = { .arena = a };
  t->make(&m, t->size);
  for (int i = 0; i < m.leaf.n; i++) m.leaf.at[i].align16 = 1;
  int cublaslt = NVF_CAN_GEMM | NVF_CAN_F16 | NVF_CAN_TF32 | NVF_CAN_BIAS | NVF_CAN_GELU, pieces;
  for (int capabilities = 0; capabilities < 2; capabilities++) { /* with the library, and without */
    nvf_plan *p = nvf_fuse(a, with_precision(&m, t->p), nvb_caps_find(t->device),
                           &(nvf_options){ .fuse = 1, .capabilities = capabilities ? cublaslt : 0 });
    nvf_plan_check(a, p);
    nvf_plan_explain(&text, p);
    for (int i = pieces = 0; i < p->nstep; i++) pieces |= p->step[i].gemm && p->step[i].gemm->operands == NVM_BF16;
    ck_assert_msg(pieces == t->pieces && p->nstep <= t->kernels,
                  "%s: products of pieces: %d and not %d, %d kernels\n%s", t->device, pieces, t->pieces, p->nstep,
                  nvb_text_get(&text));
    ck_assert_msg(t->says ? p->bf16_note && strstr(p->bf16_note, t->says) : !p->bf16_note, "%s", nvb_text_get(&text));
  }
}
/* The other way than what is cheaper, for who has measured it. */
static void ask_for_one(nvb_arena *a, void *arg) {
  static const struct {
    const char *device;
    int64_t n;
    nvf_bf16_split reading;
    int pieces;
    const char *says;
  } each[] = { { "h200", 64, NVF_BF16_ALWAYS, 1, "1 of 1 are, " },
               { "h200", 64, NVF_BF16_NEVER, 0, "0 of 1 are, " },
               { "h200", 4096, NVF_BF16_NEVER, 0, "0 of 1 are, " },
               { "h200", 4096, NVF_BF16_ALWAYS, 1, "1 of 1 are, " },
               { "rtx4090", 4096, NVF_BF16_ALWAYS, 0, "take longer here" } };
  (void)arg;
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    maker m = { .a = a };
    plain(&m, DIMS(each[i].n, each[i].n, each[i].n));
    nvf_options o = { .fuse = 1, .bf16_split = each[i].reading };
    nvf_plan *p = nvf_fuse(a, with_precision(&m, NVM_PRECISION_BF16X3), nvb_caps_find(each[i].device), &o);
    nvf_plan_check(a, p);
    ck_assert_int_eq(p->g != p->given, each[i].pieces);
    ck_assert_msg(p->bf16_note && strstr(p->bf16_note, each[i].says), "%s, %d: %s", each[i].device, (int)each[i].n,
                  p->bf16_note);
  }
}
START_TEST(either_can_be_asked_for) { in_arena(ask_for_one, NULL, NULL); }
END_TEST

START_TEST(taken_where_it_is_cheaper) { in_arena(take_one, (void *)&taken[_i], NULL); }
END_TEST

/* Where tf32 is MN-major on both sides, warpgroups want one operand copied; a pass that computes one stores it so. */
static void computed(maker *m, const int64_t *n) {
  int x = f32(m, n[2], n[0]), y = m_1(m, "tanh", f32(m, n[2], n[1]));
  m_out(m, y), m_out(m, m_product(m, m_turn(m, x), y));
}
static const struct copied {
  const char *device;
  void (*make)(maker *, const int64_t *);
  int64_t n;
  int steps, copies;
} copies[] = {
  { "h200", left_turned, 4096, 2, 1 }, { "h200", both_turned, 4096, 1, 0 }, { "h200", plain, 4096, 1, 0 },
  { "h200", left_turned, 64, 1, 0 },   { "a100", left_turned, 4096, 1, 0 }, { "b200", left_turned, 4096, 1, 0 },
  { "h200", computed, 4096, 2, 1 },
};
static void copy_one(nvb_arena *a, void *arg) {
  const struct copied *c = arg;
  maker m = { .a = a };
  c->make(&m, DIMS(c->n, c->n, c->n));
  for (int i = 0; i < m.leaf.n; i++) m.leaf.at[i].align16 = 1;
  for (int i = 0; i < 2; i++) {
    int capabilities = i ? NVF_CAN_GEMM | NVF_CAN_TF32 : 0;
    nvf_plan *p = nvf_fuse(a, with_precision(&m, NVM_PRECISION_TF32), nvb_caps_find(c->device),
                           &(nvf_options){ .fuse = 1, .capabilities = capabilities });
    nvb_text text = { .arena = a };
    int found = 0;
    nvf_plan_check(a, p);
    nvf_plan_explain(&text, p);
    for (int i = 0; i < p->g->n; i++) found += p->g->v[i].kind == NVG_VCONCAT;
    ck_assert_msg(p->nstep == c->steps && found == c->copies, "%s: %d copies and not %d\n%s", c->device, found,
                  c->copies, nvb_text_get(&text));
  }
}
START_TEST(copied_where_both_lie_across) { in_arena(copy_one, (void *)&copies[_i], NULL); }
END_TEST

/* A library that takes float32 apart itself multiplies nine times and moves nothing: the better way for what is not
   large. */
static void let_the_library(nvb_arena *a, void *arg) {
  int lt = NVF_CAN_GEMM | NVF_CAN_F16;
  const struct {
    const char *device;
    int64_t n;
    int pieces[2];
  } each[] = { { "b200", 1024, { 1, 0 } }, { "b200", 8192, { 1, 1 } }, { "h200", 1024, { 1, 1 } } };
  for (int i = 0; i < 6; i++) {
    maker m = { .a = a };
    plain(&m, DIMS(each[i / 2].n, each[i / 2].n, each[i / 2].n));
    nvf_options o = { .fuse = 1, .capabilities = i % 2 ? lt | NVF_CAN_BF16X9 : lt };
    nvf_plan *p = nvf_fuse(a, with_precision(&m, NVM_PRECISION_BF16X9), nvb_caps_find(each[i / 2].device), &o);
    int own = p->nstep == 1 && p->step[0].gemm->own;
    ck_assert_msg(!own && (p->nstep > 1) == each[i / 2].pieces[i % 2], "%s, %d: %s", each[i / 2].device,
                  (int)each[i / 2].n, p->bf16_note);
  }
  ck_assert_ptr_null(arg);
}
START_TEST(a_library_may_do_it) { in_arena(let_the_library, NULL, NULL); }
END_TEST

SUITE("pieces", EACH(as_exact_as_is_said, programs), EACH(followed_by_anything, followed), LOOP(special_values, 2),
      what_is_multiplied_twice_is_taken_apart_once, EACH(taken_where_it_is_cheaper, taken), either_can_be_asked_for,
      EACH(copied_where_both_lie_across, copies), a_library_may_do_it)
