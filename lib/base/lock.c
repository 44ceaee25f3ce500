/* Implements locks that are free in a forked child: the first thread of the child that takes one initialises its
   mutex again. */
#include "base/lock.h"
#include <time.h>
#include "base/interrupt.h"
#include "nvm/status.h"

static atomic_uint forks;
static pthread_mutex_t renewing = PTHREAD_MUTEX_INITIALIZER;

static void renew_all(void) {
  renewing = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  atomic_fetch_add(&forks, 1);
}
__attribute__((constructor)) static void at_fork(void) { pthread_atfork(NULL, NULL, renew_all); }

static void init_again(nvb_lock *l) {
  pthread_mutex_lock(&renewing);
  if (atomic_load(&l->forks) != atomic_load(&forks)) {
    l->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&l->forks, atomic_load(&forks));
  }
  pthread_mutex_unlock(&renewing);
}

static void meet_forks(nvb_lock *l) {
  if (atomic_load_explicit(&l->forks, memory_order_acquire) != atomic_load_explicit(&forks, memory_order_relaxed))
    init_again(l);
}

void nvb_lock_take(nvb_lock *l) {
  meet_forks(l);
  pthread_mutex_lock(&l->mutex);
}

int nvb_lock_wait(nvb_lock *l) {
  enum { SLICE = 20000000, SECOND = 1000000000 }; /* ns */
  meet_forks(l);
  for (int taken = !pthread_mutex_trylock(&l->mutex); !taken;) {
    int status = nvb_interrupted();
    if (status) return status;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += SLICE;
    if (until.tv_nsec >= SECOND) until.tv_nsec -= SECOND, until.tv_sec++;
    taken = !pthread_mutex_timedlock(&l->mutex, &until);
  }
  return NVM_OK;
}

void nvb_lock_give(nvb_lock *l) { pthread_mutex_unlock(&l->mutex); }
