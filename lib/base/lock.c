/* Locks that a fork leaves free. A child's first taker makes the mutex anew. */
#include "base/lock.h"

static atomic_uint forks;
static pthread_mutex_t renewing = PTHREAD_MUTEX_INITIALIZER;

static void in_child(void) {
  renewing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_fetch_add(&forks, 1);
}
__attribute__((constructor)) static void at_fork(void) { pthread_atfork(NULL, NULL, in_child); }

static void renew(nvb_lock *l) {
  pthread_mutex_lock(&renewing);
  if (atomic_load(&l->forks) != atomic_load(&forks)) {
    l->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&l->forks, atomic_load(&forks));
  }
  pthread_mutex_unlock(&renewing);
}

void nvb_lock_take(nvb_lock *l) {
  if (atomic_load_explicit(&l->forks, memory_order_acquire) != atomic_load_explicit(&forks, memory_order_relaxed))
    renew(l);
  pthread_mutex_lock(&l->mutex);
}

void nvb_lock_give(nvb_lock *l) { pthread_mutex_unlock(&l->mutex); }
