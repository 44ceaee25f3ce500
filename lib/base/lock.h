/* A lock that is free in a forked child, where the thread that held it does not exist. The child sees the guarded
   data as it was at the fork, so that data must be consistent at every moment. NVB_LOCK, or zeroed memory, is an
   unlocked lock. */
#ifndef NVM_BASE_LOCK_H
#define NVM_BASE_LOCK_H
#include <pthread.h>
#include <stdatomic.h>

typedef struct nvb_lock {
  pthread_mutex_t mutex;
  atomic_uint forks; /* forks from the program's start to the process that initialised the mutex */
} nvb_lock;
#define NVB_LOCK { .mutex = PTHREAD_MUTEX_INITIALIZER }

void nvb_lock_take(nvb_lock *l);
/* Does the same, but an interrupt (base/interrupt.h) ends the wait. Returns a status; the lock is taken only on
   NVM_OK. */
int nvb_lock_wait(nvb_lock *l);
void nvb_lock_give(nvb_lock *l);
#endif
