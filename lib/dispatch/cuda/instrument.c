/* Instrumented runs on a GPU: each step is waited for, so that a kernel that breaks the device is known by name.
   NVM_DUMP=run reports each step, and NVM_CHECK=bits runs it again in the interpreter, on copies, and fails where the
   results differ. Never changes what a program computes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/settings.h"
#include "dispatch/cuda/program.h"

/* Copies in host memory of a buffer that the step uses, before and after the step. The interpreter runs on `before`. */
typedef struct image { char *device, *before, *after; size_t bytes; } image;
typedef struct twice { nvd_gpu_run *x; int step, n; image *at; uint64_t *arg; void *scratch; } twice;

static nvd_buf *buf_of(const nvd_gpu_run *x, const nvd_address *b) {
  return b->from == NVF_BLEAF ? x->leaf[b->id].buf : b->from == NVF_BOUT ? x->out[b->id].buf : &x->memory->b;
}

static image *image_of(const twice *t, const nvd_address *b) {
  char *device = buf_of(t->x, b)->data;
  for (int i = 0; i < t->n; i++)
    if (t->at[i].device == device) return &t->at[i];
  return NULL;
}

/* Returns the end of the step's addresses in the program's list; *first is their beginning. */
static int address_end(const nvd_program *p, int step, int *first) {
  int end = 0;
  *first = 0;
  for (; end < p->naddress && p->address[end].arg < p->step[step].first + p->step[step].narg; end++)
    *first += p->address[end].arg < p->step[step].first;
  return end;
}

static int fetch_buffers(const twice *t, int after) {
  void *stream = t->x->q->stream;
  int error = 0;
  for (int i = 0; i < t->n && !error; i++)
    error = nvd_cu.cudaMemcpyAsync(after ? t->at[i].after : t->at[i].before, t->at[i].device, t->at[i].bytes,
                                   CUDA_TO_HOST, stream);
  return error ? error : nvd_cu.cudaStreamSynchronize(stream);
}

static int make_images(nvb_arena *a, twice *t) {
  const nvd_program *p = t->x->p;
  int first, end = address_end(p, t->step, &first);
  t->at = NVB_NEWN(a, image, end - first);
  for (int i = first; i < end; i++) {
    nvd_buf *b = buf_of(t->x, &p->address[i]);
    if (image_of(t, &p->address[i])) continue;
    t->at[t->n++] = (image){ b->data, nvb_get(a, b->bytes + 1), nvb_get(a, b->bytes + 1), b->bytes };
  }
  t->arg = nvb_dup(a, t->x->r->arg + p->step[t->step].first, sizeof *t->arg * (size_t)p->step[t->step].narg);
  for (int i = first; i < end; i++) {
    const image *m = image_of(t, &p->address[i]);
    uint64_t *arg = &t->arg[p->address[i].arg - p->step[t->step].first];
    *arg = (uint64_t)(uintptr_t)m->before + (*arg - (uint64_t)(uintptr_t)m->device);
  }
  t->scratch = nvb_get(a, (size_t)p->step[t->step].kernel->interp_scratch + 128);
  return fetch_buffers(t, 0);
}

static void run_make_images(nvb_arena *a, void *arg) {
  twice *t = arg;
  int error = make_images(a, t);
  if (error) nvb_throw(a, NVM_ERR_DEVICE, "[bits] %s (%d)", nvd_cu.cudaGetErrorString(error), error);
}

/* Runs the step in the interpreter, after it has run on the device, and compares. Returns a status. */
static int compare_step(const twice *t) {
  const nvd_program *p = t->x->p;
  const nvd_step *s = &p->step[t->step];
  int first, end = address_end(p, t->step, &first);
  void *scratch = (void *)(((uintptr_t)t->scratch + 63) & ~(uintptr_t)63);
  unsigned fp = nvb_fp_enter();
  int failed = nvc_interp_run(s->kernel->interp, t->arg, 0, s->blocks, scratch);
  nvb_fp_leave(fp);
  for (int i = first; i < end && !failed; i++) { /* after a failed check the results are undefined */
    const nvd_address *b = &p->address[i];
    const image *m = image_of(t, b);
    char *mine = (char *)(uintptr_t)t->arg[b->arg - s->first];
    int64_t at = b->written ? nvd_first_difference(m->after + (mine - m->before), mine, b->written, b->type) : -1;
    if (at >= 0)
      return nvb_fail(NVM_ERR_INTERNAL,
                      "[bits] CUDA and interpreted code differ in step %d of %d, element %" PRId64
                      " of argument %d: %s",
                      t->step + 1, p->nstep, at, b->arg - s->first, s->what);
  }
  return NVM_OK;
}

static void report_step(const nvd_gpu_run *x, int i, int64_t ns, int failed) {
  const nvd_step *s = &x->p->step[i];
  char line[512], name[32];
  char how[64];
  if (s->solution) snprintf(how, sizeof how, "%s", s->solution->by->name);
  else snprintf(how, sizeof how, "%" PRId64 " blocks of %d threads", s->blocks, s->gpu->threads);
  snprintf(line, sizeof line, "%d/%d %s, cuda:%d: %s, %.1f us, %.2f GB/s%s: %s\n", i + 1, x->p->nstep, s->hero,
           nvd_device_ordinal(x->p->device), how, (double)ns * 1e-3, (double)s->bytes / (double)(ns ? ns : 1),
           failed ? ", failed" : "", s->what);
  snprintf(name, sizeof name, "step%d", i + 1);
  nvb_dump("run", name, line);
}

int nvd_gpu_step_instrumented(nvd_gpu_run *x, int i) {
  const nvd_step *s = &x->p->step[i];
  nvb_arena *a = s->kernel ? nvb_arena_new() : NULL;
  twice t = { .x = x, .step = i };
  if (s->kernel) x->status = a ? nvb_protect(a, run_make_images, &t) : nvb_fail_memory();
  int64_t start = nvb_clock_ns();
  int error = x->status ? 0 : nvd_gpu_launch(x, i);
  nvd_gpu_stream_note(x->q, 0, s->solution ? s->solution->by->name : s->gpu->title);
  error = error ? error : nvd_cu.cudaStreamSynchronize(x->q->stream);
  if (!error) x->q->done = x->q->issued;
  report_step(x, i, nvb_clock_ns() - start, error || x->status);
  if (s->kernel && !error && !x->status && !(error = fetch_buffers(&t, 1))) x->status = compare_step(&t);
  nvb_arena_free(a);
  return error;
}
