/* A lock that is free in a forked child: who held it is not there. What it guards must make sense at any moment,
   since the child finds it as it was then. NVB_LOCK, or all 0, is an open one. */
#ifndef NVM_BASE_LOCK_H
#define NVM_BASE_LOCK_H
#include <pthread.h>
#include <stdatomic.h>

typedef struct nvb_lock {
  pthread_mutex_t mutex;
  atomic_uint forks; /* between the program's start and the process that initialised the mutex */
} nvb_lock;
#define NVB_LOCK { .mutex = PTHREAD_MUTEX_INITIALIZER }

void nvb_lock_take(nvb_lock *l);
/* The same, but that waiting may be interrupted (base/interrupt.h): a status; NVM_OK: it is taken. */
int nvb_lock_wait(nvb_lock *l);
void nvb_lock_give(nvb_lock *l);
#endif
