/* Compiles CPU kernels in a background thread, which ends when its queue is empty. At the exit of the process, the
   compilation in progress finishes and goes to the disk store; queued kernels are dropped. It never decides when a
   kernel is worth compiling. */
#include "dispatch/warm_up.h"
#include <stdlib.h>
#include "base/lock.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

typedef struct task {
  struct task *next;
  nvd_kernel *k; /* a reference */
} task;

static nvb_lock lock = NVB_LOCK(WARM_UP);
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER; /* signalled when a compilation or the thread ends */
static task *first, **last = &first;
static int running, ended;

static task *take_task(void) { /* called under the lock, as the next two are */
  task *t = first;
  if (t && !(first = t->next)) last = &first;
  return t;
}
static void drop_task(task *t) {
  atomic_store(&t->k->queued, 0);
  nvd_kernel_unref(t->k);
  nvb_free(t);
}
static void drop_tasks(void) {
  for (task *t; (t = take_task());) drop_task(t);
}

static void *compile_tasks(void *arg) {
  (void)arg;
  nvb_lock_take(&lock);
  for (task *t; (t = take_task());) {
    nvb_lock_give(&lock);
    nvd_kernel_compile(t->k);
    nvb_lock_take(&lock);
    drop_task(t);
    pthread_cond_broadcast(&moved);
  }
  running = 0;
  pthread_cond_broadcast(&moved);
  nvb_lock_give(&lock);
  return NULL;
}

void nvd_warm_wait(void) {
  nvb_lock_take(&lock);
  while (running) nvb_lock_await(&lock, &moved);
  nvb_lock_give(&lock);
}

static void at_end(void) {
  nvb_lock_take(&lock);
  ended = 1;
  drop_tasks();
  while (running) nvb_lock_await(&lock, &moved);
  nvb_lock_give(&lock);
}

/* A child does not have the thread; what was queued may be queued anew. */
static void forget_in_child(void) {
  running = 0;
  first = NULL, last = &first;
}
NVB_HOLD_AT_FORK(lock);
NVB_AT_FORK(.in_child = forget_in_child);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init_tasks(void) { atexit(at_end); }

static int start_thread(void) {
  pthread_attr_t detached;
  pthread_t thread;
  if (running || ended || !nvb_fork_seen() || pthread_attr_init(&detached)) return running && !ended;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  running = !pthread_create(&thread, &detached, compile_tasks, NULL);
  pthread_attr_destroy(&detached);
  return running;
}

int nvd_warm_later(nvd_kernel *k) {
  int mark = (int)atomic_load(&nvb_forks) + 1; /* what was queued before a fork counts for nothing in the child */
  if (atomic_exchange(&k->queued, mark) == mark) return 1;
  task *t = nvb_alloc(sizeof *t);
  pthread_once(&once, init_tasks);
  nvb_lock_take(&lock);
  int starts = t && start_thread();
  if (starts) {
    *t = (task){ .k = nvd_kernel_again(k) };
    *last = t;
    last = &t->next;
  }
  nvb_lock_give(&lock);
  if (starts) return 1;
  atomic_store(&k->queued, 0);
  nvb_free(t);
  return 0;
}
