/* The CPU thread pool, built on Linux futexes. One job at a time is open; a worker that is awake enters it and takes
   chunks until none is left, and a worker that wakes too late does not delay the caller. The pool decides which
   thread runs a chunk, never what a chunk is. */
#include "base/pool.h"
#include <linux/futex.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/lock.h"
#include "base/settings.h"

/* ---- floating-point environment: round to nearest, subnormals kept, no traps; sticky flags are left alone */
#if defined __SSE__
#include <xmmintrin.h>
enum { FP_FLAGS = 0x3f, FP_DEFAULT = 0x1f80 };
static inline unsigned fp_read(void) { return _mm_getcsr(); }
static inline void fp_write(unsigned x) { _mm_setcsr(x); }
#elif defined __aarch64__
enum { FP_FLAGS = 0, FP_DEFAULT = 0 };
static inline unsigned fp_read(void) {
  uint64_t x;
  __asm__ volatile("mrs %0, fpcr" : "=r"(x));
  return (unsigned)x;
}
static inline void fp_write(unsigned x) { __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)x)); }
#else
#include <fenv.h>
enum { FP_FLAGS = 0, FP_DEFAULT = FE_TONEAREST };
static inline unsigned fp_read(void) { return (unsigned)fegetround(); }
static inline void fp_write(unsigned x) { fesetround((int)x); }
#endif

unsigned nvb_fp_enter(void) {
  unsigned x = fp_read();
  if ((x & ~(unsigned)FP_FLAGS) != FP_DEFAULT) fp_write(FP_DEFAULT | (x & FP_FLAGS));
  return x;
}

void nvb_fp_leave(unsigned saved) {
  if ((saved & ~(unsigned)FP_FLAGS) != FP_DEFAULT) fp_write(saved);
}

/* ---- the job. `state` tells whether the job is open and how many workers are inside; the other fields change only
   while it is closed and empty. When the generation counter wraps, a worker may miss one job, which is harmless. */
enum { MAX_THREADS = 1024, CLOSED = 1 << 15, INSIDE = CLOSED - 1, GENERATION = 1 << 16, SPIN_NS = 100000 };
#define GEN(s) ((s) / GENERATION)

static struct {
  void (*fn)(void *, int64_t, int64_t, int);
  void *arg;
  int64_t n, grain;
  int limit;   /* threads that may take part */
  int started; /* workers that exist */
  int avoided; /* the processor that the workers are kept off; -1: none */
  pthread_t worker[MAX_THREADS];
  _Atomic int spin; /* 1: waiting threads may spin, since there is a core for each */
  _Alignas(64) _Atomic uint32_t state;
  _Alignas(64) _Atomic int64_t next;
  _Alignas(64) _Atomic int sleepers, caller_sleeps, busy;
} pool = { .avoided = -1, .state = CLOSED };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int cores, by_environment;

static void futex_wait(uint32_t seen, uint32_t who) {
  syscall(SYS_futex, &pool.state, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, who);
}
static void futex_wake(int count, uint32_t who) {
  syscall(SYS_futex, &pool.state, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, who);
}
enum { WORKERS = 1, CALLER = 2 };

static void relax_core(void) {
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

static void after_fork(void) { /* only the forking thread exists in the child */
  pool.started = 0;
  pool.avoided = -1;
  atomic_store(&pool.state, CLOSED);
  atomic_store(&pool.sleepers, 0);
  atomic_store(&pool.caller_sleeps, 0);
  atomic_store(&pool.busy, 0);
}
NVB_AT_FORK(.in_child = after_fork);

static void init_pool(void) {
  cpu_set_t set;
  cores = sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
  cores = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : cores;
  const char *omp = nvb_env("OMP_NUM_THREADS"); /* may be a list, one number per level */
  long n = omp ? strtol(omp, NULL, 10) : 0;
  by_environment = n < 1 ? cores : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

int nvb_pool_threads(void) {
  pthread_once(&once, init_pool);
  int64_t n = nvb_int(NVB_THREADS);
  return n <= 0 ? by_environment : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

int nvb_pool_set_threads(int n) {
  char text[16];
  snprintf(text, sizeof text, "%d", n);
  return nvb_set("NVM_NUM_THREADS", text);
}

static void take_chunks(int worker) {
  int64_t n = pool.n, grain = pool.grain;
  for (int64_t lo; (lo = atomic_fetch_add_explicit(&pool.next, grain, memory_order_relaxed)) < n;)
    pool.fn(pool.arg, lo, n - lo < grain ? n : lo + grain, worker);
}

/* Waits until there is a job that this worker has not done yet; returns the state it saw. */
static uint32_t await_job(uint32_t done) {
  int64_t stop = pool.spin ? nvb_clock_ns() + SPIN_NS : 0;
  for (int i = 0;; i++) {
    uint32_t s = atomic_load(&pool.state);
    if (!(s & CLOSED) && GEN(s) != done) return s;
    if (i % 64 == 0 && (!pool.spin || nvb_clock_ns() >= stop)) {
      atomic_fetch_add(&pool.sleepers, 1);
      futex_wait(s, WORKERS);
      atomic_fetch_sub(&pool.sleepers, 1);
    } else {
      relax_core();
    }
  }
}

static void *run_worker(void *index) {
  int worker = (int)(intptr_t)index;
  uint32_t done = GEN(CLOSED) - 1;
  for (;;) {
    uint32_t s = await_job(done);
    if (!atomic_compare_exchange_weak(&pool.state, &s, s + 1)) continue;
    done = GEN(s);
    nvb_fp_enter();
    if (worker < pool.limit) take_chunks(worker);
    s = atomic_fetch_sub(&pool.state, 1) - 1;
    if ((s & CLOSED) && !(s & INSIDE) && atomic_load(&pool.caller_sleeps)) futex_wake(1, CALLER);
  }
  return NULL;
}

static void start_threads(int threads) { /* threads that cannot be started leave their work to the others */
  if (pool.started >= threads - 1 || !nvb_fork_seen()) return;
  pthread_attr_t attr;
  if (pthread_attr_init(&attr)) return;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  sigset_t all, old;
  sigfillset(&all);
  /* workers block all signals: they are delivered to the program's own threads */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  while (pool.started < threads - 1) {
    void *index = (void *)(intptr_t)(pool.started + 1);
    if (pthread_create(&pool.worker[pool.started], &attr, run_worker, index)) break;
    pool.started++;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attr);
}

/* Keeps the workers off the caller's processor. A sleeping worker is often woken on the processor of its waker,
   where it makes no progress for a millisecond (measured: after an idle time a job of 560 us took 770 us, with this
   400 us). */
static void keep_off_caller(void) {
  cpu_set_t set;
  int cpu = sched_getcpu();
  if (cpu < 0 || cpu == pool.avoided || sched_getaffinity(0, sizeof set, &set)) return;
  CPU_CLR(cpu, &set);
  if (!CPU_COUNT(&set)) return;
  for (int i = 0; i < pool.started; i++) pthread_setaffinity_np(pool.worker[i], sizeof set, &set);
  pool.avoided = cpu;
}

static void await_workers(void) {
  int64_t stop = pool.spin ? nvb_clock_ns() + SPIN_NS : 0;
  for (int i = 0;; i++) {
    uint32_t s = atomic_load(&pool.state);
    if (!(s & INSIDE)) return;
    if (i % 64 == 0 && nvb_clock_ns() >= stop) {
      atomic_store(&pool.caller_sleeps, 1);
      futex_wait(s, CALLER);
      atomic_store(&pool.caller_sleeps, 0);
    } else {
      relax_core();
    }
  }
}

static void run_together(void (*fn)(void *, int64_t, int64_t, int), void *arg, int64_t n, int64_t grain, int threads) {
  atomic_store_explicit(&pool.spin, threads <= cores, memory_order_relaxed);
  start_threads(threads);
  pool.fn = fn;
  pool.arg = arg;
  pool.n = n;
  pool.grain = grain;
  pool.limit = threads;
  atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
  uint32_t s = atomic_load(&pool.state);
  atomic_store(&pool.state, (GEN(s) + 1) * GENERATION);
  int64_t others = (n + grain - 1) / grain - 1;
  if (atomic_load(&pool.sleepers)) {
    keep_off_caller();
    /* with more workers than the limit, a worker that may not take part could be the one woken: wake all */
    futex_wake(others >= threads - 1 || pool.started >= threads ? INT_MAX : (int)others, WORKERS);
  }
  take_chunks(0);
  atomic_fetch_or(&pool.state, CLOSED);
  await_workers();
}

void nvb_pool_run_with(int threads, void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n,
                       int64_t grain) {
  if (n <= 0) return;
  unsigned fp = nvb_fp_enter();
  if (threads > 1 && grain < n && !atomic_exchange(&pool.busy, 1)) {
    run_together(fn, arg, n, grain < 1 ? 1 : grain, threads < MAX_THREADS ? threads : MAX_THREADS);
    atomic_store(&pool.busy, 0);
  } else {
    fn(arg, 0, n, 0);
  }
  nvb_fp_leave(fp);
}

void nvb_pool_run(void (*fn)(void *arg, int64_t lo, int64_t hi, int worker), void *arg, int64_t n, int64_t grain) {
  nvb_pool_run_with(grain >= n ? 1 : nvb_pool_threads(), fn, arg, n, grain);
}
