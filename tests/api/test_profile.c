/* nvm/profile.h as C programs meet it: options, begin and end, nested profiles and those of several threads, what is
   printed; and memory that runs out. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "base/mem.h"
#include "nvm/nvm.h"

enum { N = 1 << 16, CALLS = 12 };
static const nvm_profile_options rated = { .version = NVM_PROFILE_OPTIONS_VERSION, .rated = 1 };
static nvm_ctx *ctx;
static void open_all(void) {
  ck_assert_int_eq(nvm_set("cache_dir", "off"), NVM_OK);
  ck_assert_int_eq(nvm_set("device", "cpu"), NVM_OK);
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
}
static void close_all(void) { nvm_ctx_free(ctx); }

/* Evaluates tanh(x) of N elements: one kernel. Returns a status. */
static int run_kernel(void) {
  int64_t n = N;
  static float x[N];
  nvm_scope *s = nvm_scope_open(ctx);
  if (!s) return nvm_last_status();
  nvm_array *y = nvm_tanh(nvm_from_host(ctx, NVM_F32, 1, &n, x));
  int status = nvm_eval(&y, 1);
  nvm_scope_close(s);
  return status;
}
static nvm_profile *new_profile(const nvm_profile_options *o) {
  nvm_profile *p;
  ck_assert_int_eq(nvm_profile_new(&p, o), NVM_OK);
  return p;
}
static nvm_profile_totals totals_of(nvm_profile *p) {
  nvm_profile_totals t;
  ck_assert_int_eq(nvm_profile_totals_get(&t, NVM_PROFILE_TOTALS_VERSION, p), NVM_OK);
  return t;
}
static int count(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)); text += strlen(word)) n++;
  return n;
}

START_TEST(test_options) {
  nvm_profile_options o, want = NVM_PROFILE_OPTIONS_INIT;
  nvm_profile *p;
  memset(&o, 0x5a, sizeof o);
  ck_assert_int_eq(nvm_profile_options_init(&o, NVM_PROFILE_OPTIONS_VERSION), NVM_OK);
  ck_assert(o.version == want.version && o.metrics == want.metrics && o.rated == want.rated);
  ck_assert_int_eq(nvm_profile_options_init(&o, 9), NVM_ERR_VALUE);
  o.version = 9;
  ck_assert_int_eq(nvm_profile_new(&p, &o), NVM_ERR_VALUE);
  ck_assert_ptr_null(p);
  want.metrics = 8;
  ck_assert_int_eq(nvm_profile_new(&p, &want), NVM_ERR_VALUE);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "metrics 8"));
}
END_TEST

START_TEST(test_totals) {
  nvm_profile *p = new_profile(&rated);
  nvm_profile_totals t = totals_of(p);
  ck_assert(t.calls == 0 && t.seconds == 0 && t.kernels == 0 && t.memory_efficiency == 0);
  ck_assert_int_eq(run_kernel(), NVM_OK); /* before the begin: not seen */
  ck_assert_int_eq(nvm_profile_end(p), NVM_ERR_STATE);
  ck_assert_int_eq(nvm_profile_begin(p), NVM_OK);
  for (int i = 0; i < CALLS; i++) ck_assert_int_eq(run_kernel(), NVM_OK);
  ck_assert_int_eq(nvm_profile_end(p), NVM_OK);
  ck_assert_int_eq(run_kernel(), NVM_OK); /* behind the end: not seen either */
  t = totals_of(p);
  ck_assert_int_eq(t.calls, CALLS);
  ck_assert(t.kernels > 0 && t.seconds >= t.kernels);
  ck_assert(t.memory_efficiency > 0 && t.memory_efficiency <= 1);
  ck_assert(t.compute_efficiency > 0 && t.compute_efficiency <= 1);
  ck_assert_int_eq(nvm_profile_totals_get(&t, 9, p), NVM_ERR_VALUE);
  nvm_profile_free(p);
}
END_TEST

START_TEST(test_nesting) { /* each profile sees all kernels between its own begin and end; one that nests counts once */
  nvm_profile *outer = new_profile(&rated), *inner = new_profile(&rated);
  nvm_profile_begin(outer);
  run_kernel();
  nvm_profile_begin(inner);
  nvm_profile_begin(inner);
  run_kernel();
  nvm_profile_end(inner);
  run_kernel();
  nvm_profile_end(inner);
  run_kernel();
  ck_assert_int_eq(totals_of(outer).calls, 4);
  nvm_profile_end(outer);
  ck_assert_int_eq(totals_of(outer).calls, 4);
  ck_assert_int_eq(totals_of(inner).calls, 2);
  nvm_profile_begin(inner); /* a further stretch is added */
  run_kernel();
  nvm_profile_end(inner);
  ck_assert_int_eq(totals_of(inner).calls, 3);
  nvm_profile_free(outer);
  nvm_profile_begin(inner);
  nvm_profile_free(inner); /* without its end */
  ck_assert_int_eq(run_kernel(), NVM_OK);
}
END_TEST

static void *run_many(void *unused) {
  (void)unused;
  for (int i = 0; i < CALLS; i++)
    if (run_kernel()) return unused;
  return &ctx;
}
START_TEST(test_threads) {
  enum { THREADS = 4 };
  nvm_profile *p = new_profile(&rated);
  pthread_t thread[THREADS];
  nvm_profile_begin(p);
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, run_many, NULL);
  for (int i = 0; i < THREADS; i++) {
    void *done;
    pthread_join(thread[i], &done);
    ck_assert_ptr_nonnull(done);
  }
  nvm_profile_end(p);
  ck_assert_int_eq(totals_of(p).calls, THREADS * CALLS);
  char *text;
  ck_assert_int_eq(nvm_profile_print(&text, p, NVM_PROFILE_TRACE), NVM_OK);
  ck_assert_int_eq(count(text, "\"ph\": \"X\""), THREADS * CALLS);
  nvm_free(text);
  nvm_profile_free(p);
}
END_TEST

START_TEST(test_formats) {
  static const char *const holds[NVM_PROFILE_FORMATS] = { "GB/s", "\"kernels\": [", "<!doctype html>",
                                                          "\"traceEvents\"" };
  nvm_profile *p = new_profile(&rated);
  char *text;
  nvm_profile_begin(p);
  run_kernel();
  nvm_profile_end(p);
  for (int i = 0; i < NVM_PROFILE_FORMATS; i++) {
    ck_assert_int_eq(nvm_profile_print(&text, p, (nvm_profile_format)i), NVM_OK);
    ck_assert_ptr_nonnull(strstr(text, holds[i]));
    ck_assert_ptr_nonnull(strstr(text, "tanh"));
    nvm_free(text);
  }
  ck_assert_int_eq(nvm_profile_print(&text, p, NVM_PROFILE_FORMATS), NVM_ERR_VALUE);
  nvm_profile_free(p);
  nvm_profile_options few = rated;
  few.metrics = NVM_PROFILE_MEMORY;
  p = new_profile(&few);
  ck_assert_int_eq(nvm_profile_print(&text, p, NVM_PROFILE_TRACE), NVM_ERR_STATE);
  ck_assert(totals_of(p).compute_efficiency == -1);
  nvm_profile_free(p);
}
END_TEST

START_TEST(
    test_out_of_memory) { /* the n-th allocation fails: evaluating and reporting fail cleanly, or calls are missing */
  nvm_profile_options o = rated;
  run_kernel();
  int64_t before = nvb_live_blocks(); /* the first call counts from here */
  for (int n = 1, failed = 1; failed && n < 500; n++) {
    nvm_profile *p = NULL;
    char *text = NULL;
    nvb_fail_alloc(n, 0);
    int status = nvm_profile_new(&p, &o);
    status = status ? status : nvm_profile_begin(p);
    status = status ? status : run_kernel();
    if (p) nvm_profile_end(p);
    status = status ? status : nvm_profile_print(&text, p, NVM_PROFILE_JSON);
    nvb_fail_alloc(0, 0);
    ck_assert(status == NVM_OK || status == NVM_ERR_MEMORY);
    failed = status != NVM_OK || strstr(text, "\"missing\": 1") != NULL;
    nvm_free(text);
    nvm_profile_free(p);
    if (!failed) ck_assert_int_gt(n, 5);
  }
  run_kernel();
  ck_assert_int_le(nvb_live_blocks() - before, 64); /* caches of programs and kernels grow once */
}
END_TEST

SUITE_WITH("profile", open_all, close_all, test_options, test_totals, test_nesting, test_threads, test_formats,
           test_out_of_memory)
