/* The C API as its users meet it: scopes, messages, values, assignment, functions, memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "nvm/nvm.h"

static nvm_ctx *ctx;
static nvm_scope *scope;
static void open_all(void) {
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
  scope = nvm_scope_open(ctx);
  ck_assert_ptr_nonnull(scope);
}
static void close_all(void) {
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}
static nvm_array *vec(int64_t n, const float *x) { return nvm_from_host(ctx, NVM_F32, 1, &n, x); }
static nvm_array *ramp(int64_t n) {
  float *x = malloc(sizeof *x * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = (float)i;
  nvm_array *a = vec(n, x);
  free(x);
  return a;
}
static void expect(nvm_array *a, int n, const float *want) {
  float got[64];
  ck_assert_int_eq(nvm_size(a), n);
  ck_assert_msg(nvm_copy_to_host(a, got, sizeof(float) * (size_t)n) == NVM_OK, "%s", nvm_last_error());
  for (int i = 0; i < n; i++) ck_assert_float_eq(got[i], want[i]);
}

START_TEST(test_expression) {
  float x[4] = { 1, 2, 3, 4 };
  nvm_array *a = vec(4, x), *r = nvm_sub(nvm_mul(a, a), nvm_float(1));
  ck_assert(nvm_is_pending(r));
  expect(r, 4, (float[]){ 0, 3, 8, 15 });
  ck_assert(!nvm_is_pending(r));
  expect(nvm_sum(r, NULL, -1, 0), 1, (float[]){ 26 });
}
END_TEST

START_TEST(test_together_and_explain) {
  nvm_array *a = ramp(1000), *b = nvm_exp(nvm_neg(a)), *two[2] = { nvm_add(b, nvm_float(1)), nvm_sum(b, NULL, -1, 0) };
  char *text;
  ck_assert_int_eq(nvm_explain(&text, two, 2), NVM_OK);
  ck_assert_ptr_nonnull(strstr(text, "kernel"));
  nvm_free(text);
  ck_assert_int_eq(nvm_eval(two, 2), NVM_OK);
  ck_assert(!nvm_is_pending(two[0]) && !nvm_is_pending(two[1]));
}
END_TEST

static nvm_array *matrix(int64_t rows, int64_t cols) {
  int64_t shape[2] = { rows, cols };
  return nvm_reshape(ramp(rows * cols), 2, shape);
}
START_TEST(test_products) {
  nvm_array *a = matrix(2, 3), *b = matrix(3, 2), *three[3] = { a, b, a };
  float want[4] = { 10, 13, 28, 40 };
  expect(nvm_matmul(a, b), 4, want);
  expect(nvm_matmul_opt(a, b, NULL), 4, want);
  nvm_matmul_options o = NVM_MATMUL_OPTIONS_INIT;
  ck_assert_int_eq(nvm_precision_find(&o.precision, "tf32"), NVM_OK);
  ck_assert_int_eq(o.precision, NVM_PRECISION_TF32);
  expect(nvm_matmul_opt(a, b, &o), 4, want); /* small whole numbers: exact in any precision */
  ck_assert_int_eq(nvm_precision_find(&o.precision, "bf16x9"), NVM_OK);
  ck_assert_int_eq(o.precision, NVM_PRECISION_BF16X9);
  expect(nvm_matmul_opt(a, b, &o), 4, want);
  o.dtype = NVM_F64;
  ck_assert_int_eq(nvm_dtype_of(nvm_matmul_opt(a, b, &o)), NVM_F64);
  nvm_array *a8 = nvm_astype(a, NVM_F8E4), *b8 = nvm_astype(b, NVM_F8E5), *rows = nvm_float(2);
  expect(nvm_scaled_matmul(a8, b8, rows, nvm_float(0.5), NVM_DTYPE_DEFAULT), 4, want);
  ck_assert_int_eq(nvm_dtype_of(nvm_scaled_matmul(a8, b8, rows, rows, NVM_BF16)), NVM_BF16);
  ck_assert_ptr_null(nvm_scaled_matmul(a8, b, rows, rows, NVM_DTYPE_DEFAULT));
  expect(nvm_tensordot(a, b, NULL, NULL, 1, NULL), 4, want);
  expect(nvm_tensordot(a, b, (int[]){ 0, 1 }, (int[]){ 1, 0 }, 2, NULL), 1, (float[]){ 50 });
  expect(nvm_einsum("ij,jk->ki", three, 2, NULL), 4, (float[]){ 10, 28, 13, 40 });
  expect(nvm_einsum("ij,jk,kl->l", three, 3, NULL), 3, (float[]){ 159, 250, 341 });
  int pair[2][2];
  double work;
  ck_assert_int_eq(nvm_einsum_path(pair, &work, "ij,jk,kl->l", three, 3, NVM_ORDER_OPTIMAL), NVM_OK);
  ck_assert_int_eq(pair[0][0], 0);
  ck_assert_int_eq(pair[0][1], 1);
  ck_assert_double_eq(work, 2 * 2 * 3 * 2 + 2 * 2 * 3); /* i and j at once, then k */
  ck_assert_int_eq(nvm_einsum_path(pair, &work, "ij,jk", three, 3, NVM_ORDER_AUTO), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_precision_find(&o.precision, "exact"), NVM_ERR_VALUE);
  o.version = 7;
  ck_assert_ptr_null(nvm_einsum("ij,jk", three, 2, &o));
  ck_assert_str_eq(nvm_last_error(), "[einsum] options version 7 is unknown; this library has 1");
  ck_assert_ptr_null(nvm_einsum("ij,jk", three, 3, NULL));
  ck_assert_str_eq(nvm_last_error(), "[einsum] subscripts of 2 operands for 3");
  ck_assert_ptr_null(nvm_matmul(a, NULL));
}
END_TEST

START_TEST(test_errors_name_shapes) {
  nvm_array *a = ramp(3), *b = ramp(4), *r = nvm_add(a, b);
  ck_assert_ptr_null(r);
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add]"));
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "(3,)"));
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "(4,)"));
  float out[4];
  ck_assert_ptr_null(nvm_sqrt(nvm_mul(r, a))); /* NULL passes through, the first message stays */
  ck_assert_int_eq(nvm_copy_to_host(r, out, sizeof out), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add]"));
}
END_TEST

START_TEST(test_scope_keeps_first_failure) {
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_add(ramp(3), ramp(4));
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
  nvm_scope *outer = nvm_scope_open(ctx), *inner = nvm_scope_open(ctx);
  ck_assert_int_eq(nvm_scope_close(outer), NVM_ERR_STATE); /* not the innermost */
  ck_assert_int_eq(nvm_scope_close(inner), NVM_OK);
  ck_assert_int_eq(nvm_scope_close(outer), NVM_OK);
}
END_TEST

START_TEST(test_no_scope) {
  nvm_array *kept = nvm_array_ref(ramp(3));
  nvm_scope_close(scope);
  ck_assert_ptr_null(nvm_neg(kept));
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_STATE);
  scope = nvm_scope_open(ctx);
  expect(kept, 3, (float[]){ 0, 1, 2 });
  nvm_array_unref(kept);
}
END_TEST

START_TEST(test_shapes_that_cannot_be) {
  int64_t neg[1] = { -1 }, huge[2] = { INT64_MAX / 4, 1000 }, many[40];
  float x = 0;
  for (int i = 0; i < 40; i++) many[i] = 1;
  ck_assert_ptr_null(nvm_from_host(ctx, NVM_F32, 1, neg, &x));
  ck_assert_ptr_null(nvm_from_host(ctx, NVM_F32, 2, huge, &x));
  ck_assert_ptr_null(nvm_from_host(ctx, NVM_F32, 33, many, &x));
  ck_assert_ptr_nonnull(nvm_from_host(ctx, NVM_F32, 32, many, &x));
  ck_assert_ptr_null(nvm_neg(nvm_none()));
}
END_TEST

START_TEST(test_wrong_bytes) {
  float out[4];
  ck_assert_int_eq(nvm_copy_to_host(ramp(3), out, sizeof out), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "12"));
}
END_TEST

static int released;
static void release(void *owner) { released += *(int *)owner; }
START_TEST(test_borrow) {
  static float x[6] = { 0, 1, 2, 3, 4, 5 };
  int one = 1;
  int64_t n = 3, stride = -8;
  released = 0;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *a = nvm_from_host_borrow(ctx, NVM_F32, 1, &n, &stride, x + 5, release, &one);
  expect(nvm_add(a, nvm_float(0)), 3, (float[]){ 5, 3, 1 });
  ck_assert_int_eq(released, 0);
  nvm_scope_close(s);
  ck_assert_int_eq(released, 1);
}
END_TEST

START_TEST(test_assignment_and_views) {
  nvm_array *a = ramp(6);
  int64_t start = 1, count = 3, step = 2;
  nvm_array *v = nvm_view(a, 1, &start, &count, &step, NULL), *before = nvm_add(a, nvm_float(0));
  ck_assert_int_eq(nvm_assign(v, nvm_float(10)), NVM_OK);
  expect(a, 6, (float[]){ 0, 10, 2, 10, 4, 10 });
  expect(v, 3, (float[]){ 10, 10, 10 });
  expect(before, 6, (float[]){ 0, 1, 2, 3, 4, 5 });
  int64_t s2 = 2, c2 = 1, p2 = 1;
  int drop = 1;
  nvm_array *w = nvm_view(v, 1, &s2, &c2, &p2, &drop);
  ck_assert_int_eq(nvm_rank(w), 0);
  ck_assert_int_eq(nvm_assign(w, nvm_int(7)), NVM_OK); /* a view of a view */
  expect(a, 6, (float[]){ 0, 10, 2, 10, 4, 7 });
  expect(v, 3, (float[]){ 10, 10, 7 });
  ck_assert_int_eq(nvm_assign(v, ramp(2)), NVM_ERR_VALUE);
  nvm_array *r = nvm_view_as(v, 2, (int64_t[]){ 3, 1 }); /* in another shape */
  ck_assert_int_eq(nvm_assign(r, nvm_reshape(ramp(3), 2, (int64_t[]){ 3, 1 })), NVM_OK);
  expect(a, 6, (float[]){ 0, 0, 2, 1, 4, 2 });
  ck_assert_int_eq(nvm_assign(a, nvm_int(9)), NVM_OK);
  expect(r, 3, (float[]){ 9, 9, 9 });
  ck_assert_ptr_null(nvm_view_as(v, 2, (int64_t[]){ 3, 2 }));
  ck_assert_ptr_null(nvm_view_as(v, NVM_MAX_RANK + 1, (int64_t[NVM_MAX_RANK + 1]){ 3 }));
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_INDEX);
  ck_assert_str_eq(nvm_last_error(), "[view_as] 33 dimensions; at most 32 are possible");
  nvm_array_unref(r);
  nvm_array_unref(v);
  nvm_array_unref(w);
}
END_TEST

START_TEST(test_held_values) {
  nvm_array *a = ramp(4);
  int64_t start = 1, count = 2, step = 1;
  nvm_array *v = nvm_view(a, 1, &start, &count, &step, NULL);
  ck_assert_int_eq(nvm_eval(&v, 1), NVM_OK);
  ck_assert(!nvm_is_pending(v));
  nvm_array *held = nvm_hold(v);
  ck_assert_int_eq(nvm_assign(a, nvm_float(5)), NVM_OK);
  ck_assert(nvm_is_pending(v) && !nvm_is_pending(held)); /* the view has to be derived again */
  expect(held, 2, (float[]){ 1, 2 });
  expect(v, 2, (float[]){ 5, 5 });
  ck_assert_int_eq(nvm_trace_begin(ctx), NVM_OK); /* a's value can be read here, and is none of the trace's inputs */
  nvm_array *inside = nvm_hold(a), *input = nvm_snapshot(a);
  ck_assert(nvm_is_pending(input));
  expect(inside, 4, (float[]){ 5, 5, 5, 5 });
  ck_assert_int_eq(nvm_trace_end(ctx), NVM_OK);
  nvm_array_unref(v);
  nvm_array_unref(held);
  nvm_array_unref(inside);
  nvm_array_unref(input);
  ck_assert_ptr_null(nvm_hold(NULL));
}
END_TEST

static int affine(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)c, (void)nin, (void)nout;
  (*(int *)user)++;
  out[0] = nvm_add(nvm_mul(in[0], nvm_float(2)), in[1]);
  return NVM_OK;
}
START_TEST(test_function) {
  int traces = 0;
  nvm_fn *f;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, affine, &traces, 2, 1), NVM_OK);
  for (int i = 0; i < 5; i++) {
    nvm_array *in[2] = { ramp(4), ramp(4) }, *out;
    ck_assert_msg(nvm_fn_call(f, in, &out) == NVM_OK, "%s", nvm_last_error());
    expect(out, 4, (float[]){ 0, 3, 6, 9 });
    nvm_array_unref(out);
  }
  ck_assert_int_eq(traces, 1);
  nvm_array *other[2] = { ramp(2), ramp(2) }, *out;
  ck_assert_int_eq(nvm_fn_call(f, other, &out), NVM_OK);
  nvm_array_unref(out);
  ck_assert_int_eq(traces, 2);
  nvm_fn_free(f);
}
END_TEST

static int peeks(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  float x;
  out[0] = in[0];
  return nvm_copy_to_host(nvm_sum(in[0], NULL, -1, 0), &x, sizeof x);
}
START_TEST(test_placeholder_has_no_value) {
  nvm_fn *f;
  nvm_array *in = ramp(4), *out = NULL;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, peeks, NULL, 1, 1), NVM_OK);
  ck_assert_int_eq(nvm_fn_call(f, &in, &out), NVM_ERR_STATE);
  ck_assert_ptr_null(out);
  nvm_fn_free(f);
}
END_TEST

static nvm_array *outside;
static int captures(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_add(in[0], outside);
  return NVM_OK;
}
START_TEST(test_captured_arrays_are_read_again) {
  nvm_fn *f;
  nvm_array *in = ramp(3), *out;
  outside = ramp(3);
  ck_assert_int_eq(nvm_fn_new(&f, ctx, captures, NULL, 1, 1), NVM_OK);
  ck_assert_int_eq(nvm_fn_call(f, &in, &out), NVM_OK);
  expect(out, 3, (float[]){ 0, 2, 4 });
  nvm_array_unref(out);
  ck_assert_int_eq(nvm_assign(outside, nvm_float(5)), NVM_OK);
  ck_assert_int_eq(nvm_fn_call(f, &in, &out), NVM_OK);
  expect(out, 3, (float[]){ 5, 6, 7 });
  nvm_array_unref(out);
  nvm_fn_free(f);
}
END_TEST

static int doubled(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_mul(in[0], in[1]);
  return NVM_OK;
}
START_TEST(test_weak_arguments) {
  nvm_fn *f;
  nvm_array *out;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, doubled, NULL, 2, 1), NVM_OK);
  for (int k = 2; k < 5; k++) {
    nvm_array *in[2] = { ramp(3), nvm_float(k) };
    ck_assert_msg(nvm_fn_call(f, in, &out) == NVM_OK, "%s", nvm_last_error());
    ck_assert_int_eq(nvm_dtype_of(out), NVM_F32); /* a number takes the dtype of what it meets */
    expect(out, 3, (float[]){ 0, (float)k, (float)(2 * k) });
    nvm_array_unref(out);
  }
  nvm_fn_free(f);
}
END_TEST

static int stumbles(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_add(in[0], ramp(7)) ? NULL : nvm_neg(in[0]); /* goes on after a failure */
  return NVM_OK;
}
START_TEST(test_failures_inside_a_trace_leave_nothing) {
  nvm_fn *f;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, stumbles, NULL, 1, 1), NVM_OK);
  int64_t live = 0;
  for (int i = 0; i < 8; i++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *in = ramp(3), *out;
    ck_assert_int_eq(nvm_fn_call(f, &in, &out), NVM_ERR_VALUE);
    ck_assert_ptr_null(out);
    nvm_scope_close(s);
    if (i == 3) live = nvb_live_blocks();
  }
  ck_assert_int_eq(nvb_live_blocks(), live);
  nvm_fn_free(f);
}
END_TEST

START_TEST(test_settings_stay) {
  const char *name, *value, *def, *doc;
  ck_assert_int_eq(nvm_set("num_threads", "3"), NVM_OK);
  ck_assert_int_eq(nvm_set("fuse", "on"), NVM_OK);
  for (int i = 0; nvm_setting(i, &name, &value, &def, &doc); i++)
    if (!strcmp(name, "NVM_NUM_THREADS")) ck_assert_str_eq(value, "3");
  ck_assert_int_eq(nvm_set("num_threads", "0"), NVM_OK);
  ck_assert_int_eq(nvm_set("no such thing", "0"), NVM_ERR_VALUE);
}
END_TEST

START_TEST(test_arguments_that_cannot_be) {
  int64_t n = 3, huge = (int64_t)9 << 46;
  float x[3] = { 0 };
  int one = 1;
  ck_assert_ptr_null(nvm_from_host(ctx, NVM_DTYPE_DEFAULT, 1, &n, x));
  ck_assert_ptr_null(nvm_from_host(ctx, (nvm_dtype)99, 1, &n, x));
  ck_assert_ptr_null(nvm_astype(ramp(3), (nvm_dtype)-5));
  ck_assert_ptr_null(nvm_zeros(NULL, NVM_F32, 1, &n));
  nvm_array *big = nvm_zeros(ctx, NVM_F64, 1, &huge);
  ck_assert(!big || nvm_eval(&big, 1) == NVM_ERR_MEMORY);
  released = 0;
  n = -1;
  ck_assert_ptr_null(nvm_from_host_borrow(ctx, NVM_F32, 1, &n, NULL, x, release, &one));
  ck_assert_int_eq(released, 1);
}
END_TEST

/* ---- memory */
static int64_t used(void) {
  nvm_counters c;
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.bytes_used;
}
static void loop(long steps, int read_each) {
  nvm_array *x = nvm_array_ref(ramp(8));
  int64_t live = 0, bytes = 0;
  for (long i = 0; i < steps; i++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *y = nvm_array_ref(nvm_add(nvm_mul(x, nvm_float(0.5)), nvm_float(1)));
    float out[8];
    if (read_each) ck_assert_int_eq(nvm_copy_to_host(y, out, sizeof out), NVM_OK);
    nvm_array_unref(x);
    x = y;
    ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
    if (i == steps / 2) live = nvb_live_blocks(), bytes = used();
  }
  ck_assert_int_le(nvb_live_blocks(), live + 4000); /* the pending graph: less than 512 steps of it */
  ck_assert_int_le(used(), bytes + 4096);
  nvm_array_unref(x);
}
START_TEST(test_million_unread_steps) { loop(1000000, 0); }
END_TEST
START_TEST(test_many_read_steps) { loop(100000, 1); }
END_TEST

/* A build-eval-free cycle in which the k-th allocation fails: a status, nothing leaked, and the next cycle works. */
static int cycle(void) {
  float out[8];
  nvm_scope *s = nvm_scope_open(ctx);
  if (!s) return NVM_ERR_MEMORY;
  nvm_array *a = ramp(8), *r = nvm_mul(nvm_exp(nvm_neg(a)), nvm_sum(a, NULL, -1, 0));
  int status = nvm_copy_to_host(r, out, sizeof out), inner = nvm_scope_close(s);
  return status ? status : inner;
}
START_TEST(test_allocation_failures) {
  ck_assert_int_eq(nvm_set("CACHE_DIR", "off"), NVM_OK);
  ck_assert_int_eq(cycle(), NVM_OK);
  ck_assert_int_eq(cycle(), NVM_OK);
  int64_t live = nvb_live_blocks();
  int failures = 0, clean = 0;
  for (int k = 1; k < 5000 && clean < 3; k++)
    for (int sticky = 0; sticky < 2; sticky++) {
      nvm_set("VERBOSE", k & 1 ? "0" : "1"); /* settings are part of the key: the whole pipeline runs again */
      nvm_set("VERBOSE", "0");
      nvb_fail_alloc(k, sticky);
      int status = cycle();
      nvb_fail_alloc(0, 0);
      failures += status != NVM_OK;
      clean = status == NVM_OK ? clean + sticky : 0;
      ck_assert_msg(status == NVM_OK || status == NVM_ERR_MEMORY, "%d at allocation %d: %s", status, k,
                    nvm_last_error());
      ck_assert_int_eq(cycle(), NVM_OK);
    }
  ck_assert_int_gt(failures, 20);
  ck_assert_int_eq(clean, 3);
  ck_assert_int_le(nvb_live_blocks(), live + 12 * 5000); /* programs are remembered; nothing else stays */
}
END_TEST

START_TEST(test_what_compiles) {
  int status = nvm_llvm_usable();
  ck_assert_msg(!status || (!getenv("NVM_EXPECT_LLVM") && strstr(nvm_last_error(), "llvm")), "%s", nvm_last_error());
  nvm_array *y = nvm_sum(nvm_sin(nvm_arange(ctx, NVM_F64, 0, 1 << 18, 1)), NULL, -1, 0);
  ck_assert_msg(!nvm_eval(&y, 1), "%s", nvm_last_error());
  ck_assert_int_eq(nvm_llvm_missed(), status != NVM_OK); /* 2 MB: the kernel is worth compiling */
}
END_TEST

SUITE_WITH("api", open_all, close_all, test_expression, test_together_and_explain, test_products,
           test_errors_name_shapes, test_scope_keeps_first_failure, test_no_scope, test_shapes_that_cannot_be,
           test_wrong_bytes, test_borrow, test_assignment_and_views, test_held_values, test_function,
           test_placeholder_has_no_value, test_captured_arrays_are_read_again, test_weak_arguments,
           test_failures_inside_a_trace_leave_nothing, test_settings_stay, test_arguments_that_cannot_be,
           test_million_unread_steps, test_many_read_steps, test_what_compiles, test_allocation_failures)
