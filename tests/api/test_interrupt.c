/* An evaluation that is interrupted at its n-th question, for each n, ends with that status; the arrays are pending as
   before, and evaluating them again gives the bits of one that nobody interrupted. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "../suite.h"
#include "nvm/nvm.h"

enum { COLS = 48, MOST = 400 };
static nvm_ctx *ctx;
static int64_t asked_so_far, yes_at; /* yes_at 0: never */
static int ask(void *user) {
  ck_assert_ptr_eq(user, &yes_at);
  return ++asked_so_far == yes_at;
}
static void set_up(void) {
  ck_assert_msg(!nvm_ctx_new(&ctx, NULL), "%s", nvm_last_error());
  ck_assert(!nvm_set("tier", "planned"));
  nvm_interrupt_set(ask, &yes_at);
}
static void tear_down(void) {
  nvm_interrupt_set(NULL, NULL);
  ck_assert(!nvm_ctx_free(ctx));
}
static void expect(int64_t at) { asked_so_far = 0, yes_at = at; }

static nvm_array *numbers(int rows) {
  double *x = malloc(sizeof *x * (size_t)rows * COLS);
  for (int i = 0; i < rows * COLS; i++) x[i] = (i * 37 % 101) * 0.02 - 1;
  nvm_array *a = nvm_from_host(ctx, NVM_F64, 2, (int64_t[]){ rows, COLS }, x);
  free(x);
  return a;
}
/* Several kernels: a product, normalised rows, sums of columns. */
static int several(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  nvm_array *x = in[0], *p = nvm_matmul(x, nvm_matrix_transpose(x));
  out[0] = nvm_softmax(nvm_div(p, nvm_std(p, (int[]){ 1 }, 1, 0, 1)), 1);
  out[1] = nvm_sum(nvm_exp(nvm_cumulative_sum(nvm_sin(x), 0)), (int[]){ 0 }, 1, 0);
  return out[0] && out[1] ? NVM_OK : nvm_last_status();
}

static void read_both(nvm_array *const *a, double *to, int rows) {
  ck_assert_msg(!nvm_copy_to_host(a[0], to, sizeof *to * (size_t)(rows * rows)), "%s", nvm_last_error());
  ck_assert_msg(!nvm_copy_to_host(a[1], to + rows * rows, sizeof *to * COLS), "%s", nvm_last_error());
}
static void ck_interrupted(int status) {
  ck_assert_msg(status == NVM_ERR_INTERRUPTED && strstr(nvm_last_error(), "interrupted"), "%d: %s", status,
                nvm_last_error());
}

/* 1: the n-th question was asked. Every n has a shape of its own, so that it is planned. */
static int interrupted_at(int64_t n, int rows) {
  size_t bytes = sizeof(double) * (size_t)(rows * rows + COLS);
  double *again = malloc(bytes), *whole = malloc(bytes);
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = numbers(rows), *a[2], *b[2];
  ck_assert(!several(NULL, ctx, &x, 1, a, 2) && !several(NULL, ctx, &x, 1, b, 2));
  expect(n);
  int status = nvm_eval(a, 2), reached = asked_so_far >= n;
  if (reached) ck_interrupted(status);
  else ck_assert_msg(!status, "%s", nvm_last_error());
  ck_assert(!reached || (nvm_is_pending(a[0]) && nvm_is_pending(a[1])));
  expect(0);
  read_both(a, again, rows);
  read_both(b, whole, rows);
  ck_assert_msg(!memcmp(again, whole, bytes), "other bits after question %lld", (long long)n);
  free(again), free(whole);
  ck_assert(!nvm_scope_close(s));
  return reached;
}

START_TEST(every_question) {
  nvm_counters before, after;
  int64_t n = 1;
  int rows = 40;
  interrupted_at(1 << 30, rows++); /* what is made once */
  ck_assert(!nvm_counters_get(&before, NVM_COUNTERS_VERSION));
  for (; interrupted_at(n, rows++); n += 1 + n / 6) ck_assert_int_lt(rows, MOST);
  ck_assert_msg(n > 8, "asked %lld times", (long long)n);
  ck_assert(!nvm_counters_get(&after, NVM_COUNTERS_VERSION));
  ck_assert_int_eq(after.bytes_used, before.bytes_used);
}
END_TEST

START_TEST(calls_of_functions) {
  nvm_fn *f;
  ck_assert(!nvm_fn_new(&f, ctx, several, NULL, 1, 2));
  nvm_scope *s = nvm_scope_open(ctx);
  int64_t n = 1;
  for (int rows = 40, reached = 1; reached; rows++, n += 1 + n / 4) {
    nvm_array *x = numbers(rows), *out[2];
    expect(n);
    int status = nvm_fn_call(f, &x, out);
    if ((reached = asked_so_far >= n)) {
      ck_interrupted(status);
      ck_assert(!out[0] && !out[1]);
      expect(0);
      status = nvm_fn_call(f, &x, out);
    }
    ck_assert_msg(!status, "%s", nvm_last_error());
    nvm_array_unref(out[0]), nvm_array_unref(out[1]);
  }
  ck_assert(n > 8 && !nvm_scope_close(s) && !nvm_fn_free(f));
}
END_TEST

START_TEST(a_donated_array_is_there_until_something_was_written) {
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = numbers(64), *y = nvm_add(nvm_mul(x, nvm_float(3)), nvm_float(1));
  double out[64 * COLS];
  ck_assert(!nvm_donate(x));
  expect(1); /* while it is planned */
  ck_interrupted(nvm_eval(&y, 1));
  expect(0);
  ck_assert_msg(!nvm_copy_to_host(y, out, sizeof out), "%s", nvm_last_error());
  ck_assert_double_eq(out[0], 3 * -1.0 + 1);
  ck_assert(!nvm_scope_close(s));
}
END_TEST

START_TEST(explaining_too) {
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *x = numbers(33), *a[2];
  char *text;
  ck_assert(!several(NULL, ctx, &x, 1, a, 2));
  expect(1);
  ck_interrupted(nvm_explain(&text, a, 2));
  ck_assert(!text);
  expect(0);
  ck_assert_msg(!nvm_explain(&text, a, 2) && strstr(text, "kernel"), "%s", nvm_last_error());
  nvm_free(text);
  ck_assert(!nvm_scope_close(s));
}
END_TEST

/* Wherever it ends: what was donated is there, and the value comes out of it, or it is lost and says so. */
START_TEST(a_donated_array_is_whole_or_lost) {
  enum { N = 1 << 18 };
  double *out = malloc(sizeof *out * N);
  int64_t n = 1;
  int whole = 0, lost = 0;
  for (int reached = 1; reached; n++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *x = nvm_arange(ctx, NVM_F64, 0, N, 1), *y = nvm_mul(x, nvm_float(3));
    ck_assert(!nvm_donate(x));
    expect(n);
    int status = nvm_eval(&y, 1);
    if ((reached = asked_so_far >= n)) ck_interrupted(status);
    expect(0);
    status = nvm_copy_to_host(y, out, sizeof *out * N);
    ck_assert_msg(!status || (status == NVM_ERR_STATE && strstr(nvm_last_error(), "donated")), "%s", nvm_last_error());
    lost += status != NVM_OK, whole += !status;
    for (int i = 0; i < N && !status; i++) ck_assert_double_eq(out[i], 3.0 * i);
    nvm_scope_close(s);
  }
  free(out);
  ck_assert_msg(whole > 1 && lost > 0, "%d times whole, %d times lost", whole, lost);
}
END_TEST

/* Who waits for another thread's evaluation is asked too. */
static _Thread_local int is_other;
static atomic_int inside, leave;
static int ask_two(void *user) {
  (void)user;
  if (!is_other) return 1;
  for (atomic_store(&inside, 1); !atomic_load(&leave);) sched_yield();
  return 0;
}
static void *evaluates(void *unused) {
  is_other = 1;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *y = nvm_exp(numbers(9));
  int failed = nvm_eval(&y, 1);
  nvm_scope_close(s);
  return failed ? &inside : unused;
}
START_TEST(waiting_for_another_thread) {
  pthread_t other;
  void *failed;
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *y = nvm_sin(numbers(8));
  nvm_interrupt_set(ask_two, NULL);
  ck_assert(!pthread_create(&other, NULL, evaluates, NULL));
  while (!atomic_load(&inside)) sched_yield();
  ck_interrupted(nvm_eval(&y, 1));
  ck_assert(nvm_is_pending(y));
  atomic_store(&leave, 1);
  ck_assert(!pthread_join(other, &failed) && !failed);
  nvm_interrupt_set(ask, &yes_at);
  expect(0);
  ck_assert(!nvm_eval(&y, 1) && !nvm_scope_close(s));
}
END_TEST

/* Measuring is cut short. */
static int64_t questions_of(int rows, int64_t at, int *status) {
  double out[COLS];
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *y = nvm_sum(nvm_exp(nvm_sin(numbers(rows))), (int[]){ 0 }, 1, 0);
  expect(at);
  *status = nvm_eval(&y, 1);
  int64_t n = asked_so_far;
  if (*status) ck_interrupted(*status);
  expect(0);
  ck_assert_msg(!nvm_copy_to_host(y, out, sizeof out) && out[1] > 0, "%s", nvm_last_error());
  ck_assert(!nvm_scope_close(s));
  return n;
}
START_TEST(measuring) {
  int status;
  ck_assert(!nvm_set("cache_dir", "off"));
  int64_t planned = INT64_MAX; /* the least of several: a wait asks as often as its time takes */
  for (int rows = 3000; rows < 3004; rows++) {
    int64_t questions = questions_of(rows, 0, &status);
    ck_assert(!status);
    planned = questions < planned ? questions : planned;
  }
  ck_assert(!nvm_set("tune", "measure"));
  int64_t all = questions_of(3004, 0, &status);
  ck_assert_msg(!status && all > 2 * planned, "%lld questions, %lld with measurements", (long long)planned,
                (long long)all);
  ck_assert_int_le(questions_of(13001, all / 2, &status), all / 2 + 1);
  ck_assert_int_eq(status, NVM_ERR_INTERRUPTED);
  ck_assert(!nvm_set("tune", NULL) && !nvm_set("cache_dir", NULL));
}
END_TEST

/* A read of a GPU's array that has to wait for it; the array stays, and can be read afterwards. */
START_TEST(waiting_for_a_gpu) {
  int interrupted = 0;
  for (int i = 0; i < 40; i++) {
    nvm_scope *s = nvm_scope_open(ctx);
    nvm_array *y = numbers(16);
    double out[16 * COLS];
    for (int k = 0; k < 6; k++) {
      y = nvm_add(nvm_sin(y), nvm_float(k));
      ck_assert_msg(!nvm_eval(&y, 1), "%s", nvm_last_error());
    }
    expect(1);
    int status = i & 1 ? nvm_copy_to_host(y, out, sizeof out) : nvm_synchronize(ctx);
    if (status) ck_interrupted(status), interrupted |= 1 << (i & 1);
    expect(0);
    ck_assert_msg(!nvm_copy_to_host(y, out, sizeof out) && out[0] > 4 && out[0] < 6, "%s", nvm_last_error());
    ck_assert(!nvm_scope_close(s));
  }
  ck_assert_int_eq(interrupted, 3);
}
END_TEST

/* A kernel of many blocks ends between them, on one thread too. */
START_TEST(between_blocks) {
  enum { N = 1 << 21 };
  ck_assert(!nvm_set("num_threads", _i ? "1" : "2"));
  nvm_scope *s = nvm_scope_open(ctx);
  nvm_array *y[3];
  for (int i = 0; i < 3; i++) y[i] = nvm_sin(nvm_arange(ctx, NVM_F64, 0, N, 1));
  expect(0);
  ck_assert(!nvm_eval(y, 1));
  expect(0);
  ck_assert(!nvm_eval(y + 1, 1)); /* the program is known: all questions are of the run */
  int64_t questions = asked_so_far;
  ck_assert_msg(questions > 4, "%lld questions", (long long)questions);
  expect(3);
  ck_interrupted(nvm_eval(y + 2, 1));
  ck_assert_int_le(asked_so_far, 4);
  expect(0);
  ck_assert(!nvm_eval(y + 2, 1) && !nvm_scope_close(s));
}
END_TEST

int main(void) {
  return getenv("NVM_EMU_DIR")
             ? RUN_SUITE_WITH("interrupt", set_up, tear_down, every_question, calls_of_functions, waiting_for_a_gpu)
             : RUN_SUITE_WITH("interrupt", set_up, tear_down, every_question, calls_of_functions,
                              a_donated_array_is_there_until_something_was_written, a_donated_array_is_whole_or_lost,
                              explaining_too, waiting_for_another_thread, measuring, LOOP(between_blocks, 2));
}
