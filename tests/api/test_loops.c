/* Loops in C: values against loops of C, what callbacks may do wrong, loops by hand in and out of order, interrupts at
   every question, and that nothing stays in memory. */
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/loop.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static int64_t asked_so_far, yes_at; /* yes_at 0: never */
static int ask(void *user) { return (void)user, ++asked_so_far == yes_at; }
static void set_up(void) {
  ck_assert_msg(!nvm_ctx_new(&ctx, NULL), "%s", nvm_last_error());
  scope = nvm_scope_open(ctx);
  yes_at = 0;
  nvm_interrupt_set(ask, NULL);
}
static void tear_down(void) {
  nvm_interrupt_set(NULL, NULL);
  nvm_scope_close(scope);
  ck_assert_msg(!nvm_ctx_free(ctx), "%s", nvm_last_error());
}
static nvm_array *numbers(int64_t n, double first) {
  double *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = first + (double)i;
  nvm_array *a = nvm_from_host(ctx, NVM_F64, 1, &n, x);
  free(x);
  return a;
}
static void holds(nvm_array *a, int64_t n, const double *want) {
  double *x = malloc(sizeof *x * (size_t)(n + 1));
  ck_assert_msg(!nvm_copy_to_host(a, x, sizeof *x * (size_t)n), "%s", nvm_last_error());
  for (int64_t i = 0; i < n; i++) ck_assert_msg(x[i] == want[i], "%lld: %g, not %g", (long long)i, x[i], want[i]);
  free(x);
}
static void failed(int status, int with, const char *says) {
  ck_assert_msg(status == with && strstr(nvm_last_error(), says), "%d: %s", status, nvm_last_error());
}

#define FN(name) \
  static int name(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout)
#define UNUSED (void)user, (void)c, (void)in, (void)nin, (void)nout, (void)out
FN(halve_and_add) { /* c / 2 + i */
  UNUSED;
  out[0] = nvm_add(nvm_mul(in[1], nvm_float(0.5)), in[0]);
  return NVM_OK;
}
START_TEST(fori) {
  for (int64_t n = 0; n < 6; n++) {
    double want[3] = { 1, 2, 3 };
    nvm_array *x = numbers(3, 1), *out;
    for (int64_t i = 2; i < 2 + n; i++)
      for (int k = 0; k < 3; k++) want[k] = want[k] * 0.5 + (double)i;
    int status = nvm_fori_loop(&out, ctx, nvm_int(2), nvm_int(2 + n), halve_and_add, NULL, &x, 1);
    ck_assert_msg(!status, "%s", nvm_last_error());
    ck_assert(!nvm_is_pending(out));
    holds(out, 3, want);
    nvm_array_unref(out);
  }
}
END_TEST

FN(below) { /* c[1] < user */
  UNUSED;
  out[0] = nvm_less(in[1], nvm_float(*(double *)user));
  return NVM_OK;
}
FN(double_both) {
  UNUSED;
  out[0] = nvm_mul(in[0], nvm_float(2));
  out[1] = nvm_add(in[1], nvm_float(1));
  return NVM_OK;
}
FN(first_twice) { return UNUSED, out[0] = nvm_mul(in[0], nvm_float(2)), NVM_OK; }
FN(first) { return UNUSED, out[0] = in[0], NVM_OK; }
START_TEST(while_and_cond) {
  double limit = 5;
  nvm_array *init[2] = { numbers(2, 1), nvm_float(0) }, *out[2];
  ck_assert_msg(!nvm_while_loop(out, ctx, below, double_both, &limit, init, 2), "%s", nvm_last_error());
  holds(out[0], 2, (double[]){ 32, 64 });
  holds(out[1], 1, (double[]){ 5 });
  for (int yes = 0; yes < 2; yes++) {
    nvm_array *r, *pred = yes ? nvm_less(out[1], nvm_float(6)) : nvm_bool(0);
    ck_assert_msg(!nvm_cond(&r, 1, ctx, pred, first_twice, first, NULL, out, 1), "%s", nvm_last_error());
    holds(r, 2, yes ? (double[]){ 64, 128 } : (double[]){ 32, 64 });
    nvm_array_unref(r);
  }
  nvm_array_unref(out[0]), nvm_array_unref(out[1]);
}
END_TEST

FN(sums) { /* running sums, and their squares */
  UNUSED;
  out[0] = nvm_add(in[0], in[1]);
  out[1] = nvm_square(out[0]);
  return NVM_OK;
}
START_TEST(scans) {
  for (int reverse = 0; reverse < 2; reverse++) {
    nvm_scan_options o = NVM_SCAN_OPTIONS_INIT;
    o.reverse = reverse;
    nvm_array *init = nvm_float(0), *xs = numbers(5, 1), *out[2];
    double sum = 0, want[5];
    for (int k = 0; k < 5; k++) {
      int i = reverse ? 4 - k : k;
      sum += 1 + i;
      want[i] = sum * sum;
    }
    ck_assert_msg(!nvm_scan(out, ctx, sums, NULL, &init, 1, &xs, 1, 1, &o), "%s", nvm_last_error());
    holds(out[0], 1, &sum);
    holds(out[1], 5, want);
    nvm_array_unref(out[0]), nvm_array_unref(out[1]);
    o.length = 4;
    failed(nvm_scan(out, ctx, sums, NULL, &init, 1, &xs, 1, 1, &o), NVM_ERR_VALUE, "x 0 has 5 rows, and the loop 4");
    o.length = -1;
    failed(nvm_scan(out, ctx, sums, NULL, &init, 1, &xs, 1, 1, &o), NVM_ERR_VALUE, "length is -1");
  }
}
END_TEST

FN(a_loop) { /* of in[0], five steps, in a trace; doubled behind it */
  UNUSED;
  nvm_array *r;
  int status = nvm_fori_loop(&r, c, nvm_int(0), nvm_int(5), halve_and_add, NULL, in, 1);
  if (status) return status;
  out[0] = nvm_mul(r, nvm_float(2));
  nvm_array_unref(r);
  return NVM_OK;
}
FN(loop_of_loops) { /* i, c */
  UNUSED;
  return a_loop(NULL, c, in + 1, 1, out, 1);
}
START_TEST(in_functions_and_loops) {
  nvm_fn *f;
  nvm_array *x = numbers(2, 1), *out;
  double want[2] = { 1, 2 };
  for (int times = 0; times < 3; times++)
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i < 5; i++) want[k] = want[k] * 0.5 + i;
      want[k] *= 2;
    }
  ck_assert(!nvm_fn_new(&f, ctx, a_loop, NULL, 1, 1));
  for (int times = 0; times < 3; times++) {
    ck_assert_msg(!nvm_fn_call(f, &x, &out), "%s", nvm_last_error());
    if (times) nvm_array_unref(x);
    x = out;
  }
  holds(x, 2, want);
  char *text;
  ck_assert_msg(!nvm_fn_explain(&text, f, &x), "%s", nvm_last_error());
  ck_assert_msg(strstr(text, "fori_loop (carries: 1;") && strstr(text, "each step:"), "%s", text);
  nvm_free(text);
  nvm_array_unref(x);
  x = numbers(2, 1);
  ck_assert_msg(!nvm_fori_loop(&out, ctx, nvm_int(0), nvm_int(3), loop_of_loops, NULL, &x, 1), "%s", nvm_last_error());
  holds(out, 2, want);
  nvm_array_unref(out);
  ck_assert(!nvm_fn_free(f));
}
END_TEST

/* ---- what goes wrong */
FN(fails) { return UNUSED, NVM_ERR_IO; }
FN(leaves_null) { return UNUSED, NVM_OK; }
FN(other_shape) { return UNUSED, out[0] = nvm_sum(in[1], NULL, 0, 0), NVM_OK; }
FN(other_dtype) { return UNUSED, out[0] = nvm_astype(in[1], NVM_F32), NVM_OK; }
FN(bad_operation) { return UNUSED, out[0] = nvm_matmul(in[1], nvm_float(1)), NVM_OK; }
START_TEST(callbacks_that_fail) {
  static const struct {
    nvm_trace_fn body;
    int status;
    const char *says;
  } rows[] = {
    { fails, NVM_ERR_IO, "" },
    { leaves_null, NVM_ERR_VALUE, "[fori_loop] a function left output 0 NULL" },
    { other_shape, NVM_ERR_TYPE, "[fori_loop] carry 0 begins as float64 (3,), and the body returns float64 ()" },
    { other_dtype, NVM_ERR_TYPE, "the body returns float32 (3,) for it" },
    { bad_operation, NVM_ERR_VALUE, "[matmul]" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    nvm_array *x = numbers(3, 1), *out = x;
    nvm_scope *s = nvm_scope_open(ctx);
    failed(nvm_fori_loop(&out, ctx, nvm_int(0), nvm_int(2), rows[i].body, NULL, &x, 1), rows[i].status, rows[i].says);
    ck_assert_ptr_null(out);
    nvm_scope_close(s);
    ck_assert_msg(!nvm_fori_loop(&out, ctx, nvm_int(0), nvm_int(1), halve_and_add, NULL, &x, 1), "a trace is open");
    nvm_array_unref(out);
  }
}
END_TEST

START_TEST(bounds_that_are_none) {
  nvm_array *x = numbers(3, 1), *out;
  failed(nvm_fori_loop(&out, ctx, nvm_float(0), nvm_int(2), halve_and_add, NULL, &x, 1), NVM_ERR_TYPE,
         "lower bound must be a 0-d integer");
  failed(nvm_fori_loop(&out, ctx, nvm_int(0), x, halve_and_add, NULL, &x, 1), NVM_ERR_TYPE, "upper bound must be");
  failed(nvm_cond(&out, 1, ctx, x, first, first, NULL, &x, 1), NVM_ERR_TYPE, "predicate must be a 0-d bool");
}
END_TEST

START_TEST(by_hand_and_out_of_order) {
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  o.lower = nvm_int(0), o.upper = nvm_int(3);
  const char *names[] = { "position" };
  o.names = names;
  nvm_loop *l;
  nvm_array *x = numbers(3, 1), *const * in, *out[1];
  int n;
  ck_assert_msg(!nvm_loop_open(&l, ctx, &o, &x, 1), "%s", nvm_last_error());
  failed(nvm_loop_outputs(l, &x, 1), NVM_ERR_STATE, "loop_inputs comes first");
  failed(nvm_loop_close(l, out), NVM_ERR_STATE, "not all functions");
  ck_assert(!nvm_loop_inputs(&in, &n, l) && n == 2);
  failed(nvm_loop_outputs(l, in, 2), NVM_ERR_VALUE, "returns 2 arrays, and 1 are needed");
  nvm_loop_free(l);
  ck_assert(!nvm_loop_open(&l, ctx, &o, &x, 1) && !nvm_loop_inputs(&in, &n, l));
  failed(nvm_loop_outputs(l, &in[0], 1), NVM_ERR_TYPE, "[fori_loop] position begins as float64 (3,)");
  nvm_loop_free(l);
  ck_assert(!nvm_loop_open(&l, ctx, &o, &x, 1) && !nvm_loop_inputs(&in, &n, l));
  nvm_array *y = nvm_mul(in[1], nvm_float(2));
  ck_assert_msg(!nvm_loop_outputs(l, &y, 1) && nvm_loop_results(l) == 1, "%s", nvm_last_error());
  failed(nvm_loop_inputs(&in, &n, l), NVM_ERR_STATE, "have ended");
  for (int times = 0; times < 2; times++) { /* each close runs it from its first carries */
    ck_assert_msg(!nvm_loop_close(l, out), "%s", nvm_last_error());
    holds(out[0], 3, (double[]){ 8, 16, 24 });
    nvm_array_unref(out[0]);
  }
  nvm_loop_free(l);
  o.kind = NVM_NLOOPS;
  failed(nvm_loop_open(&l, ctx, &o, &x, 1), NVM_ERR_VALUE, "no kind of loop");
}
END_TEST

START_TEST(an_interrupt_at_every_question) {
  double want = 0;
  nvm_loop_options o = NVM_LOOP_OPTIONS_INIT;
  for (int times = 0; times < 20; times++, want *= 2)
    for (int i = 0; i < 5; i++) want = want * 0.5 + i;
  for (int64_t at = 1, reached = 1; reached; at += 1 + at / 8) {
    nvm_scope *s = nvm_scope_open(ctx);
    o.lower = nvm_int(0), o.upper = nvm_int(20);
    nvm_array *x = numbers(1, 0), *const * in, *out, *made[1];
    nvm_loop *l;
    int n;
    ck_assert(!nvm_loop_open(&l, ctx, &o, &x, 1) && !nvm_loop_inputs(&in, &n, l));
    ck_assert_msg(!loop_of_loops(NULL, ctx, in, n, made, 1) && !nvm_loop_outputs(l, made, 1), "%s", nvm_last_error());
    asked_so_far = 0, yes_at = at;
    int status = nvm_loop_close(l, &out);
    reached = asked_so_far >= at;
    yes_at = 0;
    if (reached) {
      failed(status, NVM_ERR_INTERRUPTED, "interrupted");
      ck_assert_ptr_null(out);
      status = nvm_loop_close(l, &out);
    }
    ck_assert_msg(!status, "%s", nvm_last_error());
    holds(out, 1, &want);
    nvm_array_unref(out);
    nvm_loop_free(l);
    ck_assert(!nvm_scope_close(s));
    ck_assert(reached || at > 20);
  }
}
END_TEST

START_TEST(nothing_stays) {
  nvm_counters before = { 0 }, after;
  for (int times = 0; times < 3; times++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *x = numbers(1000, 1), *out;
    ck_assert(!nvm_fori_loop(&out, ctx, nvm_int(0), nvm_int(9), loop_of_loops, NULL, &x, 1));
    nvm_array_unref(out);
    ck_assert(!nvm_scope_close(s) && !nvm_counters_get(&after, NVM_COUNTERS_VERSION));
    if (!times) before = after;
  }
  ck_assert_int_eq(after.bytes_used, before.bytes_used);
  ck_assert_int_eq(after.programs_planned, before.programs_planned); /* the bodies are known */
}
END_TEST

SUITE_WITH("loops", set_up, tear_down, fori, while_and_cond, scans, in_functions_and_loops, callbacks_that_fail,
           bounds_that_are_none, by_hand_and_out_of_order, an_interrupt_at_every_question, nothing_stays)
