/* Times programs on a GPU with CUDA events around runs that are queued while the device is still busy with uncounted
   work, so that no launch latency is counted. A run that exceeds the caller's limit counts as hung, and the device as
   lost. Never decides which program is better. */
#include <sched.h>
#include <stdio.h>
#include "base/clock.h"
#include "base/err.h"
#include "dispatch/cuda/device_impl.h"
#include "dispatch/program.h"

enum { AHEAD = 3 }; /* uncounted runs, behind which the counted ones queue up */

static struct timer { void *from, *to; } timers[NVD_MAX_DEVICES]; /* events, made once; one thread times at a time */

static int timer_of(nvd_device *d, struct timer *t) {
  struct timer *mine = &timers[d->ordinal];
  int error = mine->from ? 0 : nvd_cu.cudaEventCreateWithFlags(&mine->from, 0);
  error = error || mine->to ? error : nvd_cu.cudaEventCreateWithFlags(&mine->to, 0);
  *t = *mine;
  return error;
}

/* Waits at most `limit` ns. Returns a CUDA error code; CUDA_NOT_READY after the limit. */
static int wait_for(void *event, double limit) {
  int64_t start = nvb_clock_ns();
  int error;
  while ((error = nvd_cu.cudaEventQuery(event)) == CUDA_NOT_READY && (double)(nvb_clock_ns() - start) < limit)
    sched_yield();
  return error;
}

typedef struct work { nvd_program *p; const nvd_operand *leaf, *out; nvd_buf *flush; void *stream; } work;

static int launch_runs(const work *w, int runs) {
  int status = NVM_OK;
  for (int i = 0; i < runs && !status; i++) status = nvd_run_on(w->p, w->leaf, w->out);
  return status;
}

/* Adds the time of `runs` runs, from one event to another, to *ns. Returns a status. */
static int time_runs(nvd_device *d, const work *w, int runs, double limit, double *ns, int *hung) {
  struct timer t = { 0 };
  float ms = 0;
  int entered = nvd_enter(d), error = timer_of(d, &t), status = NVM_OK;
  error = error ? error : nvd_cu.cuEventRecord(t.from, w->stream);
  status = error ? NVM_OK : launch_runs(w, runs);
  error = error || status ? error : nvd_cu.cuEventRecord(t.to, w->stream);
  error = error || status ? error : wait_for(t.to, limit);
  *hung = error == CUDA_NOT_READY;
  error = error || status ? error : nvd_cu.cudaEventElapsedTime(&ms, t.from, t.to);
  nvd_leave(entered);
  *ns += 1e6 * (double)ms;
  if (*hung) {
    char why[80];
    snprintf(why, sizeof why, "a kernel that was tried has not ended after %.3g s", limit * 1e-9);
    return nvd_device_lose(d, why);
  }
  return status ? status : nvd_device_status(d, error, "tune");
}

int nvd_may_time(nvd_device *d) {
  int capturing = 0;
  return !nvd_device_ready(d) && !nvd_cu.cuStreamIsCapturing(nvd_stream(d), &capturing) && !capturing;
}

int nvd_time_on(double *ns, nvd_program *p, const nvd_operand *leaf, const nvd_operand *out, int runs, nvd_buf *flush,
                double limit, int *hung) {
  nvd_device *d = p->device;
  work w = { p, leaf, out, flush, nvd_stream(d) };
  int status = NVM_OK;
  *ns = 0;
  if (!nvd_may_time(d)) return nvb_fail(NVM_ERR_STATE, "[tune] nothing can be timed on cuda:%d now", d->ordinal);
  if (!flush) {
    status = runs > 1 ? launch_runs(&w, AHEAD) : NVM_OK;
    return status ? status : time_runs(d, &w, runs, limit, ns, hung);
  }
  for (int i = 0; i < runs && !status; i++) {
    status = nvd_copy_on(flush, 0, flush, flush->bytes / 2, flush->bytes / 2);
    status = status ? status : time_runs(d, &w, 1, limit, ns, hung);
  }
  return status;
}
