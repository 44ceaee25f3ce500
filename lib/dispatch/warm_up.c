/* Compiles CPU kernels in the background (base/background.h), those first that have kept the interpreter busiest: they
   lose most while they wait. At the exit of the process, what was compiled goes to the disk store; queued kernels are
   dropped. It never decides when a kernel is worth compiling. */
#include "dispatch/warm_up.h"
#include "base/background.h"
#include "base/lock.h"
#include "base/mem.h"
#include "dispatch/dispatch.h"

enum { THREADS = 4 };

typedef struct task {
  nvb_job job;
  nvd_kernel *k; /* a reference */
} task;

static void compile_task(nvb_job *j) {
  nvd_kernel *k = ((task *)j)->k;
  nvd_kernel_compile(k, atomic_load(&k->baseline));
}
static void end_task(nvb_job *j, int done) {
  (void)done;
  task *t = (task *)j;
  atomic_store(&t->k->queued, 0);
  nvd_kernel_unref(t->k);
  nvb_free(t);
}
/* What the interpreter runs is more urgent than what has baseline code. */
static double urgency(const nvb_job *j) {
  const nvd_kernel *k = ((const task *)j)->k;
  return atomic_load(&k->baseline) ? -1 : (double)nvd_kernel_served(k);
}

static nvb_crew crew = { .work = compile_task, .end = end_task, .worth = urgency, .most = THREADS };

void nvd_warm_wait(void) { nvb_crew_wait(&crew, NULL, NULL); }

int nvd_warm_later(nvd_kernel *k) {
  int mark = (int)atomic_load(&nvb_forks) + 1; /* what was queued before a fork counts for nothing in the child */
  if (atomic_exchange(&k->queued, mark) == mark) return 1;
  task *t = nvb_alloc(sizeof *t);
  if (t) *t = (task){ .k = nvd_kernel_again(k) };
  if (t && nvb_crew_give(&crew, &t->job)) return 1;
  if (t) end_task(&t->job, 0);
  else atomic_store(&k->queued, 0);
  return 0;
}
