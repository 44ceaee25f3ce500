/* Implements locks: their order, and what becomes of them in a forked child. The
   child releases each lock that was held for the fork; any other lock is initialised by the first thread of the child
   that takes it. */
#include "base/lock.h"
#include <linux/futex.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/err.h"
#include "base/interrupt.h"

/* ---- order */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { ALWAYS = 1 };
#else
enum { ALWAYS = 0 };
#endif
static const char *const names[NVB_NRANKS] = {
  "one of the innermost",
#define LOCK(id, what) what,
#include "base/lock_order.def"
#undef LOCK
};
static atomic_uint checking = ALWAYS; /* 0: not now; each time it is switched on has a number of its own */
static atomic_uint broken;            /* the first violation: the rank held, the rank taken, 1 */
/* The ranks that this thread holds, as bits, since checking was switched on for the `since`th time. */
static _Thread_local struct {
  uint64_t ranks;
  unsigned since;
} held;

static unsigned depth_of(const nvb_lock *l) { return l->rank ? l->rank : NVB_NRANKS; }
static void note_taken(const nvb_lock *l) {
  unsigned now = atomic_load_explicit(&checking, memory_order_relaxed), depth = depth_of(l), none = 0;
  if (held.since != now) held.ranks = 0, held.since = now;
  uint64_t inside = held.ranks >> depth;
  if (inside) {
    unsigned deepest = depth + 63 - (unsigned)__builtin_clzll(inside);
    atomic_compare_exchange_strong(&broken, &none, deepest << 16 | depth << 8 | 1);
  }
  held.ranks |= 1ull << depth;
}
static void note_given(const nvb_lock *l) { held.ranks &= ~(1ull << depth_of(l)); }
static int is_checking(void) { return atomic_load_explicit(&checking, memory_order_relaxed) != 0; }

void nvb_lock_check(int on) {
  static atomic_uint times = ALWAYS;
  if (!on && !ALWAYS) atomic_store(&checking, 0);
  if (on && !is_checking()) atomic_store(&checking, atomic_fetch_add(&times, 1) + 1);
}
int nvb_lock_order_kept(void) {
  unsigned b = is_checking() ? atomic_load(&broken) : 0;
  return !b ? NVM_OK
            : nvb_fail(NVM_ERR_INTERNAL, "[locks] \"%s\" was taken while \"%s\" was held, against lock_order.def",
                       names[(b >> 8 & 255) % NVB_NRANKS], names[(b >> 16) % NVB_NRANKS]);
}

/* ---- forks */
static nvb_lock *at_fork; /* the locks that are held at a fork, in the order of their ranks */
static nvb_fork_hook *hooks;
atomic_uint nvb_forks;
static pthread_mutex_t renewing = PTHREAD_MUTEX_INITIALIZER;
static int seen;

static void before_fork(void) {
  for (nvb_lock *l = at_fork; l; l = l->next) pthread_mutex_lock(&l->mutex);
  pthread_mutex_lock(&renewing);
  for (nvb_fork_hook *h = hooks; h; h = h->next)
    if (h->before) h->before();
}
static void give_all(void) {
  pthread_mutex_unlock(&renewing);
  for (nvb_lock *l = at_fork; l; l = l->next) pthread_mutex_unlock(&l->mutex);
}
static void renew_child(void) {
  unsigned n = atomic_fetch_add(&nvb_forks, 1) + 1;
  for (nvb_lock *l = at_fork; l; l = l->next) atomic_store(&l->forks, n);
  for (nvb_fork_hook *h = hooks; h; h = h->next)
    if (h->in_child) h->in_child();
  give_all();
}
__attribute__((constructor)) static void watch_forks(void) {
  seen = !pthread_atfork(before_fork, give_all, renew_child);
}

int nvb_fork_seen(void) { return seen; }
void nvb_fork_hold(nvb_lock *l) {
  nvb_lock **at = &at_fork;
  while (*at && (*at)->rank <= l->rank) at = &(*at)->next;
  l->next = *at;
  *at = l;
}
nvb_lock *nvb_fork_held(nvb_rank r) {
  nvb_lock *l = at_fork;
  while (l && l->rank != r) l = l->next;
  return l;
}
void nvb_fork_hook_add(nvb_fork_hook *h) {
  h->next = hooks;
  hooks = h;
}

/* ---- taking and giving */
static void init_again(nvb_lock *l) {
  pthread_mutex_lock(&renewing);
  if (atomic_load(&l->forks) != atomic_load(&nvb_forks)) {
    l->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&l->forks, atomic_load(&nvb_forks));
  }
  pthread_mutex_unlock(&renewing);
}

static void meet_forks(nvb_lock *l) {
  if (atomic_load_explicit(&l->forks, memory_order_acquire) != atomic_load_explicit(&nvb_forks, memory_order_relaxed))
    init_again(l);
}

void nvb_lock_take(nvb_lock *l) {
  meet_forks(l);
  pthread_mutex_lock(&l->mutex);
  if (is_checking()) note_taken(l);
}

int nvb_lock_try(nvb_lock *l) {
  meet_forks(l);
  if (pthread_mutex_trylock(&l->mutex)) return 0;
  if (is_checking()) note_taken(l);
  return 1;
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
  if (is_checking()) note_taken(l);
  return NVM_OK;
}

void nvb_lock_give(nvb_lock *l) {
  if (is_checking()) note_given(l);
  pthread_mutex_unlock(&l->mutex);
}

void nvb_lock_await(nvb_lock *l, pthread_cond_t *signal) { pthread_cond_wait(signal, &l->mutex); }

/* ---- events */
int nvb_event_await(nvb_event *e, int (*is_over)(void *arg), void *arg) {
  const struct timespec slice = { .tv_nsec = 20000000 };
  int status = NVM_OK;
  atomic_fetch_add(&e->waiting, 1);
  for (;;) {
    uint32_t seen = atomic_load(&e->told);
    if (is_over(arg) || (status = nvb_interrupted())) break;
    syscall(SYS_futex, &e->told, FUTEX_WAIT_PRIVATE, seen, &slice, NULL, 0);
  }
  atomic_fetch_sub(&e->waiting, 1);
  return status;
}

void nvb_event_tell(nvb_event *e) {
  if (!atomic_load(&e->waiting)) return;
  atomic_fetch_add(&e->told, 1);
  syscall(SYS_futex, &e->told, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
