/* Contexts, scopes, devices and donation from C. What needs a GPU runs on the emulator where NVM_CUDA_DIR names it, and
   says so where there is none. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/err.h"
#include "base/mem.h"
#include "nvm/nvm.h"

static nvm_ctx *context(nvm_device d) {
  nvm_ctx *c = NULL;
  nvm_ctx_options o;
  ck_assert_int_eq(nvm_ctx_options_init(&o, NVM_CTX_OPTIONS_VERSION), NVM_OK);
  o.device = d;
  ck_assert_int_eq(nvm_ctx_new(&c, &o), NVM_OK);
  return c;
}
static nvm_array *ramp(nvm_ctx *c, int64_t n) {
  float *at = malloc(sizeof *at * (size_t)n);
  for (int64_t i = 0; i < n; i++) at[i] = (float)i;
  nvm_array *a = nvm_from_host(c, NVM_F32, 1, &n, at);
  free(at);
  return a;
}
static void ck_values(nvm_array *a, float scale, float shift) {
  float out[64];
  int64_t n = nvm_size(a);
  ck_assert_int_eq(nvm_copy_to_host(a, out, sizeof *out * (size_t)n), NVM_OK);
  for (int64_t i = 0; i < n; i++) ck_assert_float_eq(out[i], scale * (float)i + shift);
}

static int freed;
static void count_freed(void *owner) { (void)owner, freed++; }

START_TEST(options_of_the_first_version_still_work) {
  struct {
    unsigned version;
    nvm_dtype default_float;
    char behind;
  } old = { .behind = 77 };
  ck_assert_int_eq(nvm_ctx_options_init((nvm_ctx_options *)(void *)&old, 1), NVM_OK);
  ck_assert_uint_eq(old.version, 1);
  ck_assert_int_eq(old.default_float, NVM_F64);
  ck_assert_int_eq(old.behind, 77);
  nvm_ctx *c;
  old.default_float = NVM_F32;
  ck_assert_int_eq(nvm_ctx_new(&c, (nvm_ctx_options *)(void *)&old), NVM_OK);
  ck_assert_int_eq(nvm_ctx_default_float(c), NVM_F32);
  nvm_ctx_free(c);
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  ck_assert_int_eq(nvm_ctx_options_init(&o, 3), NVM_ERR_VALUE);
  o.version = 3;
  ck_assert_int_eq(nvm_ctx_new(&c, &o), NVM_ERR_VALUE);
}
END_TEST

START_TEST(two_contexts_do_not_meet) {
  nvm_ctx *c = context(NVM_DEVICE_CPU), *d = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c), *t;
  nvm_array *x = ramp(c, 8), *y = ramp(d, 8);
  ck_assert_ptr_null(nvm_add(x, y));
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add] the arrays belong to different contexts"));
  ck_assert_int_eq(nvm_assign(x, y), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_eval((nvm_array *[]){ x, y }, 2), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(t = nvm_scope_open(d));
  ck_assert_ptr_nonnull(nvm_add(y, y));
  ck_assert_int_eq(nvm_scope_close(t), NVM_OK);
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
  nvm_ctx_free(c), nvm_ctx_free(d);
}
END_TEST

START_TEST(a_null_array_gives_the_scopes_first_failure) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 8), *y = ramp(c, 7);
  float out[8];
  nvm_array *bad = nvm_mul(nvm_add(x, y), nvm_float(2));
  ck_assert_ptr_null(bad);
  ck_assert_ptr_null(nvm_bitwise_and(x, x)); /* a second failure, of another kind */
  ck_assert_int_eq(nvm_last_status(), NVM_ERR_TYPE);
  ck_assert_int_eq(nvm_copy_to_host(bad, out, sizeof out), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add]"));
  ck_assert_ptr_null(nvm_bitwise_and(x, x));
  ck_assert_int_eq(nvm_eval(&bad, 1), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add]"));
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(inner_failures_go_to_the_outer_scope) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c), *t = nvm_scope_open(c);
  ck_assert_ptr_null(nvm_add(ramp(c, 8), ramp(c, 7)));
  ck_assert_int_eq(nvm_scope_close(t), NVM_ERR_VALUE);
  ck_assert_ptr_null(nvm_bitwise_and(ramp(c, 2), ramp(c, 2)));
  ck_assert_int_eq(nvm_eval((nvm_array *[]){ NULL }, 1), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add]"));
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(donated_memory_is_taken) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 64), *y = nvm_mul(x, nvm_float(2));
  const void *before, *after;
  ck_assert_int_eq(nvm_data(&before, NULL, x), NVM_OK);
  ck_assert_int_eq(nvm_donate(x), NVM_OK);
  ck_assert_int_eq(nvm_data(&after, NULL, y), NVM_OK);
  ck_assert_ptr_eq(before, after);
  ck_values(y, 2, 0);
  ck_assert_int_eq(nvm_data(&before, NULL, x), NVM_ERR_STATE);
  ck_assert_ptr_null(nvm_add(x, x));
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "donated"));
  ck_assert_int_eq(nvm_donate(x), NVM_ERR_STATE);
  ck_assert_int_eq(nvm_donate(nvm_none()), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_donate(nvm_float(1)), NVM_ERR_VALUE);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(devices_have_names) {
  nvm_device d;
  ck_assert_int_eq(nvm_device_find(&d, "auto"), NVM_OK);
  ck_assert_int_eq(d, NVM_DEVICE_AUTO);
  ck_assert_int_eq(nvm_device_find(&d, "cpu"), NVM_OK);
  ck_assert_int_eq(d, NVM_DEVICE_CPU);
  ck_assert_int_eq(nvm_device_find(&d, "cuda"), NVM_OK);
  ck_assert_int_eq(d, NVM_DEVICE_CUDA);
  ck_assert_int_eq(nvm_device_find(&d, "cuda:12"), NVM_OK);
  ck_assert_int_eq(d, NVM_DEVICE_CUDA + 12);
  static const char *const bad[] = { "", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:9999", "cuda1" };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) ck_assert_int_eq(nvm_device_find(&d, bad[i]), NVM_ERR_VALUE);
  ck_assert_str_eq(nvm_last_error(), "[device_find] there is no device 'cuda1'; devices are 'cpu', 'cuda', 'cuda:0', "
                                     "'cuda:1' and so on");
  nvm_device_info info;
  ck_assert_int_eq(nvm_device_info_get(&info, NVM_DEVICE_INFO_VERSION, NVM_DEVICE_CPU), NVM_OK);
  ck_assert_int_ge(info.units, 1);
  ck_assert_int_eq(nvm_device_info_get(&info, 99, NVM_DEVICE_CPU), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_device_info_get(&info, NVM_DEVICE_INFO_VERSION, NVM_DEVICE_AUTO), NVM_ERR_VALUE);
}
END_TEST

#define is_refused(call, text)                          \
  do {                                                  \
    (void)(call);                                       \
    ck_assert_str_eq(nvm_last_error(), text);           \
    ck_assert_int_eq(nvm_last_status(), NVM_ERR_VALUE); \
  } while (0)
START_TEST(messages_name_the_call_and_the_value) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 8);
  nvm_device_info info;
  nvm_device_memory memory;
  nvm_tune_options options = NVM_TUNE_OPTIONS_INIT;
  void *stream;
  int sum;
  ck_assert_int_eq(nvm_op_find(&sum, "sum"), NVM_OK);
  options.seconds = -1;
  is_refused(nvm_device_usable(-3), "[device_usable] there is no device of number -3");
  is_refused(nvm_device_info_get(&info, NVM_DEVICE_INFO_VERSION, -3),
             "[device_info_get] there is no device of number -3");
  is_refused(nvm_device_memory_get(&memory, NVM_DEVICE_MEMORY_VERSION, c, -3),
             "[device_memory_get] there is no device of number -3");
  is_refused(nvm_stream_get(&stream, c, -3), "[stream_get] there is no device of number -3");
  is_refused(nvm_array_to_device(x, -3), "[to_device] there is no device of number -3");
  is_refused(nvm_ctx_device_set(c, -3), "[ctx_device_set] there is no device of number -3");
  is_refused(nvm_thread_device_set(NULL, -3), "[thread_device_set] there is no device of number -3");
  is_refused(nvm_device_memory_limit(c, NVM_DEVICE_CPU, -5),
             "[device_memory_limit] the limit is -5 bytes; it must be 0 (none) or more");
  is_refused(nvm_apply_scalar(c, 0, 1, 1, 0),
             "[apply_scalar] the kind is character 0; kinds are 'b', 'i', 'u', 'f', 'c' and 'h'");
  is_refused(nvm_placeholder_scalar(c, 'x', NULL),
             "[placeholder_scalar] the kind is character 120; kinds are 'b', 'i', 'u', 'f', 'c' and 'h'");
  is_refused(nvm_tune_begin(&options), "[tune_begin] the budget is -1 seconds; it must be 0 (60 s) or more");
  is_refused(nvm_apply(c, sum, &x, -1, NULL, 0), "[sum] the number of operands is -1; it must be 0 or more");
  is_refused(nvm_apply(c, sum, &x, 1, NULL, 65), "[sum] the number of attributes is 65; it must be from 0 to 64");
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(what_cannot_be_is_refused) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 8);
  nvm_device_info info;
  char *text;
  ck_assert_int_eq(nvm_device_info_get(&info, NVM_DEVICE_INFO_VERSION, -3), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_eval(&x, -1), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_explain(&text, &x, -1), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_explain(&text, (nvm_array *[]){ x, nvm_none() }, 2), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[explain] array 1 is absent"));
  ck_assert_int_eq(nvm_assign(x, nvm_none()), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_assign(nvm_none(), x), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "an absent operand"));
  ck_assert_ptr_null(nvm_concat(&x, -1, 0));
  ck_assert_ptr_null(nvm_einsum("i->i", &x, -1, NULL));
  nvm_array *none = nvm_zeros(c, NVM_F32, 4, (int64_t[]){ (int64_t)1 << 40, 0, (int64_t)1 << 40, (int64_t)1 << 40 });
  if (none) ck_assert_int_eq(nvm_eval(&none, 1), NVM_OK); /* has no elements, whatever the other extents */
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(what_lies_between_may_change) { /* NVM_CHECK=borrow looks at what was lent alone */
  float x[16] = { 0 };
  nvm_set("check", "borrow");
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  int64_t n = 8, stride = 8;
  static int owner;
  nvm_array *a = nvm_from_host_borrow(c, NVM_F32, 1, &n, &stride, x, count_freed, &owner);
  x[1] = x[15] = 7;
  ck_values(nvm_add(a, nvm_float(1)), 0, 1);
  x[14] = 7;
  nvm_array *bad = nvm_add(a, nvm_float(2));
  ck_assert_int_eq(nvm_eval(&bad, 1), NVM_ERR_STATE);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

/* ---- many at once */
START_TEST(many_outputs_are_all_or_those_before) {
  enum { N = 150 };
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 40), *y[N];
  nvm_counters before, after;
  for (int turn = 0; turn < 2; turn++) { /* one planning and one evaluation, however many; then a call of it */
    nvm_counters_get(&before, NVM_COUNTERS_VERSION);
    for (int i = 0; i < N; i++) y[i] = nvm_add(nvm_mul(x, nvm_float(i)), nvm_float(turn));
    ck_assert_int_eq(nvm_eval(y, N), NVM_OK);
    nvm_counters_get(&after, NVM_COUNTERS_VERSION);
    ck_assert_int_eq(after.evaluations - before.evaluations, 1);
    for (int i = 0; i < N; i++) {
      ck_assert_int_eq(nvm_is_pending(y[i]), 0);
      ck_values(y[i], (float)i, (float)turn);
    }
  }
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(a_gpu_that_is_not_there_is_an_error_when_asked_for) {
  nvm_set("cuda_dir", "off");
  nvm_ctx *c = context(NVM_DEVICE_AUTO), *none = NULL;
  ck_assert_int_eq(nvm_device_count(), 0);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 8);
  ck_values(nvm_add(x, x), 2, 0);
  ck_assert_int_eq(nvm_device_of(x), NVM_DEVICE_CPU);
  ck_assert_int_eq(nvm_ctx_device(c), NVM_DEVICE_CPU);
  ck_assert_ptr_null(nvm_to_device(x, NVM_DEVICE_CUDA));
  ck_assert_ptr_nonnull(*nvm_last_error() ? "" : NULL);
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CUDA;
  ck_assert_int_ne(nvm_ctx_new(&none, &o), NVM_OK);
  ck_assert_ptr_null(none);
  ck_assert_int_ne(nvm_stream_set(c, NVM_DEVICE_AUTO, NULL), NVM_OK);
  ck_assert_int_ne(nvm_thread_device_set(NULL, NVM_DEVICE_CUDA), NVM_OK);
  ck_assert_int_eq(nvm_synchronize(c), NVM_OK);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

/* ---- functions */
static atomic_int traces;
/* reads in[0] alone */
static int second(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  traces++;
  out[0] = nvm_add(in[0], nvm_float(1));
  return NVM_OK;
}
static nvm_traced *traced_second(nvm_ctx *c) {
  int64_t n = 8;
  nvm_traced *t = NULL;
  ck_assert_int_eq(nvm_trace_begin(c), NVM_OK);
  nvm_array *in[2] = { nvm_placeholder(c, NVM_F32, 1, &n), nvm_placeholder(c, NVM_F32, 1, &n) }, *out;
  ck_assert_int_eq(second(NULL, c, in, 2, &out, 1), NVM_OK);
  ck_assert_int_eq(nvm_traced_new(&t, c, in, 2, &out, 1), NVM_OK);
  nvm_array_unref(in[0]), nvm_array_unref(in[1]);
  nvm_trace_end(c);
  return t;
}
START_TEST(arguments_that_are_not_read_are_arguments_all_the_same) {
  nvm_ctx *c = context(NVM_DEVICE_CPU), *d = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c), *inner;
  nvm_array *x = ramp(c, 8), *y = ramp(c, 8), *r;
  for (int donates = 0; donates < 2; donates++) {
    nvm_traced *t = traced_second(c);
    if (donates) ck_assert_int_eq(nvm_traced_donate(t, 1), NVM_OK);
    nvb_clear();
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, NULL }, &r), NVM_ERR_VALUE);
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, nvm_none() }, &r), NVM_ERR_VALUE);
    ck_assert_ptr_nonnull(strstr(nvm_last_error(), "argument 1 is absent"));
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, ramp(c, 7) }, &r), NVM_ERR_VALUE);
    ck_assert_ptr_nonnull(inner = nvm_scope_open(d));
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, ramp(d, 8) }, &r), NVM_ERR_VALUE);
    nvm_scope_close(inner);
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, y }, &r), NVM_OK);
    ck_values(r, 1, 1);
    nvm_array_unref(r);
    const void *data;
    ck_assert_int_eq(nvm_data(&data, NULL, y), donates ? NVM_ERR_STATE : NVM_OK);
    ck_assert_int_eq(nvm_traced_call(t, (nvm_array *[]){ x, y }, &r), donates ? NVM_ERR_STATE : NVM_OK);
    if (!donates) nvm_array_unref(r);
    nvm_traced_free(t);
  }
  nvm_traced *none = NULL;
  ck_assert_int_eq(nvm_traced_new(&none, c, (nvm_array *[]){ NULL }, 1, &x, 1), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "parameter 0 is NULL"));
  ck_assert_int_eq(nvm_traced_new(&none, c, &x, 1, (nvm_array *[]){ NULL }, 1), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "output 0 is NULL"));
  nvm_scope_close(s);
  nvm_ctx_free(c), nvm_ctx_free(d);
}
END_TEST

static void call_with(nvm_fn *f, nvm_ctx *c, int64_t n) {
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, n), *r;
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ x, x }, &r), NVM_OK);
  ck_values(r, 1, 1);
  nvm_array_unref(r);
  ck_assert_int_eq(nvm_scope_close(s), NVM_OK);
}
START_TEST(a_function_forgets_what_was_long_ago) {
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_fn *f;
  traces = 0;
  ck_assert_int_eq(nvm_fn_new(&f, c, second, NULL, 2, 1), NVM_OK);
  for (int64_t n = 1; n <= 64; n++) call_with(f, c, n);
  for (int64_t n = 1; n <= 64; n++) call_with(f, c, n);
  ck_assert_int_eq(traces, 64);
  call_with(f, c, 1); /* so that 2 is what was used longest ago */
  nvm_scope *s = nvm_scope_open(c);
  int64_t two[2] = { 8, 8 };
  nvm_array *m = nvm_zeros(c, NVM_F32, 2, two), *r;
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ m, m }, &r), NVM_OK);
  nvm_array_unref(r);
  ck_assert_int_eq(traces, 65);
  call_with(f, c, 1), call_with(f, c, 64);
  ck_assert_int_eq(traces, 65);
  call_with(f, c, 2);
  ck_assert_int_eq(traces, 66);
  nvm_scope_close(s);
  nvm_fn_free(f);
  nvm_ctx_free(c);
}
END_TEST

/* ---- what was mended inside is not told of */
START_TEST(success_leaves_the_last_failure_as_it_was) {
  nvm_set("cuda_dir", "off");
  nvm_ctx *c = context(NVM_DEVICE_AUTO);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 8), *bad = nvm_add(x, ramp(c, 7));
  char *text;
  ck_assert_ptr_null(bad);
  for (int failed = 1; failed >= 0; failed--) {
    if (!failed) nvb_clear();
    int status = nvm_last_status();
    char *message = strdup(nvm_last_error());
    ck_assert_int_eq(status, failed ? NVM_ERR_VALUE : NVM_OK);
    ck_assert_int_eq(nvm_info(&text), NVM_OK); /* that there is no GPU stands in the text */
    nvm_free(text);
    ck_assert_str_eq(nvm_last_error(), message);
    ck_assert_int_eq(nvm_ctx_device(c), NVM_DEVICE_CPU); /* decided here the first time */
    ck_assert_str_eq(nvm_last_error(), message);
    nvm_array *y = nvm_matmul(nvm_reshape(x, 2, (int64_t[]){ 2, 4 }), nvm_reshape(x, 2, (int64_t[]){ 4, 2 }));
    ck_assert_int_eq(nvm_explain(&text, &y, 1), NVM_OK);
    nvm_free(text);
    ck_assert_int_eq(nvm_eval(&y, 1), NVM_OK);
    ck_assert_str_eq(nvm_last_error(), message);
    ck_assert_int_eq(nvm_last_status(), status);
    free(message);
  }
  ck_assert_int_eq(nvm_scope_close(s), NVM_ERR_VALUE);
  nvm_ctx_free(c);
}
END_TEST

/* ---- threads */
typedef struct shared { nvm_ctx *c; nvm_fn *f; nvm_traced *t; nvm_array *x, *pending; atomic_int ready; } shared;
static int round_of(shared *h, int64_t i) {
  nvm_scope *s = nvm_scope_open(h->c);
  int64_t n = 1 + i % 90;
  nvm_array *a = nvm_arange(h->c, NVM_F32, 0, (double)n, 1), *r = NULL, *v, *sum;
  nvm_array *b = nvm_mul(nvm_add(a, nvm_float((double)(i % 7))), nvm_sum(h->x, NULL, -1, 0));
  float out[100], want = 28 * (float)(i % 7);
  int status = nvm_copy_to_host(b, out, sizeof *out * (size_t)n);
  status = status ? status : out[0] == want ? NVM_OK : -1;
  status = status ? status : nvm_fn_call(h->f, (nvm_array *[]){ a, a }, &r);
  status = status ? status : nvm_copy_to_host(r, out, sizeof *out * (size_t)n);
  status = status ? status : out[n - 1] == (float)n ? NVM_OK : -2;
  nvm_array_unref(r), r = NULL;
  v = nvm_view(h->x, 1, (int64_t[]){ 0 }, (int64_t[]){ 8 }, (int64_t[]){ 1 }, NULL);
  status = status ? status : nvm_traced_call(h->t, (nvm_array *[]){ v, h->x }, &r);
  nvm_array_unref(r), nvm_array_unref(v);
  sum = nvm_sum(h->pending, NULL, -1, 0); /* all threads want its value */
  status = status ? status : nvm_copy_to_host(sum, out, sizeof *out);
  status = status ? status : out[0] == 36 ? NVM_OK : -3;
  if (i % 16 == 0 && !status) status = nvm_set("reproducible", i % 32 ? "0" : "1"); /* planned anew */
  int inside = nvm_scope_close(s);
  return status ? status : inside;
}
static void *rounds(void *arg) {
  shared *h = arg;
  intptr_t status = 0, first = atomic_fetch_add(&h->ready, 1) * 17;
  while (atomic_load(&h->ready) < 4) usleep(100);
  for (int64_t i = 0; i < 400 && !status; i++) status = round_of(h, first + i);
  return (void *)status;
}
START_TEST(threads_share_arrays_and_functions) {
  nvm_set("cache_dir", "off");
  shared h = { .c = context(NVM_DEVICE_CPU) };
  nvm_scope *s = nvm_scope_open(h.c);
  h.x = ramp(h.c, 8);
  h.pending = nvm_add(h.x, nvm_float(1));
  h.t = traced_second(h.c);
  ck_assert_int_eq(nvm_fn_new(&h.f, h.c, second, NULL, 2, 1), NVM_OK);
  pthread_t t[4];
  for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, rounds, &h), 0);
  for (int i = 0; i < 4; i++) {
    void *status;
    pthread_join(t[i], &status);
    ck_assert_int_eq((intptr_t)status, 0);
  }
  nvm_fn_free(h.f), nvm_traced_free(h.t);
  nvm_scope_close(s);
  nvm_ctx_free(h.c);
}
END_TEST

/* One thread writes to a base, directly and through a view of it; others read their own views of it meanwhile. */
enum { READERS = 3, WRITES = 200 };
typedef struct base_of { nvm_ctx *c; nvm_array *base, *view[READERS]; atomic_int next; atomic_int over; } base_of;
static int read_view(base_of *b, nvm_array *view) {
  float v[4], w[3], all[8];
  nvm_scope *s = nvm_scope_open(b->c);
  nvm_array *inner = nvm_view(view, 1, (int64_t[]){ 1 }, (int64_t[]){ 3 }, (int64_t[]){ 1 }, NULL);
  nvm_array *held = nvm_hold(b->base);
  int status = inner && held ? nvm_copy_to_host(view, v, sizeof v) : nvm_last_status();
  status = status ? status : nvm_copy_to_host(inner, w, sizeof w);
  status = status ? status : nvm_copy_to_host(held, all, sizeof all);
  for (int i = 0; i < 4 && !status; i++) /* a write is seen whole */
    status = v[i] != v[0] || w[i % 3] != w[0] || w[0] < v[0] || all[i] != all[7] || v[0] < all[0] ? -1 : NVM_OK;
  nvm_array_unref(inner), nvm_array_unref(held);
  int inside = nvm_scope_close(s);
  return status ? status : inside;
}
static void *reads(void *arg) {
  base_of *b = arg;
  nvm_array *view = b->view[atomic_fetch_add(&b->next, 1)];
  intptr_t status = 0;
  for (int i = 0; i < 50 || !atomic_load(&b->over); i++)
    if (!status) status = read_view(b, view);
  return (void *)status;
}
START_TEST(views_are_read_while_their_base_is_written) {
  nvm_set("cache_dir", "off");
  base_of b = { .c = context(NVM_DEVICE_CPU) };
  nvm_scope *s = nvm_scope_open(b.c);
  b.base = nvm_zeros(b.c, NVM_F32, 1, (int64_t[]){ 8 });
  for (int64_t i = 0; i < READERS; i++)
    b.view[i] = nvm_view(b.base, 1, (int64_t[]){ i }, (int64_t[]){ 4 }, (int64_t[]){ 1 }, NULL);
  nvm_array *whole = nvm_view(b.base, 1, (int64_t[]){ 0 }, (int64_t[]){ 8 }, (int64_t[]){ 1 }, NULL);
  pthread_t t[READERS];
  for (int i = 0; i < READERS; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, reads, &b), 0);
  for (int i = 1; i <= WRITES; i++) ck_assert_int_eq(nvm_assign(i % 2 ? b.base : whole, nvm_float(i)), NVM_OK);
  atomic_store(&b.over, 1);
  for (int i = 0; i < READERS; i++) {
    void *status;
    pthread_join(t[i], &status);
    ck_assert_int_eq((intptr_t)status, 0);
  }
  for (int i = 0; i < READERS; i++) nvm_array_unref(b.view[i]); /* threads took them as they came */
  nvm_array_unref(whole);
  nvm_scope_close(s);
  nvm_ctx_free(b.c);
}
END_TEST

/* ---- forks */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
typedef struct busy { nvm_ctx *c; nvm_fn *f; nvm_traced *t; atomic_int stop; } busy;
/* Signatures that neither has met. A status: Check's own lock does not survive a fork. */
static int plan_again(busy *b, int64_t i) {
  nvm_scope *s = nvm_scope_open(b->c);
  nvm_array *x = nvm_full(b->c, NVM_F32, 1, (int64_t[]){ 8 * (i + 1) }, (double)i), *y, *r = NULL;
  int status = nvm_eval(&x, 1);
  x = nvm_view(x, 1, (int64_t[]){ 0 }, (int64_t[]){ 8 }, (int64_t[]){ i + 1 }, NULL);
  status = status ? status : nvm_traced_call(b->t, (nvm_array *[]){ x, x }, &r);
  nvm_array_unref(r), nvm_array_unref(x);
  y = nvm_full(b->c, NVM_F64, 1, (int64_t[]){ i + 1 }, 2);
  status = status ? status : nvm_fn_call(b->f, (nvm_array *[]){ y, y }, &r);
  if (!status) nvm_array_unref(r);
  int inside = nvm_scope_close(s);
  return status ? status : inside;
}
static void *plan_on(void *arg) {
  busy *b = arg;
  for (int64_t i = 0; !atomic_load(&b->stop); i++)
    if (plan_again(b, i % 1000)) return b;
  return NULL;
}
START_TEST(a_child_goes_on_whatever_the_others_were_doing) {
  enum { THREADS = 3, CHILDREN = 40 };
  if (SANITIZED) return; /* a sanitizer's own locks do not survive such a fork */
  nvm_set("tier", "0"), nvm_set("cache_dir", "off");
  busy b = { .c = context(NVM_DEVICE_CPU) };
  nvm_scope *s = nvm_scope_open(b.c);
  b.t = traced_second(b.c);
  ck_assert_int_eq(nvm_fn_new(&b.f, b.c, second, NULL, 2, 1), NVM_OK);
  pthread_t t[THREADS];
  for (int i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, plan_on, &b), 0);
  for (int i = 0; i < CHILDREN; i++) {
    usleep(1000 * (i % 7));
    pid_t pid = fork();
    if (!pid) {
      alarm(30);
      int failed = 0;
      for (int k = 0; k < 5; k++) failed |= plan_again(&b, 2000 + k);
      _exit(failed != 0);
    }
    int status;
    waitpid(pid, &status, 0);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "child %d ended with %x", i, (unsigned)status);
  }
  atomic_store(&b.stop, 1);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(t[i], &failed);
    ck_assert_ptr_null(failed);
  }
  nvm_fn_free(b.f), nvm_traced_free(b.t);
  nvm_scope_close(s);
  nvm_ctx_free(b.c);
}
END_TEST

/* ---- with a GPU */
static int no_gpu(void) {
  if (nvm_device_count()) return 0;
  fprintf(stderr, "skipped, no GPU: %s\n", nvm_last_error());
  return 1;
}

/* Whole numbers, so that no order of their sums changes a bit. */
static nvm_array *whole(nvm_ctx *c, int64_t rows, int64_t columns) {
  nvm_array *x = nvm_sub(nvm_remainder(ramp(c, rows * columns), nvm_float(7)), nvm_float(3));
  return nvm_astype(nvm_reshape(x, 2, (int64_t[]){ rows, columns }), NVM_BF16);
}
START_TEST(a_scope_is_planned_as_the_nested_expression_there) {
  enum { M = 64, N = 48, K = 32 };
  float bits[3][M * N];
  if (no_gpu()) return;
  nvm_ctx *c = context(NVM_DEVICE_CUDA);
  for (int i = 0; i < 3; i++) { /* nested, named, and where the product was read before */
    nvm_scope *s = nvm_scope_open(c);
    nvm_array *x = whole(c, M, K), *w = whole(c, K, N), *b = whole(c, 1, N);
    ck_assert_int_eq(nvm_eval((nvm_array *[]){ x, w, b }, 3), NVM_OK);
    nvm_array *h = i ? nvm_matmul(x, w) : NULL, *y = nvm_relu(nvm_add(h ? h : nvm_matmul(x, w), b));
    char *text = NULL;
    ck_assert_msg(!nvm_explain(&text, &y, 1), "%s", nvm_last_error());
    ck_assert_msg(!strncmp(text, "1 kernel,", 9) && strstr(text, "gemm, "), "%s", text);
    nvm_free(text);
    if (i == 2) ck_assert_int_eq(nvm_eval(&h, 1), NVM_OK);
    y = nvm_astype(y, NVM_F32);
    ck_assert_msg(!nvm_copy_to_host(y, bits[i], sizeof *bits), "%s", nvm_last_error());
    ck_assert_int_eq(memcmp(bits[0], bits[i], sizeof *bits), 0);
    nvm_scope_close(s);
  }
  nvm_ctx_free(c);
}
END_TEST

START_TEST(a_context_runs_on_its_device) {
  if (no_gpu()) return;
  nvm_ctx *c = context(NVM_DEVICE_CUDA);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 40), *y = nvm_add(nvm_mul(x, nvm_float(2)), nvm_float(1));
  const void *host, *there, *again;
  nvm_device d;
  int64_t strides[1];
  ck_assert_int_eq(nvm_device_of(y), NVM_DEVICE_CUDA);
  ck_values(y, 2, 1);
  ck_assert_int_eq(nvm_device_data(&there, strides, &d, y), NVM_OK);
  ck_assert_int_eq(d, NVM_DEVICE_CUDA);
  ck_assert_int_eq(strides[0], 4);
  ck_assert_int_eq(nvm_data(&host, strides, y), NVM_OK);
  ck_assert_ptr_ne(host, there);
  ck_assert_float_eq(((const float *)host)[39], 79);
  ck_assert_int_eq(nvm_data(&again, strides, y), NVM_OK);
  ck_assert_ptr_eq(host, again); /* one copy, kept */
  nvm_array *z = nvm_to_device(y, NVM_DEVICE_CPU);
  ck_values(nvm_add(z, z), 4, 2);
  ck_assert_int_eq(nvm_device_of(nvm_add(z, z)), NVM_DEVICE_CPU);
  ck_assert_ptr_null(nvm_add(z, nvm_to_device(x, NVM_DEVICE_CUDA)));
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[add] operands were put on two devices: float32 (40,) on cpu and "
                                                 "float32 (40,) on cuda:0"));
  nvm_device_memory m;
  ck_assert_int_eq(nvm_device_memory_get(&m, NVM_DEVICE_MEMORY_VERSION, c, NVM_DEVICE_AUTO), NVM_OK);
  ck_assert_int_gt(m.used, 0);
  ck_assert_int_ge(m.peak, m.used);
  nvm_scope_close(s);
  ck_assert_int_eq(nvm_synchronize(c), NVM_OK);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(an_ordinal_that_is_not_there_is_named) {
  if (no_gpu()) return;
  nvm_ctx *c = NULL;
  nvm_ctx_options o = NVM_CTX_OPTIONS_INIT;
  o.device = NVM_DEVICE_CUDA + 40;
  ck_assert_int_eq(nvm_ctx_new(&c, &o), NVM_ERR_DEVICE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "cuda:40"));
}
END_TEST

START_TEST(foreign_memory_is_borrowed_and_given_back) {
  if (no_gpu()) return;
  nvm_ctx *c = context(NVM_DEVICE_CUDA);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = ramp(c, 24), *there = nvm_to_device(x, NVM_DEVICE_CUDA);
  const void *data;
  nvm_device d;
  void *stream;
  int64_t n = 12, stride = -8, count = 24;
  ck_assert_int_eq(nvm_device_data(&data, NULL, &d, there), NVM_OK);
  ck_assert_int_eq(nvm_stream_get(&stream, c, NVM_DEVICE_AUTO), NVM_OK);
  freed = 0;
  nvm_scope *t = nvm_scope_open(c);
  nvm_array *odd = nvm_from_device(c, NVM_F32, 1, &n, &stride, d, (const float *)data + 23, stream, count_freed, NULL);
  ck_values(odd, -2, 23);
  ck_values(nvm_mul(odd, nvm_float(2)), -4, 46);
  nvm_array *y = nvm_array_ref(nvm_add(odd, nvm_float(1)));
  ck_assert_int_eq(nvm_eval(&y, 1), NVM_OK);
  ck_assert_int_eq(nvm_device_ready(y, (void *)1), NVM_OK);
  nvm_scope_close(t);
  nvm_synchronize(c);
  ck_assert_int_eq(freed, 1);
  ck_values(y, -2, 24);
  nvm_array_unref(y);
  /* what cannot be borrowed is given back at once */
  ck_assert_ptr_null(nvm_from_device(c, NVM_F32, 1, &count, NULL, d, NULL, NULL, count_freed, NULL));
  ck_assert_ptr_null(nvm_from_device(c, NVM_F32, 1, &n, NULL, d, (const char *)data + 2, NULL, count_freed, NULL));
  ck_assert_ptr_null(nvm_from_device(c, NVM_F32, 1, &n, NULL, NVM_DEVICE_CPU, data, NULL, count_freed, NULL));
  ck_assert_int_eq(freed, 4);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(a_failure_leaves_what_was_computed_before_it) {
  if (no_gpu()) return;
  enum { N = 70 };
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_device_memory m, usual;
  nvm_array *x = ramp(c, 40), *there = nvm_to_device(x, NVM_DEVICE_CUDA), *y[2 * N];
  ck_assert_int_eq(nvm_eval(&there, 1), NVM_OK);
  ck_assert_int_eq(nvm_device_memory_get(&usual, NVM_DEVICE_MEMORY_VERSION, c, NVM_DEVICE_CUDA), NVM_OK);
  for (int i = 0; i < 2 * N; i++) y[i] = nvm_mul(i % 2 ? there : x, nvm_float(i)); /* the CPU's and the GPU's in turn */
  ck_assert_int_eq(nvm_device_memory_limit(c, NVM_DEVICE_CUDA, usual.used + 20 * 512), NVM_OK);
  ck_assert_int_eq(nvm_eval(y, 2 * N), NVM_ERR_MEMORY);
  ck_assert_int_eq(nvm_device_memory_get(&m, NVM_DEVICE_MEMORY_VERSION, c, NVM_DEVICE_CUDA), NVM_OK);
  ck_assert_int_eq(m.used, usual.used);
  for (int i = 0; i < 2 * N; i++) ck_assert_int_eq(nvm_is_pending(y[i]), i % 2);
  for (int i = 0; i < 2 * N; i += 2) ck_values(y[i], (float)i, 0);
  ck_assert_int_eq(nvm_device_memory_limit(c, NVM_DEVICE_CUDA, 0), NVM_OK);
  ck_assert_int_eq(nvm_eval(y, 2 * N), NVM_OK);
  for (int i = 0; i < 2 * N; i++) ck_values(y[i], (float)i, 0);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

/* ---- views on their way from a device */
static int64_t host_bytes(void) {
  nvm_counters n;
  ck_assert_int_eq(nvm_counters_get(&n, NVM_COUNTERS_VERSION), NVM_OK);
  return n.bytes_used;
}
START_TEST(a_view_brings_little_more_than_its_elements) {
  if (no_gpu()) return;
  enum { ROWS = 25600, ROW = 4096, EVERY = 64, VIEWED = ROWS / EVERY };
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  unsigned char *data = calloc(ROWS, ROW);
  for (int64_t i = 0; i < ROWS; i++) data[i * ROW + i % ROW] = 1, data[i * ROW] = (unsigned char)(i / EVERY);
  nvm_array *x = nvm_from_host_borrow(c, NVM_U8, 2, (int64_t[]){ ROWS, ROW }, NULL, data, free, data);
  nvm_array *there = nvm_to_device(x, NVM_DEVICE_CUDA);
  ck_assert_int_eq(nvm_eval(&there, 1), NVM_OK);
  for (int turn = 0; turn < 2; turn++) { /* every 64th row; the same from the last one up, every second element */
    int64_t start[2] = { turn ? ROWS - EVERY : 0, 0 }, count[2] = { VIEWED, turn ? ROW / 2 : ROW };
    nvm_array *v = nvm_view(there, 2, start, count, (int64_t[]){ turn ? -EVERY : EVERY, turn ? 2 : 1 }, NULL);
    ck_assert_int_eq(nvm_eval(&v, 1), NVM_OK);
    int64_t before = host_bytes(), strides[2];
    const void *at;
    ck_assert_int_eq(nvm_data(&at, strides, v), NVM_OK);
    ck_assert_int_le(host_bytes() - before, 2 * VIEWED * ROW);
    for (int64_t i = 0; i < VIEWED; i++) {
      const unsigned char *row = (const unsigned char *)at + i * strides[0];
      int64_t r = (turn ? VIEWED - 1 - i : i) * EVERY, k = r % ROW;
      ck_assert_int_eq(row[0], r == k && !k ? 0 : (unsigned char)(r / EVERY));
      if (k) ck_assert_int_eq(row[k / (turn ? 2 : 1) * strides[1]], 1);
    }
    nvm_array_unref(v);
  }
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(repeated_elements_go_to_a_device_once) {
  if (no_gpu()) return;
  static float odd[2000];
  for (int i = 0; i < 2000; i++) odd[i] = (float)i;
  int64_t shape[3] = { 1000, 1000, 7 }, strides[3] = { 0, 8, 0 };
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_device_memory before, after;
  ck_assert_int_eq(nvm_device_memory_get(&before, NVM_DEVICE_MEMORY_VERSION, c, NVM_DEVICE_CUDA), NVM_OK);
  nvm_array *x = nvm_from_host_borrow(c, NVM_F32, 3, shape, strides, odd, count_freed, NULL);
  nvm_array *there = nvm_to_device(x, NVM_DEVICE_CUDA), *part;
  ck_assert_int_eq(nvm_eval(&there, 1), NVM_OK);
  ck_assert_int_eq(nvm_device_memory_get(&after, NVM_DEVICE_MEMORY_VERSION, c, NVM_DEVICE_CUDA), NVM_OK);
  ck_assert_int_le(after.used - before.used, 8192);
  part = nvm_slice(there, (int64_t[]){ 999, 10, 6 }, (int64_t[]){ 1, 40, 1 }, NULL);
  ck_values(nvm_reshape(part, 1, (int64_t[]){ 40 }), 2, 20);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

START_TEST(views_of_all_kinds_come_as_they_are) { /* some as one block, some as many */
  if (no_gpu()) return;
  static const int64_t full[3] = { 6, 5, 1 << 18 };
  static const int orders[][3] = { { 0, 1, 2 }, { 2, 0, 1 }, { 1, 0, 2 }, { 2, 1, 0 } };
  int64_t bytes = full[0] * full[1] * full[2];
  unsigned char *data = malloc((size_t)bytes), want[3 * 6 * 5 * 8], got[sizeof want];
  for (int64_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 2654435761 >> 13);
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_array *x = nvm_from_host_borrow(c, NVM_U8, 3, full, NULL, data, free, data),
            *there = nvm_to_device(x, NVM_DEVICE_CUDA);
  ck_assert_int_eq(nvm_eval(&there, 1), NVM_OK);
  for (int seed = 0; seed < 60; seed++) {
    nvm_scope *inner = nvm_scope_open(c);
    nvm_array *both[2];
    int64_t start[3], count[3], step[3];
    const int *order = orders[seed % 4];
    for (int d = 0, r = 7 * seed; d < 3; d++, r /= 5) {
      step[d] = (int64_t[]){ 1, 2, -1, -2, 3 }[r % 5];
      if (d == 2) step[d] *= seed % 3 ? 32768 : 1;
      start[d] = step[d] < 0 ? full[d] - 1 - seed % 2 : seed % 3;
      count[d] = (step[d] < 0 ? start[d] : full[d] - 1 - start[d]) / llabs(step[d]) + 1;
      count[d] = count[d] < 8 ? count[d] : 8;
    }
    for (int i = 0; i < 2; i++) {
      nvm_array *v = nvm_permute_dims(nvm_slice(i ? there : x, start, count, step), order);
      int64_t wide[4] = { count[order[0]], 3, count[order[1]], count[order[2]] };
      both[i] = seed % 7 ? v : nvm_broadcast_to(nvm_expand_dims(v, 1), 4, wide);
      ck_assert_int_eq(nvm_eval(&both[i], 1), NVM_OK);
    }
    size_t n = (size_t)nvm_size(both[0]);
    ck_assert_int_eq(nvm_copy_to_host(both[0], want, n), NVM_OK);
    ck_assert_int_eq(nvm_copy_to_host(both[1], got, n), NVM_OK);
    ck_assert_mem_eq(want, got, n);
    for (nvm_device d = NVM_DEVICE_CPU; d < NVM_DEVICE_CUDA + nvm_device_count(); d++) {
      memset(got, 0, sizeof got);
      ck_assert_int_eq(nvm_copy_to_host(nvm_to_device(both[1], d), got, n), NVM_OK);
      ck_assert_mem_eq(want, got, n);
    }
    ck_assert_int_eq(nvm_scope_close(inner), NVM_OK);
  }
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

static int trace(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  out[0] = nvm_add(nvm_mul(in[0], in[1]), nvm_float(1));
  return NVM_OK;
}
START_TEST(functions_run_where_their_arguments_are) {
  if (no_gpu()) return;
  nvm_ctx *c = context(NVM_DEVICE_CPU);
  nvm_scope *s = nvm_scope_open(c);
  nvm_fn *f;
  ck_assert_int_eq(nvm_fn_new(&f, c, trace, NULL, 2, 1), NVM_OK);
  nvm_array *x = ramp(c, 16), *there = nvm_to_device(x, NVM_DEVICE_CUDA), *here = nvm_to_device(x, NVM_DEVICE_CPU), *r;
  for (int turn = 0; turn < 3; turn++) {
    ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ x, nvm_float(turn) }, &r), NVM_OK);
    ck_assert_int_eq(nvm_device_of(r), NVM_DEVICE_CPU);
    ck_values(r, (float)turn, 1);
    nvm_array_unref(r);
    ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ there, nvm_float(turn) }, &r), NVM_OK);
    ck_assert_int_eq(nvm_device_of(r), NVM_DEVICE_CUDA);
    ck_values(r, (float)turn, 1);
    nvm_array_unref(r);
  }
  ck_assert_int_eq(nvm_fn_call(f, (nvm_array *[]){ there, here }, &r), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "cuda:0"));
  nvm_fn_free(f);
  nvm_scope_close(s);
  nvm_ctx_free(c);
}
END_TEST

SUITE("context", arguments_that_are_not_read_are_arguments_all_the_same, a_function_forgets_what_was_long_ago,
      success_leaves_the_last_failure_as_it_was, what_cannot_be_is_refused, messages_name_the_call_and_the_value,
      many_outputs_are_all_or_those_before, a_failure_leaves_what_was_computed_before_it,
      threads_share_arrays_and_functions, views_are_read_while_their_base_is_written,
      a_child_goes_on_whatever_the_others_were_doing, options_of_the_first_version_still_work, two_contexts_do_not_meet,
      a_null_array_gives_the_scopes_first_failure, inner_failures_go_to_the_outer_scope, donated_memory_is_taken,
      devices_have_names, a_gpu_that_is_not_there_is_an_error_when_asked_for,
      a_scope_is_planned_as_the_nested_expression_there, a_context_runs_on_its_device,
      an_ordinal_that_is_not_there_is_named, foreign_memory_is_borrowed_and_given_back,
      a_view_brings_little_more_than_its_elements, repeated_elements_go_to_a_device_once,
      views_of_all_kinds_come_as_they_are, what_lies_between_may_change, functions_run_where_their_arguments_are)
