/* Compiles optimised code in background threads, which end when their queue is empty. At the exit of the process,
   compilations in progress finish and go to the disk store; queued ones are dropped. Decides how many threads compile;
   never which kernels are. */
#include "dispatch/cuda/tier_up.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"

enum { THREADS = 4 };

typedef struct task {
  struct task *next;
  nvd_gpu_kernel *k, *made;
  char source[];
} task;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER; /* signalled when a task or a thread ends */
static task *first, **last = &first;
static int running, ended;
atomic_uint nvd_gpu_spilled;

static void finish_task(task *t, int status) { /* called under the lock */
  if (status) nvd_gpu_kernel_free(t->made);
  else atomic_store(&t->k->optimized, t->made);
  atomic_store(&t->k->expects, 0);
  pthread_cond_broadcast(&moved);
}

static task *take_task(void) {
  task *t = ended ? NULL : first;
  if (t && !(first = t->next)) last = &first;
  return t;
}

static void *compile_tasks(void *arg) {
  (void)arg;
  pthread_mutex_lock(&lock);
  for (task *t; (t = take_task());) {
    pthread_mutex_unlock(&lock);
    int status = nvd_gpu_code_compile(t->made, t->source);
    if (status) nvb_log(1, "kernel %s stays in the baseline tier: %s", t->made->title, nvb_message());
    int spills = !status && nvd_gpu_code_spills(t->made);
    pthread_mutex_lock(&lock);
    finish_task(t, status);
    pthread_mutex_unlock(&lock);
    /* programs with this kernel count as outdated and are planned again */
    atomic_fetch_add(&nvd_gpu_spilled, (unsigned)spills);
    nvd_gpu_kernel_unref(t->k);
    nvb_free(t);
    pthread_mutex_lock(&lock);
  }
  running--;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Waits for the threads at exit, so that nothing that they use is unloaded under them. */
static void at_end(void) {
  pthread_mutex_lock(&lock);
  ended = 1;
  while (running) pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}

static void lock_tasks(void) { pthread_mutex_lock(&lock); }
static void unlock_tasks(void) { pthread_mutex_unlock(&lock); }
static void forget_in_child(void) { /* a child has neither these threads nor kernels that run */
  running = 0;
  ended = 1;
  pthread_mutex_unlock(&lock);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init_tasks(void) {
  atexit(at_end);
  pthread_atfork(lock_tasks, unlock_tasks, forget_in_child);
}

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

void nvd_optimized_later(nvd_gpu_kernel *k, nvd_gpu_kernel *made, const char *source) {
  size_t n = strlen(source) + 1;
  task *t = nvb_alloc(sizeof *t + n);
  if (!t) { /* then the kernel keeps its baseline code */
    nvd_gpu_kernel_free(made);
    return;
  }
  *t = (task){ .k = nvd_gpu_kernel_ref(k), .made = made };
  memcpy(t->source, source, n);
  pthread_once(&once, init_tasks);
  pthread_mutex_lock(&lock);
  atomic_store(&k->expects, 1);
  *last = t;
  last = &t->next;
  if (!start_thread()) {
    take_task();
    finish_task(t, NVM_ERR_MEMORY);
    nvd_gpu_kernel_unref(k);
    nvb_free(t);
  }
  pthread_mutex_unlock(&lock);
}

void nvd_optimized_wait(nvd_gpu_kernel *k) {
  pthread_mutex_lock(&lock);
  while ((k ? atomic_load(&k->expects) : running) && !ended) pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}
