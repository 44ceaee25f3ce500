/* Runs programs on a stream that the caller is capturing. The buffers, kernels and fault slots of such a run live as
   long as the caller's CUDA graph, through a user object of the graph. Never replays graphs of its own inside a
   capture. */
#include <string.h>
#include "base/err.h"
#include "base/mem.h"
#include "dispatch/cuda/program.h"
#include "dispatch/cuda/tier_up.h"

typedef struct captured {
  struct captured *next;
  nvd_fault *fault;
  int nbuf, nkernel, nkept;
  nvd_buf **buf;
  nvd_gpu_kernel **kernel;
  struct kept {
    const nvd_solver *by;
    void *what;
  } *kept; /* of libraries */
} captured;
static _Atomic(captured *) over; /* runs whose graphs have been destroyed, until they are reaped */

/* CUDA calls this, where no CUDA function may be called and no lock waited for */
static void graph_gone(void *owned) {
  captured *c = owned;
  c->next = atomic_load(&over);
  while (!atomic_compare_exchange_weak(&over, &c->next, c));
}

void nvd_reap_captured(void) {
  captured *c = atomic_load_explicit(&over, memory_order_relaxed) ? atomic_exchange(&over, NULL) : NULL;
  for (captured *next; c; c = next) {
    next = c->next;
    nvd_lock();
    nvd_fault_unref(c->fault);
    nvd_unlock();
    for (int i = 0; i < c->nbuf; i++) nvd_buf_unref(c->buf[i]);
    for (int i = 0; i < c->nkernel; i++) nvd_gpu_kernel_unref(c->kernel[i]);
    for (int i = 0; i < c->nkept; i++) c->kept[i].by->drop(c->kept[i].what);
    nvb_free(c);
  }
}

static captured *captured_new(const nvd_gpu_run *x) {
  enum { OWN = 3 }; /* the run's own buffers: memory, flags, workspace */
  const nvd_program *p = x->p;
  const nvd_gpu_program *g = p->gpu;
  size_t nstep = (size_t)p->nstep, pointers = (size_t)(g->nleaf + g->nout + OWN) + nstep;
  captured *c = nvb_calloc(1, sizeof *c + sizeof(void *) * pointers + sizeof *c->kept * nstep);
  if (!c) return NULL;
  c->buf = (nvd_buf **)(void *)(c + 1);
  c->kernel = (nvd_gpu_kernel **)(void *)(c->buf + g->nleaf + g->nout + OWN);
  c->kept = (struct kept *)(void *)(c->kernel + nstep);
  for (int i = 0; i < g->nleaf; i++) c->buf[c->nbuf++] = nvd_buf_ref(x->leaf[g->leaf[i].id].buf);
  for (int i = 0; i < g->nout; i++) c->buf[c->nbuf++] = nvd_buf_ref(x->out[g->out[i].id].buf);
  if (x->memory) c->buf[c->nbuf++] = &x->memory->b;
  if (x->flags) c->buf[c->nbuf++] = &x->flags->b;
  if (x->workspace) c->buf[c->nbuf++] = &x->workspace->b;
  for (int i = 0; i < p->nstep; i++)
    if (p->step[i].gpu) c->kernel[c->nkernel++] = nvd_gpu_kernel_ref(p->step[i].gpu);
  for (int i = 0; i < p->nstep; i++) {
    nvd_solution *s = p->step[i].solution;
    if (s && s->by->keep) c->kept[c->nkept++] = (struct kept){ s->by, s->by->keep(s) };
  }
  return c;
}

/* A captured stream cannot wait for events of other streams, so this thread waits for the pending uses of the run's
   buffers. */
static int wait_for_buffers(nvd_device *d, const captured *c) {
  int status = NVM_OK;
  for (int i = 0; i < c->nbuf && !status; i++) {
    nvd_devbuf *devbuf = (nvd_devbuf *)c->buf[i];
    nvd_lock();
    nvd_use use[NVD_USES + 1];
    int n = devbuf->nuse;
    memcpy(use, devbuf->use, sizeof devbuf->use);
    use[n++] = devbuf->writer;
    nvd_unlock();
    while (n && !status)
      if (use[--n].seq != NVD_OPEN) status = nvd_use_wait(d, use[n]);
  }
  return status;
}

static int keep_with_graph(nvd_gpu_stream *q, captured *c) {
  int capturing = 0;
  uint64_t id;
  void *graph = NULL, *object = NULL;
  int error = nvd_cu.cuStreamGetCaptureInfo(q->stream, &capturing, &id, &graph, NULL, NULL, NULL);
  error = error ? error : nvd_cu.cuUserObjectCreate(&object, c, graph_gone, 1, CUDA_OBJECT_NO_SYNC);
  return error ? error : nvd_cu.cuGraphRetainUserObject(graph, object, 1, CUDA_OBJECT_MOVE);
}

int nvd_run_captured(nvd_gpu_run *x) {
  nvd_device *d = x->p->device;
  nvd_reap_captured();
  if (x->p->gpu->memory && !(x->memory = (nvd_devbuf *)nvd_buf_new_on(d, (size_t)x->p->gpu->memory)))
    return nvb_status();
  if (x->p->gpu->flags && !(x->flags = (nvd_devbuf *)nvd_buf_new_on(d, NVD_POST_BYTES))) {
    nvd_buf_unref((nvd_buf *)x->memory);
    return nvb_status();
  }
  for (int64_t n = x->p->gpu->workspace; n && !x->workspace; n = nvd_less_workspace(n))
    x->workspace = (nvd_devbuf *)nvd_buf_new_on(d, (size_t)n);
  captured *c = captured_new(x);
  if (!c) {
    nvd_buf_unref((nvd_buf *)x->memory);
    nvd_buf_unref((nvd_buf *)x->flags);
    nvd_buf_unref((nvd_buf *)x->workspace);
    return nvb_fail_memory();
  }
  int status = wait_for_buffers(d, c), error = 0;
  if (status) {
    graph_gone(c);
    return status;
  }
  /* the caller's graph keeps the code that it captures, so wait for the optimised code */
  for (int i = 0; i < x->p->nstep; i++)
    if (x->p->step[i].gpu) nvd_optimized_wait(x->p->step[i].gpu);
  x->r = x->p->gpu->plain;
  x->captured = 1;
  nvd_lock();
  error = nvd_gpu_find_fault(x, (nvd_use){ d->own, 0 }) ? nvd_gpu_start(x) : CUDA_OUT_OF_MEMORY;
  c->fault = nvd_fault_ref(x->fault);
  nvd_gpu_hand_on(x);
  nvd_unlock();
  error = error ? error : keep_with_graph(x->q, c);
  if (x->status) return x->status;
  /* after an error the capture may already hold kernels, so what they use is kept */
  return nvd_device_status(d, error, "run");
}
