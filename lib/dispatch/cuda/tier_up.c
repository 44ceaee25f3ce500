/* Compiles optimised code in background threads, which end when their queue is empty. At the exit of the process,
   compilations in progress finish and go to the disk store; queued ones are dropped. Decides how many threads compile,
   and that a kernel which may never run again waits for its second run while many are queued. */
#include "dispatch/cuda/tier_up.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/dispatch.h"

enum { THREADS = 8, WAITING = 16 };

typedef struct task {
  struct task *next;
  nvd_gpu_kernel *k, *made;
  char source[];
} task;

static nvb_lock lock = NVB_LOCK(TIER_UP);
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER; /* signalled when a task or a thread ends */
static task *first, **last = &first;
static int running, ended, waiting; /* waiting: tasks in the queue */
static int warm;                    /* a compilation has ended: NVRTC has made its tables */
atomic_uint nvd_gpu_spilled;

static void finish_task(task *t, int status) { /* called under the lock */
  if (status) nvd_gpu_kernel_free(t->made);
  else atomic_store(&t->k->optimized, t->made);
  atomic_store(&t->k->expects, 0);
  pthread_cond_broadcast(&moved);
}

static task *take_task(void) {
  task *t = first;
  if (t && !(first = t->next)) last = &first;
  waiting -= t != NULL;
  return t;
}

static void at_end(void);
static void *compile_tasks(void *arg) {
  (void)arg;
  nvb_lock_take(&lock);
  for (task *t; (t = take_task());) {
    nvb_lock_give(&lock);
    int first = !t->k->module, status = nvd_gpu_code_compile(t->made, t->source, first);
    if (status) nvb_log(1, "kernel %s gets no optimised code: %s", t->made->title, nvb_message());
    int spills = status ? first : nvd_gpu_code_spills(t->made);
    nvb_lock_take(&lock);
    if (!warm) warm = !atexit(at_end); /* again: what is registered last is called first */
    finish_task(t, status);
    nvb_lock_give(&lock);
    /* programs with this kernel count as outdated and are planned again */
    atomic_fetch_add(&nvd_gpu_spilled, (unsigned)spills);
    nvd_gpu_kernel_unref(t->k);
    nvb_free(t);
    nvb_lock_take(&lock);
  }
  running--;
  pthread_cond_broadcast(&moved);
  nvb_lock_give(&lock);
  return NULL;
}

/* NVRTC makes tables when it compiles for the first time. What was registered with atexit before is called after they
   are destroyed, too late to wait for a compilation that uses them. */
void nvd_compilers_settle(void) {
  nvb_lock_take(&lock);
  while (running && !warm) nvb_lock_await(&lock, &moved);
  nvb_lock_give(&lock);
}

/* Waits for the threads at exit, so that nothing that they use is unloaded under them. Tasks of the queue fail. */
static void at_end(void) {
  nvb_lock_take(&lock);
  ended = 1;
  for (task *t; (t = take_task());) finish_task(t, NVM_ERR_STATE);
  while (running) nvb_lock_await(&lock, &moved);
  nvb_lock_give(&lock);
}

/* A child has none of the threads. Where there were some, it has no kernels that run either. */
static void forget_in_child(void) {
  ended |= running > 0;
  running = 0;
}
NVB_HOLD_AT_FORK(lock);
NVB_AT_FORK(.in_child = forget_in_child);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init_tasks(void) { atexit(at_end); }

static int start_thread(void) { /* starts one more thread if the limit allows it; returns the number of threads */
  int most = nvb_pool_threads() / 2;
  most = most < 1 ? 1 : most < THREADS ? most : THREADS;
  pthread_attr_t detached;
  pthread_t thread;
  if (running < most && !pthread_attr_init(&detached)) {
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    running += !pthread_create(&thread, &detached, compile_tasks, NULL);
    pthread_attr_destroy(&detached);
  }
  return running;
}

/* Queues the task, which needs no reference to its kernel yet. */
static void queue_task(task *t) {
  nvd_gpu_kernel *k = nvd_gpu_kernel_ref(t->k);
  pthread_once(&once, init_tasks);
  nvb_lock_take(&lock);
  t->next = NULL;
  int starts = !ended && start_thread();
  if (starts) {
    *last = t;
    last = &t->next;
    waiting++;
  } else finish_task(t, NVM_ERR_MEMORY);
  nvb_lock_give(&lock);
  if (starts) return;
  nvd_gpu_kernel_unref(k);
  nvb_free(t);
}

static int is_busy(void) {
  nvb_lock_take(&lock);
  int busy = waiting >= WAITING;
  nvb_lock_give(&lock);
  return busy;
}

void nvd_optimized_start(nvd_gpu_kernel *k) {
  task *t = atomic_load_explicit(&k->parked, memory_order_relaxed) ? atomic_exchange(&k->parked, NULL) : NULL;
  if (t) queue_task(t);
}

void nvd_optimized_drop(nvd_gpu_kernel *k) {
  task *t = atomic_load(&k->parked);
  if (t) nvd_gpu_kernel_free(t->made);
  nvb_free(t);
}

void nvd_optimized_later(nvd_gpu_kernel *k, nvd_gpu_kernel *made, const char *source) {
  size_t n = strlen(source) + 1;
  task *t = nvb_alloc(sizeof *t + n);
  if (!t) { /* then the kernel keeps what it has */
    nvd_gpu_kernel_free(made);
    atomic_store(&k->expects, 0);
    return;
  }
  *t = (task){ .k = k, .made = made };
  memcpy(t->source, source, n);
  atomic_store(&k->expects, 1);
  if (!k->module && is_busy()) atomic_store(&k->parked, t);
  else queue_task(t);
}

void nvd_optimized_wait(nvd_gpu_kernel *k) {
  if (k) nvd_optimized_start(k);
  nvb_lock_take(&lock);
  while ((k ? atomic_load(&k->expects) : running) && !ended) nvb_lock_await(&lock, &moved);
  nvb_lock_give(&lock);
}
