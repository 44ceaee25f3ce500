/* The thread pool: every index once, nested and concurrent runs, fork, thread counts, the floating-point
   environment. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/caps.h"
#include "base/err.h"
#include "base/pool.h"
#include "base/settings.h"
#if defined __SSE__
#include <xmmintrin.h>
#endif

enum { N = 10007 };
typedef struct tally { atomic_uchar seen[N]; _Atomic int chunks, workers[64], worst; int64_t grain; } tally;

static void count(void *arg, int64_t lo, int64_t hi, int worker) {
  tally *t = arg;
  t->chunks++;
  if (hi - lo > t->grain) t->worst = 1;
  t->workers[worker]++;
  for (int64_t i = lo; i < hi; i++) t->seen[i]++;
}

static void check_once(tally *t, int64_t n) {
  for (int64_t i = 0; i < n; i++) ck_assert_int_eq(t->seen[i], 1);
  for (int64_t i = n; i < N; i++) ck_assert_int_eq(t->seen[i], 0);
}

START_TEST(every_index_once) {
  static tally t;
  static const int64_t sizes[] = { 1, 2, 3, 64, 1000, N };
  for (int threads = 1; threads <= 9; threads += 2) {
    ck_assert_int_eq(nvb_pool_set_threads(threads), NVM_OK);
    ck_assert_int_eq(nvb_pool_threads(), threads);
    for (int s = 0; s < 6; s++)
      for (int64_t grain = 1; grain <= N; grain = grain * 5 + 1) {
        memset(&t, 0, sizeof t);
        t.grain = grain;
        nvb_pool_run(count, &t, sizes[s], grain);
        check_once(&t, sizes[s]);
        for (int w = threads; w < 64; w++) ck_assert_int_eq(t.workers[w], 0);
        if (threads == 1 || grain >= sizes[s]) {
          ck_assert_int_eq(t.chunks, 1);
          ck_assert_int_eq(t.workers[0], 1);
        } else {
          ck_assert_int_eq(t.chunks, (sizes[s] + grain - 1) / grain);
          ck_assert_int_eq(t.worst, 0);
        }
      }
  }
  memset(&t, 0, sizeof t);
  nvb_pool_run(count, &t, 0, 1);
  ck_assert_int_eq(t.chunks, 0);
}
END_TEST

static _Atomic int64_t total;
static void add(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)worker;
  int64_t s = 0;
  for (int64_t i = lo; i < hi; i++) s += i;
  atomic_fetch_add((_Atomic int64_t *)arg, s);
}
static int sum_is_right(void) {
  _Atomic int64_t s = 0;
  nvb_pool_run(add, &s, 1000, 7);
  return s == 499500;
}
static void sum_once(void) { ck_assert(sum_is_right()); }

START_TEST(many_short_runs) {
  nvb_pool_set_threads(4);
  for (int i = 0; i < 20000; i++) sum_once();
  for (int i = 0; i < 20; i++) { /* workers fall asleep in between */
    usleep(2000);
    sum_once();
  }
}
END_TEST

static void nest(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)worker;
  for (int64_t i = lo; i < hi; i++) nvb_pool_run(add, arg, 100, 3);
}
START_TEST(nested_runs_do_not_wait) {
  nvb_pool_set_threads(4);
  total = 0;
  nvb_pool_run(nest, &total, 50, 1);
  ck_assert_int_eq(total, 50 * 4950);
}
END_TEST

static void *runner(void *arg) {
  (void)arg;
  for (int i = 0; i < 3000; i++) sum_once();
  return NULL;
}
START_TEST(concurrent_runs) {
  nvb_pool_set_threads(3);
  pthread_t t[6];
  for (int i = 0; i < 6; i++) ck_assert_int_eq(pthread_create(&t[i], NULL, runner, NULL), 0);
  for (int i = 0; i < 6; i++) pthread_join(t[i], NULL);
}
END_TEST

static void child_runs(void) {
  pid_t pid = fork();
  if (!pid) { /* nothing of Check's: its lock may have been taken */
    alarm(20);
    int right = 1;
    for (int i = 0; i < 50; i++) right &= sum_is_right();
    _exit(!right);
  }
  int status;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %x", (unsigned)status);
}
START_TEST(fork_then_run) {
  nvb_pool_set_threads(4);
  for (int i = 0; i < 30; i++) {
    sum_once();
    child_runs();
  }
}
END_TEST

static _Atomic int stop, wrong;
static void *busy_runner(void *arg) {
  (void)arg;
  while (!stop) wrong += !sum_is_right();
  return NULL;
}
START_TEST(fork_while_another_thread_runs) {
  nvb_pool_set_threads(3);
  pthread_t t;
  pthread_create(&t, NULL, busy_runner, NULL);
  for (int i = 0; i < 50; i++) child_runs();
  stop = 1;
  pthread_join(t, NULL);
  ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(thread_count_from_the_environment) {
  setenv("OMP_NUM_THREADS", "5,2", 1);
  ck_assert_int_eq(nvb_pool_threads(), 5);
  ck_assert_int_eq(nvb_pool_set_threads(2), NVM_OK);
  ck_assert_int_eq(nvb_pool_threads(), 2);
  ck_assert_int_eq(nvb_caps_cpu().cores, 2);
  ck_assert_int_eq(nvb_pool_set_threads(0), NVM_OK);
  ck_assert_int_eq(nvb_pool_threads(), 5);
  ck_assert_int_eq(nvb_pool_set_threads(-1), NVM_ERR_VALUE);
}
END_TEST

START_TEST(own_setting_goes_first) {
  setenv("OMP_NUM_THREADS", "5", 1);
  setenv("NVM_NUM_THREADS", "3", 1);
  ck_assert_int_eq(nvb_pool_threads(), 3);
}
END_TEST

START_TEST(facts_of_machines) {
  const nvb_caps *g = nvb_caps_find("h200"), cpu = nvb_caps_cpu(), *c = &cpu;
  ck_assert_int_eq(g->cores, 132);
  ck_assert_int_eq(nvb_caps_find("cpu16")->cores, 16);
  ck_assert_ptr_null(nvb_caps_find("abacus"));
  ck_assert_int_eq(c->cores, nvb_pool_threads());
  ck_assert(c->width == 4 || c->width == 8 || c->width == 16);
  ck_assert(c->onchip > 0 && c->l2 > 0 && c->bandwidth >= c->core_bandwidth && c->rate > 0);
  nvb_set("isa", "128");
  ck_assert_int_eq(nvb_caps_cpu().width, 4);
}
END_TEST

#if defined __SSE__
static _Atomic int wrong_mode, chunks_seen;
static void look(void *arg, int64_t lo, int64_t hi, int worker) {
  (void)arg, (void)lo, (void)hi, (void)worker;
  if ((_mm_getcsr() & ~0x3fu) != 0x1f80) wrong_mode++;
  chunks_seen++;
  usleep(200); /* so that the workers come too */
}
START_TEST(floating_point_environment) {
  nvb_pool_set_threads(3);
  unsigned flushing = _mm_getcsr() | 0x8040; /* flush to zero, denormals are zero */
  _mm_setcsr(flushing);                      /* threads made now inherit it */
  nvb_pool_run(look, NULL, 64, 1);
  nvb_pool_run(look, NULL, 1, 1);
  ck_assert_int_eq(wrong_mode, 0);
  ck_assert_int_eq(chunks_seen, 65);
  ck_assert_uint_eq(_mm_getcsr() & 0xffc0, flushing & 0xffc0); /* the caller's own is back */
}
END_TEST
#define FP_TESTS , floating_point_environment
#else
#define FP_TESTS
#endif

SUITE("pool", every_index_once, many_short_runs, nested_runs_do_not_wait, concurrent_runs, fork_then_run,
      fork_while_another_thread_runs, thread_count_from_the_environment, own_setting_goes_first,
      facts_of_machines FP_TESTS)
