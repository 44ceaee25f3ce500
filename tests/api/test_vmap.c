/* nvm_vmap in C: values and axes, what a callback may do wrong, and that nothing stays in memory or in a trace. */
#include "nvm/vmap.h"
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "nvm/loop.h"
#include "nvm/random.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static void set_up(void) {
  ck_assert_msg(!nvm_ctx_new(&ctx, NULL), "%s", nvm_last_error());
  scope = nvm_scope_open(ctx);
}
static void tear_down(void) {
  nvm_scope_close(scope);
  ck_assert_msg(!nvm_ctx_free(ctx), "%s", nvm_last_error());
}
static nvm_array *counted(int64_t m, int64_t n) { /* 0, 1, 2 ... */
  double x[64];
  int64_t shape[2] = { m, n };
  for (int i = 0; i < m * n; i++) x[i] = i;
  return nvm_from_host(ctx, NVM_F64, 2, shape, x);
}
static void holds(nvm_array *a, int n, const double *want) {
  double x[64];
  ck_assert_msg(!nvm_copy_to_host(a, x, sizeof *x * (size_t)n), "%s", nvm_last_error());
  for (int i = 0; i < n; i++) ck_assert_msg(x[i] == want[i], "%d: %g, not %g", i, x[i], want[i]);
}
static void failed(int status, int with, const char *says) {
  ck_assert_msg(status == with && strstr(nvm_last_error(), says), "%d: %s", status, nvm_last_error());
}

#define FN(name) static int name(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout)
#define UNUSED (void)user, (void)c, (void)in, (void)nin, (void)nout, (void)out
FN(sum_and_scaled) { /* the sum of a row, and the row times a number from outside */
  UNUSED;
  out[0] = nvm_sum(in[0], NULL, 0, 0);
  out[1] = nvm_mul(in[0], in[1]);
  return NVM_OK;
}
START_TEST(values_and_axes) {
  nvm_array *in[2] = { counted(2, 3), nvm_float(10) }, *out[2];
  int axes[2] = { 0, NVM_UNMAPPED }, columns[2] = { -1, NVM_UNMAPPED }, out_axes[2] = { 0, 1 };
  ck_assert_msg(!nvm_vmap(out, NULL, 2, ctx, sum_and_scaled, NULL, in, axes, 2), "%s", nvm_last_error());
  holds(out[0], 2, (double[]){ 3, 12 });
  holds(out[1], 6, (double[]){ 0, 10, 20, 30, 40, 50 });
  nvm_array_unref(out[0]), nvm_array_unref(out[1]);
  ck_assert_msg(!nvm_vmap(out, out_axes, 2, ctx, sum_and_scaled, NULL, in, columns, 2), "%s", nvm_last_error());
  holds(out[0], 3, (double[]){ 3, 5, 7 });
  ck_assert(nvm_shape(out[1])[0] == 2 && nvm_shape(out[1])[1] == 3);
  holds(out[1], 6, (double[]){ 0, 10, 20, 30, 40, 50 });
  nvm_array_unref(out[0]), nvm_array_unref(out[1]);
}
END_TEST

FN(gives_nothing) { return UNUSED, NVM_OK; }
FN(gives_up) { return UNUSED, NVM_ERR_OVERFLOW; }
FN(loops) {
  UNUSED;
  return nvm_fori_loop(out, c, nvm_int(0), nvm_int(2), gives_up, NULL, in, 1);
}
FN(squares_each) {
  UNUSED;
  nvm_array *made;
  if (!nvm_rank(in[0])) return out[0] = nvm_mul(in[0], in[0]), NVM_OK;
  int status = nvm_vmap(&made, NULL, 1, c, squares_each, NULL, in, NULL, 1);
  if (status) return status;
  out[0] = nvm_mul(made, nvm_float(1));
  nvm_array_unref(made);
  return NVM_OK;
}
START_TEST(inside_itself) {
  nvm_array *in = counted(2, 3), *out;
  ck_assert_msg(!nvm_vmap(&out, NULL, 1, ctx, squares_each, NULL, &in, NULL, 1), "%s", nvm_last_error());
  holds(out, 6, (double[]){ 0, 1, 4, 9, 16, 25 });
  nvm_array_unref(out);
}
END_TEST

START_TEST(callbacks_that_fail) {
  nvm_array *in = counted(2, 3), *out[2];
  failed(nvm_vmap(out, NULL, 1, ctx, gives_nothing, NULL, &in, NULL, 1), NVM_ERR_VALUE, "vmap");
  ck_assert_int_eq(nvm_vmap(out, NULL, 1, ctx, gives_up, NULL, &in, NULL, 1), NVM_ERR_OVERFLOW);
  ck_assert_ptr_null(out[0]);
  ck_assert_int_eq(nvm_vmap(out, NULL, 1, ctx, loops, NULL, &in, NULL, 1), NVM_ERR_OVERFLOW);
  nvm_array *two[2] = { in, counted(3, 2) };
  failed(nvm_vmap(out, NULL, 2, ctx, sum_and_scaled, NULL, two, NULL, 2), NVM_ERR_VALUE, "input 1 has 3 elements");
  int far = 2, none = NVM_UNMAPPED;
  failed(nvm_vmap(out, NULL, 1, ctx, squares_each, NULL, &in, &far, 1), NVM_ERR_INDEX, "axis 2 of input 0");
  failed(nvm_vmap(out, NULL, 1, ctx, squares_each, NULL, &in, &none, 1), NVM_ERR_VALUE, "no input is mapped");
  failed(nvm_vmap(out, &none, 1, ctx, squares_each, NULL, &in, NULL, 1), NVM_ERR_VALUE, "differs between");
  ck_assert_msg(!nvm_trace_begin(ctx) && !nvm_trace_end(ctx), "a trace is open: %s", nvm_last_error());
}
END_TEST

FN(not_yet_large) { /* a test of a while_loop */
  UNUSED;
  out[0] = nvm_any(nvm_less(in[0], nvm_float(10)), NULL, 0, 0);
  return NVM_OK;
}
FN(doubled_and_one_more) {
  UNUSED;
  out[0] = nvm_add(nvm_mul(in[0], nvm_float(2)), nvm_float(1));
  return NVM_OK;
}
FN(grown) {
  UNUSED;
  return nvm_while_loop(out, c, not_yet_large, doubled_and_one_more, NULL, in, 1);
}
FN(negative) {
  UNUSED;
  out[0] = nvm_neg(in[0]);
  return NVM_OK;
}
FN(grown_and_drawn) { /* each element until it is large enough, then a number below 1 */
  nvm_array *grown;
  UNUSED;
  int status = nvm_while_loop(&grown, c, not_yet_large, doubled_and_one_more, NULL, in, 1);
  if (status) return status;
  out[0] = nvm_add(nvm_floor(nvm_random(user, NVM_F64, 0, NULL)), grown);
  nvm_array_unref(grown);
  return NVM_OK;
}
START_TEST(loops_and_draws) {
  nvm_generator *g;
  nvm_generator_state state;
  ck_assert(!nvm_generator_new(&g, ctx, 3));
  nvm_array *in = counted(4, 1), *column = nvm_sum(in, (int[]){ 1 }, 1, 0), *out;
  ck_assert_msg(!nvm_vmap(&out, NULL, 1, ctx, grown_and_drawn, g, &column, NULL, 1), "%s", nvm_last_error());
  holds(out, 4, (double[]){ 15, 15, 11, 15 });
  ck_assert(!nvm_generator_state_get(&state, g) && state.counter);
  nvm_array_unref(out);
  nvm_generator_free(g);
}
END_TEST

FN(grown_or_negative) {
  UNUSED;
  nvm_array *large = nvm_greater(in[0], nvm_float(1));
  return nvm_cond(out, 1, c, large, grown, negative, NULL, in, 1);
}
START_TEST(memory_that_runs_out) { /* at each request, once */
  double x[4] = { 0, 1, 2, 3 };
  int64_t n = 4;
  for (int k = 1; k <= 700; k++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *in = nvm_from_host(ctx, NVM_F64, 1, &n, x), *out = NULL;
    nvb_fail_alloc(k, 0);
    int status = nvm_vmap(&out, NULL, 1, ctx, grown_or_negative, NULL, &in, NULL, 1);
    nvb_fail_alloc(0, 0);
    ck_assert_msg(!status == !!out && (!status || nvm_last_status() == NVM_ERR_MEMORY), "%d: %s", k, nvm_last_error());
    if (out) holds(out, 4, (double[]){ -0.0, -1, 11, 15 }), nvm_array_unref(out);
    nvm_scope_close(s);
    ck_assert_msg(!nvm_trace_begin(ctx) && !nvm_trace_end(ctx), "%d: a trace is open", k);
  }
}
END_TEST

START_TEST(nothing_stays) {
  nvm_counters before = { 0 }, after;
  for (int times = 0; times < 3; times++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *in = counted(5, 7), *out;
    ck_assert(!nvm_vmap(&out, NULL, 1, ctx, squares_each, NULL, &in, NULL, 1));
    ck_assert(!nvm_eval(&out, 1));
    nvm_array_unref(out);
    nvm_generator *g;
    nvm_array *column = nvm_sum(in, (int[]){ 1 }, 1, 0);
    ck_assert(!nvm_generator_new(&g, ctx, 3));
    ck_assert(!nvm_vmap(&out, NULL, 1, ctx, grown_and_drawn, g, &column, NULL, 1) && !nvm_eval(&out, 1));
    nvm_array_unref(out);
    nvm_generator_free(g);
    ck_assert(!nvm_scope_close(s) && !nvm_counters_get(&after, NVM_COUNTERS_VERSION));
    if (!times) before = after;
  }
  ck_assert_int_eq(after.bytes_used, before.bytes_used);
}
END_TEST

SUITE_WITH("vmap", set_up, tear_down, values_and_axes, inside_itself, callbacks_that_fail, loops_and_draws,
           memory_that_runs_out, nothing_stays)
