/* Locks. Each has a rank, its row in lock_order.def. None leaves a forked child stuck, where the thread that held it
   does not exist. There are two kinds: a lock that NVB_HOLD_AT_FORK names is held while the process forks, so a child
   finds the data whole; nothing that takes long may run under it. Any other lock is made anew in the child, which sees
   the data as it was at the fork, so that data must be consistent at every moment. */
#ifndef NVM_BASE_LOCK_H
#define NVM_BASE_LOCK_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

typedef enum nvb_rank {
  NVB_LOCK_INNERMOST, /* zeroed memory is an unlocked lock of this rank */
#define LOCK(id, what) NVB_LOCK_##id,
#include "base/lock_order.def"
#undef LOCK
  NVB_NRANKS
} nvb_rank;

typedef struct nvb_lock {
  pthread_mutex_t mutex;
  atomic_uint forks; /* forks from the program's start to the process that initialised the mutex */
  nvb_rank rank;
  struct nvb_lock *next; /* in the list of locks that are held at forks */
} nvb_lock;
#define NVB_LOCK(id) { .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = NVB_LOCK_##id }

void nvb_lock_take(nvb_lock *l);
/* Does the same, but an interrupt (base/interrupt.h) ends the wait. Returns a status; the lock is taken only on
   NVM_OK. */
int nvb_lock_wait(nvb_lock *l);
int nvb_lock_try(nvb_lock *l); /* takes the lock if no thread has it; returns whether it did */
void nvb_lock_give(nvb_lock *l);
void nvb_lock_await(nvb_lock *l, pthread_cond_t *signal); /* gives the lock while it waits for the signal */

/* ---- events: a thread waits until something is over, which another tells. Zeroed memory is an event. */
typedef struct nvb_event { _Atomic uint32_t told; atomic_int waiting; } nvb_event;
/* Waits until is_over(arg); an interrupt ends the wait. Returns a status. */
int nvb_event_await(nvb_event *e, int (*is_over)(void *arg), void *arg);
void nvb_event_tell(nvb_event *e); /* costs one load while nobody waits */

/* ---- forks. The process registers one handler with pthread_atfork, which takes the held locks in the order of their
   ranks and then calls the hooks. */
typedef struct nvb_fork_hook {
  void (*before)(void), (*in_child)(void); /* called with every held lock taken; NULL: nothing */
  struct nvb_fork_hook *next;
} nvb_fork_hook;
extern atomic_uint nvb_forks;             /* forks from the program's start to this process */
void nvb_fork_hold(nvb_lock *l);          /* the lock is held at forks from now on */
nvb_lock *nvb_fork_held(nvb_rank r);      /* the first one of this rank; NULL: none */
void nvb_fork_hook_add(nvb_fork_hook *h); /* h stays */
int nvb_fork_seen(void);                  /* 0: the handler could not be registered, so no thread may be started */
/* Declarations at file scope: a static lock, or a member of a static object, that is held at forks; and hooks. */
#define NVB_HOLD_AT_FORK(lock) NVB_WHEN_LOADED(__LINE__, nvb_fork_hold(&lock))
#define NVB_AT_FORK(...) \
  NVB_WHEN_LOADED(__LINE__, static nvb_fork_hook hook = { __VA_ARGS__ }; nvb_fork_hook_add(&hook))
#define NVB_WHEN_LOADED(line, ...) NVB_WHEN_LOADED_(line, __VA_ARGS__)
#define NVB_WHEN_LOADED_(line, ...) \
  __attribute__((constructor)) static void when_loaded_##line(void) { __VA_ARGS__; } \
  _Static_assert(1, "a semicolon follows")

/* ---- the order is checked under NVM_CHECK=locks, and in builds with a sanitizer always */
void nvb_lock_check(int on);
/* NVM_OK, or NVM_ERR_INTERNAL with the first pair of locks that were taken against their order. */
int nvb_lock_order_kept(void);
#endif
