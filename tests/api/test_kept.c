/* What is kept from one call to the next: programs, as long as what they depend on stays; and nothing for ever. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "nvm/nvm.h"

static nvm_ctx *ctx;
static void open_ctx(void) {
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
  ck_assert_int_eq(nvm_set("tier", "planned"), NVM_OK); /* the first evaluation of a graph makes what is kept */
}
static void close_ctx(void) { nvm_ctx_free(ctx); }

static int64_t planned(void) {
  nvm_counters c;
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.programs_planned;
}
static nvm_array *ramp(int64_t n) {
  float *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = (float)i;
  nvm_array *a = nvm_from_host(ctx, NVM_F32, 1, &n, x);
  free(x);
  return a;
}

/* ---- settings */
static int traced(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_sum(nvm_exp(nvm_mul(in[0], nvm_float(3))), NULL, -1, 0);
  return NVM_OK;
}
/* An evaluation and a call of a function; the plans' text in *text. Returns how many programs were planned for them. */
static int64_t use(nvm_fn *f, char **text) {
  int64_t before = planned();
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = ramp(3000), *y = nvm_sub(nvm_tanh(x), nvm_mean(x, NULL, -1, 0)), *z = NULL;
  ck_assert_int_eq(nvm_explain(text, &y, 1), NVM_OK);
  ck_assert_msg(nvm_eval(&y, 1) == NVM_OK && nvm_fn_call(f, &x, &z) == NVM_OK, "%s", nvm_last_error());
  nvm_array_unref(z);
  ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
  return planned() - before;
}
typedef struct other { const char *name, *value; int replans; } other;
static const other others[] = {
  { "NVM_DUMP", "run", 1 },      { "NVM_DUMP_DIR", "/tmp", 0 },  { "NVM_VERBOSE", "1", 0 },
  { "NVM_CHECK", "plan", 1 },    { "NVM_FUSE", "off", 1 },       { "NVM_TIER", "0", 1 },
  { "NVM_TUNE", "off", 1 },      { "NVM_REPRODUCIBLE", "1", 1 }, { "NVM_NUM_THREADS", "3", 1 },
  { "NVM_CACHE_DIR", "off", 1 }, { "NVM_CACHE_SIZE", "64M", 0 }, { "NVM_MEM_LIMIT", "1G", 0 },
  { "NVM_MEM_CACHE", "64M", 0 }, { "NVM_ISA", "128", 1 },        { "NVM_CUDA_DIR", "/nowhere", 0 },
  { "NVM_DEVICE", "cpu", 0 },    { "NVM_SOLVERS", "kernel", 1 }, { "NVM_DOCTOR", "1", 0 },
};
enum { ROWS = sizeof others / sizeof *others };
START_TEST(a_setting_throws_away_what_depends_on_it) {
  const char *name, *value, *def, *doc;
  ck_assert_msg(nvm_setting(_i, &name, &value, &def, &doc), "%d settings, %d are tried", _i, ROWS);
  const other *o = others;
  while (o < others + ROWS && strcmp(o->name, name)) o++;
  ck_assert_msg(o < others + ROWS, "%s is not tried here", name);
  char *before, *after, old[256];
  snprintf(old, sizeof old, "%s", value);
  nvm_fn *f;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, traced, NULL, 1, 1), NVM_OK);
  ck_assert_int_eq(use(f, &before), 2);
  nvm_free(before);
  ck_assert_int_eq(use(f, &before), 0);
  ck_assert_int_eq(nvm_set(name, o->value), NVM_OK);
  ck_assert_msg(use(f, &after) == 2 * o->replans, "%s", name);
  ck_assert_msg(o->replans || !strcmp(before, after), "%s changes plans:\n%s%s", name, before, after);
  nvm_free(after);
  ck_assert_int_eq(nvm_set(name, old), NVM_OK);
  ck_assert_msg(use(f, &after) == 2 * !strcmp(name, "NVM_DUMP"), "%s", name); /* what was planned before is there */
  ck_assert_str_eq(before, after);
  nvm_free(before), nvm_free(after);
  ck_assert_int_eq(nvm_fn_free(f), NVM_OK);
}
END_TEST
START_TEST(every_setting_is_tried) {
  const char *name, *value, *def, *doc;
  ck_assert_int_eq(nvm_setting(ROWS, &name, &value, &def, &doc), 0);
}
END_TEST

/* ---- nothing grows for ever. Each cycle makes what none before it has made: shapes, constants, texts. */
static void build(int64_t i) { /* and never evaluate */
  int64_t shape[2] = { 1 + i / 50, 1 + i % 50 };
  nvm_neg(nvm_add(nvm_zeros(ctx, NVM_F32, 2, shape), nvm_float(1)));
}
static void evaluate(int64_t i) {
  int64_t shape[3] = { 1, 1 + i % 7, 1 + i / 7 };
  nvm_array *x = nvm_broadcast_to(nvm_add(ramp(1 + i % 3), nvm_float(0)), 1, &(int64_t){ 1 + i % 3 });
  nvm_array *y = nvm_sum(nvm_mul(nvm_ones(ctx, NVM_F32, 3, shape), nvm_sum(x, NULL, -1, 0)), NULL, -1, 0);
  ck_assert_msg(nvm_eval(&y, 1) == NVM_OK, "%s", nvm_last_error());
}
static void number(int64_t i) {
  nvm_array *x = ramp(3);
  for (int k = 0; k < 6; k++) x = i >> k & 1 ? nvm_exp(x) : nvm_mul(x, nvm_float((double)i)); /* new graphs */
  ck_assert_msg(nvm_eval(&x, 1) == NVM_OK, "%s", nvm_last_error());
}
static void call(int64_t i) {
  nvm_fn *f;
  nvm_array *x = ramp(1 + i), *z = NULL;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, traced, NULL, 1, 1), NVM_OK);
  ck_assert_msg(nvm_fn_call(f, &x, &z) == NVM_OK, "%s", nvm_last_error());
  nvm_array_unref(z);
  ck_assert_int_eq(nvm_fn_free(f), NVM_OK);
}
static void set(int64_t i) {
  char text[40];
  snprintf(text, sizeof text, "%lld", (long long)i + (1 << 30));
  ck_assert_int_eq(nvm_set("mem_limit", text), NVM_OK);
  snprintf(text, sizeof text, "/nowhere/%lld", (long long)i);
  ck_assert_int_eq(nvm_set("dump_dir", text), NVM_OK);
}
static void mistake(int64_t i) {
  nvm_scope *s = nvm_scope_open(ctx);
  ck_assert_ptr_null(nvm_add(ramp(2 + i), ramp(3 + i)));
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
}
static const struct cycle {
  void (*make)(int64_t i);
  const char *tier;
} cycles[] = {
  { build, "0" }, { evaluate, "0" }, { number, "0" },        { call, "0" },
  { set, "0" },   { mistake, "0" },  { evaluate, "direct" }, { number, "direct" },
};
START_TEST(nothing_grows) {
  enum { ROUND = 5000 }; /* more than there are programs */
  int64_t most[3] = { 0 };
  ck_assert_int_eq(nvm_set("tier", cycles[_i].tier), NVM_OK);
  for (int64_t i = 0; i < 3 * ROUND; i++) {
    nvm_scope *s = nvm_scope_open(ctx);
    cycles[_i].make(i);
    nvm_scope_close(s);
    int64_t blocks = nvb_live_blocks();
    if (blocks > most[i / ROUND]) most[i / ROUND] = blocks;
  }
  ck_assert_msg(most[2] <= most[1] + most[1] / 50, "%lld blocks, then %lld", (long long)most[1], (long long)most[2]);
}
END_TEST

#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* Programs of long graphs, each of a structure of its own: their bytes are bounded, not their number alone. */
START_TEST(programs_are_bounded_by_their_bytes) {
  enum { PROGRAMS = 1500, LENGTH = 50, MOST = 120 << 20 };
  nvm_array *(*const ops[])(nvm_array *) = { nvm_exp, nvm_sin, nvm_abs, nvm_sqrt };
  size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  ck_assert_int_eq(nvm_set("tier", "0"), NVM_OK);
  for (unsigned i = 0; i < PROGRAMS; i++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *x = ramp(8);
    for (int k = 0; k < LENGTH; k++) x = nvm_add(ops[i >> 2 * k % 12 & 3](x), nvm_float(k));
    ck_assert_msg(nvm_eval(&x, 1) == NVM_OK, "%s", nvm_last_error());
    ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
  }
  size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
  ck_assert_msg(after < before + MOST, "%zu bytes are kept", after - before);
}
END_TEST
#else
START_TEST(programs_are_bounded_by_their_bytes) {}
END_TEST /* the heap does not count there */
#endif

/* ---- what is held without being asked for */
static nvm_array *some(int rank, const int64_t *shape, double by) {
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  return nvm_reshape(nvm_sin(nvm_mul(nvm_arange(ctx, NVM_F32, 0, (double)n, 1), nvm_float(by))), rank, shape);
}
typedef struct layer { nvm_array *x, *w, *b; } layer;
static layer layer_new(int64_t n) {
  layer l = { some(2, (int64_t[]){ n, n }, 0.7), some(2, (int64_t[]){ n, n }, 0.3), some(1, &n, 0.9) };
  ck_assert_int_eq(nvm_eval((nvm_array *[]){ l.x, l.w, l.b }, 3), NVM_OK);
  return l;
}
static int64_t kernels(void) {
  nvm_counters c;
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.kernels_run;
}
/* Explains 40 steps after y; unless they are held, the array of each operation is released when the next one has it. */
static char *explained_chain(nvm_array *y, layer l, int held) {
  char *text;
  for (int i = 0; i < 40; i++) {
    nvm_scope *step = held ? NULL : nvm_scope_open(ctx);
    nvm_array *before = y;
    y = nvm_array_ref(nvm_sin(nvm_add(nvm_mul(y, l.x), l.b)));
    if (step) ck_assert_int_eq(nvm_scope_close(step), NVM_OK);
    if (i) nvm_array_unref(before);
  }
  ck_assert_int_eq(nvm_explain(&text, &y, 1), NVM_OK);
  nvm_array_unref(y);
  return text;
}
/* In a scope each operation's array is held; what it holds is no part of the plan. */
START_TEST(a_scope_is_planned_as_the_nested_expression) {
  nvm_scope *s = nvm_scope_open(ctx);
  layer l = layer_new(96);
  nvm_array *h = nvm_matmul(l.x, l.w), *y = nvm_maximum(nvm_add(h, l.b), nvm_float(0));
  char *text;
  ck_assert_int_eq(nvm_explain(&text, &y, 1), NVM_OK);
  ck_assert_msg(!strncmp(text, "1 kernel,", 9) && strstr(text, "gemm, add, "), "%s", text);
  nvm_free(text);
  char *held = explained_chain(y, l, 1), *nested = explained_chain(y, l, 0);
  ck_assert_str_eq(held, nested);
  nvm_free(held);
  nvm_free(nested);
  ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
}
END_TEST

/* h is computed once more when it is read, and never after that; where that happens again, it is kept at once. */
START_TEST(what_is_read_after_all_is_computed_once_more) {
  nvm_scope *s = nvm_scope_open(ctx);
  layer l = layer_new(_i ? 50 : 60);
  for (int round = 0; round < 3; round++) {
    nvm_array *h = nvm_matmul(l.x, l.w), *y[3];
    for (int k = 0; k < 3; k++) {
      y[k] = nvm_add(h, nvm_float(round + k));
      ck_assert_int_eq(nvm_eval(&y[k], 1), NVM_OK);
      ck_assert_int_eq(nvm_is_pending(h), round == 0 && k == 0);
    }
    int64_t before = kernels();
    ck_assert_int_eq(nvm_eval(&h, 1), NVM_OK);
    ck_assert_int_eq(kernels(), before);
  }
  ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
}
END_TEST

/* What is kept, and so what is planned, depends on what was read before; the bits do not. Products are of small whole
   numbers, so that no order of their sums changes one. */
enum { SIDE = 30, DEARS = 5 };
static nvm_array *dear(int which, layer l) {
  nvm_array *y = l.x;
  switch (which) {
  case 0: return nvm_matmul(nvm_round(nvm_mul(l.x, nvm_float(4))), nvm_round(nvm_mul(l.w, nvm_float(4))));
  case 1: return nvm_sum(nvm_exp(nvm_mul(l.x, l.w)), (int[]){ 0 }, 1, 1);
  case 2: return nvm_sort(l.x, 1, 0);
  case 3: return nvm_softmax(l.x, 1);
  default:
    for (int i = 0; i < 40; i++) y = nvm_sin(nvm_add(nvm_mul(y, l.w), l.b));
    return y;
  }
}
static nvm_array *use_of(nvm_array *h, layer l) {
  return nvm_sum(nvm_mul(nvm_tanh(nvm_mul(h, nvm_float(0.37))), l.b), (int[]){ 1 }, 1, 1);
}
typedef struct seen { int there; float at[SIDE * SIDE]; } seen;
static void ck_same(seen *w, nvm_array *a, unsigned round) { /* as when it was seen first */
  float got[SIDE * SIDE];
  size_t bytes = sizeof *got * (size_t)nvm_size(a);
  ck_assert_msg(!nvm_copy_to_host(a, w->there ? got : w->at, bytes), "%s", nvm_last_error());
  ck_assert_msg(!w->there || !memcmp(got, w->at, bytes), "other bits in round %u", round);
  w->there = 1;
}
START_TEST(bits_do_not_depend_on_what_is_kept) {
  enum { NAMED = 1, READ_BEFORE = 2, READ_AFTER = 4, USED_TWICE = 8, HISTORIES = 16 };
  seen first = { 0 }, inner = { 0 }, other = { 0 };
  for (unsigned i = 0; i < 3 * HISTORIES; i++) {
    unsigned how = i * 7 % HISTORIES;
    nvm_scope *s = nvm_scope_open(ctx);
    layer l = layer_new(SIDE);
    nvm_array *h = how & NAMED ? dear(_i, l) : NULL, *y = use_of(h ? h : dear(_i, l), l);
    nvm_array *z = nvm_exp(nvm_neg(nvm_abs(h ? h : dear(_i, l))));
    if (h && how & READ_BEFORE) ck_same(&inner, h, i);
    ck_same(&first, y, i);
    if (how & USED_TWICE) ck_same(&other, z, i);
    if (h && how & READ_AFTER) ck_same(&inner, h, i);
    ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
  }
}
END_TEST

/* x = step(x) in a loop that looks at a sum of it: each step is computed once, but for the first few. */
START_TEST(a_loop_that_looks_at_its_state_computes_each_step_once) {
  nvm_scope *s = nvm_scope_open(ctx);
  layer l = layer_new(40);
  nvm_array *x = nvm_array_ref(l.x);
  int64_t last = 0, first = 0;
  for (int i = 0; i < 12; i++) {
    nvm_scope *in = nvm_scope_open(ctx);
    nvm_array *next = nvm_array_ref(nvm_mul(nvm_matmul(x, l.w), nvm_float(1.0 / (i + 30))));
    nvm_array_unref(x);
    x = next;
    nvm_array *sum = nvm_sum(nvm_mul(x, x), NULL, -1, 0);
    int64_t before = kernels();
    ck_assert_int_eq(nvm_eval(&sum, 1), NVM_OK);
    last = kernels() - before;
    if (!i) first = last;
    ck_assert_int_eq(nvm_scope_close(in), NVM_OK);
    if (i > 8) ck_assert_int_eq(nvm_is_pending(x), 0);
  }
  ck_assert_int_le(last, first + 1);
  nvm_array_unref(x);
  ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
}
END_TEST

SUITE_WITH("kept", open_ctx, close_ctx, EACH(a_setting_throws_away_what_depends_on_it, others), every_setting_is_tried,
           EACH(nothing_grows, cycles), programs_are_bounded_by_their_bytes,
           a_scope_is_planned_as_the_nested_expression, LOOP(what_is_read_after_all_is_computed_once_more, 2),
           LOOP(bits_do_not_depend_on_what_is_kept, DEARS), a_loop_that_looks_at_its_state_computes_each_step_once)
