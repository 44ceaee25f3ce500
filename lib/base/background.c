/* Runs jobs in background threads. Decides how many threads a crew has and which job is next. At the exit of the
   process jobs in progress finish, the others end undone. A forked child has no threads and no jobs: what was queued is
   the parent's. */
#include "base/background.h"
#include <signal.h>
#include <stdlib.h>
#include "base/lock.h"
#include "base/pool.h"

static nvb_lock lock = NVB_LOCK(BACKGROUND); /* the queues of all crews */
static nvb_event moved;                      /* told when a job or a thread ends */
static nvb_crew *crews;
static int exiting;

/* ---- the queue; called under the lock */
static void put_job(nvb_crew *c, nvb_job *j) {
  nvb_job **at = &c->first;
  while (*at) at = &(*at)->next;
  j->next = NULL;
  *at = j;
  c->waiting++;
}

static nvb_job *take_job(nvb_crew *c) {
  nvb_job **best = &c->first;
  double most = c->worth && *best ? c->worth(*best) : 0;
  for (nvb_job **at = best; c->worth && *at; at = &(*at)->next) {
    double worth = c->worth(*at);
    if (worth > most) best = at, most = worth;
  }
  nvb_job *j = *best;
  if (j) *best = j->next, c->waiting--;
  return j;
}

/* ---- the end of the process and forks */
static int is_idle(void *crew) { return !atomic_load(&((nvb_crew *)crew)->running); }
static int is_settled(void *crew) {
  const nvb_crew *c = crew;
  return !atomic_load(&c->running) || atomic_load(&c->settled);
}

/* Threads that work finish their jobs, so that nothing that they use is unloaded under them. */
static void at_end(void) {
  nvb_lock_take(&lock);
  exiting = 1;
  nvb_lock_give(&lock);
  for (nvb_crew *c = crews; c; c = c->next) {
    for (nvb_job *j;;) {
      nvb_lock_take(&lock);
      j = take_job(c);
      nvb_lock_give(&lock);
      if (!j) break;
      c->end(j, 0);
    }
    nvb_event_tell(&moved);
    nvb_event_await(&moved, is_idle, c);
  }
}

static void forget_in_child(void) {
  for (nvb_crew *c = crews; c; c = c->next) {
    c->ended |= c->fork_ends && atomic_load(&c->running);
    atomic_store(&c->running, 0);
    c->first = NULL;
    c->waiting = 0;
  }
}
NVB_HOLD_AT_FORK(lock);
NVB_AT_FORK(.in_child = forget_in_child);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void watch_exit(void) { atexit(at_end); }

/* ---- threads */
static void *run_jobs(void *crew) {
  nvb_crew *c = crew;
  nvb_lock_take(&lock);
  for (nvb_job *j; (j = take_job(c));) {
    nvb_lock_give(&lock);
    c->work(j);
    /* what is registered last is called first: before what the job's libraries have registered */
    if (!atomic_load(&c->settled) && !atexit(at_end)) atomic_store(&c->settled, 1);
    c->end(j, 1);
    nvb_event_tell(&moved);
    nvb_lock_take(&lock);
  }
  atomic_fetch_sub(&c->running, 1);
  nvb_lock_give(&lock);
  nvb_event_tell(&moved);
  return NULL;
}

/* Starts one more thread if the crew may have it; called under the lock. Returns the number of threads. */
static int start_thread(nvb_crew *c) {
  int most = nvb_pool_threads() / 2, running = atomic_load(&c->running);
  most = most < 1 ? 1 : most < c->most ? most : c->most;
  pthread_attr_t detached;
  pthread_t thread;
  sigset_t all, old;
  if (running >= most || !nvb_fork_seen() || pthread_attr_init(&detached)) return running;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  sigfillset(&all); /* signals are delivered to the program's own threads */
  pthread_sigmask(SIG_SETMASK, &all, &old);
  if (!pthread_create(&thread, &detached, run_jobs, c)) running = atomic_fetch_add(&c->running, 1) + 1;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&detached);
  return running;
}

int nvb_crew_give(nvb_crew *c, nvb_job *j) {
  pthread_once(&once, watch_exit);
  nvb_lock_take(&lock);
  if (!c->known) {
    c->known = 1;
    c->next = crews;
    crews = c;
  }
  int taken = !exiting && !c->ended && start_thread(c);
  if (taken) put_job(c, j);
  nvb_lock_give(&lock);
  return taken;
}

int nvb_crew_waiting(nvb_crew *c) {
  nvb_lock_take(&lock);
  int n = c->waiting;
  nvb_lock_give(&lock);
  return n;
}

typedef struct wait { const nvb_crew *of; int (*is_over)(void *arg); void *arg; } wait;
static int is_enough(void *of) { /* a crew that has ended with a fork will do no job */
  const wait *w = of;
  return w->of->ended || w->is_over(w->arg);
}
int nvb_crew_wait(nvb_crew *c, int (*is_over)(void *arg), void *arg) {
  wait w = { c, is_over ? is_over : is_idle, is_over ? arg : c };
  return nvb_event_await(&moved, is_enough, &w);
}
void nvb_crews_settle(void) {
  nvb_lock_take(&lock);
  nvb_crew *first = crews; /* a crew that is known stays so */
  nvb_lock_give(&lock);
  for (nvb_crew *c = first; c; c = c->next) nvb_event_await(&moved, is_settled, c);
}
void nvb_crews_end_first(void) { atexit(at_end); }
