/* Straight code is compiled by threads of its own, which end when nothing is left to do. At the end of the process what
   is being compiled still goes to the disk store; what is not begun is left. Decides how many compile at once. */
#include "dispatch/cuda_straight.h"
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"

enum { THREADS = 4 };

struct nvd_straight {
  nvd_straight *next;
  nvd_gpu_kernel *k, *made;        /* k: NULL until it is given, or for ever */
  int status, halves;              /* 2: compiled and given */
  char source[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER; /* a task or a thread has ended */
static nvd_straight *first, **last = &first;
static int running, ended;

/* By who comes second, after one who has compiled it or given it. */
static void conclude(nvd_straight *t) {
  nvd_gpu_kernel *made = t->made;
  int spills = 0;
  pthread_mutex_lock(&lock);
  if (t->k && !t->status) {
    spills = nvd_gpu_code_spills(made);
    atomic_store(&t->k->straight, made);
    made = NULL;
  }
  if (t->k)
    atomic_store(&t->k->expects, 0);
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  if (spills) /* programs are planned again; the planner is told then */
    nvb_settings_touch();
  nvd_gpu_kernel_free(made);
  nvd_gpu_kernel_unref(t->k);
  nvb_free(t);
}

static nvd_straight *take(void) {
  nvd_straight *t = ended ? NULL : first;
  if (t && !(first = t->next))
    last = &first;
  return t;
}

static void *compile_tasks(void *arg) {
  (void)arg;
  pthread_mutex_lock(&lock);
  for (nvd_straight *t; (t = take());) {
    pthread_mutex_unlock(&lock);
    t->status = nvd_gpu_code_compile(t->made, t->source);
    if (t->status)
      nvb_log(1, "kernel %s stays compact: %s", t->made->title, nvb_message());
    pthread_mutex_lock(&lock);
    if (++t->halves < 2)
      continue;
    pthread_mutex_unlock(&lock);
    conclude(t);
    pthread_mutex_lock(&lock);
  }
  running--;
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
  return NULL;
}

/* Code that is being compiled must not be unloaded under its thread. */
static void at_end(void) {
  pthread_mutex_lock(&lock);
  ended = 1;
  while (running)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}

static void hold(void) { pthread_mutex_lock(&lock); }
static void let_go(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) { /* where no kernel runs, nor any of these threads */
  running = 0;
  ended = 1;
  pthread_mutex_unlock(&lock);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void init(void) {
  atexit(at_end);
  pthread_atfork(hold, let_go, in_child);
}

static int start(void) { /* one more thread, if there may be one; 0: none is at work */
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

nvd_straight *nvd_straight_begin(nvd_gpu_kernel *made, const char *source) {
  size_t n = strlen(source) + 1;
  nvd_straight *t = nvb_calloc(1, sizeof *t + n);
  if (!t) {
    nvd_gpu_kernel_free(made);
    return NULL;
  }
  t->made = made;
  memcpy(t->source, source, n);
  pthread_once(&once, init);
  pthread_mutex_lock(&lock);
  *last = t;
  last = &t->next;
  if (!start()) {
    take();
    t->status = NVM_ERR_MEMORY;
    t->halves = 1;
  }
  pthread_mutex_unlock(&lock);
  return t;
}

void nvd_straight_give(nvd_straight *t, nvd_gpu_kernel *k) {
  if (!t) {
    if (k) /* it stays as it is */
      atomic_store(&k->expects, 0);
    return;
  }
  k = k ? nvd_gpu_kernel_ref(k) : NULL;
  pthread_mutex_lock(&lock);
  t->k = k;
  int compiled = ++t->halves == 2;
  pthread_mutex_unlock(&lock);
  if (compiled)
    conclude(t);
}

void nvd_straight_wait(nvd_gpu_kernel *k) {
  pthread_mutex_lock(&lock);
  while ((k ? atomic_load(&k->expects) : running) && !ended)
    pthread_cond_wait(&moved, &lock);
  pthread_mutex_unlock(&lock);
}
