/* What a traced function writes to its parameters, by the calls on which bindings are built: in place where nobody else
   holds the array, in borrowed memory if the caller says so, and nothing if an index is out of range. */
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"

enum { N = 64 };
static nvm_ctx *ctx;
static nvm_scope *scope;
static nvm_traced *traced; /* a[2:5] = a[0:3] + v, a[i] = 9, and its sum over all */
static nvm_array *param[3];
static int trace(void) {
  int64_t three = 3, n = N, zero = 0, two = 2, one = 1;
  int done;
  nvm_array *a = nvm_snapshot(param[0]), *v = nvm_view(a, 1, &zero, &three, &one, NULL);
  int status = nvm_assign_view(a, 1, &two, &three, &one, NULL, nvm_add(v, param[1]));
  if (!status) status = nvm_assign_at(&done, a, 1, &(nvm_index){ .at = param[2] }, 0, nvm_float(9));
  ck_assert(!status && done && n == nvm_size(a));
  nvm_array *out = nvm_sum(a, NULL, -1, 0);
  status = nvm_traced_new_writing(&traced, ctx, param, 3, &out, 1, (int[]){ 0 }, &a, 1, NULL);
  nvm_array_unref(v), nvm_array_unref(a);
  return status;
}
static void begin(void) {
  const int64_t n = N, two = 2;
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CPU;
  ck_assert_int_eq(nvm_ctx_new(&ctx, &o), NVM_OK);
  ck_assert_int_eq(nvm_trace_begin(ctx), NVM_OK);
  scope = nvm_scope_open(ctx);
  param[0] = nvm_placeholder(ctx, NVM_F32, 1, &n);
  param[1] = nvm_placeholder(ctx, NVM_F32, 0, NULL);
  param[2] = nvm_placeholder(ctx, NVM_I64, 1, &two);
  ck_assert_msg(trace() == NVM_OK, "%s", nvm_last_error());
  nvm_scope_close(scope);
  for (int i = 0; i < 3; i++) nvm_array_unref(param[i]);
  ck_assert_int_eq(nvm_trace_end(ctx), NVM_OK);
  scope = nvm_scope_open(ctx);
}
static void end(void) {
  nvm_traced_free(traced);
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
}
static nvm_array *zeros(void) { return nvm_from_host(ctx, NVM_F32, 1, (int64_t[]){ N }, (const float[N]){ 0 }); }
static nvm_array *list(int64_t a, int64_t b) {
  return nvm_from_host(ctx, NVM_I64, 1, (int64_t[]){ 2 }, (const int64_t[]){ a, b });
}
static nvm_array *number(float x) { return nvm_from_host(ctx, NVM_F32, 0, NULL, &x); }
/* Calls the function and stores what it writes. Returns the status. */
static int run(nvm_array *a, float v, nvm_array *at, const unsigned char *lent, float *sum) {
  enum { MOST = 8 };
  nvm_array *in[] = { a, number(v), at }, *out[MOST] = { NULL };
  ck_assert_int_le(nvm_traced_outputs(traced), MOST);
  ck_assert_msg(nvm_traced_call(traced, in, out) == NVM_OK, "%s", nvm_last_error());
  int status = nvm_traced_store(traced, in, lent, out);
  if (!status) ck_assert_int_eq(nvm_copy_to_host(out[0], sum, sizeof *sum), NVM_OK);
  for (int i = 0; i < nvm_traced_outputs(traced); i++) nvm_array_unref(out[i]);
  return status;
}
static const float *elements(nvm_array *a) {
  const void *data;
  ck_assert_int_eq(nvm_data(&data, NULL, a), NVM_OK);
  return data;
}

START_TEST(an_argument_is_written_in_place) {
  nvm_array *a = zeros();
  const float *before = elements(a);
  float sum = 0;
  ck_assert_int_eq(run(a, 1, list(7, -1), NULL, &sum), NVM_OK);
  ck_assert_float_eq(sum, 21);
  ck_assert_ptr_eq(elements(a), before);
  ck_assert(before[1] == 0 && before[2] == 1 && before[4] == 1 && before[7] == 9 && before[N - 1] == 9);
}
END_TEST
START_TEST(what_holds_an_argument_keeps_its_elements) {
  nvm_array *a = zeros(), *old = nvm_snapshot(a);
  float sum = 0;
  ck_assert_int_eq(run(a, 1, list(7, 7), NULL, &sum), NVM_OK);
  ck_assert_float_eq(elements(old)[2], 0);
  ck_assert_float_eq(elements(a)[2], 1);
  nvm_array_unref(old);
}
END_TEST
START_TEST(an_index_out_of_range_stores_nothing) {
  nvm_array *a = zeros();
  float sum = 0;
  ck_assert_int_eq(run(a, 1, list(7, -1), NULL, &sum), NVM_OK);
  enum { MOST = 8 };
  nvm_array *in[] = { a, number(5), list(0, N) }, *out[MOST] = { NULL };
  int status = nvm_traced_call(traced, in, out);
  if (!status) status = nvm_traced_store(traced, in, NULL, out);
  ck_assert_int_eq(status, NVM_ERR_INDEX);
  ck_assert_str_eq(nvm_last_error() + 1, "setitem] index 64 is out of range for axis 0 of extent 64");
  for (int i = 0; i < nvm_traced_outputs(traced); i++) nvm_array_unref(out[i]);
  ck_assert(elements(a)[0] == 0 && elements(a)[2] == 1);
}
END_TEST
static void release_nothing(void *owner) { (void)owner; }
START_TEST(borrowed_memory_is_written_if_the_caller_says_so) { /* every second element, from the last one on */
  float x[2 * N] = { 0 }, sum = 0;
  const int64_t n = N, stride = -2 * (int64_t)sizeof *x;
  const unsigned char lent[] = { 1, 0, 0 };
  float *last = x + 2 * N - 1;
  for (int k = 0; k < 2; k++) {
    nvm_array *a = nvm_array_new_host(ctx, NVM_F32, 1, &n, &stride, last, release_nothing, NULL);
    ck_assert_int_eq(run(a, 1, list(7, -1), k ? lent : NULL, &sum), NVM_OK);
    ck_assert_float_eq(last[2 * -2], (float)k);
    ck_assert_float_eq(x[1], (float)(9 * k));
    ck_assert_float_eq(x[0] + last[-1], 0);
    if (!k) ck_assert_float_eq(*elements(a), 0);
    nvm_array_unref(a);
  }
}
END_TEST
START_TEST(lists_are_checked) {
  nvm_array *out[8] = { NULL }, *in[3] = { NULL };
  nvm_traced *t;
  ck_assert_int_ne(nvm_traced_store(traced, in, NULL, out), NVM_OK);
  ck_assert_int_eq(nvm_traced_outputs(NULL), 0);
  nvm_array *a = zeros();
  ck_assert_int_eq(nvm_traced_new_writing(&t, ctx, &a, 1, NULL, 0, (int[]){ 1 }, &a, 1, NULL), NVM_ERR_VALUE);
  ck_assert_int_ne(nvm_traced_new_writing(&t, ctx, &a, 1, NULL, 0, NULL, NULL, 1, NULL), NVM_OK);
  ck_assert_ptr_null(t);
}
END_TEST

/* ---- functions in C */
static nvm_array *captured;
static int write_and_add(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  const int64_t start = 1, two = 2, one = 1;
  int status = nvm_assign_view(in[0], 1, &start, &two, &one, NULL, in[1]), whole = *(int *)user;
  if (!status && whole) status = nvm_assign(in[0], nvm_add(in[0], nvm_float(1)));
  ck_assert(c == ctx && nin == 2 && nout == 2);
  out[0] = nvm_add(in[0], in[1]);
  out[1] = captured ? captured : in[0];
  return status;
}
START_TEST(functions_write_to_their_arguments) { /* to a part, and to all */
  for (int whole = 0; whole < 2; whole++) {
    nvm_fn *f;
    nvm_array *a = zeros(), *out[2], *before[2];
    ck_assert_int_eq(nvm_fn_new(&f, ctx, write_and_add, &whole, 2, 2), NVM_OK);
    for (int k = 0; k < 3; k++) {
      before[0] = nvm_snapshot(a);
      ck_assert_msg(nvm_fn_call(f, (nvm_array *[]){ a, number(5) }, out) == NVM_OK, "%s", nvm_last_error());
      float add = (float)(whole * (k + 1)), five = (float)(5 + whole);
      ck_assert(elements(a)[0] == add && elements(a)[1] == five && elements(a)[2] == five && elements(a)[3] == add);
      ck_assert(elements(out[0])[0] == add + 5 && elements(out[1])[1] == five && elements(out[1])[3] == add);
      ck_assert_float_eq(elements(before[0])[3], (float)(whole * k));
      for (int i = 0; i < 2; i++) nvm_array_unref(out[i]);
      nvm_array_unref(before[0]);
    }
    ck_assert_int_eq(nvm_fn_free(f), NVM_OK);
  }
}
END_TEST
START_TEST(functions_do_not_write_to_what_they_read_elsewhere) {
  nvm_fn *f;
  int whole = 0;
  const int64_t low = 0, high = N / 2, half = N / 2, one = 1;
  nvm_array *a = zeros(), *out[2];
  nvm_array *first = nvm_view(a, 1, &low, &half, &one, NULL), *second = nvm_view(a, 1, &high, &half, &one, NULL);
  nvm_array *pair = nvm_view(a, 1, &one, &(int64_t){ 2 }, &one, NULL);
  captured = NULL;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, write_and_add, &whole, 2, 2), NVM_OK);
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ a, a }, out), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ first, nvm_sum(pair, NULL, -1, 0) }, out), NVM_OK);
  for (int i = 0; i < 2; i++) nvm_array_unref(out[i]);
  ck_assert_int_eq(nvm_fn_free(f), NVM_OK);
  captured = second;
  ck_assert_int_eq(nvm_fn_new(&f, ctx, write_and_add, &whole, 2, 2), NVM_OK);
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ first, number(4) }, out), NVM_OK);
  for (int i = 0; i < 2; i++) nvm_array_unref(out[i]);
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ second, number(6) }, out), NVM_ERR_VALUE);
  ck_assert(!out[0] && !out[1] && elements(a)[1] == 4 && elements(a)[N / 2 + 1] == 0);
  ck_assert_int_eq(nvm_fn_free(f), NVM_OK);
  captured = NULL;
  nvm_array_unref(first), nvm_array_unref(second), nvm_array_unref(pair);
}
END_TEST

SUITE_WITH("stores", begin, end, an_argument_is_written_in_place, what_holds_an_argument_keeps_its_elements,
           an_index_out_of_range_stores_nothing, borrowed_memory_is_written_if_the_caller_says_so, lists_are_checked,
           functions_write_to_their_arguments, functions_do_not_write_to_what_they_read_elsewhere)
