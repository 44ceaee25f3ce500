/* nvm/tune.h as C programs meet it: options, sessions, progress, records; and memory that runs out while something is
   measured. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/caps.h"
#include "base/mem.h"
#include "nvm/nvm.h"

enum { N = 1 << 17 };
static nvm_ctx *ctx;
static nvm_scope *scope;
static void open_all(void) {
  ck_assert_int_eq(nvm_set("cache_dir", "off"), NVM_OK);
  ck_assert_int_eq(nvm_tune_clear(NULL), NVM_OK);
  ck_assert_int_eq(nvm_ctx_new(&ctx, NULL), NVM_OK);
  scope = nvm_scope_open(ctx);
}
static void close_all(void) {
  nvm_scope_close(scope);
  nvm_ctx_free(ctx);
  ck_assert_int_eq(nvm_set("cache_dir", NULL), NVM_OK);
}
static nvm_array *ramp(void) {
  static float x[N];
  int64_t n = N;
  for (int i = 0; i < N; i++) x[i] = (float)(i % 1000) / 500;
  return nvm_from_host(ctx, NVM_F32, 1, &n, x);
}
static float *values(nvm_array *y) { /* NULL: a failure */
  float *v = malloc(sizeof *v * N);
  if (!nvm_copy_to_host(y, v, sizeof *v * N)) return v;
  free(v);
  return NULL;
}
static nvm_tune_counters counted(void) {
  nvm_tune_counters c;
  ck_assert_int_eq(nvm_tune_counters_get(&c, NVM_TUNE_COUNTERS_VERSION), NVM_OK);
  return c;
}

START_TEST(test_options) {
  nvm_tune_options o, want = NVM_TUNE_OPTIONS_INIT;
  memset(&o, 0x5a, sizeof o);
  ck_assert_int_eq(nvm_tune_options_init(&o, NVM_TUNE_OPTIONS_VERSION), NVM_OK);
  ck_assert(o.version == want.version && o.seconds == want.seconds && o.cold == want.cold &&
            o.progress == want.progress && o.user == want.user);
  ck_assert_int_eq(nvm_tune_options_init(&o, 9), NVM_ERR_VALUE);
  o.version = 9;
  ck_assert_int_eq(nvm_tune_begin(&o), NVM_ERR_VALUE);
  want.seconds = -1;
  ck_assert_int_eq(nvm_tune_begin(&want), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_end(), NVM_ERR_STATE);
  nvm_tune_counters c;
  ck_assert_int_eq(nvm_tune_counters_get(&c, 9), NVM_ERR_VALUE);
}
END_TEST

START_TEST(test_null) { /* an error where something is missing */
  int n = 7;
  char *text = NULL;
  ck_assert_int_eq(nvm_set("cache_dir", "off"), NVM_OK);
  ck_assert_int_eq(nvm_tune_import(&n, NULL), NVM_ERR_VALUE);
  ck_assert(!n && strstr(nvm_last_error(), "[tune_import] the text is NULL"));
  ck_assert_int_eq(nvm_tune_import(NULL, NULL), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_import(NULL, "[]"), NVM_OK); /* nobody wants to know how many */
  ck_assert_int_eq(nvm_tune_import(NULL, "[]]"), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_clear(NULL), NVM_OK);
  ck_assert_int_eq(nvm_tune_list(NULL), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_export(NULL), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_where(NULL, &n), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_where(&text, NULL), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_options_init(NULL, NVM_TUNE_OPTIONS_VERSION), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_counters_get(NULL, NVM_TUNE_COUNTERS_VERSION), NVM_ERR_VALUE);
  ck_assert_int_eq(nvm_tune_where(&text, &n), NVM_OK);
  ck_assert(!n && !strcmp(text, "off"));
  nvm_free(text);
  ck_assert_int_eq(nvm_set("cache_dir", NULL), NVM_OK);
}
END_TEST

static void told(void *user, const nvm_tune_progress *p) {
  int *n = user;
  ck_assert(p->step >= 0 && p->step < p->steps && p->part >= 0 && p->part <= 1 && strstr(p->what, "exp"));
  ++*n;
}
START_TEST(test_session) {
  open_all();
  int calls = 0, n = 0;
  char *text;
  nvm_tune_options o = { NVM_TUNE_OPTIONS_VERSION, 20, 0, told, &calls };
  nvm_array *x = ramp();
  float *plain = values(nvm_add(nvm_exp(x), x));
  nvm_tune_counters before = counted();
  ck_assert_int_eq(nvm_tune_begin(NULL), NVM_OK);
  ck_assert_int_eq(nvm_tune_begin(&o), NVM_OK);
  float *tuned = values(nvm_add(nvm_exp(x), x));
  ck_assert_int_eq(nvm_tune_end(), NVM_OK);
  ck_assert_int_eq(nvm_tune_end(), NVM_OK);
  ck_assert_int_eq(nvm_tune_end(), NVM_ERR_STATE);
  ck_assert(plain && tuned && !memcmp(plain, tuned, sizeof *plain * N));
  ck_assert_int_eq(counted().measured, before.measured + 1);
  ck_assert_int_gt(counted().timed, before.timed);
  ck_assert_int_gt(calls, 3);
  ck_assert_int_eq(nvm_tune_list(&text), NVM_OK);
  ck_assert(strstr(text, "map: ") && strstr(text, " us"));
  nvm_free(text);
  ck_assert_int_eq(nvm_tune_export(&text), NVM_OK);
  ck_assert_int_eq(nvm_tune_clear(&n), NVM_OK);
  ck_assert_int_eq(n, 1);
  ck_assert_int_eq(nvm_tune_import(&n, text), NVM_OK);
  ck_assert_int_eq(n, 1);
  nvm_free(text);
  ck_assert_int_eq(nvm_tune_export(&text), NVM_OK);
  char *date = strstr(text, "\"date\""), *end = date + strcspn(date, ",}"), *odd = malloc(strlen(text) + 64);
  sprintf(odd, "%.*s\"date\": 90000000000000000%s", (int)(date - text), text, end); /* beyond all calendars */
  nvm_free(text);
  ck_assert_int_eq(nvm_tune_import(&n, odd), NVM_ERR_VALUE);
  free(odd);
  ck_assert_int_eq(nvm_tune_import(&n, "[{]"), NVM_ERR_VALUE);
  ck_assert_int_eq(n, 0);
  before = counted();
  float *again = values(nvm_add(nvm_exp(x), x)); /* planned anew, by the record */
  ck_assert(again && !memcmp(plain, again, sizeof *plain * N));
  ck_assert_int_eq(counted().found, before.found + 1);
  ck_assert_int_eq(counted().measured, before.measured);
  free(plain), free(tuned), free(again);
  close_all();
}
END_TEST

static int64_t peak_of(int cold) { /* bytes, while one program is tuned */
  nvm_tune_options o = { NVM_TUNE_OPTIONS_VERSION, 20, cold, NULL, NULL };
  nvm_counters c;
  nvm_array *x = ramp();
  ck_assert_int_eq(nvm_tune_clear(NULL), NVM_OK);
  ck_assert_int_eq(nvm_counters_reset_peak(), NVM_OK);
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  int64_t before = c.bytes_used, measured = counted().measured;
  ck_assert_int_eq(nvm_tune_begin(&o), NVM_OK);
  free(values(nvm_add(nvm_exp(x), x)));
  ck_assert_int_eq(nvm_tune_end(), NVM_OK);
  ck_assert_int_eq(counted().measured, measured + 1);
  ck_assert_int_eq(nvm_counters_get(&c, NVM_COUNTERS_VERSION), NVM_OK);
  return c.bytes_peak - before;
}
START_TEST(test_cold) { /* there is memory to fill the caches with where that was asked for */
  open_all();
  int64_t l2 = nvb_caps_cpu().l2, most = 128 << 20, fill = 2 * l2 < most ? 2 * l2 : most, warm = peak_of(0);
  ck_assert_int_ge(peak_of(1), warm + fill / 2); /* what else there is differs from run to run */
  ck_assert_int_lt(peak_of(0), warm + fill / 2);
  close_all();
}
END_TEST

START_TEST(test_memory_runs_out) { /* what cannot be measured runs as it would have; nothing is lost */
  open_all();
  nvm_array *x = ramp();
  ck_assert_int_eq(nvm_eval(&x, 1), NVM_OK);
  float *want = values(nvm_mul(nvm_exp(x), x));
  ck_assert_int_eq(nvm_tune_begin(NULL), NVM_OK);
  int measured = 0;
  for (int64_t at = 1; at < 1500; at += at < 300 ? 3 : 41) {
    ck_assert_int_eq(nvm_tune_clear(NULL), NVM_OK);
    nvm_array *y = nvm_mul(nvm_exp(x), x);
    int64_t before = counted().measured;
    nvb_fail_alloc(at, at % 2);
    int status = nvm_eval(&y, 1);
    nvb_fail_alloc(0, 0);
    ck_assert_msg(status == NVM_OK || status == NVM_ERR_MEMORY, "request %d: %s", (int)at, nvm_last_error());
    measured += counted().measured > before;
    float *got = values(y);
    ck_assert_msg(got && !memcmp(want, got, sizeof *want * N), "request %d", (int)at);
    free(got);
  }
  ck_assert_int_gt(measured, 0);
  ck_assert_int_eq(nvm_tune_end(), NVM_OK);
  free(want);
  close_all();
}
END_TEST

static void *wait_in_session(void *gates) {
  pthread_barrier_t *gate = gates;
  int status = nvm_tune_begin(NULL);
  pthread_barrier_wait(gate);
  pthread_barrier_wait(gate);
  return (void *)(intptr_t)(status || nvm_tune_end());
}
START_TEST(test_child_has_no_sessions_of_others) {
  open_all();
  pthread_barrier_t gate;
  pthread_t other;
  void *failed;
  int status;
  nvm_array *x = ramp();
  pthread_barrier_init(&gate, NULL, 2);
  ck_assert_int_eq(pthread_create(&other, NULL, wait_in_session, &gate), 0);
  pthread_barrier_wait(&gate);
  pid_t child = fork();
  if (!child) {
    int64_t before = counted().measured;
    float *y = values(nvm_add(nvm_exp(x), x));
    _exit(!y || counted().measured != before);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  pthread_barrier_wait(&gate);
  pthread_join(other, &failed);
  ck_assert(WIFEXITED(status) && !WEXITSTATUS(status) && !failed);
  close_all();
}
END_TEST

SUITE("tune", test_options, test_null, test_session, test_cold, test_memory_runs_out,
      test_child_has_no_sessions_of_others)
