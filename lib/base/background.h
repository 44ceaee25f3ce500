/* Work that goes on in the background: crews of threads, each with a queue of jobs. A crew's threads start with its
   first job and end when its queue is empty. At the exit of the process, and in a forked child, nothing of a crew is
   left behind: background.c says what becomes of its jobs. */
#ifndef NVM_BASE_BACKGROUND_H
#define NVM_BASE_BACKGROUND_H
#include <stdatomic.h>

typedef struct nvb_job { struct nvb_job *next; } nvb_job; /* the first member of what a crew works on */

/* A static object. What the threads call gets a job that no queue holds any more, and no lock is held. */
typedef struct nvb_crew {
  void (*work)(nvb_job *j);          /* the work, however long */
  void (*end)(nvb_job *j, int done); /* called next, with 1; or with 0 instead of work, at exit. Frees the job. */
  /* The job with the most goes first; of equal ones, and with NULL, the one that came first. Called often, under the
     lock of all crews: it only reads. */
  double (*worth)(const nvb_job *j);
  int most;       /* threads, if the pool has twice as many */
  int fork_ends;  /* a child that is forked while threads work gets no job done: what they use does not outlive it */
  nvb_job *first; /* the rest belongs to background.c */
  struct nvb_crew *next;
  int waiting, known, ended;
  _Atomic int running, settled;
} nvb_crew;

/* Queues the job. Returns 0 if the caller has to do it, and has it still: no thread can start, or the process ends. */
int nvb_crew_give(nvb_crew *c, nvb_job *j);
int nvb_crew_waiting(nvb_crew *c); /* jobs that no thread has taken */
/* Waits until is_over(arg), which is asked after each job; NULL: until the crew has no job. An interrupt ends the wait.
   Returns a status. */
int nvb_crew_wait(nvb_crew *c, int (*is_over)(void *arg), void *arg);
/* Waits for the first job of every crew that has one in progress: the libraries that it opens register then what they
   destroy at exit, and what waits there for the threads is registered after them. */
void nvb_crews_settle(void);
/* To be called where a job has opened a library: an exit before the job's end waits for it first, too. */
void nvb_crews_end_first(void);
#endif
