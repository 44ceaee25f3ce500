/* Locks: their order is checked; a forked child can take each, whoever held it at the fork. */
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/settings.h"
#include "nvm/nvm.h"

static nvb_lock outer = NVB_LOCK(FUNCTION), twin = NVB_LOCK(FUNCTION), inner = NVB_LOCK(GPU), innermost;

static void take(nvb_lock *first, nvb_lock *second) {
  nvb_lock_take(first);
  nvb_lock_take(second);
  nvb_lock_give(second);
  nvb_lock_give(first);
}
static void check_order(const char *list) { ck_assert_int_eq(nvb_set("NVM_CHECK", list), NVM_OK); }
static void expect_violation(const char *taken, const char *held) {
  ck_assert_int_eq(nvb_lock_order_kept(), NVM_ERR_INTERNAL);
  ck_assert_ptr_nonnull(strstr(nvb_message(), taken));
  ck_assert_ptr_nonnull(strstr(strstr(nvb_message(), "was taken while"), held));
}

START_TEST(locks_in_order_are_fine) {
  check_order("locks");
  take(&outer, &inner);
  take(&outer, &innermost);
  take(&inner, &innermost);
  nvb_lock_take(&inner); /* not nested: any order */
  nvb_lock_give(&inner);
  ck_assert_int_eq(nvb_lock_wait(&outer), NVM_OK);
  nvb_lock_give(&outer);
  ck_assert_int_eq(nvb_lock_order_kept(), NVM_OK);
}
END_TEST
START_TEST(violations_are_found) {
  check_order("all");
  if (_i == 0) take(&inner, &outer), expect_violation("nvm_fn", "device memory");
  if (_i == 1) take(&outer, &twin), expect_violation("nvm_fn", "nvm_fn");
  if (_i == 2) take(&innermost, &inner), expect_violation("device memory", "innermost");
  if (_i >= 3) { /* a lock that is waited for counts as well, and one that is tried */
    nvb_lock_take(&inner);
    ck_assert_int_eq(_i == 3 ? nvb_lock_wait(&outer) : !nvb_lock_try(&outer), NVM_OK);
    expect_violation("nvm_fn", "device memory");
  }
}
END_TEST
static void *try_other(void *got) { /* from another thread */
  *(int *)got = nvb_lock_try(&outer);
  if (*(int *)got) nvb_lock_give(&outer);
  return NULL;
}
START_TEST(a_lock_is_tried) {
  for (int held = 0; held < 2; held++) {
    pthread_t t;
    int got;
    if (held) nvb_lock_take(&outer);
    ck_assert_int_eq(pthread_create(&t, NULL, try_other, &got), 0);
    pthread_join(t, NULL);
    ck_assert_int_eq(got, !held);
    if (held) nvb_lock_give(&outer);
  }
}
END_TEST
START_TEST(what_was_held_before_checking_counts_for_nothing) {
  check_order("locks");
  nvb_lock_take(&inner);
  check_order("");
  nvb_lock_give(&inner);
  check_order("locks");
  take(&outer, &inner);
  ck_assert_int_eq(nvb_lock_order_kept(), NVM_OK);
}
END_TEST
START_TEST(an_evaluation_reports_a_violation) {
  nvm_ctx *c;
  check_order("locks");
  ck_assert_int_eq(nvm_ctx_new(&c, NULL), NVM_OK);
  nvm_scope *scope = nvm_scope_open(c);
  nvm_array *a = nvm_zeros(c, NVM_F32, 0, NULL), *b = nvm_ones(c, NVM_F32, 0, NULL);
  ck_assert_int_eq(nvm_eval(&a, 1), NVM_OK);
  take(&inner, &outer);
  ck_assert_int_eq(nvm_eval(&b, 1), NVM_ERR_INTERNAL);
  ck_assert_ptr_nonnull(strstr(nvm_last_error(), "[locks]"));
  nvm_scope_close(scope);
  nvm_ctx_free(c);
}
END_TEST

/* ---- forks: a thread holds a lock while the process forks */
typedef struct holder { nvb_lock *lock; sem_t held, done; } holder;
static void *hold(void *arg) {
  holder *h = arg;
  nvb_lock_take(h->lock);
  sem_post(&h->held);
  struct timespec most;
  clock_gettime(CLOCK_REALTIME, &most);
  most.tv_nsec += 30000000;
  if (most.tv_nsec >= 1000000000) most.tv_nsec -= 1000000000, most.tv_sec++;
  sem_timedwait(&h->done, &most); /* a fork waits for a lock that is held at forks */
  nvb_lock_give(h->lock);
  return NULL;
}
static int fork_while_held(nvb_lock *l) { /* the status of a child that takes every lock */
  holder h = { .lock = l };
  pthread_t thread;
  sem_init(&h.held, 0, 0);
  sem_init(&h.done, 0, 0);
  ck_assert_int_eq(pthread_create(&thread, NULL, hold, &h), 0);
  sem_wait(&h.held);
  pid_t child = fork();
  if (!child) {
    alarm(20);
    nvb_lock_take(l);
    nvb_lock_give(l);
    for (int r = 1; r < NVB_NRANKS; r++)
      if (nvb_fork_held(r)) nvb_lock_take(nvb_fork_held(r));
    _exit(0);
  }
  sem_post(&h.done);
  pthread_join(thread, NULL);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}
START_TEST(a_child_can_take_what_another_thread_held) {
  nvb_lock *l = nvb_fork_held(_i);
  if (l) ck_assert_int_eq(fork_while_held(l), 0);
}
END_TEST
START_TEST(a_lock_that_is_no_part_of_a_fork_is_made_anew) {
  ck_assert_int_eq(fork_while_held(&outer), 0);
  ck_assert_int_eq(fork_while_held(&innermost), 0);
}
END_TEST
START_TEST(locks_that_guard_tables_are_held_at_forks) {
  static const int row[] = { NVB_LOCK_PROGRAMS, NVB_LOCK_SESSIONS, NVB_LOCK_RECORDS,    NVB_LOCK_OPENBLAS,
                             NVB_LOCK_NATIVE,   NVB_LOCK_KERNELS,  NVB_LOCK_BACKGROUND, NVB_LOCK_STORE,
                             NVB_LOCK_HEAP,     NVB_LOCK_SETTINGS, NVB_LOCK_FRAGMENTS };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) ck_assert_ptr_nonnull(nvb_fork_held(row[i]));
}
END_TEST

SUITE("lock", locks_in_order_are_fine, a_lock_is_tried, LOOP(violations_are_found, 5),
      what_was_held_before_checking_counts_for_nothing, an_evaluation_reports_a_violation,
      LOOP(a_child_can_take_what_another_thread_held, NVB_NRANKS), a_lock_that_is_no_part_of_a_fork_is_made_anew,
      locks_that_guard_tables_are_held_at_forks)
