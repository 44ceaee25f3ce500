/* Background work: jobs are done in the order of their worth; none is lost, whatever ends first. */
#include "base/background.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../suite.h"
#include "base/err.h"
#include "base/interrupt.h"
#include "base/settings.h"

enum { JOBS = 12 };
typedef struct task { nvb_job job; double worth; int i; } task;
static task tasks[JOBS];
static sem_t gate; /* each job waits for it */
static atomic_int order[JOBS], worked, done, dropped;

static void work(nvb_job *j) {
  sem_wait(&gate);
  atomic_store(&order[atomic_fetch_add(&worked, 1)], ((task *)j)->i);
}
static void end(nvb_job *j, int finished) {
  (void)j;
  atomic_fetch_add(finished ? &done : &dropped, 1);
}
static double worth(const nvb_job *j) { return ((const task *)j)->worth; }
static nvb_crew crew = { .work = work, .end = end, .most = 1 };

static void give_all(void) {
  sem_init(&gate, 0, 0);
  for (int i = 0; i < JOBS; i++) {
    tasks[i] = (task){ .worth = (double)(5 * i % JOBS), .i = i };
    ck_assert_int_eq(nvb_crew_give(&crew, &tasks[i].job), 1);
  }
}
static void open_gate(void) {
  for (int i = 0; i < JOBS; i++) sem_post(&gate);
}

START_TEST(jobs_are_done_in_their_order) {
  crew.worth = _i ? worth : NULL;
  give_all();
  ck_assert_int_ge(nvb_crew_waiting(&crew), JOBS - 1);
  open_gate();
  ck_assert_int_eq(nvb_crew_wait(&crew, NULL, NULL), NVM_OK);
  ck_assert_int_eq(atomic_load(&done), JOBS);
  ck_assert_int_eq(nvb_crew_waiting(&crew), 0);
  for (int k = 2; k < JOBS; k++) { /* the first is taken before the others are there */
    int before = atomic_load(&order[k - 1]), i = atomic_load(&order[k]);
    if (_i) ck_assert(tasks[before].worth > tasks[i].worth);
    else ck_assert_int_eq(i, before + 1);
  }
}
END_TEST
START_TEST(several_threads_work) {
  nvb_set("NVM_NUM_THREADS", "8");
  crew.most = 3;
  give_all();
  for (int k = 0; k < 1000 && nvb_crew_waiting(&crew) != JOBS - 3; k++) usleep(1000);
  ck_assert_int_eq(nvb_crew_waiting(&crew), JOBS - 3);
  open_gate();
  nvb_crew_wait(&crew, NULL, NULL);
  ck_assert_int_eq(atomic_load(&done), JOBS);
}
END_TEST
static int first_is_done(void *n) { return atomic_load(&done) >= *(int *)n; }
START_TEST(a_wait_ends_with_what_it_waits_for) {
  int n = 3;
  give_all();
  for (int i = 0; i < n; i++) sem_post(&gate);
  ck_assert_int_eq(nvb_crew_wait(&crew, first_is_done, &n), NVM_OK);
  nvb_crews_settle();
  ck_assert_int_eq(atomic_load(&done), n);
  open_gate();
}
END_TEST
static int stop(void *asked) { return (*(int *)asked)++ > 0; }
START_TEST(an_interrupt_ends_a_wait) {
  int asked = 0;
  give_all();
  nvb_interrupt_set(stop, &asked);
  nvb_interrupt_enter();
  ck_assert_int_eq(nvb_crew_wait(&crew, NULL, NULL), NVM_ERR_INTERRUPTED);
  nvb_interrupt_leave();
  nvb_interrupt_set(NULL, NULL);
  open_gate();
}
END_TEST

static int status_of(pid_t child) {
  int status = -1;
  ck_assert(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}
/* What is in progress at exit is finished, the rest is dropped. */
static int told;
static void tell_counts(void) {
  int counts[2] = { atomic_load(&done), atomic_load(&dropped) };
  if (write(told, counts, sizeof counts) < 0) _exit(1);
}
START_TEST(an_exit_waits_for_the_job_in_progress) {
  int pipes[2], counts[2];
  ck_assert_int_eq(pipe(pipes), 0);
  pid_t child = fork();
  if (!child) {
    told = pipes[1];
    atexit(tell_counts); /* before the crew's: called after it */
    give_all();
    while (nvb_crew_waiting(&crew) == JOBS) usleep(1000);
    open_gate();
    exit(0);
  }
  ck_assert_int_eq(status_of(child), 0);
  ck_assert(read(pipes[0], counts, sizeof counts) == sizeof counts);
  ck_assert_int_ge(counts[0], 1);
  ck_assert_int_eq(counts[0] + counts[1], JOBS);
}
END_TEST
/* What a job's library registers in the middle of the job is called after the job's end. */
static atomic_int began, destroyed;
static void destroy(void) { atomic_store(&destroyed, 1); }
static void open_library(nvb_job *j) {
  (void)j;
  atexit(destroy);
  nvb_crews_end_first();
  atomic_store(&began, 1);
  usleep(50000);
  if (atomic_load(&destroyed)) _exit(3);
}
START_TEST(an_exit_destroys_no_library_that_a_job_uses) {
  pid_t child = fork();
  if (!child) {
    static nvb_crew opener = { .work = open_library, .end = end, .most = 1 };
    static nvb_job job;
    nvb_crew_give(&opener, &job);
    while (!atomic_load(&began)) usleep(100);
    exit(0);
  }
  ck_assert_int_eq(status_of(child), 0);
}
END_TEST
START_TEST(a_child_has_no_jobs_of_its_parent) {
  crew.fork_ends = _i;
  give_all();
  while (nvb_crew_waiting(&crew) == JOBS) usleep(1000);
  pid_t child = fork();
  if (!child) {
    task mine = { .i = 0 };
    nvb_crew_wait(&crew, NULL, NULL);
    int bad = nvb_crew_waiting(&crew) || nvb_crew_give(&crew, &mine.job) == _i;
    sem_post(&gate);
    nvb_crew_wait(&crew, NULL, NULL);
    _exit(bad || atomic_load(&done) != !_i);
  }
  ck_assert_int_eq(status_of(child), 0);
  open_gate();
  nvb_crew_wait(&crew, NULL, NULL);
  ck_assert_int_eq(atomic_load(&done), JOBS);
}
END_TEST

SUITE("background", LOOP(jobs_are_done_in_their_order, 2), several_threads_work, a_wait_ends_with_what_it_waits_for,
      an_interrupt_ends_a_wait, an_exit_waits_for_the_job_in_progress, an_exit_destroys_no_library_that_a_job_uses,
      LOOP(a_child_has_no_jobs_of_its_parent, 2))
