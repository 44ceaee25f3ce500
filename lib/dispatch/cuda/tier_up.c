/* Compiles optimised code of GPU kernels in the background (base/background.h). At the exit of the process,
   compilations in progress finish and go to the disk store; queued ones are dropped. Decides that a kernel which may
   never run again waits for its second run while many are queued. */
#include "dispatch/cuda/tier_up.h"
#include <string.h>
#include "base/background.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/settings.h"
#include "dispatch/dispatch.h"

enum { THREADS = 8, WAITING = 16 };

typedef struct task {
  nvb_job job;
  nvd_gpu_kernel *k, *made;
  int status;
  char source[];
} task;

atomic_uint nvd_gpu_spilled;

static void compile_task(nvb_job *j) {
  task *t = (task *)j;
  t->status = nvd_gpu_code_compile(t->made, t->source, !t->k->module);
  if (t->status) nvb_log(1, "kernel %s gets no optimised code: %s", t->made->title, nvb_message());
}

/* Tells of the code, or that there will be none; returns whether programs with the kernel are outdated. */
static int tell_result(task *t, int status) {
  int outdates = status ? !t->k->module : nvd_gpu_code_spills(t->made);
  if (status) nvd_gpu_kernel_free(t->made);
  else atomic_store(&t->k->optimized, t->made);
  atomic_store(&t->k->expects, 0);
  return outdates;
}

static void end_task(nvb_job *j, int done) {
  task *t = (task *)j;
  int outdates = tell_result(t, done ? t->status : NVM_ERR_STATE);
  /* programs with this kernel count as outdated and are planned again */
  if (done) atomic_fetch_add(&nvd_gpu_spilled, (unsigned)outdates);
  nvd_gpu_kernel_unref(t->k);
  nvb_free(t);
}

static nvb_crew crew = { .work = compile_task, .end = end_task, .most = THREADS, .fork_ends = 1 };

/* Queues the task, which needs no reference to its kernel yet. */
static void queue_task(task *t) {
  nvd_gpu_kernel_ref(t->k);
  if (!nvb_crew_give(&crew, &t->job)) end_task(&t->job, 0);
}

void nvd_optimized_start(nvd_gpu_kernel *k) {
  task *t = atomic_load_explicit(&k->parked, memory_order_relaxed) ? atomic_exchange(&k->parked, NULL) : NULL;
  if (t) queue_task(t);
}

void nvd_optimized_drop(nvd_gpu_kernel *k) {
  task *t = atomic_load(&k->parked);
  if (t) nvd_gpu_kernel_free(t->made);
  nvb_free(t);
}

void nvd_optimized_later(nvd_gpu_kernel *k, nvd_gpu_kernel *made, const char *source) {
  size_t n = strlen(source) + 1;
  task *t = nvb_alloc(sizeof *t + n);
  if (!t) { /* then the kernel keeps what it has */
    nvd_gpu_kernel_free(made);
    atomic_store(&k->expects, 0);
    return;
  }
  *t = (task){ .k = k, .made = made };
  memcpy(t->source, source, n);
  atomic_store(&k->expects, 1);
  if (!k->module && nvb_crew_waiting(&crew) >= WAITING) atomic_store(&k->parked, t);
  else queue_task(t);
}

static int is_told(void *kernel) { return !atomic_load(&((nvd_gpu_kernel *)kernel)->expects); }
void nvd_optimized_wait(nvd_gpu_kernel *k) {
  if (k) nvd_optimized_start(k);
  nvb_crew_wait(&crew, k ? is_told : NULL, k);
}
