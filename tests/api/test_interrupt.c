/* An evaluation that is interrupted at its n-th question, for each n, ends with that status; the arrays are pending as
   before, and evaluating them again gives the bits of one that nobody interrupted. */
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
  nvm_array *a = nvm_from_host(ctx, NVM_F64, 2, (int64_t[]){rows, COLS}, x);
  free(x);
  return a;
}
/* Several kernels: a product, normalised rows, sums of columns. */
static int several(void *user, nvm_ctx *c, nvm_array *const *in, int nin, nvm_array **out, int nout) {
  (void)user, (void)c, (void)nin, (void)nout;
  nvm_array *x = in[0], *p = nvm_matmul(x, nvm_matrix_transpose(x));
  out[0] = nvm_softmax(nvm_div(p, nvm_std(p, (int[]){1}, 1, 0, 1)), 1);
  out[1] = nvm_sum(nvm_exp(nvm_cumulative_sum(nvm_sin(x), 0)), (int[]){0}, 1, 0);
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
  expect(questions / 2);
  ck_interrupted(nvm_eval(y + 2, 1));
  ck_assert_int_le(asked_so_far, questions / 2 + 1);
  expect(0);
  ck_assert(!nvm_eval(y + 2, 1) && !nvm_scope_close(s));
}
END_TEST

int main(void) {
  return getenv("NVM_EMU_DIR") ? RUN_SUITE_WITH("interrupt", set_up, tear_down, every_question, calls_of_functions)
                               : RUN_SUITE_WITH("interrupt", set_up, tear_down, every_question, calls_of_functions,
                                                a_donated_array_is_there_until_something_was_written, explaining_too,
                                                LOOP(between_blocks, 2));
}
